"""Plain values as JSON that can stand inside an HTML page, the same text for the same values."""

from __future__ import annotations

import json
import math
from dataclasses import is_dataclass

import numpy as np

_DIGITS = 5
# A browser that reads HTML looks for these before it knows that it is inside JSON.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def to_json(value: object) -> str:
    """Encode nested dicts, lists, arrays, numbers and texts.

    Numbers keep five digits and what is not finite becomes null. No tag, comment or entity can begin in the text, so
    that a name out of the table stays a name.
    """
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, escaped in _UNSAFE.items():
        text = text.replace(letter, escaped)
    return text.encode("utf-8", "replace").decode("utf-8")  # half of a surrogate pair has no UTF-8


def plain(value: object) -> object:
    """Turn NumPy's types into Python's and shorten numbers."""
    if is_dataclass(value):
        return plain(vars(value))
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return short(float(value))
    return str(value)


def short(value: float, digits: int = _DIGITS) -> float | int | None:
    """Round to some digits; whole numbers without a point, None for what is not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
