"""Rows as boosting takes them, and how they are split into rows to learn from and rows held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine
from spinney._data.schema import rows_of
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._estimator.held_out import read_folds, read_row_groups, read_time


@dataclass
class LearningRows:
    """Rows as the engine takes them.

    Attributes
    ----------
    columns : Table
    target : ndarray of shape (n_rows,) or (n_rows, n_outputs)
    weight : ndarray of shape (n_rows,), or None
        Class weights included.
    offset : ndarray of shape (n_scores, n_rows), or None
    given : table
        The rows as the caller gave them.
    more : ndarray of shape (n_rows,), or None
        What the loss must know of each row beside its target: its list, the end of its interval.
    """

    columns: _engine.Table
    target: Floats
    weight: Floats | None
    offset: Floats | None = None
    given: Any = None
    more: NDArray[Any] | None = None

    def weights(self) -> Floats:
        """Weights, 1 where there are none."""
        return np.ones(len(self.target)) if self.weight is None else self.weight

    @property
    def seen_weights(self) -> Floats:
        """The same, to be read alone: ones take no memory."""
        return np.broadcast_to(np.float64(1.0), len(self.target)) if self.weight is None else self.weight

    @property
    def used(self) -> NDArray[np.bool_] | slice:
        """Rows of positive weight, as an index."""
        return slice(None) if self.weight is None else self.weight > 0

    @property
    def n_used(self) -> int:
        """Number of rows of positive weight."""
        return len(self.target) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.seen_weights.sum())

    def scores(self, start: Floats) -> Floats:
        """Scores before the first tree, (n_scores, n_rows)."""
        scores = np.empty((len(start), len(self.target)))
        scores[:] = start[:, np.newaxis]
        return scores if self.offset is None else scores + self.offset

    def with_offset(self, scores: Floats) -> LearningRows:
        """Return the rows with these scores, (n_scores, n_rows), added to their offsets."""
        return replace(self, offset=scores if self.offset is None else self.offset + scores)


def stored_with(columns: Any, numbers: Floats) -> Floats:
    """Store numbers where a table lies: as a copy in files, or as the array itself."""
    if not isinstance(columns, _engine.Table):  # rows of any estimator's, as they were given
        return numbers
    if numbers.ndim == 1:
        return cast(Floats, columns.kept(numbers))
    return cast(Floats, columns.kept(np.ascontiguousarray(numbers).reshape(-1))).reshape(numbers.shape)


Parts = list[tuple[LearningRows, LearningRows | None]]  # for each booster the rows it learns from, and those held out
_BLOCK = 1 << 20  # rows


def set_aside(
    rows: LearningRows,
    share_or_count: float | int,
    groups: ArrayLike | None,
    by_class: bool,
    seed: int,
    time: ArrayLike | None = None,
) -> tuple[LearningRows, LearningRows]:
    """Split the rows, by weights, into a training set and a validation set.

    Both keep the whole table; rows that belong to the other part have weight 0. The same share of each class is held
    out, each class keeps rows to learn from, and groups stay together; with `time`, the latest rows, or groups, are
    held out instead.
    """
    n, n_used = len(rows.target), rows.n_used
    used: slice | NDArray[np.intp] = slice(None) if n_used == n else np.flatnonzero(rows.seen_weights > 0)
    share = share_or_count / n_used if isinstance(share_or_count, (int, np.integer)) else float(share_or_count)
    held = np.zeros(n, dtype=bool)
    if share < 1:
        random = np.random.RandomState(seed)
        if time is not None:
            moments = read_time(time, n)[used]
            if groups is not None:
                moments = _latest_of_group(moments, read_row_groups(groups, n)[used])
            held[used] = moments >= np.sort(moments, kind="stable")[-max(1, round(share * n_used))]
        elif groups is not None:
            labels = read_row_groups(groups, n)[used]
            drawn_rows = _drawn_groups(labels, share, random)
            held[used] = _leave_classes(drawn_rows, labels, _strata(rows.target[used])) if by_class else drawn_rows
        else:
            drawn = _drawn_rows(_strata(rows.target[used]) if by_class else None, n_used, share, random)
            held[drawn if isinstance(used, slice) else used[drawn]] = True
    if not 0 < np.count_nonzero(held) < n_used:
        raise ValueError(
            f"validation_fraction={share_or_count} of {n_used} rows leaves none to learn from, or none to judge by. "
            "Change it, or pass X_val and y_val."
        )
    learning = stored_with(rows.columns, np.where(held, 0.0, rows.seen_weights))  # one after the other: 8 bytes a row
    judging = stored_with(rows.columns, np.where(held, rows.seen_weights, 0.0))
    return replace(rows, weight=learning), replace(rows, weight=judging)


def rows_of_weight(
    rows: LearningRows, groups: ArrayLike | None, encode: Callable[[Any], _engine.Table] | None
) -> tuple[LearningRows, NDArray[Any] | None]:
    """Leave out rows of weight 0, and their groups: what is drawn by a row's place then does not depend on them.

    With `encode`, rows are taken of the caller's table, which is read again; else of the columns, number by number.
    """
    used = np.flatnonzero(rows.weights() > 0)
    labels = None if groups is None else read_row_groups(groups, len(rows.target))[used]
    given = None if encode is None else pick_table(rows.given).take(used)
    columns = rows_of(rows.columns, used) if encode is None else encode(given)
    offset = None if rows.offset is None else np.ascontiguousarray(rows.offset[:, used])
    more = None if rows.more is None else rows.more[used]
    return LearningRows(columns, rows.target[used], rows.weights()[used], offset, given, more), labels


def in_folds(
    rows: LearningRows, n_folds: int, groups: ArrayLike | None, by_class: bool, seed: int, held_twice: float = 0.0
) -> Parts:
    """Hold each fold out once; both parts keep the whole table, as in `set_aside`.

    Classes are spread over the folds, and the only row of a class is never held out. Nothing if no rows can be. A
    share of each fold is held out by the next booster too, `held_twice`, which learns from as many of its own fold.
    """
    weight, strata = rows.weights(), _strata(rows.target)[:, np.newaxis] if by_class else None
    used = weight > 0
    n_parts = np.count_nonzero(used) if groups is None else len(np.unique(read_row_groups(groups, len(weight))[used]))
    if n_parts < 2:
        raise ValueError(
            "groups has one label only, so that no rows can be held out. Leave it out, or pass X_val and y_val."
        )
    random = np.random.RandomState(seed % 2**32)
    folds = read_folds(min(n_folds, int(n_parts)), strata, rows.target, weight, groups, random)
    if by_class:
        for codes in np.atleast_2d(rows.target.T.astype(np.intp)):
            used = used & (np.bincount(codes[used], minlength=int(codes.max()) + 1)[codes] > 1)
    held_out = [fold.held_out for fold in folds]
    if held_twice > 0:
        labels = None if groups is None else read_row_groups(groups, len(weight))
        held_out = _some_twice(held_out, held_twice, labels, random)
    parts: Parts = []
    for fold in held_out:
        held = np.zeros(len(weight), dtype=bool)
        held[fold] = used[fold]
        if held.any():
            learning, judging = np.where(held, 0.0, weight), np.where(held, weight, 0.0)
            learning, judging = stored_with(rows.columns, learning), stored_with(rows.columns, judging)
            parts.append((replace(rows, weight=learning), replace(rows, weight=judging)))
    return parts


def _some_twice(
    folds: list[NDArray[np.intp]], share: float, groups: NDArray[Any] | None, random: np.random.RandomState
) -> list[NDArray[np.intp]]:
    """Hold a share of each fold out with the next one too, and as many rows or groups of it with none."""
    lent, kept_back = [], []
    for fold in folds:
        _, unit = np.unique(fold if groups is None else groups[fold], return_inverse=True)
        turn = random.permutation(int(unit.max()) + 1)[unit]
        n_lent = int(share * (unit.max() + 1))
        lent.append(fold[turn < n_lent])
        kept_back.append(fold[turn <= unit.max() - n_lent])
    return [np.union1d(own, lent[k - 1]) for k, own in enumerate(kept_back)]


def _strata(target: Floats) -> Floats:
    """Classes to spread over parts: of several outputs, their combinations."""
    return target if target.ndim == 1 else np.unique(target, axis=0, return_inverse=True)[1].astype(np.float64)


def _latest_of_group(moments: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Place in time, by row, of the latest row of its group."""
    codes = np.unique(labels, return_inverse=True)[1]
    places = np.unique(moments, return_inverse=True)[1].astype(np.intp)
    latest = np.zeros(int(codes.max()) + 1, dtype=np.intp)
    np.maximum.at(latest, codes, places)
    return np.asarray(latest[codes])


