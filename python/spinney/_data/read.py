"""``read_table``: finds out what the caller's table is and hands it to its reader.

Frame libraries are never imported here: an object can only come from a library that is already loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spinney._data.columns import RawTable, comes_from, raise_not_2d, refuse_unread
from spinney._data.read_array import read_array, read_dict, read_other


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
        return read_array(X)
    if isinstance(X, RawTable):
        return X
    return _reader_of(X)(X)


def _reader_of(X: Any) -> Callable[[Any], RawTable]:
    if X is None or isinstance(X, (str, bytes)):
        raise TypeError(f"X must be a table such as an array or a data frame, not {type(X).__name__}.")
    if isinstance(X, np.ndarray):
        return read_array
    if comes_from(X, "pandas", "DataFrame"):
        from spinney._data.read_pandas import read_frame

        return read_frame
    if comes_from(X, "pandas", "Series", "Index") or comes_from(X, "polars", "Series"):
        raise_not_2d(1, X)
    if comes_from(X, "scipy.sparse", "sparray", "spmatrix"):
        from spinney._data.read_sparse import read_sparse

        return read_sparse
    refuse_unread(X)
    if comes_from(X, "narwhals", "DataFrame"):
        return lambda frame: read_table(frame.to_native())
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        from spinney._data.read_arrow import read_arrow

        return read_arrow
    if isinstance(X, Mapping):
        return read_dict
    return read_other
