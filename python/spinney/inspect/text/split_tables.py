"""The search for the best split of one column: every candidate with its gain.

This is a slow reference implementation of the engine's search, for teaching and for tests; it grows no trees.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature, RawTable, read_table
from spinney._data.columns import default_names
from spinney._data.display import Backend, ShownAsTable, align, fixed, frame_of, plural
from spinney._data.feature import feature_values, learn_feature
from spinney._data.reproducible import log, log2
from spinney._data.types import ColumnLike, TableLike
from spinney._estimator.target import read_classes, read_values, read_weights
from spinney.inspect.text.conditions import Condition, cut_texts

CLASS_CRITERIA = ("gini", "p(1-p)", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio")
_VALUE_CRITERIA = ("squared_error", "friedman_mse", "poisson")
_MAX_ENUMERATED = 10  # categories up to which all bipartitions are tried, as in the engine
Array = NDArray[np.float64]
Unit = Literal["bits", "nats"]


# ---- impurity of sums -------------------------------------------------------------------------------------------


def _row_sums(y: ColumnLike, criterion: str, weight: Array) -> Array:
    """Return the sums of each row: class weights, or weight, sum, and sum of squares or of y log y."""
    target = read_classes(y, len(weight)) if criterion in CLASS_CRITERIA else None
    if target is not None:
        check_criterion(criterion, CLASS_CRITERIA, len(target.classes[0]))
    values = read_values(y, len(weight)) if target is None else target.codes
    if values.shape[1] > 1:
        raise ValueError("split_table needs a single target, but y has several columns. Pass one of them.")
    if target is not None:
        return np.eye(len(target.classes[0]))[target.codes[:, 0]] * weight[:, None]
    v = values[:, 0]
    if criterion == "poisson":
        if (v < 0).any():
            raise ValueError(
                "y has negative values, but criterion='poisson' needs counts. Use criterion='squared_error'."
            )
        third = v * log(np.where(v > 0, v, 1.0))
    else:
        v = v - np.average(v, weights=weight)  # avoids loss of precision in the squares
        third = v**2
    return np.column_stack([weight, weight * v, weight * third])


def check_criterion(criterion: str, known: tuple[str, ...], n_classes: int) -> None:
    """Refuse an unknown criterion, and p(1-p) for more than two classes."""
    if criterion not in known:
        raise ValueError(f"criterion must be one of {', '.join(known)}, not {criterion!r}.")
    if criterion == "p(1-p)" and n_classes > 2:
        raise ValueError(f"criterion='p(1-p)' is for two classes, and there are {n_classes}. Use 'gini'.")


def _weights(sums: Array, criterion: str) -> Array:
    total: Array = sums.sum(axis=-1) if criterion in CLASS_CRITERIA else sums[..., 0]
    return total


def node_impurity(sums: Array, criterion: str, unit: Unit = "bits") -> Array:
    """Return the impurity of nodes with these sums; NaN without weight."""
    if unit not in ("bits", "nats"):
        raise ValueError(f"unit must be 'bits' or 'nats', not {unit!r}.")
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / _weights(sums, criterion)[..., None]  # class probabilities for classification
        if criterion in ("gini", "p(1-p)", "chi2"):
            impurity = 1 - (means**2).sum(axis=-1)
            impurity = impurity / 2 if criterion == "p(1-p)" else impurity
        elif criterion in ("entropy", "log_loss", "gain_ratio"):
            logarithm = log if unit == "nats" and criterion != "gain_ratio" else log2
            impurity = -(means * logarithm(np.where(means > 0, means, 1.0))).sum(axis=-1)
        elif criterion == "misclassification":
            impurity = 1 - means.max(axis=-1)
        elif criterion == "poisson":
            mean = means[..., 1]
            impurity = means[..., 2] - mean * log(np.where(mean > 0, mean, 1.0))
        else:
            impurity = means[..., 2] - means[..., 1] ** 2
    return np.asarray(np.where(np.isnan(impurity), np.nan, np.maximum(impurity, 0.0)))


def _score(left: Array, right: Array, gain: Array, criterion: str) -> Array:
    """Return the score that the search maximises for criteria other than the gain."""
    if criterion == "chi2":
        both, total = left + right, (left + right).sum(axis=-1)
        chi2: Array = np.zeros(len(left))
        for side in (left, right):
            expected = side.sum(axis=-1)[:, None] * both / total[:, None]
            chi2 += ((side - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=-1)
        return chi2
    fraction = left.sum(axis=-1) / (left + right).sum(axis=-1)
    return np.asarray(gain / -(fraction * log2(fraction) + (1 - fraction) * log2(1 - fraction)))


# ---- candidates -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """Distinct values of a column with the sums and counts of their rows."""

    feature: Feature
    values: Array
    sums: Array
    counts: NDArray[np.int64]
    missing_sums: Array
    n_missing: int


def _distinct_values(feature: Feature, values: Array, sums: Array, is_used: NDArray[np.bool_]) -> _Values:
    known = ~np.isnan(values) & is_used
    distinct, index = np.unique(values[known], return_inverse=True)
    value_sums = np.zeros((len(distinct), sums.shape[1]))
    np.add.at(value_sums, index, sums[known])
    absent = np.isnan(values) & is_used
    counts = np.bincount(index, minlength=len(distinct)).astype(np.int64)
    return _Values(feature, distinct, value_sums, counts, sums[absent].sum(axis=0), int(absent.sum()))


def _left_sets(column: _Values, criterion: str) -> list[tuple[int, ...]]:
    """Return the candidate sets of values that go left, as positions."""
    n = len(column.values)
    if column.feature.kind != "category":
        return [tuple(range(k)) for k in range(1, n)]
    if criterion in CLASS_CRITERIA and column.sums.shape[1] > 2:
        if n <= _MAX_ENUMERATED:
            subsets = itertools.chain.from_iterable(itertools.combinations(range(1, n), k) for k in range(n - 1))
            return [(0, *subset) for subset in subsets]
        return list(dict.fromkeys(s for order in _orders(column) for s in _prefixes(order)))
    k = 1 if column.sums.shape[1] > 1 else 0
    return _prefixes(np.argsort(column.sums[:, k] / _weights(column.sums, criterion), kind="stable"))


def _prefixes(order: NDArray[np.intp]) -> list[tuple[int, ...]]:
    return [tuple(sorted(order[:k].tolist())) for k in range(1, len(order))]


def _orders(column: _Values) -> list[NDArray[np.intp]]:
    """Return orders of the categories: by each class probability and by their first principal component."""
    weight = column.sums.sum(axis=1)
    probabilities = column.sums / weight[:, None]
    centred = probabilities - np.average(probabilities, axis=0, weights=weight)
    axis = np.linalg.eigh((centred * weight[:, None]).T @ centred)[1][:, -1]
    keys = [centred @ axis, *probabilities.T]
    return [np.argsort(key, kind="stable") for key in keys]


# ---- the table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SplitTable(ShownAsTable):
    """Every candidate split of one column with its gain; returned by `split_table`.

    Attributes
    ----------
    column, criterion : str
        Name of the column, and the criterion.
    impurity : float
        Impurity before the split.
    columns : dict of lists
        One entry per split: `cut` (condition of the left side), `threshold`, `categories` (those that go left),
        `missing` (the side of missing values, None if there are none), `n_left`, `n_right`, `weight_left`,
        `weight_right`, `impurity_left`, `impurity_right`, `gain`, and `score` for criteria that maximise it instead.
    """

    column: str
    criterion: str
    impurity: float
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["cut"])

    @property
    def best(self) -> dict[str, Any]:
        """The best split; the first of several equally good ones."""
        if not len(self):
            raise ValueError(f"Column {self.column!r} has only one value, so it cannot be split.")
        scores = np.array(self.columns["score" if self.criterion == "chi2" else "gain"])
        tolerance = 1e-12 * (abs(scores.max()) + self.impurity)
        best = int(np.flatnonzero(scores >= scores.max() - tolerance)[0])
        return {name: values[best] for name, values in self.columns.items()}

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the splits as a frame of pandas or polars; None: whichever is installed, pandas first."""
        return frame_of(self.columns, backend)

    def __repr__(self) -> str:
        return f"<SplitTable: {plural(len(self), 'split')} of {self.column!r} by {self.criterion}>"

    def __str__(self) -> str:
        names = ["cut", "n_left", "n_right", "impurity_left", "impurity_right", "gain"]
        names += ["score"] if "score" in self.columns else []
        rows = [names] + [
            [v if isinstance(v, str) else fixed(v, 4) if isinstance(v, float) else str(v) for v in row]
            for row in zip(*(self.columns[name] for name in names), strict=True)
        ]
        lines = align(rows)
        if len(self):
            lines[self.columns["cut"].index(self.best["cut"]) + 1] += "  ← best"
        return "\n".join([f"{self.criterion} before the split: {fixed(self.impurity, 4)}", *lines])


