"""The boosters of a fit: what they learn from, how each is started, and its learning curves.

A fit has one booster, or one for each fold; the trees of several are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.evaluation import CurrentModel, HeldOutMetric
from spinney._boosting.learning_rows import LearningRows, store_with_table
from spinney._boosting.loss import CustomLosses, Loss
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import RoundSettings
from spinney._boosting.target_encoding import CategoryEncoding, high_cardinality_columns, target_encoded_tables
from spinney._boosting.task import Task
from spinney._data.types import Floats
from spinney._estimator.greedy import select
from spinney._model.boosting import FittedBoosting

Losses = Sequence[float]  # of the training and held-out rows, and of out-of-bag rows before and after the round
CURVES = {  # learning curves, with the value for rounds of an earlier fit that has not recorded one
    "train_score_": None,
    "validation_score_": None,
    "oob_scores_": np.nan,
    "oob_improvement_": 0.0,
    "scales_": np.nan,
}
_NO_LIMIT = 2**32 - 1  # rounds


# ---- starting a booster --------------------------------------------------------------------------------------


def booster_tables(recipe: Recipe, task: Task) -> list[tuple[_engine.Table, list[CategoryEncoding]]]:
    """Return the table of each booster, and the encodings of categories that are its last columns."""
    rows, splits, loss = task.rows, task.splits, task.loss
    if recipe.has_codes:
        return [_with_codes(rows.columns)] * len(splits)
    if len(splits) == 1 or not recipe.target_encoding or not high_cardinality_columns(rows.columns):
        return [(rows.columns, [])] * len(splits)
    scores = rows.scores(task.start)
    if loss.custom is not None:
        gradients, _ = loss.custom(rows).gradients(scores)
    else:
        gradients = loss.row_gradients(rows.target, scores, rows.weights())
    held_out = [held for _, held in splits]
    return target_encoded_tables(rows, -gradients[0], held_out, task.boosters_per_repeat)


def _with_codes(columns: _engine.Table) -> tuple[_engine.Table, list[CategoryEncoding]]:
    """Return a table with the codes of all categories as numbers at its end; missing and unknown ones come first."""
    table, encodings = columns.copy(), list[CategoryEncoding]()
    for j in range(columns.n_columns):
        if n := columns.n_categories(j):
            values = np.asarray(columns.column(j), dtype=np.float64)
            table.add_number(np.where(values < n, values, -1.0))
            encodings.append((j, np.arange(n, dtype=np.float64), -1.0, -1.0))
    return table, encodings


def bin_weights(recipe: Recipe, rows: LearningRows, seed: int) -> Floats | None:
    """Return the row weights for the bin edges; random, if each booster has its own bins."""
    if not recipe.random_bins:
        return rows.weight
    return rows.weights() * (0.01 + np.random.RandomState(seed % 2**31).random_sample(len(rows.target)))


def binned_table(columns: Any, weight: Floats | None, options: dict[str, Any]) -> Any:
    """Return a binned table, for boosters that learn from different rows of it."""
    if not isinstance(columns, _engine.Table):  # rows on workers
        return columns.learn_bins(weight, options)
    return _engine.CodedTable(columns, weight, _engine.BoostingOptions(**options))


def start_booster(
    columns: Any,
    rows: LearningRows,
    held_out: LearningRows | None,
    loss: Loss,
    start: Floats,
    earlier: FittedBoosting | None,
    options: dict[str, Any],
    binned: Any,
    n_threads: int,
) -> Any:
    """Return a booster of these columns; it continues an earlier model, if there is one."""
    if not isinstance(columns, _engine.Table):  # rows on workers
        return columns.start_booster(rows, held_out, loss, start, earlier, options, binned)
    validation = None
    if held_out is not None:
        target, scores = loss.centred(held_out, start)
        table = columns if held_out.columns is rows.columns else held_out.columns
        validation = (table, target, held_out.weight, scores_after(earlier, held_out, scores, n_threads))
    target, scores = loss.centred(rows, start)
    target = target if np.shares_memory(target, rows.target) else store_with_table(columns, target)
    scores = scores_after(earlier, rows, scores, n_threads)
    n_done = 0 if earlier is None else earlier.n_rounds
    engine_options = _engine.BoostingOptions(**options)
    return _engine.Boosting(columns, target, rows.weight, scores, validation, engine_options, n_done, binned)


def scores_after(earlier: FittedBoosting | None, rows: LearningRows, scores: Floats, n_threads: int) -> Floats:
    """Add the trees of an earlier model to initial scores, (n_scores, n_rows), in the order they were grown."""
    if earlier is None:
        return scores
    for round_ in range(earlier.n_rounds):
        scores += earlier.round_sums(rows.columns, round_, n_threads).T
    return np.ascontiguousarray(scores)


# ---- one booster ---------------------------------------------------------------------------------------------


class Member:
    """One booster, its learning curves, and its early stopping.

    Attributes
    ----------
    curves : dict of list of float
        Learning curves, by the names of the fitted attributes, on the scale of `Loss.reported_factor`.
    """

    def __init__(
        self,
        settings: RoundSettings,
        recipe: Recipe,
        engine: _engine.Boosting,
        has_held_out: bool,
        metric: HeldOutMetric | None,
        encodings: Sequence[CategoryEncoding] = (),
        custom: CustomLosses | None = None,
        loss_factor: float = 1.0,
    ) -> None:
        self._settings, self._recipe, self._metric = settings, recipe, metric
        self._loss_factor = loss_factor
        self._held_out_factor = loss_factor if metric is None else 1.0
        self.encodings, self.custom = list(encodings), custom
        self.engine, self.has_held_out = engine, has_held_out
        self.curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self._n_unrecorded = 0, 0  # earlier rounds without a training loss, and without a held-out loss
        self._n_recorded = 0  # rounds of the engine whose losses are recorded
        self.early_stopping = _engine.EarlyStopping(
            patience=min(int(recipe.patience), _NO_LIMIT) if recipe.stops_early else 0,
            tol=float(settings.tol),
            min_relative_decrease=recipe.min_improvement,
            of_best=recipe.relative_to_current,
        )
        self._best_scores = np.empty((0, 0))  # of the held-out rows after the best round, if Python evaluates

    @property
    def train_curve(self) -> list[float]:
        """Training losses."""
        return self.curves["train_score_"]

    @property
    def held_out_curve(self) -> list[float]:
        """Losses of the held-out rows."""
        return self.curves["validation_score_"]

    def resume(self, n_done: int, known: Mapping[str, Any]) -> None:
        """Take over the learning curves of an earlier fit."""
        scaled = None if self.custom is None or self.custom.training.scale is None else self.custom.training
        draws = self._recipe.subsample < 1
        is_used = {"validation_score_": self.has_held_out, "scales_": scaled is not None}
        is_used |= {"oob_scores_": draws, "oob_improvement_": draws}
        for name, unknown in CURVES.items():
            curve = list(known.get(name, []))[:n_done]
            curve = curve if len(curve) == n_done else [] if unknown is None else [unknown] * n_done
            self.curves[name] = curve if is_used.get(name, True) else []
        for loss in self.held_out_curve:
            self.early_stopping.add(loss / self._held_out_factor)
        if scaled is not None and n_done and math.isfinite(self.curves["scales_"][-1]):
            scaled.scale = self.curves["scales_"][-1]
        self._n_unrecorded = n_done - len(self.train_curve), n_done - len(self.held_out_curve)

    @property
    def n_done(self) -> int:
        """Number of rounds, those of an earlier fit included."""
        return self.engine.n_rounds

    def trees(self, factors: Floats | None = None, n_rounds: int | None = None) -> list[_engine.Tree]:
        """Return the trees of the first rounds (all if None), with values multiplied by the factor of their score.

        Splits of target encodings are turned into splits of categories.
        """
        return self.engine.trees(0, [] if factors is None else factors.tolist(), self.encodings, n_rounds)

    def set_gradients(self) -> None:
        """Pass the gradients of the next round to the engine, if the loss is custom."""
        if self.custom is not None and self.engine.n_rounds % self._settings.n_parallel_trees == 0:
            drops = self._settings.drop_rate > 0
            scores = self.engine.scores_to_fit() if drops else self.engine.scores()
            self.engine.set_gradients(*self.custom.gradients(scores))

    @property
    def has_stopped(self) -> bool:
        """Whether its held-out loss no longer improves."""
        return self._recipe.stops_early and self.early_stopping.is_stopped

    @property
    def has_out_of_bag(self) -> bool:
        """Whether rounds are evaluated on the rows that they have not drawn."""
        drops = self._settings.drop_rate > 0  # a round then changes earlier ones
        return self._recipe.subsample < 1 and not self._settings.draws_by_gradient and not drops

    @property
    def is_evaluated_by_engine(self) -> bool:
        """Whether the engine may run several rounds without returning to Python."""
        return self._metric is None and self.custom is None and isinstance(self.engine, _engine.Boosting)

    @property
    def best_scores(self) -> Floats:
        """Scores of the held-out rows after the best round, (n_scores, n_rows); recorded for folds only."""
        if self.is_evaluated_by_engine or not isinstance(self.engine, _engine.Boosting):
            return self.engine.best_scores()
        return self._best_scores

    def record(self, current_model: CurrentModel) -> None:
        """Record the losses of the rounds that were added since the last call."""
        for row in self._new_losses().tolist():
            losses: Losses = row
            if self.custom is not None:
                losses = self.custom.losses(self.engine, self.has_out_of_bag)
                if self.custom.training.scale is not None:
                    self.curves["scales_"].append(self.custom.training.scale)
            self._record_round(losses, current_model)
            self._n_recorded += 1

    def _new_losses(self) -> Floats:
        if isinstance(self.engine, _engine.Boosting):
            return self.engine.round_losses(self._n_recorded)
        is_recorded = len(self.train_curve) + self._n_unrecorded[0] == self.n_done
        return np.empty((0, 4)) if is_recorded else np.array([self.losses()])  # rows on workers

    def _record_round(self, losses: Losses, current_model: CurrentModel) -> None:
        training, held_out, before, after = (self._loss_factor * loss for loss in losses)
        self.train_curve.append(self._finite(training, "training"))
        if self._recipe.subsample < 1:
            self.curves["oob_scores_"].append(after)
            self.curves["oob_improvement_"].append(before - after if math.isfinite(after) else 0.0)
        if self.has_held_out:
            loss = self._evaluate(current_model) if self._metric else self._finite(held_out, "held-out")
            self.held_out_curve.append(loss)
            if not self.is_evaluated_by_engine:
                self._update_early_stopping(loss)

    def _update_early_stopping(self, loss: float) -> None:
        self.early_stopping.add(loss / self._held_out_factor)
        if not self.early_stopping.is_best or not self._recipe.n_folds:
            return
        if isinstance(self.engine, _engine.Boosting):
            self._best_scores = self.engine.held_out_scores()
        else:  # rows on workers
            self.engine.save_best_scores()

    def losses(self) -> Losses:
        """Return the losses at the current scores, as `Losses` has them."""
        held_out = self.engine.held_out_loss() if self.has_held_out else np.nan
        return (self.engine.training_loss(), held_out, *self.engine.out_of_bag_loss())

    def n_retained(self) -> int:
        """Return the number of rounds of the model: up to the best one with `keep_best`, else all."""
        if self.held_out_curve and self._recipe.stops_early and self._settings.keep_best:
            return int(np.argmin(self.held_out_curve)) + 1 + self._n_unrecorded[1]
        return self.n_done

    def retained_scores(self) -> Floats:
        """Return the scores of the held-out rows after the retained rounds, (n_scores, n_rows)."""
        return self.best_scores if self._settings.keep_best else self.engine.held_out_scores()

    @property
    def parts(self) -> list[tuple[float, Member]]:
        """The booster alone, with weight 1."""
        return [(1.0, self)]

    @property
    def chooses_rounds(self) -> bool:
        """Whether its held-out rows choose its rounds, and its first trees are those of an earlier round."""
        stops = bool(self.held_out_curve) and self._recipe.stops_early and self._settings.keep_best
        return stops and self._settings.drop_rate == 0 and isinstance(self.engine, _engine.Boosting)

    def _evaluate(self, current_model: CurrentModel) -> float:
        assert self._metric is not None
        loss = self._metric(self.engine.held_out_scores().T, current_model)
        if not np.isfinite(loss):
            raise ValueError(
                f"scoring={self._settings.metrics[0]!r} gives {-loss} after round {self.n_done}, which cannot be "
                "compared with other rounds. Use another metric, or hold out more rows."
            )
        return loss

    def _finite(self, loss: float, rows: str) -> float:
        if not math.isfinite(loss):
            raise ValueError(
                f"Boosting has diverged: after round {self.n_done} the loss of the {rows} rows is {loss}. Lower "
                f"learning_rate={self._recipe.learning_rate}, or limit leaf values with max_step in regularization."
            )
        return loss


class HoldsOut(Protocol):
    """A booster, or a blend of boosters that hold out the same rows."""

    @property
    def best_scores(self) -> Floats:
        """Scores of the held-out rows after the best round, (n_scores, n_rows)."""

    def retained_scores(self) -> Floats:
        """Return the scores of the held-out rows after the retained rounds, (n_scores, n_rows)."""

    @property
    def parts(self) -> list[tuple[float, Member]]:
        """Weights and boosters."""


@dataclass(frozen=True)
class MemberBlend:
    """The weighted mean of boosters of several recipes that hold out the same rows."""

    members: Sequence[Member]
    weights: Floats

    @property
    def best_scores(self) -> Floats:
        """Scores of the held-out rows after the best rounds."""
        return self.retained_scores()

    def retained_scores(self) -> Floats:
        """Return the scores of the held-out rows after the retained rounds."""
        return np.asarray(np.add.reduce([weight * member.best_scores for weight, member in self.parts]))

    @property
    def parts(self) -> list[tuple[float, Member]]:
        """Weights and boosters."""
        return list(zip(self.weights.tolist(), self.members, strict=True))


def rounds_of_others(members: Sequence[Member]) -> list[int]:
    """Return, for the booster of each fold, the rounds with the least total held-out loss of the other boosters."""
    n_rounds = max(len(member.held_out_curve) for member in members)
    curves = [member.held_out_curve + member.held_out_curve[-1:] * n_rounds for member in members]
    losses = np.array([curve[:n_rounds] for curve in curves])
    best = [int(np.argmin(np.delete(losses, k, axis=0).sum(axis=0))) + 1 for k in range(len(members))]
    return [min(n, member.n_done) for n, member in zip(best, members, strict=True)]


# ---- the mean of several -------------------------------------------------------------------------------------


def round_robin(n_rounds: Sequence[int]) -> NDArray[np.intp]:
    """Return member and round, (n, 2), of each round of the mean: all first rounds, all second ones, and so on."""
    members = np.repeat(np.arange(len(n_rounds)), n_rounds)
    rounds = np.concatenate([np.arange(n) for n in n_rounds])
    order = np.lexsort((members, rounds))
    return np.column_stack((members[order], rounds[order]))


def mean_curve(curves: Sequence[Sequence[float]], order: NDArray[np.intp], weights: Floats) -> Floats:
    """Return the weighted mean of the members' curves after each round of `round_robin`.

    A member counts with its first round until the mean holds a round of it.
    """
    last = np.empty((len(order), len(curves)))
    for m, curve in enumerate(curves):
        last[:, m] = np.asarray(curve)[np.maximum(np.cumsum(order[:, 0] == m) - 1, 0)]
    return np.asarray((last * weights).sum(axis=1))


def mean_of_trees(members: Sequence[Member], weights: Floats, factors: Floats) -> list[_engine.Tree] | _engine.Additive:
    """Return the trees whose sum is the weighted mean of members times factors by score, in `round_robin` order."""
    n_rounds, by_member = [member.n_retained() for member in members], [factors * weight for weight in weights]
    engines = [member.engine for member in members]
    if all(isinstance(engine, _engine.Boosting) for engine in engines):
        encodings = [member.encodings for member in members]
        return _engine.interleave_rounds(engines, [of_one.tolist() for of_one in by_member], encodings, n_rounds)
    trees = [member.trees(of_one, n) for member, of_one, n in zip(members, by_member, n_rounds, strict=True)]
    n_scores = len(factors)
    return [trees[m][r * n_scores + k] for m, r in round_robin(n_rounds).tolist() for k in range(n_scores)]


_N_SELECTED = 24  # weights of a blend are multiples of 1 / n, for an n up to this


def blend_weights(
    teams: Sequence[Sequence[Member]],
    held_out: Sequence[LearningRows],
    targets: Floats,
    start: Floats,
    loss: Loss,
) -> Floats:
    """Return the weights of recipes by greedy selection on out-of-fold scores.

    `teams` are the boosters of each recipe, one for each fold; the others are as in `best_tree_factors`.
    """
    arrays = [_held_out_arrays(team, held_out, targets, start) for team in teams]
    base, _, target, weight = arrays[0]
    (part,) = loss.parts
    counts = select(_total_loss(base, target[0], weight, part), np.stack([one[1] for one in arrays]), _N_SELECTED)
    return np.asarray(counts / counts.sum())


_STEPS_TO_ONE, _MOST_STEPS = 32, 48  # candidate factors are multiples of 1/32, up to 48/32
_MANY_ROWS = 20_000  # enough to choose a factor
_PRIOR_ROWS = 200  # rows by which a factor is shrunk towards 1


def best_tree_factors(
    members: Sequence[HoldsOut], held_out: Sequence[LearningRows], targets: Floats, start: Floats, loss: Loss
) -> Floats:
    """Return the factors of the trees, by score, that minimise the out-of-fold loss, shrunk towards 1.

    Parameters
    ----------
    members : sequence of HoldsOut
        Boosters, or blends of boosters, with the held-out scores of their best rounds.
    held_out : sequence of LearningRows
        The held-out rows of each.
    targets : ndarray of shape (n_parts, n_rows)
        Targets as the engine sees them.
    start : ndarray of shape (n_scores, n_rows)
        Initial scores.
    loss : Loss
        The scores of a part of the loss have the same factor.

    Returns
    -------
    ndarray of shape (n_scores,)
        The factors, at least 0.
    """
    base, trees, targets, weight = _held_out_arrays(members, held_out, targets, start)
    factors: list[float] = []
    for part, target in zip(loss.parts, targets, strict=True):
        scores = slice(len(factors), len(factors) + part.n_scores)
        factors += [_best_factor(base[scores], trees[scores], target, weight, part)] * part.n_scores
    return np.array(factors)


def _best_factor(base: Floats, trees: Floats, target: Floats, weight: Floats, part: Loss) -> float:
    """Return the factor of one part of the loss by a line search from 1, as the loss is convex in it."""
    loss_of = _total_loss(base, target, weight, part)

    def loss_at(step: int) -> float:
        return loss_of(step / _STEPS_TO_ONE * trees)

    best, least = _STEPS_TO_ONE, loss_at(_STEPS_TO_ONE)
    for direction in (1, -1):
        while 0 <= best + direction <= _MOST_STEPS and (loss := loss_at(best + direction)) < least:
            best, least = best + direction, loss
        if best != _STEPS_TO_ONE:
            break
    n = len(weight)
    return 1 + (best / _STEPS_TO_ONE - 1) * n / (n + _PRIOR_ROWS)


def _total_loss(base: Floats, target: Floats, weight: Floats, part: Loss) -> Callable[[Floats], float]:
    """Return the total loss of a sum of trees, (n_scores, n_rows), bit-identical on all platforms."""
    unweighted, targets = replace(part, weight=1.0), np.ascontiguousarray(target)[np.newaxis]

    def loss_of(trees: Floats) -> float:
        return fsum((weight * unweighted.values(targets, base + trees, weight)).tolist())

    return loss_of


def _held_out_arrays(
    members: Sequence[HoldsOut], held_out: Sequence[LearningRows], targets: Floats, start: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return initial scores, sums of trees, (n_scores, n_rows), targets and weights of the held-out rows."""
    step = -(-sum(rows.n_used for rows in held_out) // _MANY_ROWS)
    chosen = [np.flatnonzero(rows.weights() > 0)[::step] for rows in held_out]
    base = np.concatenate([start[:, rows] for rows in chosen], axis=1)
    scores = np.concatenate([m.best_scores[:, rows] for m, rows in zip(members, chosen, strict=True)], axis=1)
    weight = np.concatenate([fold.weights()[rows] for fold, rows in zip(held_out, chosen, strict=True)])
    return base, scores - base, np.concatenate([targets[:, rows] for rows in chosen], axis=1), weight
