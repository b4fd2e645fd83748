"""Losses of gradient boosting: those of the engine by name, sums of several, and losses that are defined here.

A loss that the engine does not know gives it gradients and hessians before each round. A user's formula of one row is
differentiated here, in blocks of rows on several threads, or by the engine if it has all of the formula's operations.
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

    def mean_on(self, rows: LearningRows, known: LossOfRows | None = None) -> Callable[[Floats], float]:
        """Return the mean loss of rows, as a function of their scores, (n_rows, n_scores).

        `known` is the loss of the rows that were learned from, if the engine does not know it.
        """
        if self.outside is not None:
            of_rows = self.outside(rows) if known is None else known.held_out(rows)
            return lambda scores: of_rows.mean_loss(np.ascontiguousarray(scores.T))
        weight, targets = rows.weights(), self.targets(rows)
        return lambda scores: float(np.average(self.values(targets, scores.T, weight), weights=weight))

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


def loss_of_outputs(parts: Sequence[Loss], link: str) -> Loss:
    """Return the loss of several columns of the target: the mean of theirs."""
    return replace(parts[0], link=link, of=tuple(replace(part, weight=1 / len(parts)) for part in parts))


CustomLoss = Any  # a formula loss(y, f), or an object with the methods loss, gradient and perhaps hessian
_TRIED, _STEP, _OFF = 50, 1e-4, 1e-3  # rows, step and relative error of the check by differences
_PROVED_ON, _SAME = 1000, 1e-9  # rows by which the engine is compared with NumPy, and what it may be off
Formula = Callable[[Floats, Floats], tuple[Floats, ...]]  # of targets and scores, row by row
_ROWS = 32_768  # of a block: the arrays that a formula has under way fit a cache


class LossOfRows(ABC):
    """The loss of certain rows at their scores, (n_scores, n_rows).

    Attributes
    ----------
    scale : float or None
        The scale that moves along with the rounds, of a loss that has one.
    """

    scale: float | None = None

    @property
    def largest_step(self) -> float:
        """Largest value of a leaf (`max_step`) by default; 0 means no limit."""
        return 0.0

    @abstractmethod
    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradients and second derivatives by score column and row, before weights."""

    @abstractmethod
    def mean_loss(self, scores: Floats) -> float:
        """Weighted mean."""

    @abstractmethod
    def held_out(self, rows: LearningRows) -> LossOfRows:
        """Return the loss of other rows, by what is learned from these."""


LossMaker = Callable[[LearningRows], LossOfRows]


