"""Rounds of boosting: members are fitted, judged and taken, until there is nothing more to gain.

A `Rule` is the algorithm, and knows neither tables nor members:

    asks()          targets and weights for the members of the next round
    judge(said)     what the round comes to, from what its members say of the training rows
    take(step)      makes the round part of the state

`Rounds` puts a rule and a weak learner together, and remembers.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import warn
from spinney._ensemble.weak import WeakLearner

Floats = NDArray[np.float64]
# why rounds end
PERFECT, CHANCE, SETTLED, DONE = "perfect", "chance", "settled", "done"
REASONS = {
    DONE: "as many rounds as were asked for.",
    PERFECT: "the last member makes no mistake.",
    CHANCE: "the next member would be no better than a guess.",
    SETTLED: "the held-out rows no longer improve.",
}


@dataclass(frozen=True, eq=False)
class Step:
    """What a round comes to.

    Attributes
    ----------
    error : float
        ε: weighted share of the rows that the round's members get wrong.
    weight : float
        α, by which what members say is multiplied.
    factor : float
        Z: by how much the round multiplies the mean loss.
    reach : float
        The most by which the round moves the margin of a training row.
    said : list of ndarray
        What the members say.
    ended : str
        Why this is the last round: `PERFECT`, or `CHANCE`, and then the round itself is worth nothing; "": it is not.
    """

    error: float
    weight: float
    factor: float
    reach: float
    said: list[NDArray[Any]]
    ended: str = ""


class Rule(ABC):
    """The state of a fit between rounds."""

    first_loss: float | None = 1.0  # before the first round; None: there is no loss that rounds multiply

    @abstractmethod
    def asks(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the target and the weights, 1 on average, of each member of the next round."""

    @abstractmethod
    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh a round by what its members say."""

    @abstractmethod
    def take(self, step: Step) -> None:
        """Make a round part of the state."""

    @property
    @abstractmethod
    def training_error(self) -> float | None:
        """Error of all rounds together on the training rows; None if it is not known."""


@dataclass(frozen=True)
class RoundSettings:
    """Parameters of an estimator that its rounds use."""

    n_estimators: int
    early_stopping: bool
    n_iter_no_change: int
    tol: float
    keep_best: bool
    verbose: int
    advice_on_chance: str


@dataclass(frozen=True, eq=False)
class HeldOutRounds:
    """Evaluates rounds by rows that they were not fitted to.

    Attributes
    ----------
    table : table
        The rows, as the weak learner takes them.
    loss : callable
        (what the round's members say, the round's weight) -> loss of all rounds so far.
    """

    table: Any
    loss: Callable[[list[NDArray[Any]], float], float]


class Rounds:
    """The rounds of one fit, and what is remembered of them.

    Attributes
    ----------
    members : list of lists
        By round.
    steps : list of Step
        By round; what members said is dropped.
    train_curve, held_out_curve : list of float
        Error after each round.
    stopped : str
        Why there are no more.
    """

    def __init__(
        self,
        settings: RoundSettings,
        rule: Rule,
        learner: WeakLearner,
        table: Any,
        predict: Callable[[Any, Any], NDArray[Any]],
        held_out: HeldOutRounds | None,
        seeds: np.random.RandomState,
    ) -> None:
        self._settings, self._rule, self._learner, self._table = settings, rule, learner, table
        self._predict, self._held_out, self._seeds = predict, held_out, seeds
        self.members: list[list[Any]] = []
        self.steps: list[Step] = []
        self.train_curve: list[float] = []
        self.held_out_curve: list[float] = []
        self.stopped = DONE

    def run(self) -> None:
        """Boost until the rounds are done, or there is nothing more to gain."""
        began = time.perf_counter()
        try:
            while len(self.steps) < self._settings.n_estimators and self._advance():
                self._report(time.perf_counter() - began)
        finally:
            if self._settings.verbose and self.steps and sys.stderr.isatty():
                print(file=sys.stderr, flush=True)
        if self._settings.verbose and self.stopped != DONE:
            print(f"{len(self.steps)} rounds: {REASONS[self.stopped]}", file=sys.stderr, flush=True)

    def _advance(self) -> bool:
        """Do one round; False if it is the last."""
        largest = np.iinfo(np.int32).max
        members, said = [], []
        for target, weight in self._rule.asks():
            members.append(self._learner.fit(target, weight, int(self._seeds.randint(largest))))
            said.append(self._predict(members[-1], self._table))
        step = self._rule.judge(said)
        if step.ended:
            self.stopped = step.ended
        if step.ended == CHANCE and self.steps:
            return False
        if step.ended == CHANCE:
            warn(
                f"The first member errs on {step.error:.3g} of the weight, no better than a guess, so that there is "
                f"nothing to boost: the model is this member alone. {self._settings.advice_on_chance}"
            )
        self._rule.take(step)
        self.members.append(members)
        self.steps.append(replace(step, said=[]))
        error = self._rule.training_error
        if error is not None:
            self.train_curve.append(error)
        if self._held_out is not None:
            said = [self._predict(member, self._held_out.table) for member in members]
            self.held_out_curve.append(self._held_out.loss(said, step.weight))
            if self._settings.early_stopping and self._has_settled():
                self.stopped = SETTLED
        return self.stopped == DONE

    def _has_settled(self) -> bool:
        curve, patience = self.held_out_curve, int(self._settings.n_iter_no_change)
        if len(curve) <= patience:
            return False
        return min(curve[-patience:]) >= min(curve[:-patience]) - float(self._settings.tol)

    def _report(self, seconds: float) -> None:
        done, wanted = len(self.steps), int(self._settings.n_estimators)
        if not self._settings.verbose:
            return
        parts = [f"round {done} of {wanted}", f"error of the last member {self.steps[-1].error:.4g}"]
        if self.train_curve:
            parts.append(f"of all {self.train_curve[-1]:.4g}")
        if self.held_out_curve:
            parts.append(f"held out {self.held_out_curve[-1]:.4g}")
        line = ", ".join([*parts, f"{seconds / done * (wanted - done):.0f} s left"])
        if sys.stderr.isatty():
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        elif self._settings.verbose > 1 or done == wanted or done % max(1, wanted // 10) == 0:
            print(line, file=sys.stderr, flush=True)

    @property
    def retained(self) -> list[Step]:
        """Rounds of the model: up to the best by the held-out rows, if it stops by them."""
        if self.held_out_curve and self._settings.early_stopping and self._settings.keep_best:
            return self.steps[: int(np.argmin(self.held_out_curve)) + 1]
        return self.steps

    def curves(self) -> dict[str, Floats | str]:
        """Return the fitted attributes that describe the rounds."""
        steps, first = self.retained, self._rule.first_loss
        factors = np.array([step.factor for step in steps])
        found: dict[str, Floats | str] = {
            "estimator_errors_": np.array([step.error for step in steps]),
            "normalizers_": factors,
            "stopped_": self.stopped,
            "_reach": np.array([step.reach for step in steps]),
        }
        if first is not None:
            found["train_losses_"] = first * np.cumprod(factors)
        if self.train_curve:
            found["train_score_"] = np.array(self.train_curve)
        if self._held_out is not None:
            found["validation_score_"] = np.array(self.held_out_curve)
        return found
