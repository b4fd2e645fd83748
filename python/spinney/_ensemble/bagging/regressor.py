"""Bagging of regressors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d, get_tags

from spinney._data.arguments import given_array
from spinney._ensemble.bagging.bagging import BaseBagging, parameters_of_member
from spinney._ensemble.out_of_bag import Values, Weights
from spinney._estimator.known_predictions import KnownValues
from spinney._estimator.parameters import store_parameters
from spinney._estimator.target import read_values
from spinney._tree.regressor import DecisionTreeRegressor


class BaggingRegressor(RegressorMixin, BaseBagging):
    """Regressors fitted to samples of the rows, whose predictions are averaged.

    Averaging removes much of the variance of members that a small change of the rows changes much, such as deep trees,
    and leaves their bias. Members run on threads and share the table: none of them copies more than its own sample, and
    trees copy nothing, because they get the number of times each row was drawn as its weight. (A row drawn twice then
    counts once for `min_samples_leaf`.) The ensemble is the same for any number of threads.

    References
    ----------
    L. Breiman (1996). Bagging predictors. Machine Learning 24, 123-140.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.BaggingRegressor(n_estimators=100, oob_score=True, random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2)
    0.42
    """

    _oob_name = "oob_prediction_"

    _elsewhere: ClassVar[dict[str, str]] = parameters_of_member(DecisionTreeRegressor)

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int | str = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def _default_estimator(self) -> Any:
        return DecisionTreeRegressor()

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], dict[str, Any]]:
        if y is not None and not self.__sklearn_tags__().target_tags.multi_output:
            y = column_or_1d(given_array(y, "y"), warn=True)
        values = read_values(y, n_rows)
        return values[:, 0] if values.shape[1] == 1 else values, {"n_outputs_": values.shape[1]}

    def _class_strata(self, target: Any) -> Any:
        raise AssertionError("a regression has no classes")

    def _say(self, member: Any, X: Any, **params: Any) -> Values:
        said = np.asarray(member.predict(X, **params), dtype=np.float64)
        return said.reshape(len(said), -1)

    def _shaped(self, mean: Values) -> Values:
        return mean[:, 0] if self.n_outputs_ == 1 else mean

    def _row_losses(self, target: Any, mean: Values) -> Values:
        return np.asarray(((target.reshape(mean.shape) - mean) ** 2).mean(axis=1))

    def _smooth_losses(self, target: Any, mean: Values) -> Values:
        return self._row_losses(target, mean)

    def _answers(self, mean: Values) -> NDArray[Any]:
        return self._shaped(mean)

    def _own_score(self, actual: Any, answers: NDArray[Any], weight: Weights) -> float:
        return float(r2_score(actual, answers, sample_weight=weight))

    def _as_model(self, mean: Values) -> Any:
        return KnownValues(self._shaped(mean))

    def predict(self, X: Any, **params: Any) -> Values:
        """Mean of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `predict` of the members that request it, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        return self._shaped(self._mean(X, self._routed("predict", params)))

    def staged_predict(self, X: Any) -> Iterator[Values]:
        """Yield the predictions of the first member, of the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        for mean in self._running_means(X):
            yield self._shaped(mean)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member = get_tags(self._unfitted_member())
        tags.target_tags.multi_output = member.target_tags.multi_output
        return tags
