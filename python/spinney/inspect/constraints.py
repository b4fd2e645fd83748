"""Proofs that a sum of trees is monotonic in a column, or counter-examples.

The proof covers all possible rows, not a sample of rows.

Vocabulary
----------
state     values of a column that no tree distinguishes: a bin between two thresholds, a category, or missing
box       the allowed states of each column as a bit mask; a column that is not in the box may have any state
decrease  how much a tree, or the sum of trees, decreases from one bin of the column to the next, all else equal

If each tree is increasing, so is the sum, bit for bit, because each addition is. Otherwise only trees with a split at
a threshold can decrease there: branch and bound searches for the largest sum of their decreases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Feature
from spinney._data.cells import cells_of
from spinney._data.display import Backend, ShownAsTable, frame_of, one_line, shortest
from spinney._data.types import Floats
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.model import FittedModel, ModelOfTrees
from spinney.inspect.explain.target_model import all_thresholds, point_table

Box = dict[int, int]
_MISSING_LEFT, _CATEGORY, _OTHER_LEFT, _STOPS = 1, 2, 4, 8  # the engine's flags of a node
_MAX_STEPS = 200_000
_COLUMNS = ("column", "direction", "verdict", "reason")
_ROUNDING = 2.0**-50  # relative to each of the values that are added up


# ---- results -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ConstraintViolation:
    """Two rows that differ in one column only and whose predictions violate a monotonic constraint.

    Attributes
    ----------
    column : str
        The constrained column.
    rows : tuple of two dicts
        Values by column name, the row with the lower value first; None stands for a missing value.
    predictions : tuple of two floats
        Predictions for the two rows: numbers, or probabilities of the second class.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[float(i)] for i in range(40)], [float(i < 20) for i in range(40)]
    >>> model = spinney.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> model.verify_constraints([1]).violations["x0"].predictions
    (1.0, 0.0)
    """

    column: str
    rows: tuple[dict[str, Any], dict[str, Any]]
    predictions: tuple[float, float]


@dataclass(frozen=True, eq=False)
class ConstraintReport(ShownAsTable):
    """Result of `verify_constraints`; prints as text.

    Attributes
    ----------
    columns : dict of lists
        One entry for each constrained column: `column`, `direction` (1 or -1), `verdict` ("proved", "violated" or
        "undecided") and `reason`. With several outputs, there is one entry for each column and output, and `output` is
        the number of the output.
    violations : dict of str to ConstraintViolation
        A counter-example for each column that has one; with several outputs, the keys are like "size, output 1".

    Examples
    --------
    >>> import spinney
    >>> X, y = [[float(i)] for i in range(60)], [float(i % 7) for i in range(60)]
    >>> model = spinney.GradientBoostingRegressor(n_estimators=5, monotonic_cst=[1]).fit(X, y)
    >>> print(model.verify_constraints())
    x0 increasing: proved (every tree is monotonic)
    """

    columns: dict[str, list[Any]]
    violations: dict[str, ConstraintViolation]

    @property
    def holds(self) -> bool | None:
        """Whether all constraints hold: True if all are proved, False if one is violated, else None."""
        verdicts = set(self.columns["verdict"])
        return False if "violated" in verdicts else None if "undecided" in verdicts else True

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return `columns` as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per constrained column.
        """
        return frame_of(self.columns, backend)

    def __repr__(self) -> str:
        n, n_proved = len(self.columns["column"]), self.columns["verdict"].count("proved")
        return f"<ConstraintReport: {n_proved} of {n} proved, {len(self.violations)} violated>"

    def __str__(self) -> str:
        lines, outputs = [], self.columns.get("output", [None] * len(self.columns["column"]))
        entries = (self.columns[name] for name in _COLUMNS)
        for output, name, direction, verdict, reason in zip(outputs, *entries, strict=True):
            where = "" if output is None else f" in output {output}"
            trend = "increasing" if direction > 0 else "decreasing"
            lines.append(f"{one_line(name)} {trend}{where}: {verdict} ({reason})")
        return "\n".join(lines)


# ---- verification ------------------------------------------------------------------------------------------------


