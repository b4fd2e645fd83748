"""Growth that stops where the error on held-out rows is lowest."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.tree import FittedTree

# (nodes, tree, rows) -> loss of each row if it stopped at its node
Loss = Callable[[NDArray[Any], FittedTree, NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class HeldOut:
    """Rows a tree is not grown on, and how to judge it by them."""

    columns: _engine.Table
    loss: Loss
    weight: NDArray[np.float64] | None


def node_losses(tree: FittedTree, held_out: HeldOut, n_jobs: int) -> NDArray[np.float64]:
    """Loss of the rows that reach a node if it were a leaf, for every node."""
    leaves, weight = tree.engine.apply(held_out.columns, n_jobs), held_out.weight
    judged = np.arange(len(leaves)) if weight is None else np.flatnonzero(weight > 0)
    total = np.zeros(tree.node_count)
    for rows, nodes in tree.passed_nodes(leaves[judged]):
        loss = held_out.loss(nodes, tree, judged[rows])
        total += np.bincount(nodes, loss if weight is None else loss * weight[judged[rows]], tree.node_count)
    return total


def split_gains(tree: FittedTree, criterion: str) -> NDArray[np.float64]:
    """Weighted gain of each split by the criterion it was chosen by; 0 in leaves.

    Rounded to about twelve digits, so that what ties in exact arithmetic ties here.
    """
    split = np.flatnonzero(~tree.is_leaf)
    left, right = split + 1, tree.children_right[split]
    weight = tree.weighted_n_node_samples
    if criterion in ("chi2", "friedman_mse"):
        value, share = tree.flat_value, weight[left] * weight[right] / weight[split]
        difference = value[left] - value[right]
        if criterion == "chi2":
            with np.errstate(invalid="ignore"):
                gain = share * np.nan_to_num(difference**2 / value[split]).sum(axis=1) / tree.n_outputs
        else:
            gain = share * difference.mean(axis=1) ** 2
    else:
        burden = weight * tree.impurity
        gain = burden[split] - burden[left] - burden[right]
    gains = np.zeros(tree.node_count)
    mantissa, exponent = np.frexp(gain)
    gains[split] = np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent)
    return gains


def cut_back(tree: FittedTree, gains: NDArray[np.float64], held_out: HeldOut, n_jobs: int) -> _engine.Tree:
    """Tree after as many best-first splits as give the lowest loss on held-out rows; the fewest on a tie.

    Parameters
    ----------
    tree : FittedTree
        Tree grown without looking at these rows.
    gains : ndarray
        Gain of each split, in whose order it would have been grown.
    held_out : HeldOut
        The rows.
    n_jobs : int
        Threads; 0 for all.

    Returns
    -------
    Tree
        The engine's tree, cut back.
    """
    loss_at = node_losses(tree, held_out, n_jobs)
    right = tree.children_right
    open_splits: list[tuple[float, int, int]] = []
    ages = itertools.count()  # ties go to the node made earlier, as in best-first growth

    def push(node: int) -> None:
        age = next(ages)
        if right[node] >= 0:
            heapq.heappush(open_splits, (-float(gains[node]), age, node))

    push(0)
    order: list[int] = []
    error = best_error = float(loss_at[0])
    n_best = 0
    slack = 1e-12 * abs(best_error)  # rounding must not look like an improvement
    while open_splits:
        _, _, node = heapq.heappop(open_splits)
        order.append(node)
        error += float(loss_at[node + 1] + loss_at[right[node]] - loss_at[node])
        if error < best_error - slack:
            best_error, n_best = error, len(order)
        push(node + 1)
        push(int(right[node]))
    leaf = np.ones(tree.node_count, dtype=np.uint8)
    leaf[order[:n_best]] = 0
    return tree.engine.collapsed(leaf)
