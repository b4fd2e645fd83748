"""Linear support vector machines that predict values, for many rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_value
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_solve import Plane
from spinney._svm.penalised import Penalised
from spinney._svm.planes import Floats, PlaneRows


class LinearSVR(RegressorMixin, Penalised):
    """Linear support vector regression of many rows.

    The plane of least ½|w|² plus ``C`` times what rows pay that lie farther away than ``epsilon``. Unlike in liblinear,
    the intercept is not penalised. Squared errors are minimised by Newton's method, others by an interior point.

    See Also
    --------
    SVR : Kernels.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.LinearSVR(C=100.0).fit(x[:, None], 2 * x + 1)
    >>> model.predict([[10.0]]).round(2)
    array([21.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Penalised._parameter_constraints,
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: Any = 1.0,
        loss: str = "epsilon_insensitive",
        scale: Any = "standard",
        max_iter: int = 200,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return read_one_value(y, n_rows, "a support vector machine"), {}

    def _fit_planes(self, rows: PlaneRows, learned: dict[str, Any], C: float, start: list[Plane] | None) -> list[Plane]:
        squared = self.loss == "squared_epsilon_insensitive"
        return self._planes(rows.terms, [(rows.target, rows.weight)], float(self.epsilon), squared, C, start)

    def _errors(self, model: FittedPlanes, scores: Floats, target: Floats) -> Floats:
        return np.asarray((scores[:, 0] - target) ** 2)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        return self._scores(X)[:, 0]
