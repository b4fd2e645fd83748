"""Folds and test sets: stratified, grouped, or in the order of time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

from spinney._estimator.held_out import CrossValidation, Fold, check_fold_count, read_folds
from spinney._evaluate.problem import Array, Problem, Rows

TEST_FRACTION = 0.2
_MOST_GROUPS = 3000  # with more, groups are not stratified, which would be slow
LARGEST_SEED = 2**31 - 1


def n_folds_of(cv: CrossValidation, problem: Problem) -> int:
    """Return the number of folds of a number or a splitter."""
    if isinstance(cv, Integral):
        return int(cv)
    return int(cv.get_n_splits(np.zeros((problem.n_rows, 1)), problem.y, problem.groups))  # type: ignore[union-attr]


def draw_folds(problem: Problem, cv: CrossValidation, repeats: int, random: np.random.RandomState) -> list[list[Fold]]:
    """Return the folds of each repeat, for a number or a splitter; rows in time have one repeat."""
    if not isinstance(cv, Integral):
        given = replace(problem, groups=None) if problem.groups_are_copies else problem
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored")  # folds that split groups are refused
            drawn = read_cv(given, cv, 1, random)
        return [_apart(problem, folds) for folds in drawn]
    n_folds = int(cv)
    if problem.time is not None:
        order = np.argsort(problem.time, kind="stable")
        return [[Fold(np.sort(order[a]), np.sort(order[b])) for a, b in TimeSeriesSplit(n_folds).split(order)]]
    return [_partition(problem, n_folds, int(random.randint(LARGEST_SEED))) for _ in range(repeats)]


def _apart(problem: Problem, folds: list[Fold]) -> list[Fold]:
    """Return the folds of a splitter without copies of held-out rows in training; refuse folds that split groups."""
    if problem.groups is None:
        return folds
    is_shared = [np.isin(problem.groups[fold.train], problem.groups[fold.held_out]) for fold in folds]
    if not problem.groups_are_copies and any(shared.any() for shared in is_shared):
        raise ValueError(
            "cv splits groups: rows of one group are in the training and in the held-out rows of a fold. Pass a number "
            "of folds, or a splitter of groups such as GroupKFold."
        )
    return [Fold(fold.train[~shared], fold.held_out) for fold, shared in zip(folds, is_shared, strict=True)]


def read_cv(problem: Problem, cv: CrossValidation, repeats: int, random: np.random.RandomState) -> list[list[Fold]]:
    """Return the folds of each repeat for `cv`: a number of folds, or an argument of `read_folds`."""
    weight = np.ones(problem.n_rows) if problem.weight is None else problem.weight
    is_number = isinstance(cv, Integral) and not isinstance(cv, bool)
    if problem.time is not None and (problem.groups is not None or not is_number):
        raise ValueError(
            "time determines the folds: held-out rows are later than training rows. Pass a number of folds as cv, "
            "and no groups."
        )
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        strata = None if problem.codes is None else problem.codes[:, np.newaxis]
        return [read_folds(cv, strata, problem.y, weight, problem.groups, random)]
    known = np.flatnonzero(weight > 0)
    check_fold_count(int(cv), known, problem.groups)
    if len(known) == problem.n_rows:
        return draw_folds(problem, int(cv), repeats, random)
    drawn = draw_folds(problem.take(known), int(cv), repeats, random)
    return [[Fold(known[fold.train], known[fold.held_out]) for fold in folds] for folds in drawn]


def split_test(problem: Problem, random: np.random.RandomState) -> Fold:
    """Hold out a fifth of the rows as test set: of rows in time, the latest."""
    if problem.time is not None:
        return split_latest(problem.time)
    return _partition(problem, round(1 / TEST_FRACTION), int(random.randint(LARGEST_SEED)))[0]


def split_screening(problem: Problem, seed: int) -> Fold:
    """Hold out a third of the rows for the selection of columns: of rows in time, the first."""
    if problem.time is None:
        return _partition(problem, 3, seed)[0]
    times = np.sort(problem.time, kind="stable")
    is_early = problem.time < times[len(times) // 3]
    return Fold(np.flatnonzero(~is_early), np.flatnonzero(is_early))


def split_latest(time: Array) -> Fold:
    """Hold out the latest fifth of the rows; rows of the same time stay together."""
    times = np.sort(time, kind="stable")
    is_test = time >= times[-max(1, round(TEST_FRACTION * len(times)))]
    if is_test.all():
        raise ValueError("Most rows have the same time, so that no row is earlier. Leave time (--time) out.")
    return Fold(np.flatnonzero(~is_test), np.flatnonzero(is_test))


def _partition(problem: Problem, n_parts: int, seed: int) -> list[Fold]:
    """Return stratified folds of the rows; groups stay together."""
    codes, groups = problem.codes, problem.groups
    if groups is None:
        return _folds(_split_rows(codes, n_parts, seed, problem.n_rows))
    if problem.groups_are_copies:  # many small groups: split one row of each
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        splits = _split_rows(None if codes is None else codes[first], n_parts, seed, len(first))
        held_out = [np.isin(group, test) for _, test in splits]
        return [Fold(np.flatnonzero(~is_test), np.flatnonzero(is_test)) for is_test in held_out]
    n_groups = len(np.unique(groups))
    n_parts = min(n_parts, n_groups)
    if codes is not None and n_groups <= _MOST_GROUPS:
        spread = StratifiedGroupKFold(n_parts, shuffle=True, random_state=seed)
        return _folds(spread.split(codes, codes, groups))
    return _folds(GroupKFold(n_parts, shuffle=True, random_state=seed).split(groups, groups=groups))


def _folds(splits: Iterable[tuple[Rows, Rows]]) -> list[Fold]:
    return [Fold(train, test) for train, test in splits if len(train) and len(test)]


def _split_rows(codes: Rows | None, n_parts: int, seed: int, n_rows: int) -> Iterator[tuple[Rows, Rows]]:
    """Split rows without groups."""
    if codes is None:
        yield from KFold(n_parts, shuffle=True, random_state=seed).split(np.zeros(n_rows))
    elif np.bincount(codes)[np.unique(codes)].min() >= n_parts:
        yield from StratifiedKFold(n_parts, shuffle=True, random_state=seed).split(codes, codes)
    else:
        yield from _split_rare_classes(codes, n_parts, seed)


def _split_rare_classes(codes: Rows, n_parts: int, seed: int) -> list[tuple[Rows, Rows]]:
    """Assign the rows of each class to the folds in turn; the first fold has none of the rarest classes."""
    order = np.random.RandomState(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    starts = np.searchsorted(codes[order], codes[order])
    part = np.empty(len(codes), dtype=np.intp)
    part[order] = (n_parts - 1 - (np.arange(len(order)) - starts)) % n_parts
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_parts)]
