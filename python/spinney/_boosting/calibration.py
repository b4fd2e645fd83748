"""Calibration of boosted models by predictions of rows that were not used in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.task import Task
from spinney._data.types import Floats
from spinney._estimator.conformal import conformal_quantile
from spinney._model.file.codec import SavedState, array, number, optional

_MANY_ROWS = 20_000  # give the coverage to a fifth of a percent
_BIN_ROWS, _MOST_BINS = 50, 20  # bins of predictions
_LEAST_SPREAD = 1e-3  # of a bin, as a fraction of the mean error


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions of rows that were not used in training, with their targets.

    Attributes
    ----------
    predicted : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
        Numbers, or class probabilities.
    target : ndarray of shape (n_rows,)
        Numbers, or class indices.
    weight : ndarray of shape (n_rows,), or None
    error_ratio : float
        Errors of the model relative to those of the predictions: below 1 if the model is a mean of several.
    """

    predicted: Floats
    target: Floats
    weight: Floats | None = None
    error_ratio: float = 1.0

    @classmethod
    def of(cls, predicted: Floats, target: Floats, weight: Floats | None, error_ratio: float = 1.0) -> Calibration:
        """Return the calibration by rows of positive weight; of many rows, every second, third and so on is used."""
        rows = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
        rows = rows[:: max(1, -(-len(rows) // _MANY_ROWS))]
        used = None if weight is None or (weight[rows] == weight[rows[0]]).all() else weight[rows]
        return cls(np.ascontiguousarray(predicted[rows]), target[rows], used, error_ratio)

    @cached_property
    def errors(self) -> Floats:
        """Absolute errors of numeric predictions."""
        return np.abs(self.target - self.predicted[:, 0])

    def margins(self, predicted: Floats, coverage: float, method: str) -> Floats:
        """Return the margin around each prediction that holds the target with probability `coverage`."""
        if method == "residual":
            return np.full(len(predicted), self.error_ratio * conformal_quantile(self.errors, self.weight, coverage))
        known = conformal_quantile(self.errors / self._spread_by_others, self.weight, coverage)
        return np.asarray(self.error_ratio * known * self.spread(predicted))

    def spread(self, predicted: Floats) -> Floats:
        """Return the mean absolute error of rows with similar predictions."""
        return np.maximum(np.interp(predicted, self._centres, self._means), self._least)

    @cached_property
    def _weights(self) -> Floats:
        return np.ones(len(self.target)) if self.weight is None else self.weight

    @cached_property
    def _least(self) -> float:
        mean = _mean(self.errors, self._weights)
        return _LEAST_SPREAD * mean if mean > 0 else 1.0

    @cached_property
    def _bins(self) -> list[NDArray[np.intp]]:
        """Rows, by bin of the prediction."""
        order = np.argsort(self.predicted[:, 0], kind="stable")
        return np.array_split(order, min(_MOST_BINS, max(1, len(order) // _BIN_ROWS)))

    @cached_property
    def _centres(self) -> Floats:
        return np.array([_mean(self.predicted[rows, 0], self._weights[rows]) for rows in self._bins])

    @cached_property
    def _means(self) -> Floats:
        return np.array([_mean(self.errors[rows], self._weights[rows]) for rows in self._bins])

    @cached_property
    def _spread_by_others(self) -> Floats:
        """Spread at each row by the errors of all other rows, as for new rows."""
        found = np.interp(self.predicted[:, 0], self._centres, self._means)
        for k, rows in enumerate(self._bins):
            weight, total = self._weights[rows], fsum(self._weights[rows].tolist())
            if len(rows) == 1:
                continue
            change = weight / (total - weight) * (self._means[k] - self.errors[rows])  # of the bin's mean
            found[rows] += change * np.interp(self.predicted[rows, 0], self._centres, np.eye(len(self._bins))[k])
        return np.maximum(found, self._least)

    def is_usable(self, n_classes: int) -> bool:
        """Return whether there are rows, and targets are valid class indices (0 classes: numbers)."""
        return len(self.target) > 0 and (n_classes == 0 or bool(np.isin(self.target, np.arange(n_classes)).all()))


SAVED_CALIBRATION = SavedState(
    "",
    {
        "predicted": array("float64", "n_calibrating", "n_predicted"),
        "target": array("float64", "n_calibrating"),
        "error_ratio": optional(number(above=0.0, most=1.0, key="narrower")),
        "weight": optional(array("float64", "n_calibrating", above=0.0)),
    },
)


def out_of_fold_scores(
    by_fold: Sequence[Floats], task: Task, factors: Floats, holders: tuple[int, int]
) -> tuple[NDArray[np.intp], Floats] | None:
    """Return the scores of rows by the boosters that have held them out.

    Parameters
    ----------
    by_fold : sequence of ndarray of shape (n_scores, n_rows)
        Scores by the booster of each fold, of the rows that it has held out.
    task : Task
    factors : ndarray of shape (n_scores,)
        Factors of the trees.
    holders : tuple of int
        Range among the boosters that hold out a row; their scores are averaged.

    Returns
    -------
    tuple of ndarray, or None
        The held-out rows, and their scores, (n_scores, n_held_out); None if a booster has no scores.
    """
    rows = task.rows
    _, start = task.loss.centred(rows, task.start)
    n_rows = len(rows.target)
    sums, counts, n_holders = np.zeros_like(start), np.zeros(n_rows), np.zeros(n_rows, dtype=np.intp)
    for scores, (_, held_out) in zip(by_fold, task.splits, strict=True):
        if held_out is None or scores.shape != start.shape:
            return None
        is_held_out = held_out.weights() > 0
        used = is_held_out & (holders[0] <= n_holders) & (n_holders < holders[1])
        sums[:, used] += scores[:, used] - start[:, used]
        counts[used] += 1
        n_holders[is_held_out] += 1
    found = np.flatnonzero(counts > 0)
    return found, rows.scores(task.start)[:, found] + factors[:, np.newaxis] * sums[:, found] / counts[found]


def error_ratio_of_mean(errors: Floats, of_mean: Floats, weight: Floats, n_known: int, n_all: int) -> float:
    """Return the size of the errors of a mean of boosters relative to those of a mean of fewer boosters.

    Errors have a common component and an independent one, whose square is n times smaller in a mean of n. Rows that two
    boosters have held out determine both.

    Parameters
    ----------
    errors : ndarray of shape (2, n_rows)
        Errors of two boosters.
    of_mean : ndarray of shape (n_rows,)
        Errors of their mean.
    weight : ndarray of shape (n_rows,)
        Weights of the rows.
    n_known, n_all : int
        Number of boosters of the mean whose errors are known, and of the other mean.

    Returns
    -------
    float
        At most 1.
    """
    single = (_mean(np.abs(errors[0]), weight) + _mean(np.abs(errors[1]), weight)) / 2
    independent = 2 * max(0.0, single**2 - _mean(np.abs(of_mean), weight) ** 2)
    common = max(0.0, single**2 - independent)
    known = common + independent / n_known
    return 1.0 if known <= 0 else float(np.sqrt((common + independent / n_all) / known))


def _mean(values: Floats, weight: Floats) -> float:
    """Return the weighted mean, bit-identical on all platforms."""
    return fsum((values * weight).tolist()) / fsum(weight.tolist())
