"""A booster of a fit, with its learning curves; a fit has one, or one for each fold, whose trees are added up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.boosters import Statistic
from spinney._boosting.evaluation import Judge, SoFar
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import CustomLosses, Loss
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import RoundSettings
from spinney._data.types import Floats

Losses = Sequence[float]  # of rows learned from, held out, and out of bag before and after
CURVES = {  # learning curves, and what stands for rounds of an earlier fit that did not record one
    "train_score_": None,
    "validation_score_": None,
    "oob_scores_": np.nan,
    "oob_improvement_": 0.0,
    "scales_": np.nan,
}
_FOR_EVER = 2**32 - 1  # rounds


class Member:
    """A booster, and what its rounds have done for the rows it learns from and those held out.

    Attributes
    ----------
    curves : dict of list of float
        Learning curves, by the names that attributes of a model have.
    """

    def __init__(
        self,
        settings: RoundSettings,
        recipe: Recipe,
        engine: _engine.Boosting,
        has_held_out: bool,
        judge: Judge | None,
        statistics: Sequence[Statistic] = (),
        outside: CustomLosses | None = None,
    ) -> None:
        self._settings, self._recipe, self._judge = settings, recipe, judge
        self.statistics, self.outside = list(statistics), outside
        self.engine, self.has_held_out = engine, has_held_out
        self.curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self._n_unknown = 0, 0
        self._n_read = 0  # rounds of the engine whose losses are noted
        self.settling = _engine.Settling(
            patience=min(int(recipe.patience), _FOR_EVER) if recipe.stops_early else 0,
            tol=float(settings.tol),
            worth=recipe.worth,
            of_present=recipe.worth_of_present,
        )
        self._kept_scores = np.empty((0, 0))  # of the held-out rows, after the best round, where Python evaluates

    @property
    def train_curve(self) -> list[float]:
        """Losses of the rows that are learned from."""
        return self.curves["train_score_"]

    @property
    def held_out_curve(self) -> list[float]:
        """Losses of the rows held out."""
        return self.curves["validation_score_"]

    def resume(self, n_done: int, known: Mapping[str, Any]) -> None:
        """Take over the curves of an earlier fit's rounds."""
        scaled = None if self.outside is None or self.outside.learning.scale is None else self.outside.learning
        is_used = {"validation_score_": self.has_held_out, "scales_": scaled is not None}
        for name, unknown in CURVES.items():
            curve = list(known.get(name, []))[:n_done]
            curve = curve if len(curve) == n_done else [] if unknown is None else [unknown] * n_done
            self.curves[name] = curve if is_used.get(name, True) else []
        for loss in self.held_out_curve:
            self.settling.add(loss)
        if scaled is not None and n_done and math.isfinite(self.curves["scales_"][-1]):
            scaled.scale = self.curves["scales_"][-1]
        self._n_unknown = n_done - len(self.train_curve), n_done - len(self.held_out_curve)

    @property
    def n_done(self) -> int:
        """Rounds, those of an earlier fit included."""
        return self.engine.n_rounds

    def trees(self, factors: Floats | None = None, n_rounds: int | None = None) -> list[_engine.Tree]:
        """Return the trees, of the table's own columns alone, with values times the factor of their score.

        Those of the first `n_rounds` that this booster has done, as they were after these; all if it is None.
        """
        return self.engine.trees(0, [] if factors is None else factors.tolist(), self.statistics, n_rounds)

    def prepare(self) -> None:
        """Pass the gradients of the next round to an engine that does not know the loss."""
        if self.outside is not None and self.engine.n_rounds % self._settings.n_parallel_trees == 0:
            drops = self._settings.drop_rate > 0
            scores = self.engine.scores_to_fit() if drops else self.engine.scores()
            self.engine.set_gradients(*self.outside.gradients(scores))

    @property
    def is_settled(self) -> bool:
        """Whether its held-out loss no longer falls."""
        return self._recipe.stops_early and self.settling.is_settled

    @property
    def has_out_of_bag(self) -> bool:
        """Whether the rows that a round does not draw evaluate it."""
        changes = self._settings.drop_rate > 0  # what earlier rounds have done
        return self._recipe.subsample < 1 and not self._settings.draws_by_gradient and not changes

    @property
    def is_evaluated_by_engine(self) -> bool:
        """Whether several rounds may be done before anybody looks at them."""
        return self._judge is None and self.outside is None and isinstance(self.engine, _engine.Boosting)

    @property
    def best_scores(self) -> Floats:
        """Scores of the held-out rows after the best round, (n_scores, n_rows); noted for folds alone."""
        if self.is_evaluated_by_engine or not isinstance(self.engine, _engine.Boosting):
            return self.engine.best_scores()
        return self._kept_scores

    def record(self, so_far: SoFar) -> None:
        """Note the losses of the rounds done since, whatever has ended them."""
        for row in self._unread().tolist():
            losses: Losses = row
            if self.outside is not None:
                losses = self.outside.losses(self.engine, self.has_out_of_bag)
                if self.outside.learning.scale is not None:
                    self.curves["scales_"].append(self.outside.learning.scale)
            self._record(losses, so_far)
            self._n_read += 1

    def _unread(self) -> Floats:
        if isinstance(self.engine, _engine.Boosting):
            return self.engine.round_losses(self._n_read)
        is_read = len(self.train_curve) + self._n_unknown[0] == self.n_done
        return np.empty((0, 4)) if is_read else np.array([self.losses()])  # its rows are on workers

    def _record(self, losses: Losses, so_far: SoFar) -> None:
        training, held_out, before, after = losses
        self.train_curve.append(self._finite(training, "training"))
        if self._recipe.subsample < 1:
            self.curves["oob_scores_"].append(after)
            self.curves["oob_improvement_"].append(before - after if math.isfinite(after) else 0.0)
        if self.has_held_out:
            loss = self._evaluated(so_far) if self._judge else self._finite(held_out, "held-out")
            self.held_out_curve.append(loss)
            if not self.is_evaluated_by_engine:
                self._settle(loss)

    def _settle(self, loss: float) -> None:
        self.settling.add(loss)
        if not self.settling.is_best or not self._recipe.n_folds:
            return
        if isinstance(self.engine, _engine.Boosting):
            self._kept_scores = self.engine.held_out_scores()
        else:  # its rows are on workers
            self.engine.keep_scores()

    def losses(self) -> Losses:
        """Losses at the present scores, as `record` takes them."""
        held_out = self.engine.held_out_loss() if self.has_held_out else np.nan
        return (self.engine.training_loss(), held_out, *self.engine.out_of_bag_loss())

    def n_kept(self) -> int:
        """Return the number of rounds up to the best one, if asked for; else of all."""
        if self.held_out_curve and self._recipe.stops_early and self._settings.keep_best:
            return int(np.argmin(self.held_out_curve)) + 1 + self._n_unknown[1]
        return self.n_done

    def kept_scores(self) -> Floats:
        """Scores of the held-out rows after the rounds that are kept, (n_scores, n_rows)."""
        return self.best_scores if self._settings.keep_best else self.engine.held_out_scores()

    def _evaluated(self, so_far: SoFar) -> float:
        assert self._judge is not None
        loss = self._judge(self.engine.held_out_scores().T, so_far)
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
                f"learning_rate={self._recipe.learning_rate}, or limit the steps with max_step in regularization."
            )
        return loss


