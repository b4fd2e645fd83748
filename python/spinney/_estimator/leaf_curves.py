"""The times of the training rows of every leaf, and the curves that follow from them.

A leaf stores how much weight leaves it at each event time: entries of a time, a cause (0: censored) and a weight. With
Y rows at risk and d_j events of cause j at an event time of the leaf, its *steps* there are the hazard d_j / Y (Nelson
and Aalen) and the incidence S d_j / Y, where S is the leaf's survival before that time (Kaplan and Meier; Aalen and
Johansen). Curves of rows are cumulative sums of the steps of their leaves, averaged over the trees. Steps take memory
by training row and tree; a grid of times would take memory by leaf and time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats
from spinney._model.file.codec import SavedState, array, optional
from spinney._model.file.container import refuse

_BLOCK = 1 << 22  # steps that are added at a time


class Steps(NamedTuple):
    """The event times of the leaves: for each, the node, its position, rows at risk and, by cause, events and steps."""

    begin: NDArray[np.intp]  # by node, and the number of all steps
    time: NDArray[np.intp]  # position among the event times
    at_risk: Floats
    events: Floats
    hazard: Floats
    incidence: Floats


@dataclass(frozen=True, eq=False)
class LeafCurves:
    """The times of the training rows of every leaf of some trees.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
        Times at which training rows have an event, ascending.
    begin : ndarray of shape (n_nodes + 1,), uint32
        First entry of each node of all trees; only leaves have entries.
    rank : ndarray of uint32
        By entry: number of event times up to the time of its rows.
    cause : ndarray of uint32
        By entry: cause, from 1; 0 if censored.
    weight : ndarray of float64
        By entry: weight of its rows.
    entry : ndarray of uint32, or None
        By entry: number of event times up to the time from which its rows were observed; None: none.
    n_causes : int
    """

    times: Floats
    begin: NDArray[np.uint32]
    rank: NDArray[np.uint32]
    cause: NDArray[np.uint32]
    weight: Floats
    entry: NDArray[np.uint32] | None
    n_causes: int

    @classmethod
    def of(
        cls,
        times: Floats,
        ranks: NDArray[np.int64],
        n_causes: int,
        leaves: NDArray[np.uint32],
        n_nodes: list[int],
        weight_of: Callable[[int], Floats],
    ) -> LeafCurves:
        """Collect the rows of every leaf.

        Parameters
        ----------
        times : ndarray of shape (n_times,)
        ranks : ndarray of shape (n_rows, 3)
            Numbers of event times up to the time and up to the entry of each row, and its cause.
        n_causes : int
        leaves : ndarray of shape (n_rows, n_trees)
            Leaf of each row.
        n_nodes : list of int
            Number of nodes of each tree.
        weight_of : callable
            From the number of a tree to the weights of the rows; rows of weight 0 are left out.
        """
        m, rank, entry, cause = len(times) + 1, *ranks.T
        places, weights, first = [], [], 0
        for t, size in enumerate(n_nodes):
            weight = weight_of(t)
            rows = np.flatnonzero(weight > 0)
            place = (first + leaves[rows, t].astype(np.int64)) * m + rank[rows]
            place, code = np.unique((place * m + entry[rows]) * (n_causes + 1) + cause[rows], return_inverse=True)
            places.append(place)
            weights.append(np.bincount(code, weights=weight[rows], minlength=len(place)))
            first += size
        rest, codes = np.divmod(np.concatenate(places), n_causes + 1)
        rest, entries = np.divmod(rest, m)
        node, ranked = np.divmod(rest, m)
        begin = np.searchsorted(node, np.arange(first + 1)).astype(np.uint32)
        found = (column.astype(np.uint32) for column in (ranked, codes, entries))
        of_rank, of_cause, of_entry = found
        return cls(
            times, begin, of_rank, of_cause, np.concatenate(weights), of_entry if of_entry.any() else None, n_causes
        )

    @cached_property
    def steps(self) -> Steps:
        """The event times of the leaves."""
        m, j = len(self.times) + 1, self.n_causes
        node = np.repeat(np.arange(len(self.begin) - 1), np.diff(self.begin).astype(np.int64)).astype(np.int64)
        key = node * m + self.rank
        is_event = self.cause > 0
        place, at = np.unique(key[is_event], return_inverse=True)
        code = at * j + self.cause[is_event] - 1
        sums = np.bincount(code, weights=self.weight[is_event], minlength=len(place) * j)
        events = np.asarray(sums, dtype=np.float64).reshape(-1, j)
        of_node = place // m
        at_risk = _weight_from(np.argsort(key, kind="stable"), key, self.weight, place, (of_node + 1) * m)
        if self.entry is not None:
            late = node * m + self.entry
            at_risk -= _weight_from(np.argsort(late, kind="stable"), late, self.weight, place, (of_node + 1) * m)
        hazard = events / np.maximum(at_risk, events.sum(axis=1))[:, np.newaxis]
        begin = np.searchsorted(of_node, np.arange(len(self.begin)))
        survival = _survival_before(1.0 - hazard.sum(axis=1), begin, of_node)
        return Steps(begin, place % m - 1, at_risk, events, hazard, survival[:, np.newaxis] * hazard)

    def curves(self, nodes: NDArray[np.int64], which: str, at: Floats) -> Floats:
        """Return the mean over trees of cumulative hazards or incidences, (n_rows, n_times, n_causes).

        Parameters
        ----------
        nodes : ndarray of shape (n_rows, n_trees)
            Leaf of each row, counted over all trees.
        which : {"hazard", "incidence"}
        at : ndarray of shape (n_times,)
        """
        steps, (n_rows, n_trees) = self.steps, nodes.shape
        values, order = getattr(steps, which), np.argsort(at, kind="stable")
        bucket = np.searchsorted(at[order], self.times[steps.time], side="left")
        n_buckets = len(at) + 1  # the last one is beyond all times
        found = np.empty((n_rows, len(at), self.n_causes))
        lengths = steps.begin[nodes + 1] - steps.begin[nodes]
        ends = np.cumsum(lengths.sum(axis=1))
        first = 0
        while first < n_rows:
            reached = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, reached + _BLOCK, side="right")))
            length, begin = lengths[first:last].ravel(), steps.begin[nodes[first:last]].ravel()
            offset = np.cumsum(length) - length
            step = np.repeat(begin - offset, length) + np.arange(int(length.sum()))
            row = np.repeat(np.arange(last - first), lengths[first:last].sum(axis=1))
            code, size = row * n_buckets + bucket[step], (last - first) * n_buckets
            for j in range(self.n_causes):
                sums = np.bincount(code, weights=values[step, j], minlength=size).reshape(-1, n_buckets)
                found[first:last, order, j] = np.cumsum(sums[:, :-1], axis=1) / n_trees
            first = last
        return found

    def of_nodes(self, nodes: NDArray[np.intp]) -> LeafCurves:
        """Return the curves of a pruned tree, whose nodes were `nodes` of the unpruned one."""
        return LeafCurves(
            self.times,
            np.append(self.begin[nodes], self.begin[-1]),
            self.rank,
            self.cause,
            self.weight,
            self.entry,
            self.n_causes,
        )

    def of_tree(self, first: int, last: int) -> LeafCurves:
        """Return the curves of one tree of a forest, by its first node and the first of the next tree."""
        begin = self.begin[first : last + 1]
        chosen = slice(int(begin[0]), int(begin[-1]))
        entry = None if self.entry is None else self.entry[chosen]
        columns = (self.rank[chosen], self.cause[chosen], self.weight[chosen])
        return LeafCurves(self.times, begin - begin[0], *columns, entry, self.n_causes)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def _weight_from(
    order: NDArray[np.intp], key: NDArray[np.int64], weight: Floats, first: NDArray[np.int64], end: NDArray[np.int64]
) -> Floats:
    """Return the total weights of the keys from `first` to before `end`."""
    total = np.append(0.0, np.cumsum(weight[order]))
    ordered = key[order]
    return np.asarray(total[np.searchsorted(ordered, end)] - total[np.searchsorted(ordered, first)])


def _survival_before(factor: Floats, begin: NDArray[np.intp], node: NDArray[np.int64]) -> Floats:
    """Return the product of the factors of a node's earlier steps."""
    survival, position = np.ones(len(factor)), np.arange(len(factor)) - begin[node]
    order = np.argsort(position, kind="stable")
    ends = np.searchsorted(position[order], np.arange(1, int(position.max(initial=0)) + 2))
    for k in range(1, len(ends)):
        at = order[ends[k - 1] : ends[k]]
        survival[at] = survival[at - 1] * np.maximum(factor[at - 1], 0.0)
    return survival


