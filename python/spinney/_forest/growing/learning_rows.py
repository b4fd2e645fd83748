"""The rows that a forest learns from, as its trees and its judges take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.numeric.reproducible import any_order_sum
from spinney._estimator.costs import ClassCosts
from spinney._estimator.row_copies import relative_weights
from spinney._forest.growing.strength import JudgingRows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LearningRows:
    """A table with its target and weights.

    Attributes
    ----------
    inputs, columns : Table
        Columns of the table, and those that trees split on.
    target : ndarray of shape (n_rows, n_outputs)
        Classes by their places, or values.
    n_classes : list of int
        Empty for values.
    classes : list of ndarray or None
    given : ndarray or None
        Weights as they were given.
    sample_weight, weight : ndarray or None
        Without and with the weights of the classes.
    copies : ndarray of int or None
        How often each row is there for the draws, where its weight says that.
    costs : ClassCosts or None
    groups : array-like or None
    prints : ndarray of shape (n_rows,) or None
        Numbers that depend on the values of a row alone.
    """

    inputs: _engine.Table
    columns: _engine.Table
    target: NDArray[Any]
    n_classes: list[int]
    classes: list[NDArray[Any]] | None
    given: Floats | None
    sample_weight: Floats | None
    weight: Floats | None
    copies: NDArray[np.int64] | None
    costs: ClassCosts | None
    groups: Any
    prints: NDArray[np.uint64] | None

    @property
    def unit(self) -> float:
        """What class weights multiply the rows by on average: the unit they are in must not matter."""
        if self.weight is None or self.weight is self.sample_weight:
            return 1.0
        n = len(self.weight) if self.sample_weight is None else any_order_sum(self.sample_weight)
        return any_order_sum(self.weight) / n

    @property
    def in_leaves(self) -> Floats | None:
        """What rows count for in the leaves that keep them."""
        weight = per_draw(self.weight, self.copies)
        return weight if self.costs is None else self.costs.value_weights(self.target[:, 0], weight)

    def to_judge_by(self, keys: NDArray[np.uint64]) -> JudgingRows:
        """Return the rows as they tell how much leaves are to be shrunk."""
        return JudgingRows(
            self.columns, self.target, self.n_classes, self.weight, relative_weights(self.given)[1], keys, self.unit,
            self.groups is not None,
        )  # fmt: skip


def per_draw(weight: Floats | None, copies: NDArray[np.int64] | None) -> Floats | None:
    """Return the weight of each row per draw: less where the row is drawn more often because of its weight."""
    return weight if weight is None or copies is None else weight / np.maximum(copies, 1)
