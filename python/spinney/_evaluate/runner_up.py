"""The second-best column of each split of a fitted tree, found by stumps on one column at a time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

from spinney._data.reproducible import dot, log2
from spinney._data.types import ColumnLike
from spinney._estimator.parameters import count_rows, read_drawn_columns, read_feature_costs, read_groups, read_monotone
from spinney._model.tree import FittedTree
from spinney.inspect.text.reader import TreeReader

_MOST_SPLITS = 500  # each costs about half a millisecond per column

# Parameters of a whole tree that must not affect a stump, with the neutral value.
_NEUTRAL = {
    "splitter": "best",
    "max_depth": 1,
    "max_features": None,
    "random_state": 0,
    "max_leaf_nodes": None,
    "min_impurity_decrease": 0.0,
    "min_samples_split": 2,
    "min_purity": None,
    "ccp_alpha": 0.0,
    "interaction_cst": None,
    "validation_fraction": None,
    "unseen": "missing",
    "class_weight": None,
    "cost_matrix": None,
    "priors": None,
    "feature_costs": None,
    "feature_weights": None,
    "always_try": None,
    "rate_shrinkage": 0.0,
    "prune": None,
    "cp": None,
    "shrinkage": None,
    "max_competitors": 0,
}


class RunnerUp(NamedTuple):
    """Column of the second-best split, and the fraction of the best gain by which it is worse."""

    column: str | None = None
    margin: float = math.nan


def runner_ups(
    reader: TreeReader,
    values: list[NDArray[np.float64]],
    rows_of: list[NDArray[np.intp]],
    y: ColumnLike,
    weight: NDArray[np.float64],
    n_jobs: int | None,
) -> dict[int, RunnerUp]:
    """Return the second-best column at each split of a tree.

    Parameters
    ----------
    reader : TreeReader
        The fitted tree.
    values : list of ndarray
        Columns as numbers and codes; NaN is missing.
    rows_of : list of ndarray
        Rows of each node.
    y : array-like
        Target of all rows.
    weight : ndarray
        Weight of all rows.
    n_jobs : int or None
        Threads.

    Returns
    -------
    dict from node to RunnerUp
        For up to 500 splits: those with most rows.
    """
    model, target = reader.model, np.asarray(y)
    task = model._task
    read = task.read(y, len(weight))
    full = task.weights(read, y, weight)
    costs = task.costs(read, full)
    if costs is not None:
        full = costs.split_weights(read.array[:, 0], full)
    prices = read_feature_costs(task.settings.feature_costs, model.schema_) or [1.0] * len(reader.features)
    stumps = [_stump(reader, j, len(weight), n_jobs) for j in range(len(reader.features))]
    splits = np.flatnonzero(~reader.tree.is_leaf)
    largest = splits[np.argsort(-reader.tree.n_node_samples[splits], kind="stable")[:_MOST_SPLITS]]
    found = {}
    for node in sorted(largest.tolist()):
        rows = rows_of[node]
        fraction = min(0.5, float(model.min_weight_fraction_leaf * full.sum() / full[rows].sum()))
        trees = {}
        for j in _allowed(reader, node):
            column = values[j][rows]
            if len(np.unique(column)) == 1:  # missing values are one value
                continue
            stumps[j].min_weight_fraction_leaf = fraction
            with config_context(skip_parameter_validation=True):  # half of a stump's time
                stumps[j].fit(column[:, np.newaxis], target[rows], full[rows])
            if stumps[j].tree_.node_count > 1:
                trees[j] = stumps[j].tree_
        goodness = _goodness(trees, str(model.criterion))
        found[node] = _second(reader, node, {j: good / prices[j] for j, good in goodness.items()})
    return found


def _stump(reader: TreeReader, j: int, n_rows: int, n_jobs: int | None) -> Any:
    """Return an unfitted stump that splits column j like the tree."""
    model, schema = reader.model, reader.model.schema_
    directions = read_monotone(model.monotonic_cst, schema)
    own = {
        "min_samples_leaf": count_rows(model.min_samples_leaf, n_rows),
        "monotonic_cst": [directions[j]] if directions else None,
        "categorical_features": [0] if reader.features[j].kind == "category" else None,
        "n_jobs": n_jobs,
    }
    known = model.get_params(deep=False)
    return clone(model).set_params(**{name: value for name, value in (_NEUTRAL | own).items() if name in known})


def _allowed(reader: TreeReader, node: int) -> list[int]:
    """Return the columns allowed at a node by interaction constraints and feature weights."""
    model = reader.model
    weights, _ = read_drawn_columns(model._settings.feature_weights, None, model.schema_)
    drawn = {j for j in range(len(reader.features)) if not weights or weights[j] > 0}
    groups = read_groups(model.interaction_cst, model.schema_)
    if not groups:
        return sorted(drawn)
    used = set()
    above = int(reader.parent[node])
    while above >= 0:
        used.add(reader.column(above))
        above = int(reader.parent[above])
    return sorted(drawn & {j for group in groups if used <= set(group) for j in group})


def _goodness(stumps: dict[int, FittedTree], criterion: str) -> dict[int, float]:
    """Return the criterion of the split search by column."""
    if criterion == "chi2":
        return {j: _chi2(tree) for j, tree in stumps.items()}
    gains = {j: float(tree.impurity[0]) - dot(_fractions(tree), tree.impurity[1:]) for j, tree in stumps.items()}
    if criterion != "gain_ratio":
        return gains
    average = sum(gains.values()) / max(1, len(gains)) - 1e-12  # C4.5: columns with a smaller gain are excluded
    information = {j: float(-(_fractions(tree) * log2(_fractions(tree))).sum()) for j, tree in stumps.items()}
    return {j: gain / information[j] for j, gain in gains.items() if gain >= average}


def _fractions(stump: FittedTree) -> NDArray[np.float64]:
    return np.asarray(stump.weighted_n_node_samples[1:] / stump.weighted_n_node_samples[0])


def _chi2(stump: FittedTree) -> float:
    """Pearson's statistic per unit of weight."""
    value, present = stump.flat_value, stump.flat_value[0] > 0
    difference = (value[1] - value[2])[present]
    return float(_fractions(stump).prod() * (difference**2 / value[0][present]).sum())


def _second(reader: TreeReader, node: int, goodness: dict[int, float]) -> RunnerUp:
    chosen = goodness.pop(reader.column(node), 0.0)
    if chosen <= 0 or max(goodness.values(), default=0.0) <= 0:
        return RunnerUp()
    best = max(goodness, key=lambda j: (goodness[j], -j))
    margin = 1 - goodness[best] / chosen
    return RunnerUp(reader.features[best].name, 0.0 if abs(margin) < 1e-9 else margin)