SAVED_CURVES = SavedState(
    "curves",
    {
        "times": array("float64", "n_times", above=0.0),
        "begin": array("uint32", "n_begin"),
        "rank": array("uint32", "n_entries", most="n_times"),
        "cause": array("uint32", "n_entries", most="n_causes"),
        "weight": array("float64", "n_entries", above=0.0),
        "entry": optional(array("uint32", "n_entries", most="n_times")),
    },
)


def curves_from_header(header: dict[str, Any], n_causes: int, is_leaf: NDArray[np.bool_]) -> LeafCurves:
    """Read the curves of a model file; refuse those that do not match its trees."""
    found = LeafCurves(**({"entry": None} | SAVED_CURVES.from_header(header, n_causes=n_causes)), n_causes=n_causes)
    sizes = np.diff(found.begin.astype(np.int64))
    entry = np.zeros(1, dtype=np.uint32) if found.entry is None else found.entry
    if (
        len(found.begin) != len(is_leaf) + 1
        or found.begin[0] != 0
        or found.begin[-1] != len(found.rank)
        or ((sizes > 0) != is_leaf).any()  # rows stay at no split: the fallback of missing values is the majority
        or not (np.diff(found.times) > 0).all()
        or (found.rank[found.cause > 0] <= np.broadcast_to(entry, found.rank.shape)[found.cause > 0]).any()
    ):
        refuse("is damaged: the curves of its leaves do not match its trees")
    return found
