"""Conditions on single columns, their intersections, and the splits stored at the nodes of a tree.

A condition on numbers, booleans or ordered categories is an interval ``lower < x ≤ upper`` (of positions in the order,
for ordered categories). A condition on categories is a set of codes, in which the code after the last stands for
values that did not occur at fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature
from spinney._data.cells import date_text
from spinney._data.display import distinct_texts, elide, one_line, packed, strict_texts
from spinney._model.tree import FittedTree

MAX_NAMES = 5  # category names that are written out before the rest is only counted
_MAX_SHORT_NAMES, _LINE_LENGTH = 3, 20  # names, and letters per line, of the short form


def cut_texts(feature: Feature, cuts: Iterable[float], decimals: int | None, strict: bool) -> dict[float, str]:
    """Return distinct texts for the cuts of one column; `strict`: only values below a cut go left."""
    if not feature.clock:
        return (strict_texts if strict else distinct_texts)(cuts, decimals)
    at = {cut: math.nextafter(cut, math.inf) if strict else cut for cut in cuts}
    return {cut: date_text(s, feature.resolution, feature.clock, above=strict) for cut, s in at.items()}


def column_texts(
    features: tuple[Feature, ...], columns: NDArray[Any], cuts: NDArray[Any], decimals: int | None, strict: bool
) -> list[dict[float, str]]:
    """Return the texts of the cuts by column; `columns` has the column of each cut."""
    return [cut_texts(f, cuts[columns == j].tolist(), decimals, strict) for j, f in enumerate(features)]


@dataclass(frozen=True)
class Condition:
    """The condition of a path through a tree on one column.

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
    texts: tuple[tuple[float, str], ...] = ()  # of the bounds, distinct from those of other cuts of the column
    strict: bool = False  # written x < c, as in rpart: each bound is the number before its c

    @property
    def column(self) -> str:
        """Name of the column."""
        return self.feature.name

    @property
    def kind(self) -> str:
        """Kind of the column."""
        return self.feature.kind

    @property
    def n_codes(self) -> int:
        """Number of values that a column of booleans or categories can have."""
        return 2 if self.kind == "boolean" else len(self.feature.categories)

    @cached_property
    def allowed(self) -> frozenset[int]:
        """Codes, or positions in the order, that satisfy it."""
        if self.codes is not None:
            return self.codes
        return frozenset(code for code in range(self.n_codes) if self.lower < code <= self.upper)

    @property
    def categories(self) -> tuple[Any, ...] | None:
        """Categories that satisfy it; None for a number."""
        if self.kind == "number":
            return None
        names = (False, True) if self.kind == "boolean" else self.feature.categories
        return tuple(names[code] for code in sorted(self.allowed) if code < len(names))

    @property
    def accepts_known(self) -> bool:
        """Whether any known value satisfies it."""
        return self.lower < self.upper if self.kind == "number" else bool(self.allowed)

    @property
    def accepts_all_known(self) -> bool:
        """Whether every known value satisfies it."""
        if self.kind == "number":
            return self.lower == -math.inf and self.upper == math.inf
        return self.allowed.issuperset(range(self.n_codes))

    def __and__(self, other: Condition) -> Condition:
        codes = None if self.codes is None or other.codes is None else self.codes & other.codes
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        texts = tuple((bound, text) for bound, text in {*self.texts, *other.texts} if bound in (lower, upper))
        return Condition(self.feature, lower, upper, codes, self.missing and other.missing, texts, self.strict)

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which numbers (or codes) of a column satisfy it; NaN is missing."""
        if self.codes is None:
            is_inside = (values > self.lower) & (values <= self.upper)
        else:
            is_inside = np.isin(values, sorted(self.codes))
        return np.where(np.isnan(values), self.missing, is_inside)

    def __str__(self) -> str:
        return self.describe()

    def describe(self, reach: Condition | None = None, *, show_missing: bool = True) -> str:
        """Return the condition as a phrase.

        Parameters
        ----------
        reach : Condition, optional
            Condition of the branches above on the column: values that it excludes are not named.
        show_missing : bool, default=True
            Whether to mention that missing values satisfy it.
        """
        name = one_line(self.column)
        if not self.accepts_known:
            return f"{name} is missing"
        return self._phrase(name, reach) + (" (or missing)" if show_missing and self._may_be_missing(reach) else "")

    def short_lines(self, reach: Condition | None = None, *, show_missing: bool = True) -> list[str]:
        """Return the condition in short lines, without the name of the column."""
        if not self.accepts_known:
            return ["missing"]
        if self.kind == "category" and not self.accepts_all_known:
            lines = self._set_lines(reach)
        else:
            lines = [self._phrase("", reach).strip().removeprefix("is ")]
        return lines + (["or missing"] if show_missing and self._may_be_missing(reach) else [])

    def _may_be_missing(self, reach: Condition | None) -> bool:
        return self.missing and (reach is None or reach.missing)

    def _phrase(self, name: str, reach: Condition | None) -> str:
        if self.accepts_all_known:
            return f"{name} is anything" if self.missing else f"{name} is known"
        if self.kind == "boolean":
            return f"{name} is true" if 1 in self.allowed else f"{name} is false"
        if self.kind == "category":
            return f"{name} {self._set_phrase(reach)}"
        if self.kind == "ordered":
            return self._ordered_phrase(name)
        lower, upper = (None if math.isinf(bound) else self._bound_text(bound) for bound in (self.lower, self.upper))
        return _interval_phrase(name, lower, upper, ("≤", "<", "≥") if self.strict else ("<", "≤", ">"))

    def _bound_text(self, bound: float) -> str:
        return dict(self.texts).get(bound) or cut_texts(self.feature, [bound], None, self.strict)[bound]

    def _ordered_phrase(self, name: str) -> str:
        names = [one_line(category) for category in self.feature.categories]
        first, last = min(self.allowed), max(self.allowed)
        if first == last:
            return f"{name} is {names[first]}"
        upper = None if last == len(names) - 1 and first else names[last]
        return _interval_phrase(name, names[first] if first else None, upper, ("≤", "≤", "≥"))

    def _listed_codes(self, reach: Condition | None) -> tuple[bool, list[int]]:
        """Return whether to list the excluded categories, and the codes to list: the shorter of the two lists."""
        possible = {c for c in range(len(self.feature.categories)) if reach is None or c in reach.allowed}
        included, excluded = sorted(self.allowed & possible), sorted(possible - self.allowed)
        n, n_excluded = len(included), len(excluded)
        lists_excluded = (n_excluded == 1 and n > 2) or (n > MAX_NAMES and 1 < n_excluded < n)
        return (True, excluded) if lists_excluded else (False, included)

    def _set_phrase(self, reach: Condition | None) -> str:
        is_negated, codes = self._listed_codes(reach)
        if not codes:
            return "is something else"
        names = [one_line(self.feature.categories[code]) for code in codes]
        if len(names) == 1:
            return f"is not {names[0]}" if is_negated else f"is {names[0]}"
        shown = f"{'not ' * is_negated}in {{{', '.join(names[:MAX_NAMES])}"
        if len(names) <= MAX_NAMES:
            return f"{shown}}}"
        return f"{shown}, …}} ({len(names)} of {len(self.feature.categories)} categories)"

    def _set_lines(self, reach: Condition | None) -> list[str]:
        is_negated, codes = self._listed_codes(reach)
        names = [elide(one_line(self.feature.categories[code]), _LINE_LENGTH) for code in codes] or ["something else"]
        names[0] = ("not " if is_negated else "") + names[0]
        if len(names) <= _MAX_SHORT_NAMES:
            return packed(names, _LINE_LENGTH)
        return [*packed([*names[:2], "…"], _LINE_LENGTH), f"({len(names)} of {len(self.feature.categories)})"]


def _interval_phrase(name: str, lower: str | None, upper: str | None, signs: tuple[str, str, str]) -> str:
    """Return an interval as text; `signs` are those after the lower of two bounds, before an upper and a lower one."""
    if lower is None:
        return f"{name} {signs[1]} {upper}"
    return f"{name} {signs[2]} {lower}" if upper is None else f"{lower} {signs[0]} {name} {signs[1]} {upper}"


# ---- splits of nodes ---------------------------------------------------------------------------------------------

Sides = tuple[Condition, Condition]
_ROLES = ("split", "competitor", "surrogate")
_CATEGORY, _REVERSED = 1, 2  # the engine's flags of a split
_STOPS, _SURROGATES_UNUSED = 8, 16  # flags of a node: rows that no split can place stay; surrogates do not decide


def number_sides(
    feature: Feature, cut: float, texts: dict[float, str], strict: bool, missing: tuple[bool, bool] = (False, False)
) -> Sides:
    """Return the conditions left and right of a cut; `missing`: whether a missing value satisfies each."""
    text = ((cut, texts[cut]),)
    return (
        Condition(feature, upper=cut, missing=missing[0], texts=text, strict=strict),
        Condition(feature, lower=cut, missing=missing[1], texts=text, strict=strict),
    )


class StoredSplit(NamedTuple):
    """A stored split of a node: the primary split, a competitor, or a surrogate.

    `left` and `right` are the conditions of its sides; a value that satisfies neither is not placed. `measure` is the
    gain, or the agreement of a surrogate, and `adjusted` its agreement relative to the majority rule. `n` is the number
    of training rows with a value, or of those that a surrogate placed.
    """

    role: str
    column: int
    left: Condition
    right: Condition
    n: int
    measure: float
    adjusted: float

    def side(self, values: list[float]) -> int | None:
        """Return 0 if the row goes left, 1 if it goes right, None if the split cannot place it."""
        value = np.array([values[self.column]])
        return 0 if self.left.holds(value)[0] else 1 if self.right.holds(value)[0] else None

    @property
    def text(self) -> str:
        """Condition of the left side as a phrase."""
        return self.left.describe(show_missing=False)


class StoredSplits:
    """The splits that are stored at the nodes of a tree.

    Parameters
    ----------
    tree : FittedTree
    features : tuple of Feature
    decimals : int, optional
        Decimals of the cuts.
    strict : bool
        Whether only numbers below the cut go left, and not the cut itself.
    """

    def __init__(self, tree: FittedTree, features: tuple[Feature, ...], decimals: int | None, strict: bool) -> None:
        self._flags, self._features, self._decimals, self._strict = tree.engine.flags, features, decimals, strict
        self._arrays: dict[str, Any] = tree.splits or {}

    def of(self, node: int, role: str | None = None) -> list[StoredSplit]:
        """Return the splits of a node, the primary split first, then best first; empty if only it was stored."""
        begin, end = self._arrays["begin"][node : node + 2] if self._arrays else (0, 0)
        splits = [self._read(s) for s in range(begin, end)]
        return [split for split in splits if role in (None, split.role)]

    def surrogates(self, node: int) -> list[StoredSplit]:
        """Return the surrogates that place rows without a value in the split column."""
        return [] if self._flags[node] & _SURROGATES_UNUSED else self.of(node, "surrogate")

    def stops(self, node: int) -> bool:
        """Return whether rows that no split can place stay at the node."""
        return bool(self._flags[node] & _STOPS)

    def is_partial(self, node: int) -> bool:
        """Return whether the primary split of a node does not place all rows: surrogates do, or rows stay."""
        return self.stops(node) or bool(self.surrogates(node))

    @cached_property
    def _texts(self) -> list[dict[float, str]]:
        is_number = (self._arrays["flags"] & _CATEGORY) == 0
        columns, cuts = self._arrays["feature"][is_number], self._arrays["threshold"][is_number]
        return column_texts(self._features, columns, cuts, self._decimals, self._strict)

    def _read(self, s: int) -> StoredSplit:
        code, flags, j, count = (int(self._arrays[name][s]) for name in ("role", "flags", "feature", "count"))
        role = _ROLES[code]
        if flags & _CATEGORY:
            sides = self._set_sides(self._features[j], int(self._arrays["set"][s]))
        else:
            cut = float(self._arrays["threshold"][s])
            sides = number_sides(self._features[j], cut, self._texts[j], self._strict)
            sides = sides[::-1] if role == "surrogate" and flags & _REVERSED else sides
        return StoredSplit(
            role, j, *sides, count, float(self._arrays["improve"][s]), float(self._arrays["adjusted"][s])
        )

    def _set_sides(self, feature: Feature, start: int) -> Sides:
        """Read two sets of codes, each preceded by its length."""
        sets = self._arrays["sets"]
        middle = start + 1 + int(sets[start])
        left, right = sets[start + 1 : middle], sets[middle + 1 : middle + 1 + int(sets[middle])]
        return (
            Condition(feature, codes=frozenset(left.tolist()), missing=False),
            Condition(feature, codes=frozenset(right.tolist()), missing=False),
        )
