"""Growing trees on some of the rows of one table: what pruning, shrinkage and stability reports need of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._estimator.held_out import Loss
from spinney._model.tree import FittedTree

Weights = NDArray[np.float64] | None


@dataclass(frozen=True)
class Growth:
    """One table with its target, ready to grow trees on.

    Attributes
    ----------
    columns : Table
        The engine's view of all rows.
    codes : ndarray of int or None
        Class codes (n_rows, n_outputs), for stratified folds; None in a regression.
    weight : ndarray or None
        Weights of the rows; None: all 1.
    grow : callable
        From weights to a tree. A weight of 0 leaves the row out, so one table serves all folds and bootstraps.
    loss : callable
        (nodes, tree, rows) -> loss of each training row if it stopped at its node.
    risks : callable
        tree -> risk of each node, as a share: what pruning weighs against size.
    gains : callable
        tree -> gain of each node's split: what best-first growth goes by.
    n_jobs : int
        Threads; 0 for all.
    exposure : ndarray or None
        Time of each row, if `weight` contains it; a row's loss is per unit of it.
    """

    columns: _engine.Table
    codes: NDArray[np.int32] | None
    weight: Weights
    grow: Callable[[Weights], FittedTree]
    loss: Loss
    risks: Callable[[FittedTree], NDArray[np.float64]]
    gains: Callable[[FittedTree], NDArray[np.float64]]
    n_jobs: int
    exposure: Weights = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.columns.n_rows

    def weights(self) -> NDArray[np.float64]:
        """Return the weights as an array."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def without(self, rows: NDArray[Any]) -> FittedTree:
        """Grow a tree on all rows but these."""
        weight = self.weights().copy()
        weight[rows] = 0.0
        return self.grow(weight)
