"""Solvers of linear support vector machines: Newton's method for squared losses, an interior point method for others.

They use the rows only through three sums that the engine computes: scores, weighted sums of terms, and weighted
products of terms. The penalty of the intercept b is b² / (2 intercept_scaling²), as in liblinear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import spinney._engine as _engine
from spinney._data.types import Floats
from spinney._estimator.online import Quadratic

_SHORTEST = 1e-10  # step of a line search
_GAP = 0.01  # largest relative distance to the least objective, as a fraction of the tolerance
_LEAST_GAP = 1e-9  # that no fraction of a tolerance goes below, so that rounding does not prevent it
_MAX_SWEEPS, _SWEEP_TOL = 50, 1e-6  # of coordinate descent
_LEAST_FACTOR = 1e-300
_LEAST_SIZE = 0.05  # of an absolute value that is expanded, as a fraction of the spread of the target
_CLOSE = 0.995  # fraction of the distance to the nearest bound
Solver = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Plane:
    """A fitted hyperplane.

    Attributes
    ----------
    weights : ndarray of shape (n_terms + 1,)
        Coefficients of the terms, and the intercept.
    objective : float
        Half the squared norm of the coefficients, plus the loss.
    gap : float
        Relative duality gap; for squared losses, the relative norm of the gradient.
    n_iter : int
        Iterations.
    """

    weights: Floats
    objective: float
    gap: float
    n_iter: int


@dataclass(frozen=True)
class Terms:
    """Terms of the rows, (n_terms, n_rows), and sums over them; the last term is 1, or 0 without an intercept.

    `ridge`, (n_terms + 1,), is the penalty of each squared weight: 1, and that of the intercept, which may be 0.
    """

    terms: Floats
    ridge: Floats
    n_jobs: int
    has_intercept: bool = True

    @property
    def n_weights(self) -> int:
        """Number of terms plus 1 for the intercept."""
        return len(self.terms) + 1

    def scores(self, weights: Floats) -> Floats:
        """Return the score of each row: its terms times the weights, plus the intercept."""
        return _engine.weighted_terms(self.terms, np.ascontiguousarray(weights), self.n_jobs)

    def sums(self, factors: Floats) -> Floats:
        """Return the sum over rows of factors times each term, and of factors times 1."""
        found = _engine.term_sums(self.terms, np.ascontiguousarray(factors), self.n_jobs)
        if not self.has_intercept:
            found[-1] = 0.0
        return found

    def products(self, factors: Floats) -> Floats:
        """Return the sum over rows of factors times the product of each pair of terms."""
        found = _engine.term_products(self.terms, np.ascontiguousarray(factors), self.n_jobs)
        if not self.has_intercept:
            found[-1], found[:, -1] = 0.0, 0.0
        return found

    def solver(self, factors: Floats, earlier: Quadratic | None = None) -> Solver | None:
        """Return a function that solves (products(factors) + diag(ridge)) w = right; None if a number is not finite.

        The curvature of earlier rows is added to the products. Without such, and with fewer rows than terms, it solves
        a system of the rows of positive factors instead (the identity of Sherman, Morrison and Woodbury).
        """
        ridge = self.ridge
        if len(factors) >= self.n_weights or not (ridge > 0).all() or earlier is not None:
            matrix = self.products(factors)
            matrix.flat[:: self.n_weights + 1] += ridge
            if earlier is not None:
                matrix += earlier.curvature
            return (lambda right: _solved(matrix, right)) if np.isfinite(matrix).all() else None
        used = np.flatnonzero(factors)
        root = np.sqrt(factors[used])
        gram = self._gram[np.ix_(used, used)]
        inner = root[:, np.newaxis] * gram * root + np.eye(len(used))
        if not np.isfinite(inner).all():
            return None

        def solve(right: Floats) -> Floats:
            direct = right / ridge
            within = np.zeros(len(factors))
            within[used] = root * _solved(inner, root * self.scores(direct)[used])
            return direct - self.sums(within) / ridge

        return solve

    def square(self, weights: Floats) -> float:
        """Return the penalised squared norm of the weights."""
        return float((self.ridge * weights**2).sum())

    def dual_square(self, sums: Floats) -> float:
        """Return the penalised squared norm of the weights whose product with the ridge is `sums`."""
        return float((sums**2 / self._dual_ridge).sum())

    @cached_property
    def _dual_ridge(self) -> Floats:
        """The penalties; infinite for an intercept without one, whose sum the dual constrains to 0."""
        return np.where(self.ridge == 0, np.inf, self.ridge)

    @cached_property
    def by_row(self) -> RowTerms | None:
        """The same sums for weights given by row; None unless there are fewer rows than terms, and all have a ridge."""
        is_short = self.terms.shape[1] < self.n_weights and bool((self.ridge > 0).all())
        return RowTerms(self._gram, self.n_jobs) if is_short and np.isfinite(self._gram).all() else None

    @cached_property
    def _gram(self) -> Floats:
        """Products of all pairs of rows, terms divided by the ridge."""
        rows = Terms(np.ascontiguousarray(self.terms.T), self.ridge, self.n_jobs)
        products = rows.products(1.0 / self.ridge[:-1])[:-1, :-1]
        return np.asarray(products + self.has_intercept / self.ridge[-1])


@dataclass(frozen=True)
class RowTerms:
    """Sums over few rows of many terms, from the products of all pairs of rows.

    The weights Σ aᵢ xᵢ / ridge are given by one number a per row, so that a sum of factors times terms is the factors.
    """

    gram: Floats
    n_jobs: int

    @property
    def n_weights(self) -> int:
        """Number of rows."""
        return len(self.gram)

    @property
    def ridge(self) -> Floats:
        """Factors of a in the equations of the weights: 1."""
        return np.ones(len(self.gram))

    def scores(self, weights: Floats) -> Floats:
        """Return the score of each row."""
        return _engine.weighted_terms(self.gram, np.append(weights, 0.0), self.n_jobs)

    def sums(self, factors: Floats) -> Floats:
        """Return the sum over rows of factors times each row, by row."""
        return factors

    def square(self, weights: Floats) -> float:
        """Return the penalised squared norm of the weights."""
        return float((weights * self.scores(weights)).sum())

    dual_square = square

    def solver(self, factors: Floats) -> Solver | None:
        """Return a function that solves a + factors · gram a = right, the equations of `Terms.solver`."""
        root = np.sqrt(np.maximum(factors, _LEAST_FACTOR))
        inner = root[:, np.newaxis] * self.gram * root + np.eye(len(factors))
        if not np.isfinite(inner).all():
            return None
        return lambda right: root * _solved(inner, right / root)


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Solve a positive definite system; where rounding makes it indefinite, add to the diagonal."""
    padded, ridge = matrix, 0.0
    while True:
        solution = _engine.solve_positive(np.ascontiguousarray(padded), np.ascontiguousarray(right[np.newaxis]))
        if solution is not None:
            return np.asarray(np.asarray(solution)[0])
        ridge = max(10 * ridge, 1e-13 * max(float(np.abs(matrix).max()), 1e-300))
        padded = matrix + ridge * np.eye(len(matrix))


