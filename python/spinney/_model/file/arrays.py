"""Arrays of numbers ⇄ what JSON can hold: packed, with their type and shape."""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.container import refuse

_TYPES = frozenset({"bool", "uint8", "uint16", "uint32", "int32", "int64", "float64"})


def array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    """Pack an array."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    packed = base64.b64encode(zlib.compress(little.tobytes(), 6)).decode("ascii")
    return {"type": array.dtype.name, "shape": list(array.shape), "data": packed}


def array_from_json(fields: object, types: tuple[str, ...], shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Unpack an array of one of some types and of a shape, in which None stands for any length."""
    if not isinstance(fields, dict) or fields.get("type") not in _TYPES & set(types):
        refuse("is damaged: it lacks an array it should hold")
    found, packed = fields.get("shape"), fields.get("data")
    if not isinstance(found, list) or any(type(n) is not int or n < 0 for n in found) or not isinstance(packed, str):
        refuse("is damaged: an array has no shape or no data")
    if len(found) != len(shape) or any(n is not None and n != m for n, m in zip(shape, found, strict=True)):
        refuse("is damaged: an array has the wrong shape")
    dtype = np.dtype(fields["type"]).newbyteorder("<")
    n_bytes = math.prod(found) * dtype.itemsize
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(packed, validate=True), n_bytes + 1)
    except (zlib.error, ValueError):
        refuse("is damaged: an array cannot be unpacked")
    if len(data) != n_bytes:
        refuse("is damaged: an array is too short or too long")
    return np.frombuffer(data, dtype=dtype).astype(dtype.newbyteorder("=")).reshape(found)


def numbers_from_json(values: list[Any], name: str) -> NDArray[np.float64]:
    """Return a list of finite numbers as an array."""
    if any(type(value) not in (int, float) for value in values):
        refuse(f"is damaged: its {name!r} does not hold numbers")
    numbers = np.array(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        refuse(f"is damaged: its {name!r} holds impossible numbers")
    return numbers
