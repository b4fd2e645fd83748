"""Targets and held-out rows as boosting takes them: one class or value a row, and what is asked of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.utils import column_or_1d

from spinney._data.types import ColumnLike, TableLike
from spinney._estimator.target import ClassTarget, encode_labels, read_classes, read_values

Floats = NDArray[np.float64]


def read_one_class(y: ColumnLike, n_rows: int, method: str) -> tuple[Floats, NDArray[Any]]:
    """Return codes and labels of classes, of which there are at least two; `method` is what takes no more outputs."""
    found = read_classes(y, n_rows)
    if found.n_outputs > 1:
        raise ValueError(
            f"y has several outputs, and {method} takes one. Use sklearn.multioutput.MultiOutputClassifier."
        )
    return _one_class(y, found)


def _one_class(y: ColumnLike, found: ClassTarget) -> tuple[Floats, NDArray[Any]]:
    if np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)
    classes = found.classes[0]
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class, {classes.tolist()[0]!r}: there is nothing to tell apart. Pass at least two classes."
        )
    return found.codes[:, 0].astype(np.float64), classes


def read_some_classes(y: Any, n_rows: int) -> tuple[Floats, list[NDArray[Any]]]:
    """Return codes, (n_rows,) or (n_rows, n_outputs), and labels of classes; of each output at least two."""
    found = read_classes(y, n_rows)
    if found.n_outputs == 1:
        codes, classes = _one_class(y, found)
        return codes, [classes]
    for k, labels in enumerate(found.classes):
        if len(labels) < 2:
            raise ValueError(
                f"Column {k} of y holds one class, {labels.tolist()[0]!r}: there is nothing to tell apart. "
                "Leave it out."
            )
    return found.codes.astype(np.float64), found.classes


def known_codes(y: Any, classes: NDArray[Any] | list[NDArray[Any]], n_rows: int, name: str = "y") -> Floats:
    """Return the codes of rows that are not learned from; `name` is what the caller calls their target."""
    several = isinstance(classes, list)
    codes = encode_labels(y, classes if isinstance(classes, list) else [classes], n_rows, name)
    codes = codes if several else codes[:, 0]
    if (codes < 0).any():
        at = int(np.flatnonzero((codes < 0).ravel())[0])
        row = at // len(classes) if several else at
        found = f"{np.asarray(y).ravel().tolist()[at]!r}, first in row {row}. Drop these rows"
        if name == "y":
            raise ValueError(f"y has a class that the model was not fitted on: {found}.")
        raise ValueError(f"{name} has a class that y does not have: {found}, or add some of the class to y.")
    return codes.astype(np.float64)


def read_one_value(y: object, n_rows: int, method: str, name: str = "y") -> Floats:
    """Return values; `method` is what takes no more outputs, `name` what the caller calls them."""
    values = read_values(y, n_rows, name)
    if values.shape[1] > 1:
        raise ValueError(
            f"{name} has several outputs, and {method} takes one. Use sklearn.multioutput.MultiOutputRegressor."
        )
    if np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)
    return np.ascontiguousarray(values[:, 0])


def check_held_out(
    X_val: TableLike,
    y_val: ColumnLike,
    more: dict[str, Any],
    groups: ColumnLike,
    sets_aside: bool,
    time: ColumnLike = None,
) -> None:
    """Refuse held-out rows and groups that make no sense together; `more` is what goes with X_val, by name."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val go together. Pass both or neither.")
    alone = [name for name, value in more.items() if value is not None] if X_val is None else []
    if alone:
        raise ValueError(f"{alone[0]} goes with X_val. Pass X_val and y_val too.")
    if groups is not None and time is not None:
        raise ValueError("time and groups both say which rows are held out. Pass one of them.")
    if time is not None and (X_val is not None or not sets_aside):
        raise ValueError(
            "time says that the latest rows are held out, and here none are held out. Set early_stopping=True and pass "
            "no X_val, or leave time out."
        )
    if groups is not None and (X_val is not None or not sets_aside):
        raise ValueError(
            "groups say which rows are held out together, and here none are held out. Set early_stopping=True and pass "
            "no X_val, or leave groups out."
        )


def check_scoring(scoring: Any, callbacks: Any = None) -> None:
    """Refuse metrics that do not exist and callbacks that cannot be called, before the work begins."""
    if isinstance(scoring, str):
        get_scorer(scoring)
    for callback in [] if callbacks is None or callable(callbacks) else callbacks:
        if not callable(callback):
            raise TypeError(f"callbacks must be functions that take a dict. Got {callback!r}.")