# ---- squared losses ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlaneProblem:
    """The rows of one machine, and the settings of the solver.

    Attributes
    ----------
    table : Terms
        Terms of the rows.
    z : ndarray of shape (n_rows,)
        Class ±1, or numeric target.
    bound : ndarray of shape (n_rows,)
        C times the weight of each row.
    epsilon : float or None
        Half-width of the tube of a regression; None for classification.
    tol : float
        Tolerance.
    max_iter : int
        Maximum number of iterations.
    lasso : ndarray of shape (n_terms + 1,), or None
        Penalty of the size of each weight.
    earlier : Quadratic or None
        Loss of further rows as a function of the weights.
    """

    table: Terms | RowTerms
    z: Floats
    bound: Floats
    epsilon: float | None
    tol: float
    max_iter: int
    lasso: Floats | None = None
    earlier: Quadratic | None = None

    @property
    def ridge(self) -> Floats:
        """Penalty of each squared weight."""
        return self.table.ridge

    def beyond(self, scores: Floats) -> Floats:
        """Return the margin violation of each row, with the sign of the change of score that would reduce it."""
        if self.epsilon is None:
            return np.asarray(np.maximum(1.0 - self.z * scores, 0.0) * self.z)
        error = self.z - scores
        shift = np.where(error > 0, self.epsilon, -self.epsilon)
        return np.asarray(np.where(np.abs(error) > self.epsilon, error - shift, 0.0))

    def square(self, weights: Floats) -> float:
        """Return the penalised squared norm of the weights."""
        return self.table.square(weights)

    def given(self, weights: Floats) -> float:
        """Return the part of the objective without the rows: half the squared norm, and the loss of earlier rows."""
        half = self.square(weights) / 2
        return half if self.earlier is None else half + self.earlier.value(weights)

    def given_gradient(self, weights: Floats) -> Floats:
        """Return the gradient of that part."""
        own = self.ridge * weights
        return own if self.earlier is None else own + self.earlier.gradient(weights)

    def least_given(self, sums: Floats) -> float:
        """Return the least value of that part minus the product of the weights and `sums`."""
        if self.earlier is None:
            return -self.table.dual_square(sums) / 2
        solve = self.solver(np.zeros(len(self.z)))
        if solve is None:
            return -np.inf
        weights = solve(sums + self.earlier.slope)
        return self.given(weights) - float((weights * sums).sum())

    def solver(self, factors: Floats) -> Solver | None:
        """Return the solver of the table's sums with these factors, the ridge and the curvature of earlier rows."""
        if self.earlier is None:
            return self.table.solver(factors)
        assert isinstance(self.table, Terms)
        return self.table.solver(factors, self.earlier)

    def level(self) -> Plane | None:
        """Return the constant solution of zero loss, if one is within epsilon of all targets."""
        low, high = float(self.z.min()), float(self.z.max())
        is_free = self.ridge[-1] == 0 and self.earlier is None
        if self.epsilon is None or not is_free or not high - low <= 2 * self.epsilon:
            return None
        return Plane(np.append(np.zeros(self.table.n_weights - 1), low + (high - low) / 2), 0.0, 0.0, 0)


