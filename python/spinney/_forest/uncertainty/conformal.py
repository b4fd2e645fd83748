"""Intervals and sets of classes calibrated by out-of-bag predictions.

A training row's out-of-bag prediction comes from trees that have not seen it, as a new row's does, so the out-of-bag
errors are what errors on new rows look like.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._estimator.conformal import KnownClasses, conformal_quantile, weight_needed, weight_of_one
from spinney._forest.growing.training_rows import TrainingRows
from spinney._model.forest import FittedForest

_BLOCK_NUMBERS = 2**22  # predictions of trees for a block of rows: 32 MiB

Floats = NDArray[np.float64]


class Calibration:
    """Training rows that can calibrate: of positive weight, and left out of at least one tree.

    Attributes
    ----------
    rows : ndarray of int
    means : ndarray of shape (n_rows_used, value_width)
        Out-of-bag predictions.
    target : ndarray of shape (n_rows_used, n_outputs)
    weight : ndarray of shape (n_rows_used,) or None
    """

    def __init__(self, forest: FittedForest, kept: TrainingRows) -> None:
        means, self.n_unseen = kept.out_of_bag_means(forest)
        if not kept.n_classes and means.shape[1] != kept.target.shape[1]:
            raise ValueError("The criterion predicts something other than y, so there are no errors to calibrate by.")
        usable = self.n_unseen > 0
        if kept.row_weight is not None:
            usable &= kept.row_weight > 0
        self.rows = np.flatnonzero(usable)
        if len(self.rows) == 0:
            raise ValueError("Every row was drawn for every tree. Grow more trees, or draw fewer rows.")
        self.kept = kept
        self.means = means[self.rows]
        self.target = kept.target[self.rows]
        self.weight = None if kept.row_weight is None else kept.row_weight[self.rows]

    def margin(self, scores: Floats, coverage: float) -> float:
        """Return the score that a new row stays below with probability `coverage`."""
        return conformal_quantile(scores, self.weight, coverage)

    @property
    def share_of_one(self) -> float:
        """Share of one row among these and itself."""
        if self.weight is None:
            return 1 / (len(self.rows) + 1)
        one = weight_of_one(self.weight)
        return float(one / (self.weight.sum() + one))

    @property
    def known_classes(self) -> KnownClasses:
        """Out-of-bag class probabilities, and the classes."""
        return KnownClasses(self.means, self.target[:, 0], self.weight)

    @cached_property
    def unseen_bits(self) -> NDArray[np.uint8]:
        """Return the trees that left each row out as bits, eight trees to a byte, (n_bytes, n_rows_used)."""
        return np.packbits(self.kept.unseen()[:, self.rows], axis=0, bitorder="little")


def jackknife_plus(
    forest: FittedForest, leaves: NDArray[np.uint32], cal: Calibration, coverage: float, n_jobs: int
) -> Floats:
    """Jackknife+ after bootstrap (Kim, Xu and Barber 2020), (n_rows, n_outputs, 2).

    Around the mean of the trees that left training row i out lie its errors; the interval spans the share `coverage`
    of these on each side.
    """
    value = forest.engine.value.reshape(-1, forest.engine.value_width)
    errors = np.abs(cal.target - cal.means)
    needed = weight_needed(len(errors), cal.weight, coverage)
    found = np.empty((len(leaves), errors.shape[1], 2))
    n_block = max(1, _BLOCK_NUMBERS // leaves.shape[1])
    for begin in range(0, len(leaves), n_block):
        block = slice(begin, begin + n_block)
        nodes = leaves[block].astype(np.intp) + forest.root[:-1]
        for k in range(errors.shape[1]):
            error = np.ascontiguousarray(errors[:, k])
            by_tree = np.ascontiguousarray(value[nodes, k])
            found[block, k] = _engine.jackknife_plus(by_tree, cal.unseen_bits, error, cal.weight, needed, n_jobs)
    return found
