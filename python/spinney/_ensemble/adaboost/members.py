"""Members of AdaBoost: fitted to one table again and again, with other weights or targets each time.

Trees of spinney read the table once, through a schema (`TreeMembers`); anything else reads it at every fit, and gets a
sample of the rows where it takes no weights (`AnyMembers`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data import Schema, read_table
from spinney._data.feature import Unseen
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.members import matched_table, random_state_names, set_random_states, takes_weights
from spinney._model.predictions import member_codes, member_probabilities
from spinney._tree.settings import GrowthTarget
from spinney._tree.tree_estimator import BaseTree

Floats = NDArray[np.float64]
_PLAIN = {"prune": None, "validation_fraction": None, "ccp_alpha": 0.0, "cost_matrix": None, "priors": None} | {
    **{"class_weight": None, "dialect": None, "shrinkage": None, "missing": "learned", "max_competitors": 0},
    **{"rate_shrinkage": 0.0, "categorical_features": None, "unseen": "missing"},
}


def is_plain_tree(template: BaseEstimator) -> bool:
    """Say whether a template is a tree of spinney that is grown and nothing else: not pruned, not priced."""
    if not isinstance(template, BaseTree) or not isinstance(template.criterion, str) or template.criterion == "user":
        return False
    return all(getattr(template, name, value) == value for name, value in _PLAIN.items())


@dataclass(eq=False)
class TreeMembers:
    """Trees of spinney, all grown on one view of the table.

    Attributes
    ----------
    template : tree estimator
        Its parameters say how trees grow.
    schema : Schema
    unseen : str
        What becomes of categories that did not occur at fit.
    owner : str
        Name of the ensemble, for errors.
    table : Table
        The rows to learn from.
    classes : ndarray or None
        Labels by code; None: values are learned.
    """

    template: BaseEstimator
    schema: Schema
    unseen: Unseen
    owner: str
    table: Any = None
    classes: NDArray[Any] | None = None
    _newest: tuple[_engine.Tree, NDArray[np.uint32]] | None = field(default=None, init=False, repr=False)  # and leaves

    @classmethod
    def of(
        cls, X: TableLike, template: BaseEstimator, categories: Iterable[Any] | None, unseen: Unseen, owner: str
    ) -> TreeMembers:
        """Learn the columns of a table."""
        table = read_table(X)
        schema = Schema.learn(table, categorical_features=categories, unseen=unseen, warn_identifiers=True)
        return cls(template, schema, unseen, owner, schema.encode(table, unseen=unseen, estimator=owner))

    def read(self, X: TableLike) -> _engine.Table:
        """Read a table by the schema."""
        return self.schema.encode(read_table(X), unseen=self.unseen, estimator=self.owner)

    def used(self, rows: LearningRows) -> LearningRows:
        """Return all of them: trees leave rows of weight 0 out."""
        return rows

    @cached_property
    def _index(self) -> _engine.TreeIndex:
        """The columns, sorted once: only weights and targets change."""
        return _engine.TreeIndex(self._pooled, self.template._n_threads)

    @cached_property
    def _pooled(self) -> _engine.Table:
        """The table as trees are grown on it."""
        pooled: _engine.Table = self.template._settings.pooled(self.table, None)
        return pooled

    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> _engine.Tree:
        """Grow the tree that the template would grow by itself; rows of weight 0 are left out."""
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
        """Return the values of the leaves that rows come to."""
        value = member.value.reshape(member.size, -1)
        return (value[:, 0] if self.classes is None else value).take(self._leaves(member, table), axis=0)

    def codes(self, member: _engine.Tree, table: _engine.Table) -> NDArray[np.intp]:
        """Return the largest class of the leaves that rows come to; the first of several."""
        return np.asarray(member.value.reshape(member.size, -1).argmax(axis=1).take(self._leaves(member, table)))

    def _leaves(self, member: _engine.Tree, table: _engine.Table) -> NDArray[np.uint32]:
        if self._newest is not None and member is self._newest[0] and table is self.table:
            return self._newest[1]  # known from growing it
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
        Fit to rows drawn by their weights, even if members take weights.
    owner : str
        Name of the ensemble, for errors.
    table : PickTable
        The rows to learn from.
    classes : ndarray or None
        Labels by code; None: values are learned.
    """

    template: BaseEstimator
    names: list[str] | None
    n_columns: int
    resample: bool
    owner: str
    table: Any = None
    classes: NDArray[Any] | None = None

    def read(self, X: TableLike) -> PickTable:
        """Return a table with its columns as they were at fit."""
        return matched_table(X, self.names, self.n_columns, self.owner)

    def used(self, rows: LearningRows) -> LearningRows:
        """Return the rows of positive weight."""
        weight = rows.weights()
        places = np.flatnonzero(weight > 0)
        if len(places) == len(weight):
            return rows
        table: Any = rows.columns
        picked: Any = pick_table(table.take(places))
        given = None if rows.given is None else pick_table(rows.given).take(places)
        return replace(rows, columns=picked, target=rows.target[places], weight=weight[places], given=given)

    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> BaseEstimator:
        """Fit a clone, by weights or to a sample by weights."""
        member = clone(self.template)
        set_random_states(member, random_state_names(member), seed)
        y = target if self.classes is None else self.classes[target]
        if takes_weights(member) and not self.resample:
            return member.fit(self.table.native, y, sample_weight=weight)
        drawn = np.random.RandomState(seed).choice(len(y), len(y), p=weight / weight.sum())
        return member.fit(self.table.take(drawn), y[drawn])

    def values(self, member: BaseEstimator, table: PickTable) -> NDArray[Any]:
        """Return class probabilities, or values."""
        if self.classes is None:
            return np.asarray(member.predict(table.native), dtype=np.float64)
        return member_probabilities(member, table.native, self.classes, False)

    def codes(self, member: BaseEstimator, table: PickTable) -> NDArray[np.intp]:
        """Return the class codes that a member predicts."""
        assert self.classes is not None
        return member_codes(member, table.native, self.classes, False)


Members = TreeMembers | AnyMembers
