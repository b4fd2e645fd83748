"""Bagging of classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions

from spinney._data.arguments import given_array
from spinney._data.numeric.reproducible import log
from spinney._ensemble.bagging.bagging import BaseBagging, parameters_of_member
from spinney._ensemble.out_of_bag import Values, Weights
from spinney._estimator.attributes import only_if
from spinney._estimator.known_predictions import KnownShares
from spinney._estimator.parameters import store_parameters
from spinney._estimator.target import read_classes
from spinney._tree.classifier import DecisionTreeClassifier


def _why_no_decisions(model: Any) -> str | None:
    member = model.estimators_[0] if hasattr(model, "estimators_") else model.estimator
    if hasattr(member, "decision_function"):
        return None
    who = "members" if member is None else type(member).__name__
    return f"needs members that have one, and {who} have none. Use predict_proba."


class BaggingClassifier(ClassifierMixin, BaseBagging):
    """Classifiers fitted to samples of the rows, which vote or average their probabilities.

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
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = spinney.BaggingClassifier(KNeighborsClassifier(1), 50, oob_score=True, random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2)
    0.95
    """

    _oob_name = "oob_decision_function_"
    _is_class_target = True
    _elsewhere: ClassVar[dict[str, str]] = parameters_of_member(DecisionTreeClassifier)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBagging._parameter_constraints,
        "voting": [StrOptions({"soft", "hard"}), None],
        "stratified": ["boolean", StrOptions({"balanced"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int | str = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        voting: str | None = None,
        stratified: bool | str = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def _default_estimator(self) -> Any:
        return DecisionTreeClassifier()

    def _template(self) -> Any:
        template = super()._template()
        self._is_soft(template)
        return template

    @property
    def _stratified(self) -> bool | str:
        stratified: bool | str = self.stratified
        return stratified

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], dict[str, Any]]:
        if y is not None:
            y = column_or_1d(given_array(y, "y"), warn=True)
        found = read_classes(y, n_rows)
        classes = found.classes[0]
        return classes[found.codes[:, 0]], {"classes_": classes, "n_classes_": len(classes)}

    def _class_strata(self, target: Any) -> Any:
        return target

    def _is_soft(self, member: Any) -> bool:
        has_probabilities = hasattr(member, "predict_proba")
        if self.voting == "soft" and not has_probabilities:
            raise ValueError(
                f"voting='soft' averages probabilities, and {type(member).__name__} has no predict_proba. Use "
                "voting='hard'."
            )
        return has_probabilities and self.voting != "hard"

    def _asked_of_members(self) -> dict[str, str]:
        shares = "predict_proba" if self._is_soft(self._unfitted_member()) else "predict"
        found = dict.fromkeys(("predict", "predict_proba", "predict_log_proba"), shares)
        return found | {"decision_function": "decision_function"}

    def _say(self, member: Any, X: Any, **params: Any) -> Values:
        if not self._is_soft(member):
            codes = np.searchsorted(self.classes_, member.predict(X, **params))
            return np.asarray(np.eye(len(self.classes_))[codes])
        said = np.asarray(member.predict_proba(X, **params), dtype=np.float64)
        if said.shape[1] == len(self.classes_):
            return said
        shares = np.zeros((len(said), len(self.classes_)))
        shares[:, np.searchsorted(self.classes_, member.classes_)] = said
        return shares

    def _row_losses(self, target: Any, mean: Values) -> Values:
        return np.asarray(self._labels(np.nan_to_num(mean)) != target, dtype=np.float64)

    def _labels(self, shares: Values) -> NDArray[Any]:
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def _smooth_losses(self, target: Any, mean: Values) -> Values:
        return np.asarray(((mean - (target[:, np.newaxis] == self.classes_)) ** 2).sum(axis=1))

    def _answers(self, mean: Values) -> NDArray[Any]:
        return self._labels(mean)

    def _own_score(self, actual: Any, answers: NDArray[Any], weight: Weights) -> float:
        return float(accuracy_score(actual, answers, sample_weight=weight))

    def _as_model(self, mean: Values) -> Any:
        return KnownShares(mean, self._labels(mean), [self.classes_])

    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
        """Class with the highest mean probability, or the most votes; of equal ones the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `predict_proba`, or `predict`, of the members that request it, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return self._labels(self._mean(X, self._routed("predict", params)))

    def predict_proba(self, X: Any, **params: Any) -> Values:
        """Mean of the members' probabilities, or share of their votes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `predict_proba`, or `predict`, of the members that request it, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return self._mean(X, self._routed("predict_proba", params))

    def predict_log_proba(self, X: Any, **params: Any) -> Values:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `predict_proba`, or `predict`, of the members that request it, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Minus infinity where the probability is 0.
        """
        with np.errstate(divide="ignore"):
            return log(self._mean(X, self._routed("predict_log_proba", params)))

    @only_if(_why_no_decisions)
    def decision_function(self, X: Any, **params: Any) -> Values:
        """Mean of the members' decision functions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            For `decision_function` of the members that request it, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, k)
            One column for two classes; else one per class or pair of classes, as the members have.
        """
        routed = self._routed("decision_function", params)

        def decide(member: Any, rows: Any) -> Values:
            if len(member.classes_) != len(self.classes_):
                raise ValueError(
                    f"A member's sample holds {len(member.classes_)} of the {len(self.classes_)} classes, so that its "
                    "decisions cannot be averaged with the others. Fit with stratified=True."
                )
            return np.asarray(member.decision_function(rows, **routed))

        return np.asarray(sum(self._each(X, decide)) / len(self.estimators_))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predictions of the first member, of the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Labels.
        """
        for mean in self._running_means(X):
            yield self._labels(mean)

    def staged_predict_proba(self, X: Any) -> Iterator[Values]:
        """Yield the probabilities by the first member, by the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        yield from self._running_means(X)
