"""Methods of classifiers whose model gives scores: probabilities and decisions. A family takes them into its class."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import log
from spinney._data.types import TableLike
from spinney._model.model import FittedModel

Floats = NDArray[np.float64]


class ScoringEstimator(Protocol):
    """A classifier that gives scores."""

    @property
    def _fitted(self) -> FittedModel: ...

    def _scores(self, X: TableLike, /) -> Floats:
        """Return the scores of each row: one number for two classes, or one for each class."""


def predict_proba(estimator: ScoringEstimator, X: TableLike) -> Floats:
    """Class probabilities of each row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Columns in the order of `classes_`.
    """
    scores = estimator._scores(X)
    fitted: Any = estimator._fitted
    return np.asarray(fitted.predicted(scores))


def predict_log_proba(estimator: ScoringEstimator, X: TableLike) -> Floats:
    """Logarithm of the class probabilities.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        As `predict_proba`.
    """
    return log(predict_proba(estimator, X))


def decision_function(estimator: ScoringEstimator, X: TableLike) -> Floats:
    """Scores of each row: of the second of two classes, or one number per class.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes)
        Scores.
    """
    scores = estimator._scores(X)
    return scores[:, 0] if scores.shape[1] == 1 else scores
