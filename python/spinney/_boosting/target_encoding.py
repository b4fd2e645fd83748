"""Out-of-fold target encoding of categorical columns with many categories, for boosters that each hold out a fold.

A category is encoded by the mean negative gradient of its rows before the first tree, shrunk towards the mean of all
rows. In training, the encoding of a row comes from other folds than its own, so that it does not depend on the row's
target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data.types import Floats

CategoryEncoding = tuple[int, Floats, float, float]  # column; values of its categories, of missing and of unknown ones
_PRIOR_WEIGHT = 10.0  # weight of the mean of all rows in the value of a category
_MANY_CATEGORIES = 12  # columns with fewer are not encoded: splits separate few categories well enough


def high_cardinality_columns(table: _engine.Table) -> list[int]:
    """Return the indices of the columns that are encoded: those with many categories."""
    return [j for j in range(table.n_columns) if table.n_categories(j) >= _MANY_CATEGORIES]


def target_encoded_tables(
    rows: LearningRows,
    negative_gradients: Floats,
    held_out: Sequence[LearningRows | None],
    boosters_per_repeat: Sequence[int],
) -> list[tuple[_engine.Table, list[CategoryEncoding]]]:
    """Return the table of each booster with its encoded columns, as `TargetEncoder.encode` does.

    Parameters
    ----------
    rows : LearningRows
        All rows.
    negative_gradients : ndarray of shape (n_rows,)
        Negative gradients of the loss before the first tree.
    held_out : sequence of LearningRows
        The rows that each booster holds out, by their weights.
    boosters_per_repeat : sequence of int
        Number of boosters of each split into folds, in the order of `held_out`.
    """
    masks = []
    for one in held_out:
        assert one is not None
        masks.append(one.weights() > 0)
    tables: list[tuple[_engine.Table, list[CategoryEncoding]]] = []
    for n in boosters_per_repeat:
        encoder = TargetEncoder(rows, negative_gradients, masks[len(tables) : len(tables) + n])
        tables += [encoder.encode(i) for i in range(n)]
    return tables


@dataclass(frozen=True)
class _Column:
    """Weights and weighted sums by fold and category; the last category is for rows without a known one."""

    index: int
    codes: NDArray[np.intp]
    weights: Floats
    sums: Floats


class TargetEncoder:
    """Encodes the columns with many categories for the boosters of one split into folds.

    Rows that are held out by the same boosters form a fold.

    Parameters
    ----------
    rows : LearningRows
        All rows.
    negative_gradients : ndarray of shape (n_rows,)
        Negative gradients of the loss before the first tree.
    held_out : sequence of ndarray of bool, (n_rows,)
        The rows that each booster holds out.
    """

    def __init__(self, rows: LearningRows, negative_gradients: Floats, held_out: Sequence[NDArray[np.bool_]]) -> None:
        self._table = rows.columns
        self._holders, self._fold = _folds_of(held_out, len(rows.target))
        weight = rows.weights()
        columns = high_cardinality_columns(self._table)
        self._columns = [self._sums(j, weight, weight * negative_gradients, len(self._holders)) for j in columns]

    def _sums(self, j: int, weight: Floats, weighted: Floats, n_folds: int) -> _Column:
        n = self._table.n_categories(j)
        values = np.asarray(self._table.column(j), dtype=np.float64)
        codes = np.where(values < n, values, n).astype(np.intp)
        cells = self._fold * (n + 1) + codes

        def summed(numbers: Floats) -> Floats:
            return np.bincount(cells, numbers, n_folds * (n + 1)).reshape(n_folds, n + 1).astype(np.float64)

        return _Column(j, codes, summed(weight), summed(weighted))

    def encode(self, booster: int) -> tuple[_engine.Table, list[CategoryEncoding]]:
        """Return the table of a booster with the encoded columns at its end, and their encodings."""
        table, encodings = self._table.copy(), []
        is_held_out = np.array([booster in holders for holders in self._holders])  # by fold
        for column in self._columns:
            weights, sums = (by_fold[~is_held_out].sum(axis=0) for by_fold in (column.weights, column.sums))
            mean = fsum(sums.tolist()) / fsum(weights.tolist())
            of_all = (sums + _PRIOR_WEIGHT * mean) / (weights + _PRIOR_WEIGHT)
            of_others = (sums - column.sums + _PRIOR_WEIGHT * mean) / (weights - column.weights + _PRIOR_WEIGHT)
            of_others[is_held_out] = of_all
            table.add_number(of_others[self._fold, column.codes])
            encodings.append((column.index, of_all[:-1], float(of_all[-1]), mean))
        return table, encodings


def _folds_of(held_out: Sequence[NDArray[np.bool_]], n_rows: int) -> tuple[list[set[int]], NDArray[np.intp]]:
    """Return the boosters that hold out each fold, and the fold of each row.

    First come the folds that one booster holds out, then the rows that are never held out, then the overlaps of two.
    """
    holders = [{i} for i in range(len(held_out))] + [set[int]()]
    fold = np.full(n_rows, len(held_out), dtype=np.intp)
    for i, rows in enumerate(held_out):
        for k in np.unique(fold[rows]).tolist():
            both = holders[k] | {i}
            if both not in holders:
                holders.append(both)
            fold[rows & (fold == k)] = holders.index(both)
    return holders, fold
