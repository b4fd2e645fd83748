"""Sizes of memory: numbers of bytes, and text such as ``2GB``."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def read_size(size: int | str, name: str) -> int:
    """Return a number of bytes; `name` is what the caller calls it."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", size.lower()) if isinstance(size, str) else None
    if found is None:
        raise ValueError(f"{name} must be a number of bytes, or text such as '500MB' or '2GB', not {size!r}.")
    number, unit, binary = found.groups()
    scale = _UNITS[unit]
    if binary and unit:
        scale = 1024 ** (" kmgt".index(unit))
    return max(1, round(float(number) * scale))
