"""Predictions of the members of an ensemble, in a form that can be averaged, calibrated or learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import exp, log
from spinney._data.types import Floats, TableLike

_MIN_PROBABILITY = 2.0**-52
METHODS = ("predict_proba", "decision_function", "predict")
Classes = NDArray[Any] | list[NDArray[Any]] | None  # of several labels of 0 and 1 a list; None in a regression


def member_probabilities(member: Any, X: Any, classes: NDArray[Any], by_code: bool, **params: Any) -> Floats:
    """Class probabilities by a member, (n_rows, n_classes); 0 for classes that it has not seen.

    With `by_code` the member was fitted on class codes instead of labels. Its `classes_` may be in another order.
    """
    found = np.asarray(member.predict_proba(X, **params), dtype=np.float64)
    labels = np.arange(len(classes)) if by_code else classes
    known = np.asarray(getattr(member, "classes_", labels))
    if found.shape[1] == len(labels) and ((known == labels).all() or not np.isin(known, labels).all()):
        return found
    proba = np.zeros((len(found), len(classes)))
    proba[:, known.astype(np.intp) if by_code else np.searchsorted(classes, known)] = found
    return proba


def member_codes(member: Any, X: Any, classes: NDArray[Any], by_code: bool, **params: Any) -> NDArray[np.intp]:
    """Codes of the classes that a member predicts, (n_rows,)."""
    predicted = np.asarray(member.predict(X, **params))
    predicted = predicted.reshape(len(predicted))
    return predicted.astype(np.intp) if by_code else np.searchsorted(classes, predicted)


def member_decisions(member: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Decision function of a member, (n_rows, 1) for two classes."""
    if len(member.classes_) != len(classes):
        raise ValueError(
            f"A member has seen {len(member.classes_)} of the {len(classes)} classes, so its decision function cannot "
            "be combined with those of the others. Use folds that contain every class, or stack_method='predict'."
        )
    decisions = np.asarray(member.decision_function(X), dtype=np.float64)
    return decisions[:, np.newaxis] if decisions.ndim == 1 else decisions


def member_values(member: Any, X: Any) -> Floats:
    """Predictions of a regressor, (n_rows,)."""
    predicted = np.asarray(member.predict(X), dtype=np.float64)
    if predicted.size != len(predicted):
        raise ValueError(f"{type(member).__name__} predicts several outputs; members must predict one.")
    return predicted.reshape(len(predicted))


def onehot(codes: NDArray[np.intp], n_classes: int) -> Floats:
    """Return class codes as votes of 0 and 1, (n_rows, n_classes)."""
    return np.asarray(np.eye(n_classes)[codes])


def label_columns(member: Any, X: Any, method: str, n_labels: int) -> Floats:
    """Predictions of several labels of 0 and 1, (n_rows, n_labels): probabilities of 1, decisions or labels."""
    found = getattr(member, method)(X)
    if isinstance(found, list):  # an array per label
        parts = zip(found, member.classes_, strict=True)
        found = np.column_stack(
            [proba[:, 1] if len(labels) == 2 else np.full(len(proba), labels[0]) for proba, labels in parts]
        )
    columns = np.asarray(found, dtype=np.float64)
    if columns.shape[1:] != (n_labels,):
        raise ValueError(
            f"{method} of {type(member).__name__} returns an array of shape {columns.shape} for {n_labels} labels, and "
            "stacking needs one column per label. Use a member that supports several labels, or wrap it in "
            "sklearn.multioutput.MultiOutputClassifier."
        )
    return columns


def member_predictions(member: object, X: TableLike, method: str, classes: Classes, by_code: bool) -> Floats:
    """Return a member's predictions so that they can be averaged, (n_rows, n_values); labels become votes."""
    if isinstance(classes, list):
        return label_columns(member, X, method, len(classes))
    if classes is None:
        return np.asarray(member_values(member, X)[:, np.newaxis])
    if method == "predict_proba":
        return member_probabilities(member, X, classes, by_code)
    if method == "decision_function":
        return member_decisions(member, X, classes)
    return onehot(member_codes(member, X, classes, by_code), len(classes))


def mean_prediction(predictions: list[Floats], weights: list[float] | None = None) -> Floats:
    """Mean of several members' predictions, weighted if weights are given."""
    if weights is not None:
        return np.asarray(sum(weight * one for weight, one in zip(weights, predictions, strict=True)))
    return np.asarray(sum(predictions[1:], start=predictions[0]) / len(predictions))


def tempered(proba: Floats, temperature: float | None) -> Floats:
    """Divide log-probabilities by a temperature (above 1: less confident) and normalise; None changes nothing."""
    if temperature is None:
        return proba
    scores = log(np.maximum(proba, _MIN_PROBABILITY)) / temperature
    sizes = exp(scores - scores.max(axis=1, keepdims=True))
    total = sizes[:, 0].copy()
    for column in sizes.T[1:]:
        total += column  # in this order on every processor
    return np.asarray(sizes / total[:, np.newaxis])


def tempered_columns(columns: list[Floats], temperatures: list[float] | None) -> list[Floats]:
    """Temper each member's probability columns by its temperature; None changes nothing."""
    if temperatures is None:
        return columns
    found = [tempered(all_probabilities(one), by) for one, by in zip(columns, temperatures, strict=True)]
    return [proba[:, -one.shape[1] :] for proba, one in zip(found, columns, strict=True)]


