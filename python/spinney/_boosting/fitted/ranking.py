"""What a booster of lists is asked once it is fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.fitted.refit import RefitsLeaves
from spinney._boosting.losses.ranking import ListedTarget, metric_of_lists, read_lists, read_relevance
from spinney._estimator.target import read_weights


class JudgesLists(RefitsLeaves):
    """Mixin for models that rank the rows of lists."""

    if TYPE_CHECKING:
        gains: str

        def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]: ...

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, metric: str = "ndcg", offset: Any = None
    ) -> float:
        """How well the rows of each list are ranked, on average over lists.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their grades of relevance.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        groups : array-like of shape (n_samples,), optional
            Label of the list that each row belongs to. None: all rows are one list.
        metric : str, default="ndcg"
            "ndcg", "map" or "mrr", perhaps of the first places alone, as in "ndcg@10"; see `spinney.ranking_score`.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        float
            Between 0 and 1.
        """
        scores = np.ascontiguousarray(self.predict(X, offset=offset), dtype=np.float64)
        n = len(scores)
        judge = metric_of_lists(metric, self.gains)
        return judge(read_relevance(y, n), scores, read_lists(groups, n), read_weights(sample_weight, n))

    def refit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        decay: float = 0.9,
        offset: Any = None,
        groups: Any = None,
    ) -> Self:
        """Set the values of all leaves anew by other lists, and leave the splits as they are.

        Round by round: a leaf keeps `decay` of its value and takes the rest of the value that a round of `fit` would
        set it to by these rows, at the scores that the refitted rounds before have led to. A leaf that none of the
        rows reach stays as it is.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            New rows, with the columns of the fit.
        y : array-like of shape (n_samples,)
            Their grades of relevance.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        decay : float, default=0.9
            How much of its value a leaf keeps, from 0 to 1.
        offset : array-like of shape (n_samples,), optional
            As in `fit`.
        groups : array-like of shape (n_samples,), optional
            Label of the list that each row belongs to. None: all rows are one list.

        Returns
        -------
        estimator
            A fitted model with the new values; this one does not change. Its ``train_score_`` is the loss of the new
            rows after each round; other curves are those of the fit, and are gone.
        """
        return super().refit(X, ListedTarget(y, groups), sample_weight, decay=decay, offset=offset)
