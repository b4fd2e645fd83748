"""Selection, addition and replacement of rows and columns of the caller's table, as a table of the same kind.

Members of ensembles and models of other libraries get such tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.columns import (
    CodedColumn,
    Column,
    SparseColumn,
    is_instance_of,
    missing_numbers,
    raise_not_2d,
    refuse_lazy,
    require_rows_and_columns,
    usable_names,
)
from spinney._data.read import as_array, checked_sparse, named_vectors
from spinney._data.types import TableLike

Places = NDArray[np.intp]
Numbers = dict[str, NDArray[np.float64]]  # columns by name


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all rows, which need not occur in the column."""

    value: Any


@dataclass(frozen=True, slots=True)
class Cells:
    """A value for each row, which need not occur in the column."""

    values: list[Any]


New = Places | Constant | Cells
Fills = Mapping[int, tuple[Places, list[Any]]]  # by position of the column: rows, and their new values


class PickTable(ABC):
    """The caller's table with methods to select, add and replace rows and columns; one subclass per kind of table.

    Attributes
    ----------
    native : table
        The caller's table where it can be indexed, else a copy that can.
    n_rows, n_columns : int
    names : list of str or None
    """

    def __init__(self, native: Any, n_rows: int, n_columns: int, labels: Any) -> None:
        require_rows_and_columns(n_rows, n_columns)
        self.native = native
        self.n_rows, self.n_columns = int(n_rows), int(n_columns)
        self.names = None if labels is None else usable_names(labels)

    def take(self, rows: Places | None = None, columns: Places | None = None) -> Any:
        """Return some rows and columns, in this order; None: all of them, not copied."""
        picked = self.native if columns is None else self._only(columns)
        return picked if rows is None else self._rows(picked, rows)

    def with_leading_columns(self, numbers: Numbers) -> Any:
        """Return a table of the same kind with numeric columns before its columns; duplicate names are changed."""
        taken, named = set(self.names or ()), {}
        for name, column in numbers.items():
            while name in taken:
                name += "'"
            taken.add(name)
            named[name] = column
        return self._prepended(named)

    def with_columns(self, new: Mapping[int, New]) -> Any:
        """Return the table with some columns replaced, by their values in other rows or by new values.

        Parameters
        ----------
        new : dict
            By position of the column: the row number of the new value of each row; a `Constant`; or `Cells`.

        Returns
        -------
        table
            Of the same kind.
        """
        columns = {}
        for j, by in new.items():
            column = self._column(j)
            if isinstance(by, Cells):
                columns[j] = self._cells(column, by.values)
            elif isinstance(by, Constant):
                columns[j] = self._taken(self._cells(column, [by.value]), np.zeros(self.n_rows, dtype=np.intp))
            else:
                columns[j] = self._taken(column, by)
        return self._replaced(columns)

    def filled(self, fills: Fills) -> Any:
        """Return a table of the same kind with some cells replaced; other columns are not copied."""
        return self._replaced({j: self._with(self._column(j), *fill) for j, fill in fills.items()})

    def _rows(self, X: Any, rows: Places) -> Any:
        """Return some rows of a table of this kind."""
        return X[rows]

    def _taken(self, column: Any, rows: Places) -> Any:
        """Return some rows of a column."""
        return column[rows]

    def _cells(self, column: Any, values: list[Any]) -> Any:
        """Return values as a column, with the type of another one if it fits."""
        return np.array(values, dtype=object if column.dtype == object else None)

    def _with(self, column: Any, rows: Places, values: list[Any]) -> Any:
        """Return a column with other values in some rows, of the same type."""
        filled = np.array(np.ma.getdata(column), copy=True)
        filled[rows] = values
        return filled

    @abstractmethod
    def _only(self, columns: Places) -> Any:
        """Return some columns."""

    @abstractmethod
    def _prepended(self, numbers: Numbers) -> Any:
        """Return all columns after numeric columns with distinct names."""

    @abstractmethod
    def _column(self, j: int) -> Any:
        """Return a column."""

    @abstractmethod
    def _replaced(self, columns: dict[int, Any]) -> Any:
        """Return the table with other columns."""


