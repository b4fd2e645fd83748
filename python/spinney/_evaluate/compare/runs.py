"""Fits and scores of models on folds, and how long they take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from spinney._ensemble.combination.fitting import MemberRows, Sharing, open_threads
from spinney._ensemble.combination.prediction import gets_codes
from spinney._evaluate.compare.problem import Problem
from spinney._model.predictions import METHODS

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One model on one fold.

    Attributes
    ----------
    scores : dict of str to float
        By metric; NaN where there is none.
    fit_seconds, predict_seconds : float
        Time of the fit, and of the first time that the model is asked about the rows held out.
    errors : dict of str to str
        What went wrong, by metric, or by "fit".
    """

    scores: dict[str, float]
    fit_seconds: float
    predict_seconds: float
    errors: dict[str, str]


@dataclass(frozen=True, eq=False)
class Judge:
    """Fits models to some rows and scores them on others.

    Attributes
    ----------
    problem : Problem
    metrics : dict of str to scorer
    error_score : float or "raise"
        What a model scores that fails.
    """

    problem: Problem
    metrics: dict[str, Any]
    error_score: float | str

    def run(self, model: Any, name: str, train: NDArray[np.intp], test: NDArray[np.intp]) -> Run:
        """Fit and score a model."""
        problem = self.problem
        by_code = problem.codes is not None and gets_codes(model)
        rows = MemberRows(problem.table, problem.target, problem.codes, problem.weight, problem.groups, problem.time)
        start = time.perf_counter()
        try:
            rows.fit(model, name, train, by_code, {})
        except Exception as error:
            if self.error_score == "raise":
                raise
            seconds = time.perf_counter() - start
            scores = dict.fromkeys(self.metrics, float(self.error_score))
            return Run(scores, seconds, float("nan"), {"fit": _in_a_line(error)})
        fit_seconds = time.perf_counter() - start
        spent = _asked_once(model)
        target = problem.codes if by_code and problem.codes is not None else problem.target
        given = {} if problem.weight is None else {"sample_weight": problem.weight[test]}
        scores, errors = self._scores(model, problem.table.take(test), target[test], given)
        return Run(scores, fit_seconds, spent[0] if spent else float("nan"), errors)

    def _scores(self, model: Any, X: Any, y: Any, given: dict[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
        scores, errors = {}, {}
        for metric, scorer in self.metrics.items():
            try:
                scores[metric] = float(scorer(model, X, y, **given))
            except Exception as error:
                if self.error_score == "raise":
                    raise
                scores[metric], errors[metric] = float(self.error_score), _in_a_line(error)
        return scores, errors


def _asked_once(model: Any) -> list[float]:
    """Have a model that is about to be scored answer each question once, and note how long it takes."""
    spent: list[float] = []

    def noted(ask: Any) -> Any:
        answers: list[Any] = []

        @wraps(ask)
        def asked(*args: Any, **kwargs: Any) -> Any:
            if not answers:
                start = time.perf_counter()
                answers.append(ask(*args, **kwargs))
                spent.append(time.perf_counter() - start)
            return answers[0]

        return asked

    for method in METHODS:
        if hasattr(model, method):
            setattr(model, method, noted(getattr(model, method)))
    return spent


def _in_a_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def prepared(template: Any, n_jobs: int | None, sharing: Sharing | None) -> Any:
    """Return a clone with its number of threads set, where it is open."""
    if sharing is not None:
        return sharing.prepared(template)
    names = [] if n_jobs is None else open_threads(template)
    model = clone(template)
    return model.set_params(**dict.fromkeys(names, n_jobs)) if names else model
