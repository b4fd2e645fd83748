"""A tree, or the path of one row through it, as text; its leaves as logical rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import Backend, frame_of, html_table, one_line, percent, plural, shortest, thousands
from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.reader import Names, Step, TreeReader, require_count


def export_text(
    model: TableEstimator,
    *,
    feature_names: Names = None,
    class_names: Names | bool = None,
    max_depth: int | None = None,
    spacing: int = 3,
    decimals: int | None = None,
    show_weights: bool = False,
    show_missing: bool | Collection[str] = True,
    surrogates: bool = False,
    competitors: bool = False,
) -> str:
    """Return a tree as indented text.

    Each line has the condition of a branch, the training rows that satisfy it and their class probabilities (or mean
    and standard deviation); leaves end with an arrow and the prediction.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    feature_names : sequence of str, optional
        Names of the columns; None: those of the training table.
    class_names : sequence of str, optional
        Names of the classes in the order of `classes_`; None: the classes.
    max_depth : int, optional
        Deepest level to write; for a subtree below, only the number of its leaves is written.
    spacing : int, default=3
        Number of characters by which each level is indented, without the vertical line.
    decimals : int, optional
        Decimals of all numbers. None: as many as a number needs, at most five significant digits for long decimals, and
        more where two cuts of a column would look equal. `rules` and `to_dict` have the exact numbers.
    show_weights : bool, default=False
        Also write the sum of the weights.
    show_missing : bool or collection of column names, default=True
        Whether, or for which columns, to show where missing values go. In a tree with surrogates a branch shows the
        condition of the first surrogate; where rows may stop, the node shows its prediction for them.
    surrogates, competitors : bool, default=False
        Also write the surrogate and the competitor splits of each node, if the tree has stored any: the condition of
        the left side, and the agreement and adjusted agreement of a surrogate, or the gain of a competitor.

    Returns
    -------
    str
        Lines, without a newline at the end.

    See Also
    --------
    rules : The leaves as logical rules.
    plot_tree : The tree as a plot.

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
    reader = TreeReader(model, decimals, show_missing, feature_names, class_names)
    require_count("max_depth", max_depth)
    if isinstance(spacing, bool) or not isinstance(spacing, int) or spacing < 1:
        raise ValueError(f"spacing must be a whole number of at least 1, not {spacing!r}.")
    lines = []
    is_last: list[bool] = []  # by depth: whether the current branch is the right child
    for step in reader.walk(max_depth):
        node, _, condition, reach = step
        depth = int(reader.tree.depth[node])
        label, guide = "all", ""
        if condition is not None:
            is_last[depth - 1 :] = [node != reader.parent[node] + 1]
            label = condition.describe(reach, show_missing=reader.shows_missing(condition.column))
            label += reader.surrogate_text(step)
            guide = _guides(is_last[:-1], spacing) + ("└" if is_last[-1] else "├") + "─" * (spacing - 1) + " "
        is_end = reader.is_end(node, max_depth)
        lines.append(f"{guide}{label}: {_node_text(reader, node, show_weights, is_end)}")
        if not is_end:
            stored = _stored_lines(reader, node, surrogates, competitors)
            lines += [f"{_guides([*is_last[:depth], False], spacing)}{line}" for line in stored]
    return "\n".join(lines)


def _guides(is_last: list[bool], spacing: int) -> str:
    return "".join((" " if last else "│") + " " * spacing for last in is_last)


def _stored_lines(reader: TreeReader, node: int, surrogates: bool, competitors: bool) -> list[str]:
    lines = []
    for split in reader.stored.of(node, "competitor") if competitors else []:
        gain = reader.number(split.measure / reader.weight(node))
        lines.append(f"competitor: {split.text} (gain {gain}, {plural(split.n, 'row')})")
    for split in reader.stored.of(node, "surrogate") if surrogates else []:
        agreement = f"agrees {percent(split.measure)}, adjusted {percent(split.adjusted)}"
        lines.append(f"surrogate: {split.text} ({agreement}, places {plural(split.n, 'row')})")
    return lines


def _node_text(reader: TreeReader, node: int, show_weights: bool = False, is_end: bool = False) -> str:
    text, stop = reader.rows_text(node, show_weights), ""
    if not reader.is_leaf(node):
        if is_end:
            return f"{text} … {plural(int(reader.n_leaves_below[node]), 'leaf')} below"
        stop = reader.stop_text(node)
        if not stop:
            return text
    return f"{text} → {reader.prediction_text(node)}" + (f" if {stop}" if stop else "")


