"""Columns of a table that is too wide for the time allowed: the most telling ones, found on rows of their own."""

from __future__ import annotations

import numpy as np

from spinney._data.types import Floats
from spinney._evaluate.folds import split_screening
from spinney._evaluate.problem import Problem, Rows
from spinney._evaluate.study.profile import Columns

_BINS = 8
_MOST_ROWS = 5000


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
    left, apart = split.grown_on, split.held_out
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
