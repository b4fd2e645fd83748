"""Import of CatBoost models: Python objects, or JSON files; binary files if catboost is installed.

CatBoost rounds numbers to single precision; those above the border go right. All nodes of a level of a symmetric tree
have the same split; the first split of the file is the lowest bit of the leaf number. Categories are stored as hashes.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._interchange.reading import entries
from spinney._interchange.reading.estimators import ImportedModel
from spinney._interchange.reading.nodes import Nodes, TreeSum, labels_of, links_of, reach_of_singles, schema_of
from spinney._model.file.container import model_file_errors, refuse

_LINKS = links_of("catboost")
_MAX_DEPTH, _MAX_SCORES = 16, 10_000


def from_catboost(model: object, *, classes: object = None, categories: dict[Any, Any] | None = None) -> ImportedModel:
    """Import a CatBoost model: trees of any shape, on numeric columns and one-hot encoded categories.

    Parameters
    ----------
    model : CatBoost, path, bytes or binary file
        A fitted model, or its file: JSON written by ``save_model(..., format="json")`` or, if catboost is installed,
        its binary format. Pickles are not read.
    classes : array-like of shape (n_classes,), optional
        Class labels. None: those of the model.
    categories : dict, optional
        Values of categorical columns, by name or position. CatBoost stores only hashes of the values; those passed here
        must include all values that its splits use. Splits on target statistics of categories (CTR) cannot be imported:
        to avoid them, fit with ``one_hot_max_size`` above the number of categories.

    Returns
    -------
    ImportedClassifier or ImportedRegressor
        Predicts like CatBoost. Ranking models predict scores.

    See Also
    --------
    from_xgboost, from_lightgbm, from_sklearn : Other libraries.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.from_catboost("model.json")  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    """
    if entries.is_file(model):
        data, label = entries.read_bytes(model)
    elif hasattr(model, "save_model") and hasattr(model, "tree_count_"):
        entries.refuse_unfitted(model)
        data, label = b"", "this model"
    else:
        raise TypeError(f"model must be a fitted model of CatBoost, or its file, not {type(model).__name__}.")
    with model_file_errors(label, "import", "it"):
        if data[:4] == b"CBM1":
            model = _loaded(data)
        if not entries.is_file(model):
            data = _as_json(model)
        return _ModelFile(data, categories or {}).tree_sum(classes).estimator()


def _loaded(data: bytes) -> Any:
    try:
        library = import_module("catboost")
    except ImportError as error:
        raise ImportError(
            "Reading CatBoost's binary files needs catboost: pip install catboost, or save the model with "
            "format='json'."
        ) from error
    return library.CatBoost().load_model(blob=data)


def _refuse_columns(kind: str) -> NoReturn:
    refuse(f"has columns of {kind}, which cannot be imported. Fit it without them.")


def _as_json(model: BaseEstimator) -> bytes:
    """Return the JSON of CatBoost's exporter, which supports neither text nor embeddings."""
    if model.get_text_feature_indices():
        _refuse_columns("text")
    if model.get_embedding_feature_indices():
        _refuse_columns("embeddings")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        model.save_model(path, format="json")
        with open(path, "rb") as file:
            return file.read()


