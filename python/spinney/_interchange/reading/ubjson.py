"""Universal Binary JSON, as XGBoost writes it.

Numbers have a marker of one letter and follow in big-endian order. Containers may say how many entries follow ("#")
and of which type ("$"); typed arrays of numbers become NumPy arrays.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from spinney._model.file.container import refuse

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
