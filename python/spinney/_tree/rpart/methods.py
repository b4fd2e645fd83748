"""rpart's methods: the prediction and the risk of all nodes of a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import dot, log, times
from spinney._data.types import Floats
from spinney._model.tree import FittedTree


@dataclass(frozen=True)
class NodeSummaries:
    """Prediction, risk and weight of each node.

    Attributes
    ----------
    risk : ndarray
        Weighted error, sum of squares or deviance, in units of rows.
    prediction : ndarray
        Class index (from 0), mean or rate.
    value : ndarray of shape (n_nodes, k)
        Values of the tree's nodes: class probabilities, mean or rate.
    mass : ndarray
        Weights of the tree's nodes.
    weight : ndarray
        Sum of the case weights of the node's rows.
    counts : ndarray or None
        Weighted number of rows by class.
    events : ndarray or None
        Weighted number of events.
    """

    risk: Floats
    prediction: Floats
    value: Floats
    mass: Floats
    weight: Floats
    counts: Floats | None = None
    events: Floats | None = None


@dataclass(frozen=True)
class Rounding:
    """The terms that rpart sums in double precision when it searches for splits: their rounding breaks ties.

    Attributes
    ----------
    response : ndarray or None
        By row: value or number of events; without meaning for classes. None: the first of tied splits is chosen.
    exposure : ndarray or None
        By row, rates only.
    class_factor : list of float
        By class: altered prior over frequency.
    """

    response: Floats | None = None
    exposure: Floats | None = None
    class_factor: list[float] = field(default_factory=list)


@dataclass
class Shape:
    """A grown tree: rpart's left and right child of each node (-1 in leaves), and the improvement of its split."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    improve: Floats

    def __len__(self) -> int:
        return len(self.left)


class Method(Protocol):
    """A method of rpart."""

    case_weight: Floats

    def split_weight(self) -> Floats:
        """Return the weights of the rows in the search for splits."""
        return self.case_weight

    def engine_target(self) -> tuple[NDArray[Any], list[int]]:
        """Return the target and the numbers of classes for the engine."""

    def rounding(self) -> Rounding:
        """Return the terms that rpart sums when it searches for splits."""

    def root_risks(self, rows: NDArray[np.intp]) -> tuple[float, list[float]] | None:
        """Return the root's risk on these rows and the risk by pair of classes; None if the engine cannot use them."""
        return None

    def start(self, rows: NDArray[np.intp]) -> None:
        """Set what depends on all training rows together: nothing by default."""
        return

    def summarise(self, tree: FittedTree, resting: NDArray[np.intp]) -> NodeSummaries:
        """Summarise the nodes of a grown tree; `resting` is the node at which each row stopped, -1 for other rows."""

    def improve(self, gain: Floats, node_risk: Floats) -> Floats:
        """Return the improvement that rpart reports, from the engine's gain."""

    def credit(self, improve: Floats, node_risk: Floats) -> Floats:
        """Return the importance of a split, from its improvement."""
        return improve

    def errors(self, rows: NDArray[np.intp], nodes: NDArray[np.intp], summaries: NodeSummaries) -> Floats:
        """Return the errors of held-out rows at these nodes."""


def sum_by_node(tree: FittedTree, resting: NDArray[np.intp], values: Floats) -> Floats:
    """Sum values over the rows of each node; the first axis of `values` is the rows."""
    used = resting >= 0
    columns = values.reshape(len(values), -1)
    own = np.column_stack(
        [np.bincount(resting[used], weights=column[used], minlength=tree.node_count) for column in columns.T]
    )
    for parents in inner_levels(tree)[::-1]:  # so that a parent is exactly the sum of its children
        own[parents] += own[parents + 1] + own[tree.children_right[parents]]
    return np.asarray(own.reshape((tree.node_count, *values.shape[1:])))


def inner_levels(tree: FittedTree) -> list[NDArray[np.intp]]:
    """Return the nodes that are split, level by level from the root."""
    levels, level = [], np.zeros(1, dtype=np.intp)
    while len(level := level[~tree.is_leaf[level]]):
        levels.append(level)
        level = np.concatenate([level + 1, tree.children_right[level].astype(np.intp)])
    return levels


