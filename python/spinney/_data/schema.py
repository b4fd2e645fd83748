"""Schema: the columns a model expects, by name, kind and category value.

Vocabulary
----------
number    numbers; dates as seconds since 1970 (see `cells`)
boolean   True and False, encoded as 1 and 0
ordered   categories with a declared order, encoded as their position in this order
category  values without an order, encoded as their position among those that occurred at fit, sorted or in the
          order in which they were declared
empty     a column without any value at fit, encoded as numbers; predict accepts any values in it, because no split
          can use it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.cells import read_cells
from spinney._data.columns import (
    Array,
    CodedColumn,
    Column,
    NumberColumn,
    RawTable,
    column_label,
    default_names,
    listed,
    match_columns,
)
from spinney._data.combinations import Combinations
from spinney._data.date_parts import part_named, part_of
from spinney._data.feature import (
    Feature,
    PlainFeatures,
    RemoteTable,
    Unseen,
    add_feature,
    columns_of,
    feature_from_dict,
    feature_to_dict,
    feature_values,
    learn_feature,
    table_of,
    warn_of_identifier,
    warn_of_rounding,
)
from spinney._data.read import read_table
from spinney._data.spool import SpooledTable

_UNSEEN = ("missing", "error", "other")
_FEW = 10  # categories of a column; splits of more have a penalty


class Schema:
    """The columns that a model expects.

    Parameters
    ----------
    features : sequence of Feature
    has_names : bool
        Whether the table at fit had column names.
    unseen : {"missing", "error", "other"}
        Default treatment by `encode` of categories that did not occur at fit.
    pool : Combinations, optional
        Combinations of columns that trees split on instead of the numeric columns.
    is_open : bool
        Whether tables may have other columns, which are ignored, and lack parts of dates, which are derived.
    """

    def __init__(
        self,
        features: Iterable[Feature] | PlainFeatures,
        has_names: bool,
        unseen: Unseen = "missing",
        pool: Combinations | None = None,
        is_open: bool = False,
    ) -> None:
        self.pool, self.is_open = pool, is_open
        self._source = features if isinstance(features, PlainFeatures) else tuple(features)
        self.has_names = has_names
        self.unseen = _checked_unseen(unseen)
        if isinstance(self._source, PlainFeatures):
            self.names, self._all_numbers = self._source.names, True
        else:
            self.names = [feature.name for feature in self._source]
            self._all_numbers = all(
                feature.kind in ("number", "boolean") and not feature.clock and feature.absent is None
                for feature in self._source
            )

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The feature of each column."""
        if isinstance(self._source, PlainFeatures):
            return tuple(Feature(name, self._source.kind) for name in self._source.names)
        return self._source

    @property
    def is_numeric(self) -> bool:
        """Whether all columns are numbers or booleans, without dates and codes for missing values."""
        return self._all_numbers

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Schema({self.n_features} features: {listed(self.names)})"

    @classmethod
    def learn(
        cls,
        table: RawTable,
        categorical_features: Iterable[Any] | None = None,
        unseen: Unseen = "missing",
        as_declared: bool = False,
        warn_identifiers: bool = False,
    ) -> Schema:
        """Return the schema of a training table.

        Parameters
        ----------
        table : RawTable
        categorical_features : sequence of names, of positions, or of one bool per column; optional
            Columns to treat as categories; columns of strings and declared categories always are.
        unseen : {"missing", "error", "other"}, default="missing"
        as_declared : bool, default=False
            Number declared categories in the order of their declaration instead of sorting them.
        warn_identifiers : bool, default=False
            Warn about columns that look like identifiers, unless they are named in `categorical_features`.
        """
        forced = forced_categories(categorical_features, table)
        names = table.names or default_names(table.n_columns)
        features: list[Feature] | PlainFeatures
        if isinstance(table, RemoteTable):
            return cls(table.features(names, forced), table.names is not None, unseen)
        if table.matrix is not None or table.sparse is not None:
            features = _learn_block(table, names, forced)
        else:
            features = []
            for j, name in enumerate(names):
                feature = learn_feature(name, table.column(j), j in forced, table.n_rows, as_declared)
                if warn_identifiers and j not in forced:
                    warn_of_identifier(feature, table.column(j), table.label(j))
                features.append(feature)
        schema = cls(features, table.names is not None, unseen)
        if schema._all_numbers:
            warn_of_rounding(table, range(table.n_columns))
        else:
            warn_of_rounding(table, [j for j, feature in enumerate(schema.features) if feature.kind == "number"])
        return schema

    @cached_property
    def split_features(self) -> tuple[Feature, ...]:
        """The columns that trees split on: the features, or those that are not combined and then the combinations."""
        return self._split_features(self.features, self.names)

    def renamed_split_features(self, names: list[str]) -> tuple[Feature, ...]:
        """Return the columns that trees split on, with other names of the columns of the table."""
        if len(names) != self.n_features:
            raise ValueError(f"feature_names must contain {self.n_features} elements, got {len(names)}.")
        renamed = tuple(replace(feature, name=name) for feature, name in zip(self.features, names, strict=True))
        return self._split_features(renamed, names)

    def _split_features(self, features: tuple[Feature, ...], names: list[str]) -> tuple[Feature, ...]:
        if self.pool is None:
            return features
        pool, taken = self.pool, set(names)
        combined = (pool.name(k, names) for k in range(len(pool)))
        unlike = (f"({name})" if name in taken else name for name in combined)
        levels = (pool.categories(k, features) for k in range(len(pool)))
        found = (
            Feature(name, "category", of_name) if of_name else Feature(name, "number")
            for name, of_name in zip(unlike, levels, strict=True)
        )
        return (*(features[j] for j in pool.plain), *found)

    @property
    def n_split_features(self) -> int:
        """Number of columns that trees split on."""
        return self.n_features if self.pool is None else self.pool.n_split_columns

    @property
    def n_categories(self) -> list[int]:
        """Number of categories of each column that trees split on: 0 for numbers and ordered categories."""
        if self._all_numbers:
            return [0] * self.n_split_features
        return [len(feature.categories) if feature.kind == "category" else 0 for feature in self.split_features]

    @property
    def n_effective_features(self) -> int:
        """Number of columns, where a column of three to ten categories counts as one less than their number."""
        if self._all_numbers:
            return self.n_features
        n_categories = (len(feature.categories) if feature.kind == "category" else 0 for feature in self.features)
        return sum(n - 1 if 3 <= n <= _FEW else 1 for n in n_categories)

    def with_pool(self, pool: Combinations) -> Schema:
        """Return the same columns with combinations."""
        return Schema(self._source, self.has_names, self.unseen, pool, self.is_open)

    def opened(self) -> Schema:
        """Return the same columns for tables with other columns, from which parts of dates are derived."""
        return Schema(self._source, self.has_names, self.unseen, self.pool, is_open=True)

    def with_date_formats(self, formats: Mapping[str, str]) -> Schema:
        """Return the same columns, of which dates as text may have the formats of the training file, by column."""
        features = [
            replace(one, written=formats[one.name]) if one.clock and one.name in formats else one
            for one in self.features
        ]
        return Schema(features, self.has_names, self.unseen, self.pool, self.is_open)

    def _selected(self, table: RawTable) -> RawTable:
        """Return the columns of the schema that a table has or that can be derived from its dates."""
        if table.names is None or table.names == self.names:
            return table
        place = {name: j for j, name in enumerate(table.names)}
        columns: dict[str, Column] = {}
        for name in self.names:
            date, part = part_named(name) or ("", "")
            if name in place:
                columns[name] = table.column(place[name])
            elif date in place and (seconds := self._seconds(date, table, place[date])) is not None:
                columns[name] = NumberColumn(part_of(seconds, part))
        return RawTable(table.n_rows, len(columns), list(columns), columns=list(columns.values())) if columns else table

    def _seconds(self, name: str, table: RawTable, j: int) -> Array | None:
        """Return a column of dates as seconds; None if it holds no dates."""
        column = table.column(j)
        if name in self.names and (feature := self.features[self.names.index(name)]).clock:
            return feature_values(feature, column, table.n_rows, "missing", table.label(j))
        is_date = isinstance(column, NumberColumn) and column.clock
        return np.asarray(column.values, dtype=np.float64) if isinstance(column, NumberColumn) and is_date else None

    def credit_inputs(self, by_split_feature: Array) -> Array:
        """Distribute importances of the columns that trees split on over the table's columns."""
        return by_split_feature if self.pool is None else self.pool.credit_inputs(by_split_feature)

    def encode_blocks(
        self, table: RawTable, unseen: Unseen | None = None, estimator: str = "this model"
    ) -> Iterator[_engine.Table]:
        """Encode a table in blocks of rows where that saves memory, else at once."""
        inputs = self.encode_inputs(table, unseen, estimator)
        if self.pool is None:
            yield inputs
        else:
            yield from self.pool.blocks(inputs)

    def encode(self, table: RawTable, unseen: Unseen | None = None, estimator: str = "this model") -> _engine.Table:
        """Encode a table as the columns that trees split on: those of `encode_inputs`, or their combinations."""
        return self.combined(self.encode_inputs(table, unseen, estimator))

    def combined(self, inputs: _engine.Table) -> _engine.Table:
        """Return the columns that trees split on, from the result of `encode_inputs`."""
        return inputs if self.pool is None else next(self.pool.blocks(inputs, inputs.n_rows))

    def encode_inputs(
        self, table: RawTable, unseen: Unseen | None = None, estimator: str = "this model"
    ) -> _engine.Table:
        """Encode a table for the engine: columns in the order of the schema, categories as its codes.

        Parameters
        ----------
        table : RawTable
        unseen : {"missing", "error", "other"}, optional
            Whether a category that did not occur at fit is missing, an error, or a value that differs from all others.
            None: as set in the schema. A value outside a declared order has no position: "other" treats it as
            missing.
        estimator : str
            Name of the estimator, for messages.

        Raises
        ------
        ValueError
            If the columns are not those of the schema, or a category is unseen and that is an error.
        TypeError
            If a column has values of another kind than at fit.

        Warns
        -----
        UserWarning
            If only one of table and schema has column names.
        """
        policy = self.unseen if unseen is None else _checked_unseen(unseen)
        expected = self.names if self.has_names else None
        if self.is_open:
            table = self._selected(table)
        order = match_columns(table.names, table.n_columns, expected, self.n_features, estimator)
        target = _engine.Table(table.n_rows)
        if table.spill is not None:
            target.use_spill(table.spill)
        if self._all_numbers and order is None and table.matrix is not None:
            target.add_matrix(table.matrix)
            return target
        if self._all_numbers and order is None and table.sparse is not None:
            target.add_csc(table.sparse.starts, table.sparse.rows, table.sparse.values)
            return target
        for j, feature in enumerate(self.features):
            column = table.column(j if order is None else order[j])
            add_feature(target, feature, column, policy, column_label(j, expected))
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON, the inverse of `from_dict`."""
        fields: dict[str, Any] = {
            "has_names": self.has_names,
            "unseen": self.unseen,
            "features": [feature_to_dict(feature) for feature in self.features],
        }
        if self.is_open:
            fields["is_open"] = True
        return fields if self.pool is None else fields | {"combinations": self.pool.to_dict()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Schema:
        """Return the schema of a dict; raises ValueError if `fields` is invalid."""
        try:
            features = [feature_from_dict(entry) for entry in fields["features"]]
            has_names, unseen, is_open = fields["has_names"], fields["unseen"], fields.get("is_open", False)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"This is not a schema: {error!r}.") from None
        if not features or not isinstance(has_names, bool) or not isinstance(is_open, bool):
            raise ValueError("This is not a schema: it has no features, or `has_names` is missing.")
        if has_names and len({feature.name for feature in features}) < len(features):
            raise ValueError("This is not a schema: two features have the same name.")
        pool = Combinations.from_dict(fields["combinations"], features) if "combinations" in fields else None
        return cls(features, has_names, unseen, pool, is_open)


def _checked_unseen(unseen: str) -> Unseen:
    if unseen not in _UNSEEN:
        raise ValueError(f"unseen must be 'missing', 'error' or 'other', not {unseen!r}.")
    return cast(Unseen, unseen)


def forced_categories(categorical_features: Iterable[Any] | None, table: RawTable) -> set[int]:
    """Return the positions of the columns that the caller declares to be categories."""
    if categorical_features is None:
        return set()
    if isinstance(categorical_features, (str, bytes)):
        if categorical_features == "from_dtype":
            return set()
        raise TypeError(
            f"categorical_features must be a list of names, positions or bools, not {categorical_features!r}."
        )
    items = list(categorical_features)
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != table.n_columns:
            raise ValueError(f"categorical_features has {len(items)} bools, but X has {table.n_columns} columns.")
        return {j for j, item in enumerate(items) if item}
    return {_position(item, table) for item in items}


def _position(item: object, table: RawTable) -> int:
    if isinstance(item, str):
        if table.names is None:
            raise ValueError(f"categorical_features names the column {item!r}, but X has no column names.")
        if item not in table.names:
            raise ValueError(f"categorical_features names the column {item!r}, which X does not have.")
        return table.names.index(item)
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
        raise TypeError(f"categorical_features must be names, positions or bools, not {type(item).__name__}.")
    if not 0 <= item < table.n_columns:
        raise ValueError(f"categorical_features has the position {item}, but X has {table.n_columns} columns.")
    return int(item)


def _learn_block(table: RawTable, names: list[str], forced: set[int]) -> list[Feature] | PlainFeatures:
    matrix = table.matrix
    values = matrix if table.sparse is None else table.sparse.values
    kind = "boolean" if cast(Array, values).dtype.kind == "b" else "number"
    # only these columns of a matrix can be missing in all rows
    perhaps_empty: list[int] = []
    if matrix is not None and matrix.dtype.kind == "f":
        perhaps_empty = np.flatnonzero(np.isnan(matrix[0])).tolist()
    if not perhaps_empty and not forced:
        return PlainFeatures(names, kind)
    features = [Feature(name, kind) for name in names]
    for j in perhaps_empty:
        features[j] = learn_feature(names[j], table.column(j), False, table.n_rows)
    for j in forced:
        features[j] = learn_feature(names[j], table.column(j), True, table.n_rows)
    return features


def check_categories(schema: Schema, table: RawTable, categorical_features: Any, estimator: str) -> None:
    """Refuse a table in which other columns are categories than at the earlier fit."""
    forced = forced_categories(categorical_features, table)
    expected = schema.names if schema.has_names else None
    order = match_columns(table.names, table.n_columns, expected, schema.n_features, estimator)
    features = None
    if isinstance(table, RemoteTable):
        features = table.features([table.label(j) for j in range(table.n_columns)], forced)
    for j, feature in enumerate(schema.features):
        place = j if order is None else order[j]
        is_category = feature.kind == "category"
        if is_category == (place in forced) or feature.empty:
            continue
        if features is not None:
            is_coded = features[place].kind == "category"
        else:
            is_coded = table.matrix is None and isinstance(table.column(place), CodedColumn)
        if not is_category or not is_coded:
            raise ValueError(
                f"warm_start needs columns of the same kinds, but column {feature.name!r} was "
                f"{'a category' if is_category else 'not a category'} at the earlier fit. Set categorical_features as "
                "at that fit, or warm_start=False."
            )


def column_values(schema: Schema, table: RawTable, estimator: str, unseen: Unseen) -> list[NDArray[np.float64]]:
    """Return each column that trees split on: numbers, or codes of categories; NaN is missing.

    A category that did not occur at fit is missing, or the number of categories if `unseen` is "other".
    """
    return columns_of(schema.encode(table, unseen, estimator))


def input_values(schema: Schema, table: RawTable, estimator: str, unseen: Unseen) -> list[NDArray[np.float64]]:
    """Return each column of the table, in the order of the schema, as `column_values` does without combinations."""
    return columns_of(schema.encode_inputs(table, unseen, estimator))


def row_cells(schema: Schema, row: Any) -> list[Any]:
    """Return the cells of a row, which is a mapping or Series by column name, or values in column order."""
    if hasattr(row, "to_dict") and getattr(row, "ndim", 1) == 1:
        row = row.to_dict() if schema.has_names else list(row)
    if isinstance(row, Mapping):
        absent = [name for name in schema.names if name not in row]
        if absent:
            raise ValueError(f"The row has no value for the column {absent[0]!r}. Pass None if it is missing.")
        values = [row[name] for name in schema.names]
    else:
        values = list(row)
    if len(values) != schema.n_features:
        raise ValueError(f"The row has {len(values)} values, but the model has {schema.n_features} columns.")
    return values


def row_table(schema: Schema, row: Any) -> RawTable:
    """Return a table of one row, as `row_cells` takes it."""
    columns: list[Column] = []
    for j, value in enumerate(row_cells(schema, row)):
        cell = np.empty(1, dtype=object)
        cell[0] = value
        columns.append(read_cells(cell, column_label(j, schema.names)))
    return RawTable(1, len(columns), schema.names if schema.has_names else None, columns=columns)


def rows_of(columns: _engine.Table, rows: NDArray[np.intp]) -> _engine.Table:
    """Return a dense copy of some rows of a table."""
    which, places = range(columns.n_columns), rows.astype(np.uint32)
    return table_of((columns.values_at(j, places) for j in which), len(rows), map(columns.n_categories, which))


@dataclass(frozen=True)
class Input:
    """A table as passed by the caller, and its columns.

    Attributes
    ----------
    given : table
        The caller's table.
    table : RawTable
        Its columns.
    """

    given: Any
    table: RawTable

    @classmethod
    def of(cls, X: Any) -> Input:
        """Read a table of any kind."""
        return cls(X, read_table(X))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def is_stream(self) -> bool:
        """Whether the rows are in temporary files."""
        return isinstance(self.given, SpooledTable)

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse matrix."""
        return hasattr(self.given, "tocsc")

    def encoded(self, schema: Schema, unseen: Unseen, estimator: str) -> _engine.Table:
        """Return the encoded columns; for rows on workers, a handle to them."""
        if isinstance(self.table, RemoteTable):
            partitioned: _engine.Table = self.table.encoded(schema, unseen, estimator)
            return partitioned
        return schema.encode(self.table, unseen=unseen, estimator=estimator)

    def verify(self) -> None:
        """Raise RuntimeError if the temporary files of a stream were changed."""
        if isinstance(self.given, SpooledTable):
            self.given.verify()
