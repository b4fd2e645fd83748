"""The columns of a study: what each holds, leaks, and the choice of columns in wide tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from spinney._data import Schema, read_table
from spinney._data.cells import date_text
from spinney._data.columns import RawTable
from spinney._data.display import elide, one_line, shortest
from spinney._data.feature import Feature, feature_values
from spinney._data.types import Floats, TableLike
from spinney._evaluate.folds import split_screening
from spinney._evaluate.problem import Problem, Rows
from spinney._tree.trees import DecisionTreeClassifier, DecisionTreeRegressor

_EXAMPLES = 3
_ROWS_TO_JUDGE_BY = 20  # with fewer rows, distinct values prove nothing
_SHARE_OF_NAMES = 0.95  # distinct values of a column of names of rows, over its values


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "boolean", "ordered", "category", "date"}
        What its values are.
    missing, distinct : int
        Rows without a value, and different values.
    examples : tuple of str
        Some of its values.
    low, high : float
        Least and largest value of numbers and dates, which are seconds since 1970; NaN for others.
    is_identifier, is_leak, is_date, is_constant : bool
        Whether it names rows, tells the target nearly alone, holds dates, holds one value only.
    is_used : bool
        Whether models learn from it.
    note : str
        What was done with it and why; empty if nothing was.
    """

    name: str
    kind: str
    missing: int
    distinct: int
    examples: tuple[str, ...]
    low: float = float("nan")
    high: float = float("nan")
    is_identifier: bool = False
    is_leak: bool = False
    is_date: bool = False
    is_constant: bool = False
    is_used: bool = True
    note: str = ""

    def left_out(self, note: str, **marks: bool) -> ColumnProfile:
        """Return the profile of a column that is not learned from."""
        found: ColumnProfile = replace(self, is_used=False, note=note, **cast(Any, marks))
        return found


@dataclass(frozen=True, eq=False)
class Columns:
    """A table as numbers, column by column.

    Attributes
    ----------
    names : list of str
    features : sequence of Feature
    values : list of ndarray of shape (n_rows,)
        Numbers, or codes of categories; NaN is missing.
    """

    names: list[str]
    features: Sequence[Feature]
    values: list[Floats]

    @classmethod
    def read(cls, X: TableLike) -> Columns:
        """Read a table."""
        table: RawTable = read_table(X)
        schema = Schema.learn(table)
        values = [
            feature_values(feature, table.column(j), table.n_rows, "missing", table.label(j))
            for j, feature in enumerate(schema.features)
        ]
        return cls(list(schema.names), schema.features, values)


def profile_columns(columns: Columns) -> list[ColumnProfile]:
    """Describe each column by itself."""
    return [
        _profile(name, feature, values)
        for name, feature, values in zip(columns.names, columns.features, columns.values, strict=True)
    ]


def _profile(name: str, feature: Feature, values: Floats) -> ColumnProfile:
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    is_number = feature.kind == "number" and len(distinct) > 0
    found = ColumnProfile(
        name,
        feature.kind_in_words,
        len(values) - len(known),
        len(distinct),
        tuple(_text(feature, value) for value in distinct[_spread(len(distinct))]),
        float(distinct[0]) if is_number else float("nan"),
        float(distinct[-1]) if is_number else float("nan"),
        is_date=bool(feature.clock),
    )
    if len(distinct) <= 1 and (len(distinct) == 0 or len(known) == len(values)):
        what = "has no value at all" if not len(distinct) else "has the same value in every row"
        return found.left_out(f"It {what}, which tells nothing.", is_constant=True)
    if _has_decimal_commas(feature):
        return found.left_out("It holds numbers with decimal commas, which are read as text. Write them with a point.")
    if _names_rows(feature, known, distinct):
        return found.left_out(
            f"It has {len(distinct):,} different values in {len(known):,} rows: it names rows, and what is learned of "
            "a name holds for no other row.",
            is_identifier=True,
        )
    return found


def _spread(n: int) -> list[int]:
    """Places of a few values: the first, the last, and some between."""
    return sorted({round(k * (n - 1) / (_EXAMPLES - 1)) for k in range(_EXAMPLES)}) if n else []


def _text(feature: Feature, value: float) -> str:
    if feature.clock:
        return date_text(float(value), feature.resolution, feature.clock)
    if feature.kind in ("category", "ordered"):
        return elide(one_line(str(feature.categories[int(value)])), 24)
    if feature.kind == "boolean":
        return "true" if value else "false"
    return shortest(float(value))


