"""Gradient boosting for numbers."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.fitted.intervals import CertainValues
from spinney._boosting.fitted.refit import RefitsLeaves
from spinney._boosting.losses.loss import NUMBER_LOSSES, Loss, own_loss, regression_loss
from spinney._boosting.losses.outputs import loss_of_outputs, loss_of_quantiles
from spinney._boosting.losses.spread import PredictsSpread
from spinney._boosting.settings import BoostingSettings
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_value
from spinney._estimator.target import read_values
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class GradientBoostingRegressor(PredictsSpread, CertainValues, RefitsLeaves, RegressorMixin, BaseBoosting):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "leaves": [StrOptions({"single", "vector"})],
        "loss": [StrOptions(set(NUMBER_LOSSES)), HasMethods(["loss", "gradient"]), callable],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither"), "array-like"],
        "huber_share": [Interval(Real, 0.0, 1.0, closed="neither")],
        "tweedie_power": [Interval(Real, 1.0, 2.0, closed="neither")],
        "init": [StrOptions({"constant", "zero"}), None, HasMethods(["fit", "predict"])],
    }

    _other_names: ClassVar[dict[str, tuple[str, ...]]] = {"alpha": ("quantile", "huber_share")}

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        quantile: Any = 0.5,
        huber_share: float = 0.9,
        tweedie_power: float = 1.5,
        n_estimators: int | str = "auto",
        effort: float | str = 0.5,
        learning_rate: float | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        growth: str = "leaf",
        leaves: str = "single",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = "auto",
        min_hessian_leaf: float = 1e-3,
        min_gain: float = 0.0,
        min_impurity_decrease: float = 0.0,
        l2_regularization: float | str = "auto",
        l1_regularization: float = 0.0,
        max_step: float | str | None = "auto",
        subsample: float | str = "auto",
        sampling: str = "uniform",
        top_share: float = 0.2,
        n_parallel_trees: int = 1,
        drop_rate: float = 0.0,
        skip_drop: float = 0.0,
        max_drop: int | None = None,
        drop_by: str = "uniform",
        max_features: int | float | str | None = "auto",
        max_features_per_level: float = 1.0,
        max_features_per_tree: float = 1.0,
        max_bins: int | str = "auto",
        max_one_hot: int = 4,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        feature_costs: Any = None,
        feature_weights: Any = None,
        forced_splits: dict[str, Any] | None = None,
        hierarchical_shrinkage: float = 0.0,
        linear_leaves: bool = False,
        linear_l2: float = 5.0,
        init: Any = "constant",
        early_stopping: bool | None = None,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    @property
    def alpha(self) -> Any:
        """`quantile` or `huber_share`, whichever the loss uses, by scikit-learn's name; other losses have none."""
        if not isinstance(self.loss, str) or self.loss not in ("quantile", "huber", "log_cosh"):
            raise AttributeError("GradientBoostingRegressor.alpha is quantile or huber_share; this loss reads neither.")
        return self.quantile if self.loss == "quantile" else self.huber_share

    @alpha.setter
    def alpha(self, value: float) -> None:
        self.set_params(alpha=value)

    @property
    def _levels(self) -> list[float] | None:
        """Quantiles, if there are several."""
        return BoostingSettings.of(self).levels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
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
        return float(
            np.mean(
                [
                    d2_pinball_score(y, predicted[:, k], sample_weight=sample_weight, alpha=level)
                    for k, level in enumerate(levels)
                ]
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        levels = self._levels
        if levels is not None:
            return read_one_value(y, n_rows, "boosting of several quantiles"), {"n_outputs_": len(levels)}
        values = read_values(y, n_rows)
        if values.shape[1] == 1:
            return read_one_value(y, n_rows, "boosting"), {"n_outputs_": 1}
        return values, {"n_outputs_": values.shape[1]}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        n_outputs = learned["n_outputs_"]
        if n_outputs == 1 or self._levels is not None:
            return read_one_value(y, n_rows, "boosting", name)
        values = read_values(y, n_rows, name)
        if values.shape[1] != n_outputs:
            raise ValueError(f"{name} has {values.shape[1]} columns, and the model {n_outputs} outputs. Pass them all.")
        return values

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        return weight

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        n_outputs, levels = learned["n_outputs_"], self._levels
        if levels is not None:
            return loss_of_quantiles(levels)
        if self.loss == "normal" and n_outputs > 1:
            raise ValueError("loss='normal' is for one output. Fit one model per column of y.")
        if not isinstance(self.loss, str):
            if n_outputs > 1:
                raise ValueError("A loss of your own is for one output. Fit one model per column of y.")
            return own_loss(self.loss, of_classes=False, n_jobs=self.n_jobs)
        quantile, share, power = self.quantile, float(self.huber_share), float(self.tweedie_power)
        quantile = float(quantile) if self.loss == "quantile" else 0.5
        parameters = {"quantile": quantile, "huber": share, "log_cosh": share, "tweedie": power}
        loss = replace(regression_loss(self.loss, quantile, power), parameter=parameters.get(self.loss, 0.0))
        return loss if n_outputs == 1 else loss_of_outputs([loss] * n_outputs, loss.link)

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return np.asarray(view.spread(view.predicted(scores)))
