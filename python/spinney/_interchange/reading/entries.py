"""Files of other libraries: which library wrote them, checked entries, and Universal Binary JSON.

Nothing in a file is trusted. In UBJSON, as XGBoost writes it, a number is a one-letter marker and big-endian bytes.
Containers may declare their number of entries ("#") and their type ("$"); typed arrays of numbers become NumPy arrays.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from spinney._data.types import Floats
from spinney._model.file.container import Target, label_of, refuse

MAX_COLUMNS = 2**20
FileLike = Target | bytes | bytearray | memoryview


def read_bytes(model: FileLike) -> tuple[bytes, str]:
    """Return the bytes of a file, of bytes or of text, and a name for messages."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), "these bytes"
    if isinstance(model, str) and (model.startswith("{") or "\n" in model):
        return model.encode(), "this text"
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes(), label_of(model)
    data = model.read()
    if not isinstance(data, bytes):
        raise TypeError("The file is opened in text mode. Open it in binary mode: open(path, 'rb').")
    return data, label_of(model)


def is_file(model: object) -> TypeGuard[FileLike]:
    """Return whether an object is a path, bytes or a binary file."""
    return isinstance(model, (str, bytes, bytearray, memoryview)) or hasattr(model, "__fspath__") or _is_open(model)


def _is_open(model: object) -> bool:
    return hasattr(model, "read") and hasattr(model, "seek")


def json_of(data: bytes) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        refuse(f"is not valid JSON: {str(error)[:200]}")
    if not isinstance(found, dict):
        refuse("is damaged: it is not a JSON object")
    return found


def entry(fields: object, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return an entry of a JSON object; refuse it if it has the wrong type."""
    value = fields.get(name) if isinstance(fields, dict) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        refuse(f"is damaged: it lacks a usable {name!r}")
    return value


def whole(value: object, name: str, least: int, most: int) -> int:
    """Return an integer in a range; some libraries write numbers as text."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = int(value)
        except ValueError:
            refuse(f"is damaged: {name!r} is not an integer")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not least <= value <= most:
        refuse(f"is damaged: {name!r} is not an integer between {least} and {most}")
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
    """Return an array of numbers without NaN."""
    found = _array(values, name, length)
    if np.isnan(found).any():
        refuse(f"is damaged: {name!r} holds NaN")
    return found


def integers(values: object, name: str, least: int, most: int, length: int | None = None) -> NDArray[np.int64]:
    """Return an array of integers in a range."""
    found = _array(values, name, length)
    if not ((found >= least) & (found <= most) & (found == np.floor(found))).all():
        refuse(f"is damaged: {name!r} does not hold integers between {least} and {most}")
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
    """Return the column names; None if there are none."""
    if values is None or len(values) == 0:
        return None
    if not isinstance(values, list) or any(not isinstance(name, str) for name in values):
        refuse("is damaged: its column names are not strings")
    if len(values) != n_columns or len(set(values)) < n_columns:
        refuse("is damaged: its column names are not one distinct name per column")
    return values


# ---- UBJSON -------------------------------------------------------------------------------------------------

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_FORMATS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_MAX_DEPTH = 64


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n: int) -> bytes:
        if n < 0 or n > len(self.data) - self.at:
            refuse("is damaged: it is truncated")
        self.at += n
        return self.data[self.at - n : self.at]

    def marker(self) -> bytes:
        found = self.take(1)
        while found == b"N":  # no-op
            found = self.take(1)
        return found

    def peeks(self, mark: bytes) -> bool:
        if self.data[self.at : self.at + 1] == mark:
            self.at += 1
            return True
        return False

    def number(self, mark: bytes) -> Any:
        form = _FORMATS[mark]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def length(self, mark: bytes | None = None) -> int:
        mark = self.marker() if mark is None else mark
        if mark not in _FORMATS or mark in (b"d", b"D"):
            refuse("is damaged: a length is not an integer")
        n = int(self.number(mark))
        if n < 0 or n > len(self.data) - self.at:  # every entry takes at least one byte
            refuse("is damaged: a length is impossible")
        return n

    def text(self, mark: bytes | None = None) -> str:
        try:
            return self.take(self.length(mark)).decode()
        except UnicodeDecodeError:
            refuse("is damaged: it holds text that is not UTF-8")

    def value(self, mark: bytes, depth: int) -> Any:
        if mark in _FORMATS:
            return self.number(mark)
        if mark == b"S":
            return self.text()
        if mark == b"C":
            return chr(self.take(1)[0])
        if mark in (b"T", b"F"):
            return mark == b"T"
        if mark == b"Z":
            return None
        if depth >= _MAX_DEPTH:
            refuse("is damaged: it is nested too deeply")
        if mark == b"[":
            return self.array(depth + 1)
        if mark == b"{":
            return self.table(depth + 1)
        return refuse("is damaged: it holds an unknown type")

    def array(self, depth: int) -> Any:
        kind = self.marker() if self.peeks(b"$") else None
        if self.peeks(b"#"):
            n = self.length()
            if kind in _NUMBERS:
                dtype = np.dtype(_NUMBERS[kind])
                return np.frombuffer(self.take(n * dtype.itemsize), dtype=dtype).astype(dtype.newbyteorder("="))
            return [self.value(self._typed(kind), depth) for _ in range(n)]
        if kind is not None:
            refuse("is damaged: a typed array has no length")
        found = []
        while not self.peeks(b"]"):
            found.append(self.value(self.marker(), depth))
        return found

    def _typed(self, kind: bytes | None) -> bytes:
        if kind in (b"T", b"F", b"Z"):  # these take no bytes, so a short file could declare any number of them
            refuse("is damaged: an array has elements without bytes")
        return self.marker() if kind is None else kind

    def table(self, depth: int) -> dict[str, Any]:
        kind = self.marker() if self.peeks(b"$") else None
        found: dict[str, Any] = {}
        if self.peeks(b"#"):
            for _ in range(self.length()):
                name = self.text()
                found[name] = self.value(self._typed(kind), depth)
            return found
        while not self.peeks(b"}"):
            name = self.text(self.marker())
            found[name] = self.value(self.marker() if kind is None else kind, depth)
        return found


