"""Losses of gradient boosting: those of the engine by name, sums of several, and losses that are defined here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.custom_loss import LossMaker, UserLoss
from spinney._boosting.learning_rows import LearningRows
from spinney._data.reproducible import exp

Floats = NDArray[np.float64]
TRAITS = {traits.name: traits for traits in _engine.boosting_losses()}
_SMALLEST, _LARGEST = 1e-18, 1e18  # gradients and their products with weights are in single precision
NUMBER_LOSSES = tuple(name for name, traits in TRAITS.items() if not traits.of_classes)
TWO_CLASS_LOSSES = tuple(name for name, traits in TRAITS.items() if traits.of_two_classes)


@dataclass(frozen=True)
class Loss:
    """One loss.

    Attributes
    ----------
    name : str
        As the engine calls it; "outside" if the engine does not know it.
    link : str
        How scores become predictions, as `_model.links` names them.
    parameter : float
        Of the loss, as the engine takes it.
    n_scores : int
        Scores of a row.
    weight : float
        Of this part in the sum over all parts.
    outside : callable or None
        Makes the loss of certain rows, if the engine does not know it.
    of : tuple of Loss
        Parts, each of a target of its own and the scores that follow those of the part before; empty: it is whole.
    """

    name: str
    link: str = "identity"
    parameter: float = 0.0
    n_scores: int = 1
    weight: float = 1.0
    outside: LossMaker | None = None
    of: tuple[Loss, ...] = ()

    @property
    def parts(self) -> tuple[Loss, ...]:
        """The losses of its targets: itself, if it has one."""
        return self.of or (self,)

    @property
    def is_shifted(self) -> bool:
        """Whether nothing but the distance from score to target matters, so that both may be moved."""
        return self.outside is None and TRAITS[self.name].is_shift_invariant

    def targets(self, rows: LearningRows) -> Floats:
        """Targets of the parts, (n_parts, n_rows)."""
        if rows.target.ndim == 2:
            return np.ascontiguousarray(rows.target.T)
        if len(self.parts) == 1:
            return rows.target[np.newaxis]
        return np.array(np.broadcast_to(rows.target, (len(self.parts), len(rows.target))))

    def shifted(self, rows: LearningRows, start: Floats) -> tuple[Floats, Floats]:
        """Targets of the parts, (n_parts, n_rows), and scores before the first tree, as the engine is to see them.

        Where nothing but their distance matters, both without what the scores start at: sums of small steps far from 0
        would lose their digits.
        """
        scores, targets = rows.scores(start), self.targets(rows)
        return (targets - scores, np.zeros_like(scores)) if self.is_shifted else (targets, scores)

    def constants(self, y: Floats, weight: Floats, offset: Floats | None) -> Floats:
        """Return the constant scores of least loss of one target, beside offsets of shape (n_scores, n_rows)."""
        if isinstance(self.outside, UserLoss):
            return np.array([self.outside.start(y, weight, np.zeros(len(y)) if offset is None else offset[0])])
        if self.outside is not None:
            return np.zeros(1)
        y, weight = np.ascontiguousarray(y), np.ascontiguousarray(weight)
        offset = None if offset is None else np.ascontiguousarray(offset)
        return _engine.loss_start(self.name, self.parameter, y, weight, offset, self.n_scores)

    def bend(self, y: Floats, scores: Floats, weight: Floats | None) -> float:
        """Return the residual at which the loss bends at these scores; its parameter, if it does not."""
        return _engine.loss_bend(self.name, self.parameter, y, np.ascontiguousarray(scores[0]), weight)

    def slopes(self, y: Floats, scores: Floats, weight: Floats | None) -> Floats:
        """Slope of each row's loss by its scores, (n_scores, n_rows)."""
        return _engine.loss_gradients(self.name, self.bend(y, scores, weight), y, scores)[0]

    def values(self, targets: Floats, scores: Floats, weight: Floats | None) -> Floats:
        """Loss of each row over all parts, at scores, (n_scores, n_rows), of targets, (n_parts, n_rows)."""
        total, first = np.zeros(targets.shape[1]), 0
        for part, y in zip(self.parts, targets, strict=True):
            mine = np.ascontiguousarray(scores[first : first + part.n_scores])
            total = total + part.weight * _engine.loss_rows(part.name, part.bend(y, mine, weight), y, mine)
            first += part.n_scores
        return total

    def check(self, rows: LearningRows, name: str) -> None:
        """Refuse targets that the loss is not for, among the rows in use; `name` is what the caller calls them."""
        used = rows.seen_weights > 0
        for part, y in zip(self.parts, rows.target.T if rows.target.ndim == 2 else [rows.target], strict=False):
            if part.outside is None:
                _check_targets(part.name, y, used, name)

    def check_size(self, rows: LearningRows, start: Floats) -> None:
        """Refuse targets whose gradients single precision cannot hold."""
        place, distance = 0, 0.0
        for part, target in zip(self.parts, self.targets(rows), strict=True):
            first = start[place] if rows.offset is None else start[place] + rows.offset[place]
            distances = target - first
            distance = max(distance, float(np.abs(distances, out=distances)[rows.used].max()))
            place += part.n_scores
        weight = rows.seen_weights.max()
        if distance > 0 and not (_SMALLEST < distance < _LARGEST and _SMALLEST < weight < _LARGEST):
            is_target = _SMALLEST < weight < _LARGEST
            what, size = ("y lies up to", distance) if is_target else ("sample_weight reaches", weight)
            raise ValueError(
                f"{what} {size:g}{' from the score that boosting starts at' if is_target else ''}: boosting cannot "
                "compute with numbers of this size. Rescale them."
            )

    def in_units(self, rows: LearningRows) -> Loss:
        """Return a loss that counts alike in whatever units a target is measured: with weights of several columns.

        That of a normal distribution has the variance of all rows as its parameter.
        """
        used, weights = rows.used, rows.seen_weights[rows.used]
        if self.name == "normal" and rows.target.ndim == 1:
            offset = None if rows.offset is None else rows.offset[:, used]
            deviation = exp(self.constants(rows.target[used], weights, offset)[1])
            return replace(self, parameter=float(deviation) ** 2)
        if rows.target.ndim == 1:
            return self
        columns = zip(self.parts, rows.target[used].T, strict=True)
        scales = [_unit_weight(part, y, weights) for part, y in columns]
        parts = (replace(part, weight=scale / len(scales)) for part, scale in zip(self.parts, scales, strict=True))
        return replace(self, of=tuple(parts))


