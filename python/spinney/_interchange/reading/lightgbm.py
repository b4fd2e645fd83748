"""Import of LightGBM models: Python objects, model.txt, or dictionaries and JSON of ``dump_model``.

LightGBM compares doubles: those up to the threshold go left. A split declares which values are missing: none (NaN then
counts as 0), NaN, or zero and NaN. Categories that a split lists go left; all others, and missing values, go right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._interchange.reading import entries
from spinney._interchange.reading.estimators import ImportedModel
from spinney._interchange.reading.nodes import Nodes, TreeSum, labels_of, links_of, schema_of
from spinney._model.file.container import model_file_errors, refuse

_LINKS = links_of("lightgbm")
_NEAR_ZERO = float(np.float32(1e-35))  # LightGBM treats numbers up to this size as zero
_MAX_CLASSES = 100_000


def from_lightgbm(model: object, *, num_iteration: int | None = None, classes: object = None) -> ImportedModel:
    """Import a LightGBM model: gradient boosting, DART, GOSS and random forests with any objective.

    Parameters
    ----------
    model : Booster, LGBMModel, dict, path, text, bytes or binary file
        A fitted model, the dictionary that its ``dump_model`` returns, or a file: text written by ``save_model``, or
        that dictionary as JSON. Pickles are not read.
    num_iteration : int, optional
        Number of rounds to import, from the first. None: those that LightGBM's ``predict`` uses, which is up to the
        best round after early stopping, else all.
    classes : array-like of shape (n_classes,), optional
        Class labels. None: those of the estimator, else 0, 1, …

    Returns
    -------
    ImportedClassifier or ImportedRegressor
        Predicts like LightGBM. Ranking models predict scores.

    See Also
    --------
    from_xgboost, from_sklearn : Other libraries.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.from_lightgbm("model.txt")  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    """
    if isinstance(model, dict):
        with model_file_errors("this model", "import", "it"):
            return _of_dict(model).tree_sum(num_iteration, classes).estimator()
    if entries.is_file(model):
        data, label = entries.read_bytes(model)
    else:
        entries.refuse_unfitted(model)
        booster = getattr(model, "booster_", model)
        if not hasattr(booster, "model_to_string"):
            raise TypeError(
                f"model must be a Booster or an estimator of LightGBM, or its file, not {type(model).__name__}."
            )
        data, label = booster.model_to_string(num_iteration=num_iteration).encode(), "this model"
        classes = getattr(model, "classes_", None) if classes is None else classes
    with model_file_errors(label, "import", "it"):
        return _parsed(data).tree_sum(num_iteration, classes).estimator()


def _parsed(data: bytes) -> _ModelFile:
    entries.expect(data, "LightGBM")
    if data.lstrip()[:1] == b"{":
        return _of_dict(entries.json_of(data))
    return _of_text(data)


@dataclass
class _ModelFile:
    """A parsed model: the entries of its head, and its trees."""

    objective: str
    n_columns: int
    n_scores: int
    names: Any
    is_mean: bool
    declared: dict[int, list[int]]  # values of categorical columns, by position
    pandas: Any  # categories of pandas' categorical columns, in order
    trees: Iterator[LightTree]
    of_pandas: list[int] | None = None  # positions of pandas' categorical columns; None: all categorical columns

    def tree_sum(self, num_iteration: int | None, classes: object) -> TreeSum:
        """Read the trees and the link."""
        words = self.objective.split()
        name = words[0] if words else ""
        options = dict(word.split(":", 1) for word in words[1:] if ":" in word)
        if name not in _LINKS:
            refuse(f"has an unknown objective, {name[:50]!r}. Supported are {', '.join(sorted(_LINKS))}.")
        link = _LINKS[name]
        if name == "regression" and "sqrt" in words:
            link = "signed_square"
        if name in ("binary", "multiclassova"):
            slope = entries.number(options.get("sigmoid", "1"), "sigmoid")
            link = f"separate {slope!r}" if link == "separate" else "logit" if slope == 1 else f"sigmoid {slope!r}"
        labels = None
        if name in ("binary", "multiclass", "multiclassova"):
            labels = labels_of(classes, 2 if name == "binary" else self.n_scores)
        light_trees = list(self.trees)
        if num_iteration is not None and num_iteration > 0:
            light_trees = light_trees[: num_iteration * self.n_scores]
        schema, codes = self.schema(light_trees)
        factor = self.n_scores / max(1, len(light_trees)) if self.is_mean else 1.0
        trees: list[list[_engine.Tree]] = [[] for _ in range(self.n_scores)]
        for t, tree in enumerate(light_trees):
            trees[t % self.n_scores].append(_tree(tree, t, schema, codes, factor))
        return TreeSum(schema, trees, np.zeros(self.n_scores), link, labels, "LightGBM", self.objective or "none")

    def schema(self, trees: list[LightTree]) -> tuple[Schema, dict[int, dict[int, int]]]:
        """Make the schema, and return the code of each value of categorical columns."""
        names = entries.names_of(self.names, self.n_columns)
        if names == [f"Column_{j}" for j in range(self.n_columns)]:  # LightGBM's default names
            names = None
        values = {j: set(listed) for j, listed in self.declared.items()}
        zero_missing: set[int] = set()
        other_missing: set[int] = set()
        for tree in trees:
            for column, listed in tree.categories():
                values.setdefault(column, set()).update(listed)
            zero, other = tree.columns_by_missing()
            zero_missing |= zero
            other_missing |= other
        if zero_missing & other_missing:
            refuse("treats zeros as missing in some splits of a column and not in others, which cannot be imported.")
        ordered = {j: sorted(known) for j, known in values.items() if known}
        labels: dict[int, tuple[Any, ...]] = {j: tuple(known) for j, known in ordered.items()}
        if self.pandas:
            ordered, labels = self.named_categories(ordered)
        codes = {j: {value: code for code, value in enumerate(known)} for j, known in ordered.items()}
        schema = schema_of(names, self.n_columns, labels, "other", (-_NEAR_ZERO, _NEAR_ZERO) if zero_missing else None)
        return schema, codes

    def named_categories(
        self, ordered: dict[int, list[int]]
    ) -> tuple[dict[int, list[int]], dict[int, tuple[Any, ...]]]:
        """Return the codes and the values of pandas' categorical columns."""
        if not isinstance(self.pandas, list) or any(not isinstance(known, list) for known in self.pandas):
            refuse("is damaged: its categories are not listed by column")
        columns = sorted(ordered) if self.of_pandas is None else self.of_pandas
        if len(columns) != len(self.pandas):
            refuse(
                "does not list the categories of every categorical column, because one is constant or was left out. "
                "Fit it with codes instead of categorical columns."
            )
        if ordered.keys() - set(columns):
            refuse("is damaged: a column of numbers is split on categories")
        every, labels = {}, {}
        for j, known in zip(columns, self.pandas, strict=True):
            if any(type(v) not in (str, int, float, bool) for v in known) or len(set(known)) < len(known):
                refuse(f"is damaged: the categories of column {j} are unusable")
            if len({isinstance(v, str) for v in known}) != 1 or max(ordered.get(j, []), default=0) >= len(known):
                refuse(f"is damaged: the categories of column {j} are unusable")
            every[j], labels[j] = list(range(len(known))), tuple(known)
        return every, labels


