"""Event rates: counts with exposures, shrunken rates, deviance, survival times."""

from __future__ import annotations

import numpy as np

from spinney._data.arguments import argument_numbers
from spinney._data.reproducible import log
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.target import read_numbers
from spinney._model.tree import FittedTree


def per_exposure(events: Floats, weight: Floats | None, exposure: ColumnLike) -> tuple[Floats, Floats]:
    """Return rates, and weights with which their mean is the number of events divided by the exposure.

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
    time = argument_numbers(exposure, "exposure")
    if time.shape != (len(events),):
        raise ValueError(f"exposure has shape {time.shape}, but X has {len(events)} rows. Pass one number per row.")
    invalid = ~(np.isfinite(time) & (time > 0))
    if invalid.any():
        row = int(np.argmax(invalid))
        raise ValueError(
            f"exposure must be positive: row {row} has {time[row]}. Drop rows that were never at risk of an event."
        )
    weight = np.ones(len(events)) if weight is None else weight
    return events / time[:, np.newaxis], weight * time


def deviance(actual: Floats, rate: Floats) -> Floats:
    """Half the Poisson deviance per unit of weight and exposure: y log(y / rate) - y + rate."""
    tiny = np.finfo(float).tiny
    log_ratio = log(np.maximum(actual, tiny)) - log(np.maximum(rate, tiny))  # the quotient may overflow
    return np.asarray(actual * log_ratio - actual + rate)


def shrink_rates(tree: FittedTree, variation: float) -> FittedTree:
    """Shrink the rates of all nodes to that of the root, with a gamma prior of this coefficient of variation.

    A node of E events in exposure T predicts (E + a) / (T + b), a = 1 / variation^2, b = a / (rate of the root). Its
    impurity is half the deviance at that rate, per unit of exposure.

    Parameters
    ----------
    tree : FittedTree
        Tree whose values are events per unit of its nodes' weights.
    variation : float
        Prior standard deviation of the rates divided by their mean.

    Returns
    -------
    FittedTree
        The same splits with shrunken rates.
    """
    rate, time = tree.flat_value, tree.weighted_n_node_samples[:, np.newaxis]
    a = 1.0 / variation**2
    shrunken = (rate * time + a) / (time + a / rate[0])
    excess = np.where(rate > 0, rate * log(np.maximum(rate, np.finfo(float).tiny) / shrunken), 0.0)
    more = np.maximum(0.0, excess - rate + shrunken).mean(axis=1)
    return tree.with_values(shrunken, impurity=tree.impurity + more)


def survival_rates(
    y: ColumnLike, weight: Floats | None, exposure: ColumnLike, has_held_out: bool, n_rows: int
) -> tuple[Floats, Floats]:
    """Return event rates relative to the overall hazard, and their weights, from survival times.

    Parameters
    ----------
    y : array-like of shape (n_rows, 2) or (n_rows, 3)
        Time and event (1, or 0 where censored), or start, stop and event.
    weight : ndarray or None
        Weights of the rows.
    exposure : None
        Must be None: the time is in y.
    has_held_out : bool
        Whether the caller passed a validation set, which is not supported.
    n_rows : int
        Rows of the table.
    """
    if exposure is not None:
        raise ValueError("criterion='exponential' takes the time from y. Omit exposure, or use criterion='poisson'.")
    if has_held_out:
        raise ValueError("criterion='exponential' does not support X_val. Use validation_fraction.")
    start, stop, event = read_survival(read_numbers(y, n_rows, (2, 3)))
    if np.isnan(stop).any() or np.isnan(event).any() or np.isnan(start).any():
        raise ValueError("y contains NaN. Drop rows whose time or event is not known before fitting.")
    ones = np.ones(n_rows) if weight is None else weight
    time = hazard_exposure(start, stop, event, ones)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(time > 0, event / time, 0.0)
    return rate[:, np.newaxis], ones * time


def read_survival(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return checked start, stop and event of each row; rows with NaN are not checked."""
    event, stop = values[:, -1], values[:, -2]
    start = values[:, 0] if values.shape[1] == 3 else np.zeros(len(values))
    known = ~np.isnan(values).any(axis=1)
    if not np.isin(event[known], (0.0, 1.0)).all():
        raise ValueError("The last column of y must be 1 if the event happened, or 0 if the row is censored.")
    if not (stop[known] > start[known]).all():
        row = int(np.flatnonzero(known & ~(stop > start))[0])
        raise ValueError(
            f"Every row must end after it starts; row {row} runs from {start[row]:g} to {stop[row]:g}. "
            "Times must be positive."
        )
    if (start[known] < 0).any():
        raise ValueError("Times must not be negative. Shift them so that the first is 0 or later.")
    if not (event[known] > 0).any():
        raise ValueError("There is no event in y: every row is censored.")
    return start, stop, event


def hazard_exposure(start: Floats, stop: Floats, status: Floats, weight: Floats) -> Floats:
    """Return the exposure with which the overall event rate is 1: the cumulative hazard over each row's time at risk.

    The hazard is constant between the distinct times of events: weighted events over weighted time at risk.
    """
    event_times = np.unique(stop[(status > 0) & (weight > 0)])
    if len(event_times) == 0:
        raise ValueError("There is no event in y in a row of positive weight.")
    edges = np.concatenate([[0.0], event_times[:-1], [stop.max()]])
    n_intervals = len(edges) - 1
    interval = np.clip(np.searchsorted(edges, stop, side="left") - 1, 0, n_intervals - 1)
    events = np.bincount(interval, weights=weight * status, minlength=n_intervals)
    # between two neighbouring times of any kind, the weight at risk is constant
    times = np.unique(np.concatenate([edges, start, stop]))
    changes = np.bincount(np.searchsorted(times, start), weight, len(times))
    changes -= np.bincount(np.searchsorted(times, stop), weight, len(times))
    lived = np.cumsum(changes)[:-1] * np.diff(times)
    at_risk = np.bincount(np.searchsorted(edges, times[1:], side="left") - 1, lived, n_intervals)
    hazard = np.divide(events, at_risk, out=np.zeros(n_intervals), where=events > 0)
    cumulative = np.concatenate([[0.0], np.cumsum(hazard * np.diff(edges))])
    return np.asarray(np.interp(stop, edges, cumulative) - np.interp(start, edges, cumulative))