def verify_constraints(
    estimator: TableEstimator, monotonic_cst: object = None, *, max_steps: int = _MAX_STEPS
) -> ConstraintReport:
    """Prove that the model is monotonic in its constrained columns, or find two rows for which it is not.

    The proof covers all possible rows: every value at and between the thresholds, every category, and missing values
    in other columns. A missing value in the constrained column itself is not ordered relative to numbers, so it is
    not compared.

    Parameters
    ----------
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        Constraints to verify; None: those of the fit. A boosted model with several outputs takes one specification
        for all outputs, or a list with one for each.
    max_steps : int, default=200000
        Maximum number of search steps per column. A search is only needed where a single tree is not monotonic,
        though the sum of the trees may be. Beyond the limit the verdict is "undecided". 100,000 steps take about a
        second.

    Returns
    -------
    ConstraintReport
        A verdict for each column, and counter-examples; prints as text.
    """
    check_is_fitted(estimator)
    model = estimator
    constraints = getattr(model, "monotonic_cst", None) if monotonic_cst is None else monotonic_cst
    if model.schema_.pool is not None or not (hasattr(model, "monotonic_cst") or hasattr(model, "boosting_")):
        raise ValueError(f"{type(estimator).__name__} does not split on single columns, so it cannot be verified.")
    directions = estimator._constrained_directions(constraints)
    if not directions:
        raise ValueError("There are no constraints to verify. Fit with monotonic_cst, or pass it here.")
    if not model._predicts_alone:
        raise ValueError(
            f"The initial scores come from {type(model.init_).__name__}, for which monotonicity cannot be proved. "
            "Fit with init='constant'."
        )
    if model._fitted.has_linear_leaves:
        raise ValueError(
            "Monotonicity cannot be proved for linear leaves (linear_leaves=True), which may decrease within a leaf. "
            "Fit with linear_leaves=False."
        )
    n_outputs = _n_verifiable_outputs(model)
    if n_outputs == 1:
        return _Verifier(model, 0).verify(directions[0], int(max_steps))
    by_output = directions * n_outputs if len(directions) == 1 else directions
    reports = [_Verifier(model, k).verify(of_output, int(max_steps)) for k, of_output in enumerate(by_output)]
    return _combined(reports, is_sorted=_has_sorted_outputs(model._fitted))


def _n_verifiable_outputs(model: TableEstimator) -> int:
    """Return the number of outputs; raise if an output has no single score that could be monotonic."""
    fitted, n_outputs = model._fitted, int(getattr(model, "n_outputs_", 1))
    assert isinstance(fitted, ModelOfTrees)
    max_classes = int(np.max(getattr(model, "n_classes_", 1)))
    if (n_outputs > 1 and not hasattr(fitted, "n_scores")) or max_classes > 2:
        raise ValueError(
            "Trees with several outputs, and models of more than two classes, have no single prediction that could be "
            "monotonic. Fit one model for each."
        )
    if getattr(fitted, "n_scores", 1) > n_outputs and hasattr(model, "classes_"):
        raise ValueError("A model with one score per class has no single score that could be monotonic.")
    return n_outputs


def _combined(reports: list[ConstraintReport], is_sorted: bool) -> ConstraintReport:
    """Return the reports of several outputs as one.

    Where the outputs of a row are sorted, they are monotonic if the scores of all outputs are; a proof for some of
    the outputs is not enough.
    """
    columns = {name: [cell for report in reports for cell in report.columns[name]] for name in _COLUMNS}
    columns["output"] = [k for k, report in enumerate(reports) for _ in report.columns["column"]]
    verdicts = list(zip(columns["column"], columns["direction"], columns["verdict"], strict=True))
    n_equal = Counter(verdicts)
    for i, verdict in enumerate(verdicts):
        if is_sorted and verdict[-1] == "proved" and n_equal[verdict] < len(reports):
            columns["verdict"][i] = "undecided"
            columns["reason"][i] = "outputs are sorted, and another output is not proved to have the same direction"
    violations = {f"{name}, output {k}": v for k, report in enumerate(reports) for name, v in report.violations.items()}
    return ConstraintReport({"output": columns.pop("output")} | columns, violations)


