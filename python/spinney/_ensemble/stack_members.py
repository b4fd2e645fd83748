"""What a stack is made of: predictions out of fold, members as the models of their folds, and greedy selection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney._data.reproducible import log
from spinney._data.types import TableLike
from spinney._estimator.estimator import only_if
from spinney._estimator.held_out import Fold, Rows
from spinney._model.predictions import (
    Calibration,
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

Floats = NDArray[np.float64]
N_STEPS = 100
_LEAST_SHARE = 2.0**-52  # so that one wrong certainty does not cost an infinite loss

# ---- out of fold ---------------------------------------------------------------------------------------------------


def answers(said: Floats, classes: NDArray[Any] | None) -> NDArray[Any]:
    """Labels or values that follow from what was said."""
    if classes is None:
        return said[:, 0]
    if said.shape[1] == len(classes):
        return np.asarray(classes[said.argmax(axis=1)])
    if len(classes) == 2:
        return np.asarray(classes[(said[:, 0] > 0).astype(np.intp)])
    raise ValueError("These decisions are of pairs of classes and name none.")


class OutOfFold:
    """Sums over folds of what one member says of the rows held out.

    Attributes
    ----------
    total : ndarray of shape (n_rows, n_values)
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._count = np.zeros(n_rows)
        self.total = np.empty((n_rows, 0))

    def add(self, rows: Rows, said: Floats) -> None:
        """Add what was said of some rows."""
        if not self.total.shape[1]:
            self.total = np.zeros((self._n_rows, said.shape[1]))
        self.total[rows] += said
        self._count[rows] += 1

    @property
    def mean(self) -> Floats:
        """Mean over the folds that held a row out; NaN where none did."""
        with np.errstate(invalid="ignore"):
            return self.total / self._count[:, np.newaxis]


def folds_among(folds: list[Fold], judged: NDArray[np.bool_]) -> list[tuple[Rows, Rows]]:
    """Return the folds as splits of the rows that were judged, counted among these."""
    place = np.cumsum(judged) - 1
    found = [tuple(place[side[judged[side]]] for side in (fold.train, fold.held_out)) for fold in folds]
    splits = [(grown_on, held_out) for grown_on, held_out in found if len(grown_on) and len(held_out)]
    if not splits:
        raise ValueError(
            "cv leaves too few rows for a further layer: those held out in one fold must be learned from in another. "
            "Use more folds, or no layers."
        )
    return splits


# ---- the models of a member's folds --------------------------------------------------------------------------------


def _lacks(method: str) -> Callable[[FoldAverage], str | None]:
    def why(average: FoldAverage) -> str | None:
        if all(hasattr(model, method) for model in average.estimators_):
            return None
        return f"needs models that have one, and {type(average.estimators_[0]).__name__} has none."

    return why


