"""Values ⇄ entries of a header: tables of fields, by which files are both written and read.

A `Field` declares one entry: its type, its bounds and, for arrays, its shape. `SavedState` is a table of fields.
Everything read is checked. Lengths and bounds may be names of values that the caller knows or that were read before:
the first array with a length "n_rows" defines it, and all others must have the same length.
"""

from __future__ import annotations

import base64
import math
import operator
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.container import MAX_EXPANSION, field, refuse

Known = dict[str, Any]
Size = int | str | None
Bound = float | str
_PACKED = frozenset({"bool", "uint8", "uint16", "uint32", "int32", "int64", "float64"})
_SMALL = 2**16  # bytes of an array that may be compressed to any size
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "least": operator.ge,
    "above": operator.gt,
    "most": operator.le,
    "below": operator.lt,
}


@dataclass(frozen=True)
class Field:
    """How a file stores one value.

    Attributes
    ----------
    write : callable
        From the value to JSON.
    read : callable
        From JSON to the value, given the key and the known lengths and bounds; refuses invalid entries.
    key : str
        Key in the header; empty: the name of the attribute.
    is_optional : bool
        Whether it is left out if it is None.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any, str, Known], Any]
    key: str = ""
    is_optional: bool = False


@dataclass(frozen=True)
class SavedState:
    """Entries of a header, by the names of attributes.

    Attributes
    ----------
    entry : str
        Key of the header entry that holds them; empty: the header itself.
    fields : dict of Field
        By name.
    """

    entry: str
    fields: Mapping[str, Field]

    def to_header(self, source: Any) -> dict[str, Any]:
        """Return the header entries of an object, or of a dict of attributes."""
        found = {}
        for name, one in self.fields.items():
            value = source.get(name) if isinstance(source, Mapping) else getattr(source, name)
            if value is not None or not one.is_optional:
                found[one.key or name] = one.write(value)
        return {self.entry: found} if self.entry else found

    def from_header(self, header: object, **known: Any) -> dict[str, Any]:
        """Return the attributes in a header, without those left out; `known` holds lengths and bounds."""
        entries = header if isinstance(header, dict) else refuse("is damaged: an entry is not a JSON object")
        if self.entry:
            entries = field(entries, self.entry, dict)
        found: dict[str, Any] = {}
        for name, one in self.fields.items():
            key = one.key or name
            if key in entries:
                found[name] = known[name] = one.read(entries[key], key, known)
            elif not one.is_optional:
                lack(key)
        return found


def saved_fields(**fields: Field) -> SavedState:
    """Return a table of fields that are entries of the header itself."""
    return SavedState("", fields)


def lack(key: str) -> NoReturn:
    """Refuse a header whose entry is missing or has the wrong type."""
    refuse(f"is damaged: its header lacks a usable {key!r}")


def optional(one: Field) -> Field:
    """Leave the entry out if the value is None."""
    return replace(one, is_optional=True)


def nullable(one: Field) -> Field:
    """Write null if the value is None."""
    return replace(
        one,
        write=lambda value: None if value is None else one.write(value),
        read=lambda value, name, known: None if value is None else one.read(value, name, known),
    )


# ---- single values ------------------------------------------------------------------------------------------


def _is_within(values: Any, bounds: Mapping[str, Bound], known: Known) -> bool:
    limits = {name: known[bound] if isinstance(bound, str) else bound for name, bound in bounds.items()}
    return all(bool(np.all(_COMPARISONS[name](values, limit))) for name, limit in limits.items())


def number(least: Bound = -math.inf, *, key: str = "", **bounds: Bound) -> Field:
    """Save a number; infinity, which JSON does not have, is written as "inf"."""
    limits = bounds | {"least": least}

    def read(value: Any, name: str, known: Known) -> float:
        found = math.inf if value == "inf" else value
        if type(found) not in (int, float) or found == -math.inf or not _is_within(found, limits, known):
            lack(name)
        return float(found)

    return Field(lambda value: "inf" if math.isinf(value) else float(value), read, key)


def score() -> Field:
    """Save a finite number, or NaN as null."""
    finite = number(below=math.inf)
    return Field(
        lambda value: float(value) if math.isfinite(value) else None,
        lambda value, name, known: math.nan if value is None else finite.read(value, name, known),
    )


def integer(*, key: str = "", **bounds: Bound) -> Field:
    """Save an integer."""

    def read(value: Any, name: str, known: Known) -> int:
        if type(value) is not int or not _is_within(value, bounds, known):
            lack(name)
        return int(value)

    return Field(int, read, key)


def flag() -> Field:
    """Save a boolean."""
    return Field(bool, lambda value, name, known: value if isinstance(value, bool) else lack(name))


def word(allowed: Collection[str], *, key: str = "") -> Field:
    """Save one of the allowed strings."""

    def read(value: Any, name: str, known: Known) -> str:
        if not isinstance(value, str) or value not in allowed:
            lack(name)
        return value

    return Field(str, read, key)


def text(longest: int | None = None, *, key: str = "") -> Field:
    """Save a string."""

    def read(value: Any, name: str, known: Known) -> str:
        if not isinstance(value, str) or (longest is not None and len(value) > longest):
            lack(name)
        return value

    return Field(str, read, key)


# ---- several values -----------------------------------------------------------------------------------------


def listed(one: Field, length: Size = None, *, key: str = "") -> Field:
    """Save a list of values of the same kind."""

    def read(value: Any, name: str, known: Known) -> list[Any]:
        if not isinstance(value, list):
            lack(name)
        _check_shape((len(value),), (length,), name, known)
        return [one.read(item, name, known) for item in value]

    return Field(lambda values: [one.write(value) for value in values], read, key)


def words(length: Size = None, *, key: str = "") -> Field:
    """Save a list of strings."""
    return listed(text(), length, key=key)


def table(state: SavedState, make: Callable[..., Any] = dict, *, key: str = "") -> Field:
    """Save an object or a dict as a nested table of fields."""
    return Field(state.to_header, lambda value, name, known: make(**state.from_header(value, **known)), key)


def _check_shape(found: tuple[int, ...], shape: tuple[Size, ...], name: str, known: Known) -> None:
    """Refuse another shape; record lengths that were not known before."""
    wanted = [
        known.setdefault(size, n) if isinstance(size, str) else size for size, n in zip(shape, found, strict=False)
    ]
    if len(found) != len(shape) or any(n is not None and n != m for n, m in zip(wanted, found, strict=True)):
        refuse(f"is damaged: its {name!r} has the wrong {'length' if len(shape) == 1 else 'shape'}")


def _checked(
    found: NDArray[Any], shape: tuple[Size, ...], name: str, known: Known, finite: bool, bounds: Mapping[str, Bound]
) -> NDArray[Any]:
    _check_shape(found.shape, shape, name, known)
    if (finite and not np.isfinite(found).all()) or not _is_within(found, bounds, known):
        refuse(f"is damaged: its {name!r} holds impossible numbers")
    return found


def array(dtype: str | tuple[str, ...], *shape: Size, finite: bool = True, key: str = "", **bounds: Bound) -> Field:
    """Save an array, compressed."""
    types = (dtype,) if isinstance(dtype, str) else dtype

    def read(value: Any, name: str, known: Known) -> NDArray[Any]:
        found = array_from_json(value, types, (None,) * len(shape), f"its {name!r}")
        return _checked(found, shape, name, known, finite, bounds)

    return Field(array_to_json, read, key)


def numbers(
    dtype: type = np.float64,
    *shape: Size,
    key: str = "",
    is_optional: bool = False,
    finite: bool = True,
    **bounds: Bound,
) -> Field:
    """Save an array of numbers as nested lists, one-dimensional without a shape; unless `finite`, NaN is null."""

    def write(values: Any) -> Any:
        array = np.asarray(values)
        return array.tolist() if finite else np.where(np.isfinite(array), array, None).tolist()  # type: ignore[call-overload]

    def read(value: Any, name: str, known: Known) -> NDArray[Any]:
        if not isinstance(value, list):
            lack(name)
        found = numbers_from_json(value, name, len(shape) or 1, finite)
        if issubclass(dtype, np.integer) and (found != np.floor(found)).any():
            refuse(f"is damaged: its {name!r} does not hold whole numbers")
        return _checked(found, shape or (None,), name, known, finite, bounds).astype(dtype)

    return Field(write, read, key, is_optional)


def bounds() -> Field:
    """Save a one-dimensional array of numbers as a list, with null for infinity."""

    def read(value: Any, name: str, known: Known) -> NDArray[np.float64]:
        if not isinstance(value, list) or any(type(one) not in (float, int, type(None)) for one in value):
            lack(name)
        return np.array([np.inf if one is None else float(one) for one in value])

    return Field(lambda values: [None if np.isinf(one) else float(one) for one in values], read)


def columns(*integers: str) -> Field:
    """Save an optional dict of columns of equal length; the named columns hold int64, all others float64."""

    def read(value: Any, name: str, known: Known) -> dict[str, NDArray[Any]]:
        if not isinstance(value, dict) or not value:
            lack(name)
        found = {}
        for key, column in value.items():
            dtype = "int64" if key in integers else "float64"
            n_axes = len(column["shape"]) if isinstance(column, dict) and isinstance(column.get("shape"), list) else 0
            found[str(key)] = array_from_json(column, (dtype,), (None,) * n_axes)
        if len({len(column) if column.ndim else 0 for column in found.values()} | {0}) != 2:
            refuse(f"is damaged: the columns of its {name!r} have different lengths")
        return found

    return Field(
        lambda table: {name: array_to_json(np.asarray(column)) for name, column in table.items()}, read, "", True
    )


# ---- arrays -------------------------------------------------------------------------------------------------


def array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    """Compress an array, at most to a size that files may expand from."""
    data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    packed = zlib.compress(data, 6)
    if len(data) > MAX_EXPANSION * len(packed) and len(data) > _SMALL:
        packer = zlib.compressobj(6, strategy=zlib.Z_HUFFMAN_ONLY)  # at least one bit per byte
        packed = packer.compress(data) + packer.flush()
    text = base64.b64encode(packed).decode("ascii")
    return {"type": array.dtype.name, "shape": list(array.shape), "data": text}


def array_from_json(
    fields: object, types: tuple[str, ...], shape: tuple[int | None, ...], which: str = "an array"
) -> NDArray[Any]:
    """Decompress an array, which must have one of the types and the shape; None is any length."""
    if not isinstance(fields, dict) or fields.get("type") not in _PACKED & set(types):
        refuse(f"is damaged: {which} is missing or has the wrong type")
    found, packed = fields.get("shape"), fields.get("data")
    if not isinstance(found, list) or any(type(n) is not int or n < 0 for n in found) or not isinstance(packed, str):
        refuse(f"is damaged: {which} has no shape or no data")
    if len(found) != len(shape) or any(n is not None and n != m for n, m in zip(shape, found, strict=True)):
        refuse(f"is damaged: {which} has the wrong shape")
    dtype = np.dtype(fields["type"]).newbyteorder("<")
    n_bytes = math.prod(found) * dtype.itemsize
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), n_bytes + 1)
    except (zlib.error, ValueError):
        refuse(f"is damaged: {which} cannot be decompressed")
    if len(data) != n_bytes:
        refuse(f"is damaged: {which} has the wrong number of bytes")
    return np.frombuffer(bytearray(data), dtype=dtype).astype(dtype.newbyteorder("="), copy=False).reshape(found)


def numbers_from_json(values: list[Any], name: str, n_axes: int = 1, finite: bool = True) -> NDArray[np.float64]:
    """Return nested lists of numbers as an array of at most `n_axes` dimensions; unless `finite`, null is NaN."""
    cells = np.array(values, dtype=object)
    allowed = (int, float) if finite else (int, float, type(None))
    if cells.ndim > n_axes or any(type(value) not in allowed for value in cells.ravel().tolist()):
        refuse(f"is damaged: its {name!r} does not hold numbers")
    found: NDArray[np.float64] = cells.astype(np.float64)
    if np.isinf(found).any() or (finite and np.isnan(found).any()):
        refuse(f"is damaged: its {name!r} holds impossible numbers")
    return found
