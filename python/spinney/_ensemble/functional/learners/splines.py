"""Smooth functions of one column as weak learners."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from spinney._data.reproducible import cholesky, exp, solve_factored
from spinney._ensemble.functional.learners.weak import Candidate, Fitter, Floats, LearningTable, WeakLearner
from spinney._model.functional.steps import Basis, SplineSteps, curve

_ROUNDS_OF_SEARCH = 50
_RIDGE = 1e-9  # of the mean weight of a basis function, where there are no rows at all


class Splines(WeakLearner):
    """Penalised cubic splines of the one column that fits best, all equally wiggly; shrunken means of categories.

    Parameters
    ----------
    degrees_of_freedom : float, default=4.0
        How wiggly a step is: that of a least-squares fit with so many parameters. A line has 2.
    n_knots : int, default=20
        Knots at most, at quantiles of the column.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("splines").fit(X, y)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degrees_of_freedom": [Interval(Real, 1.0, None, closed="neither")],
        "n_knots": [Interval(Integral, 2, 1000, closed="both")],
    }

    def __init__(self, degrees_of_freedom: float = 4.0, n_knots: int = 20) -> None:
        self.degrees_of_freedom = degrees_of_freedom
        self.n_knots = n_knots

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
        self._strength: Floats | None = None  # of the penalties, as a share of the weight; that of the first round

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
        """Products of the basis functions and factors of the penalised systems, for rounds of the same weights."""
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
        """Strength of each column's penalty that gives the wanted degrees of freedom, by bisection of its logarithm."""
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
    """Return the functions of one column; None if it does not vary."""
    if n_categories:
        return Basis(feature, np.empty(0), 0, n_categories)
    values = np.asarray(table.inputs.columns.column(feature))[table.weight > 0]
    values = np.unique(values[~np.isnan(values)]) + 0.0  # of 0 and -0, either may be left
    if len(values) < 2:
        return None
    places = np.linspace(0, len(values) - 1, min(n_knots, len(values))).astype(np.intp)
    return Basis(feature, values[places], min(3, len(values) - 1), 0)


def _penalty(basis: Basis, size: int) -> NDArray[np.float64]:
    """Squares of second differences of neighbouring heights; of the heights themselves for what has no neighbours."""
    n = basis.n_curves
    found = np.eye(size)
    if not basis.n_categories and n > 2:
        differences = np.diff(np.eye(n), n=2, axis=0)
        found[:n, :n] = (differences[:, :, np.newaxis] * differences[:, np.newaxis, :]).sum(axis=0)
    return found
