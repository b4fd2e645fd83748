"""The fit of one tree: read the rows, grow, prune and shrink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.reproducible import any_order_sum
from spinney._data.schema import Input
from spinney._data.types import Floats
from spinney._estimator.costs import ClassCosts
from spinney._estimator.fit_inputs import FitInputs, ValidationSet, groups_of_caller
from spinney._estimator.held_out import HeldOut
from spinney._estimator.rows import weight_of_one_row
from spinney._estimator.survival_times import without_entry
from spinney._estimator.target import read_weights
from spinney._estimator.user_criterion import UserTarget, check_proba
from spinney._model.tree import FittedTree
from spinney._tree.growing import GrowingEstimator
from spinney._tree.pruning import FitRows, PruningResult, check_request, prune_grown
from spinney._tree.settings import GrowthSettings, GrowthTarget
from spinney._tree.shrinkage import shrunk
from spinney._tree.size_search import search_size
from spinney._tree.task import Growth, Target


@dataclass(frozen=True)
class TreeGrower:
    """Grows trees on rows of one table.

    Attributes
    ----------
    has_exposure : bool
        Whether the weights include the exposure of the rows.
    """

    settings: GrowthSettings
    schema: Schema
    columns: _engine.Table
    target: Target
    random: np.random.RandomState
    costs: ClassCosts | None = None
    has_exposure: bool = False
    user: UserTarget | None = None

    def grow(
        self, weight: Floats | None, surrogates: _engine.SurrogateOptions | None = None
    ) -> tuple[_engine.Tree, NDArray[np.uint32]]:
        """Return a grown tree and, if it stores surrogate or competitor splits, the node at which each row stopped."""
        settings, costs, user = self.settings, self.costs, self.user
        case_weight, array, n_classes = weight, self.target.array, self.target.n_classes
        if costs is not None:
            weight = costs.split_weights(array[:, 0], weight)
        is_counted = settings.guards_categories and not settings.random_ties
        options = settings.engine_options(
            self.schema,
            GrowthTarget(n_classes, self.target.n_outputs, costs, user),
            self.columns.n_rows,
            float(self.columns.n_rows) if weight is None else any_order_sum(weight),
            seed=int(self.random.randint(np.iinfo(np.int32).max)) if settings.is_random(self.schema) else 0,
            surrogates=surrogates or settings.surrogates(case_weight),
            row_weight=weight_of_one_row(weight) if is_counted else 0.0,
        )
        criterion = settings.engine_criterion(costs, self.has_exposure)
        y = array if user is None else user.y
        tree, resting_node = _engine.grow_tree(self.columns, criterion, y, n_classes, weight, options)
        if user is not None and n_classes:
            check_proba(tree)
        return tree, resting_node

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the trees: that of y, unless a user-defined criterion predicts something else."""
        has_user_values = self.user is not None and not self.target.n_classes
        return self.user.n_values if self.user is not None and has_user_values else self.target.n_outputs


