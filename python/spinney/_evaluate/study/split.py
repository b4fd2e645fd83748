"""Rows to learn from and to judge by: a locked test part, and folds of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

from spinney._evaluate.study.prepare import Prepared

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

TEST_SHARE = 0.2
N_FOLDS = 5
_MOST_GROUPS = 3000  # with more, their classes are not spread evenly, which would take long
_LARGEST_SEED = 2**31 - 1


def split_off_test(data: Prepared, random: np.random.RandomState) -> Split:
    """Part the rows into those to learn from and the test part, a fifth."""
    if data.time is not None:
        return _latest(data.time)
    seed = int(random.randint(_LARGEST_SEED))
    return _parts(data.codes, data.groups, data.are_duplicates, round(1 / TEST_SHARE), seed, data.n_rows)[0]


def rows_apart(data: Prepared, seed: int) -> Split:
    """Part the rows into those to study and a third, by which something is decided beforehand: the first in time."""
    if data.time is None:
        return _parts(data.codes, data.groups, data.are_duplicates, 3, seed, data.n_rows)[0]
    moments = np.sort(data.time, kind="stable")
    is_early = data.time < moments[len(moments) // 3]
    return np.flatnonzero(~is_early), np.flatnonzero(is_early)


def make_splits(data: Prepared, n_folds: int, repeats: int, random: np.random.RandomState) -> list[list[Split]]:
    """Make the folds of each repeat; those of time are one repeat."""
    if data.time is not None:
        order = np.argsort(data.time, kind="stable")
        return [[(np.sort(order[a]), np.sort(order[b])) for a, b in TimeSeriesSplit(n_folds).split(order)]]
    found = []
    for _ in range(repeats):
        seed = int(random.randint(_LARGEST_SEED))
        found.append(_parts(data.codes, data.groups, data.are_duplicates, n_folds, seed, data.n_rows))
    return found


def _latest(time: NDArray[Any]) -> Split:
    """Hold out the latest rows; those of one moment stay together."""
    moments = np.sort(time, kind="stable")
    cut = moments[min(len(moments) - 1, round((1 - TEST_SHARE) * len(moments)))]
    is_test = time >= cut
    if is_test.all():
        raise ValueError("Most rows have the same time, so that none come before the rest. Leave time (--time) out.")
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _parts(
    codes: Rows | None, groups: Rows | None, are_duplicates: bool, n_parts: int, seed: int, n_rows: int
) -> list[Split]:
    """Deal the rows out, classes evenly and groups together."""
    if groups is None:
        return _dealt(codes, n_parts, seed, n_rows)
    if are_duplicates:  # many small groups: one row stands for each
        _, first, place = np.unique(groups, return_index=True, return_inverse=True)
        splits = _dealt(None if codes is None else codes[first], n_parts, seed, len(first))
        return [_of_units(test, place, len(first)) for _, test in splits]
    n_groups = len(np.unique(groups))
    n_parts = min(n_parts, n_groups)
    if codes is not None and n_groups <= _MOST_GROUPS:
        spread: Any = StratifiedGroupKFold(n_parts, shuffle=True, random_state=seed)
        return [(a, b) for a, b in spread.split(codes, codes, groups) if len(b)]
    together = GroupKFold(n_parts, shuffle=True, random_state=seed)
    return list(together.split(groups, groups=groups))


def _of_units(test: Rows, place: Rows, n_units: int) -> Split:
    is_test = np.zeros(n_units, dtype=bool)
    is_test[test] = True
    return np.flatnonzero(~is_test[place]), np.flatnonzero(is_test[place])


def _dealt(codes: Rows | None, n_parts: int, seed: int, n_rows: int) -> list[Split]:
    if codes is not None and np.bincount(codes)[np.unique(codes)].min() >= n_parts:
        return list(StratifiedKFold(n_parts, shuffle=True, random_state=seed).split(codes, codes))
    if codes is None:
        return list(KFold(n_parts, shuffle=True, random_state=seed).split(np.zeros(n_rows)))
    return _dealt_by_class(codes, n_parts, seed)


def _dealt_by_class(codes: Rows, n_parts: int, seed: int) -> list[Split]:
    """Deal the rows of each class in turn; a class of few rows is in the first parts learned from at least once."""
    order = np.random.RandomState(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    starts = np.searchsorted(codes[order], codes[order])
    part = np.empty(len(codes), dtype=np.intp)
    part[order] = (n_parts - 1 - (np.arange(len(order)) - starts)) % n_parts  # rare classes are not in part 0
    parts = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_parts)]
    return [(rest, held_out) for rest, held_out in parts if len(rest) and len(held_out)]
