"""Rows as boosting takes them, and their splits into training and held-out rows."""

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
    """Encoded rows with their targets, weights and offsets.

    Attributes
    ----------
    columns : Table
    target : ndarray of shape (n_rows,) or (n_rows, n_outputs)
    weight : ndarray of shape (n_rows,), or None
        Class weights included.
    offset : ndarray of shape (n_scores, n_rows), or None
    X : table
        The rows before encoding, as the caller passes them.
    extra : ndarray of shape (n_rows,), or None
        Second number of a row's target: the list of a row to rank, or the end of an interval of times.
    """

    columns: _engine.Table
    target: Floats
    weight: Floats | None
    offset: Floats | None = None
    X: Any = None
    extra: NDArray[Any] | None = None

    def weights(self) -> Floats:
        """Return the weights; ones if there are none."""
        return np.ones(len(self.target)) if self.weight is None else self.weight

    @property
    def weights_view(self) -> Floats:
        """The weights, read-only; ones take no memory."""
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
        return float(self.weights_view.sum())

    def scores(self, start: Floats) -> Floats:
        """Return the initial scores with offsets, (n_scores, n_rows)."""
        scores = np.empty((len(start), len(self.target)))
        scores[:] = start[:, np.newaxis]
        return scores if self.offset is None else scores + self.offset

    def with_offset(self, scores: Floats) -> LearningRows:
        """Return the rows with scores, (n_scores, n_rows), added to their offsets."""
        return replace(self, offset=scores if self.offset is None else self.offset + scores)


def store_with_table(columns: Any, numbers: Floats) -> Floats:
    """Return the numbers as an array in files if the table is in files, else unchanged."""
    if not isinstance(columns, _engine.Table):  # rows that are not encoded
        return numbers
    if numbers.ndim == 1:
        return cast(Floats, columns.store(numbers))
    return cast(Floats, columns.store(np.ascontiguousarray(numbers).reshape(-1))).reshape(numbers.shape)


Splits = list[tuple[LearningRows, LearningRows | None]]  # training and held-out rows of each booster
_BLOCK = 1 << 20  # rows


def split_validation(
    rows: LearningRows,
    fraction_or_count: float | int,
    groups: ArrayLike | None,
    by_class: bool,
    seed: int,
    time: ArrayLike | None = None,
) -> tuple[LearningRows, LearningRows]:
    """Split the rows into a training set and a validation set by setting weights to 0.

    Both hold the whole table. The split is stratified by class, each class has training rows, and groups stay together;
    with `time`, the latest rows or groups are held out instead.
    """
    n, n_used = len(rows.target), rows.n_used
    used: slice | NDArray[np.intp] = slice(None) if n_used == n else np.flatnonzero(rows.weights_view > 0)
    is_count = isinstance(fraction_or_count, (int, np.integer))
    fraction = fraction_or_count / n_used if is_count else float(fraction_or_count)
    held = np.zeros(n, dtype=bool)
    if fraction < 1:
        random = np.random.RandomState(seed)
        if time is not None:
            moments = read_time(time, n)[used]
            if groups is not None:
                moments = _latest_of_group(moments, read_row_groups(groups, n)[used])
            held[used] = moments >= np.sort(moments, kind="stable")[-max(1, round(fraction * n_used))]
        elif groups is not None:
            labels = read_row_groups(groups, n)[used]
            drawn_rows = _drawn_groups(labels, fraction, random)
            held[used] = _restore_classes(drawn_rows, labels, _strata(rows.target[used])) if by_class else drawn_rows
        else:
            drawn = _drawn_rows(_strata(rows.target[used]) if by_class else None, n_used, fraction, random)
            held[drawn if isinstance(used, slice) else used[drawn]] = True
    if not 0 < np.count_nonzero(held) < n_used:
        raise ValueError(
            f"validation_fraction={fraction_or_count} of {n_used} rows leaves no training rows, or no validation rows. "
            "Change it, or pass X_val and y_val."
        )
    training = store_with_table(rows.columns, np.where(held, 0.0, rows.weights_view))  # one at a time: 8 bytes per row
    validation = store_with_table(rows.columns, np.where(held, rows.weights_view, 0.0))
    return replace(rows, weight=training), replace(rows, weight=validation)


def drop_zero_weights(
    rows: LearningRows, groups: ArrayLike | None, encode: Callable[[Any], _engine.Table] | None
) -> tuple[LearningRows, NDArray[Any] | None]:
    """Remove rows of weight 0, and their groups, so that random draws do not depend on them.

    With `encode`, the caller's table is subset and encoded again; else the encoded columns are subset.
    """
    used = np.flatnonzero(rows.weights() > 0)
    labels = None if groups is None else read_row_groups(groups, len(rows.target))[used]
    X = None if encode is None else pick_table(rows.X).take(used)
    columns = rows_of(rows.columns, used) if encode is None else encode(X)
    offset = None if rows.offset is None else np.ascontiguousarray(rows.offset[:, used])
    extra = None if rows.extra is None else rows.extra[used]
    return LearningRows(columns, rows.target[used], rows.weights()[used], offset, X, extra), labels