def _has_decimal_commas(feature: Feature) -> bool:
    """Tell whether text holds numbers as they are written where a comma parts whole and fraction."""
    if feature.kind != "category" or len(feature.categories) < _ROWS_TO_JUDGE_BY:
        return False
    texts = [str(one).strip() for one in feature.categories]
    return any("," in one for one in texts) and all(re.fullmatch(r"[-+]?\d+(,\d+)?", one) for one in texts)


def _names_rows(feature: Feature, known: Floats, distinct: Floats) -> bool:
    """Tell whether a column names rows.

    It holds text, nearly every row another; or whole numbers, every row another, that count rows: they lie close
    together, or rise or fall from row to row. Dates and other numbers measure something.
    """
    if len(known) < _ROWS_TO_JUDGE_BY or feature.clock or feature.kind in ("boolean", "ordered"):
        return False
    if feature.kind == "category":
        return len(distinct) >= _SHARE_OF_NAMES * len(known)
    if len(distinct) < len(known) or (known != np.floor(known)).any():
        return False
    steps = np.diff(known)
    is_dense = distinct[-1] - distinct[0] < 2 * len(known)
    return bool(is_dense or (steps > 0).all() or (steps < 0).all())


def row_groups(columns: list[Floats]) -> NDArray[np.intp]:
    """Give each distinct row of some columns a number; equal rows have the same."""
    found = np.zeros(len(columns[0]), dtype=np.intp)
    for values in columns:
        codes = np.unique(values, return_inverse=True)[1]  # all NaN are one value
        if found.max() == len(found) - 1:
            break  # all rows differ already
        pairs = found * (int(codes.max()) + 1) + codes
        found = np.unique(pairs, return_inverse=True)[1]
    return found


NEARLY_ALL = 0.99  # share of the baseline's errors (of the variance, for values) that a leak takes away
_FEWEST_ROWS = 50
_MOST_ROWS = 5000
_MOST_LEAKS = 20
_FEW_COLUMNS = 50
_FOLDS = 3


def find_leaks(
    columns: list[Floats], is_category: list[bool], target: NDArray[np.generic], has_classes: bool, seed: int
) -> dict[int, float]:
    """Find columns each of which predicts the target nearly perfectly by itself.

    Each is judged by cross-validation. Of many columns not all are: one that predicts the target is where a tree of all
    columns splits first, so a small tree is grown, and the columns that it asks are judged; if one is a leak, the
    search goes on without it.

    Parameters
    ----------
    columns : list of ndarray of shape (n_rows,)
        Numbers, or codes of categories; NaN is missing.
    is_category : list of bool
    target : ndarray of shape (n_rows,)
        Codes of classes, or values.
    has_classes : bool
    seed : int

    Returns
    -------
    dict of int to float
        By column, the share of the errors that it takes away on rows it was not fitted on.
    """
    if len(target) < _FEWEST_ROWS or not columns:
        return {}
    rows = np.sort(np.random.RandomState(seed).permutation(len(target))[:_MOST_ROWS])
    y, X = target[rows], np.column_stack([values[rows] for values in columns])
    if len(np.unique(y)) < 2:
        return {}
    left, found = list(range(len(columns))), dict[int, float]()
    few = len(columns) <= _FEW_COLUMNS
    while left and len(found) < _MOST_LEAKS:
        asked = left if few else [left[j] for j in _asked(X[:, left], [is_category[j] for j in left], y, has_classes)]
        shares = {j: _share(X[:, [j]], is_category[j], y, has_classes, seed) for j in asked}
        leaks = {j: share for j, share in shares.items() if share >= NEARLY_ALL}
        found |= leaks
        if not leaks or few:
            break
        left = [j for j in left if j not in leaks]
    return found


def _tree(
    is_category: list[bool], has_classes: bool, depth: int | None
) -> DecisionTreeClassifier | DecisionTreeRegressor:
    kind = DecisionTreeClassifier if has_classes else DecisionTreeRegressor
    return kind(max_depth=depth, categorical_features=is_category, random_state=0)


def _asked(X: Floats, is_category: list[bool], y: NDArray[np.generic], has_classes: bool) -> list[int]:
    """Columns that a tree of two questions asks."""
    tree = _tree(is_category, has_classes, 2).fit(X, y)
    return np.flatnonzero(np.asarray(tree.feature_importances_) > 0).tolist()


