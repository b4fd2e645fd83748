"""Statistics of categories: numbers that stand for them while trees are grown, learned from rows of other folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows

Floats = NDArray[np.float64]
Statistic = tuple[int, Floats, float, float]  # column, number of each category, of missing ones, of those not seen
_DOUBT = 10.0  # rows that speak for the mean of all
_MANY_CATEGORIES = 12  # of a column: with fewer, splits tell one from another well enough


@dataclass(frozen=True)
class _Column:
    """Weights and weighted pulls of a column's categories, by fold; the last category is for rows without one."""

    place: int
    codes: NDArray[np.intp]
    weights: Floats
    sums: Floats


def columns_of_many(table: _engine.Table) -> list[int]:
    """Places of the columns that have statistics: those of many categories."""
    return [j for j in range(table.n_columns) if table.n_categories(j) >= _MANY_CATEGORIES]


def tables_with_statistics(
    rows: LearningRows, pulls: Floats, parts: Sequence[LearningRows | None], n_of_splits: Sequence[int]
) -> list[tuple[_engine.Table, list[Statistic]]]:
    """Tables of all boosters, by the rows that each holds out, as `CategoryStatistics.of_member` returns them.

    Rows are split into folds several times; `n_of_splits` are the boosters of each time, in the order of `parts`.
    """
    held_out = []
    for part in parts:
        assert part is not None
        held_out.append(part.weights() > 0)
    found: list[tuple[_engine.Table, list[Statistic]]] = []
    for n in n_of_splits:
        of_deal = CategoryStatistics(rows, pulls, held_out[len(found) : len(found) + n])
        found += [of_deal.of_member(i) for i in range(n)]
    return found


class CategoryStatistics:
    """How far the rows of a category pull away from where all start, for boosters that each hold out one fold.

    A booster learns from a row by what other folds say of its category, so that no row hears of itself, and predicts by
    what all rows say that it learns from. Rows that the same boosters hold out are a fold.

    Parameters
    ----------
    rows : LearningRows
        All rows.
    pulls : ndarray of shape (n_rows,)
        Negative gradients of the loss before the first tree.
    held_out : sequence of ndarray of bool, (n_rows,)
        The rows that each booster holds out.
    """

    def __init__(self, rows: LearningRows, pulls: Floats, held_out: Sequence[NDArray[np.bool_]]) -> None:
        self._table = rows.columns
        self._holders, self._fold = _folds_of(held_out, len(rows.target))
        weight = rows.weights()
        sources = columns_of_many(self._table)
        self._columns = [self._read(j, weight, weight * pulls, len(self._holders)) for j in sources]

    def _read(self, j: int, weight: Floats, weighted: Floats, n_folds: int) -> _Column:
        n = self._table.n_categories(j)
        given = np.asarray(self._table.column(j), dtype=np.float64)
        codes = np.where(given < n, given, n).astype(np.intp)
        at = self._fold * (n + 1) + codes

        def summed(parts: Floats) -> Floats:
            return np.bincount(at, parts, n_folds * (n + 1)).reshape(n_folds, n + 1).astype(np.float64)

        return _Column(j, codes, summed(weight), summed(weighted))

    def of_member(self, i: int) -> tuple[_engine.Table, list[Statistic]]:
        """Return the table of a booster, with the statistics after its columns; and these, for trees to lose them."""
        table, statistics = self._table.copy(), []
        mine = np.array([i in holders for holders in self._holders])
        for column in self._columns:
            weights, sums = (parts[~mine].sum(axis=0) for parts in (column.weights, column.sums))
            mean = fsum(sums.tolist()) / fsum(weights.tolist())
            of_all = (sums + _DOUBT * mean) / (weights + _DOUBT)
            of_others = (sums - column.sums + _DOUBT * mean) / (weights - column.weights + _DOUBT)
            of_others[mine] = of_all
            table.add_number(of_others[self._fold, column.codes])
            statistics.append((column.place, of_all[:-1], float(of_all[-1]), mean))
        return table, statistics


def _folds_of(held_out: Sequence[NDArray[np.bool_]], n_rows: int) -> tuple[list[set[int]], NDArray[np.intp]]:
    """Return the boosters that hold each fold out, and the fold of each row.

    Those of one booster come first, then rows that are never held out, then those that two boosters hold out.
    """
    holders = [{i} for i in range(len(held_out))] + [set[int]()]
    fold = np.full(n_rows, len(held_out), dtype=np.intp)
    for i, part in enumerate(held_out):
        for k in np.unique(fold[part]).tolist():
            both = holders[k] | {i}
            if both not in holders:
                holders.append(both)
            fold[part & (fold == k)] = holders.index(both)
    return holders, fold
