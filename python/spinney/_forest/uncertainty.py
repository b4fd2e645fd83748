"""How sure a forest is of its predictions: quantiles, intervals and sets of classes from its training rows.

A training row's out-of-bag prediction comes from trees that have not seen it, as a new row's does, so out-of-bag errors
calibrate intervals and sets for new rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.types import Floats
from spinney._estimator.conformal import CalibrationRows, conformal_quantile, weight_needed, weight_of_one
from spinney._forest.growth_record import TrainingRows
from spinney._forest.samples import Draws
from spinney._model.forest import FittedForest

_BLOCK_NUMBERS = 2**22  # predictions of trees for a block of rows: 32 MiB

Leaves = NDArray[np.uint32]


class Calibration:
    """Training rows that can calibrate: of positive weight, and left out of at least one tree.

    Attributes
    ----------
    rows : ndarray of int
    means : ndarray of shape (n_rows_used, value_width)
        Out-of-bag predictions.
    target : ndarray of shape (n_rows_used, n_outputs)
    weight : ndarray of shape (n_rows_used,) or None
    margins : dict
        Margins of quantiles that have been computed, by levels.
    """

    def __init__(self, forest: FittedForest, known: TrainingRows) -> None:
        means, n_unseen = known.out_of_bag_means(forest)
        if not known.n_classes and means.shape[1] != known.target.shape[1]:
            raise ValueError("The criterion predicts something other than y, so there are no errors to calibrate by.")
        usable = n_unseen > 0
        if known.row_weight is not None:
            usable &= known.row_weight > 0
        self.rows = np.flatnonzero(usable)
        if len(self.rows) == 0:
            raise ValueError("Every row was drawn for every tree. Grow more trees, or draw fewer rows.")
        self.means = means[self.rows]
        self.target = known.target[self.rows]
        self.weight = None if known.row_weight is None else known.row_weight[self.rows]
        self.known = known
        self.margins: dict[tuple[float, ...], Floats] = {}

    @property
    def known_classes(self) -> CalibrationRows:
        """Out-of-bag class probabilities, and the classes."""
        return CalibrationRows(self.means, self.target[:, 0], self.weight)

    @cached_property
    def unseen_bits(self) -> NDArray[np.uint8]:
        """Return the trees that left each row out as bits, eight trees to a byte, (n_bytes, n_rows_used)."""
        return np.packbits(self.known.unseen()[:, self.rows], axis=0, bitorder="little")

    @cached_property
    def errors(self) -> Floats:
        """Absolute out-of-bag errors, by row and output."""
        return np.abs(self.target - self.means)

    def margin(self, scores: Floats, coverage: float) -> Floats:
        """Return the score that a new row stays below with probability `coverage`, by column."""
        return np.array([conformal_quantile(column, self.weight, coverage) for column in scores.T])

    @property
    def fraction_of_one(self) -> float:
        """Fraction of the weight that one row has among these and itself."""
        if self.weight is None:
            return 1 / (len(self.rows) + 1)
        one = weight_of_one(self.weight)
        return float(one / (self.weight.sum() + one))


@dataclass(frozen=True, eq=False)
class ForestIntervals:
    """Conditional distributions of the target by a fitted forest that retains its training rows.

    Attributes
    ----------
    forest : FittedForest
    known : TrainingRows
    n_jobs : int
    """

    forest: FittedForest
    known: TrainingRows
    n_jobs: int

    @property
    def calibration(self) -> Calibration:
        """The rows that calibrate, found once for the training rows."""
        cache = self.known.cache
        if "calibration" not in cache:
            cache["calibration"] = Calibration(self.forest, self.known)
        found: Calibration = cache["calibration"]
        return found

    def weights(self, leaves: Leaves) -> csr_array:
        """Weight of each training row in the prediction for each row."""
        start, row, weight = self.known.engine.weights(leaves, self.n_jobs)
        kind = np.int32 if len(row) < 2**31 else np.int64
        return csr_array((weight, row.astype(kind), start.astype(kind)), shape=(len(leaves), self.known.n_rows))

    def quantiles(self, leaves: Leaves, levels: Floats) -> Floats:
        """Quantiles of the target, (n_rows, n_outputs, n_levels)."""
        order = np.argsort(levels, kind="stable")
        found = np.empty((len(leaves), len(self.known.places), len(levels)))
        for k, (place, target) in enumerate(self.known.places):
            ordered = np.ascontiguousarray(levels[order])
            flat = self.known.engine.quantiles(leaves, place, target, ordered, self.n_jobs)
            found[:, k, order] = flat.reshape(len(leaves), len(levels))
        return found

    def cdf(self, leaves: Leaves, values: Floats) -> Floats:
        """Probability that the target is at most each value, (n_rows, n_outputs, n_values)."""
        weights = self.weights(leaves)
        parts = [weights @ (y[:, np.newaxis] <= values).astype(np.float64) for y in self.known.target.T]
        return np.asarray(np.clip(np.stack(parts, axis=1), 0.0, 1.0))

    def interval(self, columns: _engine.Table, coverage: float, method: str) -> Floats:
        """Lower and upper ends, (n_rows, n_outputs, 2)."""
        if method == "quantile":
            return self._widened_quantiles(self.forest.engine.apply(columns, self.n_jobs), coverage)
        if method == "jackknife+":
            return self._jackknife_plus(self.forest.engine.apply(columns, self.n_jobs), coverage)
        if method == "residual":
            centre = self.forest.predictions(columns, self.n_jobs)
            margin = self.calibration.margin(self.calibration.errors, coverage)
            return np.stack([centre - margin, centre + margin], axis=-1)
        raise ValueError(f"method must be 'quantile', 'jackknife+' or 'residual', not {method!r}.")

    def _widened_quantiles(self, leaves: Leaves, coverage: float) -> Floats:
        """Conformalised quantile regression: quantiles, widened until they cover the training rows out of bag."""
        cal = self.calibration
        levels = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        margin = self._quantile_margins(levels, coverage)
        found = self.quantiles(leaves, levels)
        ends = np.stack([found[..., 0] - margin, found[..., 1] + margin], axis=-1)
        crossed = ends[..., 0] > ends[..., 1]  # a negative margin wider than the quantiles are apart
        ends = np.where(crossed[..., np.newaxis], found.mean(axis=-1, keepdims=True), ends)
        # A new target lies beyond those that occurred with a probability of at most twice one row's fraction of the
        # weight: ends that stop there lose no more than that.
        if 2 * cal.fraction_of_one > (1 - coverage) / 10:
            return ends
        lowest, highest = cal.target.min(axis=0)[:, np.newaxis], cal.target.max(axis=0)[:, np.newaxis]
        return np.clip(ends, lowest, highest)

    def _quantile_margins(self, levels: Floats, coverage: float) -> Floats:
        """Return how far targets lie beyond out-of-bag quantiles, as `coverage` of the rows do at most, by output."""
        cal, key = self.calibration, (*levels.tolist(), coverage)
        if key not in cal.margins:
            known = self.quantiles(np.ascontiguousarray(self.known.unseen_leaves[cal.rows]), levels)
            cal.margins[key] = cal.margin(np.maximum(known[..., 0] - cal.target, cal.target - known[..., 1]), coverage)
        return cal.margins[key]

    def _jackknife_plus(self, leaves: Leaves, coverage: float) -> Floats:
        """Jackknife+ after bootstrap (Kim, Xu and Barber 2020).

        Around the mean of the trees that left training row i out lie its errors; the interval spans the fraction
        `coverage` of these on each side.
        """
        cal, errors = self.calibration, self.calibration.errors
        value = self.forest.engine.value.reshape(-1, self.forest.engine.value_width)
        needed = weight_needed(len(errors), cal.weight, coverage)
        found = np.empty((len(leaves), errors.shape[1], 2))
        n_block = max(1, _BLOCK_NUMBERS // leaves.shape[1])
        for begin in range(0, len(leaves), n_block):
            block = slice(begin, begin + n_block)
            nodes = leaves[block].astype(np.intp) + self.forest.root[:-1]
            for k in range(errors.shape[1]):
                error = np.ascontiguousarray(errors[:, k])
                by_tree = np.ascontiguousarray(value[nodes, k])
                found[block, k] = _engine.jackknife_plus(
                    by_tree, cal.unseen_bits, error, cal.weight, needed, self.n_jobs
                )
        return found


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
