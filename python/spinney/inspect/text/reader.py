"""A fitted tree with its names: the one place where node numbers meet columns, categories and classes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
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
_MOST_CLASSES = 5
_TERM = ("feature", "slope", "middle", "low", "high")
_SQUARED = ("squared_error", "friedman_mse")


class Step(NamedTuple):
    """A node with the way to it.

    `path` is what is asked of each column on the way, `condition` what the last branch asks, and `reach` what the
    branches before it have left of that column (None if they did not ask).
    """

    node: int
    path: dict[int, Condition]
    condition: Condition | None
    reach: Condition | None


class Turn(NamedTuple):
    """Where a row goes from an inner node, and why.

    `child` is None if the row stays; `surrogate` is the split that decided instead of the node's own. `is_left_over`
    if none of them could: the row stays, or follows the larger side.
    """

    child: int | None
    surrogate: StoredSplit | None = None
    is_left_over: bool = False


class TreeReader:
    """Reads a fitted tree.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    decimals : int, optional
        Decimals of every number; None: as many as say it.
    show_missing : bool, "seen" or collection of column names, default=True
        Whether, or for which columns, to say where missing values go; "seen": those that lacked values in training.
    """

    def __init__(
        self, model: TableEstimator, decimals: int | None = None, show_missing: bool | Collection[str] = True
    ) -> None:
        if not hasattr(model, "fit"):
            raise TypeError(f"model must be a fitted decision tree of spinney, not {type(model).__name__}.")
        check_is_fitted(model)
        if not hasattr(model, "tree_") or not hasattr(model, "schema_"):
            raise TypeError(f"{type(model).__name__} is not a single tree. Pass a fitted decision tree of spinney.")
        require_count("decimals", decimals)
        self.model = model
        self.tree = model.tree_
        self.features: tuple[Feature, ...] = model.schema_.split_features
        self.decimals = decimals
        self._show_missing = show_missing
        self.is_classifier = hasattr(model, "classes_")

    # ---- nodes ---------------------------------------------------------------------------------------

    def is_leaf(self, node: int) -> bool:
        """Whether a node is a leaf."""
        return bool(self.tree.is_leaf[node])

    def children(self, node: int) -> tuple[int, int]:
        """Left and right child of an inner node."""
        return node + 1, int(self.tree.children_right[node])

    @cached_property
    def inner_nodes(self) -> list[int]:
        """Nodes that are split."""
        found: list[int] = np.flatnonzero(~self.tree.is_leaf).tolist()
        return found

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """Parent of each node; -1 for the root."""
        parent = np.full(self.tree.node_count, -1, dtype=np.int64)
        for node in self.inner_nodes:
            parent[list(self.children(node))] = node
        return parent

    @cached_property
    def n_leaves_below(self) -> NDArray[np.int64]:
        """Leaves of the branch that begins at each node."""
        count: NDArray[np.int64] = self.tree.is_leaf.astype(np.int64)
        for node in range(self.tree.node_count - 1, 0, -1):  # children come after their parent
            count[self.parent[node]] += count[node]
        return count

    def n_rows(self, node: int) -> int:
        """Training rows of a node."""
        return int(self.tree.n_node_samples[node])

    def weight(self, node: int) -> float:
        """Training weight of a node."""
        return float(self.tree.weighted_n_node_samples[node])

    def share_of_all(self, node: int) -> float:
        """Part of the training weight that is in a node."""
        return self.weight(node) / self.weight(0)

    def gain(self, node: int) -> float:
        """Decrease of the impurity by the split of a node, per weight of the node."""
        left, right = self.children(node)
        impurity = self.tree.impurity
        inside = self.weight(left) * float(impurity[left]) + self.weight(right) * float(impurity[right])
        if self.stored.stops(node):  # rows that stay gain nothing
            inside += (self.weight(node) - self.weight(left) - self.weight(right)) * float(impurity[node])
        return float(impurity[node]) - inside / self.weight(node)

    # ---- predictions -----------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> list[list[Any]]:
        """Labels of each output."""
        if not self.is_classifier:
            return []
        outputs = [self.model.classes_] if self.tree.n_outputs == 1 else self.model.classes_
        return [np.asarray(labels).tolist() for labels in outputs]

    def shares(self, node: int) -> list[list[float]]:
        """Class shares of a node, by output."""
        return [self.tree.flat_value[node, columns].tolist() for columns in self.tree.class_columns]

    def prediction(self, node: int) -> Any:
        """Label or value that a node predicts; a list if there are several outputs."""
        if self.is_classifier:
            found = [labels[int(code)] for labels, code in zip(self.classes, self.tree.majority[node], strict=True)]
        else:
            found = self.tree.flat_value[node].tolist()
        return found[0] if len(found) == 1 else found

    def line(self, node: int) -> tuple[float, list[tuple[int, float, float, float, float]]]:
        """Return a leaf's line, if it has one: what it adds where its columns are at their middles, and its terms.

        A term is a column, its slope, and its middle, lowest and highest value.
        """
        lines = self.tree.lines
        if lines is None:
            return 0.0, []
        terms = slice(int(lines["begin"][node]), int(lines["begin"][node + 1]))
        return float(lines["base"][node]), list(zip(*(lines[name][terms].tolist() for name in _TERM), strict=True))

    @property
    def has_shares(self) -> bool:
        """Whether each node has one share for each class."""
        return self.is_classifier and self.tree.n_outputs == 1

    def purity(self, node: int) -> float | None:
        """Share of the class that a node predicts; None for values or several outputs."""
        return self.shares(node)[0][int(self.tree.majority[node, 0])] if self.has_shares else None

    def certainty(self, node: int) -> float:
        """How far the share of the predicted class lies between an even share (or less) and all: 0 to 1."""
        shares = self.shares(node)[0]
        even = 1 / len(shares)
        return max(0.0, ((self.purity(node) or 0.0) - even) / (1 - even)) if len(shares) > 1 else 1.0

    # ---- splits ----------------------------------------------------------------------------------------

    @cached_property
    def cut_texts(self) -> list[dict[float, str]]:
        """How each column's cuts are written."""
        tree, is_number = self.tree, ~self.tree.is_leaf & ~self.tree.is_categorical
        columns, cuts = tree.feature[is_number], tree.threshold[is_number]
        return column_texts(self.features, columns, cuts, self.decimals, self.has_strict_cuts)

    @property
    def has_strict_cuts(self) -> bool:
        """Whether a number goes left if it lies below the cut, as in rpart, and not at it."""
        return getattr(self.model, "dialect", None) is not None

    def column(self, node: int) -> int:
        """Position of the column that a node is split on."""
        return int(self.tree.feature[node])

    def sides(self, node: int) -> Sides:
        """Conditions of the left and right branch of an inner node."""
        j, missing_left = self.column(node), bool(self.tree.missing_go_to_left[node])
        is_partial, is_category = self.stored.is_partial(node), self.tree.is_categorical[node]
        if is_partial and is_category:
            own = self.stored.of(node)[0]
            return own.left, own.right
        missing = (False, False) if is_partial else (missing_left, not missing_left)
        feature = self.features[j]
        if not is_category:
            cut = float(self.tree.threshold[node])
            return number_sides(feature, cut, self.cut_texts[j], self.has_strict_cuts, missing)
        every = frozenset(range(len(feature.categories) + 1))
        left = every.intersection([*self.tree.left_categories(node), *([max(every)] if self.other_left(node) else [])])
        return (
            Condition(feature, codes=left, missing=missing[0]),
            Condition(feature, codes=every - left, missing=missing[1]),
        )

    @cached_property
    def stored(self) -> StoredSplits:
        """Competitors and surrogates of the nodes."""
        return StoredSplits(self.tree, self.features, self.decimals, self.has_strict_cuts)

    def surrogate_condition(self, step: Step) -> Condition | None:
        """Return what the first surrogate of the last branch asks; None if there is none to show."""
        parent = int(self.parent[step.node])
        if step.condition is None or not self.shows_missing(step.condition.column):
            return None
        first = self.stored.surrogates(parent)[:1]
        return (first[0].left if step.node == parent + 1 else first[0].right) if first else None

    def surrogate_text(self, step: Step) -> str:
        """Write the same in brackets; nothing if there is nothing to show."""
        condition, parent = self.surrogate_condition(step), int(self.parent[step.node])
        if condition is None:
            return ""
        more = ", …" if len(self.stored.surrogates(parent)) > 1 else ""
        return f" (if {self.lacking(parent)}: {condition.describe(show_missing=False)}{more})"

    def lacking(self, node: int) -> str:
        """Say what a row has in the column of a node if the split cannot place it."""
        left, right = self.sides(node)
        if left.codes is None or right.codes is None or not self.stored.is_partial(node):
            return "missing"
        return "missing" if len(left.codes | right.codes) == left.n_codes else "missing or another"

    def stop_text(self, node: int) -> str:
        """Say which rows stay at an inner node; nothing if none do."""
        column = self.features[self.column(node)].name
        if not self.stored.stops(node) or not self.shows_missing(column):
            return ""
        name, lacking = one_line(column), self.lacking(node)
        if not self.stored.surrogates(node):
            return f"{name} is {lacking}"
        return f"{name}{'' if lacking == 'missing' else f' is {lacking}'} and its surrogates are missing"

    def other_left(self, node: int) -> bool:
        """Whether categories that did not occur at fit go left, where they count as a value of their own."""
        return bool(self.tree.engine.flags[node] & _OTHER_LEFT)

    def shows_missing(self, column: str) -> bool:
        """Whether to say where missing values of a column go."""
        if isinstance(self._show_missing, bool):
            return self._show_missing
        if self._show_missing != "seen":
            return column in self._show_missing
        names = self.model.schema_.names
        had_missing = getattr(self.model, "_had_missing", None)  # by column, if the model knows it
        return had_missing is None or column not in names or bool(had_missing[names.index(column)])

    def walk(
        self, max_depth: int | None = None, values: list[float] | None = None, free: Collection[int] = ()
    ) -> Iterator[Step]:
        """Go through the nodes in preorder, down to a depth.

        With `values` of a row by column, only where it goes; both ways at splits on the `free` columns.
        """
        stack = [Step(0, {}, None, None)]
        while stack:
            step = stack.pop()
            yield step
            if self.is_end(step.node, max_depth):
                continue
            children: tuple[int | None, ...] = self.children(step.node)
            if values is not None and self.column(step.node) not in free:
                children = (self.turn(step.node, values).child,)
            stack.extend(self.stepped(step, child) for child in reversed(children) if child is not None)

    def is_end(self, node: int, max_depth: int | None) -> bool:
        """Whether a node is a leaf, or no branches below it are shown."""
        return self.is_leaf(node) or (max_depth is not None and int(self.tree.depth[node]) >= max_depth)

    def stepped(self, step: Step, child: int) -> Step:
        """Go from a node to one of its children."""
        j = self.column(step.node)
        side = self.sides(step.node)[0 if child == step.node + 1 else 1]
        reach = step.path.get(j)
        return Step(child, {**step.path, j: side if reach is None else reach & side}, side, reach)

    # ---- words -----------------------------------------------------------------------------------------

    def number(self, value: float, digits: int = 4) -> str:
        """Write a value of the target."""
        return thousands(shortest(value, digits) if self.decimals is None else fixed(value, self.decimals))

    def label(self, prediction: Any) -> str:
        """Write a prediction."""
        parts = prediction if isinstance(prediction, list) else [prediction]
        return ", ".join(one_line(p) if self.is_classifier else self.number(p) for p in parts)

    def prediction_text(self, node: int) -> str:
        """Write what a node predicts: a label, values, or the line of its leaf."""
        base, terms = self.line(node)
        if not terms:
            return self.label(self.prediction(node))
        text = self.number(base)
        for j, slope, middle, *_ in terms:
            sign, feature = "−" if slope < 0 else "+", self.features[j]
            around = date_text(middle, feature.resolution, feature.clock) if feature.clock else self.number(middle)
            text += f" {sign} {self.number(abs(slope))} × ({one_line(feature.name)} − {around})"
        return text

    def row_prediction_text(self, node: int, values: list[float]) -> str:
        """Write what a node predicts for a row, and how its line comes to that."""
        sum_, terms = self.line(node)
        if not terms or any(math.isnan(values[j]) for j, *_ in terms):
            return self.label(self.prediction(node))
        for j, slope, middle, low, high in terms:
            sum_ += slope * (min(max(values[j], low), high) - middle)
        return f"{self.number(sum_)} = {self.prediction_text(node)}"

    def shares_text(self, node: int) -> str:
        """Write the class shares of a node, or the spread of its values."""
        if self.is_classifier:
            parts = [_listed_shares(*pair) for pair in zip(self.classes, self.shares(node), strict=True)]
            return parts[0] if len(parts) == 1 else "; ".join(f"y{k}: {part}" for k, part in enumerate(parts))
        spread = self.spread(node)
        if self.is_leaf(node):
            return spread
        return f"{self.centre} {self.label(self.prediction(node))}" + (f", {spread}" if spread else "")

    @property
    def centre(self) -> str:
        """What a value of the target is."""
        return {"absolute_error": "median", "user": "value", "gain": "adds"}.get(name_of(self.model.criterion), "mean")

    def spread(self, node: int) -> str:
        """Write how far the values of a node lie apart; nothing where the criterion does not say."""
        impurity = float(self.tree.impurity[node])
        if self.tree.n_outputs > 1 or self.model.criterion not in (*_SQUARED, "absolute_error"):
            return ""
        if self.model.criterion == "absolute_error":
            return f"mean deviation {self.number(impurity, 3)}"
        return f"sd {self.number(math.sqrt(max(impurity, 0.0)), 3)}"

    def rows_text(self, node: int, show_weights: bool = False) -> str:
        """Write how many rows a node has, and their class shares or the spread of their values."""
        weight = f", weight {thousands(shortest(self.weight(node)))}" if show_weights else ""
        inside = self.shares_text(node)
        return f"{plural(self.n_rows(node), 'row')}{weight}" + (f" ({inside})" if inside else "")

    # ---- rows ------------------------------------------------------------------------------------------

    def values(self, X: Any) -> list[NDArray[np.float64]]:
        """Read the numbers of a table by column."""
        return column_values(self.model.schema_, read_table(X), type(self.model).__name__, self.model.unseen)

    def row_values(self, row: Any) -> list[float]:
        """Read the numbers of one row by column."""
        is_table = getattr(row, "ndim", 1) == 2 or hasattr(row, "collect_schema")
        columns = self.values(row if is_table else row_table(self.model.schema_, row))
        if len(columns[0]) != 1:
            raise ValueError(f"Pass one row, not {len(columns[0])}.")
        return [float(column[0]) for column in columns]

    def turn(self, node: int, values: list[float]) -> Turn:
        """Find out where a row goes from an inner node."""
        children, value = self.children(node), np.array([values[self.column(node)]])
        for child, side in zip(children, self.sides(node), strict=True):
            if side.holds(value)[0]:
                return Turn(child)
        for surrogate in self.stored.surrogates(node):
            side_number = surrogate.side(values)
            if side_number is not None:
                return Turn(children[side_number], surrogate)
        if self.stored.stops(node):
            return Turn(None, None, True)
        goes_left = self.tree.missing_go_to_left[node] if np.isnan(value[0]) else self.other_left(node)
        return Turn(children[0 if goes_left else 1], None, True)

    def value_text(self, j: int, value: float) -> str:
        """Write the value that a row has in a column."""
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
    """Refuse what is neither a whole number of at least 0 nor None."""
    if count is not None and (not isinstance(count, int) or count < 0):
        raise ValueError(f"{name} must be a whole number of at least 0 or None, not {count!r}.")


def _listed_shares(labels: list[Any], shares: list[float]) -> str:
    present = shown = [(share, k) for k, share in enumerate(shares) if share > 0]
    if len(present) > _MOST_CLASSES:
        shown = sorted(present, key=lambda pair: (-pair[0], pair[1]))[: _MOST_CLASSES - 1]
    named = ", ".join(f"{one_line(labels[k])} {percent(share)}" for share, k in shown)
    rest = sum(share for share, _ in present) - sum(share for share, _ in shown)
    return named if shown is present else f"{named}, {len(present) - len(shown)} others {percent(rest)}"
