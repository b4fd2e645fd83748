"""The numbers that the engine sees of a table, as NumPy arrays: for pictures and explanations, not for growing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.column_names import match_columns
from spinney._data.columns import Column, RawTable, SparseColumn, column_label, dense_column
from spinney._data.feature import NO_CODE, Feature, Unseen, coded, plain_numbers, translation
from spinney._data.object_columns import read_cells
from spinney._data.schema import Schema


def column_values(schema: Schema, table: RawTable, estimator: str, unseen: Unseen) -> list[NDArray[np.float64]]:
    """Return each column that trees split on, in order: numbers, or codes of categories; NaN is missing.

    A category that did not occur at fit is missing, or one more than the last code if `unseen` is "other".
    """
    inputs = input_values(schema, table, estimator, unseen)
    return inputs if schema.pool is None else schema.pool.of_columns(inputs)


def input_values(schema: Schema, table: RawTable, estimator: str, unseen: Unseen) -> list[NDArray[np.float64]]:
    """Return each column of the table, in the order of the schema, as `column_values` does without combinations."""
    expected = schema.names if schema.has_names else None
    order = match_columns(table.names, table.n_columns, expected, schema.n_features, estimator)
    return [
        feature_values(feature, table.column(j if order is None else order[j]), table.n_rows, unseen, label)
        for j, feature in enumerate(schema.features)
        for label in [column_label(j, expected)]
    ]


def feature_values(feature: Feature, column: Column, n_rows: int, unseen: Unseen, label: str) -> NDArray[np.float64]:
    """Return the numbers of one column, as `Schema.encode` hands them to the engine."""
    if isinstance(column, SparseColumn):
        column = dense_column(column, n_rows)
    if feature.kind in ("number", "boolean"):
        column = plain_numbers(feature, column, unseen, label)
        values = np.array(column.values, dtype=np.float64)
        if column.missing is not None:
            values[column.missing != 0] = np.nan
        return values
    column = coded(column, label)
    codes = translation(feature, column, label)
    is_other = unseen == "other" and feature.kind == "category"
    codes[codes == NO_CODE] = len(feature.categories) if is_other else -1
    values = codes[column.codes].astype(np.float64)
    values[values < 0] = np.nan
    return values


def codes_by_name(feature: Feature, column: Column, n_rows: int, label: str) -> tuple[NDArray[np.float64], list[str]]:
    """Return the codes of a column of categories, and the names of those that did not occur at fit.

    These have codes of their own, after those of the fit and in the order of their names.
    """
    if isinstance(column, SparseColumn):
        column = dense_column(column, n_rows)
    column = coded(column, label)
    codes = translation(feature, column, label)
    others = sorted(np.flatnonzero(codes == NO_CODE).tolist(), key=lambda old: str(column.values[old]))
    codes[others] = len(feature.categories) + np.arange(len(others))
    values = codes[column.codes].astype(np.float64)
    values[values < 0] = np.nan
    return values, [str(column.values[old]) for old in others]


def row_table(schema: Schema, row: Any) -> RawTable:
    """Make a table of one row: a mapping or Series by column name, or values in column order."""
    if hasattr(row, "to_dict") and getattr(row, "ndim", 1) == 1:
        row = row.to_dict() if schema.has_names else list(row)
    if isinstance(row, Mapping):
        absent = [name for name in schema.names if name not in row]
        if absent:
            raise ValueError(f"The row has no value for the column {absent[0]!r}. Give None if it is missing.")
        values = [row[name] for name in schema.names]
    else:
        values = list(row)
    if len(values) != schema.n_features:
        raise ValueError(f"The row has {len(values)} values, but the model has {schema.n_features} columns.")
    columns: list[Column] = []
    for j, value in enumerate(values):
        cell = np.empty(1, dtype=object)
        cell[0] = value
        columns.append(read_cells(cell, column_label(j, schema.names)))
    return RawTable(1, len(columns), schema.names if schema.has_names else None, columns=columns)


def rows_of(columns: _engine.Table, rows: NDArray[np.intp]) -> _engine.Table:
    """Copy some rows of a table; of one that is sparse the copy is not."""
    table = _engine.Table(len(rows))
    for j in range(columns.n_columns):
        values, n_categories = columns.values_at(j, rows.astype(np.uint32)), columns.n_categories(j)
        if n_categories:
            table.add_category(np.where(np.isnan(values), -1, values).astype(np.int32), n_categories)
        else:
            table.add_number(values)
    return table
