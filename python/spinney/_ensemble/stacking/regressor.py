"""Stacking of regressors."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from spinney._ensemble.stacking.stacking import BaseStacking
from spinney._estimator.estimator import Estimator
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_value
from spinney._linear.linear_model import LinearRegressor


class StackingRegressor(RegressorMixin, BaseStacking):
    """Regressors whose predictions are combined by another model, which learns from rows they have not seen.

    Each member is fitted to the rows outside each fold and asked about the rows in it; what it says there, its
    out-of-fold predictions, are the columns that the final estimator learns from. For new rows the members speak that
    were refitted to all rows. All fits run side by side on threads that share the table, and the ensemble is the same
    for any number of threads.

    See Also
    --------
    StackingClassifier : The same for classes.
    VotingRegressor : Averages members without learning how.
    compare : Which of several models is best, and how sure one can be.

    References
    ----------
    D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.

    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = spinney.StackingRegressor(["tree", "linear"], "greedy", random_state=0).fit(X, y)
    >>> model.final_estimator_.weights_.round(1)
    array([1., 0.])
    """

    _task = "Regressor"

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        layers: Any = None,
        cv: Any = 5,
        passthrough: bool = False,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[Any] | None, dict[str, Any]]:
        return read_one_value(y, n_rows, "stacking"), None, {}

    def _default_final(self) -> Estimator:
        return LinearRegressor(scale=False)

    def _method(self, name: str, estimator: Any) -> str:
        return "predict"

    def _scored(self, target: Any, answers: NDArray[Any], weight: Any) -> float:
        return float(r2_score(target, answers, sample_weight=weight))
