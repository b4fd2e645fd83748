"""Partial dependence, interactions and counterfactuals by their definitions: one prediction at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from oracle.shap import goes

Floats = NDArray[np.float64]


def leaf_value(tree, row: Floats) -> Floats:
    """Flat value of the leaf that a row of numbers comes to."""
    node = 0
    while not tree.is_leaf[node]:
        node = goes(tree, node, row)
    return np.asarray(tree.flat_value[node])


def individual(predict: Callable[[Floats], float], rows: Floats, columns: list[int], points: Floats) -> Floats:
    """Answers by row and point: each row with the values of each point in some columns."""
    found = np.empty((len(rows), len(points)))
    for i, p in product(range(len(rows)), range(len(points))):
        changed = rows[i].copy()
        changed[columns] = points[p]
        found[i, p] = predict(changed)
    return found


def by_training_weight(tree, columns: dict[int, float], node: int = 0) -> Floats:
    """Mean of the leaves with some columns known: elsewhere both ways, by training weight."""
    if tree.is_leaf[node]:
        return np.asarray(tree.flat_value[node])
    column = int(tree.feature[node])
    if column in columns:
        row = np.zeros(max(column, *columns) + 1)
        row[column] = columns[column]
        return by_training_weight(tree, columns, goes(tree, node, row))
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    weight = tree.weighted_n_node_samples
    share = weight[left] / weight[node]
    return share * by_training_weight(tree, columns, left) + (1 - share) * by_training_weight(tree, columns, right)


def interaction(predict: Callable[[Floats], float], rows: Floats, j: int, k: int | None) -> float:
    """H of two columns; of a column with all others if `k` is None."""
    others = [c for c in range(rows.shape[1]) if c != j]
    both = [j, k] if k is not None else list(range(rows.shape[1]))
    second = [k] if k is not None else others

    def centred(columns: list[int]) -> Floats:
        means = individual(predict, rows, columns, rows[:, columns]).mean(axis=0)
        return means - means.mean()

    whole, first, rest = centred(both), centred([j]), centred(second)
    return float(np.sqrt(((whole - first - rest) ** 2).sum() / (whole**2).sum())) if (whole**2).sum() > 0 else 0.0
