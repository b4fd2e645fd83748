"""The strength of shrinkage in a forest with `shrinkage="auto"`.

The out-of-bag log loss is computed at several strengths. A strength whose mean loss is significantly lower replaces the
default one. If trees are grown on all rows, auxiliary trees are grown on samples for this choice, and discarded.
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
DEFAULT = 1  # its position: a tenth of a row
N_FIRST = 50  # the first trees of a forest, which choose the strength; smaller forests use the default
N_AUXILIARY = 32  # auxiliary trees
_MOST_ROWS, _FEWEST_ROWS, _MOST_CELLS = 4000, 500, 2**22  # for the evaluation of strengths
_LEAST = 1e-15  # smaller probabilities are raised to this


def evaluation_rows(rows: LearningRows) -> tuple[LearningRows, NDArray[np.intp] | None]:
    """Return a subset of rows for the evaluation and their numbers (None: all), chosen by their values alone."""
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_CELLS // max(1, rows.columns.n_columns)))
    n = len(rows.keys) if rows.copies is None else int(rows.copies.sum())
    if n <= most:
        return rows, None
    chosen = np.flatnonzero(rows.keys < np.uint64(2**64 // n * most))
    return rows.take(chosen), chosen


def strength_of(forest: FittedForest, draws: Draws, rows: LearningRows, unit: float, n_jobs: int) -> float:
    """Return the strength, in rows, for a forest of which `forest` holds the first trees.

    Few trees prefer a strength that is too large for many, so that the next smaller one is returned. `unit` is the
    weight of a row.
    """
    subset, chosen = evaluation_rows(rows)
    by_tree = (draws.counts(t) for t in range(forest.n_trees))
    counts = np.stack([n if chosen is None else n[chosen] for n in by_tree]).astype(np.int64)
    losses = _losses(forest, subset, _unseen(subset, counts, draws), unit, n_jobs)
    best = clearly_best(losses, subset.weight, subset.copies)
    return STRENGTHS[best - 1 if best > DEFAULT else best]


def _losses(forest: FittedForest, rows: LearningRows, unseen: Floats, unit: float, n_jobs: int) -> Floats:
    """Return the out-of-bag log losses by strength, (n_strengths, n_rows); NaN for rows that are in every sample."""
    leaf = forest.engine.apply(rows.columns, n_jobs)
    codes = np.ascontiguousarray(rows.target, dtype=np.int32)
    proba = forest.engine.true_class_proba(leaf, unseen, codes, rows.n_classes, np.array(STRENGTHS) * unit, n_jobs).T
    by_output = proba.reshape(len(STRENGTHS), *codes.shape)
    lost = -log(np.maximum(by_output, _LEAST)).sum(axis=2)
    return np.where((by_output > 0).all(axis=(0, 2)), lost, np.nan)


def _unseen(rows: LearningRows, counts: Integers, draws: Draws) -> Floats:
    """Return the probability that each row is out of bag for each tree, (n_trees, n_rows), from how often it was drawn.

    If c equal rows, or one row of weight c, were drawn k times in all, each was left out with a probability of
    (1 - 1/c)^k, or (c - k) / c without replacement, whichever of them the sample holds.
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
    """Return the position of the strength of least mean loss, or of the default if that is not significantly worse.

    Parameters
    ----------
    losses : ndarray of shape (n_strengths, n_rows)
        NaN: unknown.
    weight : ndarray or None
    copies : ndarray of int or None
        Whole weights.
    """
    known = np.isfinite(losses[DEFAULT]) & (True if weight is None else weight > 0)
    amount = np.ones(int(known.sum())) if weight is None else weight[known]
    total = any_order_sum(amount)
    if len(amount) == 0 or not total > 0:
        return DEFAULT
    lower = losses[:, known] - losses[DEFAULT, known]
    means = [any_order_sum(amount * row) / total for row in lower]
    best = int(np.argmin(means))
    spread = any_order_sum(amount * (lower[best] - means[best]) ** 2) / total
    n = total**2 / any_order_sum(amount**2) if copies is None else float(copies[known].sum())
    return best if means[best] ** 2 * n > spread else DEFAULT


def grows_again(request: ForestRequest, earlier: FittedForest, strength: float, grower: TreeGrower) -> bool:
    """Return whether the request would grow the earlier trees again: then they can be replaced."""
    again = grower(request, 0, earlier.n_trees).engine.shrunk(strength)
    return all(
        np.array_equal(getattr(again, name), getattr(earlier.engine, name), equal_nan=True)
        for name in ("feature", "threshold", "value")
    )


@dataclass(frozen=True)
class LearningRows:
    """The rows that a forest is grown on: table, target and weights.

    Attributes
    ----------
    inputs, columns : Table
        Columns of the table, and the columns or combinations that trees split on.
    target : ndarray of shape (n_rows, n_outputs)
        Class codes, or values.
    n_classes : list of int
        Empty for a numeric target.
    classes : list of ndarray or None
    sample_weight, weight : ndarray or None
        Without and with class weights.
    copies : ndarray of int or None
        Whole weights, if the weights are whole multiples of the smallest.
    counts_copies : bool
        Whether samples are drawn as if rows were repeated by their whole weights.
    costs : ClassCosts or None
    groups : array-like or None
    fingerprints : ndarray of shape (n_rows,) or None
        Hashes of the values of each row.
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
    fingerprints: NDArray[np.uint64] | None = None

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Keys that depend only on the values and the target of each row."""
        assert self.fingerprints is not None
        return row_keys(self.fingerprints, self.target, self.inputs.n_columns)

    @property
    def drawn_copies(self) -> Integers | None:
        """How often each row is repeated in the draws; None: once."""
        return self.copies if self.counts_copies else None

    @property
    def unit(self) -> float:
        """Mean class weight of the rows, by which strengths are multiplied so that its unit does not matter."""
        if self.weight is None or self.weight is self.sample_weight:
            return 1.0
        n = len(self.weight) if self.sample_weight is None else any_order_sum(self.sample_weight)
        return any_order_sum(self.weight) / n

    @property
    def in_leaves(self) -> Floats | None:
        """Weights of the rows in the leaves, for stored training rows."""
        weight = per_draw(self.weight, self.drawn_copies)
        return weight if self.costs is None else self.costs.value_weights(self.target[:, 0], weight)

    def take(self, rows: NDArray[np.intp]) -> LearningRows:
        """Return some of the rows."""
        chosen: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in ("target", "sample_weight", "weight", "copies", "fingerprints")
        }
        return replace(self, columns=rows_of(self.columns, rows), **chosen)


def per_draw(weight: Floats | None, copies: Integers | None) -> Floats | None:
    """Return the weight of each row per draw: less where the row is drawn more often because of its weight."""
    return weight if weight is None or copies is None else weight / np.maximum(copies, 1)
