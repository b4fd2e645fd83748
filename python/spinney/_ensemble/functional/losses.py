"""Losses of functional boosting: value and gradient of each row, initial scores and link; and the line search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import TRAITS, Loss, class_loss, named_loss
from spinney._boosting.user_loss import UserLoss
from spinney._data.types import Floats
from spinney._model.links import predicted


class FunctionalLoss(ABC):
    """A loss of scores, (n_scores, n_rows).

    Attributes
    ----------
    link : str
        Link between scores and predictions.
    reported_factor : float
        Factor of reported losses, as in `Loss`.
    """

    link: str
    reported_factor: float = 1.0

    def check(self, rows: LearningRows, name: str) -> None:
        """Refuse targets for which the loss is not defined."""
        return

    @abstractmethod
    def start(self, rows: LearningRows) -> Floats:
        """Return the constant scores of the smallest loss."""

    def begin_round(self, scores: Floats, rows: LearningRows) -> None:
        """Set parameters that are constant during a round."""
        return

    @abstractmethod
    def values(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the loss of each row."""

    @abstractmethod
    def slopes(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the gradient of each row's loss, (n_scores, n_rows)."""

    def mean(self, scores: Floats, rows: LearningRows) -> float:
        """Return the weighted mean loss."""
        weight = rows.weights()
        used = weight > 0
        values = self.values(scores, rows)[used]
        return float((values * weight[used]).sum() / weight[used].sum())


class NamedLoss(FunctionalLoss):
    """One of the losses of gradient boosting."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self._bend = loss.parameter
        self.link = loss.link
        self.reported_factor = loss.reported_factor

    def check(self, rows: LearningRows, name: str) -> None:
        """Refuse targets for which the loss is not defined."""
        self._loss.check(rows, name)

    def start(self, rows: LearningRows) -> Floats:
        """Return the constant scores of the smallest loss."""
        used = rows.weights() > 0
        return self._loss.constants(rows.target[used], rows.weights()[used], None)

    def begin_round(self, scores: Floats, rows: LearningRows) -> None:
        """Set the parameter of the loss that depends on the residuals (Huber's delta)."""
        self._bend = self._loss.parameter_at(rows.target, scores, rows.weights())

    def values(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the loss of each row."""
        return _engine.loss_rows(self._loss.name, self._bend, rows.target, np.ascontiguousarray(scores))

    def slopes(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the gradient of each row's loss."""
        if self.link == "logit":  # canonical link: the gradient is the error of predict_proba, bit for bit
            return (predicted(self.link, scores.T)[:, 1] - rows.target)[np.newaxis]
        return _engine.loss_gradients(self._loss.name, self._bend, rows.target, np.ascontiguousarray(scores))[0]


class GivenLoss(FunctionalLoss):
    """A user-defined loss."""

    def __init__(self, given: Any, of_classes: bool) -> None:
        self._own = UserLoss(given, of_classes)
        self._is_function = not hasattr(given, "gradient")
        self.link = self._own.link

    def start(self, rows: LearningRows) -> Floats:
        """Return the constant of the smallest loss, by a line search from 0 or from the mean."""
        if self._is_function and not self._own.is_formula_of(rows.target):
            raise ValueError(
                "Functional boosting needs the loss of each row, and the function returned a pair. Pass an object with "
                "the methods loss(y, f) and gradient(y, f), or use GradientBoosting for (gradient, hessian)."
            )
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
        """Return the loss of each row."""
        return self._own.values(self._own.target(rows), scores[0])

    def slopes(self, scores: Floats, rows: LearningRows) -> Floats:
        """Return the gradient of each row's loss."""
        return self._own.row_gradients(self._own.target(rows), scores[0])[np.newaxis]


@dataclass(frozen=True)
class LossOfMargin:
    """A loss of the margin y f of two classes, with its derivative by the margin."""

    of_margin: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]

    def loss(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row."""
        return self.of_margin(y * f)

    def gradient(self, y: Floats, f: Floats) -> Floats:
        """Return the derivative by the score."""
        return y * self.slope(y * f)


MARGIN_LOSSES = {
    "hinge": LossOfMargin(lambda m: np.maximum(1.0 - m, 0.0), lambda m: np.where(m < 1.0, -1.0, 0.0)),
    "squared_hinge": LossOfMargin(lambda m: np.maximum(1.0 - m, 0.0) ** 2, lambda m: -2.0 * np.maximum(1.0 - m, 0.0)),
    "squared_error": LossOfMargin(lambda m: (1.0 - m) ** 2, lambda m: -2.0 * (1.0 - m)),
}


def make_loss(given: Any, parameters: dict[str, float], n_classes: int | None) -> FunctionalLoss:
    """Return a loss by its name, or a user-defined loss."""
    if not isinstance(given, str):
        if n_classes is not None and n_classes > 2:
            raise ValueError(f"A user-defined loss takes two classes; y has {n_classes}. Use loss='log_loss'.")
        return GivenLoss(given, n_classes is not None)
    if given != "log_loss" and n_classes is not None and n_classes > 2:
        raise ValueError(f"loss={given!r} is for two classes; y has {n_classes}. Use loss='log_loss'.")
    if n_classes is not None and given in MARGIN_LOSSES:
        return GivenLoss(MARGIN_LOSSES[given], True)
    if n_classes is not None:
        return NamedLoss(class_loss(given, n_classes))
    parameter = TRAITS[given].parameter
    return NamedLoss(named_loss(given, 0.0 if parameter is None else parameters[parameter.name]))


LONGEST = 2.0**10  # longest step: the loss has no minimum where a function separates the classes
_MOST_HALVINGS, _CLOSE = 100, 1e-12


def least_along(slope: Callable[[float], float], first: float) -> float:
    """Return the step length that minimises a convex loss, by its derivative; 0 if the loss does not fall.

    The step is never beyond the minimum: the derivative is not positive, so that the loss has decreased.

    Parameters
    ----------
    slope : callable
        Derivative of the loss with respect to the step length.
    first : float
        First step length to try.
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
        # the secant, bounded away from the ends so that both move
        guess = low + (high - low) * min(max(below / (below - above), 0.1), 0.9)
        value = slope(guess)
        if value == 0:
            return guess
        if value < 0:
            low, below = guess, value
        else:
            high, above = guess, value
    return low