class _Verifier:
    """Verifies the monotonicity of one output of a model."""

    def __init__(self, model: TableEstimator, output: int) -> None:
        self._model, self._fitted, self._output = model, model._fitted, output
        self._has_classes = hasattr(model, "classes_")
        self._trees = self._fitted.trees()[output :: getattr(self._fitted, "n_scores", 1)]
        has_other = model._unseen_policy == "other"
        self._states = [
            _ColumnStates(feature, all_thresholds(self._trees, j), has_other)
            for j, feature in enumerate(model.schema_.features)
        ]
        self._value_index = 1 if self._trees[0].value_width == 2 else 0

    def verify(self, directions: list[int], max_steps: int) -> ConstraintReport:
        names = self._model.schema_.names
        verdicts = {j: self._verdict(j, direction, max_steps) for j, direction in enumerate(directions) if direction}
        entries = [(names[j], directions[j], verdict, reason) for j, (verdict, reason, _) in verdicts.items()]
        columns = {name: [entry[k] for entry in entries] for k, name in enumerate(_COLUMNS)}
        violations = {names[j]: violation for j, (_, _, violation) in verdicts.items() if violation is not None}
        return ConstraintReport(columns, violations)

    def _verdict(self, j: int, direction: int, max_steps: int) -> tuple[str, str, ConstraintViolation | None]:
        """Return the verdict on a column, the reason for it, and a counter-example if there is one."""
        trees = [_SearchTree(tree, self._value_index, direction, self._states) for tree in self._trees]
        if not any(j in tree.feature for tree in trees):
            return "proved", "no split uses it", None
        if all(tree.is_increasing(j) for tree in trees):
            return "proved", "the tree is monotonic" if len(trees) == 1 else "every tree is monotonic", None
        tolerance, budget = _ROUNDING * sum(max(map(abs, tree.value)) for tree in trees), _SearchBudget(max_steps)
        try:
            decreasing = _decreasing_box(trees, j, self._states[j], tolerance, budget)
        except _UndecidedError:
            return "undecided", f"the search takes more than {max_steps} steps", None
        if decreasing is None:
            return "proved", "the sum is monotonic, though a tree is not", None
        violation = self._violation(j, direction, *decreasing)
        if violation is None:
            return "undecided", "candidate rows do not violate it, because of surrogates or rounding", None
        first, second = (shortest(prediction, 6) for prediction in violation.predictions)
        return "violated", f"the prediction changes from {first} to {second}, all else equal", violation

    def _violation(self, j: int, direction: int, low: int, high: int, box: Box) -> ConstraintViolation | None:
        """Return two rows of a box if their predictions violate the constraint, else None."""
        boxes = [{**box, j: 1 << bin_} for bin_ in (low, high)]
        rows = [[states.number_of(b.get(k, states.any)) for k, states in enumerate(self._states)] for b in boxes]
        table = point_table(self._model.schema_, dict(enumerate(np.array(rows).T)))
        all_outputs = self._fitted.predictions(table, 1)
        column = self._output * 2 + 1 if all_outputs.shape[1] > 1 and self._has_classes else self._output
        compared = predictions = all_outputs[:, column]
        if hasattr(self._fitted, "scores") and not _has_sorted_outputs(self._fitted):  # a row's quantiles are sorted
            compared = self._fitted.scores(table, 1)[:, self._output]
        if not direction * (compared[1] - compared[0]) < 0:
            return None
        schema = self._model.schema_
        first, second = (dict(zip(schema.names, map(_cell_of, schema.features, row), strict=True)) for row in rows)
        return ConstraintViolation(schema.names[j], (first, second), (float(predictions[0]), float(predictions[1])))


def _has_sorted_outputs(fitted: FittedModel) -> bool:
    """Return whether a row's outputs are quantiles in ascending order."""
    return isinstance(fitted, FittedBoosting) and fitted.link == "ascending"


def _cell_of(feature: Feature, number: float) -> Any:
    """Return a number of a column as a value of the caller's table; None if it is missing."""
    if np.isnan(number):
        return None
    if feature.kind in ("category", "ordered"):
        is_known = int(number) < len(feature.categories)
        return feature.categories[int(number)] if is_known else "a value that did not occur at fit"
    if feature.clock:
        return cells_of(np.array([number]), "microsecond", feature.clock)[0]
    return bool(number) if feature.kind == "boolean" else number


# ---- search ------------------------------------------------------------------------------------------------------


class _UndecidedError(Exception):
    """The search has used up its steps."""


class _SearchBudget:
    """Number of steps that a search may still take."""

    def __init__(self, max_steps: int) -> None:
        self.remaining = max_steps

    def spend(self) -> None:
        """Count one step."""
        self.remaining -= 1
        if self.remaining < 0:
            raise _UndecidedError


