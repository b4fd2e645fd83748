"""Raw columns: what readers of tables return, before a schema interprets them.

Readers raise ``TypeError`` for a column with values of an unsupported kind, ``ValueError`` for a shape, a name or a
value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.types import TableLike

Array = NDArray[Any]
Scalar = str | int | float | bool


@dataclass(slots=True)
class NumberColumn:
    """A strided array of real numbers; rows with NaN, or with a ``missing`` byte other than 0, are missing.

    ``clock`` is "" for plain numbers, "local" or "utc" for dates in seconds (see `cells`).
    """

    values: Array
    missing: NDArray[np.uint8] | None = None
    clock: str = ""


@dataclass(slots=True)
class CodedColumn:
    """Codes into a list of values; -1 is missing. Values may repeat and need not occur."""

    codes: Array
    values: Sequence[Scalar]
    ordered: bool = False
    declared: bool = False  # the user listed the values, in an order that may be meaningful
    _occurring: list[int] | None = field(default=None, init=False, repr=False, compare=False)

    def occurring_codes(self) -> list[int]:
        """Return the codes that occur, ascending."""
        if self._occurring is None:
            self._occurring = self._find_occurring()
        return self._occurring

    def _find_occurring(self) -> list[int]:
        n_values = len(self.values)
        if n_values > 4 * len(self.codes):
            codes = np.unique(self.codes)
            return cast(list[int], codes[codes >= 0].tolist())
        seen = np.zeros(n_values + 1, dtype=bool)
        seen[self.codes] = True  # -1 is the last entry
        return np.flatnonzero(seen[:-1]).tolist()


@dataclass(slots=True)
class SparseColumn:
    """A number column that is 0 except at ``rows``."""

    rows: NDArray[np.int32]
    values: Array


Column = NumberColumn | CodedColumn | SparseColumn


@dataclass(slots=True)
class SparseMatrix:
    """Canonical compressed sparse columns: row numbers ascend in a column and do not repeat."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: Array


class RawTable:
    """The columns of a table, in place.

    Parameters
    ----------
    n_rows, n_columns : int
    names : list of str or None
        None if the table has no column names, or none that are strings.
    columns : list of columns, optional
    matrix : ndarray of shape (n_rows, n_columns), optional
        All columns at once, if they are one block of numbers.
    sparse : SparseMatrix, optional
    spill : Spill, optional
        The files with the columns, if they are not in memory.
    """

    __slots__ = ("_columns", "matrix", "n_columns", "n_rows", "names", "sparse", "spill")

    def __init__(
        self,
        n_rows: int,
        n_columns: int,
        names: list[str] | None = None,
        *,
        columns: list[Column] | None = None,
        matrix: Array | None = None,
        sparse: SparseMatrix | None = None,
        spill: _engine.Spill | None = None,
    ) -> None:
        require_rows_and_columns(n_rows, n_columns)
        self.n_rows = n_rows
        self.n_columns = n_columns
        self.names = names
        self.matrix = matrix
        self.sparse = sparse
        self.spill = spill
        self._columns = columns

    def column(self, j: int) -> Column:
        """Return column ``j``."""
        if self.matrix is not None:
            return NumberColumn(self.matrix[:, j])
        if self.sparse is not None:
            begin, end = self.sparse.starts[j], self.sparse.starts[j + 1]
            return SparseColumn(self.sparse.rows[begin:end], self.sparse.values[begin:end])
        assert self._columns is not None
        return self._columns[j]

    def label(self, j: int) -> str:
        """Return the name of column ``j`` for error messages."""
        return column_label(j, self.names)


def is_instance_of(X: TableLike, module: str, *names: str) -> bool:
    """Return whether an object is an instance of one of a module's classes, without importing the module."""
    loaded = sys.modules.get(module)
    return loaded is not None and any(isinstance(X, getattr(loaded, name, ())) for name in names)


def column_label(j: int, names: Sequence[str] | None) -> str:
    """Return the name of a column for messages: ``Column 'age'``, or ``Column 3`` if there are no names."""
    return f"Column {j}" if names is None else f"Column {names[j]!r}"


def require_rows_and_columns(n_rows: int, n_columns: int) -> None:
    """Refuse a table without rows or columns, with scikit-learn's message."""
    shape = f"(shape=({n_rows}, {n_columns}))"
    if n_columns == 0 and n_rows > 0:
        raise ValueError(f"Found array with 0 feature(s) {shape} while a minimum of 1 is required. Pass columns.")
    if n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) {shape} while a minimum of 1 is required. Pass rows.")


def readable(values: Array) -> Array:
    """Return numbers in a dtype that the engine can read, without a copy where possible."""
    dtype = values.dtype
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return values.astype(np.float32 if dtype.itemsize == 2 else np.float64)
    if not dtype.isnative:
        return values.astype(dtype.newbyteorder("="))
    if not values.flags.aligned:
        return values.copy()
    for stride in values.strides:  # a loop: `any` would take a tenth of the time to predict one row
        if stride % dtype.itemsize:
            return values.copy()
    return values


def number_column(values: Array, missing: Array | None = None) -> NumberColumn:
    """Return a number column of a 1-D array of any real dtype and an optional boolean mask of missing rows."""
    if missing is not None:
        missing = missing.view(np.uint8) if missing.any() else None
    return NumberColumn(readable(values), missing)


def missing_column(n_rows: int) -> NumberColumn:
    """Return a column in which all rows are missing, in eight bytes."""
    return NumberColumn(np.broadcast_to(np.float64(np.nan), (n_rows,)))


