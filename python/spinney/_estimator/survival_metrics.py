"""Metrics of survival analysis: concordance, Brier score, time-dependent AUC.

A censored row does not show whether its event has happened by a later time. The Brier score and the AUC leave such rows
out, and weight the others by 1 over the probability of not being censored so early, which is estimated from the
training rows (Kaplan–Meier estimate of the censoring times).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine
from spinney._data.arguments import argument_numbers
from spinney._data.types import Floats
from spinney._estimator.survival_times import Events, read_events
from spinney._estimator.target import read_weights


def concordance_index(y: ArrayLike, risk: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Harrell's concordance index: how often the order of two events is predicted correctly.

    Parameters
    ----------
    y : array-like
        Times, negative where the row is censored; or times and events, as for `SurvivalTree`.
    risk : array-like of shape (n_samples,)
        Predictions that are larger for rows whose events are earlier, such as those of survival trees and forests.
    sample_weight : array-like of shape (n_samples,), optional
        Pairs count by the product of their weights.

    Returns
    -------
    float
        Fraction of the comparable pairs that are in the right order, where equal predictions count half; NaN if no pair
        is comparable.

    Examples
    --------
    >>> from spinney import concordance_index
    >>> concordance_index([1.0, 2.0, -3.0], [0.9, 0.1, 0.5])
    0.6666666666666666
    """
    scores = _numbers(risk, "risk", 1)
    events = read_events(y, len(scores))
    high = np.where(events.cause > 0, events.time, np.inf)
    return float(_engine.concordance(events.time, high, -scores, read_weights(sample_weight, len(scores))))


def survival_brier_score(y_train: ArrayLike, y: ArrayLike, survival: ArrayLike, times: ArrayLike) -> Floats:
    """Brier score at each time: the mean squared error of survival probabilities.

    Parameters
    ----------
    y_train : array-like
        Times of the training rows, from which the censoring is estimated.
    y : array-like
        Times of the rows.
    survival : array-like of shape (n_samples, n_times)
        Survival probability of each row at each time.
    times : array-like of shape (n_times,)
        Ascending; each must be before the last time of the training rows.

    Returns
    -------
    ndarray of shape (n_times,)
        A model that predicts the proportion of survivors for all rows has at most 0.25.

    Examples
    --------
    >>> from spinney import survival_brier_score
    >>> y = [1.0, 2.0, -3.0, 4.0]
    >>> survival_brier_score(y, y, [[0.9, 0.4], [0.8, 0.4], [0.9, 0.7], [0.9, 0.7]], [0.5, 2.5])
    array([0.0175, 0.125 ])
    """
    probabilities, at = _numbers(survival, "survival", 2), _times(times)
    events = read_events(y, len(probabilities))
    if probabilities.shape[1] != len(at):
        raise ValueError(f"survival has {probabilities.shape[1]} columns; pass one for each of the {len(at)} times.")
    weights = _censoring_weights(y_train, events, at)
    has_survived = events.time[:, np.newaxis] > at
    return np.asarray((weights * (probabilities - has_survived) ** 2).mean(axis=0))


def integrated_brier_score(y_train: ArrayLike, y: ArrayLike, survival: ArrayLike, times: ArrayLike) -> float:
    """Mean over time of the Brier score of survival probabilities.

    Parameters
    ----------
    y_train : array-like
        Times of the training rows, from which the censoring is estimated.
    y : array-like
        Times of the rows.
    survival : array-like of shape (n_samples, n_times)
        Survival probability of each row at each time.
    times : array-like of shape (n_times,)
        Ascending, at least two; each must be before the last time of the training rows.

    Returns
    -------
    float
        Integral of `survival_brier_score` from the first to the last time by the trapezoidal rule, over its length.

    Examples
    --------
    >>> from spinney import integrated_brier_score
    >>> y = [1.0, 2.0, -3.0, 4.0]
    >>> round(integrated_brier_score(y, y, [[0.9, 0.4], [0.8, 0.4], [0.9, 0.7], [0.9, 0.7]], [0.5, 2.5]), 5)
    0.07125
    """
    score, at = survival_brier_score(y_train, y, survival, times), _times(times)
    if len(at) < 2:
        raise ValueError("An integral needs at least two times. Pass more, or use survival_brier_score.")
    return float((np.diff(at) * (score[1:] + score[:-1]) / 2).sum() / (at[-1] - at[0]))


