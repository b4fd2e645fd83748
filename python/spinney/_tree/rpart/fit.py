"""Growth, complexities and cross-validation of a tree by rpart's rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.reproducible import dot
from spinney._data.types import Floats
from spinney._model.tree import FittedTree
from spinney._tree.rpart.methods import Method, NodeSummaries, Rounding, Shape
from spinney._tree.rpart.record import RpartRecord, gains, resting_nodes, shape_of, surviving_nodes

Rows = NDArray[np.intp]


@dataclass
class RpartGrowth:
    """A table with its response, on which trees are grown by rpart's rules.

    Attributes
    ----------
    columns : Table
        All rows.
    method : Method
    method_name : str
    grow : callable
        (split weights, options of surrogates) -> tree, node at which each row stopped.
    surrogates : callable
        rpart's options -> the engine's options of surrogate and competitor splits.
    closed_cuts : list of int
        By column: 1 where the lower side includes the threshold, as in rpart for ordered factors.
    rounding : Rounding
        How ties between splits are broken.
    rows : ndarray
        Rows used.
    quirks : bool
        Whether to reproduce rpart's bugs.
    stale_errors : bool
        Whether to reproduce rpart's bug that a held-out row which stops before a leaf gets the errors of the previous
        row.
    n_jobs : int
    """

    columns: _engine.Table
    method: Method
    method_name: str
    grow: Callable[[Floats, _engine.SurrogateOptions], tuple[FittedTree, NDArray[np.uint32]]]
    surrogates: Callable[[_engine.RpartOptions], _engine.SurrogateOptions]
    closed_cuts: list[int]
    rounding: Rounding
    rows: Rows
    quirks: bool
    stale_errors: bool
    n_jobs: int

    @property
    def total_weight(self) -> float:
        """Weight of the rows used."""
        return float(self.method.case_weight[self.rows].sum())

    def grow_on(self, rows: Rows, cp: float, alpha: float | None = None) -> Grown:
        """Grow a tree on some rows, down to splits that may be worth alpha (in a fold) or cp."""
        risks = self.method.root_risks(rows) if cp >= 0 else None
        weight = np.zeros(self.columns.n_rows)
        weight[rows] = self.method.split_weight()[rows]
        price = cp * risks[0] if alpha is None and risks is not None else alpha
        rpart = _engine.RpartOptions(
            quirks=self.quirks,
            fold=alpha is not None,
            closed_cuts=self.closed_cuts,
            rows=rows.tolist(),
            price=None if risks is None else price,
            class_risk=[] if risks is None else risks[1],
            response=self.rounding.response,
            exposure=self.rounding.exposure,
            class_factor=self.rounding.class_factor,
        )
        tree, resting = self.grow(weight, self.surrogates(rpart))
        where = np.where(resting == np.iinfo(np.uint32).max, -1, resting.astype(np.int64))
        self.method.start(rows)
        summaries = self.method.summarise(tree, where)
        return Grown(tree, where, summaries, self.method.improve(gains(tree), summaries.risk))

    def alpha_tree(self, grown: Grown, alpha: float, scale: Scale) -> tuple[FittedTree, Floats, NDArray[np.int64]]:
        """Prune a grown tree at alpha; return the pruned tree, its complexities and its nodes in the grown tree."""
        shape = shape_of(grown.tree, grown.improve)
        complexity, is_retained = subtree_complexities(shape, grown.summaries.risk, alpha, scale)
        leaf = ~grown.tree.is_leaf & ~is_retained
        nodes = surviving_nodes(grown.tree, leaf)
        return grown.tree.replaced(grown.tree.engine.collapsed(leaf.astype(np.uint8))), complexity[nodes], nodes


@dataclass
class Grown:
    """A grown tree, the node at which each row stopped, and the summaries and improvements of the nodes."""

    tree: FittedTree
    where: NDArray[np.int64]
    summaries: NodeSummaries
    improve: Floats


def _summaries_of(summaries: NodeSummaries, nodes: NDArray[np.int64]) -> NodeSummaries:
    chosen: dict[str, Any] = {name: None if array is None else array[nodes] for name, array in vars(summaries).items()}
    return NodeSummaries(**chosen)


def fit_record(growth: RpartGrowth, cp: float, folds: NDArray[Any] | None, impurity: Any) -> RpartRecord:
    """Grow a tree, prune it at cp, and cross-validate its complexities.

    Parameters
    ----------
    growth : RpartGrowth
        The rows.
    cp : float
        Penalty per split, as a fraction of the root's risk.
    folds : ndarray or None
        Fold of each row of the table; None: no cross-validation.
    impurity : callable
        Node summaries -> impurity of each node.
    """
    scale = Scale()
    whole = growth.grow_on(growth.rows, cp)
    root_risk = float(whole.summaries.risk[0])
    alpha = cp * root_risk
    tree, complexity, nodes = growth.alpha_tree(whole, alpha, scale)
    summaries = _summaries_of(whole.summaries, nodes)
    table = complexity_table(tree, summaries.risk, complexity, alpha)
    skips_cv = growth.quirks and tree.node_count == 1  # rpart does not cross-validate a tree without splits
    if skips_cv:
        table[0, 0] = complexity[0]
    if folds is not None:
        errors = np.zeros((1, 2)) if skips_cv else CrossValidation(growth, table[:, 0], cp, alpha, scale).run(folds)
        table = np.column_stack([table, errors])
    with np.errstate(divide="ignore", invalid="ignore"):
        table[:, [0, *range(2, table.shape[1])]] /= root_risk
        complexity = complexity / root_risk
    where = resting_nodes(whole.where, nodes)
    improve = whole.improve[nodes]
    return RpartRecord(
        method=growth.method_name,
        tree=tree.with_values(summaries.value, summaries.mass, impurity(summaries)),
        risk=summaries.risk,
        complexity=complexity,
        improve=improve,
        prediction=summaries.prediction,
        weight=summaries.weight,
        counts=summaries.counts,
        events=summaries.events,
        where=where,
        cp_table=table,
        total_weight=growth.total_weight,
        credit=growth.method.credit(improve, summaries.risk),
        n_dropped=int(np.count_nonzero(where < 0)),
    )


def complexity_table(tree: FittedTree, risk: Floats, complexity: Floats, alpha: float) -> Floats:
    """Return rows of complexity, number of splits and risk, in units of risk, from the root alone to the whole tree.

    Equal complexities share a row; those that differ in the last digit do not.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    penalties = np.unique(np.append(np.maximum(complexity[inner], alpha), alpha))[::-1]
    saved = risk[inner] - risk[inner + 1] - risk[tree.children_right[inner]]
    order = np.argsort(-complexity[inner], kind="stable")
    n_splits = np.searchsorted(-complexity[inner][order], -penalties, side="left")
    leaves = risk[0] - np.concatenate([[0.0], np.cumsum(saved[order])])[n_splits]
    return np.column_stack([penalties, n_splits, leaves])


