"""Gradient boosting for classes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.fitted.intervals import CertainClasses
from spinney._boosting.fitted.probabilities import SaysShares
from spinney._boosting.fitted.refit import RefitsLeaves
from spinney._boosting.losses.loss import TWO_CLASS_LOSSES, Loss, class_loss, own_loss
from spinney._boosting.losses.outputs import loss_of_outputs
from spinney._boosting.losses.rows import LearningRows
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors
from spinney._estimator.single_target import known_codes, read_some_classes
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class GradientBoostingClassifier(SaysShares, CertainClasses, RefitsLeaves, ClassifierMixin, BaseBoosting):
    """Gradient boosting of classes.

    Trees are added one by one; each is fitted to the gradient of the loss at the scores so far. With more than two
    classes a round has one tree per class. The model is the same, bit for bit, for any number of threads and any kind
    of table.

    Parameters
    ----------
    loss : {"log_loss", "exponential", "focal", "smooth_hinge"}, callable or object, default="log_loss"
        The loss to minimise. All but "log_loss" are for two classes: "exponential" is that of AdaBoost; "focal" lets
        rows count for less the better they are told apart (``focal_gamma``); "smooth_hinge" does not ask for more than
        a margin of 1. Probabilities are those whose expected loss is least at the score, so that they are not biased by
        the choice of the loss. A loss of your own is a function ``loss(y, f)`` of targets -1 and 1 and scores, whose
        derivatives are found, or an object with ``loss``, ``gradient`` and perhaps ``hessian``.
    focal_gamma : float, default=2.0
        With ``loss="focal"``: the exponent of the share that the other class gets, by which the log loss of a row is
        multiplied. 0 is the log loss itself.
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
    leaves : {"single", "vector"}, default="single"
        Where a row has several scores (more than two classes, several outputs or quantiles): one tree for each in every
        round, or one tree for all of them, whose leaves hold a value for each and whose splits are compared by the sum
        of what they save.
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
        For two classes. 1: the probability of the second must not fall as the column rises; -1: it must not rise; 0: no
        constraint. A row of these for each output, if y has several columns and they are to differ.
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
    init : {"constant", "zero"}, estimator or None, default="constant"
        Where scores start: at the constant with the smallest loss, given the ``offset`` if there is one, or at 0. An
        estimator is fitted first, and scores start where it predicts; such a model can be pickled, but not saved as a
        model file. None is scikit-learn's word for "constant".
    class_weight : dict, "balanced" or None, default=None
        Weights by class label. "balanced": in inverse proportion to the number of rows of each class.
    cost_matrix : array-like of shape (n_classes, n_classes), frame, or dict of dicts by label, optional
        Cost of predicting class j (column) for a row of class i (row). `predict` takes the class of least expected
        cost; trees and probabilities are those of a model without costs.
    priors : array-like of shape (n_classes,), dict by label, "uniform" or None, default=None
        Class probabilities to assume: rows are weighed such that each class has its share of the weight. None: those of
        the training rows.
    early_stopping : bool or None, default=None
        Whether to hold out rows, and to stop when their loss no longer improves. None: if ``n_iter_no_change`` is
        given, and, fold by fold, with ``n_estimators="auto"``.
    scoring : str, callable, list of these or None, default=None
        The metric of early stopping and of ``validation_score_``: the name of a scikit-learn scorer, a function of
        (targets, predictions), of which those whose names end in "_error", "_loss" or "_deviance" are smaller for
        better, or a function of (model, held-out rows as they were given, their targets), larger for better. None or
        "loss": the loss. Of a list, the first; all of it is in ``history_``, unless there are folds.
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
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_classes_ : int
        Number of classes.
    n_outputs_ : int
        Number of outputs.
    cost_matrix_ : ndarray of shape (n_classes, n_classes), or None
        Costs in the order of `classes_`, if any were given.
    priors_ : ndarray of shape (n_classes,), or None
        Class probabilities that were assumed, if any were given.
    estimators_ : array of shape (n_rounds, n_scores)
        The trees as estimators that predict what they add to a score, made on demand; two classes have one score, more
        have one each.
    boosting_ : FittedBoosting
        The trees as one set of arrays, and what turns their sum into predictions.
    n_iter_ : int
        Number of rounds in the model; those of all boosters, which take turns, with ``n_estimators="auto"``.
    n_estimators_ : int
        The same number, by scikit-learn's name.
    init_ : estimator
        If `init` is an estimator: the one that was fitted.
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
    n_dropped_ : ndarray of shape (n_rounds,)
        With ``drop_rate``: how many earlier rounds each has dropped.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the loss that the splits save.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    max_features_ : int
        Number of columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> model = spinney.GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.predict(X[:2])
    array(['Adelie', 'Adelie'], dtype=object)
    """

    _is_class_target = True

    @property
    def _is_several(self) -> bool:
        return getattr(self, "n_outputs_", 1) > 1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "leaves": [StrOptions({"single", "vector"})],
        "loss": [StrOptions({"log_loss", *TWO_CLASS_LOSSES}), HasMethods(["loss", "gradient"]), callable],
        "focal_gamma": [Interval(Real, 0.0, 10.0, closed="both")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cost_matrix": ["array-like", dict, None],
        "priors": ["array-like", dict, StrOptions({"uniform"}), None],
        "init": [StrOptions({"constant", "zero"}), None, HasMethods(["fit", "predict_proba"])],
    }

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        focal_gamma: float = 2.0,
        n_estimators: int | str = "auto",
        effort: float | str = 0.5,
        learning_rate: float | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        growth: str = "leaf",
        leaves: str = "single",
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
        init: Any = "constant",
        class_weight: Any = None,
        cost_matrix: Any = None,
        priors: Any = None,
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
        self.focal_gamma = focal_gamma
        self.n_estimators = n_estimators
        self.effort = effort
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.growth = growth
        self.leaves = leaves
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
        self.init = init
        self.class_weight = class_weight
        self.cost_matrix = cost_matrix
        self.priors = priors
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_some_classes(y, n_rows)
        is_one = len(classes) == 1
        most = max(map(len, classes))
        if self.loss != "log_loss" and (most > 2 or not is_one):
            name = repr(self.loss) if isinstance(self.loss, str) else "your own"
            found = most if is_one else f"{len(classes)} columns"
            raise ValueError(f"loss={name} is for two classes; y has {found}. Use loss='log_loss'.")
        learned: dict[str, Any] = {"n_outputs_": len(classes)}
        if is_one:
            return codes, learned | {"classes_": classes[0], "n_classes_": len(classes[0])}
        return codes, learned | {"classes_": classes, "n_classes_": np.array(list(map(len, classes)))}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        return known_codes(y, learned["classes_"], n_rows, name)

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        self._read_costs(target, weight, learned)
        if "_class_weight" not in learned:  # held-out rows count as the training rows do
            if self.class_weight is None:
                return weight
            if learned["n_outputs_"] > 1:
                raise ValueError("class_weight is for one output. Pass sample_weight, or fit one model per output.")
            learned["_class_weight"] = self._read_class_weight(target.astype(np.intp), learned["classes_"])
        by_row = learned["_class_weight"][target.astype(np.intp)]
        return np.ascontiguousarray(by_row if weight is None else weight * by_row)

    def _read_costs(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> None:
        """Learn costs and priors, once: what rows of each class count for by these."""
        if "cost_matrix_" in learned:
            return
        learned |= {"cost_matrix_": None, "priors_": None}
        if self.cost_matrix is None and self.priors is None:
            return
        if learned["n_outputs_"] > 1:
            raise ValueError("cost_matrix and priors are for one output. Fit one model per output.")
        if self.priors is not None and self.class_weight is not None:
            raise ValueError("priors and class_weight both reweight the classes. Pass one of them.")
        classes = learned["classes_"]
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, classes)
        priors = None if self.priors is None else read_priors(self.priors, classes)
        costs = ClassCosts.of(cost, priors, None, target.astype(np.int32), weight, classes)
        learned |= {"cost_matrix_": costs.cost, "priors_": costs.priors}
        if costs.prior_factor is not None:
            learned["_class_weight"] = costs.prior_factor

    def _read_class_weight(self, codes: NDArray[np.intp], classes: NDArray[Any]) -> Floats:
        given = self.class_weight
        if isinstance(given, dict):
            unknown = [label for label in given if label not in set(classes.tolist())]
            if unknown:
                raise ValueError(f"class_weight has a class that y does not have: {unknown[0]!r}.")
            by_class = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
        else:
            by_class = len(codes) / (len(classes) * np.bincount(codes, minlength=len(classes)))
        if not (np.isfinite(by_class) & (by_class >= 0)).all():
            raise ValueError("class_weight must give finite weights of at least 0.")
        return by_class

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        if not isinstance(self.loss, str):
            return own_loss(self.loss, of_classes=True, n_jobs=self.n_jobs)
        classes = learned["classes_"]
        if isinstance(classes, list):
            return loss_of_outputs([class_loss("log_loss", len(labels)) for labels in classes], "by_output")
        return class_loss(self.loss, len(classes), float(self.focal_gamma))

    def _best_constant(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        for part, target in zip(loss.parts, rows.targets(loss), strict=True):
            totals = np.bincount(target.astype(np.intp), rows.weight, max(2, part.n_scores))
            if (totals == 0).any():
                raise ValueError(
                    f"The class with index {int(np.argmin(totals))} in classes_ has no row of positive weight to learn "
                    "from. Drop its rows, or give some of them a weight."
                )
        return super()._best_constant(loss, rows, n_scores)

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        classes = learned["classes_"]
        return view.labels(view.score_codes(scores), classes if isinstance(classes, list) else [np.asarray(classes)])
