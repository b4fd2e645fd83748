"""Import of treelite models: Python objects, or JSON written by ``dump_as_json``.

Numbers are compared in the precision of the thresholds. Categories that a split lists go to the child that it names,
all others to the other child.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._interchange.reading import entries
from spinney._interchange.reading.estimators import ImportedModel
from spinney._interchange.reading.nodes import (
    Nodes,
    TreeSum,
    cuts_below_singles,
    labels_of,
    links_of,
    reach_of_singles,
    schema_of,
)
from spinney._model.file.container import model_file_errors, refuse

_LINKS = links_of("treelite")
_OF_CLASSES = ("kBinaryClf", "kMultiClf")
_MAX_SCORES = 10_000


def from_treelite(model: object, *, classes: object = None) -> ImportedModel:
    """Import a treelite model, and through it models of the libraries that treelite reads.

    Parameters
    ----------
    model : treelite.Model, path, bytes or binary file
        A model, or the JSON written by its ``dump_as_json``. Load binary checkpoints with
        ``treelite.Model.deserialize`` first.
    classes : array-like of shape (n_classes,), optional
        Class labels. None: 0, 1, …

    Returns
    -------
    ImportedClassifier or ImportedRegressor
        Predicts like ``treelite.gtil.predict``, up to the rounding of sums.

    See Also
    --------
    from_xgboost, from_lightgbm, from_sklearn, from_catboost : Direct import from these libraries.

    Examples
    --------
    >>> import spinney
    >>> import treelite  # doctest: +SKIP
    >>> spinney.from_treelite(treelite.Model.deserialize("model.tl"))  # doctest: +SKIP
    """
    if entries.is_file(model):
        data, label = entries.read_bytes(model)
    elif hasattr(model, "dump_as_json"):
        data, label = model.dump_as_json(pretty_print=False).encode(), "this model"
    else:
        raise TypeError(f"model must be a model of treelite, or its JSON, not {type(model).__name__}.")
    with model_file_errors(label, "import", "it"):
        return _ModelFile(data).tree_sum(classes).estimator()


class _ModelFile:
    """A parsed model file."""

    def __init__(self, data: bytes) -> None:
        entries.expect(data, "treelite")
        self.fields = entries.json_of(data)
        self.n_columns = entries.whole(self.fields.get("num_feature"), "num_feature", 1, entries.MAX_COLUMNS)
        self.is_single = self.fields.get("threshold_type") == "float32"
        self.trees = entries.entry(self.fields, "trees", list)
        n_targets = entries.whole(self.fields.get("num_target"), "num_target", 1, _MAX_SCORES)
        counts = entries.integers(self.fields.get("num_class"), "num_class", 1, _MAX_SCORES, n_targets)
        if n_targets > 1 and (counts > 1).any():
            refuse("has several classification targets, which cannot be imported.")
        self.n_classes, self.n_scores = int(counts[0]), max(n_targets, int(counts[0]))
        self.of_targets = n_targets > 1

    def tree_sum(self, classes: object) -> TreeSum:
        """Read the trees, the start and the link."""
        postprocessor = entries.entry(self.fields, "postprocessor", str)
        task = entries.entry(self.fields, "task_type", str)
        if postprocessor not in _LINKS or task == "kIsolationForest":
            refuse(
                f"has the postprocessor {postprocessor[:50]!r}, which cannot be imported. Supported are "
                f"{', '.join(_LINKS)}; for scikit-learn's estimators, use from_sklearn."
            )
        link = _LINKS[postprocessor]
        of_classes = task in _OF_CLASSES
        if link in ("sigmoid", "separate"):
            slope = entries.number(self.fields.get("sigmoid_alpha", 1.0), "sigmoid_alpha")
            link = f"{link} {slope!r}" if slope != 1 or link == "separate" else "logit"
        if link == "logit" and not of_classes:
            link = "logistic"
        if link == "identity" and self.n_scores == 1:
            of_classes = False
        labels = labels_of(classes, max(2, self.n_scores)) if of_classes else None
        schema, codes = self.schema()
        place = self.places()
        counts = np.bincount(np.concatenate(place), minlength=self.n_scores) if place else np.ones(self.n_scores)
        trees: list[list[_engine.Tree]] = [[] for _ in range(self.n_scores)]
        for t, (tree, scores) in enumerate(zip(self.trees, place, strict=True)):
            nodes, values = self.nodes(tree, t, len(scores), codes)
            for k, score in enumerate(scores):
                factor = 1.0 / counts[score] if self.fields.get("average_tree_output") is True else 1.0
                nodes.value = values[:, k] * factor
                trees[score].append(nodes.tree(schema.n_categories, t))
        start = entries.numbers(self.fields.get("base_scores"), "base_scores", self.n_scores)
        return TreeSum(schema, trees, start, link, labels, "treelite", f"{task}, {postprocessor}")

    def places(self) -> list[NDArray[np.int64]]:
        """Return the scores that each tree adds to: one, or all if its leaves hold vectors."""
        name = "target_id" if self.of_targets else "class_id"
        of_tree = entries.integers(self.fields.get(name), name, -1, self.n_scores - 1, len(self.trees))
        return [np.arange(self.n_scores) if k < 0 else np.array([k]) for k in of_tree]

    def schema(self) -> tuple[Schema, dict[int, dict[int, int]]]:
        """Make the schema, and return the code of each category that a split lists."""
        known: dict[int, set[int]] = {}
        for tree in self.trees:
            for node in entries.entry(tree, "nodes", list):
                if isinstance(node, dict) and node.get("node_type") == "categorical_test_node":
                    column = entries.whole(node.get("split_feature_id"), "split_feature_id", 0, self.n_columns - 1)
                    listed = entries.integers(node.get("category_list"), "category_list", 0, 2**31 - 1)
                    known.setdefault(column, set()).update(listed.tolist())
        values = {j: tuple(sorted(found)) for j, found in known.items()}
        if any(not found for found in values.values()):
            refuse("is damaged: a split lists no category")
        codes = {j: {value: code for code, value in enumerate(found)} for j, found in values.items()}
        return schema_of(None, self.n_columns, values, "other"), codes

    def nodes(self, tree: object, t: int, width: int, codes: dict[int, dict[int, int]]) -> tuple[Nodes, Floats]:
        """Return the nodes of a tree and the values of its leaves."""
        stored = entries.entry(tree, "nodes", list)
        n = len(stored)
        number_of = {entries.entry(node, "node_id", int): i for i, node in enumerate(stored)}
        if len(number_of) != n or n == 0 or number_of.get(0) != 0:
            refuse(f"is damaged: tree {t} has no usable node numbers")
        left, right, feature = (np.full(n, -1) for _ in range(3))
        threshold, weight, gain, values = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((n, width))
        missing_left, rows = np.zeros(n, dtype=bool), np.zeros(n)
        sets: dict[int, tuple[NDArray[Any], bool]] = {}
        for i, node in enumerate(stored):
            rows[i] = entries.number(node.get("data_count", 1), "data_count")
            weight[i] = entries.number(node.get("sum_hess", rows[i]), "sum_hess")
            if "leaf_value" in node:
                value = node["leaf_value"]
                values[i] = entries.numbers(value if isinstance(value, list) else [value], "leaf_value", width)
                continue
            gain[i] = entries.number(node.get("gain", 0), "gain")
            feature[i] = entries.whole(node.get("split_feature_id"), "split_feature_id", 0, self.n_columns - 1)
            children = [number_of.get(entries.entry(node, side, int), -2) for side in ("left_child", "right_child")]
            if min(children) < 0:
                refuse(f"is damaged: tree {t} lacks nodes")
            missing_left[i] = node.get("default_left") is True
            if node.get("node_type") == "categorical_test_node":
                code_of = codes[int(feature[i])]
                listed = entries.integers(node.get("category_list"), "category_list", 0, 2**31 - 1)
                marks = np.array(sorted({code_of[value] for value in listed.tolist()}), dtype=np.int64)
                sets[i] = marks, node.get("category_list_right_child") is True
            else:
                threshold[i], is_reversed = self.threshold(node, t)
                if is_reversed:
                    children.reverse()
                    missing_left[i] = not missing_left[i]
            left[i], right[i] = children
        return Nodes(left, right, feature, threshold, missing_left, values, weight, rows, gain, sets=sets), values

    def threshold(self, node: dict[str, Any], t: int) -> tuple[float, bool]:
        """Return the largest number on the lower side of a split, and whether the children must be swapped."""
        op, at = entries.entry(node, "comparison_op", str), entries.number(node.get("threshold"), "threshold")
        if op not in ("<", "<=", ">", ">="):
            refuse(f"compares by {op[:10]!r} in tree {t}, which cannot be imported.")
        is_below = op in ("<", ">=")  # the threshold itself is on the upper side
        if self.is_single:
            cut = float((cuts_below_singles if is_below else reach_of_singles)(at)[0])
        else:
            cut = float(np.nextafter(at, -np.inf)) if is_below else at
        return cut, op in (">", ">=")
