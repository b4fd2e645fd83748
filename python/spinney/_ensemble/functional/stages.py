"""Forward stagewise fitting: one step after the other, each down the slope of the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.member import Member
from spinney._boosting.rounds import Rounds
from spinney._ensemble.functional.dictionary import Dictionary
from spinney._ensemble.functional.line_search import least_along
from spinney._ensemble.functional.losses import FunctionalLoss
from spinney._model.functional.steps import Inputs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that rounds are evaluated by, and their inputs where they are rows of another table."""

    rows: LearningRows
    inputs: Inputs | None


@dataclass(frozen=True)
class StepSettings:
    """How steps are taken: their rate, whether their length is searched for, the fraction of rows drawn, the seed."""

    learning_rate: float
    searches: bool
    subsample: float
    seed: int


class Stages:
    """The steps of one fit, as `Rounds` runs them.

    Attributes
    ----------
    part_of : list of lists of int
        Learner chosen in each round for each score.
    factors : list of lists of float
        What its function is multiplied by: learning rate times step.
    steps, gains : list of float
        Step of each round before the learning rate, and squared slopes that its functions explain.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        loss: FunctionalLoss,
        rows: LearningRows,
        held_out: HeldOutRows | None,
        start: Floats,
        settings: StepSettings,
    ) -> None:
        self.dictionary, self._loss, self._rows = dictionary, loss, rows
        self.start, self._settings = start, settings
        self._random = np.random.RandomState(settings.seed)
        self.scores = np.repeat(start[:, np.newaxis], len(rows.target), axis=1)
        self.held_out = held_out
        self._own_scores: Floats | None = None
        if held_out is not None and held_out.inputs is not None:
            self._own_scores = np.repeat(start[:, np.newaxis], len(held_out.rows.target), axis=1)
        self.part_of: list[list[int]] = []
        self.factors: list[list[float]] = []
        self.steps: list[float] = []
        self.gains: list[float] = []

    @property
    def weight(self) -> Floats:
        """Weights of the rows learned from."""
        return self._rows.weights()

    @property
    def n_rounds(self) -> int:
        """Rounds done."""
        return len(self.steps)

    @property
    def is_done(self) -> bool:
        """Whether the last step could not lower the loss at all."""
        return bool(self.steps) and self.steps[-1] == 0.0

    def advance(self, n_rounds: int) -> None:
        """Take some steps."""
        for _ in range(n_rounds):
            self._take_step()

    def _take_step(self) -> None:
        loss, rows = self._loss, self._rows
        loss.begin_round(self.scores, rows)
        weight = self._round_weights()
        slopes = loss.slopes(self.scores, rows)
        chosen = [self.dictionary.best(-slope, weight) for slope in slopes]
        directions = np.array([choice.candidate.values for choice in chosen])
        step = self._step(directions, weight) if self._settings.searches else 1.0
        factor = self._settings.learning_rate * step
        for k, choice in enumerate(chosen):
            choice.candidate.add()
            self._move_held_out(k, choice.part, factor)
        self.scores = self.scores + factor * directions
        self.part_of.append([choice.part for choice in chosen])
        self.factors.append([factor] * len(chosen))
        self.gains.append(float(sum(choice.gain for choice in chosen)))
        self.steps.append(step)  # last: an interruption before it leaves the round undone

    def _round_weights(self) -> Floats:
        """Weights of a round's rows; those that are not drawn have weight 0."""
        weight = self._rows.weights()
        if self._settings.subsample == 1:
            return weight
        used = np.flatnonzero(weight > 0)
        drawn = self._random.choice(used, max(1, round(self._settings.subsample * len(used))), replace=False)
        found = np.zeros(len(weight))
        found[drawn] = weight[drawn]
        return found

    def _step(self, directions: Floats, weight: Floats) -> float:
        def slope(step: float) -> float:
            slopes = self._loss.slopes(self.scores + step * directions, self._rows)
            return float(((slopes * directions).sum(axis=0) * weight).sum())

        return least_along(slope, 1.0)

    def _move_held_out(self, score: int, part: int, factor: float) -> None:
        """Add the last step of a learner to a score of the held-out rows, if these are rows of their own."""
        if self.held_out is not None and self.held_out.inputs is not None and self._own_scores is not None:
            steps = self.dictionary.fitters[part].steps
            self._own_scores[score] += factor * steps.values(self.held_out.inputs, len(steps) - 1)

    # ---- losses ----------------------------------------------------------------------------------------------

    def training_loss(self) -> float:
        """Mean loss of the rows learned from."""
        return self._loss.mean(self.scores, self._rows)

    def held_out_scores(self) -> Floats:
        """Scores of the held-out rows, (n_scores, n_rows)."""
        return self.scores if self._own_scores is None else self._own_scores

    def held_out_loss(self) -> float:
        """Mean loss of the held-out rows."""
        assert self.held_out is not None
        return self._loss.mean(self.held_out_scores(), self.held_out.rows)


class FunctionMember(Member):
    """The one booster of a fit: it ends as well where no function lowers the loss any more."""

    engine: Stages  # type: ignore[assignment]

    @property
    def is_settled(self) -> bool:
        """Whether its held-out loss no longer falls, or none could."""
        return super().is_settled or (self._recipe.stops_early and self.has_held_out and self.engine.is_done)

    def _out_of_bag(self) -> tuple[float, float]:
        return np.nan, np.nan  # rows that a round does not draw are not judged


class FunctionRounds(Rounds):
    """Rounds of functional boosting."""

    def _advance(self, members: list[Member], looks_at_each: bool) -> None:
        for member in members:
            member.engine.advance(1)
