"""Rates of events: counts with exposures, shrunken rates, deviance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._tree_view import FittedTree

Floats = NDArray[np.float64]


def per_exposure(events: Floats, weight: Floats | None, exposure: Any) -> tuple[Floats, Floats]:
    """Rates, and weights under which their mean is the events over the exposure.

    Parameters
    ----------
    events : ndarray of shape (n_rows, n_outputs)
        Counts.
    weight : ndarray of shape (n_rows,) or None
        Weights of the rows.
    exposure : array-like of shape (n_rows,)
        Time at risk.

    Returns
    -------
    rates : ndarray of shape (n_rows, n_outputs)
        Events per unit of exposure.
    weight : ndarray of shape (n_rows,)
        Weights times exposures.
    """
    time = np.asarray(exposure, dtype=np.float64)
    if time.shape != (len(events),):
        raise ValueError(f"exposure has shape {time.shape}, but X has {len(events)} rows. Pass one number per row.")
    wrong = ~(np.isfinite(time) & (time > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"exposure must be positive: row {row} has {time[row]}. Drop rows that were never at risk of an event."
        )
    weight = np.ones(len(events)) if weight is None else weight
    return events / time[:, np.newaxis], weight * time


def deviance(actual: Floats, rate: Floats) -> Floats:
    """Half the Poisson deviance per unit of weight and exposure: y log(y / rate) - y + rate."""
    tiny = np.finfo(float).tiny
    return np.asarray(actual * np.log(np.maximum(actual, tiny) / np.maximum(rate, tiny)) - actual + rate)


def shrink_rates(tree: FittedTree, variation: float) -> FittedTree:
    """Draw the rates of all nodes to the root's, as a gamma prior of this coefficient of variation does.

    A node of E events in exposure T says (E + a) / (T + b), a = 1 / variation^2, b = a / (rate of the root). Its
    impurity is half the deviance at that rate, per unit of exposure.

    Parameters
    ----------
    tree : FittedTree
        Tree whose values are events per unit of its nodes' weights.
    variation : float
        Standard deviation of the rates over their mean, as assumed before seeing the data.

    Returns
    -------
    FittedTree
        The same splits with shrunken rates.
    """
    rate, time = tree.flat_value, tree.weighted_n_node_samples[:, np.newaxis]
    a = 1.0 / variation**2
    shrunken = (rate * time + a) / (time + a / rate[0])
    excess = np.where(rate > 0, rate * np.log(np.maximum(rate, np.finfo(float).tiny) / shrunken), 0.0)
    more = np.maximum(0.0, excess - rate + shrunken).mean(axis=1)
    return tree.with_values(shrunken, impurity=tree.impurity + more)
