"""How members of boosting get to see tables: trees through a schema that is learned once, others as tables are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data import Schema, read_table
from spinney._data.columns import match_columns
from spinney._data.feature import Unseen
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.weak import WeakEstimators, WeakLearner, WeakTrees


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
