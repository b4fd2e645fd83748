"""Gradient boosting estimators."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._boosting.base import BaseBoosting
from spinney._boosting.losses import NUMBER_LOSSES, Loss, class_constants, class_loss, regression_loss
from spinney._boosting.rows import LearningRows
from spinney._boosting.view import FittedBoosting
from spinney._target import encode_labels, read_classes, read_values

Floats = NDArray[np.float64]


class GradientBoostingClassifier(ClassifierMixin, BaseBoosting):
    """Gradient boosting of classes.

    Trees are added one by one; each is fitted to the gradient of the loss at the scores so far. With more than two
    classes a round has one tree per class. The model is the same, bit for bit, for any number of threads and any kind
    of table.

    Parameters
    ----------
    loss : {"log_loss", "exponential"}, default="log_loss"
        Loss; the exponential one is AdaBoost's, for two classes.
    n_estimators : int, default=100
        Rounds.
    learning_rate : float, default=0.1
        What each tree's values are multiplied by.
    max_leaf_nodes : int or None, default=31
        Leaves of a tree.
    max_depth : int or None, default=None
        Depth of a tree.
    growth : {"leaf", "depth"}, default="leaf"
        Split the leaf that gains most next, or level by level.
    min_samples_leaf : int or float, default=20
        Rows that a leaf holds at least; a share of all rows if a float. Such a leaf also holds its share of the
        second derivatives: at least as much of the node's as so many of its rows have on average. (Where the mean
        weight is more than eight times the median, a row counts for the median there.)
    min_hessian_leaf : float, default=1e-3
        Sum of the loss's second derivatives that a leaf holds at least.
    min_gain : float, default=0.0
        Gain that a split brings at least: twice the loss that it saves, to second order.
    l2_regularization, l1_regularization : float, default=0.0
        Penalties on the leaves' values.
    max_step : float or None, default=None
        Largest absolute value of a leaf, before the learning rate.
    subsample : float, default=1.0
        Share of the rows drawn for each round.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Columns drawn for each node.
    max_features_per_level, max_features_per_tree : float, default=1.0
        Share of the columns drawn for each level of a tree, and for each tree.
    max_bins : int, default=255
        Bins of a number column; missing values have one of their own. With as many bins as values, splits are exact.
    max_one_hot : int, default=4
        Categories of a node up to which each is tried against the rest; more are sorted by their gradient.
    category_smoothing : float, default=10.0
        Added to the hessian of a category when they are sorted; those with fewer rows in a node stay together.
    category_l2 : float, default=10.0
        Penalty on the values of the sides of a split by sorted categories, when it is judged.
    monotonic_cst : array-like of int, dict or None, default=None
        1: the share of the second of two classes may not fall as the column rises; -1: not rise.
    interaction_cst : list of lists, {"pairwise", "no_interactions"} or None, default=None
        Columns that may meet on a path.
    init : {"constant", "zero"}, default="constant"
        Where scores start: at the constant that has the least loss (beside the ``offset``, if there is one), or at 0.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    early_stopping : bool, default=False
        Hold out rows, and stop when their loss no longer improves.
    scoring : str, callable or None, default=None
        Metric for early stopping and ``validation_score_``, as scikit-learn's scorers, which see predictions only;
        None: the loss.
    validation_fraction : float or int, default=0.1
        Rows held out, unless ``X_val`` is given to `fit`.
    n_iter_no_change : int, default=10
        Rounds without improvement before it stops.
    tol : float, default=1e-7
        What counts as an improvement.
    keep_best : bool, default=True
        Drop the rounds after the best one (with early stopping).
    categorical_features : array-like or None, default=None
        Columns to treat as categories besides those that are.
    unseen : {"missing", "error", "other"}, default="missing"
        What a category not seen in training becomes.
    warm_start : bool, default=False
        Add rounds to those of the last fit.
    verbose : int, default=0
        Show rounds, loss and time left.
    callbacks : callable, list of callables or None, default=None
        Called after each round with a dict (round, n_estimators, train_loss, validation_loss, seconds); one that
        returns True ends the fit.
    keep_interrupted : bool, default=False
        An interruption (Ctrl-C) ends the fit and keeps the rounds done, with a warning; else nothing is kept.
    random_state : int, RandomState or None, default=None
        Seed of the draws. Where neither rows nor columns are drawn, None gives the same model every time.
    n_jobs : int or None, default=None
        Threads; None: all that the process may use.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_iter_, n_estimators_ : int
        Rounds of the model.
    train_score_ : ndarray of shape (n_rounds,)
        Loss of the rows learned from after each round, those dropped by ``keep_best`` included.
    validation_score_ : ndarray of shape (n_rounds,)
        Loss of the held-out rows, or the metric's negative: smaller is better. Only where rows are held out.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the loss that the splits save.
    n_features_in_, feature_names_in_
        Columns.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> model = spinney.GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.predict(X[:2])
    array(['Adelie', 'Adelie'], dtype=object)
    """

    _is_class_target = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions({"log_loss", "exponential"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "init": [StrOptions({"constant", "zero"})],
    }

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        growth: str = "leaf",
        min_samples_leaf: int | float = 20,
        min_hessian_leaf: float = 1e-3,
        min_gain: float = 0.0,
        l2_regularization: float = 0.0,
        l1_regularization: float = 0.0,
        max_step: float | None = None,
        subsample: float = 1.0,
        max_features: int | float | str | None = None,
        max_features_per_level: float = 1.0,
        max_features_per_tree: float = 1.0,
        max_bins: int = 255,
        max_one_hot: int = 4,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        init: str = "constant",
        class_weight: Any = None,
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
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
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.growth = growth
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian_leaf = min_hessian_leaf
        self.min_gain = min_gain
        self.l2_regularization = l2_regularization
        self.l1_regularization = l1_regularization
        self.max_step = max_step
        self.subsample = subsample
        self.max_features = max_features
        self.max_features_per_level = max_features_per_level
        self.max_features_per_tree = max_features_per_tree
        self.max_bins = max_bins
        self.max_one_hot = max_one_hot
        self.category_smoothing = category_smoothing
        self.category_l2 = category_l2
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.init = init
        self.class_weight = class_weight
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

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        found = read_classes(y, n_rows)
        if found.n_outputs > 1:
            raise ValueError(
                "y has several outputs, and boosting takes one. Use sklearn.multioutput.MultiOutputClassifier."
            )
        if np.asarray(y).ndim == 2:
            column_or_1d(y, warn=True)
        classes = found.classes[0]
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class, {classes.tolist()[0]!r}: there is nothing to tell apart. Pass at least two "
                "classes."
            )
        if self.loss == "exponential" and len(classes) > 2:
            raise ValueError(f"loss='exponential' is for two classes; y has {len(classes)}. Use loss='log_loss'.")
        n_scores = 1 if len(classes) == 2 else len(classes)
        learned = {"_n_scores": n_scores, "classes_": classes, "n_classes_": len(classes)}
        return found.codes[:, 0].astype(np.float64), learned

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        codes = encode_labels(y, [learned["classes_"]], n_rows, name)[:, 0]
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            found = f"{np.asarray(y).ravel().tolist()[row]!r}, first in row {row}. Drop these rows"
            if name == "y":
                raise ValueError(f"y has a class that the model was not fitted on: {found}.")
            raise ValueError(f"{name} has a class that y does not have: {found}, or add some of the class to y.")
        return codes.astype(np.float64)

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        if self.class_weight is None:
            return weight
        if "_class_weight" not in learned:  # held-out rows count as the training rows do
            learned["_class_weight"] = self._read_class_weight(target.astype(np.intp), learned["classes_"])
        by_row = learned["_class_weight"][target.astype(np.intp)]
        return np.ascontiguousarray(by_row if weight is None else weight * by_row)

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
        return class_loss(self.loss, len(learned["classes_"]))

    def _best_constant(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        codes = rows.target.astype(np.intp)
        totals = np.bincount(codes, rows.weights(), max(2, n_scores)).astype(np.float64)
        if (totals == 0).any():
            raise ValueError(
                f"The class with index {int(np.argmin(totals))} in classes_ has no row of positive weight to learn "
                "from. Drop its rows, or give some of them a weight."
            )
        if n_scores == 1:
            return super()._best_constant(loss, rows, n_scores)
        used = rows.weights() > 0
        offset = None if rows.offset is None else rows.offset[:, used]
        return class_constants(totals, rows.weights()[used], offset)

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return view.labels(view.score_codes(scores), [np.asarray(learned["classes_"])])

    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats:
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
            Columns in the order of `classes_`.
        """
        scores = self._scores(X, offset)
        return self.boosting_.predicted(scores)

    def predict_log_proba(self, X: Any, *, offset: Any = None) -> Floats:
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
            return np.asarray(np.log(self.predict_proba(X, offset=offset)))

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

    def staged_predict_proba(self, X: Any, *, offset: Any = None) -> Iterator[Floats]:
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
            yield self.boosting_.predicted(scores)


