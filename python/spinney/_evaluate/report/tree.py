"""The decision tree: the nested sequence of pruned trees with their errors.

The page gets the largest tree that it can draw and, for each node, the first penalty at which the node becomes a leaf.
This one number per node gives all nested trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from spinney._data.display import elide, grouped, one_line
from spinney._data.types import Floats, TableLike
from spinney._evaluate.report.view import View, class_codes, histogram, sample
from spinney._evaluate.study.findings import Findings
from spinney._tree.complexity_table import ComplexityTable
from spinney._tree.pruning import first_cuts
from spinney._tree.tree_estimator import BaseTree
from spinney.inspect.text.reader import Step, TreeReader

MOST_LEAVES = 150  # of the largest tree that is drawn
_MOST_POSITIONS = 60  # of the slider
_MOST_ROWS, _MOST_COLUMNS = 300, 8  # of the rows listed for a node
_LABEL_LETTERS, _NAME_LETTERS = 22, 26
_BARS = 14  # of the histogram of a node


@dataclass(frozen=True)
class Sequence:
    """The nested trees of the slider, from the root alone to the largest.

    Attributes
    ----------
    grown : estimator
        The largest of them.
    table : ComplexityTable
        Their errors.
    rows : ndarray of int
        Rows of the table that the slider shows.
    """

    grown: BaseTree
    table: ComplexityTable
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, tree: BaseTree, X: TableLike, y: NDArray[Any]) -> Sequence:
        """Fit the tree again without pruning, and select the trees of the sequence to draw."""
        known = tree.get_params(deep=False)
        table = getattr(tree, "cp_table_", None)
        if table is None or table.scoring is not None:
            by_loss = {name: value for name, value in {"prune": "cv", "scoring": None}.items() if name in known}
            table = clone(tree).set_params(**by_loss).fit(X, y).cp_table_
            same = np.flatnonzero(table.n_leaves == tree.tree_.n_leaves)  # chosen by another metric
            table = replace(table, chosen=int(same[0]) if len(same) else None)
        unpruned = {"prune": None, "ccp_alpha": 0.0, "cp": None}
        grown = clone(tree).set_params(**{name: v for name, v in unpruned.items() if name in known}).fit(X, y)
        drawn = np.flatnonzero(table.n_leaves <= MOST_LEAVES)
        rows = drawn[_thinned(len(drawn), table.chosen)]
        return cls(grown.pruned(alpha=float(table.alpha[rows[-1]])), table, rows)


def _thinned(n: int, chosen: int | None) -> NDArray[np.intp]:
    """Return the positions on the slider: all small trees, few of the large ones, and the chosen tree."""
    if n <= _MOST_POSITIONS:
        return np.arange(n)
    spread = np.geomspace(1, n, _MOST_POSITIONS).round().astype(np.intp) - 1
    extra = [] if chosen is None or chosen >= n else [chosen]
    return np.unique(np.concatenate([spread, np.array(extra, dtype=np.intp)]))


def tree_section(study: Findings, train: View, test: View) -> dict[str, Any]:
    """Return the tree, the nested trees and their errors."""
    sequence = Sequence.of(study.tree, study.X_train, study.y_train)
    reader = TreeReader(sequence.grown, show_missing="seen")
    table, rows = sequence.table, sequence.rows
    cuts = table.alpha[rows][::-1]
    first = first_cuts(reader.tree, sequence.grown._node_risks(reader.tree), cuts)
    targets = _Targets(reader, study.y_train, study.y_test)
    test_leaves = _leaves(sequence.grown, study.X_test)
    train_leaves = _leaves(sequence.grown, study.X_train)
    held_out, held_out_error = _errors(sequence, targets)
    return {
        "error": "misclassification rate" if reader.is_classifier else "root mean squared error",
        "classes": [one_line(label) for label in reader.classes[0]] if reader.is_classifier else None,
        "alpha": table.alpha[rows],
        "n_leaves": table.n_leaves[rows],
        "train": targets.in_unit(table.relative_error[rows] * targets.root_error),
        "cv": held_out,
        "cv_error": held_out_error,
        "test": targets.test_errors(first, test_leaves, len(rows))[::-1],
        "chosen": rows.tolist().index(table.chosen) if table.chosen in rows.tolist() else None,
        "chosen_leaves": int(study.tree.tree_.n_leaves),
        "rule": "none" if table.rule is None else str(table.rule),
        "nodes": _nodes(reader, first, targets, train_leaves, test_leaves),
        "rows": _sampled_rows(reader, train, train_leaves, study.y_train),
    }


def _leaves(tree: BaseTree, X: TableLike) -> NDArray[np.intp]:
    return np.asarray(tree.apply(X), dtype=np.intp).reshape(-1)


def _errors(sequence: Sequence, targets: _Targets) -> tuple[Floats, Floats]:
    """Return the cross-validated errors as shown, and their standard errors."""
    table, rows = sequence.table, sequence.rows
    mean, error = table.cv_error[rows] * targets.root_error, table.cv_se[rows] * targets.root_error
    shown = targets.in_unit(mean)
    if not targets.is_classifier:  # delta method for the square root
        error = error / np.maximum(2 * shown, np.finfo(float).tiny)
    return shown, error


class _Targets:
    """The targets, and the errors of nodes on them."""

    def __init__(self, reader: TreeReader, y_train: NDArray[Any], y_test: NDArray[Any]) -> None:
        self.reader, self.tree = reader, reader.tree
        self.is_classifier = reader.is_classifier
        self.root_error = float(reader.model._task.node_errors(reader.tree)[0])
        self.train, self.test = self._read(y_train), self._read(y_test)

    def _read(self, y: NDArray[Any]) -> Floats:
        """Return codes of classes (-1: unknown), or numbers."""
        return (class_codes(y, self.reader.classes[0]) if self.is_classifier else y).astype(np.float64)

    def in_unit(self, error: Floats) -> Floats:
        """Turn mean losses into errors as shown."""
        return error if self.is_classifier else np.sqrt(np.maximum(error, 0.0))

    def losses(self, nodes: NDArray[np.intp], target: Floats) -> Floats:
        """Return the loss of each row at its node."""
        if self.is_classifier:
            return np.asarray(self.tree.majority[nodes, 0] != target, dtype=np.float64)
        return np.asarray((self.tree.flat_value[nodes, 0] - target) ** 2)

    def test_errors(self, first: NDArray[Any], leaves: NDArray[np.intp], n_cuts: int) -> Floats:
        """Return the test error at each cut, from the largest tree to the root."""
        errors = np.empty(n_cuts)
        for k in range(n_cuts):
            stops = np.arange(self.tree.node_count)
            for node in range(1, self.tree.node_count):
                parent = self.reader.parent[node]
                if stops[parent] != parent or first[parent] <= k:
                    stops[node] = stops[parent]
            errors[k] = self.losses(stops[leaves], self.test).mean()
        return self.in_unit(errors)


def _nodes(
    reader: TreeReader, first: NDArray[Any], targets: _Targets, train: NDArray[np.intp], test: NDArray[np.intp]
) -> list[dict[str, Any]]:
    """Return the data of each node, in preorder."""
    in_test = _sums_below(reader, np.bincount(test, minlength=reader.tree.node_count).astype(np.float64))
    edges = None if reader.is_classifier else histogram(targets.train, _BARS)[1]
    bars = None if edges is None else _histograms(reader, train, targets.train, edges)
    nodes = []
    for step in reader.walk():
        node = step.node
        entry: dict[str, Any] = {
            "first": int(first[node]),
            "prediction": _prediction(reader, node),
            "n": reader.n_rows(node),
            "fraction": reader.fraction(node),
            "n_test": int(in_test[node]),
            "label": _label(reader, step),
            "rule": [condition.describe(show_missing=False) for condition in step.path.values()],
        }
        if not reader.is_leaf(node):
            column = reader.features[reader.column(node)].name
            entry |= {"right": reader.children(node)[1], "column": elide(one_line(column), _NAME_LETTERS)}
        if bars is None:
            entry |= {"proba": reader.probabilities(node)[0], "code": int(reader.tree.majority[node, 0])}
        else:
            entry |= {"value": float(reader.tree.flat_value[node, 0]), "spread": reader.spread(node)}
            entry["bars"] = bars[node]
        nodes.append(entry)
    return nodes


def _prediction(reader: TreeReader, node: int) -> str:
    text = reader.prediction_text(node)
    return elide(text if reader.is_classifier else grouped(text), _NAME_LETTERS)


def _label(reader: TreeReader, step: Step) -> list[str]:
    """Return the condition on the branch that leads to a node."""
    if step.condition is None:
        return []
    lines = step.condition.short_lines(step.reach, show_missing=reader.shows_missing(step.condition.column))
    return [elide(line, _LABEL_LETTERS) for line in lines]


def _sums_below(reader: TreeReader, by_node: Floats) -> Floats:
    """Return the sums of each node and all nodes below it."""
    total = by_node.copy()
    for node in range(reader.tree.node_count - 1, 0, -1):
        total[reader.parent[node]] += total[node]
    return total


def _histograms(reader: TreeReader, leaves: NDArray[np.intp], values: Floats, edges: Floats) -> list[list[int]]:
    """Return the histogram of the training targets of each node, in common bins."""
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = np.zeros((reader.tree.node_count, len(edges) - 1))
    np.add.at(counts, (leaves, bins), 1)
    histograms: list[list[int]] = _sums_below(reader, counts).astype(int).tolist()
    return histograms


def _sampled_rows(reader: TreeReader, train: View, leaves: NDArray[np.intp], y: NDArray[Any]) -> dict[str, Any]:
    """Return some training rows with their leaves, in the most important columns of the tree."""
    gains = np.zeros(len(reader.features))
    for node in reader.inner_nodes:
        gains[reader.column(node)] += reader.gain(node) * reader.weight(node)
    columns = [int(j) for j in np.argsort(-gains, kind="stable")[:_MOST_COLUMNS] if gains[j] > 0]
    rows = sample(train.n_rows, _MOST_ROWS)
    return {
        "columns": [train.names[j] for j in columns],
        "cells": train.cells(rows, columns),
        "leaf": leaves[rows],
        "target": [reader.label(value) for value in y[rows].tolist()],
    }
