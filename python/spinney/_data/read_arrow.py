"""Arrow tables: polars, pyarrow, DuckDB and whatever else offers a C stream or a C array in a capsule."""

from __future__ import annotations

from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._data.column_names import usable_names
from spinney._data.columns import (
    CodedColumn,
    Column,
    NumberColumn,
    RawTable,
    column_label,
    missing_column,
    raise_not_2d,
)
from spinney._data.dates import arrow_dates
from spinney._data.object_columns import TIME_REMEDY

# (name, kind, format, values or codes, missing, categories, ordered)
_Parts = tuple[str, str, str, Any, Any, Any, bool]

_REFUSED = (
    ("t", f"holds times of day or durations; {TIME_REMEDY}"),
    ("+r", "is run-end encoded; cast it to the type of its values"),
    ("+", "holds nested values (lists, structs or maps); spread them over columns of their own"),
    ("d", "holds decimals of more than 128 bits; cast it to float64"),
    ("_pl", "holds integers of 128 bits; cast it to Int64 or Float64"),
    ("", "holds bytes; decode them to strings, or derive numbers from them"),
)


def read_arrow(X: Any) -> RawTable:
    """Read a table by its Arrow C stream, or by its Arrow C array if it has no stream."""
    n_rows, has_columns, parts = _capsule_content(X)
    if not has_columns:
        raise_not_2d(1, X)
    names = usable_names(part[0] for part in parts)
    columns = [_column(part, n_rows, column_label(j, names)) for j, part in enumerate(parts)]
    return RawTable(n_rows, len(columns), names, columns=columns)


def read_arrow_column(array: Any, label: str) -> Column:
    """Read an Arrow array or chunked array as one column."""
    n_rows, has_columns, parts = _capsule_content(array)
    if has_columns:
        raise TypeError(f"{label} holds nested values (structs); spread them over columns of their own.")
    return _column(parts[0], n_rows, label)


def _capsule_content(X: Any) -> tuple[int, bool, list[_Parts]]:
    if hasattr(X, "__arrow_c_stream__"):
        return _engine.read_arrow_stream(X.__arrow_c_stream__())
    return _engine.read_arrow_array(*X.__arrow_c_array__())


def _column(parts: _Parts, n_rows: int, label: str) -> Column:
    _, kind, type_, values, missing, categories, ordered = parts
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