class CustomLosses:
    """The loss of the rows that a booster learns from, of those held out, and of those that a round does not draw.

    Attributes
    ----------
    learning, held_out : LossOfRows
        Rows to learn from, and others, if there are any.
    """

    def __init__(self, loss: LossMaker, learning: LearningRows, held_out: LearningRows | None) -> None:
        self._rows = learning
        self.learning = loss(learning)
        self.held_out = None if held_out is None else self.learning.held_out(held_out)
        self._before: Floats | None = None  # scores that the round begins with

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradients and second derivatives of the rows to learn from, before a round."""
        self._before = scores
        return self.learning.gradients(scores)

    def losses(self, engine: _engine.Boosting, judges_out_of_bag: bool) -> tuple[float, float, float, float]:
        """Losses at the present scores: of the rows learned from, held out, and out of bag before and after."""
        held_out = np.nan if self.held_out is None else self.held_out.mean_loss(engine.held_out_scores())
        before, scores = self._before, engine.scores()
        self._before = scores  # where several rounds fit the same gradients
        training, out_of_bag = self.learning.mean_loss(scores), (np.nan, np.nan)
        if judges_out_of_bag and before is not None:
            out_of_bag = self._out_of_bag(engine, before, scores)
        return training, held_out, *out_of_bag

    def _out_of_bag(self, engine: _engine.Boosting, before: Floats, after: Floats) -> tuple[float, float]:
        weight = self._rows.weights() * np.frombuffer(engine.out_of_bag(), dtype=np.uint8)
        if not (weight > 0).any():
            return np.nan, np.nan
        rows = self.learning.held_out(replace(self._rows, weight=weight))
        return rows.mean_loss(before), rows.mean_loss(after)


class InBlocks:
    """Computes a formula block by block, if that gives what it gives for all rows at once, to the bit.

    A formula may look at its targets as a whole, at their mean for instance; it is computed at once then.
    """

    def __init__(self, formula: Formula, n_jobs: int | None) -> None:
        self._formula = formula
        self._n_jobs = n_jobs or None
        self._is_tried = self._is_apart = False

    def __call__(self, y: Floats, f: Floats) -> tuple[Floats, ...]:
        """Return what the formula gives."""
        if len(y) <= _ROWS or (self._is_tried and not self._is_apart):
            return self._formula(y, f)
        if self._is_tried:
            return self._apart(y, f)
        whole = self._formula(y, f)
        self._is_tried = True
        shaped = all(np.shape(part) == (len(y),) for part in whole)
        try:
            self._is_apart = shaped and all(map(np.array_equal, self._apart(y, f), whole))
        except ValueError:  # it cannot take the rows in part
            self._is_apart = False
        return whole

    def _apart(self, y: Floats, f: Floats) -> tuple[Floats, ...]:
        n_blocks = -(-len(y) // _ROWS)

        def work(block: int) -> tuple[Floats, ...]:
            rows = slice(block * _ROWS, (block + 1) * _ROWS)
            return self._formula(y[rows], f[rows])

        found = list(in_order(work, n_blocks, count_threads(self._n_jobs, n_blocks)))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


class FormulaOfRows:
    """Value, first and second derivative of a formula, by score.

    The engine computes them, by a program of the formula's operations, if it has all of these and gives what NumPy
    gives at some rows; otherwise NumPy does.
    """

    def __init__(self, formula: Callable[[Any, Any], Any], n_jobs: int | None) -> None:
        self._formula = formula
        self._by_numpy = InBlocks(lambda y, f: derivatives(lambda at: formula(y, at), f), n_jobs)
        self._program: _engine.Formula | None = None
        self._is_tried = False
        self._n_jobs = n_jobs or 0

    def __call__(self, y: Floats, f: Floats, out: Floats | None = None) -> Floats | tuple[Floats, ...]:
        """Return the three by row; `out`, (3, n_rows), may be written to."""
        if not self._is_tried:
            self._is_tried = True
            self._program = self._proved(y, f)
        return self._by_numpy(y, f) if self._program is None else self._run(self._program, y, f, out)

    def _run(self, program: _engine.Formula, y: Floats, f: Floats, out: Floats | None = None) -> Floats:
        found = np.empty((3, len(y))) if out is None else out
        program.run(np.ascontiguousarray(y), np.ascontiguousarray(f), found, self._n_jobs)
        return found

    def _proved(self, y: Floats, f: Floats) -> _engine.Formula | None:
        """Return the program, if there is one that does the same."""
        program = recorded(self._formula)
        if program is None:
            return None
        some = np.unique(np.linspace(0, len(y) - 1, _PROVED_ON).astype(np.intp))
        wanted = derivatives(lambda at: self._formula(y[some], at), f[some])
        is_same = all(
            np.allclose(mine, theirs, rtol=_SAME, atol=_SAME * float(np.abs(theirs).max(initial=0.0)), equal_nan=True)
            for mine, theirs in zip(self._run(program, y[some], f[some]), wanted, strict=True)
        )
        return program if is_same else None


class UserLoss:
    """A user's loss: a formula ``loss(y, f)``, or an object with ``loss``, ``gradient`` and perhaps ``hessian``.

    Attributes
    ----------
    link : str
        How scores become predictions.
    """

    def __init__(self, given: CustomLoss, of_classes: bool, n_jobs: int | None = 1) -> None:
        self._given = given
        self._formula = FormulaOfRows(given, n_jobs)
        self._is_formula = not hasattr(given, "gradient")
        self._of_classes = of_classes
        self.name = str(getattr(given, "__name__", type(given).__name__))
        self.link = getattr(given, "link", "logit" if of_classes else "identity")
        if self.link == "softmax" or not is_link(self.link) or is_of_classes(self.link) != of_classes:
            raise ValueError(f"The loss has link={self.link!r}, which scores of this target cannot have.")

    def target(self, rows: LearningRows) -> Floats:
        """Return targets as the user's functions take them: classes are -1 and 1."""
        return 2 * rows.target - 1 if self._of_classes else rows.target

    def values(self, y: Floats, f: Floats) -> Floats:
        """Loss of each row, as the user's function gives it."""
        return _checked(self._given(y, f) if self._is_formula else self._given.loss(y, f), len(y), "loss")

    def slopes(self, y: Floats, f: Floats) -> Floats:
        """Slope of each row's loss by its score."""
        if self._is_formula:
            return _checked(self._formula(y, f)[1], len(y), "the derivative of loss")
        return _checked(self._given.gradient(y, f), len(y), "gradient")

    def losses(self, y: Floats, f: Floats) -> Floats:
        """Loss of each row, as it is learned from."""
        return _checked(self._formula(y, f)[0], len(y), "loss") if self._is_formula else self.values(y, f)

    def at(self, y: Floats, f: Floats, known: Floats | None = None) -> Floats:
        """Loss, slope and size of the second derivative, 1 where the user gives none, by row.

        `known` is an earlier answer of as many rows that is no longer in use: this one may be written to it.
        """
        found = np.empty((3, len(y))) if known is None else known
        if self._is_formula:
            parts = self._formula(y, f, found)
            for part, what in zip(
                parts, ("loss", "the derivative of loss", "the second derivative of loss"), strict=True
            ):
                _checked(part, len(y), what)
            if parts is not found:
                found[:] = parts
            np.abs(found[2], out=found[2])
            return found
        found[0], found[1], found[2] = self.values(y, f), self.slopes(y, f), 1.0
        if hasattr(self._given, "hessian"):
            np.abs(_checked(self._given.hessian(y, f), len(y), "hessian"), out=found[2])
        return found

    def start(self, y: Floats, weight: Floats, offset: Floats) -> float:
        """Return the constant score of least loss beside an offset; refuse a gradient that is not the loss's slope."""
        y = 2 * y - 1 if self._of_classes else y
        base, scale = 0.0, 1.0
        if self.link == "identity":
            mean = float(np.average(y, weights=weight))
            base = mean + float(np.average(y - mean, weights=weight)) if np.isfinite(mean) else mean
            scale = float(np.abs(y - base).max(initial=0.0)) or 1.0
        reach = float(np.abs(offset).max(initial=0.0))
        constant = _engine.balance_point(lambda at: self.slopes(y, at + offset) * weight, reach, base, scale)
        self.check_slopes(y, constant + offset)
        return constant

    def check_slopes(self, y: Floats, f: Floats) -> None:
        """Refuse a gradient that is not the slope of the loss, as differences tell it at some rows."""
        some = np.unique(np.linspace(0, len(y) - 1, _TRIED).astype(np.intp))
        y, f = y[some], f[some]
        step = _STEP * np.maximum(1, np.abs(f))
        before, after = self.values(y, f - step), self.values(y, f + step)
        rise, slope = (after - before) / (2 * step), self.slopes(y, f)
        kink = np.abs(after + before - 2 * self.values(y, f)) / step  # a corner has two slopes
        off = np.abs(rise - slope) - kink - _OFF * np.maximum(np.abs(rise), np.abs(slope)).max(initial=0.0)
        if off.max(initial=0.0) > 0:
            worst = int(off.argmax())
            raise ValueError(
                f"gradient(y, f) of the loss is {slope[worst]:g} at y={y[worst]:g}, f={f[worst]:g}, where the "
                f"loss has the slope {rise[worst]:g}. Correct one of them, or give the loss alone."
            )

    def __call__(self, rows: LearningRows) -> UserLossRows:
        """Return the loss of certain rows."""
        return UserLossRows(self, rows)


