"""Runs models on folds within a time limit: predictions or scores, and seconds."""

from __future__ import annotations

import math
import platform
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from spinney._boosting.settings import callbacks_of
from spinney._data.types import Floats, TableLike
from spinney._ensemble.members import MemberRows, ThreadPlan, gets_codes, unset_threads
from spinney._estimator.held_out import Fold
from spinney._evaluate.problem import Array, EstimatorLike, Problem, Rows
from spinney._evaluate.scoring import Scorers, describe_error
from spinney._model.predictions import member_predictions

ProgressCall = Callable[[int, int, str, float], None]  # finished fits, all fits, current step, seconds left
_NO_PREDICTIONS = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to evaluate: its name, the unfitted estimator (None for the stack), and the most rows to fit it to."""

    name: str
    estimator: EstimatorLike | None
    is_baseline: bool = False
    is_peer: bool = False
    max_rows: int | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """One model on one fold.

    Attributes
    ----------
    fit_seconds, predict_seconds : float
        Time of the fit, and of the first prediction of the held-out rows.
    predictions : ndarray of shape (n_held_out, n_classes or 1)
        Class probabilities or numbers; empty if scores are computed instead.
    scores : dict of str to float
        By metric; NaN if undefined.
    errors : dict of str to str
        Error messages by metric, or by "fit".
    model : estimator or None
        The fitted model.
    rounds_done : float
        Fraction of the rounds of boosting that were done; below 1 if a time limit has ended it.
    cut_seconds : float
        Expected time of the other rounds.
    """

    fit_seconds: float
    predict_seconds: float
    predictions: Floats = field(default_factory=lambda: _NO_PREDICTIONS)
    scores: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    model: Any = None
    rounds_done: float = 1.0
    cut_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Time of fit and prediction."""
        return self.fit_seconds + self.predict_seconds

    @property
    def full_seconds(self) -> float:
        """Expected time of fit and prediction without a time limit."""
        return self.seconds + self.cut_seconds


@dataclass(eq=False)
class Trial:
    """The runs of one model, by repeat and fold.

    `failure` is the reason why there are none; `model` is fitted to the training rows of one fold.
    """

    candidate: Candidate
    runs: list[list[Run]] = field(default_factory=list)
    failure: str = ""
    model: Any = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.candidate.name

    @property
    def is_own(self) -> bool:
        """Whether it is a model of spinney and no baseline."""
        return not (self.candidate.is_baseline or self.candidate.is_peer)

    def mean_seconds(self, kind: str) -> float:
        """Return the mean of "fit_seconds", "predict_seconds" or "seconds" over the folds; 0 without any."""
        seconds = [getattr(run, kind) for runs in self.runs for run in runs]
        return float(np.mean(seconds)) if seconds else 0.0

    @property
    def fold_seconds(self) -> float:
        """Mean time of a fold."""
        return self.mean_seconds("fit_seconds") + self.mean_seconds("predict_seconds")

    @property
    def rounds_done(self) -> float:
        """Mean fraction of the rounds of boosting that time limits have left; 1: all."""
        done = [run.rounds_done for runs in self.runs for run in runs]
        return float(np.mean(done)) if done else 1.0

    def predictions(self, repeat: int) -> list[Floats]:
        """Return the predictions of the folds of a repeat."""
        return [run.predictions for run in self.runs[repeat]]


