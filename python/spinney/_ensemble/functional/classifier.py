"""Functional boosting of classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, StrOptions

from spinney._boosting.losses.rows import LearningRows
from spinney._ensemble.functional.functional import BaseFunctionalBoosting, Floats
from spinney._ensemble.functional.losses import FunctionalLoss, make_loss
from spinney._ensemble.functional.shapes import WithShapes
from spinney._estimator.class_scores import ScoresClasses
from spinney._estimator.single_target import known_codes, read_one_class
from spinney._model.functional.model import FittedFunctions


class FunctionalBoostingClassifier(WithShapes, ScoresClasses, ClassifierMixin, BaseFunctionalBoosting):
    """Boosting of any weak learners, for any loss of classes.

    Scores start at the constants of least loss. Each round fits every weak learner to the negative slopes of the loss
    by least squares, takes the one that explains most, finds how far to go, and adds that, times the learning rate.
    With more than two classes there is a score for each, and a round adds a function to every one of them.

    Parameters
    ----------
    learners : str, weak learner, regressor, or list of these, default="stumps"
        What is fitted to the slopes of the loss; of several, the one that explains most of them in a round. By name:
        "stumps", "trees" (of depth 3), "linear", "linear_pairs", "logistic", "logistic_pairs", "splines", "neighbors",
        "kernel_ridge". With other settings: the classes of `spinney.learners`. Any regressor with ``fit`` and
        ``predict`` will do.
    loss : {"log_loss", "exponential"} or object, default="log_loss"
        The loss to minimise; "exponential" is for two classes. Or a loss of your own for two classes: an object with
        ``loss(y, f)`` and ``gradient(y, f)``, which are given -1 or 1 and the score of each row and return a number
        each; it may have a ``link``, "logit" (the default) or "half_logit".
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
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_classes_ : int
        Number of classes.
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
    FunctionalBoostingRegressor : The same for numbers.
    GradientBoostingClassifier : Boosted trees, much faster and with more options.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("splines", n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseFunctionalBoosting._parameter_constraints,
        "loss": [StrOptions({"log_loss", "exponential"}), HasMethods(["loss", "gradient"]), callable],
    }
    _is_class_target = True

    def __init__(
        self,
        learners: Any = "stumps",
        *,
        loss: Any = "log_loss",
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
        codes, classes = read_one_class(y, n_rows, "boosting")
        if isinstance(self.loss, str) and self.loss == "exponential" and len(classes) > 2:
            raise ValueError(f"loss='exponential' is for two classes; y has {len(classes)}. Use loss='log_loss'.")
        n_scores = 1 if len(classes) == 2 else len(classes)
        return codes, {"_n_scores": n_scores, "classes_": classes, "n_classes_": len(classes)}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str) -> Floats:
        return known_codes(y, learned["classes_"], n_rows, name)

    def _check_rows(self, rows: LearningRows) -> None:
        used = rows.target[rows.weights() > 0]
        lost = sorted(set(rows.target.tolist()) - set(used.tolist()))
        if lost:
            raise ValueError(
                f"The class with index {int(lost[0])} in classes_ has no row of positive weight to learn from. Drop "
                "its rows, or give some of them a weight."
            )

    def _make_loss(self, learned: dict[str, Any]) -> FunctionalLoss:
        return make_loss(self.loss, {}, len(learned["classes_"]))

    def _predicted(self, scores: Floats, view: FittedFunctions, learned: dict[str, Any]) -> NDArray[Any]:
        return view.labels(view.score_codes(scores), [np.asarray(learned["classes_"])])

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            As `decision_function`.
        """
        inputs = self._inputs(X)
        for scores in self.functions_.staged_scores(inputs):
            yield scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        inputs = self._inputs(X)
        for scores in self.functions_.staged_scores(inputs):
            yield self.functions_.predicted(scores)