def in_turns(lengths: Sequence[int]) -> NDArray[np.intp]:
    """Member and round, (n_rounds, 2), of each round of their sum: the first of each, the second of each, and so on."""
    members = np.repeat(np.arange(len(lengths)), lengths)
    rounds = np.concatenate([np.arange(length) for length in lengths])
    order = np.lexsort((members, rounds))
    return np.column_stack((members[order], rounds[order]))


def mean_curve(curves: Sequence[Sequence[float]], turns: NDArray[np.intp]) -> Floats:
    """Mean of the members' curves after each of the rounds that they take in turns.

    A member that has not had its turn counts with its first round.
    """
    last = np.empty((len(turns), len(curves)))
    for m, curve in enumerate(curves):
        last[:, m] = np.asarray(curve)[np.maximum(np.cumsum(turns[:, 0] == m) - 1, 0)]
    return np.asarray(last.mean(axis=1))


def sum_in_turns(members: Sequence[Member], factors: Floats) -> list[_engine.Tree] | _engine.Additive:
    """Trees of all members, in turns, each worth its share of the mean times the factor of its score."""
    n_kept, shares = [member.n_kept() for member in members], factors / len(members)
    engines = [member.engine for member in members]
    if all(isinstance(engine, _engine.Boosting) for engine in engines):
        return _engine.add_up_in_turns(engines, shares.tolist(), [member.statistics for member in members], n_kept)
    trees, n_scores = [member.trees(shares, n) for member, n in zip(members, n_kept, strict=True)], len(factors)
    return [trees[m][r * n_scores + k] for m, r in in_turns(n_kept).tolist() for k in range(n_scores)]


