"""Classification and regression by trees and forests: targets, weights, costs, losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_sample_weight

import spinney._engine as _engine
from spinney._data.reproducible import log
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors, weights_of_classes
from spinney._estimator.exposure import deviance, per_exposure, shrink_rates, survival_rates
from spinney._estimator.held_out import Loss
from spinney._estimator.target import encode_labels, read_classes, read_values, warn_if_coarse
from spinney._estimator.user_criterion import UserTarget, is_user, prepare, row_losses
from spinney._model.model import ModelOfTrees
from spinney._model.tree import FittedTree
from spinney._tree.settings import RATE_CRITERIA, GrowthSettings

_LEAST_PROBA = 1e-15  # in the log loss: of a class that is absent from the training rows of a fold


@dataclass(frozen=True)
class Target:
    """A target in the form that the engine reads.

    Attributes
    ----------
    array : ndarray of shape (n_rows, n_outputs)
        Class codes, or numbers.
    classes : list of ndarray or None
        Labels by output; None in a regression.
    """

    array: NDArray[Any]
    classes: list[NDArray[Any]] | None = None

    @property
    def n_classes(self) -> list[int]:
        """Number of classes by output; empty in a regression."""
        return [len(labels) for labels in self.classes or []]

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.array.shape[1])

    @property
    def codes(self) -> NDArray[np.int32] | None:
        """Class codes; None in a regression."""
        return None if self.classes is None else self.array

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that describe its target."""
        if self.classes is None:
            return {"n_outputs_": self.n_outputs}
        single, n_classes = self.n_outputs == 1, self.n_classes
        return {
            "classes_": self.classes[0] if single else self.classes,
            "n_classes_": n_classes[0] if single else np.array(n_classes),
            "n_outputs_": self.n_outputs,
        }


