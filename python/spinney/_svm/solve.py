"""Kernel machines by the engine: their dual problems, and what a solution is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.design import Design
from spinney._data.reproducible import exp, log
from spinney._model.svm.model import FittedMachines, curve
from spinney._svm.margin_estimator import MarginRows

Floats = NDArray[np.float64]
_LEAST_MARGIN = 1e-12  # below it the classes lie on top of each other, and nothing is scaled


@dataclass(frozen=True)
class Problems:
    """The duals of all machines, end to end; bounds are those of C = 1.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Rows of the machines, the first machine's first.
    ends : ndarray of shape (n_machines,)
        Where each machine's rows end.
    z, lowest, highest : ndarray of shape (n,)
        Target and bounds of each of the rows.
    insensitive : float
        Half the width of the tube in which errors do not count.
    strategy : {"one", "ovo", "ovr"}
        What the machines are of.
    sign : float
        -1 if the machine's positive side is to be the other.
    of_values : bool
        Whether targets are values; else they are sides.
    side_sums : ndarray of shape (n_machines,), or None
        Of ν machines, what the coefficients of each side come to. Of values each row is there twice, first on the upper
        side; z of sides is then 0.
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

    def of_machine(self, m: int) -> slice:
        """Where one machine's rows are."""
        return slice(int(self.ends[m - 1]) if m else 0, int(self.ends[m]))

    def rows_of(self, m: int) -> NDArray[np.uint32]:
        """Rows of one machine, each once."""
        found = self.rows[self.of_machine(m)]
        return found[: len(found) // 2] if self.of_values and self.side_sums is not None else found


def class_problems(rows: MarginRows, by_class: Floats, multi_class: str, cost: Floats | None) -> Problems:
    """Return the duals that tell classes apart, which weigh as `by_class` says, and their mistakes as the costs say."""
    n_classes = len(by_class)
    codes = rows.target.astype(np.intp)
    weight = rows.weight * by_class[codes]
    dear = 1.0 - np.eye(n_classes) if cost is None else cost
    parts: list[tuple[NDArray[np.uint32], Floats]] = []  # rows, and their bounds with the signs of their sides
    if n_classes == 2 or multi_class == "ovo":
        strategy = "one" if n_classes == 2 else "ovo"
        places = [np.flatnonzero(codes == k).astype(np.uint32) for k in range(n_classes)]
        own = [weight[where] for where in places]
        for i, j in zip(*np.triu_indices(n_classes, 1), strict=True):
            bounds = np.concatenate([own[i] * dear[i, j], -(own[j] * dear[j, i])])
            parts.append((np.concatenate([places[i], places[j]]), bounds))
    else:
        strategy = "ovr"
        everyone = np.arange(len(rows), dtype=np.uint32)
        for k in range(n_classes):
            price = 1.0 if cost is None else np.where(codes == k, cost[k].sum(), cost[:, k][codes])
            parts.append((everyone, np.where(codes == k, weight * price, -(weight * price))))
    signed = np.concatenate([part[1] for part in parts])
    ends = np.cumsum([len(part[0]) for part in parts]).astype(np.uint32)
    return Problems(
        np.concatenate([part[0] for part in parts]),
        ends,
        np.copysign(1.0, signed),  # which a bound of 0 has a sign for too
        np.minimum(signed, 0.0),
        np.maximum(signed, 0.0),
        0.0,
        strategy,
        -1.0 if n_classes == 2 else 1.0,
    )


def value_problem(rows: MarginRows, epsilon: float) -> Problems:
    """Return the dual of a regression."""
    n = len(rows)
    ends = np.array([n], dtype=np.uint32)
    return Problems(
        np.arange(n, dtype=np.uint32), ends, rows.target, -rows.weight, rows.weight, epsilon, "one", of_values=True
    )


def nu_class_problems(rows: MarginRows, nu: float, classes: NDArray[Any]) -> Problems:
    """Return the duals that tell pairs of classes apart with a share nu of the rows within the margin or at it."""
    found = class_problems(rows, np.ones(len(classes)), "ovo", None)
    sums = []
    for m, (i, j) in enumerate(zip(*np.triu_indices(len(classes), 1), strict=True)):
        own = found.of_machine(m)
        above, below = float(found.highest[own].sum()), float(-found.lowest[own].sum())
        most, wanted = min(above, below), nu * (above + below) / 2
        if wanted > most * (1 + 1e-12):
            one, other = classes.tolist()[i], classes.tolist()[j]
            raise ValueError(
                f"nu={nu:g} asks for more of the smaller of the classes {one!r} and {other!r} than there is. Pass a nu "
                f"of at most {2 * most / (above + below):.4g}, or weights of the rows."
            )
        sums.append(min(wanted, most))
    return replace(found, z=np.zeros(len(found.z)), side_sums=np.array(sums))


def nu_value_problem(rows: MarginRows, nu: float) -> Problems:
    """Return the dual of a regression with a share nu of the rows outside the tube or at its edge."""
    once = value_problem(rows, 0.0)
    nothing = np.zeros(len(rows))
    return replace(
        once,
        rows=np.tile(once.rows, 2),
        ends=2 * once.ends,
        z=np.tile(once.z, 2),
        lowest=np.concatenate([nothing, once.lowest]),
        highest=np.concatenate([once.highest, nothing]),
        side_sums=np.array([nu * rows.weight.sum() / 2]),
    )


@dataclass(frozen=True)
class Solution:
    """One machine, solved.

    Attributes
    ----------
    beta : ndarray
        Coefficients of the machine's rows.
    scores : ndarray
        What the machine says of them.
    intercept, violation, objective, gap : float
        See the attributes of the estimators.
    penalty, epsilon : float
        C and half the width of the tube; of ν machines those that would give the same solution.
    n_iter : int
        Steps of two rows each.
    is_bounded : bool
        False: no margin separates the rows.
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
    """A kernel with its parameters, and how duals are solved."""

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
        """Return the engine's kernel and what it works on; a function's values are computed here, all of them."""
        if not callable(self.kernel):
            return self.kernel, terms
        rows = np.ascontiguousarray(terms.T)
        found = np.ascontiguousarray(self.kernel(rows, rows), dtype=np.float64)
        if found.shape != (len(rows), len(rows)):
            raise ValueError(
                f"kernel gave an array of shape {found.shape} for {len(rows)} rows and themselves. It must return a "
                "value for every pair, (n_rows, n_rows)."
            )
        if not np.isfinite(found).all():
            raise ValueError("kernel gave values that are not finite. Return a finite number for every pair of rows.")
        return "precomputed", found

    def solve(self, rows: MarginRows, problems: Problems, penalties: Floats) -> list[list[Solution]]:
        """Solve all machines for ascending penalties; for each penalty, a solution per machine."""
        name, terms = self.matrix(rows.terms)
        found = _engine.fit_machines(
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
        return [
            [_solution(problems, m, float(penalty), found[m][p]) for m in range(len(problems.ends))]
            for p, penalty in enumerate(penalties)
        ]


def _solution(problems: Problems, m: int, penalty: float, found: Any) -> Solution:
    beta, pull, intercept, violation, half_width, n_iter, is_bounded = found
    own = problems.of_machine(m)
    z, epsilon = problems.z[own], problems.insensitive
    bound = np.maximum(problems.highest[own], -problems.lowest[own])
    sums, charged = z - pull, epsilon
    if problems.side_sums is not None and problems.of_values:
        n = len(z) // 2
        beta, z, sums, bound = beta[:n] + beta[n:], z[:n], sums[:n], bound[:n]
        epsilon, charged = max(half_width, 0.0), 0.0
    elif problems.side_sums is not None:
        z = np.where(problems.lowest[own] < 0, -1.0, 1.0)
        penalty = 1.0 / -half_width if -half_width > _LEAST_MARGIN else 1.0
        beta, sums, intercept = beta * penalty, sums * penalty, intercept * penalty
    scores = sums + intercept
    slacks = np.maximum(np.abs(z - scores) - epsilon, 0.0) if problems.of_values else np.maximum(1.0 - z * scores, 0.0)
    square = float((beta * sums).sum())
    objective, size = square / 2 - float((z * beta).sum()), float(np.abs(beta).sum())
    if np.isfinite(penalty):
        primal = square / 2 + float((penalty * bound * slacks).sum())
    else:  # a plane that all rows keep their distance from: the one found, moved away from the worst of them
        room = 1.0 - float(slacks.max(initial=0.0))
        primal = square / 2 / room**2 if room > 0 else np.inf
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
) -> FittedMachines:
    """Return what predicts."""
    places, values = [], []  # of the support vectors of each machine
    for m, solution in enumerate(solutions):
        used = np.flatnonzero(solution.beta)
        places.append(problems.rows_of(m)[used])
        values.append(problems.sign * solution.beta[used])
    at = np.unique(np.concatenate(places))
    k = n_classes or 1
    n_lines = {"one": 1, "ovo": k - 1, "ovr": k}[problems.strategy]
    coefficients = np.zeros((n_lines, len(at)))
    pairs = zip(*np.triu_indices(k, 1), strict=True) if problems.strategy == "ovo" else None
    for m in range(len(solutions)):
        columns = np.searchsorted(at, places[m])
        lines: Any = m
        if pairs is not None:
            i, j = next(pairs)
            lines = np.where(rows.target[places[m]] == i, j - 1, i)
        coefficients[lines, columns] = values[m]
    codes = rows.target[at].astype(np.intp) if n_classes else np.zeros(len(at), dtype=np.intp)
    return FittedMachines(
        kernel=solver.kernel,
        gamma=solver.gamma,
        coef0=solver.coef0,
        degree=solver.degree,
        vectors=np.empty((len(at), 0)) if design is None else np.ascontiguousarray(rows.terms[:, at].T),
        support=rows.first[at].astype(np.int64),
        coefficients=coefficients,
        n_support=np.bincount(codes, minlength=k).astype(np.int32),
        design=design,
        strategy=problems.strategy,
        intercepts=np.array([problems.sign * solution.intercept for solution in solutions]),
        n_classes=None if n_classes is None else [n_classes],
    )


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