def newton(problem: PlaneProblem, start: Floats | None = None) -> Plane:
    """Minimise ½ Σ ridge · w² + Σ bound · loss² for the hinge loss (epsilon None) or the epsilon-insensitive loss.

    The objective is piecewise quadratic, so that Newton's method converges in a few iterations.
    """
    table, bound, max_iter = problem.table, problem.bound, problem.max_iter
    assert isinstance(table, Terms)
    weights, scores, first = np.zeros(table.n_weights), np.zeros(len(problem.z)), 0.0
    if start is not None:
        first = 2.0 * float(np.sqrt((table.sums(bound * problem.beyond(scores)) ** 2).sum()))
        weights, scores = start, table.scores(start)
    is_penalised = problem.ridge > 0
    for n_iter in range(max_iter + 1):
        beyond = problem.beyond(scores)
        pull = bound * beyond
        gradient = problem.ridge * weights - 2.0 * table.sums(pull)
        if problem.earlier is not None:
            gradient += problem.earlier.gradient(weights)
        norm = float(np.sqrt((gradient**2).sum()))
        first = norm if n_iter == 0 and start is None else first
        value = problem.given(weights) + float((pull * beyond).sum())
        # The penalty is strongly convex, so the gradient bounds the distance to the least value.
        gap = float((gradient[is_penalised] ** 2 / problem.ridge[is_penalised]).sum()) / 2
        if (norm <= problem.tol * first and gap <= _GAP * problem.tol * value) or n_iter == max_iter:
            break
        solve = problem.solver(2.0 * bound * (beyond != 0))
        if solve is None:
            break
        step = solve(-gradient)
        along = table.scores(step)
        length = _line_search(problem, weights, scores, step, along, value, float((gradient * step).sum()))
        if length == 0.0:
            break
        weights, scores = weights + length * step, scores + length * along
    return Plane(weights, value, norm / first if first > 0 else 0.0, n_iter)


