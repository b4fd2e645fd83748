"""Metrics by name: scikit-learn's scorers, short names such as "auc" and "rmse", "lift" and "quantile_loss_0.9"."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    mean_pinball_loss,
    precision_score,
    recall_score,
)

from spinney._data.types import Floats, TableLike
from spinney._estimator.held_out import KnownProba
from spinney._estimator.soft_labels import SoftLabels

Array = NDArray[Any]
Scorer = Callable[..., float]  # called with an estimator, a table and its target


class Predictor(Protocol):
    """A fitted model."""

    def predict(self, X: Any) -> Any:
        """Predict rows of a table."""


_SHORT_NAMES = {
    "auc": "roc_auc",
    "ap": "average_precision",
    "pr_auc": "average_precision",
    "brier": "neg_brier_score",
    "brier_score_loss": "neg_brier_score",
    "logloss": "neg_log_loss",
    "mcc": "matthews_corrcoef",
    "rmse": "neg_root_mean_squared_error",
    "mse": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
    "r²": "r2",
    "pinball_loss": "quantile_loss",
    "nll": "log_likelihood",
    "negative_log_likelihood": "log_likelihood",
}
_OF_DISTRIBUTIONS = ("log_likelihood", "neg_crps")
_OWN_NAMES = ("lift", "quantile_loss", *_OF_DISTRIBUTIONS)
_OF_NUMBERS = ("r2", "explained_variance", "_error", "_deviance", "quantile_loss", *_OF_DISTRIBUTIONS)  # parts of names
_OF_LABELS = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
_LIFT_FRACTION = 0.1  # of the rows, those with the highest scores


def metric_key(name: str, classes: Array | None = None) -> str:
    """Return the name of a metric among those of scikit-learn's scorers and the own ones."""
    known = {*get_scorer_names(), *_OWN_NAMES}
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    short = _SHORT_NAMES.get(plain, plain)
    for one in (name, short, f"neg_{short}", short.removesuffix("_score")):
        if one in known:
            return "roc_auc_ovr" if one == "roc_auc" and classes is not None and len(classes) > 2 else _with_sign(one)
    base, _, level = short.removeprefix("neg_").rpartition("_")
    if base == "quantile_loss" and _level(level) is not None:
        return f"neg_quantile_loss_{_level(level):g}"
    if plain == "neg_quantile_loss":
        return plain
    names = sorted({*known, *_SHORT_NAMES, *(one.removeprefix("neg_") for one in known)})
    close = [one for one in names if plain and plain in one] or get_close_matches(plain, names, n=4)
    meant = f"Did you mean {' or '.join(map(repr, close[:4]))}?" if close else "Try 'log_loss', 'auc', 'f1' or 'rmse'."
    raise ValueError(
        f"There is no metric {name!r}. {meant} Names are those of scikit-learn's scorers, 'lift' and 'quantile_loss'."
    )


def _with_sign(name: str) -> str:
    return f"neg_{name}" if name == "quantile_loss" else name


def _level(text: str) -> float | None:
    """Return a quantile level between 0 and 1; None if the text is none."""
    try:
        level = float(text)
    except ValueError:
        return None
    return level if 0 < level < 1 else None


def scorer_of(key: str, classes: Array | None, positive: object = None) -> Scorer:
    """Return the scorer of a name that `metric_key` returns."""
    if key.startswith("neg_quantile_loss"):
        alpha = _level(key.rpartition("_")[2]) or 0.5
        return cast(Scorer, make_scorer(mean_pinball_loss, greater_is_better=False, alpha=alpha))
    if key in _OF_DISTRIBUTIONS:
        return DistributionMetric(key)
    if classes is not None and (key in _OF_LABELS or key in _OF_SCORES):
        return ClassMetric(key, classes, positive)
    return cast(Scorer, get_scorer(key))


