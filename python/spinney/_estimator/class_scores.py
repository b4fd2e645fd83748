"""Probabilities and decisions of classifiers whose model gives scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.numeric.reproducible import log

Floats = NDArray[np.float64]


class ScoresClasses:
    """Mixin: what `_scores` gives, as probabilities and as decisions."""

    _model_attribute: str
    _scores: Callable[[Any], Floats]  # of each row: one number for two classes, or one for each class

    def predict_proba(self, X: Any) -> Floats:
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
        scores = self._scores(X)
        found: Floats = getattr(self, self._model_attribute).predicted(scores)
        return found

    def predict_log_proba(self, X: Any) -> Floats:
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
        return log(self.predict_proba(X))

    def decision_function(self, X: Any) -> Floats:
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
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores
