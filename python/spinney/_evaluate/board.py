"""Results as text: tables of aligned columns, means with errors, p-values."""

from __future__ import annotations

import math
from collections.abc import Collection

from spinney._data.display import fixed


def align(rows: list[list[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return rows of cells as lines, columns flush right but those in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def with_error(value: float, error: float) -> str:
    """Write a mean with its standard error, to two digits of that."""
    if math.isnan(value):
        return "–"
    if math.isnan(error) or error <= 1e-9 * abs(value):
        return f"{value:.4g}"
    decimals = min(8, max(0, 1 - math.floor(math.log10(error))))
    return f"{fixed(value, decimals)} ± {fixed(error, decimals)}"


def p_text(p: float) -> str:
    """Write a p-value."""
    if math.isnan(p):
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def finite_or_none(value: object) -> object:
    """Return a value as JSON can hold it: None for a number that is not finite, a list for a tuple."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value
