"""A model as the text file of LightGBM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.plan import PlainTree, Plan, plan_of

_CATEGORY, _DEFAULT_LEFT, _NAN_IS_MISSING = 1, 2, 8
_OBJECTIVES = {
    "identity": "regression",
    "log": "poisson",
    "logit": "binary sigmoid:1",
    "half_logit": "binary sigmoid:2",
    "softmax": "multiclass num_class:{n}",
}


def to_lightgbm(model: TableEstimator) -> str:
    """Write a model as LightGBM's text, for ``lightgbm.Booster(model_str=…)``.

    LightGBM computes in 64-bit numbers: rows come to the same leaves, and values differ in the last place at most.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting or AdaBoost of classes. Class shares of trees and forests come out as
        raw scores, one column for each class. Focal, hinge and gentle AdaBoost's links, isolation forests, surrogate
        splits, combinations of columns and several outputs are refused by name.

    Returns
    -------
    str
        The file. Columns of categories are codes: positions in ``model.schema_.features[j].categories``; NaN is a
        missing value. Booleans are 0 and 1, dates seconds since 1970. Spaces and control characters in the names of
        columns become underscores.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, y)
    >>> spinney.to_lightgbm(model).splitlines()[6]
    'objective=multiclass num_class:3'
    """
    plan = plan_of(model, "LightGBM")
    _check(plan)
    n_scores = plan.n_scores if plan.is_sum else plan.width
    texts: list[str] = []
    for t, tree in enumerate(plan.trees):
        for k in range(1 if plan.is_sum else plan.width):
            start = float(plan.start[t]) if t < plan.n_scores else 0.0
            texts.append(_tree(plan, tree, len(texts), tree.value[:, k] + start))
    head = ["tree", "version=v4", f"num_class={n_scores}", f"num_tree_per_iteration={n_scores}", "label_index=0"]
    head.append(f"max_feature_idx={len(plan.features) - 1}")
    if plan.is_sum:
        head.append(f"objective={_OBJECTIVES[plan.link].format(n=n_scores)}")
    else:
        head.append("average_output")
    head += [f"feature_names={' '.join(_names(plan))}", f"feature_infos={' '.join(map(_info, plan.features))}"]
    head.append(f"tree_sizes={_joined(len(text.encode()) + 1 for text in texts)}")
    return "\n".join([*head, "", *texts, "end of trees", "", "pandas_categorical:null", ""])


def _check(plan: Plan) -> None:
    plan.refuse_several_outputs()
    plan.refuse_combinations()
    if plan.is_isolation:
        plan.refuse("the scores", "Use spinney.to_onnx, spinney.to_c or spinney.to_treelite.")
    if plan.cost is not None:
        plan.refuse("the costs of wrong classes", "Use spinney.to_onnx, spinney.to_c or spinney.to_sql.")
    if plan.link not in _OBJECTIVES:
        plan.refuse(f"the link {plan.link.split(' ')[0]!r}", "Use spinney.to_onnx or spinney.to_c.")


def _names(plan: Plan) -> list[str]:
    """Return names without what LightGBM's files and its Python package do not take."""
    names = ["".join("_" if not c.isprintable() or c in ' ",:[]{}' else c for c in f.name) for f in plan.features]
    if len(set(names)) < len(names) or not all(names):
        plan.refuse("the names of the columns, of which two would be the same,", "Rename them before the fit.")
    return names


def _info(feature: Any) -> str:
    """Return what LightGBM knows of a column: nothing of numbers; the codes of categories."""
    n = len(feature.categories)
    return ":".join(map(str, range(n + 1))) if feature.kind == "category" else "[-inf:inf]"


def _joined(values: Iterable[Any]) -> str:
    return " ".join(repr(float(v)) if isinstance(v, (float, np.floating)) else str(v) for v in values)


def _tree(plan: Plan, tree: PlainTree, number: int, value: Any) -> str:
    """Return a tree: inner nodes and leaves are counted apart, and ~k is leaf k."""
    inner = np.flatnonzero(tree.feature >= 0).tolist()
    place = {node: k for k, node in enumerate(inner)} | {node: ~k for k, node in enumerate(tree.leaves.tolist())}
    threshold: list[Any] = []
    kinds, left, right = [], [], []
    boundaries, words = [0], []
    for node in inner:
        children = [place[node + 1], place[int(tree.right[node])]]
        if node in tree.left_codes:
            members, is_turned = _members(plan, tree, node)
            children = children[::-1] if is_turned else children
            threshold.append(len(boundaries) - 1)
            words += members
            boundaries.append(len(words))
            kinds.append(_CATEGORY | _NAN_IS_MISSING)
        else:
            threshold.append(float(tree.threshold[node]))
            kinds.append(_NAN_IS_MISSING | (_DEFAULT_LEFT if tree.missing_left[node] else 0))
        left.append(children[0])
        right.append(children[1])
    n_cat = len(boundaries) - 1
    lines = [f"Tree={number}", f"num_leaves={len(tree.leaves)}", f"num_cat={n_cat}"]
    if inner:
        lines += [
            f"split_feature={_joined(tree.feature[inner].tolist())}",
            f"split_gain={_joined([0] * len(inner))}",
            f"threshold={_joined(threshold)}",
            f"decision_type={_joined(kinds)}",
            f"left_child={_joined(left)}",
            f"right_child={_joined(right)}",
        ]
    lines += [
        f"leaf_value={_joined(value[tree.leaves])}",
        f"leaf_weight={_joined([1] * len(tree.leaves))}",
        f"leaf_count={_joined([1] * len(tree.leaves))}",
        f"internal_value={_joined([0] * len(inner))}",
        f"internal_weight={_joined([1] * len(inner))}",
        f"internal_count={_joined([1] * len(inner))}",
    ]
    if n_cat:
        lines += [f"cat_boundaries={_joined(boundaries)}", f"cat_threshold={_joined(words)}"]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", ""])


def _members(plan: Plan, tree: PlainTree, node: int) -> tuple[list[int], bool]:
    """Return the bits of a set that goes left in LightGBM, where missing ones go right, and whether it was right."""
    n = len(plan.features[int(tree.feature[node])].categories)
    codes = set(tree.left_codes[node])
    is_turned = bool(tree.missing_left[node])
    if is_turned:
        codes = set(range(n + 1)) - codes
    words = [0] * (n // 32 + 1)
    for code in codes:
        words[code // 32] |= 1 << (code % 32)
    return words, is_turned