def check_suits(name: str, key: str, classes: Array | None) -> None:
    """Raise an error for a metric of classes and a numeric target, or the reverse.

    Parameters
    ----------
    name, key : str
        The metric as passed, and its name by `metric_key`.
    classes : ndarray or None
        Labels; None for a numeric target. Numeric labels suit metrics of numbers too.
    """
    is_of_numbers = any(part in key for part in _OF_NUMBERS)
    if classes is None and not is_of_numbers:
        raise ValueError(
            f"The metric {name!r} evaluates classes, but the target is numeric. Try 'rmse', 'mae' or 'r2'."
        )
    if classes is not None and is_of_numbers and classes.dtype.kind not in "biuf":
        labels = ", ".join(map(repr, classes[:3].tolist())) + (", …" if len(classes) > 3 else "")
        raise ValueError(
            f"The metric {name!r} evaluates numbers, but the target has the classes {labels}. Try 'log_loss', 'auc' "
            "or 'accuracy'."
        )


def check_predicts(name: str, scorer: object, model: object) -> None:
    """Raise an error for a metric of probabilities and a fitted model without them."""
    if isinstance(scorer, DistributionMetric) and not hasattr(model, "predict_distribution"):
        raise ValueError(
            f"The metric {name!r} needs distributions, and {type(model).__name__} has no predict_distribution. Use "
            "GradientBoostingRegressor with loss='normal', or another metric, such as 'rmse'."
        )
    is_of_probabilities = getattr(scorer, "_response_method", "") == "predict_proba" or (
        isinstance(scorer, ClassMetric) and scorer.name == "neg_brier_score"
    )
    if is_of_probabilities and not hasattr(model, "predict_proba"):
        raise ValueError(
            f"The metric {name!r} needs probabilities, and {type(model).__name__} has no predict_proba. Use another "
            "metric, such as 'auc' or 'accuracy', or another model."
        )


@dataclass(frozen=True)
class DistributionMetric:
    """The mean log-likelihood of predicted distributions, or their negated mean CRPS: larger is better.

    Attributes
    ----------
    name : str
        Name of the metric, as `metric_key` returns it.
    """

    name: str

    def __call__(self, model: Any, X: TableLike, y: Array, sample_weight: Floats | None = None) -> float:
        """Evaluate a fitted model."""
        check_predicts(self.name.removeprefix("neg_"), self, model)
        predicted = model.predict_distribution(X)
        y = np.asarray(y, dtype=np.float64)
        scores = -predicted.crps(y) if self.name == "neg_crps" else predicted.log_likelihood(y)
        return float(np.average(scores, weights=sample_weight))


@dataclass(frozen=True)
class NamedScorer:
    """The scorer of a metric name; the classes of the model determine which of its variants is used.

    Attributes
    ----------
    name : str
        As passed by the caller.
    """

    name: str

    @property
    def key(self) -> str:
        """The name by `metric_key`."""
        return metric_key(self.name)

    def __call__(self, model: Any, X: TableLike, y: Array, **weighted: Floats) -> float:
        """Return the score of a fitted model; larger is better."""
        if isinstance(y, SoftLabels):
            X, y, weighted["sample_weight"], _ = y.copied(X, weighted.get("sample_weight"))
        classes = getattr(model, "classes_", None)
        if isinstance(classes, list) or np.ndim(y) > 1:  # several outputs
            return float(get_scorer(self.key)(model, X, y, **weighted))
        labels = None if classes is None else np.asarray(classes)
        key = metric_key(self.name, labels)
        check_suits(self.name, key, labels)
        scorer = scorer_of(key, labels, self._positive(key, labels))
        check_predicts(self.name, scorer, model)
        return float(scorer(*in_label_order(model, X), y, **weighted))

    def _positive(self, key: str, labels: Array | None) -> object:
        """Return the class that a metric of one class scores; None: the mean of all classes."""
        if labels is None or len(labels) > 2 or key not in (*_OF_LABELS, "average_precision", "lift"):
            return None
        if 1 in labels:
            return labels[labels == 1][0].item()
        raise ValueError(
            f"The metric {self.name!r} evaluates one class, and it is not known which of "
            f"{' and '.join(map(repr, labels.tolist()))}. Use the labels 0 and 1, or a metric of all classes, such as "
            "'auc' or 'f1_macro'."
        )


