"""Gradient boosting of times until an event."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.fitted.saved_state import times_from_json, times_to_json
from spinney._boosting.fitted.survival import SaysTimes
from spinney._boosting.losses.loss import Loss
from spinney._boosting.losses.rows import LearningRows
from spinney._boosting.losses.survival import DISTRIBUTIONS, CoxLoss, TimedLoss, read_times, time_loss
from spinney._boosting.options.compatibility import check_options
from spinney._boosting.options.recipe import stops_early
from spinney._boosting.rounds.evaluations import metrics_of
from spinney._boosting.rounds.task import Task
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._model.boosting import FittedBoosting
from spinney._model.saving.model_part import FittedPart

Floats = NDArray[np.float64]
_MOST_TIMES = 100  # of curves without a baseline of their own


class GradientBoostingSurvival(SaysTimes, BaseBoosting):
    """Gradient boosting of times until an event, such as failure or death, that may not have happened yet.

    A target is one number per row, a time, with a minus sign where the event had not happened by then (censored); a
    structured array of (event, time), in either order; or, with ``loss="aft"``, two columns, the first and the last
    time at which the event may have happened: equal where it is known, infinity where it is open, 0 where it may have
    happened at any time before. The model is the same, bit for bit, for any number of threads and any kind of table.

    Parameters
    ----------
    loss : {"cox", "aft"}, default="cox"
        "cox": scores are logarithms of hazards, which are proportional at all times; `predict` gives the score, larger
        for earlier events. "aft": the logarithm of a time is the score plus ``scale`` times chance; `predict` gives the
        median time.
    distribution : {"normal", "logistic", "extreme"}, default="normal"
        With ``loss="aft"``: how logarithms of times vary about their median. "extreme" makes Weibull's times,
        "logistic" has longer tails than "normal".
    scale : float or "auto", default="auto"
        With ``loss="aft"``: how far logarithms of times vary. "auto": as far as is most likely at the scores of each
        round.
    ties : {"breslow", "efron"}, default="breslow"
        With ``loss="cox"``: how events at the same time are counted. "breslow": all of them are at risk while each
        happens; a row of weight 2 counts for two rows. "efron": they happen one after another, in an order that is not
        known, so that fewer are at risk in the end; closer to times that were not rounded where many events share one.
        There the weights of tied events count by their mean.
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
        Fewest rows in a leaf; a float is a share of all rows. "auto": a twentieth of them, between 3 and 20, with fewer
        than 12 rows a quarter of them, or what goes with ``n_estimators="auto"``. A leaf must also hold as large a sum
        of second derivatives as this many rows of its parent have on average. (Where the mean weight exceeds eight
        times the median, a row counts with the median weight in this rule.)
    min_hessian_leaf : float, default=1e-3
        Smallest sum of the loss's second derivatives in a leaf.
    min_gain : float, default=0.0
        Smallest gain of a split: twice the loss that it saves, to second order.
    min_impurity_decrease : float, default=0.0
        Smallest gain of a split over the weight of the round's rows: as `min_gain`, but whatever the size of the table.
        With the squared error it is the decrease of the variance that scikit-learn asks for.
    l2_regularization : float or "auto", default="auto"
        Penalty on the squares of the leaves' values. "auto": 0, or what goes with ``n_estimators="auto"``.
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
        The metric of early stopping and of ``validation_score_``: "concordance". None or "loss": the loss. Of a list,
        the first; all of it is in ``history_``, unless there are folds.
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
    event_times_ : ndarray of shape (n_times,)
        Times of events, ascending, at which curves are given unless others are asked for; of ``loss="aft"`` at most
        100.
    baseline_hazard_ : ndarray of shape (n_times,)
        With ``loss="cox"``: the hazard of a score of 0 up to each of these times (Breslow's estimate). With
        ``n_estimators="auto"`` by what each fold's rows were predicted by boosters that had not seen them.
    scale_ : float
        With ``loss="aft"``: the scale of the model, by rows held out if there are any, unless it was given.
    scales_ : ndarray of shape (n_rounds,)
        With ``loss="aft"``, unless there are folds: the scale that each round was fitted with; no less than half of
        that about a constant, as rows that are learned from look ever more certain.
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
    >>> X = np.arange(60.0).reshape(30, 2) % 7
    >>> times = np.where(np.arange(30) % 5 == 0, -1, 1) * (1 + X[:, 0])  # every fifth is censored
    >>> model = spinney.GradientBoostingSurvival(n_estimators=20).fit(X, times)
    >>> round(model.score(X, times), 2)
    0.97
    >>> model.predict_survival_function(X[:3], times=[2.0, 5.0]).shape
    (3, 2)
    """

    _leaf_share: ClassVar[float] = 0.05  # censored rows say little: shares of events matter more than counts of rows
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions({"cox", "aft"})],
        "distribution": [StrOptions(set(DISTRIBUTIONS))],
        "ties": [StrOptions({"breslow", "efron"})],
        "scale": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        loss: str = "cox",
        *,
        distribution: str = "normal",
        scale: float | str = "auto",
        ties: str = "breslow",
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
        self.distribution = distribution
        self.scale = scale
        self.ties = ties
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

    # ---- fitting -------------------------------------------------------------------------------------

    def _check_request(self, X_val: Any, y_val: Any, more: dict[str, Any], groups: Any, time: Any) -> None:
        for metric in metrics_of(self.scoring):
            if metric not in (None, "concordance"):
                raise ValueError(f"{metric!r} is no metric of times. Use 'concordance', or None for the loss.")
        self._check_parameters()
        check_scoring(None, self.callbacks)
        check_held_out(X_val, y_val, more, groups, stops_early(self), time)
        check_options(self)

    def _held_out_score(self, scoring: Any, view: FittedBoosting, held_out: LearningRows, *given: Any) -> Any:
        assert held_out.more is not None
        low, high, sign = held_out.target, held_out.more, -1.0 if self.loss == "cox" else 1.0

        def judge(scores: Floats, so_far: Any = None) -> float:
            expected = np.ascontiguousarray(sign * scores[:, 0])
            return -float(_engine.concordance(low, high, expected, held_out.weight))

        return judge

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        learned: dict[str, Any] = {"n_outputs_": 1}
        return self._known_target(y, n_rows, learned), learned

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        times = read_times(y, n_rows, name)
        if self.loss == "cox" and not (times.is_event | (times.high == np.inf)).all():
            row = int(np.flatnonzero(~times.is_event & np.isfinite(times.high))[0])
            raise ValueError(
                f"loss='cox' needs times that are known or open to the end. Row {row} of {name} lies between "
                f"{times.low[row]:g} and {times.high[row]:g}. Use loss='aft'."
            )
        learned["_more"] = times.high
        return times.low

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        return weight

    @property
    def _given_scale(self) -> float | None:
        return None if isinstance(self.scale, str) else float(self.scale)

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        return time_loss(self.loss, self.distribution, self._given_scale, self.ties, self._n_threads)

    def _best_constant(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        assert loss.outside is not None
        of_rows = loss.outside(rows)
        if isinstance(of_rows, CoxLoss):
            return np.zeros(1)
        assert isinstance(of_rows, TimedLoss)
        return np.array([of_rows.constant(np.zeros(len(rows.target)) if rows.offset is None else rows.offset[0])])

    def _told_by(self, rounds: Any, model: FittedBoosting, task: Task) -> dict[str, Any]:
        """Return the hazard of a score of 0, or the scale of times, by rows that the model has not seen if it can."""
        rows, parts, outside = task.rows, task.parts, task.loss.outside
        assert outside is not None
        judged = rows
        if len(parts) == 1 and parts[0][1] is not None and self.loss == "aft":
            judged = parts[0][1]
        scores = np.ascontiguousarray(model.scores(judged.columns, self._n_threads).T)
        if judged.offset is not None:
            scores = scores + judged.offset
        if len(parts) > 1:
            scores = rounds.scores_held_out(scores, [part for _, part in parts])
        of_rows = outside(judged)
        if isinstance(of_rows, CoxLoss):
            times, hazard = of_rows.baseline(scores)
            return {"event_times_": np.asarray(times), "baseline_hazard_": np.asarray(hazard)}
        assert isinstance(of_rows, TimedLoss)
        known = np.unique(rows.target[(rows.weights() > 0) & (rows.target > 0)])
        at = np.unique(np.linspace(0, max(len(known) - 1, 0), min(len(known), _MOST_TIMES)).astype(np.intp))
        return {"event_times_": known[at], "scale_": of_rows.fit_scale(scores)}

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return view.predicted(scores)[:, 0]

    def _to_header(self) -> dict[str, Any]:
        return super()._to_header() | times_to_json(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        return super()._from_header(header, part) | times_from_json(header, part)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
