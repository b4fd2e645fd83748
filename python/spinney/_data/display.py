"""Formatting of numbers, names and tables as text, results as frames, warnings."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal

# Digits of a number that is not a short decimal, such as a random threshold.
_DIGITS = 5
_MOST_DIGITS = 12  # of a short decimal
_LONGEST_WHOLE = 1e21  # whole numbers up to here are written out
_MOST_NAMES = 8  # listed where no name is close
_MOST_ROWS = 30  # of a table in a notebook


def with_article(name: str) -> str:
    """Return the name of a class with its article, as in "an SVC" and "a OneClassSVM"."""
    return f"an {name}" if re.match("(?!One)[AEIOaeio]|SV", name) else f"a {name}"


def fixed(value: float, decimals: int) -> str:
    """Format a number with a fixed number of decimals, never as minus zero."""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text


def shortest(value: float, digits: int = _DIGITS) -> str:
    """Format a number with the fewest digits that represent it; with `digits` if it is not a short decimal.

    Digits before the point are never rounded, nor is a half: thresholds between integers lie there.
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "missing")
    value = float(value)
    size = abs(value)
    if size != 0 and (size >= 1e15 or size < 1e-4):
        return f"{value:.{digits}g}"
    if (2 * value).is_integer():
        return fixed(value, 0 if value.is_integer() else 1)
    most = max(0, digits - 1 - math.floor(math.log10(size)))
    for decimals in range(most):
        if abs(round(value, decimals) - value) <= 1e-7 * size:
            return fixed(value, decimals)
    return fixed(value, most)


def grouped(text: str, least: int = 1000) -> str:
    """Return a text with typographic minus signs, and with its numbers from `least` on in groups of digits."""

    def group(match: re.Match[str]) -> str:
        return f"{int(match[0]):,}" if int(match[0]) >= least else match[0]

    return re.sub(r"(?<![\d.])\d{4,}", group, re.sub(r"(?<!\w)-(?=[\d.])|(?<=\de)-(?=\d)", "−", text))


def thousands(text: str) -> str:
    """Return a number with its integer digits in groups of three: ``1,234.5``."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, rest = digits.partition(".")
    return f"{sign}{int(whole):,}{point}{rest}" if whole.isdigit() else text


def threshold_text(value: float, digits: int = _DIGITS) -> str:
    """Format a threshold so that it separates its adjacent values, if these have up to about ten digits.

    It is the mean of two of them and so, up to rounding, has few digits itself.
    """
    size = abs(value)
    if not math.isfinite(value) or size == 0:
        return shortest(value, digits)
    if size >= 1e15:
        return fixed(value, 1).removesuffix(".0") if size < _LONGEST_WHOLE else repr(value)
    for n in range(1, _MOST_DIGITS + 1):
        text = f"{value:.{n}g}"
        if abs(float(text) - value) <= 2 * math.ulp(value):
            return text if size < 1e-4 else fixed(value, max(0, n - 1 - math.floor(math.log10(size))))
    return shortest(value, digits)


def strict_texts(values: Iterable[float], decimals: int | None) -> dict[float, str]:
    """Format thresholds of one column for ``<``: as the next larger number, below which values go left."""
    thresholds = list(values)
    after = [math.nextafter(threshold, math.inf) for threshold in thresholds]
    texts = distinct_texts(after, decimals)
    return {threshold: texts[number] for threshold, number in zip(thresholds, after, strict=True)}


def distinct_texts(values: Iterable[float], decimals: int | None) -> dict[float, str]:
    """Format the thresholds of one column so that no two of them have the same text."""
    cuts = sorted(set(values))
    if decimals is not None:
        return {cut: fixed(cut, decimals) if math.isfinite(cut) else threshold_text(cut) for cut in cuts}
    for digits in range(_DIGITS, 17):
        texts = [threshold_text(cut, digits) for cut in cuts]
        if all(a != b for a, b in pairwise(texts)):
            return dict(zip(cuts, texts, strict=True))
    return {cut: repr(cut) for cut in cuts}


def percent(fraction: float) -> str:
    """Format a fraction in whole percent, but only 0 as 0% and only 1 as 100%."""
    if 0 < fraction < 0.01 - 1e-12:  # rounding must not turn 1% into less
        return "<1%"
    if 0.99 + 1e-12 < fraction < 1:
        return ">99%"
    return f"{fraction:.0%}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 row``, ``1,234 rows``, ``2 leaves``."""
    many = {"leaf": "leaves", "category": "categories"}.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else many}"


def for_terminal(text: str) -> str:
    """Return text whose control characters, which could command a terminal, are shown as escape sequences."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: object) -> str:
    """Return a name on one line, without unprintable characters."""
    return "".join(c if c.isprintable() else " " for c in " ".join(str(text).split()))


def elide(text: str, most: int) -> str:
    """Shorten a long name in the middle."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def packed(words: list[str], most: int) -> list[str]:
    """Return words separated by commas, in lines of at most `most` characters."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 2 + len(word) <= most:
            lines[-1] += f", {word}"
        else:
            lines[-1] += ","
            lines.append(word)
    return lines


Backend = Literal["pandas", "polars"]


def frame_of(columns: dict[str, list[Any]], backend: Backend | None) -> Any:
    """Return columns as a frame of the requested library, or of the one that is installed."""
    if backend not in ("pandas", "polars", None):
        raise ValueError(f"backend must be 'pandas', 'polars' or None, not {backend!r}.")
    if backend is None:
        backend = "pandas" if find_spec("pandas") is not None else "polars"
    try:
        if backend == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        import polars as pl

        return pl.DataFrame(columns, strict=False)
    except ImportError as error:
        raise ImportError("A frame needs pandas or polars: pip install pandas") from error


def html_table(cells: list[list[str]]) -> str:
    """Return rows of cells as an HTML table; the first row is the header."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells[1:])
    return f"<table><tr>{head}</tr>{body}</table>"


class ShownAsTable:
    """A result with `to_frame` that notebooks show as a table, below the first line of its text."""

    def _repr_html_(self) -> str:
        try:
            frame: Any = self.to_frame()  # type: ignore[attr-defined]
        except (ImportError, ValueError):  # no library of frames, or several outputs
            return f"<pre>{escape(str(self))}</pre>"
        names = list(frame.columns)
        rows = list(zip(*(frame[name] for name in names), strict=True))
        cells = [names, *([_cell(value) for value in row] for row in rows[:_MOST_ROWS])]
        more = f"<p>… {plural(len(rows), 'row')} in all</p>" if len(rows) > _MOST_ROWS else ""
        return f"<p>{escape(str(self).partition(chr(10))[0])}</p>{html_table(cells)}{more}"


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, Real) and not isinstance(value, Integral) else str(value)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the nearest caller outside of spinney."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "spinney":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def align(rows: list[list[str]], left: Collection[int] = (0,), gap: str = "  ") -> list[str]:
    """Return rows of cells as lines; columns are right-aligned except those in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def nearest_name(name: str, known: Collection[str], otherwise: str | None = None) -> str:
    """Return a sentence that suggests the closest known name, else another sentence, which lists the known names."""
    known = list(known)
    by_lower_case = {other.lower(): other for other in reversed(known)}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    if close:
        return f"Did you mean {by_lower_case[close[0]]!r}?"
    if otherwise is not None:
        return otherwise
    more = ", …" if len(known) > _MOST_NAMES else ""
    return f"It has: {', '.join(known[:_MOST_NAMES])}{more}."
