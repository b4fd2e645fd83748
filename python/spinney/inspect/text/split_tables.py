"""The search for the best cut of one column, written out: every candidate with what it gains.

This is the slow twin of what the engine does in a node, for teaching and for checking; trees are not grown with it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature, RawTable, read_table
from spinney._data.columns import default_names
from spinney._data.display import Backend, align, fixed, frame_of, plural
from spinney._data.feature import feature_values, learn_feature
from spinney._data.reproducible import log, log2
from spinney._data.types import ColumnLike, TableLike
from spinney._estimator.target import read_classes, read_values, read_weights
from spinney.inspect.text.conditions import Condition, cut_texts

_CLASS_CRITERIA = ("gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio")
_VALUE_CRITERIA = ("squared_error", "friedman_mse", "poisson")
_MOST_ENUMERATED = 10  # categories of which all bipartitions are tried, as the engine does
Array = NDArray[np.float64]


# ---- impurity of sums -------------------------------------------------------------------------------------------


def _row_sums(y: ColumnLike, criterion: str, weight: Array) -> Array:
    """Return what each row adds to its node: class weights, or weight, sum, and sum of squares or of y log y."""
    target = read_classes(y, len(weight)) if criterion in _CLASS_CRITERIA else None
    values = read_values(y, len(weight)) if target is None else target.codes
    if values.shape[1] > 1:
        raise ValueError("split_table takes one target; y has several columns.")
    if target is not None:
        return np.eye(len(target.classes[0]))[target.codes[:, 0]] * weight[:, None]
    v = values[:, 0]
    if criterion == "poisson":
        if (v < 0).any():
            raise ValueError("y has negative values; criterion='poisson' counts events.")
        third = v * log(np.where(v > 0, v, 1.0))
    else:
        v = v - np.average(v, weights=weight)  # so that squares lose no digits
        third = v**2
    return np.column_stack([weight, weight * v, weight * third])


def _weights(sums: Array, criterion: str) -> Array:
    total: Array = sums.sum(axis=-1) if criterion in _CLASS_CRITERIA else sums[..., 0]
    return total


def _impurity(sums: Array, criterion: str) -> Array:
    """Impurity of nodes with these sums; NaN without weight."""
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = sums / _weights(sums, criterion)[..., None]
        if criterion in ("gini", "chi2"):
            found = 1 - (shares**2).sum(axis=-1)
        elif criterion in ("entropy", "log_loss", "gain_ratio"):
            found = -(shares * log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1)
        elif criterion == "misclassification":
            found = 1 - shares.max(axis=-1)
        elif criterion == "poisson":
            mean = shares[..., 1]
            found = shares[..., 2] - mean * log(np.where(mean > 0, mean, 1.0))
        else:
            found = shares[..., 2] - shares[..., 1] ** 2
    return np.asarray(np.where(np.isnan(found), np.nan, np.maximum(found, 0.0)))


def _score(left: Array, right: Array, gain: Array, criterion: str) -> Array:
    """Return what the search maximises, where that is not the gain."""
    if criterion == "chi2":
        both, total = left + right, (left + right).sum(axis=-1)
        found: Array = np.zeros(len(left))
        for side in (left, right):
            expected = side.sum(axis=-1)[:, None] * both / total[:, None]
            found += ((side - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=-1)
        return found
    share = left.sum(axis=-1) / (left + right).sum(axis=-1)
    return np.asarray(gain / -(share * log2(share) + (1 - share) * log2(1 - share)))


# ---- candidates -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cells:
    """Distinct values of a column with the sums and counts of their rows."""

    feature: Feature
    values: Array
    sums: Array
    counts: NDArray[np.int64]
    missing_sums: Array
    n_missing: int


def _cells(feature: Feature, values: Array, sums: Array, keep: NDArray[np.bool_]) -> _Cells:
    known = ~np.isnan(values) & keep
    distinct, cell = np.unique(values[known], return_inverse=True)
    by_cell = np.zeros((len(distinct), sums.shape[1]))
    np.add.at(by_cell, cell, sums[known])
    absent = np.isnan(values) & keep
    counts = np.bincount(cell, minlength=len(distinct)).astype(np.int64)
    return _Cells(feature, distinct, by_cell, counts, sums[absent].sum(axis=0), int(absent.sum()))


def _left_sets(cells: _Cells, criterion: str) -> list[tuple[int, ...]]:
    """Cells that may go left together."""
    n = len(cells.values)
    if cells.feature.kind != "category":
        return [tuple(range(k)) for k in range(1, n)]
    if criterion in _CLASS_CRITERIA and cells.sums.shape[1] > 2:
        if n <= _MOST_ENUMERATED:
            rest = range(1, n)
            picks = itertools.chain.from_iterable(itertools.combinations(rest, k) for k in range(n - 1))
            return [(0, *pick) for pick in picks]
        return list(dict.fromkeys(s for order in _orders(cells) for s in _prefixes(order)))
    column = 1 if cells.sums.shape[1] > 1 else 0
    return list(_prefixes(np.argsort(cells.sums[:, column] / _weights(cells.sums, criterion), kind="stable")))


def _prefixes(order: NDArray[np.intp]) -> list[tuple[int, ...]]:
    return [tuple(sorted(order[:k].tolist())) for k in range(1, len(order))]


def _orders(cells: _Cells) -> list[NDArray[np.intp]]:
    """Orders of the categories by each class' share and by the shares' first principal component."""
    weight = cells.sums.sum(axis=1)
    shares = cells.sums / weight[:, None]
    centred = shares - np.average(shares, axis=0, weights=weight)
    axis = np.linalg.eigh((centred * weight[:, None]).T @ centred)[1][:, -1]
    keys = [centred @ axis, *shares.T]
    return [np.argsort(key, kind="stable") for key in keys]


# ---- the table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SplitTable:
    """Every cut of one column with what it gains; made by `split_table`.

    Attributes
    ----------
    column, criterion : str
        What was cut, and by which criterion.
    impurity : float
        Impurity before the cut.
    columns : dict of lists
        One entry per cut: `cut` (the left side in words), `threshold`, `categories` (those that go left), `missing`
        (the side of missing values, None if there are none), `n_left`, `n_right`, `weight_left`, `weight_right`,
        `impurity_left`, `impurity_right`, `gain`, and `score` where the search maximises something else.
    """

    column: str
    criterion: str
    impurity: float
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["cut"])

    @property
    def best(self) -> dict[str, Any]:
        """The best cut; the first of several equally good ones."""
        if not len(self):
            raise ValueError(f"Column {self.column!r} has one value only: it cannot be cut.")
        goodness = np.array(self.columns["score" if self.criterion == "chi2" else "gain"])
        slack = 1e-12 * (abs(goodness.max()) + self.impurity)
        at = int(np.flatnonzero(goodness >= goodness.max() - slack)[0])
        return {name: values[at] for name, values in self.columns.items()}

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the cuts as a frame of pandas or polars, whichever is asked for or installed."""
        return frame_of(self.columns, backend)

    def __repr__(self) -> str:
        return f"<SplitTable: {plural(len(self), 'cut')} of {self.column!r} by {self.criterion}>"

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
        return "\n".join([f"{self.criterion} before the cut: {fixed(self.impurity, 4)}", *lines])


