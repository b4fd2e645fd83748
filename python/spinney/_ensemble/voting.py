"""Voting: different estimators are fitted to all rows, and their predictions averaged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.arguments import argument_numbers
from spinney._data.types import Floats, TableLike
from spinney._ensemble.combination import BaseCombination, NamedMembers
from spinney._ensemble.members import (
    is_dropped,
)
from spinney._estimator import table_estimator
from spinney._estimator.estimator import Estimator
from spinney._estimator.parameters import estimator, parameter
from spinney._model.file.container import refuse
from spinney._model.predictions import WeightedMean, mean_prediction, member_predictions
from spinney._model.saving.members import check_member


@estimator
class BaseVoting(TransformerMixin, BaseCombination):
    """Members that are fitted to all rows, and whose predictions are averaged."""

    weights: ArrayLike | None = parameter("array-like", None, default=None)
    _kind, _method = "vote", "voting"

    @property
    @abstractmethod
    def _is_soft(self) -> bool:
        """Whether class probabilities of the members are averaged."""

    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any table that the members take: NumPy array, pandas, polars or pyarrow table, scipy sparse matrix, dict of
            columns or list of rows. Members get a table of the same type.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, for members that take weights; a warning names the others. A weight of 0 leaves the row
            out.
        **fit_params : dict
            Metadata for `fit` of the members, by scikit-learn's metadata routing.

        Returns
        -------
        self
            The fitted ensemble.
        """
        rows = self._read_rows(X, y, sample_weight)
        members = self._members()
        self._check_members(members)
        self._normalized_weights(len(members))
        self._warn_of_weights(members, rows.weight)
        random = check_random_state(self.random_state)
        fitted = self._fit_members(members, (), rows, [None], fit_params, random)
        named = [(name, models[0]) for (name, _), models in zip(members, fitted.models, strict=True)]
        self._set_members(rows.table, rows.classes, named, fitted.by_code)
        return self

    def _check_members(self, members: NamedMembers) -> None:
        """Refuse members that lack a method."""
        return

    def _normalized_weights(self, n_members: int) -> Floats:
        """Return the weight of each member; they add up to 1."""
        if self.weights is None:
            return np.full(n_members, 1 / n_members)
        weights = argument_numbers(self.weights, "weights")
        dropped = [is_dropped(member) for _, member in self._members_of_parameter()] or [False] * n_members
        if weights.shape != (len(dropped),):
            raise ValueError(
                f"Number of `estimators` and weights must be equal; got {weights.size} weights, {len(dropped)} "
                "estimators. Give one weight per member."
            )
        weights = weights[~np.array(dropped)]
        if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ValueError("weights must be finite numbers of at least 0, and not all 0.")
        return np.asarray(weights / weights.sum())

    def _each(self, X: TableLike) -> Iterator[Floats]:
        """Yield the predictions of each member."""
        table = self._matched(X)
        for member, coded in zip(self.estimators_, self._coded, strict=True):
            method = "predict_proba" if self._is_soft else "predict"
            yield member_predictions(member, table.native, method, self._classes, coded)

    def _mean(self, X: TableLike) -> Floats:
        check_is_fitted(self)
        return mean_prediction(list(self._each(X)), self._normalized_weights(len(self.estimators_)).tolist())

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns that `transform` returns, as scikit-learn names them.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Not used.

        Returns
        -------
        ndarray of str objects
            Names.
        """
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}_{name}{k}" for name in self._names for k in self._suffixes()], dtype=object)

    def _suffixes(self) -> list[str]:
        """Return the suffixes of the column names of one member."""
        return [""]

    @property
    def _n_features_out(self) -> int:
        return len(self._names) * len(self._suffixes())

    # ---- files ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        weights = self._normalized_weights(len(self.estimators_)).tolist()
        return super()._to_header() | {"weights": weights, "soft": self._is_soft}

    def _combine(self, header: dict[str, Any], frame: dict[str, Any], models: list[Estimator]) -> None:
        if len(models) != len(self._names):
            refuse("is damaged: it lacks models")
        for model in models:
            check_member(model, frame)
        self.estimators_ = models
        self._normalized_weights(len(models))
        self._check_members(list(zip(self._names, models, strict=True)))

    def _identity(self) -> bytes:
        return self._normalized_weights(len(self.estimators_)).tobytes()

    def _weighted_mean(self) -> WeightedMean:
        if self._is_class_target and not self._is_soft:
            raise ValueError("The members of this VotingClassifier vote. Set voting='soft' to average probabilities.")
        return self._mean_of(self._normalized_weights(len(self.estimators_)).tolist())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # votes are whole numbers
        return tags


@estimator
class VotingClassifier(ClassifierMixin, BaseVoting):
    """Voting: classifiers of different kinds, whose probabilities are averaged or whose votes are counted.

    Members are fitted in parallel on threads that share the table, and the ensemble is the same for any number of
    threads.

    See Also
    --------
    VotingRegressor : The same for regression.
    StackingClassifier : Combines the members by a fitted estimator.
    BaggingClassifier : Many members of one kind.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.VotingClassifier(["tree", "forest", "linear"], weights=[1, 2, 2], random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    voting: Literal["soft", "hard"] | None = parameter(StrOptions({"soft", "hard"}), None, default=None)
    flatten_transform: bool = parameter("boolean", default=True)
    _is_class_target = True
    predict_log_proba = table_estimator.predict_log_proba

    def _check_members(self, members: NamedMembers) -> None:
        without = [name for name, member in members if not hasattr(member, "predict_proba")]
        if self.voting == "soft" and without:
            raise ValueError(
                f"voting='soft' averages probabilities, and {without[0]!r} has no predict_proba. Use voting='hard'."
            )

    @property
    def _is_soft(self) -> bool:
        return self.voting != "hard" and all(hasattr(member, "predict_proba") for member in self.estimators_)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class with the highest mean probability, or the most votes; in a tie, the first of these classes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        proba = self._mean(X)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def predict_proba(self, X: TableLike) -> Floats:
        """Mean of the members' class probabilities, or fraction of their votes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return self._mean(X)

    def transform(self, X: TableLike) -> Floats:
        """Predictions of each member: class probabilities, or the codes of the predicted labels.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members), (n_samples, n_members * n_classes) or (n_members, n_samples, n_classes)
            Hard voting: class codes, of the first shape. Soft voting: probabilities, of the second shape, or of the
            third with ``flatten_transform=False``.
        """
        predicted = list(self._each(X))
        if not self._is_soft:
            return np.column_stack([votes.argmax(axis=1) for votes in predicted])
        return np.hstack(predicted) if self.flatten_transform else np.array(predicted)

    def _suffixes(self) -> list[str]:
        return [str(k) for k in range(len(self.classes_))] if self._is_soft else [""]


@estimator
class VotingRegressor(RegressorMixin, BaseVoting):
    """Voting: regressors of different kinds, whose predictions are averaged.

    Members are fitted in parallel on threads that share the table, and the ensemble is the same for any number of
    threads.

    See Also
    --------
    VotingClassifier : The same for classification.
    StackingRegressor : Combines the members by a fitted estimator.
    BaggingRegressor : Many members of one kind.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.VotingRegressor(["tree", "linear"]).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> len(model.estimators_)
    2
    """

    @property
    def _is_soft(self) -> bool:
        return False

    def predict(self, X: TableLike) -> Floats:
        """Weighted mean of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values.
        """
        return self._mean(X)[:, 0]

    def transform(self, X: TableLike) -> Floats:
        """Predictions of each member.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members)
            Predicted values.
        """
        return np.hstack(list(self._each(X)))