class _ColumnStates:
    """The states of one column, one bit for each; the highest bit is the state "missing".

    Parameters
    ----------
    feature : Feature
    thresholds : ndarray of float, sorted
        Thresholds of all trees for a column of numbers.
    has_other : bool
        Whether categories that did not occur at fit form a separate state.
    """

    def __init__(self, feature: Feature, thresholds: Floats, has_other: bool) -> None:
        self.feature = feature
        self.thresholds = thresholds
        self.is_category = feature.kind == "category"
        n = len(feature.categories)
        self.n_states = n + 1 if self.is_category else len(thresholds) + 1
        self.missing = 1 << self.n_states
        self.present = (1 << (n + has_other if self.is_category else self.n_states)) - 1
        if feature.kind in ("ordered", "boolean"):
            codes = np.arange(n if feature.kind == "ordered" else 2, dtype=np.float64)
            self.present = sum(1 << int(b) for b in np.unique(np.searchsorted(thresholds, codes, side="left")))
        elif not self.is_category and len(thresholds) and thresholds[-1] == np.inf:
            self.present = (1 << len(thresholds)) - 1  # no value exceeds infinity
        self.any = self.present | self.missing

    def index_of(self, threshold: float) -> int:
        """Return the index of a threshold among those of the column."""
        return int(np.searchsorted(self.thresholds, threshold))

    def bins(self) -> list[int]:
        """Return the bins that can contain a value, in ascending order."""
        return [b for b in range(self.n_states) if self.present >> b & 1]

    def number_of(self, states: int) -> float:
        """Return a value in the lowest of some states, as the engine reads it; NaN is missing."""
        b = (states & -states).bit_length() - 1
        if states & -states == self.missing:
            return np.nan
        if self.is_category or not len(self.thresholds):
            return float(b) if self.is_category else 0.0
        above = -np.inf if b == 0 else self.thresholds[b - 1]
        if self.feature.kind in ("ordered", "boolean"):
            return max(0.0, float(np.floor(above)) + 1) if above > -np.inf else 0.0
        if b < len(self.thresholds):
            return float(self.thresholds[b])
        return float(above + 1) if above + 1 > above else float(np.nextafter(above, np.inf))


class _SearchTree:
    """One tree as the search reads it, its values multiplied by the direction of the constraint."""

    def __init__(self, tree: _engine.Tree, value_index: int, direction: int, states: Sequence[_ColumnStates]) -> None:
        self._tree = tree
        self._states = states
        self.feature: list[int] = tree.feature.tolist()
        self.right: list[int] = tree.children_right().tolist()
        self._flags: list[int] = tree.flags.tolist()
        self._threshold: list[float] = tree.threshold.tolist()
        self.value: list[float] = (direction * tree.value.reshape(tree.size, -1)[:, value_index]).tolist()
        self._has_surrogates = tree.splits() is not None
        self._branches: dict[int, list[tuple[int, int]]] = {}

    @cached_property
    def bounds(self) -> tuple[list[float], list[float]]:
        """Smallest and largest value below each node."""
        low, high = list(self.value), list(self.value)
        for node in range(len(low) - 1, -1, -1):
            if self.feature[node] < 0:
                continue
            below = [node + 1, self.right[node], *([node] if self._flags[node] & _STOPS else [])]
            low[node], high[node] = min(low[child] for child in below), max(high[child] for child in below)
        return low, high

    def is_increasing(self, column: int) -> bool:
        """Return whether, at each split on the column, no value on the left exceeds one on the right."""
        low, high = self.bounds
        return all(high[node + 1] <= low[self.right[node]] for node in self._nodes_of(column))

    def threshold_indices(self, column: int) -> set[int]:
        """Return the indices of the thresholds at which the tree splits a column."""
        return {self._states[column].index_of(self._threshold[node]) for node in self._nodes_of(column)}

    def _left_states(self, node: int) -> int:
        """Return the states that a split sends left, without the state "missing"."""
        states = self._states[self.feature[node]]
        if not states.is_category:
            return (2 << states.index_of(self._threshold[node])) - 1
        left = sum(1 << code for code in self._tree.left_categories(node))
        return left | (1 << (states.n_states - 1) if self._flags[node] & _OTHER_LEFT else 0)

    def _nodes_of(self, column: int) -> list[int]:
        return [node for node, feature in enumerate(self.feature) if feature == column]

    def _value_at(self, node: int) -> float:
        """Return the value of a leaf, or of the inner node ~`node` at which a row stopped."""
        return self.value[node if node >= 0 else ~node]

    def _is_end(self, node: int) -> bool:
        return node < 0 or self.feature[node] < 0

    def _branches_of(self, node: int) -> list[tuple[int, int]]:
        """Return (states, child) pairs: the child of rows with each state of the split column.

        Where surrogates decide, a missing value may go to either child.
        """
        if node not in self._branches:
            states, flags = self._states[self.feature[node]], self._flags[node]
            left = self._left_states(node) & states.present
            branches = [[left, node + 1], [states.present & ~left, self.right[node]]]
            if self._has_surrogates:
                branches[0][0] |= states.missing
                branches[1][0] |= states.missing
            if flags & _STOPS:
                branches.append([states.missing, ~node])
            elif not self._has_surrogates:
                branches[0 if flags & _MISSING_LEFT else 1][0] |= states.missing
            self._branches[node] = [(mask, child) for mask, child in branches if mask]
        return self._branches[node]

    def decreases(self, column: int, low: int, high: int, budget: _SearchBudget) -> list[tuple[float, Box]]:
        """Return the decrease from one bin of a column to the next in each box of the others, largest first."""
        is_affected = self._separates(column, low, high)
        found: list[tuple[float, Box]] = []
        pending: list[tuple[int, int, Box]] = [(0, 0, {})]
        while pending:
            a, b, box = pending.pop()
            budget.spend()
            if a == b and (a < 0 or not is_affected[a]):
                found.append((0.0, box))
                continue
            if self._is_end(a) and self._is_end(b):
                found.append((self._value_at(a) - self._value_at(b), box))
                continue
            node = b if self._is_end(a) else a
            feature = self.feature[node]
            if feature == column:
                left = self._left_states(node)
                children = [node + 1 if left >> bin_ & 1 else self.right[node] for bin_ in (low, high)]
                pending.append((children[0] if a == node else a, children[1] if b == node else b, box))
                continue
            for mask, child in self._branches_of(node):
                states = box.get(feature, self._states[feature].any) & mask
                if states:
                    pending.append((child if a == node else a, child if b == node else b, {**box, feature: states}))
        return sorted(found, key=lambda cell: -cell[0])

    def _separates(self, column: int, low: int, high: int) -> list[bool]:
        """Return for each node whether its split, or one below it, separates the two bins."""
        separates = [False] * len(self.feature)
        for node in self._nodes_of(column):
            left = self._left_states(node)
            separates[node] = (left >> low & 1) != (left >> high & 1)
        for node in range(len(separates) - 1, -1, -1):
            if self.feature[node] >= 0 and (separates[node + 1] or separates[self.right[node]]):
                separates[node] = True
        return separates


