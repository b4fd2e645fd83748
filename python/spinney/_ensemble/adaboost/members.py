"""Weak learners: one table, to which members are fitted again and again, with other weights or targets each time.

`WeakLearner` is what boosting asks for; it does not matter to it what the members are. Trees of spinney read the table
once (`WeakTrees`); anything else reads it at every fit, and gets a sample of the rows where it takes no weights
(`WeakEstimators`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from spinney._data.columns import match_columns
from spinney._data.feature import Unseen
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.members import random_state_names, set_random_states, takes_weights
from spinney._tree.settings import GrowthTarget
from spinney._tree.tree_estimator import BaseTree

Floats = NDArray[np.float64]
_PLAIN = {"prune": None, "validation_fraction": None, "ccp_alpha": 0.0, "cost_matrix": None, "priors": None} | {
    **{"class_weight": None, "dialect": None, "shrinkage": None, "missing": "learned", "max_competitors": 0},
    **{"rate_shrinkage": 0.0, "categorical_features": None, "unseen": "missing"},
}


class WeakLearner(ABC):
    """Fits members to one table."""

    @abstractmethod
    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> Any:
        """Fit a member to class codes or values; weights of 1 on average."""

    @abstractmethod
    def values(self, member: Any, table: Any) -> NDArray[Any]:
        """Return what a member says of a table's rows: class shares, (n_rows, n_classes), or values, (n_rows,)."""

    @abstractmethod
    def codes(self, member: Any, table: Any) -> NDArray[np.intp]:
        """Return the class codes that a member gives a table's rows."""


def is_plain_tree(template: BaseEstimator) -> bool:
    """Say whether a template is a tree of spinney that is grown and nothing else: not pruned, not priced."""
    if not isinstance(template, BaseTree) or not isinstance(template.criterion, str) or template.criterion == "user":
        return False
    return all(getattr(template, name, value) == value for name, value in _PLAIN.items())


@dataclass(eq=False)
class WeakTrees(WeakLearner):
    """Trees of spinney, all grown on one view of the table.

    Attributes
    ----------
    template : tree estimator
        Its parameters say how trees grow.
    schema : Schema
    columns : Table
        The rows to learn from.
    n_classes : int or None
        None: values are learned.
    """

    template: BaseEstimator
    schema: Schema
    columns: _engine.Table
    n_classes: int | None
    _newest: tuple[_engine.Tree, NDArray[np.uint32]] | None = field(default=None, init=False, repr=False)  # and leaves

    @cached_property
    def _index(self) -> _engine.TreeIndex:
        """The columns, sorted once: only weights and targets change."""
        return _engine.TreeIndex(self._pooled, self.template._n_threads)

    @cached_property
    def _pooled(self) -> _engine.Table:
        """The table as trees are grown on it."""
        pooled: _engine.Table = self.template._settings.pooled(self.columns, None)
        return pooled

    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> _engine.Tree:
        """Grow the tree that the template would grow by itself; rows of weight 0 are left out."""
        n_classes = [] if self.n_classes is None else [self.n_classes]
        array = np.ascontiguousarray(target.reshape(len(target), 1))
        settings = self.template._settings
        options = settings.engine_options(
            self.schema, GrowthTarget(n_classes, 1), self.columns.n_rows, float(weight.sum()), seed=seed
        )
        criterion = settings.engine_criterion()
        self._newest = _engine.grow_tree(self._pooled, criterion, array, n_classes, weight, options, self._index)
        return self._newest[0]

    def values(self, member: _engine.Tree, table: _engine.Table) -> NDArray[Any]:
        """Return the values of the leaves that rows come to."""
        value = member.value.reshape(member.size, -1)
        return (value[:, 0] if self.n_classes is None else value).take(self._leaves(member, table), axis=0)

    def codes(self, member: _engine.Tree, table: _engine.Table) -> NDArray[np.intp]:
        """Return the largest class of the leaves that rows come to; the first of several."""
        return np.asarray(member.value.reshape(member.size, -1).argmax(axis=1).take(self._leaves(member, table)))

    def _leaves(self, member: _engine.Tree, table: _engine.Table) -> NDArray[np.uint32]:
        if self._newest is not None and member is self._newest[0] and table is self.columns:
            return self._newest[1]  # known from growing it
        return member.apply(table, self.template._n_threads)


