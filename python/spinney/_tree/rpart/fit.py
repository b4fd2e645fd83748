"""Growing and cross-validating a tree by rpart's rules."""

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
    """A table with its response, ready to grow trees by rpart's rules.

    Attributes
    ----------
    columns : Table
        All rows, as the engine sees them.
    method : Method
    method_name : str
    grow : callable
        (weights of the search, weighing options) -> tree, resting node of each row.
    weighing : callable
        From rpart's options to the engine's options of weighing.
    closed_cuts : list of int
        By column: 1 where a cut includes the middle between two values, as rpart predicts with ordered factors.
    rounding : Rounding
        What decides between equally good splits.
    rows : ndarray
        Rows used.
    quirks : bool
        Repeat rpart's errors.
    stale_errors : bool
        Repeat rpart's error: a held-out row that gets stuck counts with the errors of the row before it.
    n_jobs : int
    """

    columns: _engine.Table
    method: Method
    method_name: str
    grow: Callable[[Floats, _engine.WeighingOptions], tuple[FittedTree, NDArray[np.uint32]]]
    weighing: Callable[[_engine.RpartOptions], _engine.WeighingOptions]
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
        """Grow a tree on some rows, as far as a split may be worth alpha (in a fold) or cp."""
        priced = self.method.priced(rows) if cp >= 0 else None
        weight = np.zeros(self.columns.n_rows)
        weight[rows] = self.method.split_weight()[rows]
        price = cp * priced[0] if alpha is None and priced is not None else alpha
        rpart = _engine.RpartOptions(
            quirks=self.quirks,
            fold=alpha is not None,
            closed_cuts=self.closed_cuts,
            rows=rows.tolist(),
            price=None if priced is None else price,
            class_risk=[] if priced is None else priced[1],
            response=self.rounding.response,
            exposure=self.rounding.exposure,
            class_factor=self.rounding.class_factor,
        )
        tree, resting = self.grow(weight, self.weighing(rpart))
        where = np.where(resting == np.iinfo(np.uint32).max, -1, resting.astype(np.int64))
        self.method.start(rows)
        summaries = self.method.summarise(tree, where)
        return Grown(tree, where, summaries, self.method.improve(gains(tree), summaries.risk))

    def alpha_tree(self, grown: Grown, alpha: float, scale: Scale) -> tuple[FittedTree, Floats, NDArray[np.int64]]:
        """Cut a whole tree back to alpha; give the tree, its complexities and its nodes in the whole tree."""
        shape = shape_of(grown.tree, grown.improve)
        complexity, kept_split = weigh_subtrees(shape, grown.summaries.risk, alpha, scale)
        leaf = ~grown.tree.is_leaf & ~kept_split
        kept = surviving_nodes(grown.tree, leaf)
        return grown.tree.replaced(grown.tree.engine.collapsed(leaf.astype(np.uint8))), complexity[kept], kept


@dataclass
class Grown:
    """A whole tree and what its nodes are worth."""

    tree: FittedTree
    where: NDArray[np.int64]
    summaries: NodeSummaries
    improve: Floats


def _picked(summaries: NodeSummaries, kept: NDArray[np.int64]) -> NodeSummaries:
    chosen: dict[str, Any] = {name: None if array is None else array[kept] for name, array in vars(summaries).items()}
    return NodeSummaries(**chosen)


