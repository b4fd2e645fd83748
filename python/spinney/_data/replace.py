"""The caller's table with some columns replaced, as a table of the same kind: for models that read it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.columns import CodedColumn, Column, SparseColumn, comes_from
from spinney._data.select import PickTable

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all rows, that need not occur in the column."""

    value: Any


@dataclass(frozen=True, slots=True)
class Cells:
    """A value for each row, that need not occur in the column."""

    values: list[Any]


New = Places | Constant | Cells


def with_columns(table: PickTable, new: Mapping[int, New]) -> Any:
    """Return the table with columns replaced: by the values that the column has in other rows, or by one value.

    Parameters
    ----------
    table : PickTable
        The table; it is not changed.
    new : dict
        By position of the column: a row number for each row, whose value is taken; a `Constant`; or `Cells`.

    Returns
    -------
    table
        Of the same kind.
    """
    X = table.native
    if comes_from(X, "pandas", "DataFrame"):
        return _pandas(X, new)
    if comes_from(X, "polars", "DataFrame"):
        return X.with_columns([_polars(X, j, by) for j, by in new.items()])
    if comes_from(X, "pyarrow", "Table", "RecordBatch"):
        return _arrow(X, new)
    if isinstance(X, Mapping):
        names = list(X)
        return dict(X) | {names[j]: _array(X[names[j]], by, table.n_rows) for j, by in new.items()}
    if comes_from(X, "scipy.sparse", "sparray", "spmatrix"):
        return _sparse(X, new)
    columns = {j: _array(X[:, j], by, table.n_rows) for j, by in new.items()}
    X = X.astype(np.result_type(X, *columns.values()) if X.dtype != object else object)  # astype copies
    for j, column in columns.items():
        X[:, j] = column
    return X


def _array(column: NDArray[Any], by: New, n_rows: int) -> NDArray[Any]:
    if not isinstance(by, (Constant, Cells)):
        return column[by]
    if isinstance(by, Cells):
        return np.array(by.values, dtype=object if column.dtype == object else None)
    return np.broadcast_to(np.asarray(by.value, dtype=object if column.dtype == object else None), (n_rows,))


def _values(by: Constant | Cells) -> list[Any]:
    return by.values if isinstance(by, Cells) else [by.value]


def _pandas(X: Any, new: Mapping[int, New]) -> Any:
    import pandas as pd

    X, old = X.copy(deep=False), X
    for j, by in new.items():
        column = old.iloc[:, j]
        if not isinstance(by, (Constant, Cells)):
            X.isetitem(j, column.array.take(by))
            continue
        values = _values(by)
        try:
            cells = pd.array(values, dtype=column.dtype)
        except (TypeError, ValueError):
            cells = pd.array(values)
        if column.dtype.kind in "iu" and any(float(value) % 1 for value in values):  # half a child
            cells = pd.Series(values, dtype="float64").array
        X.isetitem(j, cells if isinstance(by, Cells) else cells.take(np.zeros(len(old), dtype=np.intp)))
    return X


def _polars(X: Any, j: int, by: New) -> Any:
    import polars as pl

    column = X.to_series(j)
    if not isinstance(by, (Constant, Cells)):
        return column.gather(by)
    values = _values(by)
    try:
        cells = pl.Series(column.name, values, dtype=column.dtype, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        cells = pl.Series(column.name, values)
    return cells if isinstance(by, Cells) else cells.new_from_index(0, X.height)


def _arrow(X: Any, new: Mapping[int, New]) -> Any:
    import pyarrow as pa

    for j, by in new.items():
        column, name = X.column(j), X.schema.names[j]
        if not isinstance(by, (Constant, Cells)):
            X = X.set_column(j, name, column.take(pa.array(by)))
            continue
        values = _values(by) * (1 if isinstance(by, Cells) else X.num_rows)
        try:
            cells = pa.array(values, type=column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            cells = pa.array(values)
        X = X.set_column(j, name, cells)
    return X


def _sparse(X: Any, new: Mapping[int, New]) -> Any:
    from scipy.sparse import csc_array, hstack

    order = np.arange(X.shape[1])
    parts = [X.tocsc()]
    for k, (j, by) in enumerate(new.items()):
        if isinstance(by, (Constant, Cells)):
            column = np.broadcast_to(np.array(_values(by), dtype=np.float64), (X.shape[0],))
            parts.append(csc_array(column[:, np.newaxis]))
        else:
            parts.append(X.tocsc()[:, [j]].tocsr()[by])
        order[j] = X.shape[1] + k
    return hstack(parts, format="csc")[:, order].asformat(X.format)


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
