"""Components of a stack: out-of-fold predictions, averages of the models of folds, greedy selection of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney._data.reproducible import log
from spinney._data.types import Floats, TableLike
from spinney._ensemble.stack_labels import predicted_labels
from spinney._estimator.estimator import only_if
from spinney._estimator.greedy import select
from spinney._estimator.held_out import Fold, Rows
from spinney._model.predictions import (
    Calibration,
    Classes,
    Curve,
    all_probabilities,
    calibrated,
    mean_prediction,
    member_codes,
    member_decisions,
    member_probabilities,
    member_values,
    onehot,
    tempered_columns,
)

N_STEPS = 100
_MIN_PROBABILITY = 2.0**-52  # so that a single wrong prediction of probability 0 does not make the loss infinite

# ---- out of fold ---------------------------------------------------------------------------------------------------


def predicted_targets(predicted: Floats, method: str, classes: Classes) -> NDArray[Any] | None:
    """Return the labels or values of predictions, (n_rows, width); None for decisions of pairs of classes."""
    if isinstance(classes, list):
        return predicted_labels(predicted, method, classes)
    if classes is None:
        return predicted[:, 0]
    if predicted.shape[1] == len(classes):
        return np.asarray(classes[predicted.argmax(axis=1)])
    return np.asarray(classes[(predicted[:, 0] > 0).astype(np.intp)]) if len(classes) == 2 else None


def folds_among(folds: list[Fold], has_prediction: NDArray[np.bool_]) -> list[tuple[Rows, Rows]]:
    """Return the folds as splits of the rows that have an out-of-fold prediction, numbered among these rows."""
    position = np.cumsum(has_prediction) - 1
    sides = [[position[side[has_prediction[side]]] for side in (fold.train, fold.held_out)] for fold in folds]
    splits = [(train, held_out) for train, held_out in sides if len(train) and len(held_out)]
    if not splits:
        raise ValueError(
            "cv leaves too few rows for a further layer: rows held out in one fold must be training rows of another. "
            "Use more folds, or no layers."
        )
    return splits


# ---- the models of a member's folds --------------------------------------------------------------------------------


def _lacks(method: str) -> Callable[[FoldAverage], str | None]:
    def why(average: FoldAverage) -> str | None:
        if all(hasattr(model, method) for model in average.estimators_):
            return None
        return f"needs models that have it, and {type(average.estimators_[0]).__name__} does not."

    return why


class FoldAverage:
    """The models of a member's folds, whose predictions are averaged.

    Attributes
    ----------
    estimators_ : list of estimators
        One per fold.
    classes_ : ndarray of shape (n_classes,)
        Labels; only of classifiers.
    """

    def __init__(self, estimators: list[BaseEstimator], classes: NDArray[Any] | None, by_code: bool) -> None:
        self.estimators_ = estimators
        self._by_code = by_code
        if classes is not None:
            self.classes_ = classes

    def __repr__(self) -> str:
        return f"<FoldAverage of {len(self.estimators_)} {type(self.estimators_[0]).__name__}>"

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self.estimators_[0].n_features_in_)

    @only_if(_lacks("predict_proba"))
    def predict_proba(self, X: TableLike) -> Floats:
        """Mean of the models' probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return mean_prediction(
            [member_probabilities(model, X, self.classes_, self._by_code) for model in self.estimators_]
        )

    @only_if(_lacks("decision_function"))
    def decision_function(self, X: TableLike) -> Floats:
        """Mean of the models' decision functions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, k)
            As the models return it.
        """
        mean = mean_prediction([member_decisions(model, X, self.classes_) for model in self.estimators_])
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Mean of the models' predictions, or the class with the most votes; in a tie, the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values or labels.
        """
        if not hasattr(self, "classes_"):
            return mean_prediction([member_values(model, X) for model in self.estimators_])
        codes = [member_codes(model, X, self.classes_, self._by_code) for model in self.estimators_]
        votes = mean_prediction([onehot(of_model, len(self.classes_)) for of_model in codes])
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    def fingerprint(self) -> str:
        """Hash of the models.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        text = "".join(model.fingerprint() for model in self.estimators_)
        return hashlib.sha256(text.encode()).hexdigest()


# ---- greedy selection ----------------------------------------------------------------------------------------------