@dataclass(frozen=True, eq=False)
class WeakEstimators(WeakLearner):
    """Estimators of any kind.

    Attributes
    ----------
    template : estimator
        Cloned for each fit.
    table : PickTable
        The rows to learn from.
    classes : ndarray or None
        Labels by code; None: values are learned.
    resample : bool
        Fit to rows drawn by their weights, even if members take weights.
    """

    template: BaseEstimator
    table: PickTable
    classes: NDArray[Any] | None
    resample: bool

    def fit(self, target: NDArray[Any], weight: Floats, seed: int) -> Any:
        """Fit a clone, by weights or to a sample by weights."""
        member = clone(self.template)
        set_random_states(member, random_state_names(member), seed)
        y = target if self.classes is None else self.classes[target]
        if takes_weights(member) and not self.resample:
            return member.fit(self.table.native, y, sample_weight=weight)
        drawn = np.random.RandomState(seed).choice(len(y), len(y), p=weight / weight.sum())
        return member.fit(self.table.take(drawn), y[drawn])

    def values(self, member: Any, table: PickTable) -> NDArray[Any]:
        """Return class shares, or values."""
        if self.classes is None:
            return np.asarray(member.predict(table.native), dtype=np.float64)
        said = np.asarray(member.predict_proba(table.native), dtype=np.float64)
        if said.shape[1] == len(self.classes):
            return said
        shares = np.zeros((len(said), len(self.classes)))  # a sample may lack classes
        shares[:, np.searchsorted(self.classes, member.classes_)] = said
        return shares

    def codes(self, member: Any, table: PickTable) -> NDArray[np.intp]:
        """Return the class codes that a member predicts."""
        assert self.classes is not None
        return np.asarray(np.searchsorted(self.classes, member.predict(table.native)))


class Reader(ABC):
    """Reads the table of a fit, and others like it.

    Attributes
    ----------
    table : table
        The table of the fit, as the weak learner takes it.
    n_rows : int
        Its rows.
    """

    table: Any
    n_rows: int
    template: BaseEstimator

    @abstractmethod
    def read(self, X: TableLike) -> Any:
        """Read another table with the same columns."""

    @abstractmethod
    def used(self, rows: LearningRows) -> LearningRows:
        """Return the rows that count, where the weak learner cannot leave the others out by their weights."""

    @abstractmethod
    def learner(self, table: Any, classes: NDArray[Any] | None) -> WeakLearner:
        """Return the weak learner of a table; None: it learns values."""


class TreeReader(Reader):
    """For trees of spinney.

    Attributes
    ----------
    schema : Schema
        The columns.
    """

    def __init__(self, template: BaseEstimator, schema: Schema, unseen: Unseen, name: str) -> None:
        self.template, self.schema = template, schema
        self._unseen, self._name = unseen, name

    @classmethod
    def of(
        cls,
        X: TableLike,
        template: BaseEstimator,
        categorical_features: Iterable[Any] | None,
        unseen: Unseen,
        name: str,
    ) -> TreeReader:
        """Learn the columns of a table."""
        table = read_table(X)
        schema = Schema.learn(table, categorical_features=categorical_features, unseen=unseen, warns_of_names=True)
        reader = cls(template, schema, unseen, name)
        reader.table, reader.n_rows = schema.encode(table, unseen=unseen, estimator=name), table.n_rows
        return reader

    def read(self, X: TableLike) -> _engine.Table:
        """Read a table by the schema."""
        return self.schema.encode(read_table(X), unseen=self._unseen, estimator=self._name)

    def used(self, rows: LearningRows) -> LearningRows:
        """Return all of them: trees leave rows of weight 0 out."""
        return rows

    def learner(self, table: _engine.Table, classes: NDArray[Any] | None) -> WeakTrees:
        """Return what grows trees."""
        return WeakTrees(self.template, self.schema, table, None if classes is None else len(classes))


class AnyReader(Reader):
    """For estimators of any kind.

    Attributes
    ----------
    names : list of str or None
        Names of the columns.
    n_columns : int
        Number of columns.
    """

    def __init__(
        self, template: BaseEstimator, names: list[str] | None, n_columns: int, resample: bool, name: str
    ) -> None:
        self.template, self.names, self.n_columns = template, names, n_columns
        self._resample, self._name = resample, name

    @classmethod
    def of(cls, X: TableLike, template: BaseEstimator, resample: bool, name: str) -> AnyReader:
        """Look at a table."""
        table = pick_table(X)
        reader = cls(template, table.names, table.n_columns, resample, name)
        reader.table, reader.n_rows = table, table.n_rows
        return reader

    def read(self, X: TableLike) -> PickTable:
        """Return a table with its columns as they were at fit."""
        table = pick_table(X)
        order = match_columns(table.names, table.n_columns, self.names, self.n_columns, self._name)
        return table if order is None else pick_table(table.take(columns=np.array(order)))

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

    def learner(self, table: PickTable, classes: NDArray[Any] | None) -> WeakEstimators:
        """Return what fits clones of the template."""
        return WeakEstimators(self.template, table, classes, self._resample)
