"""A fitted forest: all trees in one set of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import Floats
from spinney._model.file.container import refuse
from spinney._model.model import ModelOfTrees, ModelSpec, check_width, fractions, split_gains
from spinney._model.row_predictors import RowPredictor
from spinney._model.tree import FittedTree


class FittedForest(ModelOfTrees):
    """The trees of a fitted forest.

    Attributes
    ----------
    n_trees, node_count : int
        Numbers of trees, and of the nodes of all trees.
    root : ndarray of int
        Position of each tree's first node, and the total number of nodes.
    """

    kind = "forest"
    attribute = "forest_"
    noun = "forest"
    engine: _engine.Forest

    def __init__(
        self,
        forest: _engine.Forest,
        n_classes: list[int] | None,
        n_outputs: int,
        cost: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(n_classes, n_outputs, cost)
        self.engine = forest

    def __repr__(self) -> str:
        return f"<FittedForest: {self.n_trees} trees, {self.node_count} nodes>"

    @property
    def root(self) -> NDArray[np.uint32]:
        """Position of each tree's first node, and the total number of nodes."""
        return self.engine.root

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Shapley values: base values by output, values by row, column and output, and values of pairs of columns."""
        return _engine.shap_of_forest(self.engine, columns, background, interactions, 1.0 / self.n_trees, n_jobs)

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> Floats:
        """Predictions of each row after replacing some columns by the values of each point."""
        sums = _engine.replaced_in_forest(self.engine, columns, points, which, n_jobs)
        return sums.reshape(columns.n_rows, points.n_rows, -1).transpose(1, 0, 2) / float(self.n_trees)

    def exchanged(
        self, columns: _engine.Table, others: NDArray[np.uint32], groups: list[list[int]], n_jobs: int
    ) -> Floats:
        """Predictions with each group's columns taken from other rows: (n_groups, n_draws, n_rows, width)."""
        sums = _engine.exchanged_in_forest(self.engine, columns, others, groups, n_jobs) / float(self.n_trees)
        return sums.reshape(columns.n_rows, len(groups), len(others), -1).transpose(1, 2, 0, 3)

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> RowPredictor:
        """Return a predictor of single rows."""
        engine, one = self.engine, self.n_outputs == 1
        engine.prepare()
        mean, class_of = engine.predict_one, engine.predict_one_class
        if classes is None:
            return RowPredictor(schema, unseen, engine.predict_one_number if one else mean)
        labels = list(classes)

        def label(numbers: Floats) -> Any:
            return self.labels(self.best_codes(mean(numbers)[np.newaxis]), [classes] if one else classes)[0]

        def proba(numbers: Floats) -> Any:
            found = mean(numbers)
            return found if one else [found[s] for s in self.class_columns]

        if one and self.cost is None:
            return RowPredictor(schema, unseen, lambda numbers: labels[class_of(numbers)], proba)
        return RowPredictor(schema, unseen, label, proba)

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the forest from a file."""
        if not trees:
            refuse("is damaged: it holds no trees")
        check_width(trees, spec)
        forest = _engine.forest_from_trees(trees, spec.schema.n_categories)
        return cls(forest, spec.n_classes, spec.n_outputs, spec.cost)

    def tree(self, t: int) -> FittedTree:
        """Return a copy of tree t."""
        return FittedTree(self.engine.tree(t), self._n_classes, self.n_outputs, self.cost)

    def replaced(self, forest: _engine.Forest) -> FittedForest:
        """Return a view of another forest with the same outputs and classes."""
        return FittedForest(forest, self._n_classes, self.n_outputs, self.cost)

    def predictions(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.float64]:
        """Mean over the trees of the values of each row's leaf."""
        return self.engine.predict(columns, n_jobs)

    def staged_predictions(self, columns: _engine.Table, n_jobs: int) -> Iterator[Floats]:
        """Yield the mean over the first tree, the first two trees, and so on."""
        total: Any = 0.0
        for t in range(self.n_trees):
            total = total + self.tree(t).predictions(columns, n_jobs)
            yield total / (t + 1)

    def tree_importances(self, n_features: int) -> NDArray[np.float64]:
        """Fraction of each tree's decrease of the impurity that each column contributes, (n_trees, n_features)."""
        engine = self.engine
        split, gain = split_gains(engine.feature, engine.right, engine.weight, engine.impurity)
        tree = np.searchsorted(self.root, split, side="right") - 1
        place = tree * n_features + engine.feature[split]
        total = np.bincount(place, weights=gain, minlength=self.n_trees * n_features).reshape(-1, n_features)
        sums = total.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(total, sums, out=np.zeros(total.shape), where=sums > 0))

    def importances(self, n_features: int) -> NDArray[np.float64]:
        """Mean of the trees' importances, normalised to sum to 1; trees without a split do not count."""
        return fractions(self.tree_importances(n_features).sum(axis=0))


def join_trees(trees: Sequence[FittedTree], n_categories: list[int]) -> _engine.Forest:
    """Make a forest from trees; `n_categories` has one entry per column, 0 for numbers."""
    return _engine.forest_from_trees([tree.engine for tree in trees], n_categories)
