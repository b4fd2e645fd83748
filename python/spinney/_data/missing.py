"""Missing values: where a table has them, and the same table with values in their place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.columns import CodedColumn, Column, SparseColumn
from spinney._data.select import PickTable

Fills = Mapping[int, tuple[NDArray[np.intp], list[Any]]]  # by position of the column: rows, and what they get


def missing_rows(column: Column) -> NDArray[np.bool_]:
    """Tell which rows of a column have no value."""
    if isinstance(column, SparseColumn):
        raise TypeError("A sparse matrix has no missing values to fill. Pass a dense table.")
    if isinstance(column, CodedColumn):
        nan = [code for code, value in enumerate(column.values) if value != value]
        return (column.codes < 0) | np.isin(column.codes, nan)
    values = column.values
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    return absent if column.missing is None else absent | (column.missing != 0)


def fill_table(table: PickTable, fills: Fills) -> Any:
    """Return a table of the same kind with some cells filled; columns without such cells stay as they are."""
    native = table.native
    if isinstance(native, np.ndarray):
        return _fill_array(native, fills)
    if isinstance(native, dict):
        return {
            name: _fill_vector(values, *fills[j]) if j in fills else values
            for j, (name, values) in enumerate(native.items())
        }
    library = type(native).__module__.partition(".")[0]
    return {"polars": _fill_polars, "pyarrow": _fill_arrow}.get(library, _fill_pandas)(native, fills)


def _fill_array(array: NDArray[Any], fills: Fills) -> NDArray[Any]:
    filled = np.array(np.ma.getdata(array), copy=True)
    for j, (rows, values) in fills.items():
        filled[rows, j] = values
    return filled


def _fill_vector(vector: NDArray[Any], rows: NDArray[np.intp], values: list[Any]) -> NDArray[Any]:
    filled = np.array(np.ma.getdata(vector), copy=True)
    filled[rows] = values
    return filled


def _fill_pandas(frame: Any, fills: Fills) -> Any:
    filled = frame.copy(deep=False)
    for j, (rows, values) in fills.items():
        column = frame.iloc[:, j].copy()
        column.iloc[rows] = values
        filled.isetitem(j, column)
    return filled


def _fill_polars(frame: Any, fills: Fills) -> Any:
    import polars as pl

    columns = []
    for j, fill in fills.items():
        series = frame.to_series(j)
        dtype = None if series.dtype == pl.Null else series.dtype
        if isinstance(dtype, pl.Decimal):
            fill = fill[0], _decimals(fill[1], dtype.scale)
        columns.append(pl.Series(series.name, _filled_list(series.to_list(), *fill), dtype=dtype))
    return frame.with_columns(columns)


def _fill_arrow(table: Any, fills: Fills) -> Any:
    import pyarrow as pa

    for j, fill in fills.items():
        field = table.schema.field(j)
        if pa.types.is_decimal(field.type):
            fill = fill[0], _decimals(fill[1], field.type.scale)
        cells = _filled_list(table.column(j).to_pylist(), *fill)
        if pa.types.is_null(field.type):  # the kind of column that has no value yet
            table = table.set_column(j, field.name, pa.array(cells))
        else:
            table = table.set_column(j, field, pa.array(cells, type=field.type))
    return table


def _decimals(values: list[Any], scale: int) -> list[Any]:
    """Round numbers to what a column of decimals can hold."""
    return [Decimal(value).quantize(Decimal(1).scaleb(-scale)) for value in values]


def _filled_list(cells: list[Any], rows: NDArray[np.intp], values: list[Any]) -> list[Any]:
    for row, value in zip(rows.tolist(), values, strict=True):
        cells[row] = value
    return cells
