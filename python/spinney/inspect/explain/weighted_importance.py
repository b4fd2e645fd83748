"""The splits that were weighed at the nodes of a tree: its own, its competitors, its surrogates."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spinney._data import Feature
from spinney._model.tree import FittedTree
from spinney.inspect.text.conditions import Condition, cut_texts

ROLES = ("split", "competitor", "surrogate")
_OWN, _COMPETITOR, _SURROGATE = range(3)
_CATEGORY, _REVERSED = 1, 2  # the engine's flags of a split
_STOPS, _ALONE = 8, 16  # and of a node: rows that nothing places stay; surrogates are not asked


class WeighedSplit(NamedTuple):
    """One of them.

    `left` and `right` are what it asks of its column; a value that satisfies neither tells it nothing. `measure` is
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


class WeighedSplits:
    """Reads the splits that were kept at the nodes.

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
        self._tree, self._features, self._decimals, self._strict = tree, features, decimals, strict
        self._arrays: dict[str, Any] | None = tree.splits

    def of(self, node: int) -> list[WeighedSplit]:
        """Return the splits of a node, its own first; none where only the best was kept."""
        if self._arrays is None:
            return []
        begin, end = self._arrays["begin"][node : node + 2]
        return [self._read(s) for s in range(begin, end)]

    def competitors(self, node: int) -> list[WeighedSplit]:
        """Return the runners-up of a node, best first."""
        return [split for split in self.of(node) if split.role == ROLES[_COMPETITOR]]

    def surrogates(self, node: int) -> list[WeighedSplit]:
        """Return the surrogates of a node, best first, whether they are asked or not."""
        return [split for split in self.of(node) if split.role == ROLES[_SURROGATE]]

    def asked(self, node: int) -> list[WeighedSplit]:
        """Return the surrogates that rows without a value go by."""
        return [] if self._flags[node] & _ALONE else self.surrogates(node)

    def stops(self, node: int) -> bool:
        """Whether rows that no split places stay at the node."""
        return bool(self._flags[node] & _STOPS)

    def is_partial(self, node: int) -> bool:
        """Whether the split of a node leaves rows to its surrogates or lets them stay."""
        return self.stops(node) or bool(self.asked(node))

    @property
    def has_surrogates(self) -> bool:
        """Whether any node has one."""
        return self._arrays is not None and bool((self._arrays["role"] == _SURROGATE).any())

    @cached_property
    def _flags(self) -> Any:
        return self._tree.engine.flags

    @cached_property
    def _texts(self) -> list[dict[float, str]]:
        assert self._arrays is not None
        numbers = (self._arrays["flags"] & _CATEGORY) == 0
        found = []
        for j in range(len(self._features)):
            cuts = self._arrays["threshold"][numbers & (self._arrays["feature"] == j)]
            found.append(cut_texts(self._features[j], cuts.tolist(), self._decimals, self._strict))
        return found

    def _read(self, s: int) -> WeighedSplit:
        arrays = self._arrays
        assert arrays is not None
        role, flags, j = int(arrays["role"][s]), int(arrays["flags"][s]), int(arrays["feature"][s])
        sides = self._sets(s, j) if flags & _CATEGORY else self._intervals(s, j)
        if role == _SURROGATE and flags & _REVERSED and not flags & _CATEGORY:
            sides = sides[::-1]
        numbers = float(arrays["improve"][s]), float(arrays["adjusted"][s])
        return WeighedSplit(ROLES[role], j, *sides, int(arrays["count"][s]), *numbers)

    def _intervals(self, s: int, j: int) -> tuple[Condition, Condition]:
        assert self._arrays is not None
        cut, feature = float(self._arrays["threshold"][s]), self._features[j]
        text = ((cut, self._texts[j][cut]),)
        return (
            Condition(feature, upper=cut, missing=False, texts=text, strict=self._strict),
            Condition(feature, lower=cut, missing=False, texts=text, strict=self._strict),
        )

    def _sets(self, s: int, j: int) -> tuple[Condition, Condition]:
        assert self._arrays is not None
        sets, at, found = self._arrays["sets"], int(self._arrays["set"][s]), []
        for _ in range(2):
            n = int(sets[at])
            codes = frozenset(sets[at + 1 : at + 1 + n].tolist())
            found.append(Condition(self._features[j], codes=codes, missing=False))
            at += 1 + n
        return found[0], found[1]
