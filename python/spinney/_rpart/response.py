"""What y may be: class labels, numbers, counts with exposure, survival times. Rows without a response are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._target import is_missing_label, read_classes

Floats = NDArray[np.float64]


def read_labels(y: Any, n_rows: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return codes, -1 where there is no label, and the labels: in their declared order if they have one, else sorted."""
    declared = _declared_order(y)
    labels = np.asarray(y, dtype=object).reshape(-1)
    _check_length(len(labels), n_rows)
    missing = np.array([is_missing_label(label) for label in labels], dtype=bool)
    if missing.all():
        raise ValueError("y has no labels: every value is missing.")
    present = np.array(labels[~missing].tolist())
    if present.dtype.kind in "US":
        present = labels[~missing]
    target = read_classes(present, len(present))
    codes = np.full(n_rows, -1, dtype=np.int32)
    codes[~missing] = target.codes[:, 0]
    classes = target.classes[0]
    if declared is None:
        return codes, classes
    known = classes.tolist()
    order = [known.index(label) for label in declared if label in known]
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes[~missing] = rank[codes[~missing]]
    return codes, classes[order]


def _declared_order(y: Any) -> list[Any] | None:
    """Categories of a pandas categorical."""
    values = getattr(y, "cat", y)
    categories = getattr(values, "categories", None)
    return None if categories is None else list(categories)


def read_numbers(y: Any, n_rows: int, n_columns: tuple[int, ...]) -> Floats:
    """Return y as floats, (n_rows, k), with one of the allowed numbers of columns; NaN where missing."""
    array = np.asarray(y)
    if array.dtype.names is not None:  # such as survival times
        array = np.column_stack([array[name].astype(np.float64) for name in array.dtype.names])
    try:
        values = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers here: {error}.") from None
    _check_length(len(values), n_rows)
    if values.shape[1] not in n_columns:
        wanted = " or ".join(str(n) for n in n_columns)
        raise ValueError(f"y has {values.shape[1]} columns; this method needs {wanted}.")
    if np.isinf(values).any():
        raise ValueError("y contains infinity. Drop or cap such rows before fitting.")
    return np.ascontiguousarray(values)


def _check_length(n_values: int, n_rows: int) -> None:
    if n_values != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, n_values]}. "
            "X and y must have one row each per observation."
        )


def hazard_exposure(start: Floats, stop: Floats, status: Floats, weight: Floats) -> Floats:
    """Exposure under which the overall rate of events is 1: the cumulative hazard that each row has lived through.

    The hazard is constant between the distinct times of events: weighted events over weighted time at risk.
    """
    event_times = np.unique(stop[status > 0])
    edges = np.concatenate([[0.0], event_times[:-1], [stop.max()]])
    lower, upper = edges[:-1], edges[1:]
    hazard = np.zeros(len(upper))
    interval = np.clip(np.searchsorted(edges, stop, side="left") - 1, 0, len(upper) - 1)
    events = np.bincount(interval, weights=weight * status, minlength=len(upper))
    for k in range(len(upper)):
        at_risk = np.clip(stop, lower[k], upper[k]) - np.clip(start, lower[k], upper[k])
        total = float(weight @ at_risk)
        hazard[k] = events[k] / total if total > 0 else 0.0
    cumulative = np.concatenate([[0.0], np.cumsum(hazard * (upper - lower))])
    return np.asarray(np.interp(stop, edges, cumulative) - np.interp(start, edges, cumulative))
