"""Samples of rows and columns for the members of a bagging ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.random import sample_without_replacement

from spinney._data.reproducible import exp
from spinney._data.select import Places

Weights = NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Stratum:
    """The units of a stratum (rows, or groups of rows), and how many of them are drawn."""

    units: Places
    n_drawn: int
    probability: Weights = None  # of each unit; None for equal probabilities

    def draw(self, replace: bool, random: np.random.RandomState) -> Places:
        """Return a random sample of the units."""
        if self.probability is not None:
            return np.asarray(random.choice(self.units, self.n_drawn, replace=replace, p=self.probability))
        return self.units[_draw(len(self.units), self.n_drawn, replace, random)]


@dataclass(frozen=True, eq=False)
class Sampling:
    """How the rows and columns of members are sampled.

    Attributes
    ----------
    n_rows, n_columns : int
        Size of the table.
    replace : bool
        Whether units are drawn with replacement.
    strata : list of Stratum
    rows_of : list of ndarray or None
        Rows of each unit; None if units are rows.
    n_columns_drawn : int
    replace_columns : bool
        Whether columns are drawn with replacement.
    """

    n_rows: int
    n_columns: int
    replace: bool
    strata: list[Stratum]
    rows_of: list[Places] | None
    n_columns_drawn: int
    replace_columns: bool

    def draw(self, seed: int) -> tuple[Places, Places]:
        """Return the columns and the rows of the member with this seed; repeated rows are repeated."""
        random = np.random.RandomState(seed)
        columns = _draw(self.n_columns, self.n_columns_drawn, self.replace_columns, random)
        units = np.concatenate([stratum.draw(self.replace, random) for stratum in self.strata])
        if self.rows_of is None:
            return columns, units
        return columns, np.concatenate([self.rows_of[unit] for unit in units])

    @property
    def takes_all_columns(self) -> bool:
        """Whether every member gets all columns."""
        return self.n_columns_drawn == self.n_columns and not self.replace_columns

    @property
    def leaves_rows_out(self) -> bool:
        """Whether samples may leave out rows."""
        return self.replace or any(stratum.n_drawn < len(stratum.units) for stratum in self.strata)

    @property
    def draws_by_weight(self) -> bool:
        """Whether rows are drawn with probabilities proportional to their weights."""
        return any(stratum.probability is not None for stratum in self.strata)

    @property
    def mean_fraction(self) -> float:
        """Expected fraction of the rows in a sample, approximately; repeated rows count once."""
        distinct = 0.0
        for stratum in self.strata:
            n, drawn = len(stratum.units), stratum.n_drawn
            distinct += n * (1 - float(exp(-drawn / n))) if self.replace else drawn
        n_units = sum(len(stratum.units) for stratum in self.strata)
        return distinct / n_units


def _draw(n: int, n_drawn: int, replace: bool, random: np.random.RandomState) -> Places:
    if replace:
        return np.asarray(random.randint(0, n, n_drawn), dtype=np.intp)
    return np.asarray(sample_without_replacement(n, n_drawn, random_state=random), dtype=np.intp)


def out_of(rows: Places, n_rows: int) -> NDArray[np.bool_]:
    """Return a mask of the rows that are not in a sample."""
    mask = np.ones(n_rows, dtype=bool)
    mask[rows] = False
    return mask


def row_strata(
    strata: NDArray[np.intp] | None,
    groups: NDArray[Any] | None,
    eligible: NDArray[np.bool_],
) -> tuple[list[Places], list[Places] | None]:
    """Gather rows into units and units into strata.

    Parameters
    ----------
    strata : ndarray of int or None
        Stratum of each row.
    groups : ndarray or None
        Group of each row.
    eligible : ndarray of bool
        Rows that may be drawn.

    Returns
    -------
    units : list of ndarray
        Units of each stratum.
    rows_of : list of ndarray or None
        Rows of each unit; None if units are rows.
    """
    rows = np.flatnonzero(eligible)
    if groups is None:
        return _split_by(rows, None if strata is None else strata[rows]), None
    _, unit_of = np.unique(groups[rows], return_inverse=True)
    rows_of = _split_by(rows, unit_of)
    if strata is None:
        return [np.arange(len(rows_of))], rows_of
    for unit in rows_of:
        if np.ptp(strata[unit]):
            raise ValueError(
                f"Group {groups[unit[0]]!r} has rows of several strata. Pass groups that lie within strata, or leave "
                "groups or strata out."
            )
    return _split_by(np.arange(len(rows_of)), np.array([strata[unit[0]] for unit in rows_of])), rows_of


def _split_by(units: Places, label: NDArray[Any] | None) -> list[Places]:
    """Split units by their labels, in the order of the labels."""
    if label is None:
        return [units]
    order = np.argsort(label, kind="stable")
    return np.split(units[order], np.flatnonzero(np.diff(label[order])) + 1)


def count_drawn(
    max_samples: int | float | None, sizes: list[int], replace: bool, balanced: bool, what: str
) -> list[int]:
    """Return how many units to draw from each stratum.

    Parameters
    ----------
    max_samples : int, float or None
        Total number of units, a fraction of them, or None for all.
    sizes : list of int
        Number of units of each stratum.
    replace : bool
        Whether units are drawn with replacement.
    balanced : bool
        Whether to draw the same number from each stratum; None then means the size of the smallest.
    what : str
        Name of a unit in errors.

    Returns
    -------
    list of int
        At least one each.
    """
    total, is_number = sum(sizes), isinstance(max_samples, Integral)
    fraction = 1.0 if max_samples is None else float(max_samples)
    wanted = int(fraction) if is_number else max(1, int(fraction * total))
    if not replace and wanted > total:
        raise ValueError(
            f"max_samples={wanted} must be <= n_samples={total} to draw without replacement: there are {total} {what}s."
        )
    if balanced:
        each = max(1, wanted // len(sizes) if is_number else int(fraction * min(sizes)))
        if not replace and each > min(sizes):
            raise ValueError(
                f"Balanced samples would need {each} {what}s of every class, and the smallest has {min(sizes)}. Lower "
                "max_samples, or draw with replacement."
            )
        return [each] * len(sizes)
    return [wanted] if len(sizes) == 1 else _proportional(wanted, sizes)


def _proportional(wanted: int, sizes: list[int]) -> list[int]:
    """Allocate a number to strata in proportion to their sizes, by largest remainders; at least one each."""
    exact = wanted * np.array(sizes) / sum(sizes)
    numbers = np.floor(exact).astype(int)
    short = wanted - int(numbers.sum())
    numbers[np.argsort(-(exact - numbers), kind="stable")[:short]] += 1
    return [max(1, int(number)) for number in numbers]


def count_columns(max_features: int | float, n_columns: int) -> int:
    """Return the number of columns of a member."""
    if isinstance(max_features, Integral):
        if max_features > n_columns:
            raise ValueError(f"max_features={max_features} must be <= n_features: the table has {n_columns} columns.")
        return int(max_features)
    return max(1, int(max_features * n_columns))
