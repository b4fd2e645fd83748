"""Export to PMML 4.4."""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from spinney._data.feature import Feature
from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.combined import CombinedPlan, any_plan_of
from spinney._interchange.writing.plan import PlainTree, Plan
from spinney._model.predictions import Curve
from spinney._names import __version__

_COEFFICIENTS = {"log": 1.0, "logit": 1.0, "half_logit": 2.0, "softmax": 1.0}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")
_OUTPUTS = ("score_", "probability(", "member_", "mean_")


def to_pmml(model: TableEstimator) -> str:
    """Export a model to PMML 4.4.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting or AdaBoost classifier, or an average of these: a voting ensemble, or a
        stack with ``final_estimator="greedy"``. Not supported: linear leaves and combined columns, which boosting may
        have with default settings (fit it with ``linear_leaves=False``), boosting for ranking or survival, or with
        several quantiles, the losses "focal", "smooth_hinge", "ordinal", "squared_log_error" and those that are
        distributions, such as "normal", AdaBoost with ``algorithm="gentle"`` and three or more classes,
        ``unseen="other"``, misclassification costs, isolation forests, surrogate splits, oblique splits and several
        outputs.

    Returns
    -------
    str
        The document. Numbers are doubles, True and False 1 and 0, dates seconds since 1970; categories are their
        values. Outputs are ``prediction`` and, for each class, ``probability(LABEL)``.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> text = spinney.to_pmml(spinney.DecisionTreeClassifier(max_depth=2).fit(X, y))
    >>> '<TreeModel functionName="classification"' in text
    True
    """
    plan = any_plan_of(model, "PMML")
    for one in plan.members if isinstance(plan, CombinedPlan) else [plan]:
        _check(one)
    body = _combination(plan) if isinstance(plan, CombinedPlan) else _whole(plan)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">',
        f'<Header><Application name="spinney" version={quoteattr(__version__)}/></Header>',
        f'<DataDictionary numberOfFields="{len(plan.features) + 1}">',
        *(_data_field(feature) for feature in plan.features),
        _target_field(plan),
        "</DataDictionary>",
        *body,
        "</PMML>",
        "",
    ]
    return "\n".join(lines)


def _check(plan: Plan) -> None:
    plan.check(("identity", *_COEFFICIENTS))
    if plan.unseen == "other" and any(f.kind == "category" for f in plan.features):
        plan.refuse(
            "unseen='other', since readers treat unlisted categories differently,",
            "Set it: model.set_params(unseen='missing').",
        )
    texts = [f.name for f in plan.features] + [v for f in plan.features for v in f.categories if isinstance(v, str)]
    texts += [str(label) for labels in plan.classes or [] for label in labels]
    for text in texts:
        if _NOT_XML.search(text):
            plan.refuse(f"the text {text!r}, which is not valid in XML,", "Rename it before the fit.")
    if any(f.name in ("prediction", "target") or f.name.startswith(_OUTPUTS) for f in plan.features):
        plan.refuse("a column that has the name of an output", "Rename it before the fit.")


# ---- columns --------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    """Return a category, label or number as an attribute value."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def _data_field(feature: Feature) -> str:
    name = quoteattr(feature.name)
    if feature.kind not in ("category", "ordered"):
        return f'<DataField name={name} optype="continuous" dataType="double"/>'
    kind = "string" if feature.holds_text else "double"
    values = "".join(f"<Value value={quoteattr(_category(v))}/>" for v in feature.categories)
    return f'<DataField name={name} optype="categorical" dataType="{kind}">{values}</DataField>'


def _category(value: Any) -> str:
    return value if isinstance(value, str) else repr(float(value))


def _target_field(plan: Plan) -> str:
    if plan.classes is None:
        return '<DataField name="target" optype="continuous" dataType="double"/>'
    values = "".join(f"<Value value={quoteattr(_text(label))}/>" for label in plan.classes[0].tolist())
    return f'<DataField name="target" optype="categorical" dataType="string">{values}</DataField>'


def _schema(plan: Plan, with_target: bool) -> str:
    treat = ' invalidValueTreatment="asMissing"'
    fields = [f"<MiningField name={quoteattr(f.name)}{treat if f.categories else ''}/>" for f in plan.features]
    target = ['<MiningField name="target" usageType="target"/>'] if with_target else []
    return f"<MiningSchema>{''.join([*target, *fields])}</MiningSchema>"