def with_rows(problem: PlaneProblem, weights: Floats, squared: bool) -> Quadratic:
    """Return the loss of earlier rows plus that of these, expanded at some weights."""
    assert problem.earlier is not None
    table, bound = problem.table, problem.bound
    assert isinstance(table, Terms)
    if not squared:
        return _with_absolute(problem, weights)
    beyond = problem.beyond(table.scores(weights))
    loss, gradient = float((bound * beyond * beyond).sum()), -2.0 * table.sums(bound * beyond)
    return problem.earlier.plus(loss, gradient, table.products(2.0 * bound * (beyond != 0)), weights)


def _with_absolute(problem: PlaneProblem, weights: Floats) -> Quadratic:
    """Add a quadratic that is nowhere below the epsilon-insensitive loss of the rows.

    The loss is half the sum of two absolute values |u|, of the distances from both edges of the tube, minus epsilon.
    |u| is at most u²/2d + d/2, which is equal where |u| = d, the size of u at the weights; d is at least the mean size,
    so that rows with a small u do not fix the weights.
    """
    assert problem.earlier is not None
    assert problem.epsilon is not None
    table, z, bound = problem.table, problem.z, problem.bound
    assert isinstance(table, Terms)
    error = z - table.scores(weights)
    u = np.array([error - problem.epsilon, error + problem.epsilon])
    scale = float(np.abs(z - z.mean()).mean()) or float(np.abs(z).mean()) or 1.0
    size = np.maximum(np.abs(u), max(float(np.abs(u).mean()), _LEAST_SIZE * scale))
    loss = (u**2 / size + size).sum(axis=0) / 4 - problem.epsilon
    gradient = -table.sums(bound * (u / size).sum(axis=0) / 2)
    curvature = table.products(bound * (1 / size).sum(axis=0) / 2)
    return problem.earlier.plus(float((bound * loss).sum()), gradient, curvature, weights)


def _line_search(
    problem: PlaneProblem, weights: Floats, scores: Floats, step: Floats, along: Floats, value: float, slope: float
) -> float:
    """Return the step length by backtracking; 0 if no step lowers the objective."""
    length = 1.0
    while length > _SHORTEST:
        beyond = problem.beyond(scores + length * along)
        tried = problem.given(weights + length * step) + float((problem.bound * beyond * beyond).sum())
        if tried <= value + 1e-4 * length * slope:
            return length
        length /= 2
    return 0.0


# ---- squared hinge loss with an L1 penalty ----------------------------------------------------------------


def sparse_newton(problem: PlaneProblem, start: Floats | None = None) -> Plane:
    """Minimise Σ lasso · |w| + Σ bound · loss² for the hinge loss, by Newton's method with an L1 penalty."""
    table, bound, lasso = problem.table, problem.bound, problem.lasso
    assert lasso is not None
    assert isinstance(table, Terms)
    weights = np.zeros(table.n_weights) if start is None else start
    scores = table.scores(weights)
    first = float(np.sqrt(((2.0 * table.sums(bound * problem.z)) ** 2).sum())) or 1.0  # at weights of 0
    for n_iter in range(problem.max_iter + 1):
        beyond = problem.beyond(scores)
        gradient = -2.0 * table.sums(bound * beyond)
        value = float((lasso * np.abs(weights)).sum() + (bound * beyond * beyond).sum())
        # the smallest subgradient: 0 at the optimum
        slope = np.where(weights != 0, gradient + lasso * np.sign(weights), 0.0)
        slope += np.where(weights == 0, gradient - np.clip(gradient, -lasso, lasso), 0.0)
        norm = float(np.sqrt((slope**2).sum()))
        if norm <= problem.tol * first or n_iter == problem.max_iter:
            break
        free = np.flatnonzero((weights != 0) | (slope != 0))
        hessian = table.products(2.0 * bound * (beyond != 0))[np.ix_(free, free)]
        step = np.zeros_like(weights)
        step[free] = _lasso_step(hessian, gradient[free], weights[free], lasso[free])
        along, length = table.scores(step), 1.0
        decrease = float((gradient * step).sum() + (lasso * (np.abs(weights + step) - np.abs(weights))).sum())
        while length > _SHORTEST:
            missed = problem.beyond(scores + length * along)
            tried = weights + length * step
            if float((lasso * np.abs(tried)).sum() + (bound * missed**2).sum()) <= value + 1e-4 * length * decrease:
                break
            length /= 2
        else:
            break
        weights, scores = tried, scores + length * along
    return Plane(weights, value, norm / first, n_iter)