def split_table(
    X: TableLike,
    y: ColumnLike,
    column: str | int,
    *,
    criterion: str = "gini",
    sample_weight: ColumnLike = None,
    categorical: bool = False,
    unit: Unit = "bits",
) -> SplitTable:
    """Return every split of one column that a tree would consider at its root, with its gain.

    Numbers are split halfway between adjacent values, and categories into two sets. The sets are those in the order of
    the mean target of each category; for multiclass targets, all sets of up to ten categories, and beyond that those in
    the order of each class probability. Missing values are tried on either side and alone. The best split is
    the root of a tree of depth 1 on this column.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Classes, or numbers for a regression criterion.
    column : str or int
        Name or position of the column.
    criterion : str, default="gini"
        One of "gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio" for classes; "squared_error",
        "friedman_mse", "poisson" for numbers. "p(1-p)", for two classes only, is half of the Gini impurity 2 p (1 - p).
    sample_weight : array-like of shape (n_samples,), optional
        Weights.
    categorical : bool, default=False
        Whether to treat a column of numbers as categories.
    unit : {"bits", "nats"}, default="bits"
        Unit of the entropy: logarithms to base 2, or natural logarithms.

    Returns
    -------
    SplitTable
        Prints as text; has `best`, `columns` and `to_frame()`.

    Examples
    --------
    >>> import spinney
    >>> X = {"income": [28, 32, 24, 27, 32, 30, 58, 52, 40, 28]}
    >>> is_bad = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> print(spinney.split_table(X, is_bad, "income", criterion="p(1-p)"))
    p(1-p) before the split: 0.2500
    cut            n_left  n_right  impurity_left  impurity_right    gain
    income ≤ 25.5       1        9         0.0000          0.2469  0.0278
    income ≤ 27.5       2        8         0.0000          0.2344  0.0625
    income ≤ 29         4        6         0.1875          0.2222  0.0417
    income ≤ 31         5        5         0.2400          0.2400  0.0100
    income ≤ 36         7        3         0.2041          0.0000  0.1071  ← best
    income ≤ 46         8        2         0.2344          0.0000  0.0625
    income ≤ 55         9        1         0.2469          0.0000  0.0278
    """
    check_criterion(criterion, (*CLASS_CRITERIA, *_VALUE_CRITERIA), 2)
    table = read_table(X)
    j, name = _find(table, column)
    feature = learn_feature(name, table.column(j), categorical, table.n_rows)
    values = feature_values(feature, table.column(j), table.n_rows, "missing", name)
    weight = read_weights(sample_weight, table.n_rows)
    weight = np.ones(table.n_rows) if weight is None else weight
    sums = _row_sums(y, criterion, weight)
    distinct = _distinct_values(feature, values, sums, weight > 0)
    before = float(node_impurity(sums.sum(axis=0), criterion, unit))
    return SplitTable(name, criterion, before, _evaluate(distinct, criterion, unit, before))


