"""Cost-complexity pruning: the nested trees, their cross-validated errors, and the choice between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

import spinney._engine as _engine
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.fit_inputs import groups_of_caller
from spinney._estimator.held_out import Fold, HeldOut, Loss, node_losses, prune_best_first, read_folds, read_row_groups
from spinney._estimator.metrics import check_scoring, find_scorer, metric_key
from spinney._model.tree import FittedTree
from spinney._tree.complexity_table import ComplexityTable
from spinney._tree.settings import GrowthSettings, Scorer
from spinney._tree.task import Classification, Growth, Task

# (tree, alpha, rows) -> score of the tree pruned at alpha on these rows; larger is better
Score = Callable[[FittedTree, float, NDArray[np.intp]], float]
# A scorer predicts with every pruned tree, so that at most this many are scored.
MOST_SCORED = 100
_ROUNDING = 1e-12


@dataclass(frozen=True)
class NestedTrees:
    """The trees that are best at some penalty per leaf, from the largest to the root alone.

    Attributes
    ----------
    alpha : ndarray
        Smallest penalty at which each tree is the best one, ascending.
    risk : ndarray
        Total risk of each tree's leaves.
    n_leaves : ndarray of int
        Their number.
    root_risk : float
        Risk of the root alone.
    """

    alpha: Floats
    risk: Floats
    n_leaves: NDArray[np.int64]
    root_risk: float

    @classmethod
    def of(cls, tree: FittedTree, risks: Floats, floor: float = 0.0) -> NestedTrees:
        """Collect the trees that are best at `floor` or above."""
        _, alpha, risk, n_leaves, _ = tree.engine.pruning_path(risks)
        n_free = int(np.searchsorted(alpha, reached(floor), side="right"))
        last = n_free + last_of_ties(alpha[n_free:])
        after = np.append(n_free, 1 + last)
        return cls(np.append(floor, alpha[last]), risk[after], n_leaves[after].astype(np.int64), float(risks[0]))

    @property
    def cuts(self) -> Floats:
        """A penalty for each tree: the geometric mean of its alpha and the next one; infinite for the root alone."""
        low, high = self.alpha[:-1], self.alpha[1:]
        with np.errstate(over="ignore", under="ignore"):
            products = low * high
        means = np.sqrt(products)
        lost = ~np.isfinite(products) | ((products < np.finfo(np.float64).tiny) & (low > 0))
        means[lost] = np.sqrt(low[lost]) * np.sqrt(high[lost])
        return np.append(means, np.inf)


def reached(alpha: Floats | float) -> Floats:
    """Return penalties with the tolerance by which an equal alpha may exceed them."""
    return np.asarray(alpha * (1 + _engine.alpha_rounding))


def last_of_ties(alpha: Floats) -> NDArray[np.intp]:
    """Return the position of the last of each group of ascending penalties that are equal but for rounding."""
    return np.flatnonzero(np.append(alpha[1:] > reached(alpha[:-1]), True)) if len(alpha) else np.empty(0, np.intp)


@dataclass(frozen=True)
class FoldTree:
    """The tree of a fold, its held-out rows, and the node at which each of them stops after pruning.

    Attributes
    ----------
    tree : FittedTree
    rows : ndarray of int
        Held-out rows.
    leaves : ndarray of int
        Their leaves.
    first_cut : ndarray of int
        By node: position of the first cut at which it is a leaf or gone; 0 in leaves.
    """

    tree: FittedTree
    rows: NDArray[np.intp]
    leaves: NDArray[np.uint32]
    first_cut: NDArray[np.uint32]

    @classmethod
    def of(cls, tree: FittedTree, rows: NDArray[np.intp], growth: Growth, cuts: Floats) -> FoldTree:
        """Find the leaves of held-out rows in a tree that is to be evaluated at `cuts`."""
        leaves = tree.engine.apply(growth.columns, growth.n_jobs)[rows]
        return cls(tree, rows, leaves, first_cuts(tree, growth.risks(tree), cuts))

    def stops(self, cut: int) -> NDArray[np.uint32]:
        """Return the node at which each row stops when the tree is pruned at a cut."""
        return np.asarray(self.tree.engine.pruning_turns(self.leaves, (self.first_cut > cut).astype(np.uint32), 1)[1])

    def sum_losses(self, growth: Growth, n_cuts: int) -> tuple[Floats, Floats, float]:
        """Return the weighted sums of losses and of squared losses of the rows, at every cut, and the squares' unit.

        As the penalty rises, a row's loss changes only where a node on its path becomes a leaf. So each node adds its
        loss at the cut where it becomes a leaf and subtracts it where its parent does: rows x depth operations,
        whatever the number of cuts. If squares of the losses would overflow or underflow, the losses are divided by a
        unit before they are squared.
        """
        row, node, begin, until = self.tree.engine.pruning_turns(self.leaves, self.first_cut, n_cuts)
        rows = self.rows[row]
        loss = growth.loss(node, self.tree, rows)
        weighted = loss if growth.weight is None else loss * growth.weight[rows]
        by_row = loss if growth.exposure is None else loss * growth.exposure[rows]
        unit = unit_of(by_row)
        squares = sum_turns(begin, until, weighted / unit * (by_row / unit), n_cuts)
        return sum_turns(begin, until, weighted, n_cuts), squares, unit


def unit_of(losses: Floats) -> float:
    """Return a power of two in whose unit the squares of the losses neither overflow nor underflow; mostly 1."""
    largest = float(np.max(losses, initial=0.0))
    if largest == 0 or 1e-140 < largest < 1e140 or not math.isfinite(largest):
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def first_cuts(tree: FittedTree, risks: Floats, cuts: Floats) -> NDArray[np.uint32]:
    """Return for each node the position of the first cut at which it is a leaf or gone; 0 in leaves."""
    return tree.engine.first_cuts(risks, reached(cuts))


def sum_turns(begin: NDArray[np.uint32], until: NDArray[np.uint32], value: Floats, n_cuts: int) -> Floats:
    """Sum the values that are active at each cut; a value is active from cut `begin` until before cut `until`."""
    change = np.bincount(begin, value, n_cuts + 1) - np.bincount(until, value, n_cuts + 1)
    return np.cumsum(change)[:-1]


def sum_node_errors(tree: FittedTree, errors: Floats, first_cut: NDArray[np.uint32], n_cuts: int) -> Floats:
    """Return the total of the leaves' errors at every cut, given the error of each node as a leaf."""
    split = np.flatnonzero(~tree.is_leaf)
    above = np.full(tree.node_count, n_cuts, dtype=np.uint32)
    above[split + 1] = above[tree.children_right[split]] = first_cut[split]
    return sum_turns(first_cut, above, errors, n_cuts)


