"""Columns and tables from NumPy arrays, dicts of columns and lists of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spinney._data.arguments import masked_array
from spinney._data.column_names import usable_names
from spinney._data.columns import Array, Column, RawTable, number_column, raise_not_2d, readable, require_some
from spinney._data.dates import date_column
from spinney._data.object_columns import TIME_REMEDY, read_cells


def read_other(X: Any) -> RawTable:
    if not hasattr(X, "__array__") and hasattr(X, "__dlpack__"):
        return read_array(np.from_dlpack(X))
    masked = masked_array(X)
    if masked is not None:
        return read_array(masked)
    try:
        array = np.asarray(X)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ValueError("The rows of X differ in length; every row needs one value per column.") from None
        raise
    if array.dtype.kind in "US" and not hasattr(X, "__array__"):
        array = np.asarray(X, dtype=object)  # NumPy has turned the numbers beside strings into strings
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"X must be a table such as an array or a data frame, not {type(X).__name__}.")
    return read_array(array)


def read_array(X: Array) -> RawTable:
    if X.ndim != 2:
        raise_not_2d(X.ndim, X)
    n_rows, n_columns = X.shape
    require_some(n_rows, n_columns)
    if X.dtype.kind in "fiub":
        if isinstance(X, np.ma.MaskedArray):
            return _read_masked(X)
        return RawTable(n_rows, n_columns, matrix=readable(np.asarray(X)))
    if X.dtype.names is not None:
        raise TypeError(
            "X is a structured array; pass a data frame, or a plain array made with "
            "numpy.lib.recfunctions.structured_to_unstructured."
        )
    columns = [read_array_column(X[:, j], f"Column {j}") for j in range(n_columns)]
    return RawTable(n_rows, n_columns, columns=columns)


def _read_masked(X: np.ma.MaskedArray[Any, Any]) -> RawTable:
    values, missing = readable(np.ma.getdata(X)), np.ma.getmaskarray(X)
    columns: list[Column] = [number_column(values[:, j], missing[:, j]) for j in range(X.shape[1])]
    return RawTable(X.shape[0], X.shape[1], columns=columns)


def read_array_column(values: Array, label: str) -> Column:
    """Read a column from a 1-D NumPy array of any dtype."""
    kind = values.dtype.kind
    if kind in "fiub":
        if isinstance(values, np.ma.MaskedArray):
            return number_column(np.ma.getdata(values), np.ma.getmaskarray(values))
        return number_column(values)
    if kind in "OUT":
        if isinstance(values, np.ma.MaskedArray):
            missing = np.ma.getmaskarray(values)
            values = np.ma.getdata(values).astype(object)
            values[missing] = None
        return read_cells(values, label)
    if kind == "c":
        raise ValueError(f"Complex data not supported: {label} holds complex numbers.")
    if kind == "M":
        return date_column(values)
    if kind == "m":
        raise TypeError(f"{label} holds durations; {TIME_REMEDY}.")
    if kind == "S":
        raise TypeError(f"{label} holds bytes; decode them to strings first.")
    raise TypeError(f"{label} has the dtype {values.dtype}; its argument must be a string or a number.")


def read_dict(X: Mapping[Any, Any]) -> RawTable:
    names = usable_names(X)
    if X and names is None:
        raise TypeError("X is a dict; its keys must be the column names, as strings.")
    columns: list[Column] = []
    lengths: set[int] = set()
    for name, values in X.items():
        if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
            values = np.fromiter(values, dtype=object, count=len(values))
        masked = masked_array(values)
        array = np.asarray(values) if masked is None else masked
        if array.ndim != 1:
            raise ValueError(f"Column {name!r} has {array.ndim} dimensions; every value of the dict X must be 1-D.")
        lengths.add(len(array))
        columns.append(read_array_column(array, f"Column {name!r}"))
    if len(lengths) > 1:
        raise ValueError(f"The columns of X differ in length: {sorted(lengths)}.")
    return RawTable(lengths.pop() if lengths else 0, len(columns), names, columns=columns)