@dataclass(eq=False)
class Runner:
    """Fits models to rows of a problem and predicts other rows.

    Attributes
    ----------
    problem : Problem
    fit_params, predict_params : dict of str to ndarray of shape (n_rows,)
        Further arguments of `fit` and `predict`; each call gets the values of its rows.
    """

    problem: Problem
    fit_params: Mapping[str, Array] = field(default_factory=dict)
    predict_params: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one = self.problem
        self._rows = MemberRows(one.table, one.y, one.codes, one.weight, one.groups, one.time)

    def fit(self, candidate: Candidate, rows: Rows | None, limit: RoundLimit | None = None) -> Any:
        """Fit a clone of a model to some rows, or a sample of them; None: to all. Boosting ends at the limit."""
        most = candidate.max_rows
        if most is not None and most < (self.problem.n_rows if rows is None else len(rows)):
            rows = self._sampled(np.arange(self.problem.n_rows) if rows is None else rows, most)
        model: Any = clone(candidate.estimator)
        if limit is None or not has_rounds(model):
            return self._fit(model, candidate.name, rows)
        own = model.callbacks
        model.set_params(callbacks=[*callbacks_of(own), limit])
        return self._fit(model, candidate.name, rows).set_params(callbacks=own)

    def _sampled(self, rows: Rows, n_rows: int) -> Rows:
        """Return a random sample of rows, with all classes."""
        order = np.random.RandomState(len(rows)).permutation(len(rows))
        chosen = order[:n_rows]
        if self.problem.codes is not None:
            chosen = np.union1d(chosen, np.unique(self.problem.codes[rows], return_index=True)[1])
        return np.asarray(rows[np.sort(chosen)])

    def _fit(self, model: Any, name: str, rows: Rows | None) -> Any:
        return self._rows.fit(model, name, rows, self._by_code(model), dict(self.fit_params))

    def _by_code(self, model: EstimatorLike) -> bool:
        return self.problem.classes is not None and gets_codes(model)

    def predict(self, model: EstimatorLike, X: TableLike) -> Floats:
        """Return class probabilities, or numbers in one column."""
        classes = self.problem.classes
        method = "predict" if classes is None or not hasattr(model, "predict_proba") else "predict_proba"
        return member_predictions(model, X, method, classes, self._by_code(model))

    def run(self, candidate: Candidate, fold: Fold, limit: Budget | None = None) -> Run:
        """Fit a model to the training rows of a fold and predict the held-out rows; boosting ends at the limit."""
        start, rounds = clock.perf_counter(), RoundLimit(Budget(None) if limit is None else limit)
        model = self.fit(candidate, fold.train, rounds)
        fitted = clock.perf_counter()
        predictions = self.predict(model, self.problem.table.take(fold.held_out))
        seconds = fitted - start, clock.perf_counter() - fitted
        return Run(*seconds, predictions, model=model, rounds_done=rounds.done, cut_seconds=rounds.cut_seconds)

    def run_labels(self, candidate: Candidate, fold: Fold) -> Array:
        """Fit a model to the training rows of a fold; return labels or numbers of the held-out rows."""
        model = self.fit(candidate, fold.train)
        params = {name: values[fold.held_out] for name, values in self.predict_params.items()}
        labels = np.asarray(model.predict(self.problem.table.take(fold.held_out), **params))
        return self.problem.classes[labels] if self.problem.classes is not None and gets_codes(model) else labels

    def run_scored(
        self, model: EstimatorLike, name: str, fold: Fold, scorers: Scorers, error_score: float | str
    ) -> Run:
        """Fit an unfitted model and score it; errors are stored in the run, unless `error_score` is "raise"."""
        problem, test = self.problem, fold.held_out
        start = clock.perf_counter()
        try:
            self._fit(model, name, fold.train)
        except Exception as error:
            if error_score == "raise":
                raise
            scores = dict.fromkeys(scorers.metrics, float(error_score))
            return Run(clock.perf_counter() - start, float("nan"), scores=scores, errors={"fit": describe_error(error)})
        fit_seconds = clock.perf_counter() - start
        target = problem.codes if self._by_code(model) and problem.codes is not None else problem.y
        weight = None if problem.weight is None else problem.weight[test]
        X = problem.table.take(test)
        scores, errors, seconds = scorers.score_model(model, X, target[test], weight, error_score, self._by_code(model))
        return Run(fit_seconds, seconds, scores=scores, errors=errors)


