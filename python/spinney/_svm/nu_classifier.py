"""Support vector machines that tell classes apart, by a share of rows in place of a penalty."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from spinney._estimator.parameters import store_parameters
from spinney._svm.class_pairs import MachinesOfClasses
from spinney._svm.kernel_machine import Floats
from spinney._svm.rows import MarginRows
from spinney._svm.solve import Problems, Solution, nu_class_problems


class NuSVC(MachinesOfClasses):
    """Support vector classification by a share of rows.

    As `SVC`, but for what is chosen: not the penalty but ``nu``, a lower bound on the share of rows that are support
    vectors and an upper bound on the share that lies within the margin or beyond it (Schölkopf, Smola, Williamson and
    Bartlett 2000). `SVC` with the penalty ``C_`` finds the same machine. Several classes have a machine for each pair.

    See Also
    --------
    SVC : By a penalty.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.NuSVC(nu=0.1).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    _kept_numbers = (*MachinesOfClasses._kept_numbers, "C_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MachinesOfClasses._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        scale: Any = "standard",
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        precision: str = "single",
        decision_function_shape: str = "ovr",
        max_iter: int = -1,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _penalties(self) -> Floats:
        return np.ones(1)

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return nu_class_problems(rows, float(self.nu), learned["classes_"])

    def _keep_found(self, C: float, solutions: list[Solution]) -> None:
        self.C_ = np.array([solution.penalty for solution in solutions])
