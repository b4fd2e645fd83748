"""Export to other libraries: LightGBM's text, XGBoost's JSON, treelite's models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.plan import PlainTree, Plan, bits_of, plan_of

_CATEGORY, _DEFAULT_LEFT, _NAN_IS_MISSING = 1, 2, 8
_LIGHTGBM_OBJECTIVES = {
    "identity": "regression",
    "log": "poisson",
    "logit": "binary sigmoid:1",
    "half_logit": "binary sigmoid:2",
    "softmax": "multiclass num_class:{n}",
}


def to_lightgbm(model: TableEstimator) -> str:
    """Export a model to LightGBM's text format, for ``lightgbm.Booster(model_str=…)``.

    LightGBM computes in double precision: rows reach the same leaves, and predictions differ at most in the last place.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting or AdaBoost classifier. Class probabilities of trees and forests become
        raw scores, one column for each class. Not supported: linear leaves and combined columns, which boosting may
        have with default settings (fit it with ``linear_leaves=False``), boosting for ranking or survival, or with
        several quantiles, the losses "focal", "smooth_hinge", "ordinal", "squared_log_error" and those that are
        distributions, such as "normal", AdaBoost with ``algorithm="gentle"`` and three or more classes,
        misclassification costs, isolation forests, surrogate splits, oblique splits and several outputs.

    Returns
    -------
    str
        The file. Categorical columns are codes: positions in ``model.schema_.features[j].categories``; NaN is a
        missing value. Booleans are 0 and 1, dates seconds since 1970. Spaces and control characters in column
        names become underscores.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, y)
    >>> spinney.to_lightgbm(model).splitlines()[6]
    'objective=multiclass num_class:3'
    """
    plan = plan_of(model, "LightGBM")
    plan.check(_LIGHTGBM_OBJECTIVES)
    n_scores = plan.n_scores if plan.is_sum else plan.width
    texts: list[str] = []
    for t, tree in enumerate(plan.trees):
        for k in range(1 if plan.is_sum else plan.width):
            start = float(plan.start[t]) if t < plan.n_scores else 0.0
            # a mean is written as a sum: LightGBM does not average the contributions of average_output
            value = tree.value[:, k] + start if plan.is_sum else tree.value[:, k] / len(plan.trees)
            texts.append(_lightgbm_tree(plan, tree, len(texts), value))
    head = ["tree", "version=v4", f"num_class={n_scores}", f"num_tree_per_iteration={n_scores}", "label_index=0"]
    head.append(f"max_feature_idx={len(plan.features) - 1}")
    if plan.is_sum:
        head.append(f"objective={_LIGHTGBM_OBJECTIVES[plan.link].format(n=n_scores)}")
    head += [
        f"feature_names={' '.join(_lightgbm_names(plan))}",
        f"feature_infos={' '.join(map(_lightgbm_info, plan.features))}",
    ]
    head.append(f"tree_sizes={_joined(len(text.encode()) + 1 for text in texts)}")
    return "\n".join([*head, "", *texts, "end of trees", "", "pandas_categorical:null", ""])


def _lightgbm_names(plan: Plan) -> list[str]:
    """Return column names without characters that LightGBM does not accept."""
    names = ["".join("_" if not c.isprintable() or c in ' ",:[]{}' else c for c in f.name) for f in plan.features]
    if len(set(names)) < len(names) or not all(names):
        plan.refuse("the names of the columns, of which two would be the same,", "Rename them before the fit.")
    return names


def _lightgbm_info(feature: Any) -> str:
    """Return the feature_infos entry of a column: the codes of categories, or an unlimited range."""
    n = len(feature.categories)
    return ":".join(map(str, range(n + 1))) if feature.kind == "category" else "[-inf:inf]"


def _joined(values: Iterable[Any]) -> str:
    return " ".join(repr(float(v)) if isinstance(v, (float, np.floating)) else str(v) for v in values)


def _lightgbm_tree(plan: Plan, tree: PlainTree, number: int, value: Any) -> str:
    """Return a tree: inner nodes and leaves are numbered separately, and ~k is leaf k."""
    inner = np.flatnonzero(tree.feature >= 0).tolist()
    place = {node: k for k, node in enumerate(inner)} | {node: ~k for k, node in enumerate(tree.leaves.tolist())}
    threshold: list[Any] = []
    kinds, left, right = [], [], []
    boundaries, words = [0], []
    for node in inner:
        children = [place[node + 1], place[int(tree.right[node])]]
        if node in tree.left_codes:
            members, is_reversed = _members(plan, tree, node)
            children = children[::-1] if is_reversed else children
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
            f"split_gain={_joined(tree.gain[inner])}",
            f"threshold={_joined(threshold)}",
            f"decision_type={_joined(kinds)}",
            f"left_child={_joined(left)}",
            f"right_child={_joined(right)}",
        ]
    lines += [
        f"leaf_value={_joined(value[tree.leaves])}",
        f"leaf_weight={_joined(tree.weight[tree.leaves])}",
        f"leaf_count={_joined(tree.count[tree.leaves].tolist())}",
        f"internal_value={_joined(value[inner])}",
        f"internal_weight={_joined(tree.weight[inner])}",
        f"internal_count={_joined(tree.count[inner].tolist())}",
    ]
    if n_cat:
        lines += [f"cat_boundaries={_joined(boundaries)}", f"cat_threshold={_joined(words)}"]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", ""])


def _members(plan: Plan, tree: PlainTree, node: int) -> tuple[list[int], bool]:
    """Return the bitset that goes left in LightGBM, where missing values go right, and whether children are swapped."""
    n = len(plan.features[int(tree.feature[node])].categories)
    codes = set(tree.left_codes[node])
    is_reversed = bool(tree.missing_left[node])
    if is_reversed:
        codes = set(range(n + 1)) - codes
    return bits_of(codes, n + 1), is_reversed


# ---- XGBoost --------------------------------------------------------------------------------------------------

_NO_PARENT = 2147483647
_LARGEST = float(np.finfo(np.float32).max)
_XGBOOST_OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "identity": ("reg:squarederror", {"reg_loss_param": {"scale_pos_weight": "1"}}),
    "log": ("count:poisson", {"poisson_regression_param": {"max_delta_step": "0.7"}}),
    "logit": ("binary:logistic", {"reg_loss_param": {"scale_pos_weight": "1"}}),
    "half_logit": ("binary:logistic", {"reg_loss_param": {"scale_pos_weight": "1"}}),
    "softmax": ("multi:softprob", {"softmax_multiclass_param": {}}),
}


def to_xgboost(model: TableEstimator) -> str:
    """Export a model to XGBoost's JSON, for ``xgboost.Booster(model_file=…)``.

    XGBoost computes in single precision. Thresholds are rounded so that every row of single-precision numbers reaches
    the same leaves; a double between a threshold and the next single-precision number may not, because XGBoost rounds
    it. Predictions have about seven digits.

    Parameters
    ----------
    model : estimator
        A fitted regression tree or forest, gradient boosting or AdaBoost classifier. Not supported: classification
        trees and forests, and what `to_lightgbm` does not support.

    Returns
    -------
    str
        The file. Categorical columns are codes, of the type ``"c"``: positions in
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
    plan.check(_XGBOOST_OBJECTIVES)
    if plan.classes is not None and not plan.is_sum:
        plan.refuse("the mean class probabilities", "Use spinney.to_lightgbm, spinney.to_onnx or spinney.to_c.")
    factor = (2.0 if plan.link == "half_logit" else 1.0) if plan.is_sum else 1.0 / len(plan.trees)
    n_scores = max(1, plan.n_scores)
    # older versions of XGBoost have one base score, so the start of each score is in the leaves of its first tree
    starts = [*(factor * plan.start).tolist(), *[0.0] * (len(plan.trees) - plan.n_scores)]
    trees = [_xgboost_tree(plan, tree, t, factor * tree.value[:, 0] + starts[t]) for t, tree in enumerate(plan.trees)]
    name, parameters = _XGBOOST_OBJECTIVES[plan.link]
    base_score = {"logit": 0.5, "half_logit": 0.5, "log": 1.0}.get(plan.link, 0.0)
    if n_scores > 1:
        parameters = {"softmax_multiclass_param": {"num_class": str(n_scores)}}
    found = {
        "learner": {
            "attributes": {},
            "feature_names": _xgboost_names(plan),
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
    """Return singles as their shortest decimals, which XGBoost reads exactly."""
    with np.errstate(over="ignore"):
        return [float(str(value)) for value in values.astype(np.float32)]


def _xgboost_names(plan: Plan) -> list[str]:
    for feature in plan.features:
        if not feature.name or set(feature.name) & set("[]<"):
            plan.refuse(f"the name {feature.name!r}", "XGBoost takes no [, ] or <: rename it.")
    return [feature.name for feature in plan.features]


def _below(cuts: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return singles such that x <= cut is equivalent to x < single, for every single x."""
    with np.errstate(over="ignore"):
        rounded = cuts.astype(np.float32)
    largest = np.where(rounded.astype(np.float64) <= cuts, rounded, np.nextafter(rounded, np.float32(-np.inf)))
    above = np.nextafter(largest.astype(np.float32), np.float32(np.inf))
    return np.minimum(above, np.finfo(np.float32).max)  # XGBoost accepts no infinite threshold or value


def _side_by_side(tree: PlainTree) -> list[int]:
    """Return the nodes in an order in which right children follow their siblings, as XGBoost requires."""
    order = [0]
    for node in order:  # grows during the loop
        if tree.feature[node] >= 0:
            order += [node + 1, int(tree.right[node])]
    return order


def _xgboost_tree(plan: Plan, tree: PlainTree, t: int, value: NDArray[np.float64]) -> dict[str, Any]:
    """Return a tree; `split_conditions` holds the values of leaves."""
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
        go_right = [code for code in range(n + 1) if code not in left_codes] or [n + 1]  # sets must not be empty
        nodes.append(int(place[node]))
        segments.append(len(categories))
        sizes.append(len(go_right))
        categories += go_right
        conditions[place[node]] = 0.0
    return {
        "base_weights": _short(value[order]),
        "categories": categories,
        "categories_nodes": nodes,
        "categories_segments": segments,
        "categories_sizes": sizes,
        "default_left": (tree.missing_left[order] & ~is_leaf).astype(int).tolist(),
        "id": t,
        "left_children": left.tolist(),
        "loss_changes": _short(np.minimum(tree.gain[order], _LARGEST)),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _short(conditions),
        "split_indices": np.maximum(tree.feature[order], 0).tolist(),
        "split_type": np.isin(np.arange(tree.size), nodes).astype(int).tolist(),
        "sum_hessian": _short(np.minimum(tree.weight[order] if tree.weight[0] > 0 else tree.count[order], _LARGEST)),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(len(plan.features)),
            "num_nodes": str(tree.size),
            "size_leaf_vector": "1",
        },
    }


# ---- treelite -------------------------------------------------------------------------------------------------

_TREELITE_LINKS = {"identity": "identity", "log": "exponential", "softmax": "softmax", "logit": "", "half_logit": ""}


def to_treelite(model: TableEstimator) -> Any:
    """Export a model to a ``treelite.Model``, in double precision.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting, AdaBoost classifier or isolation forest; an exported isolation forest
        predicts the mean path length. Not supported: linear leaves and combined columns, which boosting may have with
        default settings (fit it with ``linear_leaves=False``), boosting for ranking or survival, or with several
        quantiles, the losses "focal", "smooth_hinge", "ordinal", "squared_log_error" and those that are distributions,
        such as "normal", AdaBoost with ``algorithm="gentle"`` and three or more classes, misclassification costs,
        surrogate splits, oblique splits and several outputs.

    Returns
    -------
    treelite.Model
        Categorical columns are codes: positions in ``model.schema_.features[j].categories``; NaN is a missing value.
        Booleans are 0 and 1, dates seconds since 1970.

    Notes
    -----
    Needs ``treelite`` (``pip install treelite``).

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> forest = spinney.RandomForestClassifier(5, random_state=0).fit(X, y)
    >>> spinney.to_treelite(forest).num_tree  # doctest: +SKIP
    5
    """
    try:
        from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation
    except ImportError:
        raise ImportError("Exporting to treelite needs its package. Install it: pip install treelite.") from None
    plan = plan_of(model, "treelite")
    plan.check(_TREELITE_LINKS, isolation=True)
    n_classes = 1 if plan.classes is None else len(plan.classes[0])
    one_each = plan.is_sum and plan.n_scores > 1  # each tree scores one class
    wide = not plan.is_sum and plan.width > 1  # each leaf holds all class probabilities
    if not one_each and not wide:
        n_classes = 1
    builder = ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=Metadata(
            num_feature=len(plan.features),
            task_type="kMultiClf" if n_classes > 1 else "kRegressor" if plan.classes is None else "kBinaryClf",
            average_tree_output=not plan.is_sum,
            num_target=1,
            num_class=[n_classes],
            leaf_vector_shape=(1, plan.width if wide else 1),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=len(plan.trees),
            target_id=[0] * len(plan.trees),
            class_id=[t % plan.n_scores if one_each else -1 if wide else 0 for t in range(len(plan.trees))],
        ),
        postprocessor=_treelite_link(plan, PostProcessorFunc),
        base_scores=plan.start.tolist() if plan.is_sum else [0.0] * n_classes,
    )
    for tree in plan.trees:
        _add_to_treelite(plan, builder, tree, wide)
    return builder.commit()


def _treelite_link(plan: Plan, function: Any) -> Any:
    if not plan.is_sum and plan.classes is not None:
        return function(name="identity_multiclass")
    if plan.link in ("logit", "half_logit"):
        return function(name="sigmoid", sigmoid_alpha=2.0 if plan.link == "half_logit" else 1.0)
    return function(name=_TREELITE_LINKS[plan.link])


def _add_to_treelite(plan: Plan, builder: Any, tree: PlainTree, wide: bool) -> None:
    builder.start_tree()
    for node in range(tree.size):
        builder.start_node(node)
        builder.data_count(int(tree.count[node]))
        builder.sum_hess(float(tree.weight[node]))
        if tree.feature[node] < 0:
            builder.leaf(tree.value[node].tolist() if wide else float(tree.value[node, 0]))
        else:
            builder.gain(float(tree.gain[node]))
            _split_in_treelite(plan, builder, tree, node)
        builder.end_node()
    builder.end_tree()


def _split_in_treelite(plan: Plan, builder: Any, tree: PlainTree, node: int) -> None:
    j, missing_left = int(tree.feature[node]), bool(tree.missing_left[node])
    if node not in tree.left_codes:
        builder.numerical_test(
            feature_id=j,
            threshold=float(tree.threshold[node]),
            default_left=missing_left,
            opname="<=",
            left_child_key=node + 1,
            right_child_key=int(tree.right[node]),
        )
        return
    builder.categorical_test(
        feature_id=j,
        category_list=tree.left_codes[node],
        default_left=missing_left,
        category_list_right_child=False,
        left_child_key=node + 1,
        right_child_key=int(tree.right[node]),
    )
