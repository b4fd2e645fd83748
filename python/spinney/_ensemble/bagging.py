"""Bagging for classification and for regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, column_or_1d, get_tags
from sklearn.utils._param_validation import StrOptions

from spinney._data.arguments import argument_array
from spinney._data.reproducible import log
from spinney._data.types import TableLike
from spinney._ensemble.bagged_members import (
    ClassOutput,
    Output,
    ValueOutput,
    Values,
)
from spinney._ensemble.base_bagging import SAVED_STATE, BaseBagging, parameters_of_member
from spinney._estimator.estimator import Estimator, only_if
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import read_classes, read_values
from spinney._model.file.codec import (
    integer,
    saved_fields,
)
from spinney._tree.trees import DecisionTreeClassifier, DecisionTreeRegressor


def _why_no_decisions(model: BaggingClassifier) -> str | None:
    member = model.estimators_[0] if hasattr(model, "estimators_") else model.estimator
    if hasattr(member, "decision_function"):
        return None
    noun = "decision trees" if member is None else type(member).__name__
    return f"needs members that have one, and {noun} have none. Use predict_proba."


def _one_column(y: ArrayLike, supported: str, task: str) -> NDArray[Any]:
    """Return the target of one output; refuse several, and name an ensemble that supports them."""
    values = argument_array(y, "y")
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {values.shape} instead. y has several outputs, and "
            f"{supported}. Use RandomForest{task}, or sklearn.multioutput.MultiOutput{task}(Bagging{task}(…))."
        )
    return np.asarray(column_or_1d(values, warn=True))


@estimator
class BaggingClassifier(ClassifierMixin, BaseBagging):
    """Bagging: classifiers fitted to samples of the rows, whose probabilities are averaged or whose votes are counted.

    Averaging reduces the variance of unstable members, such as deep trees, but not their bias. Members are fitted in
    parallel on threads that share the table: a member copies at most its sample, and trees copy nothing, because the
    number of times a row is drawn is its weight. (A row drawn twice then counts once for `min_samples_leaf`.) The
    ensemble is the same for any number of threads.

    References
    ----------
    L. Breiman (1996). Bagging predictors. Machine Learning 24, 123-140.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = spinney.BaggingClassifier(KNeighborsClassifier(1), 50, oob_score=True, random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2)
    0.95
    """

    voting: Literal["soft", "hard"] | None = parameter(StrOptions({"soft", "hard"}), None, default=None)
    stratified: bool | Literal["balanced"] = parameter("boolean", StrOptions({"balanced"}), default=False)

    _oob_name = "oob_decision_function_"
    _is_class_target = True
    _other_library_advice: ClassVar[dict[str, str]] = parameters_of_member(DecisionTreeClassifier)

    def _default_estimator(self) -> Estimator:
        return DecisionTreeClassifier()

    def _template(self) -> BaseEstimator:
        template = super()._template()
        self._is_soft(template)
        return template

    @property
    def _stratified(self) -> bool | str:
        return self.stratified

    def _read_target(self, y: ArrayLike, n_rows: int) -> tuple[NDArray[Any], Output]:
        if y is not None:
            y = _one_column(y, "bagging of classifiers supports one", "Classifier")
        target = read_classes(y, n_rows)
        classes = target.classes[0]
        return classes[target.codes[:, 0]], ClassOutput(classes, self._is_soft)

    @property
    def _output(self) -> ClassOutput:
        return ClassOutput(self.classes_, self._is_soft)

    def _is_soft(self, member: BaseEstimator) -> bool:
        has_probabilities = hasattr(member, "predict_proba")
        if self.voting == "soft" and not has_probabilities:
            raise ValueError(
                f"voting='soft' averages probabilities, and {type(member).__name__} has no predict_proba. Use "
                "voting='hard'."
            )
        return has_probabilities and self.voting != "hard"

    def _methods(self) -> dict[str, str]:
        method = "predict_proba" if self._is_soft(self._unfitted_member()) else "predict"
        methods = dict.fromkeys(("predict", "predict_proba", "predict_log_proba"), method)
        return methods | {"decision_function": "decision_function"}

    def predict_proba(self, X: TableLike, **params: Any) -> Values:
        """Mean of the members' class probabilities, or fraction of their votes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            Metadata for `predict_proba`, or `predict`, of the members, by scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return self._mean(X, "predict_proba", params)

    def predict_log_proba(self, X: TableLike, **params: Any) -> Values:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            Metadata for `predict_proba`, or `predict`, of the members, by scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Minus infinity where the probability is 0.
        """
        with np.errstate(divide="ignore"):
            return log(self._mean(X, "predict_log_proba", params))

    @only_if(_why_no_decisions)
    def decision_function(self, X: TableLike, **params: Any) -> Values:
        """Mean of the members' decision functions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            Metadata for `decision_function` of the members, by scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, k)
            One score for two classes; else one column per class or pair of classes, as the members return it.
        """
        routed = self._routed("decision_function", params)

        def decide(member: BaseEstimator, rows: TableLike) -> Values:
            if len(member.classes_) != len(self.classes_):
                raise ValueError(
                    f"A member's sample has {len(member.classes_)} of the {len(self.classes_)} classes, so that its "
                    "decision function cannot be averaged with the others. Fit with stratified=True."
                )
            return np.asarray(member.decision_function(rows, **routed))

        return np.asarray(sum(self._each(X, decide)) / len(self.estimators_))

    def staged_predict_proba(self, X: TableLike) -> Iterator[Values]:
        """Yield the class probabilities of the first member, of the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            In the form of `predict_proba`.
        """
        yield from self._running_means(X)


@estimator
class BaggingRegressor(RegressorMixin, BaseBagging):
    """Bagging: regressors fitted to samples of the rows, whose predictions are averaged.

    Averaging reduces the variance of unstable members, such as deep trees, but not their bias. Members are fitted in
    parallel on threads that share the table: a member copies at most its sample, and trees copy nothing, because the
    number of times a row is drawn is its weight. (A row drawn twice then counts once for `min_samples_leaf`.) The
    ensemble is the same for any number of threads.

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
    _saved = saved_fields(**SAVED_STATE, n_outputs_=integer(least=1, key="n_outputs"))
    _other_library_advice: ClassVar[dict[str, str]] = parameters_of_member(DecisionTreeRegressor)

    def _default_estimator(self) -> Estimator:
        return DecisionTreeRegressor()

    def _read_target(self, y: ArrayLike, n_rows: int) -> tuple[NDArray[Any], Output]:
        if y is not None and not self.__sklearn_tags__().target_tags.multi_output:
            y = _one_column(y, "its members support one", "Regressor")
        values = read_values(y, n_rows)
        return values[:, 0] if values.shape[1] == 1 else values, ValueOutput(values.shape[1])

    @property
    def _output(self) -> ValueOutput:
        return ValueOutput(self.n_outputs_)

    def _methods(self) -> dict[str, str]:
        return {"predict": "predict"}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        member = get_tags(self._unfitted_member())
        tags.target_tags.multi_output = member.target_tags.multi_output
        return tags
