"""Growing the trees of a forest in turns: how many at a time, when to stop, what to report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.numeric.reproducible import sums_by_code
from spinney._estimator.progress import Progress
from spinney._forest.growing.out_of_bag import OutOfBag
from spinney._forest.growing.rows import Draws
from spinney._model.forest import FittedForest, join_trees
from spinney._model.tree import FittedTree

_ALL = 2**32 - 1
_TURN_SECONDS = 0.5  # between two reports
# n_estimators="auto": trees go on until the mean error of the last window is within the tolerance of the one before
_WINDOW, _TOLERANCE, MOST_MEMBERS = 50, 0.005, 1000


@dataclass(frozen=True)
class ForestRequest:
    """What the engine needs to grow any trees of one forest.

    Attributes
    ----------
    columns : Table
    criterion : str
    y : ndarray
        Values or class codes, as the engine takes them.
    n_classes : list of int
    weight : ndarray or None
        Weights of the rows, on top of how often they are drawn.
    options : GrowthOptions
    draws : Draws or None
        The rows of each tree; None: all.
    max_features_per_tree : int or None
    balanced : ndarray of int or None
        Class codes, one column per output: each tree's sample is weighted to equal shares of these classes.
    balance_weight : ndarray or None
        What a row counts for that each time it is drawn; None: 1.
    finish : callable or None
        What is done to each grown tree.
    n_categories : list of int
    view : callable
        From the engine's forest to the fitted one.
    shrinkage : float
        Strength by which the values of each finished tree are shrunk; 0: not.
    share : callable or None
        Grows trees in other processes, given the request, the number of the first and how many; None: they are grown
        here.
    """

    columns: _engine.Table
    criterion: str
    y: NDArray[Any]
    n_classes: list[int]
    weight: NDArray[np.float64] | None
    options: _engine.GrowthOptions
    draws: Draws | None
    max_features_per_tree: int | None
    balanced: NDArray[np.int32] | None
    balance_weight: NDArray[np.float64] | None
    finish: Callable[[FittedTree], FittedTree] | None
    n_categories: list[int]
    view: Callable[[_engine.Forest], FittedForest]
    shrinkage: float = 0.0
    share: Callable[[ForestRequest, int, int], FittedForest] | None = None

    def grow(self, first: int, n_trees: int) -> FittedForest:
        """Grow trees first … first + n_trees - 1; they are the same in whatever turns they are grown."""
        if self.share is not None:
            return self.share(self, first, n_trees)
        forest = self.view(self._grow(first, n_trees))
        if self.finish is None:
            return forest
        finished = [self.finish(forest.tree(t)) for t in range(n_trees)]
        if self.shrinkage > 0:
            finished = [tree.shrunk(self.shrinkage) for tree in finished]
        return forest.replaced(join_trees(finished, self.n_categories))

    def _grow(self, first: int, n_trees: int) -> _engine.Forest:
        sampling = None if self.draws is None else self.draws.engine
        return _engine.grow_forest(
            self.columns,
            self.criterion,
            self.y,
            self.n_classes,
            self.weight,
            self.options,
            sampling,
            self.max_features_per_tree or _ALL,
            first,
            n_trees,
            self.balanced,
            self.balance_weight,
            self.shrinkage if self.finish is None else 0.0,
        )


def balanced_weights(
    codes: NDArray[Any], n_classes: list[int], weight: NDArray[np.float64] | None, counts: NDArray[np.uint32]
) -> NDArray[np.float64]:
    """Weights that make the classes in a tree's sample count the same, output by output."""
    amount = counts.astype(np.float64) if weight is None else counts * weight
    weight = np.ones(len(codes)) if weight is None else weight.copy()
    for k, n in enumerate(n_classes):
        total = sums_by_code(codes[:, k], amount, n)
        present = total > 0
        factor = np.divide(total.sum(), present.sum() * total, out=np.ones(n), where=present)
        weight *= factor[codes[:, k]]
    return weight


@dataclass
class Grown:
    """A forest in the making, with its out-of-bag errors where they are wanted."""

    forest: FittedForest | None
    oob: OutOfBag | None
    curve: list[float] = field(default_factory=list)
    smooth: list[float] = field(default_factory=list)

    @property
    def n_trees(self) -> int:
        """Trees there are."""
        return 0 if self.forest is None else self.forest.n_trees

    def add(self, more: FittedForest, wants_smooth: bool) -> None:
        """Append trees and judge them."""
        forest = more if self.forest is None else more.replaced(self.forest.engine.extended(more.engine))
        self.forest = forest
        self.judge(wants_smooth)

    def judge(self, wants_smooth: bool) -> None:
        """Bring the out-of-bag errors up to date."""
        if self.oob is None or self.forest is None:
            return
        for _ in self.oob.each_tree(self.forest):
            self.curve.append(self.oob.error(self.forest))
            if wants_smooth:
                self.smooth.append(self.oob.smooth_error(self.forest))


def has_settled(errors: Sequence[float]) -> bool:
    """Whether more trees (or other members) would hardly change the error, given that after each of them."""
    if len(errors) < 2 * _WINDOW:
        return False
    before, last = errors[-2 * _WINDOW : -_WINDOW], errors[-_WINDOW:]
    return not np.mean(last) < (1 - _TOLERANCE) * np.mean(before)


def turn_length(n_done: int) -> int:
    """Return how many to add before the error is looked at again.

    It depends on nothing but their number, so that every machine stops at the same point.
    """
    return max(10, n_done // 10)


def grow_in_turns(request: ForestRequest, grown: Grown, n_estimators: int | str, verbose: int) -> None:
    """Add trees to `grown` until there are as many as asked for, or until their error has settled."""
    is_auto = n_estimators == "auto"
    n_wanted = MOST_MEMBERS if isinstance(n_estimators, str) else int(n_estimators)
    started, first = time.perf_counter(), grown.n_trees
    if grown.n_trees:
        grown.judge(is_auto)
    with Progress("trees", n_wanted, is_auto, first, verbose) as progress:
        while grown.n_trees < n_wanted and not (is_auto and has_settled(grown.smooth)):
            n_turn = n_wanted - grown.n_trees
            if is_auto:
                n_turn = min(n_turn, turn_length(grown.n_trees))
            elif verbose:
                n_done, seconds = grown.n_trees - first, time.perf_counter() - started
                n_turn = min(n_turn, max(1, round(n_done * _TURN_SECONDS / seconds)) if n_done else 2)
            grown.add(request.grow(grown.n_trees, n_turn), is_auto)
            progress.report(grown.n_trees, grown.curve[-1] if grown.curve else None)
