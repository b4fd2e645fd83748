"""The training rows as the trees of a forest hold them: in which leaf, how often drawn, with what weight.

Kept in a fitted forest when it is asked to (`keep_rows=True`). Everything that looks back at training rows reads this:
quantiles, weights on the rows, out-of-bag predictions for intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._forest.growing.batches import balanced_weights
from spinney._forest.growing.rows import Draws
from spinney._model.forest import FittedForest

LEFT_OUT = np.uint32(2**32 - 1)  # in place of a leaf: the tree says nothing of the row

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a forest keeps of the rows it was grown on.

    Attributes
    ----------
    leaf : ndarray of shape (n_trees, n_rows), uint16 or uint32
        Leaf of every row in every tree, whether it was drawn for the tree or not.
    target : ndarray of shape (n_rows, n_outputs), float64 or int32
        Values, or codes of the classes.
    n_classes : list of int
        Of each output; empty for values.
    growth_weight : ndarray of shape (n_rows,) or None
        What a row weighs each time it is drawn.
    row_weight : ndarray of shape (n_rows,) or None
        What the caller said each row weighs.
    draws : Draws or None
        Which rows each tree was grown on; None: all.
    balanced : bool
        Whether the classes in each tree's sample were made to count the same.
    n_nodes : list of int
        Of each tree.
    """

    leaf: NDArray[Any]
    target: NDArray[Any]
    n_classes: list[int]
    growth_weight: Floats | None
    row_weight: Floats | None
    draws: Draws | None
    balanced: bool
    n_nodes: list[int]

    def __getstate__(self) -> dict[str, Any]:
        cached = ("engine", "places", "memo")
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return int(self.leaf.shape[1])

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.leaf.shape[0])

    def counts(self, tree: int) -> NDArray[np.uint32]:
        """How often each row was drawn for a tree."""
        return np.ones(self.n_rows, dtype=np.uint32) if self.draws is None else self.draws.counts(tree)

    def amounts(self, tree: int) -> Floats:
        """Weight of each row in the growth of a tree."""
        counts = self.counts(tree)
        weight = self.growth_weight
        if self.balanced and self.draws is not None:
            weight = balanced_weights(self.target, self.n_classes, self.growth_weight, counts)
        return counts.astype(np.float64) if weight is None else counts * weight

    @cached_property
    def engine(self) -> _engine.LeafRows:
        """The rows of every leaf with their shares of its weight."""
        rows = _engine.LeafRows(self.n_rows)
        for t in range(self.n_trees):
            leaf = np.ascontiguousarray(self.leaf[t], dtype=np.uint32)
            rows.add_tree(leaf, self.amounts(t), self.n_nodes[t])
        return rows

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """What others have worked out from these rows and want to find again; not pickled."""
        return {}

    @property
    def unseen_leaves(self) -> NDArray[np.uint32]:
        """Leaf of each row in the trees it was not drawn for, (n_rows, n_trees); `LEFT_OUT` in the others."""
        found = np.empty((self.n_rows, self.n_trees), dtype=np.uint32)
        for t in range(self.n_trees):
            found[:, t] = np.where(self.counts(t) == 0, self.leaf[t], LEFT_OUT)
        return found

    @cached_property
    def places(self) -> list[tuple[NDArray[np.uint32], Floats]]:
        """For each output: position of each row in the order of the values, and the values in that order."""
        found = []
        for y in self.target.T:
            order = np.argsort(y, kind="stable")
            place = np.empty(self.n_rows, dtype=np.uint32)
            place[order] = np.arange(self.n_rows, dtype=np.uint32)
            found.append((place, np.ascontiguousarray(y[order], dtype=np.float64)))
        return found

    def out_of_bag_means(self, forest: FittedForest) -> tuple[Floats, NDArray[np.intp]]:
        """Mean value by the trees that have not seen each row (NaN without one), and how many these are."""
        width = forest.engine.value_width
        value = forest.engine.value.reshape(-1, width)
        sums, n_used = np.zeros((self.n_rows, width)), np.zeros(self.n_rows, dtype=np.intp)
        for t in range(self.n_trees):
            rows = np.flatnonzero(self.counts(t) == 0)
            sums[rows] += value[self.leaf[t, rows].astype(np.intp) + forest.root[t]]
            n_used[rows] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums / n_used[:, np.newaxis], n_used

    def unseen(self) -> NDArray[np.bool_]:
        """Whether each row was left out of each tree, (n_trees, n_rows)."""
        return np.array([self.counts(t) == 0 for t in range(self.n_trees)])


def keep_training_rows(
    forest: FittedForest,
    columns: _engine.Table,
    target: NDArray[Any],
    n_classes: list[int],
    growth_weight: Floats | None,
    row_weight: Floats | None,
    draws: Draws | None,
    balanced: bool,
    n_jobs: int,
) -> TrainingRows:
    """Send the training rows down the trees and note where they end."""
    n_nodes = np.diff(forest.root.astype(np.int64)).tolist()
    kind = np.uint16 if max(n_nodes) <= 2**16 else np.uint32
    leaf = np.ascontiguousarray(forest.engine.apply(columns, n_jobs).T, dtype=kind)
    return TrainingRows(leaf, target.copy(), n_classes, growth_weight, row_weight, draws, balanced, n_nodes)
