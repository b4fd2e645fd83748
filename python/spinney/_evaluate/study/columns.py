"""The columns of a study: profiles, target leaks, and the selection of columns in wide tables."""

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
_FEWEST_VALUES = 20  # to detect identifiers and decimal commas
_IDENTIFIER_FRACTION = 0.95  # distinct values of an identifier, over its values


@dataclass(frozen=True)
class ColumnProfile:
    """Profile of one column.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean", "ordered", "category", "date"}
        Kind of its values.
    missing, distinct : int
        Number of missing and of distinct values.
    examples : tuple of str
        Some of its values.
    low, high : float
        Minimum and maximum of numbers and dates (seconds since 1970); NaN for others.
    is_identifier, is_leak, is_date, is_constant : bool
        Whether it is an identifier, leaks the target, holds dates, is constant.
    is_used : bool
        Whether models use it.
    note : str
        Why it is excluded or suspicious; else empty.
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

    def excluded(self, note: str, **marks: bool) -> ColumnProfile:
        """Return the profile of an excluded column."""
        profile: ColumnProfile = replace(self, is_used=False, note=note, **cast(Any, marks))
        return profile


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table as numbers.

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
    """Return the profile of each column."""
    return [
        _profile(name, feature, values)
        for name, feature, values in zip(columns.names, columns.features, columns.values, strict=True)
    ]


def _profile(name: str, feature: Feature, values: Floats) -> ColumnProfile:
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    is_number = feature.kind == "number" and len(distinct) > 0
    profile = ColumnProfile(
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
        what = "has no values" if not len(distinct) else "has the same value in every row"
        return profile.excluded(f"It {what}.", is_constant=True)
    if _has_decimal_commas(feature):
        return profile.excluded(
            "It holds numbers with decimal commas, which are read as text. Write them with a decimal point."
        )
    if _is_identifier(feature, known, distinct):
        return profile.excluded(
            f"It has {len(distinct):,} distinct values in {len(known):,} rows and looks like an identifier, which does "
            "not generalise to other rows.",
            is_identifier=True,
        )
    return profile


def _spread(n: int) -> list[int]:
    """Return a few evenly spaced positions, the first and the last included."""
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
    """Return whether a text column holds numbers with decimal commas."""
    if feature.kind != "category" or len(feature.categories) < _FEWEST_VALUES:
        return False
    texts = [str(one).strip() for one in feature.categories]
    return any("," in one for one in texts) and all(re.fullmatch(r"[-+]?\d+(,\d+)?", one) for one in texts)


def _is_identifier(feature: Feature, known: Floats, distinct: Floats) -> bool:
    """Return whether a column looks like an identifier.

    That is text with hardly any repeated value, or distinct integers that are dense or monotonic over the rows.
    """
    if len(known) < _FEWEST_VALUES or feature.clock or feature.kind in ("boolean", "ordered"):
        return False
    if feature.kind == "category":
        return len(distinct) >= _IDENTIFIER_FRACTION * len(known)
    if len(distinct) < len(known) or (known != np.floor(known)).any():
        return False
    steps = np.diff(known)
    is_dense = distinct[-1] - distinct[0] < 2 * len(known)
    return bool(is_dense or (steps > 0).all() or (steps < 0).all())


def row_groups(columns: list[Floats]) -> NDArray[np.intp]:
    """Return the number of the distinct row of each row; duplicates have the same number."""
    groups = np.zeros(len(columns[0]), dtype=np.intp)
    for values in columns:
        codes = np.unique(values, return_inverse=True)[1]  # all NaN are one value
        if groups.max() == len(groups) - 1:
            break  # all rows differ already
        pairs = groups * (int(codes.max()) + 1) + codes
        groups = np.unique(pairs, return_inverse=True)[1]
    return groups


LEAK_FRACTION = 0.99  # of the baseline's errors (regression: of the variance) that a leak explains
_FEWEST_ROWS = 40
_MOST_ROWS = 5000
_MOST_LEAKS = 20
_FEW_COLUMNS = 50
_FOLDS = 3


def find_leaks(
    columns: list[Floats], is_category: list[bool], target: NDArray[np.generic], has_classes: bool, seed: int
) -> dict[int, float]:
    """Return columns each of which alone predicts the target almost perfectly, by cross-validation.

    Of many columns only those that a small tree of all columns splits on are tested; if one is a leak, the search
    continues without it.

    Parameters
    ----------
    columns : list of ndarray of shape (n_rows,)
        Numbers, or codes of categories; NaN is missing.
    is_category : list of bool
    target : ndarray of shape (n_rows,)
        Codes of classes, or numbers.
    has_classes : bool
    seed : int

    Returns
    -------
    dict of int to float
        By column, the fraction of the errors on held-out rows that it explains.
    """
    if len(target) < _FEWEST_ROWS or not columns:
        return {}
    rows = np.sort(np.random.RandomState(seed).permutation(len(target))[:_MOST_ROWS])
    y, X = target[rows], np.column_stack([values[rows] for values in columns])
    if len(np.unique(y)) < 2:
        return {}
    remaining, found = list(range(len(columns))), dict[int, float]()
    few = len(columns) <= _FEW_COLUMNS
    while remaining and len(found) < _MOST_LEAKS:
        tested = remaining
        if not few:
            kinds = [is_category[j] for j in remaining]
            tested = [remaining[j] for j in _split_columns(X[:, remaining], kinds, y, has_classes)]
        explained = {j: _explained(X[:, [j]], is_category[j], y, has_classes, seed) for j in tested}
        leaks = {j: fraction for j, fraction in explained.items() if fraction >= LEAK_FRACTION}
        found |= leaks
        if not leaks or few:
            break
        remaining = [j for j in remaining if j not in leaks]
    return found


def _tree(
    is_category: list[bool], has_classes: bool, depth: int | None
) -> DecisionTreeClassifier | DecisionTreeRegressor:
    kind = DecisionTreeClassifier if has_classes else DecisionTreeRegressor
    return kind(max_depth=depth, categorical_features=is_category, random_state=0)


def _split_columns(X: Floats, is_category: list[bool], y: NDArray[np.generic], has_classes: bool) -> list[int]:
    """Return the columns that a tree of depth 2 splits on."""
    tree = _tree(is_category, has_classes, 2).fit(X, y)
    return np.flatnonzero(np.asarray(tree.feature_importances_) > 0).tolist()


def _explained(x: Floats, is_category: bool, y: NDArray[np.generic], has_classes: bool, seed: int) -> float:
    """Return the cross-validated fraction of the baseline's errors that one column explains."""
    is_stratified = has_classes and np.bincount(y.astype(int)).min() >= _FOLDS
    splitter = (StratifiedKFold if is_stratified else KFold)(_FOLDS, shuffle=True, random_state=seed)
    errors, worst = np.zeros(3), 0.0
    for train, test in splitter.split(x, y):
        predictions = [_tree([is_category], has_classes, None).fit(x[train], y[train]).predict(x[test])] * 3
        if has_classes:
            most = np.bincount(y[train].astype(int)).argmax()
            errors += [float((one != y[test]).sum()) for one in predictions]
            worst += float((y[test] != most).sum())
            continue
        before, truth = y[train].astype(float), y[test].astype(float)
        if not is_category:
            predictions[1:] = _interpolated(x[train, 0], before, x[test, 0])
        errors += [float(((one - truth) ** 2).sum()) for one in predictions]
        worst += float(((truth - before.mean()) ** 2).sum())
    return 1 - float(errors.min()) / worst if worst > 0 else 0.0


