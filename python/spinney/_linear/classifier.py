"""Logistic regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval

from spinney._estimator import class_scores
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_class
from spinney._linear.linear_model import BaseLinear, Floats
from spinney._linear.solve import Logistic


class LinearClassifier(ClassifierMixin, BaseLinear):
    """Logistic regression of any table: class probabilities from scores that are linear in its columns.

    A number is one term, a category one for each of its values, and a column with missing values has another term that
    says where they are. The slopes minimise the log loss plus their squares, over 2 `C`; more than two classes have a
    score each. Newton's method finds them to the last digits, the same on every processor.

    See Also
    --------
    LinearRegressor : The same for numbers.
    StackingClassifier : Combines its members by such a model.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.LinearClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        **BaseLinear._parameter_constraints,
    }
    _is_class_target = True
    predict_proba = class_scores.predict_proba
    predict_log_proba = class_scores.predict_log_proba
    decision_function = class_scores.decision_function

    def __init__(
        self,
        C: float = 1.0,
        *,
        scale: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "a linear model")
        return codes.astype(np.intp), {"classes_": classes, "n_classes_": len(classes)}

    def _solve(
        self, terms: Floats, target: NDArray[Any], weight: Floats, penalty: Floats, learned: dict[str, Any]
    ) -> tuple[Floats, Floats, str]:
        classes = learned["classes_"]
        lost = np.flatnonzero(np.bincount(target, minlength=len(classes)) == 0)
        if len(lost):
            raise ValueError(
                f"The class {classes.tolist()[lost[0]]!r} has no row of positive weight to learn from. Drop its rows, "
                "or give some of them a weight."
            )
        slopes, constants = Logistic(terms, target, weight, penalty / self.C, len(classes)).solve()
        return slopes, constants, "logit" if len(classes) == 2 else "softmax"

    @property
    def coef_(self) -> Floats:
        """Slopes, (1, n_terms) for two classes, else (n_classes, n_terms), in the units of the columns."""
        return self._raw_slopes()

    @property
    def intercept_(self) -> Floats:
        """Constants, one per row of `coef_`."""
        return self._raw_constants()

    def _scores(self, X: Any) -> Floats:
        return self._by_blocks(X, lambda columns: self.linear_.scores(columns, 0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest score.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        codes = self._by_blocks(X, lambda columns: self.linear_.codes(columns, 0))
        return self.linear_.labels(codes, [self.classes_])
