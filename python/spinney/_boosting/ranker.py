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
from spinney._boosting.options.recipe import stops_early
from spinney._boosting.rounds.evaluations import metrics_of
from spinney._data import read_table
from spinney._data.scan import client_of
from spinney._estimator.abstention import KnowsSupport
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._estimator.streams import taken_apart
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class GradientBoostingRanker(JudgesLists, KnowsSupport, BaseBoosting):
    """Gradient boosting that learns to rank the rows of lists, such as documents for a query.

    `predict` gives scores, by which the rows of a list are sorted, largest first; they say nothing across lists. Rows
    of equal scores share their places, so that the order of the table does not matter. The model is the same, bit for
    bit, for any number of threads and any kind of table.

    Parameters
    ----------
    loss : {"lambdamart", "pairwise"}, default="lambdamart"
        Both pull the rows of a list apart, pair by pair. "lambdamart": a pair counts by how much the list's normalised
        discounted gain (NDCG) would change if the two were swapped, so that the first places matter most. "pairwise":
        every pair whose grades differ counts, wherever it stands (RankNet); in both, less the further apart its scores
        are.
    truncation : int or None, default=30
        With ``loss="lambdamart"``: how many places of a list count; None: all. A few more than are looked at, such as
        30 for NDCG at 10, rank better than just these; fewer are faster.
    gains : {"exponential", "linear"}, default="exponential"
        With ``loss="lambdamart"``, and in metrics: what a row of grade g is worth, 2 to the power of g less 1, or g
        itself.
    n_estimators : int or "auto", default="auto"
        Number of rounds of one booster. "auto": the mean of five (ten with fewer than 3,000 rows), each of which holds
        out one fold of the rows and stops when it no longer improves, with small steps and columns drawn; what else is
        set stays. (One alone where `fit` is given ``X_val``, ``early_stopping=True`` or `init` is an estimator; 100
        plain rounds with ``early_stopping=False`` or fewer than 10 rows.)
    effort : float or "search", default=0.5
        With ``n_estimators="auto"``: how much time to spend, from 0, quick, to 1, thorough. At 1 there are twice as
        many boosters as at 0.5 and their steps are half as long, at 0 half as many (three instead of five) and twice as
        long (but where rows of classes are few): about three times, or a third of, the time. "search" tries five
        recipes on the same folds (smaller and larger trees, fewer columns, larger leaves) and keeps the one whose
        held-out rows say it is best: about five times the time of 0.5.
    learning_rate : float or "auto", default="auto"
        Factor by which the values of each tree are multiplied. "auto": 0.1, or what goes with ``n_estimators="auto"``.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Most leaves of a tree. "auto": 31, or what goes with ``n_estimators="auto"``. None: no limit.
    max_depth : int, optional
        Most splits between the root and a leaf. None: no limit.
    growth : {"leaf", "depth", "symmetric"}, default="leaf"
        Which leaf to split next: the one that gains most, or level by level. "symmetric" makes the same cut in all
        nodes of a level, the one that gains most in all of them together; a node of which it would leave too small a
        side stays as it is.
    min_samples_split : int or float, default=2
        Fewest rows that a node must hold to be split; a float is a share of all rows.
    min_samples_leaf : int, float or "auto", default="auto"
        Fewest rows in a leaf; a float is a share of all rows. "auto": 20, with fewer than 40 rows 3, with fewer than 12
        a quarter of them, or what goes with ``n_estimators="auto"``. A leaf must also hold as large a sum of second
        derivatives as this many rows of its parent have on average. (Where the mean weight exceeds eight times the
        median, a row counts with the median weight in this rule.)
    min_hessian_leaf : float, default=1e-3
        Smallest sum of the loss's second derivatives in a leaf.
    min_gain : float, default=0.0
        Smallest gain of a split: twice the loss that it saves, to second order.
    min_impurity_decrease : float, default=0.0
        Smallest gain of a split over the weight of the round's rows: as `min_gain`, but whatever the size of the table.
        With the squared error it is the decrease of the variance that scikit-learn asks for.
    l2_regularization : float or "auto", default="auto"
        Penalty on the squares of the leaves' values. "auto": 1 for 10,000 to 50,000 rows, else 0; with
        ``loss="pairwise"`` a thousandth of the weight of the rows, less where fewer than two thirds of the pairs of a
        list differ in grade, and at most 10 (chance in one row pulls on all its pairs, so that small leaves know less
        than their second derivatives say); or what goes with ``n_estimators="auto"``.
    l1_regularization : float, default=0.0
        Penalty on the absolute values of the leaves' values.
    max_step : float, "auto" or None, default="auto"
        Largest absolute value of a leaf, before the learning rate. "auto": Newton's step, damped beyond 1.5 where it
        could run away, which is wherever the second derivative changes. None: Newton's step, however large.
    subsample : float or "auto", default="auto"
        Share of the rows drawn for each round. "auto": 1, or what goes with ``n_estimators="auto"``; where gradients
        say which (``sampling``), a half, or a tenth beside ``top_share``.
    sampling : {"uniform", "gradient", "goss"}, default="uniform"
        Which rows are drawn where ``subsample`` asks for some: all alike, or those with large gradients rather than
        others. "gradient" draws a row with a probability that is proportional to the size of its gradient, up to 1, and
        lets it stand for as many like it (minimal variance sampling). "goss" takes those with the largest gradients,
        ``top_share`` of all, and of the others some drawn alike, which stand for the others (gradient-based one-side
        sampling).
    top_share : float, default=0.2
        With ``sampling="goss"``: share of the rows that are taken for their large gradients. With ``subsample="auto"``
        a tenth of all rows are drawn beside them.
    n_parallel_trees : int, default=1
        Rounds that belong together: so many trees in a row are fitted to the gradients of the same scores, each on rows
        and columns drawn for it, and count for their mean. ``n_estimators`` counts the trees.
    drop_rate : float, default=0.0
        Share of the earlier rounds, drawn anew, that each round is fitted without; at least one (DART). A round that
        drops k others then counts for a (k + 1)-th of its step, and these for k of k + 1 parts of what they did. 0: no
        round is dropped. Not with ``warm_start``; no stages are predicted, as later rounds change earlier ones. Early
        stopping keeps the model as it was after its best round.
    skip_drop : float, default=0.0
        With ``drop_rate``: chance that a round drops nothing.
    max_drop : int, optional
        With ``drop_rate``: most rounds that one drops. None: no limit.
    drop_by : {"uniform", "weight"}, default="uniform"
        With ``drop_rate``: whether all rounds are dropped with the same chance, or in proportion to what they count for
        after earlier drops.
    max_features : int, float, {"auto", "sqrt", "log2"} or None, default="auto"
        Number or share of the columns tried at each node, drawn at random. "auto": all, or what goes with
        ``n_estimators="auto"``. None: all.
    max_features_per_level : float, default=1.0
        Share of the columns drawn for each level of a tree.
    max_features_per_tree : float, default=1.0
        Share of the columns drawn for each tree.
    max_bins : int or "auto", default="auto"
        Most bins of a column of numbers; missing values have another one. If there are as many bins as distinct values,
        splits are exact. "auto": 255, or what goes with ``n_estimators="auto"``.
    max_one_hot : int, default=4
        With up to this many categories in a node, each is tried against the rest. More are sorted by their gradient,
        and cut like numbers.
    category_smoothing : float, default=10.0
        Added to the second derivatives of each category when categories are sorted. Those with fewer rows than this in
        a node stay together.
    category_l2 : float, default=10.0
        Additional L2 penalty on both sides when a split by sorted categories is judged.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        1: the prediction must not fall as the column rises; -1: it must not rise; 0: no constraint.
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Groups of columns: those that split on one path from the root must all be in one group. Columns that are in none
        form one more group.
    feature_costs : array-like of positive numbers or dict by column name, optional
        Price of each column, by which the gain of its splits is divided. Columns that a dict leaves out cost 1.
    feature_weights : array-like of numbers or dict by column name, optional
        How likely each column is to be drawn where some are, for a tree, a level or a node, in proportion; 0: never.
        Columns that a dict leaves out have weight 1.
    forced_splits : dict, optional
        The first splits of every tree: ``{"feature": column, "threshold": number}``, or ``"categories"`` that go left
        in the place of the threshold, with the splits of its sides as ``"left"`` and ``"right"``. Cuts are exact,
        whatever the bins are; missing values go where it saves more. A fit refuses a split that leaves too few rows on
        a side; where rows are drawn, a tree whose rows cannot make it goes on as usual.
    hierarchical_shrinkage : float, default=0.0
        Strength, in units of the row weights, with which the values of a tree's nodes are drawn to those of their
        ancestors, small nodes most. 0: not at all.
    linear_leaves : bool, default=False
        Whether a leaf may add a line instead of one value: a ridge regression of its step on the columns of numbers
        that its path asks for. Each column is held to the values that the leaf has seen of it, so that no line runs
        away outside of them; a row that lacks one of these values gets the leaf's value. Not with ``absolute_error``,
        ``quantile`` and ``huber``, nor with monotone constraints.
    linear_l2 : float, default=5.0
        Squared penalty of the slopes of lines in leaves, in units of the second derivative of the loss (of rows, for
        squared errors), for columns that are scaled to a variance of 1 in their leaf.
    early_stopping : bool or None, default=None
        Whether to hold out rows, and to stop when their loss no longer improves. None: if ``n_iter_no_change`` is
        given, and, fold by fold, with ``n_estimators="auto"``.
    scoring : str, callable, list of these or None, default=None
        The metric of early stopping and of ``validation_score_``: "ndcg", "map" or "mrr", perhaps of the first places
        alone, as in "ndcg@10", or a function of (grades, scores, numbers of the lists), larger for better. None or
        "loss": the loss, which is 1 less the mean NDCG of the first ``truncation`` places, or the mean loss of a pair.
        Of a list, the first; all of it is in ``history_``, unless there are folds.
    validation_fraction : float or int, default=0.1
        Share or number of rows to hold out, unless `fit` is given ``X_val``.
    n_iter_no_change : int or None, default=None
        Rounds without an improvement after which early stopping ends the fit. None: 10; 50 with
        ``n_estimators="auto"``, but 40 of folds of fewer than 3,000 rows of two classes and 10 of several.
    tol : float, default=1e-7
        By how much the loss must fall to count as an improvement.
    keep_best : bool, default=True
        Whether early stopping drops the rounds after the best one.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        follows the larger branch.
    warm_start : bool, default=False
        Whether `fit` keeps the rounds of the last fit and adds to them.
    verbose : int, default=0
        1 reports rounds done, loss and time left to standard error.
    callbacks : callable, list of callables or None, default=None
        Called after each round with a dict (round, n_estimators, train_loss, validation_loss, seconds). One that
        returns True ends the fit.
    keep_interrupted : bool, default=False
        Whether an interruption (Ctrl-C) ends the fit with a warning and keeps the rounds done. False: it raises, and
        nothing is kept.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random. None gives the same model every time where neither rows nor columns are drawn,
        and with ``n_estimators="auto"``.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    estimators_ : array of shape (n_rounds, 1)
        The trees as estimators that predict what they add to the score, made on demand.
    boosting_ : FittedBoosting
        The trees as one set of arrays, and what turns their sum into predictions.
    n_iter_ : int
        Number of rounds in the model; those of all boosters, which take turns, with ``n_estimators="auto"``.
    n_estimators_ : int
        The same number, by scikit-learn's name.
    stopped_because_ : str
        Why no further round was tried.
    train_score_ : ndarray of shape (n_rounds,)
        Loss on the training rows after each round, including rounds that ``keep_best`` dropped. Of folds: the mean of
        their boosters' losses after each round of the model.
    validation_score_ : ndarray of shape (n_rounds,)
        If rows were held out: their loss after each round, or the metric with its sign changed, so that smaller is
        always better. Of folds: the mean of their boosters' losses, each on the rows it has not seen.
    history_ : dict of ndarray
        If there are several held-out sets or metrics: after each round, each metric on each set, as in ``"test loss"``,
        beside the number of the round. ``pandas.DataFrame(model.history_)`` makes a table of it. It is not saved.
    oob_scores_ : ndarray of shape (n_rounds,)
        With ``subsample`` below 1, unless there are folds: after each round, mean loss of the rows that it did not draw
        (of every second, third … of them, where there are more than 16,384 and the loss is not one of your own, of
        lists or of times); NaN if it drew all.
    oob_improvement_ : ndarray of shape (n_rounds,)
        With ``subsample`` below 1, unless there are folds: by how much each round lowers the mean loss of these rows.
    oob_score_ : float
        With ``subsample`` below 1, unless there are folds: ``oob_scores_`` of the last round of the model.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the loss that the splits save.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    n_outputs_ : int
        Number of outputs.
    max_features_ : int
        Number of columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

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
        self.loss = loss
        self.truncation = truncation
        self.gains = gains
        self.n_estimators = n_estimators
        self.effort = effort
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.growth = growth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian_leaf = min_hessian_leaf
        self.min_gain = min_gain
        self.min_impurity_decrease = min_impurity_decrease
        self.l2_regularization = l2_regularization
        self.l1_regularization = l1_regularization
        self.max_step = max_step
        self.subsample = subsample
        self.sampling = sampling
        self.top_share = top_share
        self.n_parallel_trees = n_parallel_trees
        self.drop_rate = drop_rate
        self.skip_drop = skip_drop
        self.max_drop = max_drop
        self.drop_by = drop_by
        self.max_features = max_features
        self.max_features_per_level = max_features_per_level
        self.max_features_per_tree = max_features_per_tree
        self.max_bins = max_bins
        self.max_one_hot = max_one_hot
        self.category_smoothing = category_smoothing
        self.category_l2 = category_l2
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.feature_costs = feature_costs
        self.feature_weights = feature_weights
        self.forced_splits = forced_splits
        self.hierarchical_shrinkage = hierarchical_shrinkage
        self.linear_leaves = linear_leaves
        self.linear_l2 = linear_l2
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.keep_best = keep_best
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.warm_start = warm_start
        self.verbose = verbose
        self.callbacks = callbacks
        self.keep_interrupted = keep_interrupted
        self.random_state = random_state
        self.n_jobs = n_jobs

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
        for metric in metrics_of(self.scoring):
            if isinstance(metric, str):
                read_metric(metric)
        check_scoring(None, self.callbacks)
        check_held_out(X_val, y_val, more, None, stops_early(self), time)
        check_options(self)

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
