"""``read_table``: reads a table of any kind.

Frame libraries are never imported here: an object can only belong to a library that is already loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._data.arguments import masked_array, rectangular_array
from spinney._data.cells import TIME_REMEDY, arrow_dates, date_column, kind_of, mixed_error, read_cells, refuse_kinds
from spinney._data.columns import (
    Array,
    CodedColumn,
    Column,
    NumberColumn,
    RawTable,
    SparseColumn,
    SparseMatrix,
    column_label,
    is_instance_of,
    missing_column,
    number_column,
    raise_not_2d,
    readable,
    refuse_lazy,
    require_rows_and_columns,
    usable_names,
)
from spinney._data.types import TableLike


def read_table(X: TableLike) -> RawTable:
    """Read a table without copying the columns that the engine can read in place.

    Parameters
    ----------
    X : array, frame, sparse matrix, sequence of rows or dict of columns
        NumPy arrays and objects that convert to one; pandas, polars and pyarrow tables and any other object with
        the Arrow C stream interface; SciPy sparse matrices and arrays; lists of rows; dicts of column
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


def _reader_of(X: TableLike) -> Callable[[Any], RawTable]:
    if X is None or isinstance(X, (str, bytes)):
        raise TypeError(f"X must be a table such as an array or a data frame, not {type(X).__name__}.")
    if isinstance(X, np.ndarray):
        return read_array
    if is_instance_of(X, "pandas", "DataFrame"):
        return read_frame
    if is_instance_of(X, "pandas", "Series", "Index") or is_instance_of(X, "polars", "Series"):
        raise_not_2d(1, X)
    if is_instance_of(X, "scipy.sparse", "sparray", "spmatrix"):
        return read_sparse
    if is_instance_of(X, "polars", "DataFrame"):
        return read_polars
    refuse_lazy(X)
    if is_instance_of(X, "narwhals", "DataFrame"):
        return lambda frame: read_table(frame.to_native())
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return read_arrow
    if isinstance(X, Mapping):
        return read_dict
    return read_other


def read_other(X: TableLike) -> RawTable:
    array = as_array(X)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"X must be a table such as an array or a data frame, not {type(X).__name__}.")
    return read_array(array)


def as_array(X: Any) -> Array:
    """Return rows of any kind as an array, of dtype object if they mix strings and numbers."""
    if isinstance(X, np.ndarray):
        return X
    if not hasattr(X, "__array__") and hasattr(X, "__dlpack__"):
        return np.from_dlpack(X)
    masked = masked_array(X)
    if masked is not None:
        return masked
    array = rectangular_array(X, "X")
    if array.dtype.kind in "US" and not hasattr(X, "__array__"):
        return np.asarray(X, dtype=object)  # NumPy has converted numbers to strings
    return array


def read_array(X: Array) -> RawTable:
    if X.ndim != 2:
        raise_not_2d(X.ndim, X)
    n_rows, n_columns = X.shape
    require_rows_and_columns(n_rows, n_columns)
    if X.dtype.kind in "fiub" and not isinstance(X, np.ma.MaskedArray):
        return RawTable(n_rows, n_columns, matrix=readable(np.asarray(X)))
    if X.dtype.names is not None:
        raise TypeError(
            "X is a structured array; pass a data frame, or a plain array made with "
            "numpy.lib.recfunctions.structured_to_unstructured."
        )
    columns = [read_array_column(X[:, j], f"Column {j}") for j in range(n_columns)]
    return RawTable(n_rows, n_columns, columns=columns)


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
    vectors = named_vectors(X)
    columns = [read_array_column(vector, f"Column {name!r}") for name, vector in vectors.items()]
    return RawTable(max(map(len, vectors.values()), default=0), len(columns), list(vectors), columns=columns)


def named_vectors(X: Mapping[Any, Any]) -> dict[str, Array]:
    """Return the columns of a dict as arrays of one length."""
    names = usable_names(X)
    if X and names is None:
        raise TypeError("X is a dict; its keys must be the column names, as strings.")
    vectors: dict[str, Array] = {}
    for name, values in zip(names or [], X.values(), strict=True):
        if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
            values = np.fromiter(values, dtype=object, count=len(values))
        masked = masked_array(values)
        array = np.asarray(values) if masked is None else masked
        if array.ndim != 1:
            raise ValueError(f"Column {name!r} has {array.ndim} dimensions; every value of the dict X must be 1-D.")
        vectors[name] = array
    lengths = {len(vector) for vector in vectors.values()}
    if len(lengths) > 1:
        raise ValueError(f"The columns of X differ in length: {sorted(lengths)}.")
    return vectors


# (name, kind, format, values or codes, missing, categories, ordered)
_ArrowColumn = tuple[str, str, str, Any, Any, Any, bool]

