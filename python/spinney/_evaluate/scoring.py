"""Metrics: scikit-learn's scorers by name, for fitted models and for predictions that are already made."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Any

import numpy as np
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
_N_GROUPS = 20  # of the jackknife
_T_975 = 2.0930240544082634  # 97.5 % quantile of the t distribution with 19 degrees of freedom


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

    def with_interval(self, metric: str, predictions: Floats, y: Array, seed: int) -> TestScore:
        """Return the score of predictions, with an interval by the jackknife over twenty groups of rows."""
        value = self.score(metric, predictions, y)
        n = len(y)
        if n < 2 * _N_GROUPS:
            return TestScore(value, float("nan"), float("nan"))
        group = np.random.RandomState(seed).permutation(n) % _N_GROUPS
        without = np.array([self.score(metric, predictions[group != g], y[group != g]) for g in range(_N_GROUPS)])
        error = float(np.sqrt((_N_GROUPS - 1) / _N_GROUPS * ((without - without.mean()) ** 2).sum()))
        most = 0.0 if is_loss(metric) else 1.0  # largest value of any scorer
        return TestScore(value, value - _T_975 * error, min(value + _T_975 * error, max(most, value)))

    def _scored(self, metric: str, predictions: Floats, y: Array) -> float:
        """Call a scorer; log loss gets all classes, since a fold may lack one."""
        scorer: Any = self.metrics[metric]
        if self.classes is not None and getattr(getattr(scorer, "_score_func", None), "__name__", "") == "log_loss":
            return float(scorer._sign * log_loss(y, predictions, labels=self.classes))
        rows = np.arange(len(predictions))[:, np.newaxis]
        return float(scorer(StoredPredictions(predictions, self.classes), rows, y))


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
