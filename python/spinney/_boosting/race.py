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
from spinney._data.combinations import Pair

_N_TRIALS = 2  # folds on which recipes are compared first
_FEWEST_ROWS = 1000  # more are needed to choose combined columns: on fewer, chance makes many look important
_TOLERANCE = 0.05  # relative excess of the loss there with which a recipe may still improve a blend
_TOLERANCE_OF_LINEAR = 0.2  # of trees of two linear leaves, which are cheap, and differ most from the others


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
    entries = [(other, [task]) for other in challengers(recipe, task.schema.n_categories)]
    if settings.feature_combinations == "auto" and task.rows.n_used > _FEWEST_ROWS:
        entries.append((recipe, _with_combined_columns(settings, recipe, rounds, task, start)))
    least = _held_out_loss(rounds.members[:_N_TRIALS])
    teams, tasks = [rounds.members], [task]
    for other, variants in entries:
        tolerance = _TOLERANCE_OF_LINEAR if other.is_linear else _TOLERANCE
        most = least + tolerance * abs(least)  # likelihoods may be of either sign
        if found := _best_boosters(partial(start, settings, other), variants, most):
            teams.append(found[0])
            tasks.append(found[1])
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

    def __call__(self, task: Task, *, which: slice) -> Rounds:
        """Return the rounds."""


def _best_boosters(start: StartRecipe, variants: Sequence[Task], most: float) -> tuple[Sequence[Member], Task] | None:
    """Return the boosters of a recipe on the columns with the least loss on two folds; None if it is above `most`."""
    best: tuple[Sequence[Member], Task] | None = None
    for task in variants:
        trial = start(task, which=slice(0, _N_TRIALS))
        trial.run()
        if (loss := _held_out_loss(trial.members)) <= most:
            most, best = loss, (trial.members, task)
    if best is None:
        return None
    members, task = best
    rest = start(task, which=slice(_N_TRIALS, None))
    rest.run()
    return [*members, *rest.members], task


def _held_out_loss(members: Sequence[Member]) -> float:
    return fsum(min(member.held_out_curve) for member in members)


def _with_combined_columns(
    settings: BoostingSettings, recipe: Recipe, rounds: Rounds, task: Task, start: StartOnFolds
) -> list[Task]:
    """Return the task with the most important combinations of numbers, and with the most important crosses as well.

    They are chosen by the splits of a short booster with all combinations of the most important columns, which does not
    read the rows of the first fold.
    """
    schema, rows, found = task.schema, task.rows, list[Task]()
    of_columns = rounds.make_model(rounds.members[0].trees()).importances(schema.n_features)
    short = replace(recipe, n_rounds=min(TRIAL_ROUNDS, recipe.n_rounds))
    retained: list[Pair] = []
    for candidates in automatic_pairs(schema, of_columns):
        if not candidates:
            continue
        pool = Combinations.of_pairs(rows.columns, rows.weight, [*retained, *candidates])
        of_all = task.with_columns(schema.with_pool(pool))
        trial = start(settings, short, of_all, which=slice(0, 1))
        trial.run()
        n_before = len(pool.plain) + len(retained)
        importances = of_all.model(trial.members[0].trees()).importances(pool.n_split_columns)
        if chosen := most_important(importances[n_before:]):
            pool = pool.only([*range(len(retained)), *(len(retained) + k for k in chosen)])
            retained = pool.pairs
            found.append(task.with_columns(schema.with_pool(pool)))
    return found
