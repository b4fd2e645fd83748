"""A model as one of treelite, which compilers and GPU runtimes take."""

from __future__ import annotations

from typing import Any

from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.plan import PlainTree, Plan, plan_of

_LINKS = {"identity": "identity", "log": "exponential", "softmax": "softmax", "logit": "", "half_logit": ""}


def to_treelite(model: TableEstimator) -> Any:
    """Write a model as a ``treelite.Model``, in double precision.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting, AdaBoost of classes or isolation forest; of the last, the mean path
        length comes out. Focal, hinge and gentle AdaBoost's links, costs, surrogate splits, combinations of columns and
        several outputs are refused by name.

    Returns
    -------
    treelite.Model
        Columns of categories are codes: positions in ``model.schema_.features[j].categories``; NaN is a missing value.
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
        raise ImportError("Writing for treelite needs its package. Install it: pip install treelite.") from None
    plan = plan_of(model, "treelite")
    _check(plan)
    n_classes = 1 if plan.classes is None else len(plan.classes[0])
    one_each = plan.is_sum and plan.n_scores > 1  # each tree speaks for one class
    wide = not plan.is_sum and plan.width > 1  # each leaf holds all shares
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
        postprocessor=_link(plan, PostProcessorFunc),
        base_scores=plan.start.tolist() if plan.is_sum else [0.0] * n_classes,
    )
    for tree in plan.trees:
        _add(plan, builder, tree, wide)
    return builder.commit()


def _check(plan: Plan) -> None:
    plan.refuse_several_outputs()
    plan.refuse_combinations()
    if plan.cost is not None:
        plan.refuse("the costs of wrong classes", "Use spinney.to_onnx, spinney.to_c or spinney.to_sql.")
    if plan.link not in _LINKS:
        plan.refuse(f"the link {plan.link.split(' ')[0]!r}", "Use spinney.to_onnx or spinney.to_c.")


def _link(plan: Plan, function: Any) -> Any:
    if not plan.is_sum and plan.classes is not None:
        return function(name="identity_multiclass")
    if plan.link in ("logit", "half_logit"):
        return function(name="sigmoid", sigmoid_alpha=2.0 if plan.link == "half_logit" else 1.0)
    return function(name=_LINKS[plan.link])


def _add(plan: Plan, builder: Any, tree: PlainTree, wide: bool) -> None:
    builder.start_tree()
    for node in range(tree.size):
        builder.start_node(node)
        if tree.feature[node] < 0:
            builder.leaf(tree.value[node].tolist() if wide else float(tree.value[node, 0]))
        else:
            _add_split(plan, builder, tree, node)
        builder.end_node()
    builder.end_tree()


def _add_split(plan: Plan, builder: Any, tree: PlainTree, node: int) -> None:
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
