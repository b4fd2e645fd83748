"""Is a sum of trees monotone in a column? Decided over all rows that there can be, not at rows that were tried.

Vocabulary
----------
state   what a column can hold as far as the trees can tell: a bin between two thresholds, a category, no value
box     the states that each column may have: bits by column; a column that is not named may have any
fall    what a tree, or their sum, loses from one bin of the column to the next, all else being the same

A sum of trees that each rise rises, to the last bit, as each addition does. Else only the trees that cut the column at
a threshold can change there: the largest sum of their falls is sought by branch and bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._data import Feature
from spinney._data.cells import cells_of
from spinney._data.types import Floats

Box = dict[int, int]
_MISSING_LEFT, _CATEGORY, _OTHER_LEFT, _STOPS = 1, 2, 4, 8


class NotDecidedError(Exception):
    """The search has taken as many steps as it may."""


class Steps:
    """How many steps a search may still take."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self) -> None:
        """Count one."""
        self.left -= 1
        if self.left < 0:
            raise NotDecidedError


class ColumnStates:
    """The states of one column, a bit for each; the highest is that of no value.

    Parameters
    ----------
    feature : Feature
    thresholds : ndarray of float, sorted
        Where trees cut it, if it holds numbers.
    takes_others : bool
        Whether a category that did not occur at fit is a state of its own.
    """

    def __init__(self, feature: Feature, thresholds: Floats, takes_others: bool) -> None:
        self.feature = feature
        self.thresholds = thresholds
        self.is_category = feature.kind == "category"
        n = len(feature.categories)
        self.n_states = n + 1 if self.is_category else len(thresholds) + 1
        self.missing = 1 << self.n_states
        self.present = (1 << (n + takes_others if self.is_category else self.n_states)) - 1
        if feature.kind in ("ordered", "boolean"):
            whole = np.arange(n if feature.kind == "ordered" else 2, dtype=np.float64)
            self.present = sum(1 << int(b) for b in np.unique(np.searchsorted(thresholds, whole, side="left")))
        elif not self.is_category and len(thresholds) and thresholds[-1] == np.inf:
            self.present = (1 << len(thresholds)) - 1  # nothing lies beyond
        self.any = self.present | self.missing

    def place_of(self, threshold: float) -> int:
        """Place of a threshold among those of the column."""
        return int(np.searchsorted(self.thresholds, threshold))

    def bins(self) -> list[int]:
        """Bins that a value can lie in, from low to high."""
        return [b for b in range(self.n_states) if self.present >> b & 1]

    def number_of(self, states: int) -> float:
        """Return a value of the lowest of some states, as the engine takes it; NaN is none."""
        b = (states & -states).bit_length() - 1
        if states & -states == self.missing:
            return np.nan
        if self.is_category or not len(self.thresholds):
            return float(b) if self.is_category else 0.0
        above = -np.inf if b == 0 else self.thresholds[b - 1]
        if self.feature.kind in ("ordered", "boolean"):
            return max(0.0, float(np.floor(above)) + 1) if above > -np.inf else 0.0
        if b < len(self.thresholds):
            return float(self.thresholds[b])
        return float(above + 1) if above + 1 > above else float(np.nextafter(above, np.inf))


