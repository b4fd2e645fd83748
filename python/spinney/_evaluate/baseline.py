"""Models that always say the same, for others to be better than."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike


class ConstantRegressor(RegressorMixin, BaseEstimator):
    """Says the mean of the training rows."""

    def fit(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Find the mean."""
        self.mean_ = float(np.average(y, weights=sample_weight))
        return self

    def predict(self, X: TableLike) -> Floats:
        """Say it of every row."""
        return np.full(pick_table(X).n_rows, self.mean_)


class ConstantClassifier(ClassifierMixin, BaseEstimator):
    """Says the shares of the classes among the training rows."""

    def fit(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Count the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=sample_weight)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X: TableLike) -> Floats:
        """Say the shares of every row."""
        return np.tile(self.shares_, (pick_table(X).n_rows, 1))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Say the most frequent class of every row."""
        return np.full(pick_table(X).n_rows, self.classes_[self.shares_.argmax()])
