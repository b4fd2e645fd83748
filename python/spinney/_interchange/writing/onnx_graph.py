"""Export to an ONNX graph: encoded columns, one TreeEnsemble of doubles, and the link."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from spinney._data import Combinations
from spinney._data.feature import Feature
from spinney._data.types import Floats
from spinney._estimator.table_estimator import TableEstimator
from spinney._interchange.writing.combined import CombinedPlan, any_plan_of
from spinney._interchange.writing.plan import PlainTree, Plan
from spinney._model.predictions import Curve

_OPSET, _ML_OPSET, _IR_VERSION = 21, 5, 10  # the first versions with TreeEnsemble
_LEQ, _MEMBER = 0, 6  # modes of nodes
_SUM = 1
_MAX_MEMBERS = 16  # runtimes compare the members of a set one by one: larger sets are looked up before the trees
_LN2, _LARGEST = 0.6931471805599453, 700.0


def to_onnx(model: TableEstimator) -> Any:
    """Export a model to an ONNX graph, in double precision.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, gradient boosting, AdaBoost classifier or isolation forest, or an average of these: a
        voting ensemble, or a stack with ``final_estimator="greedy"``. Not supported: surrogate splits, several
        classification outputs, and boosting for ranking or survival, with misclassification costs, several outputs or
        several quantiles, or with the losses "ordinal", "squared_log_error" and those that are distributions, such as
        "normal".

    Returns
    -------
    onnx.ModelProto
        For ``onnx.save`` or ``SerializeToString``. If all columns are numbers, it has one input ``X`` of doubles,
        (n_rows, n_columns), else one input for each column, (n_rows, 1), named after it: strings for categories that
        are strings, doubles for all other columns. Booleans are 0 and 1, dates seconds since 1970, NaN is a missing
        number. An empty string is a missing category, unless the training table had it as a category; then any unseen
        string is missing. The output ``prediction`` holds numbers or labels, ``probabilities`` the class probabilities
        in the order of ``classes_``; isolation forests have ``score``, and -1 for outliers as the prediction.

    Notes
    -----
    Needs ``onnx`` (``pip install 'spinney-ml[onnx]'``); a runtime must support TreeEnsemble of ai.onnx.ml 5. Thresholds
    and inputs are doubles, so each row reaches the same leaves as in spinney; a runtime may add up trees in another
    order and compute exponentials differently.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> graph = spinney.to_onnx(spinney.DecisionTreeClassifier(max_depth=2).fit(X, y))
    >>> [output.name for output in graph.graph.output]
    ['prediction', 'probabilities']
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("Writing ONNX needs the package onnx. Install it: pip install 'spinney-ml[onnx]'.") from None
    plan = any_plan_of(model, "ONNX", linear_leaves=True)
    if plan.classes is not None:
        plan.refuse_several_outputs()
    graph = _Graph(onnx)
    values = _split_values(plan, graph)
    if isinstance(plan, CombinedPlan):
        outputs = _named(plan, graph, _combination(plan, graph, values), "")
    else:
        outputs = _outputs(plan, graph, _sums(plan, graph, values))
    made = onnx.helper.make_graph(graph.nodes, plan.name, graph.inputs, outputs, graph.constants)
    imports = [onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    found = onnx.helper.make_model(made, opset_imports=imports, ir_version=_IR_VERSION, producer_name="spinney")
    onnx.checker.check_model(found)
    return found


class _Graph:
    """A graph under construction; operations return the name of their result."""

    def __init__(self, onnx: ModuleType) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self._taken: set[str] = set()

    def _new(self, name: str) -> str:
        """Return a unique name."""
        found, k = name, 1
        while found in self._taken:
            found, k = f"{name}_{k}", k + 1
        self._taken.add(found)
        return found

    def reserve(self, *names: str) -> None:
        """Reserve the names of inputs and outputs."""
        self._taken |= set(names)

    def input(self, name: str, is_text: bool, width: int) -> str:
        kind = self.onnx.TensorProto.STRING if is_text else self.onnx.TensorProto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        name = self._new("constant")
        if array.dtype.kind in "OU":
            texts = [str(text).encode() for text in array.ravel().tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, list(array.shape), texts)
        else:
            tensor = self.onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def op(self, kind: str, *inputs: Any, result: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Add an operation; inputs that are not names are constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        result = self._new(kind) if result is None else result
        self.nodes.append(self.onnx.helper.make_node(kind, names, [result], domain=domain, **attributes))
        return result

    def as_double(self, value: str) -> str:
        return self.op("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def as_integer(self, value: str) -> str:
        return self.op("Cast", value, to=self.onnx.TensorProto.INT64)


# ---- columns ------------------------------------------------------------------------------------------------


def _split_values(plan: Plan, graph: _Graph) -> str:
    """Encode the columns as doubles, (n_rows, n), as trees split on them.

    A category is its code; an unseen one, if it is not missing, the number of categories; a missing one that number
    plus 1, so that sets can contain it.
    """
    graph.reserve("prediction", "probabilities", "score")
    if all(feature.kind in ("number", "boolean") for feature in plan.features):
        graph.reserve("X")
        inputs = graph.input("X", False, len(plan.features))
    else:
        names = [feature.name for feature in plan.features]
        clashing = sorted({"prediction", "probabilities", "score", ""} & set(names))
        if clashing or len(set(names)) < len(names):
            plan.refuse(f"the name of the column {clashing[0] if clashing else names!r}", "Rename it before the fit.")
        graph.reserve(*names)
        inputs_of = [graph.input(f.name, f.holds_text, 1) for f in plan.features]
        columns = [_encoded(plan, graph, f, name) for f, name in zip(plan.features, inputs_of, strict=True)]
        inputs = graph.op("Concat", *columns, axis=1)
    return inputs if plan.pool is None else _combined(plan, graph, inputs)


def _encoded(plan: Plan, graph: _Graph, feature: Feature, name: str) -> str:
    if feature.kind not in ("category", "ordered"):
        return name
    n = len(feature.categories)
    unseen = n if plan.unseen == "other" and feature.kind == "category" else n + 1
    codes = _text_codes if feature.holds_text else _number_codes
    found = codes(plan, graph, feature, name, unseen)
    if feature.kind == "category":
        return found
    return graph.op("Where", graph.op("Less", found, float(n)), found, np.nan)


def _text_codes(plan: Plan, graph: _Graph, feature: Feature, name: str, unseen: int) -> str:
    n = len(feature.categories)
    keys, codes = [str(value) for value in feature.categories], list(range(n))
    if "" not in keys:
        keys, codes = [*keys, ""], [*codes, n + 1]
    elif unseen == n:
        plan.refuse(
            f"missing values beside the empty string, which is a category of the column {feature.name!r},",
            "Rename the category before the fit.",
        )
    found = graph.op(
        "LabelEncoder", name, domain="ai.onnx.ml", keys_strings=keys, values_int64s=codes, default_int64=unseen
    )
    return graph.as_double(found)


def _number_codes(plan: Plan, graph: _Graph, feature: Feature, name: str, unseen: int) -> str:
    n = len(feature.categories)
    keys = np.array([[float(value) for value in feature.categories]])
    is_key = graph.as_integer(graph.op("Equal", name, keys))
    code = graph.as_double(graph.op("ArgMax", is_key, axis=1))
    is_known = graph.op("Greater", graph.op("ReduceMax", is_key, np.array([1])), np.array(0))
    otherwise = graph.op("Where", graph.op("IsNaN", name), float(n + 1), float(unseen))
    return graph.op("Where", is_known, code, otherwise)


def _combined(plan: Plan, graph: _Graph, inputs: str) -> str:
    """Return linear combinations of columns, added in the order of spinney, so that they are bit-identical."""
    pool = plan.pool
    assert pool is not None
    total = ""
    for m in range(pool.parts.shape[1]):
        part = graph.op("Gather", inputs, pool.parts[:, m].astype(np.int64), axis=1)
        term = graph.op("Mul", part, np.ascontiguousarray(pool.coefficients[np.newaxis, :, m]))
        total = term if m == 0 else graph.op("Add", total, term)
    if pool.has_others:
        total = _with_pairs(pool, plan.n_categories, graph, inputs, total)
    if not pool.plain:
        return total
    plain = graph.op("Gather", inputs, np.array(pool.plain, dtype=np.int64), axis=1)
    return graph.op("Concat", plain, total, axis=1)


def _with_pairs(pool: Combinations, n_categories: list[int], graph: _Graph, inputs: str, sums: str) -> str:
    """Return combinations with products, ratios and crosses instead of some of the sums.

    A cross of which a part is missing is missing: its number of categories plus 1. All columns are split on as well.
    """
    a, b = (graph.op("Gather", inputs, pool.parts[:, m].astype(np.int64), axis=1) for m in (0, 1))
    found = sums
    for operation, name in (("product", "Mul"), ("ratio", "Div")):
        values = graph.op(name, a, b)
        finite = graph.op("Where", graph.op("IsInf", values), np.array([[np.nan]]), values)
        found = graph.op("Where", np.array([[one == operation for one in pool.operations]]), finite, found)
    if "cross" not in pool.operations:
        return found
    counts = np.array(n_categories, dtype=np.float64)
    largest = np.where([[one == "cross"] for one in pool.operations], counts[pool.parts], np.inf)
    are_missing = [graph.op("Greater", part, largest[np.newaxis, :, m]) for m, part in enumerate((a, b))]
    missing = counts[np.newaxis, len(pool.plain) :] + 1.0
    return graph.op("Where", graph.op("Or", *are_missing), missing, found)


# ---- trees --------------------------------------------------------------------------------------------------


def _left_set(plan: Plan, tree: PlainTree, node: int) -> frozenset[int]:
    """Return the codes that go left, including that of missing values."""
    n = plan.n_categories[int(tree.feature[node])]
    return frozenset(tree.left_codes[node]) | ({n + 1} if tree.missing_left[node] else set())


def _with_sets(plan: Plan, graph: _Graph, values: str) -> tuple[str, dict[tuple[int, frozenset[int]], int]]:
    """Add an indicator column for each large set of categories; return the position of each."""
    n_categories = plan.n_categories
    wide = len(n_categories)
    of_column: dict[int, dict[frozenset[int], None]] = {}
    for tree in plan.trees:
        for node in tree.left_codes:
            j, left = int(tree.feature[node]), _left_set(plan, tree, node)
            if min(len(left), n_categories[j] + 2 - len(left)) > _MAX_MEMBERS:
                of_column.setdefault(j, {})[left] = None
    places: dict[tuple[int, frozenset[int]], int] = {}
    columns = [values]
    for j, sets in of_column.items():
        table = np.zeros((n_categories[j] + 2, len(sets)))
        for k, left in enumerate(sets):
            table[sorted(left), k] = 1.0
            places[j, left] = wide
            wide += 1
        code = graph.as_integer(graph.op("Gather", values, np.array(j), axis=1))
        columns.append(graph.op("Gather", table, code, axis=0))
    return (graph.op("Concat", *columns, axis=1) if of_column else values), places


class _Nodes:
    """The nodes and leaves of all trees, as attributes of TreeEnsemble."""

    def __init__(self, plan: Plan, places: dict[tuple[int, frozenset[int]], int]) -> None:
        self._plan = plan
        self._places = places
        self.roots: list[int] = []
        self.columns: list[int] = []
        self.modes: list[int] = []
        self.cuts: list[float] = []
        self.missing_true: list[int] = []
        self.children: dict[str, list[int]] = {"true": [], "false": []}
        self.are_leaves: dict[str, list[int]] = {"true": [], "false": []}
        self.members: list[float] = []
        self.weights: list[float] = []
        self.targets: list[int] = []

    def add_tree(self, tree: PlainTree, value: Floats, target: int) -> None:
        """Add a tree whose leaves add these values to a target."""
        self.roots.append(len(self.columns))
        split = np.flatnonzero(tree.feature >= 0).tolist()
        number = {node: len(self.columns) + k for k, node in enumerate(split)}
        number |= {int(node): len(self.weights) + k for k, node in enumerate(tree.leaves.tolist())}
        self.weights += value[tree.leaves].tolist()
        self.targets += [target] * len(tree.leaves)
        if not split:  # TreeEnsemble requires a split: both children are the leaf
            self._add_node(0, _LEQ, 0.0, True, (number[0], 1), (number[0], 1))
        for node in split:
            left, right = ((number[c], int(tree.feature[c] < 0)) for c in (node + 1, int(tree.right[node])))
            self._add_split(tree, node, left, right)

    def _add_split(self, tree: PlainTree, node: int, left: tuple[int, int], right: tuple[int, int]) -> None:
        j = int(tree.feature[node])
        if node not in tree.left_codes:
            self._add_node(j, _LEQ, float(tree.threshold[node]), bool(tree.missing_left[node]), left, right)
            return
        members = _left_set(self._plan, tree, node)
        if (j, members) in self._places:
            self._add_node(self._places[j, members], _LEQ, 0.5, False, right, left)
            return
        others = frozenset(range(self._plan.n_categories[j] + 2)) - members
        if not members or not others:  # sets must not be empty
            only = left if members else right
            self._add_node(j, _LEQ, 0.0, False, only, only)
            return
        if len(others) < len(members):
            members, left, right = others, right, left
        self.members += [*(float(code) for code in sorted(members)), np.nan]
        self._add_node(j, _MEMBER, 0.0, False, left, right)

    def _add_node(
        self, column: int, mode: int, cut: float, missing_true: bool, yes: tuple[int, int], no: tuple[int, int]
    ) -> None:
        self.columns.append(column)
        self.modes.append(mode)
        self.cuts.append(cut)
        self.missing_true.append(int(missing_true))
        for branch, (child, is_leaf) in (("true", yes), ("false", no)):
            self.children[branch].append(child)
            self.are_leaves[branch].append(is_leaf)


def _sums(plan: Plan, graph: _Graph, values: str) -> str:
    """Return the sum of the trees of a model, from the values that they split on."""
    values, places = _with_sets(plan, graph, values)
    sums = _ensemble(plan, graph, values, places)
    return graph.op("Add", sums, _slopes(plan, graph, values, places)) if plan.has_linear_leaves else sums


def _ensemble(plan: Plan, graph: _Graph, values: str, places: dict[tuple[int, frozenset[int]], int]) -> str:
    """Return the sum of the trees, (n_rows, n): one for each score, or for each value of a leaf."""
    nodes = _Nodes(plan, places)
    for t, tree in enumerate(plan.trees):
        for k in range(plan.width):
            nodes.add_tree(tree, tree.value[:, k], t % plan.n_scores if plan.is_sum else k)
    return _tree_ensemble(graph, values, nodes, plan.n_scores if plan.is_sum else plan.width)


def _slopes(plan: Plan, graph: _Graph, values: str, places: dict[tuple[int, frozenset[int]], int]) -> str:
    """Return what linear leaves add to their constants, (n_rows, n_scores).

    Each tree gives the number of the leaf that a row reaches, by which the terms of the leaf are looked up: of all
    trees the first terms, then the second ones, and so on.
    """
    linear = [t for t, tree in enumerate(plan.trees) if tree.linear is not None]
    nodes, offsets, terms = _Nodes(plan, places), [0.0], [_NO_TERMS]
    for i, t in enumerate(linear):
        tree = plan.trees[t]
        lines, number = tree.linear, np.zeros(tree.size)
        assert lines is not None
        for leaf in tree.leaves.tolist():
            begin, end = lines["begin"][leaf : leaf + 2].tolist()
            if begin < end:
                number[leaf] = len(offsets)
                offsets.append(float(lines["base"][leaf] - tree.value[leaf, 0]))
                terms.append([[lines[name][j] for name in _TERM] for j in range(begin, end)])
        nodes.add_tree(tree, number, i)
    leaf_of = graph.as_integer(_tree_ensemble(graph, values, nodes, len(linear)))
    total, is_missing = graph.op("Gather", np.array(offsets), leaf_of), ""
    for rank in range(max(map(len, terms))):
        of_leaf = np.array([leaf[rank] if rank < len(leaf) else _NO_TERM for leaf in terms], dtype=np.float64)
        column = graph.op("Gather", of_leaf[:, 0].astype(np.int64), leaf_of)
        slope, middle, low, high = (graph.op("Gather", of_leaf[:, k].copy(), leaf_of) for k in range(1, 5))
        used = graph.op("Gather", np.array([rank < len(leaf) for leaf in terms]), leaf_of)
        value = graph.op("Where", used, graph.op("GatherElements", values, column, axis=1), 0.0)
        lacks = graph.op("IsNaN", value)
        is_missing = graph.op("Or", is_missing, lacks) if is_missing else lacks
        clipped = graph.op("Min", graph.op("Max", graph.op("Where", lacks, 0.0, value), low), high)
        total = graph.op("Add", total, graph.op("Mul", slope, graph.op("Sub", clipped, middle)))
    added = graph.op("Where", is_missing, 0.0, total)
    return graph.op("MatMul", added, np.eye(plan.n_scores)[np.array(linear) % plan.n_scores])


_TERM = ("feature", "slope", "middle", "low", "high")
_NO_TERM: list[float] = [0.0] * len(_TERM)
_NO_TERMS: list[list[float]] = []


def _tree_ensemble(graph: _Graph, values: str, nodes: _Nodes, n_targets: int) -> str:
    tensor = graph.onnx.numpy_helper.from_array
    optional: dict[str, Any] = {}
    if nodes.members:
        optional["membership_values"] = tensor(np.array(nodes.members), "members")
    return graph.op(
        "TreeEnsemble",
        values,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function=_SUM,
        post_transform=0,
        tree_roots=nodes.roots,
        nodes_featureids=nodes.columns,
        nodes_modes=tensor(np.array(nodes.modes, dtype=np.uint8), "modes"),
        nodes_splits=tensor(np.array(nodes.cuts), "cuts"),
        nodes_missing_value_tracks_true=nodes.missing_true,
        nodes_truenodeids=nodes.children["true"],
        nodes_trueleafs=nodes.are_leaves["true"],
        nodes_falsenodeids=nodes.children["false"],
        nodes_falseleafs=nodes.are_leaves["false"],
        leaf_targetids=nodes.targets,
        leaf_weights=tensor(np.array(nodes.weights), "weights"),
        **optional,
    )


# ---- from sums to predictions -------------------------------------------------------------------------------


def _outputs(plan: Plan, graph: _Graph, sums: str) -> list[Any]:
    if plan.is_isolation:
        return _isolation(plan, graph, sums)
    scores = _scores(plan, graph, sums)
    return _named(plan, graph, _predictions(plan, graph, sums, scores), scores)


def _scores(plan: Plan, graph: _Graph, sums: str) -> str:
    """Return the scores of a sum of trees; empty for means."""
    return graph.op("Add", sums, plan.start[np.newaxis]) if plan.is_sum else ""


def _predictions(plan: Plan, graph: _Graph, sums: str, scores: str) -> str:
    """Return numbers, (n_rows, n_outputs), or class probabilities, (n_rows, n_classes)."""
    if not plan.is_sum:
        return sums if plan.is_one_tree else graph.op("Div", sums, float(len(plan.trees)))
    if plan.classes is None:
        return _exp(graph, scores) if plan.link == "log" else scores
    return str(_LINKS[plan.link.split(" ")[0]](graph, scores, float(plan.link.partition(" ")[2] or 0)))


def _combination(plan: CombinedPlan, graph: _Graph, values: str) -> str:
    """Return the weighted mean of the predictions of members, with their temperatures and the calibration."""
    total, is_second_alone = "", plan.mean.is_stack and plan.n_classes == 2
    for k, (member, weight) in enumerate(zip(plan.members, plan.mean.weights, strict=True)):
        own_values = values if member.pool is None else _combined(member, graph, values)
        sums = _sums(member, graph, own_values)
        own = _tempered(graph, _predictions(member, graph, sums, _scores(member, graph, sums)), plan.temperature(k))
        weighted = graph.op("Mul", own, weight)
        total = graph.op("Add", total, weighted) if total else weighted
    if is_second_alone:
        total = _two(graph, graph.op("Gather", total, np.array([1]), axis=1))
    by = plan.mean.calibration
    return _calibrated(graph, total, by) if isinstance(by, Curve) else _tempered(graph, total, by)


def _tempered(graph: _Graph, proba: str, temperature: float | None) -> str:
    if temperature is None:
        return proba
    logs = graph.op("Log", graph.op("Max", proba, 2.0**-52))
    return graph.op("Softmax", graph.op("Div", logs, temperature), axis=1)


def _calibrated(graph: _Graph, proba: str, curve: Curve) -> str:
    """Return the probabilities of two classes by a calibration curve: the sum of the rises of its pieces."""
    if len(curve.predicted) == 1:
        second = graph.op(
            "Add", graph.op("Mul", graph.op("Gather", proba, np.array([1]), axis=1), 0.0), curve.observed[0]
        )
        return _two(graph, second)
    width, rise = np.diff(curve.predicted), np.diff(curve.observed)
    beyond = graph.op("Sub", graph.op("Gather", proba, np.array([1]), axis=1), curve.predicted[np.newaxis, :-1])
    inside = graph.op("Max", graph.op("Min", graph.op("Div", beyond, width[np.newaxis]), 1.0), 0.0)
    return _two(graph, graph.op("Add", graph.op("MatMul", inside, rise[:, np.newaxis]), float(curve.observed[0])))


def _named(plan: Plan, graph: _Graph, found: str, scores: str) -> list[Any]:
    """Return the outputs of the graph."""
    if plan.classes is not None:
        return _classes(plan, graph, found, scores)
    if plan.n_outputs > 1:
        graph.op("Identity", found, result="prediction")
        return [_described(graph, "prediction", np.float64, [None, plan.n_outputs])]
    graph.op("Squeeze", found, np.array([1]), result="prediction")
    return [_described(graph, "prediction", np.float64, [None])]


def _described(graph: _Graph, name: str, kind: Any, shape: list[int | None]) -> Any:
    return graph.onnx.helper.make_tensor_value_info(
        name, graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape
    )


def _classes(plan: Plan, graph: _Graph, proba: str, scores: str) -> list[Any]:
    assert plan.classes is not None
    labels = plan.classes[0]
    graph.op("Identity", proba, result="probabilities")
    if plan.n_scores == 1:
        code = graph.as_integer(graph.op("Greater", graph.op("Squeeze", scores, np.array([1])), 0.0))
    elif plan.cost is not None:
        expected = graph.op("MatMul", proba, plan.cost)
        least = graph.op("ReduceMin", expected, np.array([1]))
        is_best = graph.op("LessOrEqual", expected, graph.op("Mul", least, 1 + 1e-12))
        code = graph.op("ArgMax", graph.as_integer(is_best), axis=1, keepdims=0)
    else:
        code = graph.op("ArgMax", scores if plan.is_sum else proba, axis=1, keepdims=0)
    is_text = labels.dtype.kind not in "biuf"
    known = labels if is_text or labels.dtype.kind in "bf" else labels.astype(np.int64)
    graph.op("Gather", known, code, axis=0, result="prediction")
    kind = object if is_text else known.dtype
    return [
        _described(graph, "prediction", kind, [None]),
        _described(graph, "probabilities", np.float64, [None, len(labels)]),
    ]


def _exp(graph: _Graph, value: str) -> str:
    return graph.op("Exp", graph.op("Clip", value, -_LARGEST, _LARGEST))


def _logistic(graph: _Graph, score: str) -> str:
    return graph.op("Div", 1.0, graph.op("Add", 1.0, _exp(graph, graph.op("Neg", score))))


def _two(graph: _Graph, second: str) -> str:
    return graph.op("Concat", graph.op("Sub", 1.0, second), second, axis=1)


def _signed(graph: _Graph, score: str, larger: str) -> str:
    """Return the probabilities of two classes, given that of the class with the sign of the score."""
    return _two(graph, graph.op("Where", graph.op("Less", score, 0.0), graph.op("Sub", 1.0, larger), larger))


def _hinge(graph: _Graph, score: str, _: float) -> str:
    size = graph.op("Min", graph.op("Abs", score), 1.0)
    return _signed(graph, score, graph.op("Div", 1.0, graph.op("Sub", 2.0, size)))


def _focal(graph: _Graph, score: str, gamma: float) -> str:
    size = graph.op("Min", graph.op("Abs", score), _LARGEST)
    e = graph.op("Exp", graph.op("Neg", size))
    above = graph.op("Add", 1.0, e)
    log_p = graph.op("Neg", graph.op("Log", above))
    log_q = graph.op("Sub", log_p, size)
    p, q = graph.op("Div", 1.0, above), graph.op("Div", e, above)
    rest = graph.op("Sub", q, graph.op("Mul", graph.op("Mul", p, gamma), log_p))
    of_winner = graph.op("Mul", _exp(graph, graph.op("Mul", gamma, graph.op("Sub", log_q, log_p))), rest)
    of_loser = graph.op("Sub", p, graph.op("Mul", graph.op("Mul", q, gamma), log_q))
    return _signed(graph, score, graph.op("Div", of_loser, graph.op("Add", of_winner, of_loser)))


def _one_vs_rest(graph: _Graph, scores: str, _: float) -> str:
    alone = _logistic(graph, graph.op("Mul", scores, 2.0))
    return graph.op("Div", alone, graph.op("ReduceSum", alone, np.array([1])))


_LINKS = {
    "logit": lambda graph, score, _: _two(graph, _logistic(graph, score)),
    "half_logit": lambda graph, score, _: _two(graph, _logistic(graph, graph.op("Mul", score, 2.0))),
    "softmax": lambda graph, scores, _: graph.op("Softmax", scores, axis=1),
    "hinge": _hinge,
    "focal": _focal,
    "one_vs_rest": _one_vs_rest,
}


def _isolation(plan: Plan, graph: _Graph, sums: str) -> list[Any]:
    assert plan.mean_length is not None
    mean = graph.op("Div", graph.op("Squeeze", sums, np.array([1])), float(len(plan.trees)))
    if plan.mean_length > 0:
        ratio = graph.op("Div", mean, plan.mean_length)
        is_mean = graph.op("Less", graph.op("Abs", graph.op("Sub", ratio, 1.0)), 1e-12)
        ratio = graph.op("Where", is_mean, 1.0, ratio)
    else:
        ratio = graph.op("Add", graph.op("Mul", mean, 0.0), 1.0)
    graph.op("Neg", graph.op("Exp", graph.op("Mul", ratio, -_LN2)), result="score")
    is_outlier = graph.op("Less", graph.op("Sub", "score", plan.offset), 0.0)
    graph.op("Where", is_outlier, np.array(-1), np.array(1), result="prediction")
    return [_described(graph, "prediction", np.int64, [None]), _described(graph, "score", np.float64, [None])]