class CrossValidation:
    """Errors of held-out rows at every complexity, from one pass down one tree per fold."""

    def __init__(self, growth: RpartGrowth, penalties: Floats, cp: float, alpha: float, scale: Scale) -> None:
        self.growth, self.cp, self.alpha, self.scale = growth, cp, alpha, scale
        product = penalties[:-1] * penalties[1:]
        # a negative last penalty has no geometric mean with its neighbour: rpart's NaN stops every row at its node
        undefined = np.nan if growth.quirks else penalties[1:]
        between = np.where(product < 0, undefined, np.sqrt(np.maximum(product, 0.0)))
        self.cuts = np.concatenate([[10 * penalties[0]], between])
        self.sum = np.zeros(len(penalties))
        self.squares = np.zeros(len(penalties))
        self.last = np.zeros(len(penalties))  # errors of the previous row, for rpart's bug

    def run(self, folds: NDArray[Any]) -> Floats:
        """Return error and standard error by complexity, in units of risk."""
        growth, total = self.growth, self.growth.total_weight
        for fold in np.unique(folds[growth.rows]):
            inside = folds[growth.rows] == fold
            training, held_out = growth.rows[~inside], growth.rows[inside]
            weight = growth.method.case_weight
            if not (weight[training] > 0).any():
                raise ValueError(f"Without fold {fold}, no row of positive weight is left. Pass other folds as xval.")
            fraction = float(weight[training].sum()) / total
            grown = growth.grow_on(training, self.cp, self.alpha * fraction)
            tree, complexity, nodes = growth.alpha_tree(grown, self.alpha * fraction, self.scale)
            self._add_errors(tree, complexity, _summaries_of(grown.summaries, nodes), held_out, self.cuts * fraction)
        with np.errstate(invalid="ignore"):
            spread = self.squares - self.sum**2 / total
        return np.column_stack([self.sum, np.sqrt(np.maximum(spread, 0.0))])

    def _add_errors(
        self, tree: FittedTree, complexity: Floats, summaries: NodeSummaries, held_out: Rows, cuts: Floats
    ) -> None:
        growth = self.growth
        resting = tree.engine.apply(growth.columns, growth.n_jobs)[held_out].astype(np.int64)
        weight = growth.method.case_weight[held_out]
        at = np.zeros(len(held_out), dtype=np.int64)
        right = tree.children_right.astype(np.int64)
        stuck = np.zeros(len(held_out), dtype=bool)
        for i, cut in enumerate(cuts):  # complexities fall along every path, so rows only move down
            moves = (at != resting) & (complexity[at] > cut)
            while moves.any():
                rows = np.flatnonzero(moves)
                node = at[rows]
                at[rows] = np.where(resting[rows] >= right[node], right[node], node + 1)
                moves[rows] = (at[rows] != resting[rows]) & (complexity[at[rows]] > cut)
            errors = growth.method.errors(held_out, at, summaries)
            if growth.stale_errors:
                stuck |= (at == resting) & ~tree.is_leaf[at] & (complexity[at] > cut)
                errors = self._repeated(errors, stuck, i)
            errors = np.where(weight > 0, errors, 0.0)  # errors may be infinite
            self.sum[i] += dot(weight, errors)
            self.squares[i] += dot(weight, errors**2)

    def _repeated(self, errors: Floats, stuck: NDArray[np.bool_], i: int) -> Floats:
        source = np.maximum.accumulate(np.where(stuck, -1, np.arange(len(errors))))
        errors = np.where(source < 0, self.last[i], errors[np.maximum(source, 0)])
        if len(errors):
            self.last[i] = errors[-1]
        return np.asarray(errors)


