"""Rows on a map: classical scaling of proximities without writing them out.

The proximities are A Aᵀ / T for the 0-1 matrix A of rows and leaves. Centred on both sides they are the products of the
rows of the centred A, so that its leading singular vectors place the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, svds

from spinney._forest.proximities.proximity import Resting


def map_rows(resting: Resting, n_components: int) -> NDArray[np.float64]:
    """Place rows in `n_components` dimensions."""
    n_rows, n_trees = resting.nodes.shape
    if not 1 <= n_components <= n_rows:
        raise ValueError(f"n_components must be from 1 to the number of rows, {n_rows}; it is {n_components}.")
    used, columns = np.unique(resting.nodes, return_inverse=True)
    starts = np.arange(n_rows + 1) * n_trees
    incidence = csr_array((np.ones(resting.nodes.size), columns.reshape(-1), starts), shape=(n_rows, len(used)))
    mean = np.asarray(incidence.sum(axis=0)).reshape(-1) / n_rows
    if len(used) == n_trees:  # no tree parts any rows
        return np.zeros((n_rows, n_components))
    if n_components >= min(n_rows, len(used)) - 1:  # the iteration finds fewer than all directions
        left, size, _ = np.linalg.svd(incidence.toarray() - mean, full_matrices=False)
    else:
        left, size = _leading(incidence, mean, n_components)
    left, size = left[:, :n_components], size[:n_components]
    # the sign of an eigenvector is arbitrary
    largest = left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])]
    # distances² of classical scaling are p_ii + p_jj - 2 p_ij = 2 (1 - p), twice what is wanted
    placed = left * np.where(largest < 0, -1.0, 1.0) * size / np.sqrt(2 * n_trees)
    return np.pad(placed, ((0, 0), (0, n_components - placed.shape[1])))


def _leading(
    incidence: csr_array, mean: NDArray[np.float64], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n_rows, n_columns = incidence.shape
    transposed = csr_array(incidence.T.tocsr())
    operator = LinearOperator(
        (n_rows, n_columns),
        matvec=lambda v: incidence @ v.reshape(-1) - mean @ v.reshape(-1),
        rmatvec=lambda u: transposed @ u.reshape(-1) - mean * u.sum(),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).normal(size=min(n_rows, n_columns))
    left, size, _ = svds(operator, k=n_components, v0=start, return_singular_vectors="u")
    order = np.argsort(-size, kind="stable")
    return left[:, order], np.asarray(size[order], dtype=np.float64)
