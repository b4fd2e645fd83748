"""Fitted nearest neighbours: the stored training rows, and how the nearest of them predict."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.reproducible import exp
from spinney._data.types import Floats
from spinney._model.file.codec import Field, array, integer, numbers, optional, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.model import LocalModel, ModelSpec, digest_of
from spinney._model.neighbours.measure import PRECOMPUTED, Measure

Rows = NDArray[np.intp]
Find = Callable[[Rows, int], tuple[Rows, Floats]]
ALGORITHMS = ("auto", "brute", "tree")
_BLOCK = 2**21  # neighbours searched in one block


@dataclass(eq=False, repr=False)
class FittedNeighbours(LocalModel):
    """A fitted nearest-neighbours model.

    Attributes
    ----------
    measure : Measure
        The distance between rows.
    rows : ndarray of shape (n_rows, n_terms)
        Terms of the stored training rows.
    weight : ndarray of shape (n_rows,), or None
        Weights of the stored rows; None: all are 1.
    ballot : Ballot
        Targets of the stored rows.
    counting : Counting
        Which neighbours vote, and with which weights.
    algorithm : str
        Search algorithm: "brute", "tree", or "auto" for the faster one.
    factor : ndarray of shape (n_classes,), or None
        Factors for the votes of each class, from priors.
    row_numbers : ndarray of shape (n_rows,), or None
        Row numbers in the training table; None: all rows, in order.
    """

    kind = "neighbours"
    attribute = "neighbors_"
    noun = "neighbours"

    measure: Measure
    rows: Floats
    weight: Floats | None
    ballot: Ballot
    counting: Counting
    algorithm: str = "auto"
    factor: Floats | None = None
    row_numbers: NDArray[np.int64] | None = None
    cost: Floats | None = None
    _index: _engine.NeighbourIndex | None = None

    def __post_init__(self) -> None:
        super().__init__(self.ballot.n_classes, self.ballot.target.shape[1], self.cost)

    def __repr__(self) -> str:
        return f"<FittedNeighbours: {self.counting.k} of {len(self.rows)} rows>"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_index": None}

    @property
    def total_weight(self) -> float:
        """Total weight of the stored rows."""
        return float(len(self.rows) if self.weight is None else self.weight.sum())

    # ---- neighbours ------------------------------------------------------------------------------------------

    def index(self, n_jobs: int) -> _engine.NeighbourIndex:
        """Return the search index, built on first use."""
        if self._index is None:
            measure, k = self.measure, min(self.counting.n_wanted, len(self.rows))
            self._index = _engine.NeighbourIndex(self.rows, measure.engine_metric, measure.p, self.algorithm, k, n_jobs)
        return self._index

    def nearest(self, terms: Floats, k: int, n_jobs: int) -> tuple[Rows, Floats]:
        """Rows and distances of the k nearest neighbours of each query, (n_queries, k); ties go to the first row."""
        if self.measure.function is not None:
            return _nearest_by(self.measure.function, self.rows, terms, k)
        if self.measure.metric == PRECOMPUTED:
            given = terms if self.row_numbers is None else terms[:, self.row_numbers]
            near = np.argsort(given, axis=1, kind="stable")[:, :k]
            return near, np.take_along_axis(given, near, axis=1)
        rows, keys = self.index(n_jobs).nearest(terms, k, n_jobs)
        distances = self.measure.distances(np.asarray(keys), self.rows.shape[1])
        return np.asarray(rows).astype(np.intp).reshape(-1, k), distances.reshape(-1, k)

    def nearest_others(self, numbers: Rows, k: int, n_jobs: int) -> tuple[Rows, Floats]:
        """Nearest neighbours of some stored rows, excluding each row itself."""
        rows, distance = self.nearest(np.ascontiguousarray(self.rows[numbers]), k + 1, n_jobs)
        is_self = rows == numbers[:, np.newaxis]
        is_self[:, -1] |= ~is_self.any(axis=1)  # more than k identical rows have lower numbers
        return rows[~is_self].reshape(-1, k), distance[~is_self].reshape(-1, k)

    def voters(
        self, find: Find, counting: Counting, n_queries: int, n_rows: int
    ) -> Iterator[tuple[Rows, Rows, Floats]]:
        """Yield batches of queries: their numbers, their neighbours and the weights of these.

        Queries that need more neighbours than others, because of ties or small weights, come in later batches.

        Parameters
        ----------
        find : callable
            From numbers of queries and k to rows and distances, like `nearest`.
        counting : Counting
        n_queries, n_rows : int
            Numbers of queries and of possible neighbours.
        """
        waiting, n_searched = np.arange(n_queries), min(n_rows, counting.n_wanted)
        while len(waiting):
            rows, distance = find(waiting, n_searched)
            weight = np.ones(distance.shape) if self.weight is None else self.weight[rows]
            counted, is_enough = counting.counted(distance, weight)
            done = is_enough | (n_searched == n_rows)
            yield waiting[done], rows[done], counting.weighted(distance[done], counted[done], weight[done])
            waiting = waiting[~done]
            n_searched = min(n_rows, 2 * n_searched)

    # ---- predicting ------------------------------------------------------------------------------------------

    def predict_terms(self, terms: Floats, n_jobs: int) -> Floats:
        """Predictions of rows given as terms."""
        flat = np.empty((len(terms), self.ballot.width))
        size = max(1, _BLOCK // self.counting.n_wanted)
        for first in range(0, len(terms), size):
            block = terms[first : first + size]

            def find(queries: Rows, k: int, block: Floats = block) -> tuple[Rows, Floats]:
                return self.nearest(np.ascontiguousarray(block[queries]), k, n_jobs)

            for queries, rows, votes in self.voters(find, self.counting, len(block), len(self.rows)):
                flat[first + queries] = self.by_class(self.ballot.mean(rows, votes))
        return flat

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Predictions as flat rows, with a column for each number or class probability."""
        return self.predict_terms(self.measure.terms(columns), n_jobs)

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return the header entries of this kind of model."""
        if self.measure.function is not None or callable(self.counting.weights):
            what = "metric" if self.measure.function is not None else "weights"
            raise TypeError(f"{what} is a function, which no model file can hold. Pickle the model instead.")
        counting = {"n_neighbours": self.counting.k, "weights": self.counting.weights, "ties": self.counting.ties}
        fields = vars(self) | {"target": self.ballot.target} | counting
        return {"kind": self.kind, **_SAVED.to_header(fields)}

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a header."""
        if trees:
            refuse("is damaged: it holds trees, which nearest neighbours do not have")
        saved = _SAVED if spec.n_classes is None else _SAVED_OF_CLASSES
        n_classes = [-1] if spec.n_classes is None else spec.n_classes
        sizes = {"n_outputs": spec.n_outputs, "n_classes": n_classes[0] if len(n_classes) == 1 else -1}
        found = saved.from_header(header, schema=spec.schema, most_codes=np.array(n_classes), **sizes)
        measure, rows, numbers = found["measure"], found["rows"], found.get("row_numbers")
        if not len(rows) or rows.shape[1] != measure.n_terms(spec.schema.n_features):
            refuse("is damaged: its rows do not fit its distance")
        if not (np.isfinite(rows) | (np.isnan(rows) & (measure.metric == "gower"))).all():
            refuse("is damaged: its rows hold impossible numbers")
        if numbers is not None and (np.diff(numbers) <= 0).any():
            refuse("is damaged: its row numbers do not ascend")
        ballot = Ballot(found.pop("target"), spec.n_classes)
        counting = Counting(*(found.pop(name) for name in ("n_neighbours", "weights", "ties")))
        return cls(**{"weight": None} | found, ballot=ballot, counting=counting, cost=spec.cost)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        words = (self.measure.to_json(), self.counting.k, str(self.counting.weights), self.counting.ties)
        return digest_of(json.dumps(words), self.rows, self.ballot.target, self.weight, self.factor, self.cost)


