"""Pruning as a part of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.held_out import HeldOut, cut_back, node_losses, read_folds, read_row_groups
from spinney._model.tree import FittedTree
from spinney._tree.grow.growth import Growth
from spinney._tree.grow.settings import GrowthSettings, Scorer
from spinney._tree.grow.task import Classification, Task
from spinney._tree.prune.cross_validation import (
    FoldTree,
    NestedTrees,
    Score,
    choose,
    first_cuts,
    grow_folds,
    held_out_values,
    judge_by_loss,
    judge_by_score,
    sum_node_errors,
    thinned,
)
from spinney._tree.prune.table import ComplexityTable

CONFIDENCE = 0.25  # of C4.5's pessimistic estimate


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

    X: TableLike
    y: ColumnLike
    target: NDArray[Any]
    groups: ColumnLike
    random: np.random.RandomState
    fitted: Callable[[FittedTree], Any]


@dataclass(frozen=True)
class PruningResult:
    """A pruned tree, the penalty per leaf that was used (0: none), and what cross-validation has found."""

    tree: FittedTree
    alpha: float
    table: ComplexityTable | None = None
    oof_predictions: Floats | list[Floats] | None = None

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes: none without cross-validation."""
        if self.table is None:
            return {}
        return {"alpha_": self.alpha, "cp_table_": self.table, "oof_predictions_": self.oof_predictions}


def check_request(task: Task, held_out: bool, groups: ColumnLike, n_rows: int) -> None:
    """Refuse what does not go together, before anything is grown."""
    settings = task.settings
    how = settings.prune
    if settings.ccp_alpha > 0 and settings.cp is not None:
        raise ValueError("Pass either ccp_alpha or cp, not both: cp is ccp_alpha as a share of the root's risk.")
    if how == "validation" and not held_out:
        raise ValueError("prune='validation' needs held-out rows: set validation_fraction, or pass X_val and y_val.")
    if how in ("cv", "pessimistic") and held_out:
        raise ValueError(f"prune={how!r} uses no held-out rows. Drop them, or use prune='validation'.")
    if how == "pessimistic" and not isinstance(task, Classification):
        raise ValueError("prune='pessimistic' counts wrong classes, and a regression has none. Use prune='cv'.")
    if how == "pessimistic" and settings.has_costs:
        raise ValueError("prune='pessimistic' does not take account of costs or priors. Use prune='cv'.")
    if groups is not None:
        read_row_groups(groups, n_rows)
        if how != "cv" and settings.shrinkage != "cv":
            raise ValueError("groups say which rows prune='cv' keeps together, but prune is not 'cv'. Leave them out.")


def prune_grown(task: Task, tree: FittedTree, growth: Growth, held_out: HeldOut | None, rows: FitRows) -> PruningResult:
    """Prune a tree that has just been grown, as the parameters say."""
    how = task.settings.prune
    floor = alpha_floor(task.settings, 0.0 if task.settings.cp is None else float(growth.risks(tree)[0]))
    if how == "cv":
        return _prune_by_cv(task, tree, growth, floor or 0.0, rows)
    if held_out is not None and how == "validation":
        tree = reduced_error(tree, held_out, growth.n_jobs)
    elif held_out is not None:
        tree = tree.replaced(cut_back(tree, growth.gains(tree), held_out, growth.n_jobs))
    elif how == "pessimistic":
        tree = pessimistic(tree)
    if floor is not None:
        tree = tree.replaced(tree.engine.pruned(floor, growth.risks(tree)))
    return PruningResult(tree, floor or 0.0)


def alpha_floor(settings: GrowthSettings, root_risk: float) -> float | None:
    """Penalty that the parameters ask for; None: no pruning, not even of what gains nothing.

    The root's risk is looked at where the penalty is a share of it, `cp`.
    """
    if settings.cp is not None:
        return float(settings.cp) * root_risk if settings.cp >= 0 else None
    return float(settings.ccp_alpha) if settings.ccp_alpha > 0 else None


