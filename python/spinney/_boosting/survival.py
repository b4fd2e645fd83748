"""Survival analysis: censored times, Cox and accelerated failure time losses, survival curves, the estimator."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._boosting import new_data
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.evaluation import HeldOutMetric, Labels
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, LossOnRows
from spinney._boosting.settings import BoostingSettings, Metric
from spinney._boosting.target import BoostingTarget, TargetRows
from spinney._data.arguments import argument_numbers
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.survival_times import read_times
from spinney._estimator.target import read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import SavedState, array, number, optional
from spinney._model.file.container import refuse
from spinney._model.saving.saved_model import SavedModel

DISTRIBUTIONS = ("normal", "logistic", "extreme")
_MAX_ITERATIONS, _TOLERANCE, _MAX_STEP = 100, 1e-10, 2.0  # of Newton's method for the constant score
_LOG_SCALE_STEP, _MAX_LOG_SCALE_STEP = 0.05, 0.5  # of the search for the scale
_LEAST_SCALE_RATIO = 0.5  # least scale over that of a constant: an overfitted model would shrink it without limit
_MAX_TIMES = 100  # of survival curves without a baseline hazard


# ---- losses -----------------------------------------------------------------------------------------------


class CoxLoss(LossOnRows):
    """Cox's negative partial log-likelihood, bound to rows."""

    def __init__(self, rows: LearningRows, ties: str = "breslow") -> None:
        assert rows.extra is not None
        self._ties = ties
        known = (rows.target == rows.extra).astype(np.uint8)
        self._rows = _engine.CoxRows(rows.target, known, rows.weight, ties == "efron")

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (1, n_rows)."""
        gradients, hessians, _ = self._rows.gradients(scores[0])
        return gradients, hessians

    def mean_loss(self, scores: Floats) -> float:
        """Return the weighted mean loss."""
        return self._rows.mean_loss(scores[0])

    def held_out(self, rows: LearningRows) -> CoxLoss:
        """Return the loss bound to other rows."""
        return CoxLoss(rows, self._ties)

    def baseline(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the times of events, and the hazard of a score of 0 up to each."""
        return self._rows.baseline(scores[0])