def dense_column(column: SparseColumn, n_rows: int) -> NumberColumn:
    """Convert a sparse column to a dense one."""
    values = np.zeros(n_rows, dtype=column.values.dtype)
    values[column.rows] = column.values
    return NumberColumn(values)


def missing_numbers(column: NumberColumn) -> NDArray[np.bool_]:
    """Return which rows of a number column are missing."""
    values = column.values
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    return absent if column.missing is None else absent | (column.missing != 0)


def coded_column(column: NumberColumn) -> CodedColumn:
    """Convert numbers to codes of their sorted distinct values."""
    values, present = column.values, ~missing_numbers(column)
    codes = np.full(len(values), -1, dtype=np.int32)
    distinct, inverse = np.unique(values[present], return_inverse=True)
    codes[present] = inverse
    return CodedColumn(codes, distinct.tolist())


def refuse_lazy(X: TableLike) -> None:
    """Refuse lazy tables, whose rows are not read or computed yet."""
    if is_instance_of(X, "polars", "LazyFrame"):
        raise TypeError("X is a polars LazyFrame; call collect() on it first.")
    if type(X).__module__.startswith("dask."):
        raise TypeError(
            "X is a Dask collection; call compute() on it first. Trees, forests and gradient boosting accept a Dask "
            "DataFrame or Array where there is a distributed.Client."
        )
    if type(X).__name__ == "Scan":
        raise TypeError(
            "X is a stream of tables, which only trees, forests and gradient boosting accept in fit and predict. Read "
            "the rows into memory first, or iterate over its batches()."
        )


def raise_not_2d(n_dims: int, X: TableLike) -> None:
    """Refuse any number of dimensions but two, with scikit-learn's message."""
    if n_dims > 2:
        raise ValueError(f"Found array with dim {n_dims}, while a table has 2: rows and columns. Reshape it.")
    kind = "scalar" if n_dims == 0 else "1D"
    raise ValueError(
        f"Expected 2D array, got {kind} array instead:\narray={X}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
        "or array.reshape(1, -1) if it contains a single sample."
    )


MISMATCH = "The feature names should match those that were passed during fit.\n"

_cached_names: list[str] = []  # x0, x1, …


def default_names(n: int) -> list[str]:
    """Return x0, x1, …, the names of columns without names; all models share the strings."""
    global _cached_names
    names = _cached_names  # other threads may replace it
    if len(names) < n:
        _cached_names = names = [*names, *(f"x{j}" for j in range(len(names), n))]
    return names[:n]


def usable_names(labels: Iterable[object]) -> list[str] | None:
    """Return the names of a frame if all of its labels are strings, None if none is.

    Raises
    ------
    TypeError
        If some labels are strings and others are not.
    ValueError
        If a name occurs twice.
    """
    names = list(labels)
    types = {type(name) for name in names}
    if types == {str}:
        _refuse_duplicates(names)  # type: ignore[arg-type]
        return names  # type: ignore[return-value]
    n_texts = sum(issubclass(type_, str) for type_ in types)
    if n_texts == 0:
        return None
    if n_texts < len(types):
        found = sorted(type_.__qualname__ for type_ in types)
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{found} as feature name / column name types. Make every name a string, for example with "
            "X.columns = X.columns.astype(str), or none."
        )
    return usable_names(str(name) for name in names)


def _refuse_duplicates(names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    twice = dict.fromkeys(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    raise ValueError(f"Column names must be unique; these occur more than once: {listed(twice)}.")


def listed(values: Iterable[object], limit: int = 5) -> str:
    """Return values as a list for a sentence: ``'a', 'b' and 3 more``."""
    shown = [repr(value) for value in values]
    rest = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + rest


def match_columns(
    found: Sequence[str] | None, n_found: int, expected: Sequence[str] | None, n_expected: int, estimator: str
) -> list[int] | None:
    """Return the position of each expected column; None if all are in the expected order.

    Raises
    ------
    ValueError
        If a named column is absent or unknown, or the number of columns differs.

    Warns
    -----
    UserWarning
        If only one of the two has names: columns are then matched by position.
    """
    if found is not None and expected is not None:
        if list(found) == list(expected):
            return None
        return _match_names(found, expected)
    if found is not None:
        warn(f"X has feature names, but {estimator} was fitted without feature names")
    elif expected is not None:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
    if n_found != n_expected:
        raise ValueError(
            f"X has {n_found} features, but {estimator} is expecting {n_expected} features as input. Pass the columns "
            "that were passed to fit, in the same order."
        )
    return None


def _match_names(found: Sequence[str], expected: Sequence[str]) -> list[int]:
    position = {name: j for j, name in enumerate(found)}
    unseen = sorted(set(found) - set(expected))
    absent = sorted(set(expected) - set(found))
    if unseen or absent:
        message = MISMATCH
        if unseen:
            message += "Feature names unseen at fit time:\n" + _bullets(unseen)
        if absent:
            message += "Feature names seen at fit time, yet now missing:\n" + _bullets(absent)
        remedies = ["Leave out the columns that were not passed to fit."] if unseen else []
        remedies += ["Add the missing columns, or rename columns of X."] if absent else []
        raise ValueError(message + " ".join(remedies))
    return [position[name] for name in expected]


def _bullets(names: list[str], limit: int = 5) -> str:
    lines = "".join(f"- {name}\n" for name in names[:limit])
    return lines + ("- ...\n" if len(names) > limit else "")
