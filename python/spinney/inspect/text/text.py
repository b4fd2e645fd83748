"""A tree, or the way of one row through it, as text."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from spinney._data.display import one_line, percent, plural
from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.text.reader import Step, TreeReader


def export_text(
    model: TableEstimator,
    *,
    max_depth: int | None = None,
    decimals: int | None = None,
    show_weights: bool = False,
    show_missing: bool | Collection[str] = True,
    surrogates: bool = False,
    competitors: bool = False,
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
        Decimals of all numbers. None: as many as the number needs, at most five digits if it is not a short decimal,
        and more where two cuts of a column would look alike. `rules` and `to_dict` hold the exact numbers.
    show_weights : bool, default=False
        Also write the sum of the weights.
    show_missing : bool or collection of column names, default=True
        Whether, or for which columns, to say which way missing values go. In a tree with surrogates a branch names
        what the first of them asks; where rows may stop, the node says what it predicts for them.
    surrogates, competitors : bool, default=False
        Also write the surrogates and the competing splits of each node, if the tree has kept any: what a surrogate
        sends left, its agreement with the split and its adjusted agreement, or what a competitor would have gained.

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
    for step in reader.walk(max_depth):
        node, _, condition, reach = step
        depth = int(reader.tree.depth[node])
        question = "all"
        if condition is not None:
            is_last[depth - 1 :] = [node != reader.parent[node] + 1]
            question = condition.describe(reach, show_missing=reader.shows_missing(condition.column))
            question += reader.instead_text(step)
        is_cut = max_depth is not None and depth >= max_depth and not reader.is_leaf(node)
        lines.append(f"{_guides(is_last[:depth])}{question}: {_node_text(reader, node, show_weights, is_cut)}")
        if not is_cut and not reader.is_leaf(node):
            lines += [f"{_hang(is_last[:depth])}{line}" for line in _weighed(reader, node, surrogates, competitors)]
    return "\n".join(lines)


def require_depth(max_depth: int | None) -> None:
    """Refuse a depth that is not a whole number of at least 0."""
    if max_depth is not None and (not isinstance(max_depth, int) or max_depth < 0):
        raise ValueError(f"max_depth must be a whole number of at least 0 or None, not {max_depth!r}.")


def _guides(is_last: list[bool]) -> str:
    if not is_last:
        return ""
    return "".join("    " if last else "│   " for last in is_last[:-1]) + ("└── " if is_last[-1] else "├── ")


def _hang(is_last: list[bool]) -> str:
    """Guides of a line that belongs to the node above it, which has children."""
    return "".join("    " if last else "│   " for last in is_last) + "│   "


def _weighed(reader: TreeReader, node: int, surrogates: bool, competitors: bool) -> list[str]:
    lines = []
    for split in reader.weighed.competitors(node) if competitors else []:
        asked = split.left.describe(show_missing=False)
        gain = reader.number(split.measure / reader.weight(node))
        lines.append(f"competitor: {asked} (gain {gain}, {plural(split.n, 'row')})")
    for split in reader.weighed.surrogates(node) if surrogates else []:
        agreement = f"agrees {percent(split.measure)}, adjusted {percent(split.adjusted)}"
        lines.append(
            f"surrogate: {split.left.describe(show_missing=False)} ({agreement}, places {plural(split.n, 'row')})"
        )
    return lines


def _node_text(reader: TreeReader, node: int, show_weights: bool, is_cut: bool) -> str:
    inside = reader.shares_text(node)
    text = reader.size_text(node, show_weights) + (f" ({inside})" if inside else "")
    if reader.is_leaf(node):
        return f"{text} → {reader.said(node)}"
    if is_cut:
        return f"{text} … {plural(int(reader.n_leaves_below[node]), 'leaf')} below"
    stop = reader.stop_text(node)
    return f"{text} → {reader.said(node)} if {stop}" if stop else text


def explain_row(model: TableEstimator, row: object, *, decimals: int | None = None) -> str:
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
    lines = [f"Start: {_start_text(reader)}"]
    for before, step in pairwise(steps):
        inside = reader.shares_text(step.node)
        text = reader.size_text(step.node) + (f" ({inside})" if inside else "")
        lines.append(f"{_reason(reader, before.node, step, values)}: {text}")
    last = steps[-1].node
    if not reader.is_leaf(last):
        lines.append(f"{_lack(reader, last, values)}, so the row stops here")
    return "\n".join([*lines, f"Prediction: {reader.said_of(last, values)}"])


def _start_text(reader: TreeReader) -> str:
    inside = reader.shares_text(0)
    text = reader.size_text(0) + (f" ({inside})" if inside else "")
    return f"{text} → {reader.said(0)}" if reader.is_leaf(0) else text


def _lack(reader: TreeReader, node: int, values: list[float]) -> str:
    """Say that the split of a node, and its surrogates if it has any, cannot place a row."""
    j = reader.column(node)
    name, value = one_line(reader.features[j].name), reader.value_text(j, values[j])
    known = "" if value == "missing" else ", which is new here"
    surrogates = reader.weighed.asked(node)
    others = {0: "", 1: ", and so is its surrogate"}.get(len(surrogates), ", and so are its surrogates")
    if known and others:
        others = " and no surrogate has a value"
    return f"{name} is {value}{known}{others}"


def _reason(reader: TreeReader, node: int, step: Step, values: list[float]) -> str:
    """Say why a row goes from a node to the next."""
    assert step.condition is not None  # only the root has none
    j, turn = reader.column(node), reader.turn(node, values)
    name, value = one_line(step.condition.column), reader.value_text(j, values[j])
    way = step.condition.describe(step.reach, show_missing=values[j] != values[j])
    if turn.surrogate is not None:
        k = turn.surrogate.column
        side = turn.surrogate.left if step.node == node + 1 else turn.surrogate.right
        known = "missing" if value == "missing" else f"{value}, which is new here"
        decided = f"{one_line(side.column)} is {reader.value_text(k, values[k])}"
        return f"{name} is {known}; its surrogate {decided}, so {side.describe(show_missing=False)} stands for {way}"
    if turn.is_left_over and reader.weighed.is_partial(node):
        return f"{_lack(reader, node, values)}, so with most rows {way}"
    return f"{name} is {value}, so {way}"
