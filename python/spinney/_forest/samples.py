"""Which rows each tree of a forest is grown on.

Rows are drawn through units: rows, or groups of rows that stay together. Each unit stands in a stratum as often as it
counts; from each stratum a number of entries is drawn for each tree, as a function of (seed, tree). Units stand in an
order that depends on their values alone, so that the forest depends neither on the order of the rows nor on whether a
row is there twice or has a weight of 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.reproducible import exp, keys_of
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.held_out import read_row_groups

_NEVER = 2**32 - 1
_SUBSAMPLE = 0.632  # share of the rows that a bootstrap of all draws at least once


@dataclass(frozen=True, eq=False)
class Draws:
    """The rows of every tree.

    Attributes
    ----------
    n_rows : int
    replace : bool
        Whether an entry may be drawn several times.
    seed : int
    unit_of_row : ndarray of shape (n_rows,), uint32
        The largest number: never drawn.
    strata : list of ndarray
        Units of each stratum, as often as they count.
    n_drawn : list of int
        Entries drawn from each stratum for one tree.
    """

    n_rows: int
    replace: bool
    seed: int
    unit_of_row: NDArray[np.uint32]
    strata: list[NDArray[np.uint32]]
    n_drawn: list[int]

    @cached_property
    def engine(self) -> _engine.Sampling:
        """The engine's sampling."""
        return _engine.make_sampling(self.replace, self.seed, self.unit_of_row, self.strata, self.n_drawn)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "engine"}

    def counts(self, tree: int) -> NDArray[np.uint32]:
        """How often each row was drawn for a tree."""
        return self.engine.counts(tree)

    def counts_by_row(self, n_trees: int) -> NDArray[np.uint32]:
        """How often each row was drawn for each tree, (n_rows, n_trees)."""
        drawn = np.empty((self.n_rows, n_trees), dtype=np.uint32)
        for t in range(n_trees):
            drawn[:, t] = self.counts(t)
        return drawn

    def rows(self, tree: int) -> NDArray[np.intp]:
        """Rows drawn for a tree, each as often as it was drawn, in ascending order."""
        return np.repeat(np.arange(self.n_rows), self.counts(tree))

    def same_samples(self, other: Draws) -> bool:
        """Whether the trees of both are grown on the same rows."""
        mine, theirs = ((d.n_rows, d.replace, d.seed, d.n_drawn, len(d.strata)) for d in (self, other))
        return (
            mine == theirs
            and np.array_equal(self.unit_of_row, other.unit_of_row)
            and all(map(np.array_equal, self.strata, other.strata))
        )

    @property
    def share(self) -> float:
        """Entries drawn for a tree, over all there are."""
        return sum(self.n_drawn) / sum(len(stratum) for stratum in self.strata)

    @property
    def times_drawn(self) -> float:
        """How often an entry that is drawn for a tree is drawn, on average: near 1.58 for a bootstrap."""
        share = self.share
        return float(share / (1.0 - exp(-share))) if self.replace else 1.0


def row_keys(fingerprints: NDArray[np.uint64], target: NDArray[Any], n_columns: int) -> NDArray[np.uint64]:
    """Return a number for each row that depends on its values and its target, not on its place.

    Parameters
    ----------
    fingerprints : ndarray of shape (n_rows,)
        Of the rows of a table with so many columns.
    target : ndarray of shape (n_rows, n_outputs)
    n_columns : int
    """
    return fingerprints + keys_of(target, n_columns)


def rows_with_weight(weight: Floats | None, n_rows: int) -> NDArray[np.intp]:
    """Rows that a tree without a sample is grown on: all but those of weight 0."""
    return np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)


def draw_rows(
    *,
    keys: NDArray[np.uint64],
    weight: Floats | None,
    copies: NDArray[np.int64] | None,
    seed: int,
    groups: ColumnLike = None,
    classes: NDArray[np.intp] | None = None,
    balanced: bool = False,
    replace: bool = True,
    max_samples: int | float | None = None,
) -> Draws:
    """Lay out units and strata.

    Parameters
    ----------
    keys : ndarray of shape (n_rows,)
        As `row_keys` gives them.
    weight : ndarray or None
        Rows of weight 0 are never drawn.
    copies : ndarray of int or None
        How often each row is there; None: once.
    groups : array-like or None
        Rows with the same label are drawn together, each label as often as any other.
    classes : ndarray of int or None
        Strata: rows of one class, or groups by their most frequent one; None: no strata.
    balanced : bool
        Draw as many from each stratum as the smallest has, instead of in proportion.
    replace, max_samples, seed
        As of the estimator.
    """
    n_rows = len(keys)
    kept = np.ones(n_rows, dtype=bool) if weight is None else weight > 0
    if groups is None:
        unit_of_row, order = np.arange(n_rows), _stable_order(keys)
        order = order[kept[order]]
        times = None if copies is None else copies[order]
    else:
        labels, unit_of_row = np.unique(read_row_groups(groups, n_rows), return_inverse=True)
        order = np.flatnonzero(np.bincount(unit_of_row[kept], minlength=len(labels)))
        times = None
    stratum: NDArray[Any] = np.zeros(len(order), dtype=np.intp)
    if classes is not None:
        stratum = classes[order] if groups is None else _main_class(unit_of_row[kept], classes[kept])[order]
    strata = []
    for k in np.unique(stratum):
        members = order[stratum == k]
        strata.append((members if times is None else np.repeat(members, times[stratum == k])).astype(np.uint32))
    n_drawn = _numbers_drawn([len(s) for s in strata], max_samples, replace, balanced)
    return Draws(n_rows, replace, seed, np.where(kept, unit_of_row, _NEVER).astype(np.uint32), strata, n_drawn)


def _stable_order(keys: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the order of the keys, equal ones as they come; NumPy's quick sort takes a quarter of the time."""
    order = np.argsort(keys)
    ordered = keys[order]
    return np.argsort(keys, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def _main_class(units: NDArray[np.intp], classes: NDArray[np.intp]) -> NDArray[np.intp]:
    counts = np.zeros((int(units.max()) + 1, int(classes.max()) + 1), dtype=np.intp)
    np.add.at(counts, (units, classes), 1)
    return np.asarray(counts.argmax(axis=1))


def _numbers_drawn(sizes: list[int], max_samples: int | float | None, replace: bool, balanced: bool) -> list[int]:
    available = [min(sizes)] * len(sizes) if balanced else sizes
    share = 1.0 if replace else _SUBSAMPLE
    if isinstance(max_samples, Integral):
        share = int(max_samples) / sum(available)
    elif max_samples is not None:
        share = float(max_samples)
    if not replace and share > 1:
        raise ValueError(
            f"max_samples={max_samples} is more than the {sum(available)} rows (or groups) there are to draw from "
            "without replacement. Lower it, or set replace=True."
        )
    return [max(1, int(share * n + 1e-9)) for n in available]
