"""Export to one C file without dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np

from spinney._data.combinations import OPERATIONS
from spinney._data.feature import Feature
from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.combined import CombinedPlan, any_plan_of
from spinney._interchange.writing.plan import Plan, bits_of
from spinney._model.predictions import Curve
from spinney._names import __version__

_KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while"
)
_MISSING_LEFT, _CATEGORY = 1, 2


def to_c(model: TableEstimator, *, name: str = "model") -> str:
    """Export a model to one C file without dependencies, whose predictions are bit-identical.

    The file is C99, includes only standard headers, allocates no memory and has no state, so any number of threads may
    call it. A row is an array of doubles, one for each column in the order of the training table: numbers as they are,
    True and False as 1 and 0, dates as seconds since 1970, categories as their codes; NAN is a missing value.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting, AdaBoost classifier or isolation forest, or an average of these: a
        voting ensemble, or a stack with ``final_estimator="greedy"``. Several outputs of trees and forests and oblique
        splits are supported, but not in averages. Not supported: surrogate splits, and boosting for ranking or
        survival, with misclassification costs, several outputs or several quantiles, or with the losses "ordinal",
        "squared_log_error" and those that are distributions, such as "normal".
    name : str, default="model"
        Prefix of the names in the file.

    Returns
    -------
    str
        The file. It defines, where NAME is `name`: ``NAME_predict(row, out)``, which writes the number, the class
        probabilities or, for an isolation forest, the score; ``NAME_class(row, codes)``, the position of the predicted
        class in ``NAME_classes`` (isolation forests: -1 for outliers, else 1); for boosting ``NAME_scores(row, out)``,
        the scores before the link; ``NAME_code(column, text)`` and ``NAME_code_of_number(column, value)``, the code of
        a category, NAN if it is unknown (with ``unseen="other"``, the code of unseen categories); and
        ``NAME_columns``, the column names.

    Notes
    -----
    Compile with ``-std=c99`` or ``-ffp-contract=off``, so that multiplications and additions are not fused, and never
    with ``-ffast-math``, which does not support NaN.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> source = spinney.to_c(model, name="penguins")
    >>> "void penguins_predict(const double *row, double *out)" in source
    True
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or _KEYWORDS.fullmatch(name):
        raise ValueError(f"name must be a C identifier that begins with a letter, not {name!r}.")
    plan = any_plan_of(model, "C", linear_leaves=True)
    parts = [_opening(plan, name), *_names(plan, name), *_lookups(plan, name)]
    if isinstance(plan, CombinedPlan):
        parts += _members(plan, name)
    else:
        parts += [*_tables(plan), *_exponentials(plan), *_predicting(plan, name), *_classifying(plan, name)]
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def _template(*names: str) -> str:
    """Return templates of C code that does not depend on the numbers of a model."""
    text = files("spinney._interchange.writing").joinpath("templates.c").read_text(encoding="utf-8")
    found = dict(re.findall(r"^// ---- (\w+)\n(.*?)(?=^// ---- |\Z)", text, flags=re.M | re.S))
    return "\n".join(found[name].strip("\n") for name in names)


# ---- names and categories -----------------------------------------------------------------------------------


def _opening(plan: Plan, name: str) -> str:
    lines = [
        f"/* A {plan.name} of spinney {__version__}: {len(plan.trees)} trees, {plan.n_nodes} nodes.",
        "   A row holds one double per column: numbers, 0 and 1 for false and true, seconds since 1970 for dates,",
        "   codes for categories, NAN for missing values. Thread-safe: there is no state. */",
        "#include <math.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        "#if defined(__clang__)",
        "#pragma STDC FP_CONTRACT OFF",
        "#elif defined(__GNUC__)",
        '#pragma GCC optimize("fp-contract=off")',
        "#endif",
        "",
        "enum {",
        f"  {name}_n_columns = {len(plan.features)},",
        f"  {name}_n_outputs = {plan.n_outputs},",
        f"  {name}_n_values = {plan.n_values} /* numbers that {name}_predict writes */",
        "};",
        "",
        f"void {name}_predict(const double *row, double *out);",
    ]
    if plan.classes is not None or plan.is_isolation:
        lines.append(f"void {name}_class(const double *row, int *codes); /* one for each output */")
    if plan.is_sum:
        lines.append(f"void {name}_scores(const double *row, double *out); /* {plan.n_scores}, before the link */")
    return "\n".join(lines)