@dataclass(frozen=True)
class TreeResult:
    """The results of a fit.

    Attributes
    ----------
    had_missing : list of bool
        By column: whether a training row had a missing value.
    """

    schema: Schema
    tree: FittedTree
    target_attributes: dict[str, Any]
    had_missing: list[bool]
    shrinkage: float
    pruning: PruningResult

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that do not come from the table and the tree."""
        found = {"shrinkage_": self.shrinkage, "_had_missing": self.had_missing}
        return self.target_attributes | found | self.pruning.attributes()


class TreeFit:
    """One fit of a tree.

    Parameters
    ----------
    estimator : GrowingEstimator
    with_tree : callable
        Returns an estimator that predicts with a tree, from its schema, fitted attributes and the tree.
    """

    def __init__(
        self,
        estimator: GrowingEstimator,
        with_tree: Callable[[Schema, dict[str, Any], FittedTree], GrowingEstimator],
    ) -> None:
        self.estimator, self.with_tree = estimator, with_tree
        self.task = estimator._task
        self.settings = self.task.settings
        self.random = check_random_state(estimator.random_state)

    def run(self, X: Input, inputs: FitInputs) -> TreeResult:
        """Grow the tree, prune and shrink it."""
        task, settings = self.task, self.settings
        schema, n_rows = self.estimator._learn_schema(X.table), X.n_rows
        sample_weight = read_weights(inputs.sample_weight, n_rows)
        y, time = inputs.y, None
        if inputs.exposure is not None or settings.criterion == "exponential":
            y, sample_weight, time = self._read_time(inputs, sample_weight, n_rows)
        target = task.read(y, n_rows)
        weight = task.weights(target, y, sample_weight)
        costs = task.costs(target, weight)
        held_out = self._read_held_out(schema, target, inputs.first_validation, costs)
        has_held_out = held_out is not None or settings.validation_fraction is not None
        check_request(task, has_held_out, inputs.groups, n_rows)
        counted = self._encoded(X, schema)
        columns = settings.pooled(counted, sample_weight, counts_weights=not settings.random_ties)
        loss = task.loss(target.array, costs)
        if settings.validation_fraction is not None:
            if inputs.groups is not None and groups_of_caller(inputs.groups) is None:
                raise ValueError(
                    "validation_fraction would hold out some copies of a row with soft labels. Pass X_val and y_val."
                )
            weight, weight_val = self._split_weights(target, weight)
            held_out = HeldOut(columns, loss, weight_val)
        user = task.prepare(target.array, weight, target.n_classes)
        first = TreeGrower(settings, schema, columns, target, self.random, costs, time is not None, user)
        gains = partial(settings.split_gains, schema, costs)

        def growth_with(chosen: GrowthSettings) -> Growth:
            grower = replace(first, settings=chosen)

            def grow(rows_weight: Floats | None) -> FittedTree:
                tree, _ = grower.grow(rows_weight)
                return task.restated(FittedTree(tree, target.n_classes or None, grower.n_outputs), costs)

            return Growth(columns, target.codes, weight, grow, loss, task.node_risks, gains, settings.n_threads, time)

        size = search_size(settings, growth_with, target.array, inputs.groups, self.random)
        growth = growth_with(size.settings)
        tree = growth.grow(weight)
        attributes = target.attributes() | {"n_outputs_": first.n_outputs} | task.cost_attributes(costs)
        attributes |= size.attributes
        fitted = partial(self.with_tree, schema, attributes)
        rows = FitRows(inputs.X, without_entry(y), target.array, inputs.groups, self.random, fitted)
        pruned = prune_grown(task, tree, growth, held_out, rows)
        tree, strength = shrunk(pruned.tree, settings.shrinkage, growth, pruned.alpha, self.random, inputs.groups)
        attributes |= task.grown_attributes(tree, columns, target, lambda _: growth.weights())
        had_missing = columns.ranges(weight, settings.n_threads)[2].astype(bool).tolist()
        return TreeResult(schema, tree, attributes, had_missing, strength, pruned)

    def _encoded(self, X: Input, schema: Schema) -> _engine.Table:
        return X.encoded(schema, self.estimator.unseen, type(self.estimator).__name__)

    def _read_time(self, inputs: FitInputs, case_weight: Floats | None, n_rows: int) -> tuple[Floats, Floats, Floats]:
        """Return rates, their weights and the exposure of each row, from counts of events or survival times."""
        if self.settings.scoring is not None:
            raise ValueError(
                "scoring cannot be combined with exposure or survival times: their trees are evaluated by deviance."
            )
        rates, weight = self.task.per_exposure(inputs.y, case_weight, inputs.exposure, bool(inputs.validation), n_rows)
        time = weight if case_weight is None else weight / np.where(case_weight > 0, case_weight, 1.0)
        return rates, weight, time

    def _read_held_out(
        self, schema: Schema, target: Target, rows: ValidationSet | None, costs: ClassCosts | None
    ) -> HeldOut | None:
        if rows is None:
            return None
        if self.settings.validation_fraction is not None:
            raise ValueError("Pass either validation_fraction or X_val and y_val, not both.")
        rows = rows.spooled(self.estimator.categorical_features, "_val")
        X = Input.of(rows.X)
        actual = self.task.held_out(target, rows.y, X.n_rows)
        weight = read_weights(rows.sample_weight, X.n_rows)
        return HeldOut(self._encoded(X, schema), self.task.loss(actual, costs), weight)

    def _split_weights(self, target: Target, weight: Floats | None) -> tuple[Floats, Floats]:
        """Return the weights of the training and of the validation rows; each row is 0 in one of them."""
        n_rows, fraction = len(target.array), self.settings.validation_fraction
        stratify = target.array[:, 0] if target.classes is not None and target.n_outputs == 1 else None
        if stratify is not None and np.bincount(stratify).min() < 2:
            stratify = None
        _, rows = train_test_split(np.arange(n_rows), test_size=fraction, random_state=self.random, stratify=stratify)
        full = np.ones(n_rows) if weight is None else weight
        growing, evaluation = full.copy(), np.zeros(n_rows)
        growing[rows] = 0.0
        evaluation[rows] = full[rows]
        if not (growing > 0).any():
            raise ValueError("validation_fraction leaves no row of positive weight to grow the tree on. Lower it.")
        return growing, evaluation