def _interpolated(x: Floats, y: Floats, new_x: Floats) -> list[Floats]:
    """Return predictions by linear interpolation, and by linear regression."""
    known = ~np.isnan(x)
    at, place = np.unique(x[known], return_inverse=True)
    if len(at) < 2:
        return [np.full(len(new_x), y.mean())] * 2
    means = np.bincount(place, weights=y[known]) / np.bincount(place)
    centre, spread = at.mean(), at.std()
    slope, intercept = np.polyfit((x[known] - centre) / spread, y[known], 1)
    known_x = np.nan_to_num(new_x)
    predictions = [np.interp(known_x, at, means), slope * (known_x - centre) / spread + intercept]
    return [np.where(np.isnan(new_x), y.mean(), one) for one in predictions]


_BINS = 8


def screened(
    data: Problem, is_test: NDArray[np.bool_], columns: Columns, n_columns: int, seed: int
) -> tuple[Rows, Rows]:
    """Select columns on rows that are used for nothing else, so that no score is biased by the selection.

    Parameters
    ----------
    data : Problem
    is_test : ndarray of bool of shape (n_rows,)
        Rows of the test set, which must not be used here.
    columns : Columns
        Its columns.
    n_columns : int
        Number of columns to select.
    seed : int

    Returns
    -------
    tuple of ndarray of int
        Selected columns in their order, and the remaining rows.
    """
    held_out = split_screening(data, seed).held_out
    held_out = held_out[~is_test[held_out]]
    rows = held_out[:: max(1, -(-len(held_out) // _MOST_ROWS))]
    centred = _centred(data, rows)
    explained = [
        _explained_variance(values[rows], feature.kind == "category", centred)
        for values, feature in zip(columns.values, columns.features, strict=True)
    ]
    best = np.argsort(-np.array(explained), kind="stable")[:n_columns]
    return np.sort(best).astype(np.intp), np.setdiff1d(np.arange(data.n_rows), held_out)


def _centred(data: Problem, rows: Rows) -> Floats:
    """Return the centred target of rows; of classes, one centred indicator per class."""
    if data.codes is None or data.classes is None:
        target = data.y[rows].astype(np.float64)[np.newaxis]
    else:
        target = np.eye(len(data.classes))[data.codes[rows]].T
        target = target[1:] if len(target) == 2 else target
    return np.asarray(target - target.mean(axis=1, keepdims=True))


def _explained_variance(values: Floats, is_category: bool, centred: Floats) -> float:
    """Return the adjusted fraction of the target's variance that the bins of a column explain."""
    known = ~np.isnan(values)
    place = np.zeros(len(values), dtype=np.intp)  # bin 0 holds missing values
    if is_category:
        place[known] = 1 + values[known].astype(np.intp)
    elif known.any():
        cuts = np.unique(np.quantile(values[known], np.arange(1, _BINS) / _BINS))
        place[known] = 1 + np.searchsorted(cuts, values[known])
    counts = np.bincount(place)
    n, n_bins, whole = len(values), np.count_nonzero(counts), float((centred**2).sum())
    if n_bins < 2 or n <= n_bins or whole == 0:
        return 0.0
    sums = np.array([np.bincount(place, weights=one) for one in centred])
    return 1 - (1 - float((sums**2 / np.maximum(counts, 1)).sum()) / whole) * (n - 1) / (n - n_bins)
