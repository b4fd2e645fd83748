"""Times until an event, which may be known in part: targets, losses, curves of what is left, concordance."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine
from spinney._boosting.evaluation import Judge
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, LossOfRows
from spinney._boosting.settings import BoostingSettings, Metric
from spinney._boosting.target import BoostingTarget, TargetRows
from spinney._data.arguments import argument_array, argument_numbers
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.target import check_length, read_one_value
from spinney._model.boosting import FittedBoosting

DISTRIBUTIONS = ("normal", "logistic", "extreme")
_MOST_STEPS, _CLOSE, _LONGEST = 100, 1e-10, 2.0  # of Newton's method for the constant
_APART, _FARTHEST = 0.05, 0.5  # logarithms of scales that a step compares, and its length
_LEAST_SHARE = 0.5  # of the scale about a constant: rows that are learned by heart would make it ever smaller
_MOST_TIMES = 100  # of curves without a baseline of their own
_FORMS = (
    "Pass times, with a minus sign where the event had not happened by then; a structured array of (event, time); or "
    "two columns, the first and the last time at which it may have happened."
)


class Times(NamedTuple):
    """The first and the last time at which each row's event may have happened; the last is infinite if it is open."""

    low: Floats
    high: Floats

    @property
    def is_event(self) -> NDArray[np.bool_]:
        """Whether the time is known."""
        return np.asarray(self.low == self.high)


def read_times(y: TableLike, n_rows: int, name: str = "y") -> Times:
    """Return the times of a target in any of its forms."""
    columns = _two_columns(y, name)
    if columns is None:
        signed = read_one_value(y, n_rows, "boosting of times", name)
        times = Times(np.abs(signed), np.where(signed > 0, np.abs(signed), np.inf))
    else:
        times = _of_columns(*columns, name)
    check_length(len(times.low), n_rows, name)
    return _checked(times, name)


def _two_columns(y: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        if len(names) != 2:
            raise ValueError(f"{name} has the fields {', '.join(names)}; times have two. {_FORMS}")
        return y[names[0]], y[names[1]]
    if hasattr(y, "columns") and hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] == 2:
        return tuple(np.asarray(y[column]) for column in y.columns)  # type: ignore[return-value]
    given = None if hasattr(y, "columns") or y is None else argument_array(y, name)
    return None if given is None or given.ndim != 2 or given.shape[1] != 2 else (given[:, 0], given[:, 1])


def _of_columns(first: NDArray[Any], second: NDArray[Any], name: str) -> Times:
    """Read an event and its time, in either order, or two ends of an interval."""
    for event, time in ((first, second), (second, first)):
        if event.dtype == bool or (event.dtype == object and all(isinstance(v, (bool, np.bool_)) for v in event)):
            found = argument_numbers(time, name)
            return Times(found, np.where(event.astype(bool), found, np.inf))
    low, high = argument_numbers(first, name), argument_numbers(second, name)
    for which, column in (("first", low), ("second", high)):
        if np.isin(column, (0.0, 1.0)).all() and np.unique(column).size == 2:  # silence would be learned as intervals
            raise ValueError(
                f"The {which} column of {name} holds only 0 and 1. If it says whether the event has happened, pass it "
                "as booleans; if it is a time, in another unit."
            )
    return Times(low, high)


def _checked(times: Times, name: str) -> Times:
    low, high = (np.ascontiguousarray(side, dtype=np.float64) for side in times)
    bad = (
        np.isnan(low)
        | np.isnan(high)
        | ~np.isfinite(low)
        | (low < 0)
        | (high < low)
        | ~(high > 0)
        | ((low == 0) & (high == np.inf))
    )
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        is_point = low[row] == high[row] or high[row] == np.inf
        given = f"{low[row]:g}" if is_point else f"{low[row]:g} to {high[row]:g}"
        raise ValueError(
            f"Times are above 0, finite, and end no sooner than they begin (but may be open: infinity). Row {row} of "
            f"{name} has {given}. {_FORMS}"
        )
    if not (low == high).any() and not np.isfinite(high).any():
        raise ValueError(f"No event of {name} has happened: there is nothing to learn. {_FORMS}")
    return Times(low, high)


# ---- losses -----------------------------------------------------------------------------------------------