def _output(plan: Plan) -> str:
    kind = "double" if plan.classes is None else "string"
    optype = "continuous" if plan.classes is None else "categorical"
    fields = [f'<OutputField name="prediction" optype="{optype}" dataType="{kind}" feature="predictedValue"/>']
    for label in plan.classes[0].tolist() if plan.classes is not None else []:
        value, name = quoteattr(_text(label)), quoteattr(f"probability({_text(label)})")
        fields.append(
            f'<OutputField name={name} optype="continuous" dataType="double" feature="probability" value={value}/>'
        )
    return f"<Output>{''.join(fields)}</Output>"


# ---- trees --------------------------------------------------------------------------------------------------


def _tree_model(plan: Plan, tree: PlainTree, k: int, is_whole: bool, of_classes: bool = True) -> str:
    is_classes = plan.classes is not None and of_classes
    function = "classification" if is_classes else "regression"
    return (
        f'<TreeModel functionName="{function}" missingValueStrategy="defaultChild" splitCharacteristic="binarySplit">'
        f"{_schema(plan, is_whole)}{_output(plan) if is_whole else ''}{_nodes(plan, tree, k, is_classes)}</TreeModel>"
    )


def _nodes(plan: Plan, tree: PlainTree, k: int, is_classes: bool) -> str:
    predicates = {0: "<True/>"}

    def leaf(node: int) -> str:
        return _leaf(plan, tree, k, node, predicates[node], is_classes)

    def split(node: int) -> tuple[str | int, ...]:
        left, right = node + 1, int(tree.right[node])
        predicates[left], predicates[right] = _predicates(plan, tree, node)
        default = left if tree.missing_left[node] else right
        return f'<Node id="{node}" defaultChild="{default}">{predicates[node]}', left, right, "</Node>"

    return tree.write(leaf, split)


def _leaf(plan: Plan, tree: PlainTree, k: int, node: int, predicate: str, is_classes: bool) -> str:
    if not is_classes:
        return f'<Node id="{node}" score="{float(tree.value[node, k])!r}">{predicate}</Node>'
    assert plan.classes is not None
    labels, proba = plan.classes[0].tolist(), tree.value[node].tolist()
    score = quoteattr(_text(labels[int(np.argmax(proba))]))
    parts = "".join(
        f'<ScoreDistribution value={quoteattr(_text(label))} recordCount="{p!r}" probability="{p!r}"/>'
        for label, p in zip(labels, proba, strict=True)
    )
    return f'<Node id="{node}" score={score}>{predicate}{parts}</Node>'


def _predicates(plan: Plan, tree: PlainTree, node: int) -> tuple[str, str]:
    """Return the predicates of the left and the right child; exactly one is true unless the value is missing."""
    feature = plan.features[int(tree.feature[node])]
    name = quoteattr(feature.name)
    cut = float(tree.threshold[node])
    if node not in tree.left_codes and cut == np.inf:
        return _known_and_missing(name, True, bool(tree.missing_left[node]))
    n = len(feature.categories)
    left_codes = tree.split_codes(node, n if feature.kind == "ordered" else 0)
    if left_codes is not None:
        left = set(left_codes)
        other_left = n in left
        codes = sorted(set(range(n)) - left if other_left else left - {n})
        if not codes:  # all known values go the same way, so only missing values need a predicate
            return _known_and_missing(name, other_left, bool(tree.missing_left[node]))
        inside, outside = _in_and_out(feature, codes)
        return (outside, inside) if other_left else (inside, outside)
    return (
        f'<SimplePredicate field={name} operator="lessOrEqual" value="{cut!r}"/>',
        f'<SimplePredicate field={name} operator="greaterThan" value="{cut!r}"/>',
    )


def _known_and_missing(name: str, known_left: bool, missing_left: bool) -> tuple[str, str]:
    """Return the predicates of both children where all known values go the same way."""
    if known_left == missing_left:
        return ("<True/>", "<False/>") if known_left else ("<False/>", "<True/>")
    known, missing = (f'<SimplePredicate field={name} operator="{o}"/>' for o in ("isNotMissing", "isMissing"))
    return (known, missing) if known_left else (missing, known)


def _in_and_out(feature: Feature, codes: list[int]) -> tuple[str, str]:
    """Return the predicates of a set and of its complement, which are both false for a missing value.

    Readers treat quotes inside an array differently, so none is written.
    """
    name, values = quoteattr(feature.name), [_category(feature.categories[code]) for code in codes]
    if all(_PLAIN.fullmatch(value) for value in values):
        kind = "string" if feature.holds_text else "real"
        array = f'<Array n="{len(values)}" type="{kind}">{" ".join(values)}</Array></SimpleSetPredicate>'
        opening = f"<SimpleSetPredicate field={name} booleanOperator="
        return f'{opening}"isIn">{array}', f'{opening}"isNotIn">{array}'
    sides = []
    for joint, operator in (("or", "equal"), ("and", "notEqual")):
        parts = [f'<SimplePredicate field={name} operator="{operator}" value={quoteattr(v)}/>' for v in values]
        several = f'<CompoundPredicate booleanOperator="{joint}">{"".join(parts)}</CompoundPredicate>'
        sides.append(parts[0] if len(parts) == 1 else several)
    return sides[0], sides[1]