def split_table(
    X: TableLike,
    y: ColumnLike,
    column: str | int,
    *,
    criterion: str = "gini",
    sample_weight: ColumnLike = None,
    categorical: bool = False,
) -> SplitTable:
    """List every cut of one column that a tree would consider at its root.

    Numbers are cut halfway between neighbouring values; categories are parted into two sets (all of them for several
    classes and up to ten categories, else along the order of their means); missing values are tried on either side and
    alone. The best row is the root of a tree of depth 1 on this column.

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
        "friedman_mse", "poisson" for numbers. For two classes Gini's impurity is 2 p (1 - p); for p (1 - p), half of
        it, take "squared_error" of an indicator such as ``y == "bad"``: a variance of zeros and ones.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.
    categorical : bool, default=False
        Whether to take a column of numbers as categories.

    Returns
    -------
    SplitTable
        Prints as text; has `best`, `columns` and `to_frame()`.

    Examples
    --------
    >>> import spinney
    >>> X = {"income": [28, 32, 24, 27, 32, 30, 58, 52, 40, 28]}
    >>> is_bad = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> print(spinney.split_table(X, is_bad, "income", criterion="squared_error"))
    squared_error before the cut: 0.2500
    cut            n_left  n_right  impurity_left  impurity_right    gain
    income ≤ 25.5       1        9         0.0000          0.2469  0.0278
    income ≤ 27.5       2        8         0.0000          0.2344  0.0625
    income ≤ 29         4        6         0.1875          0.2222  0.0417
    income ≤ 31         5        5         0.2400          0.2400  0.0100
    income ≤ 36         7        3         0.2041          0.0000  0.1071  ← best
    income ≤ 46         8        2         0.2344          0.0000  0.0625
    income ≤ 55         9        1         0.2469          0.0000  0.0278
    """
    known = (*_CLASS_CRITERIA, *_VALUE_CRITERIA)
    if criterion not in known:
        raise ValueError(f"criterion must be one of {', '.join(known)}, not {criterion!r}.")
    table = read_table(X)
    j, name = _find(table, column)
    feature = learn_feature(name, table.column(j), categorical, table.n_rows)
    values = feature_values(feature, table.column(j), table.n_rows, "missing", name)
    given = read_weights(sample_weight, table.n_rows)
    weight = np.ones(table.n_rows) if given is None else given
    sums = _row_sums(y, criterion, weight)
    cells = _cells(feature, values, sums, weight > 0)
    before = float(_impurity(sums.sum(axis=0), criterion))
    return SplitTable(name, criterion, before, _evaluate(cells, criterion, before))


