"""Functional boosting of values."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._boosting.losses.loss import NUMBER_LOSSES
from spinney._ensemble.functional.functional import BaseFunctionalBoosting, Floats
from spinney._ensemble.functional.losses import FunctionalLoss, make_loss
from spinney._ensemble.functional.shapes import WithShapes
from spinney._estimator.single_target import read_one_value
from spinney._model.functional.model import FittedFunctions


class FunctionalBoostingRegressor(WithShapes, RegressorMixin, BaseFunctionalBoosting):
    """Boosting of any weak learners, for any loss of a number.

    Scores start at the constant of least loss. Each round fits every weak learner to the negative slopes of the loss by
    least squares, takes the one that explains most, finds how far to go, and adds that, times the learning rate.

    Parameters
    ----------
    learners : str, weak learner, regressor, or list of these, default="stumps"
        What is fitted to the slopes of the loss; of several, the one that explains most of them in a round. By name:
        "stumps", "trees" (of depth 3), "linear", "linear_pairs", "logistic", "logistic_pairs", "splines", "neighbors",
        "kernel_ridge". With other settings: the classes of `spinney.learners`. Any regressor with ``fit`` and
        ``predict`` will do.
    loss : {"squared_error", "absolute_error", "huber", "log_cosh", "quantile", "poisson", "gamma", "tweedie"} or \
            object, default="squared_error"
        The loss to minimise. Or a loss of your own: an object with ``loss(y, f)`` and ``gradient(y, f)``, which are
        given target and score of each row and return a number each; it may have a ``link``, "identity" (the default) or
        "log".
    quantile : float, default=0.5
        The quantile to estimate, with ``loss="quantile"``. scikit-learn's name, ``alpha``, is understood too.
    huber_share : float, default=0.9
        With ``loss="huber"`` or ``"log_cosh"``: share of the residuals that are squared. Larger ones count by their
        absolute value. scikit-learn's name, ``alpha``, is understood too.
    tweedie_power : float, default=1.5
        With ``loss="tweedie"``: the variance is the mean to this power, between 1 and 2.
    n_estimators : int, default=100
        Number of rounds.
    learning_rate : float, default=0.1
        Factor by which each step is multiplied.
    step : {"line_search", "fixed"}, default="line_search"
        How far a round goes along the function that it has fitted: to where the loss is least, or once its length. Both
        are then multiplied by the learning rate.
    subsample : float, default=1.0
        Share of the rows drawn for each round.
    early_stopping : bool or None, default=False
        Whether to hold out rows, and to stop when their loss no longer improves. None: if ``n_iter_no_change`` is
        given.
    scoring : str, callable or None, default=None
        The metric of early stopping and of ``validation_score_``: the name of a scikit-learn scorer, or a function of
        (model, held-out rows as they were given, their targets). None: the loss.
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
    verbose : int, default=0
        1 reports rounds done, loss and time left to standard error.
    callbacks : callable, list of callables or None, default=None
        Called after each round with a dict (round, n_estimators, train_loss, validation_loss, seconds). One that
        returns True ends the fit.
    keep_interrupted : bool, default=False
        Whether an interruption (Ctrl-C) ends the fit with a warning and keeps the rounds done. False: it raises, and
        nothing is kept.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random: rows of a round, rows held out, rows that a learner remembers.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    functions_ : FittedFunctions
        What predicts: a start, and functions that are added to it.
    learners_ : list of str
        Names of the weak learners.
    chosen_ : list of dict
        What each round has added: the learner, its columns, and the factor.
    n_iter_ : int
        Number of rounds in the model.
    steps_ : ndarray of shape (n_rounds,)
        How far each round went, before the learning rate.
    gains_ : ndarray of shape (n_rounds,)
        Squared slopes that each round's functions explain.
    train_score_ : ndarray of shape (n_rounds,)
        Loss on the training rows after each round, including rounds that ``keep_best`` dropped.
    validation_score_ : ndarray of shape (n_rounds,)
        If rows were held out: their loss after each round, or the metric with its sign changed, so that smaller is
        always better.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the squared slopes that the functions explain; columns of one step share alike.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    FunctionalBoostingClassifier : The same for classes.
    GradientBoostingRegressor : Boosted trees, much faster and with more options.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x), float(x % 7 > 3)] for x in range(100)]
    >>> y = [3 * x + 5 * z for x, z in X]
    >>> model = spinney.FunctionalBoostingRegressor(["stumps", "linear"], n_estimators=20).fit(X, y)
    >>> model.chosen_[0]["learner"]
    'linear'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseFunctionalBoosting._parameter_constraints,
        "loss": [StrOptions(set(NUMBER_LOSSES) - {"normal"}), HasMethods(["loss", "gradient"]), callable],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "huber_share": [Interval(Real, 0.0, 1.0, closed="neither")],
        "tweedie_power": [Interval(Real, 1.0, 2.0, closed="neither")],
    }

    def __init__(
        self,
        learners: Any = "stumps",
        *,
        loss: Any = "squared_error",
        quantile: float = 0.5,
        huber_share: float = 0.9,
        tweedie_power: float = 1.5,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        step: str = "line_search",
        subsample: float = 1.0,
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.learners = learners
        self.loss = loss
        self.quantile = quantile
        self.huber_share = huber_share
        self.tweedie_power = tweedie_power
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.step = step
        self.subsample = subsample
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.keep_best = keep_best
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.verbose = verbose
        self.callbacks = callbacks
        self.keep_interrupted = keep_interrupted
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return self._known_target(y, n_rows, {}, "y"), {"_n_scores": 1}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str) -> Floats:
        return read_one_value(y, n_rows, "boosting", name)

    def _make_loss(self, learned: dict[str, Any]) -> FunctionalLoss:
        parameters = {"quantile": self.quantile, "huber": self.huber_share, "tweedie": self.tweedie_power}
        return make_loss(self.loss, {name: float(value) for name, value in parameters.items()}, None)

    def _predicted(self, scores: Floats, view: FittedFunctions, learned: dict[str, Any]) -> NDArray[Any]:
        return view.predicted(scores)[:, 0]
