"""What a branch asks of one column, and what is left of it when several branches ask; the splits stored at nodes.

Numbers, booleans and ordered categories are bounded by an interval ``lower < x ≤ upper`` (of positions in the order,
for the last); categories by a set of codes, in which the code after the last stands for values that did not occur at
fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature
from spinney._data.cells import date_text
from spinney._data.display import distinct_texts, elide, one_line, packed, strict_texts
from spinney._model.tree import FittedTree

# Category names shown before the rest is only counted.
MOST_NAMES = 5
_FEW_NAMES, _LINE = 3, 20  # names and letters in a line, where there is little room


def cut_texts(feature: Feature, cuts: Iterable[float], decimals: int | None, strict: bool) -> dict[float, str]:
    """Write the cuts of one column so that no two of them look alike; `strict`: what lies below goes left."""
    if not feature.clock:
        return (strict_texts if strict else distinct_texts)(cuts, decimals)
    at = {cut: math.nextafter(cut, math.inf) if strict else cut for cut in cuts}
    return {cut: date_text(s, feature.resolution, feature.clock, above=strict) for cut, s in at.items()}


def column_texts(
    features: tuple[Feature, ...], columns: NDArray[Any], cuts: NDArray[Any], decimals: int | None, strict: bool
) -> list[dict[float, str]]:
    """Write the cuts of each column; `columns` says which column each is of."""
    return [cut_texts(f, cuts[columns == j].tolist(), decimals, strict) for j, f in enumerate(features)]


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
        """Tell which numbers (or codes) of a column satisfy it; NaN is missing."""
        if self.codes is None:
            is_inside = (values > self.lower) & (values <= self.upper)
        else:
            is_inside = np.isin(values, sorted(self.codes))
        return np.where(np.isnan(values), self.missing, is_inside)

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
        return self._interval(say, name)

    def _number(self, bound: float) -> str:
        return dict(self.texts).get(bound) or cut_texts(self.feature, [bound], None, self.strict)[bound]

    def _interval(self, say: Callable[[str], str], name: str) -> str:
        lower = None if self.lower == -math.inf else self._number(self.lower)
        upper = None if self.upper == math.inf else self._number(self.upper)
        return _between(say, name, lower, upper, ("≤", "<", "≥") if self.strict else ("<", "≤", ">"))

    def _ordered_phrase(self, say: Callable[[str], str], name: str) -> str:
        names = [one_line(category) for category in self.feature.categories]
        first, last = min(self.allowed), max(self.allowed)
        if first == last:
            return say(f"is {names[first]}")
        upper = None if last == len(names) - 1 and first else names[last]
        return _between(say, name, names[first] if first else None, upper, ("≤", "≤", "≥"))

    def _named(self, reach: Condition | None) -> tuple[bool, list[int]]:
        """Return the codes to be named, and whether it is they that do not satisfy the condition."""
        possible = {c for c in range(len(self.feature.categories)) if reach is None or c in reach.allowed}
        chosen, others = sorted(self.allowed & possible), sorted(possible - self.allowed)
        n, n_others = len(chosen), len(others)
        are_others_few = (n_others == 1 and n > 2) or (n > MOST_NAMES and 1 < n_others < n)
        return (True, others) if are_others_few else (False, chosen)

    def _set_words(self, reach: Condition | None) -> str:
        is_not, codes = self._named(reach)
        if not codes:
            return "is something else"
        names = [one_line(self.feature.categories[code]) for code in codes]
        if len(names) == 1:
            return f"is not {names[0]}" if is_not else f"is {names[0]}"
        shown = f"{'not ' * is_not}in {{{', '.join(names[:MOST_NAMES])}"
        if len(names) <= MOST_NAMES:
            return f"{shown}}}"
        return f"{shown}, …}} ({len(names)} of {len(self.feature.categories)} categories)"

    def _set_lines(self, reach: Condition | None) -> list[str]:
        is_not, codes = self._named(reach)
        names = [elide(one_line(self.feature.categories[code]), _LINE) for code in codes] or ["something else"]
        names[0] = ("not " if is_not else "") + names[0]
        if len(names) <= _FEW_NAMES:
            return packed(names, _LINE)
        return [*packed([*names[:2], "…"], _LINE), f"({len(names)} of {len(self.feature.categories)})"]


def _between(
    say: Callable[[str], str], name: str, lower: str | None, upper: str | None, signs: tuple[str, str, str]
) -> str:
    """Write an interval, perhaps open at one end; signs: after its lower end, below a bound, above one."""
    if lower is None:
        return say(f"{signs[1]} {upper}")
    return say(f"{signs[2]} {lower}") if upper is None else f"{lower} {signs[0]} {name} {signs[1]} {upper}"


# ---- splits of nodes ---------------------------------------------------------------------------------------------

Sides = tuple[Condition, Condition]
_SURROGATE = 2  # the place of its name
_ROLES = ("split", "competitor", "surrogate")
_CATEGORY, _REVERSED = 1, 2  # the engine's flags of a split
_STOPS, _ALONE = 8, 16  # and of a node: rows that nothing places stay; surrogates do not decide


def number_sides(
    feature: Feature, cut: float, texts: dict[float, str], strict: bool, missing: tuple[bool, bool] = (False, False)
) -> Sides:
    """Return what is left and right of a cut; `missing`: whether a missing value satisfies them."""
    text = ((cut, texts[cut]),)
    return (
        Condition(feature, upper=cut, missing=missing[0], texts=text, strict=strict),
        Condition(feature, lower=cut, missing=missing[1], texts=text, strict=strict),
    )


class StoredSplit(NamedTuple):
    """A split of a node: its own, a competitor, or a surrogate.

    `left` and `right` are what it asks of its column; it cannot place a value that satisfies neither. `measure` is
    the gain, or a surrogate's agreement, and `adjusted` the part of the agreement beyond the larger side's. `n` counts
    the training rows with a value, or those that a surrogate placed.
    """

    role: str
    column: int
    left: Condition
    right: Condition
    n: int
    measure: float
    adjusted: float

    def side(self, values: list[float]) -> int | None:
        """0: the row goes left, 1: right, None: it has no value here."""
        value = np.array([values[self.column]])
        return 0 if self.left.holds(value)[0] else 1 if self.right.holds(value)[0] else None

    @property
    def text(self) -> str:
        """What goes left, in words."""
        return self.left.describe(show_missing=False)


class StoredSplits:
    """Reads the splits that are stored at the nodes of a tree.

    Parameters
    ----------
    tree : FittedTree
    features : tuple of Feature
    decimals : int, optional
        Decimals of the cuts.
    strict : bool
        Whether a number goes left if it lies below the cut, and not at it.
    """

    def __init__(self, tree: FittedTree, features: tuple[Feature, ...], decimals: int | None, strict: bool) -> None:
        self._flags, self._features, self._decimals, self._strict = tree.engine.flags, features, decimals, strict
        self._arrays: dict[str, Any] = tree.splits or {}

    def of(self, node: int, role: str | None = None) -> list[StoredSplit]:
        """Return the splits of a node, best first, its own before all; none where only the best was stored."""
        begin, end = self._arrays["begin"][node : node + 2] if self._arrays else (0, 0)
        splits = [self._read(s) for s in range(begin, end)]
        return [split for split in splits if role in (None, split.role)]

    def surrogates(self, node: int) -> list[StoredSplit]:
        """Return the surrogates that place rows without a value."""
        return [] if self._flags[node] & _ALONE else self.of(node, "surrogate")

    def stops(self, node: int) -> bool:
        """Whether rows that no split places stay at the node."""
        return bool(self._flags[node] & _STOPS)

    def is_partial(self, node: int) -> bool:
        """Whether the split of a node leaves rows to its surrogates or lets them stay."""
        return self.stops(node) or bool(self.surrogates(node))

    @cached_property
    def _texts(self) -> list[dict[float, str]]:
        is_number = (self._arrays["flags"] & _CATEGORY) == 0
        columns, cuts = self._arrays["feature"][is_number], self._arrays["threshold"][is_number]
        return column_texts(self._features, columns, cuts, self._decimals, self._strict)

    def _read(self, s: int) -> StoredSplit:
        role, flags, j, count = (int(self._arrays[name][s]) for name in ("role", "flags", "feature", "count"))
        if flags & _CATEGORY:
            sides = self._set_sides(self._features[j], int(self._arrays["set"][s]))
        else:
            cut = float(self._arrays["threshold"][s])
            sides = number_sides(self._features[j], cut, self._texts[j], self._strict)
            sides = sides[::-1] if role == _SURROGATE and flags & _REVERSED else sides
        measures = float(self._arrays["improve"][s]), float(self._arrays["adjusted"][s])
        return StoredSplit(_ROLES[role], j, *sides, count, *measures)

    def _set_sides(self, feature: Feature, at: int) -> Sides:
        """Read two sets of codes, each behind its length."""
        sets = self._arrays["sets"]
        middle = at + 1 + int(sets[at])
        left, right = sets[at + 1 : middle], sets[middle + 1 : middle + 1 + int(sets[middle])]
        return (
            Condition(feature, codes=frozenset(left.tolist()), missing=False),
            Condition(feature, codes=frozenset(right.tolist()), missing=False),
        )
