"""Losses of gradient boosting: the engine's losses by name, sums of several, and the interface of custom losses.

A custom loss passes gradients and hessians to the engine before each round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data.reproducible import exp
from spinney._data.types import Floats
from spinney._model.distributions import DISTRIBUTIONS, PredictedDistribution
from spinney._model.links import ordinal_link

ClassLossName = Literal["log_loss", "ordinal", "exponential", "focal", "smooth_hinge"]
RegressionLossName = Literal[
    "squared_error", "absolute_error", "huber", "log_cosh", "quantile", "expectile", "poisson", "gamma", "tweedie",
    "mape", "squared_log_error", "normal", "log_normal", "student_t", "gamma_distribution", "negative_binomial", "beta",
    "zero_inflated_poisson",
]  # fmt: skip
TRAITS = {traits.name: traits for traits in _engine.boosting_losses()}
_SMALLEST, _LARGEST = 1e-18, 1e18  # gradients and their products with weights are float32
NUMBER_LOSSES = tuple(name for name, traits in TRAITS.items() if not traits.of_classes)
_HALVED = ("squared_error", "squared_log_error", "logistic")
TWO_CLASS_LOSSES = tuple(name for name, traits in TRAITS.items() if traits.of_two_classes)


class LossObject(Protocol):
    """A user's loss with its gradient; it may have a `hessian` and a `link` too."""

    def loss(self, y: Any, f: Any, /) -> Any:
        """Return the loss of each row."""

    def gradient(self, y: Any, f: Any, /) -> Any:
        """Return the gradient of each row's loss."""


UserFunction = Callable[[Any, Any], Any]  # a formula loss(y, f), or an objective that returns gradients and hessians
CustomLoss = UserFunction | LossObject


def distribution_of(loss: object) -> type[PredictedDistribution] | None:
    """Return the distribution that a loss predicts for each row; None if it predicts a number."""
    return DISTRIBUTIONS.get(loss) if isinstance(loss, str) else None


def may_learn_mean_first(loss: object) -> bool:
    """Return whether boosting on folds learns the mean of a distribution before its standard deviation."""
    return loss in ("normal", "log_normal") if isinstance(loss, str) else False


