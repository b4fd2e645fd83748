"""Export to one SQL query: nested CASE expressions, their sums, and the link."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from spinney._data.feature import Feature
from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.combined import CombinedPlan, any_plan_of
from spinney._interchange.writing.plan import PlainTree, Plan
from spinney._interchange.writing.sql_quotes import Quotes, quotes_of
from spinney._model.predictions import Curve

_LINKS = ("identity", "log", "logit", "half_logit", "softmax")
_MOST_NODES, _MOST_TREES, _MOST_DEPTH = 20_000, 200, 200  # limits of the expressions that databases accept
_MAX_DIGITS, _MAX_POWER = 15, 22  # a decimal of so many digits times such a power of ten is read exactly


def to_sql(model: TableEstimator, table: str, *, keep: Sequence[str] = (), dialect: str | None = None) -> str:
    """Export a model to one SQL query that predicts every row of a table.

    Parameters
    ----------
    model : estimator
        A fitted tree, a small forest, gradient boosting, AdaBoost classifier, or isolation forest, or an average of
        these: a voting ensemble, or a stack with ``final_estimator="greedy"``. Not supported: linear leaves and
        combined columns, which boosting may have with default settings (fit it with ``linear_leaves=False``), boosting
        for ranking or survival, or with misclassification costs or several quantiles, the losses "focal",
        "smooth_hinge", "ordinal", "squared_log_error" and those that are distributions, such as "normal", AdaBoost with
        ``algorithm="gentle"`` and three or more classes, columns of dates, surrogate splits, oblique splits, several
        outputs, and models of more than 20,000 nodes, 200 trees or 200 levels (boosting with default settings has more
        trees).
    table : str
        Name of the table or view to read; it is quoted, so it cannot include the name of a schema.
    keep : sequence of str, optional
        Columns of the table to include in the result, such as a key.
    dialect : str, optional
        The database: "sqlite", "duckdb", "postgres", "trino", "oracle", "tsql", "snowflake", "redshift", "clickhouse",
        "mysql", "bigquery", "databricks" or "spark". Databases quote names and strings differently. None: standard SQL,
        which refuses names, labels and categories with a backslash.

    Returns
    -------
    str
        A SELECT. ``prediction`` is the number or the label, ``proba_…`` the probability of a class; isolation forests
        have ``score`` and ``prediction`` (-1 for outliers, else 1). NULL is a missing value.

    Notes
    -----
    Databases read the thresholds exactly. They may add up trees in another order, and compute exponentials differently.
    Names and categories are quoted and escaped for the dialect. Databases in which NaN is a number need NULL instead:
    ``NULLIF(x, 'NaN')``.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeRegressor(max_depth=1).fit({"sex": X["sex"]}, X["sex"] == "male")
    >>> print(spinney.to_sql(model, "penguins"), end="")
    SELECT
      tree_0 AS prediction
    FROM (
    SELECT
      CASE WHEN source."sex" IN ('male') THEN 1E0 ELSE 0E0 END AS tree_0
    FROM "penguins" AS source
    ) AS level_0
    """
    sql = quotes_of(dialect)
    plan = any_plan_of(model, "SQL")
    _check(plan)
    # some databases read an unknown quoted name as a string, unless it is qualified by the table
    columns = [f"source.{sql.name(feature.name)}" for feature in plan.features]
    levels = _combined_levels(plan, sql) if isinstance(plan, CombinedPlan) else _levels(plan, sql)
    outputs = [_output_name(column, sql) for column in levels[-1]]
    for name in keep:
        if sql.name(name).casefold() in outputs:
            raise ValueError(
                f"keep names the column {name!r}, which is also the name of a prediction. Rename it in a view."
            )
    kept = [f"source.{sql.name(name)} AS keep_{k}" for k, name in enumerate(keep)]
    query = _select([*kept, *_leaves(plan, columns, sql)], f"{sql.name(table)} AS source")
    for k, level in enumerate(levels):
        is_last = k == len(levels) - 1
        kept = [f"keep_{i} AS {sql.name(name) if is_last else f'keep_{i}'}" for i, name in enumerate(keep)]
        query = _select([*kept, *level], f"(\n{query}\n) AS level_{k}")
    return query + "\n"


def _select(columns: list[str], source: str) -> str:
    return "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM {source}"


def _output_name(column: str, sql: Quotes) -> str:
    """Return the name of a column of a query, in the case in which databases compare names."""
    name = column.rpartition(" AS ")[2].casefold()
    return name if name.startswith(sql.mark) else sql.name(name)


def _check(plan: Plan) -> None:
    for one in plan.members if isinstance(plan, CombinedPlan) else [plan]:
        one.check(_LINKS, costs=True, isolation=True)
    used = {int(j) for tree in plan.trees for j in tree.feature if j >= 0}
    for j in sorted(used):
        if plan.features[j].clock:
            plan.refuse(
                f"the dates of the column {plan.features[j].name!r}",
                "Databases represent them differently: make them numbers before the fit, such as days since a date.",
            )
    depth = max(_depth(tree) for tree in plan.trees)
    if plan.n_nodes > _MOST_NODES or len(plan.trees) > _MOST_TREES or depth > _MOST_DEPTH:
        plan.refuse(
            f"the {len(plan.trees):,} trees, {plan.n_nodes:,} nodes and {depth} levels",
            f"It takes {_MOST_TREES} trees, {_MOST_NODES:,} nodes and {_MOST_DEPTH} levels: fit a smaller model, or "
            "use spinney.to_onnx or spinney.to_c.",
        )


def _depth(tree: PlainTree) -> int:
    depth = np.zeros(tree.size, dtype=np.intp)
    for node in np.flatnonzero(tree.feature >= 0).tolist():
        depth[[node + 1, tree.right[node]]] = depth[node] + 1
    return int(depth.max())


# ---- literals -------------------------------------------------------------------------------------------


def literal(value: float) -> str:
    """Return a double as a literal that every database reads exactly.

    Not all databases round decimals of many digits to the nearest double; such a number is written as an integer times,
    or divided by, powers of two.
    """
    digits, _, exponent = f"{value:.{_MAX_DIGITS - 1}e}".partition("e")
    digits = digits.rstrip("0").rstrip(".")
    power_of_ten = int(exponent) - len(digits.partition(".")[2])  # of the digits read as an integer
    if float(f"{digits}e{exponent}") == value and abs(power_of_ten) <= _MAX_POWER:
        return f"{digits}E{int(exponent)}"
    mantissa, power = np.frexp(value)
    whole, power = int(mantissa * 2.0**53), int(power) - 53
    while whole % 2 == 0:
        whole, power = whole // 2, power + 1
    factors = []
    while power:
        step = max(-52, min(52, power))
        factors.append(f"{'*' if step > 0 else '/'} {2 ** abs(step)}E0")
        power -= step
    return f"({whole}E0 {' '.join(factors)})" if factors else f"{whole}E0"


def _decimal(value: float) -> str:
    """Return a double as a decimal that a database may round in its last place, for numbers that are only added."""
    return literal(value) if len(literal(value)) < 20 else f"{value:.16E}"


def _value(value: object, sql: Quotes) -> str:
    """Return a label or category as a literal."""
    if isinstance(value, str):
        return sql.text(value)
    if isinstance(value, (bool, np.bool_)):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(float(value)):
        number = float(value)
        return str(int(number)) if number.is_integer() and -(2**53) < number < 2**53 else literal(number)
    raise ValueError(f"SQL cannot hold the label or category {value!r}. Make it a string or a number before the fit.")


# ---- trees --------------------------------------------------------------------------------------------------


def _leaves(plan: Plan, columns: list[str], sql: Quotes) -> list[str]:
    """Return an expression for each tree: its value, or the number of its leaf if leaves have several values."""
    if isinstance(plan, CombinedPlan):
        own = [(k, text) for k, member in enumerate(plan.members) for text in _leaves(member, columns, sql)]
        return [f" AS m{k}_".join(text.rsplit(" AS ", 1)) for k, text in own]
    found = []
    for t, tree in enumerate(plan.trees):
        if plan.width == 1:
            texts = {node: _decimal(float(tree.value[node, 0])) for node in tree.leaves.tolist()}
        else:
            texts = {node: str(k) for k, node in enumerate(tree.leaves.tolist())}
        found.append(f"{_case(plan, tree, columns, texts, sql)} AS tree_{t}")
    return found


def _case(plan: Plan, tree: PlainTree, columns: list[str], of_leaf: dict[int, str], sql: Quotes) -> str:
    """Return a tree as nested CASE expressions."""

    def split(node: int) -> tuple[str | int, ...]:
        condition, is_left = _condition(plan, tree, columns, node, sql)
        children = (node + 1, int(tree.right[node]))
        first, second = children if is_left else children[::-1]
        return f"CASE WHEN {condition} THEN ", first, " ELSE ", second, " END"

    return tree.write(of_leaf.__getitem__, split)


def _condition(plan: Plan, tree: PlainTree, columns: list[str], node: int, sql: Quotes) -> tuple[str, bool]:
    """Return the condition of a split, and whether rows that satisfy it go left."""
    j = int(tree.feature[node])
    column, feature, missing_left = columns[j], plan.features[j], bool(tree.missing_left[node])
    cut = float(tree.threshold[node])
    if node not in tree.left_codes and cut == np.inf:
        known = f"{column} IS NOT NULL"
        return (known, True) if not missing_left else (f"{known} OR {column} IS NULL", True)
    left_codes = tree.split_codes(node, len(feature.categories) if feature.kind == "ordered" else 0)
    if left_codes is not None:
        return _set_condition(plan, feature, column, left_codes, missing_left, sql)
    if feature.kind == "boolean":
        column = f"CASE WHEN {column} THEN 1E0 WHEN NOT {column} THEN 0E0 END"
    return (f"{column} > {literal(cut)}", False) if missing_left else (f"{column} <= {literal(cut)}", True)


def _set_condition(
    plan: Plan, feature: Feature, column: str, left_codes: list[int], missing_left: bool, sql: Quotes
) -> tuple[str, bool]:
    """Return the condition of a set of categories; unseen ones are missing, or other categories."""
    n = len(feature.categories)
    is_other = plan.unseen == "other" and feature.kind == "category"
    left = {code for code in left_codes if code < n}
    other_left = n in left_codes if is_other else missing_left
    listed_left = not other_left
    codes = sorted(left if listed_left else set(range(n)) - left)
    listed = ", ".join(_value(feature.categories[code], sql) for code in codes)
    condition = f"{column} IN ({listed})" if codes else "1 = 0"
    if missing_left != other_left:  # NULL belongs to the listed categories
        condition = f"({condition} OR {column} IS NULL)"
    return condition, listed_left


# ---- from leaves to predictions -----------------------------------------------------------------------------


def _levels(plan: Plan, sql: Quotes) -> list[list[str]]:
    """Return the columns of the nested queries around the trees, from the innermost to the outermost."""
    if plan.is_isolation:
        return _isolation_levels(plan)
    if plan.is_sum:
        return _score_levels(plan, sql)
    n = literal(float(len(plan.trees)))
    if plan.classes is None:
        total = _sum([f"tree_{t}" for t in range(len(plan.trees))])
        return [[f"{total if plan.is_one_tree else f'({total}) / {n}'} AS prediction"]]
    proba = []
    for k in range(plan.width):
        total = _sum([_leaf_values(tree, t, k) for t, tree in enumerate(plan.trees)])
        proba.append(f"{total if plan.is_one_tree else f'({total}) / {n}'} AS proba_{k}")
    if plan.cost is None:
        return [proba, _labelled(plan, "proba", sql)]
    costs = []
    for j in range(plan.width):
        terms = [f"proba_{i} * {literal(float(plan.cost[i, j]))}" for i in range(plan.width)]
        costs.append(f"{_sum(terms)} AS cost_{j}")
    both = [f"proba_{k} AS proba_{k}" for k in range(plan.width)]
    return [proba, [*both, *costs], _labelled(plan, "cost", sql)]


def _sum(terms: list[str]) -> str:
    return " + ".join(terms)


def _leaf_values(tree: PlainTree, t: int, k: int) -> str:
    values = tree.value[tree.leaves, k].tolist()
    if len(values) == 1:
        return _decimal(values[0])
    cases = " ".join(f"WHEN {i} THEN {_decimal(value)}" for i, value in enumerate(values))
    return f"CASE tree_{t} {cases} END"


def _labelled(plan: Plan, by: str, sql: Quotes) -> list[str]:
    """Return the predicted label, by the largest probability or score or the least cost, and the probabilities."""
    assert plan.classes is not None
    labels = plan.classes[0].tolist()
    cases = []
    for k in range(len(labels) - 1):
        others = [m for m in range(len(labels)) if m > k]
        if by == "cost":
            others = [m for m in range(len(labels)) if m != k]
            test = " AND ".join(f"cost_{k} <= cost_{m} * {literal(1 + 1e-12)}" for m in others)
        else:
            test = " AND ".join(f"{by}_{k} >= {by}_{m}" for m in others)
        cases.append(f"WHEN {test} THEN {_value(labels[k], sql)}")
    label_case = f"CASE {' '.join(cases)} ELSE {_value(labels[-1], sql)} END" if cases else _value(labels[0], sql)
    proba = [f"proba_{k} AS {sql.name(f'proba_{label}')}" for k, label in enumerate(labels)]
    return [f"{label_case} AS prediction", *proba]


def _score_levels(plan: Plan, sql: Quotes) -> list[list[str]]:
    n = plan.n_scores
    scores = []
    for k in range(n):
        total = _sum([f"tree_{t}" for t in range(k, len(plan.trees), n)])
        scores.append(f"{total} + {_decimal(float(plan.start[k]))} AS score_{k}")
    if plan.classes is None:
        return [scores, [f"{'EXP(score_0)' if plan.link == 'log' else 'score_0'} AS prediction"]]
    labels = plan.classes[0].tolist()
    passed = [f"score_{k} AS score_{k}" for k in range(n)]
    if n == 1:
        minus = "-score_0" if plan.link == "logit" else "-2E0 * score_0"
        second = f"CASE WHEN {minus} > 700E0 THEN 0E0 ELSE 1E0 / (1E0 + EXP({minus})) END"
        names = [sql.name(f"proba_{label}") for label in labels]
        label_case = (
            f"CASE WHEN score_0 > 0E0 THEN {_value(labels[1], sql)} ELSE {_value(labels[0], sql)} END AS prediction"
        )
        return [
            scores,
            [*passed, f"{second} AS proba_1"],
            [label_case, f"1E0 - proba_1 AS {names[0]}", f"proba_1 AS {names[1]}"],
        ]
    highest = "CASE " + " ".join(
        f"WHEN {' AND '.join(f'score_{k} >= score_{m}' for m in range(k + 1, n))} THEN score_{k}" for k in range(n - 1)
    )
    highest = f"{highest} ELSE score_{n - 1} END AS highest"
    exponentials = [f"EXP(score_{k} - highest) AS exp_{k}" for k in range(n)]
    total = _sum([f"exp_{k}" for k in range(n)])
    proba = [f"exp_{k} / ({total}) AS proba_{k}" for k in range(n)]
    return [scores, [*passed, highest], [*passed, *exponentials], [*passed, *proba], _labelled(plan, "score", sql)]


# ---- averages of models -------------------------------------------------------------------------------------------

_OWN = re.compile(r"\b((?:tree|score|proba|exp)_\d+|highest|prediction)\b")


def _prefixed(text: str, k: int) -> str:
    """Return a column of a member with the names of that member."""
    return _OWN.sub(rf"m{k}_\1", text)


def _combined_levels(plan: CombinedPlan, sql: Quotes) -> list[list[str]]:
    """Return the levels of an average: those of its members side by side, then the mean and its calibration."""
    n, mean = plan.n_classes, plan.mean
    members = [_member_levels(member, plan, k, sql) for k, member in enumerate(plan.members)]
    outputs = [f"proba_{j}" for j in range(n)] or ["prediction"]
    longest, levels = max(map(len, members)), list[list[str]]()
    for depth in range(longest):
        columns = []
        for k, own in enumerate(members):
            level = own[depth] if depth < len(own) else [f"{name} AS {name}" for name in outputs]
            columns += [_prefixed(text, k) for text in level]
        levels.append(columns)
    means = {
        name: _sum([f"{literal(weight)} * m{k}_{name}" for k, weight in enumerate(mean.weights)]) for name in outputs
    }
    if plan.classes is None:
        return [*levels, [f"{means['prediction']} AS prediction"]]
    if mean.is_stack and n == 2:
        means["proba_0"] = f"1E0 - ({means['proba_1']})"
    levels.append([f"{means[name]} AS {name}" for name in outputs])
    by = mean.calibration
    if isinstance(by, Curve):
        second = _curve(by)
        levels.append([f"1E0 - ({second}) AS proba_0", f"{second} AS proba_1"])
    elif by is not None:
        levels += _tempered(n, by, sql)
    return [*levels, _labelled(plan, "proba", sql)]


def _member_levels(member: Plan, plan: CombinedPlan, k: int, sql: Quotes) -> list[list[str]]:
    """Return the levels of a member up to its prediction or all its probabilities."""
    levels, temperature = _levels(member, sql), plan.temperature(k)
    if plan.classes is None:
        return levels
    levels = levels[:-1]
    if member.n_scores == 1:
        levels.append(["1E0 - proba_1 AS proba_0", "proba_1 AS proba_1"])
    return levels if temperature is None else levels + _tempered(plan.n_classes, temperature, sql)


def _tempered(n: int, temperature: float, sql: Quotes) -> list[list[str]]:
    """Return the levels that divide the logarithms of probabilities by a temperature and normalise."""
    least, ln = literal(2.0**-52), "LOG" if sql.dialect == "tsql" else "LN"
    powers = [
        f"EXP({ln}(CASE WHEN proba_{k} > {least} THEN proba_{k} ELSE {least} END) / {literal(temperature)}) AS exp_{k}"
        for k in range(n)
    ]
    total = _sum([f"exp_{k}" for k in range(n)])
    return [powers, [f"exp_{k} / ({total}) AS proba_{k}" for k in range(n)]]


def _curve(curve: Curve) -> str:
    """Return the calibrated probability of the second class: linear between the points of the curve."""
    x, y = curve.predicted.tolist(), curve.observed.tolist()
    cases = [f"WHEN proba_1 <= {literal(x[0])} THEN {literal(y[0])}"]
    for k in range(1, len(x)):
        slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1])
        line = f"{literal(y[k - 1])} + (proba_1 - {literal(x[k - 1])}) * {literal(slope)}"
        cases.append(f"WHEN proba_1 <= {literal(x[k])} THEN {line}")
    return f"CASE {' '.join(cases)} ELSE {literal(y[-1])} END"


def _isolation_levels(plan: Plan) -> list[list[str]]:
    assert plan.mean_length is not None
    total, n = _sum([f"tree_{t}" for t in range(len(plan.trees))]), literal(float(len(plan.trees)))
    ratio = f"({total}) / {n} / {_decimal(plan.mean_length)}" if plan.mean_length > 0 else "1E0"
    level = "CASE WHEN ABS(ratio - 1E0) < 1E-12 THEN 1E0 ELSE ratio END AS ratio"
    score = f"-EXP({_decimal(-0.6931471805599453)} * ratio) AS score"
    label_case = f"CASE WHEN score < {literal(plan.offset)} THEN -1 ELSE 1 END AS prediction"
    return [[f"{ratio} AS ratio"], [level], [score], ["score AS score", label_case]]
