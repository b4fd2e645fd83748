"""Pruning as a part of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.folds import read_folds, read_row_groups
from spinney._estimator.held_out import HeldOut, cut_back
from spinney._model.tree import FittedTree
from spinney._tree.grow.growth import Growth
from spinney._tree.prune.choice import choose
from spinney._tree.prune.cross_validation import (
    FoldTree,
    Score,
    first_cuts,
    grow_folds,
    held_out_values,
    judge_by_loss,
    judge_by_score,
    sum_node_errors,
    thinned,
)
from spinney._tree.prune.estimates import pessimistic, reduced_error
from spinney._tree.prune.nested import NestedTrees
from spinney._tree.prune.table import ComplexityTable


@dataclass(frozen=True)
class FitRows:
    """What `fit` was given, for folds and scorers.

    Attributes
    ----------
    X, y : table and target as passed
    target : ndarray
        The target as numbers.
    groups : array-like or None
    random : RandomState
    fitted : callable
        From a tree to an estimator that predicts with it.
    """

    X: Any
    y: Any
    target: NDArray[Any]
    groups: Any
    random: np.random.RandomState
    fitted: Callable[[FittedTree], Any]


@dataclass(frozen=True)
class Pruned:
    """A pruned tree, the penalty per leaf that was used (0: none), and fitted attributes."""

    tree: FittedTree
    alpha: float
    learned: dict[str, Any]


def check_request(model: Any, held_out: bool, groups: Any, n_rows: int) -> None:
    """Refuse what does not go together, before anything is grown."""
    how = model._setting("prune")
    if model.ccp_alpha > 0 and model._setting("cp") is not None:
        raise ValueError("Pass either ccp_alpha or cp, not both: cp is ccp_alpha as a share of the root's risk.")
    if how == "validation" and not held_out:
        raise ValueError("prune='validation' needs held-out rows: set validation_fraction, or pass X_val and y_val.")
    if how in ("cv", "pessimistic") and held_out:
        raise ValueError(f"prune={how!r} uses no held-out rows. Drop them, or use prune='validation'.")
    if how == "pessimistic" and not hasattr(model, "class_weight"):
        raise ValueError("prune='pessimistic' counts wrong classes, and a regression has none. Use prune='cv'.")
    if how == "pessimistic" and (model._setting("cost_matrix") is not None or model._setting("priors") is not None):
        raise ValueError("prune='pessimistic' does not take account of costs or priors. Use prune='cv'.")
    if groups is not None:
        read_row_groups(groups, n_rows)
        if how != "cv" and model._setting("shrinkage") != "cv":
            raise ValueError("groups say which rows prune='cv' keeps together, but prune is not 'cv'. Leave them out.")


def prune_grown(model: Any, tree: FittedTree, growth: Growth, held_out: HeldOut | None, rows: FitRows) -> Pruned:
    """Prune a tree that has just been grown, as the parameters say."""
    root_risk = 0.0 if model._setting("cp") is None else float(growth.risks(tree)[0])
    how, floor = model._setting("prune"), alpha_floor(model, root_risk)
    if how == "cv":
        return _prune_by_cv(model, tree, growth, floor or 0.0, rows)
    if held_out is not None and how == "validation":
        tree = reduced_error(tree, held_out, growth.n_jobs)
    elif held_out is not None:
        tree = tree.replaced(cut_back(tree, growth.gains(tree), held_out, growth.n_jobs))
    elif how == "pessimistic":
        tree = pessimistic(tree)
    if floor is not None:
        tree = tree.replaced(tree.engine.pruned(floor, growth.risks(tree)))
    return Pruned(tree, floor or 0.0, {})


def alpha_floor(model: Any, root_risk: float) -> float | None:
    """Penalty that the parameters ask for; None: no pruning, not even of what gains nothing.

    The root's risk is looked at where the penalty is a share of it, `cp`.
    """
    if model._setting("cp") is not None:
        return float(model._setting("cp")) * root_risk if model._setting("cp") >= 0 else None
    return float(model.ccp_alpha) if model.ccp_alpha > 0 else None


def _prune_by_cv(model: Any, tree: FittedTree, growth: Growth, floor: float, rows: FitRows) -> Pruned:
    risks = growth.risks(tree)
    nested = NestedTrees.of(tree, risks, floor)
    folds = read_folds(model._setting("cv"), growth.codes, rows.target, growth.weights(), rows.groups, rows.random)
    training_errors = _training_errors(model, tree, growth, nested.cuts)
    judged_trees = np.arange(len(nested.alpha)) if model._setting("scoring") is None else thinned(len(nested.alpha))
    cuts = nested.cuts[judged_trees]
    fold_trees = grow_folds(growth, folds, cuts)
    if model._setting("scoring") is None:
        judged, root_loss = judge_by_loss(growth, fold_trees, len(cuts)), _root_loss(tree, growth)
        error, error_se = judged.error / root_loss, judged.error_se / root_loss
    else:
        judged = judge_by_score(_score(model._setting("scoring"), rows), fold_trees, cuts)
        error, error_se = judged.error, judged.error_se
    at = choose(error, error_se, model._setting("rule"))
    alpha = floor if at is None else float(nested.alpha[judged_trees[at]])
    kept = tree if at is None and floor == 0 else tree.replaced(tree.engine.pruned(alpha, risks))
    table = _table(nested, judged_trees, training_errors, error, error_se, at, model)
    said = held_out_values(growth, fold_trees, 0 if at is None else at)
    learned = {
        "alpha_": alpha,
        "cp_table_": table,
        "oof_predictions_": kept.spread(said),
    }
    return Pruned(kept, alpha, learned)


def _training_errors(model: Any, tree: FittedTree, growth: Growth, cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Error of each nested tree on the rows it was grown on, as a share of the root's."""
    split = np.flatnonzero(~tree.is_leaf)
    n_rows = tree.n_node_samples
    if (n_rows[split] > n_rows[split + 1] + n_rows[tree.children_right[split]]).any():  # some rest before a leaf
        rows = np.flatnonzero(growth.weights() > 0)
        losses, _, _ = FoldTree.of(tree, rows, growth, cuts).sum_losses(growth, len(cuts))
        return np.asarray(losses / growth.weights().sum() / _root_loss(tree, growth))
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    errors = share * model._node_errors(tree)
    total = sum_node_errors(tree, errors, first_cuts(tree, growth.risks(tree), cuts), len(cuts))
    return np.asarray(total / (errors[0] if errors[0] > 0 else 1.0))


