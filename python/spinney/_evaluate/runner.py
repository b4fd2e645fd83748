"""Runs models on folds within a time limit: predictions or scores, and seconds."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from spinney._data.types import Floats, TableLike
from spinney._ensemble.members import MemberRows, ThreadPlan, gets_codes, unset_threads
from spinney._estimator.held_out import Fold
from spinney._estimator.parallel import SILENT_SECONDS, Progress, Watch, is_interactive
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
        """Fit a clone of a model to some rows, or a sample of them; None: to all."""
        most = candidate.max_rows
        if most is not None and most < (self.problem.n_rows if rows is None else len(rows)):
            rows = self._sampled(np.arange(self.problem.n_rows) if rows is None else rows, most)
        return self._fit(clone(candidate.estimator), candidate.name, rows)

    def fit_until(self, candidate: Candidate, budget: Budget) -> Any:
        """Fit a clone of a model to all rows; boosting ends with the time limit, with the rounds done by then."""
        model: Any = clone(candidate.estimator)
        if "callbacks" not in model.get_params(deep=False):
            return self.fit(candidate, None)
        own = model.callbacks
        limit = [] if own is None else [own] if callable(own) else list(own)
        model.set_params(callbacks=[*limit, lambda _: budget.is_over()])
        return self.fit(replace(candidate, estimator=model), None).set_params(callbacks=own)

    def _sampled(self, rows: Rows, n_rows: int) -> Rows:
        """Return a random sample of rows, with all classes."""
        order = np.random.RandomState(len(rows)).permutation(len(rows))
        chosen = order[:n_rows]
        if self.problem.codes is not None:
            chosen = np.union1d(chosen, np.unique(self.problem.codes[rows], return_index=True)[1])
        return np.asarray(rows[np.sort(chosen)])

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
        scores, errors, seconds = scorers.score_model(model, X, target[test], weight, error_score, self._by_code(model))
        return Run(fit_seconds, seconds, scores=scores, errors=errors)


def with_threads(template: EstimatorLike, n_jobs: int | None, threads: ThreadPlan | None) -> Any:
    """Return a clone whose number of threads is set, if the user left it open."""
    if threads is not None:
        return threads.prepared(template)
    names = [] if n_jobs is None else unset_threads(template)
    model = clone(template)
    return model.set_params(**dict.fromkeys(names, n_jobs)) if names else model


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
        super().__init__("fits", n_fits, True, 0, int(shows), delay=SILENT_SECONDS if progress is None else 0.0)
        self._n_fits, self._n_done, self._left, self.budget = n_fits, 0, math.inf, budget
        self._quiet = Watch()  # the fits show nothing

    def __enter__(self) -> Self:
        self._quiet.__enter__()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._quiet.__exit__()
        super().__exit__(kind, error, trace)

    def step(self, what: str, left: float | None = None) -> None:
        """Report that a fit is finished or started, and the expected seconds left; None: by the pace so far."""
        self._n_done = min(self._n_done + 1, self._n_fits)
        self.report(self._n_done)
        if self._call is not None:
            if left is None:
                left = self.budget.elapsed / self._n_done * (self._n_fits - self._n_done)
            self._left = max(0.0, min(self.budget.left, left, 1.1 * self._left))
            self._call(self._n_done, self._n_fits, what, self._left)

    def done(self) -> None:
        """Report the end."""
        self._n_done = self._n_fits - 1
        self.step("done")


class Budget:
    """The time limit of an evaluation.

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

    def __reduce__(self) -> tuple[Callable[[float, float], Budget], tuple[float, float]]:
        return _budget_of, (self.seconds, clock.time() - self.elapsed)


def _budget_of(seconds: float, began: float) -> Budget:
    return Budget(seconds, clock.monotonic() - (clock.time() - began))