def parse_ubjson(data: bytes) -> Any:
    """Parse a UBJSON document.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    dict, list, str, number, bool or None
        Typed arrays of numbers as ndarrays.
    """
    reader = _Reader(data)
    return reader.value(reader.marker(), 0)


def is_ubjson(data: bytes) -> bool:
    """Return whether bytes are UBJSON: in JSON text, a brace is followed by a quoted name or a closing brace."""
    rest = data[1:64].lstrip()
    return data[:1] == b"{" and rest[:1] not in (b'"', b"}", b"")


# ---- which library wrote a file ---------------------------------------------------------------------------------


def _is_object(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{"


def _is_catboost(data: bytes) -> bool:
    return data[:4] == b"CBM1" or (_is_object(data) and b'"features_info"' in data)


def _is_treelite(data: bytes) -> bool:
    return _is_object(data) and b'"leaf_output_type"' in data


def _is_xgboost(data: bytes) -> bool:
    return b"learner" in data[:64] if is_ubjson(data) else _is_object(data) and b'"learner_model_param"' in data


def _is_lightgbm(data: bytes) -> bool:
    if not _is_object(data):
        return data[:5].split() == [b"tree"]
    return b'"tree_info"' in data and not _is_xgboost(data)  # XGBoost files also have this entry


_IS_FILE_OF: dict[str, Callable[[bytes], bool]] = {
    "CatBoost": _is_catboost,
    "treelite": _is_treelite,
    "XGBoost": _is_xgboost,
    "LightGBM": _is_lightgbm,
}


def library_of(data: bytes) -> str | None:
    """Return the library that wrote a file; None if it is unknown."""
    return next((library for library, is_file_of in _IS_FILE_OF.items() if is_file_of(data)), None)


def looks_pickled(data: bytes) -> bool:
    """Return whether bytes look like a pickle, possibly compressed."""
    return data[:1] == b"\x80" or data[:2] in (b"\x1f\x8b", b"x\x9c", b"x\x01", b"BZ") or data[:3] == b"\xfd7z"


def expect(data: bytes, library: str) -> None:
    """Refuse a pickle, since loading it runs code, and the file of another library."""
    if looks_pickled(data):
        refuse(
            f"is a pickle, and loading a pickle runs code. If you trust it, load it with {library} and pass the "
            f"object to spinney.from_{library.lower()}."
        )
    other = None if _IS_FILE_OF[library](data) else library_of(data)
    if other is not None:
        refuse(f"is a model of {other}. Use spinney.from_{other.lower()}.")


def refuse_unfitted(model: object) -> None:
    """Raise NotFittedError if an estimator is not fitted."""
    is_fitted = getattr(model, "__sklearn_is_fitted__", None) or getattr(model, "is_fitted", None)
    if callable(is_fitted) and not is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet. Call its fit first, then import it.")
