"""What AdaBoost asks of each round's members, and what it makes of their answers. No table, no tree, no estimator.

For two classes y = ±1 the scores are f = Σ ηₜ hₜ and the rows' weights are proportional to exp(-y f). Z is the factor
by which a round changes the mean of exp(-y f), so that this mean is the product of all Z, and the training error, which
it bounds, is no larger. Votes of several classes have the same bound, with +1 for right and -1 for wrong in place of
y h.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from spinney._data.display import warn
from spinney._data.reproducible import dot, exp, log, log_sum_exp
from spinney._ensemble.adaboost.members import Members
from spinney._estimator.parallel import Progress
from spinney._model.adaboost import VOTES, ScoreFormula

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
_NOTHING = 1e-12  # a round that changes the loss, or beats a guess, by less than this has learned nothing
_LEAST_WEIGHT, _MOST_VALUE = 1e-10, 4.0  # of working responses (LogitBoost)


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


class ScoresRule(ABC):
    """Of classes: what members say is added up to scores.

    Attributes
    ----------
    formula : ScoreFormula
        How what members say becomes scores.
    scores : ndarray of shape (n_rows, n_scores)
        Of the training rows.
    """

    first_loss: float = 1.0  # before the first round

    def __init__(self, formula: ScoreFormula, codes: Codes, weight: Floats, learning_rate: float) -> None:
        self.formula = formula
        self.scores = np.zeros((len(codes), formula.n_scores))
        self._codes = codes
        self._targets = codes.astype(np.int32)
        self._start: Floats = weight / weight.sum()
        self._weight: Floats = self._start
        self._used = self._start > 0
        self._rate = learning_rate
        # is the class of a column the row's own? 1 if so, else -1; for two classes, of the second alone
        self._signs = np.where(codes[:, np.newaxis] == np.arange(formula.n_classes)[-formula.n_scores :], 1.0, -1.0)

    @property
    def weights(self) -> Floats:
        """Weights of the rows for the next round, which add up to 1; by class where each has members of its own."""
        return self._weight

    def asks(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the target and the weights, 1 on average, of each member of the next round."""
        yield self._targets, per_row(self._weight)

    @abstractmethod
    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh a round by what its members say."""

    @abstractmethod
    def take(self, step: Step) -> None:
        """Make a round part of the state."""

    def added(self, said: list[NDArray[Any]], weight: float) -> Floats:
        """Return what the members of a round add to the scores of some rows, (n_rows, n_scores)."""
        return np.asarray(np.hstack([self.formula.scores(values, weight) for values in said]))

    @property
    def training_error(self) -> float:
        """Share of the training rows, by weight, that are given another class than their own."""
        wrong = self.formula.codes(self.scores) != self._codes
        return float(self._start.take(np.flatnonzero(wrong)).sum())

    def _reach(self, added: Floats) -> float:
        """Most by which the difference between two classes is moved, over the rows that count."""
        moved = added[self._used]
        if moved.shape[1] == 1:
            return 2.0 * float(np.abs(moved).max())
        return float((moved.max(axis=1) - moved.min(axis=1)).max())


def per_row(weight: Floats) -> Floats:
    """Return weights that are 1 on average."""
    return np.ascontiguousarray(weight * (len(weight) / weight.sum()))


class VotesRule(ScoresRule):
    """AdaBoost.M1 and SAMME: members vote for one class."""

    def __init__(self, formula: ScoreFormula, codes: Codes, weight: Floats, learning_rate: float) -> None:
        super().__init__(formula, codes, weight, learning_rate)
        self._total = 0.0
        self._wrong = np.array([], dtype=np.intp)  # rows that the member judged last gets wrong

    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh a member by its error."""
        self._wrong = np.flatnonzero(said[0] != self._codes)
        error = float(self._weight.take(self._wrong).sum())
        guess = 0.5 if self.formula.algorithm == "m1" else 1.0 - 1.0 / self.formula.n_classes
        ended = CHANCE if error > guess - _NOTHING else "" if error > 0 else PERFECT
        if ended == CHANCE:
            weight = 1.0
        elif error > 0:
            prior = 0.0 if self.formula.algorithm == "m1" else float(log(self.formula.n_classes - 1.0))
            weight = self._rate * (float(log((1 - error) / error)) + prior)
        else:
            weight = 1.0 + self._total  # without end, by the theory: it outvotes all others
        factor = (1 - error) * float(exp(-weight / 2)) + error * float(exp(weight / 2))
        return Step(error, weight, factor, weight, said, ended)

    def take(self, step: Step) -> None:
        """Raise the weights of the rows that the member gets wrong."""
        votes = self.formula.scores(np.arange(self.formula.n_classes), step.weight)  # by class
        self.scores += votes.take(step.said[0], axis=0)
        self._total += step.weight
        weight = self._weight.copy()
        weight.put(self._wrong, self._weight.take(self._wrong) * float(exp(step.weight)))
        self._weight = np.divide(weight, weight.sum(), out=weight)


