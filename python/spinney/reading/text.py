"""A tree, or the way of one row through it, as text."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any

from spinney.reading.digits import one_line, plural
from spinney.reading.reader import TreeReader


def export_text(
    model: Any,
    *,
    max_depth: int | None = None,
    decimals: int | None = None,
    show_weights: bool = False,
    show_missing: bool | Collection[str] = True,
) -> str:
    """Write a tree as indented text.

    Each line has the condition of a branch, the training rows that meet it and their class shares (or mean and
    standard deviation); leaves end with an arrow and the prediction.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    max_depth : int, optional
        Deepest level to write out; branches below are counted.
    decimals : int, optional
        Decimals of all numbers. None: as many as say the number, at most five digits if it is no short decimal, and
        more where two cuts of a column would look alike. `rules` and `to_dict` hold the exact numbers.
    show_weights : bool, default=False
        Also write the sum of the weights.
    show_missing : bool or collection of column names, default=True
        Whether, or for which columns, to say which way missing values go.

    Returns
    -------
    str
        Lines, without a newline at the end.

    See Also
    --------
    rules : The leaves as logical rules.
    plot_tree : The same as a picture.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import spinney
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X[["petal width (cm)"]], y)
    >>> print(spinney.export_text(model, show_missing=False))
    all: 150 rows (0 33%, 1 33%, 2 33%)
    ├── petal width (cm) ≤ 0.8: 50 rows (0 100%) → 0
    └── petal width (cm) > 0.8: 100 rows (1 50%, 2 50%)
        ├── petal width (cm) ≤ 1.75: 54 rows (1 91%, 2 9%) → 1
        └── petal width (cm) > 1.75: 46 rows (1 2%, 2 98%) → 2
    """
    reader = TreeReader(model, decimals, show_missing)
    require_depth(max_depth)
    lines = []
    is_last: list[bool] = []  # by depth: whether the branch at hand is the second of its pair
    for node, _, condition, reach in reader.walk(max_depth):
        depth = int(reader.tree.depth[node])
        question = "all"
        if condition is not None:
            is_last[depth - 1 :] = [node != reader.parent[node] + 1]
            question = condition.describe(reach, show_missing=reader.shows_missing(condition.column))
        is_cut = max_depth is not None and depth >= max_depth and not reader.is_leaf(node)
        lines.append(f"{_guides(is_last[:depth])}{question}: {_node_text(reader, node, show_weights, is_cut)}")
    return "\n".join(lines)


def require_depth(max_depth: int | None) -> None:
    """Refuse a depth that is no count."""
    if max_depth is not None and (not isinstance(max_depth, int) or max_depth < 0):
        raise ValueError(f"max_depth must be a whole number of at least 0 or None, not {max_depth!r}.")


def _guides(is_last: list[bool]) -> str:
    if not is_last:
        return ""
    return "".join("    " if last else "│   " for last in is_last[:-1]) + ("└── " if is_last[-1] else "├── ")


def _node_text(reader: TreeReader, node: int, show_weights: bool, is_cut: bool) -> str:
    inside = reader.shares_text(node)
    text = reader.size_text(node, show_weights) + (f" ({inside})" if inside else "")
    if reader.is_leaf(node):
        return f"{text} → {reader.label(reader.prediction(node))}"
    return f"{text} … {plural(int(reader.n_leaves_below[node]), 'leaf')} below" if is_cut else text


def explain_row(model: Any, row: Any, *, decimals: int | None = None) -> str:
    """Say in words why a tree predicts what it predicts for one row.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    row : mapping, sequence, Series, or table with one row
        Values by column name, or in column order; None or NaN is missing.
    decimals : int, optional
        As for `export_text`.

    Returns
    -------
    str
        One line per split the row passes, with its own value and the training rows that went the same way; then the
        prediction.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> row = dict.fromkeys(model.feature_names_in_) | {"flipper_length_mm": 181, "island": "Dream"}
    >>> print(spinney.explain_row(model, row))
    Start: 344 rows (Adelie 44%, Chinstrap 20%, Gentoo 36%)
    flipper_length_mm is 181, so flipper_length_mm ≤ 206.5: 215 rows (Adelie 70%, Chinstrap 29%, Gentoo <1%)
    bill_length_mm is missing, so bill_length_mm ≤ 43.35 (or missing): 152 rows (Adelie 96%, Chinstrap 3%, Gentoo <1%)
    Prediction: Adelie
    """
    reader = TreeReader(model, decimals)
    values = reader.row_values(row)
    steps = reader.steps(values)
    lines = [f"Start: {_node_text(reader, 0, False, False)}"]
    for before, (node, _, condition, reach) in pairwise(steps):
        assert condition is not None  # only the root has none
        j = reader.column(before.node)
        inside = reader.shares_text(node)
        text = reader.size_text(node) + (f" ({inside})" if inside else "")
        is_missing = values[j] != values[j]
        name, value = one_line(condition.column), reader.value_text(j, values[j])
        lines.append(f"{name} is {value}, so {condition.describe(reach, show_missing=is_missing)}: {text}")
    return "\n".join([*lines, f"Prediction: {reader.label(reader.prediction(steps[-1].node))}"])
