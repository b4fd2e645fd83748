"""Support vector machines that predict values."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from spinney._estimator.parameters import store_parameters
from spinney._svm.regression import MachineOfValues
from spinney._svm.rows import MarginRows
from spinney._svm.solve import Problems, value_problem


class SVR(MachineOfValues):
    """Support vector regression.

    The flattest function, in the terms of the table or in the space of a kernel, that leaves most rows within
    ``epsilon``; rows farther away pay ``C`` times how far. Solved as `SVC` is, with the same terms.

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
        **MachineOfValues._parameter_constraints,
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
        scale: Any = "standard",
        shrinking: bool = True,
        cache_size: float = 200,
        precision: str = "single",
        max_iter: int = -1,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return value_problem(rows, float(self.epsilon))