class RealRule(ScoresRule):
    """Real AdaBoost, SAMME.R: members give class probabilities, whose logarithms are added."""

    def _margins(self, added: Floats) -> Floats:
        if self.formula.n_scores == 1:
            return np.asarray((added * self._signs)[:, 0])
        return np.asarray(np.take_along_axis(added, self._codes[:, np.newaxis], axis=1)[:, 0])

    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh a member by what it does to the loss."""
        wrong = np.flatnonzero(said[0].argmax(axis=1) != self._codes)
        error = float(self._weight.take(wrong).sum())
        added = self.added(said, self._rate)
        factor = dot(self._weight, exp(-self._margins(added)))
        ended = CHANCE if factor > 1 - _NOTHING else PERFECT if error == 0 else ""
        return Step(error, self._rate, factor, self._reach(added), said, ended)

    def take(self, step: Step) -> None:
        """Reweight the rows by how sure the member is of their classes."""
        added = self.added(step.said, step.weight)
        self.scores += added
        weight = self._weight * exp(-self._margins(added))
        self._weight = weight / weight.sum()


class GentleRule(ScoresRule):
    """Gentle AdaBoost: members are fitted to y = ±1 by least squares, one for each class if there are several."""

    def __init__(self, formula: ScoreFormula, codes: Codes, weight: Floats, learning_rate: float) -> None:
        super().__init__(formula, codes, weight, learning_rate)
        self._loss = np.repeat(self._start[:, np.newaxis], formula.n_scores, axis=1)  # of each row and class

    @property
    def weights(self) -> Floats:
        """Weights of the rows for the next round."""
        return _columns_to_one(self._loss)

    def asks(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield y = ±1 for each class, with the weights of that class."""
        for k in range(self.formula.n_scores):
            yield self._signs[:, k], per_row(self._loss[:, k])

    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh the members by what they do to the loss."""
        values, signs = np.column_stack(said), self._signs
        wrong = (values * signs <= 0) & (self._loss > 0)
        error = float((self._loss * wrong).sum() / self._loss.sum())
        added = self.added(said, self._rate)
        factor = float((self._loss * exp(-added * signs)).sum() / self._loss.sum())
        ended = CHANCE if factor > 1 - _NOTHING else PERFECT if (values == signs)[self._used].all() else ""
        return Step(error, self._rate, factor, self._reach(added), said, ended)

    def take(self, step: Step) -> None:
        """Reweight the rows by their margins."""
        added = self.added(step.said, step.weight)
        self.scores += added
        self._loss = self._loss * exp(-added * self._signs)


class LogitRule(ScoresRule):
    """LogitBoost: Newton steps of the deviance; members are fitted to working responses by least squares."""

    @property
    def weights(self) -> Floats:
        """Weights of the rows for the next round."""
        return _columns_to_one(self._start[:, np.newaxis] * self._spread(self._shares()))

    @staticmethod
    def _spread(shares: Floats) -> Floats:
        """Variance of each class, kept from 0."""
        return np.maximum(shares * (1.0 - shares), _LEAST_WEIGHT)

    def _shares(self) -> Floats:
        """Probability of each column's class."""
        if self.formula.n_scores == 1:
            return 1.0 / (1.0 + exp(-2.0 * self.scores))
        return exp(self.scores - log_sum_exp(self.scores)[:, np.newaxis])

    @property
    def first_loss(self) -> float:  # type: ignore[override]
        """Mean loss before the first round."""
        return self._loss(np.zeros(self.scores.shape))

    def _loss(self, scores: Floats) -> float:
        """Mean log-loss."""
        if self.formula.n_scores == 1:
            margins = -2.0 * (scores * self._signs)[:, 0]
            return dot(self._start, np.maximum(margins, 0.0) + log(1.0 + exp(-np.abs(margins))))
        own = np.take_along_axis(scores, self._codes[:, np.newaxis], axis=1)[:, 0]
        return dot(self._start, log_sum_exp(scores) - own)

    def asks(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the working responses of each class and their weights."""
        shares, is_own = self._shares(), (self._signs + 1.0) / 2.0
        for k in range(self.formula.n_scores):
            spread = self._spread(shares[:, k])
            response = np.clip((is_own[:, k] - shares[:, k]) / spread, -_MOST_VALUE, _MOST_VALUE)
            yield response, per_row(self._start * spread)

    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh the members by what they do to the deviance."""
        values = np.column_stack(said)
        weight = self._start[:, np.newaxis] * self._spread(self._shares())
        error = float((weight * (values * self._signs <= 0)).sum() / weight.sum())
        added = self.added(said, self._rate)
        before, after = self._loss(self.scores), self._loss(self.scores + added)
        ended = CHANCE if after > before * (1 - _NOTHING) else PERFECT if after < _NOTHING else ""
        return Step(error, self._rate, after / before, self._reach(added), said, ended)

    def take(self, step: Step) -> None:
        """Move the scores."""
        self.scores += self.added(step.said, step.weight)


def _columns_to_one(weight: Floats) -> Floats:
    """Return weights whose columns add up to 1; without columns, if there is one."""
    weight = weight / weight.sum(axis=0)
    return np.asarray(weight[:, 0]) if weight.shape[1] == 1 else weight


def make_rule(formula: ScoreFormula, codes: Codes, weight: Floats, learning_rate: float) -> ScoresRule:
    """Return the rule of an algorithm."""
    kinds: dict[str, type[ScoresRule]] = {"real": RealRule, "gentle": GentleRule, "logit": LogitRule}
    kind = VotesRule if formula.algorithm in VOTES else kinds[formula.algorithm]
    return kind(formula, codes, weight, learning_rate)


class R2Rule:
    """AdaBoost.R2: values; a member's error is its mean loss, each loss being a share of the largest."""

    first_loss = None  # there is no loss that rounds multiply
    training_error = None  # the median of all rounds is not worked out at each of them

    def __init__(self, y: Floats, weight: Floats, loss: str, learning_rate: float) -> None:
        self._y = y
        self._weight = weight / weight.sum()
        self._used = weight > 0
        self._loss = loss
        self._rate = learning_rate
        self._total = 0.0

    def asks(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the values, with weights that are higher where earlier members were far off."""
        yield self._y, per_row(self._weight)

    def _losses(self, said: NDArray[Any]) -> Floats:
        distance = np.abs(self._y - said)
        most = float(distance[self._used].max())
        share = np.minimum(distance / most if most > 0 else np.zeros(len(distance)), 1.0)
        if self._loss == "square":
            return np.asarray(share**2)
        return 1.0 - exp(-share) if self._loss == "exponential" else share

    def judge(self, said: list[NDArray[Any]]) -> Step:
        """Weigh a member by its mean loss."""
        losses = self._losses(said[0])
        error = dot(self._weight, losses)
        ended = CHANCE if error > 0.5 - _NOTHING else PERFECT if error <= 0 else ""
        if ended:
            weight = 1.0 if ended == CHANCE else 1.0 + self._total
        else:
            weight = self._rate * float(log((1 - error) / error))
        factor = dot(self._weight, exp(-weight * (1.0 - losses)))
        return Step(error, weight, factor, weight, said, ended)

    def take(self, step: Step) -> None:
        """Lower the weights of the rows that the member comes close to."""
        self._total += step.weight
        weight = self._weight * exp(-step.weight * (1.0 - self._losses(step.said[0])))
        self._weight = weight / weight.sum()


Rule = ScoresRule | R2Rule
RoundLoss = Callable[[list[NDArray[Any]], float], float]  # of a round's predictions and its weight
Predict = Callable[[Any, Any], NDArray[Any]]  # from a member and a table to what the algorithm takes of it


class BoostedEstimator(Protocol):
    """An estimator that is fitted by rounds."""

    n_estimators: int
    early_stopping: bool
    n_iter_no_change: int
    tol: float
    keep_best: bool
    verbose: int

    def _predict_by(self, members: Members, /) -> Predict: ...
    def _advice_on_chance(self) -> str: ...


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

    def __init__(self, owner: BoostedEstimator, rule: Rule, members: Members, seeds: RandomState) -> None:
        self._owner, self._rule, self._fits, self._seeds = owner, rule, members, seeds
        self._predict = owner._predict_by(members)
        self._held_out: tuple[Any, RoundLoss] | None = None
        self.members: list[list[Any]] = []
        self.steps: list[Step] = []
        self.train_curve: list[float] = []
        self.held_out_curve: list[float] = []
        self.stopped = DONE

    def hold_out(self, table: Any, loss: RoundLoss) -> None:
        """Evaluate all rounds so far by rows that they are not fitted to."""
        self._held_out = table, loss

    def run(self) -> None:
        """Boost until the rounds are done, or there is nothing more to gain."""
        owner = self._owner
        with Progress("rounds", owner.n_estimators, bool(owner.early_stopping), 0, owner.verbose) as progress:
            while len(self.steps) < owner.n_estimators and self._advance():
                progress.report(len(self.steps), note=self._note())
        if owner.verbose and self.stopped != DONE:
            print(f"{len(self.steps)} rounds: {REASONS[self.stopped]}", file=sys.stderr, flush=True)

    def _advance(self) -> bool:
        """Do one round; False if it is the last."""
        largest = np.iinfo(np.int32).max
        members, said = [], []
        for target, weight in self._rule.asks():
            members.append(self._fits.fit(target, weight, int(self._seeds.randint(largest))))
            said.append(self._predict(members[-1], self._fits.table))
        step = self._rule.judge(said)
        if step.ended:
            self.stopped = step.ended
        if step.ended == CHANCE and self.steps:
            return False
        if step.ended == CHANCE:
            warn(
                f"The first member errs on {step.error:.3g} of the weight, no better than a guess, so that there is "
                f"nothing to boost: the model is this member alone. {self._owner._advice_on_chance()}"
            )
        self._rule.take(step)
        self.members.append(members)
        self.steps.append(replace(step, said=[]))
        error = self._rule.training_error
        if error is not None:
            self.train_curve.append(error)
        if self._held_out is not None:
            table, loss = self._held_out
            self.held_out_curve.append(loss([self._predict(member, table) for member in members], step.weight))
            if self._owner.early_stopping and self._has_settled():
                self.stopped = SETTLED
        return self.stopped == DONE

    def _has_settled(self) -> bool:
        curve, patience = self.held_out_curve, int(self._owner.n_iter_no_change)
        if len(curve) <= patience:
            return False
        return min(curve[-patience:]) >= min(curve[:-patience]) - float(self._owner.tol)

    def _note(self) -> str:
        note = f", error of the last member {self.steps[-1].error:.4g}"
        if self.train_curve:
            note += f", of all {self.train_curve[-1]:.4g}"
        return note + (f", held out {self.held_out_curve[-1]:.4g}" if self.held_out_curve else "")

    @property
    def retained(self) -> list[Step]:
        """Rounds of the model: up to the best by the held-out rows, if it stops by them."""
        if self.held_out_curve and self._owner.early_stopping and self._owner.keep_best:
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
