"""Gradient boosting of times until an event."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._boosting import other_rows
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.survival_times import DISTRIBUTIONS, SurvivalTarget, read_times
from spinney._data.arguments import argument_numbers
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats, TableLike
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import SavedState, array, number, optional
from spinney._model.file.container import refuse
from spinney._model.saving.saved_model import SavedModel

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
