"""Metrics by name, scikit-learn's and others, for fitted models and for predictions that are already made."""

from __future__ import annotations

import math
import time as clock
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Self

import numpy as np
from scipy.special import expit, stdtrit
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    get_scorer,
    get_scorer_names,
    log_loss,
    mean_pinball_loss,
    roc_auc_score,
)
from sklearn.utils import Tags

from spinney._data.display import nearest_name
from spinney._data.types import Floats, TableLike
from spinney._estimator.metrics import (
    ClassMetric,
    Scorer,
    check_predicts,
    check_suits,
    in_label_order,
    metric_key,
    scorer_of,
)
from spinney._evaluate.problem import Array, EstimatorLike, Problem, Rows
from spinney._evaluate.row_scores import KNOWN, RowScores
from spinney._model.predictions import METHODS

Scoring = str | Scorer | Sequence[str | Scorer] | Mapping[str, str | Scorer] | None  # argument of callers
_MOST_CHECKED = 1000  # rows to check whether a metric suits a target
_MOST_BLOCKS = 20  # of the jackknife
_FEWEST_BLOCKS = 5
_BOUNDED_METRICS = {  # lower and upper bound, by a part of scikit-learn's name; negated losses are at most 0
    **dict.fromkeys(("accuracy", "roc_auc", "average_precision", "f1", "jaccard", "precision", "recall"), (0.0, 1.0)),
    "matthews_corrcoef": (-1.0, 1.0),
    **dict.fromkeys(("r2", "explained_variance", "d2_"), (-np.inf, 1.0)),
    "neg_": (-np.inf, 0.0),
}


DEFAULT_METRICS = {
    "binary": ["neg_log_loss", "roc_auc", "accuracy"],
    "multiclass": ["neg_log_loss", "accuracy"],
    "regression": ["neg_root_mean_squared_error", "r2"],
}


def read_metrics(scoring: Scoring, classes: Array | None = None, positive: object = None) -> dict[str, Scorer]:
    """Return scorers by name; the first ranks the models.

    Parameters
    ----------
    scoring : str, callable, list or dict of these
        Names of scikit-learn's scorers, with or without "neg_", short names such as "auc" and "rmse", "lift" and
        "quantile_loss_0.9"; or scorers.
    classes : ndarray, optional
        Labels; None for regression.
    positive : label, optional
        The class of f1, precision, recall, average precision and lift. None: the mean of all classes.
    """
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    else:
        listed = [scoring] if isinstance(scoring, str) or callable(scoring) else () if scoring is None else scoring
        keys = [
            metric_key(one, classes) if isinstance(one, str) else getattr(one, "__name__", "score") for one in listed
        ]
        if len(set(keys)) < len(keys):
            raise ValueError(f"scoring has several metrics of the same name ({', '.join(keys)}). Pass a dict of names.")
        named = dict(zip(keys, listed, strict=True))
    if not named:
        raise ValueError("scoring is empty. Pass at least one metric, such as 'accuracy'.")
    return {str(name): _read_metric(one, classes, positive) for name, one in named.items()}


def _read_metric(metric: str | Scorer, classes: Array | None, positive: object) -> Scorer:
    if not isinstance(metric, str):
        return metric
    key = metric_key(metric, classes)
    check_suits(metric, key, classes)
    return scorer_of(key, classes, positive)


def positive_class(classes: Array, codes: Rows, positive: object = None) -> tuple[Any, str]:
    """Return the positive one of two classes, and why: the named one, 1 of 0 and 1 (or -1), or else the rarer one.

    Raises
    ------
    ValueError
        If the target has no such class.
    """
    labels = classes.tolist()
    if positive is not None:
        by_text = {str(label): label for label in labels}
        found = positive if positive in labels else by_text.get(str(positive))
        if found is None:
            raise ValueError(
                f"positive: the target has no class {positive!r}. {nearest_name(str(positive), list(by_text))}"
            )
        return found, "as requested"
    if set(labels) in ({0, 1}, {-1, 1}):
        return labels[1], "the larger label"
    counts = np.bincount(codes, minlength=2)
    k = int(counts[1] <= counts[0])
    return labels[k], f"the rarer one, {counts[k] / counts.sum():.1%} of the rows"


def is_loss(metric: str) -> bool:
    """Return whether a scorer is a negated loss."""
    return metric.startswith("neg_")


def shown_name(metric: str) -> str:
    """Return the name of a metric as shown: losses without the prefix of negated scorers."""
    return metric.removeprefix("neg_")


def shown_value(metric: str, value: float) -> float:
    """Return the value of a metric as shown: losses are positive."""
    return -value if is_loss(metric) else value