def _tree(tree: LightTree, t: int, schema: Schema, codes: dict[int, dict[int, int]], factor: float) -> _engine.Tree:
    """Make the engine's tree."""
    nodes = tree.nodes
    sets: dict[int, tuple[NDArray[Any], bool]] = {}
    for node, listed in tree.sets.items():
        code_of = codes[int(nodes.feature[node])]
        sets[node] = np.array(sorted(code_of[value] for value in listed), dtype=np.int64), False
    made = replace(nodes, value=nodes.value * factor if factor != 1.0 else nodes.value, sets=sets)
    return made.tree(schema.n_categories, t)


# ---- text -------------------------------------------------------------------------------------------------


def _of_text(data: bytes) -> _ModelFile:
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        refuse("is not a LightGBM model: it is neither text nor JSON")
    if not lines or lines[0].strip() != "tree":
        refuse("is not a LightGBM model. Pass a file written by its save_model.")
    starts = [i for i, line in enumerate(lines) if line.startswith("Tree=")]
    end = next((i for i, line in enumerate(lines) if line.startswith("end of trees")), None)
    if end is None or (starts and starts[-1] > end):
        refuse("is damaged: it is truncated")
    head = _pairs(lines[1 : starts[0] if starts else end])
    n_columns = entries.whole(head.get("max_feature_idx"), "max_feature_idx", 0, entries.MAX_COLUMNS) + 1
    ends = [*starts[1:], end] if starts else []
    blocks = (_pairs(lines[a + 1 : b]) for a, b in zip(starts, ends, strict=True))
    pandas = next((line.partition(":")[2] for line in lines[end:] if line.startswith("pandas_categorical:")), "null")
    try:
        named = json.loads(pandas)
    except (ValueError, RecursionError):
        refuse("is damaged: its categories are not listed by column")
    return _ModelFile(
        head.get("objective", ""),
        n_columns,
        entries.whole(head.get("num_tree_per_iteration"), "num_tree_per_iteration", 1, _MAX_CLASSES),
        head.get("feature_names", "").split(" ") if head.get("feature_names") else None,
        "average_output" in head,
        _declared(head.get("feature_infos", "").split(" "), n_columns),
        named,
        (text_tree(block, t, n_columns) for t, block in enumerate(blocks)),
        _columns_of_categories(lines[end:], n_columns),
    )