class TreeOfSum:
    """One tree, with values times a factor, as the search reads it."""

    def __init__(self, tree: _engine.Tree, place: int, factor: float, states: Sequence[ColumnStates]) -> None:
        self._tree = tree
        self._states = states
        self.feature: list[int] = tree.feature.tolist()
        self.right: list[int] = tree.children_right().tolist()
        self._flags: list[int] = tree.flags.tolist()
        self._threshold: list[float] = tree.threshold.tolist()
        self.value: list[float] = (factor * tree.value.reshape(tree.size, -1)[:, place]).tolist()
        self._asks_others = tree.splits() is not None
        self._ways: dict[int, list[tuple[int, int]]] = {}

    @cached_property
    def ends(self) -> tuple[list[float], list[float]]:
        """Least and largest value below each node."""
        low, high = list(self.value), list(self.value)
        for node in range(len(low) - 1, -1, -1):
            if self.feature[node] < 0:
                continue
            below = [node + 1, self.right[node], *([node] if self._flags[node] & _STOPS else [])]
            low[node], high[node] = min(low[child] for child in below), max(high[child] for child in below)
        return low, high

    def rises(self, column: int) -> bool:
        """Whether no value left of a split on the column is above one right of it: then the tree is monotone."""
        low, high = self.ends
        return all(high[node + 1] <= low[self.right[node]] for node in self._nodes_of(column))

    def cuts(self, column: int) -> set[int]:
        """Places of the thresholds at which the tree cuts a column."""
        return {self._states[column].place_of(self._threshold[node]) for node in self._nodes_of(column)}

    def _left_of(self, node: int) -> int:
        """States that a split sends left, without that of no value."""
        states = self._states[self.feature[node]]
        if not states.is_category:
            return (2 << states.place_of(self._threshold[node])) - 1
        left = sum(1 << code for code in self._tree.left_categories(node))
        return left | (1 << (states.n_states - 1) if self._flags[node] & _OTHER_LEFT else 0)

    def _nodes_of(self, column: int) -> list[int]:
        return [node for node, feature in enumerate(self.feature) if feature == column]

    def value_at(self, node: int) -> float:
        """Value of a leaf, or of the node ~`node` at which a row stopped."""
        return self.value[node if node >= 0 else ~node]

    def is_end(self, node: int) -> bool:
        """Whether a row goes no further."""
        return node < 0 or self.feature[node] < 0

    def ways(self, node: int) -> list[tuple[int, int]]:
        """States of the split's column, and where rows that have them go.

        Where surrogates decide for a missing value, it may go either way.
        """
        if node not in self._ways:
            states, flags = self._states[self.feature[node]], self._flags[node]
            left = self._left_of(node) & states.present
            ways = [[left, node + 1], [states.present & ~left, self.right[node]]]
            if self._asks_others:
                ways[0][0] |= states.missing
                ways[1][0] |= states.missing
            if flags & _STOPS:
                ways.append([states.missing, ~node])
            elif not self._asks_others:
                ways[0 if flags & _MISSING_LEFT else 1][0] |= states.missing
            self._ways[node] = [(mask, child) for mask, child in ways if mask]
        return self._ways[node]

    def falls(self, column: int, low: int, high: int, steps: Steps) -> list[tuple[float, Box]]:
        """List what the tree loses from one bin of a column to the next, by boxes of the other columns, most first."""
        changes = self._changes(column, low, high)
        found: list[tuple[float, Box]] = []
        open_: list[tuple[int, int, Box]] = [(0, 0, {})]
        while open_:
            a, b, box = open_.pop()
            steps.take()
            if a == b and (a < 0 or not changes[a]):
                found.append((0.0, box))
                continue
            if self.is_end(a) and self.is_end(b):
                found.append((self.value_at(a) - self.value_at(b), box))
                continue
            node = b if self.is_end(a) else a
            feature = self.feature[node]
            if feature == column:
                left = self._left_of(node)
                sides = [node + 1 if left >> bin_ & 1 else self.right[node] for bin_ in (low, high)]
                open_.append((sides[0] if a == node else a, sides[1] if b == node else b, box))
                continue
            for mask, child in self.ways(node):
                states = box.get(feature, self._states[feature].any) & mask
                if states:
                    open_.append((child if a == node else a, child if b == node else b, {**box, feature: states}))
        return sorted(found, key=lambda cell: -cell[0])

    def _changes(self, column: int, low: int, high: int) -> list[bool]:
        """Whether a split below each node, or its own, parts the two bins."""
        found = [False] * len(self.feature)
        for node in self._nodes_of(column):
            left = self._left_of(node)
            found[node] = (left >> low & 1) != (left >> high & 1)
        for node in range(len(found) - 1, -1, -1):
            if self.feature[node] >= 0 and (found[node + 1] or found[self.right[node]]):
                found[node] = True
        return found


def falling_box(
    trees: Sequence[TreeOfSum], column: int, states: ColumnStates, slack: float, steps: Steps
) -> tuple[int, int, Box] | None:
    """Find two bins from one to the next of which the sum falls by more than `slack`, and a box in which it does.

    None if there are none. `NotDecidedError` if that takes too many steps.
    """
    places = set().union(*(tree.cuts(column) for tree in trees if not tree.rises(column)))
    for low, high in pairwise(states.bins()):
        between = set(range(low, high))
        if not places & between:
            continue
        cells = [tree.falls(column, low, high, steps) for tree in trees if tree.cuts(column) & between]
        box = _largest(sorted(cells, key=lambda found: -found[0][0]), slack, steps)
        if box is not None:
            return low, high, box
    return None


def _largest(cells: list[list[tuple[float, Box]]], slack: float, steps: Steps) -> Box | None:
    """Return a box in which the falls of all trees add up to more than `slack`, if there is one."""
    rest = [0.0] * (len(cells) + 1)
    for k in range(len(cells) - 1, -1, -1):
        rest[k] = rest[k + 1] + cells[k][0][0]
    open_: list[tuple[int, float, Box]] = [(0, 0.0, {})]
    while open_:
        k, fallen, box = open_.pop()
        if k == len(cells):
            return box
        steps.take()
        onward = []
        for fall, cell in cells[k]:
            if fallen + fall + rest[k + 1] <= slack:
                break
            met = _met(box, cell)
            if met is not None:
                onward.append((k + 1, fallen + fall, met))
        open_.extend(reversed(onward))
    return None


def _met(one: Box, other: Box) -> Box | None:
    """Rows in both boxes; None if there are none."""
    found = dict(one)
    for column, states in other.items():
        if column in found:
            states &= found[column]
            if not states:
                return None
        found[column] = states
    return found


def value_of(feature: Feature, number: float) -> Any:
    """Return a value as the table has it; None is none."""
    if np.isnan(number):
        return None
    if feature.kind in ("category", "ordered"):
        known = int(number) < len(feature.categories)
        return feature.categories[int(number)] if known else "a value that did not occur at fit"
    if feature.clock:
        return cells_of(np.array([number]), "microsecond", feature.clock)[0]
    return bool(number) if feature.kind == "boolean" else number