SMALLEST_IMPROVEMENT = 1e-10  # an improvement below this fraction of the largest so far counts as none


@dataclass
class Scale:
    """The largest improvement so far, over all trees of one fit."""

    largest: float = 0.0


@dataclass
class _Pruner:
    shape: Shape
    risk: Floats
    alpha: float
    scale: Scale
    complexity: Floats = field(init=False)
    is_retained: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.complexity = np.full(len(self.shape), self.alpha)
        self.is_retained = np.zeros(len(self.shape), dtype=bool)

    def prune(self, node: int, bound: float) -> tuple[float, int]:
        """Prune the subtree of a node; return the risk of its remaining leaves and the number of its remaining splits.

        `bound` is the most that a split of this node can be worth: where that is not above alpha, none is tried.
        """
        risk = float(self.risk[node])
        bound = min(bound, risk)
        if bound <= self.alpha or not self._has_split(node):
            return risk, 0
        left, right = int(self.shape.left[node]), int(self.shape.right[node])
        left_risk, left_splits = self.prune(left, bound - self.alpha)
        worth = max((risk - left_risk) / (left_splits + 1), risk - float(self.risk[left]))
        right_risk, right_splits = self.prune(right, min(worth, bound) - self.alpha)
        leaves_risk, n_splits = self._before_collapse(
            risk, (left, left_risk, left_splits), (right, right_risk, right_splits)
        )
        self.complexity[node] = (risk - leaves_risk) / (n_splits + 1)
        if self.complexity[node] <= self.alpha:
            return risk, 0
        self.is_retained[node] = True
        return leaves_risk, n_splits + 1

    def _has_split(self, node: int) -> bool:
        if self.shape.left[node] < 0:
            return False
        improve = float(self.shape.improve[node])
        self.scale.largest = max(self.scale.largest, improve)
        return improve > SMALLEST_IMPROVEMENT * self.scale.largest

    def _before_collapse(
        self, risk: float, left: tuple[int, float, int], right: tuple[int, float, int]
    ) -> tuple[float, int]:
        """Return risk and splits below a node when it collapses: a child worth less per split collapses before it."""
        weaker, stronger = (left, right) if self.complexity[right[0]] > self.complexity[left[0]] else (right, left)
        (weak, weak_risk, weak_splits), (strong, strong_risk, strong_splits) = weaker, stronger
        if (risk - weak_risk - strong_risk) / (weak_splits + strong_splits + 1) > self.complexity[weak]:
            weak_risk, weak_splits = float(self.risk[weak]), 0
            if (risk - weak_risk - strong_risk) / (strong_splits + 1) > self.complexity[strong]:
                strong_risk, strong_splits = float(self.risk[strong]), 0
        return weak_risk + strong_risk, weak_splits + strong_splits


def subtree_complexities(shape: Shape, risk: Floats, alpha: float, scale: Scale) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each node's complexity, in units of risk, and whether its split is retained at alpha.

    Parameters
    ----------
    shape : Shape
        The unpruned tree.
    risk : ndarray
        Risk of each node if it were a leaf.
    alpha : float
        Penalty per split.
    scale : Scale
        Largest improvement so far; it is updated.
    """
    pruner = _Pruner(shape, risk, alpha, scale)
    pruner.prune(0, float(risk[0]))
    complexity = pruner.complexity
    stack = [0]
    while stack:  # the complexity of a subtree is at most that of the subtree that contains it
        node = stack.pop()
        if not pruner.is_retained[node]:
            continue
        for child in (int(shape.left[node]), int(shape.right[node])):
            complexity[child] = min(complexity[child], complexity[node])
            stack.append(child)
    return complexity, pruner.is_retained
