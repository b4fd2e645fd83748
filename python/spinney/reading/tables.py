"""A tree as a table, as nested dicts and as JSON."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from spinney._user_criterion import name_of
from spinney.reading.reader import TreeReader

Backend = Literal["pandas", "polars"]


def frame_of(columns: dict[str, list[Any]], backend: Backend | None) -> Any:
    """Make a frame of columns in the library asked for, or in the one that is installed."""
    if backend not in ("pandas", "polars", None):
        raise ValueError(f"backend must be 'pandas', 'polars' or None, not {backend!r}.")
    if backend is None:
        backend = "pandas" if find_spec("pandas") is not None else "polars"
    try:
        if backend == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        import polars as pl

        return pl.DataFrame(columns, strict=False)
    except ImportError as error:
        raise ImportError("A frame needs pandas or polars: pip install pandas") from error


def to_frame(model: Any, backend: Backend | None = None) -> Any:
    """Lay the nodes of a tree out as a table.

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
        missing values take), n, weight, share, impurity, gain, prediction, and one column per class with its share.

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
        "share": [reader.share_of_all(node) for node in nodes],
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
        mark = "" if n_outputs == 1 else f"_{k}"
        columns[f"prediction{mark}"] = predictions if n_outputs == 1 else [p[k] for p in predictions]
        if reader.is_classifier:
            shares = reader.tree.flat_value[:, reader.tree.class_columns[k]]
            for label, share in zip(reader.classes[k], shares.T, strict=True):
                columns[f"share{mark}_{label}"] = share.tolist()
    return columns


def to_dict(model: Any) -> dict[str, Any]:
    """Turn a tree into nested dicts and lists that JSON can hold: all that is needed to predict with it.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.

    Returns
    -------
    dict
        ``estimator``, ``criterion``, ``n_outputs``, ``unseen``, ``columns`` (name, kind and categories), ``classes``
        (one list per output; classifiers only) and ``tree``, the root. A node has ``node``, ``n``, ``weight``,
        ``impurity``, ``prediction`` and ``shares`` (by output, in the order of the classes); an inner node also has
        ``split``, ``left`` and ``right``. A split says which ``column`` (name) and ``index`` (position), and what goes
        left: numbers up to ``threshold`` (positions in the order, for ordered categories; every known value if it is
        None) or the ``categories`` listed; ``missing`` is the side that missing values take and, for categories,
        ``other`` the side of those that did not occur at fit if ``unseen`` is "other".

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
    about: dict[str, Any] = {
        "estimator": type(model).__name__,
        "criterion": name_of(model.criterion),
        "n_outputs": reader.tree.n_outputs,
        "unseen": model.unseen,
        "columns": schema["features"],
    }
    if reader.is_classifier:
        about["classes"] = [[_plain(label) for label in labels] for labels in reader.classes]
    return about | {"tree": nodes[0]}


def _node(reader: TreeReader, node: int) -> dict[str, Any]:
    prediction = reader.prediction(node)
    entry: dict[str, Any] = {
        "node": node,
        "n": reader.n_rows(node),
        "weight": reader.weight(node),
        "impurity": float(reader.tree.impurity[node]),
        "prediction": [_plain(p) for p in prediction] if isinstance(prediction, list) else _plain(prediction),
    }
    return entry | ({"shares": reader.shares(node)} if reader.is_classifier else {})


def _split(reader: TreeReader, node: int) -> dict[str, Any]:
    j = reader.column(node)
    feature, left = reader.features[j], reader.sides(node)[0]
    split: dict[str, Any] = {
        "column": feature.name,
        "index": j,
        "kind": feature.kind,
        "threshold": left.upper if left.codes is None and np.isfinite(left.upper) else None,
        "categories": None if left.codes is None else list(left.categories or ()),
        "missing": "left" if left.missing else "right",
        "gain": reader.gain(node),
    }
    if left.codes is not None:
        split["other"] = "left" if reader.other_left(node) else "right"
    return split


def _plain(label: Any) -> Any:
    """Return a label as JSON can hold it."""
    return label if isinstance(label, (str, int, float, bool)) or label is None else str(label)


def to_json(model: Any, *, indent: int | None = None) -> str:
    """Write a tree as JSON.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    indent : int, optional
        Spaces per level; None: one line.

    Returns
    -------
    str
        What `to_dict` returns, as text.

    Examples
    --------
    >>> import json
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> json.loads(spinney.to_json(model)) == spinney.to_dict(model)
    True
    """
    return json.dumps(to_dict(model), indent=indent, ensure_ascii=False, allow_nan=False)


def importance_frame(model: Any, backend: Backend | None = None) -> Any:
    """Rank the columns by their share in the total decrease of the impurity.

    Columns with many distinct values or categories are favoured by the search, and so by this measure; permutation
    importance on rows not used for training is the fairer one.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    backend : {"pandas", "polars"}, optional
        Library of the frame; None: the one that is installed, pandas first.

    Returns
    -------
    frame
        Column, importance and number of splits; the most important column first.

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
    """Return the columns of `importance_frame`."""
    reader = TreeReader(model)
    importances = reader.tree.importances(len(reader.features))
    used = reader.tree.feature[~reader.tree.is_leaf]
    n_splits = np.bincount(used, minlength=len(reader.features))
    order = sorted(range(len(reader.features)), key=lambda j: (-importances[j], j))
    return {
        "column": [reader.features[j].name for j in order],
        "importance": [float(importances[j]) for j in order],
        "n_splits": [int(n_splits[j]) for j in order],
    }
