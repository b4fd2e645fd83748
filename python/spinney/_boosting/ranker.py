"""Gradient boosting of lists of rows that are to be ranked."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from spinney._boosting import other_rows
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.ranking import RANKING_LOSSES, RankingTarget, metric_of_lists, read_lists, read_relevance
from spinney._boosting.settings import FROM_ONE
from spinney._data.types import TableLike
from spinney._estimator import support
from spinney._estimator.fit_inputs import RowInputs
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import read_weights


@estimator
class GradientBoostingRanker(BaseBoosting):
    """Gradient boosting that learns to rank the rows of lists, such as documents for a query.

    `predict` gives scores, by which the rows of a list are sorted, largest first; they say nothing across lists. Rows
    of equal scores share their places, so that the order of the table does not matter. The model is the same, bit for
    bit, for any number of threads and any kind of table.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.arange(40.0).reshape(20, 2) % 7
    >>> grades, queries = X[:, 0] // 3, np.repeat(["a", "b", "c", "d"], 5)
    >>> model = spinney.GradientBoostingRanker(n_estimators=10).fit(X, grades, groups=queries)
    >>> model.score(X, grades, groups=queries)
    1.0
    """

    loss: str = parameter(StrOptions(set(RANKING_LOSSES)), default="lambdamart", kw_only=False)
    truncation: int | None = parameter(FROM_ONE, None, default=30)
    gains: str = parameter(StrOptions({"exponential", "linear"}), default="exponential")

    _target_type = RankingTarget
    importances = other_rows.importances
    predict_support = support.predict_support
    predict_or_abstain = support.predict_or_abstain

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        time: ArrayLike | None = None,
        X_val: TableLike | dict[str, TableLike] | None = None,
        y_val: ArrayLike | dict[str, ArrayLike] | None = None,
        groups_val: ArrayLike | dict[str, ArrayLike] | None = None,
        sample_weight_val: ArrayLike | dict[str, ArrayLike] | None = None,
        offset_val: ArrayLike | dict[str, ArrayLike] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Boost.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are. Or a table that is
            read some rows at a time, as by `spinney.scan`: y, sample_weight, groups, offset and time may then be the
            names of its columns.
        y : array-like of shape (n_samples,)
            Grades of relevance, at least 0: larger for rows that belong further up in their list.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of rows: one of weight w stands for w equal rows, one below another in its list; weight 0 leaves
            the row out.
        groups : array-like of shape (n_samples,), optional
            Label of the list (the query) that each row belongs to, numbers or strings, in any order. Rows are compared
            within lists alone, and early stopping holds out whole lists. None: all rows are one list.
        offset : array-like of shape (n_samples,), optional
            Scores that the trees add to. Pass the same to `predict`.
        time : array-like of shape (n_samples,), optional
            Moments, numbers or dates: the latest lists are held out (early stopping), each with its latest row. With
            nothing set there is one booster then, as no fold but the last is later than all others.
        X_val, y_val, groups_val, sample_weight_val, offset_val : as X, y, groups, sample_weight and offset, optional
            Held-out lists, for early stopping and the learning curve. Several sets are dicts of these by name: the
            first stops the fit, all are judged after each round (``history_``).
        checkpoint : str or path, optional
            A file that keeps the rounds while they are done, from which the same call goes on; see
            `GradientBoostingRegressor.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit_arguments({name: value for name, value in locals().items() if name != "self"})

    def score(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        metric: str = "ndcg",
        offset: ArrayLike | None = None,
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
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        decay: float = 0.9,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
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
        return other_rows.refit_leaves(self, RowInputs(X, y, sample_weight, offset, groups), decay)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
