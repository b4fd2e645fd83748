"""The choice of `max_depth` or `min_samples_leaf` of a tree by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import ColumnLike
from spinney._estimator.held_out import read_folds
from spinney._tree.pruning import FoldTree, choose, evaluate_by_loss
from spinney._tree.settings import GrowthSettings
from spinney._tree.task import Growth

# candidates from the largest tree to the smallest
GRIDS = {
    "max_depth": (30, 20, 15, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1),
    "min_samples_leaf": (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200),
}


@dataclass(frozen=True)
class SizeSearch:
    """The values that cross-validation chose, and its results.

    Attributes
    ----------
    settings : GrowthSettings
        With numbers in place of "cv".
    attributes : dict
        Fitted attributes of the estimator; empty if nothing was searched.
    """

    settings: GrowthSettings
    attributes: dict[str, Any]


def search_size(
    settings: GrowthSettings,
    growth_with: Callable[[GrowthSettings], Growth],
    target: NDArray[Any],
    groups: ColumnLike,
    random: np.random.RandomState,
) -> SizeSearch:
    """Choose the parameter that is "cv", if one is.

    Parameters
    ----------
    settings : GrowthSettings
    growth_with : callable
        Returns the growth with other settings.
    target : ndarray
        Target of the rows.
    groups : array-like or None
        Rows of one group are held out together.
    random : RandomState
        Draws the folds.

    Returns
    -------
    SizeSearch
    """
    searched = [name for name in GRIDS if getattr(settings, name) == "cv"]
    if not searched:
        return SizeSearch(settings, {})
    if len(searched) > 1:
        raise ValueError("Choose either max_depth or min_samples_leaf by cross-validation, and set the other.")
    (name,) = searched
    growths = [growth_with(_with(settings, name, value)) for value in GRIDS[name]]
    first = growths[0]
    folds = read_folds(settings.cv, first.codes, target, first.weights(), groups, random)
    found = []
    for growth in growths:
        fold_trees = []
        for fold in folds:
            weight = np.zeros(growth.n_rows)
            weight[fold.train] = growth.weights()[fold.train]
            tree = growth.grow(weight)
            leaves = tree.engine.apply(growth.columns, growth.n_jobs)[fold.held_out]
            fold_trees.append(FoldTree(tree, fold.held_out, leaves, (~tree.is_leaf).astype(np.uint32)))
        error, spread = evaluate_by_loss(growth, fold_trees, 1)
        found.append((float(error[0]), float(spread[0])))
    errors, spreads = np.array(found).T
    at = choose(errors, spreads, "min" if settings.rule is None else settings.rule)
    assert at is not None
    value = GRIDS[name][at]
    results = {name: np.array(GRIDS[name]), "error": errors, "error_se": spreads}
    return SizeSearch(_with(settings, name, value), {f"{name}_": value, "cv_results_": results})


def _with(settings: GrowthSettings, name: str, value: Any) -> GrowthSettings:
    changed: dict[str, Any] = {name: value}
    return replace(settings, **changed)