def _lasso_step(hessian: Floats, gradient: Floats, weights: Floats, lasso: Floats) -> Floats:
    """Minimise the quadratic model of the loss plus Σ lasso · |w + step|.

    A sweep of coordinate descent finds the signs of the weights; then a linear system has the minimum among weights of
    these signs, or the way to the first weight that becomes 0.
    """
    found, product = weights.copy(), np.zeros(len(weights))  # product: hessian times the step
    diagonal = hessian.diagonal() + 1e-12 * max(float(hessian.diagonal().max(initial=0.0)), 1e-300)
    for _ in range(_MAX_SWEEPS):
        fall = 0.0
        for j in range(len(found)):
            pull = diagonal[j] * found[j] - gradient[j] - product[j]
            change = (max(pull - lasso[j], 0.0) + min(pull + lasso[j], 0.0)) / diagonal[j] - found[j]
            if change != 0.0:
                found[j] += change
                product += change * hessian[j]
                fall += change * change * diagonal[j]
        if fall <= _SWEEP_TOL * float(((found - weights) * product).sum()):
            break
        own = np.flatnonzero(found)
        if len(own):
            slope = gradient[own] + product[own] + lasso[own] * np.sign(found[own])
            step = _solved(hessian[np.ix_(own, own)], -slope)
            crossing = step * found[own] < 0
            length = float((-found[own][crossing] / step[crossing]).min(initial=1.0))
            moved = found[own] + length * step
            moved[crossing & (moved * found[own] <= 1e-15 * found[own] ** 2)] = 0.0
            product += (hessian[:, own] * (moved - found[own])).sum(axis=1)
            found[own] = moved
    return found - weights


# ---- hinge and epsilon-insensitive loss -------------------------------------------------------------------


@dataclass
class _Interior:
    """A strictly feasible dual point.

    Attributes
    ----------
    values : ndarray of shape (2, 2, n_sides, n_rows)
        a and bound - a, both positive, and then the multipliers of both.
    weights : ndarray of shape (n_weights,)
        The primal point.
    """

    values: Floats
    weights: Floats


def interior(problem: PlaneProblem) -> Plane:
    """Minimise ½ Σ ridge · w² + Σ bound · loss for the hinge loss (epsilon None) or the epsilon-insensitive loss.

    The dual has one variable a per row, or two, for errors above and below; the gradient of the other parts of the
    objective, ridge · w without earlier rows, is the sum of sign · a · terms. A
    primal-dual interior point method (Mehrotra's predictor-corrector) solves it; each iteration solves a linear system
    no larger than the number of terms.
    """
    table, z, bound, epsilon = problem.table, problem.z, problem.bound, problem.epsilon
    sign = z[np.newaxis] if epsilon is None else np.array([[1.0], [-1.0]]) * np.ones(len(z))
    cost = -np.ones((1, len(z))) if epsilon is None else np.array([epsilon - z, epsilon + z])
    enough = min(problem.tol, max(_GAP * problem.tol, _LEAST_GAP))
    point = _start(problem, sign, cost)
    free = np.flatnonzero((problem.ridge == 0) & (problem.earlier is None))  # an intercept without penalty
    for n_iter in range(problem.max_iter + 1):
        a = point.values[0, 0]
        gradient = sign * table.scores(point.weights) + cost
        sums = table.sums((sign * a).sum(axis=0))
        primal = problem.given(point.weights) - float((bound * np.minimum(gradient, 0.0)).sum())
        dual = problem.least_given(sums) - float((cost * a).sum())
        infeasibility = sum(abs(float(sums[j])) for j in free)
        gap = (abs(primal - dual) + infeasibility) / max(abs(primal), 1e-12)
        if gap <= enough or n_iter == problem.max_iter:
            break
        if not _advance(problem, point, sign, gradient, sums):
            break
    return Plane(point.weights, primal, gap, n_iter)


