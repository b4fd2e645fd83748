"""Attributes of an estimator ⇄ bytes with a checksum, which is verified before unpickling.

A pickle inside the pickle: one flipped bit in a pickled array can crash NumPy, so objects of spinney and NumPy are
unpickled only if the checksum matches. Everything else, such as functions, estimators of other libraries, and spinney's
estimators, which have their checks, stays outside and is pickled by the surrounding pickler.
"""

from __future__ import annotations

import io
import pickle
from types import BuiltinFunctionType, FunctionType
from typing import Any
from zlib import crc32

from spinney._model.file.container import refuse

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset})
_INSIDE = frozenset({"builtins", "numpy", "spinney", "copyreg", "_codecs"})  # packages whose objects go inside


def is_own(value: object) -> bool:
    """Return whether an object is an instance of a class of spinney."""
    return _package(type(value)) == "spinney"


def _package(thing: object) -> str:
    return str(getattr(thing, "__module__", None) or "builtins").partition(".")[0]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, opaque: type) -> None:
        super().__init__(file, protocol=4)
        self.outside: list[Any] = []
        self._opaque = opaque
        self._places: dict[int, int] = {}

    def persistent_id(self, obj: object) -> int | None:
        kind = type(obj)
        if kind in _PLAIN:
            return None
        named = obj if isinstance(obj, (type, FunctionType, BuiltinFunctionType)) else kind
        if _package(named) in _INSIDE and not isinstance(obj, self._opaque):
            return None
        if id(obj) not in self._places:
            self._places[id(obj)] = len(self.outside)
            self.outside.append(obj)
        return self._places[id(obj)]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, outside: list[Any]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid]


def seal(value: object, opaque: type) -> tuple[bytes, list[Any]]:
    """Return a value as bytes, and the objects left outside: those of other packages and instances of `opaque`."""
    file = io.BytesIO()
    pickler = _Pickler(file, opaque)
    pickler.dump(value)
    types = [type(obj).__qualname__ for obj in pickler.outside]
    data = pickle.dumps(types, protocol=4) + file.getvalue()
    return crc32(data).to_bytes(4, "little") + data, pickler.outside


def unseal(data: object, outside: object) -> Any:
    """Return the value that `seal` turned into bytes; refuse bytes that changed."""
    if not isinstance(data, bytes) or len(data) < 5 or crc32(data[4:]) != int.from_bytes(data[:4], "little"):
        refuse("is damaged: its attributes do not match their checksum")
    file = io.BytesIO(data[4:])
    types = pickle.load(file)
    if not isinstance(outside, list) or [type(obj).__qualname__ for obj in outside] != types:
        refuse("is damaged: its parameters or members have changed since it was pickled")
    return _Unpickler(file, outside).load()
