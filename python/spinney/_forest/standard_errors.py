"""Standard errors of a forest's predictions, from which rows its trees were grown on.

Vocabulary
----------
unit        what is drawn: a row, or a group of rows
N[u, t]     how often unit u was drawn for tree t
f[t]        what tree t predicts for the row in question; B trees, mean f̄

Both estimates are quadratic forms in f - f̄ whose matrix depends on N alone. It is computed once, trees by trees,
instead of covariances of every unit with every prediction (Wager, Hastie and Efron 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import warn
from spinney._data.types import Floats
from spinney._forest.samples import Draws
from spinney._model.forest import FittedForest

_BLOCK_UNITS = 8192
_MOST_SMALL = 2**16 - 1  # draws of a unit that 16 bits can count
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class VarianceForm:
    """The variance of a mean over trees as a quadratic form.

    Attributes
    ----------
    matrix : ndarray of shape (n_trees, n_trees)
        The variance is d' matrix d, where d = f - f̄.
    noise : float
        Times sum(d²): what the finite number of trees adds to it on average.
    """

    matrix: Floats
    noise: float

    def variances(self, predicted: Floats, corrected: bool) -> Floats:
        """Variance for each row of the predictions of all trees, (n_rows, n_trees)."""
        away = predicted - predicted.mean(axis=1, keepdims=True)
        found = np.einsum("rt,rt->r", away @ self.matrix, away)
        return np.asarray(found - self.noise * (away**2).sum(axis=1) if corrected else found)


@dataclass(frozen=True)
class DrawnUnits:
    """How often each unit was drawn for each tree, with what it stands for.

    Attributes
    ----------
    counts : ndarray of shape (n_trees, n_units)
    copies : ndarray of shape (n_units,)
        Rows that a unit of whole weight stands for.
    available, drawn : ndarray of shape (n_units,)
        Entries in the unit's stratum, and how many of them a tree gets.
    replace : bool
    """

    counts: NDArray[Any]
    copies: NDArray[np.intp]
    available: NDArray[np.intp]
    drawn: NDArray[np.intp]
    replace: bool

    @classmethod
    def of(cls, draws: Draws, n_trees: int) -> DrawnUnits:
        """Draw the samples of all trees once more."""
        units, copies, available, drawn = [], [], [], []
        for stratum, n_drawn in zip(draws.strata, draws.n_drawn, strict=True):
            unit, times = np.unique(stratum, return_counts=True)
            units.append(unit)
            copies.append(times)
            available.append(np.full(len(unit), len(stratum)))
            drawn.append(np.full(len(unit), n_drawn))
        labels, first_row = np.unique(draws.unit_of_row, return_index=True)
        rows = first_row[np.searchsorted(labels, np.concatenate(units))]
        counts: NDArray[Any] = np.empty((n_trees, len(rows)), dtype=np.uint16)
        for t in range(n_trees):
            drawn_now = draws.counts(t)[rows]
            if counts.dtype == np.uint16 and drawn_now.max(initial=0) > _MOST_SMALL:
                counts = counts.astype(np.uint32)
            counts[t] = drawn_now
        return cls(
            counts, np.concatenate(copies), np.concatenate(available), np.concatenate(drawn), bool(draws.replace)
        )

    def gram(self, scale: Floats, unseen: bool) -> Floats:
        """Sum over units of scale times the products of what two trees have of them: counts, or being left out."""
        n_trees = len(self.counts)
        total = np.zeros((n_trees, n_trees))
        for begin in range(0, self.counts.shape[1], _BLOCK_UNITS):
            block = slice(begin, begin + _BLOCK_UNITS)
            part = self.counts[:, block]
            factor = (part == 0).astype(np.float64) if unseen else part.astype(np.float64)
            total += (factor * scale[block]) @ factor.T
        return total


def infinitesimal_jackknife(units: DrawnUnits) -> VarianceForm:
    """Sum over units of the squared covariance of N[u] and f.

    Without replacement it is inflated by (n - 1)/n · (n/(n - s))² for s of n drawn (Wager and Athey 2018). A unit of c
    copies stands for c units that share its covariance evenly, so its square counts 1/c.
    """
    n_trees = len(units.counts)
    scale = 1.0 / units.copies
    if not units.replace:
        if (units.available == units.drawn).any():
            raise ValueError(
                "The infinitesimal jackknife compares trees that have drawn a row with trees that have not, but here "
                "every tree has drawn all rows. Lower max_samples, or set replace=True."
            )
        n, s = units.available, units.drawn
        scale = scale * ((n - 1) / n) * (n / (n - s)) ** 2
    gram = units.gram(scale, unseen=False)
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, np.newaxis] + gram.mean()
    return VarianceForm(gram / n_trees**2, float(np.trace(gram)) / n_trees**3)


def jackknife(units: DrawnUnits) -> VarianceForm:
    """(n - 1)/n times the sum over units of the squared change of the mean when only trees without the unit count."""
    if not units.replace:
        raise ValueError(
            "The jackknife after bootstrap needs samples with replacement. Use method='infinitesimal', or fit with "
            "replace=True."
        )
    if (units.copies > 1).any():
        raise ValueError(
            "The jackknife after bootstrap leaves out one row at a time, which whole weights above 1 do not allow. Use "
            "method='infinitesimal'."
        )
    n_trees = len(units.counts)
    n_unseen = (units.counts == 0).sum(axis=0)
    lacking = int(np.count_nonzero(n_unseen == 0))
    if lacking == len(n_unseen):
        raise ValueError("Every row was drawn for every tree. Grow more trees, or draw fewer rows with max_samples.")
    if lacking:
        warn(
            f"{lacking} rows (or groups) were drawn for every tree; the jackknife assumes that they matter as much "
            "as the others. Grow more trees."
        )
    scale = (units.available - 1) / units.available * (len(n_unseen) / (len(n_unseen) - lacking))
    shares = np.divide(scale, n_unseen.astype(float), out=np.zeros(len(scale)), where=n_unseen > 0)
    by_square = np.divide(shares, n_unseen.astype(float), out=np.zeros(len(scale)), where=n_unseen > 0)
    noise = float((shares - np.where(n_unseen > 0, scale, 0.0) / n_trees).sum()) / n_trees
    return VarianceForm(units.gram(by_square, unseen=True), noise)


_FORMS = {"infinitesimal": infinitesimal_jackknife, "jackknife": jackknife}


def standard_errors(
    forest: FittedForest, leaves: NDArray[np.uint32], draws: Draws, method: str, corrected: bool
) -> Floats:
    """Estimate the standard error of each flat value of each row, (n_rows, value_width)."""
    if method not in _FORMS:
        raise ValueError(f"method must be 'infinitesimal' or 'jackknife', not {method!r}.")
    form = _FORMS[method](DrawnUnits.of(draws, forest.n_trees))
    width = forest.engine.value_width
    value = forest.engine.value.reshape(-1, width)
    found = np.empty((len(leaves), width))
    for begin in range(0, len(leaves), _BLOCK_ROWS):
        block = slice(begin, begin + _BLOCK_ROWS)
        nodes = leaves[block].astype(np.intp) + forest.root[:-1]
        for k in range(width):
            found[block, k] = form.variances(value[nodes, k], corrected)
    scale = np.abs(found).max(initial=0.0)
    negative = int(np.count_nonzero(found < -1e-12 * scale))
    if negative:
        warn(
            f"{negative} of {found.size} variances came out below 0 after the correction for the number of trees and "
            "were set to 0. Grow more trees."
        )
    return np.sqrt(np.maximum(found, 0.0))
