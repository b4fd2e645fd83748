"""Several sets of rows, judged by several metrics after each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.losses.rows import LearningRows
from spinney._boosting.rounds.boosters import scores_so_far
from spinney._boosting.rounds.evaluation import sign_of
from spinney._boosting.rounds.task import Task
from spinney._boosting.settings import metrics_of

Floats = NDArray[np.float64]
Metric = Callable[[Floats], float]  # of scores, (n_rows, n_scores)
FIRST = "validation"  # what rows are called that have no name


def named_sets(later: tuple[Any, ...], names: Sequence[str]) -> list[tuple[str, tuple[Any, ...]]]:
    """Return what the caller holds out, set by set; `names` are those of its parts: X_val, y_val and others.

    Parts are dicts of sets by name if y_val is one; else they are one set.
    """
    y_val = later[1]
    if not isinstance(y_val, dict):
        return [(FIRST, later)]
    found = []
    for part, name in zip(later, names, strict=True):
        if part is None and name not in ("X_val", "y_val"):
            continue
        if not isinstance(part, dict) or part.keys() != y_val.keys():
            raise ValueError(f"y_val names the sets {', '.join(map(str, y_val))}. Pass a dict of the same for {name}.")
    if not y_val:
        raise ValueError("y_val names no set. Pass some rows, or leave it out.")
    for key in y_val:
        found.append((str(key), tuple(None if part is None else part[key] for part in later)))
    return found


def name_of(metric: Any) -> str:
    """Return what a metric is called in the history."""
    return "loss" if metric is None else metric if isinstance(metric, str) else getattr(metric, "__name__", str(metric))


class EvaluatedSet:
    """Rows that are judged after each round, with their scores so far."""

    def __init__(self, name: str, rows: LearningRows, scores: Floats, metrics: dict[str, Metric]) -> None:
        self.name = name
        self._columns = rows.columns
        self._start = self._scores = np.ascontiguousarray(scores.T)
        self._metrics = metrics
        self.values: dict[str, list[float]] = {metric: [] for metric in metrics}

    def add(self, trees: _engine.Additive, n_jobs: int, afresh: bool) -> None:
        """Add what the trees of a round, or of all rounds afresh, say, and judge."""
        before = self._start if afresh else self._scores
        self._scores = before + trees.sums(self._columns, 0, trees.n_trees, n_jobs)
        for metric, judge in self._metrics.items():
            self.values[metric].append(judge(self._scores))


class Evaluations:
    """All sets of a fit, round by round."""

    def __init__(self, sets: Sequence[EvaluatedSet], n_categories: list[int], n_jobs: int) -> None:
        self._sets = sets
        self._n_categories = n_categories
        self._n_jobs = n_jobs
        self._rounds: list[int] = []
        self._n_trees = 0

    def add(self, engine: _engine.Boosting, n_scores: int) -> None:
        """Judge the sets by the rounds that a booster has done since the last time."""
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


def evaluations_of(
    model: Any,
    sets: Sequence[tuple[str, LearningRows | None]],
    start: Callable[[LearningRows], Floats],
    loss_on: Callable[[LearningRows], Metric],
    metric_on: Callable[[Any, LearningRows], Metric],
    n_categories: list[int],
) -> Evaluations | None:
    """Return what judges the sets of a fit; None if there is but one set and one metric.

    Parameters
    ----------
    model : estimator
        Says which metrics by `scoring`.
    sets : sequence of tuples of str and LearningRows
        The first is what early stopping goes by; None if there is none.
    start : callable
        Gives the scores of rows, (n_scores, n_rows), before the next round.
    loss_on, metric_on : callable
        Give the loss on rows, and a metric on rows, as functions of scores.
    n_categories : list of int
        Of the columns, as the trees have them.
    """
    metrics = metrics_of(model.scoring)
    known = [(name, rows) for name, rows in sets if rows is not None]
    if not known or len(known) * len(metrics) < 2:
        return None
    if len(known) > 1 and model._starts_at_model:
        raise ValueError("Several sets do not go with init=estimator. Pass one set as X_val and y_val.")
    judged = [
        EvaluatedSet(
            name,
            rows,
            start(rows),
            {name_of(metric): loss_on(rows) if metric is None else metric_on(metric, rows) for metric in metrics},
        )
        for name, rows in known
    ]
    return Evaluations(judged, n_categories, model._n_threads)


class FollowsSets:
    """Mixin for boosted models."""

    if TYPE_CHECKING:
        _n_threads: int

        def _held_out_score(self, scoring: Any, *given: Any) -> Any: ...

    def _evaluations(self, task: Task, rounds: Any) -> Evaluations | None:
        """Return what judges several sets, or one by several metrics."""
        view = rounds.view([])

        def metric_on(metric: Any, rows: LearningRows) -> Metric:
            judge = self._held_out_score(metric, view, rows, task.learned, None, None)
            return lambda scores: -sign_of(metric) * judge(scores)

        return evaluations_of(
            self,
            task.judged,
            lambda rows: scores_so_far(rows, rows.scores(task.start), task.earlier, self._n_threads),
            lambda rows: rounds.loss_on(rows, task.loss),
            metric_on,
            task.schema.n_categories,
        )
