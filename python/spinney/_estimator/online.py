"""Online learning: batches of `partial_fit`, and the quadratic that stands for the rows of earlier batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.display import warn
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import SingleTarget, known_codes, read_one_value, read_some_classes, read_weights
from spinney._model.file.codec import Field, columns, integer, optional
from spinney._model.file.container import refuse

OnlineState = dict[str, NDArray[Any]]  # arrays whose first dimension is the machines

SAVED_ONLINE: dict[str, Field] = {"_online": columns(), "n_samples_seen_": optional(integer(least=1))}


@dataclass(frozen=True)
class Batch:
    """The rows of one call of `partial_fit`.

    Attributes
    ----------
    columns : Table
        Encoded columns.
    schema : Schema
        Columns of the first call.
    target : SingleTarget
        Class codes or numbers; not all classes need rows.
    weight : ndarray of shape (n_rows,)
        Weights.
    """

    columns: _engine.Table
    schema: Schema
    target: SingleTarget
    weight: Floats

    @classmethod
    def read(
        cls,
        model: TableEstimator,
        X: TableLike,
        y: ColumnLike,
        classes: ArrayLike | None,
        sample_weight: ColumnLike,
        is_first: bool,
    ) -> Self:
        """Read the rows; names, types and categories of the columns are those of the first call."""
        table, name = read_table(X), type(model).__name__
        schema = model._learn_schema(table) if is_first else model.schema_
        try:
            columns = schema.encode(table, unseen="missing" if is_first else "error", estimator=name)
        except ValueError as error:
            if "did not occur at fit" not in str(error):
                raise
            raise ValueError(
                f"{str(error).split('. Train on')[0].replace('at fit', 'at the first call of partial_fit')}. Pass rows "
                "of all categories at the first call; rows of weight 0 suffice."
            ) from None
        weight = read_weights(sample_weight, table.n_rows)
        target = _read_target(model, y, classes, table.n_rows, is_first)
        return cls(columns, schema, target, np.ones(table.n_rows) if weight is None else weight)


def _read_target(
    model: TableEstimator, y: ColumnLike, classes: ArrayLike | None, n_rows: int, is_first: bool
) -> SingleTarget:
    if not model._is_class_target:
        return SingleTarget(read_one_value(y, n_rows, type(model).__name__))
    known: NDArray[Any] | None = getattr(model, "classes_", None)
    labels = known if classes is None else _read_labels(classes)
    if labels is None:
        raise ValueError("classes must be passed on the first call to partial_fit: all labels that y may ever have.")
    if not is_first and known is not None and not np.array_equal(labels, known):
        raise ValueError(
            f"classes={labels.tolist()} is not the same as the classes of the model, {known.tolist()}. Leave it out."
        )
    return SingleTarget(known_codes(y, labels, n_rows), labels)


def _read_labels(classes: ArrayLike) -> NDArray[Any]:
    given = np.asarray(classes)
    if given.ndim != 1 or len(np.unique(given)) < 2:
        raise ValueError(f"classes={given.tolist()!r} must be a list of at least two labels.")
    (found,) = read_some_classes(given, len(given))[1]
    return found


@dataclass(frozen=True)
class Quadratic:
    """The loss of earlier rows as a function of the coefficients w: ½ w'Hw - s'w + c.

    Exact for the squared error. For other losses it is the expansion of second order at the coefficients that the batch
    of the rows ended with.

    Attributes
    ----------
    curvature : ndarray of shape (n, n)
        H.
    slope : ndarray of shape (n,)
        s.
    constant : float
        c.
    """

    curvature: Floats
    slope: Floats
    constant: float = 0.0

    @classmethod
    def of(cls, n: int, state: OnlineState | None, machine: int = 0) -> Self:
        """Return that of a machine in the saved state; without one, 0."""
        if state is None:
            return cls(np.zeros((n, n)), np.zeros(n))
        return cls(state["curvature"][machine], state["slope"][machine], float(state["constant"][machine]))

    def product(self, weights: Floats) -> Floats:
        """Return H w, summed in the same order on every processor."""
        return np.asarray((self.curvature * weights).sum(axis=1))

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient at some coefficients."""
        return self.product(weights) - self.slope

    def value(self, weights: Floats) -> float:
        """Return the loss at some coefficients."""
        return float((weights * (self.product(weights) / 2 - self.slope)).sum()) + self.constant

    def plus(self, loss: float, gradient: Floats, curvature: Floats, weights: Floats) -> Quadratic:
        """Add the loss of a batch by its value and derivatives at some coefficients."""
        image = (curvature * weights).sum(axis=1)
        return Quadratic(
            self.curvature + curvature,
            self.slope + image - gradient,
            self.constant + loss - float((weights * (gradient - image / 2)).sum()),
        )


def state_of(parts: list[Quadratic]) -> OnlineState:
    """Return the state to save of the quadratics of all machines."""
    return {
        "curvature": np.array([part.curvature for part in parts]),
        "slope": np.array([part.slope for part in parts]),
        "constant": np.array([part.constant for part in parts]),
    }


def check_state(found: Mapping[str, Any], **shapes: tuple[int, ...]) -> None:
    """Refuse a saved state with other arrays than those named, other shapes, or numbers that are not finite."""
    state = found.get("_online")
    if state is None:
        return
    if {name: array.shape for name, array in state.items()} != shapes or "n_samples_seen_" not in found:
        refuse("is damaged: its state of online learning does not fit its model")
    if not all(np.isfinite(array).all() for array in state.values()):
        refuse("is damaged: its state of online learning holds impossible numbers")


def begins(model: Any) -> bool:
    """Return whether a call of `partial_fit` is the first; warn after a fit, which keeps nothing of its rows."""
    if getattr(model, "_online", None) is not None:
        return False
    if hasattr(model, "schema_"):
        warn(
            f"This {type(model).__name__} was fitted by fit, which keeps no sums of its rows: partial_fit begins anew, "
            "without them. To continue, pass those rows to partial_fit instead of fit."
        )
    return True


def remember_batch(model: Any, state: OnlineState, n_rows: int) -> None:
    """Set the attributes with which the next call of `partial_fit` continues."""
    model._online, model.n_samples_seen_ = state, getattr(model, "n_samples_seen_", 0) + n_rows


def forget_batches(model: Any) -> None:
    """Remove the attributes of online learning before a fit."""
    for name in ("_online", "n_samples_seen_"):
        model.__dict__.pop(name, None)
