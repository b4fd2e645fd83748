"""How neighbours count: which of them, how much, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.numeric.reproducible import exp

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
_LARGEST_SHARE = 1 - 1e-6  # of the bandwidth: so that all neighbours count
_SAME = 1e-10  # relative difference of distances that are the same but for rounding

# weight by the distance in bandwidths, from 0 to almost 1
KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 1 - u * u,
    "biweight": lambda u: (1 - u * u) * (1 - u * u),
    "triweight": lambda u: (1 - u * u) * (1 - u * u) * (1 - u * u),
    "tricube": lambda u: (1 - u * u * u) * (1 - u * u * u) * (1 - u * u * u),
    "gaussian": lambda u: exp(-2 * u * u),
}
WEIGHTS = ("uniform", "distance", *KERNELS)
TIES = ("first", "all")


@dataclass(frozen=True)
class Counting:
    """Which neighbours count, and how much.

    Attributes
    ----------
    k : int
        How many; a row of weight 2 is two of them.
    weights : str or callable
        What they count by their distances.
    ties : str
        Of rows that are as far away as the last: "first" takes those with the lowest numbers, "all" takes all.
    """

    k: int
    weights: Any = "uniform"
    ties: str = "first"

    @property
    def n_wanted(self) -> int:
        """Neighbours to look at first."""
        return self.k + (self.weights in KERNELS if isinstance(self.weights, str) else 0) + 4 * (self.ties == "all")

    @property
    def is_running(self) -> bool:
        """Whether what a neighbour counts does not depend on k."""
        return self.ties == "first" and (self.weights == "uniform" or self.weights == "distance")

    def counted(self, distance: Floats, weight: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Say how much of each neighbour is among the k, and whether there are enough of them to tell.

        Parameters
        ----------
        distance, weight : ndarray of shape (n_queries, n_neighbours)
            Distances, rising, and weights of the neighbours.

        Returns
        -------
        counted : ndarray of shape (n_queries, n_neighbours)
        is_enough : ndarray of shape (n_queries,)
        """
        reached = np.cumsum(weight, axis=1)
        has_bandwidth = self.weights not in KERNELS if isinstance(self.weights, str) else True
        if self.ties == "first":
            last = reached[:, -1]
            is_enough = last >= self.k if has_bandwidth else last > self.k
            return np.clip(self.k - (reached - weight), 0.0, weight), is_enough
        at = np.minimum((reached < self.k).sum(axis=1), distance.shape[1] - 1)
        limit = np.take_along_axis(distance, at[:, np.newaxis], axis=1) * (1 + _SAME)
        is_enough = (distance[:, -1] > limit[:, 0]) & (reached[:, -1] >= self.k)
        return np.where(distance <= limit, weight, 0.0), is_enough

    def weighted(self, distance: Floats, counted: Floats, weight: Floats) -> Floats:
        """Weight of each neighbour's vote.

        Parameters
        ----------
        distance, counted, weight : ndarray of shape (n_queries, n_neighbours)
            Distances, how much of each neighbour is among the k, and its whole weight.

        Returns
        -------
        ndarray of shape (n_queries, n_neighbours)
            None is negative, and each query has one that is positive.
        """
        if self.weights == "uniform":
            return counted
        if self.weights == "distance":
            return counted * _inverse(distance, counted)
        if isinstance(self.weights, str):
            left = (weight - counted > 0) & (weight > 0)
            first_left = np.where(left.any(axis=1), left.argmax(axis=1), distance.shape[1] - 1)
            bandwidth = np.take_along_axis(distance, first_left[:, np.newaxis], axis=1)
            share = np.where(bandwidth > 0, distance / np.where(bandwidth > 0, bandwidth, 1.0), 0.0)
            return counted * KERNELS[self.weights](np.minimum(share, _LARGEST_SHARE))
        return counted * self._given(distance, counted)

    def _given(self, distance: Floats, counted: Floats) -> Floats:
        """Weights of the user's function, checked."""
        found = np.asarray(self.weights(distance), dtype=np.float64)
        if found.shape != distance.shape:
            raise ValueError(
                f"weights must return one number per distance: it was given {distance.shape} distances and returned an "
                f"array of shape {found.shape}."
            )
        used = np.where(counted > 0, found, 1.0)
        if not np.isfinite(used).all() or (used < 0).any():
            row = int(np.flatnonzero((~np.isfinite(used) | (used < 0)).any(axis=1))[0])
            raise ValueError(f"weights must return finite numbers of at least 0; for row {row} it does not.")
        found = np.where(counted > 0, found, 0.0)
        return np.where(found.sum(axis=1, keepdims=True) > 0, found, 1.0)


def _inverse(distance: Floats, counted: Floats) -> Floats:
    """1 / distance; where a neighbour is in the same place, those that are count alone."""
    with np.errstate(divide="ignore"):
        inverse = 1 / distance
    there = np.isinf(inverse)
    return np.where((there & (counted > 0)).any(axis=1, keepdims=True), there.astype(np.float64), inverse)


@dataclass(frozen=True)
class Ballot:
    """What each remembered row votes for.

    Attributes
    ----------
    target : ndarray of shape (n_rows, n_outputs)
        Class codes (int32) or values (float64).
    n_classes : list of int, or None
        Classes of each output; None if it holds values.
    """

    target: NDArray[Any]
    n_classes: list[int] | None

    @property
    def width(self) -> int:
        """Flat numbers of a prediction."""
        return self.target.shape[1] if self.n_classes is None else sum(self.n_classes)

    def add(self, total: Floats, rows: Rows, weight: Floats) -> None:
        """Add the votes of one row for each query, in place."""
        if self.n_classes is None:
            total += self.target[rows] * weight[:, np.newaxis]
            return
        first, every = 0, np.arange(len(rows))
        for output, n in enumerate(self.n_classes):
            total[every, first + self.target[rows, output]] += weight
            first += n

    def mean(self, rows: Rows, weight: Floats) -> Floats:
        """Class shares or mean values, (n_queries, width): votes are added from the nearest on."""
        total, sums = np.zeros((len(rows), self.width)), np.zeros(len(rows))
        for j in range(rows.shape[1]):
            self.add(total, rows[:, j], weight[:, j])
            sums += weight[:, j]
        return np.asarray(total / sums[:, np.newaxis])
