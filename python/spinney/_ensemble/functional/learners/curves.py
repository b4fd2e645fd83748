"""Weak learners of one or two columns: linear and logistic functions, and splines."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from spinney._data.reproducible import cholesky, exp, solve_factored
from spinney._data.types import Floats
from spinney._ensemble.functional.learners.weak import Candidate, Fitter, LearningTable, WeakLearner
from spinney._estimator.parameters import estimator, parameter
from spinney._model.functional.steps import Basis, LinearSteps, LogisticSteps, SplineSteps, bent, curve

_ALMOST_ONE = 1 - 1e-9  # terms with a larger squared correlation are collinear
_MOST_STEPS, _CLOSE = 25, 1e-10


@estimator
class Linear(WeakLearner):
    """Linear functions of one term, or of two, fitted by least squares; the best term or pair is chosen.

    The best pair is found in closed form from the products of the terms, which are summed once for all rounds. A term
    is a numeric column, an indicator of missing values, or an indicator of a category.

    Parameters
    ----------
    n_features : {1, 2}, default=1
        Number of terms of each function.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("linear").fit(X, y)
    """

    n_features: int = parameter(Interval(Integral, 1, 2, closed="both"), default=1, kw_only=False)

    def _begin(self, table: LearningTable) -> Fitter:
        return _LinearFitter(self.n_features, table, LinearSteps())


class Logistic(Linear):
    """Logistic functions of one or two terms, fitted to the signs of the residuals, weighted by their size.

    The terms are those whose linear function fits best, as in `Linear`.

    Parameters
    ----------
    n_features : {1, 2}, default=1
        Number of terms of each function.
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
        """Find the best linear function."""
        self._add_up(weight)
        return self._candidate(*self._best(residual * weight), residual, weight)

    def _add_up(self, weight: Floats) -> None:
        """Sum the centred products of the terms, once for rounds with the same weights."""
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
        self._squares[self._squares <= 1e-12 * self._total] = 0.0  # constant among the rows of positive weight

    def _best(self, pull: Floats) -> tuple[int, int, float, float, float]:
        """Return the terms of the best fit, its intercept and its slopes, for residuals times weights."""
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
        """Return the best pair of terms and its slopes; None if no pair is better than one term."""
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
    """Return intercept and slopes of a weighted logistic regression by Newton's method, with a small ridge penalty."""
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


_ROUNDS_OF_SEARCH = 50
_RIDGE = 1e-9  # of the mean weight of a basis function, where there are no rows at all


@estimator
class Splines(WeakLearner):
    """Penalised cubic splines of the column that fits best; the splines of all columns have equal degrees of freedom.

    A categorical column gets the means of its categories, shrunken towards 0.

    Parameters
    ----------
    degrees_of_freedom : float, default=4.0
        Effective degrees of freedom of each spline. A linear function has 2.
    n_knots : int, default=20
        Maximum number of knots, at quantiles of the column.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("splines").fit(X, y)
    """

    degrees_of_freedom: float = parameter(Interval(Real, 1.0, None, closed="neither"), default=4.0, kw_only=False)
    n_knots: int = parameter(Interval(Integral, 2, 1000, closed="both"), default=20, kw_only=False)

    def _begin(self, table: LearningTable) -> Fitter:
        return _SplineFitter(self, table)


class _SplineFitter(Fitter):
    def __init__(self, learner: Splines, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._wanted = float(learner.degrees_of_freedom)
        found = (
            _make_basis(j, table, n_categories, learner.n_knots)
            for j, n_categories in enumerate(table.schema.n_categories)
        )
        self.steps: SplineSteps = SplineSteps([basis for basis in found if basis is not None])
        self._size = max((basis.n_curves + 1 for basis in self.steps.bases), default=1)
        self._penalties = np.array([_penalty(basis, self._size) for basis in self.steps.bases])
        self._weight: Floats | None = None
        self._strength: Floats | None = None  # of the penalties, as a fraction of the weight in the first round

    @property
    def can_fit(self) -> bool:
        """Whether any column varies."""
        return bool(self.steps.bases)

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Fit a spline to each column and take the best."""
        self._add_up(weight)
        pull = residual * weight
        right = np.array([self._sums(b, pull) for b in range(len(self.steps.bases))])
        heights = solve_factored(self._factors, right)
        fitted = (self._products * heights[:, np.newaxis, :]).sum(axis=2)
        gain = (heights * (2 * right - fitted)).sum(axis=1)
        best = int(gain.argmax())
        values = curve(heights[best], *self.steps.located(self._inputs, best))
        return Candidate(values, lambda: self.steps.add(best, heights[best]))

    def _sums(self, basis: int, pull: Floats) -> Floats:
        places, parts = self.steps.located(self._inputs, basis)
        total = np.bincount(places[0], parts[0] * pull, self._size)
        for place, part in zip(places[1:], parts[1:], strict=True):
            total = total + np.bincount(place, part * pull, self._size)
        return np.asarray(total)

    def _add_up(self, weight: Floats) -> None:
        """Sum the products of the basis functions and factor the systems, once for rounds with the same weights."""
        if self._weight is not None and np.array_equal(weight, self._weight):
            return
        self._weight = weight
        n = self._size
        products = np.zeros((len(self.steps.bases), n, n))
        for b in range(len(self.steps.bases)):
            places, parts = self.steps.located(self._inputs, b)
            for one, left in zip(places, parts, strict=True):
                for two, right in zip(places, parts, strict=True):
                    products[b] += np.bincount(one * n + two, weight * left * right, n * n).reshape(n, n)
        self._products = products
        floor = np.eye(n) * (_RIDGE * float(weight.sum()) / n)
        if self._strength is None:
            self._strength = self._strengths(products + floor) / float(weight.sum())
        self._factors = cholesky(products + self._strength * float(weight.sum()) * self._penalties + floor)

    def _strengths(self, products: Floats) -> Floats:
        """Return the penalty of each column for the given degrees of freedom, by bisection of its logarithm."""
        size = np.trace(products, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
        low, high = np.full_like(size, -25.0), np.full_like(size, 25.0)
        for _ in range(_ROUNDS_OF_SEARCH):
            middle = (low + high) / 2
            factors = cholesky(products + exp(middle) * size * self._penalties)
            solved = solve_factored(factors[:, np.newaxis], products.transpose(0, 2, 1))
            free = np.trace(solved, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
            low, high = np.where(free > self._wanted, middle, low), np.where(free > self._wanted, high, middle)
        return np.asarray(exp((low + high) / 2) * size)


def _make_basis(feature: int, table: LearningTable, n_categories: int, n_knots: int) -> Basis | None:
    """Return the basis functions of one column; None if it is constant."""
    if n_categories:
        return Basis(feature, np.empty(0), 0, n_categories)
    values = np.asarray(table.inputs.columns.column(feature))[table.weight > 0]
    values = np.unique(values[~np.isnan(values)]) + 0.0  # of 0 and -0, either may be left
    if len(values) < 2:
        return None
    places = np.linspace(0, len(values) - 1, min(n_knots, len(values))).astype(np.intp)
    return Basis(feature, values[places], min(3, len(values) - 1), 0)


def _penalty(basis: Basis, size: int) -> NDArray[np.float64]:
    """Return the penalty matrix: squared second differences of coefficients; for categories their squares."""
    n = basis.n_curves
    found = np.eye(size)
    if not basis.n_categories and n > 2:
        differences = np.diff(np.eye(n), n=2, axis=0)
        found[:n, :n] = (differences[:, :, np.newaxis] * differences[:, np.newaxis, :]).sum(axis=0)
    return found
