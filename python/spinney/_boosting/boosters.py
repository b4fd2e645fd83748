"""What one fit boosts, and what each booster starts with: its table, statistics of categories, scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows, Parts, stored_with
from spinney._boosting.loss import Loss
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.target import BoostingTarget
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._model.boosting import FittedBoosting


def tables_of_members(recipe: Recipe, task: Task) -> list[tuple[_engine.Table, list[Statistic]]]:
    """Return the table of each booster, and the statistics of categories that are its last columns."""
    rows, parts, loss, scores = task.rows, task.parts, task.loss, task.rows.scores
    if len(parts) == 1 or not recipe.has_statistics or not columns_of_many(rows.columns):
        return [(rows.columns, [])] * len(parts)
    if loss.outside is not None:
        slopes, _ = loss.outside(rows).gradients(scores(task.start))
        pulled = -slopes[0]
    else:
        pulled = -loss.slopes(rows.target, scores(task.start), rows.weights())[0]
    return tables_with_statistics(rows, pulled, [held_out for _, held_out in parts], task.n_of_splits)


def weights_for_bins(recipe: Recipe, rows: LearningRows, seed: int) -> Floats | None:
    """Weights by which a column is cut into bins; drawn, if each booster is to have cuts of its own."""
    if not recipe.draws_bins:
        return rows.weight
    return rows.weights() * (0.01 + np.random.RandomState(seed % 2**31).random_sample(len(rows.target)))


def coded_table(columns: Any, weight: Floats | None, options: dict[str, Any]) -> Any:
    """Return a table in codes, for boosters that learn from different rows of it."""
    if not isinstance(columns, _engine.Table):  # its rows are on workers
        return columns.coded(weight, options)
    return _engine.CodedTable(columns, weight, _engine.BoostingOptions(**options))


def start_booster(
    columns: Any,
    rows: LearningRows,
    held_out: LearningRows | None,
    loss: Loss,
    start: Floats,
    earlier: FittedBoosting | None,
    options: dict[str, Any],
    coded: Any,
    n_threads: int,
) -> Any:
    """Return a booster of these columns that has done the rounds of an earlier model, or none."""
    if not isinstance(columns, _engine.Table):  # its rows are on workers
        return columns.start_booster(rows, held_out, loss, start, earlier, options, coded)
    later = None
    if held_out is not None:
        target, scores = loss.shifted(held_out, start)
        of_held_out = columns if held_out.columns is rows.columns else held_out.columns
        later = (of_held_out, target, held_out.weight, scores_so_far(held_out, scores, earlier, n_threads))
    target, scores = loss.shifted(rows, start)
    target = target if np.shares_memory(target, rows.target) else stored_with(columns, target)
    scores = scores_so_far(rows, scores, earlier, n_threads)
    n_done = 0 if earlier is None else earlier.n_rounds
    read = _engine.BoostingOptions(**options)
    return _engine.Boosting(columns, target, rows.weight, scores, later, read, n_done, coded)


def scores_so_far(rows: LearningRows, scores: Floats, earlier: FittedBoosting | None, n_threads: int) -> Floats:
    """Scores, (n_scores, n_rows), after an earlier model; trees are added in the order in which they were grown."""
    if earlier is None:
        return scores
    for round_ in range(earlier.n_rounds):
        scores += earlier.round_sums(rows.columns, round_, n_threads).T
    return np.ascontiguousarray(scores)


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


@dataclass(frozen=True)
class Task:
    """Rows split into those of each booster, the loss, and the initial scores.

    Attributes
    ----------
    schema : Schema
    loss : Loss
    rows : LearningRows
        All that any booster learns from.
    parts : list of (LearningRows, LearningRows or None)
        For each booster the rows it learns from and those that evaluate it.
    n_of_splits : list of int
        Number of boosters of each time that rows are split into folds, in the order of `parts`.
    start : ndarray of shape (n_scores,)
    earlier : FittedBoosting or None
        The model that a warm start goes on from.
    seed : int
    target : BoostingTarget
    validation : list of (str, LearningRows or None)
        Sets to evaluate after each round, by name.
    """

    schema: Schema
    loss: Loss
    rows: LearningRows
    parts: Parts
    n_of_splits: list[int]
    start: NDArray[np.float64]
    earlier: FittedBoosting | None
    seed: int
    target: BoostingTarget
    validation: list[tuple[str, LearningRows | None]]