def with_threads(template: EstimatorLike, n_jobs: int | None, threads: ThreadPlan | None) -> Any:
    """Return a clone whose number of threads is set, if the user left it open."""
    if threads is not None:
        return threads.prepared(template)
    names = [] if n_jobs is None else unset_threads(template)
    model = clone(template)
    return model.set_params(**dict.fromkeys(names, n_jobs)) if names else model


class Budget:
    """The time limit of an evaluation.

    It uses the monotonic clock, which the processes of a machine share. That of another machine differs: a budget that
    is sent there adds the time on the way by the time of day, on which the machines must agree.

    Parameters
    ----------
    seconds : float or None
        None: no limit.
    start : float, optional
        Start on the monotonic clock. None: now.
    """

    def __init__(self, seconds: float | None, start: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start = clock.monotonic() if start is None else start

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return clock.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - self.elapsed

    def is_over(self) -> bool:
        """Return whether no time is left."""
        return self.left < 0

    def first(self, seconds: float) -> Budget:
        """Return the budget of the next seconds."""
        return Budget(self.elapsed + max(0.0, seconds), self._start)

    def __reduce__(self) -> tuple[Callable[..., Budget], tuple[float, float, float, float, str]]:
        return _budget_of, (self.seconds, self.elapsed, clock.monotonic(), clock.time(), platform.node())


def _budget_of(seconds: float, elapsed: float, monotonic: float, time_of_day: float, machine: str) -> Budget:
    now = clock.monotonic()
    waited = now - monotonic if machine == platform.node() else clock.time() - time_of_day
    return Budget(seconds, now - elapsed - max(0.0, waited))


class RoundLimit:
    """A callback that ends boosting when a budget is over, and counts the rounds; clones of an estimator share it.

    Parameters
    ----------
    budget : Budget
    least : float, default=0.0
        Fraction of the rounds that must be possible: after a tenth of the budget, a fit that is slower is ended.

    Attributes
    ----------
    n_rounds : int
        Rounds done.
    is_reached : bool
        Whether it has ended the fit.
    is_too_slow : bool
        Whether it has ended the fit early.
    """

    def __init__(self, budget: Budget, least: float = 0.0) -> None:
        self._budget, self._least = budget, least
        self.n_rounds, self.n_planned, self.is_reached, self.is_too_slow = 0, 1, False, False
        self._start = self._latest = budget.elapsed
        self._left = budget.left
        self._first: tuple[int, float] | None = None  # a round, and when it was done

    def __call__(self, state: Mapping[str, Any]) -> bool:
        """Return whether to end after this round."""
        self.n_rounds, self.n_planned = state["round"], state["n_estimators"]
        self._latest = self._budget.elapsed
        self._first = self._first or (self.n_rounds, self._latest)
        is_early = 0.1 * self._left < self._latest - self._start < 0.4 * self._left  # a round may take long
        if self._least and is_early and self._least * self._other_seconds > self._budget.left:
            self.is_too_slow = True
        self.is_reached = (self.is_too_slow or self._budget.is_over()) and self.n_rounds < self.n_planned
        return self.is_reached

    def __deepcopy__(self, memo: dict[int, Any]) -> RoundLimit:
        return self

    @property
    def done(self) -> float:
        """Fraction of the rounds that are done; 1 if the limit was not reached."""
        return self.n_rounds / self.n_planned if self.is_reached else 1.0

    @property
    def cut_seconds(self) -> float:
        """Expected time of the rounds that were not done."""
        return self._other_seconds if self.is_reached else 0.0

    @property
    def _other_seconds(self) -> float:
        """Expected time of the other rounds, by the pace after the first one, which counts the preparation."""
        if self._first is None:
            return 0.0
        first, began = self._first
        pace = (self._latest - began) / (self.n_rounds - first) if self.n_rounds > first else began - self._start
        return pace * (self.n_planned - self.n_rounds)


def has_rounds(model: EstimatorLike | None) -> bool:
    """Return whether a model is fitted in rounds that a callback may end."""
    return model is not None and "callbacks" in model.get_params(deep=False)
