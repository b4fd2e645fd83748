"""Gradient boosting of lists of rows that are to be ranked."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.fitted.ranking import JudgesLists
from spinney._boosting.losses.loss import Loss
from spinney._boosting.losses.ranking import (
    RANKING_LOSSES,
    HeldOutRanking,
    ListedTarget,
    listed_held_out,
    ranking_loss,
    read_lists,
    read_metric,
    read_relevance,
    weight_in_pairs,
)
from spinney._boosting.losses.rows import LearningRows
from spinney._boosting.options.compatibility import check_options
from spinney._boosting.settings import BoostingSettings
from spinney._data import read_table
from spinney._data.scan import client_of
from spinney._estimator import abstention
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._estimator.streams import taken_apart
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class GradientBoostingRanker(JudgesLists, BaseBoosting):
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

    predict_support = abstention.predict_support
    predict_or_abstain = abstention.predict_or_abstain
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions(set(RANKING_LOSSES))],
        "truncation": [Interval(Integral, 1, None, closed="left"), None],
        "gains": [StrOptions({"exponential", "linear"})],
    }

    def __init__(
        self,
        loss: str = "lambdamart",
        *,
        truncation: int | None = 30,
        gains: str = "exponential",
        n_estimators: int | str = "auto",
        effort: float | str = 0.5,
        learning_rate: float | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        growth: str = "leaf",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = "auto",
        min_hessian_leaf: float = 1e-3,
        min_gain: float = 0.0,
        min_impurity_decrease: float = 0.0,
        l2_regularization: float | str = "auto",
        l1_regularization: float = 0.0,
        max_step: float | str | None = "auto",
        subsample: float | str = "auto",
        sampling: str = "uniform",
        top_share: float = 0.2,
        n_parallel_trees: int = 1,
        drop_rate: float = 0.0,
        skip_drop: float = 0.0,
        max_drop: int | None = None,
        drop_by: str = "uniform",
        max_features: int | float | str | None = "auto",
        max_features_per_level: float = 1.0,
        max_features_per_tree: float = 1.0,
        max_bins: int | str = "auto",
        max_one_hot: int = 4,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        feature_costs: Any = None,
        feature_weights: Any = None,
        forced_splits: dict[str, Any] | None = None,
        hierarchical_shrinkage: float = 0.0,
        linear_leaves: bool = False,
        linear_l2: float = 5.0,
        early_stopping: bool | None = None,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
        time: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        groups_val: Any = None,
        sample_weight_val: Any = None,
        offset_val: Any = None,
        checkpoint: Any = None,
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
        if (client := client_of(X)) is not None:
            return self._fit_elsewhere(
                client,
                X,
                {"y": y, "sample_weight": sample_weight, "groups": groups, "offset": offset, "X_val": X_val}
                | {"y_val": y_val, "groups_val": groups_val, "offset_val": offset_val}
                | {"sample_weight_val": sample_weight_val, "time": time},
                checkpoint,
            )
        self._check_parameters()
        beside = {"y": y, "sample_weight": sample_weight, "groups": groups, "offset": offset, "time": time}
        X, (y, sample_weight, groups, offset, time) = taken_apart(X, beside, self.categorical_features)
        if not isinstance(y_val, dict):
            beside = {"y_val": y_val, "groups_val": groups_val, "sample_weight_val": sample_weight_val}
            found = taken_apart(X_val, beside | {"offset_val": offset_val}, self.categorical_features, "X_val")
            X_val, (y_val, groups_val, sample_weight_val, offset_val) = found
        held_out = X_val, listed_held_out(y_val, groups_val, groups), sample_weight_val, offset_val
        lists = read_lists(groups, read_table(X).n_rows)
        return self._fit(X, ListedTarget(y, groups), sample_weight, offset, lists, held_out, time, checkpoint)

    def _check_request(self, X_val: Any, y_val: Any, more: dict[str, Any], groups: Any, time: Any) -> None:
        self._check_parameters()
        settings = BoostingSettings.of(self)
        for metric in settings.metrics:
            if isinstance(metric, str):
                read_metric(metric)
        check_scoring(None, settings.callbacks)
        check_held_out(X_val, y_val, more, None, settings.stops_early, time)
        check_options(settings)

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        learned: dict[str, Any] = {"n_outputs_": 1}
        return self._known_target(y, n_rows, learned), learned

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        listed = y if isinstance(y, ListedTarget) else ListedTarget(y, None)
        learned["_more"] = read_lists(listed.groups, n_rows, "groups" if name == "y" else "groups_val")
        return read_relevance(listed.y, n_rows, name)

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        return weight

    def _weight_by_which(self, rows: LearningRows) -> float:
        is_by_pairs = self.loss == "pairwise"
        return weight_in_pairs(rows.target, rows.seen_weights, rows.more) if is_by_pairs else rows.total_weight

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        return ranking_loss(self.loss, self.gains, self.truncation, self._n_threads)

    def _held_out_score(self, scoring: Any, view: FittedBoosting, held_out: Any, *given: Any) -> Any:
        return HeldOutRanking(scoring, self.gains, held_out)

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return scores[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
