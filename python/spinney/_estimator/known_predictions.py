"""Predictions that are known already, in the shape of models that scorers can ask."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class KnownShares(ClassifierMixin, BaseEstimator):
    """Known predictions in the shape of a fitted classifier, for scorers; X is row numbers."""

    def __init__(self, shares: Any, labels: Any, classes: Any) -> None:
        self.shares = shares
        self.labels = labels
        self.classes_ = classes[0] if len(classes) == 1 else classes

    def predict(self, X: object) -> Any:
        """Return the labels of rows."""
        return self.labels[X]

    def predict_proba(self, X: object) -> Any:
        """Return the shares of rows."""
        return [shares[X] for shares in self.shares] if isinstance(self.shares, list) else self.shares[X]


class KnownScores(KnownShares):
    """The same of a classifier that gives scores too."""

    def __init__(self, shares: Any, labels: Any, classes: Any, scores: Any) -> None:
        super().__init__(shares, labels, classes)
        self.scores = scores

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows."""
        return self.scores[X]


class KnownValues(RegressorMixin, BaseEstimator):
    """Known predictions in the shape of a fitted regressor, for scorers; X is row numbers."""

    def __init__(self, values: Any) -> None:
        self.values_ = values

    def predict(self, X: Any) -> Any:
        """Return the values of rows."""
        return self.values_[X]
