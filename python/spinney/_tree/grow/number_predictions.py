"""Predictions of numbers by trees and forests: a method that a family takes into its class."""

from __future__ import annotations

from spinney._cluster.predictions import lazy_for_collections
from spinney._data.types import Floats, TableLike
from spinney._estimator.table_estimator import TableEstimator


@lazy_for_collections()
def predict(self: TableEstimator, X: TableLike) -> Floats:
    """Prediction of each row: the value of its leaf, or the mean over the trees.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Predictions.
    """
    flat = self._by_blocks(X, lambda columns: self._fitted.predictions(columns, self._n_threads))
    return self._fitted.spread(flat)  # type: ignore[return-value]
