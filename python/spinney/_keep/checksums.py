"""Checksums of what is pickled beside the bytes of a model file: one number for each attribute of an estimator.

A value has the same checksum before and after it was pickled, by whatever pickler. Numbers, text, arrays, containers of
these and spinney's own objects are looked into. Of anything else only the type counts: it is foreign code that knows
best what it keeps. So do spinney's estimators, which check themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

_PLAIN = frozenset({type(None), bool, float, complex, str})


class Checksums:
    """Checksums of values, each array and object looked into once however often it occurs."""

    def __init__(self, opaque: type) -> None:
        self._opaque = opaque
        self._known: dict[int, int] = {}  # by id of arrays and objects that outlive this

    def named(self, name: str, value: Any) -> int:
        """Return the checksum of a value under a name."""
        if type(value) in _PLAIN:  # most parameters, and a pickle of an unfitted estimator takes no time
            return crc32(f"{name} {value!r}".encode())
        return self._joined(name, [self.of(value)])

    def of(self, value: Any) -> int:
        """Return the checksum of a value."""
        if type(value) in _PLAIN:
            return _tagged(type(value).__name__, repr(value).encode())
        if isinstance(value, np.ndarray) or is_own(value):
            if id(value) not in self._known:
                self._known[id(value)] = self._of_array(value) if isinstance(value, np.ndarray) else self._of_own(value)
            return self._known[id(value)]
        return self._of_other(value)

    def _of_other(self, value: Any) -> int:
        match value:
            case np.generic():
                return self._of_array(np.asarray(value))
            case int():
                return _tagged("int", hex(value).encode())
            case str():
                return self.of(str(value))
            case bytes() | bytearray():
                return _tagged("bytes", value)
            case list() | tuple():
                return self._joined("list", map(self.of, value))
            case set() | frozenset():
                return self._joined("set", sorted(map(self.of, value)))
            case dict():
                return self._joined("dict", (self.of(part) for item in value.items() for part in item))
            case np.random.RandomState():
                return self.of(value.get_state())
            case np.random.Generator():
                return self.of(value.bit_generator.state)
        return _tagged("type", type(value).__qualname__.encode())

    def _of_own(self, value: Any) -> int:
        name = _tagged("type", type(value).__qualname__.encode())
        return name if isinstance(value, self._opaque) else self._joined("own", [name, self.of(value.__getstate__())])

    def _of_array(self, array: Any) -> int:
        array = np.asarray(array)
        if array.dtype.kind in "OT":
            content = self.of(array.ravel().tolist())
        else:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            content = crc32(little.reshape(-1).view(np.uint8).data) if little.dtype.itemsize else 0
        return self._joined("array", [*map(self.of, array.shape), self.of(array.dtype.newbyteorder("<").str), content])

    @staticmethod
    def _joined(kind: str, numbers: Iterable[int]) -> int:
        return _tagged(kind, b"".join(number.to_bytes(4, "little") for number in numbers))


def _tagged(kind: str, content: bytes | bytearray) -> int:
    return crc32(content, crc32(kind.encode()))


def is_own(value: Any) -> bool:
    """Tell whether an object is an instance of a class of spinney."""
    return type(value).__module__.partition(".")[0] == "spinney"
