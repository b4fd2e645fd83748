"""Losses of gradient boosting: the engine's losses by name, sums of several, and custom losses.

A custom loss passes gradients and hessians to the engine before each round. A user's formula of one row is
differentiated by the engine if it knows all operations of the formula, else by NumPy in blocks of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data.formulas import derivatives, recorded
from spinney._data.reproducible import exp
from spinney._data.types import Floats
from spinney._estimator.parallel import count_threads, in_order
from spinney._model.links import is_link, is_of_classes

TRAITS = {traits.name: traits for traits in _engine.boosting_losses()}
_SMALLEST, _LARGEST = 1e-18, 1e18  # gradients and their products with weights are float32
NUMBER_LOSSES = tuple(name for name, traits in TRAITS.items() if not traits.of_classes)
TWO_CLASS_LOSSES = tuple(name for name, traits in TRAITS.items() if traits.of_two_classes)


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
        Parameter of the loss, such as the level of a quantile.
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
        if isinstance(self.custom, UserLoss):
            return np.array([self.custom.start(y, weight, np.zeros(len(y)) if offset is None else offset[0])])
        if self.custom is not None:
            return np.zeros(1)
        y, weight = np.ascontiguousarray(y), np.ascontiguousarray(weight)
        offset = None if offset is None else np.ascontiguousarray(offset)
        return _engine.loss_start(self.name, self.parameter, y, weight, offset, self.n_scores)

    def parameter_at(self, y: Floats, scores: Floats, weight: Floats | None) -> float:
        """Return the parameter of the loss at these scores; Huber's is a quantile of the current residuals."""
        return _engine.loss_delta(self.name, self.parameter, y, np.ascontiguousarray(scores[0]), weight)

    def row_gradients(self, y: Floats, scores: Floats, weight: Floats | None) -> Floats:
        """Return the gradient of each row's loss, (n_scores, n_rows)."""
        return _engine.loss_gradients(self.name, self.parameter_at(y, scores, weight), y, scores)[0]

    def values(self, targets: Floats, scores: Floats, weight: Floats | None) -> Floats:
        """Return the loss of each row, at scores, (n_scores, n_rows), of targets, (n_parts, n_rows)."""
        total, first = np.zeros(targets.shape[1]), 0
        for part, y in zip(self.parts, targets, strict=True):
            some = np.ascontiguousarray(scores[first : first + part.n_scores])
            total = total + part.weight * _engine.loss_rows(part.name, part.parameter_at(y, some, weight), y, some)
            first += part.n_scores
        return total

    def mean_on(self, rows: LearningRows, training: LossOnRows | None = None) -> Callable[[Floats], float]:
        """Return the mean loss of rows, as a function of their scores, (n_rows, n_scores).

        `training` is the loss of the training rows, if it is custom.
        """
        if self.custom is not None:
            loss = self.custom(rows) if training is None else training.held_out(rows)
            return lambda scores: loss.mean_loss(np.ascontiguousarray(scores.T))
        weight, targets = rows.weights(), self.targets(rows)
        return lambda scores: float(np.average(self.values(targets, scores.T, weight), weights=weight))

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

        The parameter of a normal distribution is the variance of all rows.
        """
        used, weights = rows.used, rows.weights_view[rows.used]
        if self.name == "normal" and rows.target.ndim == 1:
            offset = None if rows.offset is None else rows.offset[:, used]
            deviation = exp(self.constants(rows.target[used], weights, offset)[1])
            return replace(self, parameter=float(deviation) ** 2)
        if rows.target.ndim == 1:
            return self
        columns = zip(self.parts, rows.target[used].T, strict=True)
        scales = [_unit_weight(part, y, weights) for part, y in columns]
        parts = (replace(part, weight=scale / len(scales)) for part, scale in zip(self.parts, scales, strict=True))
        return replace(self, by_output=tuple(parts))


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
    return named_loss(name, focal_gamma if TRAITS[name].parameter else 0.0)


def loss_of_outputs(parts: Sequence[Loss], link: str) -> Loss:
    """Return the loss of several outputs: the mean of theirs."""
    return replace(parts[0], link=link, by_output=tuple(replace(part, weight=1 / len(parts)) for part in parts))


CustomLoss = Any  # a formula loss(y, f), or an object with the methods loss, gradient and perhaps hessian
_CHECKED_ROWS, _STEP, _TOLERANCE = 50, 1e-4, 1e-3  # rows, step and relative error of the finite-difference check
_COMPARED_ROWS, _SAME = 1000, 1e-9  # rows on which the engine is compared with NumPy, and its relative error
Formula = Callable[[Floats, Floats], tuple[Floats, ...]]  # of targets and scores, row by row
_ROWS = 32_768  # of a block: the intermediate arrays of a formula fit into a cache


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


class BlockwiseFormula:
    """Evaluates a formula in blocks of rows on several threads.

    A formula that uses all rows together, such as the mean of the targets, gives other results in blocks, as the first
    call finds out; it is evaluated on all rows at once then.
    """

    def __init__(self, formula: Formula, n_jobs: int | None) -> None:
        self._formula = formula
        self._n_jobs = n_jobs or None
        self._is_tried = self._is_blockwise = False

    def __call__(self, y: Floats, f: Floats) -> tuple[Floats, ...]:
        """Evaluate the formula."""
        if len(y) <= _ROWS or (self._is_tried and not self._is_blockwise):
            return self._formula(y, f)
        if self._is_tried:
            return self._in_blocks(y, f)
        whole = self._formula(y, f)
        self._is_tried = True
        shaped = all(np.shape(array) == (len(y),) for array in whole)
        try:
            self._is_blockwise = shaped and all(map(np.array_equal, self._in_blocks(y, f), whole))
        except ValueError:  # the formula needs all rows
            self._is_blockwise = False
        return whole

    def _in_blocks(self, y: Floats, f: Floats) -> tuple[Floats, ...]:
        n_blocks = -(-len(y) // _ROWS)

        def work(block: int) -> tuple[Floats, ...]:
            rows = slice(block * _ROWS, (block + 1) * _ROWS)
            return self._formula(y[rows], f[rows])

        blocks = list(in_order(work, n_blocks, count_threads(self._n_jobs, n_blocks)))
        return tuple(np.concatenate(arrays) for arrays in zip(*blocks, strict=True))


class DifferentiableFormula:
    """Value, first and second derivative of a formula with respect to the score.

    The engine computes them from the recorded operations of the formula if it knows all of these and agrees with NumPy
    on some rows; otherwise NumPy computes them.
    """

    def __init__(self, formula: Callable[[Any, Any], Any], n_jobs: int | None) -> None:
        self._formula = formula
        self._by_numpy = BlockwiseFormula(lambda y, f: derivatives(lambda at: formula(y, at), f), n_jobs)
        self._program: _engine.Formula | None = None
        self._is_tried = False
        self._n_jobs = n_jobs or 0

    def __call__(self, y: Floats, f: Floats, out: Floats | None = None) -> Floats | tuple[Floats, ...]:
        """Return the three, (3, n_rows); the result may be written to `out`."""
        if not self._is_tried:
            self._is_tried = True
            self._program = self._compiled(y, f)
        return self._by_numpy(y, f) if self._program is None else self._run(self._program, y, f, out)

    def _run(self, program: _engine.Formula, y: Floats, f: Floats, out: Floats | None = None) -> Floats:
        found = np.empty((3, len(y))) if out is None else out
        program.run(np.ascontiguousarray(y), np.ascontiguousarray(f), found, self._n_jobs)
        return found

    def _compiled(self, y: Floats, f: Floats) -> _engine.Formula | None:
        """Return the formula as a program of the engine, if there is one that agrees with NumPy."""
        program = recorded(self._formula)
        if program is None:
            return None
        some = np.unique(np.linspace(0, len(y) - 1, _COMPARED_ROWS).astype(np.intp))
        expected = derivatives(lambda at: self._formula(y[some], at), f[some])
        is_same = all(
            np.allclose(mine, theirs, rtol=_SAME, atol=_SAME * float(np.abs(theirs).max(initial=0.0)), equal_nan=True)
            for mine, theirs in zip(self._run(program, y[some], f[some]), expected, strict=True)
        )
        return program if is_same else None


class UserLoss:
    """A user's loss: a formula ``loss(y, f)``, or an object with ``loss``, ``gradient`` and perhaps ``hessian``.

    Attributes
    ----------
    link : str
        How scores become predictions.
    """

    def __init__(self, loss: CustomLoss, of_classes: bool, n_jobs: int | None = 1) -> None:
        self._loss = loss
        self._formula = DifferentiableFormula(loss, n_jobs)
        self._is_formula = not hasattr(loss, "gradient")
        self._of_classes = of_classes
        self.link = getattr(loss, "link", "logit" if of_classes else "identity")
        if self.link == "softmax" or not is_link(self.link) or is_of_classes(self.link) != of_classes:
            raise ValueError(f"The loss has link={self.link!r}, which scores of this target cannot have.")

    def target(self, rows: LearningRows) -> Floats:
        """Return the targets for the user's functions: classes are -1 and 1."""
        return 2 * rows.target - 1 if self._of_classes else rows.target

    def values(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row by the user's function."""
        return _checked(self._loss(y, f) if self._is_formula else self._loss.loss(y, f), len(y), "loss")

    def row_gradients(self, y: Floats, f: Floats) -> Floats:
        """Return the gradient of each row's loss."""
        if self._is_formula:
            return _checked(self._formula(y, f)[1], len(y), "the derivative of loss")
        return _checked(self._loss.gradient(y, f), len(y), "gradient")

    def losses(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row, perhaps computed by the engine."""
        return _checked(self._formula(y, f)[0], len(y), "loss") if self._is_formula else self.values(y, f)

    def derivatives(self, y: Floats, f: Floats, out: Floats | None = None) -> Floats:
        """Return loss, gradient and absolute hessian (1 if the user gives none) of each row, (3, n_rows).

        The result may be written to `out`.
        """
        found = np.empty((3, len(y))) if out is None else out
        if self._is_formula:
            arrays = self._formula(y, f, found)
            names = ("loss", "the derivative of loss", "the second derivative of loss")
            for array, name in zip(arrays, names, strict=True):
                _checked(array, len(y), name)
            if arrays is not found:
                found[:] = arrays
            np.abs(found[2], out=found[2])
            return found
        found[0], found[1], found[2] = self.values(y, f), self.row_gradients(y, f), 1.0
        if hasattr(self._loss, "hessian"):
            np.abs(_checked(self._loss.hessian(y, f), len(y), "hessian"), out=found[2])
        return found

    def start(self, y: Floats, weight: Floats, offset: Floats) -> float:
        """Return the constant score of least loss given an offset; refuse a gradient that contradicts the loss."""
        y = 2 * y - 1 if self._of_classes else y
        base, scale = 0.0, 1.0
        if self.link == "identity":
            mean = float(np.average(y, weights=weight))
            base = mean + float(np.average(y - mean, weights=weight)) if np.isfinite(mean) else mean
            scale = float(np.abs(y - base).max(initial=0.0)) or 1.0
        reach = float(np.abs(offset).max(initial=0.0))
        constant = _engine.root_of_sum(lambda at: self.row_gradients(y, at + offset) * weight, reach, base, scale)
        self.check_gradient(y, constant + offset)
        return constant

    def check_gradient(self, y: Floats, f: Floats) -> None:
        """Refuse a gradient that differs from finite differences of the loss at some rows."""
        some = np.unique(np.linspace(0, len(y) - 1, _CHECKED_ROWS).astype(np.intp))
        y, f = y[some], f[some]
        step = _STEP * np.maximum(1, np.abs(f))
        before, after = self.values(y, f - step), self.values(y, f + step)
        slope, gradient = (after - before) / (2 * step), self.row_gradients(y, f)
        kink = np.abs(after + before - 2 * self.values(y, f)) / step  # a corner has two slopes
        size = np.maximum(np.abs(slope), np.abs(gradient)).max(initial=0.0)
        excess = np.abs(slope - gradient) - kink - _TOLERANCE * size
        if excess.max(initial=0.0) > 0:
            worst = int(excess.argmax())
            raise ValueError(
                f"gradient(y, f) of the loss is {gradient[worst]:g} at y={y[worst]:g}, f={f[worst]:g}, where the "
                f"loss has the slope {slope[worst]:g}. Correct one of them, or give the loss alone."
            )

    def __call__(self, rows: LearningRows) -> UserLossOnRows:
        """Bind the loss to rows."""
        return UserLossOnRows(self, rows)


class UserLossOnRows(LossOnRows):
    """A user's loss, bound to rows."""

    def __init__(self, loss: UserLoss, rows: LearningRows) -> None:
        self._loss = loss
        self._y = loss.target(rows)
        self._weight = rows.weights()
        self._is_whole = bool((self._weight > 0).all())
        self._is_training = False
        self._scores = np.empty(0)
        self._derivatives: Floats | None = None  # at these scores

    @property
    def default_max_step(self) -> float:
        """Standard deviation of the targets, for the identity link: Newton's steps may diverge."""
        if self._loss.link != "identity":
            return 0.0
        mean = np.average(self._y, weights=self._weight)
        return float(np.sqrt(np.average((self._y - mean) ** 2, weights=self._weight)))

    def held_out(self, rows: LearningRows) -> UserLossOnRows:
        """Return the loss bound to other rows."""
        return UserLossOnRows(self._loss, rows)

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (1, n_rows)."""
        self._is_training = True
        _, gradients, hessians = self._at(scores[0])
        if not hessians[self._weight > 0].any():  # such as of absolute errors: use the gradients alone
            hessians = np.ones_like(hessians)
        return gradients[np.newaxis], hessians[np.newaxis]

    def mean_loss(self, scores: Floats) -> float:
        """Return the weighted mean loss; in training, the derivatives are stored for the next round."""
        if self._is_training:
            return float(np.average(self._at(scores[0])[0], weights=self._weight))
        y, f, weight = self._y, scores[0], self._weight
        if not self._is_whole:
            used = weight > 0
            y, f, weight = y[used], f[used], weight[used]
        return float(np.average(self._loss.losses(y, f), weights=weight))

    def _at(self, f: Floats) -> Floats:
        if self._derivatives is None or not np.array_equal(self._scores, f):
            self._derivatives, self._scores = self._loss.derivatives(self._y, f, self._derivatives), f
        return self._derivatives


def _checked(values: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return the result of a user's function; refuse any other than a finite number for each row."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n_rows,):
        raise ValueError(f"{name}(y, f) of the loss returned shape {found.shape}; it needs ({n_rows},).")
    if not np.isfinite(found).all():
        raise ValueError(f"{name}(y, f) of the loss returned NaN or infinity. Check it at large scores.")
    return found