def grow_folds(growth: Growth, folds: list[Fold], cuts: Floats) -> list[FoldTree]:
    """Grow a tree for each fold."""
    grown = []
    for fold in folds:
        weight = np.zeros(growth.n_rows)
        weight[fold.train] = growth.weights()[fold.train]
        grown.append(FoldTree.of(growth.grow(weight), fold.held_out, growth, cuts))
    return grown


def evaluate_by_loss(growth: Growth, fold_trees: list[FoldTree], n_cuts: int) -> tuple[Floats, Floats]:
    """Return the mean loss of the held-out rows at every cut, and its standard error.

    A row that is held out several times, in repeated folds, counts each time in the mean, but as one row in the
    standard error. So does a row of any weight: weights in another unit give the same tree.
    """
    if growth.weight is not None:  # squares of huge weights would overflow; a power of two changes no other bit
        growth = replace(growth, weight=np.ldexp(growth.weight, -math.frexp(float(growth.weight.max()))[1]))
    total, total_weight = np.zeros(n_cuts), 0.0
    held_out = np.zeros(growth.n_rows, dtype=bool)
    squares_in_units = []
    for fold_tree in fold_trees:
        losses, squares, unit = fold_tree.sum_losses(growth, n_cuts)
        total += losses
        if squares.any():
            squares_in_units.append((squares, unit))
        total_weight += float(growth.weights()[fold_tree.rows].sum())
        held_out[fold_tree.rows] = True
    unit = max((unit for _, unit in squares_in_units), default=1.0)
    total_squares = sum((squares * (other / unit) ** 2 for squares, other in squares_in_units), np.zeros(n_cuts))
    once = growth.weights()[held_out]
    cases = once if growth.exposure is None else once / growth.exposure[held_out]
    n_times = total_weight / float(once.sum())
    variance = np.maximum(total_squares / n_times - (total / unit / n_times) ** 2 / float(cases.sum()), 0.0)
    # Kish's effective number of rows: the unit of the weights does not matter, and unequal weights count for fewer rows
    copies = float((cases**2).sum() / cases.sum())
    error_se = np.sqrt(variance * copies) / float(once.sum()) * unit
    return total / total_weight, error_se


def evaluate_by_score(score: Score, fold_trees: list[FoldTree], cuts: Floats) -> tuple[Floats, Floats]:
    """Return the mean negative score over the folds at every cut, and its standard error."""
    scores = np.array([[score(f.tree, float(cut), f.rows) for cut in cuts] for f in fold_trees])
    n = len(fold_trees)
    spread = scores.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(cuts))
    return -scores.mean(axis=0), spread