def _names(plan: Plan, name: str) -> list[str]:
    parts = [_strings(f"{name}_columns", [feature.name for feature in plan.features])]
    if plan.classes is not None:
        labels = [str(label) for labels in plan.classes for label in labels.tolist()]
        parts.append(_strings(f"{name}_classes", labels))
    return [f"extern {part.split(' =')[0]};\n{part}" for part in parts]


def _strings(name: str, texts: Iterable[str], before: str = "") -> str:
    texts = list(texts)
    return f"{before}const char *const {name}[{len(texts)}] = {{{_wrapped(_literal(text) for text in texts)}}};"


def _literal(text: str) -> str:
    """Return a C string literal in UTF-8; special characters are octal escapes."""
    plain = re.compile(rb"[A-Za-z0-9 _.,:;/+*=()<>\[\]{}|&!@#$%^~'-]")
    return '"' + "".join(chr(b) if plain.match(bytes([b])) else f"\\{b:03o}" for b in text.encode()) + '"'


def _wrapped(items: Iterable[str], width: int = 110) -> str:
    """Join items by commas and wrap the lines."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) > width:
            lines.append(line.rstrip())
            line = ""
        line += item + ", "
    lines.append(line)
    return "\n  ".join(lines).rstrip().rstrip(",")


def _lookups(plan: Plan, name: str) -> list[str]:
    parts = []
    for of_text in (True, False):
        which = [
            (j, f) for j, f in enumerate(plan.features) if f.kind in ("category", "ordered") and f.holds_text == of_text
        ]
        if which:
            parts.append(_lookup(plan, name, which, of_text))
    return parts


def _lookup(plan: Plan, name: str, which: list[tuple[int, Feature]], of_text: bool) -> str:
    """Return the C function from a category to its code."""
    lines = []
    for j, feature in which:
        if of_text:
            values = [str(value) for value in feature.categories]
            if any("\0" in value for value in values):
                plan.refuse(f"a category of the column {feature.name!r} that holds a NUL", "Rename it before the fit.")
            lines.append(_strings(f"categories_{j}", values, "static "))
        else:
            numbers = _wrapped(_number(float(value)) for value in feature.categories)
            lines.append(f"static const double categories_{j}[{len(feature.categories)}] = {{{numbers}}};")
    argument, function = ("const char *text", "code") if of_text else ("double value", "code_of_number")
    same = "strcmp(categories_{j}[k], text) == 0" if of_text else "categories_{j}[k] == value"
    lines += [
        "/* The code of a category of a column (counted from 0); NAN if it is missing or unknown. */",
        f"double {name}_{function}(int column, {argument});",
        f"double {name}_{function}(int column, {argument}) {{",
        "  int k;",
        f"  if ({'text == NULL' if of_text else 'value != value'}) return NAN;",
        "  switch (column) {",
    ]
    for j, feature in which:
        n = len(feature.categories)
        other = f"{n}.0" if plan.unseen == "other" and feature.kind == "category" else "NAN"
        lines += [f"    case {j}:", f"      for (k = 0; k < {n}; ++k)", f"        if ({same.format(j=j)}) return k;"]
        lines.append(f"      return {other};")
    lines += ["  }", "  return NAN;", "}"]
    return "\n".join(lines)


# ---- numbers ------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    """Return a double as a literal that C99 reads exactly."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    plain = repr(value)
    return plain if len(plain) < 10 else value.hex()


def _array(kind: str, name: str, values: Iterable[str]) -> str:
    items = list(values) or ["0"]
    return f"static const {kind} {name}[{len(items)}] = {{\n  {_wrapped(items)}}};"


def _tables(plan: Plan) -> list[str]:
    """Return the arrays of all nodes; `next` is the right child of a split, and the number of a leaf."""
    sizes = [tree.size for tree in plan.trees]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    feature = np.concatenate([tree.feature for tree in plan.trees])
    is_leaf, is_category = feature < 0, np.zeros(len(feature), dtype=bool)
    sets, words, n_categories = np.zeros(len(feature), dtype=np.intp), [0], plan.n_categories
    for root, tree in zip(first.tolist(), plan.trees, strict=True):
        for node, codes in sorted(tree.left_codes.items()):
            is_category[root + node], sets[root + node] = True, len(words)
            words += bits_of(codes, n_categories[int(tree.feature[node])] + 1)
    threshold = np.concatenate([tree.threshold for tree in plan.trees])
    right = np.concatenate([tree.right for tree in plan.trees]) + np.repeat(first, sizes)
    missing_left = np.concatenate([tree.missing_left for tree in plan.trees])
    flags = np.where(is_leaf, 0, _MISSING_LEFT * missing_left + _CATEGORY * is_category)
    values = np.concatenate([tree.value[tree.leaves] for tree in plan.trees])
    threshold[is_leaf | is_category] = 0.0
    following = np.where(is_leaf, np.cumsum(is_leaf) - 1, right)
    parts = [
        f"enum {{ n_trees = {len(plan.trees)}, width = {plan.width} }};",
        "/* Nodes: the left child is the next one. */",
        _array("int32_t", "node_column", map(str, feature.tolist())),
        _array("double", "node_threshold", map(_number, threshold.tolist())),
        _array("uint32_t", "node_next", map(str, following.tolist())),
        _array("uint8_t", "node_flags", map(str, flags.tolist())),
        _array("uint32_t", "tree_root", map(str, first.tolist())),
        _array("double", "leaf_value", map(_number, values.ravel().tolist())),
    ]
    if len(words) > 1:
        parts += [
            "/* Categories that go left, as bitsets; the last bit is for unseen categories. */",
            _array("uint32_t", "node_set", map(str, sets.tolist())),
            _array("uint32_t", "set_words", map(str, words)),
            _array("uint32_t", "n_categories", map(str, n_categories)),
        ]
    return parts + _linear_leaves(plan) + _combinations(plan)


