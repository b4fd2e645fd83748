"""Runs models on folds within a time limit: predictions or scores, and seconds."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from spinney._data.types import Floats, TableLike
from spinney._ensemble.members import MemberRows, ThreadPlan, gets_codes, unset_threads
from spinney._estimator.held_out import Fold
from spinney._estimator.parallel import Progress, is_distributed, is_interactive, run_distributed
from spinney._evaluate.problem import Array, EstimatorLike, Problem, Rows
from spinney._evaluate.scoring import Scorers, describe_error
from spinney._model.predictions import member_predictions

REFIT = 1.4  # time of a fit to all training rows, relative to a fold
REFIT_ALL = 1.8  # time of a fit to all rows, including the test set, relative to a fold
ProgressCall = Callable[[int, int, str, float], None]  # finished fits, all fits, current step, seconds left
_NO_PREDICTIONS = np.empty((0, 0))
_SILENT_SECONDS = 2.0  # before progress is shown that was not requested


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to evaluate: its name, the unfitted estimator (None for the stack), and the estimated work of a fit."""

    name: str
    estimator: EstimatorLike | None
    work: float = 0.0
    is_baseline: bool = False
    is_peer: bool = False


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
    """

    fit_seconds: float
    predict_seconds: float
    predictions: Floats = field(default_factory=lambda: _NO_PREDICTIONS)
    scores: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Time of fit and prediction."""
        return self.fit_seconds + self.predict_seconds


@dataclass(eq=False)
class Trial:
    """The runs of one model, by repeat and fold; `failure` is the reason why there are none."""

    candidate: Candidate
    runs: list[list[Run]] = field(default_factory=list)
    failure: str = ""

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

    def fit(self, candidate: Candidate, rows: Rows | None) -> Any:
        """Fit a clone of a model to some rows; None: to all."""
        return self._fit(clone(candidate.estimator), candidate.name, rows)

    def _fit(self, model: EstimatorLike, name: str, rows: Rows | None) -> Any:
        return self._rows.fit(model, name, rows, self._by_code(model), dict(self.fit_params))

    def _by_code(self, model: EstimatorLike) -> bool:
        return self.problem.classes is not None and gets_codes(model)

    def predict(self, model: EstimatorLike, X: TableLike) -> Floats:
        """Return class probabilities, or numbers in one column."""
        classes = self.problem.classes
        method = "predict" if classes is None or not hasattr(model, "predict_proba") else "predict_proba"
        return member_predictions(model, X, method, classes, self._by_code(model))

    def run(self, candidate: Candidate, fold: Fold) -> Run:
        """Fit a model to the training rows of a fold and predict the held-out rows."""
        start = clock.perf_counter()
        model = self.fit(candidate, fold.train)
        fitted = clock.perf_counter()
        predictions = self.predict(model, self.problem.table.take(fold.held_out))
        return Run(fitted - start, clock.perf_counter() - fitted, predictions)

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
        scores, errors, seconds = scorers.score_model(model, X, target[test], weight, error_score)
        return Run(fit_seconds, seconds, scores=scores, errors=errors)


def with_threads(template: EstimatorLike, n_jobs: int | None, threads: ThreadPlan | None) -> Any:
    """Return a clone whose number of threads is set, if the user left it open."""
    if threads is not None:
        return threads.prepared(template)
    names = [] if n_jobs is None else unset_threads(template)
    model = clone(template)
    return model.set_params(**dict.fromkeys(names, n_jobs)) if names else model


