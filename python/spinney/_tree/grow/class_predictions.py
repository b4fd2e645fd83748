"""Predictions of classes by trees and forests: methods that a family takes into its class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._cluster.predictions import lazy_for_collections
from spinney._data.reproducible import log
from spinney._data.types import Floats, TableLike
from spinney._estimator.table_estimator import TableEstimator


def _has_one_output(model: TableEstimator) -> bool:
    return bool(model.n_outputs_ == 1)


@lazy_for_collections()
def predict(self: TableEstimator, X: TableLike) -> NDArray[Any]:
    """Most probable class of each row, or the one of least expected cost if there is a cost matrix.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Labels; the first of several equally good ones.
    """
    codes = self._by_blocks(X, lambda columns: self._fitted.codes(columns, self._n_threads))
    return self._fitted.labels(codes, [self.classes_] if self.n_outputs_ == 1 else self.classes_)


@lazy_for_collections(_has_one_output)
def predict_proba(self: TableEstimator, X: TableLike) -> Floats | list[Floats]:
    """Class probabilities of each row: those of its leaf, or their mean over the trees.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), or a list of these
        One array per output; columns in the order of `classes_`.
    """
    flat = self._by_blocks(X, lambda columns: self._fitted.predictions(columns, self._n_threads))
    return self._fitted.spread(flat)


@lazy_for_collections(_has_one_output)
def predict_log_proba(self: TableEstimator, X: TableLike) -> Floats | list[Floats]:
    """Logarithm of the class probabilities; -inf for 0.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), or a list of these
        As `predict_proba`.
    """
    proba = predict_proba(self, X)
    with np.errstate(divide="ignore"):
        return [log(of_output) for of_output in proba] if isinstance(proba, list) else log(proba)
