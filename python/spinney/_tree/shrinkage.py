"""Hierarchical shrinkage: the values of a tree's nodes are shrunk towards those of their ancestors.

The splits stay the same; only the predictions of the nodes change. Reference: A. Agarwal, Y. S. Tan, O. Ronen, C. Singh
and B. Yu (2022). Hierarchical shrinkage: improving the accuracy and interpretability of tree-based models. ICML, PMLR
162, 111-135.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import dot
from spinney._data.types import ColumnLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.tree import FittedTree
from spinney._tree.task import Growth

Fitted = TypeVar("Fitted", bound=TableEstimator)
_N_FOLDS = 5
# Strengths that cross-validation tries, in rows: each is multiplied by the mean weight of a row.
_STRENGTHS = (0.0, 0.1, 0.3, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


def shrunk(
    tree: FittedTree,
    shrinkage: float | str | None,
    growth: Growth,
    ccp_alpha: float,
    random: np.random.RandomState,
    groups: ColumnLike = None,
) -> tuple[FittedTree, float]:
    """Shrink a tree by the strength that its estimator's parameter sets or chooses.

    Parameters
    ----------
    tree : FittedTree
        The tree, pruned.
    shrinkage : float, "cv" or None
        Strength; "cv" chooses it, None leaves the tree as it is.
    growth : Growth
        The rows, and how to grow a tree on some of them.
    ccp_alpha : float
        Penalty per leaf at which the trees of the folds are pruned.
    random : RandomState
        Draws the folds.
    groups : array-like or None
        Rows with the same label stay in one fold.

    Returns
    -------
    tree : FittedTree
    strength : float
        The strength used; 0 if none.
    """
    if shrinkage is None:
        return tree, 0.0
    strength = _choose_strength(growth, ccp_alpha, random, groups) if shrinkage == "cv" else float(shrinkage)
    return (tree.shrunk(strength) if strength > 0 else tree), strength


def shrink_tree(model: Fitted, strength: float) -> Fitted:
    """Shrink the values of a fitted tree towards those of their ancestors, without growing it again.

    The prediction of a leaf becomes a weighted average of the values on its path from the root. Small nodes are shrunk
    most: with a strength of 10, a node's difference from a parent of weight 10 is halved. The splits, weights and
    impurities stay the same, and so do the parameters of the estimator, so that fitting it again does not shrink.

    Values that were shrunk before are shrunk once more, and a strength of 0 leaves them as they are; it does not
    restore the original values.

    Parameters
    ----------
    model : estimator
        A fitted decision tree; it does not change.
    strength : float
        At least 0, in units of the row weights.

    Returns
    -------
    estimator
        A fitted estimator with the new values; its `shrinkage_` is `strength`.

    See Also
    --------
    DecisionTreeRegressor : Its parameter `shrinkage` shrinks in `fit` and can choose the strength.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[1], [2], [3], [4]], [0.0, 0.0, 0.0, 8.0]
    >>> tree = spinney.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> tree.predict(X)
    array([0., 0., 0., 8.])
    >>> spinney.shrink_tree(tree, 4).predict(X)
    array([1., 1., 1., 5.])
    """
    from spinney.inspect.text.reader import TreeReader

    tree = TreeReader(model).tree
    if isinstance(strength, bool) or not isinstance(strength, Real) or not 0 <= strength < math.inf:
        raise ValueError(f"strength must be a finite number of at least 0, not {strength!r}.")
    made = type(model).__new__(type(model))
    made.__dict__.update(model.__dict__)
    made.tree_ = tree.shrunk(float(strength))
    made.shrinkage_ = float(strength)
    return made


# ---- the strength by cross-validation ------------------------------------------------------------------------------


def _choose_strength(growth: Growth, ccp_alpha: float, random: np.random.RandomState, groups: ColumnLike) -> float:
    """Return the strength of least cross-validated loss; the weakest on a tie.

    The loss is that of the criterion for a numeric target and the Brier score for classes: the strength changes the
    class probabilities, but rarely the most probable class.
    """
    weight = growth.weights()
    fold = _folds(growth, random, groups)
    strengths = np.array(_STRENGTHS) * float(weight.sum() / np.count_nonzero(weight))
    losses = np.zeros(len(strengths))
    for k in range(int(fold.max()) + 1):
        rows = np.flatnonzero(fold == k)
        tree = growth.without(rows)
        if ccp_alpha > 0:
            tree = tree.replaced(tree.engine.pruned(ccp_alpha, growth.risks(tree)))
        leaves = tree.engine.apply(growth.columns, growth.n_jobs)[rows]
        for i, strength in enumerate(strengths):
            shrunken = tree.shrunk(float(strength))
            losses[i] += dot(_row_losses(growth, shrunken, leaves, rows), weight[rows])
    slack = 1e-12 * float(np.abs(losses).max())  # rounding must not look like an improvement
    return float(strengths[np.flatnonzero(losses <= losses.min() + slack)[0]])


def _folds(growth: Growth, random: np.random.RandomState, groups: ColumnLike = None) -> NDArray[np.intp]:
    """Return the fold of each row, -1 for rows of weight 0; folds are stratified by class, or keep groups together."""
    rows = np.flatnonzero(growth.weights() > 0)
    if len(rows) < 2:
        raise ValueError("shrinkage='cv' needs at least two rows of positive weight. Give the strength as a number.")
    order = random.permutation(rows)
    if growth.codes is not None:
        order = order[np.lexsort(growth.codes[order].T[::-1])]
    fold = np.full(growth.n_rows, -1, dtype=np.intp)
    if groups is not None:
        labels = np.unique(np.asarray(groups)[rows], return_inverse=True)[1].reshape(-1)
        n_groups = int(labels.max()) + 1
        if n_groups < 2:
            raise ValueError("shrinkage='cv' needs at least two groups. Give the strength as a number.")
        fold[rows] = (random.permutation(n_groups) % min(_N_FOLDS, n_groups))[labels]
        return fold
    fold[order] = np.arange(len(order)) % min(_N_FOLDS, len(order))
    return fold


def _row_losses(
    growth: Growth, tree: FittedTree, leaves: NDArray[np.uint32], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    if growth.codes is None:
        return growth.loss(leaves, tree, rows)
    brier = np.zeros(len(rows))
    for k, columns in enumerate(tree.class_columns):
        proba = tree.flat_value[leaves, columns]
        actual = np.arange(proba.shape[1]) == growth.codes[rows, k][:, np.newaxis]
        brier += ((proba - actual) ** 2).sum(axis=1)
    return brier
