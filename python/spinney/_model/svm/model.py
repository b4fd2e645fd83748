"""What decides by margins: one score for each machine, and what follows from the scores."""

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
from spinney._model.file.codec import Field, array, integer, nullable, number, numbers, optional, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.model import DESIGN, Floats, Frame, ScoredModel, digest_of

_MACHINES: dict[str, Field] = {
    "strategy": word(("one", "ovo", "ovr")),
    "design": nullable(DESIGN),
    "intercepts": numbers(np.float64, "n_machines"),
    "calibration": optional(array("float64", "n_machines", 2)),
}


@dataclass(eq=False, repr=False, kw_only=True)
class FittedMargin(ScoredModel):
    """Machines that score rows by the side of a margin they lie on.

    With two classes there is one machine, whose positive side is the second class. With more, machines tell two classes
    apart each ("ovo", whose positive side is the first of the two), or one class from all others ("ovr").

    Attributes
    ----------
    design : Design or None
        The table as terms; None: the table holds kernel values.
    strategy : {"one", "ovo", "ovr"}
        What the machines are of.
    intercepts : ndarray of shape (n_machines,)
        What each machine adds to its sums.
    calibration : ndarray of shape (n_machines, 2), or None
        A and B of each machine's curve 1 / (1 + exp(A f + B)).
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

    @abstractmethod
    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows of terms, (n_rows, n_terms); (n_rows, n_machines)."""

    def rows(self, columns: _engine.Table) -> Floats:
        """Rows as the machines read them."""
        if self.design is None:
            return np.column_stack([np.asarray(columns.column(j)) for j in range(columns.n_columns)])
        return np.ascontiguousarray(self.design.matrix(columns).T)

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return self.scores_of(self.rows(columns), n_jobs)

    def class_scores(self, scores: Floats) -> Floats:
        """One score for each class: of pairs, its votes, and below 1/3 how clear they are."""
        if self.strategy != "ovo":
            return np.column_stack([-scores, scores]) if self.strategy == "one" else scores
        assert self._n_classes is not None
        k = self._n_classes[0]
        votes, clear = np.zeros((len(scores), k)), np.zeros((len(scores), k))
        for m, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
            clear[:, i] += scores[:, m]
            clear[:, j] -= scores[:, m]
            wins = scores[:, m] > 0
            votes[:, i] += wins
            votes[:, j] += ~wins
        return np.asarray(votes + clear / (3 * (np.abs(clear) + 1)))

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, 1)."""
        if self.strategy == "one":
            return (scores > 0).astype(np.intp)
        return np.asarray(self.class_scores(scores).argmax(axis=1)[:, np.newaxis])

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into values, (n_rows, 1), or class shares, (n_rows, n_classes)."""
        if self._n_classes is None:
            return scores
        if self.calibration is None:
            raise ValueError(
                "This model has no class probabilities: it was fitted without them. Use predict, or fit with "
                "probability=True."
            )
        shares = curve(scores, self.calibration)
        if self.strategy == "one":
            return np.column_stack([1 - shares, shares])
        if self.strategy == "ovo":
            return join_pairs(shares, self._n_classes[0])
        total = shares.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / shares.shape[1]))

    # ---- files -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _arrays(self) -> list[NDArray[Any]]:
        """All numbers that the scores rest on."""

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Turn back what `to_header` gives."""
        if trees or frame.n_outputs != 1:
            refuse("is damaged: it has trees or outputs that its model cannot have")
        n_classes = frame.n_classes
        k = 0 if n_classes is None else n_classes[0]
        known = {"schema": frame.schema, "n_terms": 0, "n_sides": max(1, k)}
        found = cls.saved.from_header(header, **known)
        strategy, n_machines = found["strategy"], len(found["intercepts"])
        wanted = {"one": 1, "ovo": k * (k - 1) // 2, "ovr": k}[strategy]
        if n_machines != wanted or (strategy == "one" and k not in (0, 2)) or (strategy != "one" and k < 3):
            refuse("is damaged: its machines do not fit its classes")
        if n_classes is None and "calibration" in found:
            refuse("is damaged: its probabilities are unusable")
        cls._check(found, frame)
        return cls(**found, n_classes=n_classes)

    @classmethod
    @abstractmethod
    def _check(cls, found: dict[str, Any], frame: Frame) -> None:
        """Refuse what does not go together."""

    def identity(self) -> bytes:
        """Hash of all numbers."""
        design = {} if self.design is None else self.design.arrays
        calibration = [] if self.calibration is None else [self.calibration]
        return digest_of(self.strategy, self.intercepts, *self._arrays(), *design.values(), *calibration)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self}


def plane_scores(rows: Floats, planes: Floats, intercepts: Floats, n_jobs: int) -> Floats:
    """Add up the terms of each row times the weights of each plane, and its intercept."""
    n = len(planes)
    parts = np.repeat(np.arange(n, dtype=np.int32)[:, np.newaxis], 4, axis=1)
    parts[:, 3] = 1
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
        np.ascontiguousarray(parts),
        intercepts,
        n_jobs,
    )


_LEAST = 1e-7  # share of a pair: none is certain
_ROUNDS = 100


def curve(scores: Floats, calibration: Floats) -> Floats:
    """Share of the class on the positive side of each machine: 1 / (1 + exp(A f + B))."""
    along = scores * calibration[:, 0] + calibration[:, 1]
    small = exp(-np.abs(along))
    return np.asarray(np.where(along >= 0, small, 1.0) / (1.0 + small))


def join_pairs(shares: Floats, n_classes: int) -> Floats:
    """Class shares from those of the first class of each pair: Wu, Lin and Weng (2004), their second method.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_pairs)
        In the order (0, 1), (0, 2), ..., (1, 2), ...
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Rows sum to 1.
    """
    n_rows = len(shares)
    first, second = np.triu_indices(n_classes, 1)
    r = np.zeros((n_rows, n_classes, n_classes))
    r[:, first, second] = np.clip(shares, _LEAST, 1 - _LEAST)
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
    """Set each share in turn to where the others want it."""
    for t in range(p.shape[1]):
        step = (total - product[:, t]) / q[:, t, t]
        p[:, t] += step
        grown = 1 + step
        total = (total + step * (step * q[:, t, t] + 2 * product[:, t])) / grown / grown
        product = (product + step[:, np.newaxis] * q[:, t, :]) / grown[:, np.newaxis]
        p = p / grown[:, np.newaxis]
    return p


KERNELS = ("linear", "poly", "rbf", "sigmoid")


@dataclass(eq=False, repr=False, kw_only=True)
class FittedMachines(FittedMargin):
    """Kernel machines.

    Attributes
    ----------
    kernel : str or callable
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two arrays of rows.
    gamma, coef0, degree : float, float, int
        Its parameters.
    vectors : ndarray of shape (n_vectors, n_terms)
        Support vectors, those of a class together; none if kernel values are given.
    support : ndarray of shape (n_vectors,)
        Row of the training table that each is.
    coefficients : ndarray of shape (n_classes - 1, n_vectors), (n_classes, n_vectors) or (1, n_vectors)
        Their coefficients. Of pairs of classes: a vector of class i has that of its machine with class j in row j, or
        j - 1 if j is above i.
    n_support : ndarray of shape (n_classes,) or (1,)
        Support vectors of each class.
    """

    kind = "kernel_machines"
    noun = "support vector machine"
    saved = saved_fields(
        **_MACHINES,
        kernel=word((*KERNELS, "precomputed")),
        gamma=number(below=np.inf),
        coef0=number(below=np.inf),
        degree=integer(least=0, below=2**31),
        vectors=array("float64", None, "n_terms"),
        support=array("int64", "n_vectors", least=0, key="rows"),
        coefficients=array("float64", None, "n_vectors"),
        n_support=array("int32", "n_sides", least=0),
    )

    kernel: str | Callable[..., Any]
    gamma: float
    coef0: float
    degree: int
    vectors: Floats
    support: NDArray[np.int64]
    coefficients: Floats
    n_support: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<FittedMachines: {self.n_machines} machines, {self.coefficients.shape[1]} support vectors>"

    @property
    def parts(self) -> NDArray[np.int32]:
        """Machine, row of the coefficients, first vector and number of vectors of each part of the sums."""
        n = self.coefficients.shape[1]
        if self.strategy != "ovo":
            return np.array([[m, m, 0, n] for m in range(self.n_machines)], dtype=np.int32)
        first = np.concatenate([[0], np.cumsum(self.n_support)])
        found = []
        for m, (i, j) in enumerate(zip(*np.triu_indices(len(self.n_support), 1), strict=True)):
            found.append([m, j - 1, first[i], self.n_support[i]])
            found.append([m, i, first[j], self.n_support[j]])
        return np.array(found, dtype=np.int32)

    @property
    def planes(self) -> Floats:
        """Weights of the terms, (n_machines, n_terms), if the kernel is linear."""
        found = np.zeros((self.n_machines, self.vectors.shape[1]))
        for m, row, first, n in self.parts.tolist():
            used = slice(first, first + n)
            found[m] += (self.coefficients[row, used, np.newaxis] * self.vectors[used]).sum(axis=0)
        return found

    def rows(self, columns: _engine.Table) -> Floats:
        """Rows as the machines read them: terms, or kernel values with the support vectors."""
        if self.design is not None:
            return super().rows(columns)
        return np.column_stack([np.asarray(columns.column(j)) for j in self.support.tolist()])

    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        if not self.coefficients.shape[1] or not len(rows):
            return np.tile(self.intercepts, (len(rows), 1))
        if self.kernel == "linear":
            return plane_scores(rows, self.planes, self.intercepts, n_jobs)
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
            self.parts,
            self.intercepts,
            n_jobs,
        )

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return all of it."""
        if callable(self.kernel):
            raise TypeError("The kernel is a function, which a model file cannot hold. Pickle the model instead.")
        return super().to_header()

    @classmethod
    def _check(cls, found: dict[str, Any], frame: Frame) -> None:
        design, coefficients, n = found["design"], found["coefficients"], len(found["support"])
        if (found["kernel"] == "precomputed") != (design is None):
            refuse("is damaged: its kernel is unusable")
        k = len(found["n_support"])
        fits = len(coefficients) == {"one": 1, "ovo": k - 1, "ovr": k}[found["strategy"]]
        if not fits or found["n_support"].sum() != n or (design is not None and len(found["vectors"]) != n):
            refuse("is damaged: its support vectors and their coefficients do not go together")
        if design is None and n and found["support"].max() >= frame.schema.n_features:
            refuse("is damaged: a support vector is of a row that it cannot have")

    def _arrays(self) -> list[NDArray[Any]]:
        kernel = np.frombuffer(str(self.kernel).encode(), dtype=np.uint8)
        parameters = np.array([self.gamma, self.coef0, self.degree])
        return [kernel, parameters, self.vectors, self.coefficients, self.n_support]


@dataclass(eq=False, repr=False, kw_only=True)
class FittedPlanes(FittedMargin):
    """One plane for each machine.

    Attributes
    ----------
    planes : ndarray of shape (n_machines, n_terms)
        Weights of the terms.
    """

    kind = "planes"
    noun = "hyperplane"
    saved = saved_fields(**_MACHINES, planes=array("float64", "n_machines", "n_terms"))

    planes: Floats

    def __repr__(self) -> str:
        return f"<FittedPlanes: {self.n_machines} planes of {self.planes.shape[1]} terms>"

    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return plane_scores(rows, self.planes, self.intercepts, n_jobs)

    @classmethod
    def _check(cls, found: dict[str, Any], frame: Frame) -> None:
        if found["design"] is None or found["strategy"] == "ovo":
            refuse("is damaged: its planes and its terms do not go together")

    def _arrays(self) -> list[NDArray[Any]]:
        return [self.planes]
