"""What each booster of a fit starts with: its table, the weights that bins are cut by, scores before its first tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.category_statistics import Statistic, columns_of_many, tables_with_statistics
from spinney._boosting.learning_rows import LearningRows, stored_with
from spinney._boosting.loss import Loss
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.task import Task
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


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
