"""Ridge and logistic regression of scaled terms, with the same bits on every processor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import cholesky, exp, log, solve_factored

Floats = NDArray[np.float64]
_MOST_STEPS = 100  # of Newton's method; ten are usual
_CLOSE_ENOUGH = 1e-20  # squared length of a step, in the measure of the loss, relative to the loss


def gram(terms: Floats, weight: Floats) -> Floats:
    """Weighted products of all pairs of terms, (n_terms, n_terms)."""
    found = np.empty((len(terms), len(terms)))
    for i, term in enumerate(terms):
        found[i, i:] = found[i:, i] = (terms[i:] * (term * weight)).sum(axis=1)
    return found


def combined(terms: Floats, slopes: Floats) -> Floats:
    """Sum of the terms times their slopes, (n_scores, n_rows)."""
    found = np.zeros((slopes.shape[1], terms.shape[1]))
    for term, slope in zip(terms, slopes, strict=True):
        found += slope[:, np.newaxis] * term
    return found


# ---- ridge -----------------------------------------------------------------------------------------------------------


class Ridge:
    """Least squares with a penalty, prepared for several strengths of it.

    Parameters
    ----------
    terms : ndarray of shape (n_terms, n_rows)
    target, weight : ndarray of shape (n_rows,)
        Weights are positive.
    penalty : ndarray of shape (n_terms,)
        What the squared slope of each term costs, for a strength of 1.
    """

    def __init__(self, terms: Floats, target: Floats, weight: Floats, penalty: Floats) -> None:
        self._weight, self._total = weight, float(weight.sum())
        self._means = (terms * weight).sum(axis=1) / self._total
        self._mean = float((target * weight).sum() / self._total)
        self._terms, self._target = terms - self._means[:, np.newaxis], target - self._mean
        self._gram = gram(self._terms, weight)
        self._right = (self._terms * (self._target * weight)).sum(axis=1)
        self._penalty = penalty

    def solve(self, alpha: float) -> tuple[Floats, float]:
        """Return slopes and constant for a strength of the penalty."""
        slopes = self._slopes(self._factor(alpha))
        return slopes, self._mean - float((slopes * self._means).sum())

    def left_out_error(self, alpha: float) -> float:
        """Mean squared error of rows that are left out one by one; of a row of weight 2, one of two."""
        factor = self._factor(alpha)
        residual = self._target - combined(self._terms, self._slopes(factor)[:, np.newaxis])[0]
        rows = np.ascontiguousarray(self._terms.T)
        leverage = 1 / self._total + (rows * solve_factored(factor, rows)).sum(axis=1)
        left = 1 - np.minimum(self._weight, 1) * leverage
        errors = residual / np.maximum(left, np.finfo(float).eps)
        return float((self._weight * errors**2).sum() / self._total)

    def _factor(self, alpha: float) -> Floats:
        spread = np.diag(self._gram)
        # only the penalty separates columns that are sums of others: what rounding leaves must not be negative
        slack = 1e-13 * spread.max(initial=0.0)
        return cholesky(self._gram + np.diag(alpha * self._penalty + slack))

    def _slopes(self, factor: Floats) -> Floats:
        return solve_factored(factor, self._right)


# ---- logistic --------------------------------------------------------------------------------------------------------


class Logistic:
    """Log loss of classes with a penalty, minimised by Newton's method.

    The step solves the Newton equations by conjugate gradients, preconditioned by the part of the curvature that all
    scores share; with two classes, and so one score, that is all of it.

    Parameters
    ----------
    terms : ndarray of shape (n_terms, n_rows)
    codes : ndarray of int, shape (n_rows,)
    weight : ndarray of shape (n_rows,)
        Positive.
    penalty : ndarray of shape (n_terms,)
        Half of it is what the squared slope of each term costs.
    n_classes : int
        With two there is one score, that of the second.
    """

    def __init__(self, terms: Floats, codes: NDArray[np.intp], weight: Floats, penalty: Floats, n_classes: int) -> None:
        self._terms = np.concatenate([terms, np.ones((1, terms.shape[1]))])
        self._weight = weight
        self._penalty = np.append(penalty, 0.0)[:, np.newaxis]
        is_class = (codes == np.arange(n_classes)[:, np.newaxis]).astype(np.float64)
        self._is_class = is_class[1:] if n_classes == 2 else is_class

    def solve(self) -> tuple[Floats, Floats]:
        """Return slopes, (n_terms, n_scores), and constants, (n_scores,)."""
        slopes = np.zeros((len(self._terms), len(self._is_class)))
        loss, shares = self._at(slopes)
        for _ in range(_MOST_STEPS):
            slope = self._products(shares - self._is_class) + self._penalty * slopes
            step = self._newton_step(slope, shares)
            fall = float((slope * step).sum())
            if fall <= _CLOSE_ENOUGH * max(loss, 1e-300):
                break
            length, sure = 1.0, fall <= 1e-10 * loss  # too close for a difference of losses to tell
            while True:
                tried = slopes - length * step
                new_loss, shares = self._at(tried)
                if sure or new_loss <= loss - 1e-4 * length * fall or length < 1e-10:
                    break
                length /= 2
            slopes, loss = tried, new_loss
        return slopes[:-1], slopes[-1]

    def _at(self, slopes: Floats) -> tuple[float, Floats]:
        """Loss, and the shares of the classes that have a score, (n_scores, n_rows)."""
        scores = combined(self._terms, slopes)
        own = (scores * self._is_class).sum(axis=0)
        most = scores.max(axis=0)
        if len(scores) == 1:
            most = np.maximum(most, 0.0)
        shares = exp(scores - most)
        total = shares.sum(axis=0) + (exp(-most) if len(scores) == 1 else 0.0)
        losses = most + log(total) - own
        return float((self._weight * losses).sum() + (self._penalty * slopes**2).sum() / 2), shares / total

    def _products(self, by_row: Floats) -> Floats:
        """Sum over the rows of terms times weighted numbers, (n_terms, n_scores)."""
        return np.column_stack([(self._terms * (self._weight * numbers)).sum(axis=1) for numbers in by_row])

    def _newton_step(self, slope: Floats, shares: Floats) -> Floats:
        """Solve the Newton equations to a precision that grows as the slope falls."""
        bend = shares * (1 - shares)
        curvature = gram(self._terms, self._weight * bend.mean(axis=0))
        curvature += np.diag(self._penalty[:, 0] + 1e-13 * np.diag(curvature).max() + 1e-300)
        factor = cholesky(curvature)

        def conditioned(vector: Floats) -> Floats:
            return solve_factored(factor, np.ascontiguousarray(vector.T)).T

        step, rest = np.zeros_like(slope), slope
        direction = better = conditioned(rest)
        if len(shares) == 1:
            return better
        size = first = float((rest * better).sum())
        for _ in range(slope.size + 10):
            if size <= 1e-6 * first or size <= 0:
                break
            image = self._curved(direction, shares)
            height = float((direction * image).sum())
            if height <= 0:
                break
            length = size / height
            step, rest = step + length * direction, rest - length * image
            better = conditioned(rest)
            size, before = float((rest * better).sum()), size
            direction = better + (size / before) * direction
        return step

    def _curved(self, direction: Floats, shares: Floats) -> Floats:
        """Second derivative of the loss times a direction."""
        change = combined(self._terms, direction) * shares
        return self._products(change - shares * change.sum(axis=0)) + self._penalty * direction
