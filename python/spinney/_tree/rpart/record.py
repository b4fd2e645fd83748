"""What is kept of a fit by rpart's rules, in rpart's own layout: nodes numbered 2k and 2k + 1, left son first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.types import Floats
from spinney._model.file.container import field, refuse
from spinney._model.saving.saved_model import SavedModel
from spinney._model.tree import FittedTree
from spinney._tree.complexity_table import ComplexityTable
from spinney._tree.rpart.methods import Shape

PRIMARY, COMPETITOR, SURROGATE = 0, 1, 2
_CATEGORY, _REVERSED = 1, 2
_ROUNDING = 1e-10  # a cp read off a printed table means the line it was read from
_BY_NODE = ("risk", "complexity", "improve", "prediction", "weight", "credit")
_METHODS = {"class": True, "anova": False, "poisson": False, "exp": False}  # and whether there are classes
ROLES = ("primary", "competitor", "surrogate")


def reversed_nodes(tree: FittedTree) -> NDArray[np.bool_]:
    """At which splits rpart's left son is the right child."""
    splits = tree.splits
    result = np.zeros(tree.node_count, dtype=bool)
    if splits is None:
        return result
    inner = np.flatnonzero(~tree.is_leaf)
    result[inner] = (splits["flags"][splits["begin"][inner]] & _REVERSED) > 0
    return result


def gains(tree: FittedTree) -> Floats:
    """Gain of each node's split; 0 in leaves."""
    splits = tree.splits
    result = np.zeros(tree.node_count)
    if splits is not None:
        inner = np.flatnonzero(~tree.is_leaf)
        result[inner] = splits["improve"][splits["begin"][inner]]
    return result


def shape_of(tree: FittedTree, improve: Floats) -> Shape:
    """Return the tree as rpart sees it."""
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
        Node of `tree` at which each training row came to rest; -1 for rows that were dropped. None in a model that
        was saved or pickled.
    cp_table : ndarray
        Lines of complexity, splits, relative error and, after cross-validation, its error and standard error.
    total_weight : float
        Of the rows used.
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
        """Return (rpart's number, node of the tree), depth first, left son first."""
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
        """Sum of improvements by column: a surrogate is credited its adjusted agreement's share."""
        total = np.zeros(n_features)
        splits = self.tree.splits
        if splits is None:
            return total
        for node in np.flatnonzero(~self.tree.is_leaf):
            for s in range(splits["begin"][node], splits["begin"][node + 1]):
                if splits["role"][s] != COMPETITOR:
                    share = splits["adjusted"][s] if splits["role"][s] == SURROGATE else 1.0
                    total[splits["feature"][s]] += share * self.credit[node]
        return total

    def complexity_table(self) -> ComplexityTable:
        """Return the table of complexities as every pruned tree has it."""
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
        """Return the record pruned at one of alpha, per unit of weight, and cp; rpart takes negative ones, too."""
        name, given = ("alpha", alpha) if cp is None else ("cp", cp)
        has_price = self.root_risk != 0  # else its table has no complexities
        if not isinstance(given, Real) or (given != given and has_price):
            raise ValueError(f"{name} must be a number. Got {given!r}.")
        if name == "cp":
            return self.pruned(float(given))
        risk_per_weight = self.root_risk / float(self.tree.weighted_n_node_samples[0])
        return self.pruned(float(given) / risk_per_weight if risk_per_weight > 0 else 0.0)

    def collapsed(self, leaf: NDArray[np.bool_], cp_table: Floats) -> RpartRecord:
        """Return the record of the tree in which these nodes are leaves."""
        kept = surviving_nodes(self.tree, leaf)
        by_node = {name: getattr(self, name) for name in (*_BY_NODE, "counts", "events")}
        picked: dict[str, Any] = {name: None if v is None else v[kept] for name, v in by_node.items()}
        tree = self.tree.replaced(self.tree.engine.collapsed(leaf.astype(np.uint8)))
        where = None if self.where is None else resting_nodes(self.where, kept)
        return replace(self, tree=tree, where=where, cp_table=cp_table, **picked)

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
        """Return a line per node, as rpart's frame."""
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
        """Return a line per split that was kept at a node: primary, competitors, surrogates.

        `below` says where numbers below `cut` go, `left` and `right` name categories; sides are rpart's.
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
        # a competitor is drawn by its own orientation, a surrogate by that of the split it stands in for
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
        """Factor from the engine's gain to the reported improvement, by node."""
        gain = gains(self.tree)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(gain > 0, self.improve / gain, 1.0)


