"""The leaves that rows reach in the trees of a forest, and rows coded by these leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import spinney._engine as _engine
from spinney._data.types import Integers
from spinney._model.forest import FittedForest


@dataclass(frozen=True, eq=False)
class RowLeaves:
    """The leaf of each row in each tree of a forest.

    Attributes
    ----------
    nodes : ndarray of shape (n_rows, n_trees)
        Leaves, numbered through all trees.
    n_nodes : int
        Nodes of all trees.
    drawn : ndarray of shape (n_rows, n_trees), or None
        How often the row was drawn for the tree; None: never, or it does not matter.
    """

    nodes: Integers
    n_nodes: int
    drawn: NDArray[np.uint32] | None = None

    @classmethod
    def of(
        cls, forest: FittedForest, columns: _engine.Table, n_jobs: int, drawn: NDArray[np.uint32] | None = None
    ) -> RowLeaves:
        """Send rows down the trees."""
        leaves = forest.engine.apply(columns, n_jobs).astype(np.int64)
        return cls(leaves + forest.root[:-1], forest.node_count, drawn)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.nodes)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.nodes.shape[1])

    def take(self, rows: NDArray[np.intp]) -> RowLeaves:
        """Return some of the rows."""
        return RowLeaves(self.nodes[rows], self.n_nodes, None if self.drawn is None else self.drawn[rows])

    def one_hot(self, forest: FittedForest) -> csr_array:
        """Code rows by their leaves: a column per leaf, counted through all trees."""
        is_leaf = forest.engine.feature < 0
        columns = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
        starts = np.arange(self.n_rows + 1, dtype=np.int64) * self.n_trees
        shape = (self.n_rows, int(columns.max()) + 1)
        return csr_array((np.ones(self.nodes.size), columns[self.nodes].ravel(), starts), shape=shape)


def leaf_names(forest: FittedForest) -> list[tuple[int, int]]:
    """Tree of each leaf, and its node number within it."""
    leaves = np.flatnonzero(forest.engine.feature < 0)
    tree = np.searchsorted(forest.root, leaves, side="right") - 1
    return list(zip(tree.tolist(), (leaves - forest.root[tree]).tolist(), strict=True))