# ---- predictions as columns for the model that combines them ---------------------------------------------------------


def as_columns(predictions: Floats, method: str, classes: Classes) -> Floats:
    """Return predictions as columns to learn from: of two probabilities the second alone, of votes the code."""
    if classes is None or isinstance(classes, list) or method == "decision_function":
        return predictions
    if method == "predict":
        return np.asarray(predictions.argmax(axis=1)[:, np.newaxis], dtype=np.float64)
    return predictions[:, 1:] if len(classes) == 2 else predictions


def all_probabilities(columns: Floats) -> Floats:
    """Return probabilities of all classes from columns, (..., width), which may hold the second of two alone."""
    return np.concatenate([1 - columns, columns], axis=-1) if columns.shape[-1] == 1 else columns


def column_names(names: list[str], widths: list[int], classes: Classes) -> list[str]:
    """Name the columns of each member's predictions, by member and class."""
    found = []
    for name, width in zip(names, widths, strict=True):
        if width == 1:
            found.append(name)
        else:
            labels: Any = range(width)
            if isinstance(classes, np.ndarray) and len(classes) == width:
                labels = classes.tolist()
            found += [f"{name}: {label}" for label in labels]
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """A calibration curve for two classes: piecewise linear, rising, and constant beyond its first and last point.

    Attributes
    ----------
    predicted : ndarray of shape (n_points,)
        Predicted probabilities of the second class, ascending.
    observed : ndarray of shape (n_points,)
        Observed frequencies of the second class at these, never falling.
    """

    predicted: Floats
    observed: Floats

    def __call__(self, proba: Floats) -> Floats:
        """Calibrate the probabilities of both classes."""
        second = np.clip(proba[:, 1], self.predicted[0], self.predicted[-1])
        if len(self.predicted) == 1:
            found = np.full(len(second), self.observed[0])
        else:
            at = np.clip(np.searchsorted(self.predicted, second, side="right") - 1, 0, len(self.predicted) - 2)
            fraction = (second - self.predicted[at]) / (self.predicted[at + 1] - self.predicted[at])
            rise = self.observed[at + 1] - self.observed[at]
            step = fraction * rise  # a separate statement, so that no processor fuses it with the sum
            found = np.where(fraction == 1, self.observed[at + 1], self.observed[at] + step)
        return np.column_stack([1 - found, found])

    def tobytes(self) -> bytes:
        """Return its numbers, for fingerprints."""
        return self.predicted.tobytes() + self.observed.tobytes()


Calibration = float | Curve | None


def calibrated(proba: Floats, by: Calibration) -> Floats:
    """Calibrate probabilities by a temperature or a curve; None changes nothing."""
    return by(proba) if isinstance(by, Curve) else tempered(proba, by)


def isotonic_curve(second: Floats, is_second: NDArray[np.bool_]) -> Curve:
    """Fit an isotonic regression by pooling adjacent violators, as a line through the middles of its steps.

    One row of the second class is added below all others and one of the first class above them, so that no
    probability becomes 0 or 1.

    Parameters
    ----------
    second : ndarray of shape (n_rows,)
        Predicted probabilities of the second class for rows that the model has not seen.
    is_second : ndarray of bool of shape (n_rows,)
        Whether each row is of the second class.
    """
    at, place = np.unique(second, return_inverse=True)
    rows, hits = np.bincount(place), np.bincount(place, weights=is_second).astype(np.intp)
    rows[0], hits[0] = rows[0] + 1, hits[0] + 1
    rows[-1] += 1
    steps: list[tuple[int, int, float, float]] = []  # rows, hits, lowest and highest probability
    for n, k, probability in zip(rows.tolist(), hits.tolist(), at.tolist(), strict=True):
        step = (n, k, probability, probability)
        while steps and steps[-1][1] * step[0] >= step[1] * steps[-1][0]:
            before = steps.pop()
            step = (before[0] + step[0], before[1] + step[1], before[2], step[3])
        steps.append(step)
    return Curve(np.array([(low + high) / 2 for _, _, low, high in steps]), np.array([k / n for n, k, _, _ in steps]))


# ---- averages of models ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """How an ensemble averages fitted models of spinney.

    Attributes
    ----------
    names : list of str
    members : list of estimators
        Those with a weight above 0.
    weights : list of float
        They add up to 1.
    classes : ndarray or None
        Labels; None in a regression.
    is_stack : bool
        Whether members have temperatures and the mean a calibration; of two classes it averages the second alone.
    temperatures : list of float, or None
        Temperature of each member.
    calibration : float, Curve or None
        Calibration of the mean probabilities.
    """

    names: list[str]
    members: list[Any]
    weights: list[float]
    classes: NDArray[Any] | None
    is_stack: bool = False
    temperatures: list[float] | None = None
    calibration: Calibration = None

    @property
    def is_linear(self) -> bool:
        """Whether its predictions are a linear function of those of its members."""
        return self.temperatures is None and self.calibration is None

    def predicted(self, predictions: list[Floats]) -> Floats:
        """Return the predictions for those of the members: numbers, (n_rows, 1), or probabilities of all classes."""
        if self.classes is None or not self.is_stack:
            return mean_prediction(predictions, self.weights)
        columns = [as_columns(one, "predict_proba", self.classes) for one in predictions]
        columns = tempered_columns(columns, self.temperatures)
        return calibrated(all_probabilities(mean_prediction(columns, self.weights)), self.calibration)
