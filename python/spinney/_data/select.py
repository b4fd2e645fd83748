"""The caller's table with some rows or columns taken, added or replaced, as a table of the same kind.

Members of ensembles and models of other libraries read such tables themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.arguments import masked_array
from spinney._data.columns import (
    CodedColumn,
    Column,
    SparseColumn,
    comes_from,
    raise_not_2d,
    refuse_unread,
    require_some,
    usable_names,
)
from spinney._data.types import TableLike

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PickTable:
    """The caller's table, with a way to take rows and columns of it.

    Attributes
    ----------
    native : table
        What members get to see: the caller's own object where it can be indexed.
    n_rows, n_columns : int
    names : list of str or None
    """

    native: Any
    n_rows: int
    n_columns: int
    names: list[str] | None
    _rows: Callable[[Any, Places], Any]
    _columns: Callable[[Any, Places], Any]
    _beside: Callable[[Any, dict[str, NDArray[np.float64]]], Any]

    def take(self, rows: Places | None = None, columns: Places | None = None) -> Any:
        """Return some rows and columns, in the order given; None: all of them, not copied."""
        picked = self.native
        if columns is not None:
            picked = self._columns(picked, columns)
        return picked if rows is None else self._rows(picked, rows)

    def beside(self, numbers: dict[str, NDArray[np.float64]]) -> Any:
        """Return a table of the same kind with columns of numbers before its own; a name that is taken is changed."""
        taken, named = set(self.names or ()), {}
        for name, column in numbers.items():
            while name in taken:
                name += "'"
            taken.add(name)
            named[name] = column
        return self._beside(self.native, named)


def pick_table(X: Any) -> PickTable:
    """Find out how to take rows and columns of a table; only what cannot be indexed is converted.

    Parameters
    ----------
    X : array, frame, sparse matrix, sequence of rows or dict of columns
        Whatever an estimator takes.

    Returns
    -------
    PickTable

    Raises
    ------
    TypeError
        If `X` is not a table.
    ValueError
        If `X` is not two-dimensional, or empty.
    """
    if X is None or isinstance(X, (str, bytes)):
        raise TypeError(f"X must be a table such as an array or a data frame, not {type(X).__name__}.")
    if comes_from(X, "scipy.sparse", "sparray", "spmatrix"):
        from spinney._data.read import checked_sparse

        if X.ndim != 2:
            raise_not_2d(X.ndim, X)
        X = checked_sparse(X)
        return _pick_array(X if X.format in ("csr", "csc") else X.tocsr())
    if comes_from(X, "pandas", "DataFrame"):
        return _made(X, len(X), X.shape[1], list(X.columns), _pandas_rows, _pandas_columns, _pandas_beside)
    if comes_from(X, "polars", "DataFrame"):
        return _made(X, X.height, X.width, X.columns, _brackets_rows, _polars_columns, _polars_beside)
    refuse_unread(X)
    if comes_from(X, "narwhals", "DataFrame"):
        return pick_table(X.to_native())
    if comes_from(X, "pyarrow", "Table", "RecordBatch"):
        return _made(X, X.num_rows, X.num_columns, X.schema.names, _arrow_rows, _arrow_columns, _arrow_beside)
    if not hasattr(X, "__array__") and (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")):
        return pick_table(_as_arrow(X))
    if isinstance(X, Mapping):
        return _pick_dict(X)
    return _pick_array(_as_array(X))


def _made(native: Any, n_rows: int, n_columns: int, labels: Any, rows: Any, columns: Any, beside: Any) -> PickTable:
    require_some(n_rows, n_columns)
    names = None if labels is None else usable_names(labels)
    return PickTable(native, int(n_rows), int(n_columns), names, rows, columns, beside)


def _as_array(X: TableLike) -> NDArray[Any]:
    if isinstance(X, np.ndarray):
        return X
    if not hasattr(X, "__array__") and hasattr(X, "__dlpack__"):
        return np.from_dlpack(X)
    masked = masked_array(X)
    if masked is not None:
        return masked
    try:
        array = np.asarray(X)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ValueError("The rows of X differ in length; every row needs one value per column.") from None
        raise
    if array.dtype.kind in "US" and not hasattr(X, "__array__"):
        return np.asarray(X, dtype=object)  # NumPy has turned the numbers beside strings into strings
    return array


def _pick_array(X: Any) -> PickTable:
    if X.ndim != 2:
        raise_not_2d(X.ndim, X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X holds complex numbers.")
    beside = _sparse_beside if comes_from(X, "scipy.sparse", "sparray", "spmatrix") else _array_beside
    return _made(X, X.shape[0], X.shape[1], None, _brackets_rows, _array_columns, beside)


def _pick_dict(X: Mapping[Any, Any]) -> PickTable:
    names = list(X)
    if names and usable_names(names) is None:
        raise TypeError("X is a dict; its keys must be the column names, as strings.")
    columns = {name: _vector(values) for name, values in X.items()}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"The columns of X differ in length: {sorted(lengths)}.")
    return _made(columns, max(lengths, default=0), len(columns), names, _dict_rows, _dict_columns, _dict_beside)


def _vector(values: Any) -> NDArray[Any]:
    masked = masked_array(values)
    if masked is not None:
        return masked
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    return np.asarray(values, dtype=object if any(isinstance(v, str) for v in values) else None)


def _as_arrow(X: TableLike) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise TypeError(
            f"Taking rows of a {type(X).__name__} needs pyarrow: pip install pyarrow, or pass a pandas or polars frame."
        ) from error
    return pa.table(X)


# ---- by kind of table ------------------------------------------------------------------------------------------------


def _brackets_rows(X: Any, rows: Places) -> Any:
    return X[rows]


def _array_columns(X: Any, columns: Places) -> Any:
    return X[:, columns]


def _pandas_rows(X: Any, rows: Places) -> Any:
    return X.take(rows)


def _pandas_columns(X: Any, columns: Places) -> Any:
    return X.take(columns, axis=1).set_axis(_told_apart(list(X.columns), columns), axis=1)


def _polars_columns(X: Any, columns: Places) -> Any:
    names = X.columns  # made anew at each look
    told = _told_apart(names, columns)
    return X.select(**{name: names[j] for name, j in zip(told, columns.tolist(), strict=True)})


def _arrow_rows(X: Any, rows: Places) -> Any:
    return X.take(rows)


def _arrow_columns(X: Any, columns: Places) -> Any:
    return X.select(columns.tolist()).rename_columns(_told_apart(X.schema.names, columns))


def _dict_rows(X: dict[str, NDArray[Any]], rows: Places) -> Any:
    return {name: values[rows] for name, values in X.items()}


def _dict_columns(X: dict[str, NDArray[Any]], columns: Places) -> Any:
    names = list(X)
    return {name: X[names[j]] for name, j in zip(_told_apart(names, columns), columns.tolist(), strict=True)}


def _array_beside(X: Any, numbers: dict[str, NDArray[np.float64]]) -> Any:
    stack = np.ma.hstack if isinstance(X, np.ma.MaskedArray) else np.hstack
    return stack([np.column_stack(list(numbers.values())), X])


def _sparse_beside(X: Any, numbers: dict[str, NDArray[np.float64]]) -> Any:
    from scipy.sparse import csr_array, hstack

    return hstack([csr_array(np.column_stack(list(numbers.values()))), X], format="csr")


def _pandas_beside(X: Any, numbers: dict[str, NDArray[np.float64]]) -> Any:
    import pandas as pd

    joined = pd.concat([pd.DataFrame(numbers, index=X.index), X], axis=1)
    return (
        joined if all(isinstance(name, str) for name in X.columns) else joined.set_axis(range(joined.shape[1]), axis=1)
    )


def _polars_beside(X: Any, numbers: dict[str, NDArray[np.float64]]) -> Any:
    import polars as pl

    return pl.DataFrame(numbers).hstack(X)


def _arrow_beside(X: Any, numbers: dict[str, NDArray[np.float64]]) -> Any:
    import pyarrow as pa

    columns = [pa.array(column) for column in numbers.values()] + list(X.columns)
    return pa.table(columns, names=[*numbers, *X.schema.names])


def _dict_beside(X: dict[str, NDArray[Any]], numbers: dict[str, NDArray[np.float64]]) -> Any:
    return numbers | X


def _told_apart(names: list[Any], columns: Places) -> list[Any]:
    """Names of the columns taken; one that is taken again gets a number, because frames want distinct names."""
    if len(np.unique(columns)) == len(columns):
        return [names[j] for j in columns.tolist()]
    if not all(isinstance(name, str) for name in names):
        return list(range(len(columns)))
    used, taken = set(names), dict.fromkeys(columns.tolist(), 0)
    told = []
    for j in columns.tolist():
        taken[j] += 1
        name = names[j]
        number = taken[j]
        while number > 1 and (name := f"{names[j]} ({number})") in used:
            number += 1
        used.add(name)
        told.append(name)
    return told


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
