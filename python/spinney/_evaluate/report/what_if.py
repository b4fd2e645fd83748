"""A model of trees that the page evaluates: predictions and Shapley values of rows that the reader changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._data.display import elide, one_line
from spinney._data.feature import Feature
from spinney._data.types import Floats
from spinney._estimator.table_estimator import TableEstimator
from spinney._evaluate.report.explain import value_text
from spinney._evaluate.report.view import View, sample
from spinney._evaluate.study.findings import Findings
from spinney._evaluate.study.plan import TREE
from spinney._interchange.writing.plan import PlainTree, Plan, plan_of

_LINKS = ("identity", "log", "logit", "softmax")
_MOST_NODES = 24_000  # of all trees: some 400 kB
_MOST_INPUTS, _MOST_CATEGORIES, _MOST_CLASSES = 14, 60, 12
_ROWS, _BACKGROUND = 40, 16


def what_if_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Return the trees of the model that is kept, or else of the readable tree, and rows to start from."""
    candidates = {study.best: study.models.get(study.best), TREE: study.tree}
    found = next(((name, plan) for name, model in candidates.items() if (plan := _plan(model)) is not None), None)
    if found is None:
        return None
    name, plan = found
    gains = _gains(plan)
    inputs = np.argsort(-gains, kind="stable")[: min(_MOST_INPUTS, int((gains > 0).sum()))]
    if not len(inputs):
        return None
    rows, background = sample(test.n_rows, _ROWS), sample(test.n_rows, _BACKGROUND, seed=1)
    columns = [_codes(plan.features[j], plan.unseen, test, j) for j in range(len(plan.features))]
    return {
        "model": name,
        "is_best": name == study.best,
        "best": study.best,
        "trees": [_tree(tree) for tree in plan.trees],
        "n_scores": plan.n_scores,
        "start": _texts(plan.start),
        "link": plan.link,
        "classes": None if plan.classes is None else [elide(one_line(label), 40) for label in plan.classes[0].tolist()],
        "inputs": [_input(plan.features[j], columns[j]) | {"column": int(j)} for j in inputs],
        "rows": test.row_names.texts(rows),
        "rows_note": test.row_names.note,
        "values": [_texts(np.array([column[row] for column in columns])) for row in rows],
        "background": [_texts(np.array([column[row] for column in columns])) for row in background],
        "actual": [value_text(value) for value in study.y_test[rows].tolist()],
    }


def _plan(model: object) -> Plan | None:
    """Return a model as arrays, if it is of trees that the page can evaluate, and not too large."""
    n_nodes = getattr(getattr(model, "_fitted", None), "node_count", 0)
    if not isinstance(model, TableEstimator) or n_nodes > _MOST_NODES:
        return None  # a plan of many nodes takes minutes
    try:
        plan = plan_of(model, "the report")
    except (TypeError, ValueError):  # not of trees, or with properties that no export format has
        return None
    n_classes = 1 if plan.classes is None else len(plan.classes[0])
    is_plain = plan.pool is None and plan.n_outputs == 1 and plan.cost is None and plan.link in _LINKS
    is_plain &= not (plan.has_linear_leaves or plan.is_isolation) and (plan.n_scores == 0 or plan.width == 1)
    is_plain &= {feature.kind for feature in plan.features} <= {"number", "boolean", "category"}
    is_small = plan.n_nodes * plan.width <= _MOST_NODES and n_classes <= _MOST_CLASSES
    return plan if is_plain and is_small else None


def _gains(plan: Plan) -> Floats:
    """Return the total gain of each column."""
    gains = np.zeros(len(plan.features))
    for tree in plan.trees:
        inner = tree.feature >= 0
        np.add.at(gains, tree.feature[inner], tree.gain[inner] + 1e-12)
    return gains


def _tree(tree: PlainTree) -> dict[str, Any]:
    """Return a tree: thresholds are exact, as text; a negative column is a leaf; values of leaves only."""
    inner = tree.feature >= 0
    codes = {str(node): codes for node, codes in tree.left_codes.items()}
    return {
        "feature": tree.feature,
        "threshold": " ".join(_texts(np.where(inner, tree.threshold, 0.0))),
        "right": tree.right,
        "missing": "".join("1" if left else "0" for left in tree.missing_left),
        "codes": codes,
        "value": [value if is_leaf else 0 for value, is_leaf in zip(tree.value.tolist(), ~inner, strict=True)]
        if tree.value.shape[1] > 1
        else np.where(inner, 0.0, tree.value[:, 0]),
    }


def _texts(values: Floats) -> list[str]:
    """Return numbers as the shortest texts that are exact in JavaScript; "" for missing values."""
    texts = (repr(float(value)).removesuffix(".0") for value in values)
    return [text.replace("nan", "").replace("inf", "Infinity") for text in texts]


def _codes(feature: Feature, unseen: str, test: View, column: int) -> Floats:
    """Return a column of the test rows as the model codes it; NaN is missing."""
    values = test.numbers[column]
    if feature.kind != "category":
        return values
    own = {one_line(name): code for code, name in enumerate(feature.categories)}
    other = np.nan if unseen == "missing" else float(len(own))
    codes = np.array([*(own.get(name, other) for name in test.categories(column)), np.nan])
    return np.asarray(codes[np.where(np.isnan(values), len(codes) - 1, values).astype(np.intp)])


def _input(feature: Feature, values: Floats) -> dict[str, Any]:
    """Return how a column is changed: a category is chosen, a number is between the ends of the test rows."""
    known = values[~np.isnan(values)]
    categories = [elide(one_line(name), 28) for name in feature.categories][:_MOST_CATEGORIES]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return {
        "name": one_line(feature.name),
        "categories": categories if feature.kind == "category" else None,
        "is_date": bool(feature.clock),
        "low": low,
        "high": high,
        "is_whole": bool((known % 1 == 0).all()),
    }