def _find(table: RawTable, column: str | int) -> tuple[int, str]:
    names = table.names or default_names(table.n_columns)
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"X has no column {column!r}; it has {', '.join(map(repr, names[:10]))}.")
        return names.index(column), column
    if not 0 <= column < len(names):
        raise ValueError(f"column must be a name or a position below {len(names)}, not {column!r}.")
    return int(column), names[column]


def _evaluate(cells: _Cells, criterion: str, before: float) -> dict[str, list[Any]]:
    sets = _left_sets(cells, criterion)
    sides = [False, True] if cells.n_missing else [False]
    cuts = [(chosen, side) for chosen in sets for side in sides]
    if cells.feature.kind == "category":  # the engine's order, in which the first of equals wins
        cuts.sort(key=lambda cut: cut[1])
    if cells.n_missing and len(cells.values):
        cuts.append((tuple(range(len(cells.values))), False))
    sums = [cells.sums[list(s)].sum(axis=0) + m * cells.missing_sums for s, m in cuts]
    left = np.array(sums).reshape(len(cuts), cells.sums.shape[1])
    right = cells.sums.sum(axis=0) + cells.missing_sums - left
    n_left = np.array([cells.counts[list(s)].sum() + m * cells.n_missing for s, m in cuts], dtype=np.int64)
    weights = [_weights(side, criterion) for side in (left, right)]
    impurities = [_impurity(side, criterion) for side in (left, right)]
    gain = before - (weights[0] * impurities[0] + weights[1] * impurities[1]) / (weights[0] + weights[1])
    numbers = {"n_left": n_left, "n_right": cells.counts.sum() + cells.n_missing - n_left}
    numbers |= {"weight_left": weights[0], "weight_right": weights[1]}
    numbers |= {"impurity_left": impurities[0], "impurity_right": impurities[1], "gain": gain}
    if criterion in ("chi2", "gain_ratio"):
        numbers["score"] = _score(left, right, gain, criterion)
    return _sides_in_words(cells, cuts) | {name: values.tolist() for name, values in numbers.items()}


def _sides_in_words(cells: _Cells, cuts: list[tuple[tuple[int, ...], bool]]) -> dict[str, list[Any]]:
    feature, values = cells.feature, cells.values
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
        columns["missing"].append(("left" if missing_left else "right") if cells.n_missing else None)
    return columns
