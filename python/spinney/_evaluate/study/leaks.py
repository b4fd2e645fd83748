"""Columns that tell the target nearly alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from spinney._data.types import Floats
from spinney._tree.classifier import DecisionTreeClassifier
from spinney._tree.regressor import DecisionTreeRegressor

NEARLY_ALL = 0.99  # share of the baseline's errors (of the variance, for values) that a leak takes away
_ROWS_TO_JUDGE_BY = 50
_MOST_ROWS = 5000
_MOST_LEAKS = 20
_FEW_COLUMNS = 50
_FOLDS = 3


@dataclass(frozen=True)
class Leak:
    """A column, and the share of the errors that it takes away on rows it was not fitted on."""

    column: int
    share: float


def find_leaks(
    columns: list[Floats], is_category: list[bool], target: NDArray[np.generic], has_classes: bool, seed: int
) -> list[Leak]:
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
    list of Leak
    """
    if len(target) < _ROWS_TO_JUDGE_BY or not columns:
        return []
    rows = np.sort(np.random.RandomState(seed).permutation(len(target))[:_MOST_ROWS])
    y, X = target[rows], np.column_stack([values[rows] for values in columns])
    if len(np.unique(y)) < 2:
        return []
    left, found = list(range(len(columns))), list[Leak]()
    few = len(columns) <= _FEW_COLUMNS
    while left and len(found) < _MOST_LEAKS:
        asked = left if few else [left[j] for j in _asked(X[:, left], [is_category[j] for j in left], y, has_classes)]
        leaks = [
            Leak(j, share)
            for j in asked
            if (share := _share(X[:, [j]], is_category[j], y, has_classes, seed)) >= NEARLY_ALL
        ]
        if not leaks or few:
            found += leaks
            break
        found += leaks
        left = [j for j in left if all(leak.column != j for leak in leaks)]
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
    is_spread = has_classes and np.bincount(y.astype(int)).min() >= _FOLDS
    splitter = (StratifiedKFold if is_spread else KFold)(_FOLDS, shuffle=True, random_state=seed)
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
