"""What a branch asks of one column, and what is left of it when several branches ask.

Numbers, booleans and ordered categories are bounded by an interval ``lower < x ≤ upper`` (of positions in the order,
for the last); categories by a set of codes, in which the code after the last stands for values that did not occur at
fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature
from spinney._data.cells import date_text
from spinney._data.display import distinct_texts, elide, one_line, packed, strict_texts

# Category names shown before the rest is only counted.
MOST_NAMES = 5
_FEW_NAMES, _LINE = 3, 20  # names and letters in a line, where there is little room


def cut_texts(feature: Feature, cuts: Iterable[float], decimals: int | None, strict: bool) -> dict[float, str]:
    """Write the cuts of one column so that no two of them look alike; `strict`: what lies below goes left."""
    if not feature.clock:
        return (strict_texts if strict else distinct_texts)(cuts, decimals)
    at = {cut: math.nextafter(cut, math.inf) if strict else cut for cut in cuts}
    return {cut: date_text(s, feature.resolution, feature.clock, above=strict) for cut, s in at.items()}


@dataclass(frozen=True)
class Condition:
    """What a path through a tree asks of one column.

    Attributes
    ----------
    column : str
        Name of the column.
    kind : {"number", "boolean", "ordered", "category"}
    lower, upper : float
        A known number satisfies ``lower < x <= upper``; positions in the declared order for "ordered".
    codes : frozenset of int, or None
        Codes of the categories that satisfy it, for "category".
    missing : bool
        Whether a missing value satisfies it.
    """

    feature: Feature
    lower: float = -math.inf
    upper: float = math.inf
    codes: frozenset[int] | None = None
    missing: bool = True
    texts: tuple[tuple[float, str], ...] = ()  # how the bounds are written beside others
    strict: bool = False  # written x < c, as rpart cuts: each bound is the number before its c

    @property
    def column(self) -> str:
        """Name of the column."""
        return self.feature.name

    @property
    def kind(self) -> str:
        """Kind of the column."""
        return self.feature.kind

    @cached_property
    def allowed(self) -> frozenset[int]:
        """Codes, or positions in the order, that satisfy it."""
        if self.codes is not None:
            return self.codes
        n = 2 if self.kind == "boolean" else len(self.feature.categories)
        return frozenset(code for code in range(n) if self.lower < code <= self.upper)

    @property
    def categories(self) -> tuple[Any, ...] | None:
        """Categories that satisfy it; None for a number."""
        if self.kind == "number":
            return None
        if self.kind == "boolean":
            return tuple(bool(code) for code in sorted(self.allowed))
        return tuple(self.feature.categories[c] for c in sorted(self.allowed) if c < len(self.feature.categories))

    @property
    def accepts_known(self) -> bool:
        """Whether any known value satisfies it."""
        return self.lower < self.upper if self.kind == "number" else bool(self.allowed)

    @property
    def accepts_all_known(self) -> bool:
        """Whether every known value satisfies it."""
        if self.kind == "number":
            return self.lower == -math.inf and self.upper == math.inf
        n = 2 if self.kind == "boolean" else len(self.feature.categories)
        return len([code for code in self.allowed if code < n]) == n

    def __and__(self, other: Condition) -> Condition:
        codes = self.codes
        if codes is not None and other.codes is not None:
            codes = codes & other.codes
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        texts = tuple((bound, text) for bound, text in {*self.texts, *other.texts} if bound in (lower, upper))
        return Condition(self.feature, lower, upper, codes, self.missing and other.missing, texts, self.strict)

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which numbers (or codes) of a column satisfy it; NaN is missing."""
        absent = np.isnan(values)
        if self.codes is None:
            known = (values > self.lower) & (values <= self.upper)
        else:
            known = np.isin(values, sorted(self.codes))
        return np.where(absent, self.missing, known)

    def __str__(self) -> str:
        return self.describe()

    def describe(self, reach: Condition | None = None, *, show_missing: bool = True) -> str:
        """Say it in words.

        Parameters
        ----------
        reach : Condition, optional
            What the branches above leave of the column: what cannot come is not named.
        show_missing : bool, default=True
            Whether to say that missing values satisfy it.
        """
        name = one_line(self.column)
        if not self.accepts_known:
            return f"{name} is missing"
        phrase = self._phrase(lambda words: f"{name} {words}", reach, name)
        return phrase + (" (or missing)" if show_missing and self._may_be_missing(reach) else "")

    def answer(self, reach: Condition | None = None, *, show_missing: bool = True) -> list[str]:
        """Say it without the name of the column, in short lines."""
        if not self.accepts_known:
            return ["missing"]
        if self.kind == "category" and not self.accepts_all_known:
            lines = self._set_lines(reach)
        else:
            lines = [self._phrase(lambda words: words, reach, "").removeprefix("is ")]
        return lines + (["or missing"] if show_missing and self._may_be_missing(reach) else [])

    def _may_be_missing(self, reach: Condition | None) -> bool:
        return self.missing and (reach is None or reach.missing)

    def _phrase(self, say: Callable[[str], str], reach: Condition | None, name: str) -> str:
        if self.accepts_all_known:
            return say("is known") if not self.missing else say("is anything")
        if self.kind == "boolean":
            return say("is true" if 1 in self.allowed else "is false")
        if self.kind == "ordered":
            return self._ordered_phrase(say, name)
        if self.kind == "category":
            return say(self._set_words(reach))
        return self._interval(say, name, self._number(self.lower), self._number(self.upper))

    def _number(self, bound: float) -> str:
        return dict(self.texts).get(bound) or cut_texts(self.feature, [bound], None, self.strict)[bound]

    def _interval(self, say: Callable[[str], str], name: str, lower: str, upper: str) -> str:
        below, above = ("<", "≥") if self.strict else ("≤", ">")
        if self.lower == -math.inf:
            return say(f"{below} {upper}")
        if self.upper == math.inf:
            return say(f"{above} {lower}")
        return f"{lower} {'≤' if self.strict else '<'} {name} {below} {upper}"

    def _ordered_phrase(self, say: Callable[[str], str], name: str) -> str:
        names = [one_line(category) for category in self.feature.categories]
        first, last = min(self.allowed), max(self.allowed)
        if first == last:
            return say(f"is {names[first]}")
        if first == 0:
            return say(f"≤ {names[last]}")
        if last == len(names) - 1:
            return say(f"≥ {names[first]}")
        return f"{names[first]} ≤ {name} ≤ {names[last]}"

    def _named(self, reach: Condition | None) -> tuple[bool, list[int]]:
        """Return the codes to be named, and whether it is they that do not satisfy the condition."""
        possible = {c for c in range(len(self.feature.categories)) if reach is None or c in reach.allowed}
        chosen, others = sorted(self.allowed & possible), sorted(possible - self.allowed)
        if len(others) == 1 and len(chosen) > 2:
            return True, others
        if len(chosen) > MOST_NAMES and 1 < len(others) < len(chosen):
            return True, others
        return False, chosen

    def _set_words(self, reach: Condition | None) -> str:
        is_not, codes = self._named(reach)
        if not codes:
            return "is something else"
        names = [one_line(self.feature.categories[code]) for code in codes]
        if len(names) == 1:
            return f"is not {names[0]}" if is_not else f"is {names[0]}"
        shown = ", ".join(names[:MOST_NAMES])
        if len(names) > MOST_NAMES:
            shown = f"{{{shown}, …}} ({len(names)} of {len(self.feature.categories)} categories)"
        else:
            shown = f"{{{shown}}}"
        return f"not in {shown}" if is_not else f"in {shown}"

    def _set_lines(self, reach: Condition | None) -> list[str]:
        is_not, codes = self._named(reach)
        names = [elide(one_line(self.feature.categories[code]), _LINE) for code in codes] or ["something else"]
        names[0] = ("not " if is_not else "") + names[0]
        if len(names) <= _FEW_NAMES:
            return packed(names, _LINE)
        return [*packed([*names[:2], "…"], _LINE), f"({len(names)} of {len(self.feature.categories)})"]
