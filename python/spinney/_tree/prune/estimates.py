"""Pruning that needs no sequence: by the error on held-out rows, and by C4.5's pessimistic estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from spinney._estimator.held_out import HeldOut, node_losses
from spinney._model.tree import FittedTree

CONFIDENCE = 0.25


def reduced_error(tree: FittedTree, held_out: HeldOut, n_jobs: int) -> FittedTree:
    """Return the subtree with the lowest loss on held-out rows; the smallest on a tie.

    From the leaves up, a node becomes a leaf unless its branch has the lower loss: this is the first tree of the
    nested sequence when the risk of a node is its held-out loss.
    """
    return tree.replaced(tree.engine.pruned(0.0, node_losses(tree, held_out, n_jobs)))


def pessimistic(tree: FittedTree) -> FittedTree:
    """Return the subtree with the fewest errors to be expected by C4.5's upper confidence limit."""
    return tree.replaced(tree.engine.pruned(0.0, expected_errors(tree)))


def expected_errors(tree: FittedTree, confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """Return for each node N x U(E, N), if E of its N rows are not of its majority class.

    U is the upper limit of a binomial share: E errors or fewer in N have the probability `confidence` if the true
    share is U (Quinlan 1993, chapter 4). Weights may make E and N fractions, which the beta distribution takes.
    """
    rows = tree.weighted_n_node_samples
    shares = [1 - tree.flat_value[:, columns].max(axis=1) for columns in tree.class_columns]
    total = np.zeros(tree.node_count)
    for share in shares:
        errors = np.minimum(rows * share, rows)
        correct = rows - errors
        limit = betaincinv(errors + 1, np.maximum(correct, np.finfo(float).tiny), 1 - confidence)
        total += rows * np.where(correct > 0, limit, 1.0)
    return total / len(shares)
