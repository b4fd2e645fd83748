"""The first splits of every tree, as the user gives them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.cells import seconds_of
from spinney._data.feature import Feature
from spinney._estimator.parameters import column_index

_NO_CODES: tuple[int, ...] = ()
_KEYS = {"feature", "threshold", "categories", "left", "right"}


@dataclass(frozen=True)
class ForcedSplit:
    """A split, and the places of those of its sides in the list of all; 0: none, as the first is the root's."""

    feature: int
    threshold: float
    codes: tuple[int, ...]
    words: str
    left: int = 0
    right: int = 0

    def to_engine(self) -> tuple[int, float, list[int], int, int]:
        """Return it as the engine takes it."""
        return self.feature, self.threshold, list(self.codes), self.left, self.right


def read_forced_splits(given: Any, schema: Schema, max_depth: int | None, max_leaves: int | None) -> list[ForcedSplit]:
    """Return the splits, each after the one it hangs from."""
    if given is None:
        return []
    splits: list[ForcedSplit] = []
    depth = _add(given, schema, splits)
    if max_depth is not None and depth > max_depth:
        raise ValueError(f"forced_splits are {depth} deep, and max_depth={max_depth}. Raise it, or force fewer splits.")
    if max_leaves is not None and len(splits) >= max_leaves:
        raise ValueError(
            f"forced_splits make {len(splits) + 1} leaves, and trees have at most {max_leaves}. Raise max_leaf_nodes, "
            "or force fewer splits."
        )
    return splits


def _add(given: Any, schema: Schema, splits: list[ForcedSplit]) -> int:
    """Add a split and those below it; return how deep they go."""
    if not isinstance(given, Mapping) or "feature" not in given or ("threshold" in given) == ("categories" in given):
        raise ValueError(
            "forced_splits: a split is a dict of 'feature' and either 'threshold' or 'categories', and perhaps of the "
            f"splits on its 'left' and 'right'. Got {given!r}."
        )
    if unknown := given.keys() - _KEYS:
        raise ValueError(f"forced_splits: a split has no {sorted(unknown)[0]!r}. It has {', '.join(sorted(_KEYS))}.")
    at, column = len(splits), column_index(given["feature"], schema, "forced_splits")
    feature = schema.features[column]
    threshold, codes = 0.0, _NO_CODES
    if "threshold" in given:
        threshold = _threshold(given["threshold"], feature)
        words = f"column {feature.name!r} cannot be split at {given['threshold']!r}"
    else:
        codes = _codes(given["categories"], feature)
        words = f"column {feature.name!r} cannot be split by {list(given['categories'])!r}"
    splits.append(ForcedSplit(column, threshold, codes, words))
    places, depth = {"left": 0, "right": 0}, 0
    for side in ("left", "right"):
        if given.get(side) is not None:
            places[side] = len(splits)
            depth = max(depth, _add(given[side], schema, splits))
    splits[at] = replace(splits[at], left=places["left"], right=places["right"])
    return depth + 1


def _threshold(value: Any, feature: Feature) -> float:
    label = f"forced_splits: the threshold of column {feature.name!r}"
    if feature.kind == "category":
        raise ValueError(f"{label}: it holds categories. Give the 'categories' that go left.")
    if feature.kind == "ordered":
        if value not in feature.code_of:
            raise ValueError(f"{label} must be one of {', '.join(map(repr, feature.categories))}. Got {value!r}.")
        return float(feature.code_of[value])
    if feature.clock and not isinstance(value, Real):
        return float(seconds_of(value, feature.clock, label))
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(float(value)):
        raise ValueError(f"{label} must be a finite number. Got {value!r}.")
    return float(value)


def _codes(values: Any, feature: Feature) -> tuple[int, ...]:
    label = f"forced_splits: the categories of column {feature.name!r}"
    if feature.kind != "category":
        raise ValueError(f"{label}: it holds numbers. Give a 'threshold'.")
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{label} must be a list. Got {values!r}.")
    codes = set()
    for value in values:
        if value not in feature.code_of:
            raise ValueError(f"{label}: {value!r} does not occur in it. Name some that do.")
        codes.add(feature.code_of[value])
    if not 0 < len(codes) < len(feature.categories):
        raise ValueError(f"{label}: none or all of them go left. Name some that are to go left, and leave some.")
    return tuple(sorted(codes))


def check_forced(splits: list[ForcedSplit], tree: _engine.Tree, n_rows: int) -> None:
    """Refuse splits that a tree which had all rows could not make."""
    waiting, right = [(0, 0)], tree.children_right()
    while waiting:
        place, at = waiting.pop()
        split = splits[place]
        is_made = int(tree.feature[at]) == split.feature and (
            tree.left_categories(at) == list(split.codes) if split.codes else tree.threshold[at] == split.threshold
        )
        if not is_made:
            raise ValueError(
                f"forced_splits: {split.words}: fewer than min_samples_leaf rows ({n_rows}) would be on a side. Move "
                "it, or lower min_samples_leaf."
            )
        below = (split.left, at + 1), (split.right, int(right[at]))
        waiting += [(side, node) for side, node in below if side]
