"""``compare``: paired comparison of models by cross-validation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from spinney._data.display import Backend, ShownAsTable, align, elide, frame_of, one_line, plural, warn
from spinney._data.select import pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import ThreadPlan, are_foreign, seeded, takes_weights
from spinney._estimator.held_out import CrossValidation, Fold
from spinney._estimator.other_libraries import explain_unknown_arguments
from spinney._evaluate.folds import LARGEST_SEED, read_cv
from spinney._evaluate.problem import (
    BASELINE,
    EstimatorLike,
    Models,
    Problem,
    estimators_of,
    read_models,
    read_problem,
    read_target,
    task_of_models,
)
from spinney._evaluate.progress import EvaluationProgress
from spinney._evaluate.runner import Budget, ProgressCall, Run, Runner, with_threads
from spinney._evaluate.scoring import Scorers, Scoring, is_loss, shown_name, shown_value
from spinney._evaluate.statistics import Difference, corrected_error, p_text, paired_differences, with_error
from spinney.inspect.draw.curves import draw_comparison, draw_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WITHOUT_PROBABILITIES = ["accuracy", "neg_log_loss"]  # metrics if some model has no probabilities
_FRACTIONS = (0.1, 0.25, 0.5, 0.75)  # of the training rows, for learning curves


@explain_unknown_arguments
def compare(
    models: Models,
    X: TableLike,
    y: ColumnLike,
    *,
    cv: CrossValidation = 5,
    repeats: int = 2,
    scoring: Scoring = None,
    positive: object = None,
    groups: ColumnLike = None,
    time: ColumnLike = None,
    sample_weight: ColumnLike = None,
    reference: str | None = None,
    baseline: bool = True,
    learning_curves: bool | ArrayLike = False,
    task: Literal["auto", "classification", "regression"] = "auto",
    error_score: float | str = float("nan"),
    minutes: float | None = None,
    parallel: bool = False,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
    progress: bool | ProgressCall | None = None,
) -> Comparison:
    """Compare models by cross-validation on the same folds, with paired differences and their uncertainty.

    The training sets of the folds overlap, so that scores are not independent, and a plain t-test finds differences
    where there are none. The corrected resampled t-test uses larger standard errors. Holm's correction accounts for the
    number of models; if the best model is the reference, it covers all pairs of models, because that choice depends on
    the scores. The p-values apply to rows from the same distribution as this table.

    Ctrl-C ends the comparison and returns the results of the finished models. If a model fails, its row in the result
    has the error message.

    Parameters
    ----------
    models : dict, list, estimator or str
        Estimators of any library, model names of ``spinney fit --model`` such as "forest", pairs of a name and one of
        these, or a dict from names to these. Classifiers of other libraries are fitted to, and scored on, classes coded
        as 0, 1, ….
    X : table of shape (n_samples, n_features)
        Rows; every model gets a table of the same type.
    y : array-like of shape (n_samples,)
        Target.
    cv : int, splitter, iterable of splits, or array of fold numbers, default=5
        Folds. For a number, folds are random, and stratified if the target has classes.
    repeats : int, default=2
        Repeats with new folds, if `cv` is a number. With `time`, the folds are not repeated.
    scoring : str, callable, list or dict of these, optional
        Metrics; the first ranks the models. Names are those of scikit-learn's scorers, with or without ``neg_``, or
        short names: "auc", "f1", "brier", "mcc", "lift", "rmse", "mae", "mape", "quantile_loss_0.9". None: log loss and
        accuracy (and ROC AUC for two classes), or root mean squared error and R², as in `study`; accuracy comes first
        if a model has no probabilities.
    positive : label, optional
        The class to which f1, precision, recall, average precision and lift refer. None: class 1 if the classes are 0
        (or -1) and 1, else the rarer of two classes; with more classes, the metric is averaged over all of them.
    groups : array-like of shape (n_samples,), optional
        Rows with the same label are held out together, also by models of spinney that hold rows out themselves.
    time : array-like of shape (n_samples,), optional
        Times: held-out rows are later than training rows, also in models of spinney that hold rows out themselves.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, for models and metrics that take them.
    reference : str, optional
        Model that the others are compared with. None: the best. Naming one in advance gives smaller p-values.
    baseline : bool, default=True
        Whether to add a baseline that predicts class frequencies, or the mean.
    learning_curves : bool or array-like of float, default=False
        Whether to compute learning curves, at 10, 25, 50, 75 and 100% of the training rows. An array: at these
        fractions, and at 1.
    task : {"auto", "classification", "regression"}, default="auto"
        Task of models that are passed by name, such as "forest". "auto": the task of the estimators among the models;
        without any, classification for labels, and for integers with at most ten distinct values (the rule of `study`).
    error_score : float or "raise", default=nan
        Score of a model on a fold on which it fails.
    minutes : float, optional
        Time limit: no fit starts after it, and unfinished models are left out.
    parallel : bool, default=False
        Whether fits run in parallel, each on one thread if there are enough fits for all threads. This is faster, but
        the times of the models are not comparable. If a distributed joblib backend is active
        (``joblib.parallel_config(backend="dask")``), it runs the fits.
    n_jobs : int, optional
        Number of threads. None: all that the process may use. The scores of spinney's models do not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the folds, and of models whose random state is not set.
    progress : bool, callable or None, default=None
        Whether to report progress on standard error. None: in a terminal or notebook, after two seconds. A function is
        called with the number of finished fits, the total number, the current step, and the seconds left.

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
    >>> comparison = spinney.compare(["adaboost", "linear"], X, y, repeats=1)
    >>> comparison.names
    ['linear', 'adaboost', 'baseline']
    >>> bool(comparison.differences()["baseline"].p_holm < 0.001)
    True
    """
    table, named = pick_table(X), read_models(models)
    known = (task_of_models(named) if task == "auto" else None) or read_target(y, task).task
    estimators = estimators_of(named, known, baseline)
    if reference is not None and reference not in estimators:
        raise ValueError(f"reference={reference!r} is not among the models: {', '.join(estimators)}. Name one of them.")
    problem = read_problem(table, y, known, sample_weight, groups, time)
    if (
        scoring is None
        and known == "classification"
        and not all(hasattr(m, "predict_proba") for m in estimators.values())
    ):
        scoring = _WITHOUT_PROBABILITIES
    scorers = Scorers.of(scoring, problem, positive)
    random = check_random_state(random_state)
    repeated = read_cv(problem, cv, repeats, random)
    fractions = _read_fractions(learning_curves)
    templates = {name: seeded(estimator, random) for name, estimator in estimators.items()}
    _warn_of_weights(problem, templates)
    plan = _Plan(problem, repeated, fractions, templates, int(random.randint(LARGEST_SEED)))
    threads = ThreadPlan.of(n_jobs, len(templates) * len(plan.runs)) if parallel else None
    budget = Budget(None if minutes is None else 60.0 * minutes)
    with EvaluationProgress(progress, len(templates) * len(plan.runs), budget) as shown:
        runs = _run(plan, scorers, error_score, n_jobs, threads, shown)
    return _result(plan, runs, scorers, reference, parallel)


def _read_fractions(learning_curves: bool | ArrayLike) -> list[float]:
    """Return the fractions of the training rows, below 1, of the learning curves."""
    if isinstance(learning_curves, (bool, np.bool_)):
        return list(_FRACTIONS) if learning_curves else []
    fractions = sorted({float(one) for one in np.asarray(learning_curves, dtype=float).ravel()})
    if not fractions or fractions[0] <= 0 or fractions[-1] > 1:
        raise ValueError("learning_curves must be True, False, or fractions of the rows above 0 and up to 1.")
    return [one for one in fractions if one < 1]


def _warn_of_weights(problem: Problem, templates: dict[str, EstimatorLike]) -> None:
    without = [name for name, model in templates.items() if name != BASELINE and not takes_weights(model)]
    if problem.weight is not None and without:
        warn(f"These models do not support sample_weight and are fitted without it: {', '.join(without)}.")


@dataclass(frozen=True, eq=False)
class _Plan:
    """The runs of each model: all folds, then fractions of the training rows of the first repeat."""

    problem: Problem
    repeats: list[list[Fold]]
    fractions: list[float]
    templates: dict[str, EstimatorLike]
    seed: int

    @cached_property
    def folds(self) -> list[Fold]:
        """The folds of all repeats."""
        return [fold for folds in self.repeats for fold in folds]

    @cached_property
    def runs(self) -> list[Fold]:
        """The training and held-out rows of each run."""
        first = list(enumerate(self.repeats[0]))
        return self.folds + [self._reduced(fraction, k, fold) for fraction in self.fractions for k, fold in first]

    def _reduced(self, fraction: float, k: int, fold: Fold) -> Fold:
        order = np.random.RandomState([self.seed, k]).permutation(fold.train)
        return Fold(np.sort(order[: max(2, round(fraction * len(order)))]), fold.held_out)


def _run(
    plan: _Plan,
    scorers: Scorers,
    error_score: float | str,
    n_jobs: int | None,
    threads: ThreadPlan | None,
    progress: EvaluationProgress,
) -> dict[str, list[Run]]:
    """Return the finished runs by model, until an interruption or the time limit."""
    jobs = [(name, fold) for name in plan.templates for fold in plan.runs]
    runner, budget, finished = Runner(plan.problem), progress.budget, {name: list[Run]() for name in plan.templates}

    def work(k: int) -> Run | None:
        name, fold = jobs[k]
        if budget.is_over():
            return None
        return runner.run_scored(with_threads(plan.templates[name], n_jobs, threads), name, fold, scorers, error_score)

    runs: Iterator[Run | None] = map(work, range(len(jobs)))
    if threads is not None:
        runs = threads.run(work, len(jobs), are_foreign(list(plan.templates.values())))
    try:
        for (name, _), run in zip(jobs, runs, strict=False):
            if run is None:
                break
            finished[name].append(run)
            progress.step(name)
    except KeyboardInterrupt:
        if not any(len(runs) == len(plan.runs) for runs in finished.values()):
            raise
    return finished


def _result(
    plan: _Plan, runs: dict[str, list[Run]], scorers: Scorers, reference: str | None, parallel: bool
) -> Comparison:
    metrics = list(scorers.metrics)
    done = [name for name in plan.templates if len(runs[name]) == len(plan.runs)]
    unfinished = [name for name in plan.templates if name not in done]
    if not done:
        raise TimeoutError(
            "No model was finished within the time limit. Raise minutes (--minutes), or use fewer folds."
        )
    if unfinished:
        warn(f"The comparison stopped early; these models are left out: {', '.join(unfinished)}.")
    if reference is not None and reference not in done:
        warn(f"The reference {reference!r} was not finished; models are compared with the best model instead.")
        reference = None
    by_fold = {name: runs[name][: len(plan.folds)] for name in done}
    best = {name: np.mean([run.scores[metrics[0]] for run in one]) for name, one in by_fold.items()}
    order = sorted(done, key=lambda name: -np.nan_to_num(best[name], nan=-np.inf))
    ordered = [by_fold[name] for name in order]
    curves, curve_rows = _curves(plan, runs, order, metrics[0])
    return Comparison(
        names=order,
        metrics=metrics,
        scores={metric: np.array([[run.scores[metric] for run in one] for one in ordered]) for metric in metrics},
        fit_seconds=np.array([[run.fit_seconds for run in one] for one in ordered]),
        predict_seconds=np.array([[run.predict_seconds for run in one] for one in ordered]),
        errors={name: text for name in order if (text := _errors(runs[name]))},
        reference_=order[0] if reference is None else reference,
        is_reference_named=reference is not None,
        estimators=plan.templates,
        n_train=float(np.mean([len(fold.train) for fold in plan.folds])),
        n_test=float(np.mean([len(fold.held_out) for fold in plan.folds])),
        side_by_side=parallel,
        unfinished=unfinished,
        curves=curves,
        curve_rows=curve_rows,
        note=scorers.note,
    )


def _errors(runs: list[Run]) -> str:
    """Return the errors of a model, each once, with the number of fits."""
    texts = [text if what == "fit" else f"{what}: {text}" for run in runs for what, text in run.errors.items()]
    return "; ".join(
        text if n == len(runs) else f"{text} ({n} of {len(runs)} fits)" for text, n in Counter(texts).items()
    )


def _curves(
    plan: _Plan, runs: dict[str, list[Run]], order: list[str], metric: str
) -> tuple[dict[str, Floats], NDArray[np.intp]]:
    """Return the learning curves by model, (n_sizes, n_folds), and the numbers of rows."""
    if not plan.fractions:
        return {}, np.empty(0, dtype=np.intp)
    n_first = len(plan.repeats[0])
    places = [*range(len(plan.folds), len(plan.runs)), *range(n_first)]
    shape = (len(plan.fractions) + 1, n_first)
    sizes = np.array([len(plan.runs[k].train) for k in places]).reshape(shape).mean(axis=1)
    curves = {name: np.array([runs[name][k].scores[metric] for k in places]).reshape(shape) for name in order}
    return curves, np.round(sizes).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Comparison(ShownAsTable):
    """Models compared on the same folds; returned by `compare`.

    Attributes
    ----------
    names : list of str
        The models, best first; failed ones come last.
    metrics : list of str
        Names of the scorers; the first ranks the models.
    scores : dict of str to ndarray of shape (n_models, n_folds)
        By metric, in the order of `names`; larger is better, as for all scikit-learn scorers.
    fit_seconds, predict_seconds : ndarray of shape (n_models, n_folds)
        Time of each fit, and of the first prediction of the held-out rows.
    errors : dict of str to str
        The error message of each model that failed.
    best_ : str
        The model with the best mean of the first metric.
    reference_ : str
        The model that the others are compared with.
    is_reference_named : bool
        True if the reference was named in advance, False if it is the best model.
    estimators : dict of str to estimator
        The models, unfitted, as they were compared.
    unfinished : list of str
        Models that were not finished because of an interruption or the time limit.
    curves : dict of str to ndarray of shape (n_sizes, n_folds)
        Learning curve of each model: the first metric by the number of training rows.
    curve_rows : ndarray of shape (n_sizes,)
        The numbers of training rows.
    note : str
        The positive class of metrics such as f1, and why it was chosen; "" for other metrics.
    n_train, n_test : float
        Mean number of training and of held-out rows.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> comparison = spinney.compare(["tree", "linear"], X, y, repeats=1, baseline=False)
    >>> comparison.best_
    'linear'
    >>> comparison.differences()["tree"].mean < 0
    True
    """

    names: list[str]
    metrics: list[str]
    scores: dict[str, Floats]
    fit_seconds: Floats
    predict_seconds: Floats
    errors: dict[str, str]
    reference_: str
    estimators: dict[str, EstimatorLike]
    n_train: float
    n_test: float
    is_reference_named: bool = False
    side_by_side: bool = False
    unfinished: list[str] = field(default_factory=list)
    curves: dict[str, Floats] = field(default_factory=dict)
    curve_rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    note: str = ""

    @property
    def best_(self) -> str:
        """The model with the best mean of the first metric."""
        return self.names[0]

    @property
    def n_folds(self) -> int:
        """Number of folds, of all repeats together."""
        return int(self.fit_seconds.shape[1])

    def __len__(self) -> int:
        return len(self.names)

    def _metric(self, metric: str | None) -> str:
        if metric is None:
            return self.metrics[0]
        if metric not in self.scores:
            raise ValueError(f"{metric!r} was not compared. Metrics are {', '.join(self.metrics)}.")
        return metric

    def mean(self, name: str, metric: str | None = None) -> tuple[float, float]:
        """Return the mean score of a model over the folds, and its corrected standard error.

        Parameters
        ----------
        name : str
            The model.
        metric : str, optional
            Name of the metric. None: the first of `metrics`.

        Returns
        -------
        tuple of float
            NaN if the model failed.
        """
        values = self.scores[self._metric(metric)][self.names.index(name)]
        return float(values.mean()), corrected_error(values, self.n_test / self.n_train)

    def differences(self, reference: str | None = None, metric: str | None = None) -> dict[str, Difference]:
        """Return the difference of each model to a reference, paired by fold, with the corrected resampled t-test.

        Parameters
        ----------
        reference : str, optional
            The model to compare with. None: the reference of the comparison.
        metric : str, optional
            Name of the metric. None: the first of `metrics`.

        Returns
        -------
        dict of str to Difference
            By model: the `mean` difference, its standard `error`, its 95% confidence interval from `low` to `high`, the
            `p_value`, and `p_holm`, the p-value with Holm's correction.
        """
        reference = self.reference_ if reference is None else reference
        if reference not in self.names:
            raise ValueError(f"{reference!r} was not compared. Models are {', '.join(self.names)}.")
        scores = self.scores[self._metric(metric)]
        is_named = self.is_reference_named and reference == self.reference_
        differences = paired_differences(
            scores,
            self.names.index(reference),
            self.n_test / self.n_train,
            is_best=reference == self.best_ and not is_named,
        )
        return dict(zip(self.names, differences, strict=True))

    def to_frame(self, metric: str | None = None, backend: Backend | None = None) -> Any:
        """Return a row for each model: mean scores, standard errors, difference to the reference, p-values, times.

        Parameters
        ----------
        metric : str, optional
            Metric of the differences. None: the first of `metrics`.
        backend : {"pandas", "polars"}, optional
            Library of the frame. None: pandas if it is installed.

        Returns
        -------
        DataFrame
            Scores follow scikit-learn's scorers: larger is better.
        """
        gaps = self.differences(metric=metric)
        columns: dict[str, list[Any]] = {"model": list(self.names)}
        for name in self.metrics:
            columns[name] = [self.mean(model, name)[0] for model in self.names]
            columns[f"{name}_error"] = [self.mean(model, name)[1] for model in self.names]
        parts = {"difference": "mean", "difference_error": "error", "p_value": "p_value", "p_holm": "p_holm"}
        for column, part in parts.items():
            columns[column] = [getattr(gaps[name], part) for name in self.names]
        columns["fit_seconds"] = _means(self.fit_seconds)
        columns["predict_seconds"] = _means(self.predict_seconds)
        columns["failed"] = [self.errors.get(name) for name in self.names]
        return frame_of(columns, backend)

    def plot(self, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the paired differences to the reference with 95% intervals, and the mean scores.

        Parameters
        ----------
        metric : str, optional
            Name of the metric. None: the first of `metrics`.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        return draw_comparison(self, self._metric(metric), ax)

    def plot_curves(self, *, ax: Axes | None = None) -> Axes:
        """Draw the learning curves: the first metric by the number of training rows.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        if not self.curves:
            raise ValueError("There are no learning curves. Call compare(..., learning_curves=True).")
        return draw_curves(self, ax)

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(self.names)}; best {self.best_}>"

    def __str__(self) -> str:
        metric = self.metrics[0]
        head = ["", *(shown_name(name) for name in self.metrics), f"difference from {elide(self.reference_, 24)}"]
        head += ["p", "p (Holm)", "fit s", "predict s"]
        rows = [head, *(self._line(name, gap) for name, gap in self.differences().items())]
        title = (
            f"{plural(len(self), 'model')}, {plural(self.n_folds, 'fold')}, "
            f"{self.n_train:,.0f} training rows and {self.n_test:,.0f} held-out rows; "
            f"differences in {shown_name(metric)} from {self.reference_}"
        )
        notes = [self.note] * bool(self.note) + [f"{name}: {one_line(text)}" for name, text in self.errors.items()]
        if self.unfinished:
            notes.append(f"Not finished: {', '.join(self.unfinished)}")
        if self.side_by_side:
            notes.append("Fits ran in parallel, on one thread each.")
        return "\n".join([title, "", *align(rows), *([""] if notes else []), *notes])

    def _line(self, name: str, gap: Difference) -> list[str]:
        k = self.names.index(name)
        cells = [elide(one_line(name), 32)]
        for metric in self.metrics:
            mean, error = self.mean(name, metric)
            cells.append(with_error(shown_value(metric, mean), error))
        if name == self.reference_:
            cells += ["", "", ""]
        else:
            sign = -1 if is_loss(self.metrics[0]) else 1
            cells += [with_error(sign * gap.mean, gap.error), p_text(gap.p_value), p_text(gap.p_holm)]
        seconds = (_means(self.fit_seconds)[k], _means(self.predict_seconds)[k])
        return [*cells, *("–" if math.isnan(s) else f"{s:.3g}" for s in seconds)]


def _means(seconds: Floats) -> list[float]:
    return [float(np.nanmean(row)) if not np.isnan(row).all() else float("nan") for row in seconds]