def surviving_nodes(tree: FittedTree, leaf: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the nodes that stay when the marked ones become leaves, in preorder."""
    kept, stack = [], [0]
    while stack:
        node = stack.pop()
        kept.append(node)
        if not tree.is_leaf[node] and not leaf[node]:
            stack.append(int(tree.children_right[node]))
            stack.append(node + 1)
    return np.array(kept, dtype=np.int64)


def resting_nodes(where: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows rest among the nodes that stay; -1 for rows that rest nowhere."""
    # nodes that went follow, in preorder, the node that they went with
    return np.searchsorted(kept, where, side="right") - 1


# ---- model files ---------------------------------------------------------------------------------------------


def record_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry; none if the tree was not grown by rpart's rules. Rows' nodes are not kept."""
    record: RpartRecord | None = attributes.get("rpart_")
    if record is None:
        return {}
    names = (*_BY_NODE, "counts", "events", "cp_table")
    arrays = {name: _to_json(getattr(record, name)) for name in names}
    return {
        "rpart": arrays
        | {"method": record.method, "total_weight": float(record.total_weight), "n_dropped": record.n_dropped}
    }


def record_from_json(header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
    """Turn back what `record_to_json` gives, as fitted attributes; it has to fit the tree."""
    if "rpart" not in header:
        return {}
    entries, tree = field(header, "rpart", dict), saved.model
    if not isinstance(tree, FittedTree):
        refuse("is damaged: it has a record of rpart, but does not hold a single tree")
    method, n_dropped = field(entries, "method", str), field(entries, "n_dropped", int)
    if _METHODS.get(method) != (saved.classes is not None) or tree.n_outputs != 1:
        _refuse("method", "does not go with its target")
    if not 0 <= n_dropped < 2**32:
        _refuse("n_dropped", "is not a count")
    n_classes = len(saved.classes[0]) if saved.classes is not None else 0
    is_rate = method in ("poisson", "exp")
    arrays: dict[str, Any] = {name: _numbers(entries, name, (tree.node_count,)) for name in _BY_NODE}
    arrays["counts"] = _numbers(entries, "counts", (tree.node_count, n_classes)) if n_classes else None
    arrays["events"] = _numbers(entries, "events", (tree.node_count,)) if is_rate else None
    codes = arrays["prediction"]
    if n_classes and not ((codes >= 0) & (codes < n_classes) & (codes == np.floor(codes))).all():
        _refuse("prediction", "names classes that do not exist")
    total_weight = field(entries, "total_weight", float)
    if not 0 < total_weight < np.inf:
        _refuse("total_weight", "is not a positive weight")
    record = RpartRecord(
        method=method,
        tree=tree,
        where=None,
        cp_table=_table(entries),
        total_weight=total_weight,
        n_dropped=n_dropped,
        **arrays,
    )
    return {"rpart_": record}


def _to_json(array: Floats | None) -> Any:
    """Return numbers as lists; those that are not finite become None."""
    if array is None:
        return None
    finite = np.isfinite(array)
    return np.asarray(array).tolist() if finite.all() else np.where(finite, array, None).tolist()  # type: ignore[call-overload]


def _numbers(entries: dict[str, Any], name: str, shape: tuple[int, ...]) -> Floats:
    numbers = field(entries, name, list)
    flat = [item for line in numbers for item in line] if len(shape) == 2 and _is_nested(numbers) else numbers
    if not all(type(item) in (int, float, type(None)) for item in flat):
        _refuse(name, "does not hold numbers")
    if len(shape) == 2 and not (_is_nested(numbers) and all(len(line) == shape[1] for line in numbers)):
        _refuse(name, "has the wrong shape")
    if len(numbers) != shape[0]:
        _refuse(name, "has the wrong length")
    found = np.array([np.nan if item is None else item for item in flat], dtype=np.float64)
    if np.isinf(found).any():
        _refuse(name, "holds impossible numbers")
    return found.reshape(shape)


def _table(entries: dict[str, Any]) -> Floats:
    lines = field(entries, "cp_table", list)
    width = len(lines[0]) if lines and isinstance(lines[0], list) else 0
    if width not in (3, 5):
        _refuse("cp_table", "has the wrong shape")
    table = _numbers(entries, "cp_table", (len(lines), width))
    if not ((table[:, 1] >= 0) & (table[:, 1] < 2**32)).all():
        _refuse("cp_table", "counts no splits")
    return table


def _is_nested(numbers: list[Any]) -> bool:
    return all(isinstance(line, list) for line in numbers)


def _refuse(name: str, fault: str) -> None:
    refuse(f"is damaged: in its record of rpart, {name!r} {fault}")