def time_dependent_auc(
    y_train: ArrayLike, y: ArrayLike, risk: ArrayLike, times: ArrayLike
) -> tuple[NDArray[np.float64], float]:
    """Area under the ROC curve at each time: how well risks separate rows with events by then from the others.

    Parameters
    ----------
    y_train : array-like
        Times of the training rows, from which the censoring is estimated.
    y : array-like
        Times of the rows.
    risk : array-like of shape (n_samples,) or (n_samples, n_times)
        Risks, or a risk for each time, such as 1 minus the survival probability.
    times : array-like of shape (n_times,)
        Ascending; each must be before the last time of the training rows.

    Returns
    -------
    auc : ndarray of shape (n_times,)
        Probability that a row with an event by the time has a larger risk than one without (cumulative and dynamic AUC
        of Uno and others); NaN if there are no such rows.
    mean : float
        Mean over the times, weighted by the decrease of the Kaplan–Meier estimate of `y` since the time before.

    Examples
    --------
    >>> from spinney import time_dependent_auc
    >>> y = [1.0, 2.0, -3.0, 4.0]
    >>> time_dependent_auc(y, y, [0.9, 0.4, 0.6, 0.1], [1.5, 2.5])
    (array([1.  , 0.75]), 0.875)
    """
    scores, at = np.asarray(risk, dtype=np.float64), _times(times)
    if scores.ndim == 1:
        scores = np.repeat(scores[:, np.newaxis], len(at), axis=1)
    if scores.ndim != 2 or scores.shape[1] != len(at) or not np.isfinite(scores).all():
        raise ValueError("risk must be one finite number for each row, or one for each row and time.")
    events = read_events(y, len(scores))
    weights = _censoring_weights(y_train, events, at)
    auc = np.array([_auc(events.time <= at[k], weights[:, k], scores[:, k]) for k in range(len(at))])
    remaining = _survivors(events.time, events.cause > 0)(at)
    decrease = -np.diff(remaining, prepend=1.0)
    known = np.isfinite(auc)
    total = decrease[known].sum()
    return auc, float((auc * decrease)[known].sum() / total) if total > 0 else float("nan")


def _auc(has_event: NDArray[np.bool_], weight: Floats, score: Floats) -> float:
    """Return the fraction of pairs of rows with and without an event that are in the right order, weighted."""
    used = weight > 0
    cases, controls = has_event & used, ~has_event & used
    if not cases.any() or not controls.any():
        return float("nan")
    ordered = np.sort(score[controls])
    below, up_to = (np.searchsorted(ordered, score[cases], side=side) for side in ("left", "right"))
    right = weight[cases] * (below + up_to) / 2
    return float(right.sum() / (weight[cases].sum() * len(ordered)))


def _censoring_weights(y_train: ArrayLike, events: Events, times: Floats) -> Floats:
    """Return the weight of each row at each time; 0 if it is not known whether its event has happened by then."""
    training = read_events(y_train, len(np.asarray(y_train)))
    last = training.time.max()
    if (times >= last).any():
        raise ValueError(
            f"Censoring is estimated up to {last:g}, the last time of the training rows. Pass earlier times."
        )
    uncensored = _survivors(training.time, training.cause == 0, is_censoring=True)
    at_own, at_times = uncensored(np.nextafter(events.time, 0.0)), uncensored(times)
    is_event, has_survived = events.cause[:, np.newaxis] > 0, events.time[:, np.newaxis] > times
    own = np.divide(1.0, at_own, out=np.zeros_like(at_own), where=at_own > 0)[:, np.newaxis]
    others = np.divide(1.0, at_times, out=np.zeros_like(at_times), where=at_times > 0)
    return np.asarray(np.where(has_survived, others, np.where(is_event, own, 0.0)))


def _survivors(
    time: Floats, is_event: NDArray[np.bool_], is_censoring: bool = False
) -> Callable[[NDArray[Any]], Floats]:
    """Return the Kaplan–Meier estimate as a function; rows with an event of a time are censored after it."""
    at, events = np.unique(time[is_event], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), at, side="left")
    if is_censoring:  # the events of a time happen before rows are censored
        others = np.sort(time[~is_event])
        at_risk -= np.searchsorted(others, at, side="right") - np.searchsorted(others, at, side="left")
    survival = np.append(1.0, np.cumprod(1.0 - events / at_risk))
    return lambda times: np.asarray(survival[np.searchsorted(at, times, side="right")])


def _numbers(values: ArrayLike, name: str, n_axes: int) -> Floats:
    found = np.ascontiguousarray(argument_numbers(values, name), dtype=np.float64)
    if found.ndim != n_axes or not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite numbers in {n_axes} dimension{'s' * (n_axes > 1)}.")
    return found


def _times(times: ArrayLike) -> Floats:
    found = _numbers(times, "times", 1)
    if not len(found) or (found < 0).any() or (np.diff(found) <= 0).any():
        raise ValueError("times must be ascending numbers of at least 0.")
    return found
