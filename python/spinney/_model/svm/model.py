"""What decides by margins: one score for each machine, and what follows from the scores."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.reproducible import exp
from spinney._model.file.arrays import array_from_json, array_to_json, numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.model import FittedModel, Frame
from spinney._model.row_predictors import TableRowPredictor

Floats = NDArray[np.float64]


class FittedMargin(FittedModel):
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

    def __init__(
        self,
        design: Design | None,
        strategy: str,
        intercepts: Floats,
        n_classes: list[int] | None,
        calibration: Floats | None = None,
    ) -> None:
        super().__init__(n_classes, 1)
        self.design = design
        self.strategy = strategy
        self.intercepts = intercepts
        self.calibration = calibration

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

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Value, or class shares, of each row."""
        return self.predicted(self.scores(columns, n_jobs))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, 1)."""
        return self.score_codes(self.scores(columns, n_jobs))

    def row_predictor(self, schema: Schema, unseen: str, classes: object) -> TableRowPredictor:
        """Prepare a handle that predicts single rows."""
        model: Any = self
        return TableRowPredictor(model, schema, unseen, classes)

    # ---- files -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Return what the machines are made of, as JSON can hold it."""

    @classmethod
    @abstractmethod
    def _from_numbers(cls, header: dict[str, Any], base: dict[str, Any], frame: Frame) -> Self:
        """Turn back what `_numbers` gives; `base` are the arguments that all machines have."""

    @abstractmethod
    def _arrays(self) -> list[NDArray[Any]]:
        """All numbers that the scores rest on."""

    def to_header(self) -> dict[str, Any]:
        """Return all of it."""
        entry: dict[str, Any] = {
            "kind": self.kind,
            "strategy": self.strategy,
            "design": None if self.design is None else self.design.to_dict(),
            "intercepts": self.intercepts.tolist(),
        }
        if self.calibration is not None:
            entry["calibration"] = array_to_json(self.calibration)
        return entry | self._numbers()

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Turn back what `to_header` gives."""
        if trees or frame.n_outputs != 1:
            refuse("is damaged: it has trees or outputs that its model cannot have")
        strategy, n_classes = field(header, "strategy", str), frame.n_classes
        intercepts = numbers_from_json(field(header, "intercepts", list), "intercepts")
        k = 0 if n_classes is None else n_classes[0]
        wanted = {"one": 1, "ovo": k * (k - 1) // 2, "ovr": k}.get(strategy, -1)
        if len(intercepts) != wanted or (strategy == "one" and k not in (0, 2)) or (strategy != "one" and k < 3):
            refuse("is damaged: its machines do not fit its classes")
        design = None if header.get("design") is None else Design.from_dict(header["design"], frame.schema)
        calibration = None
        if header.get("calibration") is not None:
            calibration = array_from_json(header["calibration"], ("float64",), (len(intercepts), 2))
            if n_classes is None or not np.isfinite(calibration).all():
                refuse("is damaged: its probabilities are unusable")
        base = {
            "design": design,
            "strategy": strategy,
            "intercepts": intercepts,
            "n_classes": n_classes,
            "calibration": calibration,
        }
        return cls._from_numbers(header, base, frame)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        digest = hashlib.sha256(self.strategy.encode())
        arrays = [self.intercepts, *self._arrays()]
        if self.design is not None:
            design = self.design
            arrays += [design.feature, design.kind, design.code, design.center, design.scale]
            arrays += [] if design.fill is None else [design.fill]
        arrays += [] if self.calibration is None else [self.calibration]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()

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

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any],
        gamma: float,
        coef0: float,
        degree: int,
        vectors: Floats,
        rows: NDArray[np.int64],
        coefficients: Floats,
        n_support: NDArray[np.int32],
        **base: Any,
    ) -> None:
        super().__init__(**base)
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.vectors = vectors
        self.support = rows
        self.coefficients = coefficients
        self.n_support = n_support

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

    def _numbers(self) -> dict[str, Any]:
        if callable(self.kernel):
            raise TypeError("The kernel is a function, which a model file cannot hold. Pickle the model instead.")
        return {
            "kernel": self.kernel,
            "gamma": self.gamma,
            "coef0": self.coef0,
            "degree": self.degree,
            "vectors": array_to_json(self.vectors),
            "rows": array_to_json(self.support),
            "coefficients": array_to_json(self.coefficients),
            "n_support": array_to_json(self.n_support),
        }

    @classmethod
    def _from_numbers(cls, header: dict[str, Any], base: dict[str, Any], frame: Frame) -> Self:
        kernel, design = field(header, "kernel", str), base["design"]
        if kernel not in (*KERNELS, "precomputed") or (kernel == "precomputed") != (design is None):
            refuse("is damaged: its kernel is unusable")
        gamma, coef0 = field(header, "gamma", float), field(header, "coef0", float)
        degree = field(header, "degree", int)
        if not np.isfinite([gamma, coef0]).all() or not 0 <= degree < 2**31:
            refuse("is damaged: its kernel is unusable")
        n_terms = 0 if design is None else len(design)
        vectors = array_from_json(header.get("vectors"), ("float64",), (None, n_terms))
        k = 1 if base["n_classes"] is None else base["n_classes"][0]
        n_support = array_from_json(header.get("n_support"), ("int32",), (k,))
        n_rows = {"one": 1, "ovo": k - 1, "ovr": k}[base["strategy"]]
        coefficients = array_from_json(header.get("coefficients"), ("float64",), (n_rows, None))
        n = coefficients.shape[1]
        rows = array_from_json(header.get("rows"), ("int64",), (n,))
        if (n_support < 0).any() or n_support.sum() != n or (design is not None and len(vectors) != n):
            refuse("is damaged: its support vectors and their coefficients do not go together")
        if (rows < 0).any() or (design is None and n and rows.max() >= frame.schema.n_features):
            refuse("is damaged: a support vector is of a row that it cannot have")
        if not np.isfinite(coefficients).all() or not np.isfinite(vectors).all():
            refuse("is damaged: its support vectors hold impossible numbers")
        parameters = {"kernel": kernel, "gamma": gamma, "coef0": coef0, "degree": degree}
        numbers = {"vectors": vectors, "rows": rows, "coefficients": coefficients, "n_support": n_support}
        return cls(**parameters, **numbers, **base)  # type: ignore[arg-type]

    def _arrays(self) -> list[NDArray[Any]]:
        kernel = np.frombuffer(str(self.kernel).encode(), dtype=np.uint8)
        parameters = np.array([self.gamma, self.coef0, self.degree])
        return [kernel, parameters, self.vectors, self.coefficients, self.n_support]


class FittedPlanes(FittedMargin):
    """One plane for each machine.

    Attributes
    ----------
    planes : ndarray of shape (n_machines, n_terms)
        Weights of the terms.
    """

    kind = "planes"
    noun = "hyperplane"

    def __init__(self, *, planes: Floats, **base: Any) -> None:
        super().__init__(**base)
        self.planes = planes

    def __repr__(self) -> str:
        return f"<FittedPlanes: {self.n_machines} planes of {self.planes.shape[1]} terms>"

    def scores_of(self, rows: Floats, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_machines)."""
        return plane_scores(rows, self.planes, self.intercepts, n_jobs)

    def _numbers(self) -> dict[str, Any]:
        return {"planes": array_to_json(self.planes)}

    @classmethod
    def _from_numbers(cls, header: dict[str, Any], base: dict[str, Any], frame: Frame) -> Self:
        if base["design"] is None or base["strategy"] == "ovo":
            refuse("is damaged: its planes and its terms do not go together")
        planes = array_from_json(header.get("planes"), ("float64",), (len(base["intercepts"]), len(base["design"])))
        if not np.isfinite(planes).all():
            refuse("is damaged: its planes hold impossible numbers")
        return cls(planes=planes, **base)

    def _arrays(self) -> list[NDArray[Any]]:
        return [self.planes]
