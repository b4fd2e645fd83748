"""Metrics: scikit-learn's scorers by name, for fitted models and for predictions that are already made."""

from __future__ import annotations

import math
import time as clock
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Any

import numpy as np
from scipy.special import expit, stdtrit
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer, get_scorer_names, log_loss
from sklearn.utils import Tags

from spinney._data.types import Floats, TableLike
from spinney._evaluate.problem import Array, EstimatorLike, Rows
from spinney._model.predictions import METHODS

Scorer = Callable[..., float]  # called with an estimator, a table and its target
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


def read_metrics(scoring: Scoring) -> dict[str, Scorer]:
    """Return scorers by name; the first ranks the models."""
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    else:
        listed = [scoring] if isinstance(scoring, str) or callable(scoring) else () if scoring is None else scoring
        named = {one if isinstance(one, str) else getattr(one, "__name__", "score"): one for one in listed}
    if not named:
        raise ValueError("scoring is empty. Pass at least one metric, such as 'accuracy'.")
    return {str(name): _scorer(one) if isinstance(one, str) else one for name, one in named.items()}


def _scorer(name: str) -> Scorer:
    """Return a scikit-learn scorer by its name."""
    try:
        scorer: Scorer = get_scorer(name)
        return scorer
    except ValueError:
        known = get_scorer_names()
        close = [other for other in known if name and name.lower() in other] or get_close_matches(name.lower(), known)
        meant = f"Did you mean {close[0]!r}?" if close else "Try 'accuracy', 'neg_log_loss', 'roc_auc' or 'r2'."
        raise ValueError(f"There is no metric {name!r}. {meant} Names are those of scikit-learn's scorers.") from None


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
        self, model: EstimatorLike, X: TableLike, y: Array, weight: Floats | None, error_score: float | str
    ) -> tuple[dict[str, float], dict[str, str], float]:
        """Return scores and errors of a fitted model by metric, and the seconds of its first prediction.

        Probabilities, decisions and classes are predicted once each.
        """
        seconds = cache_predictions(model)
        params = {} if weight is None else {"sample_weight": weight}
        scores, errors = dict[str, float](), dict[str, str]()
        for metric, scorer in self.metrics.items():
            try:
                scores[metric] = float(scorer(model, X, y, **params))
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
        if metric in ("roc_auc_ovr", "roc_auc_ovo") and self.classes is not None and not np.isin(self.classes, y).all():
            return float("nan")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)  # the score is NaN
                return self._scored(metric, predictions, y)
        except ValueError:
            return float("nan")

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
        without = np.array([self.score(metric, predictions[block != b], y[block != b]) for b in range(n_blocks)])
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
    if metric not in get_scorer_names() or function is not getattr(get_scorer(metric), "_score_func", None):
        return -np.inf, np.inf
    return next((bounds for part, bounds in _BOUNDED_METRICS.items() if part in metric), (-np.inf, np.inf))


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
