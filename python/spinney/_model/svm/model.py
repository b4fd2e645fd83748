"""Fitted support vector machines and hyperplanes: one score for each binary machine, and predictions from these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.design import Design
from spinney._data.reproducible import exp
from spinney._data.types import Floats
from spinney._model.file.codec import (
    Field,
    array,
    flag,
    integer,
    nullable,
    number,
    numbers,
    optional,
    saved_fields,
    word,
)
from spinney._model.file.container import refuse
from spinney._model.model import DESIGN, ModelSpec, ScoredModel, digest_of

_MACHINES: dict[str, Field] = {
    "strategy": word(("one", "ovo", "ovr")),
    "design": nullable(DESIGN),
    "intercepts": numbers(np.float64, "n_machines"),
    "calibration": optional(array("float64", "n_machines", 2)),
}


@dataclass(eq=False, repr=False, kw_only=True)
class FittedMargin(ScoredModel):
    """Binary machines that score rows by their signed distance from a decision boundary.

    With two classes there is one machine, whose positive class is the second. With more, each machine separates two
    classes ("ovo", whose positive class is the first of the two), or one class from all others ("ovr").

    Attributes
    ----------
    design : Design or None
        How columns become terms; None if the table holds kernel values.
    strategy : {"one", "ovo", "ovr"}
        Which classes the machines separate.
    intercepts : ndarray of shape (n_machines,)
        Intercept of each machine.
    calibration : ndarray of shape (n_machines, 2), or None
        Platt scaling: A and B of each machine's curve 1 / (1 + exp(A f + B)).
    """

    attribute = "margin_"

    takes_priors = False

    design: Design | None
    strategy: str
    intercepts: Floats
    n_classes: InitVar[list[int] | None]
    calibration: Floats | None = None

    def __post_init__(self, n_classes: list[int] | None) -> None:
        super().__init__(n_classes, 1)

    @property
    def n_machines(self) -> int:
        """Number of machines."""
        return len(self.intercepts)

    # ---- predicting ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def term_planes(self) -> Floats:
        """Normal vectors of the hyperplanes, (n_machines, n_terms), in scaled units."""

    @property
    def raw_planes(self) -> tuple[Floats, Floats]:
        """Coefficients, (n_machines, n_terms), and intercepts of the hyperplanes, in the units of the columns."""
        assert self.design is not None
        coefficients = self.term_planes / self.design.scale
        coefficients.flags.writeable = False  # a copy: changing it would not change the model
        return coefficients, self.intercepts - (coefficients * self.design.center).sum(axis=1)

    @abstractmethod
    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows of terms, (n_rows, n_terms); (n_rows, n_machines)."""

    def rows(self, columns: _engine.Table) -> Floats:
        """Return rows as the machines read them."""
        if self.design is None:
            return columns.block(np.arange(columns.n_columns, dtype=np.int32), True)
        return self.design.matrix(columns, by_row=True)

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return self.scores_of(self.rows(columns), n_jobs)

    def class_scores(self, scores: Floats) -> Floats:
        """Return one score for each class: for pairs, its votes plus a tie-break below 1/3 by the sum of its scores."""
        if self.strategy != "ovo":
            return np.column_stack([-scores, scores]) if self.strategy == "one" else scores
        votes, sums = self._votes(scores, scores >= 0)
        return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))

    def _votes(self, scores: Floats, wins: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return the votes of the pairs for each class, and the sum of their scores, (n_rows, n_classes).

        `wins` is whether the first class of a pair has its vote. A score of 0 is a vote for the second class in
        predictions, and for the first in the scores of classes, as in scikit-learn.
        """
        assert self._n_classes is not None
        k = self._n_classes[0]
        votes, sums = np.zeros((len(scores), k)), np.zeros((len(scores), k))
        for m, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
            sums[:, i] += scores[:, m]
            sums[:, j] -= scores[:, m]
            votes[:, i] += wins[:, m]
            votes[:, j] += ~wins[:, m]
        return votes, sums

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Codes of the predicted classes, (n_rows, 1)."""
        if self.strategy == "one":
            return (scores > 0).astype(np.intp)
        return np.asarray(self.class_scores(scores).argmax(axis=1)[:, np.newaxis])

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into numbers, (n_rows, 1), or class probabilities, (n_rows, n_classes)."""
        if self._n_classes is None:
            return scores
        if self.calibration is None:
            raise ValueError(
                "This model has no class probabilities: it was fitted without them. Use predict, or fit with "
                "probability=True."
            )
        proba = platt_scaled(scores, self.calibration)
        if self.strategy == "one":
            return np.column_stack([1 - proba, proba])
        if self.strategy == "ovo":
            return couple_pairs(proba, self._n_classes[0])
        total = proba.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, proba / np.where(total > 0, total, 1), 1 / proba.shape[1]))

    # ---- files -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _arrays(self) -> list[NDArray[Any]]:
        """Return all numbers that determine the scores."""

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a header."""
        if trees or spec.n_outputs != 1:
            refuse("is damaged: its number of trees or outputs is impossible")
        n_classes = spec.n_classes
        k = 0 if n_classes is None else n_classes[0]
        known = {"schema": spec.schema, "n_terms": 0, "n_sides": max(1, k)}
        found = cls.saved.from_header(header, **known)
        strategy, n_machines = found["strategy"], len(found["intercepts"])
        wanted = {"one": 1, "ovo": k * (k - 1) // 2, "ovr": k}[strategy]
        if n_machines != wanted or (strategy == "one" and k not in (0, 2)) or (strategy != "one" and k < 3):
            refuse("is damaged: its machines do not fit its classes")
        if n_classes is None and "calibration" in found:
            refuse("is damaged: its probabilities are unusable")
        cls._check(found, spec)
        return cls(**found, n_classes=n_classes)

    @classmethod
    @abstractmethod
    def _check(cls, found: dict[str, Any], spec: ModelSpec) -> None:
        """Refuse entries that do not fit together."""

    def identity(self) -> bytes:
        """Hash of all numbers."""
        design = {} if self.design is None else self.design.arrays
        calibration = [] if self.calibration is None else [self.calibration]
        return digest_of(self.strategy, self.intercepts, *self._arrays(), *design.values(), *calibration)


def plane_scores(rows: Floats, planes: Floats, intercepts: Floats, n_jobs: int) -> Floats:
    """Return the scores of rows by hyperplanes, (n_rows, n_planes)."""
    n = len(planes)
    terms = np.repeat(np.arange(n, dtype=np.int32)[:, np.newaxis], 4, axis=1)
    terms[:, 3] = 1
    if not n or not len(rows):
        return np.tile(intercepts, (len(rows), 1))
    return _engine.decisions(
        np.ascontiguousarray(rows),
        np.ascontiguousarray(planes),
        "linear",
        1.0,
        0.0,
        1,
        np.eye(n),
        np.ascontiguousarray(terms),
        intercepts,
        n_jobs,
    )


_MIN_PROBABILITY = 1e-7  # of a class of a pair
_ROUNDS = 100


def platt_scaled(scores: Floats, calibration: Floats) -> Floats:
    """Probability of the positive class of each machine: 1 / (1 + exp(A f + B))."""
    exponent = scores * calibration[:, 0] + calibration[:, 1]
    small = exp(-np.abs(exponent))
    return np.asarray(np.where(exponent >= 0, small, 1.0) / (1.0 + small))


def couple_pairs(proba: Floats, n_classes: int) -> Floats:
    """Combine probabilities of pairs of classes into class probabilities: Wu, Lin and Weng (2004), second method.

    Parameters
    ----------
    proba : ndarray of shape (n_rows, n_pairs)
        Probability of the first class of each pair, in the order (0, 1), (0, 2), ..., (1, 2), ...
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Rows sum to 1.
    """
    n_rows = len(proba)
    first, second = np.triu_indices(n_classes, 1)
    r = np.zeros((n_rows, n_classes, n_classes))
    r[:, first, second] = np.clip(proba, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    r[:, second, first] = 1 - r[:, first, second]
    q = -np.transpose(r, (0, 2, 1)) * r
    diagonal = (r**2).sum(axis=1)
    q[:, np.arange(n_classes), np.arange(n_classes)] = diagonal
    p = np.full((n_rows, n_classes), 1.0 / n_classes)
    moving = np.arange(n_rows)
    for _ in range(max(_ROUNDS, n_classes)):
        product = (q[moving] * p[moving][:, np.newaxis, :]).sum(axis=2)
        total = (p[moving] * product).sum(axis=1)
        off = np.abs(product - total[:, np.newaxis]).max(axis=1)
        left = off >= 0.005 / n_classes
        moving, product, total = moving[left], product[left], total[left]
        if not len(moving):
            break
        p[moving] = _one_round(q[moving], p[moving], product, total)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _one_round(q: Floats, p: Floats, product: Floats, total: Floats) -> Floats:
    """Update the probability of each class in turn."""
    for t in range(p.shape[1]):
        step = (total - product[:, t]) / q[:, t, t]
        p[:, t] += step
        grown = 1 + step
        total = (total + step * (step * q[:, t, t] + 2 * product[:, t])) / grown / grown
        product = (product + step[:, np.newaxis] * q[:, t, :]) / grown[:, np.newaxis]
        p = p / grown[:, np.newaxis]
    return p


KERNELS = ("linear", "poly", "rbf", "sigmoid")
MAX_DEGREE = 1000  # of fits and of files: each kernel value takes so many multiplications


def largest_kernel_value(kernel: str, gamma: float, coef0: float, degree: int, rows: Floats) -> float:
    """Return the size of the largest kernel value of some rows, infinity if it overflows; 1 for bounded kernels."""
    if kernel not in ("linear", "poly") or not len(rows):
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        products = (rows * rows).sum(axis=1)  # no product of two rows is larger than both squares
        largest = float(np.abs(products if kernel == "linear" else (gamma * products + coef0) ** degree).max())
    return largest if np.isfinite(largest) else np.inf


@dataclass(eq=False, repr=False, kw_only=True)
class FittedMachines(FittedMargin):
    """Kernel support vector machines.

    Attributes
    ----------
    kernel : str or callable
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two arrays of rows.
    gamma, coef0, degree : float, float, int
        Parameters of the kernel.
    vectors : ndarray of shape (n_vectors, n_terms)
        Distinct support vectors, sorted by class; empty if the table holds kernel values.
    support : ndarray of shape (n_support,)
        Training rows that are support vectors, equal ones included, by class and row number.
    vector : ndarray of shape (n_support,)
        Index of the vector that each of these rows is equal to.
    fraction : ndarray of shape (n_support,)
        Weight of each of these rows as a fraction of the weight of all rows equal to it.
    coefficients : ndarray of shape (n_classes - 1, n_vectors), (n_classes, n_vectors) or (1, n_vectors)
        Dual coefficients. With "ovo", row j, or j - 1 if j is above i, holds the coefficient of a support vector of
        class i in the machine of the classes i and j.
    n_vectors : ndarray of shape (n_classes,) or (1,)
        Number of vectors of each class.
    breaks_ties : bool
        Whether the class with the highest sum of scores is predicted of those with equal votes; else the first.
    """

    kind = "kernel_machines"
    noun = "support vector machine"
    saved = saved_fields(
        **_MACHINES,
        kernel=word((*KERNELS, "precomputed")),
        gamma=number(0.0, below=np.inf),
        coef0=number(below=np.inf),
        degree=integer(least=0, most=MAX_DEGREE),
        vectors=array("float64", None, "n_terms"),
        coefficients=array("float64", None, None),
        n_vectors=array("int32", "n_sides", least=0),
        breaks_ties=flag(),
        support=array("int64", "n_support", least=0, key="rows"),
        vector=array("int64", "n_support", least=0),
        fraction=array("float64", "n_support", above=0, most=1),
    )

    kernel: str | Callable[..., Any]
    gamma: float
    coef0: float
    degree: int
    vectors: Floats
    support: NDArray[np.int64]
    vector: NDArray[np.int64]
    fraction: Floats
    coefficients: Floats
    n_vectors: NDArray[np.int32]
    breaks_ties: bool

    def __repr__(self) -> str:
        return f"<FittedMachines: {self.n_machines} machines, {self.coefficients.shape[1]} support vectors>"

    @property
    def terms(self) -> NDArray[np.int32]:
        """Sums that scores consist of: machine, row of the coefficients, first vector and number of vectors."""
        n = self.coefficients.shape[1]
        if self.strategy != "ovo":
            return np.array([[m, m, 0, n] for m in range(self.n_machines)], dtype=np.int32)
        first = np.concatenate([[0], np.cumsum(self.n_vectors)])
        found = []
        for m, (i, j) in enumerate(zip(*np.triu_indices(len(self.n_vectors), 1), strict=True)):
            found.append([m, j - 1, first[i], self.n_vectors[i]])
            found.append([m, i, first[j], self.n_vectors[j]])
        return np.array(found, dtype=np.int32)

    @property
    def term_planes(self) -> Floats:
        """Normal vectors, (n_machines, n_terms), in scaled units, if the kernel is linear."""
        found = np.zeros((self.n_machines, self.vectors.shape[1]))
        for m, row, first, n in self.terms.tolist():
            used = slice(first, first + n)
            found[m] += (self.coefficients[row, used, np.newaxis] * self.vectors[used]).sum(axis=0)
        return found

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Codes of the predicted classes, (n_rows, 1)."""
        if self.strategy != "ovo" or self.breaks_ties:
            return super().score_codes(scores)
        return np.asarray(self._votes(scores, scores > 0)[0].argmax(axis=1)[:, np.newaxis])

    def rows(self, columns: _engine.Table) -> Floats:
        """Return rows as the machines read them: terms, or kernel values with the support vectors."""
        if self.design is not None:
            return super().rows(columns)
        return np.column_stack([np.asarray(columns.column(j)) for j in self.vector_rows.tolist()])

    @property
    def vector_rows(self) -> NDArray[np.int64]:
        """Training row of each vector; the first of equal rows."""
        rows = np.empty(self.coefficients.shape[1], dtype=np.int64)
        rows[self.vector[::-1]] = self.support[::-1]
        return rows

    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        if not self.coefficients.shape[1] or not len(rows):
            return np.tile(self.intercepts, (len(rows), 1))
        if self.kernel == "linear":
            return plane_scores(rows, self.term_planes, self.intercepts, n_jobs)
        kernel = self.kernel
        if callable(kernel):
            rows, kernel = np.ascontiguousarray(kernel(rows, self.vectors), dtype=np.float64), "precomputed"
        return _engine.decisions(
            np.ascontiguousarray(rows),
            self.vectors,
            kernel,
            self.gamma,
            self.coef0,
            self.degree,
            self.coefficients,
            self.terms,
            self.intercepts,
            n_jobs,
        )

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return the header entries of this kind of model."""
        if callable(self.kernel):
            raise TypeError("The kernel is a function, which a model file cannot hold. Pickle the model instead.")
        return super().to_header()

    @classmethod
    def _check(cls, found: dict[str, Any], spec: ModelSpec) -> None:
        design, coefficients, n = found["design"], found["coefficients"], found["coefficients"].shape[1]
        if (found["kernel"] == "precomputed") != (design is None):
            refuse("is damaged: its kernel is unusable")
        k = len(found["n_vectors"])
        fits = len(coefficients) == {"one": 1, "ovo": k - 1, "ovr": k}[found["strategy"]]
        if not fits or found["n_vectors"].sum() != n or (design is not None and len(found["vectors"]) != n):
            refuse("is damaged: its coefficients do not fit its support vectors")
        if not np.array_equal(np.unique(found["vector"]), np.arange(n)):
            refuse("is damaged: its support vectors are not training rows")
        shape = (found["kernel"], found["gamma"], found["coef0"], found["degree"])
        with np.errstate(over="ignore"):
            largest = np.abs(coefficients).sum(axis=1) * largest_kernel_value(*shape, found["vectors"])
        if not np.isfinite(largest).all():
            refuse("is damaged: the sums of its kernel values overflow")
        if design is None and n and found["support"].max() >= spec.schema.n_features:
            refuse("is damaged: row numbers of its support vectors exceed the number of training rows")

    def _arrays(self) -> list[NDArray[Any]]:
        kernel = np.frombuffer(str(self.kernel).encode(), dtype=np.uint8)
        parameters = np.array([self.gamma, self.coef0, self.degree])
        return [kernel, parameters, self.vectors, self.coefficients, self.n_vectors]


@dataclass(eq=False, repr=False, kw_only=True)
class FittedPlanes(FittedMargin):
    """Linear machines: one hyperplane each.

    Attributes
    ----------
    planes : ndarray of shape (n_machines, n_terms)
        Normal vectors: coefficients of the terms.
    """

    kind = "planes"
    noun = "hyperplane"
    saved = saved_fields(**_MACHINES, planes=array("float64", "n_machines", "n_terms"))

    planes: Floats

    def __repr__(self) -> str:
        return f"<FittedPlanes: {self.n_machines} planes of {self.planes.shape[1]} terms>"

    @property
    def term_planes(self) -> Floats:
        """Normal vectors, (n_machines, n_terms), in scaled units."""
        return self.planes

    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return plane_scores(rows, self.planes, self.intercepts, n_jobs)

    @classmethod
    def _check(cls, found: dict[str, Any], spec: ModelSpec) -> None:
        if found["design"] is None or found["strategy"] == "ovo":
            refuse("is damaged: its planes do not fit its terms")

    def _arrays(self) -> list[NDArray[Any]]:
        return [self.planes]
