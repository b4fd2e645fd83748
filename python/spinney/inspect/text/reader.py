"""A fitted tree with the names of its columns, categories and classes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data import Feature, read_table
from spinney._data.cells import date_text
from spinney._data.display import fixed, one_line, percent, plural, shortest, thousands
from spinney._data.schema import column_values, row_table
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.user_criterion import name_of
from spinney.inspect.text.conditions import Condition, Sides, StoredSplit, StoredSplits, column_texts, number_sides

_OTHER_LEFT = 4  # the engine's flag: categories that a split does not know go left
_MAX_CLASSES = 5
_TERM = ("feature", "slope", "middle", "low", "high")
_SQUARED = ("squared_error", "friedman_mse")


Names = Iterable[str] | None


class Step(NamedTuple):
    """A node of a tree and the path to it.

    `path` has the condition of the path on each of its columns, `condition` is that of the last branch alone, and
    `reach` that of the branches before it on the same column (None if there is none).
    """

    node: int
    path: dict[int, Condition]
    condition: Condition | None
    reach: Condition | None


class Decision(NamedTuple):
    """The child that a row goes to from an inner node.

    `child` is None if the row stays; `surrogate` is the split that decided instead of the primary one. `is_default`
    is true if no split could place the row: it stays, or follows the default side.
    """

    child: int | None
    surrogate: StoredSplit | None = None
    is_default: bool = False


class TreeReader:
    """A fitted tree with the names of its columns and classes, and the texts of its nodes.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    decimals : int, optional
        Decimals of every number; None: as many as it needs.
    show_missing : bool, "seen" or collection of column names, default=True
        Whether, or for which columns, to show where missing values go; "seen": those with missing values in training.
    feature_names, class_names : sequence of str, optional
        Names to show instead of those of the training table and `classes_`; True means the latter.
    """

    def __init__(
        self,
        model: TableEstimator,
        decimals: int | None = None,
        show_missing: bool | Collection[str] = True,
        feature_names: Names = None,
        class_names: Names | bool = None,
    ) -> None:
        if not hasattr(model, "fit"):
            raise TypeError(f"model must be a fitted decision tree of spinney, not {type(model).__name__}.")
        check_is_fitted(model)
        if not hasattr(model, "tree_") or not hasattr(model, "schema_"):
            raise TypeError(
                f"{type(model).__name__} is not a single tree. Pass a fitted decision tree of spinney, such as "
                "model.estimators_[0] of a forest or model.estimators_[0, 0] of a booster."
            )
        require_count("decimals", decimals)
        self.model = model
        self.tree = model.tree_
        self.features: tuple[Feature, ...] = model.schema_.split_features
        if feature_names is not None:
            self.features = model.schema_.renamed_split_features([str(name) for name in feature_names])
        self.decimals = decimals
        self._show_missing = show_missing
        self.is_classifier = hasattr(model, "classes_")
        if self.is_classifier and class_names is not None and not isinstance(class_names, bool):
            self.classes = self._named_classes([str(name) for name in class_names])

    # ---- nodes ---------------------------------------------------------------------------------------

    def is_leaf(self, node: int) -> bool:
        """Return whether a node is a leaf."""
        return bool(self.tree.is_leaf[node])

    def children(self, node: int) -> tuple[int, int]:
        """Return the left and right child of an inner node."""
        return node + 1, int(self.tree.children_right[node])

    @cached_property
    def inner_nodes(self) -> list[int]:
        """Nodes that are split."""
        return [int(node) for node in np.flatnonzero(~self.tree.is_leaf)]

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """Parent of each node; -1 for the root."""
        parent = np.full(self.tree.node_count, -1, dtype=np.int64)
        for node in self.inner_nodes:
            parent[list(self.children(node))] = node
        return parent

    @cached_property
    def n_leaves_below(self) -> NDArray[np.int64]:
        """Number of leaves below each node."""
        count: NDArray[np.int64] = self.tree.is_leaf.astype(np.int64)
        for node in range(self.tree.node_count - 1, 0, -1):  # children come after their parent
            count[self.parent[node]] += count[node]
        return count

    def n_rows(self, node: int) -> int:
        """Return the number of training rows of a node."""
        return int(self.tree.n_node_samples[node])

    def weight(self, node: int) -> float:
        """Return the training weight of a node."""
        return float(self.tree.weighted_n_node_samples[node])

    def fraction(self, node: int) -> float:
        """Return the fraction of the training weight that reaches a node."""
        return self.weight(node) / self.weight(0)

    def gain(self, node: int) -> float:
        """Return the impurity decrease of the split of a node, relative to the weight of the node."""
        left, right = self.children(node)
        impurity = self.tree.impurity
        remaining = self.weight(left) * float(impurity[left]) + self.weight(right) * float(impurity[right])
        if self.stored.stops(node):  # rows that stay keep their impurity
            remaining += (self.weight(node) - self.weight(left) - self.weight(right)) * float(impurity[node])
        return float(impurity[node]) - remaining / self.weight(node)

    # ---- predictions -----------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> list[list[Any]]:
        """Class labels of each output."""
        if not self.is_classifier:
            return []
        outputs = [self.model.classes_] if self.tree.n_outputs == 1 else self.model.classes_
        return [np.asarray(labels).tolist() for labels in outputs]

    def _named_classes(self, names: list[str]) -> list[list[Any]]:
        if self.tree.n_outputs > 1:
            raise ValueError("class_names is for one output. Leave it out: several outputs show their classes_.")
        n_classes = len(self.classes[0])
        if len(names) != n_classes:
            raise ValueError(
                f"class_names must contain {n_classes} elements in the order of classes_, got {len(names)}."
            )
        return [names]

    def probabilities(self, node: int) -> list[list[float]]:
        """Return the class probabilities of a node, by output."""
        return [self.tree.flat_value[node, columns].tolist() for columns in self.tree.class_columns]

    def prediction(self, node: int) -> Any:
        """Return the label or value that a node predicts; a list if there are several outputs."""
        if self.is_classifier:
            outputs = [labels[int(code)] for labels, code in zip(self.classes, self.tree.majority[node], strict=True)]
        else:
            outputs = self.tree.flat_value[node].tolist()
        return outputs[0] if len(outputs) == 1 else outputs

    def linear_model(self, node: int) -> tuple[float, list[tuple[int, float, float, float, float]]]:
        """Return the intercept and the terms of a linear leaf; no terms if the leaf is constant.

        A term is a column, its slope, the value at which it contributes 0, and its smallest and largest value.
        """
        lines = self.tree.linear_terms
        if lines is None:
            return 0.0, []
        terms = slice(int(lines["begin"][node]), int(lines["begin"][node + 1]))
        return float(lines["base"][node]), list(zip(*(lines[name][terms].tolist() for name in _TERM), strict=True))

    @property
    def has_probabilities(self) -> bool:
        """Whether the tree is a classifier with one output."""
        return self.is_classifier and self.tree.n_outputs == 1

    def purity(self, node: int) -> float | None:
        """Return the probability of the predicted class; None for regression or several outputs."""
        return self.probabilities(node)[0][int(self.tree.majority[node, 0])] if self.has_probabilities else None

    def certainty(self, node: int) -> float:
        """Return the purity of a node, rescaled from 0 (a uniform distribution, or less) to 1 (a pure node)."""
        n_classes = len(self.classes[0])
        uniform = 1 / n_classes
        return max(0.0, ((self.purity(node) or 0.0) - uniform) / (1 - uniform)) if n_classes > 1 else 1.0

    # ---- splits ----------------------------------------------------------------------------------------

    @cached_property
    def cut_texts(self) -> list[dict[float, str]]:
        """Texts of the cuts, by column."""
        tree, is_number = self.tree, ~self.tree.is_leaf & ~self.tree.is_categorical
        columns, cuts = tree.feature[is_number], tree.threshold[is_number]
        return column_texts(self.features, columns, cuts, self.decimals, self.has_strict_cuts)

    @property
    def has_strict_cuts(self) -> bool:
        """Whether only numbers below the cut go left, and not the cut itself, as in rpart."""
        return getattr(self.model, "dialect", None) is not None

    def column(self, node: int) -> int:
        """Return the position of the column that a node is split on."""
        return int(self.tree.feature[node])

    def sides(self, node: int) -> Sides:
        """Return the conditions of the left and right branch of an inner node."""
        j, missing_left = self.column(node), bool(self.tree.missing_go_to_left[node])
        is_partial, is_category = self.stored.is_partial(node), self.tree.is_categorical[node]
        if is_partial and is_category:
            primary = self.stored.of(node)[0]
            return primary.left, primary.right
        missing = (False, False) if is_partial else (missing_left, not missing_left)
        feature = self.features[j]
        if not is_category:
            cut = float(self.tree.threshold[node])
            return number_sides(feature, cut, self.cut_texts[j], self.has_strict_cuts, missing)
        codes = frozenset(range(len(feature.categories) + 1))
        left = codes.intersection([*self.tree.left_categories(node), *([max(codes)] if self.other_left(node) else [])])
        return (
            Condition(feature, codes=left, missing=missing[0]),
            Condition(feature, codes=codes - left, missing=missing[1]),
        )

    @cached_property
    def stored(self) -> StoredSplits:
        """Competitors and surrogates of the nodes."""
        return StoredSplits(self.tree, self.features, self.decimals, self.has_strict_cuts)

    def surrogate_condition(self, step: Step) -> Condition | None:
        """Return the condition of the first surrogate of the last branch; None if there is none to show."""
        parent = int(self.parent[step.node])
        if step.condition is None or not self.shows_missing(step.condition.column):
            return None
        first = self.stored.surrogates(parent)[:1]
        return (first[0].left if step.node == parent + 1 else first[0].right) if first else None

    def surrogate_text(self, step: Step) -> str:
        """Return that condition in brackets; empty if there is none to show."""
        condition, parent = self.surrogate_condition(step), int(self.parent[step.node])
        if condition is None:
            return ""
        more = ", …" if len(self.stored.surrogates(parent)) > 1 else ""
        return f" (if {self.unplaced_text(parent)}: {condition.describe(show_missing=False)}{more})"

    def unplaced_text(self, node: int) -> str:
        """Return which values of the split column the split of a node cannot place."""
        left, right = self.sides(node)
        if left.codes is None or right.codes is None or not self.stored.is_partial(node):
            return "missing"
        return "missing" if len(left.codes | right.codes) == left.n_codes else "missing or another"

    def stop_text(self, node: int) -> str:
        """Return which rows stay at an inner node; empty if none do."""
        column = self.features[self.column(node)].name
        if not self.stored.stops(node) or not self.shows_missing(column):
            return ""
        name, unplaced = one_line(column), self.unplaced_text(node)
        if not self.stored.surrogates(node):
            return f"{name} is {unplaced}"
        return f"{name}{'' if unplaced == 'missing' else f' is {unplaced}'} and its surrogates are missing"

    def other_left(self, node: int) -> bool:
        """Return whether categories that did not occur at fit go left, if they are a separate value."""
        return bool(self.tree.engine.flags[node] & _OTHER_LEFT)

    def shows_missing(self, column: str) -> bool:
        """Return whether to show where missing values of a column go."""
        if isinstance(self._show_missing, bool):
            return self._show_missing
        if self._show_missing != "seen":
            return column in self._show_missing
        names = self.model.schema_.names
        had_missing = getattr(self.model, "_had_missing", None)  # by column
        return had_missing is None or column not in names or bool(had_missing[names.index(column)])

    def walk(
        self, max_depth: int | None = None, values: list[float] | None = None, free: Collection[int] = ()
    ) -> Iterator[Step]:
        """Yield the nodes in preorder, down to a depth.

        With the `values` of a row by column, only the nodes of its path; both children at splits on `free` columns.
        """
        stack = [Step(0, {}, None, None)]
        while stack:
            step = stack.pop()
            yield step
            if self.is_end(step.node, max_depth):
                continue
            children: tuple[int | None, ...] = self.children(step.node)
            if values is not None and self.column(step.node) not in free:
                children = (self.decide(step.node, values).child,)
            stack.extend(self.stepped(step, child) for child in reversed(children) if child is not None)

    def is_end(self, node: int, max_depth: int | None) -> bool:
        """Return whether a node is a leaf, or at the maximum depth."""
        return self.is_leaf(node) or (max_depth is not None and int(self.tree.depth[node]) >= max_depth)

    def stepped(self, step: Step, child: int) -> Step:
        """Return the step from a node to one of its children."""
        j = self.column(step.node)
        side = self.sides(step.node)[0 if child == step.node + 1 else 1]
        reach = step.path.get(j)
        return Step(child, {**step.path, j: side if reach is None else reach & side}, side, reach)

    # ---- texts -----------------------------------------------------------------------------------------

    def number(self, value: float, digits: int = 4) -> str:
        """Return a value of the target as text."""
        return thousands(shortest(value, digits) if self.decimals is None else fixed(value, self.decimals))

    def label(self, prediction: Any) -> str:
        """Return a prediction as text."""
        outputs = prediction if isinstance(prediction, list) else [prediction]
        return ", ".join(one_line(p) if self.is_classifier else self.number(p) for p in outputs)

    def prediction_text(self, node: int) -> str:
        """Return the prediction of a node as text: a label, values, or a linear formula."""
        base, terms = self.linear_model(node)
        if not terms:
            return self.label(self.prediction(node))
        text = self.number(base)
        for j, slope, middle, *_ in terms:
            sign, feature = "−" if slope < 0 else "+", self.features[j]
            origin = date_text(middle, feature.resolution, feature.clock) if feature.clock else self.number(middle)
            text += f" {sign} {self.number(abs(slope))} × ({one_line(feature.name)} − {origin})"
        return text

    def row_prediction_text(self, node: int, values: list[float]) -> str:
        """Return the prediction of a node for a row as text, with the formula of a linear leaf."""
        total, terms = self.linear_model(node)
        if not terms or any(math.isnan(values[j]) for j, *_ in terms):
            return self.label(self.prediction(node))
        for j, slope, middle, low, high in terms:
            total += slope * (min(max(values[j], low), high) - middle)
        return f"{self.number(total)} = {self.prediction_text(node)}"

    def distribution_text(self, node: int) -> str:
        """Return the class probabilities of a node, or the centre and spread of its values, as text."""
        if self.is_classifier:
            texts = [_probability_text(*pair) for pair in zip(self.classes, self.probabilities(node), strict=True)]
            return texts[0] if len(texts) == 1 else "; ".join(f"y{k}: {text}" for k, text in enumerate(texts))
        spread = self.spread(node)
        if self.is_leaf(node):
            return spread
        return f"{self.centre} {self.label(self.prediction(node))}" + (f", {spread}" if spread else "")

    @property
    def centre(self) -> str:
        """Name of the statistic that a regression tree predicts."""
        names = {"absolute_error": "median", "user": "value", "gain": "adds", "log_rank": "relative hazard"}
        return names.get(name_of(self.model.criterion), "mean")

    def spread(self, node: int) -> str:
        """Return the spread of the values of a node as text; empty if the criterion does not measure it."""
        impurity = float(self.tree.impurity[node])
        if self.tree.n_outputs > 1 or self.model.criterion not in (*_SQUARED, "absolute_error"):
            return ""
        if self.model.criterion == "absolute_error":
            return f"mean deviation {self.number(impurity, 3)}"
        return f"sd {self.number(math.sqrt(max(impurity, 0.0)), 3)}"

    def rows_text(self, node: int, show_weights: bool = False) -> str:
        """Return the number of rows of a node and the distribution of their target as text."""
        weight = f", weight {thousands(shortest(self.weight(node)))}" if show_weights else ""
        distribution = self.distribution_text(node)
        return f"{plural(self.n_rows(node), 'row')}{weight}" + (f" ({distribution})" if distribution else "")

    # ---- rows ------------------------------------------------------------------------------------------

    def values(self, X: Any) -> list[NDArray[np.float64]]:
        """Return the numbers of a table by column."""
        return column_values(self.model.schema_, read_table(X), type(self.model).__name__, self.model.unseen)

    def row_values(self, row: Any) -> list[float]:
        """Return the numbers of one row by column."""
        is_table = getattr(row, "ndim", 1) == 2 or hasattr(row, "collect_schema")
        columns = self.values(row if is_table else row_table(self.model.schema_, row))
        if len(columns[0]) != 1:
            raise ValueError(f"Pass one row, not {len(columns[0])}.")
        return [float(column[0]) for column in columns]

    def decide(self, node: int, values: list[float]) -> Decision:
        """Return the child that a row goes to from an inner node."""
        children, value = self.children(node), np.array([values[self.column(node)]])
        for child, side in zip(children, self.sides(node), strict=True):
            if side.holds(value)[0]:
                return Decision(child)
        for surrogate in self.stored.surrogates(node):
            side_number = surrogate.side(values)
            if side_number is not None:
                return Decision(children[side_number], surrogate)
        if self.stored.stops(node):
            return Decision(None, None, True)
        goes_left = self.tree.missing_go_to_left[node] if np.isnan(value[0]) else self.other_left(node)
        return Decision(children[0 if goes_left else 1], None, True)

    def value_text(self, j: int, value: float) -> str:
        """Return a value of a column as text."""
        feature = self.features[j]
        if math.isnan(value):
            return "missing"
        if feature.kind == "boolean":
            return "true" if value else "false"
        if feature.clock:
            return date_text(value, feature.resolution, feature.clock, exact=True)
        if feature.kind == "number":
            return f"{value:.15g}"
        return one_line(feature.categories[int(value)]) if value < len(feature.categories) else "something else"


def require_count(name: str, count: int | None) -> None:
    """Raise unless a count is None or a whole number of at least 0."""
    if count is not None and (not isinstance(count, int) or count < 0):
        raise ValueError(f"{name} must be a whole number of at least 0 or None, not {count!r}.")


def _probability_text(labels: list[Any], probabilities: list[float]) -> str:
    """Return the classes that occur with their probabilities; if there are many, the most frequent ones."""
    present = shown = [(p, k) for k, p in enumerate(probabilities) if p > 0]
    if len(present) > _MAX_CLASSES:
        shown = sorted(present, key=lambda pair: (-pair[0], pair[1]))[: _MAX_CLASSES - 1]
    text = ", ".join(f"{one_line(labels[k])} {percent(p)}" for p, k in shown)
    rest = sum(p for p, _ in present) - sum(p for p, _ in shown)
    return text if shown is present else f"{text}, {len(present) - len(shown)} others {percent(rest)}"
