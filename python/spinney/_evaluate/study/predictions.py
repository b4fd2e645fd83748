"""Predictions that are already made, judged as if a model made them: so that any scorer can be used."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning

Floats = NDArray[np.float64]
_MOST_CHECKED = 1000  # rows by which it is seen whether a metric can judge
_N_GROUPS = 20  # of the jackknife
_T_975 = 2.0930240544082634  # of Student's distribution with 19 degrees of freedom


class _SaidClasses(ClassifierMixin, BaseEstimator):
    """Says the class shares of rows by their number."""

    def __init__(self, said: Any = None, classes: Any = None) -> None:
        self.said = said
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        return np.asarray(self.classes)

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict_proba(self, X: Any) -> Floats:
        return np.asarray(self.said[X[:, 0]])

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class _SaidValues(RegressorMixin, BaseEstimator):
    """Says the values of rows by their number."""

    def __init__(self, said: Any = None) -> None:
        self.said = said

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Floats:
        return np.asarray(self.said[X[:, 0], 0])


@dataclass(frozen=True)
class TestScore:
    """A score on the test part, and the ends of its 95% interval."""

    __test__ = False  # not a test

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scorers:
    """Metrics of a study.

    Attributes
    ----------
    metrics : dict of str to scorer
        The first decides.
    classes : ndarray or None
    """

    metrics: dict[str, Any]
    classes: NDArray[Any] | None

    def check(self, y: NDArray[Any], codes: NDArray[np.intp] | None, target: str, usual: Sequence[str]) -> None:
        """Refuse metrics that cannot judge a target, by what always saying the same would score."""
        rows = np.arange(min(len(y), _MOST_CHECKED))
        if codes is None or self.classes is None:
            some = y[rows]
            model: Any = _SaidValues(np.full((len(some), 1), y.mean()))
        else:
            some = y[np.union1d(rows, np.unique(codes, return_index=True)[1])]  # all classes
            model = _SaidClasses(np.full((len(some), len(self.classes)), 1 / len(self.classes)), self.classes)
        rows = np.arange(len(some))[:, np.newaxis]
        for name, scorer in self.metrics.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _scored(scorer, model, rows, some, self.classes)
            except (ValueError, TypeError) as error:
                why, try_ = " ".join(str(error).split()).rstrip("."), ", ".join(map(repr, usual))
                raise ValueError(
                    f"metric: {name!r} cannot judge {target!r} of this table ({why}). Try {try_}."
                ) from error

    def scores(self, said: Floats, y: NDArray[Any]) -> dict[str, float]:
        """Score predictions by every metric; NaN where one makes no sense."""
        return {name: self.score(name, said, y) for name in self.metrics}

    def score(self, metric: str, said: Floats, y: NDArray[Any]) -> float:
        """Score predictions by one metric."""
        if self.classes is None:
            model: Any = _SaidValues(said)
        else:
            known = np.isin(self.classes, y)
            if metric in ("roc_auc_ovr", "roc_auc_ovo") and not known.all():
                return float("nan")
            model = _SaidClasses(said, self.classes)
        rows = np.arange(len(said))[:, np.newaxis]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)  # the score says it: it is NaN
                return float(_scored(self.metrics[metric], model, rows, y, self.classes))
        except ValueError:
            return float("nan")

    def with_interval(self, metric: str, said: Floats, y: NDArray[Any], seed: int) -> TestScore:
        """Score predictions, with an interval by the jackknife over twenty groups of rows."""
        value = self.score(metric, said, y)
        n = len(y)
        if n < 2 * _N_GROUPS:
            return TestScore(value, float("nan"), float("nan"))
        group = np.random.RandomState(seed).permutation(n) % _N_GROUPS
        without = np.array([self.score(metric, said[group != g], y[group != g]) for g in range(_N_GROUPS)])
        error = float(np.sqrt((_N_GROUPS - 1) / _N_GROUPS * ((without - without.mean()) ** 2).sum()))
        most = 0.0 if metric.startswith("neg_") else 1.0  # of any scorer
        return TestScore(value, value - _T_975 * error, min(value + _T_975 * error, max(most, value)))


def _scored(scorer: Any, model: Any, rows: Any, y: NDArray[Any], classes: NDArray[Any] | None) -> float:
    """Ask a scorer; log loss is told all classes, since a fold may lack one."""
    if classes is not None and getattr(getattr(scorer, "_score_func", None), "__name__", "") == "log_loss":
        from sklearn.metrics import log_loss

        return float(scorer._sign * log_loss(y, model.predict_proba(rows), labels=classes))
    return float(scorer(model, rows, y))