def _start(problem: PlaneProblem, sign: Floats, cost: Floats) -> _Interior:
    """Return the middle of the bounds and, for the epsilon-insensitive loss, the weights of least squares."""
    table = problem.table
    point = _Interior(np.ones((2, 2, *sign.shape)), np.zeros(table.n_weights))  # in units in which bounds are about 1
    point.values[0] = problem.bound / 2
    solve = None if problem.epsilon is None else problem.solver(np.ones(len(problem.z)))
    if solve is not None:
        point.weights = solve(table.sums(problem.z))
        gradient = sign * table.scores(point.weights) + cost
        point.values[1] = np.maximum([gradient, -gradient], 0.0) + np.abs(gradient).mean()
    return point


def _advance(problem: PlaneProblem, point: _Interior, sign: Floats, gradient: Floats, sums: Floats) -> bool:
    """Take one predictor-corrector step; return False if rounding leaves no feasible step."""
    table, values = problem.table, point.values
    room, multipliers = values  # to both bounds
    size = room.size
    mean = float((room * multipliers).sum()) / size
    if not (mean > 0 and values.min() > 0):
        return False
    ratio = multipliers / room
    stiff = 1.0 / ratio.sum(axis=0)
    solve = problem.solver(stiff.sum(axis=0))
    if solve is None:
        return False
    signed, missing = sign * stiff, sums - problem.given_gradient(point.weights)

    def direction(goals: Floats | float) -> tuple[Floats, Floats]:
        """Return the Newton steps of the values and the weights toward complementarity equal to the goals."""
        wanted = goals / room
        push = gradient - wanted[0] + wanted[1]
        step_w = solve(missing - table.sums((signed * push).sum(axis=0)))
        steps = np.empty_like(values)
        steps[0, 0] = -stiff * push - signed * table.scores(step_w)
        steps[0, 1] = -steps[0, 0]
        steps[1] = wanted - multipliers - ratio * steps[0]
        return steps, step_w

    steps, _ = direction(0.0)
    reached = values + min(1.0, _longest_step(values, steps)) * steps
    goal = mean * (float((reached[0] * reached[1]).sum()) / size / mean) ** 3
    steps, step_w = direction(goal - steps[0] * steps[1])
    if not (np.isfinite(steps).all() and np.isfinite(step_w).all()):
        return False
    length = min(1.0, _CLOSE * _longest_step(values, steps))
    values += length * steps
    values[0, 1] = problem.bound - values[0, 0]
    point.weights = point.weights + length * step_w
    return True


def _longest_step(values: Floats, steps: Floats) -> float:
    """Return the longest step after which no value is negative."""
    fall = -float((steps / values).min())
    return 1.0 / fall if fall > 0 else np.inf


def fit_plane(problem: PlaneProblem, squared: bool, start: Floats | None) -> Plane:
    """Fit one hyperplane by the solver for its loss and penalty."""
    if problem.lasso is not None:
        return sparse_newton(problem, start)
    if (level := problem.level()) is not None:
        return level
    if squared:
        return newton(problem, start)
    table = problem.table
    if problem.earlier is not None or not isinstance(table, Terms) or table.by_row is None:
        return interior(problem)
    plane = interior(replace(problem, table=table.by_row))
    return replace(plane, weights=table.sums(plane.weights) / table.ridge)
