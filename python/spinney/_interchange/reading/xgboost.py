"""Import of XGBoost models: Python objects, or JSON and UBJSON files.

XGBoost rounds numbers to single precision; those below the threshold go left. Categories that a split lists go right,
all others, including unseen ones, go left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._interchange.reading import entries
from spinney._interchange.reading.estimators import ImportedModel
from spinney._interchange.reading.nodes import (
    Nodes,
    TreeSum,
    as_singles,
    cuts_below_singles,
    labels_of,
    links_of,
    schema_of,
)
from spinney._model.file.container import model_file_errors, refuse

_LINKS = links_of("xgboost")
_BASE_IS_PROBABILITY = frozenset({"reg:logistic", "binary:logistic"})
_CLASS_LINKS = frozenset({"logit", "step", "softmax"})
_MAX_SCORES = 100_000
_MAX_CODE = 2**24


def from_xgboost(
    model: entries.FileLike | BaseEstimator,
    *,
    iteration_range: tuple[int, int] | None = None,
    missing: float | None = None,
    classes: Any = None,
) -> ImportedModel:
    """Import an XGBoost model: trees, DART and random forests with any objective.

    Parameters
    ----------
    model : Booster, XGBModel, path, text, bytes or binary file
        A fitted model, or its file: JSON or UBJSON, written by ``save_model``. Pickles are not read.
    iteration_range : tuple of two ints, optional
        Rounds to import, from the first number up to and excluding the second. None: those that XGBoost's ``predict``
        uses, which is up to the best round of an estimator after early stopping, else all.
    missing : float, optional
        A number that means missing, in addition to NaN. None: that of the estimator; files do not store it.
    classes : array-like of shape (n_classes,), optional
        Class labels. None: those of the estimator, else 0, 1, …

    Returns
    -------
    ImportedClassifier or ImportedRegressor
        Predicts like XGBoost, up to rounding: XGBoost sums in single precision.

    See Also
    --------
    from_lightgbm, from_sklearn : Other libraries.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.from_xgboost("model.ubj")  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    """
    if entries.is_file(model):
        data, label = entries.read_bytes(model)
        is_estimator = None
    else:
        entries.refuse_unfitted(model)
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        if not hasattr(booster, "save_raw"):
            raise TypeError(
                f"model must be a Booster or an estimator of XGBoost, or its file, not {type(model).__name__}."
            )
        data, label, is_estimator = bytes(booster.save_raw("ubj")), "this model", booster is not model
        if is_estimator:
            missing = getattr(model, "missing", None) if missing is None else missing
            classes = getattr(model, "classes_", None) if classes is None else classes
    with model_file_errors(label, "import", "it"):
        return _ModelFile(data).tree_sum(iteration_range, missing, classes, is_estimator).estimator()


class _ModelFile:
    """A parsed model file."""

    def __init__(self, data: bytes) -> None:
        entries.expect(data, "XGBoost")
        fields = entries.parse_ubjson(data) if entries.is_ubjson(data) else entries.json_of(data)
        self.learner = entries.entry(fields, "learner", dict)
        version = fields.get("version")
        self.version = ".".join(str(part) for part in version[:3]) if isinstance(version, (list, np.ndarray)) else ""
        self.parameters = entries.entry(self.learner, "learner_model_param", dict)
        self.n_columns = entries.whole(self.parameters.get("num_feature"), "num_feature", 1, entries.MAX_COLUMNS)
        self.objective = entries.entry(entries.entry(self.learner, "objective", dict), "name", str)
        booster = entries.entry(self.learner, "gradient_booster", dict)
        kind = entries.entry(booster, "name", str)
        if kind == "gblinear":
            refuse(
                "holds a linear booster (gblinear), which has no trees. Fit booster='gbtree', or use "
                "spinney.LinearRegressor or spinney.LinearClassifier."
            )
        if kind not in ("gbtree", "dart"):
            refuse(f"holds an unknown booster, {kind[:50]!r}. Import gbtree or dart.")
        if self.objective not in _LINKS:
            refuse(f"has an unknown objective, {self.objective[:50]!r}. Supported are {', '.join(_LINKS)}.")
        self.model = entries.entry(entries.entry(booster, "gbtree", dict) if kind == "dart" else booster, "model", dict)
        self.trees = entries.entry(self.model, "trees", list)
        self.code_of: dict[int, dict[int, int]] = {}  # for categorical columns: from codes in the file to spinney's
        self.factor = (
            entries.numbers(booster.get("weight_drop"), "weight_drop", len(self.trees)) if kind == "dart" else None
        )

    def tree_sum(
        self, iteration_range: object, missing: float | None, classes: object, is_estimator: bool | None
    ) -> TreeSum:
        """Read the trees, the start and the link."""
        link = _LINKS[self.objective]
        n_classes = entries.whole(self.parameters.get("num_class", "0"), "num_class", 0, _MAX_SCORES)
        n_targets = entries.whole(self.parameters.get("num_target", "1"), "num_target", 0, _MAX_SCORES)
        n_scores = max(1, n_classes, n_targets)
        if link in _CLASS_LINKS and link != "softmax" and n_scores > 1:
            refuse("has several classification targets, which cannot be imported. Import one model for each target.")
        labels = labels_of(classes, max(2, n_classes)) if link in _CLASS_LINKS else None
        schema = self.schema(missing)
        score = entries.integers(self.model.get("tree_info"), "tree_info", 0, n_scores - 1, len(self.trees))
        first, last = self.range(iteration_range, is_estimator)
        trees: list[list[_engine.Tree]] = [[] for _ in range(n_scores)]
        for t in range(first, last):
            trees[score[t]].append(self.tree(t, schema))
        source = f"XGBoost {self.version}".strip()
        return TreeSum(schema, trees, self.start(n_scores), link, labels, source, self.objective)

    def start(self, n_scores: int) -> Floats:
        """Return the scores before the first tree: the base score, linked by the objective in single precision."""
        text = self.parameters.get("base_score", "0.5")
        parts = text.strip("[]").split(",") if isinstance(text, str) else [text]
        base = np.array([entries.number(part, "base_score") for part in parts[: n_scores + 1]], dtype=np.float32)
        if len(base) not in (1, n_scores):
            refuse("is damaged: its number of base scores is wrong")
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.objective in _BASE_IS_PROBABILITY:
                base = -np.log(1 / base - 1)
            elif _LINKS[self.objective] == "log":
                base = np.log(base)
        return np.broadcast_to(base.astype(np.float64), (n_scores,)).copy()

    def range(self, iteration_range: Any, is_estimator: bool | None) -> tuple[int, int]:
        """Return the first tree to import and the end of the range."""
        n_trees = len(self.trees)
        stored = self.model.get("iteration_indptr")
        if stored is None:  # older files
            per_round = entries.whole(self.parameters.get("num_class", "0"), "num_class", 0, _MAX_SCORES) or 1
            n_parallel = entries.entry(self.model, "gbtree_model_param", dict).get("num_parallel_tree", "1")
            per_round *= entries.whole(n_parallel, "num_parallel_tree", 0, 2**31)
            ends = np.append(np.arange(0, n_trees, max(1, per_round)), n_trees)
        else:
            ends = entries.integers(stored, "iteration_indptr", 0, n_trees)
        if len(ends) == 0 or ends[-1] != n_trees or ends[0] != 0 or (np.diff(ends) < 0).any():
            refuse("is damaged: its rounds do not fit its trees")
        n_rounds = len(ends) - 1
        if iteration_range is None:
            best = self.best_round(is_estimator)
            return 0, int(ends[n_rounds if best is None else min(best + 1, n_rounds)])
        try:
            first, last = (int(end) for end in iteration_range)
        except (TypeError, ValueError):
            raise ValueError(f"iteration_range must be two integers, not {iteration_range!r}.") from None
        last = n_rounds if last == 0 else last
        if not 0 <= first < last <= n_rounds:
            raise ValueError(
                f"iteration_range must lie between 0 and {n_rounds}, the number of rounds, not {iteration_range!r}."
            )
        return int(ends[first]), int(ends[last])

    def best_round(self, is_estimator: bool | None) -> int | None:
        """Return the last round that an estimator with early stopping uses; None without early stopping."""
        attributes = self.learner.get("attributes")
        if not isinstance(attributes, dict) or "best_iteration" not in attributes:
            return None
        is_wrapped = "scikit_learn" in attributes if is_estimator is None else is_estimator
        return entries.whole(attributes["best_iteration"], "best_iteration", 0, 2**31) if is_wrapped else None

    # ---- columns -------------------------------------------------------------------------------------

    def schema(self, missing: float | None) -> Schema:
        """Make the schema: categories are stored values if the file has them, else codes."""
        names = entries.names_of(self.learner.get("feature_names"), self.n_columns)
        stored = self.stored_categories()
        codes: dict[int, set[int]] = {}
        for t, tree in enumerate(self.trees):
            for column, listed in self.listed(t, tree).values():
                if len(listed):
                    codes.setdefault(column, set()).update(listed.tolist())
        categories = dict(stored)
        for j, known in codes.items():
            if j in stored and max(known) >= len(stored[j]):
                refuse(f"is damaged: column {j} is split on categories that it does not list")
            self.code_of[j] = {code: code if j in stored else i for i, code in enumerate(sorted(known))}
            categories.setdefault(j, tuple(sorted(known)))
        if any(len(set(values)) < len(values) for values in categories.values()):
            refuse("is damaged: a column lists a category twice")
        # XGBoost rejects values that are not stored; codes that no split lists go left
        unseen = "error" if stored else "other"
        absent = None if missing is None or missing != missing else as_singles(float(missing))
        if absent is not None and categories:
            refuse("combines categorical columns with missing=, which cannot be imported. Use NaN for missing values.")
        return schema_of(names, self.n_columns, categories, unseen, absent)

    def stored_categories(self) -> dict[int, tuple[Any, ...]]:
        """Return the stored values of categories by column, in the order of their codes."""
        stored = self.model.get("cats")
        listed = stored.get("enc") if isinstance(stored, dict) else None
        found: dict[int, tuple[Any, ...]] = {}
        for j, fields in enumerate(listed if isinstance(listed, list) else []):
            values = entries.entry(fields, "values", (list, np.ndarray))
            if len(values) == 0:
                continue
            if "offsets" in fields:
                found[j] = _texts(values, fields["offsets"])
            else:
                cells = entries.numbers(values, "values")
                found[j] = tuple(int(v) if v.is_integer() else v for v in cells.tolist())
        return found

    def listed(self, t: int, tree: Any) -> dict[int, tuple[int, NDArray[np.int64]]]:
        """Return the column and the listed categories of each node that splits categories."""
        kinds = tree.get("split_type") if isinstance(tree, dict) else None
        if kinds is None:
            return {}
        nodes = entries.integers(tree.get("categories_nodes", []), "categories_nodes", 0, len(kinds))
        starts = entries.integers(tree.get("categories_segments", []), "categories_segments", 0, 2**53, len(nodes))
        sizes = entries.integers(tree.get("categories_sizes", []), "categories_sizes", 0, 2**53, len(nodes))
        codes = entries.integers(tree.get("categories", []), "categories", 0, _MAX_CODE)
        columns = entries.integers(tree.get("split_indices"), "split_indices", 0, 2**31 - 1, len(kinds))
        if (starts + sizes > len(codes)).any() or sizes.sum() > len(codes) or (nodes >= len(kinds)).any():
            refuse(f"is damaged: tree {t} lacks categories")
        found = {}
        for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True):
            column = int(columns[node])
            if column >= self.n_columns:
                refuse(f"is damaged: tree {t} splits a column that does not exist")
            found[node] = column, np.unique(codes[start : start + size])
        return found

    # ---- trees ---------------------------------------------------------------------------------------

    def tree(self, t: int, schema: Schema) -> _engine.Tree:
        """Read one tree."""
        tree = self.trees[t]
        shape = entries.entry(tree, "tree_param", dict)
        if entries.whole(shape.get("size_leaf_vector", "1"), "size_leaf_vector", 0, _MAX_SCORES) > 1:
            refuse(
                "has vector leaves (multi_strategy='multi_output_tree'), which cannot be imported. Fit it "
                "with multi_strategy='one_output_per_tree'."
            )
        left = entries.integers(tree.get("left_children"), "left_children", -1, 2**31 - 2)
        n = len(left)
        split = entries.numbers(tree.get("split_conditions"), "split_conditions", n)
        value = split if self.factor is None else split * np.float32(self.factor[t])
        categories = self.listed(t, tree)
        kinds = entries.integers(tree.get("split_type", [0] * n), "split_type", 0, 1, n)
        if {int(node) for node in np.flatnonzero((kinds == 1) & (left >= 0))} - categories.keys():
            refuse(f"is damaged: tree {t} lacks categories")
        hessian = entries.numbers(tree.get("sum_hessian", [0.0] * n), "sum_hessian", n)
        nodes = Nodes(
            left,
            entries.integers(tree.get("right_children"), "right_children", -1, 2**31 - 2, n),
            entries.integers(tree.get("split_indices"), "split_indices", 0, 2**31 - 1, n),
            cuts_below_singles(split),
            entries.integers(tree.get("default_left"), "default_left", 0, 1, n) == 1,
            np.where(left < 0, value.astype(np.float32), 0.0),
            hessian,
            np.rint(np.clip(hessian, 0, 2**31)),
            entries.numbers(tree.get("loss_changes", [0.0] * n), "loss_changes", n),
        )
        for node, (column, listed) in categories.items():
            if kinds[node] == 1 and left[node] >= 0:
                code_of = self.code_of.get(column, {})
                nodes.sets[node] = np.array([code_of[code] for code in listed.tolist()], dtype=np.int64), True
        return nodes.tree(schema.n_categories, t)


def _texts(values: object, offsets: object) -> tuple[str, ...]:
    data = bytes(entries.integers(values, "values", -128, 255).astype(np.uint8))
    ends = entries.integers(offsets, "offsets", 0, len(data))
    if len(ends) < 2 or (np.diff(ends) < 0).any():
        refuse("is damaged: the offsets of category names do not ascend")
    try:
        return tuple(data[a:b].decode() for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    except UnicodeDecodeError:
        refuse("is damaged: the name of a category is not UTF-8")