def fit_record(growth: RpartGrowth, cp: float, folds: NDArray[Any] | None, impurity: Any) -> RpartRecord:
    """Grow a tree, cut it back to cp, and cross-validate its complexities.

    Parameters
    ----------
    growth : RpartGrowth
        What to grow on.
    cp : float
        Price of a split, relative to the root's risk.
    folds : ndarray or None
        Fold of each row of the table; None: no cross-validation.
    impurity : callable
        (value, mass, risk) -> impurity of each node, as the tree stores it.
    """
    scale = Scale()
    whole = growth.grow_on(growth.rows, cp)
    root_risk = float(whole.summaries.risk[0])
    alpha = cp * root_risk
    tree, complexity, kept = growth.alpha_tree(whole, alpha, scale)
    summaries = _picked(whole.summaries, kept)
    table = complexity_table(tree, summaries.risk, complexity, alpha)
    unjudged = growth.quirks and tree.node_count == 1  # rpart does not cross-validate a tree without splits
    if unjudged:
        table[0, 0] = complexity[0]
    if folds is not None:
        errors = np.zeros((1, 2)) if unjudged else CrossValidation(growth, table[:, 0], cp, alpha, scale).run(folds)
        table = np.column_stack([table, errors])
    with np.errstate(divide="ignore", invalid="ignore"):
        table[:, [0, *range(2, table.shape[1])]] /= root_risk
        complexity = complexity / root_risk
    where = resting_nodes(whole.where, kept)
    improve = whole.improve[kept]
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
    """Return lines of complexity, splits and risk, in units of risk, from the stump to the whole tree.

    Equal complexities share a line; those that differ in the last digit do not.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    prices = np.unique(np.append(np.maximum(complexity[inner], alpha), alpha))[::-1]
    saved = risk[inner] - risk[inner + 1] - risk[tree.children_right[inner]]
    order = np.argsort(-complexity[inner], kind="stable")
    n_kept = np.searchsorted(-complexity[inner][order], -prices, side="left")
    leaves = risk[0] - np.concatenate([[0.0], np.cumsum(saved[order])])[n_kept]
    return np.column_stack([prices, n_kept, leaves])


class CrossValidation:
    """Errors of held-out rows at every complexity, from one walk down one tree per fold."""

    def __init__(self, growth: RpartGrowth, prices: Floats, cp: float, alpha: float, scale: Scale) -> None:
        self.growth, self.cp, self.alpha, self.scale = growth, cp, alpha, scale
        product = prices[:-1] * prices[1:]
        # a negative last price has no mean with its neighbour: rpart's NaN stops every row where it stands
        undefined = np.nan if growth.quirks else prices[1:]
        between = np.where(product < 0, undefined, np.sqrt(np.maximum(product, 0.0)))
        self.cuts = np.concatenate([[10 * prices[0]], between])
        self.sum = np.zeros(len(prices))
        self.squares = np.zeros(len(prices))
        self.last = np.zeros(len(prices))  # errors of the row before, for rpart's slip

    def run(self, folds: NDArray[Any]) -> Floats:
        """Return error and standard error by complexity, in units of risk."""
        growth, total = self.growth, self.growth.total_weight
        for fold in np.unique(folds[growth.rows]):
            inside = folds[growth.rows] == fold
            training, held_out = growth.rows[~inside], growth.rows[inside]
            weight = growth.method.case_weight
            if not (weight[training] > 0).any():
                raise ValueError(f"Without fold {fold}, no row of positive weight is left. Pass other folds as xval.")
            share = float(weight[training].sum()) / total
            grown = growth.grow_on(training, self.cp, self.alpha * share)
            tree, complexity, kept = growth.alpha_tree(grown, self.alpha * share, self.scale)
            self._judge(tree, complexity, _picked(grown.summaries, kept), held_out, self.cuts * share)
        with np.errstate(invalid="ignore"):
            spread = self.squares - self.sum**2 / total
        return np.column_stack([self.sum, np.sqrt(np.maximum(spread, 0.0))])

    def _judge(
        self, tree: FittedTree, complexity: Floats, summaries: NodeSummaries, held_out: Rows, cuts: Floats
    ) -> None:
        growth = self.growth
        resting = tree.engine.apply(growth.columns, growth.n_jobs)[held_out].astype(np.int64)
        weight = growth.method.case_weight[held_out]
        at = np.zeros(len(held_out), dtype=np.int64)
        right = tree.children_right.astype(np.int64)
        stuck = np.zeros(len(held_out), dtype=bool)
        for i, cut in enumerate(cuts):  # complexities fall along every path, so rows only go down
            going = (at != resting) & (complexity[at] > cut)
            while going.any():
                rows = np.flatnonzero(going)
                node = at[rows]
                at[rows] = np.where(resting[rows] >= right[node], right[node], node + 1)
                going[rows] = (at[rows] != resting[rows]) & (complexity[at[rows]] > cut)
            errors = growth.method.errors(held_out, at, summaries)
            if growth.stale_errors:
                stuck |= (at == resting) & ~tree.is_leaf[at] & (complexity[at] > cut)
                errors = self._repeated(errors, stuck, i)
            errors = np.where(weight > 0, errors, 0.0)  # which may be infinite
            self.sum[i] += dot(weight, errors)
            self.squares[i] += dot(weight, errors**2)

    def _repeated(self, errors: Floats, stuck: NDArray[np.bool_], i: int) -> Floats:
        source = np.maximum.accumulate(np.where(stuck, -1, np.arange(len(errors))))
        errors = np.where(source < 0, self.last[i], errors[np.maximum(source, 0)])
        if len(errors):
            self.last[i] = errors[-1]
        return np.asarray(errors)


SMALLEST_SHARE = 1e-10  # an improvement below this share of the largest so far counts as none


@dataclass
class Scale:
    """Largest improvement seen, over all trees of one fit."""

    largest: float = 0.0


@dataclass
class _Judge:
    shape: Shape
    risk: Floats
    alpha: float
    scale: Scale
    complexity: Floats = field(init=False)
    kept: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.complexity = np.full(len(self.shape), self.alpha)
        self.kept = np.zeros(len(self.shape), dtype=bool)

    def weigh(self, node: int, bound: float) -> tuple[float, int]:
        """Weigh the subtree of a node; give the risk of the leaves and the number of splits that survive in it.

        `bound` is the most that a split of this node can be worth: where that is not above alpha, none is tried.
        """
        risk = float(self.risk[node])
        bound = min(bound, risk)
        if bound <= self.alpha or not self._has_split(node):
            return risk, 0
        left, right = int(self.shape.left[node]), int(self.shape.right[node])
        left_risk, left_splits = self.weigh(left, bound - self.alpha)
        worth = max((risk - left_risk) / (left_splits + 1), risk - float(self.risk[left]))
        right_risk, right_splits = self.weigh(right, min(worth, bound) - self.alpha)
        leaves_risk, n_splits = self._before_collapse(
            risk, (left, left_risk, left_splits), (right, right_risk, right_splits)
        )
        self.complexity[node] = (risk - leaves_risk) / (n_splits + 1)
        if self.complexity[node] <= self.alpha:
            return risk, 0
        self.kept[node] = True
        return leaves_risk, n_splits + 1

    def _has_split(self, node: int) -> bool:
        if self.shape.left[node] < 0:
            return False
        improve = float(self.shape.improve[node])
        self.scale.largest = max(self.scale.largest, improve)
        return improve > SMALLEST_SHARE * self.scale.largest

    def _before_collapse(
        self, risk: float, left: tuple[int, float, int], right: tuple[int, float, int]
    ) -> tuple[float, int]:
        """Risk and splits left below a node when it collapses: a son that is worth less per split goes before."""
        weaker, stronger = (left, right) if self.complexity[right[0]] > self.complexity[left[0]] else (right, left)
        (weak, weak_risk, weak_splits), (strong, strong_risk, strong_splits) = weaker, stronger
        if (risk - weak_risk - strong_risk) / (weak_splits + strong_splits + 1) > self.complexity[weak]:
            weak_risk, weak_splits = float(self.risk[weak]), 0
            if (risk - weak_risk - strong_risk) / (strong_splits + 1) > self.complexity[strong]:
                strong_risk, strong_splits = float(self.risk[strong]), 0
        return weak_risk + strong_risk, weak_splits + strong_splits


def weigh_subtrees(shape: Shape, risk: Floats, alpha: float, scale: Scale) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each node's complexity and whether its split is kept at alpha; both in units of risk.

    Parameters
    ----------
    shape : Shape
        Tree grown without regard to alpha.
    risk : ndarray
        Risk of each node if it were a leaf.
    alpha : float
        Price of a split.
    scale : Scale
        Largest improvement so far; it is updated.
    """
    judge = _Judge(shape, risk, alpha, scale)
    judge.weigh(0, float(risk[0]))
    complexity, kept = judge.complexity, judge.kept
    stack = [0]
    while stack:  # no subtree outlives the one that contains it; what is not reached is cut off
        node = stack.pop()
        if not kept[node]:
            continue
        for child in (int(shape.left[node]), int(shape.right[node])):
            complexity[child] = min(complexity[child], complexity[node])
            stack.append(child)
    return complexity, kept
