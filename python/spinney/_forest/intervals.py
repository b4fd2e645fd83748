"""How sure a forest is of its predictions: quantiles, intervals and sets of classes from its training rows.

A training row's out-of-bag prediction comes from trees that have not seen it, as a new row's does, so out-of-bag errors
calibrate intervals and sets for new rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import spinney._engine as _engine
from spinney._data.types import Floats
from spinney._estimator.conformal import KnownClasses, conformal_quantile, weight_needed, weight_of_one
from spinney._forest.growth_record import TrainingRows
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
    def known_classes(self) -> KnownClasses:
        """Out-of-bag class probabilities, and the classes."""
        return KnownClasses(self.means, self.target[:, 0], self.weight)

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
