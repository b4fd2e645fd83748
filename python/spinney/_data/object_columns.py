"""Columns of Python objects and of strings: one pass over the cells finds their kind and their codes."""

from __future__ import annotations

import datetime
import decimal
import fractions
from typing import Any

import numpy as np

from spinney._data.columns import Array, CodedColumn, Column, NumberColumn, missing_column, number_column
from spinney._data.dates import cells_to_dates

_DATES = (datetime.date, np.datetime64)
_TIMES = (datetime.time, datetime.timedelta, np.timedelta64)
_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal, fractions.Fraction)
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}

TIME_REMEDY = "turn them into numbers first, such as seconds"


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
    """Tell whether one cell of a kind that may occur in a column is None, NaN, NA or NaT."""
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
            raise TypeError(f"{label} mixes dates and numbers; convert all of its values to one of them.")
        return cells_to_dates(cells, label)
    if kinds == {"missing"}:
        return missing_column(len(cells))
    return _read_numbers(cells, kinds, types)


def refuse_kinds(kinds: set[str], types: set[type], label: str) -> None:
    """Raise if a column holds cells that are neither numbers nor strings."""
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