def _root_loss(tree: FittedTree, growth: Growth) -> float:
    """Mean loss of the training rows if the root were a leaf; 1 if there is none, so that one can divide by it."""
    rows = np.arange(growth.n_rows) if growth.weight is None else np.flatnonzero(growth.weight > 0)
    loss = growth.loss(np.zeros(len(rows), dtype=np.intp), tree, rows)
    return float(np.average(loss, weights=growth.weights()[rows])) or 1.0


def _table(
    nested: NestedTrees,
    which: NDArray[np.intp],
    relative_error: NDArray[np.float64],
    error: NDArray[np.float64],
    error_se: NDArray[np.float64],
    at: int | None,
    model: Any,
) -> ComplexityTable:
    """Put the trees in the order of the table: the root alone first."""
    rows = which[::-1]
    alpha, n_leaves = nested.alpha[rows], nested.n_leaves[rows]
    scoring = (
        model._setting("scoring")
        if model._setting("scoring") is None or isinstance(model._setting("scoring"), str)
        else "score"
    )
    return ComplexityTable(
        alpha=alpha,
        cp=alpha / nested.root_risk if nested.root_risk > 0 else np.zeros(len(alpha)),
        n_splits=n_leaves - 1,
        n_leaves=n_leaves,
        relative_error=relative_error[rows],
        cv_error=error[::-1] if scoring is None else -error[::-1],
        cv_se=error_se[::-1],
        chosen=None if at is None else len(rows) - 1 - at,
        scoring=scoring,
        rule=model._setting("rule")
        if model._setting("rule") is None or isinstance(model._setting("rule"), str)
        else float(model._setting("rule")),
    )


def _score(scoring: Any, rows: FitRows) -> Score:
    from sklearn.metrics import get_scorer
    from sklearn.utils import _safe_indexing

    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring

    def score(tree: FittedTree, alpha: float, held_out: NDArray[np.intp]) -> float:
        pruned = rows.fitted(tree).pruned(alpha=alpha)
        return float(scorer(pruned, _safe_indexing(rows.X, held_out), _safe_indexing(rows.y, held_out)))

    return score