def _nearest_by(
    function: Callable[[Floats, Floats], float], rows: Floats, terms: Floats, k: int
) -> tuple[Rows, Floats]:
    """Find the k nearest neighbours by a user-defined distance, one pair at a time."""
    near, distances = np.empty((len(terms), k), dtype=np.intp), np.empty((len(terms), k))
    for i, query in enumerate(terms):
        found = np.array([float(function(query, row)) for row in rows])
        if not np.isfinite(found).all() or (found < 0).any():
            raise ValueError(
                f"metric must return finite distances of at least 0. Between row {i} and training row "
                f"{int(np.argmax(~np.isfinite(found) | (found < 0)))} it does not."
            )
        near[i] = np.argsort(found, kind="stable")[:k]
        distances[i] = found[near[i]]
    return near, distances


_MAX_DISTANCE = 1 - 1e-6  # in bandwidths, so that all neighbours have a positive weight
_SAME = 1e-10  # relative difference of distances that are equal up to rounding

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


_FIELDS = {
    "measure": Field(Measure.to_json, lambda value, name, known: Measure.from_json(value, known["schema"])),
    "rows": array("float64", "n_rows", None, finite=False),
    "target": array("float64", "n_rows", "n_outputs"),
    "n_neighbours": integer(least=1),
    "weights": word(WEIGHTS),
    "ties": word(TIES),
    "algorithm": word(ALGORITHMS),
    "weight": optional(array("float64", "n_rows", above=0)),
    "row_numbers": optional(array("int64", "n_rows", least=0)),
    "factor": optional(numbers(np.float64, "n_classes", above=0)),
}
_SAVED = saved_fields(**_FIELDS)
_SAVED_OF_CLASSES = saved_fields(
    **_FIELDS | {"target": array("int32", "n_rows", "n_outputs", least=0, below="most_codes")}
)


