"""Entries of other libraries' files, taken with care: nothing in them is trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.container import refuse
from spinney._model.file.disk import Target, label_of

Floats = NDArray[np.float64]
MAX_COLUMNS = 2**20
FileLike = Target | bytes | bytearray | memoryview


def read_bytes(model: FileLike) -> tuple[bytes, str]:
    """Return the bytes of a file, or bytes themselves, and what to call them."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), "these bytes"
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes(), label_of(model)
    data = model.read()
    if not isinstance(data, bytes):
        raise TypeError("The file is opened in text mode. Open it in binary mode: open(path, 'rb').")
    return data, label_of(model)


def is_file(model: object) -> TypeGuard[FileLike]:
    """Whether something is a path, bytes or a binary file."""
    return isinstance(model, (str, bytes, bytearray, memoryview)) or hasattr(model, "__fspath__") or _is_open(model)


def _is_open(model: object) -> bool:
    return hasattr(model, "read") and hasattr(model, "seek")


def json_of(data: bytes) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        refuse(f"is not sound JSON: {str(error)[:200]}")
    if not isinstance(found, dict):
        refuse("is damaged: it does not hold names and values")
    return found


def entry(fields: object, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return an entry of an object, if it has the right type."""
    value = fields.get(name) if isinstance(fields, dict) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        refuse(f"is damaged: it lacks a usable {name!r}")
    return value


def whole(value: object, name: str, least: int, most: int) -> int:
    """Return a whole number in a range; some libraries write numbers as text."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = int(value)
        except ValueError:
            refuse(f"is damaged: {name!r} is not a whole number")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not least <= value <= most:
        refuse(f"is damaged: {name!r} is not a whole number between {least} and {most}")
    return int(value)


def number(value: Any, name: str) -> float:
    """Return a finite number; some libraries write numbers as text."""
    try:
        found = float(value) if not isinstance(value, str) or len(value) <= 40 else np.nan
    except (TypeError, ValueError, OverflowError):
        found = np.nan
    if not abs(found) < np.inf or isinstance(value, bool):
        refuse(f"is damaged: {name!r} is not a finite number")
    return found


def numbers(values: object, name: str, length: int | None = None) -> Floats:
    """Return numbers that are not NaN, as an array."""
    found = _array(values, name, length)
    if np.isnan(found).any():
        refuse(f"is damaged: {name!r} holds what is not a number")
    return found


def integers(values: object, name: str, least: int, most: int, length: int | None = None) -> NDArray[np.int64]:
    """Return whole numbers in a range, as an array."""
    found = _array(values, name, length)
    if not ((found >= least) & (found <= most) & (found == np.floor(found))).all():
        refuse(f"is damaged: {name!r} does not hold whole numbers between {least} and {most}")
    return found.astype(np.int64)


def _array(values: object, name: str, length: int | None) -> Floats:
    if isinstance(values, np.ndarray):
        found = values.astype(np.float64)
    elif not isinstance(values, list):
        refuse(f"is damaged: it lacks a usable {name!r}")
    else:
        if any(type(value) not in (int, float, bool) for value in values):
            refuse(f"is damaged: {name!r} does not hold numbers")
        try:
            found = np.array(values, dtype=np.float64)
        except (OverflowError, ValueError):
            refuse(f"is damaged: {name!r} holds impossible numbers")
    if found.ndim != 1 or (length is not None and len(found) != length):
        refuse(f"is damaged: {name!r} has {found.size} entries, not {length}")
    return found


def names_of(values: Any, n_columns: int) -> list[str] | None:
    """Return the names of the columns; None if there are none."""
    if values is None or len(values) == 0:
        return None
    if not isinstance(values, list) or any(not isinstance(name, str) for name in values):
        refuse("is damaged: its columns have no usable names")
    if len(values) != n_columns or len(set(values)) < n_columns:
        refuse("is damaged: the names of its columns are not one for each")
    return values
