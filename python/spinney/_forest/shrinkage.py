"""How much the leaves of a forest are shrunk: `shrinkage="auto"`.

Trees that have not seen a row give the probability of its class, at several strengths. A strength that lowers the mean
log loss by more than chance would replaces the usual one. Where trees are grown on all rows, other trees are grown on
samples of the rows for this, and thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.reproducible import any_order_sum, log
from spinney._data.schema import rows_of
from spinney._data.types import ColumnLike, Floats, Integers
from spinney._estimator.costs import ClassCosts
from spinney._forest.growing import ForestRequest, TreeGrower
from spinney._forest.samples import Draws, row_keys
from spinney._model.forest import FittedForest

STRENGTHS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
USUAL = 1  # its place: a tenth of a row
N_FIRST = 50  # the first trees of a forest, which choose the strength; a forest with fewer has the usual one
N_HELPERS = 32  # trees that are grown for this alone
_MOST_ROWS, _FEWEST_ROWS, _MOST_CELLS = 4000, 500, 2**22  # to evaluate strengths on
_LEAST = 1e-15  # a probability that counts as 0


def evaluation_rows(rows: LearningRows) -> tuple[LearningRows, NDArray[np.intp] | None]:
    """Return about as many rows as it takes, and which (None: all); it depends on their values alone."""
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_CELLS // max(1, rows.columns.n_columns)))
    n = len(rows.keys) if rows.copies is None else int(rows.copies.sum())
    if n <= most:
        return rows, None
    chosen = np.flatnonzero(rows.keys < np.uint64(2**64 // n * most))
    return rows.take(chosen), chosen


def strength_of(forest: FittedForest, draws: Draws, rows: LearningRows, unit: float, n_jobs: int) -> float:
    """Strength for a forest of which these are some trees, in rows; few trees ask for too much: one step back.

    `unit` is what a row weighs.
    """
    some, chosen = evaluation_rows(rows)
    by_tree = (draws.counts(t) for t in range(forest.n_trees))
    counts = np.stack([n if chosen is None else n[chosen] for n in by_tree]).astype(np.int64)
    best = clearly_best(_losses(forest, some, _unseen(some, counts, draws), unit, n_jobs), some.weight, some.copies)
    return STRENGTHS[best - 1 if best > USUAL else best]


def _losses(forest: FittedForest, rows: LearningRows, unseen: Floats, unit: float, n_jobs: int) -> Floats:
    """Log losses of rows that some tree has not seen, by strength: (n_strengths, n_rows); others are NaN."""
    leaf = forest.engine.apply(rows.columns, n_jobs)
    codes = np.ascontiguousarray(rows.target, dtype=np.int32)
    proba = forest.engine.own_shares(leaf, unseen, codes, rows.n_classes, np.array(STRENGTHS) * unit, n_jobs).T
    by_output = proba.reshape(len(STRENGTHS), *codes.shape)
    lost = -log(np.maximum(by_output, _LEAST)).sum(axis=2)
    return np.where((by_output > 0).all(axis=(0, 2)), lost, np.nan)


def _unseen(rows: LearningRows, counts: Integers, draws: Draws) -> Floats:
    """How much each tree counts as one that has not seen a row, (n_trees, n_rows), given how often it has drawn it.

    Of c equal rows, or one of weight c, drawn k times in all, each was left out with a probability of (1 - 1/c)^k,
    or (c - k) / c without replacement, whichever it is that the sample holds.
    """
    if rows.groups is not None:
        return np.asarray(counts == 0, dtype=np.float64)
    _, group = np.unique(rows.keys, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    copies = np.ones(len(group), dtype=np.int64) if rows.copies is None else rows.copies
    n_equal = np.maximum(np.add.reduceat(copies[order], starts), 1)[group]
    n_drawn = np.add.reduceat(counts[:, order], starts, axis=1)[:, group]
    if not draws.replace:
        return np.asarray(np.maximum(n_equal - n_drawn, 0) / n_equal)
    unseen, others = np.ones(counts.shape), 1.0 - 1.0 / n_equal
    for k in range(int(n_drawn.max())):
        unseen = np.where(n_drawn > k, unseen * others, unseen)
    return unseen


def clearly_best(losses: Floats, weight: Floats | None, copies: Integers | None) -> int:
    """Place of the strength with the least mean loss, or of the usual one if that is not clearly worse.

    Parameters
    ----------
    losses : ndarray of shape (n_strengths, n_rows)
        NaN: not known.
    weight : ndarray or None
    copies : ndarray of int or None
        How often each row is there.
    """
    known = np.isfinite(losses[USUAL]) & (True if weight is None else weight > 0)
    amount = np.ones(int(known.sum())) if weight is None else weight[known]
    total = any_order_sum(amount)
    if len(amount) == 0 or not total > 0:
        return USUAL
    lower = losses[:, known] - losses[USUAL, known]
    means = [any_order_sum(amount * row) / total for row in lower]
    best = int(np.argmin(means))
    spread = any_order_sum(amount * (lower[best] - means[best]) ** 2) / total
    n = total**2 / any_order_sum(amount**2) if copies is None else float(copies[known].sum())
    return best if means[best] ** 2 * n > spread else USUAL


def grows_again(request: ForestRequest, earlier: FittedForest, strength: float, grower: TreeGrower) -> bool:
    """Whether the request would grow the trees that there are: then they need not be retained."""
    again = grower(request, 0, earlier.n_trees).engine.shrunk(strength)
    return all(
        np.array_equal(getattr(again, name), getattr(earlier.engine, name), equal_nan=True)
        for name in ("feature", "threshold", "value")
    )


@dataclass(frozen=True)
class LearningRows:
    """A table with its target and weights, as trees are grown on it.

    Attributes
    ----------
    inputs, columns : Table
        Columns of the table, and those that trees split on.
    target : ndarray of shape (n_rows, n_outputs)
        Class codes, or values.
    n_classes : list of int
        Empty for a numeric target.
    classes : list of ndarray or None
    sample_weight, weight : ndarray or None
        Without and with the weights of the classes.
    copies : ndarray of int or None
        How often each row is there, where its weight says that.
    counts_copies : bool
        Whether samples are drawn as if rows were there so many times.
    costs : ClassCosts or None
    groups : array-like or None
    prints : ndarray of shape (n_rows,) or None
        Numbers that depend on the values of a row alone.
    """

    inputs: _engine.Table
    columns: _engine.Table
    target: NDArray[Any]
    n_classes: list[int]
    classes: list[NDArray[Any]] | None = None
    sample_weight: Floats | None = None
    weight: Floats | None = None
    copies: Integers | None = None
    counts_copies: bool = False
    costs: ClassCosts | None = None
    groups: ColumnLike = None
    prints: NDArray[np.uint64] | None = None

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Numbers that depend on the values and the target of a row alone."""
        assert self.prints is not None
        return row_keys(self.prints, self.target, self.inputs.n_columns)

    @property
    def drawn_copies(self) -> Integers | None:
        """How often each row is there for the draws; None: once."""
        return self.copies if self.counts_copies else None

    @property
    def unit(self) -> float:
        """What class weights multiply the rows by on average: the unit they are in must not matter."""
        if self.weight is None or self.weight is self.sample_weight:
            return 1.0
        n = len(self.weight) if self.sample_weight is None else any_order_sum(self.sample_weight)
        return any_order_sum(self.weight) / n

    @property
    def in_leaves(self) -> Floats | None:
        """Weights of the rows in the leaves that retain them."""
        weight = per_draw(self.weight, self.drawn_copies)
        return weight if self.costs is None else self.costs.value_weights(self.target[:, 0], weight)

    def take(self, rows: NDArray[np.intp]) -> LearningRows:
        """Return some of the rows."""
        chosen: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in ("target", "sample_weight", "weight", "copies", "prints")
        }
        return replace(self, columns=rows_of(self.columns, rows), **chosen)


def per_draw(weight: Floats | None, copies: Integers | None) -> Floats | None:
    """Return the weight of each row per draw: less where the row is drawn more often because of its weight."""
    return weight if weight is None or copies is None else weight / np.maximum(copies, 1)
