"""What models that are combined say of rows: shares of classes, decisions, labels as codes, or values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import exp, log
from spinney._data.types import TableLike

Floats = NDArray[np.float64]
_LEAST_SHARE = 2.0**-52
METHODS = ("predict_proba", "decision_function", "predict")


def class_positions(member: Any, classes: NDArray[Any], by_code: bool) -> NDArray[np.intp]:
    """Where the classes that a member knows stand among all; by_code: it knows them by their codes."""
    known = np.asarray(member.classes_)
    return np.asarray(known, dtype=np.intp) if by_code else np.searchsorted(classes, known)


def member_probabilities(member: Any, X: Any, classes: NDArray[Any], by_code: bool, **params: Any) -> Floats:
    """Class probabilities by a member, (n_rows, n_classes); 0 for classes that it does not know."""
    said = np.asarray(member.predict_proba(X, **params), dtype=np.float64)
    if said.shape[1] == len(classes):
        return said
    shares = np.zeros((len(said), len(classes)))
    shares[:, class_positions(member, classes, by_code)] = said
    return shares


def member_codes(member: Any, X: Any, classes: NDArray[Any], by_code: bool, **params: Any) -> NDArray[np.intp]:
    """Codes of the classes that a member predicts."""
    said = np.asarray(member.predict(X, **params))
    said = said.reshape(len(said))
    return said.astype(np.intp) if by_code else np.searchsorted(classes, said)


def member_decisions(member: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Decision function of a member, (n_rows, 1) for two classes."""
    if len(member.classes_) != len(classes):
        raise ValueError(
            f"A member has seen {len(member.classes_)} of the {len(classes)} classes, so that its decisions cannot be "
            "put beside those of the others. Use folds that hold every class, or stack_method='predict'."
        )
    said = np.asarray(member.decision_function(X), dtype=np.float64)
    return said[:, np.newaxis] if said.ndim == 1 else said


def member_values(member: Any, X: Any) -> Floats:
    """Values that a regressor predicts, (n_rows,)."""
    said = np.asarray(member.predict(X), dtype=np.float64)
    if said.size != len(said):
        raise ValueError(f"{type(member).__name__} predicts several outputs, and an ensemble of models takes one.")
    return said.reshape(len(said))


def onehot(codes: NDArray[np.intp], n_classes: int) -> Floats:
    """Return votes as 0 and 1, (n_rows, n_classes)."""
    return np.asarray(np.eye(n_classes)[codes])


def member_predictions(
    member: object, X: TableLike, method: str, classes: NDArray[Any] | None, by_code: bool
) -> Floats:
    """Return what a member says of rows, in a form that can be averaged: (n_rows, n_values); labels as votes."""
    if classes is None:
        return np.asarray(member_values(member, X)[:, np.newaxis])
    if method == "predict_proba":
        return member_probabilities(member, X, classes, by_code)
    if method == "decision_function":
        return member_decisions(member, X, classes)
    return onehot(member_codes(member, X, classes, by_code), len(classes))


def mean_prediction(said: list[Floats], weights: list[float] | None = None) -> Floats:
    """Mean of what several say, by their weights."""
    if weights is not None:
        return np.asarray(sum(weight * one for weight, one in zip(weights, said, strict=True)))
    return np.asarray(sum(said[1:], start=said[0]) / len(said))


def tempered(shares: Floats, temperature: float | None) -> Floats:
    """Divide the logarithms of shares by a temperature: above 1 they become less sure. None: leave them."""
    if temperature is None:
        return shares
    scores = log(np.maximum(shares, _LEAST_SHARE)) / temperature
    sizes = exp(scores - scores.max(axis=1, keepdims=True))
    total = sizes[:, 0].copy()
    for column in sizes.T[1:]:
        total += column  # in this order, whatever the processor
    return np.asarray(sizes / total[:, np.newaxis])


def tempered_columns(columns: list[Floats], temperatures: list[float] | None) -> list[Floats]:
    """Temper what each member says, given as columns of shares: each by its own temperature. None: leave them."""
    if temperatures is None:
        return columns
    found = [tempered(all_probabilities(one), by) for one, by in zip(columns, temperatures, strict=True)]
    return [shares[:, -one.shape[1] :] for shares, one in zip(found, columns, strict=True)]