class _ModelFile:
    """A parsed model file."""

    def __init__(self, data: bytes, categories: dict[Any, Any]) -> None:
        entries.expect(data, "CatBoost")
        self.fields = entries.json_of(data)
        features = entries.entry(self.fields, "features_info", dict)
        for kind, words in (("text_features", "text"), ("embedding_features", "embeddings")):
            if features.get(kind):
                _refuse_columns(words)
        if features.get("ctrs"):
            refuse(
                "uses statistics of the target by category (CTR), which cannot be imported. Fit it with "
                "one_hot_max_size above the number of categories."
            )
        self.floats = _listed(features.get("float_features", []), "float_features")
        self.categoricals = _listed(features.get("categorical_features", []), "categorical_features")
        positions = {f["flat_feature_index"] for f in (*self.floats, *self.categoricals)}
        self.n_columns = len(positions)
        if positions != set(range(self.n_columns)) or not positions:
            refuse("is damaged: its columns are not numbered consecutively")
        self.categories = categories
        self.code_of: dict[int, dict[int, int]] = {}
        info = self.fields.get("model_info")
        self.info: dict[str, Any] = info if isinstance(info, dict) else {}

    def tree_sum(self, classes: object) -> TreeSum:
        """Read the trees, the start and the link."""
        loss = self.loss()
        scale_and_bias = entries.entry(self.fields, "scale_and_bias", list)
        if len(scale_and_bias) != 2:
            refuse("is damaged: it lacks a usable 'scale_and_bias'")
        scale = entries.number(scale_and_bias[0], "scale_and_bias")
        bias = scale_and_bias[1] if isinstance(scale_and_bias[1], list) else [scale_and_bias[1]]
        start = entries.numbers(bias, "scale_and_bias")
        n_scores = len(start)
        if not 1 <= n_scores <= _MAX_SCORES:
            refuse("is damaged: its number of start scores is wrong")
        link = _LINKS[loss]
        labels = None
        if loss in ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll"):
            labels = labels_of(classes if classes is not None else self.class_names(), max(2, n_scores))
        schema = self.schema()
        symmetric = self.fields.get("oblivious_trees")
        stored = entries.entry(self.fields, "trees" if symmetric is None else "oblivious_trees", list)
        trees: list[list[_engine.Tree]] = [[] for _ in range(n_scores)]
        for t, tree in enumerate(stored):
            shape, values = (self.nested if symmetric is None else self.symmetric)(tree, t, n_scores)
            for k in range(n_scores):
                nodes = replace(shape, value=values[:, k] * scale)
                nodes.gain = _gains(nodes)
                trees[k].append(nodes.tree(schema.n_categories, t))
        return TreeSum(schema, trees, start, link, labels, "CatBoost", loss)

    def loss(self) -> str:
        """Return the name of the loss."""
        parameters = self.info.get("params")
        loss = parameters.get("loss_function") if isinstance(parameters, dict) else None
        name = loss.get("type") if isinstance(loss, dict) else None
        if name not in _LINKS:
            refuse(f"has an unknown loss, {str(name)[:50]!r}. Supported are {', '.join(_LINKS)}.")
        return str(name)

    def class_names(self) -> Any:
        """Return the class labels; None if the file does not store them."""
        parameters = self.info.get("class_params")
        names = parameters.get("class_names") if isinstance(parameters, dict) else None
        if not isinstance(names, list) or not names:
            return None
        if len({type(name) for name in names}) != 1 or type(names[0]) not in (str, int, float, bool):
            refuse("is damaged: its class labels are unusable")
        return names

    # ---- columns -------------------------------------------------------------------------------------

    def schema(self) -> Schema:
        """Make the schema."""
        names: list[Any] = [None] * self.n_columns
        for feature in (*self.floats, *self.categoricals):
            names[feature["flat_feature_index"]] = feature.get("feature_id") or ""
        # columns without a name have their number as a name
        unnamed = all(name in ("", str(j)) for j, name in enumerate(names))
        labels = None if unnamed else entries.names_of(names, self.n_columns)
        categories: dict[int, tuple[Any, ...]] = {}
        for feature in self.categoricals:
            place = feature["flat_feature_index"]
            used = {_unsigned(value) for value in feature.get("values") or []}
            known = self.categories.get(names[place] or place, self.categories.get(place, ()))
            values = tuple(dict.fromkeys(known))
            hashes = [category_hash(value) for value in values]
            if used - set(hashes):
                column = repr(names[place] or place)
                refuse(
                    f"splits column {column} on categories, of which it stores only hashes. Pass their values, such as "
                    f"categories={{{column}: ['a', 'b']}}."
                )
            categories[place] = values
            self.code_of[feature["feature_index"]] = {found: code for code, found in enumerate(hashes)}
        return schema_of(labels, self.n_columns, categories, "other")

    # ---- trees ---------------------------------------------------------------------------------------

    def split(self, split: Any, t: int) -> tuple[int, float, bool, int | None]:
        """Return the column and threshold of a split, whether missing values go left, and the code of a category."""
        kind = entries.entry(split, "split_type", str)
        if kind == "FloatFeature":
            at = entries.whole(split.get("float_feature_index"), "float_feature_index", 0, entries.MAX_COLUMNS)
            feature = next((f for f in self.floats if f["feature_index"] == at), None)
            if feature is None:
                refuse(f"is damaged: tree {t} splits a column that does not exist")
            cut = float(reach_of_singles(entries.number(split.get("border"), "border"))[0])
            return feature["flat_feature_index"], cut, feature.get("nan_value_treatment") != "AsTrue", None
        if kind == "OneHotFeature":
            at = entries.whole(split.get("cat_feature_index"), "cat_feature_index", 0, entries.MAX_COLUMNS)
            code = self.code_of.get(at, {}).get(_unsigned(split.get("value")))
            if code is None:
                refuse(f"is damaged: tree {t} splits on a category that its column does not list")
            feature = next(f for f in self.categoricals if f["feature_index"] == at)
            return feature["flat_feature_index"], 0.0, True, code
        return refuse(
            f"splits on {kind[:50]!r}: statistics of the target by category (CTR), text and embeddings cannot be "
            "imported. Fit it with one_hot_max_size above the number of categories."
        )

    def symmetric(self, tree: Any, t: int, n_scores: int) -> tuple[Nodes, Floats]:
        """Read a symmetric tree, which has one split per level: level by level, then the leaves."""
        splits = tree.get("splits") if isinstance(tree, dict) else None
        splits = [] if splits is None else splits
        if not isinstance(splits, list) or len(splits) > _MAX_DEPTH:
            refuse(f"is damaged: tree {t} has no usable splits")
        depth = len(splits)
        n, n_leaves = 2**depth - 1, 2**depth
        leaf = entries.numbers(tree.get("leaf_values"), "leaf_values", n_leaves * n_scores).reshape(n_leaves, n_scores)
        stored = tree.get("leaf_weights")
        weight = entries.numbers(stored, "leaf_weights", n_leaves) if stored else np.ones(n_leaves)
        # the last split is the highest bit of a leaf number: with it as the root, leaves are in order
        of_level = [self.split(split, t) for split in reversed(splits)]
        level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
        left = 2 * np.arange(n) + 1
        none = np.full(n_leaves, -1)
        weights = [weight]
        for _ in range(depth):
            weights.insert(0, weights[0][::2] + weights[0][1::2])
        every = np.concatenate(weights)
        columns, cuts, missing_left, codes = zip(*of_level, strict=True) if of_level else ((), (), (), ())
        sets = {i: (np.array([codes[level[i]]]), True) for i in range(n) if codes[level[i]] is not None}
        nodes = Nodes(
            np.concatenate([left, none]),
            np.concatenate([left + 1, none]),
            np.concatenate([np.array(columns, dtype=np.int64)[level], none]),
            np.concatenate([np.array(cuts, dtype=np.float64)[level], np.zeros(n_leaves)]),
            np.concatenate([np.array(missing_left, dtype=bool)[level], none > 0]),
            np.zeros(n + n_leaves),
            every,
            np.rint(np.clip(every, 0, 2**31)),
            sets=sets,
        )
        return nodes, np.concatenate([np.zeros((n, n_scores)), leaf])

    def nested(self, root: object, t: int, n_scores: int) -> tuple[Nodes, Floats]:
        """Read a tree whose splits contain their children."""
        left: list[int] = []
        right: list[int] = []
        of_node: list[tuple[int, float, bool, int | None]] = []
        weight: list[float] = []
        value: list[Floats] = []
        waiting: list[tuple[Any, int, list[int]]] = [(root, -1, left)]
        while waiting:
            node, parent, side = waiting.pop()
            at = len(left)
            if parent >= 0:
                side[parent] = at
            left.append(-1)
            right.append(-1)
            if not isinstance(node, dict):
                refuse(f"is damaged: tree {t} lacks nodes")
            if "split" in node:
                of_node.append(self.split(node["split"], t))
                value.append(np.zeros(n_scores))
                weight.append(0.0)
                waiting += [(node.get("right"), at, right), (node.get("left"), at, left)]
                continue
            leaf = node.get("value")
            value.append(entries.numbers(leaf if isinstance(leaf, list) else [leaf], "value", n_scores))
            weight.append(entries.number(node.get("weight", 1.0), "weight"))
            of_node.append((-1, 0.0, False, None))
        columns, cuts, missing_left, codes = zip(*of_node, strict=True)
        every = np.array(weight)
        for node in range(len(left) - 1, -1, -1):  # children come after their parent
            if left[node] >= 0:
                every[node] = every[left[node]] + every[right[node]]
        nodes = Nodes(
            np.array(left),
            np.array(right),
            np.array(columns),
            np.array(cuts),
            np.array(missing_left),
            np.zeros(len(left)),
            every,
            np.rint(np.clip(every, 0, 2**31)),
            sets={i: (np.array([code]), True) for i, code in enumerate(codes) if code is not None},
        )
        return nodes, np.array(value)


