"""Ridge and logistic regression of scaled terms, bit-identical on every processor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import cholesky, exp, log, solve_factored
from spinney._data.types import Floats
from spinney._estimator.online import Quadratic
from spinney._linear.terms import CodedTerms, DenseTerms, combined, weighted_sums

_MOST_STEPS = 100  # of Newton's method; it usually takes ten
MOST_FACTORED = 1000  # terms
_CLOSE_ENOUGH = 1e-20  # squared Newton decrement relative to the loss
_LEAST_CURVATURE = 1e-30  # of the loss of a row, where all probabilities are 0 or 1: keeps steps finite


def gram(terms: Floats, weight: Floats) -> Floats:
    """Return the weighted products of all pairs of terms, (n_terms, n_terms)."""
    found = np.empty((len(terms), len(terms)))
    for i, term in enumerate(terms):
        found[i, i:] = found[i:, i] = weighted_sums(terms[i:], (term * weight)[np.newaxis])[:, 0]
    return found


# ---- ridge -----------------------------------------------------------------------------------------------------------


class Ridge:
    """Ridge regression, prepared for several values of alpha.

    With more than 1,000 terms, and more terms than rows, the equations are those of the rows: their matrix is K + alpha
    / weight, where K has the products of the rows, and the coefficients are combinations of the rows.

    Parameters
    ----------
    terms : ndarray of shape (n_terms, n_rows)
    target, weight : ndarray of shape (n_rows,)
        Weights are positive.
    penalty : ndarray of shape (n_terms,)
        Penalty factor of each squared coefficient, for alpha=1.
    """

    def __init__(self, terms: Floats, target: Floats, weight: Floats, penalty: Floats) -> None:
        self._weight, self._total = weight, float(weight.sum())
        self._means = (terms * weight).sum(axis=1) / self._total
        self._mean = float((target * weight).sum() / self._total)
        self._terms, self._target = terms - self._means[:, np.newaxis], target - self._mean
        self._is_by_row = len(terms) > max(MOST_FACTORED, terms.shape[1])
        if self._is_by_row:
            self._root = np.sqrt(penalty)[:, np.newaxis]
            self._terms /= self._root
            self._gram = gram(np.ascontiguousarray(self._terms.T), np.ones(len(terms)))
            self._penalty, self._right = 1 / weight, self._target
        else:
            self._gram = gram(self._terms, weight)
            self._penalty, self._right = penalty, (self._terms * (self._target * weight)).sum(axis=1)

    def solve(self, alpha: float) -> tuple[Floats, float]:
        """Return coefficients and intercept for a value of alpha."""
        coefficients = self._coefficients(self._factor(alpha))
        return coefficients, self._mean - float((coefficients * self._means).sum())

    def leave_one_out_error(self, alpha: float) -> float:
        """Return the leave-one-out mean squared error; a row of weight 2 counts as two rows, one of them left out."""
        factor = self._factor(alpha)
        if self._is_by_row:
            inverse = solve_factored(factor, np.eye(len(factor)))
            residual = alpha * solve_factored(factor, self._right) * self._penalty
            leverage = 1 / self._total + (1 - alpha * np.diag(inverse) * self._penalty) * self._penalty
        else:
            residual = self._target - combined(self._terms, self._coefficients(factor)[:, np.newaxis])[0]
            rows = np.ascontiguousarray(self._terms.T)
            leverage = 1 / self._total + (rows * solve_factored(factor, rows)).sum(axis=1)
        left = 1 - np.minimum(self._weight, 1) * leverage
        errors = residual / np.maximum(left, np.finfo(float).eps)
        return float((self._weight * errors**2).sum() / self._total)

    def _factor(self, alpha: float) -> Floats:
        spread = np.diag(self._gram)
        # only the penalty separates columns that are sums of others: rounding must not leave a negative diagonal
        slack = 1e-13 * spread.max(initial=0.0)
        return cholesky(self._gram + np.diag(alpha * self._penalty + slack))

    def _coefficients(self, factor: Floats) -> Floats:
        solution = solve_factored(factor, self._right)
        if not self._is_by_row:
            return solution
        return weighted_sums(self._terms / self._root, solution[np.newaxis])[:, 0]


def with_squared_errors(earlier: Quadratic, terms: Floats, target: Floats, weight: Floats) -> Quadratic:
    """Add half the squared errors of some rows, as a function of the coefficients and the intercept."""
    rows, weighted = np.concatenate([terms, np.ones((1, terms.shape[1]))]), target * weight
    n = len(rows)
    slope = (rows * weighted).sum(axis=1)
    return earlier.plus(float((weighted * target).sum()) / 2, -slope, gram(rows, weight), np.zeros(n))


class RidgeOfSums:
    """Ridge regression from the sums of its normal equations, prepared for several values of alpha.

    Parameters
    ----------
    squares : Quadratic
        Half the squared errors of all rows.
    penalty : ndarray of shape (n_terms,)
        Penalty factor of each squared coefficient, for alpha=1.
    by_spread : bool
        Whether the factors are of terms of unit variance.
    n_rows : int
        Rows of positive weight.
    """

    def __init__(self, squares: Quadratic, penalty: Floats, by_spread: bool, n_rows: int) -> None:
        self._total = float(squares.curvature[-1, -1])
        self._count = max(self._total, n_rows)  # a row of weight 2 counts as two rows, and one of weight 0.1 as one
        self._means, self._mean = squares.curvature[:-1, -1] / self._total, float(squares.slope[-1]) / self._total
        self._centred = squares.curvature[:-1, :-1] - self._total * self._means[:, np.newaxis] * self._means
        self._spread = np.maximum(np.diag(self._centred), 0.0)
        self._penalty, self._by_spread = penalty, by_spread
        self._right = squares.slope[:-1] - self._total * self._mean * self._means
        self._square = 2 * squares.constant - self._total * self._mean**2

    def solve(self, alpha: float) -> tuple[Floats, float]:
        """Return coefficients and intercept for a value of alpha."""
        coefficients = solve_factored(self._factor(alpha), self._right)
        return coefficients, self._mean - float((coefficients * self._means).sum())

    def generalised_error(self, alpha: float) -> float:
        """Return the error of generalised cross-validation (Golub, Heath and Wahba 1979), which needs no rows."""
        factor = self._factor(alpha)
        coefficients = solve_factored(factor, self._right)
        image = (self._centred * coefficients).sum(axis=1)
        residual = self._square + float((coefficients * (image - 2 * self._right)).sum())
        freedom = 1 + float(np.diag(solve_factored(factor, self._centred)).sum())
        return max(residual, 0.0) / max(1 - freedom / self._count, np.finfo(float).eps) ** 2

    def _factor(self, alpha: float) -> Floats:
        penalty = alpha * self._penalty
        if self._by_spread:
            penalty = penalty * self._spread / self._total
        slack = 1e-13 * self._spread.max(initial=0.0) + 1e-300
        return cholesky(self._centred + np.diag(penalty + slack))


# ---- logistic --------------------------------------------------------------------------------------------------------


class Logistic:
    """Logistic regression with an L2 penalty, fitted by Newton's method.

    Each step solves the Newton equations by conjugate gradients, preconditioned by the part of the Hessian that is
    common to all scores; with two classes there is one score, and the preconditioner is the whole Hessian. With
    more than 1,000 terms it is the diagonal: the time to factor a matrix grows with the cube of its size.

    Parameters
    ----------
    terms : DenseTerms or CodedTerms
    codes : ndarray of int, shape (n_rows,)
    weight : ndarray of shape (n_rows,)
        Positive.
    penalty : ndarray of shape (n_terms,)
        Each squared coefficient costs half of its penalty.
    n_classes : int
        With two classes there is one score, that of the second class.
    earlier : Quadratic, optional
        The loss of further rows as a function of the coefficients, score after score.
    """

    def __init__(
        self,
        terms: DenseTerms | CodedTerms,
        codes: NDArray[np.intp],
        weight: Floats,
        penalty: Floats,
        n_classes: int,
        earlier: Quadratic | None = None,
    ) -> None:
        self._terms = terms.with_constant()
        self._weight = weight
        self._penalty = np.append(penalty, 0.0)[:, np.newaxis]
        is_class = (codes == np.arange(n_classes)[:, np.newaxis]).astype(np.float64)
        self._is_class = is_class[1:] if n_classes == 2 else is_class
        self._earlier = earlier

    def solve(self) -> tuple[Floats, Floats]:
        """Return coefficients, (n_terms, n_scores), and intercepts, (n_scores,)."""
        coefficients = np.zeros((len(self._terms), len(self._is_class)))
        loss, proba = self._loss_and_proba(coefficients)
        for _ in range(_MOST_STEPS):
            gradient = self._products(proba - self._is_class) + self._penalty * coefficients
            if self._earlier is not None:
                gradient += self._by_term(self._earlier.gradient(_by_score(coefficients)))
            if len(proba) > 1:  # as in exact arithmetic; else rounding moves all intercepts together, without bound
                gradient -= gradient.mean(axis=1, keepdims=True)
            step = self._newton_step(gradient, proba)
            decrease = float((gradient * step).sum())
            if decrease <= _CLOSE_ENOUGH * max(loss, 1e-300):
                break
            length, is_close = 1.0, decrease <= 1e-10 * loss  # the difference of losses is within rounding
            while True:
                tried = coefficients - length * step
                new_loss, proba = self._loss_and_proba(tried)
                if is_close or new_loss <= loss - 1e-4 * length * decrease or length < 1e-10:
                    break
                length /= 2
            coefficients, loss = tried, new_loss
        return coefficients[:-1], coefficients[-1]

    def _loss_and_proba(self, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss, and the probabilities of the classes that have a score, (n_scores, n_rows)."""
        scores = self._terms.combined(coefficients)
        own = (scores * self._is_class).sum(axis=0)
        most = scores.max(axis=0)
        if len(scores) == 1:
            most = np.maximum(most, 0.0)
        proba = exp(scores - most)
        total = proba.sum(axis=0) + (exp(-most) if len(scores) == 1 else 0.0)
        losses = most + log(total) - own
        loss = float((self._weight * losses).sum() + (self._penalty * coefficients**2).sum() / 2)
        if self._earlier is not None:
            loss += self._earlier.value(_by_score(coefficients))
        return loss, proba / total

    def _by_term(self, flat: Floats) -> Floats:
        """Return numbers in the order of `Quadratic` as (n_terms, n_scores)."""
        return flat.reshape(len(self._is_class), len(self._terms)).T

    def with_rows(self, coefficients: Floats) -> Quadratic:
        """Return the loss of earlier rows plus that of these, expanded at some coefficients."""
        assert self._earlier is not None
        assert isinstance(self._terms, DenseTerms)
        flat, n = _by_score(coefficients), len(self._terms)
        loss, proba = self._loss_and_proba(coefficients)
        loss -= float((self._penalty * coefficients**2).sum()) / 2 + self._earlier.value(flat)
        curvature = np.empty((len(flat), len(flat)))
        for k, m in zip(*np.triu_indices(len(proba)), strict=True):
            factor = proba[k] * ((k == m) - proba[m])
            block = gram(self._terms.matrix, self._weight * factor)
            curvature[k * n : (k + 1) * n, m * n : (m + 1) * n] = block
            curvature[m * n : (m + 1) * n, k * n : (k + 1) * n] = block
        return self._earlier.plus(loss, _by_score(self._products(proba - self._is_class)), curvature, flat)

    def _products(self, by_row: Floats) -> Floats:
        """Return the sums over the rows of terms times weighted numbers, (n_terms, n_scores)."""
        return self._terms.weighted_sums(self._weight * by_row)

    def _newton_step(self, gradient: Floats, proba: Floats) -> Floats:
        """Solve the Newton equations to a precision relative to the size of the gradient."""
        conditioned = self._preconditioner(proba)
        step, rest = np.zeros_like(gradient), gradient
        direction = better = conditioned(rest)
        if len(proba) == 1 and (len(self._terms) <= MOST_FACTORED or self._earlier is not None):
            return better
        size = first = float((rest * better).sum())
        for _ in range(gradient.size + 10):
            if size <= 1e-6 * first or size <= 0:
                break
            image = self._hessian_times(direction, proba)
            height = float((direction * image).sum())
            if height <= 0:
                break
            length = size / height
            step, rest = step + length * direction, rest - length * image
            better = conditioned(rest)
            size, before = float((rest * better).sum()), size
            direction = better + (size / before) * direction
        return step

    def _preconditioner(self, proba: Floats) -> Callable[[Floats], Floats]:
        """Return the inverse of the Hessian's part common to all scores, or of its diagonal if there are many terms."""
        curvature = (proba * (1 - proba)).mean(axis=0)
        weight = self._weight * np.maximum(curvature, _LEAST_CURVATURE)
        if isinstance(self._terms, CodedTerms) or (len(self._terms) > MOST_FACTORED and self._earlier is None):
            diagonal = self._terms.weighted_squares(weight)[:, np.newaxis] + self._penalty
            diagonal += 1e-13 * diagonal.max() + 1e-300
            return lambda vector: np.asarray(vector / diagonal)
        hessian = gram(self._terms.matrix, weight)
        if self._earlier is not None:  # the mean of the curvatures of the scores
            n, n_scores = len(self._terms), len(proba)
            own = self._earlier.curvature.reshape(n_scores, n, n_scores, n)
            hessian += sum(own[k, :, k] for k in range(n_scores)) / n_scores
        hessian += np.diag(self._penalty[:, 0] + 1e-13 * np.diag(hessian).max() + 1e-300)
        factor = cholesky(hessian)
        return lambda vector: solve_factored(factor, np.ascontiguousarray(vector.T)).T

    def _hessian_times(self, direction: Floats, proba: Floats) -> Floats:
        """Return the Hessian of the loss times a direction."""
        change = self._terms.combined(direction) * proba
        image = self._products(change - proba * change.sum(axis=0)) + self._penalty * direction
        if self._earlier is not None:
            image += self._by_term(self._earlier.product(_by_score(direction)))
        if len(proba) > 1:
            image -= image.mean(axis=1, keepdims=True)
        return image


def _by_score(coefficients: Floats) -> Floats:
    """Return coefficients, (n_terms, n_scores), in the order of `Quadratic`: score after score."""
    return np.ascontiguousarray(coefficients.T).ravel()
