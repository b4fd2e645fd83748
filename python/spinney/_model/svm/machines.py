"""Kernel machines: sums of kernel values of a row and the support vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.model import Frame
from spinney._model.svm.model import FittedMargin, plane_scores

Floats = NDArray[np.float64]
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
