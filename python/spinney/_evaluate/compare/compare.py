"""``compare``: which of several models is best, and how sure one can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from spinney._data.display.warn import warn
from spinney._data.select import pick_table
from spinney._ensemble.combination.fitting import Sharing, seeded
from spinney._ensemble.member import takes_weights
from spinney._estimator.estimator import Estimator
from spinney._estimator.folds import Fold
from spinney._estimator.progress import Progress
from spinney._estimator.target import read_weights
from spinney._evaluate.compare.deadline import Deadline
from spinney._evaluate.compare.problem import (
    BASELINE,
    Problem,
    estimators_of,
    make_folds,
    read_metrics,
    read_models,
    read_problem,
    task_of,
)
from spinney._evaluate.compare.result import Comparison
from spinney._evaluate.compare.runs import Judge, Run, prepared

_SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the rows, for learning curves
_TASKS = ("auto", "classification", "regression")


def compare(
    models: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    repeats: int = 2,
    scoring: Any = None,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    reference: str | None = None,
    baseline: bool = True,
    learning_curves: Any = False,
    task: str = "auto",
    error_score: float | str = float("nan"),
    max_seconds: float | None = None,
    parallel: bool = False,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> Comparison:
    """Compare models by cross-validation on the same folds, with paired differences and their uncertainty.

    Folds share rows that are learned from, so that their scores are not independent, and a plain t-test finds
    differences where there are none. The corrected resampled t-test widens the errors by what the folds share; Holm's
    correction allows for the number of models. Both are of the scores of one table: they say how sure one can be that a
    model does better on rows like these.

    An interruption (Ctrl-C) ends the comparison with the models that are done. A model that fails has the reason in its
    row.

    Parameters
    ----------
    models : dict, list, estimator or str
        Estimators of any library, words of ``spinney fit --model`` such as "forest", or pairs of a name and one of
        these. Other libraries' classifiers learn and are judged by the codes of the classes.
    X : table of shape (n_samples, n_features)
        Rows; every model gets a table of the same kind.
    y : array-like of shape (n_samples,)
        Target.
    cv : int, splitter, iterable of splits, or array of fold numbers, default=5
        Folds. For a number, they are drawn by `random_state` with the classes spread evenly.
    repeats : int, default=2
        How often folds are drawn anew, where `cv` is a number.
    scoring : str, callable, list or dict of these, optional
        Scikit-learn scorers; the first decides which model is best. None: accuracy and log loss, or R² and the root of
        the mean squared error.
    groups : array-like of shape (n_samples,), optional
        Rows with the same label are held out together, also by models of spinney that hold rows out by themselves.
    time : array-like of shape (n_samples,), optional
        Moments: rows are held out that come after those that are learned from, in `cv` folds; likewise.
    sample_weight : array-like of shape (n_samples,), optional
        For models and metrics that take weights.
    reference : str, optional
        Model that differences are taken to. None: the best.
    baseline : bool, default=True
        Whether to add a model that always says the same: class shares, or the mean.
    learning_curves : bool or array-like of float, default=False
        Whether to fit each model to shares of the rows too: 10, 25, 50 and 75%, or those given.
    task : {"auto", "classification", "regression"}, default="auto"
        What words such as "forest" stand for. "auto": by other models, else by y.
    error_score : float or "raise", default=nan
        What a model scores on a fold on which it fails.
    max_seconds : float, optional
        No fit is begun after this time; models that are not done then are left out.
    parallel : bool, default=False
        Whether fits run side by side, on one thread each where there are enough. Sooner done, but times then say
        little. Where joblib has a backend of other machines (``joblib.parallel_config(backend="dask")``), they run
        there. False: one after the other.
    n_jobs : int, optional
        Threads. None: all that the process may use. Scores of spinney's models are the same for any number.
    random_state : int, RandomState or None, default=0
        Seed of the folds, and of random states of models that are None.
    verbose : int, default=0
        1 reports fits done and time left to standard error.

    Returns
    -------
    Comparison
        Prints as a table; has `to_frame`, `plot`, `differences`, `best_`.

    References
    ----------
    C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine Learning 52, 239-281.

    S. Holm (1979). A simple sequentially rejective multiple test procedure. Scand. J. Statistics 6, 65-70.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> found = spinney.compare(["tree", "linear"], X, y, repeats=1)
    >>> found.names
    ['linear', 'tree', 'baseline']
    >>> bool(found.differences()["baseline"].p_holm < 0.001)
    True
    """
    if task not in _TASKS:
        raise ValueError(f"task must be one of {', '.join(_TASKS)}. Got {task!r}.")
    table = pick_table(X)
    given = read_models(models)
    kind = task_of(given, y, task)
    estimators = estimators_of(given, kind, baseline)
    if reference is not None and reference not in estimators:
        raise ValueError(f"reference={reference!r} is not among the models: {', '.join(estimators)}.")
    problem = read_problem(table, y, read_weights(sample_weight, table.n_rows), kind, groups, time)
    metrics = read_metrics(scoring, kind)
    random = check_random_state(random_state)
    folds, n_first = make_folds(problem, cv, repeats, random)
    shares = _read_shares(learning_curves)
    templates = {name: seeded(estimator, random) for name, estimator in estimators.items()}
    _warn_of_weights(problem, templates)
    plan = _Plan(problem, folds, n_first, shares, templates, list(metrics), int(random.randint(2**31 - 1)))
    found = _run(plan, Judge(problem, metrics, error_score), max_seconds, n_jobs, parallel, verbose)
    return _result(plan, found, reference, parallel)


def _read_shares(learning_curves: Any) -> list[float]:
    """Return the shares of the rows, below 1, that learning curves ask for; none if there are to be none."""
    if isinstance(learning_curves, (bool, np.bool_)):
        return list(_SHARES[:-1]) if learning_curves else []
    shares = sorted({float(share) for share in np.asarray(learning_curves, dtype=float).ravel()})
    if not shares or shares[0] <= 0 or shares[-1] > 1:
        raise ValueError("learning_curves must be True, False, or shares of the rows above 0 and up to 1.")
    return [share for share in shares if share < 1]


def _warn_of_weights(problem: Problem, templates: dict[str, Any]) -> None:
    without = [name for name, model in templates.items() if name != BASELINE and not takes_weights(model)]
    if problem.weight is not None and without:
        warn(f"These models take no sample_weight and are fitted without: {', '.join(without)}.")


@dataclass(frozen=True, eq=False)
class _Plan:
    """All runs there are to be: each model on every fold, and on parts of the first folds."""

    problem: Problem
    folds: list[Fold]
    n_first: int
    shares: list[float]
    templates: dict[str, Any]
    metrics: list[str]
    seed: int

    @property
    def n_runs(self) -> int:
        """Runs of one model."""
        return len(self.folds) + len(self.shares) * self.n_first

    def rows(self, run: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows that a run learns from, and those it is judged by."""
        if run < len(self.folds):
            return self.folds[run].grown_on, self.folds[run].held_out
        part, k = divmod(run - len(self.folds), self.n_first)
        fold = self.folds[k]
        order = np.random.RandomState([self.seed, k]).permutation(fold.grown_on)
        n = max(2, round(self.shares[part] * len(order)))
        return np.sort(order[:n]), fold.held_out


