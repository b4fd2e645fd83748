"""A fitted AdaBoost of values: trees with weights, whose weighted median is the prediction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._model.file.arrays import numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.model import Floats, Frame, ModelOfTrees, check_width
from spinney._model.row_reader import Row, RowReader
from spinney._model.tree import FittedTree


def weighted_medians(values: Floats, weights: Floats) -> Floats:
    """Return the weighted median of each row: the lowest value up to which at least half of the weight lies.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n)
    weights : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    order = np.argsort(values, axis=1, kind="stable")
    reached = np.cumsum(weights[order], axis=1)
    middle = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
    return np.asarray(values[np.arange(len(values)), order[np.arange(len(values)), middle]])


class FittedMedian(ModelOfTrees):
    """Trees of values, with weights.

    Attributes
    ----------
    weights : ndarray of shape (n_rounds,)
        Weight of each tree.
    n_rounds : int
        Rounds.
    """

    kind = "adaboost_r2"
    attribute = "adaboost_"
    noun = "AdaBoost"
    takes_costs = False

    def __init__(self, trees: list[_engine.Tree], weights: Floats) -> None:
        super().__init__(None, 1)
        self._trees = trees
        self.weights = weights

    def __repr__(self) -> str:
        return f"<FittedMedian: {self.n_rounds} rounds, {self.node_count} nodes>"

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.weights)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self._trees)

    @property
    def node_count(self) -> int:
        """Number of nodes of all trees."""
        return sum(tree.size for tree in self._trees)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return sum(int(np.count_nonzero(tree.feature < 0)) for tree in self._trees)

    def trees(self) -> list[_engine.Tree]:
        """Return the trees."""
        return list(self._trees)

    def importances(self, n_features: int) -> Floats:
        """Mean of the trees' importances by their weights, as shares."""
        own = [FittedTree(tree, None, 1).importances(n_features) for tree in self._trees]
        total = np.asarray(sum(weight * part for weight, part in zip(self.weights, own, strict=True)))
        return np.asarray(total / total.sum() if total.sum() > 0 else total)

    def split_counts(self, n_features: int) -> NDArray[np.intp]:
        """Count the splits on each column in all trees."""
        feature = np.concatenate([tree.feature for tree in self._trees])
        return np.bincount(feature[feature >= 0], minlength=n_features)

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Refuse: a median is not a sum."""
        raise TypeError(
            "AdaBoost of numbers predicts a median of its trees, which cannot be parted into what each column adds. "
            "Explain a GradientBoostingRegressor or a forest, or the trees in estimators_ one by one."
        )

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> MedianRowPredictor:
        """Prepare a handle that predicts single rows."""
        return MedianRowPredictor(self, schema, unseen)

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Refuse: there are no classes."""
        raise TypeError("AdaBoost of numbers has no classes.")

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Weighted median of the trees' values, (n_rows, 1)."""
        values = np.column_stack([tree.value[tree.apply(columns, n_jobs)] for tree in self._trees])
        return weighted_medians(values, self.weights)[:, np.newaxis]

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return the trees' weights."""
        return {"kind": self.kind, "weights": self.weights.tolist()}

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Make the ensemble of a file."""
        if frame.n_outputs != 1 or frame.n_classes is not None:
            refuse("is damaged: its number of outputs is wrong")
        weights = numbers_from_json(field(header, "weights", list), "weights")
        if not len(weights) or len(trees) != len(weights) or (weights <= 0).any():
            refuse("is damaged: its trees and their weights do not go together")
        check_width(trees, frame)
        return cls(trees, weights)

    def identity(self) -> bytes:
        """Return the trees' weights."""
        return np.ascontiguousarray(self.weights).tobytes()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self, "n_iter_": self.n_rounds, "estimator_weights_": self.weights}


class MedianRowPredictor(RowReader):
    """A fitted AdaBoost of values prepared to predict single rows, without threads.

    Rows are taken as by `RowPredictor`. A handle is for one thread at a time; make one per thread.
    """

    def __init__(self, model: FittedMedian, schema: Schema, unseen: str) -> None:
        super().__init__(schema, unseen)
        self._trees = [(tree.apply_one, tree.value) for tree in model.trees()]
        self._weights = model.weights

    def predict(self, row: Row) -> float:
        """Predict one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        float
            Prediction.
        """
        numbers = self._numbers(row)
        values = np.array([[value[leaf_of(numbers)] for leaf_of, value in self._trees]])
        return float(weighted_medians(values, self._weights)[0])

    def predict_proba(self, row: Row) -> Any:
        """Refuse: there are no classes.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.
        """
        raise AttributeError("A regression model has no class shares. Use predict.")
