"""Reference implementations of the weak learners of functional boosting: every candidate fitted by least squares."""

from itertools import combinations

import numpy as np
from scipy.interpolate import BSpline


def best_pair(terms, residual, weight):
    """Pair of terms whose plane explains most, and its fitted values; one fit per pair."""
    root = np.sqrt(weight)
    best = (-1.0, None, None)
    for pair in combinations(range(len(terms)), 2):
        rows = np.column_stack([np.ones(len(residual)), *terms[list(pair)]])
        solution = np.linalg.lstsq(rows * root[:, None], residual * root, rcond=None)[0]
        fitted = rows @ solution
        gain = (weight * residual**2).sum() - (weight * (residual - fitted) ** 2).sum()
        if gain > best[0]:
            best = (gain, pair, fitted)
    return best[1:]


def b_splines(knots, degree, x):
    """All B-splines at some places, (n, n_curves)."""
    padded = np.r_[[knots[0]] * degree, knots, [knots[-1]] * degree]
    return BSpline.design_matrix(x, padded, degree).toarray()


def losses(name, y, f, parameter=0.0):
    """Loss of each row."""
    sign = 2 * y - 1
    return {
        "squared_error": lambda: (y - f) ** 2 / 2,
        "absolute_error": lambda: np.abs(y - f),
        "quantile": lambda: np.where(y > f, parameter, 1 - parameter) * np.abs(y - f),
        "poisson": lambda: np.exp(f) - y * f,
        "gamma": lambda: y * np.exp(-f) + f,
        "tweedie": lambda: (
            np.exp((2 - parameter) * f) / (2 - parameter) - y * np.exp((1 - parameter) * f) / (1 - parameter)
        ),
        "log_loss": lambda: np.log1p(np.exp(-sign * f)),
        "exponential": lambda: np.exp(-sign * f),
    }[name]()
