"""Lines, planes and S-shaped curves of one or two columns as weak learners."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from spinney._data.reproducible import cholesky, solve_factored
from spinney._ensemble.functional.learners.weak import Candidate, Fitter, Floats, LearningTable, WeakLearner
from spinney._model.functional.steps import LinearSteps, LogisticSteps, bent

_ALMOST_ONE = 1 - 1e-9  # terms whose squared correlation is above this say the same
_MOST_STEPS, _CLOSE = 25, 1e-10


class Linear(WeakLearner):
    """Least-squares lines of the one term, or planes of the two terms, that fit best.

    The best of all pairs is found in closed form from the products of the terms, which are added up once for all
    rounds. A term is a column of numbers, whether it is missing, or whether a category is this one.

    Parameters
    ----------
    n_features : {1, 2}, default=1
        Terms of each step.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("linear").fit(X, y)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_features": [Interval(Integral, 1, 2, closed="both")]}

    def __init__(self, n_features: int = 1) -> None:
        self.n_features = n_features

    def _begin(self, table: LearningTable) -> Fitter:
        return _LinearFitter(self.n_features, table, LinearSteps())


class Logistic(Linear):
    """Curves like an S of one or two terms: logistic regressions of the residuals' signs, weighed by their size.

    The terms are those whose line or plane fits best, as in `Linear`.

    Parameters
    ----------
    n_features : {1, 2}, default=1
        Terms of each step.
    """

    def _begin(self, table: LearningTable) -> Fitter:
        return _LogisticFitter(self.n_features, table, LogisticSteps())


class _LinearFitter(Fitter):
    def __init__(self, n_terms: int, table: LearningTable, steps: LinearSteps) -> None:
        self._n_terms = n_terms
        self._terms = table.inputs.terms
        self.steps: LinearSteps = steps
        self._weight: Floats | None = None

    @property
    def can_fit(self) -> bool:
        """Whether any column varies."""
        return len(self._terms) > 0

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Find the best line or plane."""
        self._add_up(weight)
        return self._candidate(*self._best(residual * weight), residual, weight)

    def _add_up(self, weight: Floats) -> None:
        """Add up the terms and their products, less their means; once for rounds of the same weights."""
        if self._weight is not None and np.array_equal(weight, self._weight):
            return
        terms, n = self._terms, len(self._terms)
        self._weight, self._total = weight, float(weight.sum())
        self._sums = (terms * weight).sum(axis=1)
        products = np.zeros((n, n))
        for t in range(n):
            others = slice(t, n if self._n_terms == 2 else t + 1)
            products[t, others] = (terms[others] * (terms[t] * weight)).sum(axis=1)
        products = np.where(products == 0, products.T, products)
        self._products = products - self._sums[:, np.newaxis] * self._sums / self._total
        self._squares = np.maximum(np.diagonal(self._products), 0.0).copy()
        self._squares[self._squares <= 1e-12 * self._total] = 0.0  # constant among the rows in use

    def _best(self, pull: Floats) -> tuple[int, int, float, float, float]:
        """Terms of the best fit, its constant and its slopes, for residuals times weights."""
        whole = float(pull.sum())
        along = (self._terms * pull).sum(axis=1) - self._sums * whole / self._total
        with np.errstate(divide="ignore", invalid="ignore"):
            single = np.where(self._squares > 0, along**2 / self._squares, 0.0)
        one = two = int(single.argmax())
        slopes = (along[one] / self._squares[one] if self._squares[one] > 0 else 0.0, 0.0)
        if self._n_terms == 2:
            found = self._best_pair(along, float(single[one]))
            if found is not None:
                one, two, *rest = found
                slopes = (rest[0], rest[1])
        constant = (whole - slopes[0] * self._sums[one] - slopes[1] * self._sums[two]) / self._total
        return one, two, float(constant), float(slopes[0]), float(slopes[1])

    def _best_pair(self, along: Floats, least: float) -> tuple[int, int, float, float] | None:
        """Best pair of terms and its slopes; None if no pair is better than one term."""
        squares, products = self._squares, self._products
        area = squares[:, np.newaxis] * squares
        rest = area - products**2
        usable = rest > (1 - _ALMOST_ONE) * area
        first = along[:, np.newaxis] * squares - along * products  # slope of the row's term, times the rest
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(usable, (along[:, np.newaxis] * first + along * first.T) / rest, -np.inf)
        gain[np.tril_indices(len(along))] = -np.inf
        place = int(gain.argmax())
        one, two = divmod(place, len(along))
        if not gain[one, two] > least:
            return None
        return one, two, float(first[one, two] / rest[one, two]), float(first[two, one] / rest[one, two])

    def _candidate(
        self, one: int, two: int, constant: float, first: float, second: float, residual: Floats, weight: Floats
    ) -> Candidate:
        numbers = (1.0, constant, first, second)
        values = self.steps.at(self._terms[one], self._terms[two], numbers)
        return Candidate(values, lambda: self.steps.add((one, two), numbers))


class _LogisticFitter(_LinearFitter):
    def _candidate(
        self, one: int, two: int, constant: float, first: float, second: float, residual: Floats, weight: Floats
    ) -> Candidate:
        used = [one, two] if second != 0 else [one]
        line = np.zeros(3)
        line[: 1 + len(used)] = logistic_regression(self._terms[used], residual > 0, weight * np.abs(residual))
        curve = bent(line[0] + line[1] * self._terms[one] + line[2] * self._terms[two])
        size = float((weight * curve * curve).sum())
        height = float((weight * residual * curve).sum()) / size if size > 0 else 0.0
        numbers = (height, float(line[0]), float(line[1]), float(line[2]))
        return Candidate(height * curve, lambda: self.steps.add((one, two), numbers))


def logistic_regression(terms: Floats, positive: NDArray[np.bool_], weight: Floats, ridge: float = 1e-3) -> Floats:
    """Constant and slopes of a weighted logistic regression by Newton's steps; a small ridge keeps them finite."""
    total = float(weight.sum())
    rows = np.vstack([np.ones(len(weight)), terms])
    found = np.zeros(len(rows))
    if not total > 0:
        return found
    share = weight / total
    for _ in range(_MOST_STEPS):
        line = (rows * found[:, np.newaxis]).sum(axis=0)
        p = (bent(line) + 1) / 2
        slope = (rows * (share * (positive - p))).sum(axis=1) - ridge * found
        bend = share * p * (1 - p)
        matrix = np.array([(rows * (row * bend)).sum(axis=1) for row in rows]) + ridge * np.eye(len(rows))
        step = solve_factored(cholesky(matrix), slope)
        found = found + np.clip(step, -4, 4)
        if np.abs(step).max() < _CLOSE:
            break
    return found
