"""The four methods of the rpart reference implementation: prediction and risk of a node, and gain of a split.

A method turns rows into *statistics*, vectors that add up over rows. A split is evaluated from the statistics of its
two sides alone, so numeric cuts, sorted levels and subsets of levels all go through the same three functions:

``prepare(rows, node_risk)``
    one vector per row, for the rows a candidate split can send;
``improvement(left, right, total)``
    how much the candidates improve the node, given the statistics of both sides (one candidate per line) and
    of the node;
``position(statistics)``
    mean, rate or mean class index: the side with the lower position becomes the left child.

``evaluate(rows)`` gives the risk and the prediction of a node, ``error(row, prediction)`` the loss of a held-out row.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Summary:
    """What a node knows of its rows: ``yval`` is a mean, a rate or a class index counted from 1."""

    risk: float
    yval: float
    counts: np.ndarray | None = None  # weighted rows per class
    yprob: np.ndarray | None = None
    nodeprob: float | None = None
    events: float | None = None


class Anova:
    def __init__(self, y, weights):
        self.y, self.weights = y, weights

    def start(self, rows):
        """Learn what depends on the training rows as a whole: nothing here."""

    def evaluate(self, rows):
        y, w = self.y[rows], self.weights[rows]
        mean = np.cumsum(w * y)[-1] / np.cumsum(w)[-1]
        return Summary(risk=float(np.cumsum(w * (y - mean) ** 2)[-1]), yval=float(mean))

    def prepare(self, rows, node_risk):
        """Weight and weighted distance from the mean of the given rows."""
        y, w = self.y[rows], self.weights[rows]
        self.node_risk = node_risk
        return np.column_stack([w, w * (y - np.cumsum(w * y)[-1] / np.cumsum(w)[-1])])

    def improvement(self, left, right, total):
        # The distances of both sides add up to 0, so one side determines the other: ties then round as in rpart.
        squared = left[:, 1] ** 2
        with np.errstate(invalid="ignore"):  # 0 / 0 where all rows are alike
            return (squared / left[:, 0] + squared / right[:, 0]) / self.node_risk

    def position(self, statistics):
        return statistics[:, 1] / statistics[:, 0]

    def level_rank(self, statistics):
        return self.position(statistics)

    def error(self, row, summary):
        return (self.y[row] - summary.yval) ** 2

    def credit(self, improve, node_risk):
        """Importance that a split of this stored improvement earns."""
        return improve * node_risk


class Classes:
    def __init__(self, y, weights, n_classes, prior=None, loss=None, split="gini", quirks=True):
        self.y, self.weights, self.n_classes, self.quirks = y, weights, n_classes, quirks
        frequency = np.bincount(y, weights, n_classes) / np.sum(weights)
        self.loss = 1.0 - np.eye(n_classes) if loss is None else np.asarray(loss, float)
        self.prior = frequency if prior is None else np.asarray(prior, float)
        losses = self.prior[:, None] * self.loss  # added up loss by loss: ties then round as they do in rpart
        altered, total = running_sum(losses), running_sum(losses.reshape(1, -1))[0]
        if not total > 0:
            altered, total = self.prior, 1.0  # one class: nothing to confuse it with
        with np.errstate(divide="ignore", invalid="ignore"):
            self.row_prior = np.where(frequency > 0, self.prior / frequency, 0.0)
            self.row_altered = np.where(frequency > 0, altered / (total * frequency), 0.0)
        self.impurity = {"gini": gini, "information": information}[split]

    def start(self, rows):
        """Priors stay those of the full table, in cross-validation too."""

    def evaluate(self, rows):
        counts = np.bincount(self.y[rows], self.weights[rows], self.n_classes)
        share = counts * self.row_prior
        risks = share @ self.loss
        best = int(np.argmin(risks))
        with np.errstate(invalid="ignore"):
            yprob = share / share.sum()
        nodeprob = float(share.sum() / np.sum(self.weights))
        return Summary(risk=float(risks[best]), yval=best + 1, counts=counts, yprob=yprob, nodeprob=nodeprob)

    def prepare(self, rows, node_risk):
        """Size after the priors, then the weight of each class."""
        y, w = self.y[rows], self.weights[rows]
        statistics = np.zeros((len(rows), 1 + self.n_classes))
        statistics[:, 0] = self.row_altered[y] * w
        statistics[np.arange(len(rows)), 1 + y] = w
        return statistics

    def improvement(self, left, right, total):
        # Class by class, left and right in turn: ties then round as they do in rpart.
        after = np.stack([self.mass(left), self.mass(right)], axis=2).reshape(len(left), -1)
        return running_sum(self.mass(total)) - running_sum(after)

    def mass(self, statistics):
        """Size times impurity, class by class."""
        size = statistics[:, :1]
        return size * self.impurity(self.row_altered * statistics[:, 1:] / size)

    def position(self, statistics):
        altered = self.row_altered * statistics[:, 1:]
        return altered @ np.arange(1, self.n_classes + 1) / statistics[:, 0]

    def level_rank(self, statistics):
        return self.row_altered[0] * statistics[:, 1] / statistics[:, 0]

    def error(self, row, summary):
        true, called = self.y[row], int(summary.yval) - 1
        loss = self.loss[called, true] if self.quirks else self.loss[true, called]
        return self.row_prior[true] * loss

    def credit(self, improve, node_risk):
        return improve


def running_sum(terms):
    """Sum along each line from first to last (np.sum adds in another order)."""
    return np.cumsum(terms, axis=1)[:, -1]


def gini(p):
    return p * (1 - p)


def information(p):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, -p * np.log(p), 0.0)


class Poisson:
    def __init__(self, time, events, weights, shrink=1.0, error_method="deviance"):
        self.time, self.events, self.weights = time, events, weights
        self.shrink, self.error_method = shrink, error_method

    def start(self, rows):
        """Set the prior of the rates: worth 1/shrink^2 events, at the rate of the training rows."""
        w = self.weights[rows]
        rate = np.sum(w * self.events[rows]) / np.sum(w * self.time[rows])
        self.prior_events = 1 / self.shrink**2 if self.shrink > 0 and rate > 0 else 0.0
        self.prior_time = self.prior_events / rate if rate > 0 else 0.0

    def evaluate(self, rows):
        time, events, w = self.time[rows], self.events[rows], self.weights[rows]
        total = np.sum(w * events)
        rate = (total + self.prior_events) / (np.sum(w * time) + self.prior_time)
        of_weight = w > 0  # the deviance of others may be infinite
        risk = np.sum(w[of_weight] * deviance(time[of_weight], events[of_weight], rate))
        return Summary(risk=float(risk), yval=float(rate), events=float(total))

    def prepare(self, rows, node_risk):
        w = self.weights[rows]
        return np.column_stack([w * self.time[rows], w * self.events[rows]])

    def improvement(self, left, right, total):
        return 2 * (likelihood(left) + likelihood(right) - likelihood(total))

    def position(self, statistics):
        return statistics[:, 1] / statistics[:, 0]

    def level_rank(self, statistics):
        return self.position(statistics)

    def error(self, row, summary):
        time, events = self.time[row], self.events[row]
        if self.error_method == "sqrt":
            return (np.sqrt(events) - np.sqrt(summary.yval * time)) ** 2
        return float(deviance(np.array([time]), np.array([events]), summary.yval)[0])

    def credit(self, improve, node_risk):
        return improve


def deviance(time, events, rate):
    """Poisson deviance of each row; a row without events has no logarithm to take."""
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = rate * time
        log_term = np.where(events > 0, events * np.log(events / expected), 0.0)
    return 2 * (log_term - (events - expected))


def likelihood(statistics):
    time, events = statistics[:, 0], statistics[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(events > 0, events * np.log(events / time), 0.0)


def exposure(stop, status, start=None, weights=None):
    """Turn survival times into exposure with an overall event rate of 1 (method exp).

    The time axis is cut at the distinct times of the events; within an interval the hazard is constant: weighted events
    over weighted time at risk. The last interval runs on to the longest time. A row's exposure is the hazard it has
    lived through.
    """
    start = np.zeros_like(stop) if start is None else start
    weights = np.ones_like(stop) if weights is None else weights
    event_times = np.unique(stop[(status > 0) & (weights > 0)])
    edges = np.concatenate([[0.0], event_times[:-1], [stop.max()]])
    lived = np.clip(stop[:, None], edges[:-1], edges[1:]) - np.clip(start[:, None], edges[:-1], edges[1:])
    interval = np.clip(np.searchsorted(edges, stop, side="left") - 1, 0, len(edges) - 2)
    events = np.bincount(interval, weights * status, len(edges) - 1)
    at_risk = weights @ lived
    return lived @ np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0)