class CoxLoss(LossOfRows):
    """Cox's partial likelihood of certain rows."""

    def __init__(self, rows: LearningRows, ties: str = "breslow") -> None:
        assert rows.more is not None
        self._ties = ties
        known = (rows.target == rows.more).astype(np.uint8)
        self._rows = _engine.CoxRows(rows.target, known, rows.weight, ties == "efron")

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradients and second derivatives by row."""
        gradients, hessians, _ = self._rows.gradients(scores[0])
        return gradients, hessians

    def mean_loss(self, scores: Floats) -> float:
        """Weighted mean."""
        return self._rows.mean_loss(scores[0])

    def held_out(self, rows: LearningRows) -> CoxLoss:
        """Return the loss of other rows."""
        return CoxLoss(rows, self._ties)

    def baseline(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the times of events, and the hazard of a score of 0 up to each."""
        return self._rows.baseline(scores[0])


class TimedLoss(LossOfRows):
    """Accelerated failure times of certain rows; the scale is given, or follows the scores."""

    def __init__(self, rows: LearningRows, distribution: str, scale: float | None, n_threads: int) -> None:
        assert rows.more is not None
        with np.errstate(divide="ignore"):
            low = np.where(rows.target > 0, log(np.maximum(rows.target, 1e-300)), -np.inf)
            high = np.where(np.isfinite(rows.more), log(np.where(np.isfinite(rows.more), rows.more, 1.0)), np.inf)
        self._rows = _engine.TimedRows(low, high, rows.weight, distribution)
        self._middle = np.where(np.isfinite(low), low, high)
        self._weight, self._n_threads, self._given = rows.weights(), n_threads, (distribution, scale)
        self._is_fitted = scale is None
        self._follows: TimedLoss | None = None
        self._scale = 1.0 if scale is None else scale
        self._offset, self._least = rows.offset, 0.0

    def held_out(self, rows: LearningRows) -> TimedLoss:
        """Return the loss of rows that are judged by the scale of these."""
        other = TimedLoss(rows, *self._given, self._n_threads)
        other._follows = self
        return other

    @property
    def scale(self) -> float:
        """The scale at present."""
        return self._scale if self._follows is None else self._follows.scale

    @scale.setter
    def scale(self, known: float) -> None:  # of an earlier round
        self._scale = known

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradients and second derivatives by row."""
        if self._is_fitted:
            self._step(scores)
            self._scale = max(self._scale, self._least_scale())
        return self._pulls(scores)

    def _pulls(self, scores: Floats) -> tuple[Floats, Floats]:
        gradients, hessians, _ = self._rows.gradients(scores[0], self.scale, self._n_threads)
        return gradients, hessians

    def _least_scale(self) -> float:
        """Return the least scale of a round, known from the rows alone, wherever the scale is at present."""
        if not self._least:
            other = copy(self)
            other._scale = 1.0
            offset = np.zeros(len(self._middle)) if self._offset is None else self._offset[0]
            self._least = _LEAST_SHARE * other.fit_scale((other.constant(offset) + offset)[np.newaxis])
        return self._least

    def mean_loss(self, scores: Floats) -> float:
        """Weighted mean."""
        return self._rows.mean_loss(scores[0], self.scale, self._n_threads)

    def _step(self, scores: Floats) -> float:
        """Move the scale towards the least loss at these scores, and return by how much, as a logarithm."""

        def loss_at(step: float) -> float:
            return self._rows.mean_loss(scores[0], self._scale * float(exp(np.float64(step))), self._n_threads)

        before, here, after = (loss_at(step) for step in (-_APART, 0.0, _APART))
        bend = before + after - 2 * here
        way = -_FARTHEST if before < after else _FARTHEST
        step = float(np.clip(_APART / 2 * (before - after) / bend, -_FARTHEST, _FARTHEST)) if bend > 0 else way
        while abs(step) > _CLOSE and not loss_at(step) < here:
            step /= 2
        if abs(step) <= _CLOSE:
            return 0.0
        self._scale *= float(exp(np.float64(step)))
        return step

    def fit_scale(self, scores: Floats) -> float:
        """Return the scale of least loss at these scores."""
        for _ in range(_MOST_STEPS if self._is_fitted else 0):
            if abs(self._step(scores)) < 1e-6:
                break
        return self.scale

    def constant(self, offset: Floats) -> float:
        """Score of least loss, beside an offset, that all rows share."""
        used = self._weight > 0
        constant = float(np.average((self._middle - offset)[used], weights=self._weight[used]))
        for _ in range(_MOST_STEPS):
            scores = (constant + offset)[np.newaxis]
            if self._is_fitted:
                self._step(scores)
            gradients, hessians = self._pulls(scores)
            down, bend = float((gradients[0] * self._weight).sum()), float((hessians[0] * self._weight).sum())
            step = -float(np.clip(down / max(bend, 1e-300), -_LONGEST, _LONGEST))
            constant += step
            if abs(step) <= 1e-9 * (1 + abs(constant)):
                break
        return constant


# ---- target -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SurvivalTarget(BoostingTarget):
    """Times until an event.

    Attributes
    ----------
    event_times, baseline_hazard : ndarray, or None
        Times of curves, and the cumulative hazard of a score of 0 up to each (Cox).
    scale : float or None
        Of the logarithms of times about their scores (accelerated failure times).
    """

    event_times: Floats | None = None
    baseline_hazard: Floats | None = None
    scale: float | None = None

    @classmethod
    def check_request(cls, settings: BoostingSettings, inputs: FitInputs) -> None:
        """Refuse metrics of other targets."""
        for metric in settings.metrics:
            if metric not in (None, "concordance"):
                raise ValueError(f"{metric!r} is no metric of times. Use 'concordance', or None for the loss.")

    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read times in any of their forms."""
        times = read_times(y, n_rows, name)
        if self.settings.loss == "cox" and not (times.is_event | (times.high == np.inf)).all():
            row = int(np.flatnonzero(~times.is_event & np.isfinite(times.high))[0])
            raise ValueError(
                f"loss='cox' needs times that are known or open to the end. Row {row} of {name} lies between "
                f"{times.low[row]:g} and {times.high[row]:g}. Use loss='aft'."
            )
        return TargetRows(times.low, times.high)

    def loss(self) -> Loss:
        """Return the loss."""
        settings = self.settings
        if settings.loss == "cox":
            return Loss("outside", outside=partial(CoxLoss, ties=settings.ties))
        scale = None if isinstance(settings.scale, str) else float(settings.scale)
        of_rows = partial(TimedLoss, distribution=settings.distribution, scale=scale, n_threads=settings.n_threads)
        return Loss("outside", "log", outside=of_rows)

    def constants(self, loss: Loss, rows: LearningRows) -> Floats:
        """Constant score of least loss; any has the same by Cox's."""
        assert loss.outside is not None
        of_rows = loss.outside(rows)
        if not isinstance(of_rows, TimedLoss):
            return np.zeros(1)
        return np.array([of_rows.constant(np.zeros(len(rows.target)) if rows.offset is None else rows.offset[0])])

    def predictions(self, scores: Floats, model: FittedBoosting) -> NDArray[Any]:
        """Risk scores, or expected times."""
        return model.predicted(scores)[:, 0]

    def judge(self, metric: Metric, model: FittedBoosting, held_out: LearningRows, /, *others: object) -> Judge:
        """Return the concordance of held-out rows, as a loss of scores."""
        assert held_out.more is not None
        low, high, sign = held_out.target, held_out.more, -1.0 if self.settings.loss == "cox" else 1.0

        def judged(scores: Floats, so_far: object = None) -> float:
            expected = np.ascontiguousarray(sign * scores[:, 0])
            return -float(_engine.concordance(low, high, expected, held_out.weight))

        return judged

    def with_curve(self, loss: Loss, judged: LearningRows, scores: Floats, rows: LearningRows) -> SurvivalTarget:
        """Return the target with its curve, by the scores of rows that judge it; `rows` are all rows."""
        assert loss.outside is not None
        of_rows = loss.outside(judged)
        if isinstance(of_rows, CoxLoss):
            times, hazard = of_rows.baseline(scores)
            return replace(self, event_times=np.asarray(times), baseline_hazard=np.asarray(hazard))
        assert isinstance(of_rows, TimedLoss)
        known = np.unique(rows.target[(rows.weights() > 0) & (rows.target > 0)])
        at = np.unique(np.linspace(0, max(len(known) - 1, 0), min(len(known), _MOST_TIMES)).astype(np.intp))
        return replace(self, event_times=known[at], scale=of_rows.fit_scale(scores))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator."""
        found = {"event_times_": self.event_times, "baseline_hazard_": self.baseline_hazard, "scale_": self.scale}
        return super().attributes() | {name: value for name, value in found.items() if value is not None}