class StoredPredictions(BaseEstimator):
    """A fitted model that returns stored predictions; its input is the row numbers.

    Parameters
    ----------
    predictions : ndarray of shape (n_rows, n_classes) or (n_rows, 1)
        Class probabilities, or numbers.
    classes : ndarray, optional
        Labels; None for regression.
    """

    def __init__(self, predictions: Floats, classes: Array | None = None) -> None:
        self.predictions = predictions
        self.classes = classes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes is None else "classifier"
        return tags

    @property
    def classes_(self) -> Array:
        """Labels of the classes."""
        return np.asarray(self.classes)

    def predict_proba(self, X: Rows) -> Floats:
        """Return the probabilities of some rows."""
        return self.predictions[X[:, 0]]

    def predict(self, X: Rows) -> Array:
        """Return the most probable classes, or the numbers, of some rows."""
        rows = self.predictions[X[:, 0]]
        return rows[:, 0] if self.classes is None else np.asarray(self.classes_[rows.argmax(axis=1)])


@dataclass(frozen=True)
class TestScore:
    """A score on the test set, and its 95% interval."""

    __test__ = False  # not a test

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scorers:
    """The metrics of an evaluation.

    Attributes
    ----------
    metrics : dict of str to scorer
        The first ranks the models.
    classes : ndarray or None
        Labels; None for regression.
    """

    metrics: dict[str, Scorer]
    classes: Array | None
    note: str = ""  # on the positive class

    @classmethod
    def of(cls, scoring: Scoring, problem: Problem, positive: object = None) -> Self:
        """Return the metrics of a target; None: the default ones. `positive` is the class of metrics such as f1."""
        scoring = DEFAULT_METRICS[problem.task] if scoring is None else scoring
        classes, label, why = problem.classes, None, ""
        if classes is None or problem.codes is None:
            if positive is not None:
                raise ValueError("positive names a class, but the target is numeric. Leave it out.")
        elif positive is not None or len(classes) == 2:
            label, why = positive_class(classes, problem.codes, positive)
        metrics = read_metrics(scoring, classes, label)
        of_class = [shown_name(name) for name, one in metrics.items() if isinstance(one, ClassMetric)]
        of_class = [name for name in of_class if name != "brier_score"]
        note = f"Positive class of {', '.join(of_class)}: {str(label)!r}, {why}." if of_class and why else ""
        return cls(metrics, classes, note)

    def check(self, y: Array, codes: Rows | None, target: str, defaults: Sequence[str]) -> None:
        """Raise an error for metrics that cannot score the target, by scoring a constant prediction."""
        rows = np.arange(min(len(y), _MOST_CHECKED))
        if codes is None or self.classes is None:
            some = y[rows]
            constant = np.full((len(some), 1), y.mean())
        else:
            some = y[np.union1d(rows, np.unique(codes, return_index=True)[1])]  # all classes
            constant = np.full((len(some), len(self.classes)), 1 / len(self.classes))
        for name in self.metrics:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._scored(name, constant, some)
            except (ValueError, TypeError) as error:
                why, others = " ".join(str(error).split()).rstrip("."), ", ".join(map(repr, defaults))
                raise ValueError(
                    f"scoring: {name!r} cannot score the target {target!r} ({why}). Try {others}."
                ) from error

    def score_model(
        self,
        model: EstimatorLike,
        X: TableLike,
        y: Array,
        weight: Floats | None,
        error_score: float | str,
        by_code: bool,
    ) -> tuple[dict[str, float], dict[str, str], float]:
        """Return scores and errors of a fitted model by metric, and the seconds of its first prediction.

        Probabilities, decisions and classes are predicted once each.
        """
        seconds = cache_predictions(model)
        params = {} if weight is None else {"sample_weight": weight}
        scores, errors = dict[str, float](), dict[str, str]()
        for metric, scorer in self.metrics.items():
            try:
                check_predicts(shown_name(metric), scorer, model)
                codes = {"by_code": by_code} if isinstance(scorer, ClassMetric) else {}
                scores[metric] = float(scorer(*in_label_order(model, X), y, **params, **codes))
            except Exception as error:
                if error_score == "raise":
                    raise
                scores[metric], errors[metric] = float(error_score), describe_error(error)
        return scores, errors, seconds[0] if seconds else float("nan")

    def scores(self, predictions: Floats, y: Array) -> dict[str, float]:
        """Return the scores of predictions by metric; NaN for undefined ones."""
        return {name: self.score(name, predictions, y) for name in self.metrics}

    def score(self, metric: str, predictions: Floats, y: Array) -> float:
        """Return the score of predictions by one metric."""
        of_rows = self._of_rows(metric, predictions, y)
        if of_rows is not None:
            return of_rows.score()
        if metric in ("roc_auc_ovr", "roc_auc_ovo") and self.classes is not None and not np.isin(self.classes, y).all():
            return self._auc_of_present(predictions, y) if metric == "roc_auc_ovr" else float("nan")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)  # the score is NaN
                return self._scored(metric, predictions, y)
        except ValueError:
            return float("nan")

    def scores_without(self, metric: str, predictions: Floats, y: Array, block: Rows, n_blocks: int) -> Floats:
        """Return the scores of predictions without the rows of each block."""
        of_rows = self._of_rows(metric, predictions, y)
        if of_rows is not None:
            return of_rows.without_blocks(block, n_blocks)
        return np.array([self.score(metric, predictions[block != b], y[block != b]) for b in range(n_blocks)])

    def _of_rows(self, metric: str, predictions: Floats, y: Array) -> RowScores | None:
        """Return the predictions as losses of rows, if the metric is one of scikit-learn's that allow it."""
        if metric not in KNOWN or not _is_standard(metric, self.metrics[metric]):
            return None
        return RowScores.of(metric, predictions, y, self.classes)

    def _auc_of_present(self, predictions: Floats, y: Array) -> float:
        """Return the mean area under the ROC curve of the classes that are in y, each against the others."""
        present = [(k, label) for k, label in enumerate(np.asarray(self.classes)) if (y == label).any()]
        if len(present) < 2:
            return float("nan")
        return float(np.mean([roc_auc_score(y == label, predictions[:, k]) for k, label in present]))

    def with_interval(
        self, metric: str, predictions: Floats, y: Array, seed: int, groups: Array | None = None
    ) -> TestScore:
        """Return the score of predictions, with a 95% interval by the jackknife over blocks of rows.

        Rows of one group are in the same block. Few rows give a skewed distribution of the score: the interval is
        symmetric on the logit scale for scores between 0 and 1, and on the logarithmic scale for losses and for 1 - R².
        """
        value = self.score(metric, predictions, y)
        units = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
        n_units = int(units.max()) + 1
        n_blocks = min(_MOST_BLOCKS, n_units)
        if n_blocks < _FEWEST_BLOCKS:
            return TestScore(value, float("nan"), float("nan"))
        block = (np.random.RandomState(seed).permutation(n_units) % n_blocks)[units]
        without = self.scores_without(metric, predictions, y, block, n_blocks)
        error = float(np.sqrt((n_blocks - 1) / n_blocks * ((without - without.mean()) ** 2).sum()))
        quantile = float(stdtrit(n_blocks - 1, 0.975))
        return TestScore(value, *_interval(_bounds(metric, self.metrics[metric]), value, error, quantile, n_units))

    def _scored(self, metric: str, predictions: Floats, y: Array) -> float:
        """Call a scorer; log loss gets all classes, since a fold may lack one."""
        scorer: Any = self.metrics[metric]
        if self.classes is not None and getattr(getattr(scorer, "_score_func", None), "__name__", "") == "log_loss":
            return float(scorer._sign * log_loss(y, predictions, labels=self.classes))
        rows = np.arange(len(predictions))[:, np.newaxis]
        return float(scorer(StoredPredictions(predictions, self.classes), rows, y))


