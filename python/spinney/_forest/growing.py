"""Growth of the trees of a forest in batches: their size, when to stop, progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.reproducible import sums_by_code
from spinney._data.types import Floats
from spinney._estimator.parallel import Progress
from spinney._forest.samples import Draws, OutOfBag
from spinney._model.forest import FittedForest

_ALL = 2**32 - 1
_BATCH_SECONDS = 0.5  # between two reports
# n_estimators="auto": trees are added until the mean error of the last window is within the tolerance of the one before
_WINDOW, _TOLERANCE, MOST_MEMBERS = 50, 0.005, 1000


@dataclass(frozen=True)
class ForestRequest:
    """The arguments by which the engine grows trees of one forest.

    Attributes
    ----------
    columns : Table
    y : ndarray
        Values or class codes.
    options : GrowthOptions
    n_categories : list of int
        By column; 0 for numbers.
    criterion : str
    n_classes : list of int
        By output; empty for a numeric target.
    n_outputs : int
    decision : ndarray or None
        Misclassification costs by which predictions choose a class.
    weight : ndarray or None
        Weights of the rows, multiplied by how often they are drawn.
    draws : Draws or None
        The samples of the trees; None: all rows.
    max_features_per_tree : int or None
    balanced : ndarray of int or None
        Class codes, one column per output: each tree's sample is weighted so that these classes have equal weights.
    balance_weight : ndarray or None
        Weight of a row each time it is drawn, for `balanced`; None: 1.
    shrinkage : float
        Strength by which the values of each tree are shrunk; 0: none.
    finisher : Finisher or None
        Changes grown trees, including their shrinkage.
    """

    columns: _engine.Table
    y: NDArray[Any]
    options: _engine.GrowthOptions
    n_categories: list[int]
    criterion: str = "squared_error"
    n_classes: list[int] = field(default_factory=list)
    n_outputs: int = 1
    decision: Floats | None = None
    weight: Floats | None = None
    draws: Draws | None = None
    max_features_per_tree: int | None = None
    balanced: NDArray[np.int32] | None = None
    balance_weight: Floats | None = None
    shrinkage: float = 0.0
    finisher: Finisher | None = None

    def grow(self, first: int, n_trees: int) -> FittedForest:
        """Grow trees first … first + n_trees - 1; they do not depend on the batches in which they are grown."""
        grown = _engine.grow_forest(
            self.columns,
            self.criterion,
            self.y,
            self.n_classes,
            self.weight,
            self.options,
            None if self.draws is None else self.draws.engine,
            self.max_features_per_tree or _ALL,
            first,
            n_trees,
            self.balanced,
            self.balance_weight,
            self.shrinkage if self.finisher is None else 0.0,
        )
        forest = self.fitted(grown)
        return forest if self.finisher is None else self.finisher.finish(forest, self)

    def fitted(self, forest: _engine.Forest) -> FittedForest:
        """Return trees of the engine as a fitted forest."""
        return FittedForest(forest, self.n_classes or None, self.n_outputs, self.decision)


class Finisher(Protocol):
    """Changes the values of grown trees, or prunes them, before they are added to the forest."""

    def finish(self, forest: FittedForest, request: ForestRequest) -> FittedForest:
        """Return the finished trees."""


class TreeGrower(Protocol):
    """Grows the trees of a request: in this process (`ForestRequest.grow`), or on the workers of a cluster."""

    def __call__(self, request: ForestRequest, first: int, n_trees: int, /) -> FittedForest:
        """Return trees first … first + n_trees - 1."""


def balanced_weights(
    codes: NDArray[Any], n_classes: list[int], weight: Floats | None, counts: NDArray[np.uint32]
) -> Floats:
    """Return weights by which the classes in a tree's sample have equal weights, output by output."""
    amount = counts.astype(np.float64) if weight is None else counts * weight
    weight = np.ones(len(codes)) if weight is None else weight.copy()
    for k, n in enumerate(n_classes):
        total = sums_by_code(codes[:, k], amount, n)
        present = total > 0
        factor = np.divide(total.sum(), present.sum() * total, out=np.ones(n), where=present)
        weight *= factor[codes[:, k]]
    return weight


@dataclass
class GrowingForest:
    """A forest during growth, with its out-of-bag errors if they are needed.

    Attributes
    ----------
    oob : OutOfBag or None
    forest : FittedForest or None
    wants_smooth : bool
        Whether the smooth error, which decides when to stop, is computed too.
    curve, smooth : list of float
        Out-of-bag error and smooth out-of-bag error after each tree.
    """

    oob: OutOfBag | None
    forest: FittedForest | None
    wants_smooth: bool
    curve: list[float] = field(default_factory=list)
    smooth: list[float] = field(default_factory=list)

    @property
    def n_trees(self) -> int:
        """Number of trees so far."""
        return 0 if self.forest is None else self.forest.n_trees

    def add(self, more: FittedForest) -> None:
        """Append trees and evaluate them."""
        self.forest = more if self.forest is None else more.replaced(self.forest.engine.extended(more.engine))
        self.evaluate()

    def evaluate(self) -> None:
        """Bring the out-of-bag errors up to date."""
        if self.oob is None or self.forest is None:
            return
        for _ in self.oob.each_tree(self.forest):
            self.curve.append(self.oob.error(self.forest))
            if self.wants_smooth:
                self.smooth.append(self.oob.smooth_error(self.forest))


def has_settled(errors: Sequence[float]) -> bool:
    """Return whether more members would hardly change the error, from the errors after each member."""
    if len(errors) < 2 * _WINDOW:
        return False
    before, last = errors[-2 * _WINDOW : -_WINDOW], errors[-_WINDOW:]
    return not np.mean(last) < (1 - _TOLERANCE) * np.mean(before)


def batch_size(n_done: int) -> int:
    """Return how many members to add before the error is evaluated again.

    It depends only on the number of members, so that the result does not depend on the machine.
    """
    return max(10, n_done // 10)


def grow_in_batches(
    request: ForestRequest, grown: GrowingForest, grower: TreeGrower, n_estimators: int | str, verbose: int | None
) -> FittedForest:
    """Add trees to `grown` until it has `n_estimators`, or until its error has settled."""
    is_auto = n_estimators == "auto"
    n_wanted = MOST_MEMBERS if isinstance(n_estimators, str) else int(n_estimators)
    started, first = time.perf_counter(), grown.n_trees
    if grown.n_trees:
        grown.evaluate()
    with Progress("trees", n_wanted, is_auto, first, verbose) as progress:
        while grown.n_trees < n_wanted and not (is_auto and has_settled(grown.smooth)):
            n_batch = n_wanted - grown.n_trees
            if is_auto:
                n_batch = min(n_batch, batch_size(grown.n_trees))
            elif verbose:
                n_done, seconds = grown.n_trees - first, time.perf_counter() - started
                n_batch = min(n_batch, max(1, round(n_done * _BATCH_SECONDS / seconds)) if n_done else 2)
            grown.add(grower(request, grown.n_trees, n_batch))
            progress.report(grown.n_trees, grown.curve[-1] if grown.curve else None)
    assert grown.forest is not None
    return grown.forest
