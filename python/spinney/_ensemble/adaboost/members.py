"""Members of AdaBoost, which are fitted to one table with different weights or targets in each round.

Trees of spinney encode the table once (`TreeMembers`). Other estimators read it at every fit, and are fitted to a
sample of the rows if they take no weights (`AnyMembers`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data.select import PickTable, pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.ensemble import matched_table
from spinney._ensemble.members import random_state_names, set_random_states, takes_weights
from spinney._ensemble.stagewise import EncodedTable
from spinney._model.predictions import member_codes, member_probabilities
from spinney._tree.settings import GrowthTarget
from spinney._tree.tree_estimator import BaseTree

_PLAIN = {"prune": None, "validation_fraction": None, "ccp_alpha": 0.0, "cost_matrix": None, "priors": None} | {
    **{"class_weight": None, "dialect": None, "shrinkage": None, "missing": "learned", "max_competitors": 0},
    **{"rate_shrinkage": 0.0, "categorical_features": None, "unseen": "missing"},
}


def is_plain_tree(template: BaseEstimator) -> bool:
    """Return whether a template is a tree of spinney without pruning, costs or other steps after growth."""
    if not isinstance(template, BaseTree) or not isinstance(template.criterion, str) or template.criterion == "user":
        return False
    is_searched = "cv" in (template.max_depth, template.min_samples_leaf)
    return not is_searched and all(getattr(template, name, value) == value for name, value in _PLAIN.items())


@dataclass(eq=False, kw_only=True)
class TreeMembers(EncodedTable):
    """Trees of spinney, all grown on one encoded table.

    Attributes
    ----------
    template : tree estimator
        Its parameters are those of all trees.
    classes : ndarray or None
        Labels by code; None in a regression.
    """

    template: BaseEstimator
    classes: NDArray[Any] | None = None
    _newest: tuple[_engine.Tree, NDArray[np.uint32]] | None = field(default=None, init=False, repr=False)  # and leaves

    def used(self, rows: LearningRows) -> LearningRows:
        """Return all rows: trees skip rows of weight 0."""
        return rows

    @cached_property
    def _index(self) -> _engine.TreeIndex:
        """The sorted columns, which are the same in all rounds."""
        return _engine.TreeIndex(self._pooled, self.template._n_threads)

    @cached_property
    def _pooled(self) -> _engine.Table:
        """The table that trees are grown on."""
        pooled: _engine.Table = self.template._settings.pooled(self.table, None)
        return pooled

    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> _engine.Tree:
        """Grow a tree with the settings of the template; rows of weight 0 are skipped."""
        n_classes = [] if self.classes is None else [len(self.classes)]
        array = np.ascontiguousarray(target.reshape(len(target), 1))
        settings = self.template._settings
        options = settings.engine_options(
            self.schema, GrowthTarget(n_classes, 1), self.table.n_rows, float(weight.sum()), seed=seed
        )
        criterion = settings.engine_criterion()
        self._newest = _engine.grow_tree(self._pooled, criterion, array, n_classes, weight, options, self._index)
        return self._newest[0]

    def values(self, member: _engine.Tree, table: _engine.Table) -> NDArray[Any]:
        """Return the leaf values of rows."""
        value = member.value.reshape(member.size, -1)
        return (value[:, 0] if self.classes is None else value).take(self._leaves(member, table), axis=0)

    def codes(self, member: _engine.Tree, table: _engine.Table) -> NDArray[np.intp]:
        """Return the code of the most probable class of each row; in a tie, the first."""
        return np.asarray(member.value.reshape(member.size, -1).argmax(axis=1).take(self._leaves(member, table)))

    def _leaves(self, member: _engine.Tree, table: _engine.Table) -> NDArray[np.uint32]:
        if self._newest is not None and member is self._newest[0] and table is self.table:
            return self._newest[1]  # known from growth
        return member.apply(table, self.template._n_threads)


@dataclass(eq=False)
class AnyMembers:
    """Estimators of any kind.

    Attributes
    ----------
    template : estimator
        Cloned for each fit.
    names : list of str or None
        Names of the columns.
    n_columns : int
        Number of columns.
    resample : bool
        Whether to fit rows drawn by their weights even if members take weights.
    owner : str
        Name of the ensemble, for errors.
    table : PickTable
        Training rows.
    classes : ndarray or None
        Labels by code; None in a regression.
    """

    template: BaseEstimator
    names: list[str] | None
    n_columns: int
    resample: bool
    owner: str
    table: Any = None
    classes: NDArray[Any] | None = None

    def read(self, X: TableLike) -> PickTable:
        """Return a table with its columns in the order of the training table."""
        return matched_table(X, self.names, self.n_columns, self.owner)

    def used(self, rows: LearningRows) -> LearningRows:
        """Return the rows of positive weight."""
        weight = rows.weights()
        used = np.flatnonzero(weight > 0)
        if len(used) == len(weight):
            return rows
        table: Any = rows.columns
        columns: Any = pick_table(table.take(used))
        X = None if rows.X is None else pick_table(rows.X).take(used)
        return replace(rows, columns=columns, target=rows.target[used], weight=weight[used], X=X)

    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> BaseEstimator:
        """Fit a clone with weights, or to a sample drawn by the weights."""
        member = clone(self.template)
        set_random_states(member, random_state_names(member), seed)
        y = target if self.classes is None else self.classes[target]
        if takes_weights(member) and not self.resample:
            member.fit(self.table.native, y, sample_weight=weight)
        else:
            drawn = np.random.RandomState(seed).choice(len(y), len(y), p=weight / weight.sum())
            member.fit(self.table.take(drawn), y[drawn])
        return member

    def values(self, member: BaseEstimator, table: PickTable) -> NDArray[Any]:
        """Return class probabilities, or predicted values."""
        if self.classes is None:
            return np.asarray(member.predict(table.native), dtype=np.float64)
        return member_probabilities(member, table.native, self.classes, False)

    def codes(self, member: BaseEstimator, table: PickTable) -> NDArray[np.intp]:
        """Return the class codes that a member predicts."""
        assert self.classes is not None
        return member_codes(member, table.native, self.classes, False)


Members = TreeMembers | AnyMembers