@dataclass(frozen=True)
class Counting:
    """Which neighbours vote, and with which weights.

    Attributes
    ----------
    k : int
        Number of neighbours; a row of weight 2 counts as two.
    weights : str or callable
        Weights by distance.
    ties : str
        Rows at the distance of the last neighbour: "first" takes those with the lowest numbers, "all" takes all.
    """

    k: int
    weights: Any = "uniform"
    ties: str = "first"

    @property
    def n_wanted(self) -> int:
        """Number of neighbours to search for first."""
        return self.k + (self.weights in KERNELS if isinstance(self.weights, str) else 0) + 4 * (self.ties == "all")

    @property
    def is_running(self) -> bool:
        """Whether the weight of a neighbour does not depend on k."""
        return self.ties == "first" and (self.weights == "uniform" or self.weights == "distance")

    def counted(self, distance: Floats, weight: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return how much of each neighbour's weight is among the k, and whether enough neighbours were searched.

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
            Distances, the weight of each neighbour among the k, and its total weight.

        Returns
        -------
        ndarray of shape (n_queries, n_neighbours)
            Weights of at least 0, of which each query has a positive one.
        """
        if self.weights == "uniform":
            return counted
        if self.weights == "distance":
            return counted * _inverse(distance, counted)
        if isinstance(self.weights, str):
            left = (weight - counted > 0) & (weight > 0)
            first_left = np.where(left.any(axis=1), left.argmax(axis=1), distance.shape[1] - 1)
            bandwidth = np.take_along_axis(distance, first_left[:, np.newaxis], axis=1)
            relative = np.where(bandwidth > 0, distance / np.where(bandwidth > 0, bandwidth, 1.0), 0.0)
            return counted * KERNELS[self.weights](np.minimum(relative, _MAX_DISTANCE))
        return counted * self._user_weights(distance, counted)

    def _user_weights(self, distance: Floats, counted: Floats) -> Floats:
        """Return the weights of the user's function, checked."""
        found = np.asarray(self.weights(distance), dtype=np.float64)
        if found.shape != distance.shape:
            raise ValueError(
                f"weights must return one number per distance: for distances of shape {distance.shape} it returned an "
                f"array of shape {found.shape}."
            )
        used = np.where(counted > 0, found, 1.0)
        if not np.isfinite(used).all() or (used < 0).any():
            row = int(np.flatnonzero((~np.isfinite(used) | (used < 0)).any(axis=1))[0])
            raise ValueError(f"weights must return finite numbers of at least 0; for row {row} it does not.")
        found = np.where(counted > 0, found, 0.0)
        return np.where(found.sum(axis=1, keepdims=True) > 0, found, 1.0)


def _inverse(distance: Floats, counted: Floats) -> Floats:
    """Return 1 / distance; if neighbours are at distance 0, these alone have a weight."""
    with np.errstate(divide="ignore"):
        inverse = 1 / distance
    is_same = np.isinf(inverse)
    return np.where((is_same & (counted > 0)).any(axis=1, keepdims=True), is_same.astype(np.float64), inverse)


@dataclass(frozen=True)
class Ballot:
    """Targets of the stored rows.

    Attributes
    ----------
    target : ndarray of shape (n_rows, n_outputs)
        Class codes (int32) or numbers (float64).
    n_classes : list of int, or None
        Classes of each output; None in a regression.
    """

    target: NDArray[Any]
    n_classes: list[int] | None

    @property
    def width(self) -> int:
        """Length of a flat row of predictions."""
        return self.target.shape[1] if self.n_classes is None else sum(self.n_classes)

    def add(self, total: Floats, rows: Rows, weight: Floats) -> None:
        """Add the vote of one neighbour of each query, in place."""
        if self.n_classes is None:
            total += self.target[rows] * weight[:, np.newaxis]
            return
        first, every = 0, np.arange(len(rows))
        for output, n in enumerate(self.n_classes):
            total[every, first + self.target[rows, output]] += weight
            first += n

    def mean(self, rows: Rows, weight: Floats) -> Floats:
        """Class probabilities or mean targets, (n_queries, width); votes are added from the nearest neighbour on."""
        total, sums = np.zeros((len(rows), self.width)), np.zeros(len(rows))
        for j in range(rows.shape[1]):
            self.add(total, rows[:, j], weight[:, j])
            sums += weight[:, j]
        return np.asarray(total / sums[:, np.newaxis])
