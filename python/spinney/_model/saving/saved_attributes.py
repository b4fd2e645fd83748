"""Fitted attributes ⇄ entries of a header: one table for each family says what its files hold beside the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.arrays import array_from_json, array_to_json, numbers_from_json
from spinney._model.file.container import field, refuse


@dataclass(frozen=True)
class SavedAttribute:
    """How files hold a fitted attribute.

    Attributes
    ----------
    write : callable
        From the attribute to what JSON can hold.
    read : callable
        Turns that back, given the key too; refuses what cannot be.
    key : str
        Key in the header; empty: the name of the attribute.
    is_optional : bool
        Whether a fit may leave it out.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]
    key: str = ""
    is_optional: bool = False


@dataclass(frozen=True)
class SavedState:
    """What the files of a family hold beside the model that predicts.

    Attributes
    ----------
    entry : str
        Entry of the header.
    attributes : dict of SavedAttribute
        By the names of the fitted attributes.
    """

    entry: str
    attributes: Mapping[str, SavedAttribute]

    def to_header(self, fitted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the header entry of fitted attributes."""
        found = {}
        for name, saved in self.attributes.items():
            if name in fitted:
                found[saved.key or name] = saved.write(fitted[name])
        return {self.entry: found}

    def from_header(self, header: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes of a header."""
        entry, found = field(header, self.entry, dict), {}
        for name, saved in self.attributes.items():
            key = saved.key or name
            if key in entry:
                found[name] = saved.read(entry[key], key)
            elif not saved.is_optional:
                _refuse(key)
        return found


def _refuse(key: str) -> NoReturn:
    refuse(f"is damaged: its header lacks a usable {key!r}")


def number(least: float = -math.inf, *, key: str = "") -> SavedAttribute:
    """Save a number, which may be infinite where `least` is finite: JSON has no such number, so that it is a word."""

    def read(value: Any, name: str) -> float:
        found = math.inf if value == "inf" else value
        if type(found) not in (int, float) or not found >= least:
            _refuse(name)
        return float(found)

    return SavedAttribute(lambda value: "inf" if math.isinf(value) else float(value), read, key)


def integer(*, key: str = "") -> SavedAttribute:
    """Save an integer."""

    def read(value: Any, name: str) -> int:
        if type(value) is not int:
            _refuse(name)
        return int(value)

    return SavedAttribute(int, read, key)


def word(known: Mapping[str, str], *, key: str = "") -> SavedAttribute:
    """Save one of some words."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in known:
            _refuse(name)
        return str(value)

    return SavedAttribute(str, read, key)


def words(*, key: str = "") -> SavedAttribute:
    """Save a list of strings."""

    def read(value: Any, name: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            _refuse(name)
        return value

    return SavedAttribute(list, read, key)


def numbers(dtype: type = np.float64, *, key: str = "", is_optional: bool = False) -> SavedAttribute:
    """Save an array of finite numbers, (n,), as a list."""

    def read(value: Any, name: str) -> NDArray[Any]:
        if not isinstance(value, list):
            _refuse(name)
        return numbers_from_json(value, name).astype(dtype)

    return SavedAttribute(lambda array: np.asarray(array).tolist(), read, key, is_optional)


def bounds() -> SavedAttribute:
    """Save an array of numbers, (n,), some of which may be infinite, as a list with None for these."""

    def read(value: Any, name: str) -> NDArray[np.float64]:
        if not isinstance(value, list) or any(type(one) not in (float, int, type(None)) for one in value):
            _refuse(name)
        return np.array([np.inf if one is None else float(one) for one in value])

    return SavedAttribute(lambda array: [None if np.isinf(one) else float(one) for one in array], read)


def columns(*integers: str) -> SavedAttribute:
    """Save a table, where there is one, as columns of one length; all but those named hold float64."""

    def read(value: Any, name: str) -> dict[str, NDArray[Any]]:
        if not isinstance(value, dict) or not value:
            _refuse(name)
        found = {}
        for key, column in value.items():
            dtype = "int64" if key in integers else "float64"
            n_axes = len(column["shape"]) if isinstance(column, dict) and isinstance(column.get("shape"), list) else 0
            found[str(key)] = array_from_json(column, (dtype,), (None,) * n_axes)
        if len({len(column) if column.ndim else 0 for column in found.values()} | {0}) != 2:
            refuse("is damaged: its cross-validation is unusable")
        return found

    return SavedAttribute(
        lambda table: {name: array_to_json(np.asarray(column)) for name, column in table.items()}, read, "", True
    )