_REFUSED = (
    ("t", f"holds times of day or durations; {TIME_REMEDY}"),
    ("+r", "is run-end encoded; cast it to the type of its values"),
    ("+", "holds nested values (lists, structs or maps); put them into separate columns"),
    ("d", "holds decimals of more than 128 bits; cast it to float64"),
    ("_pl", "holds integers of 128 bits; cast it to Int64 or Float64"),
    ("", "holds bytes; decode them to strings, or compute numbers from them"),
)


def read_arrow(X: TableLike) -> RawTable:
    """Read a table by its Arrow C stream, or by its Arrow C array if it has no stream."""
    n_rows, has_columns, contents = _capsule_content(X)
    if not has_columns:
        raise_not_2d(1, X)
    names = usable_names(content[0] for content in contents)
    columns = [_column(content, n_rows, column_label(j, names)) for j, content in enumerate(contents)]
    return RawTable(n_rows, len(columns), names, columns=columns)


_FEW_ROWS = 1_000  # of which copying a column takes less time than reading it through Arrow


def read_polars(X: Any) -> RawTable:
    """Read a polars data frame: as one block of numbers if all columns have one type, and few rows."""
    types = set(X.dtypes) if X.height <= _FEW_ROWS else set()
    if len(types) != 1 or not types.pop().is_float():
        return read_arrow(X)
    return RawTable(X.height, X.width, usable_names(X.columns), matrix=readable(X.to_numpy()))


def read_arrow_column(array: object, label: str) -> Column:
    """Read an Arrow array or chunked array as one column."""
    n_rows, has_columns, contents = _capsule_content(array)
    if has_columns:
        raise TypeError(f"{label} holds nested values (structs); put them into separate columns.")
    return _column(contents[0], n_rows, label)


def _capsule_content(X: Any) -> tuple[int, bool, list[_ArrowColumn]]:
    _require_sound_buffers(X)
    if hasattr(X, "__arrow_c_stream__"):
        return _engine.read_arrow_stream(X.__arrow_c_stream__())
    return _engine.read_arrow_array(*X.__arrow_c_array__())


def _require_sound_buffers(X: Any) -> None:
    """Refuse a pyarrow table whose buffers are too short for its lengths and last offsets.

    The Arrow C interface passes no sizes of buffers; pyarrow knows them. The engine checks all other offsets and codes.
    """
    if not type(X).__module__.startswith("pyarrow.") or not hasattr(X, "validate"):
        return
    try:
        X.validate()
    except ValueError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(f"The Arrow data is malformed: {reason}. Write it again from an intact source.") from error


def _column(column: _ArrowColumn, n_rows: int, label: str) -> Column:
    _, kind, type_, values, missing, categories, ordered = column
    is_date = type_.startswith(("td", "ts"))
    if kind == "refused":
        if is_date:
            raise TypeError(f"{label} has dates as categories; convert it to dates, or to strings.")
        reason = next(text for start, text in _REFUSED if type_.startswith(start))
        raise TypeError(f"{label} {reason}.")
    if kind == "missing" or n_rows == 0:
        return missing_column(n_rows)
    if kind == "coded":
        return CodedColumn(values, categories, ordered)
    return arrow_dates(values, missing, type_) if is_date else NumberColumn(np.asarray(values), missing)


def read_frame(X: Any) -> RawTable:
    """Read a pandas data frame."""
    n_rows, n_columns = X.shape
    require_rows_and_columns(n_rows, n_columns)
    names = usable_names(X.columns.tolist())
    block = _one_block(X)
    if block is not None:
        return RawTable(n_rows, n_columns, names, matrix=readable(block))
    columns = [read_stored(array, column_label(j, names)) for j, array in enumerate(stored_arrays(X))]
    return RawTable(n_rows, n_columns, names, columns=columns)


def stored_arrays(X: Any) -> list[Any]:
    """Return the columns as pandas stores them: NumPy or extension arrays."""
    try:  # 2 ms instead of 20 for 1,000 columns
        return [X._get_column_array(j) for j in range(X.shape[1])]
    except AttributeError:
        columns = (series for _, series in X.items())
        return [c.to_numpy() if isinstance(c.dtype, np.dtype) else c.array for c in columns]


_FEW_NUMBERS = 10_000  # copying them takes no longer than selecting a row of a frame


def _one_block(X: Any) -> Array | None:
    """Return the 2-D array of numbers of a frame that consists of one; to_numpy would copy any other.

    Two arrays of one block share memory, two copies do not.
    """
    some = X if X.size <= _FEW_NUMBERS else X.iloc[:1]
    block: Array = some.to_numpy()
    if block.dtype.kind not in "fiub" or not np.may_share_memory(block, some.to_numpy()):
        return None
    return block if some is X else np.asarray(X.to_numpy())


