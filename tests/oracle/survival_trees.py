"""Survival trees by the book: log-rank statistics from tables of rows at risk, curves time by time."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Rows:
    """Times, causes (0: censored), entries and weights of rows."""

    time: np.ndarray
    cause: np.ndarray
    entry: np.ndarray
    weight: np.ndarray

    def __getitem__(self, at):
        return Rows(self.time[at], self.cause[at], self.entry[at], self.weight[at])

    @property
    def causes(self):
        return range(1, int(self.cause.max()) + 1)


def event_times(rows):
    return np.unique(rows.time[(rows.cause > 0) & (rows.weight > 0)])


def table(rows, t, cause):
    """Rows at risk at a time, and events of a cause."""
    at_risk = rows.weight[(rows.entry < t) & (rows.time >= t)].sum()
    return at_risk, rows.weight[(rows.time == t) & (rows.cause == cause)].sum()


def log_rank(rows, is_left):
    """The two-sample log-rank statistic, summed over the causes."""
    total = 0.0
    for cause in rows.causes:
        difference = variance = 0.0
        for t in event_times(rows):
            (Y, d), (Y_left, d_left) = table(rows, t, cause), table(rows[is_left], t, cause)
            if d == 0:
                continue
            difference += d_left - Y_left * d / Y
            if Y > 1:
                variance += d * min(1, (Y - d) / (Y - 1)) * Y_left / Y * (1 - Y_left / Y)
        if variance > 1e-9:
            total += difference**2 / variance
    return total


def hazard(rows, at, cause):
    """Cumulative hazard of a cause at each time (Nelson and Aalen)."""
    steps = {}
    for t in event_times(rows):
        Y, d = table(rows, t, cause)
        steps[t] = d / Y if Y else 0.0
    return np.array([sum(step for t, step in steps.items() if t <= end) for end in at])


def survival(rows, at):
    """Survival function at each time (Kaplan and Meier)."""
    found = []
    for end in at:
        probability = 1.0
        for t in event_times(rows):
            if t <= end:
                Y = table(rows, t, 1)[0]
                d = sum(table(rows, t, cause)[1] for cause in rows.causes)
                probability *= 1 - d / Y if Y else 1.0
        found.append(probability)
    return np.array(found)


def incidence(rows, at, cause):
    """Cumulative incidence of a cause at each time (Aalen and Johansen)."""
    found = []
    for end in at:
        total, before = 0.0, 1.0
        for t in event_times(rows):
            if t <= end:
                Y, d = table(rows, t, cause)
                total += before * d / Y if Y else 0.0
                before = survival(rows, [t])[0]
        found.append(total)
    return np.array(found)


def relative_hazard(rows, everything, cause):
    """Events and those expected by the hazard of all rows, each plus 1, as a ratio."""
    D = rows.weight[rows.cause == cause].sum()
    expected = hazard(everything, rows.time, cause) - hazard(everything, rows.entry, cause)
    return (D + 1) / ((rows.weight * expected).sum() + 1)


def leaves(X, rows, min_leaf, max_depth):
    """The leaf of each row, by number in order from left to right, of a tree of numbers without missing values."""
    leaf, n = np.zeros(len(X), dtype=int), 0

    def grow(at, depth):
        nonlocal n
        best, choice = 0.0, None
        if depth < max_depth and len(np.unique(rows.cause[at])) + len(np.unique(rows.time[at])) > 2:
            for j in range(X.shape[1]):
                for cut in np.unique(X[at, j])[:-1]:
                    is_left = X[at, j] <= cut
                    if min(is_left.sum(), (~is_left).sum()) < min_leaf:
                        continue
                    statistic = log_rank(rows[at], is_left)
                    if statistic > best * (1 + 1e-10) + 1e-12:
                        best, choice = statistic, is_left
        if choice is None:
            leaf[at] = n
            n += 1
            return
        grow(at[choice], depth + 1)
        grow(at[~choice], depth + 1)

    grow(np.flatnonzero(rows.weight > 0), 0)
    return leaf
