"""A tree as a table, as nested dicts and as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from spinney._data.columns import default_names
from spinney._data.display import Backend, frame_of
from spinney._estimator.estimator import Estimator
from spinney._estimator.table_estimator import TableEstimator, trees_of
from spinney._estimator.user_criterion import name_of
from spinney._model.functional.model import FittedFunctions
from spinney.inspect.explain.importances import count_splits
from spinney.inspect.text.conditions import StoredSplit
from spinney.inspect.text.reader import TreeReader


def to_frame(model: TableEstimator, backend: Backend | None = None) -> Any:
    """Return the nodes of a tree as a frame.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    backend : {"pandas", "polars"}, optional
        Library of the frame; None: the one that is installed, pandas first.

    Returns
    -------
    frame
        One row per node, in preorder: node, parent (-1 for the root), depth, is_leaf, column, kind, threshold (number
        splits; the position in the order for ordered categories), categories (those that go left), missing (the side
        of missing values where no surrogate decides, or "stop"), n, weight, fraction, impurity, gain, prediction, and
        one column ``proba_…`` per class.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> model = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> spinney.to_frame(model, "pandas")[["node", "parent", "threshold", "n", "prediction"]]
       node  parent  threshold    n prediction
    0     0      -1      206.5  344     Adelie
    1     1       0        NaN  215     Adelie
    2     2       0        NaN  129     Gentoo
    """
    reader = TreeReader(model)
    tree, nodes = reader.tree, range(reader.tree.node_count)
    splits = [None if reader.is_leaf(node) else _split(reader, node) for node in nodes]
    columns: dict[str, list[Any]] = {
        "node": list(nodes),
        "parent": reader.parent.tolist(),
        "depth": tree.depth.tolist(),
        "is_leaf": tree.is_leaf.tolist(),
        **{name: [s and s[name] for s in splits] for name in ("column", "kind", "threshold", "categories", "missing")},
        "n": tree.n_node_samples.tolist(),
        "weight": tree.weighted_n_node_samples.tolist(),
        "fraction": [reader.fraction(node) for node in nodes],
        "impurity": tree.impurity.tolist(),
        "gain": [s and s["gain"] for s in splits],
        **_predictions(reader),
    }
    return frame_of(columns, backend)


def _predictions(reader: TreeReader) -> dict[str, list[Any]]:
    """Return one column per output and one per class; outputs are numbered where there are several."""
    n_outputs, nodes = reader.tree.n_outputs, range(reader.tree.node_count)
    predictions = [reader.prediction(node) for node in nodes]
    columns: dict[str, list[Any]] = {}
    for k in range(n_outputs):
        suffix = "" if n_outputs == 1 else f"_{k}"
        columns[f"prediction{suffix}"] = predictions if n_outputs == 1 else [p[k] for p in predictions]
        if reader.is_classifier:
            probabilities = reader.tree.flat_value[:, reader.tree.class_columns[k]]
            for label, of_class in zip(reader.classes[k], probabilities.T, strict=True):
                columns[f"proba{suffix}_{label}"] = of_class.tolist()
    return columns


def to_dict(model: TableEstimator) -> dict[str, Any]:
    """Return a tree as nested dicts and lists that fit into JSON, complete enough to predict with.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.

    Returns
    -------
    dict
        ``estimator``, ``criterion``, ``n_outputs``, ``unseen``, ``columns`` (name, kind and categories), ``classes``
        (one list per output; classifiers only) and ``tree``, the root. A node has ``node``, ``n``, ``weight``,
        ``impurity``, ``prediction`` and ``probabilities`` (by output, in the order of the classes); an inner node also
        has ``split``, ``left`` and ``right``. A split has its ``column`` (name) and ``index`` (position), and what goes
        left: numbers up to ``threshold`` (for ordered categories, a position in their order; None: every known value)
        or the listed ``categories``. ``missing`` is the side of missing values. If ``unseen`` is "other", ``other`` is
        the side of categories that did not occur in the training table.
        If the column is missing, a split with ``surrogates`` tries these in order: the first whose column has a value
        decides. Each sends numbers up to ``threshold`` to the side ``below``, or the ``categories`` left and the
        ``right_categories`` right; a ``threshold`` of None separates known values from missing ones. Categories that
        such a split does not list count as missing, and ``missing`` is the fallback; "stop" means that the row stays at
        the node. ``competitors`` are for information only.
        A ``linear`` leaf (a boosted tree with linear_leaves) predicts its ``base`` plus, for each of its ``terms``,
        ``slope`` times (the ``column``'s value, clipped to ``low`` and ``high``, minus ``middle``); its ``prediction``
        is for rows with a missing value in one of these columns.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> root = spinney.to_dict(model)["tree"]
    >>> root["split"]["column"], root["split"]["threshold"], root["right"]["prediction"]
    ('flipper_length_mm', 206.5, 'Gentoo')
    """
    reader = TreeReader(model)
    nodes: list[dict[str, Any]] = [_node(reader, node) for node in range(reader.tree.node_count)]
    for node, entry in enumerate(nodes):
        if not reader.is_leaf(node):
            left, right = reader.children(node)
            entry |= {"split": _split(reader, node), "left": nodes[left], "right": nodes[right]}
    schema = model.schema_.to_dict()
    header: dict[str, Any] = {
        "estimator": type(model).__name__,
        "criterion": name_of(model.criterion),
        "n_outputs": reader.tree.n_outputs,
        "unseen": model.unseen,
        "columns": schema["features"],
    }
    if "combinations" in schema:
        names = ("parts", "coefficients", "operations")
        header["combinations"] = {name: entry for name, entry in schema["combinations"].items() if name in names}
    if reader.is_classifier:
        header["classes"] = [[_plain(label) for label in labels] for labels in reader.classes]
    return header | {"tree": nodes[0]}


def _node(reader: TreeReader, node: int) -> dict[str, Any]:
    prediction = reader.prediction(node)
    entry: dict[str, Any] = {
        "node": node,
        "n": reader.n_rows(node),
        "weight": reader.weight(node),
        "impurity": float(reader.tree.impurity[node]),
        "prediction": [_plain(p) for p in prediction] if isinstance(prediction, list) else _plain(prediction),
    }
    base, terms = reader.linear_model(node)
    if terms:
        names = ("column", "index", "slope", "middle", "low", "high")
        named = [dict(zip(names, (reader.features[term[0]].name, *term), strict=True)) for term in terms]
        entry["linear"] = {"base": base, "terms": named}
    return entry | ({"probabilities": reader.probabilities(node)} if reader.is_classifier else {})


def _split(reader: TreeReader, node: int) -> dict[str, Any]:
    j, stored = reader.column(node), reader.stored
    left, right = reader.sides(node)
    has_codes = left.codes is not None
    split: dict[str, Any] = {
        "column": left.column,
        "index": j,
        "kind": left.kind,
        "threshold": left.upper if not has_codes and np.isfinite(left.upper) else None,
        "categories": list(left.categories or ()) if has_codes else None,
        "missing": "stop" if stored.stops(node) else _side(bool(reader.tree.missing_go_to_left[node])),
        "gain": reader.gain(node),
    }
    if has_codes:
        split["other"] = _side(reader.other_left(node))
    if has_codes and stored.is_partial(node):
        split |= {"right_categories": list(right.categories or ()), "other": split["missing"]}
    for role, splits in (("surrogates", stored.surrogates(node)), ("competitors", stored.of(node, "competitor"))):
        if splits:
            split[role] = [_stored_split(other, reader.weight(node)) for other in splits]
    return split


def _side(is_left: bool) -> str:
    return "left" if is_left else "right"


def _measures(split: StoredSplit, weight: float) -> dict[str, float]:
    """Return the gain of a split, or the agreement of a surrogate with the primary split."""
    if split.role == "surrogate":
        return {"agreement": split.measure, "adjusted_agreement": split.adjusted}
    return {"gain": split.measure / weight}


def _stored_split(split: StoredSplit, weight: float) -> dict[str, Any]:
    left, right = split.left, split.right
    has_codes, cut = left.codes is not None, min(left.upper, right.upper)
    entry: dict[str, Any] = {
        "column": left.column,
        "index": split.column,
        "kind": left.kind,
        "threshold": None if has_codes or not np.isfinite(cut) else cut,
        "below": None if has_codes else _side(left.lower == -np.inf),
        "categories": list(left.categories or ()) if has_codes else None,
        "right_categories": list(right.categories or ()) if has_codes else None,
        "n": split.n,
    }
    return entry | _measures(split, weight)


def splits_frame(model: TableEstimator, backend: Backend | None = None) -> Any:
    """Return every stored split of a tree as a frame: primary splits, competitors and surrogates.

    Parameters
    ----------
    model : estimator
        A fitted decision tree. ``max_competitors`` stores competitors, ``missing="surrogate"`` surrogates.
    backend : {"pandas", "polars"}, optional
        Library of the frame; None: the one that is installed, pandas first.

    Returns
    -------
    frame
        One row per split, node by node, best first: node, role ("split", "competitor", "surrogate"), column,
        condition (of the left side), n (training rows with a value in the column; for a surrogate, those that it
        decides because the columns before it are missing), gain (impurity decrease relative to the weight of the node;
        None for surrogates), and, for surrogates only, agreement (fraction of the rows that it sends to the same side
        as the primary split) and adjusted_agreement (relative to the majority rule: 1 for perfect agreement, 0 for no
        improvement).

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=1, missing="surrogate", max_surrogates=2).fit(X, y)
    >>> spinney.splits_frame(model, "pandas")[["role", "condition", "agreement"]].round(2)
            role                  condition  agreement
    0      split  flipper_length_mm ≤ 206.5        NaN
    1  surrogate      bill_depth_mm > 16.35       0.93
    2  surrogate         body_mass_g ≤ 4525       0.91
    """
    reader = TreeReader(model)
    lines: list[dict[str, Any]] = []
    for node in reader.inner_nodes:
        stored, left = reader.stored.of(node), reader.sides(node)[0]
        primary = {"column": left.column, "condition": left.describe(show_missing=False), "gain": reader.gain(node)}
        lines.append({"node": node, "role": "split"} | primary)
        for k, split in enumerate(stored):
            entry = {"role": split.role, "n": split.n} | _measures(split, reader.weight(node))
            if k == 0:  # the primary split
                lines[-1] |= entry
            else:
                lines.append({"node": node, "column": split.left.column, "condition": split.text} | entry)
    names = ("node", "role", "column", "condition", "n", "gain", "agreement", "adjusted_agreement")
    return frame_of({name: [line.get(name) for line in lines] for name in names}, backend)


def _plain(label: object) -> Any:
    """Return a label as a value of JSON."""
    return label if isinstance(label, (str, int, float, bool)) or label is None else str(label)


def to_json(model: TableEstimator, *, indent: int | None = None) -> str:
    """Return a tree as JSON text.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    indent : int, optional
        Spaces per level; None: one line.

    Returns
    -------
    str
        The result of `to_dict` as text.

    Examples
    --------
    >>> import json
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> json.loads(spinney.to_json(model)) == spinney.to_dict(model)
    True
    """
    return write_json(to_dict(model), indent)


def write_json(value: object, indent: int | None = None) -> str:
    """Return nested dicts and lists as `json.dumps` does, but without its recursion limit."""
    texts: list[str] = []
    pending: list[str | tuple[Any, int]] = [(value, 0)]  # texts, and values with their depth; the last comes next
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            texts.append(item)
            continue
        value, depth = item
        if isinstance(value, dict) and value:
            (begin, end), entries = "{}", [(f"{json.dumps(k, ensure_ascii=False)}: ", v) for k, v in value.items()]
        elif isinstance(value, list) and value:
            (begin, end), entries = "[]", [("", v) for v in value]
        else:
            texts.append(json.dumps(value, ensure_ascii=False, allow_nan=False))
            continue
        outer, inner = ("", "") if indent is None else (f"\n{' ' * indent * d}" for d in (depth, depth + 1))
        pending.append(outer + end)
        for i, (key, entry) in reversed(list(enumerate(entries))):
            before = begin if i == 0 else ", " if indent is None else ","
            pending += [(entry, depth + 1), before + inner + key]
    return "".join(texts)


def importance_frame(model: Estimator, backend: Backend | None = None) -> Any:
    """Return the columns and their importances: fractions of the decrease of the impurity (boosting: of the gain).

    In a tree with surrogates, a surrogate is credited with the gain of the split times its adjusted agreement.

    This measure favours columns with many distinct values or categories, as the search for splits does; permutation
    importance on held-out rows is less biased.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest or boosted model, or an ensemble of them.
    backend : {"pandas", "polars"}, optional
        Library of the frame; None: the one that is installed, pandas first.

    Returns
    -------
    frame
        Column, importance and, for models made of trees, number of splits; the most important column first.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> spinney.importance_frame(model, "pandas").head(3).round(2)
                  column  importance  n_splits
    0  flipper_length_mm        0.58         1
    1     bill_length_mm        0.36         1
    2             island        0.05         1
    """
    return frame_of(importance_columns(model), backend)


def importance_columns(model: Any) -> dict[str, list[Any]]:
    """Return the columns of `importance_frame`, without `n_splits` for models that are not made of trees."""
    is_ensemble = isinstance(model, Estimator) and not isinstance(model, TableEstimator)
    has_functions = isinstance(getattr(model, "functions_", None), FittedFunctions)
    fitted = None if is_ensemble or has_functions else trees_of(model)
    importances = model.feature_importances_
    names = getattr(model, "feature_names_in_", default_names(len(importances))) if is_ensemble else model.schema_.names
    order = sorted(range(len(names)), key=lambda j: (-importances[j], j))
    columns: dict[str, list[Any]] = {
        "column": [str(names[j]) for j in order],
        "importance": [float(importances[j]) for j in order],
    }
    if fitted is not None:
        columns["n_splits"] = count_splits(fitted, model.schema_)[order].tolist()
    return columns
