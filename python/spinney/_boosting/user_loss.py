"""Losses of users: formulas, objects with a gradient, and functions that return gradients and hessians.

A formula of one row is differentiated by the engine if it knows all operations of the formula, else by NumPy in blocks
of rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import CustomLoss, Loss, LossOnRows, UserFunction, class_loss, named_loss
from spinney._data.display import warn
from spinney._data.formulas import derivatives, recorded
from spinney._data.types import Floats
from spinney._estimator.parallel import count_threads, in_order
from spinney._model.links import is_link, is_of_classes

_CHECKED_ROWS, _STEP, _TOLERANCE = 50, 1e-4, 1e-3  # rows, step and relative error of the finite-difference check
_COMPARED_ROWS, _SAME = 1000, 1e-9  # rows on which the engine is compared with NumPy, and its relative error
Formula = Callable[[Floats, Floats], tuple[Floats, ...]]  # of targets and scores, row by row
_PREDICTIONS = ("preds", "pred", "predt", "predictions", "y_pred", "y_hat", "scores", "raw_scores", "margin", "margins")
_TARGETS = ("y", "y_true", "label", "labels", "target", "targets", "dtrain", "train_data", "data", "dataset", "dmatrix")
_ROWS = 32_768  # of a block: the intermediate arrays of a formula fit into a cache


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
        self._loss: Any = loss
        self._is_formula = not hasattr(loss, "gradient")
        self._formula = DifferentiableFormula(cast(UserFunction, loss), n_jobs)
        self._of_classes = of_classes
        self.link = getattr(loss, "link", "logit" if of_classes else "identity")
        is_usable = isinstance(self.link, str) and self.link != "softmax" and is_link(self.link)
        if not is_usable or is_of_classes(self.link) != of_classes:
            raise ValueError(f"The loss has link={self.link!r}, which scores of this target cannot have.")

    def target(self, rows: LearningRows) -> Floats:
        """Return the targets for the user's functions: classes are -1 and 1."""
        return 2 * rows.target - 1 if self._of_classes else rows.target

    def is_formula_of(self, y: Floats) -> bool:
        """Return whether the user's function returns a loss for each of some targets, and not a pair of arrays.

        Classes are 0 and 1. The function is called with all training rows, as it may not work with fewer.
        """
        f = np.full(len(y), y.mean() if self.link == "identity" else 0.0)
        with np.errstate(all="ignore"):
            try:
                result = _called(self._loss, y, f)
            except ValueError:
                if not self._of_classes:
                    raise
                result = _called(self._loss, 2 * y - 1, f)  # a formula may insist on classes -1 and 1
        if _is_pair(result):
            return False
        if np.shape(result) != y.shape:
            found = f"shape {np.shape(result)}" if isinstance(result, np.ndarray) else f"a {type(result).__name__}"
            raise ValueError(f"The loss function returned {found} for {len(y)} rows. {_advice()}")
        return True

    def values(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row by the user's function."""
        return _checked(_called(self._loss if self._is_formula else self._loss.loss, y, f), len(y), "loss")

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

    def start(self, y: Floats, weight: Floats, offset: Floats) -> Floats:
        """Return the constant score of least loss given an offset, or the user's; refuse a gradient that is wrong."""
        y = 2 * y - 1 if self._of_classes else y
        if hasattr(self._loss, "start"):
            found = _own_start(self._loss, y, weight, 1)
        else:
            found = np.array([_zero_gradient(self.row_gradients, y, weight, offset[0], self.link)])
        self.check_gradient(y, found[0] + offset[0])
        return found

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


class UserObjective:
    """A user's function that returns gradients and hessians, as XGBoost and LightGBM take it.

    It is called with targets, classes as 0, 1, ..., and with scores: one per row, or (n_rows, n_scores). Its loss is
    not known, so the learning curve and early stopping use the log loss or the squared error.

    Attributes
    ----------
    link : str
        How scores become predictions.
    n_scores : int
        Scores of a row.
    """

    def __init__(self, objective: UserFunction, n_classes: int | None) -> None:
        self._objective = objective
        self.n_scores = _count_scores(n_classes)
        self.link = "identity" if n_classes is None else "logit" if self.n_scores == 1 else "softmax"
        self.evaluation = named_loss("squared_error") if n_classes is None else class_loss("log_loss", n_classes)

    def derivatives(self, y: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and absolute hessians at scores, all of shape (n_scores, n_rows)."""
        by_row = scores[0] if self.n_scores == 1 else np.ascontiguousarray(scores.T)
        result = _called(self._objective, y, by_row)
        if not _is_pair(result):
            raise ValueError(
                f"The loss function returned no pair for scores of shape {by_row.shape}. {_advice(self.n_scores)}"
            )
        gradient, hessian = (
            _checked(np.reshape(array, by_row.shape) if np.size(array) == by_row.size else array, by_row.shape, name)
            for array, name in zip(result, ("gradient", "hessian"), strict=True)
        )
        shape = scores.shape
        return np.ascontiguousarray(gradient.T).reshape(shape), np.ascontiguousarray(np.abs(hessian).T).reshape(shape)

    def row_losses(self, y: Floats, scores: Floats, weight: Floats) -> Floats:
        """Return the losses of rows that evaluate rounds, at scores, (n_scores, n_rows)."""
        return self.evaluation.values(y[np.newaxis], scores, weight)

    def start(self, y: Floats, weight: Floats, offset: Floats) -> Floats:
        """Return the constant score at which the gradients sum to 0 given an offset; 0 for several scores."""
        if self.n_scores > 1:
            return np.zeros(self.n_scores)

        def row_gradients(y: Floats, f: Floats) -> Floats:
            gradients, _ = self.derivatives(y, f[np.newaxis])
            return np.asarray(gradients[0])

        start = np.array([_zero_gradient(row_gradients, y, weight, offset[0], self.link)])
        self._warn_if_reversed(y, weight, start + offset)
        return start

    def _warn_if_reversed(self, y: Floats, weight: Floats, scores: Floats) -> None:
        """Warn if no gradient rises with its score although the hessians are positive, as with swapped arguments."""
        step = 1e-3 * max(1.0, float(np.ptp(y)))
        (gradients, hessians), (beyond, _) = self.derivatives(y, scores), self.derivatives(y, scores + step)
        used = weight > 0
        change = ((beyond - gradients) / step)[:, used]
        curvature = hessians[:, used]
        if (curvature > 0).all() and (change <= 0).all() and (change < -1e-3 * curvature).mean() > 0.5:
            warn(
                "The gradients of the loss function fall as the scores rise, so that boosting may increase the loss: "
                "the arguments of the function may be swapped, or the sign of its gradient reversed. It is called with "
                "(targets, scores), and returns the derivatives of the loss with respect to the scores."
            )

    def __call__(self, rows: LearningRows) -> UserObjectiveOnRows:
        """Bind the objective to rows."""
        return UserObjectiveOnRows(self, rows)


class UserObjectiveOnRows(LossOnRows):
    """A user's objective, bound to rows."""

    def __init__(self, objective: UserObjective, rows: LearningRows) -> None:
        self._objective = objective
        self._y, self._weight = rows.target, rows.weights()

    @property
    def default_max_step(self) -> float:
        """Largest distance of a target from their mean, for the identity link: hessians may be too small."""
        if self._objective.link != "identity":
            return 0.0
        mean = np.average(self._y, weights=self._weight)
        return float(np.abs(self._y[self._weight > 0] - mean).max())

    def held_out(self, rows: LearningRows) -> UserObjectiveOnRows:
        """Return the objective bound to other rows."""
        return UserObjectiveOnRows(self._objective, rows)

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (n_scores, n_rows)."""
        gradients, hessians = self._objective.derivatives(self._y, scores)
        if not hessians[:, self._weight > 0].any():  # such as of absolute errors: use the gradients alone
            hessians = np.ones_like(hessians)
        return gradients, hessians

    def mean_loss(self, scores: Floats) -> float:
        """Return the weighted mean of the loss that evaluates rounds."""
        used = self._weight > 0
        losses = self._objective.row_losses(self._y[used], scores[:, used], self._weight[used])
        return float(np.average(losses, weights=self._weight[used]))


class UserClassLoss(UserObjective):
    """A user's loss of several classes: an object with ``loss``, ``gradient`` and perhaps ``hessian`` and ``start``."""

    def __init__(self, loss: Any, n_classes: int) -> None:
        super().__init__(self._pair, n_classes)
        self._loss = loss
        link = getattr(loss, "link", self.link)
        if link != self.link:
            raise ValueError(f"The loss has link={link!r}. With {n_classes} classes it must be {self.link!r}.")

    def _pair(self, y: Floats, scores: Floats) -> tuple[Any, Any]:
        has_hessian = hasattr(self._loss, "hessian")
        return self._loss.gradient(y, scores), self._loss.hessian(y, scores) if has_hessian else np.ones_like(scores)

    def row_losses(self, y: Floats, scores: Floats, weight: Floats | None = None) -> Floats:
        """Return the loss of each row at scores, (n_scores, n_rows)."""
        return _checked(_called(self._loss.loss, y, np.ascontiguousarray(scores.T)), len(y), "loss")

    def start(self, y: Floats, weight: Floats, offset: Floats) -> Floats:
        """Return the user's initial scores, or zeros; refuse a gradient that contradicts the loss."""
        has_start = hasattr(self._loss, "start")
        found = _own_start(self._loss, y, weight, self.n_scores) if has_start else np.zeros(self.n_scores)
        some = np.unique(np.linspace(0, len(y) - 1, _CHECKED_ROWS).astype(np.intp))
        for k in range(self.n_scores):
            self._check_slope(y[some], found[:, np.newaxis] + offset[:, some], k)
        return found

    def _check_slope(self, y: Floats, scores: Floats, k: int) -> None:
        """Refuse a gradient of one score that differs from finite differences of the loss."""
        step = np.zeros_like(scores)
        step[k] = _STEP * np.maximum(1, np.abs(scores[k]))
        values = [self.row_losses(y, at) for at in (scores - step, scores, scores + step)]
        gradient, width = self.derivatives(y, scores)[0][k], 2 * step[k]
        slope, kink = (values[2] - values[0]) / width, 2 * np.abs(values[2] + values[0] - 2 * values[1]) / width
        size = np.maximum(np.abs(slope), np.abs(gradient)).max(initial=0.0)
        excess = np.abs(slope - gradient) - kink - _TOLERANCE * size
        if excess.max(initial=0.0) > 0:
            worst = int(excess.argmax())
            raise ValueError(
                f"gradient(y, f) of the loss is {gradient[worst]:g} for score {k} at y={y[worst]:g}, "
                f"f={scores[:, worst].tolist()}, where the loss has the slope {slope[worst]:g}. Correct one of them."
            )


def _own_start(loss: Any, y: Floats, weight: Floats, n_scores: int) -> Floats:
    """Return the initial scores that a user's loss object computes from targets and weights."""
    found = np.atleast_1d(np.asarray(loss.start(y, weight), dtype=np.float64))
    if found.shape != (n_scores,) or not np.isfinite(found).all():
        wanted = "one finite number" if n_scores == 1 else f"{n_scores} finite numbers"
        raise ValueError(f"start(y, weight) of the loss returned {found.tolist()}; it must return {wanted}.")
    return found


def _count_scores(n_classes: int | None) -> int:
    """Return the number of scores of a row: one for numbers (None) and two classes, else one per class."""
    return n_classes if n_classes is not None and n_classes > 2 else 1


class FormulaOrObjective:
    """A user's function: a formula of the loss or an objective, as its first call with the training rows shows.

    Attributes
    ----------
    link : str
        How scores become predictions.
    """

    def __init__(self, function: UserFunction, n_classes: int | None, n_jobs: int | None) -> None:
        self._function, self._n_classes = function, n_classes
        self._formula = UserLoss(function, n_classes is not None, n_jobs)
        self.link = self._formula.link
        self._kind: UserLoss | UserObjective | None = None

    def start(self, y: Floats, weight: Floats, offset: Floats) -> Floats:
        """Return the constant score of least loss given an offset."""
        return self._resolved(y).start(y, weight, offset)

    def __call__(self, rows: LearningRows) -> LossOnRows:
        """Bind the loss to rows."""
        return self._resolved(rows.target)(rows)

    def _resolved(self, y: Floats) -> UserLoss | UserObjective:
        if self._kind is None:
            is_formula = self._formula.is_formula_of(y)
            self._kind = self._formula if is_formula else UserObjective(self._function, self._n_classes)
        return self._kind


def user_loss(loss: CustomLoss, n_classes: int | None, n_jobs: int | None) -> Loss:
    """Return a user's loss or objective; `n_classes` is None for numbers."""
    custom: UserLoss | UserObjective | FormulaOrObjective
    if not callable(loss) or hasattr(loss, "gradient"):
        if n_classes is not None and _count_scores(n_classes) > 1:
            return Loss("outside", "softmax", n_scores=n_classes, custom=UserClassLoss(loss, n_classes))
        custom = UserLoss(loss, n_classes is not None, n_jobs)
        return Loss("outside", custom.link, n_scores=_count_scores(n_classes), custom=custom)
    _check_order(loss)
    if _count_scores(n_classes) > 1:
        custom = UserObjective(loss, n_classes)
    else:
        custom = FormulaOrObjective(loss, n_classes, n_jobs)
    return Loss("outside", custom.link, n_scores=_count_scores(n_classes), custom=custom)


def _check_order(function: UserFunction) -> None:
    """Refuse a function whose parameters are named as predictions and then targets: its gradient would be reversed."""
    try:
        names = [name.lower() for name in inspect.signature(function).parameters]
    except (TypeError, ValueError):  # a builtin
        return
    if len(names) >= 2 and names[0] in _PREDICTIONS and names[1] in _TARGETS:
        raise ValueError(
            f"The loss function takes ({names[0]}, {names[1]}), but it is called with the targets first and then the "
            f"scores. Swap its parameters, or pass loss=lambda y, scores: function(scores, y). An objective of "
            "xgboost.train or lightgbm.train must take the targets instead of a dataset."
        )


def _is_pair(result: object) -> bool:
    return isinstance(result, tuple) and len(result) == 2


def _advice(n_classes: int | None = None) -> str:
    """Return what a user's function must return for several classes, or for one score of each row (None)."""
    if _count_scores(n_classes) > 1:
        return (
            f"With {n_classes} classes, pass a function of (y, scores) that returns gradients and hessians, both of "
            "shape (n_rows, n_classes), or an object whose loss and gradient take scores of this shape."
        )
    return "Return an array with the loss of each row (no sums or means), or two such arrays as (gradient, hessian)."


def _called(function: UserFunction, y: Floats, f: Floats) -> Any:
    """Return the result of a user's function; if the function fails, report with which arrays."""
    try:
        return function(y, f)
    except Exception as error:
        raise ValueError(
            f"The loss function failed with {type(error).__name__}: {error}. It was called with y of shape {y.shape} "
            f"and scores of shape {f.shape}; the rows are those of the fit, or some of them. Weights belong in "
            f"sample_weight. {_advice(f.shape[1] if f.ndim == 2 else None)}"
        ) from error


def _zero_gradient(
    gradients: Callable[[Floats, Floats], Floats], y: Floats, weight: Floats, offset: Floats, link: str
) -> float:
    """Return the constant score at which the weighted gradients sum to 0 given an offset."""
    base, scale = 0.0, 1.0
    if link == "identity":
        mean = float(np.average(y, weights=weight))
        base = mean + float(np.average(y - mean, weights=weight)) if np.isfinite(mean) else mean
        scale = float(np.abs(y - base).max(initial=0.0)) or 1.0
    reach = float(np.abs(offset).max(initial=0.0))
    return float(_engine.root_of_sum(lambda at: gradients(y, at + offset) * weight, reach, base, scale))


def _checked(values: ArrayLike, shape: int | tuple[int, ...], name: str) -> Floats:
    """Return the result of a user's function; refuse any other than finite numbers of a shape, or one per row."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"{name}(y, f) of the loss returned shape {found.shape}; it needs {shape}.")
    if not np.isfinite(found).all():
        raise ValueError(f"{name}(y, f) of the loss returned NaN or infinity. Check it at large scores.")
    return found