# ---- the table that what combines them learns from -------------------------------------------------------------------


def as_columns(said: Floats, method: str, classes: NDArray[Any] | None) -> Floats:
    """Turn what was said into columns of the next table: of two shares the second alone, of votes the code."""
    if classes is None or method == "decision_function":
        return said
    if method == "predict":
        return np.asarray(said.argmax(axis=1)[:, np.newaxis], dtype=np.float64)
    return said[:, 1:] if len(classes) == 2 else said


def all_probabilities(columns: Floats) -> Floats:
    """Turn columns, (..., width), back into shares of all classes, where those of the second alone may be given."""
    return np.concatenate([1 - columns, columns], axis=-1) if columns.shape[-1] == 1 else columns


def column_names(names: list[str], widths: list[int], classes: NDArray[Any] | None) -> list[str]:
    """Name what each member says, by member and class."""
    found = []
    for name, width in zip(names, widths, strict=True):
        if width == 1:
            found.append(name)
        else:
            labels = classes.tolist() if classes is not None and len(classes) == width else range(width)
            found += [f"{name}: {label}" for label in labels]
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """A rising line through some points, level before the first and after the last.

    Attributes
    ----------
    predicted : ndarray of shape (n_points,)
        Shares of the second class that a model gives, ascending.
    observed : ndarray of shape (n_points,)
        Shares that they stand for, never falling.
    """

    predicted: Floats
    observed: Floats

    def __call__(self, shares: Floats) -> Floats:
        """Read shares of both classes off the curve."""
        second = np.clip(shares[:, 1], self.predicted[0], self.predicted[-1])
        if len(self.predicted) == 1:
            found = np.full(len(second), self.observed[0])
        else:
            at = np.clip(np.searchsorted(self.predicted, second, side="right") - 1, 0, len(self.predicted) - 2)
            way = (second - self.predicted[at]) / (self.predicted[at + 1] - self.predicted[at])
            rise = self.observed[at + 1] - self.observed[at]
            step = way * rise  # apart, so that no processor fuses it with the sum
            found = np.where(way == 1, self.observed[at + 1], self.observed[at] + step)
        return np.column_stack([1 - found, found])

    def tobytes(self) -> bytes:
        """Return its numbers, for fingerprints."""
        return self.predicted.tobytes() + self.observed.tobytes()


Calibration = float | Curve | None


def calibrated(shares: Floats, by: Calibration) -> Floats:
    """Apply a temperature or a curve; None: shares stay as they are."""
    return by(shares) if isinstance(by, Curve) else tempered(shares, by)


def isotonic_curve(second: Floats, is_second: NDArray[np.bool_]) -> Curve:
    """Find the rising curve of least squared error, by pooling, as a line through the middles of its steps.

    One row of the second class is added below all others, and one of the first above them: no share becomes 0 or 1.

    Parameters
    ----------
    second : ndarray of shape (n_rows,)
        Shares of the second class that a model gives to rows that it has not seen.
    is_second : ndarray of bool of shape (n_rows,)
        Whether they are of that class.
    """
    at, place = np.unique(second, return_inverse=True)
    rows, hits = np.bincount(place), np.bincount(place, weights=is_second).astype(np.intp)
    rows[0], hits[0] = rows[0] + 1, hits[0] + 1
    rows[-1] += 1
    steps: list[tuple[int, int, float, float]] = []  # rows, hits, first and last share
    for n, k, share in zip(rows.tolist(), hits.tolist(), at.tolist(), strict=True):
        step = (n, k, share, share)
        while steps and steps[-1][1] * step[0] >= step[1] * steps[-1][0]:
            before = steps.pop()
            step = (before[0] + step[0], before[1] + step[1], before[2], step[3])
        steps.append(step)
    return Curve(np.array([(low + high) / 2 for _, _, low, high in steps]), np.array([k / n for n, k, _, _ in steps]))