def _share(x: Floats, is_category: bool, y: NDArray[np.generic], has_classes: bool, seed: int) -> float:
    """Share of the baseline's errors that one column takes away, cross-validated."""
    is_stratified = has_classes and np.bincount(y.astype(int)).min() >= _FOLDS
    splitter = (StratifiedKFold if is_stratified else KFold)(_FOLDS, shuffle=True, random_state=seed)
    errors, worst = np.zeros(3), 0.0
    for train, test in splitter.split(x, y):
        said = [_tree([is_category], has_classes, None).fit(x[train], y[train]).predict(x[test])] * 3
        if has_classes:
            most = np.bincount(y[train].astype(int)).argmax()
            errors += [float((one != y[test]).sum()) for one in said]
            worst += float((y[test] != most).sum())
            continue
        before, truth = y[train].astype(float), y[test].astype(float)
        if not is_category:
            said[1:] = _between(x[train, 0], before, x[test, 0])
        errors += [float(((one - truth) ** 2).sum()) for one in said]
        worst += float(((truth - before.mean()) ** 2).sum())
    return 1 - float(errors.min()) / worst if worst > 0 else 0.0


def _between(x: Floats, y: Floats, asked: Floats) -> list[Floats]:
    """Read values off the line through all known points, and off the straight one nearest to them."""
    known = ~np.isnan(x)
    at, place = np.unique(x[known], return_inverse=True)
    if len(at) < 2:
        return [np.full(len(asked), y.mean())] * 2
    line = np.bincount(place, weights=y[known]) / np.bincount(place)
    centre, spread = at.mean(), at.std()
    slope, height = np.polyfit((x[known] - centre) / spread, y[known], 1)
    found = [np.interp(np.nan_to_num(asked), at, line), slope * (np.nan_to_num(asked) - centre) / spread + height]
    return [np.where(np.isnan(asked), y.mean(), one) for one in found]


_BINS = 8


def screened(data: Problem, columns: Columns, n_columns: int, seed: int) -> tuple[Rows, Rows]:
    """Choose columns by rows that are used for nothing else, so that no score knows of the choice.

    Parameters
    ----------
    data : Problem
    columns : Columns
        Its columns.
    n_columns : int
        How many to choose.
    seed : int

    Returns
    -------
    tuple of ndarray of int
        Columns, in their order, and the rows that are left to study.
    """
    split = split_screening(data, seed)
    left, apart = split.train, split.held_out
    apart = apart[:: max(1, -(-len(apart) // _MOST_ROWS))]
    centred = _centred(data, apart)
    worth = [
        _told(values[apart], feature.kind == "category", centred)
        for values, feature in zip(columns.values, columns.features, strict=True)
    ]
    best = np.argsort(-np.array(worth), kind="stable")[:n_columns]
    return np.sort(best).astype(np.intp), left


def _centred(data: Problem, rows: Rows) -> Floats:
    """Return the target of rows, or whether they are of each class, less its mean: one line for each class."""
    if data.codes is None or data.classes is None:
        target = data.y[rows].astype(np.float64)[np.newaxis]
    else:
        target = np.eye(len(data.classes))[data.codes[rows]].T
        target = target[1:] if len(target) == 2 else target
    return np.asarray(target - target.mean(axis=1, keepdims=True))


def _told(values: Floats, is_category: bool, centred: Floats) -> float:
    """Share of the target's variance that the bins of a column tell, less what as many bins tell by chance."""
    known = ~np.isnan(values)
    place = np.zeros(len(values), dtype=np.intp)  # missing values are a bin of their own
    if is_category:
        place[known] = 1 + values[known].astype(np.intp)
    elif known.any():
        cuts = np.unique(np.quantile(values[known], np.arange(1, _BINS) / _BINS))
        place[known] = 1 + np.searchsorted(cuts, values[known])
    counts = np.bincount(place)
    n, n_bins, whole = len(values), np.count_nonzero(counts), float((centred**2).sum())
    if n_bins < 2 or n <= n_bins or whole == 0:
        return 0.0
    sums = np.array([np.bincount(place, weights=line) for line in centred])
    return 1 - (1 - float((sums**2 / np.maximum(counts, 1)).sum()) / whole) * (n - 1) / (n - n_bins)
