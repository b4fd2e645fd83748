"""Methods of all forests: the leaf of each row in each tree, and the nodes on the way."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils.validation import check_is_fitted

from spinney._data.types import Integers, TableLike
from spinney._estimator.table_estimator import TableEstimator


def apply(forest: TableEstimator, X: TableLike) -> Integers:
    """Leaf of each row in each tree.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_trees)
        Node numbers, counted within each tree.
    """
    check_is_fitted(forest)
    apply, n_jobs = forest.forest_.engine.apply, forest._n_threads
    return forest._by_blocks(X, lambda columns: apply(columns, n_jobs).astype(np.int64))


def decision_path(forest: TableEstimator, X: TableLike) -> tuple[csr_array, Integers]:
    """Nodes that each row passes.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    path : csr_array of shape (n_samples, node_count)
        1 where the row passes the node.
    n_nodes_ptr : ndarray of shape (n_trees + 1,)
        The nodes of tree t are columns n_nodes_ptr[t] to n_nodes_ptr[t + 1] - 1.
    """
    columns, trees = forest._columns(X), forest.forest_
    leaves = trees.engine.apply(columns, forest._n_threads)
    paths = [trees.tree(t).path(leaves[:, t]) for t in range(trees.n_trees)]
    return csr_array(hstack(paths, format="csr")), trees.root.astype(np.int64)