def read_stored(array: Any, label: str) -> Column:
    """Read one column of any dtype."""
    dtype = array.dtype
    if isinstance(dtype, np.dtype):
        return read_array_column(array, label)
    name = type(dtype).__name__
    if name == "CategoricalDtype":
        return read_categories(array, label)
    if name == "SparseDtype":
        return _read_sparse(array, label)
    if name == "DatetimeTZDtype":
        return date_column(array.tz_convert("UTC").tz_localize(None).to_numpy(), "utc")
    if name == "PeriodDtype":
        return date_column(array.to_timestamp().to_numpy())
    if name == "IntervalDtype":
        raise TypeError(f"{label} holds intervals; use their bounds, or convert them to strings for a category.")
    if name == "ArrowDtype" or (name == "StringDtype" and dtype.storage == "pyarrow"):
        return read_arrow_column(array.__arrow_array__(), label)
    if name == "StringDtype":
        return read_cells(array.to_numpy(dtype=object), label)
    numpy_dtype = getattr(dtype, "numpy_dtype", None)
    if numpy_dtype is not None and numpy_dtype.kind in "fiub":
        return _read_nullable(array, numpy_dtype)
    return read_array_column(array.to_numpy(dtype=object), label)


def _read_nullable(array: Any, dtype: np.dtype[Any]) -> Column:
    """Read a nullable number: its values and its mask, in place if pandas stores them as arrays."""
    values, missing = getattr(array, "_data", None), getattr(array, "_mask", None)
    if isinstance(values, np.ndarray) and isinstance(missing, np.ndarray) and missing.dtype == bool:
        return number_column(values, missing)
    return number_column(array.to_numpy(dtype=dtype, na_value=0), array.isna())


def read_categories(array: Any, label: str) -> Column:
    """Read a pandas Categorical: its codes and its categories."""
    values = array.categories.tolist()
    types = set(map(type, values))
    kinds = {kind_of(type_) for type_ in types}
    if any(type_.__name__ == "Interval" for type_ in types):
        raise TypeError(f"{label} has intervals as categories; convert it to strings, or to its codes for an order.")
    refuse_kinds(kinds, types, label)
    if "date" in kinds:
        raise TypeError(f"{label} has dates as categories; convert it to dates, or to strings.")
    if "text" in kinds and len(kinds) > 1:
        raise mixed_error(label)
    return CodedColumn(array.codes, values, bool(array.ordered), declared=True)


def _read_sparse(array: Any, label: str) -> Column:
    if array.dtype.subtype.kind in "fiub" and array.fill_value == 0:
        rows = array.sp_index.to_int_index().indices
        return SparseColumn(rows.astype(np.int32, copy=False), readable(array.sp_values))
    return read_array_column(np.asarray(array), label)


def read_sparse(X: Any) -> RawTable:
    """Read a sparse matrix; stored NaN is missing, entries that are not stored are 0, duplicates are summed."""
    from scipy.sparse import csc_array

    if X.ndim != 2:
        raise_not_2d(X.ndim, X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X is a sparse matrix of complex numbers.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X is a sparse matrix of dtype {X.dtype}; its argument must be a number.")
    n_rows, n_columns = X.shape
    compressed = checked_sparse(X).tocsc()
    # a matrix caches whether it is canonical, and the cache may be stale after its arrays change: a new one has none
    compressed = csc_array((compressed.data, compressed.indices, compressed.indptr), shape=X.shape)
    if not compressed.has_canonical_format:
        compressed = compressed.copy()  # the caller's matrix stays as it is
        compressed.sum_duplicates()
    matrix = SparseMatrix(
        starts=compressed.indptr.astype(np.int64, copy=False),
        rows=compressed.indices.astype(np.int32, copy=False),
        values=readable(compressed.data),
    )
    return RawTable(n_rows, n_columns, sparse=matrix)


_INDEX_ARRAYS = {"coo": ("row", "col"), "dia": ("offsets",)}  # by format; other formats have these two:
_COMPRESSED_INDEX_ARRAYS = ("indices", "indptr")


def checked_sparse(X: Any) -> Any:
    """Return a sparse matrix in a format that SciPy can convert and index; raises if its arrays are inconsistent."""
    try:
        if X.format == "lil":
            lengths = [[len(row) for row in rows] for rows in (X.rows, X.data)]
            if lengths[0] != lengths[1] or len(lengths[0]) != X.shape[0]:
                raise ValueError("its lists of columns and of values differ in length")
            X = X.tocsr()
        elif X.format == "dok":
            X = X.tocoo()
        names = _INDEX_ARRAYS.get(X.format, _COMPRESSED_INDEX_ARRAYS)
        arrays = [getattr(X, name) for name in names]
        for name, array in zip(names, arrays, strict=True):
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError(f"its {name} is not a 1-D array of integers")
        if X.format == "coo":
            type(X)((X.data, tuple(arrays)), shape=X.shape)
        else:
            copy = type(X)((X.data, *arrays), shape=X.shape)
            if hasattr(copy, "check_format"):
                copy.check_format(full_check=True)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"X is an inconsistent sparse matrix: {error}. Build it again from its entries.") from None
    return X