@dataclass(frozen=True)
class Loss:
    """One loss.

    Attributes
    ----------
    name : str
        Name in the engine; "outside" for a custom loss.
    link : str
        How scores become predictions, by its name in `_model.links`.
    parameter : float
        Parameter of the loss, such as the level of a quantile; the number of ordered classes.
    n_scores : int
        Scores of a row.
    weight : float
        Weight of this loss in the sum over all outputs.
    custom : callable or None
        Binds a custom loss to rows; None: a loss of the engine.
    by_output : tuple of Loss
        Losses of several outputs, in the order of their scores; empty for one output.
    """

    name: str
    link: str = "identity"
    parameter: float = 0.0
    n_scores: int = 1
    weight: float = 1.0
    custom: LossFactory | None = None
    by_output: tuple[Loss, ...] = ()

    @property
    def parts(self) -> tuple[Loss, ...]:
        """The losses of its outputs: itself, if there is one output."""
        return self.by_output or (self,)

    @property
    def reported_factor(self) -> float:
        """Factor of reported losses: the engine halves the squared error and the deviance of two classes."""
        is_halved = self.custom is None and all(part.name in _HALVED for part in self.parts)
        return 2.0 if is_halved else 1.0

    @property
    def is_shift_invariant(self) -> bool:
        """Whether the loss depends on the difference of score and target alone."""
        return self.custom is None and TRAITS[self.name].is_shift_invariant

    def targets(self, rows: LearningRows) -> Floats:
        """Return the targets of the parts, (n_parts, n_rows)."""
        if rows.target.ndim == 2:
            return np.ascontiguousarray(rows.target.T)
        if len(self.parts) == 1:
            return rows.target[np.newaxis]
        return np.array(np.broadcast_to(rows.target, (len(self.parts), len(rows.target))))

    def centred(self, rows: LearningRows, start: Floats) -> tuple[Floats, Floats]:
        """Return targets of the parts, (n_parts, n_rows), and initial scores, (n_scores, n_rows), for the engine.

        If the loss is shift-invariant, the initial scores are subtracted from both, which saves precision.
        """
        scores, targets = rows.scores(start), self.targets(rows)
        return (targets - scores, np.zeros_like(scores)) if self.is_shift_invariant else (targets, scores)

    def constants(self, y: Floats, weight: Floats, offset: Floats | None) -> Floats:
        """Return the constant scores of least loss of one target, given offsets of shape (n_scores, n_rows)."""
        if self.custom is not None:
            start = getattr(self.custom, "start", None)
            zeros = np.zeros((self.n_scores, len(y)))
            return zeros[:, 0] if start is None else np.asarray(start(y, weight, zeros if offset is None else offset))
        y, weight = np.ascontiguousarray(y), np.ascontiguousarray(weight)
        offset = None if offset is None else np.ascontiguousarray(offset)
        return _engine.loss_start(self.name, self.parameter, y, weight, offset, self.n_scores)

    def parameter_at(self, y: Floats, scores: Floats, weight: Floats | None) -> float:
        """Return the parameter of the loss at these scores; Huber's is a quantile of the current residuals."""
        return _engine.loss_delta(self.name, self.parameter, y, np.ascontiguousarray(scores[0]), weight)

    def _numbers_at(self, y: Floats, scores: Floats, weight: Floats | None) -> float | Floats:
        """Return the parameter of the loss at these scores, or the cuts between ordered classes."""
        if not TRAITS[self.name].has_cuts:
            return self.parameter_at(y, scores, weight)
        y, score = np.ascontiguousarray(y), np.ascontiguousarray(scores[0])
        weight = None if weight is None else np.ascontiguousarray(weight)
        return _engine.ordinal_cuts(y, score, weight, int(self.parameter), 1)

    def link_at(self, y: Floats, scores: Floats, weight: Floats | None) -> str:
        """Return the link of predictions; that of ordered classes holds the cuts of least loss at these scores."""
        cuts = None if self.custom is not None else self._numbers_at(y, scores, weight)
        if not isinstance(cuts, np.ndarray):
            return self.link
        if not (np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()):
            raise ValueError(
                f"loss='ordinal' finds no thresholds between the classes at scores from {scores.min():g} to "
                f"{scores.max():g}. Rescale offset, or lower learning_rate."
            )
        return ordinal_link(cuts)

    def row_gradients(self, y: Floats, scores: Floats, weight: Floats | None) -> Floats:
        """Return the gradient of each row's loss, (n_scores, n_rows)."""
        return _engine.loss_gradients(self.name, self._numbers_at(y, scores, weight), y, scores)[0]

    def values(self, targets: Floats, scores: Floats, weight: Floats | None) -> Floats:
        """Return the loss of each row, at scores, (n_scores, n_rows), of targets, (n_parts, n_rows)."""
        total, first = np.zeros(targets.shape[1]), 0
        for part, y in zip(self.parts, targets, strict=True):
            some = np.ascontiguousarray(scores[first : first + part.n_scores])
            total = total + part.weight * _engine.loss_rows(part.name, part._numbers_at(y, some, weight), y, some)
            first += part.n_scores
        return total

    def mean_on(self, rows: LearningRows, training: LossOnRows | None = None) -> Callable[[Floats], float]:
        """Return the mean loss of rows, as reported, as a function of their scores, (n_rows, n_scores).

        `training` is the loss of the training rows, if it is custom.
        """
        if self.custom is not None:
            loss = self.custom(rows) if training is None else training.held_out(rows)
            return lambda scores: loss.mean_loss(np.ascontiguousarray(scores.T))
        weight, targets, factor = rows.weights(), self.targets(rows), self.reported_factor
        return lambda scores: factor * float(np.average(self.values(targets, scores.T, weight), weights=weight))

    def check(self, rows: LearningRows, name: str) -> None:
        """Refuse invalid targets of rows with a positive weight; `name` is the argument, such as "y_val"."""
        used = rows.weights_view > 0
        for part, y in zip(self.parts, rows.target.T if rows.target.ndim == 2 else [rows.target], strict=False):
            if part.custom is None:
                _check_targets(part.name, y, used, name)

    def check_size(self, rows: LearningRows, start: Floats) -> None:
        """Refuse targets whose gradients overflow or underflow float32."""
        score, distance = 0, 0.0
        for part, target in zip(self.parts, self.targets(rows), strict=True):
            first = start[score] if rows.offset is None else start[score] + rows.offset[score]
            distances = target - first
            distance = max(distance, float(np.abs(distances, out=distances)[rows.used].max()))
            score += part.n_scores
        weight = rows.weights_view.max()
        if distance > 0 and not (_SMALLEST < distance < _LARGEST and _SMALLEST < weight < _LARGEST):
            is_target = _SMALLEST < weight < _LARGEST
            what, size = ("y lies up to", distance) if is_target else ("sample_weight reaches", weight)
            raise ValueError(
                f"{what} {size:g}{' from the initial score' if is_target else ''}: boosting cannot compute with "
                "numbers of this size. Rescale them."
            )

    def in_units(self, rows: LearningRows) -> Loss:
        """Return the loss with weights of its outputs that make it independent of the units of the targets.

        The parameter of a distribution with a location is the variance of all rows.
        """
        used, weights = rows.used, rows.weights_view[rows.used]
        if self.custom is None and TRAITS[self.name].has_location and rows.target.ndim == 1:
            offset = None if rows.offset is None else rows.offset[:, used]
            deviation = exp(self.constants(rows.target[used], weights, offset)[1])
            return replace(self, parameter=float(deviation) ** 2)
        if rows.target.ndim == 1:
            return self
        columns = zip(self.parts, rows.target[used].T, strict=True)
        scales = [_unit_weight(part, y, weights) for part, y in columns]
        parts = (replace(part, weight=scale / len(scales)) for part, scale in zip(self.parts, scales, strict=True))
        return replace(self, by_output=tuple(parts))


