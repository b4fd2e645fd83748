"""Platt's curve: probabilities from the scores of rows that a machine has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import exp, log
from spinney._model.svm.model import curve

Floats = NDArray[np.float64]
_ROUNDS = 100
_LEAST_SLOPE = 1e-5
_LEAST_STEP = 1e-10
_RIDGE = 1e-12


def fit_curve(scores: Floats, is_positive: NDArray[np.bool_], weight: Floats) -> tuple[float, float]:
    """Find A and B of 1 / (1 + exp(A f + B)), by Newton's method (Lin, Lin and Weng 2007).

    Targets are Platt's: as if each class had one more row, of the other class by half.
    """
    above, below = float(weight[is_positive].sum()), float(weight[~is_positive].sum())
    target = np.where(is_positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))
    a, b = 0.0, float(log(np.array([(below + 1.0) / (above + 1.0)]))[0])
    value = _loss(scores, target, weight, a, b)
    for _ in range(_ROUNDS):
        p = curve(scores[:, np.newaxis], np.array([[a, b]]))[:, 0]
        d1, d2 = (target - p) * weight, p * (1.0 - p) * weight
        g1, g2 = float((scores * d1).sum()), float(d1.sum())
        if max(abs(g1), abs(g2)) < _LEAST_SLOPE:
            break
        h11, h22 = float((scores * scores * d2).sum()) + _RIDGE, float(d2.sum()) + _RIDGE
        h21 = float((scores * d2).sum())
        determinant = h11 * h22 - h21 * h21
        step_a, step_b = -(h22 * g1 - h21 * g2) / determinant, -(h11 * g2 - h21 * g1) / determinant
        slope, length = g1 * step_a + g2 * step_b, 1.0
        while length >= _LEAST_STEP:
            tried = _loss(scores, target, weight, a + length * step_a, b + length * step_b)
            if tried < value + 0.0001 * length * slope:
                a, b, value = a + length * step_a, b + length * step_b, tried
                break
            length /= 2
        else:
            break
    return a, b


def _loss(scores: Floats, target: Floats, weight: Floats, a: float, b: float) -> float:
    along = a * scores + b
    rest = log(1.0 + exp(-np.abs(along)))
    return float(((np.where(along >= 0, target * along, (target - 1.0) * along) + rest) * weight).sum())
