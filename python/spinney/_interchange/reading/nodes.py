"""Trees of other libraries: their nodes in any order, and cuts in single precision.

A library that compares in single precision rounds a number first. Rounding keeps the order of numbers, so all that it
sends left lie below one double, and that is the cut: the largest double that rounds to at most the largest single that
goes left. Half way between two singles rounds to the one whose last bit is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.file.container import refuse

Floats = NDArray[np.float64]
MISSING_LEFT, CATEGORY, OTHERS_LEFT = 1, 2, 4  # the engine's flags
_TOP = 2.0**128 - 2.0**103  # half way from the largest single to what would follow


def reach_of_singles(largest: object) -> Floats:
    """Largest double that rounds to at most a single, by single.

    Parameters
    ----------
    largest : array-like of float32

    Returns
    -------
    ndarray of float64
    """
    single = np.atleast_1d(np.asarray(largest, dtype=np.float32))
    with np.errstate(invalid="ignore", over="ignore"):
        above = np.nextafter(single, np.float32(np.inf))
        middle = single.astype(np.float64) / 2 + above.astype(np.float64) / 2
    middle = np.where(np.isinf(above), _TOP, np.where(np.isneginf(single), -_TOP, middle))
    is_even = (single.view(np.uint32) & 1) == 0
    reach = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(single), np.inf, reach)


def cuts_below_singles(thresholds: object) -> Floats:
    """Cuts for ``float32(x) < threshold``."""
    return reach_of_singles(_below(np.asarray(thresholds, dtype=np.float32)))


def _below(single: Any) -> Any:
    """Next lower single."""
    with np.errstate(over="ignore"):
        return np.nextafter(single, np.float32(-np.inf))


def cuts_of_singles(thresholds: object) -> Floats:
    """Cuts for ``float32(x) <= threshold``, the threshold being a double."""
    wide = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    single = np.where(single > wide, _below(single), single)
    return reach_of_singles(single)


def as_singles(value: float) -> tuple[float, float]:
    """Lowest and highest double that round to the same single as a number."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    below = reach_of_singles(_below(single))[0]
    return float(np.nextafter(below, np.inf)), float(reach_of_singles(single)[0])


@dataclass
class Nodes:
    """The nodes of one tree; node 0 is the root.

    Attributes
    ----------
    left, right : ndarray of int
        Children; below 0: a leaf.
    feature, threshold : ndarray
        Splits: the column, and the number up to which rows go left.
    missing_left : ndarray of bool
        Whether rows without a value go left.
    value : ndarray of shape (n_nodes,) or (n_nodes, width)
        What leaves add; what splits would, where `impurity` is given.
    weight, n_rows : ndarray
        Training rows of each node.
    gain : ndarray, or None
        What each split gained.
    impurity : ndarray, or None
        Impurity of each node, if `gain` is None.
    sets : dict
        Of each node that splits categories: the codes that leave the others, ascending, and whether the others go
        left.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: Floats
    missing_left: NDArray[Any]
    value: Floats
    weight: Floats
    n_rows: NDArray[Any]
    gain: Floats | None = None
    impurity: Floats | None = None
    sets: dict[int, tuple[NDArray[Any], bool]] = field(default_factory=dict)

    def tree(self, n_categories: list[int], which: int) -> _engine.Tree:
        """Make the engine's tree; `which` is its number, for messages."""
        n = len(self.left)
        flags = np.where(self.missing_left, MISSING_LEFT, 0).astype(np.uint8)
        begin, codes = np.zeros(n + 1, dtype=np.uint32), []
        for node in sorted(self.sets):
            listed, others_left = self.sets[node]
            flags[node] |= CATEGORY | (OTHERS_LEFT if others_left else 0)
            begin[node + 1] = len(listed)
            codes.append(listed)
        begin = np.cumsum(begin, dtype=np.uint32)
        listed = np.concatenate(codes) if codes else np.empty(0)
        try:
            return _engine.make_tree(
                _as(self.left, np.int32),
                _as(self.right, np.int32),
                _as(self.feature, np.int32),
                _as(self.threshold, np.float64),
                flags,
                begin,
                _as(listed, np.uint32),
                _as(np.maximum(self.weight, 0), np.float64),
                _as(np.clip(self.n_rows, 0, 2**32 - 1), np.uint32),
                _as(self.value.reshape(n, -1), np.float64),
                None if self.gain is None else _as(self.gain, np.float64),
                None if self.impurity is None else _as(self.impurity, np.float64),
                n_categories,
            )
        except ValueError as error:
            refuse(f"is damaged: tree {which} is unusable: {error}")


def _as(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    return np.ascontiguousarray(values, dtype=kind)


def constant_tree(value: float, n_categories: list[int]) -> _engine.Tree:
    """Make a tree of one leaf."""
    none, one = np.array([-1]), np.ones(1)
    return Nodes(none, none, none, np.zeros(1), none < 0, np.array([value]), one, one, np.zeros(1)).tree(
        n_categories, 0
    )
