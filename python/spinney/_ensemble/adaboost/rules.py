"""The algorithms of AdaBoost, apart from tables and estimators: targets and weights of members, and their errors.

For two classes y = ±1 the scores are f = Σ ηₜ hₜ and the weights of the rows are proportional to exp(-y f). Z is the
factor by which a round changes the mean of exp(-y f), so that this mean is the product of all Z and an upper bound of
the training error. For votes on several classes the same bound holds, with +1 for correct and -1 for incorrect votes in
place of y h.
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
from spinney._data.types import Floats
from spinney._ensemble.adaboost.members import Members
from spinney._ensemble.members import LARGEST_SEED
from spinney._estimator.parallel import Progress
from spinney._model.adaboost import VOTES, ScoreFormula

Codes = NDArray[np.intp]
_NEGLIGIBLE = 1e-12  # smaller improvements of the loss, or of the error of a random guess, count as none
_MIN_WEIGHT, _MAX_RESPONSE = 1e-10, 4.0  # of working responses (LogitBoost)


# why rounds end
PERFECT, CHANCE, SETTLED, DONE = "perfect", "chance", "settled", "done"
REASONS = {
    DONE: "reached n_estimators.",
    PERFECT: "the last member has no error.",
    CHANCE: "the next member would be no better than a random guess.",
    SETTLED: "the validation loss no longer improves.",
}


@dataclass(frozen=True, eq=False)
class Step:
    """The result of one round.

    Attributes
    ----------
    error : float
        ε: weighted error of the round's members.
    weight : float
        α: weight of the round's members.
    factor : float
        Z: factor by which the round multiplies the mean loss.
    reach : float
        Largest change of the margin of a training row.
    predicted : list of ndarray
        Predictions of the members.
    ended : str
        Reason to stop after this round (`PERFECT`) or before it (`CHANCE`); "" to continue.
    """

    error: float
    weight: float
    factor: float
    reach: float
    predicted: list[NDArray[Any]]
    ended: str = ""


class ScoresRule(ABC):
    """Classification: predictions of members are added up to scores.

    Attributes
    ----------
    formula : ScoreFormula
        Scores of predictions.
    scores : ndarray of shape (n_rows, n_scores)
        Scores of the training rows.
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
        # 1 where the class of a column is the row's class, else -1; for two classes there is a column for the second
        self._signs = np.where(codes[:, np.newaxis] == np.arange(formula.n_classes)[-formula.n_scores :], 1.0, -1.0)

    @property
    def weights(self) -> Floats:
        """Weights of the rows for the next round, which add up to 1; by class where a round has a member per class."""
        return self._weight

    def member_targets(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the target and the weights, 1 on average, of each member of the next round."""
        yield self._targets, per_row(self._weight)

    @abstractmethod
    def evaluate(self, predicted: list[NDArray[Any]]) -> Step:
        """Return the error and the weight of a round, given the predictions of its members."""

    @abstractmethod
    def factor(self, predicted: list[NDArray[Any]], weight: float) -> float:
        """Return Z, the factor by which members of this weight change the mean loss."""

    @abstractmethod
    def update(self, predicted: list[NDArray[Any]], weight: float) -> None:
        """Add members of this weight to the scores, and change the weights of the rows."""

    def added(self, predicted: list[NDArray[Any]], weight: float) -> Floats:
        """Return the contribution of a round to the scores of some rows, (n_rows, n_scores)."""
        return np.asarray(np.hstack([self.formula.scores(values, weight) for values in predicted]))

    @property
    def training_error(self) -> float:
        """Weighted training error."""
        wrong = self.formula.codes(self.scores) != self._codes
        return float(self._start.take(np.flatnonzero(wrong)).sum())

    def _reach(self, added: Floats) -> float:
        """Return the largest change of the difference between two scores, over rows of positive weight."""
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

    def _wrong(self, predicted: list[NDArray[Any]]) -> Codes:
        """Return the rows that a member misclassifies."""
        return np.flatnonzero(predicted[0] != self._codes)

    def _error(self, predicted: list[NDArray[Any]]) -> float:
        return float(self._weight.take(self._wrong(predicted)).sum())

    def evaluate(self, predicted: list[NDArray[Any]]) -> Step:
        """Return the weight of a member, which depends on its error."""
        error = self._error(predicted)
        guess = 0.5 if self.formula.algorithm == "m1" else 1.0 - 1.0 / self.formula.n_classes
        ended = CHANCE if error > guess - _NEGLIGIBLE else "" if error > 0 else PERFECT
        if ended == CHANCE:
            weight = 1.0
        elif error > 0:
            prior = 0.0 if self.formula.algorithm == "m1" else float(log(self.formula.n_classes - 1.0))
            weight = self._rate * (float(log((1 - error) / error)) + prior)
        else:
            weight = 1.0 + self._total  # infinite by the theory: it outvotes all others
        return Step(error, weight, self.factor(predicted, weight), weight, predicted, ended)

    def factor(self, predicted: list[NDArray[Any]], weight: float) -> float:
        """Return the factor by which a member changes the mean of exp(∓η): - for its correct votes, + for others."""
        error = self._error(predicted)
        return (1 - error) * float(exp(-weight / 2)) + error * float(exp(weight / 2))

    def update(self, predicted: list[NDArray[Any]], weight: float) -> None:
        """Increase the weights of misclassified rows."""
        votes = self.formula.scores(np.arange(self.formula.n_classes), weight)  # by class
        self.scores += votes.take(predicted[0], axis=0)
        self._total += weight
        wrong, weights = self._wrong(predicted), self._weight.copy()
        weights.put(wrong, weights.take(wrong) * float(exp(weight)))
        self._weight = np.divide(weights, _finite_sum(weights, self._rate), out=weights)


class RealRule(ScoresRule):
    """Real AdaBoost (SAMME.R): logarithms of the members' class probabilities are added."""

    def _margins(self, added: Floats) -> Floats:
        if self.formula.n_scores == 1:
            return np.asarray((added * self._signs)[:, 0])
        return np.asarray(np.take_along_axis(added, self._codes[:, np.newaxis], axis=1)[:, 0])

    def evaluate(self, predicted: list[NDArray[Any]]) -> Step:
        """Return the effect of a member on the loss."""
        wrong = np.flatnonzero(predicted[0].argmax(axis=1) != self._codes)
        error = float(self._weight.take(wrong).sum())
        factor = self.factor(predicted, self._rate)
        ended = CHANCE if factor > 1 - _NEGLIGIBLE else PERFECT if error == 0 else ""
        return Step(error, self._rate, factor, self._reach(self.added(predicted, self._rate)), predicted, ended)

    def factor(self, predicted: list[NDArray[Any]], weight: float) -> float:
        """Return the factor by which a member changes the mean exponential loss."""
        return dot(self._weight, exp(-self._margins(self.added(predicted, weight))))

    def update(self, predicted: list[NDArray[Any]], weight: float) -> None:
        """Reweight the rows by the probability of their class."""
        added = self.added(predicted, weight)
        self.scores += added
        weights = self._weight * exp(-self._margins(added))
        self._weight = weights / _finite_sum(weights, self._rate)


class GentleRule(ScoresRule):
    """Gentle AdaBoost: members are fitted to y = ±1 by least squares, one per class if there are several."""

    def __init__(self, formula: ScoreFormula, codes: Codes, weight: Floats, learning_rate: float) -> None:
        super().__init__(formula, codes, weight, learning_rate)
        self._loss = np.repeat(self._start[:, np.newaxis], formula.n_scores, axis=1)  # of each row and class

    @property
    def weights(self) -> Floats:
        """Weights of the rows for the next round."""
        return _columns_to_one(self._loss)

    def member_targets(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield y = ±1 for each class, with the weights of that class."""
        for k in range(self.formula.n_scores):
            yield self._signs[:, k], per_row(self._loss[:, k])

    def evaluate(self, predicted: list[NDArray[Any]]) -> Step:
        """Return the effect of the members on the loss."""
        values, signs = np.column_stack(predicted), self._signs
        wrong = (values * signs <= 0) & (self._loss > 0)
        error = float((self._loss * wrong).sum() / self._loss.sum())
        factor = self.factor(predicted, self._rate)
        ended = CHANCE if factor > 1 - _NEGLIGIBLE else PERFECT if (values == signs)[self._used].all() else ""
        return Step(error, self._rate, factor, self._reach(self.added(predicted, self._rate)), predicted, ended)

    def factor(self, predicted: list[NDArray[Any]], weight: float) -> float:
        """Return the factor by which the members change the mean exponential loss."""
        changed = self._loss * exp(-self.added(predicted, weight) * self._signs)
        return float(changed.sum() / self._loss.sum())

    def update(self, predicted: list[NDArray[Any]], weight: float) -> None:
        """Reweight the rows by their margins."""
        added = self.added(predicted, weight)
        self.scores += added
        self._loss = self._loss * exp(-added * self._signs)
        _finite_sum(self._loss, self._rate)


class LogitRule(ScoresRule):
    """LogitBoost: Newton steps of the deviance; members are fitted to working responses by least squares."""

    @property
    def weights(self) -> Floats:
        """Weights of the rows for the next round."""
        return _columns_to_one(self._start[:, np.newaxis] * self._variance(self._proba()))

    @staticmethod
    def _variance(proba: Floats) -> Floats:
        """Return the variance of each class indicator, at least a small number."""
        return np.maximum(proba * (1.0 - proba), _MIN_WEIGHT)

    def _proba(self) -> Floats:
        """Return the probability of the class of each column."""
        if self.formula.n_scores == 1:
            return 1.0 / (1.0 + exp(-2.0 * self.scores))
        return exp(self.scores - log_sum_exp(self.scores)[:, np.newaxis])

    @property
    def first_loss(self) -> float:  # type: ignore[override]
        """Mean loss before the first round."""
        return self._loss(np.zeros(self.scores.shape))

    def _loss(self, scores: Floats) -> float:
        """Return the mean log loss."""
        if self.formula.n_scores == 1:
            margins = -2.0 * (scores * self._signs)[:, 0]
            return dot(self._start, np.maximum(margins, 0.0) + log(1.0 + exp(-np.abs(margins))))
        own = np.take_along_axis(scores, self._codes[:, np.newaxis], axis=1)[:, 0]
        return dot(self._start, log_sum_exp(scores) - own)

    def member_targets(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the working responses of each class and their weights."""
        proba, is_own = self._proba(), (self._signs + 1.0) / 2.0
        for k in range(self.formula.n_scores):
            variance = self._variance(proba[:, k])
            response = np.clip((is_own[:, k] - proba[:, k]) / variance, -_MAX_RESPONSE, _MAX_RESPONSE)
            yield response, per_row(self._start * variance)

    def evaluate(self, predicted: list[NDArray[Any]]) -> Step:
        """Return the effect of the members on the deviance."""
        values = np.column_stack(predicted)
        weight = self._start[:, np.newaxis] * self._variance(self._proba())
        error = float((weight * (values * self._signs <= 0)).sum() / weight.sum())
        added = self.added(predicted, self._rate)
        before, after = self._loss(self.scores), self._loss(self.scores + added)
        ended = CHANCE if after > before * (1 - _NEGLIGIBLE) else PERFECT if after < _NEGLIGIBLE else ""
        return Step(error, self._rate, after / before, self._reach(added), predicted, ended)

    def factor(self, predicted: list[NDArray[Any]], weight: float) -> float:
        """Return the factor by which the members change the mean log loss."""
        before = self._loss(self.scores)
        return self._loss(self.scores + self.added(predicted, weight)) / before if before > 0 else 1.0

    def update(self, predicted: list[NDArray[Any]], weight: float) -> None:
        """Update the scores."""
        self.scores += self.added(predicted, weight)


def _finite_sum(weight: Floats, learning_rate: float) -> Floats:
    """Return the sum of the weights of the rows, by column; refuse weights that overflow or vanish."""
    total = np.asarray(weight.sum(axis=0))
    if not (np.isfinite(total).all() and (total > 0).all()):
        raise ValueError(
            f"learning_rate={learning_rate:g} is too large: the weights of the rows overflow. Set learning_rate to 1 "
            "or less."
        )
    return total


def _columns_to_one(weight: Floats) -> Floats:
    """Return weights whose columns add up to 1; a single column as a vector."""
    weight = weight / weight.sum(axis=0)
    return np.asarray(weight[:, 0]) if weight.shape[1] == 1 else weight


def make_rule(formula: ScoreFormula, codes: Codes, weight: Floats, learning_rate: float) -> ScoresRule:
    """Return an algorithm before the first round."""
    kinds: dict[str, type[ScoresRule]] = {"real": RealRule, "gentle": GentleRule, "logit": LogitRule}
    kind = VotesRule if formula.algorithm in VOTES else kinds[formula.algorithm]
    return kind(formula, codes, weight, learning_rate)


class R2Rule:
    """AdaBoost.R2 for regression: the error of a member is its mean loss, relative to the largest loss."""

    first_loss = None  # no loss is a product of the rounds' factors
    training_error = None  # the median of all members is not computed in each round

    def __init__(self, y: Floats, weight: Floats, loss: str, learning_rate: float) -> None:
        self._y = y
        self._weight = weight / weight.sum()
        self._used = weight > 0
        self._loss = loss
        self._rate = learning_rate
        self._total = 0.0

    def member_targets(self) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield the target, with larger weights where earlier members have larger errors."""
        yield self._y, per_row(self._weight)

    def _losses(self, predicted: NDArray[Any]) -> Floats:
        distance = np.abs(self._y - predicted)
        most = float(distance[self._used].max())
        relative = np.minimum(distance / most if most > 0 else np.zeros(len(distance)), 1.0)
        if self._loss == "square":
            return np.asarray(relative**2)
        return 1.0 - exp(-relative) if self._loss == "exponential" else relative

    def evaluate(self, predicted: list[NDArray[Any]]) -> Step:
        """Return the weight of a member, which depends on its mean loss."""
        losses = self._losses(predicted[0])
        error = dot(self._weight, losses)
        ended = CHANCE if error > 0.5 - _NEGLIGIBLE else PERFECT if error <= 0 else ""
        if ended:
            weight = 1.0 if ended == CHANCE else 1.0 + self._total
        else:
            weight = self._rate * float(log((1 - error) / error))
        factor = dot(self._weight, exp(-weight * (1.0 - losses)))
        return Step(error, weight, factor, weight, predicted, ended)

    def update(self, predicted: list[NDArray[Any]], weight: float) -> None:
        """Decrease the weights of rows with a small loss."""
        self._total += weight
        weights = self._weight * exp(-weight * (1.0 - self._losses(predicted[0])))
        self._weight = weights / _finite_sum(weights, self._rate)


Rule = ScoresRule | R2Rule
# loss that early stopping follows and error or score, given a round's predictions and its weight
RoundLoss = Callable[[list[NDArray[Any]], float], tuple[float, float]]
Predict = Callable[[Any, Any], NDArray[Any]]  # predictions of a member for a table


class BoostedEstimator(Protocol):
    """An estimator that is fitted by rounds."""

    n_estimators: int
    learning_rate: float
    early_stopping: bool
    n_iter_no_change: int
    tol: float
    keep_best: bool
    verbose: int | None

    def _predict_by(self, members: Members, /) -> Predict: ...
    def _advice_on_chance(self) -> str: ...


class Rounds:
    """The rounds of one fit.

    Attributes
    ----------
    members : list of lists
        By round.
    steps : list of Step
        By round, without the predictions.
    train_curve, validation_curve : list of float
        Error after each round.
    validation_losses : list of float
        Loss of the validation set after each round, which early stopping follows.
    stopped : str
        Reason for the end of the fit.
    """

    def __init__(self, owner: BoostedEstimator, rule: Rule, members: Members, seeds: RandomState) -> None:
        self._owner, self._rule, self._fits, self._seeds = owner, rule, members, seeds
        self._predict = owner._predict_by(members)
        self._validation: tuple[Any, RoundLoss] | None = None
        self.members: list[list[Any]] = []
        self.steps: list[Step] = []
        self.train_curve: list[float] = []
        self.validation_curve: list[float] = []
        self.validation_losses: list[float] = []
        self.stopped = DONE

    def validate_by(self, table: Any, loss: RoundLoss) -> None:
        """Evaluate each round on a validation set."""
        self._validation = table, loss

    def run(self) -> None:
        """Run rounds until n_estimators is reached, or a round ends the fit."""
        owner = self._owner
        with Progress("rounds", owner.n_estimators, bool(owner.early_stopping), 0, owner.verbose) as progress:
            while len(self.steps) < owner.n_estimators and self._advance():
                progress.report(len(self.steps), note=self._note())
        if owner.verbose and self.stopped != DONE:
            print(f"{len(self.steps)} rounds: {REASONS[self.stopped]}", file=sys.stderr, flush=True)

    def _advance(self) -> bool:
        """Run one round; return whether to continue."""
        members, predicted = [], []
        for target, weight in self._rule.member_targets():
            members.append(self._fits.fit(target, weight, int(self._seeds.randint(LARGEST_SEED))))
            predicted.append(self._predict(members[-1], self._fits.table))
        step = self._rule.evaluate(predicted)
        if step.ended:
            self.stopped = step.ended
        if step.ended == CHANCE and self.steps:
            return False
        if step.ended == CHANCE:
            reason, advice = "no better than a random guess", self._owner._advice_on_chance()
            if self._owner.learning_rate > 1:
                reason, advice = "and its step increases the loss", "Set learning_rate to 1 or less."
            warn(
                f"The weighted error of the first member is {step.error:.3g}, {reason}: the model is this member "
                f"alone. {advice}"
            )
        self._rule.update(step.predicted, step.weight)
        self.members.append(members)
        self.steps.append(replace(step, predicted=[]))
        error = self._rule.training_error
        if error is not None:
            self.train_curve.append(error)
        if self._validation is not None:
            table, loss = self._validation
            found = loss([self._predict(member, table) for member in members], step.weight)
            self.validation_losses.append(found[0])
            self.validation_curve.append(found[1])
            if self._owner.early_stopping and self._has_stalled():
                self.stopped = SETTLED
        return self.stopped == DONE

    def _has_stalled(self) -> bool:
        curve, patience = self.validation_losses, int(self._owner.n_iter_no_change)
        if len(curve) <= patience:
            return False
        return min(curve[-patience:]) >= min(curve[:-patience]) - float(self._owner.tol)

    def _note(self) -> str:
        note = f", error of the last member {self.steps[-1].error:.4g}"
        if self.train_curve:
            note += f", of all {self.train_curve[-1]:.4g}"
        return note + (f", validation {self.validation_curve[-1]:.4g}" if self.validation_curve else "")

    @property
    def retained(self) -> list[Step]:
        """Rounds of the model: with early stopping, up to the round of the lowest validation loss."""
        if self.validation_losses and self._owner.early_stopping and self._owner.keep_best:
            return self.steps[: int(np.argmin(self.validation_losses)) + 1]
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
        if self._validation is not None:
            found["validation_score_"] = np.array(self.validation_curve)
            if self.validation_losses != self.validation_curve:
                found["validation_losses_"] = np.array(self.validation_losses)
        return found
