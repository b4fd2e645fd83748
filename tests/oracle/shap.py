"""Shapley values by their definition: every subset of the columns, every path of the tree. Slow and obvious."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def node_shares(tree: Any, node: int) -> tuple[float, float, float]:
    """Shares of a node's training weight that go left, go right, and stop there."""
    weight = tree.weighted_n_node_samples
    left, right = weight[tree.children_left[node]], weight[tree.children_right[node]]
    stops = bool(tree.engine.flags[node] & 8)
    total = max(left + right, weight[node]) if stops else left + right
    return left / total, right / total, (total - left - right) / total


def goes(tree: Any, node: int, row: Floats) -> int:
    """Child that a row goes to, by the tree's own arrays; only for trees without surrogates."""
    x = row[tree.feature[node]]
    if np.isnan(x):
        left = bool(tree.missing_go_to_left[node])
    elif tree.is_categorical[node]:
        left = int(x) in tree.left_categories(node)
    else:
        left = x <= tree.threshold[node]
    return int(tree.children_left[node] if left else tree.children_right[node])


def expectation(tree: Any, next_of: Callable[[int], int], known: frozenset[int], node: int = 0) -> Floats:
    """Flat value predicted when only some columns are known: elsewhere both ways are taken, by training weight.

    ``next_of(node)`` is where the row goes from a split; the node itself if it stops there.
    """
    value: Floats = np.asarray(tree.flat_value[node])
    if tree.is_leaf[node]:
        return value
    if int(tree.feature[node]) in known:
        child = next_of(node)
        return value if child == node else expectation(tree, next_of, known, child)
    left, right, stop = node_shares(tree, node)
    below = left * expectation(tree, next_of, known, int(tree.children_left[node]))
    below = below + right * expectation(tree, next_of, known, int(tree.children_right[node]))
    return np.asarray(below + stop * value)


def shapley(game: Callable[[frozenset[int]], Floats], columns: list[int], n_columns: int) -> Floats:
    """Shapley values of a game, (n_columns, n_outputs); `columns` are those that matter."""
    n = len(columns)
    out = np.zeros((n_columns, len(game(frozenset()))))
    for i in columns:
        others = [j for j in columns if j != i]
        for size in range(n):
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            for subset in combinations(others, size):
                known = frozenset(subset)
                out[i] += share * (game(known | {i}) - game(known))
    return out


def interactions(game: Callable[[frozenset[int]], Floats], columns: list[int], n_columns: int) -> Floats:
    """Shapley interaction values, (n_columns, n_columns, n_outputs); the diagonal is what remains of the values."""
    n = len(columns)
    out = np.zeros((n_columns, n_columns, len(game(frozenset()))))
    for i, j in combinations(columns, 2):
        others = [k for k in columns if k not in (i, j)]
        for size in range(n - 1):
            share = factorial(size) * factorial(n - size - 2) / (2 * factorial(n - 1))
            for subset in combinations(others, size):
                s = frozenset(subset)
                together = game(s | {i, j}) - game(s | {i}) - game(s | {j}) + game(s)
                out[i, j] += share * together
        out[j, i] = out[i, j]
    values = shapley(game, columns, n_columns)
    for i in range(n_columns):
        out[i, i] = values[i] - out[i].sum(axis=0)
    return out


def linear_expectation(tree: Any, row: Floats, known: frozenset[int], node: int = 0) -> Floats:
    """Expectation of a tree with linear leaves: unknown columns of a leaf are at their centres."""
    if tree.is_leaf[node]:
        base, parts = linear_parts(tree, node, row)
        return np.array([base + sum(part for column, part in parts.items() if column in known)])
    if int(tree.feature[node]) in known:
        return linear_expectation(tree, row, known, goes(tree, node, row))
    left, right, _ = node_shares(tree, node)
    below = left * linear_expectation(tree, row, known, int(tree.children_left[node]))
    return np.asarray(below + right * linear_expectation(tree, row, known, int(tree.children_right[node])))


def linear_parts(tree: Any, leaf: int, row: Floats) -> tuple[float, dict[int, float]]:
    """Value of a leaf at the centres, and what each column adds; missing columns share what leads to the constant."""
    constant, lines = float(tree.flat_value[leaf][0]), tree.linear_terms
    terms = [] if lines is None else range(lines["begin"][leaf], lines["begin"][leaf + 1])
    if not len(terms):
        return constant, {}
    base, columns = float(lines["base"][leaf]), [int(lines["feature"][t]) for t in terms]
    missing = [j for j in columns if np.isnan(row[j])]
    if missing:
        return base, {j: (constant - base) / len(missing) if j in missing else 0.0 for j in columns}
    clipped = [np.clip(row[j], lines["low"][t], lines["high"][t]) for j, t in zip(columns, terms, strict=True)]
    parts = [lines["slope"][t] * (x - lines["middle"][t]) for x, t in zip(clipped, terms, strict=True)]
    return base, dict(zip(columns, map(float, parts), strict=True))


def tree_game(
    tree: Any, next_of: Callable[[int], int], row: Floats | None = None
) -> tuple[Callable[[frozenset[int]], Floats], list[int]]:
    """Return the game of one tree and one row, and the columns that take part; `row` is for linear leaves."""
    cache: dict[frozenset[int], Floats] = {}
    lines = tree.linear_terms
    columns = sorted({int(f) for f in (*tree.feature, *(() if lines is None else lines["feature"])) if f >= 0})

    def game(known: frozenset[int]) -> Floats:
        if known not in cache:
            is_linear = row is not None and tree.has_linear_leaves
            cache[known] = linear_expectation(tree, row, known) if is_linear else expectation(tree, next_of, known)
        return cache[known]

    return game, columns