def _linear_leaves(plan: Plan) -> list[str]:
    """Return the arrays of linear leaves: the base and the terms of each leaf."""
    if not plan.has_linear_leaves:
        return []
    begin, bases = [0], list[float]()
    terms: dict[str, list[Any]] = {name: [] for name in ("feature", "slope", "middle", "low", "high")}
    for tree in plan.trees:
        for leaf in tree.leaves.tolist():
            found = range(0) if tree.linear is None else range(*tree.linear["begin"][leaf : leaf + 2].tolist())
            bases.append(0.0 if tree.linear is None else float(tree.linear["base"][leaf]))
            begin.append(begin[-1] + len(found))
            for name, values in terms.items():
                values += [] if tree.linear is None else tree.linear[name][found.start : found.stop].tolist()
    return [
        "/* Linear leaves: base, and by column the slope times the distance from the middle, between low and high. */",
        _array("uint32_t", "term_begin", map(str, begin)),
        _array("double", "leaf_base", map(_number, bases)),
        _array("int32_t", "term_column", map(str, terms.pop("feature"))),
        *(_array("double", f"term_{name}", map(_number, values)) for name, values in terms.items()),
    ]


def _combinations(plan: Plan) -> list[str]:
    if plan.pool is None:
        return []
    pool = plan.pool
    operations = (str(OPERATIONS.index(operation)) for operation in pool.operations)
    return [
        f"enum {{ n_plain = {len(pool.plain)}, n_combinations = {len(pool)}, n_combined = {pool.parts.shape[1]} }};",
        _array("int32_t", "plain_column", map(str, pool.plain)),
        _array("int32_t", "part_column", map(str, pool.parts.ravel().tolist())),
        _array("double", "part_coefficient", map(_number, pool.coefficients.ravel().tolist())),
        *([_array("uint8_t", "operation", operations)] if pool.has_others else []),
    ]


# ---- predicting ---------------------------------------------------------------------------------------------


def _exponentials(plan: Plan) -> list[str]:
    kind = plan.link.split(" ")[0]
    if plan.is_isolation or kind not in ("identity", "hinge"):
        return [_template("exp", "log") if kind == "focal" else _template("exp")]
    return []


def _predicting(plan: Plan, name: str) -> list[str]:
    has_sets = any(tree.left_codes for tree in plan.trees)
    parts = [_template("leaf_of_sets" if has_sets else "leaf_of_numbers")]
    if plan.pool is not None:
        parts.append(_template("combine_pairs" if plan.pool.has_others else "combine"))
    kind = plan.link.partition(" ")[0]
    if plan.is_sum:
        start = f"static const double start[{plan.n_scores}] = {{{_wrapped(map(_number, plan.start.tolist()))}}};"
        parts += [f"enum {{ n_scores = {plan.n_scores} }};\n{start}", _template("scores")]
        if plan.has_linear_leaves:
            parts.insert(-1, _template("linear_leaf"))
        if kind == "one_vs_rest":
            parts.append(_template("link_softmax"))
        parts.append(_template(f"link_{kind}", "predict_scores"))
    else:
        kind_of_mean = "isolation" if plan.is_isolation else "leaf" if plan.is_one_tree else "mean"
        parts.append(_template(f"predict_{kind_of_mean}"))
    return _filled(plan, name, parts)


def _classifying(plan: Plan, name: str) -> list[str]:
    if plan.is_isolation:
        return _filled(plan, name, [_template("class_isolation")])
    return [] if plan.classes is None else _filled(plan, name, _class_of(plan))


