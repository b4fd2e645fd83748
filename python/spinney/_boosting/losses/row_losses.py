"""Losses of gradient boosting, row by row: value and slope at a score, without terms that do not change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.losses.rows import LearningRows
from spinney._data.numeric.reproducible import exp, log, log_sum_exp

Floats = NDArray[np.float64]
BENDING = ("huber", "log_cosh")  # quadratic up to where a share of the residuals lies, linear beyond


def weighted_quantile(y: Floats, weight: Floats, share: float) -> float:
    """Smallest value that at least `share` of the weight does not exceed; the mean of two that both would do."""
    order = np.argsort(y, kind="stable")
    below = np.cumsum(weight[order])
    wanted = share * below[-1]
    at = int(np.searchsorted(below, wanted * (1 - 1e-12)))
    value = float(y[order[at]])
    if below[at] <= wanted * (1 + 1e-12) and at + 1 < len(y):
        return (value + float(y[order[at + 1]])) / 2
    return value


def bend_of(name: str, share: float, far: Floats, weight: Floats) -> float:
    """Return the size of a residual at which the loss bends."""
    bend = weighted_quantile(far, weight, share)
    if name == "log_cosh" and not bend > 0:  # it has no corner to bend at
        bend = float(far[weight > 0].max(initial=0.0)) or 1.0
    return bend


def row_losses(name: str, parameter: float, scores: Floats, rows: LearningRows) -> Floats:
    """Loss of each row at its scores, (n_rows, n_scores), as the engine has it."""
    y, f = rows.target, scores[:, 0]
    if name == "multinomial":
        return np.asarray(log_sum_exp(scores) - scores[np.arange(len(y)), y.astype(np.intp)])
    if name == "normal":
        deviation = np.maximum(scores[:, 1], log(np.array([parameter]))[0] / 2 - 10)
        return np.asarray(deviation + (y - f) ** 2 * exp(-2 * deviation) / 2)
    if name in BENDING:
        parameter = bend_of(name, parameter, np.abs(y - f), rows.weights())
    return values_at(name, parameter, y, f)


def losses_of_parts(loss: Any, scores: Floats, targets: Floats, weight: Floats) -> Floats:
    """Loss of each row at its scores, (n_rows, n_scores), over all parts with their targets, (n_parts, n_rows)."""
    total, first = np.zeros(len(scores)), 0
    for part, y in zip(loss.parts, targets, strict=True):
        rows = LearningRows(None, y, weight)  # type: ignore[arg-type]
        mine = scores[:, first : first + part.n_scores]
        total = total + part.weight * row_losses(part.name, part.parameter, mine, rows)
        first += part.n_scores
    return np.asarray(total)


def values_at(name: str, parameter: float, y: Floats, f: Floats) -> Floats:
    """Loss of each row that has one score; those that bend have the place as their parameter."""
    margin = (2 * y - 1) * f
    if name == "logistic":
        return log_sum_exp(np.column_stack([np.zeros(len(y)), -margin]))
    if name == "exponential":
        return np.asarray(exp(-margin))
    if name == "focal":
        log_p, log_other = _log_shares(margin)
        return np.asarray(-exp(parameter * log_other) * log_p)
    if name == "smooth_hinge":
        short = np.maximum(1 - margin, 0)
        near = np.minimum(short, 1)
        return np.asarray(near * (short - near / 2))
    if name == "poisson":
        return np.asarray(exp(f) - y * f)
    if name == "gamma":
        return np.asarray(y * exp(-f) + f)
    if name == "tweedie":
        p = parameter
        return np.asarray(exp((2 - p) * f) / (2 - p) - y * exp((1 - p) * f) / (1 - p))
    far = np.abs(y - f)
    if name == "quantile":
        return np.asarray(np.where(y > f, parameter, 1 - parameter) * far)
    if name == "huber":
        near = np.minimum(far, parameter)
        return np.asarray(near * (far - near / 2))
    if name == "log_cosh":
        u = far / parameter
        curved = u + log((1 + exp(-2 * u)) / 2)
        return np.asarray(parameter**2 * np.where(u > 1e-4, curved, u * u / 2))
    return far if name == "absolute_error" else far**2 / 2


def row_slopes(name: str, parameter: float, y: Floats, f: Floats) -> Floats:
    """Slope of the loss of each row that has one score."""
    sign = 2 * y - 1
    if name == "logistic":
        return np.asarray(1 / (1 + exp(-np.clip(f, -700, 700))) - y)
    if name == "exponential":
        return np.asarray(-sign * exp(-sign * f))
    if name == "focal":
        log_p, log_other = _log_shares(sign * f)
        p = exp(log_p)
        return np.asarray(sign * exp(parameter * log_other) * (parameter * p * log_p - (1 - p)))
    if name == "smooth_hinge":
        return np.asarray(-sign * np.clip(1 - sign * f, 0, 1))
    if name == "poisson":
        return np.asarray(exp(f) - y)
    if name == "gamma":
        return np.asarray(1 - y * exp(-f))
    if name == "tweedie":
        return np.asarray(exp((2 - parameter) * f) - y * exp((1 - parameter) * f))
    if name == "quantile":
        return np.where(y > f, -parameter, np.where(y < f, 1 - parameter, 0.0))
    if name == "absolute_error":
        return np.asarray(np.sign(f - y))
    if name == "log_cosh":
        e = exp(-2 * np.abs(f - y) / parameter)
        return np.asarray(np.sign(f - y) * parameter * (1 - e) / (1 + e))
    return np.asarray(np.clip(f - y, -parameter, parameter) if name == "huber" else f - y)


def pulls(name: str, parameter: float, scores: Floats, rows: LearningRows) -> Floats:
    """Return how hard each row that has one score, (n_rows, 1), pulls it up: the negative slope of its loss."""
    y, f = rows.target, scores[:, 0]
    if name in BENDING:
        parameter = bend_of(name, parameter, np.abs(y - f), rows.weights())
    return np.asarray(-row_slopes(name, parameter, y, f))


def _log_shares(margin: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the share that the logistic function gives to a row's class, and of the other's."""
    factor = log(1 + exp(-np.abs(margin)))
    return np.asarray(np.minimum(margin, 0) - factor), np.asarray(-np.maximum(margin, 0) - factor)
