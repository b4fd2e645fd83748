"""The record of a fit by rpart's rules, in rpart's layout: the children of node k are 2k and 2k + 1, left first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.types import Floats
from spinney._model.file.codec import SavedState, integer, nullable, text
from spinney._model.file.codec import number as scalar
from spinney._model.file.codec import numbers as arrays
from spinney._model.file.container import refuse
from spinney._model.saving.saved_model import SavedModel
from spinney._model.tree import FittedTree
from spinney._tree.complexity_table import ComplexityTable
from spinney._tree.rpart.methods import Shape

PRIMARY, COMPETITOR, SURROGATE = 0, 1, 2
_CATEGORY, _REVERSED = 1, 2
_ROUNDING = 1e-10  # a cp copied from a printed table means the row it was copied from
# whether the nodes of a method have counts of classes, and events
_METHODS = {"class": (True, False), "anova": (False, False), "poisson": (False, True), "exp": (False, True)}
ROLES = ("primary", "competitor", "surrogate")


def reversed_nodes(tree: FittedTree) -> NDArray[np.bool_]:
    """Mark the splits whose left child in rpart is the right child here."""
    splits = tree.splits
    result = np.zeros(tree.node_count, dtype=bool)
    if splits is None:
        return result
    inner = np.flatnonzero(~tree.is_leaf)
    result[inner] = (splits["flags"][splits["begin"][inner]] & _REVERSED) > 0
    return result


def gains(tree: FittedTree) -> Floats:
    """Return the gain of each node's split; 0 in leaves."""
    splits = tree.splits
    result = np.zeros(tree.node_count)
    if splits is not None:
        inner = np.flatnonzero(~tree.is_leaf)
        result[inner] = splits["improve"][splits["begin"][inner]]
    return result


def shape_of(tree: FittedTree, improve: Floats) -> Shape:
    """Return the children of each node in rpart's order."""
    swap = reversed_nodes(tree)
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    return Shape(np.where(swap, right, left), np.where(swap, left, right), improve)


