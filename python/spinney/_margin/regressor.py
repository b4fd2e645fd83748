"""Support vector machines that predict values."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval

from spinney._fitted.margin.machines import FittedMachines
from spinney._learn.one_target import read_one_value
from spinney._margin.base import BaseSupportVectors, Floats
from spinney._margin.rows import MarginRows
from spinney._margin.solve import Problems, value_problem


class SVR(RegressorMixin, BaseSupportVectors):
    """Support vector regression.

    The flattest function, in the terms of the table or in the space of a kernel, that leaves most rows within
    ``epsilon``; rows farther away pay ``C`` times how far. Solved as `SVC` is, with the same terms.

    Parameters
    ----------

    Attributes
    ----------

    See Also
    --------
    LinearSVR : Planes, for many rows.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.SVR(C=10.0, epsilon=0.05).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.06)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSupportVectors._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: Any = 1.0,
        epsilon: float = 0.1,
        scale: bool = True,
        shrinking: bool = True,
        cache_size: float = 200,
        max_iter: int = -1,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.scale = scale
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.cv = cv
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return read_one_value(y, n_rows, "a support vector machine"), {}

    def _read_weight(self, target: Floats, weight: Floats, learned: dict[str, Any]) -> Floats:
        return weight

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return value_problem(rows, float(self.epsilon))

    def _errors(self, model: FittedMachines, scores: Floats, target: Floats) -> Floats:
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