def _find(table: RawTable, column: str | int) -> tuple[int, str]:
    names = table.names or default_names(table.n_columns)
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"X has no column {column!r}; it has {', '.join(map(repr, names[:10]))}.")
        return names.index(column), column
    if not 0 <= column < len(names):
        raise ValueError(f"column must be a name or a position below {len(names)}, not {column!r}.")
    return int(column), names[column]


def _evaluate(column: _Values, criterion: str, unit: Unit, before: float) -> dict[str, list[Any]]:
    missing_left = [False, True] if column.n_missing else [False]
    cuts = [(left, missing) for left in _left_sets(column, criterion) for missing in missing_left]
    if column.feature.kind == "category":  # the engine's order, which decides ties
        cuts.sort(key=lambda cut: cut[1])
    if column.n_missing and len(column.values):
        cuts.append((tuple(range(len(column.values))), False))
    sums = [column.sums[list(s)].sum(axis=0) + m * column.missing_sums for s, m in cuts]
    left = np.array(sums).reshape(len(cuts), column.sums.shape[1])
    right = column.sums.sum(axis=0) + column.missing_sums - left
    n_left = np.array([column.counts[list(s)].sum() + m * column.n_missing for s, m in cuts], dtype=np.int64)
    weights = [_weights(side, criterion) for side in (left, right)]
    impurities = [node_impurity(side, criterion, unit) for side in (left, right)]
    gain = before - (weights[0] * impurities[0] + weights[1] * impurities[1]) / (weights[0] + weights[1])
    numbers = {"n_left": n_left, "n_right": column.counts.sum() + column.n_missing - n_left}
    numbers |= {"weight_left": weights[0], "weight_right": weights[1]}
    numbers |= {"impurity_left": impurities[0], "impurity_right": impurities[1], "gain": gain}
    if criterion in ("chi2", "gain_ratio"):
        numbers["score"] = _score(left, right, gain, criterion)
    return _side_columns(column, cuts) | {name: values.tolist() for name, values in numbers.items()}


def _side_columns(column: _Values, cuts: list[tuple[tuple[int, ...], bool]]) -> dict[str, list[Any]]:
    feature, values = column.feature, column.values
    columns: dict[str, list[Any]] = {"cut": [], "threshold": [], "categories": [], "missing": []}
    halves = [low / 2 + high / 2 for low, high in itertools.pairwise(values.tolist())]
    texts = cut_texts(feature, halves, None, strict=False)
    for chosen, missing_left in cuts:
        is_alone = len(chosen) == len(values)
        if feature.kind == "category":
            codes = frozenset(int(values[k]) for k in chosen)
            side = Condition(feature, codes=codes, missing=missing_left)
        else:
            cut = np.inf if is_alone else halves[len(chosen) - 1]
            side = Condition(feature, upper=cut, missing=missing_left, texts=tuple(texts.items()))
        columns["cut"].append(str(side))
        columns["threshold"].append(None if feature.kind == "category" or is_alone else side.upper)
        columns["categories"].append(list(side.categories or ()) if feature.kind == "category" else None)
        columns["missing"].append(("left" if missing_left else "right") if column.n_missing else None)
    return columns