class UserLossRows(LossOfRows):
    """A user's loss of certain rows."""

    def __init__(self, loss: UserLoss, rows: LearningRows) -> None:
        self._loss = loss
        self._y = loss.target(rows)
        self._weight = rows.weights()
        self._is_whole = bool((self._weight > 0).all())
        self._learns = False
        self._at_scores = np.empty(0)
        self._known: Floats | None = None  # loss, slope and curve there

    @property
    def largest_step(self) -> float:
        """Standard deviation of targets that scores are like: Newton's steps may run away."""
        if self._loss.link != "identity":
            return 0.0
        mean = np.average(self._y, weights=self._weight)
        return float(np.sqrt(np.average((self._y - mean) ** 2, weights=self._weight)))

    def held_out(self, rows: LearningRows) -> UserLossRows:
        """Return the loss of other rows."""
        return UserLossRows(self._loss, rows)

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradients and second derivatives by row."""
        self._learns = True
        _, slopes, curves = self._at(scores[0])
        if not curves[self._weight > 0].any():  # as of absolute values: steps by the gradient alone
            curves = np.ones_like(curves)
        return slopes[np.newaxis], curves[np.newaxis]

    def mean_loss(self, scores: Floats) -> float:
        """Weighted mean; the gradients that the next round asks for come with it."""
        if self._learns:
            return float(np.average(self._at(scores[0])[0], weights=self._weight))
        y, f, weight = self._y, scores[0], self._weight
        if not self._is_whole:
            used = weight > 0
            y, f, weight = y[used], f[used], weight[used]
        return float(np.average(self._loss.losses(y, f), weights=weight))

    def _at(self, f: Floats) -> Floats:
        if self._known is None or not np.array_equal(self._at_scores, f):
            self._known, self._at_scores = self._loss.at(self._y, f, self._known), f
        return self._known


def _checked(values: ArrayLike, n_rows: int, what: str) -> Floats:
    """Return what a user's function gives, if it is a number for each row."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n_rows,):
        raise ValueError(f"{what}(y, f) of the loss returned shape {found.shape}; it needs ({n_rows},).")
    if not np.isfinite(found).all():
        raise ValueError(f"{what}(y, f) of the loss returned NaN or infinity. Check it at large scores.")
    return found