def explain_row(model: TableEstimator, row: object, *, decimals: int | None = None) -> str:
    """Explain the prediction of a tree for one row in words.

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
        One line per split on the path of the row, with its value and the training rows that took the same branch;
        then the prediction.

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
    steps = list(reader.walk(values=values))
    start = f" → {reader.prediction_text(0)}" if reader.is_leaf(0) else ""
    lines = [f"Start: {reader.rows_text(0)}{start}"]
    for before, step in pairwise(steps):
        lines.append(f"{_reason(reader, before.node, step, values)}: {reader.rows_text(step.node)}")
    last = steps[-1].node
    if not reader.is_leaf(last):
        lines.append(f"{_unplaced(reader, last, values)}, so the row stops here")
    return "\n".join([*lines, f"Prediction: {reader.row_prediction_text(last, values)}"])


def _unplaced(reader: TreeReader, node: int, values: list[float]) -> str:
    """Return why neither the split of a node nor its surrogates can place a row."""
    j = reader.column(node)
    name, value = one_line(reader.features[j].name), reader.value_text(j, values[j])
    n_surrogates, is_known = len(reader.stored.surrogates(node)), value != "missing"
    others = {0: "", 1: ", and so is its surrogate"}.get(n_surrogates, ", and so are its surrogates")
    if is_known and n_surrogates:
        others = " and no surrogate has a value"
    return f"{name} is {value}{', which did not occur at fit' * is_known}{others}"


def _reason(reader: TreeReader, node: int, step: Step, values: list[float]) -> str:
    """Return why a row goes from a node to the next."""
    assert step.condition is not None  # only the root has none
    j, decision = reader.column(node), reader.decide(node, values)
    name, value = one_line(step.condition.column), reader.value_text(j, values[j])
    branch = step.condition.describe(step.reach, show_missing=values[j] != values[j])
    if decision.surrogate is not None:
        k = decision.surrogate.column
        side = decision.surrogate.left if step.node == node + 1 else decision.surrogate.right
        known = "missing" if value == "missing" else f"{value}, which did not occur at fit"
        surrogate = f"its surrogate {one_line(side.column)} is {reader.value_text(k, values[k])}"
        return f"{name} is {known}; {surrogate}, so {side.describe(show_missing=False)} replaces {branch}"
    if decision.is_default and reader.stored.is_partial(node):
        return f"{_unplaced(reader, node, values)}, so with most rows {branch}"
    known = f"{name} is {value}"
    return branch if branch == known else f"{known}, so {branch}"


# ---- rules -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """The conditions that lead to one leaf, and its prediction.

    Attributes
    ----------
    conditions : tuple of Condition
        One condition per column, with `column`, `kind`, `lower`, `upper`, `categories` and `missing`: several splits
        on a column are merged.
    prediction : label or float
        Class or value; a list if there are several outputs.
    n : int
        Number of training rows.
    weight, fraction : float
        Weight of these rows, and its fraction of the total weight.
    impurity : float
        Impurity of the leaf.
    purity : float or None
        Probability of the predicted class.
    probabilities : dict or None
        Probability of each class; None for regression or several outputs.
    node : int
        Number of the leaf, as returned by `apply`.
    show_missing : bool
        Whether the text shows which conditions missing values satisfy.
    formula : str or None
        The linear function of the leaf (only in a boosted tree with linear leaves); `prediction` is then the prediction
        for rows with a missing value in one of the formula's columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import spinney
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X[["petal width (cm)"]], y)
    >>> rule = spinney.rules(model)[1]
    >>> rule.conditions[0].lower, rule.conditions[0].upper
    (0.8, 1.75)
    """

    conditions: tuple[Condition, ...]
    prediction: Any
    n: int
    weight: float
    fraction: float
    impurity: float
    purity: float | None
    probabilities: dict[Any, float] | None
    node: int
    show_missing: bool = True
    formula: str | None = None

    @property
    def text(self) -> str:
        """The conditions as a phrase."""
        if not self.conditions:
            return "always"
        return " and ".join(c.describe(show_missing=self.show_missing) for c in self.conditions)

    def __str__(self) -> str:
        start = f"If {self.text}, then" if self.conditions else "Always"
        correct = f", {percent(self.purity)} correct" if self.purity is not None else ""
        return f"{start} {self._outcome}: {plural(self.n, 'row')} ({percent(self.fraction)}){correct}."

    @property
    def _outcome(self) -> str:
        """The prediction as text."""
        outputs = self.prediction if isinstance(self.prediction, list) else [self.prediction]
        texts = [thousands(shortest(y, 4)) if isinstance(y, float) else one_line(y) for y in outputs]
        return self.formula or ", ".join(texts)


class RuleList(list[Rule]):
    """A list of rules that prints one rule per line; returned by `rules`.

    Parameters
    ----------
    rules : iterable of Rule
    reader : TreeReader
        The tree that the rules come from.
    """

    def __init__(self, rules: Iterator[Rule] | list[Rule], reader: TreeReader) -> None:
        super().__init__(rules)
        self._reader = reader

    def __str__(self) -> str:
        lines = [str(rule) for rule in self]
        if self and self[0].show_missing:
            lines += _missing_value_note(self._reader)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = [["if", "then", "rows", "fraction", "correct"]]
        for rule in self:
            correct = "" if rule.purity is None else percent(rule.purity)
            cells.append([rule.text, rule._outcome, f"{rule.n:,}", percent(rule.fraction), correct])
        return html_table(cells if any(row[-1] for row in cells[1:]) else [row[:-1] for row in cells])

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the rule that each row satisfies.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Position of the rule in this list; -1 if none holds, which is only possible if rules were removed, or if
            a row with a missing value stops before it reaches a leaf.
        """
        if any(map(self._reader.stored.is_partial, self._reader.inner_nodes)):
            # Surrogates are not part of the conditions.
            rule_of_node = np.full(self._reader.tree.node_count, -1, dtype=np.intp)
            rule_of_node[[rule.node for rule in self]] = np.arange(len(self))
            return np.asarray(rule_of_node[self._reader.model.apply(X)])
        columns = self._reader.values(X)
        position = {feature.name: j for j, feature in enumerate(self._reader.features)}
        rule_of_row = np.full(len(columns[0]), -1, dtype=np.intp)
        for i, rule in enumerate(self):
            holds = np.ones(len(rule_of_row), dtype=bool)
            for condition in rule.conditions:
                holds &= condition.holds(columns[position[condition.column]])
            rule_of_row[holds] = i
        return rule_of_row

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the rules as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per rule: rule, prediction, n, weight, fraction, purity, impurity and node.
        """
        names = ("prediction", "n", "weight", "fraction", "purity", "impurity", "node")
        columns = {name: [getattr(rule, name) for rule in self] for name in names}
        return frame_of({"rule": [rule.text for rule in self], **columns}, backend)


def rules(
    model: TableEstimator,
    *,
    sort: Literal["tree", "support", "purity"] = "tree",
    decimals: int | None = None,
    show_missing: bool = True,
) -> RuleList:
    """Turn a tree into logical rules, one per leaf.

    Every row satisfies exactly one rule, except rows that stop before they reach a leaf because of missing values,
    which satisfy none. If the tree has surrogates, these assign rows with missing values to rules.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    sort : {"tree", "support", "purity"}, default="tree"
        Order of the rules. "tree": leaves from left to right. "support": largest weight of the rows first. "purity":
        highest probability of the predicted class first, or lowest impurity in regression.
    decimals : int, optional
        Decimals in the text, as in `export_text`; the bounds of the conditions are exact.
    show_missing : bool, default=True
        Whether the text shows which conditions missing values satisfy.

    Returns
    -------
    RuleList
        A list of `Rule`; it prints one sentence per line, and has `to_frame()` and `apply(X)`, the rule of each row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import spinney
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X[["petal width (cm)"]], y)
    >>> print(spinney.rules(model, show_missing=False))
    If petal width (cm) ≤ 0.8, then 0: 50 rows (33%), 100% correct.
    If 0.8 < petal width (cm) ≤ 1.75, then 1: 54 rows (36%), 91% correct.
    If petal width (cm) > 1.75, then 2: 46 rows (31%), 98% correct.
    """
    if sort not in ("tree", "support", "purity"):
        raise ValueError(f"sort must be 'tree', 'support' or 'purity', not {sort!r}.")
    reader = TreeReader(model, decimals, show_missing)
    found = [_rule(reader, node, path, show_missing) for node, path, *_ in reader.walk() if reader.is_leaf(node)]
    if sort == "support":
        found.sort(key=lambda rule: -rule.weight)
    elif sort == "purity":
        found.sort(key=lambda rule: rule.impurity if rule.purity is None else -rule.purity)
    return RuleList(found, reader)


def _missing_value_note(reader: TreeReader) -> list[str]:
    """Return how rows with missing values are placed, if the conditions do not show it."""
    has_surrogates = any(map(reader.stored.surrogates, reader.inner_nodes))
    stops = any(map(reader.stored.stops, reader.inner_nodes))
    if has_surrogates and stops:
        return ["Rows with missing values follow surrogate splits, or stop where these are missing too."]
    if has_surrogates:
        return ["Rows with missing values follow surrogate splits, then most rows."]
    return ["Rows with missing values stop at the split."] if stops else []


def _rule(reader: TreeReader, node: int, path: dict[int, Condition], show_missing: bool) -> Rule:
    probabilities = None
    if reader.has_probabilities:
        probabilities = dict(zip(reader.classes[0], reader.probabilities(node)[0], strict=True))
    return Rule(
        conditions=tuple(path.values()),
        prediction=reader.prediction(node),
        n=reader.n_rows(node),
        weight=reader.weight(node),
        fraction=reader.fraction(node),
        impurity=float(reader.tree.impurity[node]),
        purity=reader.purity(node),
        probabilities=probabilities,
        node=node,
        show_missing=show_missing,
        formula=reader.prediction_text(node) if reader.linear_model(node)[1] else None,
    )