def _altered_by_addition(prior: Floats, loss: Floats, frequency: Floats) -> Floats:
    """Return altered priors over frequencies with rpart's rounding, which sums prior times loss term by term."""
    losses = prior[:, np.newaxis] * loss
    altered, total = np.cumsum(losses, axis=1)[:, -1], float(np.cumsum(losses)[-1])
    if not total > 0:
        altered, total = prior, 1.0
    return np.divide(altered, total * frequency, out=np.zeros(len(prior)), where=frequency > 0)


class ClassMethod(Method):
    """Gini or information splits under altered priors; expected loss under the priors."""

    def __init__(
        self,
        codes: NDArray[np.int32],
        n_classes: int,
        case_weight: Floats,
        *,
        prior: Floats | None,
        loss: Floats | None,
        bits: bool,
        transposed_loss: bool,
    ) -> None:
        self.codes, self.n_classes, self.case_weight = codes, n_classes, case_weight
        frequency = np.bincount(codes[codes >= 0], weights=case_weight[codes >= 0], minlength=n_classes)
        with np.errstate(invalid="ignore"):  # all weights are 0, which the caller refuses
            frequency = frequency / frequency.sum()
        self.loss = 1.0 - np.eye(n_classes) if loss is None else loss
        self.prior = frequency if prior is None else prior
        altered = self.prior * self.loss.sum(axis=1)
        altered = altered / altered.sum() if altered.sum() > 0 else self.prior  # only one class
        with np.errstate(divide="ignore", invalid="ignore"):
            self.row_prior = np.where(frequency > 0, self.prior / frequency, 0.0)
            self.row_altered = np.where(frequency > 0, altered / frequency, 0.0)
        self.rounded_altered = _altered_by_addition(self.prior, self.loss, frequency)
        if prior is None:  # exact, so that whole counts stay whole
            self.row_prior = np.where(frequency > 0, 1.0, 0.0)
            if loss is None:
                self.row_altered = self.row_prior
        self.nats_per_gain = 0.6931471805599453 if bits else 1.0
        self.transposed_loss = transposed_loss

    def split_weight(self) -> Floats:
        return np.asarray(self.case_weight * self.row_altered[self.codes])

    def engine_target(self) -> tuple[NDArray[Any], list[int]]:
        return np.maximum(self.codes, 0)[:, np.newaxis], [self.n_classes]

    def rounding(self) -> Rounding:
        return Rounding(self.case_weight, class_factor=self.rounded_altered.tolist())

    def root_risks(self, rows: NDArray[np.intp]) -> tuple[float, list[float]] | None:
        counts = np.bincount(self.codes[rows], weights=self.case_weight[rows], minlength=self.n_classes)
        ratio = np.divide(self.row_prior, self.row_altered, out=np.zeros(self.n_classes), where=self.row_altered > 0)
        least = float(times(counts * self.row_prior, self.loss).min())
        return least, (ratio[:, np.newaxis] * self.loss).ravel().tolist()

    def summarise(self, tree: FittedTree, resting: NDArray[np.intp]) -> NodeSummaries:
        by_class = np.zeros((len(self.codes), self.n_classes))
        used = np.flatnonzero(resting >= 0)
        by_class[used, self.codes[used]] = self.case_weight[used]
        counts = sum_by_node(tree, resting, by_class)
        by_prior = counts * self.row_prior
        risks = times(by_prior, self.loss)
        best = risks.argmin(axis=1)
        mass = by_prior.sum(axis=1)
        return NodeSummaries(
            risk=risks[np.arange(len(best)), best],
            prediction=best.astype(np.float64),
            value=by_prior / mass[:, np.newaxis],
            mass=mass,
            weight=counts.sum(axis=1),
            counts=counts,
        )

    def improve(self, gain: Floats, node_risk: Floats) -> Floats:
        return np.asarray(gain * self.nats_per_gain)

    def errors(self, rows: NDArray[np.intp], nodes: NDArray[np.intp], summaries: NodeSummaries) -> Floats:
        true, predicted = self.codes[rows], summaries.prediction[nodes].astype(np.intp)
        loss = self.loss[predicted, true] if self.transposed_loss else self.loss[true, predicted]
        return np.asarray(self.row_prior[true] * loss)