def _gains(nodes: Nodes) -> Floats:
    """Return the decrease of the sum of squared deviations of the values by each split."""
    mean, gain = nodes.value.copy(), np.zeros(len(nodes.left))
    for node in range(len(mean) - 1, -1, -1):  # children come after their parent
        a, b = int(nodes.left[node]), int(nodes.right[node])
        if a < 0:
            continue
        both = nodes.weight[a] + nodes.weight[b]
        fraction = nodes.weight[a] / both if both > 0 else 0.5
        mean[node] = fraction * mean[a] + (1 - fraction) * mean[b]
        gain[node] = both * fraction * (1 - fraction) * (mean[a] - mean[b]) ** 2
    return gain


def _unsigned(value: object) -> int:
    return entries.whole(value, "value", -(2**31), 2**32 - 1) % 2**32


def _listed(features: object, name: str) -> list[dict[str, Any]]:
    """Return a list of columns, after checking their positions."""
    if not isinstance(features, list) or len(features) > entries.MAX_COLUMNS:
        refuse(f"is damaged: it lacks a usable {name!r}")
    for feature in features:
        for key in ("feature_index", "flat_feature_index"):
            entries.whole(entries.entry(feature, key, int), key, 0, entries.MAX_COLUMNS)
    return features


_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557  # fmt: skip
_ALL = 2**64 - 1