@dataclass(frozen=True)
class RpartRecord:
    """The numbers of a fit by rpart's rules.

    Attributes
    ----------
    method : {"class", "anova", "poisson", "exp"}
    tree : FittedTree
    risk, complexity, improve : ndarray
        By node of `tree`; complexity is relative to the root's risk.
    prediction, weight : ndarray
        By node.
    counts, events : ndarray or None
        By node: weighted rows by class, weighted events.
    where : ndarray or None
        Node of `tree` at which each training row stopped; -1 for rows that were dropped. None in a model that was
        saved or pickled.
    cp_table : ndarray
        Columns: complexity, number of splits, relative error and, after cross-validation, the cross-validated error
        and its standard error.
    total_weight : float
        Weight of the rows used.
    credit : ndarray
        By node: what its split adds to the importance of its column.
    n_dropped : int
        Training rows without a response, or without any predictor.
    """

    method: str
    tree: FittedTree
    risk: Floats
    complexity: Floats
    improve: Floats
    prediction: Floats
    weight: Floats
    counts: Floats | None
    events: Floats | None
    where: NDArray[np.int64] | None
    cp_table: Floats
    total_weight: float
    credit: Floats
    n_dropped: int = 0

    @property
    def root_risk(self) -> float:
        """Risk of the root."""
        return float(self.risk[0])

    def order(self) -> list[tuple[int, int]]:
        """Return (rpart's number, node of the tree), depth first, left child first."""
        shape = shape_of(self.tree, self.improve)
        found, stack = [], [(1, 0)]
        while stack:
            number, node = stack.pop()
            found.append((number, node))
            if shape.left[node] >= 0:
                stack.append((2 * number + 1, int(shape.right[node])))
                stack.append((2 * number, int(shape.left[node])))
        return found

    def numbers(self) -> NDArray[np.object_]:
        """Return rpart's number of each node of the tree."""
        numbers = np.zeros(self.tree.node_count, dtype=object)
        for number, node in self.order():
            numbers[node] = number
        return numbers

    def importance(self, n_features: int) -> Floats:
        """Return the sum of improvements by column; a surrogate is credited in proportion to its adjusted agreement."""
        total = np.zeros(n_features)
        splits = self.tree.splits
        if splits is None:
            return total
        for node in np.flatnonzero(~self.tree.is_leaf):
            for s in range(splits["begin"][node], splits["begin"][node + 1]):
                if splits["role"][s] != COMPETITOR:
                    fraction = splits["adjusted"][s] if splits["role"][s] == SURROGATE else 1.0
                    total[splits["feature"][s]] += fraction * self.credit[node]
        return total

    def complexity_table(self) -> ComplexityTable:
        """Return the table of complexities in the form that all pruned trees share."""
        table = self.cp_table
        errors = table[:, 3:] if table.shape[1] > 3 else np.full((len(table), 2), np.nan)
        return ComplexityTable(
            alpha=table[:, 0] * self.root_risk / float(self.tree.weighted_n_node_samples[0]),
            cp=table[:, 0],
            n_splits=table[:, 1].astype(np.intp),
            n_leaves=table[:, 1].astype(np.intp) + 1,
            relative_error=table[:, 2],
            cv_error=errors[:, 0],
            cv_se=errors[:, 1],
        )

    def pruned_at(self, alpha: float | None, cp: float | None) -> RpartRecord:
        """Return the record pruned at alpha, per unit of weight, or at cp; negative values are allowed as in rpart."""
        name, penalty = ("alpha", alpha) if cp is None else ("cp", cp)
        has_risk = self.root_risk != 0  # else all complexities are NaN
        if not isinstance(penalty, Real) or (penalty != penalty and has_risk):
            raise ValueError(f"{name} must be a number. Got {penalty!r}.")
        if name == "cp":
            return self.pruned(float(penalty))
        risk_per_weight = self.root_risk / float(self.tree.weighted_n_node_samples[0])
        return self.pruned(float(penalty) / risk_per_weight if risk_per_weight > 0 else 0.0)

    def collapsed(self, leaf: NDArray[np.bool_], cp_table: Floats) -> RpartRecord:
        """Return the record of the tree in which these nodes are leaves."""
        nodes = surviving_nodes(self.tree, leaf)
        by_node = {name: getattr(self, name) for name in _BY_NODE}
        retained: dict[str, Any] = {name: None if array is None else array[nodes] for name, array in by_node.items()}
        tree = self.tree.replaced(self.tree.engine.collapsed(leaf.astype(np.uint8)))
        where = None if self.where is None else resting_nodes(self.where, nodes)
        return replace(self, tree=tree, where=where, cp_table=cp_table, **retained)

    def pruned(self, cp: float) -> RpartRecord:
        """Collapse all splits whose complexity is at most cp."""
        limit = cp + _ROUNDING * abs(cp)
        leaf = ~self.tree.is_leaf & (self.complexity <= limit)
        if not leaf.any():
            return self
        n_above = int(np.count_nonzero(self.cp_table[:, 0] > limit))
        cp_table = self.cp_table[: n_above + 1].copy()
        cp_table[-1, 0] = cp
        return self.collapsed(leaf, cp_table)

    # ---- tables ------------------------------------------------------------------------------------------

    def frame(self, schema: Schema) -> list[dict[str, Any]]:
        """Return a row per node, as rpart's frame."""
        splits = self.tree.splits
        lines = []
        for number, node in self.order():
            roles = np.zeros(0) if splits is None else splits["role"][slice(*splits["begin"][node : node + 2])]
            leaf = bool(self.tree.is_leaf[node])
            line: dict[str, Any] = {
                "node": number,
                "var": "<leaf>" if leaf else schema.names[self.tree.feature[node]],
                "n": int(self.tree.n_node_samples[node]),
                "wt": float(self.weight[node]),
                "dev": float(self.risk[node]),
                "yval": float(self.prediction[node]) + (self.method == "class"),
                "complexity": float(self.complexity[node]),
                "ncompete": int(np.count_nonzero(roles == COMPETITOR)),
                "nsurrogate": int(np.count_nonzero(roles == SURROGATE)),
            }
            if self.counts is not None:
                line["counts"] = self.counts[node].tolist()
                line["yprob"] = self.tree.flat_value[node].tolist()
                line["nodeprob"] = float(self.tree.weighted_n_node_samples[node] / self.total_weight)
            if self.events is not None:
                line["events"] = float(self.events[node])
            lines.append(line)
        return lines

    def splits(self, schema: Schema) -> list[dict[str, Any]]:
        """Return a row per split stored at a node: primary, competitors, surrogates.

        `below` is the side of numbers below `cut`; `left` and `right` list categories. Sides are rpart's.
        """
        table = self.tree.splits
        if table is None:
            return []
        swap, scale = reversed_nodes(self.tree), self.gain_scale()
        lines = []
        for number, node in self.order():
            for s in range(table["begin"][node], table["begin"][node + 1]):
                lines.append(
                    {"node": number, **self._split(table, s, node, bool(swap[node]), float(scale[node]), schema)}
                )
        return lines

    def _split(
        self, table: dict[str, Any], s: int, node: int, swap: bool, scale: float, schema: Schema
    ) -> dict[str, Any]:
        role, feature = int(table["role"][s]), schema.features[table["feature"][s]]
        turned = bool(table["flags"][s] & _REVERSED)
        # a competitor is shown in its own orientation, a surrogate in that of the split that it replaces
        flip = turned if role != SURROGATE else swap
        improve = float(table["improve"][s])
        if role == COMPETITOR:
            improve *= scale
        elif role == PRIMARY:
            improve = float(self.improve[node])
        line: dict[str, Any] = {
            "role": ROLES[role],
            "var": feature.name,
            "count": int(table["count"][s]),
            "improve": improve,
            "adj": float(table["adjusted"][s]),
            "cut": None,
            "below": None,
            "left": None,
            "right": None,
        }
        if table["flags"][s] & _CATEGORY:
            begin = int(table["set"][s])
            n_left = int(table["sets"][begin])
            left = table["sets"][begin + 1 : begin + 1 + n_left]
            right = table["sets"][begin + 2 + n_left : begin + 2 + n_left + int(table["sets"][begin + 1 + n_left])]
            sides = [[feature.categories[code] for code in side] for side in (left, right)]
            line["left"], line["right"] = sides[::-1] if flip else sides
            return line
        cut = float(np.nextafter(table["threshold"][s], np.inf))
        below_left = (not turned) != swap if role == SURROGATE else not flip
        line["cut"], line["below"] = cut, "left" if below_left else "right"
        if feature.kind == "ordered":
            codes = np.arange(len(feature.categories))
            low = [feature.categories[c] for c in codes[codes < cut]]
            high = [feature.categories[c] for c in codes[codes >= cut]]
            line["left"], line["right"] = (low, high) if below_left else (high, low)
        return line

    def gain_scale(self) -> Floats:
        """Return the factor from the engine's gain to the reported improvement, by node."""
        gain = gains(self.tree)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(gain > 0, self.improve / gain, 1.0)


