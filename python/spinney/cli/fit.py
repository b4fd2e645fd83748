"""``spinney fit``: fit one model to a table and cross-validate it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score, root_mean_squared_error

from spinney import _engine
from spinney._boosting.loss import NUMBER_LOSSES
from spinney._boosting.ranking import ranking_score
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._ensemble.members import estimator_of_name
from spinney._estimator.estimator import About, Estimator
from spinney._estimator.held_out import Fold
from spinney._evaluate.folds import draw_folds
from spinney._evaluate.problem import BASELINE, Array, EstimatorLike, Problem, baseline_of
from spinney._evaluate.progress import EvaluationProgress
from spinney._evaluate.runner import Budget, Candidate, Runner
from spinney._evaluate.scoring import DEFAULT_METRICS, Scorers, shown_name, shown_value
from spinney._evaluate.statistics import corrected_error
from spinney._names import FITTED_BY_COMMAND_ALONE, public
from spinney.cli.failures import command_errors, fail, warnings_in_one_line
from spinney.cli.fit_table import (
    MOST_BINS,
    MOST_ROUNDS,
    FitTable,
    Source,
    files_of,
    large_rows,
    memory_allowed,
    naming_unreadable_file,
    read_fit_table,
    read_large_table,
)
from spinney.cli.output import print_json, print_lines, table_of
from spinney.cli.tables import check_writable

if TYPE_CHECKING:
    import polars as pl

_STOPPING = {"early_stopping": True, "n_iter_no_change": 20}  # with a maximum number of rounds
# defaults for a table that is read out of core, and the sentence printed about them
_OUT_OF_CORE: dict[str, tuple[dict[str, object], str]] = {
    "boosting": (
        {"n_estimators": MOST_ROUNDS},
        "A validation set for early stopping replaces cross-validation.",
    ),
    "forest": (
        {"max_bins": MOST_BINS, "oob_score": True},
        f"Columns are binned into at most {MOST_BINS} bins. The out-of-bag score replaces cross-validation.",
    ),
    "extra-trees": ({}, "There is no cross-validation."),
    "tree": (
        {"max_bins": MOST_BINS},
        f"Columns are binned into at most {MOST_BINS} bins. There is no cross-validation.",
    ),
}
_FEWEST_TO_STOP_BY = 50  # rows: with fewer, a validation set is too small, and boosting runs all rounds


@dataclass(frozen=True)
class FitOptions:
    """Options of ``spinney fit``.

    Attributes
    ----------
    kind : str
        Value of ``--model``.
    parameters : dict of str to value
        Parameters of the estimator; None: not set.
    n_folds : int
        0: no cross-validation.
    memory : str or None
        Memory limit, such as "2GB".
    scoring : list of str or None
        Metrics of the cross-validation; None: those of the task.
    positive : str or None
        Positive class of metrics such as f1.
    """

    kind: str
    parameters: dict[str, Any]
    n_folds: int
    seed: int
    out: Path | None
    as_json: bool
    memory: str | None = None
    scoring: list[str] | None = None
    positive: str | None = None

    def estimator(self, task: str, **defaults: object) -> Any:
        """Return the unfitted model for a task; `defaults` are parameters that the options may override."""
        chosen = {key: value for key, value in self.parameters.items() if value is not None}
        if self.kind in FITTED_BY_COMMAND_ALONE:
            model = public(FITTED_BY_COMMAND_ALONE[self.kind])()
        else:
            model = estimator_of_name(self.kind, "Classifier" if task == "classification" else "Regressor")
        model.set_params(**defaults | chosen)
        return model.set_params(random_state=self.seed) if "random_state" in model.get_params(deep=False) else model

    @property
    def has_rounds(self) -> bool:
        """Whether the number of boosting rounds is set."""
        is_boosting = self.kind in ("boosting", "ranker", "survival")
        return is_boosting and isinstance(self.parameters.get("n_estimators"), int)


def run_fit(source: Source, options: FitOptions) -> None:
    """Cross-validate and fit a model, print the result, and save the model if an output file is set."""
    check_writable(options.out)
    loss = options.parameters.get("loss")
    if source.task == "auto" and loss in NUMBER_LOSSES:  # a regression loss implies the task
        source = replace(source, task="regression", why=f"--loss {loss}")
    large = large_rows(source.path, memory_allowed(options.memory))
    if large is not None:
        _fit_large(source, options, *large)
        return
    table = read_fit_table(source)
    check_boosting(table, options.parameters)
    defaults: dict[str, object] = {"n_neighbors": "cv"} if options.kind == "knn" else {}
    if options.has_rounds and table.n_rows >= _FEWEST_TO_STOP_BY:
        defaults |= _STOPPING
    with command_errors(), warnings_in_one_line():
        model = options.estimator(table.task, **defaults)
        scores = cross_validate(model, table, options) if options.n_folds else {}
        if options.kind in ("forest", "survival-forest"):
            model.set_params(oob_score=True)
        model.fit(table.X, table.y, table.weight, **table.fit_params)
        if table.format is not None:
            model._csv_format = table.format
        if options.out is not None:
            model.save(options.out)
    _report(source, options, table, model, scores)


def _fit_large(source: Source, options: FitOptions, rows: pl.LazyFrame, why: str) -> None:
    """Fit a table out of core; a validation set, or the out-of-bag rows, replaces cross-validation."""
    import spinney

    if options.kind not in _OUT_OF_CORE:
        raise fail(
            f"{why} Only --model boosting, forest, extra-trees and tree support this. Choose one of them, or raise "
            "--memory."
        )
    table = read_large_table(source, rows)
    check_boosting(table, options.parameters)
    defaults, note = _OUT_OF_CORE[options.kind]
    if options.kind == "boosting" and options.parameters.get("n_estimators") != "auto":
        defaults = defaults | _STOPPING
    click.echo(f"{why} {note}", err=True)
    columns = {"sample_weight": source.weight, "offset": source.offset}
    with command_errors(), warnings_in_one_line(), naming_unreadable_file(files_of(source.path)):
        model = options.estimator(table.task, **defaults)
        model.fit(spinney.scan(table.X), source.target, **{option: name for option, name in columns.items() if name})
        if options.out is not None:
            model.save(options.out)
    _report(source, options, table, model, {})


def _report(source: Source, options: FitOptions, table: FitTable, model: Estimator, scores: Scores) -> None:
    result = summary(source, table, model, scores, options.n_folds if scores else 0, options.out)
    if options.as_json:
        print_json(result)
    else:
        print_summary(result, table.why, model._about())


def check_boosting(table: FitTable, parameters: dict[str, Any]) -> None:
    """Raise an error for boosting options that do not suit the target."""
    loss = parameters.get("loss")
    if table.task in ("ranking", "survival"):
        return
    if parameters.get("quantile") is not None and loss not in ("quantile", "expectile"):
        raise fail("--quantile is the level of a quantile or expectile. Pass --loss quantile or expectile too.")
    if parameters.get("class_order") is not None and loss != "ordinal":
        raise fail("--class-order is the order of the classes for --loss ordinal. Pass --loss ordinal too.")
    if loss == "ordinal" and parameters.get("class_order") is None and table.y.dtype.kind not in "biuf":
        raise fail(
            "--loss ordinal needs the order of the classes, and the target holds text. Pass "
            "--class-order, all classes from the lowest to the highest, such as low,medium,high."
        )
    if table.task == "regression":
        if loss is not None and loss not in NUMBER_LOSSES:
            raise fail(
                f"--loss {loss} is a classification loss, but the target is numeric. Pass --task classification."
            )
        return
    if loss in NUMBER_LOSSES:
        raise fail(f"--loss {loss} is a regression loss, but the target holds classes. Pass --task regression.")
    if table.offset is not None and len(set(table.y)) > 2:
        raise fail(
            "--offset supports regression and two classes: with more classes, each row needs one offset per class. "
            "Leave it out, or fit the model from Python."
        )


# ---- scores --------------------------------------------------------------------------------------------

Metric = Callable[[Array, Array, Floats, Array | None], float]  # of target, predictions, weights and queries


def _concordance(y: Array, expected: Array, weight: Floats, queries: Array | None) -> float:
    low, high = np.abs(y).astype(float), np.where(y > 0, y, np.inf).astype(float)
    return float(_engine.concordance(low, high, expected.astype(float), weight))


METRICS: dict[str, dict[str, Metric]] = {
    "classification": {"accuracy": lambda y, predicted, weight, _: accuracy_score(y, predicted, sample_weight=weight)},
    "regression": {
        "R²": lambda y, predicted, weight, _: r2_score(y, predicted, sample_weight=weight, force_finite=False),
        "RMSE": lambda y, predicted, weight, _: root_mean_squared_error(y, predicted, sample_weight=weight),
    },
    "ranking": {
        "NDCG@10": lambda y, predicted, weight, queries: ranking_score(
            y, predicted, queries, metric="ndcg@10", sample_weight=weight
        )
    },
    "survival": {"concordance": _concordance},
}


def cross_validate(model: EstimatorLike, table: FitTable, options: FitOptions) -> Scores:
    """Return the scores of a model and of the baseline on each fold."""
    problem, n_folds = _problem(table), options.n_folds
    if n_folds > problem.n_rows:
        raise fail(f"{n_folds} folds need at least {n_folds} rows, but there are {problem.n_rows}. Pass fewer --folds.")
    if problem.groups is not None and (n_queries := len(np.unique(problem.groups))) < n_folds:
        raise fail(f"{n_folds} folds need as many queries, but --group has {n_queries}. Pass fewer --folds.")
    folds = draw_folds(problem, n_folds, 1, np.random.RandomState(options.seed))[0]
    offset = {} if table.offset is None else {"offset": table.offset}
    runners = {
        "model": (Runner(problem, table.fit_params, offset), Candidate("model", model)),
        BASELINE: (Runner(problem), Candidate(BASELINE, baseline_of(table.task))),
    }
    chosen = _chosen_metrics(problem, table, options)
    scores: Scores = {}
    with EvaluationProgress(sys.stderr.isatty(), len(folds), Budget(None)) as progress:
        for fold in folds:
            for side, (runner, candidate) in runners.items():
                if chosen is None:
                    of_fold = _usual_scores(runner, candidate, fold, table, model)
                else:
                    run = runner.run_scored(clone(candidate.estimator), candidate.name, fold, chosen, "raise")
                    of_fold = {shown_name(name): shown_value(name, value) for name, value in run.scores.items()}
                for name, value in of_fold.items():
                    scores.setdefault(name, {side: [] for side in runners})[side].append(value)
            progress.step("fold")
    return scores


def _chosen_metrics(problem: Problem, table: FitTable, options: FitOptions) -> Scorers | None:
    """Return the metrics of --metric, and print the positive class; None without that option."""
    if options.scoring is None:
        if options.positive is not None:
            raise fail("--positive requires --metric with a metric of one class, such as f1.")
        return None
    if table.task not in ("classification", "regression") or table.offset is not None:
        raise fail(f"--metric does not support --model {options.kind} with this target or --offset. Leave it out.")
    scorers = Scorers.of(options.scoring, problem, options.positive)
    scorers.check(problem.y, problem.codes, "y", DEFAULT_METRICS[problem.task])
    if scorers.note:
        click.echo(scorers.note, err=True)
    return scorers


def _usual_scores(
    runner: Runner, candidate: Candidate, fold: Fold, table: FitTable, model: EstimatorLike
) -> dict[str, float]:
    """Return the scores of a model on one fold by the usual metrics of the task."""
    test, weight = fold.held_out, np.ones(table.n_rows) if table.weight is None else table.weight
    queries = None if table.groups is None else table.groups[test]
    predictions = _as_scored(model, runner.run_labels(candidate, fold))
    if float(weight[test].sum()) <= 0:
        return dict.fromkeys(METRICS[table.task], float("nan"))
    of_task = METRICS[table.task].items()
    return {name: metric(table.y[test], predictions, weight[test], queries) for name, metric in of_task}


def _problem(table: FitTable) -> Problem:
    codes = classes = None
    if table.task == "classification":
        classes, places = np.unique(table.y, return_inverse=True)
        codes = places.astype(np.intp)
    return Problem(pick_table(table.X), table.y, codes, classes, table.weight, table.groups)


def _as_scored(model: EstimatorLike, predictions: Array) -> Array:
    """Return the predictions to score: the quantile nearest to the median; hazards with their sign changed."""
    params = model.get_params(deep=False)
    if predictions.ndim == 2:
        predictions = predictions[:, int(np.abs(np.array(params["quantile"]) - 0.5).argmin())]
    are_hazards = params.get("loss") == "cox" or params.get("criterion") == "log_rank"
    return -predictions if are_hazards else predictions


Scores = dict[str, dict[str, list[float]]]  # by metric, then "model" and "baseline", by fold
_MOST_NAMED = 4  # columns in the summary
_BASELINES = {"classification": "most frequent class", "regression": "mean"}


def summary(
    source: Source, table: FitTable, model: Estimator, scores: Scores, n_folds: int, out: Path | None
) -> dict[str, Any]:
    """Return the results as JSON can hold them."""
    from spinney.inspect.text.tables import importance_columns

    about = model._about()
    ranked = importance_columns(model) if hasattr(model, "feature_importances_") else {"column": [], "importance": []}
    return {
        "table": str(source.path),
        "rows": table.n_rows,
        "rows_without_target": table.n_without_target,
        "columns": table.columns,
        "target": source.target,
        "task": table.task,
        "classes": [str(label) for label in model.classes_] if table.task == "classification" else None,
        "folds": n_folds,
        "baseline": _BASELINES.get(table.task, "random order"),
        "scores": {
            name: {about.noun: _mean_and_error(by_side["model"]), "baseline": _mean_and_error(by_side["baseline"])}
            for name, by_side in scores.items()
        },
        **about.size,
        "importances": dict(zip(ranked["column"], ranked["importance"], strict=True)),
        "model": None if out is None else str(out),
    }


def _mean_and_error(values: list[float]) -> dict[str, float]:
    """Return the mean over the folds and its standard error, corrected for overlapping training sets."""
    return {"mean": float(np.mean(values)), "error": corrected_error(np.array(values), 1 / max(1, len(values) - 1))}


def print_summary(result: dict[str, Any], why: str, about: About) -> None:
    """Print the summary as a table."""
    without = result["rows_without_target"]
    left_out = f" (excluding {without:,} without a target)" if without else ""
    rows = {
        "rows": f"{result['rows']:,}{left_out}",
        "columns": str(len(result["columns"])),
        "target": result["target"],
        "task": why.rstrip("."),
    }
    lines = list(rows.items())
    for name, score in result["scores"].items():
        lines.append((f"{name}, {result['folds']} folds", _with_error(name, **score[about.noun])))
        lines.append((f"  {result['baseline']}", _with_error(name, **score["baseline"])))
    lines += about.lines.items()
    ranked = [f"{name} {importance:.2f}" for name, importance in result["importances"].items() if importance > 0]
    if ranked:
        lines.append(("importances", ", ".join(ranked[:_MOST_NAMED]) + (", …" if len(ranked) > _MOST_NAMED else "")))
    if result["model"] is not None:
        lines.append(("model", result["model"]))
    print_lines(table_of(["", ""], lines))


def _with_error(metric: str, mean: float, error: float) -> str:
    if not np.isfinite([mean, error]).all():
        return "–"
    return f"{mean:.1%} ± {error:.1%}" if metric == "accuracy" else f"{mean:.4g} ± {error:.2g}"
