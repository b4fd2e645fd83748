"""Metrics on rows that are not learned from: one that stops a fit, and several on several sets after each round."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.utils import Tags, TargetTags

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.settings import Metric
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike

Labels = list[NDArray[Any]]  # of each output
_LEAST_IS_BEST = ("_error", "_loss", "_deviance")  # ends of the names of scikit-learn's metrics that are losses


class ScoredModel(Protocol):
    """A model that turns scores into predictions."""

    def labels(self, codes: NDArray[np.intp], classes: Labels) -> NDArray[Any]: ...
    def score_codes(self, scores: Floats) -> NDArray[np.intp]: ...
    def predicted(self, scores: Floats) -> Floats: ...
    def by_output(self, flat: Floats) -> Floats | list[Floats]: ...
    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats: ...


SoFar = Callable[[], ScoredModel]  # the model of the rounds done
Judge = Callable[[Floats, SoFar | None], float]  # scores of the held-out rows, (n_rows, n_scores); smaller is better


def predictions_of(model: ScoredModel, scores: Floats, classes: Labels | None) -> NDArray[Any]:
    """Turn scores, (n_rows, n_scores), into labels, or into values."""
    if classes is not None:
        return model.labels(model.score_codes(scores), classes)
    return np.asarray(model.by_output(model.predicted(scores)))


class HeldOutScore:
    """A metric on the held-out rows, as a loss: smaller is better.

    Parameters
    ----------
    metric : str or callable
    model : ScoredModel
        Turns scores into predictions; its trees do not matter.
    held_out : LearningRows
    classes : list of ndarray, or None
        Labels of each output.
    base : ndarray of shape (n_scores, n_rows), or None
        Added to the scores that are evaluated.
    encode : callable or None
        Reads other rows, for metrics that predict such.
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
        self._scorer = scorer_of(metric)
        weight = held_out.weight
        rows = np.arange(len(held_out.target)) if weight is None else np.flatnonzero(weight > 0)
        self._rows = rows
        self._base = None if base is None else base.T[rows]
        self._has_offset = held_out.offset is not None
        # a metric by name asks for predictions alone; any other may read the rows, as the caller gave them
        unread = isinstance(metric, str) or takes_predictions(metric) or held_out.given is None
        self._X = np.zeros((len(rows), 1)) if unread else pick_table(held_out.given).take(rows)
        target = held_out.target[rows]
        codes = np.atleast_2d(target.T).T
        self._y = target if classes is None else model.labels(codes.astype(np.intp), classes)
        used = None if weight is None else weight[rows]
        self._weight = None if used is None or (used == used[0]).all() else used

    def __call__(self, scores: Floats, so_far: SoFar | None = None) -> float:
        """Judge the scores of the engine, (n_rows, n_scores), and the model that they come from."""
        known = scores[self._rows] if self._base is None else scores[self._rows] + self._base

        def scores_of(X: TableLike) -> Floats:
            if X is self._X or so_far is None or self._encode is None:
                return known
            if self._has_offset:
                raise ValueError(
                    "scoring asks for predictions of other rows than those held out, and their offset is not known. "
                    "Predict the rows that it is given, as a whole."
                )
            return so_far().scores(self._encode(X), self._n_jobs)

        judged = _Scored(self._model, scores_of, self._classes)
        weighted = {} if self._weight is None else {"sample_weight": self._weight}
        return -float(self._scorer(judged, self._X, self._y, **weighted))


def takes_predictions(metric: Metric) -> bool:
    """Whether a metric is a function of targets and predictions, not of a model, rows and targets."""
    if isinstance(metric, str) or not callable(metric):
        return False
    try:
        given = inspect.signature(metric).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(needed) == 2


def sign_of(metric: Metric) -> int:
    """-1 for a function of targets and predictions that is smaller for better ones, as its name says; else 1."""
    return -1 if takes_predictions(metric) and name_of(metric).endswith(_LEAST_IS_BEST) else 1


def name_of(metric: Metric) -> str:
    """Return what a metric is called in the history."""
    return "loss" if metric is None else metric if isinstance(metric, str) else getattr(metric, "__name__", str(metric))


def scorer_of(metric: Metric) -> Callable[..., float]:
    """Return a metric as a scorer: a function of a model, rows and targets, larger for better."""
    if isinstance(metric, str):
        found: Callable[..., float] = get_scorer(metric)
        return found
    assert metric is not None
    if not takes_predictions(metric):
        return metric
    takes_weights = "sample_weight" in inspect.signature(metric).parameters

    def scorer(model: _Scored, X: TableLike, y: NDArray[Any], **weighted: Floats) -> float:
        return sign_of(metric) * float(metric(y, model.predict(X), **(weighted if takes_weights else {})))

    return scorer


class _Scored:
    """Looks to a scorer like a fitted estimator; the scores of the held-out rows are known."""

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
        """Do nothing: scorers ask whether it is there."""

    def predict(self, X: TableLike) -> NDArray[Any]:
        return predictions_of(self._model, self._scores_of(X), self._labels)

    def predict_proba(self, X: TableLike) -> Floats | list[Floats]:
        return self._model.by_output(self._model.predicted(self._scores_of(X)))

    def decision_function(self, X: TableLike) -> Floats:
        scores = self._scores_of(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores


# ---- several sets and metrics -------------------------------------------------------------------------------


@dataclass
class EvaluatedSet:
    """Rows that are evaluated after each round.

    Attributes
    ----------
    name : str
    columns : Table
    start, scores : ndarray of shape (n_rows, n_scores)
        Scores before the first round, and so far.
    metrics : dict of callable
        Metrics of scores, by name.
    values : dict of list of float
        Their values after each round.
    """

    name: str
    columns: _engine.Table
    start: Floats
    metrics: dict[str, Callable[[Floats], float]]

    def __post_init__(self) -> None:
        self.scores = self.start
        self.values: dict[str, list[float]] = {metric: [] for metric in self.metrics}

    def add(self, trees: _engine.Additive, n_jobs: int, afresh: bool) -> None:
        """Add the trees of a round, or of all rounds afresh, and evaluate."""
        self.scores = (self.start if afresh else self.scores) + trees.sums(self.columns, 0, trees.n_trees, n_jobs)
        for metric, value_of in self.metrics.items():
            self.values[metric].append(value_of(self.scores))


class Evaluations:
    """All sets of a fit, round by round."""

    def __init__(self, sets: Sequence[EvaluatedSet], n_categories: list[int], n_jobs: int) -> None:
        self._sets = sets
        self._n_categories = n_categories
        self._n_jobs = n_jobs
        self._rounds: list[int] = []
        self._n_trees = 0

    def add(self, engine: _engine.Boosting, n_scores: int) -> None:
        """Evaluate the sets by the rounds that a booster has done since the last time."""
        afresh = bool(engine.n_dropped)  # earlier rounds are no longer what they were
        trees = engine.trees(0 if afresh else self._n_trees)
        self._n_trees += 0 if afresh else len(trees)
        added = _engine.make_additive(trees, n_scores, self._n_categories)
        for one in self._sets:
            one.add(added, self._n_jobs, afresh)
        self._rounds.append(engine.n_rounds)

    def last(self) -> dict[str, float]:
        """Return the present value of each metric on each set."""
        return {name: float(values[-1]) for name, values in self.columns().items() if name != "round"}

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a column for each metric on each set, beside the number of the round."""
        found: dict[str, NDArray[Any]] = {"round": np.array(self._rounds, dtype=np.intp)}
        for one in self._sets:
            found |= {f"{one.name} {metric}": np.array(values) for metric, values in one.values.items()}
        return found