def _check_targets(loss: str, y: Floats, used: NDArray[np.bool_], name: str) -> None:
    wanted = TRAITS[loss].targets
    bad = ~(y > 0) if wanted is _engine.LossTargets.positive else ~(y >= 0)
    if wanted in (_engine.LossTargets.real, _engine.LossTargets.classes):
        return
    rows = np.flatnonzero(bad & used)
    if len(rows):
        bound = "above 0" if wanted is _engine.LossTargets.positive else "of at least 0"
        raise ValueError(f"loss={loss!r} needs targets {bound}. Row {rows[0]} of {name} has {y[rows[0]]:g}.")
    if wanted is _engine.LossTargets.non_negative and name == "y" and not y[used].sum() > 0:
        raise ValueError(f"loss={loss!r} needs a target above 0 in some row. All of y is 0.")


def _unit_weight(loss: Loss, y: Floats, weight: Floats) -> float:
    """Return one over the unit of a column's loss, if it has one."""
    unit = TRAITS[loss.name].unit
    if unit is _engine.LossUnit.none:
        return 1.0
    mean = np.average(y, weights=weight)
    variance = float(np.average((y - mean) ** 2, weights=weight))
    if not variance > 0:
        return 1.0
    return 1 / variance if unit is _engine.LossUnit.target_squared else float(1 / np.sqrt(variance))


def named_loss(name: str, parameter: float = 0.0, n_classes: int = 0) -> Loss:
    """Return a loss of the engine; `n_classes` are those of a multinomial loss."""
    return Loss(name, _engine.loss_link(name, parameter), parameter, TRAITS[name].n_scores or n_classes)


def class_loss(name: str, n_classes: int, focal_gamma: float = 2.0) -> Loss:
    """Return a loss of classes by its public name; targets are codes."""
    if name == "log_loss":
        return named_loss("logistic") if n_classes == 2 else named_loss("multinomial", n_classes=n_classes)
    return named_loss(name, focal_gamma if TRAITS[name].parameter else 0.0)


def loss_of_quantiles(levels: Sequence[float]) -> Loss:
    """Return the loss of several quantiles of one target: their predictions are put in order, row by row."""
    return loss_of_outputs([named_loss("quantile", level) for level in levels], "ascending")


def loss_of_outputs(parts: Sequence[Loss], link: str) -> Loss:
    """Return the loss of several columns of the target: the mean of theirs."""
    return replace(parts[0], link=link, of=tuple(replace(part, weight=1 / len(parts)) for part in parts))
