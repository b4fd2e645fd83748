"""Dual problems of kernel machines, their solutions by the engine, and Platt scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.design import Design
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats
from spinney._model.svm.model import FittedMachines, largest_kernel_value, platt_scaled
from spinney._svm.margin_estimator import MarginRows

KERNEL_OVERFLOWS = "Kernel values of these columns overflow. Scale the columns (scale='standard')."
_LEAST_MARGIN = 1e-12  # below it the classes coincide, and the solution is not rescaled


@dataclass(frozen=True)
class Problems:
    """The dual problems of all machines, concatenated; bounds are those of C = 1.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Rows of each machine, in the order of the machines.
    ends : ndarray of shape (n_machines,)
        End of each machine's rows.
    z, lowest, highest : ndarray of shape (n,)
        Target and bounds of the dual coefficient of each row.
    insensitive : float
        Half-width of the epsilon-insensitive tube.
    strategy : {"one", "ovo", "ovr"}
        One machine, one per pair of classes, or one per class against the rest.
    sign : float
        -1 if the scores of the machine change sign.
    of_values : bool
        Whether it is a regression; else z is ±1.
    side_sums : ndarray of shape (n_machines,), or None
        Of ν machines, the sum of the coefficients of each side. In a regression each row occurs twice, first for errors
        above the tube; in a classification z is 0.
    is_one_class : bool
        Whether all rows are on one side, and the machine separates them from the origin.
    """

    rows: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    z: Floats
    lowest: Floats
    highest: Floats
    insensitive: float
    strategy: str
    sign: float = 1.0
    of_values: bool = False
    side_sums: Floats | None = None
    is_one_class: bool = False

    def of_machine(self, m: int) -> slice:
        """Return the slice of one machine's rows."""
        return slice(int(self.ends[m - 1]) if m else 0, int(self.ends[m]))

    def rows_of(self, m: int) -> NDArray[np.uint32]:
        """Return the rows of one machine, each once."""
        rows = self.rows[self.of_machine(m)]
        return rows[: len(rows) // 2] if self.of_values and self.side_sums is not None else rows


def class_problems(rows: MarginRows, by_class: Floats, multi_class: str, cost: Floats | None) -> Problems:
    """Return the dual problems of a classification with class weights and misclassification costs."""
    n_classes = len(by_class)
    codes = rows.target.astype(np.intp)
    weight = rows.weight * by_class[codes]
    costs = 1.0 - np.eye(n_classes) if cost is None else cost
    machines: list[tuple[NDArray[np.uint32], Floats]] = []  # rows, and their bounds, negative for the second side
    if n_classes == 2 or multi_class == "ovo":
        strategy = "one" if n_classes == 2 else "ovo"
        places = [np.flatnonzero(codes == k).astype(np.uint32) for k in range(n_classes)]
        weights = [weight[rows_of_class] for rows_of_class in places]
        for i, j in zip(*np.triu_indices(n_classes, 1), strict=True):
            bounds = np.concatenate([weights[i] * costs[i, j], -(weights[j] * costs[j, i])])
            machines.append((np.concatenate([places[i], places[j]]), bounds))
    else:
        strategy = "ovr"
        all_rows = np.arange(len(rows), dtype=np.uint32)
        for k in range(n_classes):
            price = 1.0 if cost is None else np.where(codes == k, cost[k].sum(), cost[:, k][codes])
            machines.append((all_rows, np.where(codes == k, weight * price, -(weight * price))))
    signed = np.concatenate([bounds for _, bounds in machines])
    ends = np.cumsum([len(members) for members, _ in machines]).astype(np.uint32)
    return Problems(
        np.concatenate([members for members, _ in machines]),
        ends,
        np.copysign(1.0, signed),  # a bound of 0 has a sign too
        np.minimum(signed, 0.0),
        np.maximum(signed, 0.0),
        0.0,
        strategy,
        -1.0 if n_classes == 2 else 1.0,
    )


def value_problem(rows: MarginRows, epsilon: float) -> Problems:
    """Return the dual problem of a regression."""
    n = len(rows)
    ends = np.array([n], dtype=np.uint32)
    return Problems(
        np.arange(n, dtype=np.uint32), ends, rows.target, -rows.weight, rows.weight, epsilon, "one", of_values=True
    )


def nu_class_problems(rows: MarginRows, nu: float, classes: NDArray[Any]) -> Problems:
    """Return the dual problems of a ν-classification, one per pair of classes."""
    problems = class_problems(rows, np.ones(len(classes)), "ovo", None)
    sums = []
    for m, (i, j) in enumerate(zip(*np.triu_indices(len(classes), 1), strict=True)):
        own = problems.of_machine(m)
        above, below = float(problems.highest[own].sum()), float(-problems.lowest[own].sum())
        most, wanted = min(above, below), nu * (above + below) / 2
        if wanted > most * (1 + 1e-12):
            one, other = classes.tolist()[i], classes.tolist()[j]
            raise ValueError(
                f"nu={nu:g} is infeasible for the classes {one!r} and {other!r}, which differ too much in size. Pass a "
                f"nu of at most {2 * most / (above + below):.4g}, or sample weights that balance the classes."
            )
        sums.append(min(wanted, most))
    return replace(problems, z=np.zeros(len(problems.z)), side_sums=np.array(sums))


def nu_value_problem(rows: MarginRows, nu: float) -> Problems:
    """Return the dual problem of a ν-regression."""
    once = value_problem(rows, 0.0)
    zeros = np.zeros(len(rows))
    return replace(
        once,
        rows=np.tile(once.rows, 2),
        ends=2 * once.ends,
        z=np.tile(once.z, 2),
        lowest=np.concatenate([zeros, once.lowest]),
        highest=np.concatenate([once.highest, zeros]),
        side_sums=np.array([nu * rows.weight.sum() / 2]),
    )


def one_class_problem(rows: MarginRows, nu: float) -> Problems:
    """Return the dual problem of a one-class machine: coefficients from 0 to the weights, with a fixed sum."""
    n, sums = len(rows), np.array([nu * rows.weight.sum()])
    zeros, ends = np.zeros(n), np.array([n], dtype=np.uint32)
    return Problems(
        np.arange(n, dtype=np.uint32), ends, zeros, zeros, rows.weight, 0.0, "one", side_sums=sums, is_one_class=True
    )


@dataclass(frozen=True)
class Solution:
    """The solution of one machine.

    Attributes
    ----------
    beta : ndarray
        Dual coefficients of the machine's rows.
    scores, slacks : ndarray
        Scores of these rows, and their margin violations.
    intercept, violation, objective, gap : float
        See the attributes of the estimators.
    penalty, epsilon : float
        C and the half-width of the tube; of ν machines, the values that give the same solution.
    n_iter : int
        Number of updates of two coefficients.
    is_bounded : bool
        False if the classes are not separable (hard margin).
    """

    beta: Floats
    scores: Floats
    slacks: Floats
    intercept: float
    violation: float
    objective: float
    gap: float
    penalty: float
    epsilon: float
    n_iter: int
    is_bounded: bool


@dataclass(frozen=True)
class Solver:
    """A kernel with its parameters, and the settings of the dual solver."""

    kernel: str | Callable[..., Any]
    gamma: float
    coef0: float
    degree: int
    tol: float
    cache_size: float
    max_iter: int
    shrinking: bool
    is_double: bool
    n_jobs: int

    def matrix(self, terms: Floats) -> tuple[str, Floats]:
        """Return the name of the engine's kernel and its input; a user's kernel function is evaluated on all pairs."""
        if not callable(self.kernel):
            return self.kernel, terms
        rows = np.ascontiguousarray(terms.T)
        values = np.ascontiguousarray(self.kernel(rows, rows), dtype=np.float64)
        if values.shape != (len(rows), len(rows)):
            raise ValueError(
                f"kernel returned an array of shape {values.shape} for {len(rows)} rows. It must return a value for "
                "every pair of rows, (n_rows, n_rows)."
            )
        if not np.isfinite(values).all():
            raise ValueError("kernel returned NaN or infinity. Return a finite number for every pair of rows.")
        return "precomputed", values

    def solve(self, rows: MarginRows, problems: Problems, penalties: Floats) -> list[list[Solution]]:
        """Solve all machines for ascending penalties; return the solutions of all machines for each penalty."""
        name, terms = self.matrix(rows.terms)
        if np.isinf(largest_kernel_value(name, self.gamma, self.coef0, self.degree, terms.T)):
            raise ValueError(KERNEL_OVERFLOWS)
        results = _engine.fit_machines(
            np.ascontiguousarray(terms),
            name,
            self.gamma,
            self.coef0,
            self.degree,
            problems.rows,
            problems.ends,
            np.ascontiguousarray(problems.z),
            problems.lowest,
            problems.highest,
            problems.insensitive,
            np.zeros(len(problems.ends)) if problems.side_sums is None else problems.side_sums,
            np.ascontiguousarray(penalties, dtype=np.float64),
            self.tol,
            self.cache_size,
            self.max_iter,
            self.shrinking,
            self.is_double,
            self.n_jobs,
        )
        with np.errstate(over="ignore", invalid="ignore"):  # of kernel values, which the caller refuses
            return [
                [_solution(problems, m, float(penalty), results[m][p]) for m in range(len(problems.ends))]
                for p, penalty in enumerate(penalties)
            ]


def _solution(problems: Problems, m: int, penalty: float, result: Any) -> Solution:
    beta, pull, intercept, violation, half_width, n_iter, is_bounded = result
    own = problems.of_machine(m)
    z, epsilon = problems.z[own], problems.insensitive
    bound = np.maximum(problems.highest[own], -problems.lowest[own])
    sums, charged = z - pull, epsilon
    if problems.is_one_class:
        intercept += half_width  # the level of the only side: that of the empty one is 0
    elif problems.side_sums is not None and problems.of_values:
        n = len(z) // 2
        beta, z, sums, bound = beta[:n] + beta[n:], z[:n], sums[:n], bound[:n]
        epsilon, charged = max(half_width, 0.0), 0.0
    elif problems.side_sums is not None:
        z = np.where(problems.lowest[own] < 0, -1.0, 1.0)
        penalty = 1.0 / -half_width if -half_width > _LEAST_MARGIN else 1.0
        beta, sums, intercept = beta * penalty, sums * penalty, intercept * penalty
    scores = sums + intercept
    if problems.of_values:
        slacks = np.maximum(np.abs(z - scores) - epsilon, 0.0)
    else:
        slacks = np.maximum(-scores if problems.is_one_class else 1.0 - z * scores, 0.0)
    square = float((beta * sums).sum())
    objective, size = square / 2 - float((z * beta).sum()), float(np.abs(beta).sum())
    if np.isfinite(penalty):
        primal = square / 2 + float((penalty * bound * slacks).sum())
        primal += size * intercept if problems.is_one_class else 0.0
    else:  # a feasible hard margin: the solution rescaled so that no row violates it
        margin = 1.0 - float(slacks.max(initial=0.0))
        primal = square / 2 / margin**2 if margin > 0 else np.inf
    return Solution(
        beta,
        scores,
        slacks,
        float(intercept),
        max(float(violation), 0.0),
        objective + charged * size,
        max(primal + (objective + epsilon * size), 0.0),
        penalty,
        float(epsilon),
        int(n_iter),
        bool(is_bounded),
    )


def machines_of(
    rows: MarginRows,
    problems: Problems,
    solutions: list[Solution],
    solver: Solver,
    design: Design | None,
    n_classes: int | None,
    breaks_ties: bool,
) -> FittedMachines:
    """Return the fitted model of some solutions."""
    places, values = [], []  # of the support vectors of each machine
    for m, solution in enumerate(solutions):
        used = np.flatnonzero(solution.beta)
        places.append(problems.rows_of(m)[used])
        values.append(problems.sign * solution.beta[used])
    at = np.unique(np.concatenate(places))
    k = n_classes or 1
    n_coefficients = {"one": 1, "ovo": k - 1, "ovr": k}[problems.strategy]  # of each support vector
    coefficients = np.zeros((n_coefficients, len(at)))
    pairs = zip(*np.triu_indices(k, 1), strict=True) if problems.strategy == "ovo" else None
    for m in range(len(solutions)):
        columns = np.searchsorted(at, places[m])
        position: Any = m
        if pairs is not None:
            i, j = next(pairs)
            position = np.where(rows.target[places[m]] == i, j - 1, i)
        coefficients[position, columns] = values[m]
    codes = rows.target[at].astype(np.intp) if n_classes else np.zeros(len(at), dtype=np.intp)
    support = np.flatnonzero(np.isin(rows.place, at))
    vector = np.searchsorted(at, rows.place[support])
    by_class = np.argsort(codes[vector], kind="stable")
    support, vector = support[by_class], vector[by_class]
    return FittedMachines(
        kernel=solver.kernel,
        gamma=solver.gamma,
        coef0=solver.coef0,
        degree=solver.degree,
        vectors=np.empty((len(at), 0)) if design is None else np.ascontiguousarray(rows.terms[:, at].T),
        support=support.astype(np.int64),
        vector=vector.astype(np.int64),
        fraction=rows.fraction[support],
        coefficients=coefficients,
        n_vectors=np.bincount(codes, minlength=k).astype(np.int32),
        design=design,
        strategy=problems.strategy,
        intercepts=np.array([problems.sign * solution.intercept for solution in solutions]),
        breaks_ties=breaks_ties,
        n_classes=None if n_classes is None else [n_classes],
    )


_MAX_ITER = 100
_LEAST_GRADIENT = 1e-5
_LEAST_STEP = 1e-10
_RIDGE = 1e-12


def fit_sigmoid(scores: Floats, is_positive: NDArray[np.bool_], weight: Floats) -> tuple[float, float]:
    """Return A and B of 1 / (1 + exp(A f + B)), fitted by Newton's method (Lin, Lin and Weng 2007).

    Targets are smoothed as Platt proposes: (n + 1) / (n + 2) and 1 / (n + 2) in place of 1 and 0.
    """
    above, below = float(weight[is_positive].sum()), float(weight[~is_positive].sum())
    target = np.where(is_positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))
    a, b = 0.0, float(log(np.array([(below + 1.0) / (above + 1.0)]))[0])
    value = _loss(scores, target, weight, a, b)
    for _ in range(_MAX_ITER):
        p = platt_scaled(scores[:, np.newaxis], np.array([[a, b]]))[:, 0]
        d1, d2 = (target - p) * weight, p * (1.0 - p) * weight
        g1, g2 = float((scores * d1).sum()), float(d1.sum())
        if max(abs(g1), abs(g2)) < _LEAST_GRADIENT:
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
