"""The race of recipes on the folds of a fit: those far behind on two folds are dropped, the others are blended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import fsum
from typing import Protocol

from spinney._boosting.boosters import Member, blend_weights
from spinney._boosting.combined_columns import TRIAL_ROUNDS, automatic_pairs, most_important
from spinney._boosting.options.recipe import Recipe, challengers, may_race
from spinney._boosting.rounds import Rounds
from spinney._boosting.settings import BoostingSettings
from spinney._boosting.task import Task
from spinney._data import Combinations

_N_TRIALS = 2  # folds on which recipes are compared first
_FEWEST_ROWS = 1000  # more are needed to choose combined columns: on fewer, chance makes many look important
_TOLERANCE = 0.05  # relative excess of the loss there with which a recipe may still improve a blend


class StartOnFolds(Protocol):
    """Starts the boosters of a recipe for some of the folds."""

    def __call__(self, settings: BoostingSettings, recipe: Recipe, task: Task, *, which: slice) -> Rounds:
        """Return the rounds."""


def race(settings: BoostingSettings, recipe: Recipe, rounds: Rounds, task: Task, start: StartOnFolds) -> Task:
    """Blend the boosters with those of other recipes, by out-of-fold loss; return the task with the columns of all.

    Parameters
    ----------
    settings : BoostingSettings
    recipe : Recipe
        The default one.
    rounds : Rounds
        Its rounds, which have run.
    task : Task
    start : StartOnFolds
    """
    is_mean = len(task.splits) > 1 and len(task.loss.parts) == 1
    if not is_mean or not may_race(settings, recipe, task.rows.n_used, len(task.start)):
        return task
    entries = [(other, task) for other in challengers(recipe, task.schema.n_categories)]
    if settings.feature_combinations == "auto" and task.rows.n_used > _FEWEST_ROWS:
        combined = _with_combined_columns(settings, recipe, rounds, task, start)
        entries += [] if combined is None else [(recipe, combined)]
    most = (1 + _TOLERANCE) * _held_out_loss(rounds.members[:_N_TRIALS])
    teams, tasks = [rounds.members], [task]
    for other, of_other in entries:
        if team := _boosters(partial(start, settings, other, of_other), most):
            teams.append(team)
            tasks.append(of_other)
    if len(teams) == 1:
        return task
    held_out = [held_out for _, held_out in task.splits if held_out is not None]
    weights = blend_weights(teams, held_out, *task.loss.centred(task.rows, task.start), task.loss)
    rounds.blend(teams, weights)
    widest = [one for one, weight in zip(tasks, weights, strict=True) if weight > 0][-1]
    rounds.make_model = widest.model
    return widest


class StartRecipe(Protocol):
    """Starts the boosters of one recipe for some of the folds."""

    def __call__(self, *, which: slice) -> Rounds:
        """Return the rounds."""


def _boosters(start: StartRecipe, most: float) -> Sequence[Member]:
    """Return the boosters of a recipe; none if their loss on two folds is larger than `most`."""
    trial = start(which=slice(0, _N_TRIALS))
    trial.run()
    if _held_out_loss(trial.members) > most:
        return []
    rest = start(which=slice(_N_TRIALS, None))
    rest.run()
    return [*trial.members, *rest.members]


def _held_out_loss(members: Sequence[Member]) -> float:
    return fsum(min(member.held_out_curve) for member in members)


def _with_combined_columns(
    settings: BoostingSettings, recipe: Recipe, rounds: Rounds, task: Task, start: StartOnFolds
) -> Task | None:
    """Return the task with the most important combinations of columns; None if there are none.

    They are chosen by the splits of a short booster with all combinations of the most important columns, which does not
    read the rows of the first fold.
    """
    schema, rows = task.schema, task.rows
    of_columns = rounds.make_model(rounds.members[0].trees()).importances(schema.n_features)
    pairs = automatic_pairs(schema, of_columns)
    if not pairs:
        return None
    pool = Combinations.of_pairs(rows.columns, rows.weight, pairs)
    of_all = task.with_columns(schema.with_pool(pool))
    short = replace(recipe, n_rounds=min(TRIAL_ROUNDS, recipe.n_rounds))
    trial = start(settings, short, of_all, which=slice(0, 1))
    trial.run()
    chosen = most_important(pool, of_all.model(trial.members[0].trees()).importances(pool.n_split_columns))
    return task.with_columns(schema.with_pool(pool.only(chosen.tolist()))) if len(chosen) else None