class AnovaMethod(Method):
    """Means and sums of squares."""

    def __init__(self, y: Floats, case_weight: Floats) -> None:
        self.y, self.case_weight = y, case_weight

    def engine_target(self) -> tuple[NDArray[Any], list[int]]:
        return np.nan_to_num(self.y)[:, np.newaxis], []

    def rounding(self) -> Rounding:
        return Rounding(np.nan_to_num(self.y))

    def root_risks(self, rows: NDArray[np.intp]) -> tuple[float, list[float]] | None:
        y, weight = self.y[rows], self.case_weight[rows]
        return dot(weight, (y - np.average(y, weights=weight)) ** 2), []

    def summarise(self, tree: FittedTree, resting: NDArray[np.intp]) -> NodeSummaries:
        weight = tree.weighted_n_node_samples
        mean = tree.flat_value[:, 0]
        return NodeSummaries(
            risk=np.asarray(tree.impurity * weight),
            prediction=mean,
            value=mean[:, np.newaxis],
            mass=weight,
            weight=sum_by_node(tree, resting, self.case_weight),
        )

    def improve(self, gain: Floats, node_risk: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(node_risk > 0, gain / node_risk, 0.0)

    def credit(self, improve: Floats, node_risk: Floats) -> Floats:
        return np.asarray(improve * node_risk)

    def errors(self, rows: NDArray[np.intp], nodes: NDArray[np.intp], summaries: NodeSummaries) -> Floats:
        return np.asarray((self.y[rows] - summaries.prediction[nodes]) ** 2)


class RateMethod(Method):
    """Events per exposure, shrunk towards the overall rate; Poisson deviance.

    The engine cannot bound the risk of a split: that of a shrunken rate is higher than that of the rate itself.
    """

    def __init__(
        self, events: Floats, exposure: Floats, case_weight: Floats, *, shrink: float, square_root_errors: bool
    ) -> None:
        self.events, self.exposure, self.case_weight = events, exposure, case_weight
        self.shrink, self.square_root_errors = shrink, square_root_errors
        self.prior_events = self.prior_exposure = 0.0

    def split_weight(self) -> Floats:
        return np.nan_to_num(self.case_weight * self.exposure)

    def engine_target(self) -> tuple[NDArray[Any], list[int]]:
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = self.events / self.exposure
        return np.nan_to_num(rate, posinf=0.0)[:, np.newaxis], []

    def rounding(self) -> Rounding:
        return Rounding(np.nan_to_num(self.events), np.nan_to_num(self.exposure))

    def start(self, rows: NDArray[np.intp]) -> None:
        """Set the prior of the rates: worth 1 / shrink² events, at the rate of the training rows."""
        weight = self.case_weight[rows]
        rate = dot(weight, self.events[rows]) / dot(weight, self.exposure[rows])
        self.prior_events = 1 / self.shrink**2 if self.shrink > 0 and rate > 0 else 0.0
        self.prior_exposure = self.prior_events / rate if rate > 0 else 0.0

    def summarise(self, tree: FittedTree, resting: NDArray[np.intp]) -> NodeSummaries:
        weight = self.case_weight
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(self.events > 0, self.events * log(self.events / self.exposure), 0.0)
        columns = np.where(weight > 0, np.stack([self.events, self.exposure, entropy]), 0.0).T * weight[:, np.newaxis]
        events, exposure, entropy = sum_by_node(tree, resting, columns).T
        rate = (events + self.prior_events) / (exposure + self.prior_exposure)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rate = np.where(events > 0, events * log(rate), 0.0)
        return NodeSummaries(
            risk=2 * (entropy - log_rate - events + rate * exposure),
            prediction=rate,
            value=rate[:, np.newaxis],
            mass=exposure,
            weight=sum_by_node(tree, resting, weight),
            events=events,
        )

    def improve(self, gain: Floats, node_risk: Floats) -> Floats:
        return np.asarray(2 * gain)

    def errors(self, rows: NDArray[np.intp], nodes: NDArray[np.intp], summaries: NodeSummaries) -> Floats:
        events, expected = self.events[rows], summaries.prediction[nodes] * self.exposure[rows]
        if self.square_root_errors:
            return np.asarray((np.sqrt(events) - np.sqrt(expected)) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_term = np.where(events > 0, events * log(events / expected), 0.0)
        return np.asarray(2 * (log_term - (events - expected)))