_ALLOWED_TARGETS: dict[_engine.LossTargets, tuple[str, Callable[[Floats], NDArray[np.bool_]]]] = {
    _engine.LossTargets.positive: ("targets above 0", lambda y: y > 0),
    _engine.LossTargets.non_negative: ("targets of at least 0", lambda y: y >= 0),
    _engine.LossTargets.counts: ("whole numbers of at least 0 as targets", lambda y: (y >= 0) & (y == np.floor(y))),
    _engine.LossTargets.unit_interval: ("targets above 0 and below 1", lambda y: (y > 0) & (y < 1)),
}


def _check_targets(loss: str, y: Floats, used: NDArray[np.bool_], name: str) -> None:
    wanted = TRAITS[loss].targets
    if wanted not in _ALLOWED_TARGETS:
        return
    allowed, is_allowed = _ALLOWED_TARGETS[wanted]
    rows = np.flatnonzero(~is_allowed(y) & used)
    if len(rows):
        raise ValueError(f"loss={loss!r} needs {allowed}. Row {rows[0]} of {name} has {y[rows[0]]:g}.")
    may_be_zero = wanted in (_engine.LossTargets.non_negative, _engine.LossTargets.counts)
    if may_be_zero and name == "y" and not y[used].sum() > 0:
        raise ValueError(f"loss={loss!r} needs a target above 0 in some row. All of y is 0.")