def in_label_order(model: Any, X: TableLike) -> tuple[Any, Any]:
    """Return a classifier whose classes ascend, as scikit-learn's scorers expect, and the table that it predicts.

    Boosting of ordered classes may have its classes in another order; its predictions are then made here.
    """
    classes = getattr(model, "classes_", None)
    if not isinstance(classes, np.ndarray) or not hasattr(model, "predict_proba"):
        return model, X
    order = np.argsort(classes, kind="stable")
    if (order == np.arange(len(order))).all():
        return model, X
    proba = np.asarray(model.predict_proba(X))[:, order]
    return KnownProba(proba, model.predict(X), [classes[order]]), np.arange(len(proba))


def check_scoring(scoring: object, is_classifier: bool | None = None) -> None:
    """Refuse an unknown metric, and one that does not suit the task, before a fit begins; None: the task is unknown."""
    if not isinstance(scoring, str):
        return
    key = metric_key(scoring)
    if is_classifier is False:
        check_suits(scoring, key, None)


def find_scorer(scoring: Any) -> Any:
    """Return the scorer of a metric name; what is not a name is returned as it is."""
    return NamedScorer(scoring) if isinstance(scoring, str) else scoring


def lift(is_positive: NDArray[np.bool_], score: Floats, weight: Floats | None = None) -> float:
    """Return how many times as frequent a class is among the tenth of the rows with the highest scores as among all."""
    weight = np.ones(len(score)) if weight is None else weight
    order = np.argsort(-score, kind="stable")
    n_top = max(1, round(_LIFT_FRACTION * len(score)))
    tied = score >= score[order[n_top - 1]]  # all rows of the last score, so that the order of rows does not matter
    everywhere = np.average(is_positive, weights=weight)
    return float(np.average(is_positive[tied], weights=weight[tied]) / everywhere) if everywhere > 0 else float("nan")


def _average_precision(is_positive: NDArray[np.bool_], score: Floats, weight: Floats | None) -> float:
    return (
        float(average_precision_score(is_positive, score, sample_weight=weight)) if is_positive.any() else float("nan")
    )


def _negative_brier(is_positive: NDArray[np.bool_], score: Floats, weight: Floats | None) -> float:
    return -float(np.average((score - is_positive) ** 2, weights=weight))


_OF_SCORES = {"average_precision": _average_precision, "lift": lift, "neg_brier_score": _negative_brier}


@dataclass(frozen=True, eq=False)
class ClassMetric:
    """A scorer of one class, whatever its label, or of all classes.

    Attributes
    ----------
    name : str
    classes : ndarray
        Labels of the target.
    positive : label or None
        The class; None: the mean of all classes (Brier score: the sum).
    """

    name: str
    classes: Array
    positive: object = None

    def __call__(
        self,
        model: Predictor,
        X: TableLike,
        y: Array,
        sample_weight: Floats | None = None,
        by_code: bool | None = None,
    ) -> float:
        """Return the score of a model that predicts the labels, or their codes; `by_code` None: as its classes are."""
        own = np.asarray(getattr(model, "classes_", self.classes))
        if by_code is None:
            by_code = not np.isin(own, self.classes).all()
        labels = np.arange(len(self.classes)) if by_code else self.classes
        places = range(len(labels)) if self.positive is None else [self.classes.tolist().index(self.positive)]
        if self.name in _OF_LABELS:
            score = _OF_LABELS[self.name]
            chosen = [labels[k] for k in places]
            predicted = model.predict(X)
            return float(
                score(y, predicted, labels=chosen, average="macro", zero_division=0.0, sample_weight=sample_weight)
            )
        columns = own.tolist()
        scores = self._scores(model, X, columns)
        of_class = _OF_SCORES[self.name]
        values = [
            of_class(y == labels[k], scores[:, columns.index(labels[k])], sample_weight)
            for k in places
            if labels[k] in columns
        ]
        if self.name == "neg_brier_score" and self.positive is None:
            return float(np.sum(values))
        known = [value for value in values if not math.isnan(value)]  # of classes that are in y
        return float(np.mean(known)) if known else float("nan")

    @staticmethod
    def _scores(model: Predictor, X: TableLike, columns: list[Any]) -> Floats:
        """Return the probability of each class, or its decision value for models without probabilities."""
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X))
        decision = np.asarray(model.decision_function(X))  # type: ignore[attr-defined]
        return np.column_stack([-decision, decision]) if len(columns) == 2 and decision.ndim == 1 else decision
