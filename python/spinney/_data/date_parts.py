"""Parts of dates as separate columns: a tree cannot find "every Monday" by splitting at points in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.cells import resolution_of
from spinney._data.columns import NumberColumn, is_instance_of, listed
from spinney._data.read import read_table
from spinney._data.types import Floats, TableLike

_DAY = 86400


def _calendar(days: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    return days.view("M8[D]").astype(f"M8[{unit}]").view(np.int64)


def _day_of(days: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Return the number of each day within its month or year."""
    return days - days.view("M8[D]").astype(f"M8[{unit}]").astype("M8[D]").view(np.int64) + 1


_OF_DAY: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "year": lambda days: _calendar(days, "Y") + 1970,
    "quarter": lambda days: _calendar(days, "M") % 12 // 3 + 1,
    "month": lambda days: _calendar(days, "M") % 12 + 1,
    "day": lambda days: _day_of(days, "M"),
    "day_of_year": lambda days: _day_of(days, "Y"),
    "weekday": lambda days: (days + 3) % 7 + 1,  # 1970 began on a Thursday
}
_OF_TIME = {"hour": 3600, "minute": 60}
PARTS = (*_OF_DAY, *_OF_TIME)
DEFAULT_PARTS = ("year", "month", "weekday", "hour")


def part_of(seconds: Floats, part: str) -> Floats:
    """Return one part of dates in seconds since 1970; NaN where the date is missing."""
    known = np.isfinite(seconds)
    found = np.full(len(seconds), np.nan)
    days = np.floor(seconds[known] / _DAY).astype(np.int64)
    if part in _OF_DAY:
        found[known] = _OF_DAY[part](days)
    else:
        longer = {"hour": _DAY, "minute": 3600}[part]
        found[known] = np.floor(seconds[known] % longer / _OF_TIME[part])
    return found


def part_name(column: str, part: str) -> str:
    """Return the name of the column of a part."""
    return f"{column}.{part}"


def part_named(name: str) -> tuple[str, str] | None:
    """Return the column and the part that a name refers to; None if it refers to none."""
    column, dot, part = name.rpartition(".")
    return (column, part) if dot and part in PARTS else None


def date_parts(X: TableLike, columns: Iterable[str] | None = None, parts: Sequence[str] = DEFAULT_PARTS) -> Any:
    """Add parts of dates to a table, such as the month, the weekday or the hour.

    Trees split dates at a point in time. Patterns that repeat every year, week or day need separate columns.

    Parameters
    ----------
    X : frame or dict of columns
        A pandas, polars or pyarrow table, or a dict of arrays. It is not changed.
    columns : sequence of str, optional
        Date columns to derive parts from. None: all of them.
    parts : sequence of str, default=("year", "month", "weekday", "hour")
        Some of "year", "quarter" (1 to 4), "month" (1 to 12), "day" (of the month), "day_of_year", "weekday" (1 is
        Monday, 7 Sunday), "hour" and "minute". Hour and minute are left out for columns of whole days. The parts of
        dates with a time zone are in UTC; for parts in local time, remove the time zone first.

    Returns
    -------
    table
        A table of the same kind with new columns such as ``when.month`` after the others: numbers, missing where
        the date is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = {"when": np.array(["2024-05-31", "2024-06-01"], dtype="M8[D]")}
    >>> table = spinney.date_parts(X, parts=["month", "weekday"])
    >>> table["when.month"], table["when.weekday"]
    (array([5., 6.]), array([5., 6.]))
    """
    if isinstance(parts, str) or not (chosen := list(parts)) or not set(chosen) <= set(PARTS):
        raise ValueError(f"parts must be a list of some of {', '.join(map(repr, PARTS))}, not {parts!r}.")
    table = read_table(X)
    if table.names is None:
        raise TypeError("date_parts takes tables with column names. Pass a data frame or a dict of arrays.")
    dates = {
        name: column
        for j, name in enumerate(table.names)
        if isinstance(column := table.column(j), NumberColumn) and column.clock
    }
    wanted = list(dates) if columns is None else [columns] if isinstance(columns, str) else list(columns)
    if unknown := [name for name in wanted if name not in dates]:
        what = "does not hold dates" if unknown[0] in table.names else "is not in the table"
        raise ValueError(
            f"columns names {unknown[0]!r}, which {what}. Columns of dates: {listed(list(dates)) or 'none'}."
        )
    found: dict[str, Floats] = {}
    for name in wanted:
        has_time = resolution_of(dates[name]) != "day"
        found |= {
            part_name(name, part): part_of(dates[name].values, part) for part in chosen if part in _OF_DAY or has_time
        }
    if taken := [name for name in found if name in table.names]:
        raise ValueError(f"The table already has a column {taken[0]!r}. Rename it, or leave this part out.")
    return _with_columns(X, found)


def _with_columns(X: Any, found: dict[str, Floats]) -> Any:
    if is_instance_of(X, "pandas", "DataFrame"):
        return X.assign(**found)
    if is_instance_of(X, "polars", "DataFrame"):
        import polars as pl

        return X.with_columns([pl.Series(name, values).fill_nan(None) for name, values in found.items()])
    if is_instance_of(X, "pyarrow", "Table"):
        import pyarrow as pa

        for name, values in found.items():
            X = X.append_column(name, pa.array(values, from_pandas=True))
        return X
    if isinstance(X, dict):
        return X | found
    raise TypeError(f"date_parts takes pandas, polars and pyarrow tables and dicts, not {type(X).__name__}.")