def thinned(n: int, most: int = MOST_SCORED) -> NDArray[np.intp]:
    """Return at most `most` positions spread evenly over n, including the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def out_of_fold_predictions(growth: Growth, fold_trees: list[FoldTree], cut: int) -> Floats:
    """Return the predictions of the fold trees, pruned at a cut, for their held-out rows.

    Parameters
    ----------
    growth : Growth
    fold_trees : list of FoldTree
    cut : int
        Position of the cut.

    Returns
    -------
    ndarray of shape (n_rows, value_width)
        Mean over the trees that were grown without the row; NaN if there is none.
    """
    total = np.zeros((growth.n_rows, fold_trees[0].tree.flat_value.shape[1]))
    times = np.zeros(growth.n_rows)
    for fold_tree in fold_trees:
        total[fold_tree.rows] += fold_tree.tree.flat_value[fold_tree.stops(cut)]
        times[fold_tree.rows] += 1
    return np.asarray(np.where(times[:, None] > 0, total / np.maximum(times, 1)[:, None], np.nan))


def choose(error: Floats, error_se: Floats, rule: str | float | None) -> int | None:
    """Return the position of the tree to choose; None: the unpruned tree.

    Parameters
    ----------
    error, error_se : ndarray
        Error of each tree and its standard error, from the largest tree to the smallest.
    rule : {"min", "1se"}, float or None
        As the parameter of the trees.

    Returns
    -------
    int or None
        The smallest tree whose error is within `rule` standard errors of the lowest.
    """
    if rule is None:
        return None
    if not np.isfinite(error).any():
        raise ValueError("No tree has a finite cross-validated score. Use another scorer, or fewer folds.")
    error = np.where(np.isfinite(error), error, np.inf)
    slack = _ROUNDING * np.abs(error[np.isfinite(error)]).max()
    best = _last(error <= error.min() + slack)
    width = {"min": 0.0, "1se": 1.0}[rule] if isinstance(rule, str) else float(rule)
    spread = error_se[best] if np.isfinite(error_se[best]) else 0.0
    return _last(error <= error[best] + width * spread + slack)


def _last(mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[-1])


CONFIDENCE = 0.25  # of C4.5's pessimistic estimate


@dataclass(frozen=True)
class FitRows:
    """The arguments of `fit` that folds and scorers need.

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
    """A pruned tree, the penalty per leaf that was used (0: none), and the results of cross-validation."""

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
    """Refuse parameters of pruning that contradict each other, before anything is grown."""
    settings = task.settings
    how = settings.prune
    check_scoring(settings.scoring, isinstance(task, Classification))
    if settings.ccp_alpha > 0 and settings.cp is not None:
        raise ValueError("Pass either ccp_alpha or cp, not both: cp is ccp_alpha as a fraction of the root's risk.")
    if how == "validation" and not held_out:
        raise ValueError("prune='validation' needs held-out rows: set validation_fraction, or pass X_val and y_val.")
    if how in ("cv", "pessimistic") and held_out:
        raise ValueError(
            f"prune={how!r} uses no held-out rows. Leave validation_fraction and X_val out, or use prune='validation'."
        )
    if how == "pessimistic" and not isinstance(task, Classification):
        raise ValueError("prune='pessimistic' counts misclassified rows, so it is for classifiers. Use prune='cv'.")
    if how == "pessimistic" and settings.has_costs:
        raise ValueError("prune='pessimistic' does not take account of costs or priors. Use prune='cv'.")
    if groups_of_caller(groups) is not None:
        read_row_groups(groups, n_rows)
        if how != "cv" and settings.shrinkage != "cv" and not settings.searches_size:
            raise ValueError("groups define the folds of prune='cv', but prune is not 'cv'. Leave them out.")


def prune_grown(task: Task, tree: FittedTree, growth: Growth, held_out: HeldOut | None, rows: FitRows) -> PruningResult:
    """Prune a grown tree by the method that the parameters choose."""
    how = task.settings.prune
    floor = alpha_floor(task.settings, 0.0 if task.settings.cp is None else float(growth.risks(tree)[0]))
    if how == "cv":
        return _prune_by_cv(task, tree, growth, floor or 0.0, rows)
    if held_out is not None and how == "validation":
        tree = reduced_error(tree, held_out, growth.n_jobs)
    elif held_out is not None:
        tree = tree.replaced(prune_best_first(tree, growth.gains(tree), held_out, growth.n_jobs))
    elif how == "pessimistic":
        tree = pessimistic(tree)
    if floor is not None:
        tree = tree.replaced(tree.engine.pruned(floor, growth.risks(tree)))
    return PruningResult(tree, floor or 0.0)