class AftLoss(LossOnRows):
    """The loss of an accelerated failure time model, bound to rows; the scale is fixed, or updated with the scores."""

    def __init__(self, rows: LearningRows, distribution: str, scale: float | None, n_threads: int) -> None:
        assert rows.extra is not None
        with np.errstate(divide="ignore"):
            low = np.where(rows.target > 0, log(np.maximum(rows.target, 1e-300)), -np.inf)
            high = np.where(np.isfinite(rows.extra), log(np.where(np.isfinite(rows.extra), rows.extra, 1.0)), np.inf)
        self._rows = _engine.TimedRows(low, high, rows.weight, distribution)
        self._middle = np.where(np.isfinite(low), low, high)
        self._weight, self._n_threads, self._options = rows.weights(), n_threads, (distribution, scale)
        self._fits_scale = scale is None
        self._training: AftLoss | None = None  # the loss whose scale this one uses
        self._scale = 1.0 if scale is None else scale
        self._offset, self._least = rows.offset, 0.0

    def held_out(self, rows: LearningRows) -> AftLoss:
        """Return the loss bound to other rows, with the scale of these."""
        other = AftLoss(rows, *self._options, self._n_threads)
        other._training = self
        return other

    @property
    def scale(self) -> float:
        """The current scale."""
        return self._scale if self._training is None else self._training.scale

    @scale.setter
    def scale(self, scale: float) -> None:  # of an earlier round
        self._scale = scale

    def gradients(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians, (1, n_rows)."""
        if self._fits_scale:
            self._update_scale(scores)
            self._scale = max(self._scale, self._least_scale())
        return self._derivatives(scores)

    def _derivatives(self, scores: Floats) -> tuple[Floats, Floats]:
        gradients, hessians, _ = self._rows.gradients(scores[0], self.scale, self._n_threads)
        return gradients, hessians

    def _least_scale(self) -> float:
        """Return the least scale of a round, which depends on the rows alone."""
        if not self._least:
            other = copy(self)
            other._scale = 1.0
            offset = np.zeros(len(self._middle)) if self._offset is None else self._offset[0]
            self._least = _LEAST_SCALE_RATIO * other.fit_scale((other.constant(offset) + offset)[np.newaxis])
        return self._least

    def mean_loss(self, scores: Floats) -> float:
        """Return the weighted mean loss."""
        return self._rows.mean_loss(scores[0], self.scale, self._n_threads)

    def _update_scale(self, scores: Floats) -> float:
        """Take a Newton step of the log scale towards the least loss at these scores; return the step."""

        def loss_at(step: float) -> float:
            return self._rows.mean_loss(scores[0], self._scale * float(exp(np.float64(step))), self._n_threads)

        before, here, after = (loss_at(step) for step in (-_LOG_SCALE_STEP, 0.0, _LOG_SCALE_STEP))
        curvature = before + after - 2 * here
        step = -_MAX_LOG_SCALE_STEP if before < after else _MAX_LOG_SCALE_STEP
        if curvature > 0:
            newton = _LOG_SCALE_STEP / 2 * (before - after) / curvature
            step = float(np.clip(newton, -_MAX_LOG_SCALE_STEP, _MAX_LOG_SCALE_STEP))
        while abs(step) > _TOLERANCE and not loss_at(step) < here:
            step /= 2
        if abs(step) <= _TOLERANCE:
            return 0.0
        self._scale *= float(exp(np.float64(step)))
        return step

    def fit_scale(self, scores: Floats) -> float:
        """Return the scale of least loss at these scores."""
        for _ in range(_MAX_ITERATIONS if self._fits_scale else 0):
            if abs(self._update_scale(scores)) < 1e-6:
                break
        return self.scale

    def constant(self, offset: Floats) -> float:
        """Return the constant score of least loss, given an offset."""
        used = self._weight > 0
        constant = float(np.average((self._middle - offset)[used], weights=self._weight[used]))
        for _ in range(_MAX_ITERATIONS):
            scores = (constant + offset)[np.newaxis]
            if self._fits_scale:
                self._update_scale(scores)
            gradients, hessians = self._derivatives(scores)
            slope, curvature = float((gradients[0] * self._weight).sum()), float((hessians[0] * self._weight).sum())
            step = -float(np.clip(slope / max(curvature, 1e-300), -_MAX_STEP, _MAX_STEP))
            constant += step
            if abs(step) <= 1e-9 * (1 + abs(constant)):
                break
        return constant


# ---- target -----------------------------------------------------------------------------------------------


def _check_metric(metric: Metric | None) -> None:
    """Refuse any metric but the concordance."""
    if metric not in (None, "concordance"):
        raise ValueError(f"{metric!r} is not a survival metric. Use 'concordance', or None for the loss.")


@dataclass(frozen=True, eq=False)
class SurvivalTarget(BoostingTarget):
    """Times until an event.

    Attributes
    ----------
    event_times, baseline_hazard : ndarray, or None
        Times of the survival curve, and the cumulative hazard of a score of 0 at each (Cox).
    scale : float or None
        Scale of the logarithms of times around the scores (accelerated failure times).
    """

    has_curve: ClassVar[bool] = True

    event_times: Floats | None = None
    baseline_hazard: Floats | None = None
    scale: float | None = None

    @classmethod
    def check_request(cls, settings: BoostingSettings, inputs: FitInputs) -> None:
        """Refuse any metric but the concordance."""
        for metric in settings.metrics:
            _check_metric(metric)

    def read(self, y: TableLike, n_rows: int, name: str = "y", groups: ArrayLike | None = None) -> TargetRows:
        """Read times in any of their forms."""
        times = read_times(y, n_rows, name)
        if self.settings.loss == "cox" and not (times.is_event | (times.high == np.inf)).all():
            row = int(np.flatnonzero(~times.is_event & np.isfinite(times.high))[0])
            raise ValueError(
                f"loss='cox' needs times that are known or right-censored. Row {row} of {name} lies between "
                f"{times.low[row]:g} and {times.high[row]:g}. Use loss='aft'."
            )
        return TargetRows(times.low, times.high)

    def loss(self) -> Loss:
        """Return the loss."""
        settings = self.settings
        if settings.loss == "cox":
            return Loss("outside", custom=partial(CoxLoss, ties=settings.ties))
        scale = None if isinstance(settings.scale, str) else float(settings.scale)
        of_rows = partial(AftLoss, distribution=settings.distribution, scale=scale, n_threads=settings.n_threads)
        return Loss("outside", "log", custom=of_rows)

    def constants(self, loss: Loss, rows: LearningRows) -> Floats:
        """Return the constant score of least loss; 0 for Cox's loss, which does not depend on it."""
        assert loss.custom is not None
        of_rows = loss.custom(rows)
        if not isinstance(of_rows, AftLoss):
            return np.zeros(1)
        return np.array([of_rows.constant(np.zeros(len(rows.target)) if rows.offset is None else rows.offset[0])])

    @staticmethod
    def predictions(scores: Floats, model: FittedBoosting, classes: Labels | None) -> NDArray[Any]:
        """Return risk scores (Cox) or expected times."""
        return model.predicted(scores)[:, 0]

    def held_out_metric(
        self, metric: Metric, model: FittedBoosting, held_out: LearningRows, /, *others: object
    ) -> HeldOutMetric:
        """Return the negated concordance of held-out rows as a function of scores."""
        _check_metric(metric)
        assert held_out.extra is not None
        low, high, sign = held_out.target, held_out.extra, -1.0 if self.settings.loss == "cox" else 1.0

        def evaluate(scores: Floats, current_model: object = None) -> float:
            expected = np.ascontiguousarray(sign * scores[:, 0])
            return -float(_engine.concordance(low, high, expected, held_out.weight))

        return evaluate

    def with_curve(self, loss: Loss, evaluated: LearningRows, scores: Floats, rows: LearningRows) -> Self:
        """Return the target with its survival curve, learned from the scores of the evaluated rows."""
        assert loss.custom is not None
        of_rows = loss.custom(evaluated)
        if isinstance(of_rows, CoxLoss):
            times, hazard = of_rows.baseline(scores)
            return replace(self, event_times=np.asarray(times), baseline_hazard=np.asarray(hazard))
        assert isinstance(of_rows, AftLoss)
        known = np.unique(rows.target[(rows.weights() > 0) & (rows.target > 0)])
        at = np.unique(np.linspace(0, max(len(known) - 1, 0), min(len(known), _MAX_TIMES)).astype(np.intp))
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
    """Gradient boosting for survival analysis, whose target is the time until an event, such as failure or death.

    The target `y` has one of three forms:

    - One number per row: the time of the event, or minus the last time at which it had not happened yet (censored).
    - Two columns, or a structured array of two fields, in either order: booleans that are True where the event
      happened, and times.
    - With ``loss="aft"``, two columns: the earliest and the latest time at which the event may have happened. They are
      equal if the time is known; the latest time is infinite if the row is right-censored, and the earliest is 0 if it
      is left-censored.

    The model is bit-identical for any number of threads and any kind of table.

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

    loss: Literal["cox", "aft"] = parameter(StrOptions({"cox", "aft"}), default="cox", kw_only=False)
    distribution: Literal["normal", "logistic", "extreme"] = parameter(StrOptions(set(DISTRIBUTIONS)), default="normal")
    scale: float | Literal["auto"] = parameter(
        Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"}), default="auto"
    )
    ties: Literal["breslow", "efron"] = parameter(StrOptions({"breslow", "efron"}), default="breslow")

    _target_type = SurvivalTarget
    _other_library_advice: ClassVar[dict[str, str]] = BaseBoosting._other_library_advice | dict.fromkeys(
        ("event", "events", "status", "event_observed", "censored"),
        "Pass both in y: times, negative where the event had not happened, np.where(event, time, -time); or a "
        "structured array of event and time.",
    )
    importances = new_data.importances
    _leaf_fraction: ClassVar[float] = 0.05  # censored rows carry little information

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

    @property
    def _predicted_quantity(self) -> str:
        """What `predict` returns, for tables and plots."""
        return "log relative hazard of the event" if self.loss == "cox" else "median time until the event"

    def predict_survival_function(
        self, X: TableLike, times: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> Floats:
        """Survival probability of each row at each time.

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
            Between 1 and 0, falling with time. With ``loss="cox"``, a step function of the event times (Breslow's
            estimate), constant after the last one.
        """
        scores = self._scores(X, offset)
        at = self.event_times_ if times is None else argument_numbers(times, "times")
        if at.ndim != 1 or not (at >= 0).all():
            raise ValueError("times must be a list of numbers, at least 0.")
        if self.loss == "cox":
            steps = np.concatenate([[0.0], self.baseline_hazard_])  # 0 before the first event
            return exp(-exp(scores) * steps[np.searchsorted(self.event_times_, at, side="right")])
        z = (np.where(at > 0, log(np.maximum(at, 1e-300)), -1e300) - scores) / self.scale_
        survival = _engine.survival_function(self.distribution, np.ascontiguousarray(np.clip(z, -1e3, 1e3)).ravel())
        return np.asarray(survival).reshape(z.shape)

    def predict_quantile(self, X: TableLike, q: float = 0.5, *, offset: ArrayLike | None = None) -> Floats:
        """Quantile of the time until the event of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        q : float, default=0.5
            Level of the quantile, between 0 and 1.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Times; with ``loss="cox"``, infinity if the quantile lies beyond the last event time.
        """
        if not 0 < q < 1:
            raise ValueError(f"q={q} must lie between 0 and 1.")
        scores = self._scores(X, offset)[:, 0]
        if self.loss == "aft":
            return exp(scores + self.scale_ * _engine.time_quantile(self.distribution, float(q)))
        needed = -log(np.float64(1 - q)) * exp(-scores)  # baseline hazard at the quantile
        at = np.searchsorted(self.baseline_hazard_, needed, side="left")
        return np.asarray(np.concatenate([self.event_times_, [np.inf]])[at])

    def predict_median(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Median of the time until the event of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Times, as returned by `predict_quantile`.
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
        """Harrell's concordance index: how often the order of two events is predicted correctly.

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
            Fraction of the comparable pairs that the predictions order correctly, where tied predictions count half.
            Random predictions have 0.5; NaN if no pair is comparable.
        """
        scores = np.ascontiguousarray(self._scores(X, offset)[:, 0])
        times = read_times(y, len(scores))
        expected = -scores if self.loss == "cox" else scores
        return float(_engine.concordance(times.low, times.high, expected, read_weights(sample_weight, len(scores))))
