"""What boosting says of times: shares without an event, quantiles, and how often their order is foretold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.losses.survival import read_times, steps_at
from spinney._data.arguments import given_numbers
from spinney._data.numeric.reproducible import exp, log
from spinney._estimator.target import read_weights

Floats = NDArray[np.float64]


class SaysTimes:
    """Mixin for boosting of times."""

    if TYPE_CHECKING:
        loss: str
        distribution: str
        event_times_: Floats
        baseline_hazard_: Floats
        scale_: float

        def _scores(self, X: Any, offset: Any) -> Floats: ...

    def predict_survival_function(self, X: Any, times: Any = None, *, offset: Any = None) -> Floats:
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
        at = self.event_times_ if times is None else given_numbers(times, "times")
        if at.ndim != 1 or not (at >= 0).all():
            raise ValueError("times must be a list of numbers, at least 0.")
        if self.loss == "cox":
            hazard = steps_at(at, self.event_times_, self.baseline_hazard_)
            return exp(-exp(scores) * hazard)
        z = (np.where(at > 0, log(np.maximum(at, 1e-300)), -1e300) - scores) / self.scale_
        shares = _engine.shares_left(self.distribution, np.ascontiguousarray(np.clip(z, -1e3, 1e3)).ravel())
        return np.asarray(shares).reshape(z.shape)

    def predict_quantile(self, X: Any, q: float = 0.5, *, offset: Any = None) -> Floats:
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

    def predict_median(self, X: Any, *, offset: Any = None) -> Floats:
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

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
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