# ---- ensembles ----------------------------------------------------------------------------------------------


def _segments(models: list[str], method: str) -> str:
    parts = [f'<Segment id="{k + 1}"><True/>{model}</Segment>' for k, model in enumerate(models)]
    return f'<Segmentation multipleModelMethod="{method}">{"".join(parts)}</Segmentation>'


def _whole(plan: Plan) -> list[str]:
    """Return a complete model."""
    return [_tree_model(plan, plan.trees[0], 0, True)] if plan.is_one_tree else _ensemble(plan)


def _ensemble(plan: Plan) -> list[str]:
    function = "regression" if plan.classes is None else "classification"
    opening = f'<MiningModel functionName="{function}">{_schema(plan, True)}{_output(plan)}'
    if not plan.is_sum:
        trees = [_tree_model(plan, tree, 0, False) for tree in plan.trees]
        return [opening, _segments(trees, "average"), "</MiningModel>"]
    if plan.link == "identity":
        start = f'<Targets><Target field="target" rescaleConstant="{float(plan.start[0])!r}"/></Targets>'
        trees = [_tree_model(plan, tree, 0, False, False) for tree in plan.trees]
        return [opening, start, _segments(trees, "sum"), "</MiningModel>"]
    models = [_sum_of(plan, k) for k in range(plan.n_scores)]
    return [opening, _segments([*models, _regression(plan)], "modelChain"), "</MiningModel>"]


def _sum_of(plan: Plan, k: int) -> str:
    """Return the sum of the trees of one score, without its start."""
    trees = [_tree_model(plan, tree, 0, False, False) for tree in plan.trees[k :: plan.n_scores]]
    field = f'<OutputField name="score_{k}" optype="continuous" dataType="double" feature="predictedValue"/>'
    body = f"{_schema(plan, False)}<Output>{field}</Output>{_segments(trees, 'sum')}"
    return f'<MiningModel functionName="regression">{body}</MiningModel>'


def _regression(plan: Plan) -> str:
    """Return the model that turns scores into predictions, with a regression table for each class."""
    names = tuple(f"score_{k}" for k in range(plan.n_scores))
    factor = _COEFFICIENTS[plan.link]
    tables = []
    for k in range(plan.n_scores):
        category = ""
        if plan.classes is not None:
            labels = plan.classes[0].tolist()
            category = f" targetCategory={quoteattr(_text(labels[1] if plan.n_scores == 1 else labels[k]))}"
        tables.append(
            f'<RegressionTable intercept="{factor * float(plan.start[k])!r}"{category}>'
            f'<NumericPredictor name="score_{k}" coefficient="{factor!r}"/></RegressionTable>'
        )
    if plan.classes is not None and plan.n_scores == 1:
        first = quoteattr(_text(plan.classes[0].tolist()[0]))
        tables.append(f'<RegressionTable intercept="0.0" targetCategory={first}/>')
    method = {"log": "exp", "softmax": "softmax"}.get(plan.link, "logit")
    function = "regression" if plan.classes is None else "classification"
    fields = "".join(f'<MiningField name="{name}"/>' for name in names)
    return (
        f'<RegressionModel functionName="{function}" normalizationMethod="{method}"><MiningSchema>'
        f'<MiningField name="target" usageType="target"/>{fields}</MiningSchema>{"".join(tables)}</RegressionModel>'
    )


# ---- averages of models -------------------------------------------------------------------------------------------


def _combination(plan: CombinedPlan) -> list[str]:
    """Return a chain: the members, then a regression model that averages their predictions."""
    function = "regression" if plan.classes is None else "classification"
    models = [_member(member, k) for k, member in enumerate(plan.members)]
    opening = f'<MiningModel functionName="{function}">{_schema(plan, True)}{_output(plan)}'
    return [opening, _segments([*models, _mean_of(plan)], "modelChain"), "</MiningModel>"]


