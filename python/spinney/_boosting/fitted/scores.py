"""Scores of a boosted model, and what it predicts by them, round by round too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._cluster.predictions import lazy_for_collections
from spinney._estimator.streams import batches_with

if TYPE_CHECKING:
    from spinney._data import Schema
    from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class SaysScores:
    """Mixin for boosting."""

    if TYPE_CHECKING:
        schema_: Schema
        boosting_: FittedBoosting
        _n_threads: int

        def _columns(self, X: Any) -> _engine.Table: ...
        def _read_offset(self, X: Any, offset: Any, n_rows: int) -> Floats | None: ...
        def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]: ...

    def _scores(self, X: Any, offset: Any) -> Floats:
        check_is_fitted(self)
        batches = batches_with(X, self.schema_, offset)
        if batches is not None:
            return np.concatenate([self._scores(*part) for part in batches])
        columns = self._columns(X)
        scores = self.boosting_.scores(columns, self._n_threads)
        given = self._read_offset(X, offset, columns.n_rows)
        return scores if given is None else scores + given.T

    def _staged_scores(self, X: Any, offset: Any) -> Iterator[Floats]:
        check_is_fitted(self)
        if hasattr(self, "n_dropped_"):
            raise ValueError(
                "Rounds of a fit with drop_rate change what earlier ones are worth, so that the model has no stages. "
                "Fit it with drop_rate=0, or with fewer rounds."
            )
        columns = self._columns(X)
        given = self._read_offset(X, offset, columns.n_rows)
        trees = np.zeros((columns.n_rows, self.boosting_.n_scores))
        for round_ in range(self.boosting_.n_rounds):
            trees = trees + self.boosting_.round_sums(columns, round_, self._n_threads)
            scores = trees + self.boosting_.start
            yield scores if given is None else scores + given.T

    @lazy_for_collections()
    def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Scores to add to those of the trees, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Labels or values; a column for each quantile, or for each column of y, if there are several.
        """
        return self._predicted(self._scores(X, offset), self.boosting_, self.__dict__)

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[NDArray[Any]]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions of the first rounds.
        """
        for scores in self._staged_scores(X, offset):
            yield self._predicted(scores, self.boosting_, self.__dict__)
