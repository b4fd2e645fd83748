"""A fitted forest: trees in one set of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._model.file.container import refuse
from spinney._model.model import Floats, Frame, ModelOfTrees, check_width
from spinney._model.row_predictors import RowPredictor
from spinney._model.tree import FittedTree


class FittedForest(ModelOfTrees):
    """The trees of a fitted forest.

    Attributes
    ----------
    n_trees, node_count : int
        Number of trees, and of their nodes together.
    root : ndarray of int
        Position of each tree's first node, and the end.
    """

    kind = "forest"
    attribute = "forest_"
    noun = "forest"

    def __init__(
        self,
        forest: _engine.Forest,
        n_classes: list[int] | None,
        n_outputs: int,
        cost: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(n_classes, n_outputs, cost)
        self._forest = forest

    def __repr__(self) -> str:
        return f"<FittedForest: {self.n_trees} trees, {self.node_count} nodes>"

    @property
    def engine(self) -> _engine.Forest:
        """The engine's forest."""
        return self._forest

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self._forest.n_trees

    @property
    def root(self) -> NDArray[np.uint32]:
        """Position of each tree's first node, and the end."""
        return self._forest.root

    def trees(self) -> list[_engine.Tree]:
        """Return copies of all trees."""
        return [self._forest.tree(t) for t in range(self.n_trees)]

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Values without columns by output, flat values by row, column and output, and flat values of pairs."""
        return _engine.shap_of_forest(self._forest, columns, background, interactions, 1.0 / self.n_trees, n_jobs)

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> Floats:
        """Flat predictions of each row with the values of each point in some columns."""
        sums = _engine.replaced_in_forest(self._forest, columns, points, which, n_jobs)
        return sums.reshape(columns.n_rows, points.n_rows, -1).transpose(1, 0, 2) / float(self.n_trees)

    def exchanged(
        self, columns: _engine.Table, others: NDArray[np.uint32], groups: list[list[int]], n_jobs: int
    ) -> Floats:
        """Flat predictions with columns of each group from other rows, by draw: (n_groups, n_draws, n_rows, width)."""
        sums = _engine.exchanged_in_forest(self._forest, columns, others, groups, n_jobs) / float(self.n_trees)
        return sums.reshape(columns.n_rows, len(groups), len(others), -1).transpose(1, 2, 0, 3)

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> RowPredictor:
        """Prepare a handle that predicts single rows."""
        engine, one = self._forest, self.n_outputs == 1
        engine.prepare()
        mean, class_of = engine.predict_one, engine.predict_one_class
        if classes is None:
            return RowPredictor(schema, unseen, engine.predict_one_number if one else mean)
        labels = list(classes)

        def decided(numbers: Floats) -> Any:
            return self.labels(self.best_codes(mean(numbers)[np.newaxis]), [classes] if one else classes)[0]

        def shares(numbers: Floats) -> Any:
            found = mean(numbers)
            return found if one else [found[s] for s in self.class_columns]

        is_plain = one and self.cost is None
        return RowPredictor(
            schema, unseen, (lambda numbers: labels[class_of(numbers)]) if is_plain else decided, shares
        )

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Make the forest of a file."""
        if not trees:
            refuse("is damaged: it holds no trees")
        check_width(trees, frame)
        forest = _engine.forest_from_trees(trees, frame.schema.n_categories)
        return cls(forest, frame.n_classes, frame.n_outputs, frame.cost)

    def tree(self, t: int) -> FittedTree:
        """Return a copy of tree t."""
        return FittedTree(self._forest.tree(t), self._n_classes, self.n_outputs, self.cost)

    def replaced(self, forest: _engine.Forest) -> FittedForest:
        """Return a view of another forest with the same outputs and classes."""
        return FittedForest(forest, self._n_classes, self.n_outputs, self.cost)

    def predictions(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.float64]:
        """Mean over the trees of the flat values of each row's leaf."""
        return self._forest.predict(columns, n_jobs)

    @cached_property
    def _tree_of_split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        split = np.flatnonzero(self._forest.feature >= 0)
        return split, np.searchsorted(self.root, split, side="right") - 1

    def tree_importances(self, n_features: int) -> NDArray[np.float64]:
        """Share of each column in the decrease of the impurity, by tree and column."""
        split, tree = self._tree_of_split
        burden = self._forest.weight * self._forest.impurity
        gain = burden[split] - burden[split + 1] - burden[self._forest.right[split]]
        place = tree * n_features + self._forest.feature[split]
        total = np.bincount(place, weights=gain, minlength=self.n_trees * n_features).reshape(-1, n_features)
        sums = total.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(total, sums, out=np.zeros(total.shape), where=sums > 0))

    def importances(self, n_features: int) -> NDArray[np.float64]:
        """Mean of the trees' importances, as shares; trees without a split do not count."""
        mean = self.tree_importances(n_features).sum(axis=0)
        return np.asarray(mean / mean.sum() if mean.sum() > 0 else mean)


def join_trees(trees: Sequence[FittedTree], n_categories: list[int]) -> _engine.Forest:
    """Make a forest of trees; `n_categories` has one entry per column, 0 for numbers."""
    return _engine.forest_from_trees([tree.engine for tree in trees], n_categories)