class GradientBoostingRegressor(RegressorMixin, BaseBoosting):
    """Gradient boosting of values.

    Trees are added one by one; each is fitted to the gradient of the loss at the predictions so far. The model is the
    same, bit for bit, for any number of threads and any kind of table.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"}, \
            default="squared_error"
        Loss. Poisson, gamma and Tweedie model the logarithm of the mean.
    quantile : float, default=0.5
        The quantile to estimate (``loss="quantile"``).
    huber_share : float, default=0.9
        Share of the residuals that are squared (``loss="huber"``); those beyond count by their absolute value.
    tweedie_power : float, default=1.5
        Variance is mean to this power, between 1 and 2 (``loss="tweedie"``).
    n_estimators : int, default=100
        Rounds.
    learning_rate : float, default=0.1
        What each tree's values are multiplied by.
    max_leaf_nodes : int or None, default=31
        Leaves of a tree.
    max_depth : int or None, default=None
        Depth of a tree.
    growth : {"leaf", "depth"}, default="leaf"
        Split the leaf that gains most next, or level by level.
    min_samples_leaf : int or float, default=20
        Rows that a leaf holds at least; a share of all rows if a float. Such a leaf also holds its share of the
        second derivatives: at least as much of the node's as so many of its rows have on average. (Where the mean
        weight is more than eight times the median, a row counts for the median there.)
    min_hessian_leaf : float, default=1e-3
        Sum of the loss's second derivatives that a leaf holds at least.
    min_gain : float, default=0.0
        Gain that a split brings at least: twice the loss that it saves, to second order.
    l2_regularization, l1_regularization : float, default=0.0
        Penalties on the leaves' values.
    max_step : float or None, default=None
        Largest absolute value of a leaf, before the learning rate.
    subsample : float, default=1.0
        Share of the rows drawn for each round.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Columns drawn for each node.
    max_features_per_level, max_features_per_tree : float, default=1.0
        Share of the columns drawn for each level of a tree, and for each tree.
    max_bins : int, default=255
        Bins of a number column; missing values have one of their own. With as many bins as values, splits are exact.
    max_one_hot : int, default=4
        Categories of a node up to which each is tried against the rest; more are sorted by their gradient.
    category_smoothing : float, default=10.0
        Added to the hessian of a category when they are sorted; those with fewer rows in a node stay together.
    category_l2 : float, default=10.0
        Penalty on the values of the sides of a split by sorted categories, when it is judged.
    monotonic_cst : array-like of int, dict or None, default=None
        1: predictions may not fall as the column rises; -1: not rise.
    interaction_cst : list of lists, {"pairwise", "no_interactions"} or None, default=None
        Columns that may meet on a path.
    init : {"constant", "zero"}, default="constant"
        Where scores start: at the constant that has the least loss (beside the ``offset``, if there is one), or at 0.
    early_stopping : bool, default=False
        Hold out rows, and stop when their loss no longer improves.
    scoring : str, callable or None, default=None
        Metric for early stopping and ``validation_score_``, as scikit-learn's scorers, which see predictions only;
        None: the loss.
    validation_fraction : float or int, default=0.1
        Rows held out, unless ``X_val`` is given to `fit`.
    n_iter_no_change : int, default=10
        Rounds without improvement before it stops.
    tol : float, default=1e-7
        What counts as an improvement.
    keep_best : bool, default=True
        Drop the rounds after the best one (with early stopping).
    categorical_features : array-like or None, default=None
        Columns to treat as categories besides those that are.
    unseen : {"missing", "error", "other"}, default="missing"
        What a category not seen in training becomes.
    warm_start : bool, default=False
        Add rounds to those of the last fit.
    verbose : int, default=0
        Show rounds, loss and time left.
    callbacks : callable, list of callables or None, default=None
        Called after each round with a dict (round, n_estimators, train_loss, validation_loss, seconds); one that
        returns True ends the fit.
    keep_interrupted : bool, default=False
        An interruption (Ctrl-C) ends the fit and keeps the rounds done, with a warning; else nothing is kept.
    random_state : int, RandomState or None, default=None
        Seed of the draws. Where neither rows nor columns are drawn, None gives the same model every time.
    n_jobs : int or None, default=None
        Threads; None: all that the process may use.

    Attributes
    ----------
    n_iter_, n_estimators_ : int
        Rounds of the model.
    train_score_ : ndarray of shape (n_rounds,)
        Loss of the rows learned from after each round, those dropped by ``keep_best`` included.
    validation_score_ : ndarray of shape (n_rounds,)
        Loss of the held-out rows, or the metric's negative: smaller is better. Only where rows are held out.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the loss that the splits save.
    n_features_in_, feature_names_in_
        Columns.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.GradientBoostingRegressor(n_estimators=50).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions(set(NUMBER_LOSSES))],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "huber_share": [Interval(Real, 0.0, 1.0, closed="neither")],
        "tweedie_power": [Interval(Real, 1.0, 2.0, closed="neither")],
        "init": [StrOptions({"constant", "zero"})],
    }

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        quantile: float = 0.5,
        huber_share: float = 0.9,
        tweedie_power: float = 1.5,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        growth: str = "leaf",
        min_samples_leaf: int | float = 20,
        min_hessian_leaf: float = 1e-3,
        min_gain: float = 0.0,
        l2_regularization: float = 0.0,
        l1_regularization: float = 0.0,
        max_step: float | None = None,
        subsample: float = 1.0,
        max_features: int | float | str | None = None,
        max_features_per_level: float = 1.0,
        max_features_per_tree: float = 1.0,
        max_bins: int = 255,
        max_one_hot: int = 4,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        init: str = "constant",
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
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
        self.quantile = quantile
        self.huber_share = huber_share
        self.tweedie_power = tweedie_power
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.growth = growth
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian_leaf = min_hessian_leaf
        self.min_gain = min_gain
        self.l2_regularization = l2_regularization
        self.l1_regularization = l1_regularization
        self.max_step = max_step
        self.subsample = subsample
        self.max_features = max_features
        self.max_features_per_level = max_features_per_level
        self.max_features_per_tree = max_features_per_tree
        self.max_bins = max_bins
        self.max_one_hot = max_one_hot
        self.category_smoothing = category_smoothing
        self.category_l2 = category_l2
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.init = init
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

    @property
    def _loss_parameter(self) -> float:
        return {
            "quantile": self.quantile,
            "huber": self.huber_share,
            "tweedie": self.tweedie_power,
        }.get(self.loss, 0.0)

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return self._known_target(y, n_rows, {}), {"_n_scores": 1}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        values = read_values(y, n_rows, name)
        if values.shape[1] > 1:
            raise ValueError(
                f"{name} has several outputs, and boosting takes one. Use sklearn.multioutput.MultiOutputRegressor."
            )
        if np.asarray(y).ndim == 2:
            column_or_1d(y, warn=True)
        return np.ascontiguousarray(values[:, 0])

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        return weight

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        return regression_loss(self.loss, float(self.quantile), float(self.tweedie_power))

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return view.predicted(scores)[:, 0]