def _drawn_groups(labels: NDArray[Any], share: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    _, codes = np.unique(labels, return_inverse=True)
    n_groups = int(codes.max()) + 1
    chosen = random.permutation(n_groups)[: max(1, round(share * n_groups))]
    return np.isin(codes, chosen) if n_groups > 1 else np.zeros(len(labels), dtype=bool)


def _leave_classes(held: NDArray[np.bool_], labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Give a group of each class back that has no row left to learn from; if none is left, hold another one out."""
    for lost in np.setdiff1d(classes[held], classes[~held]):
        if not (~held & (classes == lost)).any():
            held = held & (labels != labels[held & (classes == lost)][0])
    if held.any():
        return held
    for label in np.unique(labels):
        one = np.asarray(labels == label)
        if not len(np.setdiff1d(classes[one], classes[~one])):
            return one
    return held


def _drawn_rows(target: Floats | None, n: int, share: float, random: np.random.RandomState) -> NDArray[Any]:
    """Return some of n rows, the same share of each class; takes 4 bytes a row beside what it returns."""
    order: NDArray[Any] = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    random.shuffle(order)
    if target is None:
        return order[: max(1, round(share * n))].copy()
    n_of: Counter[float] = Counter()
    for first in range(0, n, _BLOCK):
        codes, counts = np.unique(target[first : first + _BLOCK], return_counts=True)
        n_of.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    wanted = {code: min(round(share * count), count - 1) for code, count in n_of.items()}
    largest = max(sorted(n_of), key=n_of.__getitem__)
    if round(share * n_of[largest]) == 0 and n_of[largest] > 1:  # few rows of each: one of the largest class
        wanted = {largest: 1}
    drawn = [order[:0]]
    for first in range(0, n, _BLOCK):
        block = order[first : first + _BLOCK]
        classes = target[block]
        for code in wanted:
            if wanted[code] > 0:
                mine = block[classes == code][: wanted[code]]
                wanted[code] -= len(mine)
                drawn.append(mine)
    return np.concatenate(drawn)