def split_folds(
    rows: LearningRows, n_folds: int, groups: ArrayLike | None, by_class: bool, seed: int, fold_overlap: float = 0.0
) -> Splits:
    """Hold out each fold once, by weights, as `split_validation` does; empty if no row can be held out.

    Folds are stratified by class, and the only row of a class is never held out. The fraction `fold_overlap` of each
    fold is also held out by the next booster, which trains on as many rows of the fold it holds out.
    """
    weight, strata = rows.weights(), _strata(rows.target)[:, np.newaxis] if by_class else None
    used = weight > 0
    n_units = np.count_nonzero(used) if groups is None else len(np.unique(read_row_groups(groups, len(weight))[used]))
    if n_units < 2:
        raise ValueError(
            "groups has a single label, so that no rows can be held out. Leave it out, or pass X_val and y_val."
        )
    random = np.random.RandomState(seed % 2**32)
    folds = read_folds(min(n_folds, int(n_units)), strata, rows.target, weight, groups, random)
    if by_class:
        for codes in np.atleast_2d(rows.target.T.astype(np.intp)):
            used = used & (np.bincount(codes[used], minlength=int(codes.max()) + 1)[codes] > 1)
    fold_rows = [fold.held_out for fold in folds]
    if fold_overlap > 0:
        labels = None if groups is None else read_row_groups(groups, len(weight))
        fold_rows = _with_overlap(fold_rows, fold_overlap, labels, random)
    splits: Splits = []
    for fold in fold_rows:
        held = np.zeros(len(weight), dtype=bool)
        held[fold] = used[fold]
        if held.any():
            training = store_with_table(rows.columns, np.where(held, 0.0, weight))
            held_out = store_with_table(rows.columns, np.where(held, weight, 0.0))
            splits.append((replace(rows, weight=training), replace(rows, weight=held_out)))
    return splits


def _with_overlap(
    folds: list[NDArray[np.intp]], fraction: float, groups: NDArray[Any] | None, random: np.random.RandomState
) -> list[NDArray[np.intp]]:
    """Also hold out a fraction of each fold with the next fold, which releases as many of its rows or groups."""
    shared, retained = [], []
    for fold in folds:
        _, unit = np.unique(fold if groups is None else groups[fold], return_inverse=True)
        order = random.permutation(int(unit.max()) + 1)[unit]
        n_shared = int(fraction * (unit.max() + 1))
        shared.append(fold[order < n_shared])
        retained.append(fold[order <= unit.max() - n_shared])
    return [np.union1d(rows, shared[k - 1]) for k, rows in enumerate(retained)]


def _strata(target: Floats) -> Floats:
    """Return the classes to stratify by; for several outputs, their combinations."""
    return target if target.ndim == 1 else np.unique(target, axis=0, return_inverse=True)[1].astype(np.float64)


def _latest_of_group(moments: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rank in time of the latest row of each row's group."""
    codes = np.unique(labels, return_inverse=True)[1]
    ranks = np.unique(moments, return_inverse=True)[1].astype(np.intp)
    latest = np.zeros(int(codes.max()) + 1, dtype=np.intp)
    np.maximum.at(latest, codes, ranks)
    return np.asarray(latest[codes])


def _drawn_groups(labels: NDArray[Any], fraction: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    _, codes = np.unique(labels, return_inverse=True)
    n_groups = int(codes.max()) + 1
    chosen = random.permutation(n_groups)[: max(1, round(fraction * n_groups))]
    return np.isin(codes, chosen) if n_groups > 1 else np.zeros(len(labels), dtype=bool)


def _restore_classes(held: NDArray[np.bool_], labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a group of each class without training rows to training; if none is left, hold out another group."""
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


def _drawn_rows(target: Floats | None, n: int, fraction: float, random: np.random.RandomState) -> NDArray[Any]:
    """Return a random fraction of n rows, stratified by class; needs 4 bytes per row besides the result."""
    order: NDArray[Any] = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    random.shuffle(order)
    if target is None:
        return order[: max(1, round(fraction * n))].copy()
    n_of: Counter[float] = Counter()
    for first in range(0, n, _BLOCK):
        codes, counts = np.unique(target[first : first + _BLOCK], return_counts=True)
        n_of.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    wanted = {code: min(round(fraction * count), count - 1) for code, count in n_of.items()}
    largest = max(sorted(n_of), key=n_of.__getitem__)
    if round(fraction * n_of[largest]) == 0 and n_of[largest] > 1:  # few rows of each: one of the largest class
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
