"""Adapters of user-defined criteria for the engine, with checks of their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._estimator.held_out import Loss
from spinney._model.tree import FittedTree
from spinney.criteria import CompiledCriterion, Criterion

Array = NDArray[np.float64]

SAVED_NAME = "user"  # the criterion in a model file


def is_user(criterion: str | Criterion) -> bool:
    """Return whether a criterion is user-defined: an object, or the name of one from a model file."""
    return not isinstance(criterion, str) or criterion == SAVED_NAME


def name_of(criterion: str | Criterion) -> str:
    """Return the criterion's name, for display."""
    return SAVED_NAME if is_user(criterion) else str(criterion)


@dataclass(frozen=True)
class UserTarget:
    """A user-defined criterion and its target."""

    criterion: _engine.UserCriterion
    y: Array  # n_rows x k
    n_values: int


def prepare(
    criterion: str | Criterion, y: NDArray[Any], weight: Array | None, n_classes: list[int]
) -> UserTarget | None:
    """Initialise a user-defined criterion; None if the criterion is built in.

    Parameters
    ----------
    criterion : str or Criterion
    y : ndarray of shape (n_rows, n_outputs)
        Numbers or class codes.
    weight : ndarray or None
        Weights of the rows.
    n_classes : list of int
        Numbers of classes by output; empty in a regression.

    Returns
    -------
    UserTarget or None
    """
    if isinstance(criterion, str):
        return None
    if len(n_classes) > 1:
        raise ValueError("A user-defined criterion supports only one output of classes. Fit one tree per output.")
    weight = np.ones(len(y)) if weight is None else weight
    values = _start(criterion, np.array(y, dtype=np.float64), weight)
    if isinstance(criterion, CompiledCriterion):
        n_values = criterion.n_values
        handle = criterion._for_engine(values.shape[1])
    else:
        checked = CheckedCriterion(criterion)
        rows = weight > 0
        n_values = len(checked.evaluate(_narrow(values[rows]), weight[rows])[0])
        handle = _engine.python_criterion(CheckedCriterion(criterion, n_values), values.shape[1], n_values)
    if n_classes and n_values != n_classes[0]:
        raise ValueError(
            f"In a classifier, evaluate must return the class probabilities as the value: {n_classes[0]} numbers, "
            f"not {n_values}."
        )
    return UserTarget(handle, values, n_values)


def check_proba(tree: _engine.Tree) -> None:
    """Raise if the values of a classifier's nodes are not class probabilities."""
    value = tree.value.reshape(tree.size, tree.value_width)
    if (value < 0).any() or not np.allclose(value.sum(axis=1), 1.0, rtol=0, atol=1e-6):
        raise ValueError(
            "In a classifier, evaluate must return the class probabilities as the value: numbers of at least 0 "
            f"that sum to 1, not {value[np.argmax(np.abs(value.sum(axis=1) - 1.0))].tolist()}."
        )


def row_losses(criterion: str | Criterion, y: Array) -> Loss:
    """Return a function for the loss of held-out rows by `row_loss` of the criterion."""

    def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> Array:
        row_loss = getattr(criterion, "row_loss", None)
        if not callable(row_loss):
            raise ValueError(
                f"Held-out rows are evaluated by the method row_loss(y, value) of the criterion, and {criterion!r} has "
                "none. Implement it, or fit without held-out rows and cross-validation."
            )
        losses = np.asarray(row_loss(_narrow(y[rows]), _narrow(tree.flat_value[nodes])), dtype=np.float64)
        if losses.shape != (len(rows),):
            raise ValueError(f"row_loss returned an array of shape {losses.shape}; expected ({len(rows)},).")
        return losses

    return loss


def _narrow(y: Array) -> Array:
    """Return y as users see it: a single column as an array of one dimension."""
    return y[:, 0] if y.shape[1] == 1 else y


def _start(criterion: Criterion, y: Array, weight: Array) -> Array:
    """Return the y of the criterion's init, n_rows x k."""
    if not callable(getattr(criterion, "init", None)):
        return y
    result = criterion.init(_narrow(y), weight.copy())
    try:
        values = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.ndim not in (1, 2) or len(values) != len(y) or values.size == 0:
        raise ValueError(
            f"The criterion's init must return y as numbers, of shape ({len(y)},) or ({len(y)}, k). It returned "
            f"{_described(result)}."
        )
    if not np.isfinite(values).all():
        raise ValueError("The criterion's init returned a y with NaN or infinity. Use finite numbers.")
    return np.ascontiguousarray(values.reshape(len(y), -1))


def _described(result: object) -> str:
    shape = getattr(result, "shape", None)
    return f"a {type(result).__name__}" if shape is None else f"a {type(result).__name__} of shape {tuple(shape)}"


class CheckedCriterion:
    """A user-defined criterion with checks of its results.

    Parameters
    ----------
    criterion : object
        The user-defined criterion.
    n_values : int, optional
        Length of the value; None: any.
    """

    def __init__(self, criterion: Criterion, n_values: int | None = None) -> None:
        self._criterion = criterion
        self._n_values = n_values

    def evaluate(self, y: Array, weight: Array) -> tuple[Array, float]:
        """Return value and risk for the engine."""
        result = self._criterion.evaluate(y, weight)
        try:
            value, risk = result
            values = np.asarray(value, dtype=np.float64)
            risk = float(risk)
        except (TypeError, ValueError):
            raise TypeError(
                "The criterion's evaluate must return a value (a number, or an array of numbers) and a risk (a "
                f"number). It returned {_shown(result)}."
            ) from None
        values = np.array(values.ravel())
        if values.size == 0 or (self._n_values is not None and len(values) != self._n_values):
            expected = "at least one" if self._n_values is None else f"{self._n_values} as for the root"
            raise ValueError(
                f"The criterion's evaluate returned a value of {values.size} numbers; expected {expected}."
            )
        return values, risk

    def split(self, y: Array, weight: Array, x: Array) -> Array:
        """Return the goodness of each split of numbers."""
        return _goodness(
            self._criterion.split(y, weight, x, False), len(x) - 1, "one for the cut after each row but the last"
        )

    def split_groups(self, y: Array, weight: Array, group: Array, n_groups: int) -> tuple[NDArray[np.uint32], Array]:
        """Return an order of groups and the goodness of each split of this order."""
        result = self._criterion.split(y, weight, group, True)
        try:
            order, goodness = result
            order = np.asarray(order)
            is_order = np.array_equal(np.sort(order), np.arange(n_groups))
        except (TypeError, ValueError):
            order, goodness, is_order = None, None, False
        if not is_order or order is None:
            raise ValueError(
                f"For a category column, the criterion's split must return an order of the {n_groups} groups, each of "
                f"0 to {n_groups - 1} once, and the goodness of {n_groups - 1} splits. It returned {_shown(result)}."
            )
        return order.astype(np.uint32), _goodness(goodness, n_groups - 1, "one for each cut of the order")


def _goodness(result: object, n: int, meaning: str) -> Array:
    try:
        goodness = np.array(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"The criterion's split must return numbers. It returned {_shown(result)}.") from None
    if result is None:
        raise TypeError("The criterion's split returned nothing. It must return numbers.")
    if goodness.shape != (n,):
        raise ValueError(
            f"The criterion's split returned an array of shape {goodness.shape}; expected ({n},): {meaning}."
        )
    return goodness


def _shown(result: object) -> str:
    text = repr(result)
    return text if len(text) <= 80 else _described(result)
