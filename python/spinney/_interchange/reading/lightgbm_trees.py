"""Single trees of LightGBM, from text and from dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._interchange.reading.entries import entry, integers, number, numbers, whole
from spinney._interchange.reading.nodes import Nodes
from spinney._model.file.container import refuse

Floats = NDArray[np.float64]
_NONE, _ZERO, _NAN = 0, 1, 2  # what a split takes for a missing value
_KINDS = {"None": _NONE, "Zero": _ZERO, "NaN": _NAN}
_CATEGORY, _DEFAULT_LEFT = 1, 2  # bits of decision_type
_MAX_LEAVES = 2**24


@dataclass
class LightTree:
    """The nodes of a tree, what each split takes for missing, and the values that splits of categories send left."""

    nodes: Nodes
    missing: NDArray[np.int64]
    sets: dict[int, list[int]]

    def categories(self) -> Iterator[tuple[int, list[int]]]:
        """Yield column and values of each split of categories."""
        for node, listed in self.sets.items():
            yield int(self.nodes.feature[node]), listed

    def columns_by_missing(self) -> tuple[set[int], set[int]]:
        """Columns of numbers whose zeros are missing values, and those whose zeros are not."""
        is_number = self.nodes.left >= 0
        is_number[list(self.sets)] = False
        is_zero = self.missing == _ZERO
        columns = self.nodes.feature
        return set(columns[is_number & is_zero].tolist()), set(columns[is_number & ~is_zero].tolist())


def text_tree(fields: dict[str, str], t: int, n_columns: int) -> LightTree:
    """Read a tree of a text file: splits come first, leaf k is child -k - 1."""
    if fields.get("is_linear", "0") not in ("0", "false"):
        refuse("has linear trees, which are not carried over. Fit it with linear_tree=False.")
    n_leaves = whole(fields.get("num_leaves"), "num_leaves", 1, _MAX_LEAVES)
    n = n_leaves - 1
    leaf = _numbers(fields, "leaf_value", n_leaves)
    count = _numbers(fields, "leaf_count", n_leaves) if fields.get("leaf_count") else np.ones(n_leaves)
    if n == 0:
        return _joined(np.empty((6, 0)), np.empty(0), leaf, count, np.zeros(0), {}, t)
    kind = integers(_numbers(fields, "decision_type", n), "decision_type", 0, 255)
    threshold = _numbers(fields, "threshold", n)
    sets = _bitsets(fields, kind, threshold, t)
    columns = integers(_numbers(fields, "split_feature", n), "split_feature", 0, n_columns - 1)
    children = [integers(_numbers(fields, side, n), side, -n_leaves, n - 1) for side in ("left_child", "right_child")]
    inner = _numbers(fields, "internal_count", n) if fields.get("internal_count") else np.ones(n)
    gain = _numbers(fields, "split_gain", n) if fields.get("split_gain") else np.zeros(n)
    splits = np.array([*children, columns, kind >> 2 & 3, kind & _DEFAULT_LEFT, inner])
    return _joined(splits, threshold, leaf, count, gain, sets, t)


def _numbers(fields: dict[str, str], name: str, length: int) -> Floats:
    words = fields.get(name, "").split()
    try:
        found = np.array(words, dtype=np.float64) if words else np.empty(0)
    except ValueError:
        refuse(f"is damaged: {name!r} does not hold numbers")
    return numbers(found, name, length)


def _bitsets(fields: dict[str, str], kind: NDArray[np.int64], threshold: Floats, t: int) -> dict[int, list[int]]:
    """Values that splits of categories send left: bits of 32-bit words, by the number that stands as threshold."""
    nodes = np.flatnonzero(kind & _CATEGORY)
    if len(nodes) == 0:
        return {}
    n_sets = whole(fields.get("num_cat"), "num_cat", 0, _MAX_LEAVES)
    ends = integers(_numbers(fields, "cat_boundaries", n_sets + 1), "cat_boundaries", 0, 2**31 - 1)
    n_words = len(fields.get("cat_threshold", "").split())
    words = integers(_numbers(fields, "cat_threshold", n_words), "cat_threshold", 0, 2**32 - 1).astype(np.uint32)
    place = integers(threshold[nodes], "threshold", 0, n_sets - 1)
    if (np.diff(ends) < 0).any() or ends[-1] > len(words) or len(set(place.tolist())) < len(place):
        refuse(f"is damaged: tree {t} lacks categories")
    found = {}
    for node, k in zip(nodes.tolist(), place.tolist(), strict=True):
        bits = np.unpackbits(words[ends[k] : ends[k + 1]].astype("<u4").view(np.uint8), bitorder="little")
        found[node] = np.flatnonzero(bits).tolist()
    return found


def nested_tree(root: dict[str, Any], t: int, n_columns: int) -> LightTree:
    """Read a tree of ``dump_model``: each split holds its children."""
    splits: list[list[float]] = []
    thresholds: list[float] = []
    gains: list[float] = []
    leaves: list[tuple[float, float]] = []
    sets: dict[int, list[int]] = {}
    waiting: list[tuple[Any, int, int]] = [(root, -1, 0)]  # a node, the place of its parent and the side it is on
    while waiting:
        node, parent, side = waiting.pop()
        if not isinstance(node, dict):
            refuse(f"is damaged: tree {t} lacks nodes")
        if parent >= 0:
            splits[parent][side] = -len(leaves) - 1 if "leaf_value" in node else len(splits)
        if "leaf_value" in node:
            if "leaf_coeff" in node:
                refuse("has linear trees, which are not carried over. Fit it with linear_tree=False.")
            count = number(node.get("leaf_count", 1), "leaf_count")
            leaves.append((number(node["leaf_value"], "leaf_value"), count))
            continue
        at = len(splits)
        missing = _KINDS.get(node.get("missing_type", "None"))
        if missing is None:
            refuse(f"is damaged: tree {t} takes unknown values for missing ones")
        column = whole(node.get("split_feature"), "split_feature", 0, n_columns - 1)
        count = number(node.get("internal_count", 1), "internal_count")
        splits.append([0, 0, column, missing, 2 if node.get("default_left") else 0, count])
        gains.append(number(node.get("split_gain", 0), "split_gain"))
        if node.get("decision_type") == "==":
            listed = str(node.get("threshold", "")).split("||")
            sets[at] = sorted({whole(word, "threshold", 0, 2**31 - 1) for word in listed if word})
            thresholds.append(0.0)
        elif node.get("decision_type") == "<=":
            thresholds.append(number(node.get("threshold"), "threshold"))
        else:
            refuse(f"is damaged: tree {t} decides in an unknown way")
        waiting.append((entry(node, "right_child", dict), at, 1))
        waiting.append((entry(node, "left_child", dict), at, 0))
    leaf = np.array(leaves).reshape(-1, 2)
    every = np.array(splits, dtype=np.float64).reshape(-1, 6).T
    return _joined(every, np.array(thresholds), leaf[:, 0], leaf[:, 1], np.array(gains), sets, t)


def _joined(
    splits: Floats, threshold: Floats, leaf: Floats, count: Floats, gain: Floats, sets: dict[int, list[int]], t: int
) -> LightTree:
    """Put splits and leaves into one row: splits first, then the leaves.

    `splits` has a row each for the children, the column, what is missing, whether that goes left, and the count.
    """
    n, n_leaves = splits.shape[1], len(leaf)
    left, right = (np.where(child < 0, n - child - 1, child).astype(np.int64) for child in splits[:2])
    column, missing, default_left, inner = splits[2:]
    if not np.isfinite(leaf).all() or np.isnan(threshold).any():
        refuse(f"is damaged: tree {t} holds impossible numbers")
    kind = missing.astype(np.int64)
    # NaN counts as 0 where it is not what is missing; categories that are missing go right
    missing_left = np.where(kind == _NONE, threshold >= 0, default_left != 0)
    missing_left[list(sets)] = False
    none = np.full(n_leaves, -1)
    nodes = Nodes(
        np.concatenate([left, none]),
        np.concatenate([right, none]),
        np.concatenate([column.astype(np.int64), none]),
        np.concatenate([threshold, np.zeros(n_leaves)]),
        np.concatenate([missing_left, none > 0]),
        np.concatenate([np.zeros(n), leaf]),
        np.concatenate([inner, count]),
        np.concatenate([inner, count]),
        np.concatenate([gain, np.zeros(n_leaves)]),
    )
    return LightTree(nodes, np.concatenate([kind, none]), sets)
