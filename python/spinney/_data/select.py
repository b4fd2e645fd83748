"""Rows and columns of the caller's table, as a table of the same kind: for members that read tables themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.arguments import masked_array
from spinney._data.column_names import usable_names
from spinney._data.columns import comes_from, raise_not_2d, refuse_unread, require_some
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
