"""A model as the JSON file of XGBoost."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.plan import PlainTree, Plan, plan_of

_NO_PARENT = 2147483647
_OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "identity": ("reg:squarederror", {"reg_loss_param": {"scale_pos_weight": "1"}}),
    "log": ("count:poisson", {"poisson_regression_param": {"max_delta_step": "0.7"}}),
    "logit": ("binary:logistic", {"reg_loss_param": {"scale_pos_weight": "1"}}),
    "half_logit": ("binary:logistic", {"reg_loss_param": {"scale_pos_weight": "1"}}),
    "softmax": ("multi:softprob", {"softmax_multiclass_param": {}}),
}


def to_xgboost(model: TableEstimator) -> str:
    """Write a model as XGBoost's JSON, for ``xgboost.Booster(model_file=…)``.

    XGBoost computes in 32-bit numbers. Cuts are rounded so that every row of 32-bit numbers comes to the same leaves;
    a 64-bit number that lies between a cut and the next 32-bit number may not, because XGBoost rounds it. Values have
    about seven digits.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of values, gradient boosting of squared error, logistic or Poisson loss and of more
        classes, or another loss whose scores are predictions. All else is refused by name.

    Returns
    -------
    str
        The file. Columns of categories are codes, of the type ``"c"``: positions in
        ``model.schema_.features[j].categories``; NaN is a missing value. Booleans are 0 and 1, dates seconds since
        1970.

    Examples
    --------
    >>> import json
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, y)
    >>> json.loads(spinney.to_xgboost(model))["learner"]["objective"]["name"]
    'multi:softprob'
    """
    plan = plan_of(model, "XGBoost")
    _check(plan)
    factor = (2.0 if plan.link == "half_logit" else 1.0) if plan.is_sum else 1.0 / len(plan.trees)
    n_scores = max(1, plan.n_scores)
    # older versions of XGBoost start all scores at one number: the start of each is in the leaves of its first tree
    starts = [*(factor * plan.start).tolist(), *[0.0] * (len(plan.trees) - plan.n_scores)]
    trees = [_tree(plan, tree, t, factor * tree.value[:, 0] + starts[t]) for t, tree in enumerate(plan.trees)]
    name, parameters = _OBJECTIVES[plan.link]
    base_score = {"logit": 0.5, "half_logit": 0.5, "log": 1.0}.get(plan.link, 0.0)
    if n_scores > 1:
        parameters = {"softmax_multiclass_param": {"num_class": str(n_scores)}}
    found = {
        "learner": {
            "attributes": {},
            "feature_names": _names(plan),
            "feature_types": ["c" if f.kind == "category" else "float" for f in plan.features],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": list(range(0, len(trees) + 1, n_scores)),
                    "tree_info": [t % n_scores for t in range(len(trees))],
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": f"{base_score}",
                "boost_from_average": "1",
                "num_class": str(n_scores) if n_scores > 1 else "0",
                "num_feature": str(len(plan.features)),
                "num_target": "1",
            },
            "objective": {"name": name, **parameters},
        },
        "version": [2, 1, 0],
    }
    return json.dumps(found)


def _short(values: NDArray[np.float64]) -> list[float]:
    """Return 32-bit numbers by their shortest decimals, the only ones that XGBoost reads to the bit."""
    with np.errstate(over="ignore"):
        return [float(str(value)) for value in values.astype(np.float32)]


def _names(plan: Plan) -> list[str]:
    for feature in plan.features:
        if not feature.name or set(feature.name) & set("[]<"):
            plan.refuse(f"the name {feature.name!r}", "XGBoost takes no [, ] or <: rename it.")
    return [feature.name for feature in plan.features]


def _check(plan: Plan) -> None:
    plan.refuse_several_outputs()
    plan.refuse_combinations()
    if plan.is_isolation:
        plan.refuse("the scores", "Use spinney.to_onnx, spinney.to_c or spinney.to_treelite.")
    if plan.classes is not None and not plan.is_sum:
        plan.refuse("the mean class shares", "Use spinney.to_lightgbm, spinney.to_onnx or spinney.to_c.")
    if plan.link not in _OBJECTIVES:
        plan.refuse(f"the link {plan.link.split(' ')[0]!r}", "Use spinney.to_onnx or spinney.to_c.")


def _below(cuts: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return 32-bit numbers such that x <= cut is x < number, of every 32-bit x."""
    with np.errstate(over="ignore"):
        rounded = cuts.astype(np.float32)
    largest = np.where(rounded.astype(np.float64) <= cuts, rounded, np.nextafter(rounded, np.float32(-np.inf)))
    above = np.nextafter(largest.astype(np.float32), np.float32(np.inf))
    return np.minimum(above, np.finfo(np.float32).max)  # XGBoost reads no infinite cut, and takes no infinite value


def _side_by_side(tree: PlainTree) -> list[int]:
    """Return the nodes in an order in which a right child follows its sister: XGBoost's walk takes that for granted."""
    order = [0]
    for node in order:  # grows on the way
        if tree.feature[node] >= 0:
            order += [node + 1, int(tree.right[node])]
    return order


def _tree(plan: Plan, tree: PlainTree, t: int, value: NDArray[np.float64]) -> dict[str, Any]:
    """Return a tree; leaves keep their values in `split_conditions`."""
    order = np.array(_side_by_side(tree))
    place = np.argsort(order)
    is_leaf = tree.feature[order] < 0
    inner = np.flatnonzero(~is_leaf)
    left, right, parents = (np.full(tree.size, no) for no in (-1, -1, _NO_PARENT))
    left[inner] = place[order[inner] + 1]
    right[inner] = place[tree.right[order[inner]]]
    parents[left[inner]] = inner
    parents[right[inner]] = inner
    conditions = np.where(is_leaf, value[order], _below(np.where(is_leaf, 0.0, tree.threshold[order])))
    categories: list[int] = []
    segments, sizes, nodes = [], [], []
    for node in sorted(tree.left_codes, key=place.__getitem__):
        n = len(plan.features[int(tree.feature[node])].categories)
        left_codes = set(tree.left_codes[node])
        go_right = [code for code in range(n + 1) if code not in left_codes] or [n + 1]  # no set may be empty
        nodes.append(int(place[node]))
        segments.append(len(categories))
        sizes.append(len(go_right))
        categories += go_right
        conditions[place[node]] = 0.0
    return {
        "base_weights": _short(np.where(is_leaf, conditions, 0.0)),
        "categories": categories,
        "categories_nodes": nodes,
        "categories_segments": segments,
        "categories_sizes": sizes,
        "default_left": (tree.missing_left[order] & ~is_leaf).astype(int).tolist(),
        "id": t,
        "left_children": left.tolist(),
        "loss_changes": [0.0] * tree.size,
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _short(conditions),
        "split_indices": np.maximum(tree.feature[order], 0).tolist(),
        "split_type": np.isin(np.arange(tree.size), nodes).astype(int).tolist(),
        "sum_hessian": [1.0] * tree.size,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(len(plan.features)),
            "num_nodes": str(tree.size),
            "size_leaf_vector": "1",
        },
    }
