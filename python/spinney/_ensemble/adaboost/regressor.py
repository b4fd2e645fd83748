"""AdaBoost of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.metrics import get_scorer, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

import spinney._engine as _engine
from spinney._boosting.losses.rows import LearningRows
from spinney._data import Schema
from spinney._data.select import pick_table
from spinney._ensemble.adaboost.adaboost import BaseAdaBoost, Say
from spinney._ensemble.adaboost.rules import R2Rule
from spinney._ensemble.weak import WeakLearner
from spinney._estimator.single_target import read_one_value
from spinney._model.adaboost_r2 import FittedMedian, weighted_medians
from spinney._tree.regressor import DecisionTreeRegressor

Floats = NDArray[np.float64]


class AdaBoostRegressor(RegressorMixin, BaseAdaBoost):
    """Regressors fitted one after the other, each looking at the rows that the earlier ones were far off.

    AdaBoost.R2. A member's error is the mean of the rows' losses, each as a share of the largest; the prediction is the
    median of the members' predictions by their weights. Members that take weights get them, where the original draws
    samples; ``resample=True`` does as the original.

    Parameters
    ----------
    estimator : estimator, optional
        What members are clones of: anything with `fit` and `predict`. None: a decision tree of spinney of depth
        `max_depth`. Plain decision trees of spinney read the table once for all rounds.
    n_estimators : int, default=50
        Most rounds.
    loss : {"linear", "square", "exponential"}, default="linear"
        How a row's distance from its value, as a share of the largest, counts: as it is, squared, or as 1 -
        exp(-distance).
    learning_rate : float, default=1.0
        Factor by which the weight of each member is multiplied.
    max_depth : int, default=3
        Depth of the trees, if `estimator` is None. 1: stumps, of one split each.
    resample : bool, default=False
        Whether to fit members to rows drawn by their weights. False: members that take ``sample_weight`` get the
        weights, and only others are fitted to such samples.
    early_stopping : bool or None, default=False
        Whether to hold out rows, and to stop when their loss no longer improves. None: if ``n_iter_no_change`` is
        given.
    scoring : str, callable or None, default=None
        The metric of early stopping and of ``validation_score_``: the name of a scikit-learn scorer, or a function of
        (model, held-out rows as they were given, their targets). None: the share of wrong rows, or the mean squared
        error.
    validation_fraction : float or int, default=0.1
        Share or number of rows to hold out, unless `fit` is given ``X_val``.
    n_iter_no_change : int or None, default=10
        Rounds without an improvement after which early stopping ends the fit. None: 10.
    tol : float, default=1e-7
        By how much the loss must fall to count as an improvement.
    keep_best : bool, default=True
        Whether early stopping drops the rounds after the best one.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        follows the larger branch.
    random_state : int, RandomState or None, default=None
        Seed of held-out rows, samples, and the random states of the members. Without effect where nothing is drawn.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.
    verbose : int, default=0
        1 reports rounds done, errors, time left and why rounds ended to standard error: in one line on a terminal,
        elsewhere in about ten lines. 2 reports every round, in a line of its own unless on a terminal.

    Attributes
    ----------
    estimator_ : estimator
        What was cloned for each member.
    estimators_ : sequence of estimators
        The members, in the order of the rounds; where each class has members of its own, by round and class.
    adaboost_ : FittedAdaBoost or FittedMedian
        The members as one model, if they are plain trees of spinney; `schema_` and `max_features_` are there with it.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    max_features_ : int
        Number of columns tried at each node.
    n_iter_ : int
        Number of rounds in the model.
    stopped_ : str
        Why there are no more rounds: "done" (as many as asked for), "perfect" (the last member makes no mistake, and
        outvotes all others), "chance" (the next one would be no better than a guess) or "settled" (early stopping).
    estimator_errors_ : ndarray of shape (n_rounds,)
        Mean loss of each member by the rows' weights, as a share of the largest.
    estimator_weights_ : ndarray of shape (n_rounds,)
        Weight of each member in the median: the learning rate times log((1 - ε) / ε).
    normalizers_ : ndarray of shape (n_rounds,)
        What the rows' weights add up to after each round, before they are divided by it.
    validation_score_ : ndarray of shape (n_rounds,)
        If rows were held out: their error after each round, or the metric with its sign changed, so that smaller is
        always better.
    feature_importances_ : ndarray of shape (n_features,)
        Mean of the members' importances by their weights, if they have any.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    GradientBoostingRegressor : Boosts any loss, and is usually more accurate.

    References
    ----------
    H. Drucker (1997). Improving regressors using boosting techniques. International Conference on Machine Learning,
    107-115.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.AdaBoostRegressor(n_estimators=50).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 1)
    0.3
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseAdaBoost._parameter_constraints,
        "loss": [StrOptions({"linear", "square", "exponential"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 50,
        *,
        loss: str = "linear",
        learning_rate: float = 1.0,
        max_depth: int = 3,
        resample: bool = False,
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.resample = resample
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.keep_best = keep_best
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------------

    def _default_estimator(self) -> Any:
        return DecisionTreeRegressor(max_depth=self.max_depth)

    def _check_member(self, template: Any) -> None:
        if is_classifier(template):
            raise ValueError(f"AdaBoost of numbers needs regressors, and {type(template).__name__} is a classifier.")

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return read_one_value(y, n_rows, "AdaBoost"), {}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any]) -> Floats:
        return read_one_value(y, n_rows, "AdaBoost", "y_val")

    def _make_rule(self, rows: LearningRows, learned: dict[str, Any]) -> R2Rule:
        return R2Rule(rows.target, rows.weights(), self.loss, float(self.learning_rate))

    def _of_rule(self, rule: R2Rule) -> dict[str, Any]:
        return {}

    def _known_rule(self, learned: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _members_of_round(self, learned: dict[str, Any]) -> int:
        return 1

    def _member_classes(self, learned: dict[str, Any]) -> NDArray[Any] | None:
        return None

    def _say(self, learner: WeakLearner) -> Say:
        return learner.values

    def _held_out_loss(
        self, held: LearningRows, rule: R2Rule, learned: dict[str, Any]
    ) -> Callable[[list[NDArray[Any]], float], float]:
        values: list[Floats] = []
        weights: list[float] = []
        used = held.weights() > 0
        y, weight = held.target[used], held.weights()[used]
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        X = pick_table(held.given).take(np.flatnonzero(used)) if callable(self.scoring) else np.arange(len(y))

        def loss(said: list[NDArray[Any]], member_weight: float) -> float:
            values.append(said[0][used])
            weights.append(member_weight)
            predicted = weighted_medians(np.column_stack(values), np.array(weights))
            if scorer is None:
                return float(np.average((predicted - y) ** 2, weights=weight))
            weighted = {} if (weight == weight[0]).all() else {"sample_weight": weight}
            return -float(scorer(_HeldOutValues(predicted), X, y, **weighted))

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, rule: R2Rule, schema: Schema) -> FittedMedian:
        return FittedMedian(trees, weights)

    def _advice_on_chance(self) -> str:
        return "Use members that learn more, such as deeper trees, or loss='square'."

    # ---- using ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Floats:
        """Weighted median of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        check_is_fitted(self)
        if self._has_trees:
            model: Any = self._fitted
            return self._by_blocks(X, lambda columns: model.predictions(columns, self._n_threads))[:, 0]
        return weighted_medians(np.column_stack([said[0] for said, _ in self._by_round(X)]), self.estimator_weights_)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Values.
        """
        values: list[Floats] = []
        for said, _ in self._by_round(X):
            values.append(said[0])
            yield weighted_medians(np.column_stack(values), self.estimator_weights_[: len(values)])

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """R² after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their values.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Yields
        ------
        float
            R².
        """
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))


class _HeldOutValues(RegressorMixin, BaseEstimator):
    """Looks to a scorer like a fitted regressor; the predictions of the held-out rows are known."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def predict(self, X: Any) -> Floats:
        """Return the values of the held-out rows."""
        if _num_samples(X) != len(self.values):
            raise ValueError(
                "scoring asks for predictions of other rows than those held out. Predict the rows that it is given, "
                "as a whole."
            )
        return self.values
