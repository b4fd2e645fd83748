"""How far the votes for a row's own class are ahead of all others, and the weights that rows have for being behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.learning_rows import LearningRows
from spinney._estimator.target import read_weights

if TYPE_CHECKING:
    from spinney._ensemble.adaboost.rules import ScoresRule

Floats = NDArray[np.float64]


class HasMargins:
    """Mixin for AdaBoost of classes."""

    if TYPE_CHECKING:
        _reach: Floats

        def _scores(self, X: Any) -> Floats: ...
        def _staged_scores(self, X: Any) -> Iterator[Floats]: ...
        def _by_round(self, X: Any) -> Iterator[tuple[list[NDArray[Any]], float]]: ...
        def _make_rule(self, rows: LearningRows, learned: dict[str, Any]) -> ScoresRule: ...
        def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = ...) -> Floats: ...

    def staged_margins(self, X: Any, y: Any) -> Iterator[Floats]:
        """Margin of each row after each round: how far the vote for its own class is ahead of all others.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Yields
        ------
        ndarray of shape (n_samples,)
            Between -1 and 1 for the rows of the fit: the score of the row's own class less the largest of the others,
            over the most that the rounds could have made of it. Negative where the model is wrong.
        """
        check_is_fitted(self)
        reach = 0.0
        for t, scores in enumerate(self._staged_scores(X)):
            reach += float(self._reach[t])
            yield self._margins(scores, y) / (reach if reach > 0 else 1.0)

    def margins(self, X: Any, y: Any) -> Floats:
        """Margin of each row: how far the vote for its own class is ahead of all others.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            As the last of `staged_margins`.
        """
        check_is_fitted(self)
        reach = float(np.cumsum(self._reach)[-1])  # in the order of the rounds, as in `staged_margins`
        return self._margins(self._scores(X), y) / (reach if reach > 0 else 1.0)

    def _margins(self, scores: Floats, y: Any) -> Floats:
        codes = self._known_target(y, len(scores), self.__dict__, "y").astype(np.intp)
        if scores.shape[1] == 1:
            return 2.0 * (2.0 * codes - 1.0) * scores[:, 0]
        own = np.take_along_axis(scores, codes[:, np.newaxis], axis=1)[:, 0]
        others = scores.copy()
        np.put_along_axis(others, codes[:, np.newaxis], -np.inf, axis=1)
        return np.asarray(own - others.max(axis=1))

    def staged_weights(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[Floats]:
        """Weights of the training rows before each round, and after the last.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            The rows of the fit.

        Yields
        ------
        ndarray of shape (n_samples,)
            They add up to 1. Where each class has members of its own, (n_samples, n_classes).
        """
        check_is_fitted(self)
        codes = self._known_target(y, len(np.asarray(y)), self.__dict__, "y")
        rule = self._make_rule(LearningRows(None, codes, read_weights(sample_weight, len(codes))), self.__dict__)  # type: ignore[arg-type]
        yield rule.weights
        for said, _ in self._by_round(X):
            rule.take(rule.judge(said))
            yield rule.weights