def _columns_of_categories(lines: list[str], n_columns: int) -> list[int] | None:
    """Return the columns declared as categorical in the parameters at the end of a file; None without a declaration."""
    parameter = next((line for line in lines if line.startswith("[categorical_feature:")), "")
    words = parameter.partition(":")[2].strip(" ]").split(",")
    if not parameter or not all(word.strip().isdigit() for word in words):
        return None
    return sorted({entries.whole(word.strip(), "categorical_feature", 0, n_columns - 1) for word in words})


def _pairs(lines: list[str]) -> dict[str, str]:
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines) if name.strip()}


def _declared(infos: list[str], n_columns: int) -> dict[int, list[int]]:
    """Return the values of categorical columns, which are separated by colons; ranges of numbers are in brackets."""
    found = {}
    for j, text in enumerate(infos[:n_columns]):
        if text in ("none", "") or text.startswith("["):
            continue
        values = [entries.whole(part, "feature_infos", -(2**31), 2**31 - 1) for part in text.split(":")]
        found[j] = [value for value in values if value >= 0]
    return found


# ---- dictionaries -----------------------------------------------------------------------------------------


def _of_dict(fields: dict[str, Any]) -> _ModelFile:
    n_columns = entries.whole(fields.get("max_feature_idx"), "max_feature_idx", 0, entries.MAX_COLUMNS) + 1
    names = entries.entry(fields, "feature_names", list)
    infos = fields.get("feature_infos", {})
    declared: dict[int, list[int]] = {}
    for j, name in enumerate(names[:n_columns]):
        info = infos.get(name) if isinstance(infos, dict) and isinstance(name, str) else None
        values = info.get("values") if isinstance(info, dict) else None
        if isinstance(values, list) and values:
            declared[j] = [v for v in (entries.whole(v, "values", -(2**31), 2**31 - 1) for v in values) if v >= 0]
    objective = fields.get("objective", "")
    trees = entries.entry(fields, "tree_info", list)
    return _ModelFile(
        objective if isinstance(objective, str) else "",
        n_columns,
        entries.whole(fields.get("num_tree_per_iteration"), "num_tree_per_iteration", 1, _MAX_CLASSES),
        names,
        bool(fields.get("average_output")),
        declared,
        fields.get("pandas_categorical"),
        (nested_tree(entries.entry(tree, "tree_structure", dict), t, n_columns) for t, tree in enumerate(trees)),
    )


_NONE, _ZERO, _NAN = 0, 1, 2  # which values are missing at a split
_KINDS = {"None": _NONE, "Zero": _ZERO, "NaN": _NAN}
_CATEGORY, _DEFAULT_LEFT = 1, 2  # bits of decision_type
_MAX_LEAVES = 2**24


