"""Planes of large tables: Newton's method for squared losses, an interior point for those with a corner.

Both need the rows for three things alone, which the engine does: scores, sums of terms, and sums of products of terms.
The intercept is not penalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine

Floats = NDArray[np.float64]
_SHORTEST = 1e-10  # step of a line search
_CLOSE = 0.995  # share of the way to the nearest bound


@dataclass(frozen=True)
class Plane:
    """A solution.

    Attributes
    ----------
    weights : ndarray of shape (n_terms + 1,)
        Weights of the terms, and the intercept.
    objective : float
        Half the squared weights, and what the rows pay.
    gap : float
        How far that is from the optimum at most, relative to it; for squared losses the relative slope.
    n_iter : int
        Rounds.
    """

    weights: Floats
    objective: float
    gap: float
    n_iter: int


@dataclass(frozen=True)
class Terms:
    """Terms of the rows, (n_terms, n_rows), and the sums that are needed of them."""

    terms: Floats
    n_jobs: int

    @property
    def n_weights(self) -> int:
        """Number of terms, and the intercept."""
        return len(self.terms) + 1

    def scores(self, weights: Floats) -> Floats:
        """Sum of the terms times weights, and the intercept, of each row."""
        return _engine.weighted_terms(self.terms, np.ascontiguousarray(weights), self.n_jobs)

    def sums(self, factors: Floats) -> Floats:
        """Sum over rows of each term, and of 1, times factors."""
        return _engine.term_sums(self.terms, np.ascontiguousarray(factors), self.n_jobs)

    def products(self, factors: Floats) -> Floats:
        """Sum over rows of each pair of terms times factors."""
        return _engine.term_products(self.terms, np.ascontiguousarray(factors), self.n_jobs)


def _penalised(matrix: Floats) -> Floats:
    """Add the penalty's part, which the intercept has not."""
    found = matrix.copy()
    places = np.arange(len(found) - 1)
    found[places, places] += 1.0
    return found


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Solve a system that is definite but for rounding: if need be with a little more on its diagonal."""
    extra = 0.0
    while True:
        padded = matrix + extra * np.eye(len(matrix))
        found = _engine.solve_positive(np.ascontiguousarray(padded), np.ascontiguousarray(right))
        if found is not None:
            return np.asarray(found)
        extra = max(10 * extra, 1e-13 * max(float(np.abs(matrix).max()), 1e-300))


def _square(weights: Floats) -> float:
    return float((weights[:-1] ** 2).sum())


# ---- squared losses ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlaneProblem:
    """What a plane is fitted to, and how closely.

    Attributes
    ----------
    table : Terms
        The rows.
    z : ndarray of shape (n_rows,)
        Sides of the rows, or values.
    bound : ndarray of shape (n_rows,)
        What a unit of a row's loss costs.
    epsilon : float or None
        Half the width of the tube around values; None: z holds sides.
    tol : float
        Precision that ends the search.
    max_iter : int
        Most rounds.
    """

    table: Terms
    z: Floats
    bound: Floats
    epsilon: float | None
    tol: float
    max_iter: int

    def beyond(self, scores: Floats) -> Floats:
        """How far each row is beyond what costs nothing, with the sign in which its score should go."""
        if self.epsilon is None:
            return np.asarray(np.maximum(1.0 - self.z * scores, 0.0) * self.z)
        error = self.z - scores
        shift = np.where(error > 0, self.epsilon, -self.epsilon)
        return np.asarray(np.where(np.abs(error) > self.epsilon, error - shift, 0.0))

    def level(self) -> Plane | None:
        """Return the plane that costs nothing, if there is one: a level within epsilon of all values."""
        low, high = float(self.z.min()), float(self.z.max())
        if self.epsilon is None or not high - low <= 2 * self.epsilon:
            return None
        return Plane(np.append(np.zeros(self.table.n_weights - 1), low + (high - low) / 2), 0.0, 0.0, 0)


def newton(problem: PlaneProblem, start: Floats | None = None) -> Plane:
    """Least ½|w|² + Σ bound · loss²: of hinges for sides z (epsilon None), or of errors beyond epsilon for values z.

    The objective is a parabola in pieces, so that Newton's method ends after a few rounds.
    """
    table, bound, max_iter = problem.table, problem.bound, problem.max_iter
    weights, scores, first = np.zeros(table.n_weights), np.zeros(len(problem.z)), 0.0
    if start is not None:
        first = 2.0 * float(np.sqrt((table.sums(bound * problem.beyond(scores)) ** 2).sum()))
        weights, scores = start, table.scores(start)
    for n_iter in range(max_iter + 1):
        beyond = problem.beyond(scores)
        pull = bound * beyond
        slope = -2.0 * table.sums(pull)
        slope[:-1] += weights[:-1]
        size = float(np.sqrt((slope**2).sum()))
        first = size if n_iter == 0 and start is None else first
        value = _square(weights) / 2 + float((pull * beyond).sum())
        if size <= problem.tol * first or n_iter == max_iter:
            break
        matrix = _penalised(table.products(2.0 * bound * (beyond != 0)))
        step = _solved(matrix, -slope[np.newaxis])[0]
        along = table.scores(step)
        length = _line_search(problem, weights, scores, step, along, value, float((slope * step).sum()))
        if length == 0.0:
            break
        weights, scores = weights + length * step, scores + length * along
    return Plane(weights, value, size / first if first > 0 else 0.0, n_iter)


def _line_search(
    problem: PlaneProblem, weights: Floats, scores: Floats, step: Floats, along: Floats, value: float, slope: float
) -> float:
    """Return how far to go in a direction, given in weights and in scores; 0 if nothing lowers the objective."""
    length = 1.0
    while length > _SHORTEST:
        beyond = problem.beyond(scores + length * along)
        tried = _square(weights + length * step) / 2 + float((problem.bound * beyond * beyond).sum())
        if tried <= value + 1e-4 * length * slope:
            return length
        length /= 2
    return 0.0


# ---- losses with a corner ---------------------------------------------------------------------------------


@dataclass
class _Inside:
    """A point inside the bounds of the dual: a in (0, bound) for each row and side, and the prices of both bounds."""

    a: Floats  # (n_sides, n_rows)
    low: Floats
    high: Floats
    weights: Floats


def interior(problem: PlaneProblem) -> Plane:
    """Least ½|w|² + Σ bound · loss: of hinges for sides z (epsilon None), or of errors beyond epsilon for values z.

    The dual has a variable a of each row, or two, for errors above and below; w is the sum of sign · a · terms.
    Newton's method goes to where a times its price and the rest to the bound times its price are all the same and small
    (Mehrotra's predictor and corrector), with a system no larger than the number of terms.
    """
    table, z, bound, epsilon = problem.table, problem.z, problem.bound, problem.epsilon
    sign = z[np.newaxis] if epsilon is None else np.array([[1.0], [-1.0]]) * np.ones(len(z))
    cost = -np.ones((1, len(z))) if epsilon is None else np.array([epsilon - z, epsilon + z])
    # in units in which bounds are about 1
    point = _Inside(
        np.broadcast_to(bound / 2, sign.shape).copy(),
        np.ones(sign.shape),
        np.ones(sign.shape),
        np.zeros(table.n_weights),
    )
    for n_iter in range(problem.max_iter + 1):
        scores = table.scores(point.weights)
        sums = table.sums((sign * point.a).sum(axis=0))
        primal = _square(point.weights) / 2 + float((bound * np.abs(problem.beyond(scores))).sum())
        dual = -float((cost * point.a).sum()) - _square(sums) / 2
        off = abs(float(sums[-1]))  # the dual asks for a sum of 0
        gap = (abs(primal - dual) + off) / max(abs(primal), 1e-12)
        if gap <= problem.tol or n_iter == problem.max_iter:
            break
        if not _advance(problem, point, sign, sign * scores + cost, sums):
            break
    return Plane(point.weights, primal, gap, n_iter)


def _advance(problem: PlaneProblem, point: _Inside, sign: Floats, slope: Floats, sums: Floats) -> bool:
    """Take one step; return False, and take none, where rounding leaves none to take."""
    table, rest = problem.table, problem.bound - point.a
    mean = float(((point.a * point.low).sum() + (rest * point.high).sum()) / (2 * point.a.size))
    if not (mean > 0 and point.a.min() > 0 and rest.min() > 0):
        return False
    stiff = 1.0 / (point.low / point.a + point.high / rest)
    matrix = _penalised(table.products(stiff.sum(axis=0)))
    if not np.isfinite(matrix).all():
        return False
    residual = slope - point.low + point.high
    target = -sums.copy()
    target[:-1] += point.weights[:-1]

    def direction(low_goal: Floats, high_goal: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the steps of a, both prices and the weights toward a times price being the goals."""
        push = residual - (low_goal - point.a * point.low) / point.a + (high_goal - rest * point.high) / rest
        right = -target - table.sums((sign * stiff * push).sum(axis=0))
        step_w = _solved(matrix, right[np.newaxis])[0]
        step_a = -stiff * (push + sign * table.scores(step_w))
        step_low = (low_goal - point.a * point.low - point.low * step_a) / point.a
        step_high = (high_goal - rest * point.high + point.high * step_a) / rest
        return step_a, step_low, step_high, step_w

    nothing = np.zeros_like(point.a)
    a, low, high, _ = direction(nothing, nothing)
    length = _room(point, rest, a, low, high)
    reached = ((point.a + length * a) * (point.low + length * low)).sum()
    reached += ((rest - length * a) * (point.high + length * high)).sum()
    goal = mean * (float(reached) / (2 * point.a.size) / mean) ** 3
    a, low, high, weights = direction(goal - a * low, goal + a * high)
    if not all(np.isfinite(step).all() for step in (a, low, high, weights)):
        return False
    length = min(1.0, _CLOSE * _room(point, rest, a, low, high, 1.0 / _CLOSE))
    point.a += length * a
    point.low += length * low
    point.high += length * high
    point.weights = point.weights + length * weights
    return True


def _room(point: _Inside, rest: Floats, a: Floats, low: Floats, high: Floats, most: float = 1.0) -> float:
    """How far all of them can go before one is 0."""
    for value, step in ((point.a, a), (rest, -a), (point.low, low), (point.high, high)):
        falling = step < 0
        if falling.any():
            most = min(most, float((value[falling] / -step[falling]).min()))
    return most


def fit_plane(problem: PlaneProblem, squared: bool, start: Floats | None) -> Plane:
    """Fit one plane by the method that its loss asks for."""
    if (level := problem.level()) is not None:
        return level
    return newton(problem, start) if squared else interior(problem)
