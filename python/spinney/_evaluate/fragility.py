"""Stability of a tree: which of its splits recur in trees fitted to bootstrap samples.

Vocabulary. The position of a split is the path of columns and sides that leads to it. A split *survives* in another
tree that splits on the same column at the same position. The cut is *the same* if nearly all rows of the node go to the
same sides. The *margin* of a split over its runner-up, the best split on another column, is the fraction of its gain
by which it exceeds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from spinney._data.display import Backend, ShownAsTable, align, elide, frame_of, one_line, percent, plural, shortest
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.held_out import read_row_groups, row_arguments
from spinney._estimator.parameters import count_rows
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_values, read_weights
from spinney._evaluate.runner_up import RunnerUp, runner_ups
from spinney._model.tree import FittedTree
from spinney._tree.tree_estimator import BaseTree
from spinney.inspect.text.reader import TreeReader

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES, _MOST_INDENT = 40, 12
_DISTINCT = 1 - 0.36787944117144233  # 1 - 1/e: fraction of distinct rows in a bootstrap sample


@dataclass(frozen=True, eq=False)
class Fragility(ShownAsTable):
    """Stability of the splits of a tree; returned by `fragility`.

    Attributes
    ----------
    columns : dict of lists
        One entry per split, in preorder: `node`, `depth`, `column`, `cut` (the left side in words), `n` (rows),
        `survival` (fraction of the bootstrap samples whose tree splits on the same column at the same position),
        `given_parent` (the same among those in which the parent split survives; NaN if there are none), `same_cut`
        (fraction of the samples in which, in addition, at most `tolerance` of the node's rows change sides),
        `threshold` with `threshold_low`, `threshold_median` and `threshold_high` (5 %, 50 % and 95 % points where the
        split survives; NaN for categories), `similarity` (mean Jaccard similarity of the sets of categories that go
        left; NaN for numbers), `runner_up` (column of the second-best split, None if there is none), and `margin` (1 -
        gain of the runner-up / gain of the split, NaN without a runner-up).
    root_columns : dict from str to float
        Fraction of the samples by column of the root split, descending; "(no split)" if the tree is a single leaf.
    churn : float
        Mean change between the predictions of the tree and of the bootstrap trees: the fraction of rows with another
        class, or the absolute difference in standard deviations of y.
    n_bootstraps : int
        Number of bootstrap samples.
    tolerance : float
        As passed to `fragility`.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[1], [2], [3], [4], [5], [6]], [0, 0, 0, 1, 1, 1]
    >>> tree = spinney.DecisionTreeClassifier().fit(X, y)
    >>> spinney.fragility(tree, X, y, n_bootstraps=10, random_state=0).root_columns
    {'x0': 1.0}
    """

    columns: dict[str, list[Any]]
    root_columns: dict[str, float]
    churn: float
    n_bootstraps: int
    tolerance: float
    is_classifier: bool

    def __len__(self) -> int:
        return len(self.columns["node"])

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return `columns` as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per split.
        """
        return frame_of(self.columns, backend)

    def plot(self, *, max_splits: int = 20, ax: Axes | None = None) -> Axes:
        """Draw the survival of each split as a bar, whose dark part is the fraction with the same cut.

        Parameters
        ----------
        max_splits : int, default=20
            Maximum number of bars: the splits with the most rows.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.draw.explanation import draw_survival

        return draw_survival(self.columns, max_splits, ax)

    def __repr__(self) -> str:
        return f"<Fragility: {plural(len(self), 'split')}, {plural(self.n_bootstraps, 'bootstrap sample')}>"

    def __str__(self) -> str:
        splits = sorted(range(len(self)), key=lambda k: -self.columns["n"][k])[:_MOST_LINES]
        lines = [f"{plural(len(self), 'split')}, {plural(self.n_bootstraps, 'bootstrap sample')}"]
        if splits:
            lines += ["", *align([_HEAD, *(self._line(k) for k in sorted(splits))], _TO_THE_LEFT)]
        if len(splits) < len(self):
            lines.append(f"… and {plural(len(self) - len(splits), 'smaller split')}")
        roots = [f"{one_line(name)} {percent(share)}" for name, share in self.root_columns.items()]
        more = f", {len(roots) - 5} others" if len(roots) > 5 else ""
        lines += ["", f"First column: {', '.join(roots[:5])}{more}"]
        if self.is_classifier:
            lines.append(f"Predictions that change: {100 * self.churn:.1f}% of the rows")
        else:
            lines.append(f"Predictions change by {self.churn:.2f} standard deviations of y on average")
        return "\n".join(lines)

    def _line(self, k: int) -> list[str]:
        at = {name: values[k] for name, values in self.columns.items()}
        if at["survival"] == 0:
            where = ""
        elif np.isnan(at["similarity"]):
            where = f"{shortest(at['threshold_low'], 4)} to {shortest(at['threshold_high'], 4)}"
        else:
            where = f"{percent(at['similarity'])} similar"
        return [
            "  " * min(at["depth"], _MOST_INDENT) + at["cut"],
            f"{at['n']:,}",
            percent(at["survival"]),
            percent(at["same_cut"]),
            where,
            "" if at["runner_up"] is None else elide(one_line(at["runner_up"]), 30),
            "" if at["runner_up"] is None else percent(at["margin"]) if at["margin"] >= 0 else "none",
        ]


_HEAD = ["split", "rows", "survives", "same cut", "cut", "runner-up", "margin"]
_TO_THE_LEFT = frozenset({0, 4, 5})


def fragility(
    estimator: BaseTree,
    X: TableLike,
    y: ColumnLike,
    sample_weight: ColumnLike = None,
    *,
    groups: ColumnLike = None,
    n_bootstraps: int = 100,
    tolerance: float = 0.1,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Fragility:
    """Return how often each split of a fitted tree recurs in trees fitted to bootstrap samples.

    The tree is fitted again, with all its parameters, to bootstrap samples: as many rows as there are, drawn with
    replacement. A row drawn twice has twice the weight, and counts twice for `min_samples_leaf`. It counts once for
    `min_samples_split` and, if there are unequal weights, class weights, costs or priors, also for `min_samples_leaf`.
    Where rows count once, the minimum number of rows is lowered to 63 %, the fraction of distinct rows in a sample.
    Rows that were passed to `fit` as X_val are not used.

    Splits are compared by their position: the split at the root with the root of each bootstrap tree, its left child
    with the left child if both roots split on the same column, and so on. If the two sides of a category split are
    exchanged in a bootstrap tree, they are matched by the categories that they share.

    The runner-up of a split is the best split of any other column on the rows of its node, by the tree's criterion; if
    its gain is close, another sample may well choose the other column. Only the 500 splits with the most rows have a
    runner-up. Its gain includes `feature_costs`, and misclassification costs only if they act as class weights.

    Parameters
    ----------
    estimator : decision tree
        Fitted to X, y and sample_weight.
    X : table of shape (n_samples, n_features)
        The rows that the tree was fitted to.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their target.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights.
    groups : array-like of shape (n_samples,), optional
        Rows with the same label are drawn together, and held out together if the tree is pruned by cross-validation.
    n_bootstraps : int, default=100
        Number of bootstrap samples.
    tolerance : float, default=0.1
        Two cuts of a column are the same if at most this fraction of the node's rows changes sides.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    n_jobs : int, optional
        Number of threads; None: that of the estimator. The result is the same for any number.

    Returns
    -------
    Fragility
        Prints as text; has `to_frame()` and `plot()`.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> tree = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> report = spinney.fragility(tree, X, y, n_bootstraps=20, random_state=0)
    >>> report.columns["column"]
    ['flipper_length_mm', 'bill_length_mm', 'island']
    """
    reader = _checked(estimator, n_bootstraps, tolerance)
    sample = _Sample.of(reader, X, y, sample_weight, groups)
    random = check_random_state(random_state)
    tally = _Tally(reader, sample, tolerance)
    model = _for_bootstraps(estimator, sample).set_params(n_jobs=estimator.n_jobs if n_jobs is None else n_jobs)
    labels = None if groups is None else read_row_groups(groups, len(sample.weight))
    predicted = estimator.predict(X)
    for _ in range(n_bootstraps):
        weight = sample.draw(random)
        model.set_params(random_state=int(random.randint(np.iinfo(np.int32).max)))
        model.fit(X, y, weight, **row_arguments(model, labels, weight=weight))
        tally.add(model.tree_)
        tally.churn.append(sample.change(predicted, model.predict(X)))
    second = runner_ups(reader, sample.values, sample.rows_of, y, sample.weight, model.n_jobs)
    root_columns = {name: count / n_bootstraps for name, count in tally.roots()}
    columns = tally.columns(second)
    return Fragility(columns, root_columns, float(np.mean(tally.churn)), n_bootstraps, tolerance, reader.is_classifier)


def _checked(estimator: TableEstimator, n_bootstraps: int, tolerance: float) -> TreeReader:
    reader = TreeReader(estimator)
    if not isinstance(estimator, BaseTree):
        raise TypeError(f"fragility takes a fitted decision tree of spinney, not {type(estimator).__name__}.")
    if estimator.schema_.pool is not None:
        raise ValueError(
            "fragility compares splits on single columns, but this tree has oblique splits. Pass another tree."
        )
    if isinstance(n_bootstraps, bool) or not isinstance(n_bootstraps, Integral) or n_bootstraps < 1:
        raise ValueError(f"n_bootstraps must be a whole number of at least 1, not {n_bootstraps!r}.")
    if not isinstance(tolerance, Real) or not 0 <= tolerance <= 1:
        raise ValueError(f"tolerance must be a fraction from 0 to 1, not {tolerance!r}.")
    return reader


def _for_bootstraps(estimator: BaseTree, sample: _Sample) -> Any:
    """Return an unfitted copy whose minimum numbers of rows count rows drawn several times.

    The engine counts a weighted row once. Without other weights the weight of a leaf is its number of draws, so that
    the minimum can be set as a weight; half a row less, so that rounding does not reject a leaf that has the minimum.
    """
    n_rows, n_drawn = len(sample.weight), len(sample.drawn)
    chosen: int = getattr(estimator, "min_samples_leaf_", 1)
    leaf = chosen if isinstance(estimator.min_samples_leaf, str) else estimator.min_samples_leaf
    least_leaf, least_split = (count_rows(number, n_rows) for number in (leaf, estimator.min_samples_split))
    parameters: dict[str, float] = {"min_samples_split": max(2, round(_DISTINCT * least_split))}
    reweighted = (getattr(estimator, name, None) for name in ("class_weight", "cost_matrix", "priors"))
    if np.ptp(sample.weight[sample.drawn]) > 0 or any(value is not None for value in reweighted):
        parameters["min_samples_leaf"] = max(1, round(_DISTINCT * least_leaf))
    elif least_leaf > 1:
        fraction = min(0.5, max((least_leaf - 0.5) / n_drawn, estimator.min_weight_fraction_leaf))
        parameters |= {"min_samples_leaf": 1, "min_weight_fraction_leaf": fraction}
    return clone(estimator).set_params(**parameters)


# ---- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows that the tree was fitted to."""

    values: list[Floats]  # by column; codes of categories; NaN is missing
    weight: Floats
    drawn: NDArray[np.intp]  # rows with weight
    rows_of: list[NDArray[np.intp]]  # by node, rows with weight only
    spread: Floats | None  # standard deviation of each output; None for classes
    events: NDArray[np.bool_] | None  # where there are any, by row and output; None if a sample needs none
    units: NDArray[np.intp] | None  # group of each row with weight; None if rows are drawn one by one

    @classmethod
    def of(
        cls, reader: TreeReader, X: TableLike, y: ColumnLike, sample_weight: ColumnLike, groups: ColumnLike = None
    ) -> _Sample:
        values = reader.values(X)
        n_rows = len(values[0])
        weight = read_weights(sample_weight, n_rows)
        weight = np.ones(n_rows) if weight is None else weight
        drawn = np.flatnonzero(weight > 0)
        fitted_on = reader.n_rows(0)
        if reader.model.validation_fraction is None and fitted_on != len(drawn):
            raise ValueError(
                f"The tree was fitted to {fitted_on:,} rows and X has {len(drawn):,} of positive weight. Pass the rows "
                "it was fitted to."
            )
        spread = events = None
        if not reader.is_classifier:
            target = read_values(y, n_rows)
            events = target > 0 if reader.model.criterion == "poisson" else None
            mean = np.average(target, axis=0, weights=weight)
            spread = np.sqrt(np.average((target - mean) ** 2, axis=0, weights=weight))
        leaves = reader.model.apply(X)[drawn]
        units = None
        if groups is not None:
            _, units = np.unique(read_row_groups(groups, n_rows)[drawn], return_inverse=True)
        return cls(values, weight, drawn, _rows_of(reader, leaves, drawn), spread, events, units)

    def draw(self, random: np.random.RandomState) -> Floats:
        """Return the weights of a bootstrap sample; for Poisson trees, samples without events are rejected."""
        while True:
            counts = self._counts(random)
            if self.events is None or self.events[counts > 0].any(axis=0).all():
                return np.asarray(self.weight * counts)

    def _counts(self, random: np.random.RandomState) -> NDArray[np.intp]:
        """Return the number of draws of each row."""
        if self.units is None:
            return np.bincount(random.choice(self.drawn, len(self.drawn)), minlength=len(self.weight))
        n = int(self.units.max()) + 1
        counts = np.zeros(len(self.weight), dtype=np.intp)
        counts[self.drawn] = np.bincount(random.choice(n, n), minlength=n)[self.units]
        return counts

    def change(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """Return the mean change between two predictions over rows and outputs."""
        one, other = one.reshape(len(self.weight), -1), other.reshape(len(self.weight), -1)
        if self.spread is None:
            change = np.asarray(one != other, dtype=np.float64)
        else:
            change = np.abs(one - other) / np.where(self.spread > 0, self.spread, 1.0)
        return float(np.average(change.mean(axis=1), weights=self.weight))


def _rows_of(reader: TreeReader, leaves: NDArray[np.int64], rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of every node: in preorder the leaves of a branch have consecutive numbers."""
    order = np.argsort(leaves, kind="stable")
    starts = np.searchsorted(leaves[order], np.arange(reader.tree.node_count + 1))
    ends = np.arange(reader.tree.node_count) + 2 * reader.n_leaves_below - 1
    return [rows[order[starts[node] : starts[end]]] for node, end in enumerate(ends)]


# ---- splits ----------------------------------------------------------------------------------------------------------


class _Tally:
    """Counts the survival of each split."""

    def __init__(self, reader: TreeReader, sample: _Sample, tolerance: float) -> None:
        self._reader = reader
        self._sample = sample
        self._tolerance = tolerance
        self._splits = np.flatnonzero(~reader.tree.is_leaf).tolist()
        # by split, where it survives: the threshold, or the similarity of categories, and whether the cut is the same
        self._fates: dict[int, list[tuple[float, bool]]] = {node: [] for node in self._splits}
        self._goes_left = {node: _goes_left(reader.tree, node, self._known(node)) for node in self._splits}
        self._n_roots = np.zeros(len(reader.features) + 1, dtype=np.int64)  # the last counts trees without a split
        self.churn: list[float] = []

    def _known(self, node: int) -> Floats:
        """Return the known values of the rows of a node in its split column."""
        values = self._sample.values[self._reader.column(node)][self._sample.rows_of[node]]
        return np.asarray(values[~np.isnan(values)])

    def add(self, other: FittedTree) -> None:
        """Match every split with another tree, from the root down."""
        self._n_roots[-1 if other.is_leaf[0] else other.feature[0]] += 1
        counterpart = {0: 0}
        for node in self._splits:
            match = counterpart.get(node)
            if match is None or other.feature[match] != self._reader.column(node):
                continue
            sides = (match + 1, int(other.children_right[match]))
            if self._compare(node, other, match):
                sides = sides[::-1]
            counterpart.update(zip(self._reader.children(node), sides, strict=True))

    def _compare(self, node: int, other: FittedTree, match: int) -> bool:
        """Record the similarity of two splits on one column; return whether their sides are exchanged."""
        values = self._known(node)
        goes_left, other_left = self._goes_left[node], _goes_left(other, match, values)
        is_exchanged, measure = False, float(other.threshold[match])
        if self._reader.tree.is_categorical[node]:
            left, right = set(values[other_left].tolist()), set(values[~other_left].tolist())
            ours = set(values[goes_left].tolist())
            is_exchanged = _jaccard(ours, right) > _jaccard(ours, left)
            other_left = other_left ^ is_exchanged
            measure = _jaccard(ours, right if is_exchanged else left)
        is_same = not len(values) or bool(np.mean(goes_left != other_left) <= self._tolerance)
        self._fates[node].append((measure, is_same))
        return is_exchanged

    def roots(self) -> list[tuple[str, int]]:
        """Return the columns of root splits with their counts, descending."""
        names = [*(feature.name for feature in self._reader.features), "(no split)"]
        order = sorted(range(len(names)), key=lambda j: (-self._n_roots[j], j))
        return [(names[j], int(self._n_roots[j])) for j in order if self._n_roots[j]]

    def columns(self, second: dict[int, RunnerUp]) -> dict[str, list[Any]]:
        """Return the results by split."""
        entries = [self._entry(node, second.get(node, RunnerUp())) for node in self._splits]
        return {name: [entry[name] for entry in entries] for name in _ENTRIES}

    def _entry(self, node: int, second: RunnerUp) -> dict[str, Any]:
        reader, fate, n = self._reader, self._fates[node], len(self.churn)
        above = n if node == 0 else len(self._fates[int(reader.parent[node])])
        measures, is_categorical = [measure for measure, _ in fate], bool(reader.tree.is_categorical[node])
        low, median, high = _points([] if is_categorical else measures)
        entry = (
            node,
            int(reader.tree.depth[node]),
            reader.features[reader.column(node)].name,
            reader.sides(node)[0].describe(show_missing=False),
            reader.n_rows(node),
            len(fate) / n,
            len(fate) / above if above else np.nan,
            sum(is_same for _, is_same in fate) / n,
            float(reader.tree.threshold[node]),
            low,
            median,
            high,
            float(np.mean(measures)) if is_categorical and measures else np.nan,
            second.column,
            second.margin,
        )
        return dict(zip(_ENTRIES, entry, strict=True))


_ENTRIES = (
    *("node", "depth", "column", "cut", "n", "survival", "given_parent", "same_cut"),
    *("threshold", "threshold_low", "threshold_median", "threshold_high", "similarity", "runner_up", "margin"),
)


def _goes_left(tree: FittedTree, node: int, values: Floats) -> NDArray[np.bool_]:
    """Return which known values of the split column go left."""
    if tree.is_categorical[node]:
        return np.isin(values, tree.left_categories(node))
    return np.asarray(values <= tree.threshold[node])


def _jaccard(one: set[float], other: set[float]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def _points(values: list[float]) -> tuple[float, float, float]:
    """Return the 5 %, 50 % and 95 % quantiles, each one of the values: a cut may be infinite."""
    if not values:
        return np.nan, np.nan, np.nan
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95], method="inverted_cdf").tolist()
    return low, median, high
