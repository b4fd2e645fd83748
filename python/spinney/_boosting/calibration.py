"""Predictions of rows that a boosted model, or some of its boosters, have not learned from, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.boosters import Task
from spinney._boosting.member import Member
from spinney._data.types import Floats
from spinney._estimator.conformal import conformal_quantile
from spinney._model.file.codec import SavedState, array, number, optional

_MANY = 20_000  # rows tell the coverage to a fifth of a percent
_BIN, _MOST_BINS = 50, 20  # rows of a bin of predictions, and bins
_LEAST_SPREAD = 1e-3  # of a bin, as a share of the mean spread


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions of rows not learned from, beside their targets.

    Attributes
    ----------
    predicted : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
        Values, or shares of the classes.
    target : ndarray of shape (n_rows,)
        Values, or codes of the classes.
    weight : ndarray of shape (n_rows,), or None
    narrower : float
        How large errors of the model are beside these: less than 1 if it is the mean of those that made these.
    """

    predicted: Floats
    target: Floats
    weight: Floats | None = None
    narrower: float = 1.0

    @classmethod
    def of(cls, predicted: Floats, target: Floats, weight: Floats | None, narrower: float = 1.0) -> Calibration:
        """Take rows of positive weight, of which there are some: every second, third … where there are many."""
        rows = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
        rows = rows[:: max(1, -(-len(rows) // _MANY))]
        used = None if weight is None or (weight[rows] == weight[rows[0]]).all() else weight[rows]
        return cls(np.ascontiguousarray(predicted[rows]), target[rows], used, narrower)

    @cached_property
    def errors(self) -> Floats:
        """Sizes of the errors, where values are predicted."""
        return np.abs(self.target - self.predicted[:, 0])

    def margins(self, predicted: Floats, coverage: float, method: str) -> Floats:
        """How far from each predicted value the target lies at most, with probability `coverage`."""
        if method == "residual":
            return np.full(len(predicted), self.narrower * conformal_quantile(self.errors, self.weight, coverage))
        known = conformal_quantile(self.errors / self._spread_by_others, self.weight, coverage)
        return np.asarray(self.narrower * known * self.spread(predicted))

    def spread(self, predicted: Floats) -> Floats:
        """Mean size of the errors of rows with predictions near each."""
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
        return np.array_split(order, min(_MOST_BINS, max(1, len(order) // _BIN)))

    @cached_property
    def _centres(self) -> Floats:
        return np.array([_mean(self.predicted[rows, 0], self._weights[rows]) for rows in self._bins])

    @cached_property
    def _means(self) -> Floats:
        return np.array([_mean(self.errors[rows], self._weights[rows]) for rows in self._bins])

    @cached_property
    def _spread_by_others(self) -> Floats:
        """Spread at each row by the errors of all rows but itself, as new rows have no say in theirs."""
        found = np.interp(self.predicted[:, 0], self._centres, self._means)
        for k, rows in enumerate(self._bins):
            weight, total = self._weights[rows], fsum(self._weights[rows].tolist())
            if len(rows) == 1:
                continue
            change = weight / (total - weight) * (self._means[k] - self.errors[rows])  # of the bin's mean
            found[rows] += change * np.interp(self.predicted[rows, 0], self._centres, np.eye(len(self._bins))[k])
        return np.maximum(found, self._least)

    def is_usable(self, n_classes: int) -> bool:
        """Whether there are rows, and they are of so many classes; 0: of numbers."""
        return len(self.target) > 0 and (n_classes == 0 or bool(np.isin(self.target, np.arange(n_classes)).all()))


SAVED_CALIBRATION = SavedState(
    "",
    {
        "predicted": array("float64", "n_calibrating", "n_predicted"),
        "target": array("float64", "n_calibrating"),
        "narrower": optional(number(above=0.0, most=1.0)),
        "weight": optional(array("float64", "n_calibrating", above=0.0)),
    },
)


def scores_out_of_folds(
    members: Sequence[Member], task: Task, factors: Floats, turns: tuple[int, int]
) -> tuple[NDArray[np.intp], Floats] | None:
    """Collect the scores that the boosters give to the rows that each has held out.

    Parameters
    ----------
    members : sequence of Member
        Boosters.
    task : Task
        What they boost.
    factors : ndarray of shape (n_scores,)
        What the trees of all are multiplied by.
    turns : tuple of int
        Of the boosters that hold a row out, which to use: from this one up to that; the mean of these counts.

    Returns
    -------
    tuple of ndarray, or None
        The rows that have such, and their scores, (n_scores, n_found); None if a booster has no scores.
    """
    rows = task.rows
    _, first = task.loss.shifted(rows, task.start)
    n_rows = len(rows.target)
    added, times, n_holders = np.zeros_like(first), np.zeros(n_rows), np.zeros(n_rows, dtype=np.intp)
    for member, (_, held_out) in zip(members, task.parts, strict=True):
        scores = member.kept_scores()
        if held_out is None or scores.shape != first.shape:
            return None
        unseen = held_out.weights() > 0
        now = unseen & (turns[0] <= n_holders) & (n_holders < turns[1])
        added[:, now] += scores[:, now] - first[:, now]
        times[now] += 1
        n_holders[unseen] += 1
    known = np.flatnonzero(times > 0)
    return known, rows.scores(task.start)[:, known] + factors[:, np.newaxis] * added[:, known] / times[known]


def errors_of_mean(alone: Floats, of_two: Floats, weight: Floats, n_known: int, n_all: int) -> float:
    """Size of the errors of a mean of boosters, over that of the mean of fewer of them.

    Errors have a part that boosters share, and one of its own for each, which a mean of n makes n times smaller,
    squared. Rows that two have not seen tell them apart.

    Parameters
    ----------
    alone : ndarray of shape (2, n_rows)
        Errors of two boosters each.
    of_two : ndarray of shape (n_rows,)
        Errors of their mean.
    weight : ndarray of shape (n_rows,)
        Weights of the rows.
    n_known, n_all : int
        Boosters of the mean whose errors are known, and of the other.

    Returns
    -------
    float
        At most 1.
    """
    one = (_mean(np.abs(alone[0]), weight) + _mean(np.abs(alone[1]), weight)) / 2
    own = 2 * max(0.0, one**2 - _mean(np.abs(of_two), weight) ** 2)
    shared = max(0.0, one**2 - own)
    known = shared + own / n_known
    return 1.0 if known <= 0 else float(np.sqrt((shared + own / n_all) / known))


def _mean(values: Floats, weight: Floats) -> float:
    """Mean, with the same bits everywhere."""
    return fsum((values * weight).tolist()) / fsum(weight.tolist())
