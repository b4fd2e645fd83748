"""Gradient boosting for numbers."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._boosting import importances, intervals, normal_prediction, refit
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.loss import NUMBER_LOSSES, TRAITS
from spinney._boosting.settings import FRACTION, BoostingSettings
from spinney._boosting.target import RegressionTarget
from spinney._data.types import TableLike
from spinney._estimator import support
from spinney._estimator.parameters import estimator, parameter


@estimator
class GradientBoostingRegressor(RegressorMixin, BaseBoosting):
    """Gradient boosting of values.

    Trees are added one by one; each is fitted to the gradient of the loss at the predictions so far. The model is the
    same, bit for bit, for any number of threads and any kind of table.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.GradientBoostingRegressor(n_estimators=50).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    loss: Any = parameter(
        StrOptions(set(NUMBER_LOSSES)),
        HasMethods(["loss", "gradient"]),
        callable,
        default="squared_error",
        kw_only=False,
    )
    quantile: Any = parameter(FRACTION, "array-like", default=0.5)
    huber_share: float = parameter(FRACTION, default=0.9)
    tweedie_power: float = parameter(Interval(Real, 1.0, 2.0, closed="neither"), default=1.5)
    leaves: str = parameter(StrOptions({"single", "vector"}), default="single")
    init: Any = parameter(StrOptions({"constant", "zero"}), None, HasMethods(["fit", "predict"]), default="constant")

    _target_type = RegressionTarget
    _other_names: ClassVar[dict[str, tuple[str, ...]]] = {"alpha": ("quantile", "huber_share")}

    calibrate = intervals.calibrate
    predict_interval = intervals.predict_interval
    coverage_report = intervals.coverage_report
    importances = importances.importances
    refit = refit.refit
    predict_distribution = normal_prediction.predict_distribution
    predict_std = normal_prediction.predict_std
    predict_uncertainty = normal_prediction.predict_uncertainty
    predict_support = support.predict_support
    predict_or_abstain = support.predict_or_abstain

    @property
    def alpha(self) -> Any:
        """`quantile` or `huber_share`, whichever the loss uses, by scikit-learn's name; other losses have none."""
        parameter = TRAITS[self.loss].parameter if isinstance(self.loss, str) and self.loss in TRAITS else None
        if parameter is None or parameter.name not in self._other_names["alpha"]:
            raise AttributeError("GradientBoostingRegressor.alpha is quantile or huber_share; this loss reads neither.")
        return getattr(self, parameter.name)

    @alpha.setter
    def alpha(self, value: float) -> None:
        self.set_params(alpha=value)

    @property
    def _levels(self) -> list[float] | None:
        """Quantiles, if there are several."""
        return BoostingSettings.of(self).levels

    def _score_names(self) -> list[str]:
        levels = self._levels
        return super()._score_names() if levels is None else [f"quantile {level:g}" for level in levels]

    def _explained_names(self) -> list[Any] | None:
        return self._levels or super()._explained_names()

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return how much better than constants the predictions are: 1 at best, 0 for the constant.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their values.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            R²; for several quantiles the mean of D², which counts pinball losses instead of squares.
        """
        levels = self._levels
        if levels is None:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        scores = [
            d2_pinball_score(y, predicted[:, k], sample_weight=sample_weight, alpha=level)
            for k, level in enumerate(levels)
        ]
        return float(np.mean(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
