"""Attributes of an estimator ⇄ bytes with a checksum, which is verified before unpickling.

A pickle inside the pickle: one flipped bit in a pickled array can crash NumPy, so objects of spinney and NumPy are
unpickled only if the checksum matches. Even then NumPy's own unpickling is not used: arrays, scalars and random states
are rebuilt here from numbers and bytes whose sizes are checked, and the sealed bytes may name only plain types of
Python, and classes and functions of spinney. Everything else, such as functions of users, other objects of NumPy,
estimators of other libraries, and spinney's estimators, which have their checks, stays outside and is pickled by the
surrounding pickler.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from types import FunctionType
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.container import refuse

_PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, slice, object}
)
_SIMPLE = re.compile(r"[<>|]([biufcSU]\d+|[mM]8(\[\d*[a-zA-Z]+\])?)")  # dtypes without fields and objects
_RANDOM, _KEY_LENGTH = "MT19937", 624  # the bit generator of random states, and the numbers in its key
_Order = Literal["C", "F"]


def is_own(value: object) -> bool:
    """Return whether an object is an instance of a class of spinney."""
    return _package(type(value)) == "spinney"


def _package(thing: object) -> str:
    return str(getattr(thing, "__module__", None) or "builtins").partition(".")[0]


def _is_nameable(thing: object) -> bool:
    """Return whether the sealed bytes may name an object: a class or function of spinney, or a plain type."""
    return isinstance(thing, (type, FunctionType)) and (_package(thing) == "spinney" or thing in _PLAIN)


def _is_rebuilt(obj: Any) -> bool:
    """Return whether an object of NumPy can be rebuilt by the functions below."""
    if type(obj) is np.random.RandomState:
        return bool(obj.get_state(legacy=False)["bit_generator"] == _RANDOM)
    if type(obj) is not np.ndarray and not isinstance(obj, np.generic):
        return False
    is_simple = obj.dtype == object or _SIMPLE.fullmatch(obj.dtype.str) is not None
    return is_simple and obj.dtype.metadata is None


def _array(dtype: str, shape: tuple[int, ...], order: _Order, data: bytes) -> NDArray[Any]:
    """Rebuild an array of numbers, dates or text from its bytes."""
    kind = np.dtype(dtype) if _SIMPLE.fullmatch(dtype) else None
    if kind is None or kind.itemsize * math.prod(shape) != len(data):
        raise ValueError(f"an array of type {dtype!r} and shape {shape} has other bytes")
    return np.ndarray(shape, kind, data, order=order).copy(order)


def _objects(shape: tuple[int, ...], order: _Order, items: list[Any]) -> NDArray[Any]:
    """Rebuild an array of objects."""
    return np.fromiter(items, dtype=object, count=len(items)).reshape(shape, order=order)


def _scalar(dtype: str, data: bytes) -> Any:
    """Rebuild a scalar of NumPy."""
    return _array(dtype, (), "C", data)[()]


def _random_state(key: NDArray[Any], position: int, has_gauss: int, gauss: float) -> np.random.RandomState:
    """Rebuild a random state of NumPy's default bit generator."""
    if key.dtype != np.uint32 or key.shape != (_KEY_LENGTH,) or not 0 <= position <= _KEY_LENGTH:
        raise ValueError("a random state is impossible")
    state = np.random.RandomState(0)
    state.set_state((_RANDOM, key, position, has_gauss, gauss))
    return state


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, opaque: type) -> None:
        super().__init__(file, protocol=4)
        self.outside: list[Any] = []
        self._opaque = opaque
        self._places: dict[int, int] = {}

    def _is_inside(self, obj: Any) -> bool:
        kind = type(obj)
        if kind in _PLAIN or obj is None:
            return True
        if isinstance(obj, (type, FunctionType)):
            return _is_nameable(obj)
        package = _package(kind)
        return _is_rebuilt(obj) if package == "numpy" else package == "spinney" and not isinstance(obj, self._opaque)

    def persistent_id(self, obj: object) -> int | None:
        if self._is_inside(obj):
            return None
        if id(obj) not in self._places:
            self._places[id(obj)] = len(self.outside)
            self.outside.append(obj)
        return self._places[id(obj)]

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is np.ndarray:
            order: _Order = "F" if obj.flags.fnc else "C"
            if obj.dtype == object:
                return _objects, (obj.shape, order, obj.ravel(order).tolist())
            return _array, (obj.dtype.str, obj.shape, order, obj.tobytes(order))
        if isinstance(obj, np.generic):
            return _scalar, (obj.dtype.str, obj.tobytes())
        if type(obj) is np.random.RandomState:
            state = obj.get_state(legacy=False)
            return _random_state, (*state["state"].values(), state["has_gauss"], state["gauss"])
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, outside: list[Any]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid]

    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" or module.partition(".")[0] == "spinney":
            found = super().find_class(module, name)
            if _is_nameable(found):
                return found
        raise pickle.UnpicklingError(f"they may not name {module}.{name}")


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
    try:
        types = _Unpickler(file, []).load()
        if not isinstance(outside, list) or [type(obj).__qualname__ for obj in outside] != types:
            refuse("is damaged: its parameters or members have changed since it was pickled")
        return _Unpickler(file, outside).load()
    except (MemoryError, ValueError):  # a sentence, or turned into one
        raise
    except Exception as error:  # of classes whose attributes are damaged
        refuse(f"is damaged: its attributes cannot be unpickled ({error})")
