"""Steps that say of a row what rows near it have: means of neighbours, and sums of bumps."""

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
from spinney._model.file.codec import Field, array, integer, number, saved_fields
from spinney._model.file.container import refuse
from spinney._model.functional.steps import Inputs, Steps
from spinney._model.model import Floats

_ROWS: dict[str, Field] = {
    "rows": array("float64", "n_rows", "n_terms"),
    "numbers": array("float64", "n_steps", "n_rows"),
}
_SPARE = 8  # neighbours fetched beyond those wanted: the search may round, the choice does not
_CELLS, _MOST_CELLS = 2**22, 2**25  # numbers of a block, and of those that are kept


class _LocalSteps(Steps):
    """Steps that remember rows.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_terms)
        Terms of the rows remembered.
    numbers : ndarray of shape (n_steps, n_rows)
        What each step has for them.
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
        """Return the rows and what is said of them."""
        return np.ascontiguousarray(self.rows).tobytes() + np.ascontiguousarray(self.numbers).tobytes()

    @classmethod
    def make(cls, trees: list[_engine.Tree], found: dict[str, Any], schema: Schema) -> Self:
        """Turn them back."""
        if not len(found["rows"]):
            refuse("is damaged: a step remembers no rows")
        return cls(**found)


class NeighbourSteps(_LocalSteps):
    """Weighted means over the nearest rows; of those equally far, over the first."""

    kind = "neighbours"
    saved = saved_fields(
        **_ROWS, n_neighbours=integer(least=1, most="n_rows"), weight=array("float64", "n_rows", above=0)
    )

    def __init__(self, n_neighbours: int, rows: Floats, weight: Floats, numbers: Floats | None = None) -> None:
        super().__init__(rows, numbers)
        self.n_neighbours = n_neighbours
        self.weight = weight

    def read(self, inputs: Inputs) -> NDArray[np.intp]:
        """Find the neighbours of each row, (n_rows, n_neighbours), in the order of their number."""
        return nearest(self.rows, inputs.terms.T, self.n_neighbours)

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Mean over the neighbours."""
        return self.means(inputs, self.numbers[step])

    def means(self, inputs: Inputs, numbers: Floats) -> Floats:
        """Mean of numbers of the remembered rows over the neighbours of each row."""
        near = inputs.of(self)
        weight = self.weight[near]
        return np.asarray((numbers[near] * weight).sum(axis=1) / weight.sum(axis=1))

    def first(self, n_steps: int) -> NeighbourSteps:
        """Return the first steps alone."""
        return NeighbourSteps(self.n_neighbours, self.rows, self.weight, self.numbers[:n_steps])

    def identity(self) -> bytes:
        """Return the rows, what is said of them, and how many count."""
        return super().identity() + self.weight.tobytes() + self.n_neighbours.to_bytes(8, "little")


class KernelSteps(_LocalSteps):
    """Sums of bumps exp(-gamma · distance²) around the rows remembered."""

    kind = "kernels"
    saved = saved_fields(**_ROWS, gamma=number(above=0, below=np.inf))

    def __init__(self, gamma: float, rows: Floats, numbers: Floats | None = None) -> None:
        super().__init__(rows, numbers)
        self.gamma = gamma

    def read(self, inputs: Inputs) -> list[Floats] | None:
        """Return the bumps, block by block; None if these are too many to keep."""
        return list(self._blocks(inputs)) if inputs.n_rows * len(self.rows) <= _MOST_CELLS else None

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Sum of the bumps."""
        return self._sums(inputs, self.numbers[step])

    def total(self, inputs: Inputs, steps: NDArray[np.intp], factors: Floats) -> Floats:
        """Add up the steps' bumps first: they are around the same rows."""
        heights = np.zeros(len(self.rows))
        for step, factor in zip(steps.tolist(), factors.tolist(), strict=True):
            heights += factor * self.numbers[step]
        return self._sums(inputs, heights)

    def _sums(self, inputs: Inputs, heights: Floats) -> Floats:
        known = inputs.of(self)
        return np.concatenate([(block * heights).sum(axis=1) for block in known or self._blocks(inputs)])

    def _blocks(self, inputs: Inputs) -> Iterator[Floats]:
        terms, size = inputs.terms.T, max(1, _CELLS // len(self.rows))
        for first in range(0, len(terms), size):
            yield bumps(terms[first : first + size], self.rows, self.gamma)

    def first(self, n_steps: int) -> KernelSteps:
        """Return the first steps alone."""
        return KernelSteps(self.gamma, self.rows, self.numbers[:n_steps])

    def identity(self) -> bytes:
        """Return the rows, the heights of their bumps, and how narrow these are."""
        return super().identity() + np.float64(self.gamma).tobytes()


def bumps(left: Floats, right: Floats, gamma: float) -> Floats:
    """Kernel of each row of the left and each of the right; term by term, so that the bits are the same everywhere."""
    return exp(-gamma * squared_distances(left, right))


def squared_distances(left: Floats, right: Floats) -> Floats:
    """Squared distance of each row of the left and each of the right."""
    total = np.zeros((len(left), len(right)))
    for t in range(left.shape[1]):
        apart = left[:, t : t + 1] - right[:, t]
        total += apart * apart
    return total


def nearest(rows: Floats, queries: Floats, k: int) -> NDArray[np.intp]:
    """Numbers of the k rows nearest to each query, (n_queries, k), rising; of those equally far, the first."""
    n = len(rows)
    if not rows.shape[1]:
        return np.broadcast_to(np.arange(k), (len(queries), k))
    wanted = min(n, k + _SPARE)
    _, found = cKDTree(rows).query(np.ascontiguousarray(queries), k=wanted)
    found = np.sort(np.asarray(found, dtype=np.intp).reshape(len(queries), wanted), axis=1)
    total = np.zeros(found.shape)
    for t in range(rows.shape[1]):
        apart = rows[found, t] - queries[:, t : t + 1]
        total += apart * apart
    order = np.argsort(total, axis=1, kind="stable")[:, :k]
    return np.sort(np.take_along_axis(found, order, axis=1), axis=1)