def _decreasing_box(
    trees: Sequence[_SearchTree], column: int, states: _ColumnStates, tolerance: float, budget: _SearchBudget
) -> tuple[int, int, Box] | None:
    """Return two adjacent bins and a box in which the sum decreases by more than `tolerance`; None if there is none."""
    candidates = set().union(*(tree.threshold_indices(column) for tree in trees if not tree.is_increasing(column)))
    for low, high in pairwise(states.bins()):
        between = set(range(low, high))
        if not candidates & between:
            continue
        affected = [tree for tree in trees if tree.threshold_indices(column) & between]
        cells = [tree.decreases(column, low, high, budget) for tree in affected]
        box = _box_above(sorted(cells, key=lambda cell: -cell[0][0]), tolerance, budget)
        if box is not None:
            return low, high, box
    return None


def _box_above(cells: list[list[tuple[float, Box]]], tolerance: float, budget: _SearchBudget) -> Box | None:
    """Return a box in which the decreases of all trees sum to more than `tolerance`, if there is one."""
    bound = [0.0] * (len(cells) + 1)  # on the sum over the remaining trees
    for k in range(len(cells) - 1, -1, -1):
        bound[k] = bound[k + 1] + cells[k][0][0]
    pending: list[tuple[int, float, Box]] = [(0, 0.0, {})]
    while pending:
        k, total, box = pending.pop()
        if k == len(cells):
            return box
        budget.spend()
        next_boxes = []
        for decrease, cell in cells[k]:
            if total + decrease + bound[k + 1] <= tolerance:
                break
            common = _intersection(box, cell)
            if common is not None:
                next_boxes.append((k + 1, total + decrease, common))
        pending.extend(reversed(next_boxes))
    return None


def _intersection(first: Box, second: Box) -> Box | None:
    """Return the intersection of two boxes; None if it is empty."""
    common = dict(first)
    for column, states in second.items():
        common[column] = common.get(column, states) & states
        if not common[column]:
            return None
    return common
