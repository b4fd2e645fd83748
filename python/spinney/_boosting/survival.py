"""Times until an event, which may be known in part: targets, losses, curves of what is left, concordance."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._boosting import other_rows
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.evaluation import Judge, Labels
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, LossOfRows
from spinney._boosting.settings import BoostingSettings, Metric
from spinney._boosting.target import BoostingTarget, TargetRows
from spinney._data.arguments import argument_array, argument_numbers
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import check_length, read_one_value, read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import SavedState, array, number, optional
from spinney._model.file.container import refuse
from spinney._model.saving.saved_model import SavedModel

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
        curvature = before + after - 2 * here
        way = -_FARTHEST if before < after else _FARTHEST
        step = (
            float(np.clip(_APART / 2 * (before - after) / curvature, -_FARTHEST, _FARTHEST)) if curvature > 0 else way
        )
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
            down, curvature = float((gradients[0] * self._weight).sum()), float((hessians[0] * self._weight).sum())
            step = -float(np.clip(down / max(curvature, 1e-300), -_LONGEST, _LONGEST))
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

    has_curve: ClassVar[bool] = True

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

    @staticmethod
    def predictions(scores: Floats, model: FittedBoosting, classes: Labels | None) -> NDArray[Any]:
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

    def with_curve(self, loss: Loss, evaluated: LearningRows, scores: Floats, rows: LearningRows) -> Self:
        """Return the target with its survival curve, learned from the scores of the evaluated rows."""
        assert loss.outside is not None
        of_rows = loss.outside(evaluated)
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


_SAVED_TIMES = SavedState(
    "survival",
    {
        "event_times_": array("float64", "n_times", key="times", above=0.0),
        "baseline_hazard_": optional(array("float64", "n_times", key="hazard", above=0.0)),
        "scale_": optional(number(above=0.0, below=math.inf, key="scale")),
    },
)


@estimator
class GradientBoostingSurvival(BaseBoosting):
    """Gradient boosting of times until an event, such as failure or death, that may not have happened yet.

    A target is one number per row, a time, with a minus sign where the event had not happened by then (censored); a
    structured array of (event, time), in either order; or, with ``loss="aft"``, two columns, the first and the last
    time at which the event may have happened: equal where it is known, infinity where it is open, 0 where it may have
    happened at any time before. The model is the same, bit for bit, for any number of threads and any kind of table.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.arange(60.0).reshape(30, 2) % 7
    >>> times = np.where(np.arange(30) % 5 == 0, -1, 1) * (1 + X[:, 0])  # every fifth is censored
    >>> model = spinney.GradientBoostingSurvival(n_estimators=20).fit(X, times)
    >>> round(model.score(X, times), 2)
    0.97
    >>> model.predict_survival_function(X[:3], times=[2.0, 5.0]).shape
    (3, 2)
    """

    loss: str = parameter(StrOptions({"cox", "aft"}), default="cox", kw_only=False)
    distribution: str = parameter(StrOptions(set(DISTRIBUTIONS)), default="normal")
    scale: float | str = parameter(Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"}), default="auto")
    ties: str = parameter(StrOptions({"breslow", "efron"}), default="breslow")

    _target_type = SurvivalTarget
    importances = other_rows.importances
    _leaf_share: ClassVar[float] = 0.05  # censored rows say little: shares of events matter more than counts of rows

    def _to_header(self) -> dict[str, Any]:
        return super()._to_header() | _SAVED_TIMES.to_header(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        assert isinstance(saved.model, FittedBoosting)
        found = _SAVED_TIMES.from_header(header)
        of_loss = "baseline_hazard_" if saved.model.link == "identity" else "scale_"
        is_rising = np.diff(found["event_times_"]) > 0, np.diff(found.get("baseline_hazard_", ())) >= 0
        if found.keys() != {"event_times_", of_loss} or not all(map(np.all, is_rising)):
            refuse("is damaged: its times are not in order, or its hazard does not rise with them")
        return super()._from_header(header, saved) | found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def predict_survival_function(
        self, X: TableLike, times: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> Floats:
        """Share of rows like each that are still without an event at each time.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        times : array-like of shape (n_times,), optional
            Times, at least 0. None: `event_times_`.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
            Between 1 and 0, falling with time. With ``loss="cox"``, steps at the times of events (Breslow's estimate),
            which stay where they are after the last of these.
        """
        scores = self._scores(X, offset)
        at = self.event_times_ if times is None else argument_numbers(times, "times")
        if at.ndim != 1 or not (at >= 0).all():
            raise ValueError("times must be a list of numbers, at least 0.")
        if self.loss == "cox":
            steps = np.concatenate([[0.0], self.baseline_hazard_])  # 0 before the first event
            return exp(-exp(scores) * steps[np.searchsorted(self.event_times_, at, side="right")])
        z = (np.where(at > 0, log(np.maximum(at, 1e-300)), -1e300) - scores) / self.scale_
        shares = _engine.shares_left(self.distribution, np.ascontiguousarray(np.clip(z, -1e3, 1e3)).ravel())
        return np.asarray(shares).reshape(z.shape)

    def predict_quantile(self, X: TableLike, q: float = 0.5, *, offset: ArrayLike | None = None) -> Floats:
        """Time by which a share of rows like each has had its event.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        q : float, default=0.5
            The share, between 0 and 1.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Times; with ``loss="cox"`` infinity where fewer have had theirs by the last event that is known.
        """
        if not 0 < q < 1:
            raise ValueError(f"q={q} must lie between 0 and 1.")
        scores = self._scores(X, offset)[:, 0]
        if self.loss == "aft":
            return exp(scores + self.scale_ * _engine.time_quantile(self.distribution, float(q)))
        needed = -log(np.float64(1 - q)) * exp(-scores)  # hazard of a score of 0 at which the row's curve is there
        at = np.searchsorted(self.baseline_hazard_, needed, side="left")
        return np.asarray(np.concatenate([self.event_times_, [np.inf]])[at])

    def predict_median(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Time by which half of the rows like each have had their event.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            As `predict_quantile`.
        """
        return self.predict_quantile(X, 0.5, offset=offset)

    def score(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Harrell's concordance: how often the order of two events is foretold.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like
            Their times, in any form that `fit` takes.
        sample_weight : array-like of shape (n_samples,), optional
            Pairs count by the product of their weights.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        float
            Share, of all pairs of which one is known to have come before the other, whose predictions say so; equal
            predictions count half. 0.5 is chance; NaN if no pair can be compared.
        """
        scores = np.ascontiguousarray(self._scores(X, offset)[:, 0])
        times = read_times(y, len(scores))
        expected = -scores if self.loss == "cox" else scores
        return float(_engine.concordance(times.low, times.high, expected, read_weights(sample_weight, len(scores))))