@dataclass(eq=False)
class FoldRunner:
    """Runs trials on folds, model by model, until the time limit.

    Attributes
    ----------
    runner : Runner
    repeats : list of lists of Fold
        If time is short, the folds that there was time for.
    progress : EvaluationProgress
    """

    runner: Runner
    repeats: list[list[Fold]]
    progress: EvaluationProgress

    def repeat(self, trial: Trial, k: int, reserve: float, least: int = 0) -> bool:
        """Run a model on the folds of a repeat; return whether it was finished in time.

        Parameters
        ----------
        trial : Trial
            Gets the runs, if all folds are finished.
        k : int
            The repeat.
        reserve : float
            Seconds to reserve for later work.
        least : int, default=0
            Folds to run even without time left; the others are then dropped for all models.
        """
        folds, done = self.repeats[k], list[Run]()
        n_at_once = len(folds) if is_distributed() else 1
        while len(done) < len(folds):
            n = len(done)
            ahead = self._seconds_ahead(trial, done, -(-(len(folds) - n) // n_at_once), k)
            if n >= least and not trial.candidate.is_baseline and ahead + reserve > self.progress.budget.left:
                if not least:
                    return False
                self.repeats = [folds[:n]]
                break
            try:
                done += self._run(trial.candidate, folds[n : n + n_at_once])
            except Exception as error:  # of any library; the other models continue
                trial.failure = describe_error(error)
                return False
            self.progress.step(f"{trial.name}, fold {len(done)} of {len(folds)}")
        trial.runs.append(done)
        self.progress.budget.learn(len(done) * trial.candidate.work, sum(run.seconds for run in done))
        return True

    def _run(self, candidate: Candidate, folds: list[Fold]) -> list[Run]:
        """Run a model on some folds; with a distributed joblib backend, on other machines."""
        if is_distributed():
            return run_distributed(partial(self.runner.run, candidate), folds)
        return [self.runner.run(candidate, fold) for fold in folds]

    def _seconds_ahead(self, trial: Trial, done: list[Run], n_left: int, k: int) -> float:
        """Return the expected seconds of the rest of a repeat, and, for the first, of the final fits."""
        one = self.progress.budget.expected(trial.candidate.work)
        if done or trial.runs:
            one = float(np.mean([run.seconds for run in done])) if done else trial.fold_seconds
        return one * (n_left + (REFIT + REFIT_ALL if k == 0 else 0.0))


class EvaluationProgress(Progress):
    """Reports the progress of an evaluation: to a function of the caller, or on standard error.

    Parameters
    ----------
    progress : bool, callable or None
        Argument of the caller. None: in a terminal or notebook, after two seconds.
    n_fits : int
        Planned number of fits.
    budget : Budget
    """

    def __init__(self, progress: bool | ProgressCall | None, n_fits: int, budget: Budget) -> None:
        self._call = progress if callable(progress) else None
        shows = is_interactive() if progress is None else bool(progress) and self._call is None
        super().__init__("fits", n_fits, True, 0, int(shows), delay=_SILENT_SECONDS if progress is None else 0.0)
        self._n_fits, self._n_done, self.budget = n_fits, 0, budget

    def step(self, what: str) -> None:
        """Report that a fit is finished or started."""
        self._n_done = min(self._n_done + 1, self._n_fits)
        self.report(self._n_done)
        if self._call is not None:
            pace = self.budget.elapsed / self._n_done
            left = max(0.0, min(self.budget.left, pace * (self._n_fits - self._n_done)))
            self._call(self._n_done, self._n_fits, what, left)

    def done(self) -> None:
        """Report the end."""
        self._n_done = self._n_fits - 1
        self.step("done")


class Budget:
    """The time limit of an evaluation, and the speed of the machine relative to the estimated work.

    It uses the monotonic clock. That clock differs between machines: a pickled budget holds the time of day, on which
    the machines must agree.

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
        self._pace = 1.0
        self._worked = self._spent = 0.0

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

    def expected(self, work: float) -> float:
        """Return the expected seconds of some estimated work on this machine."""
        return work * self._pace

    def learn(self, work: float, seconds: float) -> None:
        """Update the speed by the seconds that some estimated work took."""
        self._worked, self._spent = self._worked + work, self._spent + seconds
        if self._worked > 0.5:  # short fits are unreliable
            self._pace = self._spent / self._worked

    def __reduce__(self) -> tuple[Callable[[float, float], Budget], tuple[float, float]]:
        return _budget_of, (self.seconds, clock.time() - self.elapsed)


def _budget_of(seconds: float, began: float) -> Budget:
    return Budget(seconds, clock.monotonic() - (clock.time() - began))