@dataclass
class LightTree:
    """A tree: its nodes, the missing values of each split, and the categories that each split sends left."""

    nodes: Nodes
    missing: NDArray[np.int64]
    sets: dict[int, list[int]]

    def categories(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the column and the values of each category split."""
        for node, listed in self.sets.items():
            yield int(self.nodes.feature[node]), listed

    def columns_by_missing(self) -> tuple[set[int], set[int]]:
        """Return the columns of numbers whose zeros are missing values, and those whose zeros are not."""
        is_number = self.nodes.left >= 0
        is_number[list(self.sets)] = False
        is_zero = self.missing == _ZERO
        columns = self.nodes.feature
        return set(columns[is_number & is_zero].tolist()), set(columns[is_number & ~is_zero].tolist())


def text_tree(fields: dict[str, str], t: int, n_columns: int) -> LightTree:
    """Read a tree of a text file: splits come first, leaf k is child -k - 1."""
    if fields.get("is_linear", "0") not in ("0", "false"):
        refuse("has linear trees, which cannot be imported. Fit it with linear_tree=False.")
    n_leaves = entries.whole(fields.get("num_leaves"), "num_leaves", 1, _MAX_LEAVES)
    n = n_leaves - 1
    leaf = _numbers(fields, "leaf_value", n_leaves)
    count = _numbers(fields, "leaf_count", n_leaves) if fields.get("leaf_count") else np.ones(n_leaves)
    if n == 0:
        return _joined(np.empty((6, 0)), np.empty(0), leaf, count, np.zeros(0), {}, t)
    kind = _integers(fields, "decision_type", n, 0, 255)
    threshold = _numbers(fields, "threshold", n)
    sets = _bitsets(fields, kind, threshold, t)
    columns = _integers(fields, "split_feature", n, 0, n_columns - 1)
    children = [_integers(fields, side, n, -n_leaves, n - 1) for side in ("left_child", "right_child")]
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
    return entries.numbers(found, name, length)


def _integers(fields: dict[str, str], name: str, length: int, least: int, most: int) -> NDArray[np.int64]:
    return entries.integers(_numbers(fields, name, length), name, least, most)


def _bitsets(fields: dict[str, str], kind: NDArray[np.int64], threshold: Floats, t: int) -> dict[int, list[int]]:
    """Return the values that category splits send left: bitsets of 32-bit words, numbered by the threshold."""
    nodes = np.flatnonzero(kind & _CATEGORY)
    if len(nodes) == 0:
        return {}
    n_sets = entries.whole(fields.get("num_cat"), "num_cat", 0, _MAX_LEAVES)
    ends = _integers(fields, "cat_boundaries", n_sets + 1, 0, 2**31 - 1)
    n_words = len(fields.get("cat_threshold", "").split())
    words = _integers(fields, "cat_threshold", n_words, 0, 2**32 - 1).astype(np.uint32)
    place = entries.integers(threshold[nodes], "threshold", 0, n_sets - 1)
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
    waiting: list[tuple[Any, int, int]] = [(root, -1, 0)]  # a node, its parent and its side
    while waiting:
        node, parent, side = waiting.pop()
        if not isinstance(node, dict):
            refuse(f"is damaged: tree {t} lacks nodes")
        if parent >= 0:
            splits[parent][side] = -len(leaves) - 1 if "leaf_value" in node else len(splits)
        if "leaf_value" in node:
            if "leaf_coeff" in node:
                refuse("has linear trees, which cannot be imported. Fit it with linear_tree=False.")
            count = entries.number(node.get("leaf_count", 1), "leaf_count")
            leaves.append((entries.number(node["leaf_value"], "leaf_value"), count))
            continue
        at = len(splits)
        missing = _KINDS.get(node.get("missing_type", "None"))
        if missing is None:
            refuse(f"is damaged: tree {t} has an unknown missing_type")
        column = entries.whole(node.get("split_feature"), "split_feature", 0, n_columns - 1)
        count = entries.number(node.get("internal_count", 1), "internal_count")
        splits.append([0, 0, column, missing, 2 if node.get("default_left") else 0, count])
        gains.append(entries.number(node.get("split_gain", 0), "split_gain"))
        if node.get("decision_type") == "==":
            listed = str(node.get("threshold", "")).split("||")
            sets[at] = sorted({entries.whole(word, "threshold", 0, 2**31 - 1) for word in listed if word})
            thresholds.append(0.0)
        elif node.get("decision_type") == "<=":
            thresholds.append(entries.number(node.get("threshold"), "threshold"))
        else:
            refuse(f"is damaged: tree {t} has an unknown decision_type")
        waiting.append((entries.entry(node, "right_child", dict), at, 1))
        waiting.append((entries.entry(node, "left_child", dict), at, 0))
    leaf = np.array(leaves).reshape(-1, 2)
    every = np.array(splits, dtype=np.float64).reshape(-1, 6).T
    return _joined(every, np.array(thresholds), leaf[:, 0], leaf[:, 1], np.array(gains), sets, t)


def _joined(
    splits: Floats, threshold: Floats, leaf: Floats, count: Floats, gain: Floats, sets: dict[int, list[int]], t: int
) -> LightTree:
    """Concatenate splits and leaves.

    `splits` has rows for the two children, the column, the missing values, whether these go left, and the count.
    """
    n, n_leaves = splits.shape[1], len(leaf)
    left, right = (np.where(child < 0, n - child - 1, child).astype(np.int64) for child in splits[:2])
    column, missing, default_left, inner = splits[2:]
    if not np.isfinite(leaf).all() or np.isnan(threshold).any():
        refuse(f"is damaged: tree {t} holds impossible numbers")
    kind = missing.astype(np.int64)
    # without missing values NaN counts as 0; missing categories go right
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
