"""Support vector machines that predict values, by a share of rows in place of the width of the tube."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from spinney._estimator.parameters import store_parameters
from spinney._svm.regression import MachineOfValues
from spinney._svm.rows import MarginRows
from spinney._svm.solve import Problems, Solution, nu_value_problem


class NuSVR(MachineOfValues):
    """Support vector regression by a share of rows.

    As `SVR`, but for what is chosen: not the width of the tube but ``nu``, a lower bound on the share of rows that are
    support vectors and an upper bound on the share outside of the tube (Schölkopf, Smola, Williamson and Bartlett
    2000). `SVR` with ``epsilon_`` finds the same function.

    See Also
    --------
    SVR : By the width of the tube.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.NuSVR(C=10.0, nu=0.2).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.06)
    True
    """

    _kept_numbers = (*MachineOfValues._kept_numbers, "epsilon_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MachineOfValues._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: Any = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        scale: Any = "standard",
        shrinking: bool = True,
        tol: float = 1e-3,
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
        return nu_value_problem(rows, float(self.nu))

    def _keep_found(self, C: float, solutions: list[Solution]) -> None:
        super()._keep_found(C, solutions)
        self.epsilon_ = np.array([solution.epsilon for solution in solutions])