def category_hash(value: object) -> int:
    """Return CatBoost's hash of a category: 32 bits of the hash of its text."""
    return city_hash(str(value).encode()) & 0xFFFFFFFF


def city_hash(data: bytes) -> int:
    """Return the 64-bit CityHash of bytes."""
    n = len(data)
    if n <= 16:
        return _up_to_16(data)
    if n <= 32:
        return _up_to_32(data)
    if n <= 64:
        return _up_to_64(data)
    return _longer(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _turn(value: int, by: int) -> int:
    value &= _ALL
    return value if by == 0 else ((value >> by) | (value << (64 - by))) & _ALL


def _folded(value: int) -> int:
    value &= _ALL
    return value ^ (value >> 47)


def _of_two(low: int, high: int) -> int:
    factor = 0x9DDFEA08EB382D69
    a = ((low ^ high) * factor) & _ALL
    a ^= a >> 47
    b = ((high ^ a) * factor) & _ALL
    b ^= b >> 47
    return (b * factor) & _ALL


def _up_to_16(data: bytes) -> int:
    n = len(data)
    if n > 8:
        a, b = _word(data, 0), _word(data, n - 8)
        return _of_two(a, _turn(b + n, n)) ^ b
    if n >= 4:
        a = _word(data, 0, 4)
        return _of_two((n + (a << 3)) & _ALL, _word(data, n - 4, 4))
    if n > 0:
        y = data[0] + (data[n >> 1] << 8)
        z = n + (data[n - 1] << 2)
        return (_folded(y * _K2 ^ z * _K3) * _K2) & _ALL
    return _K2


def _up_to_32(data: bytes) -> int:
    n = len(data)
    a, b = _word(data, 0) * _K1 & _ALL, _word(data, 8)
    c, d = _word(data, n - 8) * _K2 & _ALL, _word(data, n - 16) * _K0 & _ALL
    low = (_turn(a - b, 43) + _turn(c, 30) + d) & _ALL
    return _of_two(low, (a + _turn(b ^ _K3, 20) - c + n) & _ALL)


def _up_to_64(data: bytes) -> int:
    n = len(data)
    z = _word(data, 24)
    a = (_word(data, 0) + (n + _word(data, n - 16)) * _K0) & _ALL
    b, c = _turn(a + z, 52), _turn(a, 37)
    a = (a + _word(data, 8)) & _ALL
    c = (c + _turn(a, 7)) & _ALL
    a = (a + _word(data, 16)) & _ALL
    vf, vs = (a + z) & _ALL, (b + _turn(a, 31) + c) & _ALL
    a = (_word(data, 16) + _word(data, n - 32)) & _ALL
    z = _word(data, n - 8)
    b, c = _turn(a + z, 52), _turn(a, 37)
    a = (a + _word(data, n - 24)) & _ALL
    c = (c + _turn(a, 7)) & _ALL
    a = (a + _word(data, n - 16)) & _ALL
    wf, ws = (a + z) & _ALL, (b + _turn(a, 31) + c) & _ALL
    r = _folded((vf + ws) * _K2 + (wf + vs) * _K0)
    return (_folded(r * _K0 + vs) * _K2) & _ALL


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, at + 8 * k) for k in range(4))
    a = (a + w) & _ALL
    b = _turn(b + a + z, 21)
    c = a
    a = (a + x + y) & _ALL
    b = (b + _turn(a, 44)) & _ALL
    return (a + z) & _ALL, (b + c) & _ALL


def _longer(data: bytes) -> int:
    n = len(data)
    x, y = _word(data, 0), _word(data, n - 16) ^ _K1
    z = _word(data, n - 56) ^ _K0
    v = _weak(data, n - 64, n, y)
    w = _weak(data, n - 32, n * _K1 & _ALL, _K0)
    z = (z + _folded(v[1]) * _K1) & _ALL
    x = _turn(z + x, 39) * _K1 & _ALL
    y = _turn(y, 33) * _K1 & _ALL
    at = 0
    for _ in range((n - 1) // 64):
        x = _turn(x + y + v[0] + _word(data, at + 16), 37) * _K1 & _ALL
        y = _turn(y + v[1] + _word(data, at + 48), 42) * _K1 & _ALL
        x ^= w[1]
        y ^= v[0]
        z = _turn(z ^ w[0], 33)
        v = _weak(data, at, v[1] * _K1 & _ALL, (x + w[0]) & _ALL)
        w = _weak(data, at + 32, (z + w[1]) & _ALL, y)
        z, x = x, z
        at += 64
    low = (_of_two(v[0], w[0]) + _folded(y) * _K1 + z) & _ALL
    return _of_two(low, (_of_two(v[1], w[1]) + x) & _ALL)