@dataclass
class _Found:
    """Runs that are done, by model."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    was_cut: bool = False


def _run(
    plan: _Plan, judge: Judge, max_seconds: float | None, n_jobs: int | None, parallel: bool, verbose: int
) -> _Found:
    names = list(plan.templates)
    tasks = [(name, run) for name in names for run in range(plan.n_runs)]
    sharing = Sharing.of(n_jobs, len(tasks)) if parallel else None
    end, found = Deadline(max_seconds), _Found({name: [] for name in names})

    def work(k: int) -> Run | None:
        if end.is_over():
            return None
        name, run = tasks[k]
        return judge.run(prepared(plan.templates[name], n_jobs, sharing), name, *plan.rows(run))

    has_foreign = any(not isinstance(model, Estimator) for model in plan.templates.values())
    with Progress("fits", len(tasks), False, 0, verbose) as progress:
        runs: Iterator[Run | None] = (
            (work(k) for k in range(len(tasks))) if sharing is None else sharing.run(work, len(tasks), has_foreign)
        )
        try:
            for k, run in enumerate(runs):
                if run is None:
                    found.was_cut = True
                    break
                found.runs[tasks[k][0]].append(run)
                progress.report(k + 1)
        except KeyboardInterrupt:
            if not any(len(done) == plan.n_runs for done in found.runs.values()):
                raise
            found.was_cut = True
    return found


def _result(plan: _Plan, found: _Found, reference: str | None, parallel: bool) -> Comparison:
    done = [name for name in plan.templates if len(found.runs[name]) == plan.n_runs]
    unfinished = [name for name in plan.templates if name not in done]
    if not done:
        raise TimeoutError("No model was done in max_seconds. Allow more time, or use fewer folds.")
    if unfinished:
        warn(f"The comparison was cut short; these models are left out: {', '.join(unfinished)}.")
    if reference is not None and reference not in done:
        warn(f"The reference {reference!r} was not done; differences are taken to the best model instead.")
        reference = None
    n_folds, metric = len(plan.folds), plan.metrics[0]
    by_model = {name: np.array([run.scores[metric] for run in found.runs[name][:n_folds]]) for name in done}
    order = sorted(done, key=lambda name: -np.nan_to_num(by_model[name].mean(), nan=-np.inf))

    def gathered(value: Any) -> NDArray[np.float64]:
        return np.array([[value(run) for run in found.runs[name][:n_folds]] for name in order])

    rows = np.array([[len(side) for side in (fold.grown_on, fold.held_out)] for fold in plan.folds]).mean(axis=0)
    return Comparison(
        order,
        plan.metrics,
        {one: gathered(lambda run, one=one: run.scores[one]) for one in plan.metrics},
        gathered(lambda run: run.fit_seconds),
        gathered(lambda run: run.predict_seconds),
        {name: text for name in order if (text := _errors(found.runs[name]))},
        order[0] if reference is None else reference,
        plan.templates,
        float(rows[0]),
        float(rows[1]),
        parallel,
        unfinished,
        *_curves(plan, found, order),
    )


def _errors(runs: list[Run]) -> str:
    """Say what went wrong with a model, each thing once, and on how many folds."""
    counts: dict[str, int] = {}
    for run in runs:
        for where, text in run.errors.items():
            said = text if where == "fit" else f"{where}: {text}"
            counts[said] = counts.get(said, 0) + 1
    return "; ".join(text if n == len(runs) else f"{text} ({n} of {len(runs)} fits)" for text, n in counts.items())


def _curves(plan: _Plan, found: _Found, order: list[str]) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.intp]]:
    if not plan.shares:
        return {}, np.empty(0, dtype=np.intp)
    runs = [*range(len(plan.folds), plan.n_runs), *range(plan.n_first)]
    shape = (len(plan.shares) + 1, plan.n_first)
    sizes = np.array([len(plan.rows(run)[0]) for run in runs]).reshape(shape).mean(axis=1)
    metric = plan.metrics[0]
    curves = {name: np.array([found.runs[name][run].scores[metric] for run in runs]).reshape(shape) for name in order}
    return curves, np.round(sizes).astype(np.intp)