def _member(member: Plan, k: int) -> str:
    """Return a member with other names of its outputs."""
    text = "".join(_whole(member))
    for label in [] if member.classes is None else member.classes[0].tolist():
        name = quoteattr(f"probability({_text(label)})")
        text = text.replace(f"<OutputField name={name}", f"<OutputField name={quoteattr(_output_of(k, label))}")
    text = text.replace('<OutputField name="prediction"', f'<OutputField name="member_{k}"')
    return re.sub(r'name="score_(\d+)"', rf'name="member_{k}_score_\1"', text)


def _output_of(k: int, label: object) -> str:
    return f"member_{k}_probability({_text(label)})"


def _apply(function: str, *arguments: str) -> str:
    return f'<Apply function="{function}">{"".join(arguments)}</Apply>'


def _constant(value: float) -> str:
    return f'<Constant dataType="double">{value!r}</Constant>'


def _field(name: str) -> str:
    return f"<FieldRef field={quoteattr(name)}/>"


class _Fields:
    """Derived fields, in the order in which they are computed."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, name: str, expression: str) -> str:
        """Add a field and return its name."""
        self.texts.append(
            f'<DerivedField name={quoteattr(name)} optype="continuous" dataType="double">{expression}</DerivedField>'
        )
        return name

    def tempered(self, names: list[str], temperature: float | None, prefix: str) -> list[str]:
        """Divide the logarithms of probabilities by a temperature and normalise."""
        if temperature is None:
            return names
        powers = []
        for k, name in enumerate(names):
            log = _apply("ln", _apply("max", _field(name), _constant(2.0**-52)))
            powers.append(self.add(f"{prefix}_power_{k}", _apply("exp", _apply("/", log, _constant(temperature)))))
        total = self.add(f"{prefix}_total", _apply("sum", *map(_field, powers)))
        return [
            self.add(f"{prefix}_tempered_{k}", _apply("/", _field(power), _field(total)))
            for k, power in enumerate(powers)
        ]


def _mean_of(plan: CombinedPlan) -> str:
    """Return the model that turns the outputs of members into the prediction."""
    mean, fields = plan.mean, _Fields()
    if plan.classes is None:
        inputs = [f"member_{k}" for k in range(len(plan.members))]
        names = [fields.add("mean_0", _weighted(inputs, mean.weights))]
        labels = None
    else:
        labels = plan.classes[0].tolist()
        each = [[_output_of(k, label) for label in labels] for k in range(len(plan.members))]
        inputs = [name for names in each for name in names]
        each = [fields.tempered(own, plan.temperature(k), f"member_{k}") for k, own in enumerate(each)]
        names = [fields.add(f"mean_{j}", _weighted([own[j] for own in each], mean.weights)) for j in range(len(labels))]
        names = _calibrated(fields, names, mean.calibration)
    tables = [_table(name, None if labels is None else labels[j]) for j, name in enumerate(names)]
    used = "".join(f"<MiningField name={quoteattr(name)}/>" for name in inputs)
    function = "regression" if labels is None else "classification"
    return (
        f'<RegressionModel functionName="{function}" normalizationMethod="none"><MiningSchema>'
        f'<MiningField name="target" usageType="target"/>{used}</MiningSchema>'
        f"<LocalTransformations>{''.join(fields.texts)}</LocalTransformations>{''.join(tables)}</RegressionModel>"
    )


def _weighted(names: list[str], weights: list[float]) -> str:
    """Return the weighted sum of fields."""
    terms = [_apply("*", _constant(weight), _field(name)) for name, weight in zip(names, weights, strict=True)]
    return terms[0] if len(terms) == 1 else _apply("sum", *terms)


def _calibrated(fields: _Fields, names: list[str], by: float | Curve | None) -> list[str]:
    """Return the names of calibrated probabilities."""
    if not isinstance(by, Curve):
        return fields.tempered(names, by, "mean")
    if len(by.predicted) == 1:
        second = _constant(float(by.observed[0]))
    else:
        points = "".join(
            f'<LinearNorm orig="{x!r}" norm="{y!r}"/>'
            for x, y in zip(by.predicted.tolist(), by.observed.tolist(), strict=True)
        )
        second = f'<NormContinuous field={quoteattr(names[1])} outliers="asExtremeValues">{points}</NormContinuous>'
    fields.add("mean_second", second)
    return [fields.add("mean_first", _apply("-", _constant(1.0), _field("mean_second"))), "mean_second"]


def _table(name: str, label: object) -> str:
    category = "" if label is None else f" targetCategory={quoteattr(_text(label))}"
    return (
        f'<RegressionTable intercept="0.0"{category}><NumericPredictor name={quoteattr(name)} coefficient="1.0"/>'
        "</RegressionTable>"
    )
