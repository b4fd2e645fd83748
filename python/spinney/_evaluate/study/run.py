"""Models fitted to folds, within a budget of time: what they say of rows held out, and how long they take."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from spinney._data.select import PickTable
from spinney._ensemble.combination.fitting import MemberRows
from spinney._ensemble.combination.prediction import gets_codes
from spinney._estimator.folds import Fold
from spinney._estimator.joblib_backend import is_spread, spread
from spinney._evaluate.study.family import Candidate
from spinney._model.predictions import member_says

Floats = NDArray[np.float64]
REFIT = 1.4  # time of a fit to all rows to learn from, over that of a fold: they are a quarter more
REFIT_ALL = 1.8  # the same of a fit to all rows, the test part too
Report = Callable[[str, int, int], None]
_Done = tuple[Floats, float, float]  # what a model says of a fold, seconds to fit it and to ask it


@dataclass
class Trial:
    """What a model has said of rows held out.

    Attributes
    ----------
    candidate : Candidate
    said : list of lists of ndarray of shape (n_held_out, n_classes or 1)
        By repeat and fold.
    fit_seconds, predict_seconds : list of float
        Of each fold.
    failure : str
        Why it has none; empty if it has.
    """

    candidate: Candidate
    said: list[list[Floats]] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)
    failure: str = ""

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.candidate.name

    @property
    def fold_seconds(self) -> float:
        """Time of a fold."""
        return float(np.mean(self.fit_seconds) + np.mean(self.predict_seconds)) if self.fit_seconds else 0.0


class Budget:
    """Seconds that a study may take, and how fast the machine is against the counted work."""

    def __init__(self, seconds: float, start: float) -> None:
        self.seconds = seconds
        self._start = start
        self._pace = 1.0
        self._worked = self._spent = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the study began."""
        return clock.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - self.elapsed

    def expected(self, work: float) -> float:
        """Seconds that some counted work may take here, by what was done so far."""
        return work * self._pace

    def learn(self, work: float, seconds: float) -> None:
        """Note how long some counted work took."""
        self._worked, self._spent = self._worked + work, self._spent + seconds
        if self._worked > 0.5:  # short fits tell little
            self._pace = self._spent / self._worked


@dataclass(eq=False)
class Runner:
    """Fits models to folds of the rows to learn from.

    Attributes
    ----------
    table : PickTable
    y : ndarray of shape (n_rows,)
        Labels or values.
    codes, classes : ndarray or None
    repeats : list of lists of Fold
    budget : Budget
    """

    table: PickTable
    y: NDArray[Any]
    codes: NDArray[np.intp] | None
    classes: NDArray[Any] | None
    repeats: list[list[Fold]]
    budget: Budget

    def __post_init__(self) -> None:
        self._rows = MemberRows(self.table, self.y, self.codes, None)

    def fit(self, candidate: Candidate, rows: NDArray[np.intp] | None) -> Any:
        """Fit a model to some rows; None: to all."""
        model = clone(candidate.estimator)
        return self._rows.fit(model, candidate.name, rows, self._by_code(model), {})

    def _by_code(self, model: Any) -> bool:
        return self.classes is not None and gets_codes(model)

    def says(self, model: Any, X: Any) -> Floats:
        """Return what a model says of rows: class shares, or values in one column."""
        method = "predict" if self.classes is None or not hasattr(model, "predict_proba") else "predict_proba"
        return member_says(model, X, method, self.classes, self._by_code(model))

    def repeat(self, trial: Trial, k: int, reserve: float, report: Report, least: int = 0) -> bool:
        """Fit a model to the folds of a repeat; tell whether it got done in time.

        Parameters
        ----------
        trial : Trial
            Gets what the model says, if all folds are done.
        k : int
            The repeat.
        reserve : float
            Seconds that later work needs.
        report : callable
            Told the model, how many folds are done, and of how many.
        least : int, default=0
            Folds to be done whatever time they take; where there is none for the others, these are all that there are.
        """
        folds, done = self.repeats[k], list[_Done]()
        n_at_once = len(folds) if is_spread() else 1
        while len(done) < len(folds):
            n = len(done)
            ahead = self._ahead(trial, done, -(-(len(folds) - n) // n_at_once), k)
            if n >= least and not trial.candidate.is_baseline and ahead + reserve > self.budget.left:
                if not least:
                    return False
                self.repeats = [folds[:n]]
                break
            try:
                done += self._tried(trial.candidate, folds[n : n + n_at_once])
            except Exception as error:  # of any library: the others go on
                trial.failure = f"{type(error).__name__}: {' '.join(str(error).split())}"
                return False
            report(trial.name, len(done), len(folds))
        trial.said.append([said for said, _, _ in done])
        trial.fit_seconds += [fit for _, fit, _ in done]
        trial.predict_seconds += [predict for _, _, predict in done]
        self.budget.learn(len(done) * trial.candidate.work, sum(fit + predict for _, fit, predict in done))
        return True

    def _tried(self, candidate: Candidate, folds: list[Fold]) -> list[_Done]:
        """Fit a model to some folds: on other machines, if the caller has told joblib so."""
        if not is_spread():
            return [self._of_fold(candidate, fold) for fold in folds]
        return spread(partial(self._of_fold, candidate), folds)

    def _of_fold(self, candidate: Candidate, fold: Fold) -> _Done:
        start = clock.perf_counter()
        model = self.fit(candidate, fold.grown_on)
        fitted = clock.perf_counter()
        said = self.says(model, self.table.take(fold.held_out))
        return said, fitted - start, clock.perf_counter() - fitted

    def _ahead(self, trial: Trial, done: list[_Done], n_left: int, k: int) -> float:
        """Seconds that the rest of a repeat may take, and, in the first, the fits after it."""
        one = self.budget.expected(trial.candidate.work)
        if done or trial.fit_seconds:
            one = float(np.mean([fit + predict for _, fit, predict in done])) if done else trial.fold_seconds
        return one * (n_left + (REFIT + REFIT_ALL if k == 0 else 0.0))
