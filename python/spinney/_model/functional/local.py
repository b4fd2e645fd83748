"""Boosting steps of local learners: means of nearest neighbours, and kernel sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.reproducible import exp
from spinney._data.types import Floats
from spinney._model.file.codec import Field, array, integer, number, saved_fields
from spinney._model.file.container import refuse
from spinney._model.functional.steps import Inputs, Steps

_ROWS: dict[str, Field] = {
    "rows": array("float64", "n_rows", "n_terms"),
    "numbers": array("float64", "n_steps", "n_rows"),
}
_SPARE = 8  # extra neighbours, since the search may round distances and the final choice must not
_BLOCK, _MAX_CACHED = 2**22, 2**25  # kernel values of a block, and of all blocks that are cached


class _LocalSteps(Steps):
    """Steps that store training rows.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_terms)
        Terms of the stored rows.
    numbers : ndarray of shape (n_steps, n_rows)
        Value of each step for the stored rows.
    """

    def __init__(self, rows: Floats, numbers: Floats | None = None) -> None:
        self.rows = rows
        self.numbers = np.empty((0, len(rows))) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, numbers: Floats) -> None:
        """Add a step."""
        self.numbers = np.concatenate([self.numbers, numbers[np.newaxis]])

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return all columns that have terms."""
        return tuple(np.unique(design.feature).tolist())

    def identity(self) -> bytes:
        """Return the stored rows and their values."""
        return np.ascontiguousarray(self.rows).tobytes() + np.ascontiguousarray(self.numbers).tobytes()

    @classmethod
    def make(cls, trees: list[_engine.Tree], found: dict[str, Any], schema: Schema) -> Self:
        """Make the steps from the entries of a file."""
        if not len(found["rows"]):
            refuse("is damaged: a step stores no rows")
        return cls(**found)


class NeighbourSteps(_LocalSteps):
    """Weighted means over the nearest neighbours; ties go to the first rows."""

    kind = "neighbours"
    saved = saved_fields(
        **_ROWS, n_neighbours=integer(least=1, most="n_rows"), weight=array("float64", "n_rows", above=0)
    )

    def __init__(self, n_neighbours: int, rows: Floats, weight: Floats, numbers: Floats | None = None) -> None:
        super().__init__(rows, numbers)
        self.n_neighbours = n_neighbours
        self.weight = weight

    def read(self, inputs: Inputs) -> NDArray[np.intp]:
        """Return the neighbours of each row, (n_rows, n_neighbours), ascending by row number."""
        return nearest(self.rows, inputs.terms.T, self.n_neighbours)

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Return the mean over the neighbours of each row."""
        return self.means(inputs, self.numbers[step])

    def means(self, inputs: Inputs, numbers: Floats) -> Floats:
        """Return the mean over the neighbours of each row of numbers of the stored rows."""
        near = inputs.of(self)
        weight = self.weight[near]
        return np.asarray((numbers[near] * weight).sum(axis=1) / weight.sum(axis=1))

    def first(self, n_steps: int) -> NeighbourSteps:
        """Return the first steps."""
        return NeighbourSteps(self.n_neighbours, self.rows, self.weight, self.numbers[:n_steps])

    def identity(self) -> bytes:
        """Return the stored rows, their values and weights, and the number of neighbours."""
        return super().identity() + self.weight.tobytes() + self.n_neighbours.to_bytes(8, "little")


class KernelSteps(_LocalSteps):
    """Sums of kernels exp(-gamma · distance²) around the stored rows."""

    kind = "kernels"
    saved = saved_fields(**_ROWS, gamma=number(above=0, below=np.inf))

    def __init__(self, gamma: float, rows: Floats, numbers: Floats | None = None) -> None:
        super().__init__(rows, numbers)
        self.gamma = gamma

    def read(self, inputs: Inputs) -> list[Floats] | None:
        """Return the kernel values, block by block; None if they are too many to cache."""
        return list(self._blocks(inputs)) if inputs.n_rows * len(self.rows) <= _MAX_CACHED else None

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Return the kernel sum of each row."""
        return self._sums(inputs, self.numbers[step])

    def total(self, inputs: Inputs, steps: NDArray[np.intp], factors: Floats) -> Floats:
        """Add up the coefficients of the steps first: all have the same kernels."""
        heights = np.zeros(len(self.rows))
        for step, factor in zip(steps.tolist(), factors.tolist(), strict=True):
            heights += factor * self.numbers[step]
        return self._sums(inputs, heights)

    def _sums(self, inputs: Inputs, heights: Floats) -> Floats:
        known = inputs.of(self)
        return np.concatenate([(block * heights).sum(axis=1) for block in known or self._blocks(inputs)])

    def _blocks(self, inputs: Inputs) -> Iterator[Floats]:
        terms, size = inputs.terms.T, max(1, _BLOCK // len(self.rows))
        for first in range(0, len(terms), size):
            yield gaussian_kernel(terms[first : first + size], self.rows, self.gamma)

    def first(self, n_steps: int) -> KernelSteps:
        """Return the first steps."""
        return KernelSteps(self.gamma, self.rows, self.numbers[:n_steps])

    def identity(self) -> bytes:
        """Return the stored rows, their coefficients and gamma."""
        return super().identity() + np.float64(self.gamma).tobytes()


def gaussian_kernel(left: Floats, right: Floats, gamma: float) -> Floats:
    """Return the kernel of each row of `left` and `right`; bit-identical on every processor."""
    return exp(-gamma * squared_distances(left, right))


def squared_distances(left: Floats, right: Floats) -> Floats:
    """Return the squared distance of each row of `left` and `right`."""
    total = np.zeros((len(left), len(right)))
    for t in range(left.shape[1]):
        difference = left[:, t : t + 1] - right[:, t]
        total += difference * difference
    return total


def nearest(rows: Floats, queries: Floats, k: int) -> NDArray[np.intp]:
    """Return the k rows nearest to each query, (n_queries, k), ascending; ties go to the first rows."""
    n = len(rows)
    if not rows.shape[1]:
        return np.broadcast_to(np.arange(k), (len(queries), k))
    wanted = min(n, k + _SPARE)
    _, found = cKDTree(rows).query(np.ascontiguousarray(queries), k=wanted)
    found = np.sort(np.asarray(found, dtype=np.intp).reshape(len(queries), wanted), axis=1)
    total = np.zeros(found.shape)
    for t in range(rows.shape[1]):
        difference = rows[found, t] - queries[:, t : t + 1]
        total += difference * difference
    order = np.argsort(total, axis=1, kind="stable")[:, :k]
    return np.sort(np.take_along_axis(found, order, axis=1), axis=1)
