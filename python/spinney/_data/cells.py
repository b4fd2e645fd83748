"""Columns of Python objects, and dates.

A date is the number of seconds since 1970-01-01, to the microsecond: in local time, or in UTC if it has a time zone.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.columns import Array, CodedColumn, Column, NumberColumn, missing_column, number_column

_DATES = (datetime.date, np.datetime64)
_TIMES = (datetime.time, datetime.timedelta, np.timedelta64)
_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal, fractions.Fraction)
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}

TIME_REMEDY = "convert them to numbers first, such as seconds"


def kind_of(type_: type) -> str:
    """Return the kind of a cell: missing, text, boolean, number, date, complex, time, binary or other."""
    if type_.__name__ in _MISSING_TYPES:
        return "missing"
    for kind, types in (
        ("text", (str,)),
        ("boolean", (bool, np.bool_)),
        ("date", _DATES),
        ("time", _TIMES),
        ("number", _NUMBERS),
        ("complex", (complex, np.complexfloating)),
        ("binary", (bytes, bytearray, memoryview)),
    ):
        if issubclass(type_, types):
            return kind
    if type_.__name__ == "Period":
        return "date"
    if type_.__name__ == "DateOffset":
        return "time"
    return "other"


def is_missing(cell: object) -> bool:
    """Return whether a cell is None, NaN, NA or NaT."""
    return type(cell).__name__ in _MISSING_TYPES or bool(cell != cell)


def read_cells(values: Array, label: str) -> Column:
    """Read a column of Python objects or of strings (1-D array of dtype object, str or StringDType)."""
    cells = values.tolist()
    types = set(map(type, cells))
    kinds = {kind_of(type_) for type_ in types}
    refuse_kinds(kinds, types, label)
    if "text" in kinds:
        return _read_text(cells, label)
    if "date" in kinds:
        if not kinds <= {"date", "missing"}:
            raise TypeError(f"{label} mixes dates and numbers; convert all of its values to one type.")
        return cells_to_dates(cells, label)
    if kinds == {"missing"}:
        return missing_column(len(cells))
    return _read_numbers(cells, kinds, types)


def refuse_kinds(kinds: set[str], types: set[type], label: str) -> None:
    """Raise if a column has cells other than numbers, strings and dates."""
    if "complex" in kinds:
        raise ValueError(f"Complex data not supported: {label} holds complex numbers.")
    if "time" in kinds:
        raise TypeError(f"{label} holds times of day or durations; {TIME_REMEDY}.")
    if "binary" in kinds:
        raise TypeError(f"{label} holds bytes; decode them to strings first.")
    if "other" in kinds:
        name = sorted(type_.__name__ for type_ in types if kind_of(type_) == "other")[0]
        raise TypeError(f"{label} holds a value of type {name}: its argument must be a string or a number.")


def mixed_error(label: str, others: str = "numbers") -> TypeError:
    """Return the error for strings and other values in one column."""
    return TypeError(
        f"{label} mixes strings and {others}; convert all of its values to strings (for a category) "
        f"or all of them to {others}."
    )


def _read_text(cells: list[Any], label: str) -> Column:
    code_of: dict[Any, int] = {}
    texts: list[str] = []
    for cell in dict.fromkeys(cells):
        if isinstance(cell, str):
            code_of[cell] = len(texts)
            texts.append(str(cell))
        elif is_missing(cell):
            code_of[cell] = -1
        else:
            raise mixed_error(label, "dates" if kind_of(type(cell)) == "date" else "numbers")
    codes = np.fromiter(map(code_of.__getitem__, cells), np.int32, len(cells))
    return CodedColumn(codes, texts)


def _read_numbers(cells: list[Any], kinds: set[str], types: set[type]) -> NumberColumn:
    missing = None
    if "missing" in kinds:
        missing = np.fromiter((type(cell).__name__ in _MISSING_TYPES for cell in cells), bool, len(cells))
        filler = False if "number" not in kinds else 0
        cells = [filler if absent else cell for cell, absent in zip(cells, missing, strict=True)]
    if "number" not in kinds:
        return number_column(np.array(cells, dtype=bool), missing)
    if all(issubclass(type_, (int, np.integer)) or kind_of(type_) != "number" for type_ in types):
        try:  # float64 would round integers beyond 2**53, and two categories could become one
            return number_column(np.array(cells, dtype=np.int64), missing)
        except OverflowError:
            pass
    return number_column(np.array([float(cell) for cell in cells], dtype=np.float64), missing)


CLOCKS = ("", "local", "utc")  # not dates; dates without and with a time zone
# Units of dates in seconds; 0: any number of microseconds.
RESOLUTIONS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1, "microsecond": 0}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ARROW_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
_DAY = 86400.0
_FIRST, _LAST = -62135596800.0, 253402300799.999999  # years 1 and 9999, between which dates can be formatted


def date_column(values: Array, clock: str = "local") -> NumberColumn:
    """Return a column of datetime64 values; NaT is missing."""
    if isinstance(values, np.ma.MaskedArray):
        masked, values = np.ma.getmaskarray(values), np.ma.getdata(values).copy()
        values[masked] = np.array("NaT", dtype=values.dtype)
    missing = np.isnat(values)
    unit = np.datetime_data(values.dtype)[0]
    if unit in ("Y", "M", "W", "D"):
        seconds: NDArray[np.float64] = values.astype("M8[D]").view(np.int64).astype(np.float64) * _DAY
    else:
        unit = {"h": "s", "m": "s"}.get(unit, unit if unit in _PER_SECOND else "us")
        seconds = _seconds(values.astype(f"M8[{unit}]").view(np.int64), _PER_SECOND[unit])
    return _dates(seconds, missing, clock)


def arrow_dates(values: NDArray[Any], missing: object, format_: str) -> NumberColumn:
    """Return a column of Arrow dates; the format string has their unit and time zone."""
    whole = np.asarray(values).astype(np.int64)
    absent = np.zeros(len(whole), dtype=bool) if missing is None else np.asarray(missing) != 0
    if format_ == "tdD":
        return _dates(whole.astype(np.float64) * _DAY, absent, "local")
    unit = "ms" if format_ == "tdm" else _ARROW_UNITS[format_[2]]
    has_zone = format_ != "tdm" and len(format_) > 4
    return _dates(_seconds(whole, _PER_SECOND[unit]), absent, "utc" if has_zone else "local")


def cells_to_dates(cells: list[Any], label: str) -> NumberColumn:
    """Return a column of dates and datetimes; None and NaT are missing."""
    aware = {cell.tzinfo is not None for cell in cells if isinstance(cell, datetime.datetime) and cell == cell}
    if len(aware) > 1:
        raise TypeError(f"{label} mixes dates with and without a time zone; use a time zone for all or none.")
    if aware == {True}:
        if any(not isinstance(cell, datetime.datetime) and not is_missing(cell) for cell in cells):
            raise TypeError(f"{label} mixes dates with and without a time zone; use a time zone for all or none.")
        cells = [cell.astimezone(datetime.UTC).replace(tzinfo=None) if not is_missing(cell) else None for cell in cells]
    values = np.array([np.datetime64(_for_numpy(cell), "us") for cell in cells], dtype="M8[us]")
    return date_column(values, "utc" if aware == {True} else "local")


def parse_dates(column: CodedColumn, clock: str, label: str, written: str = "") -> NumberColumn:
    """Parse strings such as ``2024-05-31`` or ``2024-05-31T12:00:00+02:00``, or of another format, as dates."""
    seconds = np.full(len(column.values) + 1, np.nan)
    for code in column.occurring_codes():
        seconds[code] = seconds_of(column.values[code], clock, label, written)
    return NumberColumn(seconds[column.codes], clock=clock)


def seconds_of(value: object, clock: str, label: str, written: str = "") -> float:
    """Return a date, datetime, datetime64 or string in seconds since 1970; NaN if it is missing.

    Strings are in ISO 8601 or in the format of the training file, as in `strptime`.
    """
    if isinstance(value, str):
        value = _date_of_text(value.strip(), label, written)
    if is_missing(value):
        return math.nan
    if not isinstance(value, (datetime.date, np.datetime64)):
        raise TypeError(f"{label} held dates at fit and holds {value!r} now; pass a date.")
    has_zone = isinstance(value, datetime.datetime) and value.tzinfo is not None
    if has_zone != (clock == "utc"):
        raise clock_error(label, "utc" if has_zone else "local")
    return float(cells_to_dates([value], label).values[0])


def _date_of_text(text: str, label: str, written: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        plain = written.replace("%S%.f", "%S.%f")  # as polars has it, where %B also reads short names
        for format_ in dict.fromkeys([plain, plain.replace("%B", "%b")] if written else []):
            with suppress(ValueError):
                return datetime.datetime.strptime(text, format_)
    known = f", or as in the training file ({written})" if written else ""
    raise ValueError(
        f"{label} held dates at fit and holds {text!r} now; write dates as in 2024-05-31 or 2024-05-31T12:30:00{known}."
    )


def clock_error(label: str, now: str) -> TypeError:
    """Return the error for dates that have a time zone if those at fit had none, or vice versa."""
    was, is_ = ("had a time zone", "have none") if now == "local" else ("had no time zone", "have one")
    return TypeError(f"{label}: dates {was} at fit and {is_} now; use dates like those at fit.")


def resolution_of(column: NumberColumn) -> str:
    """Return the longest unit of which all dates of a column are multiples."""
    known = column.values[~np.isnan(column.values)]
    return next(name for name, step in RESOLUTIONS.items() if step == 0 or not (known % step).any())


def date_text(
    seconds: float, resolution: str, clock: str = "local", *, above: bool = False, exact: bool = False
) -> str:
    """Format a date in the unit of its column, rounded down, or up if `above`; `exact`: in as fine a unit as needed."""
    if not math.isfinite(seconds):
        return {math.inf: "∞", -math.inf: "−∞"}.get(seconds, "missing")
    if exact:
        finer = list(RESOLUTIONS)[list(RESOLUTIONS).index(resolution) :]
        resolution = next(name for name in finer if RESOLUTIONS[name] == 0 or seconds % RESOLUTIONS[name] == 0)
    step = RESOLUTIONS[resolution]
    if step:
        seconds = (math.ceil if above else math.floor)(seconds / step) * step
    if not _FIRST <= seconds <= _LAST:
        return f"{seconds:.15g} s since 1970"
    date = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    if resolution == "day":
        return date.strftime("%Y-%m-%d")
    text = date.isoformat(" ", {"hour": "minutes", "minute": "minutes", "second": "seconds"}.get(resolution, "auto"))
    return f"{text} UTC" if clock == "utc" else text


def to_datetime64(seconds: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Convert seconds to dates, to the microsecond; NaN becomes NaT."""
    dates = np.full(len(seconds), np.datetime64("NaT", "us"), dtype="M8[us]")
    known = np.isfinite(seconds)
    whole = np.floor(seconds[known])
    ticks = whole.astype(np.int64) * 10**6 + np.rint((seconds[known] - whole) * 1e6).astype(np.int64)
    dates[known] = ticks.view("M8[us]")
    return dates