def _unit_weight(loss: Loss, y: Floats, weight: Floats) -> float:
    """Return the reciprocal of the unit of a column's loss: 1, or a power of the standard deviation."""
    unit = TRAITS[loss.name].unit
    if unit is _engine.LossUnit.none:
        return 1.0
    mean = np.average(y, weights=weight)
    variance = float(np.average((y - mean) ** 2, weights=weight))
    if not variance > 0:
        return 1.0
    return 1 / variance if unit is _engine.LossUnit.target_squared else float(1 / np.sqrt(variance))


def named_loss(name: str, parameter: float = 0.0, n_classes: int = 0) -> Loss:
    """Return a loss of the engine; `n_classes` is for the multinomial loss."""
    return Loss(name, _engine.loss_link(name, parameter), parameter, TRAITS[name].n_scores or n_classes)


def class_loss(name: str, n_classes: int, focal_gamma: float = 2.0) -> Loss:
    """Return a classification loss by its public name; targets are class indices."""
    if name == "log_loss":
        return named_loss("logistic") if n_classes == 2 else named_loss("multinomial", n_classes=n_classes)
    if name == "ordinal":
        return named_loss(name, float(n_classes))
    return named_loss(name, focal_gamma if TRAITS[name].parameter else 0.0)


def loss_of_outputs(parts: Sequence[Loss], link: str) -> Loss:
    """Return the loss of several outputs: the mean of theirs."""
    return replace(parts[0], link=link, by_output=tuple(replace(part, weight=1 / len(parts)) for part in parts))


class LossOnRows(ABC):
    """A custom loss bound to rows, as a function of their scores, (n_scores, n_rows).

    Attributes
    ----------
    scale : float or None
        Scale parameter, if the loss has one that is updated before each round.
    """

    scale: float | None = None

    @property
    def default_max_step(self) -> float:
        """Largest value of a leaf (`max_step`) by default; 0 means no limit."""
        return 0.0

    @abstractmethod
    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (n_scores, n_rows), before weights."""

    @abstractmethod
    def mean_loss(self, scores: Floats) -> float:
        """Return the weighted mean loss."""

    @abstractmethod
    def held_out(self, rows: LearningRows) -> LossOnRows:
        """Return the loss bound to other rows, with the parameters learned from these."""


LossFactory = Callable[[LearningRows], LossOnRows]


class CustomLosses:
    """A custom loss of a booster's training rows, held-out rows, and out-of-bag rows.

    Attributes
    ----------
    training : LossOnRows
    held_out : LossOnRows or None
    """

    def __init__(self, loss: LossFactory, rows: LearningRows, held_out: LearningRows | None) -> None:
        self._rows = rows
        self.training = loss(rows)
        self.held_out = None if held_out is None else self.training.held_out(held_out)
        self._before: Floats | None = None  # scores before the round

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians of the training rows, before a round."""
        self._before = scores
        return self.training.gradients(scores)

    def losses(self, engine: _engine.Boosting, has_out_of_bag: bool) -> tuple[float, float, float, float]:
        """Return the losses of training and held-out rows, and of out-of-bag rows before and after the round."""
        held_out = np.nan if self.held_out is None else self.held_out.mean_loss(engine.held_out_scores())
        before, scores = self._before, engine.scores()
        self._before = scores  # for parallel trees, which share gradients
        training, out_of_bag = self.training.mean_loss(scores), (np.nan, np.nan)
        if has_out_of_bag and before is not None:
            out_of_bag = self._out_of_bag(engine, before, scores)
        return training, held_out, *out_of_bag

    def _out_of_bag(self, engine: _engine.Boosting, before: Floats, after: Floats) -> tuple[float, float]:
        weight = self._rows.weights() * np.frombuffer(engine.out_of_bag(), dtype=np.uint8)
        if not (weight > 0).any():
            return np.nan, np.nan
        rows = self.training.held_out(replace(self._rows, weight=weight))
        return rows.mean_loss(before), rows.mean_loss(after)