class GreedySelection(BaseEstimator):
    """Weighted mean of members; the weights are chosen by greedy selection on out-of-fold predictions.

    Attributes
    ----------
    weights_ : ndarray of shape (n_members,)
        Weights, which add up to 1.
    classes_ : ndarray of shape (n_classes,)
        Labels; only of classifiers.
    temperatures_ : list of float, or None
        Temperature of each member: its log-probabilities are divided by it before they are averaged.
    calibration_ : float, Curve or None
        Calibration of the mean probabilities: a temperature, or a calibration curve.

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.
    """

    temperatures_: list[float] | None = None
    calibration_: Calibration = None

    def __init__(self, n_members: int, n_steps: int = N_STEPS) -> None:
        self.n_members = n_members
        self.n_steps = n_steps

    @classmethod
    def of(
        cls,
        weights: Floats,
        classes: NDArray[Any] | None,
        temperatures: list[float] | None,
        calibration: Calibration,
    ) -> GreedySelection:
        """Return a selection with known weights."""
        selection = cls(len(weights))
        selection.weights_, selection.temperatures_, selection.calibration_ = weights, temperatures, calibration
        if classes is not None:
            selection.classes_ = classes
        return selection

    def saved_values(self) -> dict[str, Any]:
        """Return the values that files hold of the weights and the calibration."""
        name = "curve" if isinstance(self.calibration_, Curve) else "temperature"
        return {"weights": self.weights_, "temperatures": self.temperatures_, name: self.calibration_}

    def identity(self) -> bytes:
        """Return the numbers that predictions depend on, for fingerprints."""
        by = self.calibration_
        numbers = b"" if by is None else by.tobytes() if isinstance(by, Curve) else np.float64(by).tobytes()
        temperatures = np.array(self.temperatures_ or [], dtype=np.float64)
        return np.asarray(self.weights_).tobytes() + temperatures.tobytes() + numbers

    def fit(self, X: Floats, y: NDArray[Any], sample_weight: Floats | None = None, *, classes: Any = None) -> Self:
        """Choose the weights: by log loss in a classification, by squared error in a regression.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_members * width)
            Predictions of the members: values, probabilities of the second of two classes, or of all classes.
        y : ndarray of shape (n_samples,)
            Numeric target, or class codes.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights.
        classes : ndarray of shape (n_classes,), optional
            Labels; None in a regression.

        Returns
        -------
        self
            The fitted selection.
        """
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        by_member = X.reshape(len(X), self.n_members, -1)
        if classes is None:
            relevant = by_member[:, :, 0].T

            def loss(mean: Floats) -> float:
                return float((weight * (mean - y) ** 2).sum())
        else:
            self.classes_ = classes
            relevant = all_probabilities(by_member)[np.arange(len(y)), :, y.astype(np.intp)].T

            def loss(mean: Floats) -> float:
                return -float((weight * log(np.maximum(mean, _MIN_PROBABILITY))).sum())

        counts = select(loss, np.ascontiguousarray(relevant), self.n_steps)
        self.weights_ = counts / counts.sum()
        return self

    def _mean(self, X: Floats) -> Floats:
        by_member = list(X.reshape(len(X), self.n_members, -1).transpose(1, 0, 2))
        return mean_prediction(tempered_columns(by_member, self.temperatures_), self.weights_.tolist())

    def predict_proba(self, X: Floats) -> Floats:
        """Weighted mean of the members' class probabilities.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_members * width)
            Predictions of the members.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Class probabilities.
        """
        return calibrated(all_probabilities(self._mean(X)), self.calibration_)

    def predict(self, X: Floats) -> NDArray[Any]:
        """Weighted mean of the members' predictions, or the class of the largest mean probability.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_members * width)
            Predictions of the members.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values or labels.
        """
        if not hasattr(self, "classes_"):
            return self._mean(X)[:, 0]
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


@dataclass(frozen=True, eq=False)
class MemberPredictions:
    """The training rows of the final estimator.

    Attributes
    ----------
    names, methods : list of str
        Members, and the method by which each predicts.
    columns : list of ndarrays of shape (n_rows, width)
        Out-of-fold predictions by member.
    seen : ndarray of bool of shape (n_rows,)
        Rows of positive weight that some fold holds out.
    """

    names: list[str]
    methods: list[str]
    columns: list[Floats]
    seen: NDArray[np.bool_]