def alpha_floor(settings: GrowthSettings, root_risk: float) -> float | None:
    """Return the penalty that the parameters set; None: no pruning, not even of splits that gain nothing.

    The root's risk is the unit of `cp`.
    """
    if settings.cp is not None:
        return float(settings.cp) * root_risk if settings.cp >= 0 else None
    return float(settings.ccp_alpha) if settings.ccp_alpha > 0 else None


def _prune_by_cv(task: Task, tree: FittedTree, growth: Growth, floor: float, rows: FitRows) -> PruningResult:
    settings, risks = task.settings, growth.risks(tree)
    nested = NestedTrees.of(tree, risks, floor)
    folds = read_folds(settings.cv, growth.codes, rows.target, growth.weights(), rows.groups, rows.random)
    training_errors = _training_errors(task, tree, growth, nested.cuts)
    loss = _row_loss(task, growth, rows)
    evaluated = np.arange(len(nested.alpha)) if loss is not None else thinned(len(nested.alpha))
    cuts = nested.cuts[evaluated]
    fold_trees = grow_folds(growth, folds, cuts)
    if loss is not None:
        error, error_se = evaluate_by_loss(replace(growth, loss=loss), fold_trees, len(cuts))
    elif settings.scoring is not None:
        error, error_se = evaluate_by_score(_score(settings.scoring, rows), fold_trees, cuts)
    if settings.scoring is None:
        root_loss = _root_loss(tree, growth)
        error, error_se = error / root_loss, error_se / root_loss
    at = choose(error, error_se, settings.rule)
    alpha = floor if at is None else float(nested.alpha[evaluated[at]])
    pruned = tree if at is None and floor == 0 else tree.replaced(tree.engine.pruned(alpha, risks))
    table = _table(nested, evaluated, training_errors, error, error_se, at, settings)
    predictions = out_of_fold_predictions(growth, fold_trees, 0 if at is None else at)
    return PruningResult(pruned, alpha, table, pruned.by_output(predictions))


def _row_loss(task: Task, growth: Growth, rows: FitRows) -> Loss | None:
    """Return the loss of a row by which trees are chosen; None: the scorer has no such loss."""
    if task.settings.scoring is None:
        return growth.loss
    is_log_loss = isinstance(task.settings.scoring, str) and metric_key(task.settings.scoring) == "neg_log_loss"
    if isinstance(task, Classification) and is_log_loss and rows.target.shape[1] == 1:
        return task.log_loss(rows.target)
    return None


def _training_errors(task: Task, tree: FittedTree, growth: Growth, cuts: Floats) -> Floats:
    """Return the training error of each nested tree as a fraction of the root's."""
    split = np.flatnonzero(~tree.is_leaf)
    n_rows = tree.n_node_samples
    if (n_rows[split] > n_rows[split + 1] + n_rows[tree.children_right[split]]).any():  # some rows stop before a leaf
        rows = np.flatnonzero(growth.weights() > 0)
        losses, _, _ = FoldTree.of(tree, rows, growth, cuts).sum_losses(growth, len(cuts))
        return np.asarray(losses / growth.weights().sum() / _root_loss(tree, growth))
    fraction = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    errors = fraction * task.node_errors(tree)
    total = sum_node_errors(tree, errors, first_cuts(tree, growth.risks(tree), cuts), len(cuts))
    return np.asarray(total / (errors[0] if errors[0] > 0 else 1.0))


def _root_loss(tree: FittedTree, growth: Growth) -> float:
    """Return the mean loss of the training rows at the root; 1 instead of 0, so that errors can be divided by it."""
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
    """Return the table of complexities, from the root alone to the largest tree."""
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
    from sklearn.utils import _safe_indexing

    scorer = find_scorer(scoring)

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
    """Return the subtree with the fewest expected errors by C4.5's upper confidence limit."""
    return tree.replaced(tree.engine.pruned(0.0, expected_errors(tree)))


def expected_errors(tree: FittedTree, confidence: float = CONFIDENCE) -> Floats:
    """Return for each node N x U(E, N), if E of its N rows are not of its majority class.

    U is the upper limit of a binomial proportion: E errors or fewer in N have the probability `confidence` if the error
    rate is U (Quinlan 1993, chapter 4). Weights may make E and N fractions, which the beta distribution allows.
    """
    rows = tree.weighted_n_node_samples
    error_rates = [1 - tree.flat_value[:, columns].max(axis=1) for columns in tree.class_columns]
    total = np.zeros(tree.node_count)
    for error_rate in error_rates:
        errors = np.minimum(rows * error_rate, rows)
        correct = rows - errors
        limit = betaincinv(errors + 1, np.maximum(correct, np.finfo(float).tiny), 1 - confidence)
        total += rows * np.where(correct > 0, limit, 1.0)
    return total / len(error_rates)