@dataclass(frozen=True)
class Task(ABC):
    """What differs between classification and regression."""

    settings: GrowthSettings

    @abstractmethod
    def read(self, y: ColumnLike, n_rows: int) -> Target:
        """Check y and return it as a target."""

    @abstractmethod
    def weights(self, target: Target, y: ColumnLike, weight: Floats | None) -> Floats | None:
        """Return the row weights, including class weights."""

    @abstractmethod
    def held_out(self, target: Target, y: ColumnLike, n_rows: int) -> NDArray[Any]:
        """Check y of the validation set and return it in the form of the target's array."""

    @abstractmethod
    def loss(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        """Return the function that computes the loss of each row at a node."""

    def costs(self, target: Target, weight: Floats | None) -> ClassCosts | None:
        """Return the costs and priors, if there are any."""
        return None

    def cost_attributes(self, costs: ClassCosts | None) -> dict[str, Floats | None]:
        """Return the fitted attributes that come from the costs."""
        return {}

    def per_exposure(
        self, y: ColumnLike, weight: Floats | None, exposure: ColumnLike, has_held_out: bool, n_rows: int
    ) -> tuple[Floats, Floats]:
        """Return rates and their weights, from counts of events and exposures."""
        raise ValueError("exposure is for counts of events. Use DecisionTreeRegressor(criterion='poisson').")

    def prepare(self, array: NDArray[Any], weight: Floats | None, n_classes: list[int]) -> UserTarget | None:
        """Return the criterion and its target, where it reads rows one after another; None for other criteria."""
        return prepare(self.settings.criterion, array, weight, n_classes)

    def restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        """Return a grown tree with its final node values, where growth used others."""
        return tree

    def grown_attributes(
        self, model: ModelOfTrees, columns: _engine.Table, target: Target, weight_of: Callable[[int], Floats]
    ) -> dict[str, Any]:
        """Return fitted attributes from the leaves of the training rows; `weight_of` returns the weights in a tree."""
        return {}

    def node_errors(self, tree: FittedTree) -> Floats:
        """Return the error per unit of weight of each node if it were a leaf."""
        return tree.impurity

    def node_risks(self, tree: FittedTree) -> Floats:
        """Return the risk of each node if it were a leaf, weighted by its fraction of the root's weight."""
        fraction = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
        return np.asarray(fraction * (tree.impurity if self.settings.prunes_by_impurity else self.node_errors(tree)))


class Classification(Task):
    """Trees for classes."""

    def read(self, y: ColumnLike, n_rows: int) -> Target:
        found = read_classes(y, n_rows)
        return Target(found.codes, found.classes)

    def weights(self, target: Target, y: ColumnLike, weight: Floats | None) -> Floats | None:
        given, classes = self.settings.class_weight, target.classes
        if given is None:
            return weight
        if isinstance(given, dict) and classes is not None and len(classes) == 1:
            by_class = weights_of_classes(given, classes[0])[target.array[:, 0].astype(np.intp)]
        else:
            by_class = compute_sample_weight(given, np.asarray(y))
        if not (by_class >= 0).all() or not np.isfinite(by_class).all():
            raise ValueError("class_weight must give finite weights of at least 0.")
        if not (by_class > 0).any():
            raise ValueError("class_weight gives every row a weight of 0. Give at least one class a positive weight.")
        return np.ascontiguousarray(by_class if weight is None else weight * by_class, dtype=np.float64)

    def held_out(self, target: Target, y: ColumnLike, n_rows: int) -> NDArray[Any]:
        assert target.classes is not None
        return encode_labels(y, target.classes, n_rows, "y_val")

    def loss(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> Floats:
            if costs is not None:
                return costs.loss(actual[rows, 0], tree.majority[nodes, 0])
            return np.asarray((tree.majority[nodes] != actual[rows]).mean(axis=1))

        return loss

    def log_loss(self, actual: NDArray[Any]) -> Loss:
        """Return the function that computes the log loss of each row at a node, for one output.

        One row with the class frequencies of the root is added to each node, so that no probability is 0.
        """

        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> Floats:
            places, codes = np.unique(nodes, return_inverse=True)
            n = tree.weighted_n_node_samples[places, np.newaxis]
            proba = (n * tree.flat_value[places] + tree.flat_value[0]) / (n + 1)
            return np.asarray(-log(np.maximum(proba, _LEAST_PROBA))[codes, actual[rows, 0]])

        return loss

    def costs(self, target: Target, weight: Floats | None) -> ClassCosts | None:
        settings = self.settings
        if settings.cost_splits == "generalised_gini" and settings.criterion != "gini":
            raise ValueError(
                f"cost_splits='generalised_gini' needs criterion='gini', not {settings.criterion!r}. Change one of "
                "them; 'altered_priors' works with every criterion."
            )
        if not settings.has_costs:
            return None
        if target.n_outputs > 1:
            raise ValueError("cost_matrix and priors are for one output. Fit one tree per output.")
        if settings.priors is not None and settings.class_weight is not None:
            raise ValueError("priors and class_weight both reweight the classes. Pass one of them.")
        assert target.classes is not None
        classes = target.classes[0]
        cost = None if settings.cost_matrix is None else read_cost_matrix(settings.cost_matrix, classes)
        priors = None if settings.priors is None else read_priors(settings.priors, classes)
        return ClassCosts.of(cost, priors, settings.cost_splits, target.array[:, 0], weight, classes)

    def cost_attributes(self, costs: ClassCosts | None) -> dict[str, Floats | None]:
        found = costs or ClassCosts()
        return {"cost_matrix_": found.cost, "priors_": found.priors}

    def restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        if costs is None:
            return tree
        tree.cost = costs.decision
        return costs.restate(tree, self.settings.criterion_name)

    def node_errors(self, tree: FittedTree) -> Floats:
        if tree.cost is not None:
            return np.asarray(tree.expected_cost.min(axis=1))
        errors = [1 - tree.flat_value[:, columns].max(axis=1) for columns in tree.class_columns]
        return np.asarray(np.mean(errors, axis=0))


class Regression(Task):
    """Trees for a numeric target."""

    def read(self, y: ColumnLike, n_rows: int) -> Target:
        values, criterion = read_values(y, n_rows), self.settings.criterion
        if self.settings.rate_shrinkage > 0 and criterion not in RATE_CRITERIA:
            raise ValueError(f"rate_shrinkage requires criterion='poisson', not {criterion!r}. Set it to 0.")
        if criterion in RATE_CRITERIA and (values < 0).any():
            raise ValueError(
                "Some value(s) of y are negative which is not allowed for Poisson regression. "
                "Use criterion='squared_error'."
            )
        return Target(values)

    def weights(self, target: Target, y: ColumnLike, weight: Floats | None) -> Floats | None:
        events = target.array if weight is None else target.array[weight > 0]
        total = float(len(target.array)) if weight is None else float(weight.sum())
        largest = float(np.abs(events).max(initial=1.0))
        if np.log2(largest) + np.log2(total) > 1030:
            raise ValueError(
                "The weighted sum of y is too large for a floating-point number. Rescale y or sample_weight."
            )
        criterion = self.settings.criterion
        if criterion != "absolute_error" and not is_user(criterion):
            warn_if_coarse(events)
        if criterion in RATE_CRITERIA and not (events.sum(axis=0) > 0).all():
            raise ValueError(
                "Sum of y is not positive which is necessary for Poisson regression: there is no event to count."
            )
        return weight

    def held_out(self, target: Target, y: ColumnLike, n_rows: int) -> NDArray[Any]:
        values = read_values(y, n_rows)
        if values.shape[1] != target.n_outputs:
            raise ValueError(
                f"y_val has {values.shape[1]} outputs and y has {target.n_outputs}. Pass the same outputs in both."
            )
        return values

    def loss(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        criterion = self.settings.criterion
        if is_user(criterion):
            return row_losses(criterion, actual)

        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> Floats:
            fitted, values = tree.flat_value[nodes], actual[rows]
            if criterion == "absolute_error":
                by_output = np.abs(values - fitted)
            else:
                by_output = deviance(values, fitted) if criterion in RATE_CRITERIA else (values - fitted) ** 2
            return np.asarray(by_output.mean(axis=1))

        return loss

    def per_exposure(
        self, y: ColumnLike, weight: Floats | None, exposure: ColumnLike, has_held_out: bool, n_rows: int
    ) -> tuple[Floats, Floats]:
        criterion = self.settings.criterion
        if criterion == "exponential":
            return survival_rates(y, weight, exposure, has_held_out, n_rows)
        if criterion != "poisson":
            raise ValueError(f"exposure requires criterion='poisson', not {criterion!r}. Change one of them.")
        if has_held_out:
            raise ValueError("exposure cannot be combined with X_val. Use validation_fraction.")
        return per_exposure(read_values(y, n_rows), weight, exposure)

    def restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        strength = float(self.settings.rate_shrinkage)
        return shrink_rates(tree, strength) if strength > 0 else tree


@dataclass(frozen=True)
class Growth:
    """A table with its target, and the functions that grow and evaluate trees on it.

    Attributes
    ----------
    columns : Table
        All rows.
    codes : ndarray of int or None
        Class codes (n_rows, n_outputs), for stratified folds; None in a regression.
    weight : ndarray or None
        Weights of the rows; None: all 1.
    grow : callable
        weights -> tree. A weight of 0 leaves the row out, so that all folds use the same table.
    loss : callable
        (nodes, tree, rows) -> loss of each training row at its node.
    risks : callable
        tree -> risk of each node, as a fraction of the total weight: pruning trades it against the tree's size.
    gains : callable
        tree -> gain of each node's split, by which best-first growth orders the nodes.
    n_jobs : int
        Threads; 0 for all.
    exposure : ndarray or None
        Exposure of each row, if `weight` includes it; a row's loss is per unit of exposure.
    """

    columns: _engine.Table
    codes: NDArray[np.int32] | None
    weight: Floats | None
    grow: Callable[[Floats | None], FittedTree]
    loss: Loss
    risks: Callable[[FittedTree], Floats]
    gains: Callable[[FittedTree], Floats]
    n_jobs: int
    exposure: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.columns.n_rows

    def weights(self) -> Floats:
        """Return the weights as an array."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def without(self, rows: NDArray[Any]) -> FittedTree:
        """Grow a tree on all rows but these."""
        weight = self.weights().copy()
        weight[rows] = 0.0
        return self.grow(weight)
