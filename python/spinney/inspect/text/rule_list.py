"""A tree as logical rules: one per leaf, each column mentioned once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import Backend, frame_of, one_line, percent, plural, shortest, thousands
from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.reader import TreeReader


@dataclass(frozen=True)
class Rule:
    """The way to one leaf, with what it says there.

    Attributes
    ----------
    conditions : tuple of Condition
        What is asked of each column: `column`, `kind`, `lower`, `upper`, `categories` and `missing`. Branches that ask
        the same column again are merged.
    prediction : label or float
        Class or value; a list if there are several outputs.
    n : int
        Training rows.
    weight, share : float
        Their weight, and its share of the total.
    impurity : float
        Impurity of the leaf.
    purity : float or None
        Share of the predicted class.
    shares : dict or None
        Share of each class; None for values or several outputs.
    node : int
        Number of the leaf, as `apply` gives it.
    show_missing : bool
        Whether the text says which conditions missing values satisfy.
    line : str or None
        What the leaf predicts, if that is a line (a boosted tree with linear_leaves); `prediction` is for rows that
        lack one of its values then.

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
    share: float
    impurity: float
    purity: float | None
    shares: dict[Any, float] | None
    node: int
    show_missing: bool = True
    line: str | None = None

    @property
    def text(self) -> str:
        """The conditions as a phrase."""
        if not self.conditions:
            return "always"
        return " and ".join(c.describe(show_missing=self.show_missing) for c in self.conditions)

    def __str__(self) -> str:
        start = f"If {self.text}, then" if self.conditions else "Always"
        parts = self.prediction if isinstance(self.prediction, list) else [self.prediction]
        said = ", ".join(thousands(shortest(part, 4)) if isinstance(part, float) else one_line(part) for part in parts)
        said = said if self.line is None else self.line
        pure = f", {percent(self.purity)} of them right" if self.purity is not None else ""
        return f"{start} {said}: {plural(self.n, 'row')} ({percent(self.share)}){pure}."


class RuleList(list[Rule]):
    """A list of rules that prints one per line.

    Parameters
    ----------
    rules : iterable of Rule
    reader : TreeReader
        The model they come from.
    """

    def __init__(self, rules: Iterator[Rule] | list[Rule], reader: TreeReader) -> None:
        super().__init__(rules)
        self._reader = reader

    def __str__(self) -> str:
        lines = [str(rule) for rule in self]
        if self and self[0].show_missing:
            lines += _left_to_others(self._reader)
        return "\n".join(lines)

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Find the rule that each row satisfies.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Position of the rule in this list; -1 if none holds, which can only be where rules were left out, or where
            a row without a value stops on the way.
        """
        if any(self._reader.weighed.is_partial(node) for node in self._reader.inner_nodes):
            return self._by_leaf(self._reader.model.apply(X))
        columns = self._reader.values(X)
        position = {feature.name: j for j, feature in enumerate(self._reader.features)}
        found = np.full(len(columns[0]), -1, dtype=np.intp)
        for i, rule in enumerate(self):
            holds = np.ones(len(found), dtype=bool)
            for condition in rule.conditions:
                holds &= condition.holds(columns[position[condition.column]])
            found[holds] = i
        return found

    def _by_leaf(self, leaves: NDArray[np.int64]) -> NDArray[np.intp]:
        """Find the rule of each leaf. Surrogates are not part of the conditions."""
        position = np.full(self._reader.tree.node_count, -1, dtype=np.intp)
        for i, rule in enumerate(self):
            position[rule.node] = i
        return position[leaves]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Lay the rules out as a table.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per rule: rule, prediction, n, weight, share, purity, impurity and node.
        """
        columns = {
            "rule": [rule.text for rule in self],
            "prediction": [rule.prediction for rule in self],
            **{name: [getattr(rule, name) for rule in self] for name in ("n", "weight", "share", "purity", "impurity")},
            "node": [rule.node for rule in self],
        }
        return frame_of(columns, backend)


def rules(
    model: TableEstimator,
    *,
    sort: Literal["tree", "support", "purity"] = "tree",
    decimals: int | None = None,
    show_missing: bool = True,
) -> RuleList:
    """Turn a tree into logical rules, one per leaf: every row satisfies exactly one of them.

    Rows that lack a value a rule asks for satisfy it by surrogates, where the tree has any; they satisfy none if the
    tree lets them stop.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    sort : {"tree", "support", "purity"}, default="tree"
        Order: as the leaves stand from left to right, by weight, or by share of the predicted class (classes) and
        impurity (values).
    decimals : int, optional
        Decimals in the text, as for `export_text`; the bounds of the conditions are exact.
    show_missing : bool, default=True
        Whether the text says which conditions missing values satisfy.

    Returns
    -------
    RuleList
        A list of `Rule`; it prints one sentence per line, has `to_frame()`, and `apply(X)` finds each row's rule.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import spinney
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X[["petal width (cm)"]], y)
    >>> print(spinney.rules(model, show_missing=False))
    If petal width (cm) ≤ 0.8, then 0: 50 rows (33%), 100% of them right.
    If 0.8 < petal width (cm) ≤ 1.75, then 1: 54 rows (36%), 91% of them right.
    If petal width (cm) > 1.75, then 2: 46 rows (31%), 98% of them right.
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


def _left_to_others(reader: TreeReader) -> list[str]:
    """Say what the conditions leave open."""
    inner = reader.inner_nodes
    asks = any(reader.weighed.asked(node) for node in inner)
    stops = any(reader.weighed.stops(node) for node in inner)
    if asks and stops:
        return ["Rows that lack a value go by surrogate splits, or stop where these have none either."]
    if asks:
        return ["Rows that lack a value go by surrogate splits, then with most rows."]
    return ["Rows that lack a value stop where it is asked for."] if stops else []


def _rule(reader: TreeReader, node: int, path: dict[int, Condition], show_missing: bool) -> Rule:
    shares = None
    if reader.is_classifier and reader.tree.n_outputs == 1:
        shares = dict(zip(reader.classes[0], reader.shares(node)[0], strict=True))
    return Rule(
        conditions=tuple(condition for condition in path.values()),
        prediction=reader.prediction(node),
        n=reader.n_rows(node),
        weight=reader.weight(node),
        share=reader.share_of_all(node),
        impurity=float(reader.tree.impurity[node]),
        purity=reader.purity(node),
        shares=shares,
        node=node,
        show_missing=show_missing,
        line=reader.said(node) if reader.line(node) else None,
    )
