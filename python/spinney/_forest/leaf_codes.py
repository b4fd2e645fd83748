"""Leaves as columns: each row has a 1 for the leaf of each tree that it rests in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinney._model.forest import FittedForest


def leaf_columns(forest: FittedForest) -> NDArray[np.int64]:
    """Column of each node of the forest: leaves are counted through all trees; -1 for splits."""
    is_leaf = forest.engine.feature < 0
    return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)


def one_hot_leaves(forest: FittedForest, nodes: NDArray[np.int64]) -> csr_array:
    """Code rows by the leaves they rest in, given as positions in the forest."""
    n_rows, n_trees = nodes.shape
    columns = leaf_columns(forest)
    starts = np.arange(n_rows + 1, dtype=np.int64) * n_trees
    return csr_array((np.ones(nodes.size), columns[nodes].ravel(), starts), shape=(n_rows, int(columns.max()) + 1))


def leaf_names(forest: FittedForest) -> list[tuple[int, int]]:
    """Tree of each leaf, and its node number within it."""
    leaves = np.flatnonzero(forest.engine.feature < 0)
    tree = np.searchsorted(forest.root, leaves, side="right") - 1
    return list(zip(tree.tolist(), (leaves - forest.root[tree]).tolist(), strict=True))
