"""Weights that say how often each row is there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import any_order_sum

_ROUNDING = 1e-9  # of a weight that was divided by a sum, say
_MOST_COPIES = 16  # entries per row, on average; beyond that weights multiply instead

Floats = NDArray[np.float64]


def whole_weights(weight: Floats | None) -> NDArray[np.int64] | None:
    """Return weights that say how often each row is there; None if they are not whole numbers, or too large."""
    if weight is None or weight.sum() > _MOST_COPIES * len(weight) + 1000 or (weight != np.floor(weight)).any():
        return None
    return weight.astype(np.int64)


def relative_weights(weight: Floats | None) -> tuple[Floats | None, NDArray[np.int64] | None]:
    """Return weights in a unit of their own, and how often each row is there, or None.

    Rows are there several times if all weights are whole multiples of the smallest: that is then 1. Of others the mean
    is 1. Either way it does not matter which unit the caller's weights are in.
    """
    if weight is None:
        return None, None
    present = weight[weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # too large is no count
        relative = weight / present.min()
        times = np.rint(relative)
        is_whole = bool((np.abs(relative - times) <= _ROUNDING * relative).all())
    copies = whole_weights(times) if is_whole else None
    if copies is not None:
        return times, copies
    return np.asarray(weight / (any_order_sum(present) / len(present))), None


def weight_of_one_row(weight: Floats | None) -> float:
    """Return the smallest weight where weights say how often each row is there; 0: they do not, rows are rows."""
    if weight is None or relative_weights(weight)[1] is None:
        return 0.0
    return float(weight[weight > 0].min())


def times_there(weight: Floats | None) -> Floats | None:
    """Return how often each row is there: by its weight, or once if that is positive; None: all are, once."""
    if weight is None:
        return None
    copies = relative_weights(weight)[1]
    return (weight > 0).astype(np.float64) if copies is None else copies.astype(np.float64)