def _prune_by_cv(task: Task, tree: FittedTree, growth: Growth, floor: float, rows: FitRows) -> PruningResult:
    settings, risks = task.settings, growth.risks(tree)
    nested = NestedTrees.of(tree, risks, floor)
    folds = read_folds(settings.cv, growth.codes, rows.target, growth.weights(), rows.groups, rows.random)
    training_errors = _training_errors(task, tree, growth, nested.cuts)
    judged_trees = np.arange(len(nested.alpha)) if settings.scoring is None else thinned(len(nested.alpha))
    cuts = nested.cuts[judged_trees]
    fold_trees = grow_folds(growth, folds, cuts)
    if settings.scoring is None:
        judged, root_loss = judge_by_loss(growth, fold_trees, len(cuts)), _root_loss(tree, growth)
        error, error_se = judged.error / root_loss, judged.error_se / root_loss
    else:
        judged = judge_by_score(_score(settings.scoring, rows), fold_trees, cuts)
        error, error_se = judged.error, judged.error_se
    at = choose(error, error_se, settings.rule)
    alpha = floor if at is None else float(nested.alpha[judged_trees[at]])
    kept = tree if at is None and floor == 0 else tree.replaced(tree.engine.pruned(alpha, risks))
    table = _table(nested, judged_trees, training_errors, error, error_se, at, settings)
    said = held_out_values(growth, fold_trees, 0 if at is None else at)
    return PruningResult(kept, alpha, table, kept.spread(said))


def _training_errors(task: Task, tree: FittedTree, growth: Growth, cuts: Floats) -> Floats:
    """Error of each nested tree on the rows it was grown on, as a share of the root's."""
    split = np.flatnonzero(~tree.is_leaf)
    n_rows = tree.n_node_samples
    if (n_rows[split] > n_rows[split + 1] + n_rows[tree.children_right[split]]).any():  # some rest before a leaf
        rows = np.flatnonzero(growth.weights() > 0)
        losses, _, _ = FoldTree.of(tree, rows, growth, cuts).sum_losses(growth, len(cuts))
        return np.asarray(losses / growth.weights().sum() / _root_loss(tree, growth))
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    errors = share * task.node_errors(tree)
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
    relative_error: Floats,
    error: Floats,
    error_se: Floats,
    at: int | None,
    settings: GrowthSettings,
) -> ComplexityTable:
    """Put the trees in the order of the table: the root alone first."""
    rows = which[::-1]
    alpha, n_leaves = nested.alpha[rows], nested.n_leaves[rows]
    scoring = settings.scoring if settings.scoring is None or isinstance(settings.scoring, str) else "score"
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
        rule=settings.rule if settings.rule is None or isinstance(settings.rule, str) else float(settings.rule),
    )


def _score(scoring: str | Scorer, rows: FitRows) -> Score:
    from sklearn.metrics import get_scorer
    from sklearn.utils import _safe_indexing

    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring

    def score(tree: FittedTree, alpha: float, held_out: NDArray[np.intp]) -> float:
        pruned = rows.fitted(tree).pruned(alpha=alpha)
        return float(scorer(pruned, _safe_indexing(rows.X, held_out), _safe_indexing(rows.y, held_out)))

    return score


def reduced_error(tree: FittedTree, held_out: HeldOut, n_jobs: int) -> FittedTree:
    """Return the subtree with the lowest loss on held-out rows; the smallest on a tie.

    From the leaves up, a node becomes a leaf unless its branch has the lower loss: this is the first tree of the
    nested sequence when the risk of a node is its held-out loss.
    """
    return tree.replaced(tree.engine.pruned(0.0, node_losses(tree, held_out, n_jobs)))


def pessimistic(tree: FittedTree) -> FittedTree:
    """Return the subtree with the fewest errors to be expected by C4.5's upper confidence limit."""
    return tree.replaced(tree.engine.pruned(0.0, expected_errors(tree)))


def expected_errors(tree: FittedTree, confidence: float = CONFIDENCE) -> Floats:
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