def _filled(plan: Plan, name: str, parts: list[str]) -> list[str]:
    """Fill in the fields of templates."""
    kind, _, parameter = plan.link.partition(" ")
    fields = {
        "NAME": name,
        "LINK": kind if kind in ("softmax", "one_vs_rest") else "apply_link",
        "VALUE_OF": "value_of" if plan.has_linear_leaves else "*leaf_of",
        "MEAN_LENGTH": _number(plan.mean_length or 0.0),
        "OFFSET": _number(plan.offset),
        "GAMMA": _number(float(parameter or 0)),
        "SPLIT_ROW": "split" if plan.pool is not None else "row",
        "COMBINE": "double split[n_plain + n_combinations];\n  combine(row, split);" if plan.pool is not None else "",
    }
    filled = (re.sub(r"@(\w+)@", lambda found: fields[found[1]], part) for part in parts)
    return [re.sub(r"^ +\n", "", part, flags=re.M) for part in filled]


# ---- averages of models -------------------------------------------------------------------------------------------

_STATIC = re.compile(  # names in the templates and tables, that each member needs under another name
    r"\b(node_\w+|tree_root|leaf_value|leaf_base|term_\w+|value_of|leaf_of|is_left|set_words|n_categories|n_trees|width|start|n_scores|apply_link|"
    r"softmax|one_vs_rest|combine|n_plain|plain_column|n_combinations|n_combined|part_\w+|operation)\b"
)


def _members(plan: CombinedPlan, name: str) -> list[str]:
    """Return the members, each with other names, and the function that averages them."""
    is_class, mean = plan.classes is not None, plan.mean
    is_tempered = mean.temperatures is not None or isinstance(mean.calibration, float)
    needs_log = is_tempered or any(member.link.startswith("focal") for member in plan.members)
    needs_exp = needs_log or any(_exponentials(member) for member in plan.members)
    parts = [_template("exp", "log") if needs_log else _template("exp")] if needs_exp else []
    for k, member in enumerate(plan.members):
        own = "\n".join([*_tables(member), *_predicting(member, f"{name}_{k}")])
        own = _STATIC.sub(rf"\1_{k}", own).replace("\nvoid ", "\nstatic void ")
        parts.append(f"/* ---- member {k + 1} */\n{own}")
    n = plan.n_classes if is_class else 1
    parts.append(f"enum {{ n_values = {n}, is_second_alone = {int(mean.is_stack and n == 2)} }};")
    if is_tempered:
        parts.append(_template("temper"))
    calibration = ""
    if isinstance(mean.calibration, Curve):
        points = (mean.calibration.predicted, mean.calibration.observed)
        parts += [
            f"enum {{ n_points = {len(points[0])} }};",
            *(
                _array("double", f"curve_{what}", map(_number, one.tolist()))
                for what, one in zip(("x", "y"), points, strict=True)
            ),
            _template("curve"),
        ]
        calibration = "  calibrate(out);\n"
    elif mean.calibration is not None:
        calibration = f"  temper(out, {_number(mean.calibration)});\n"
    calls = []
    for k, weight in enumerate(mean.weights):
        by = plan.temperature(k)
        temper = "" if by is None else f"  temper(own, {_number(by)});\n"
        calls.append(f"  {name}_{k}_predict(row, own);\n{temper}  add_member({_number(weight)}, own, out);\n")
    parts.append(_template("add_member"))
    parts.append(
        f"void {name}_predict(const double *row, double *out) {{\n  double own[n_values];\n  int k;\n"
        f"  for (k = 0; k < n_values; ++k) out[k] = 0.0;\n{''.join(calls)}"
        f"  if (is_second_alone) out[0] = 1.0 - out[1];\n{calibration}}}"
    )
    if is_class:
        filled = _template("class_probabilities").replace("@NAME@", name).replace("[width]", "[n_values]")
        parts += [_array("int", "classes_of_output", [str(n)]), filled]
    return parts


def _class_of(plan: Plan) -> list[str]:
    assert plan.classes is not None
    if plan.is_sum:
        return [_template("class_two_scores" if plan.n_scores == 1 else "class_scores")]
    if plan.cost is not None:
        cost = _wrapped(map(_number, plan.cost.ravel().tolist()))
        return [
            f"enum {{ n_classes = {len(plan.cost)} }};\nstatic const double cost[{plan.cost.size}] = {{{cost}}};",
            _template("class_cost"),
        ]
    counts = _array("int", "classes_of_output", (str(len(labels)) for labels in plan.classes))
    return [counts, _template("class_probabilities")]
