"""Ridge regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_value
from spinney._linear.linear_model import BaseLinear, Floats
from spinney._linear.solve import Ridge
from spinney._model.file.container import refuse
from spinney._model.saving.model_part import FittedPart

_STRENGTHS = (0.1, 1.0, 10.0)  # tried by alpha="cv", as scikit-learn's RidgeCV


class LinearRegressor(RegressorMixin, BaseLinear):
    """Ridge regression of any table: values that are linear in its columns.

    A number is one term, a category one for each of its values, and a column with missing values has another term that
    says where they are. The slopes minimise the squared error plus `alpha` times their squares.

    See Also
    --------
    LinearClassifier : The same for classes.
    StackingRegressor : Combines its members by such a model.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.LinearRegressor(alpha=0.0).fit([[1.0], [2.0], [4.0]], [3.0, 5.0, 9.0])
    >>> model.predict([[10.0]]).round(6)
    array([21.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0.0, None, closed="left"), StrOptions({"cv"})],
        **BaseLinear._parameter_constraints,
    }

    def __init__(
        self,
        alpha: float | str = "cv",
        *,
        scale: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], dict[str, Any]]:
        return read_one_value(y, n_rows, "a linear model"), {}

    def _solve(
        self, terms: Floats, target: NDArray[Any], weight: Floats, penalty: Floats, learned: dict[str, Any]
    ) -> tuple[Floats, Floats, str]:
        ridge = Ridge(terms, target, weight, penalty)
        alpha = min(_STRENGTHS, key=ridge.left_out_error) if isinstance(self.alpha, str) else float(self.alpha)
        slopes, constant = ridge.solve(alpha)
        learned["alpha_"] = alpha
        return slopes[:, np.newaxis], np.array([constant]), "identity"

    def _to_header(self) -> dict[str, Any]:
        return {"alpha": self.alpha_}

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        alpha: Any = header.get("alpha")
        if type(alpha) not in (int, float) or not 0 <= alpha < np.inf:
            refuse("is damaged: the strength of its penalty is impossible")
        return {"alpha_": float(alpha)}

    @property
    def coef_(self) -> Floats:
        """Slopes, (n_terms,), in the units of the columns."""
        return np.asarray(self._raw_slopes()[0])

    @property
    def intercept_(self) -> float:
        """Value where all terms are 0."""
        return float(self._raw_constants()[0])

    def predict(self, X: Any) -> Floats:
        """Predict a value for each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        return self._by_blocks(X, lambda columns: self.linear_.predictions(columns, 0))[:, 0]