def cells_of(seconds: NDArray[np.float64], resolution: str, clock: str) -> list[Any]:
    """Convert seconds to datetimes, rounded to the unit of their column; to dates if that is a day."""
    step = RESOLUTIONS[resolution]
    dates: list[Any] = to_datetime64(np.rint(seconds / step) * step if step else seconds).tolist()
    if resolution == "day":
        return [None if date is None else date.date() for date in dates]
    if clock == "utc":
        return [None if date is None else date.replace(tzinfo=datetime.UTC) for date in dates]
    return dates


def _seconds(counts: NDArray[np.int64], per_second: int) -> NDArray[np.float64]:
    whole = counts // per_second
    rest = counts - whole * per_second
    if per_second > 10**6:
        rest, per_second = rest // (per_second // 10**6), 10**6
    return whole.astype(np.float64) + rest / per_second


def _dates(seconds: NDArray[np.float64], missing: NDArray[np.bool_], clock: str) -> NumberColumn:
    seconds[missing] = np.nan
    return NumberColumn(seconds, clock=clock)


def _for_numpy(cell: Any) -> Any:
    """Return a cell as NumPy accepts it: the datetime of a pandas Timestamp, the start of a period."""
    if is_missing(cell):
        return "NaT"
    if type(cell).__name__ == "Period":
        cell = cell.to_timestamp()
    return cell.to_pydatetime(warn=False) if hasattr(cell, "to_pydatetime") else cell