_STEPS = 32  # to a factor of 1
_MOST = 48
_MANY = 20_000  # rows are enough to tell one factor from another
_DOUBT = 200  # rows that speak for a factor of 1


def best_factors(
    members: Sequence[Member], held_out: Sequence[LearningRows], targets: Floats, first: Floats, loss: Loss
) -> Floats:
    """Factors of the trees, by score, with the least loss of the rows that each member has held out.

    Those of a part of the loss share one. Drawn towards 1 where rows are few. Losses are convex in it, so that one step
    after the other finds it.

    Parameters
    ----------
    members : sequence of Member
        Boosters that hold the held-out scores of their best rounds.
    held_out : sequence of LearningRows
        The rows that each has held out.
    targets : ndarray of shape (n_parts, n_rows)
        Targets as the engine sees them.
    first : ndarray of shape (n_scores, n_rows)
        Scores before the first tree.
    loss : Loss
        The loss.

    Returns
    -------
    ndarray of shape (n_scores,)
        The factors, at least 0.
    """
    base, trees, targets, weight = _together(members, held_out, targets, first)
    found: list[float] = []
    for part, target in zip(loss.parts, targets, strict=True):
        mine = slice(len(found), len(found) + part.n_scores)
        found += [_best_factor(base[mine], trees[mine], target, weight, part)] * part.n_scores
    return np.array(found)


def _best_factor(base: Floats, trees: Floats, target: Floats, weight: Floats, part: Loss) -> float:
    """Factor of the scores of one part."""
    alone, targets = replace(part, weight=1.0), np.ascontiguousarray(target)[np.newaxis]

    def loss_at(step: int) -> float:
        losses = alone.values(targets, base + step / _STEPS * trees, weight)
        return fsum((weight * losses).tolist())

    here, least = _STEPS, loss_at(_STEPS)
    for way in (1, -1):
        while 0 <= here + way <= _MOST and (there := loss_at(here + way)) < least:
            here, least = here + way, there
        if here != _STEPS:
            break
    n = len(weight)
    return 1 + (here / _STEPS - 1) * n / (n + _DOUBT)


def _together(
    members: Sequence[Member], held_out: Sequence[LearningRows], targets: Floats, first: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Scores before the first tree, what the trees add, (n_scores, n_rows), targets and weights, of all folds."""
    total = sum(rows.n_used for rows in held_out)
    step = -(-total // _MANY)
    chosen = [np.flatnonzero(rows.weights() > 0)[::step] for rows in held_out]
    base = np.concatenate([first[:, rows] for rows in chosen], axis=1)
    found = np.concatenate([m.best_scores[:, rows] for m, rows in zip(members, chosen, strict=True)], axis=1)
    weight = np.concatenate([part.weights()[rows] for part, rows in zip(held_out, chosen, strict=True)])
    return base, found - base, np.concatenate([targets[:, rows] for rows in chosen], axis=1), weight