def _bounds(metric: str, scorer: Scorer) -> tuple[float, float]:
    """Return the lowest and the highest value of a scorer; infinite for functions of the caller."""
    function = getattr(scorer, "_score_func", None)
    is_own = isinstance(scorer, ClassMetric) or function is mean_pinball_loss
    if not is_own and not _is_standard(metric, scorer):
        return -np.inf, np.inf
    return next((bounds for part, bounds in _BOUNDED_METRICS.items() if part in metric), (-np.inf, np.inf))


def _is_standard(metric: str, scorer: Scorer) -> bool:
    """Return whether a scorer is scikit-learn's of that name, not a function of the caller."""
    function = getattr(scorer, "_score_func", None)
    return metric in get_scorer_names() and function is getattr(get_scorer(metric), "_score_func", None)


def _interval(bounds: tuple[float, float], value: float, error: float, quantile: float, n: int) -> tuple[float, float]:
    """Return value ± quantile * error: on the logit scale between two bounds, on the logarithmic scale below one.

    Between two bounds one success and one failure are added to n, as a score at a bound has no error.
    """
    low, high = bounds
    if math.isnan(error) or math.isinf(high) or value >= high > low == -np.inf:
        return value - quantile * error, value + quantile * error
    if math.isinf(low):
        factor = math.exp(quantile * error / (high - value))
        return high - (high - value) * factor, high - (high - value) / factor
    fraction = ((value - low) / (high - low) * n + 1) / (n + 2)
    error = math.hypot(error / (high - low), fraction - (value - low) / (high - low))
    reach = quantile * error / (fraction * (1 - fraction))
    ends = [expit(math.log(fraction / (1 - fraction)) + sign * reach) for sign in (-1, 1)]
    return min(value, low + (high - low) * ends[0]), max(value, low + (high - low) * ends[1])


def cache_predictions(model: EstimatorLike) -> list[float]:
    """Make a model compute each kind of prediction once; return the list that gets the seconds of these calls."""
    seconds: list[float] = []

    def cached(predict: Callable[..., Array]) -> Callable[..., Array]:
        results: list[Array] = []

        @wraps(predict)
        def call(*args: Any, **kwargs: Any) -> Array:
            if not results:
                start = clock.perf_counter()
                results.append(predict(*args, **kwargs))
                seconds.append(clock.perf_counter() - start)
            return results[0]

        return call

    for method in METHODS:
        if hasattr(model, method):
            setattr(model, method, cached(getattr(model, method)))
    return seconds


def describe_error(error: BaseException) -> str:
    """Return an error as one line of text."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