def surviving_nodes(tree: FittedTree, leaf: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the nodes that remain when the marked ones become leaves, in preorder."""
    nodes, stack = [], [0]
    while stack:
        node = stack.pop()
        nodes.append(node)
        if not tree.is_leaf[node] and not leaf[node]:
            stack.append(int(tree.children_right[node]))
            stack.append(node + 1)
    return np.array(nodes, dtype=np.int64)


def resting_nodes(where: NDArray[np.int64], remaining: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each row's node among the remaining nodes; -1 for rows that are in no node."""
    # in preorder, removed nodes follow the ancestor that became a leaf
    return np.searchsorted(remaining, where, side="right") - 1


# ---- model files ---------------------------------------------------------------------------------------------

_BY_NODE = dict.fromkeys(
    ("risk", "complexity", "improve", "prediction", "weight", "credit"), arrays(np.float64, "n_nodes", finite=False)
)
_BY_NODE |= {
    "counts": nullable(arrays(np.float64, "n_nodes", "n_classes", finite=False)),
    "events": nullable(arrays(np.float64, "n_nodes", finite=False)),
}
_SAVED = SavedState(
    "rpart",
    {
        "method": text(),
        **_BY_NODE,
        "cp_table": arrays(np.float64, None, None, finite=False),
        "total_weight": scalar(above=0, below=math.inf),
        "n_dropped": integer(least=0, below=2**32),
    },
)


def record_to_json(record: RpartRecord | None) -> dict[str, Any]:
    """Return the header entry; none if the tree was not grown by rpart's rules. Nodes of training rows are left out."""
    return {} if record is None else _SAVED.to_header(record)


def record_from_json(header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
    """Return the fitted attribute that `record_to_json` saved; refuse one that does not match the tree."""
    if "rpart" not in header:
        return {}
    tree = saved.model
    if not isinstance(tree, FittedTree):
        refuse("is damaged: it has a record of rpart, but does not hold a single tree")
    n_classes = len(saved.classes[0]) if saved.classes is not None else 0
    entries = _SAVED.from_header(header, n_nodes=tree.node_count, n_classes=n_classes)
    codes, n_splits = entries["prediction"], entries["cp_table"][:, 1:2]
    has_counts, has_events = _METHODS.get(entries["method"], (not n_classes, False))
    for name, is_usable, fault in (
        ("method", has_counts == (n_classes > 0) and tree.n_outputs == 1, "does not match the target"),
        ("counts", has_counts == (entries["counts"] is not None), "does not match the method"),
        ("events", has_events == (entries["events"] is not None), "does not match the method"),
        ("prediction", not n_classes or np.isin(codes, np.arange(n_classes)).all(), "names classes that do not exist"),
        ("cp_table", entries["cp_table"].shape[1] in (3, 5), "has the wrong shape"),
        ("cp_table", ((n_splits >= 0) & (n_splits < 2**32)).all(), "does not count splits"),
    ):
        if not is_usable:
            refuse(f"is damaged: in its record of rpart, {name!r} {fault}")
    return {"rpart_": RpartRecord(**entries, tree=tree, where=None)}
