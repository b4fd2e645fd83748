"""The rows that a forest learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.reproducible import any_order_sum
from spinney._data.schema import rows_of
from spinney._data.types import ColumnLike, Floats, Integers
from spinney._estimator.costs import ClassCosts
from spinney._forest.samples import row_keys


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
