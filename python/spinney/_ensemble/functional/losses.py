"""Losses of functional boosting: value and slope of each row, where scores start, what scores mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import TRAITS, Loss, UserLoss, class_loss, named_loss
from spinney._model.links import predicted

Floats = NDArray[np.float64]


class FunctionalLoss(ABC):
    """A loss of scores, (n_scores, n_rows).

    Attributes
    ----------
    link : str
        How scores become predictions.
    """

    link: str

    def check(self, rows: LearningRows, name: str) -> None:
        """Refuse targets that the loss is not for."""
        return

    @abstractmethod
    def start(self, rows: LearningRows) -> Floats:
        """Constant scores of least loss."""

    def begin_round(self, scores: Floats, rows: LearningRows) -> None:
        """Set what stays as it is during a round."""
        return

    @abstractmethod
    def values(self, scores: Floats, rows: LearningRows) -> Floats:
        """Loss of each row."""

    @abstractmethod
    def slopes(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the slope of each row's loss by its scores, (n_scores, n_rows)."""

    def mean(self, scores: Floats, rows: LearningRows) -> float:
        """Weighted mean over the rows."""
        weight = rows.weights()
        used = weight > 0
        values = self.values(scores, rows)[used]
        return float((values * weight[used]).sum() / weight[used].sum())


class NamedLoss(FunctionalLoss):
    """One of the losses that gradient boosting has."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self._bend = loss.parameter
        self.link = loss.link

    def check(self, rows: LearningRows, name: str) -> None:
        """Refuse targets that the loss is not for."""
        self._loss.check(rows, name)

    def start(self, rows: LearningRows) -> Floats:
        """Constant scores of least loss."""
        used = rows.weights() > 0
        return self._loss.constants(rows.target[used], rows.weights()[used], None)

    def begin_round(self, scores: Floats, rows: LearningRows) -> None:
        """Set where the loss bends, if it does: that follows the residuals from round to round."""
        self._bend = self._loss.parameter_at(rows.target, scores, rows.weights())

    def values(self, scores: Floats, rows: LearningRows) -> Floats:
        """Loss of each row."""
        return _engine.loss_rows(self._loss.name, self._bend, rows.target, np.ascontiguousarray(scores))

    def slopes(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the slope of each row's loss by its scores."""
        if self.link == "logit":  # canonical: the slope is the error of the probability, with the bits of predict_proba
            return (predicted(self.link, scores.T)[:, 1] - rows.target)[np.newaxis]
        return _engine.loss_gradients(self._loss.name, self._bend, rows.target, np.ascontiguousarray(scores))[0]


class GivenLoss(FunctionalLoss):
    """A user's loss."""

    def __init__(self, given: Any, of_classes: bool) -> None:
        self._own = UserLoss(given, of_classes)
        self.link = self._own.link

    def start(self, rows: LearningRows) -> Floats:
        """Constant of least loss, found by going downhill from 0 or from the mean."""
        weight = rows.weights()
        base = 0.0 if self.link != "identity" else float((rows.target * weight).sum() / weight.sum())
        scores = np.full((1, len(rows.target)), base)
        slope = float((self.slopes(scores, rows)[0] * weight).sum())
        direction = -np.sign(slope) * np.ones_like(scores)
        step = least_along(lambda s: self._along(scores, direction, s, rows), 1.0) if slope else 0.0
        return np.array([base + step * direction[0, 0]])

    def _along(self, scores: Floats, direction: Floats, step: float, rows: LearningRows) -> float:
        return float((self.slopes(scores + step * direction, rows)[0] * direction[0] * rows.weights()).sum())

    def values(self, scores: Floats, rows: LearningRows) -> Floats:
        """Loss of each row."""
        return self._own.values(self._own.target(rows), scores[0])

    def slopes(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the slope of each row's loss by its score."""
        return self._own.row_gradients(self._own.target(rows), scores[0])[np.newaxis]


def make_loss(given: Any, parameters: dict[str, float], n_classes: int | None) -> FunctionalLoss:
    """Return a loss by its name, or a user's own."""
    if not isinstance(given, str):
        if n_classes is not None and n_classes > 2:
            raise ValueError(f"A loss of your own takes two classes; y has {n_classes}. Use loss='log_loss'.")
        return GivenLoss(given, n_classes is not None)
    if given == "exponential" and n_classes is not None and n_classes > 2:
        raise ValueError(f"loss='exponential' is for two classes; y has {n_classes}. Use loss='log_loss'.")
    if n_classes is not None:
        return NamedLoss(class_loss(given, n_classes))
    parameter = TRAITS[given].parameter
    return NamedLoss(named_loss(given, 0.0 if parameter is None else parameters[parameter.name]))


LONGEST = 2.0**10  # steps are not longer: a loss may fall for ever where a function tells the classes apart
_MOST_HALVINGS, _CLOSE = 100, 1e-12


def least_along(slope: Callable[[float], float], first: float) -> float:
    """Step at which a convex loss is least, from the slope along the way; 0 if it does not fall at all.

    The step is never beyond the least: the slope there is not positive, so that the loss has fallen.

    Parameters
    ----------
    slope : callable
        Derivative of the loss by the length of the step.
    first : float
        A step to try first.
    """
    if not slope(0.0) < 0:
        return 0.0
    low, high = 0.0, first
    while slope(high) < 0:
        if high >= LONGEST:
            return high
        low, high = high, 2 * high
    if slope(high) == 0:
        return high
    below, above = slope(low), slope(high)
    for _ in range(_MOST_HALVINGS):
        if high - low <= _CLOSE * high:
            break
        # the secant, kept away from the ends so that both move
        guess = low + (high - low) * min(max(below / (below - above), 0.1), 0.9)
        value = slope(guess)
        if value == 0:
            return guess
        if value < 0:
            low, below = guess, value
        else:
            high, above = guess, value
    return low
