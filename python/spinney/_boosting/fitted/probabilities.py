"""What boosting says of classes beside the most likely one: their shares, and scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._cluster.predictions import lazy_for_collections
from spinney._data.numeric.reproducible import log
from spinney._estimator.attributes import only_if

if TYPE_CHECKING:
    from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


def _why_no_scores(model: Any) -> str | None:
    return "is for one output: those of several differ in number. Use predict_proba." if model._is_several else None


def _has_one_output(model: SaysShares) -> bool:
    return model.boosting_.n_outputs == 1


class SaysShares:
    """Mixin for boosted classifiers."""

    if TYPE_CHECKING:
        boosting_: FittedBoosting

        def _scores(self, X: Any, offset: Any) -> Floats: ...
        def _staged_scores(self, X: Any, offset: Any) -> Iterator[Floats]: ...

    @lazy_for_collections(_has_one_output)
    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats | list[Floats]:
        """Class probabilities of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; a list of these if there are several outputs.
        """
        scores = self._scores(X, offset)
        return self.boosting_.spread(self.boosting_.predicted(scores))

    @lazy_for_collections(_has_one_output)
    def predict_log_proba(self, X: Any, *, offset: Any = None) -> Floats | list[Floats]:
        """Logarithm of the class probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        with np.errstate(divide="ignore"):
            found = self.predict_proba(X, offset=offset)
            return [log(shares) for shares in found] if isinstance(found, list) else log(found)

    @only_if(_why_no_scores)
    @lazy_for_collections(_has_one_output)
    def decision_function(self, X: Any, *, offset: Any = None) -> Floats:
        """Scores of each row: log-odds of the second of two classes, or one number per class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores.
        """
        scores = self._scores(X, offset)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @only_if(_why_no_scores)
    def staged_decision_function(self, X: Any, *, offset: Any = None) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            As `decision_function`.
        """
        for scores in self._staged_scores(X, offset):
            yield scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_predict_proba(self, X: Any, *, offset: Any = None) -> Iterator[Floats | list[Floats]]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        for scores in self._staged_scores(X, offset):
            yield self.boosting_.spread(self.boosting_.predicted(scores))
