"""Metrics on held-out rows: the one that stops a fit, and several on several validation sets after each round."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, TargetTags

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.settings import Metric
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._estimator.metrics import NamedScorer
from spinney._model.distributions import PredictedDistribution, distributions_of

Labels = list[NDArray[Any]]  # of each output
_LEAST_IS_BEST = ("_error", "_loss", "_deviance")  # name endings of scikit-learn's metrics that are losses


class ScoredModel(Protocol):
    """A model that turns scores into predictions."""

    @property
    def link(self) -> str: ...
    def labels(self, codes: NDArray[np.intp], classes: Labels) -> NDArray[Any]: ...
    def score_codes(self, scores: Floats) -> NDArray[np.intp]: ...
    def predicted(self, scores: Floats) -> Floats: ...
    def by_output(self, flat: Floats) -> Floats: ...
    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats: ...


CurrentModel = Callable[[], ScoredModel]  # returns the model of the rounds so far
HeldOutMetric = Callable[[Floats, CurrentModel | None], float]  # of scores, (n_rows, n_scores); smaller is better


def predictions_of(model: ScoredModel, scores: Floats, classes: Labels | None) -> NDArray[Any]:
    """Turn scores, (n_rows, n_scores), into class labels or numbers."""
    if classes is not None:
        return model.labels(model.score_codes(scores), classes)
    return np.asarray(model.by_output(model.predicted(scores)))


class HeldOutScore:
    """A scikit-learn metric on held-out rows, negated: smaller is better.

    Parameters
    ----------
    metric : str or callable
    model : ScoredModel
        Turns scores into predictions; its trees do not matter.
    held_out : LearningRows
    classes : list of ndarray, or None
        Labels of each output.
    base : ndarray of shape (n_scores, n_rows), or None
        Added to the scores before evaluation.
    encode : callable or None
        Encodes other rows, for metrics that predict them.
    """

    def __init__(
        self,
        metric: Metric,
        model: ScoredModel,
        held_out: LearningRows,
        classes: Labels | None,
        base: Floats | None = None,
        encode: Callable[[Any], _engine.Table] | None = None,
        n_jobs: int = 0,
    ) -> None:
        self._n_jobs = n_jobs
        self._model = model
        self._classes = classes
        self._encode = encode
        self._scorer = as_scorer(metric)
        weight = held_out.weight
        rows = np.arange(len(held_out.target)) if weight is None else np.flatnonzero(weight > 0)
        self._rows = rows
        self._base = None if base is None else base.T[rows]
        self._has_offset = held_out.offset is not None
        # a named metric needs predictions alone; any other may read the rows of the caller
        unread = isinstance(metric, str) or takes_predictions(metric) or held_out.X is None
        self._X = np.zeros((len(rows), 1)) if unread else pick_table(held_out.X).take(rows)
        target = held_out.target[rows]
        codes = np.atleast_2d(target.T).T
        self._y = target if classes is None else model.labels(codes.astype(np.intp), classes)
        used = None if weight is None else weight[rows]
        self._weight = None if used is None or (used == used[0]).all() else used

    def __call__(self, scores: Floats, current_model: CurrentModel | None = None) -> float:
        """Evaluate the scores of the engine, (n_rows, n_scores), and the model that they come from."""
        known = scores[self._rows] if self._base is None else scores[self._rows] + self._base

        def scores_of(X: TableLike) -> Floats:
            if X is self._X or current_model is None or self._encode is None:
                return known
            if self._has_offset:
                raise ValueError(
                    "scoring predicts other rows than the held-out ones, and their offset is not known. Predict the "
                    "rows that are passed to it, all of them."
                )
            return current_model().scores(self._encode(X), self._n_jobs)

        estimator = _ScoredEstimator(self._model, scores_of, self._classes)
        weighted = {} if self._weight is None else {"sample_weight": self._weight}
        return -float(self._scorer(estimator, self._X, self._y, **weighted))


def takes_predictions(metric: Metric) -> bool:
    """Return whether a metric is a function of targets and predictions, not a scorer."""
    if isinstance(metric, str) or not callable(metric):
        return False
    try:
        parameters = inspect.signature(metric).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(needed) == 2


def metric_sign(metric: Metric) -> int:
    """Return -1 for a function of targets and predictions whose name ends like a loss, else 1."""
    return -1 if takes_predictions(metric) and metric_name(metric).endswith(_LEAST_IS_BEST) else 1


def metric_name(metric: Metric) -> str:
    """Return the name of a metric in the history."""
    return "loss" if metric is None else metric if isinstance(metric, str) else getattr(metric, "__name__", str(metric))


def as_scorer(metric: Metric) -> Callable[..., float]:
    """Return a metric as a scorer: a function of an estimator, X and y, larger for better."""
    if isinstance(metric, str):
        return NamedScorer(metric)
    assert metric is not None
    if not takes_predictions(metric):
        return metric
    takes_weights = "sample_weight" in inspect.signature(metric).parameters

    def scorer(model: _ScoredEstimator, X: TableLike, y: NDArray[Any], **weighted: Floats) -> float:
        return metric_sign(metric) * float(metric(y, model.predict(X), **(weighted if takes_weights else {})))

    return scorer


class _ScoredEstimator:
    """A stand-in for a fitted estimator, with known scores of the held-out rows."""

    def __init__(self, model: ScoredModel, scores_of: Callable[[Any], Floats], classes: Labels | None) -> None:
        self._scores_of = scores_of
        self._model = model
        self._labels = classes
        if classes is not None:
            self.classes_ = classes[0] if len(classes) == 1 else classes

    def __sklearn_tags__(self) -> Tags:
        kind = "regressor" if self._labels is None else "classifier"
        return Tags(estimator_type=kind, target_tags=TargetTags(required=True))

    def fit(self) -> None:
        """Do nothing; scorers check that the method exists."""

    def predict(self, X: TableLike) -> NDArray[Any]:
        return predictions_of(self._model, self._scores_of(X), self._labels)

    def score(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> float:
        metric = r2_score if self._labels is None else accuracy_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def predict_proba(self, X: TableLike) -> Floats:
        return self._model.by_output(self._model.predicted(self._scores_of(X)))

    def predict_distribution(self, X: TableLike) -> PredictedDistribution:
        return distributions_of(self._model.link, self._scores_of(X))

    def decision_function(self, X: TableLike) -> Floats:
        scores = self._scores_of(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores


# ---- several sets and metrics -------------------------------------------------------------------------------


@dataclass
class EvaluatedSet:
    """A validation set that is evaluated after each round.

    Attributes
    ----------
    name : str
    columns : Table
    start, scores : ndarray of shape (n_rows, n_scores)
        Initial scores, and current scores.
    metrics : dict of callable
        Metrics as functions of scores, by name.
    values : dict of list of float
        Values of the metrics after each round.
    """

    name: str
    columns: _engine.Table
    start: Floats
    metrics: dict[str, Callable[[Floats], float]]

    def __post_init__(self) -> None:
        self.scores = self.start
        self.values: dict[str, list[float]] = {metric: [] for metric in self.metrics}

    def add(self, trees: _engine.Additive, n_jobs: int, is_all: bool) -> None:
        """Add the trees of a round, or recompute the scores from all trees, and evaluate."""
        self.scores = (self.start if is_all else self.scores) + trees.sums(self.columns, 0, trees.n_trees, n_jobs)
        for metric, value_of in self.metrics.items():
            self.values[metric].append(value_of(self.scores))


class Evaluations:
    """The validation sets of a fit, evaluated after each round."""

    def __init__(self, sets: Sequence[EvaluatedSet], n_categories: list[int], n_jobs: int) -> None:
        self._sets = sets
        self._n_categories = n_categories
        self._n_jobs = n_jobs
        self._rounds: list[int] = []
        self._n_trees = 0

    def add(self, engine: _engine.Boosting, n_scores: int) -> None:
        """Evaluate the sets with the rounds that a booster has added since the last call."""
        is_all = bool(engine.n_dropped)  # DART changes earlier trees
        trees = engine.trees(0 if is_all else self._n_trees)
        self._n_trees += 0 if is_all else len(trees)
        added = _engine.make_additive(trees, n_scores, self._n_categories)
        for one in self._sets:
            one.add(added, self._n_jobs, is_all)
        self._rounds.append(engine.n_rounds)

    def last(self) -> dict[str, float]:
        """Return the current value of each metric on each set."""
        return {name: float(values[-1]) for name, values in self.columns().items() if name != "round"}

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a column for each metric on each set, and the round numbers."""
        found: dict[str, NDArray[Any]] = {"round": np.array(self._rounds, dtype=np.intp)}
        for one in self._sets:
            found |= {f"{one.name} {metric}": np.array(values) for metric, values in one.values.items()}
        return found
