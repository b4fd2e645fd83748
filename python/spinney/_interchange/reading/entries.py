"""Files of other libraries, taken with care: whose they are, their entries, and Universal Binary JSON.

Nothing in them is trusted. Numbers of UBJSON, as XGBoost writes it, have a marker of one letter and follow in
big-endian order. Containers may say how many entries follow ("#") and of which type ("$"); typed arrays of numbers
become NumPy arrays.
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

from spinney._model.file.container import Target, label_of, refuse

Floats = NDArray[np.float64]
MAX_COLUMNS = 2**20
FileLike = Target | bytes | bytearray | memoryview


def read_bytes(model: FileLike) -> tuple[bytes, str]:
    """Return the bytes of a file, or bytes or text themselves, and what to call them."""
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
            refuse("is damaged: it ends too soon")
        self.at += n
        return self.data[self.at - n : self.at]

    def marker(self) -> bytes:
        found = self.take(1)
        while found == b"N":  # says nothing
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
            refuse("is damaged: a length is not a whole number")
        n = int(self.number(mark))
        if n < 0 or n > len(self.data) - self.at:  # every entry takes a byte at least
            refuse("is damaged: a length is impossible")
        return n

    def text(self, mark: bytes | None = None) -> str:
        try:
            return self.take(self.length(mark)).decode()
        except UnicodeDecodeError:
            refuse("is damaged: it holds text that is no text")

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
        if kind in (b"T", b"F", b"Z"):  # they take no space: a few bytes could stand for any number of them
            refuse("is damaged: an array holds nothing")
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
    """Parse a document.

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
    """Whether bytes that begin with a brace are binary: in text a name in quotes follows, or the other brace."""
    rest = data[1:64].lstrip()
    return data[:1] == b"{" and rest[:1] not in (b'"', b"}", b"")


# ---- whose file it is ---------------------------------------------------------------------------------------


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
    return b'"tree_info"' in data and not _is_xgboost(data)  # which has such an entry too


_SIGNS: dict[str, Callable[[bytes], bool]] = {
    "CatBoost": _is_catboost,
    "treelite": _is_treelite,
    "XGBoost": _is_xgboost,
    "LightGBM": _is_lightgbm,
}


def library_of(data: bytes) -> str | None:
    """Return the library that seems to have written a file; None, if none of those that are known."""
    return next((library for library, is_its in _SIGNS.items() if is_its(data)), None)


def looks_pickled(data: bytes) -> bool:
    """Whether bytes look like a pickle, or like a compressed one."""
    return data[:1] == b"\x80" or data[:2] in (b"\x1f\x8b", b"x\x9c", b"x\x01", b"BZ") or data[:3] == b"\xfd7z"


def expect(data: bytes, library: str) -> None:
    """Refuse a pickle, since to read it is to run it, and the file of another library."""
    if looks_pickled(data):
        refuse(
            f"is a pickle, and to read one is to run the code in it. If you trust it, load it with {library} and pass "
            f"the object to spinney.from_{library.lower()}."
        )
    other = None if _SIGNS[library](data) else library_of(data)
    if other is not None:
        refuse(f"is a model of {other}. Use spinney.from_{other.lower()}.")


def refuse_unfitted(model: object) -> None:
    """Refuse an estimator that says it is not fitted."""
    is_fitted = getattr(model, "__sklearn_is_fitted__", None) or getattr(model, "is_fitted", None)
    if callable(is_fitted) and not is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet. Call its fit first, then import it.")