class FoldAverage:
    """The models of a member's folds; they say their mean.

    Attributes
    ----------
    estimators_ : list of estimators
        One per fold.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
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
            As those of the models.
        """
        mean = mean_prediction([member_decisions(model, X, self.classes_) for model in self.estimators_])
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Mean of the models' values, or the class with the most votes; of equal ones the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values or labels.
        """
        if not hasattr(self, "classes_"):
            return mean_prediction([member_values(model, X) for model in self.estimators_])
        codes = [member_codes(model, X, self.classes_, self._by_code) for model in self.estimators_]
        votes = mean_prediction([onehot(said, len(self.classes_)) for said in codes])
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


def select(losses_of: Callable[[Floats], float], said: Floats, n_steps: int) -> NDArray[np.intp]:
    """Count how often each member is taken.

    Each step adds the member whose addition to the mean of those taken so far gives the least loss, the first of equal
    ones; the best of these means wins, the shortest of equal ones.

    Parameters
    ----------
    losses_of : callable
        From a mean of what members say to its loss.
    said : ndarray of shape (n_members, ...)
        What each says.
    n_steps : int

    Returns
    -------
    ndarray of shape (n_members,)
    """
    total, taken = np.zeros_like(said[0]), np.zeros(len(said), dtype=np.intp)
    best, best_loss = taken, np.inf
    for step in range(1, n_steps + 1):
        losses = [losses_of((total + one) / step) for one in said]
        k = int(np.argmin(losses))
        total = total + said[k]
        taken = taken.copy()
        taken[k] += 1
        if losses[k] < best_loss:
            best, best_loss = taken, losses[k]
    return best


class GreedySelection(BaseEstimator):
    """Weights of members, found by greedy selection on what they say of rows that they have not seen.

    Attributes
    ----------
    weights_ : ndarray of shape (n_members,)
        Weights, which add up to 1.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
    temperatures_ : list of float, or None
        By which logarithms of each member's shares are divided before their mean is taken; None: they stay as they are.
    calibration_ : float, Curve or None
        By which logarithms of the mean shares are divided, or a curve off which they are read; None: they stay as they
        are.

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
        """Return a selection that is known already."""
        found = cls(len(weights))
        found.weights_, found.temperatures_, found.calibration_ = weights, temperatures, calibration
        if classes is not None:
            found.classes_ = classes
        return found

    def to_header(self) -> dict[str, Any]:
        """Return the header entries of the weights and the calibration."""
        header: dict[str, Any] = {"weights": self.weights_.tolist()}
        if self.temperatures_ is not None:
            header["temperatures"] = self.temperatures_
        if isinstance(self.calibration_, Curve):
            header["curve"] = {
                "predicted": self.calibration_.predicted.tolist(),
                "observed": self.calibration_.observed.tolist(),
            }
        elif self.calibration_ is not None:
            header["temperature"] = self.calibration_
        return header

    def identity(self) -> bytes:
        """Return the numbers that predictions rest on."""
        by = self.calibration_
        numbers = b"" if by is None else by.tobytes() if isinstance(by, Curve) else np.float64(by).tobytes()
        temperatures = np.array(self.temperatures_ or [], dtype=np.float64)
        return np.asarray(self.weights_).tobytes() + temperatures.tobytes() + numbers

    def fit(
        self, said: Floats, y: NDArray[Any], sample_weight: Floats | None = None, *, classes: NDArray[Any] | None = None
    ) -> Self:
        """Select: by log loss for classes, by squared error for values.

        Parameters
        ----------
        said : ndarray of shape (n_samples, n_members * width)
            What the members say: a value, the share of the second of two classes, or the shares of all classes.
        y : ndarray of shape (n_samples,)
            Values, or codes of classes.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights.
        classes : ndarray of shape (n_classes,), optional
            Labels; None: y are values.

        Returns
        -------
        self
            With weights.
        """
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        parts = said.reshape(len(said), self.n_members, -1)
        if classes is None:
            own = parts[:, :, 0].T

            def loss(mean: Floats) -> float:
                return float((weight * (mean - y) ** 2).sum())
        else:
            self.classes_ = classes
            own = all_probabilities(parts)[np.arange(len(y)), :, y.astype(np.intp)].T

            def loss(mean: Floats) -> float:
                return -float((weight * log(np.maximum(mean, _LEAST_SHARE))).sum())

        taken = select(loss, np.ascontiguousarray(own), self.n_steps)
        self.weights_ = taken / taken.sum()
        return self

    def _mean(self, said: Floats) -> Floats:
        parts = said.reshape(len(said), self.n_members, -1)
        return mean_prediction(
            tempered_columns(list(parts.transpose(1, 0, 2)), self.temperatures_), self.weights_.tolist()
        )

    def predict_proba(self, said: Floats) -> Floats:
        """Weighted mean of the members' shares.

        Parameters
        ----------
        said : ndarray of shape (n_samples, n_members * width)
            What the members say.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Shares.
        """
        return calibrated(all_probabilities(self._mean(said)), self.calibration_)

    def predict(self, said: Floats) -> NDArray[Any]:
        """Weighted mean of the members' values, or the class of the largest mean share.

        Parameters
        ----------
        said : ndarray of shape (n_samples, n_members * width)
            What the members say.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values or labels.
        """
        if not hasattr(self, "classes_"):
            return self._mean(said)[:, 0]
        return np.asarray(self.classes_[self.predict_proba(said).argmax(axis=1)])