def pick_table(X: Any) -> PickTable:
    """Return a table as a `PickTable`; only tables that cannot be indexed are converted.

    Parameters
    ----------
    X : array, frame, sparse matrix, sequence of rows or dict of columns
        Any table that an estimator accepts.

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
    if is_instance_of(X, "scipy.sparse", "sparray", "spmatrix"):
        if X.ndim != 2:
            raise_not_2d(X.ndim, X)
        X = checked_sparse(X)
        return _SparseTable(X if X.format in ("csr", "csc") else X.tocsr())
    if is_instance_of(X, "pandas", "DataFrame"):
        return _PandasTable(X, len(X), X.shape[1], list(X.columns))
    if is_instance_of(X, "polars", "DataFrame"):
        return _PolarsTable(X, X.height, X.width, X.columns)
    refuse_lazy(X)
    if is_instance_of(X, "narwhals", "DataFrame"):
        return pick_table(X.to_native())
    if is_instance_of(X, "pyarrow", "Table", "RecordBatch"):
        return _ArrowTable(X, X.num_rows, X.num_columns, X.schema.names)
    if not hasattr(X, "__array__") and (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")):
        return pick_table(_as_arrow(X))
    if isinstance(X, Mapping):
        vectors = named_vectors(X)
        return _DictTable(vectors, max(map(len, vectors.values()), default=0), len(vectors), list(vectors))
    return _ArrayTable(as_array(X))


def _as_arrow(X: TableLike) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise TypeError(
            f"Selecting rows of a {type(X).__name__} needs pyarrow: install it, or pass a pandas or polars frame."
        ) from error
    return pa.table(X)


class _ArrayTable(PickTable):
    def __init__(self, X: Any) -> None:
        if X.ndim != 2:
            raise_not_2d(X.ndim, X)
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported: X holds complex numbers.")
        super().__init__(X, X.shape[0], X.shape[1], None)

    def filled(self, fills: Fills) -> Any:
        return np.ma.getdata(super().filled(fills))

    def _only(self, columns: Places) -> Any:
        return self.native[:, columns]

    def _prepended(self, numbers: Numbers) -> Any:
        stack = np.ma.hstack if isinstance(self.native, np.ma.MaskedArray) else np.hstack
        return stack([np.column_stack(list(numbers.values())), self.native])

    def _column(self, j: int) -> Any:
        return self.native[:, j]

    def _replaced(self, columns: dict[int, Any]) -> Any:
        X = self.native
        X = X.astype(np.result_type(X, *columns.values()) if X.dtype != object else object)  # astype copies
        for j, column in columns.items():
            X[:, j] = column
        return X


class _SparseTable(_ArrayTable):
    def _prepended(self, numbers: Numbers) -> Any:
        from scipy.sparse import csr_array, hstack

        return hstack([csr_array(np.column_stack(list(numbers.values()))), self.native], format="csr")

    def _column(self, j: int) -> Any:
        return self.native.tocsc()[:, [j]].tocsr()

    def _cells(self, column: Any, values: list[Any]) -> Any:
        from scipy.sparse import csr_array

        return csr_array(np.array(values, dtype=np.float64)[:, np.newaxis])

    def _replaced(self, columns: dict[int, Any]) -> Any:
        from scipy.sparse import hstack

        order = np.arange(self.n_columns)
        order[list(columns)] = self.n_columns + np.arange(len(columns))
        joined = hstack([self.native.tocsc(), *columns.values()], format="csc")
        return joined[:, order].asformat(self.native.format)


class _DictTable(PickTable):
    def _rows(self, X: Any, rows: Places) -> Any:
        return {name: values[rows] for name, values in X.items()}

    def _only(self, columns: Places) -> Any:
        names = list(self.native)
        distinct = _distinct_names(names, columns)
        return {name: self.native[names[j]] for name, j in zip(distinct, columns.tolist(), strict=True)}

    def _prepended(self, numbers: Numbers) -> Any:
        return numbers | self.native

    def _column(self, j: int) -> Any:
        return list(self.native.values())[j]

    def _replaced(self, columns: dict[int, Any]) -> Any:
        names = list(self.native)
        return self.native | {names[j]: column for j, column in columns.items()}


class _PandasTable(PickTable):
    def _rows(self, X: Any, rows: Places) -> Any:
        return X.take(rows)

    def _taken(self, column: Any, rows: Places) -> Any:
        return column.take(rows)

    def _only(self, columns: Places) -> Any:
        return self.native.take(columns, axis=1).set_axis(_distinct_names(list(self.native.columns), columns), axis=1)

    def _prepended(self, numbers: Numbers) -> Any:
        import pandas as pd

        joined = pd.concat([pd.DataFrame(numbers, index=self.native.index), self.native], axis=1)
        has_names = all(isinstance(name, str) for name in self.native.columns)
        return joined if has_names else joined.set_axis(range(joined.shape[1]), axis=1)

    def _column(self, j: int) -> Any:
        return self.native.iloc[:, j]

    def _cells(self, column: Any, values: list[Any]) -> Any:
        import pandas as pd

        if column.dtype.kind in "iu" and any(float(value) % 1 for value in values):
            return pd.Series(values, dtype="float64")
        try:
            return pd.Series(pd.array(values, dtype=column.dtype))
        except (TypeError, ValueError):
            return pd.Series(pd.array(values))

    def _with(self, column: Any, rows: Places, values: list[Any]) -> Any:
        filled = column.copy()
        filled.iloc[rows] = values
        return filled

    def _replaced(self, columns: dict[int, Any]) -> Any:
        X = self.native.copy(deep=False)
        for j, column in columns.items():
            X.isetitem(j, column.array)
        return X


class _PolarsTable(PickTable):
    def _only(self, columns: Places) -> Any:
        names = self.native.columns  # polars builds the list at each access
        distinct = _distinct_names(names, columns)
        return self.native.select(**{name: names[j] for name, j in zip(distinct, columns.tolist(), strict=True)})

    def _prepended(self, numbers: Numbers) -> Any:
        import polars as pl

        return pl.DataFrame(numbers).hstack(self.native)

    def _column(self, j: int) -> Any:
        return self.native.to_series(j)

    def _cells(self, column: Any, values: list[Any]) -> Any:
        import polars as pl

        try:
            return pl.Series(column.name, values, dtype=column.dtype, strict=True)
        except (TypeError, pl.exceptions.PolarsError):
            return pl.Series(column.name, values)

    def _with(self, column: Any, rows: Places, values: list[Any]) -> Any:
        import polars as pl

        dtype = None if column.dtype == pl.Null else column.dtype
        scale = dtype.scale if isinstance(dtype, pl.Decimal) else None
        return pl.Series(column.name, _filled_list(column.to_list(), rows, values, scale), dtype=dtype)

    def _replaced(self, columns: dict[int, Any]) -> Any:
        return self.native.with_columns(list(columns.values()))


class _ArrowTable(PickTable):
    def _rows(self, X: Any, rows: Places) -> Any:
        return X.take(rows)

    def _taken(self, column: Any, rows: Places) -> Any:
        import pyarrow as pa

        return column.take(pa.array(rows))

    def _only(self, columns: Places) -> Any:
        distinct = _distinct_names(self.native.schema.names, columns)
        return self.native.select(columns.tolist()).rename_columns(distinct)

    def _prepended(self, numbers: Numbers) -> Any:
        import pyarrow as pa

        columns = [pa.array(column) for column in numbers.values()] + list(self.native.columns)
        return pa.table(columns, names=[*numbers, *self.native.schema.names])

    def _column(self, j: int) -> Any:
        return self.native.column(j)

    def _cells(self, column: Any, values: list[Any]) -> Any:
        import pyarrow as pa

        try:
            return pa.array(values, type=column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(values)

    def _with(self, column: Any, rows: Places, values: list[Any]) -> Any:
        import pyarrow as pa

        scale = column.type.scale if pa.types.is_decimal(column.type) else None
        cells = _filled_list(column.to_pylist(), rows, values, scale)
        return pa.array(cells, type=None if pa.types.is_null(column.type) else column.type)

    def _replaced(self, columns: dict[int, Any]) -> Any:
        X = self.native
        for j, column in columns.items():
            field = X.schema.field(j)
            X = X.set_column(j, field if field.type == column.type else field.name, column)
        return X


def _filled_list(cells: list[Any], rows: Places, values: list[Any], scale: int | None) -> list[Any]:
    """Return cells with some values replaced, rounded to the scale of a column of decimals."""
    if scale is not None:
        values = [Decimal(value).quantize(Decimal(1).scaleb(-scale)) for value in values]
    for row, value in zip(rows.tolist(), values, strict=True):
        cells[row] = value
    return cells


def _distinct_names(names: list[Any], columns: Places) -> list[Any]:
    """Return the names of selected columns; repeated ones get a number, because frames need distinct names."""
    if len(np.unique(columns)) == len(columns):
        return [names[j] for j in columns.tolist()]
    if not all(isinstance(name, str) for name in names):
        return list(range(len(columns)))
    used, count = set(names), dict.fromkeys(columns.tolist(), 0)
    distinct = []
    for j in columns.tolist():
        count[j] += 1
        name = names[j]
        number = count[j]
        while number > 1 and (name := f"{names[j]} ({number})") in used:
            number += 1
        used.add(name)
        distinct.append(name)
    return distinct


def missing_rows(column: Column) -> NDArray[np.bool_]:
    """Return which rows of a column are missing."""
    if isinstance(column, SparseColumn):
        raise TypeError("A sparse matrix has no missing values to fill. Pass a dense table.")
    if isinstance(column, CodedColumn):
        nan = [code for code, value in enumerate(column.values) if value != value]
        return (column.codes < 0) | np.isin(column.codes, nan)
    return missing_numbers(column)
