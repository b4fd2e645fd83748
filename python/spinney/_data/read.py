"""``read_table``: finds out what the caller's table is and hands it to its reader.

Frame libraries are never imported here: an object can only come from a library that is already loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spinney._data.cells import TIME_REMEDY, read_cells
from spinney._data.columns import Array, Column, RawTable, number_column, readable, require_some
from spinney._data.names import usable_names


def read_table(X: Any) -> RawTable:
    """Read a table without copying the columns that the engine can read in place.

    Parameters
    ----------
    X : array, frame, sparse matrix, sequence of rows or dict of columns
        NumPy arrays and whatever converts to one; pandas, polars and pyarrow tables and anything else that
        offers the Arrow C stream interface; SciPy sparse matrices and arrays; lists of rows; dicts of column
        name to values.

    Returns
    -------
    RawTable

    Raises
    ------
    TypeError
        If a column holds neither numbers nor strings, or both.
    ValueError
        If `X` is not two-dimensional, is empty, holds complex numbers or has duplicate column names.
    """
    if type(X) is np.ndarray:
        return _read_array(X)
    return _reader_of(X)(X)


def _reader_of(X: Any) -> Callable[[Any], RawTable]:
    if X is None or isinstance(X, (str, bytes)):
        raise TypeError(f"X must be a table such as an array or a data frame, not {type(X).__name__}.")
    if isinstance(X, np.ndarray):
        return _read_array
    if _comes_from(X, "pandas", "DataFrame"):
        from spinney._data.read_pandas import read_frame

        return read_frame
    if _comes_from(X, "pandas", "Series", "Index") or _comes_from(X, "polars", "Series"):
        raise_not_2d(1, X)
    if _comes_from(X, "scipy.sparse", "sparray", "spmatrix"):
        from spinney._data.read_sparse import read_sparse

        return read_sparse
    if _comes_from(X, "polars", "LazyFrame"):
        raise TypeError("X is a polars LazyFrame; call collect() on it first.")
    if _comes_from(X, "narwhals", "DataFrame"):
        return lambda frame: read_table(frame.to_native())
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        from spinney._data.read_arrow import read_arrow

        return read_arrow
    if isinstance(X, Mapping):
        return _read_dict
    return _read_other


def _comes_from(X: Any, module: str, *names: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and any(isinstance(X, getattr(loaded, name, ())) for name in names)


def raise_not_2d(n_dims: int, X: Any) -> None:
    """Refuse anything but two dimensions, in scikit-learn's words."""
    if n_dims > 2:
        raise ValueError(f"Found array with dim {n_dims}, while a table has 2: rows and columns.")
    kind = "scalar" if n_dims == 0 else "1D"
    raise ValueError(
        f"Expected 2D array, got {kind} array instead:\narray={X}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
        "or array.reshape(1, -1) if it contains a single sample."
    )


def _read_other(X: Any) -> RawTable:
    if not hasattr(X, "__array__") and hasattr(X, "__dlpack__"):
        return _read_array(np.from_dlpack(X))
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
    return _read_array(array)


def _read_array(X: Array) -> RawTable:
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
        return number_column(values)
    if kind in "OUT":
        if isinstance(values, np.ma.MaskedArray):
            missing = np.ma.getmaskarray(values)
            values = np.ma.getdata(values).astype(object)
            values[missing] = None
        return read_cells(values, label)
    if kind == "c":
        raise ValueError(f"Complex data not supported: {label} holds complex numbers.")
    if kind in "mM":
        raise TypeError(f"{label} holds dates or times; {TIME_REMEDY}.")
    if kind == "S":
        raise TypeError(f"{label} holds bytes; decode them to strings first.")
    raise TypeError(f"{label} has the dtype {values.dtype}; its argument must be a string or a number.")


def _read_dict(X: Mapping[Any, Any]) -> RawTable:
    names = usable_names(X)
    if X and names is None:
        raise TypeError("X is a dict; its keys must be the column names, as strings.")
    columns: list[Column] = []
    lengths: set[int] = set()
    for name, values in X.items():
        if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
            values = np.fromiter(values, dtype=object, count=len(values))
        array = np.asarray(values)
        if array.ndim != 1:
            raise ValueError(f"Column {name!r} has {array.ndim} dimensions; every value of the dict X must be 1-D.")
        lengths.add(len(array))
        columns.append(read_array_column(array, f"Column {name!r}"))
    if len(lengths) > 1:
        raise ValueError(f"The columns of X differ in length: {sorted(lengths)}.")
    return RawTable(lengths.pop() if lengths else 0, len(columns), names, columns=columns)
