"""Functional boosting of values."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._boosting.loss import NUMBER_LOSSES
from spinney._ensemble.functional.functional import BaseFunctionalBoosting, Floats
from spinney._ensemble.functional.losses import FunctionalLoss, make_loss
from spinney._ensemble.functional.shapes import WithShapes
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_value
from spinney._model.functional.model import FittedFunctions


class FunctionalBoostingRegressor(WithShapes, RegressorMixin, BaseFunctionalBoosting):
    """Boosting of any weak learners, for any loss of a number.

    Scores start at the constant of least loss. Each round fits every weak learner to the negative slopes of the loss by
    least squares, takes the one that explains most, finds how far to go, and adds that, times the learning rate.

    See Also
    --------
    FunctionalBoostingClassifier : The same for classes.
    GradientBoostingRegressor : Boosted trees, much faster and with more options.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x), float(x % 7 > 3)] for x in range(100)]
    >>> y = [3 * x + 5 * z for x, z in X]
    >>> model = spinney.FunctionalBoostingRegressor(["stumps", "linear"], n_estimators=20).fit(X, y)
    >>> model.chosen_[0]["learner"]
    'linear'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseFunctionalBoosting._parameter_constraints,
        "loss": [StrOptions(set(NUMBER_LOSSES) - {"normal"}), HasMethods(["loss", "gradient"]), callable],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "huber_share": [Interval(Real, 0.0, 1.0, closed="neither")],
        "tweedie_power": [Interval(Real, 1.0, 2.0, closed="neither")],
    }

    def __init__(
        self,
        learners: Any = "stumps",
        *,
        loss: Any = "squared_error",
        quantile: float = 0.5,
        huber_share: float = 0.9,
        tweedie_power: float = 1.5,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        step: str = "line_search",
        subsample: float = 1.0,
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return self._known_target(y, n_rows, {}, "y"), {"_n_scores": 1}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str) -> Floats:
        return read_one_value(y, n_rows, "boosting", name)

    def _make_loss(self, learned: dict[str, Any]) -> FunctionalLoss:
        parameters = {"quantile": self.quantile, "huber_share": self.huber_share, "tweedie_power": self.tweedie_power}
        return make_loss(self.loss, {name: float(value) for name, value in parameters.items()}, None)

    def _predicted(self, scores: Floats, view: FittedFunctions, learned: dict[str, Any]) -> NDArray[Any]:
        return view.predicted(scores)[:, 0]
