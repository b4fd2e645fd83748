"""Partial dependence without rows: at splits on other columns both ways are taken, by training weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.tree import FittedTree
from spinney.inspect.explain.target_model import Asked, Floats, Points

_MISSING_LEFT, _CATEGORY = 1, 2


def by_training_weight(asked: Asked, points: Points) -> Floats:
    """Answers at points, (n_points, n_outputs)."""
    fitted = asked.model._fitted if asked.walks else None
    if fitted is not None and fitted.has_lines:
        raise ValueError(
            "method='recursion' averages the values of leaves, and those of this model are lines (linear_leaves=True). "
            "Use method='auto'."
        )
    if isinstance(fitted, FittedForest):
        total = _sum(fitted.trees(), points) / fitted.n_trees
    elif isinstance(fitted, FittedTree) and fitted.splits is None:
        total = _sum(fitted.trees(), points)
    elif isinstance(fitted, FittedBoosting) and (asked.method == "decision_function" or fitted.link == "identity"):
        trees = fitted.trees()
        by_score = [_sum(trees[k :: fitted.n_scores], points) for k in range(fitted.n_scores)]
        total = np.column_stack(by_score) + fitted.start
    elif isinstance(fitted, FittedBoosting):
        raise ValueError(
            "method='recursion' averages scores, and this model is asked for what becomes of them. Use "
            "response_method='decision_function', or method='auto'."
        )
    else:
        raise ValueError(
            f"method='recursion' needs a tree without surrogates, a forest or boosted trees of spinney "
            f"that starts at no other model, not this {type(asked.model).__name__}. Use method='auto'."
        )
    return asked._pick(total)


def _sum(trees: list[_engine.Tree], points: Points) -> Floats:
    return np.asarray(sum(_tree_mean(tree, points) for tree in trees))


def _tree_mean(tree: _engine.Tree, points: Points) -> Floats:
    """Mean of a tree's leaves at each point, (n_points, value_width): by the share of the way there that is open."""
    feature, right = tree.feature, tree.children_right()
    share = np.zeros((tree.size, len(points)))
    share[0] = 1.0
    at = np.array([0])
    while len(at := at[feature[at] >= 0]):
        part = np.repeat((tree.weight[at + 1] / tree.weight[at])[:, np.newaxis], len(points), axis=1)
        for j, numbers in zip(points.columns, points.numbers, strict=True):
            for i in np.flatnonzero(feature[at] == j):
                part[i] = goes_left(tree, int(at[i]), numbers)
        share[at + 1] = share[at] * part
        share[right[at]] = share[at] * (1.0 - part)
        at = np.concatenate([at + 1, right[at]])
    leaf = np.flatnonzero(feature < 0)
    return np.asarray(share[leaf].T @ tree.value.reshape(tree.size, -1)[leaf])


def goes_left(tree: _engine.Tree, node: int, numbers: Floats) -> NDArray[np.bool_]:
    """Which numbers of the node's column go left."""
    flags = int(tree.flags[node])
    missing = np.isnan(numbers)
    is_category = flags & _CATEGORY
    left = np.isin(numbers, tree.left_categories(node)) if is_category else numbers <= tree.threshold[node]
    return np.where(missing, bool(flags & _MISSING_LEFT), left)
