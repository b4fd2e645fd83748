"""``spinney fit``: one model of a table, cross-validated beside a baseline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from sklearn.metrics import accuracy_score, r2_score, root_mean_squared_error

from spinney import _engine
from spinney._boosting.loss import NUMBER_LOSSES
from spinney._boosting.ranking import ranking_score
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._estimator.estimator import About, Estimator
from spinney._evaluate.folds import draw_folds
from spinney._evaluate.problem import BASELINE, Array, EstimatorLike, Problem, baseline_of
from spinney._evaluate.runner import Budget, Candidate, EvaluationProgress, Runner
from spinney._names import FITTED_BY_COMMAND, FITTED_BY_COMMAND_ALONE, estimator_of, public
from spinney.cli.failures import fail, failures_in_words, warnings_in_words
from spinney.cli.fit_table import (
    MOST_BINS,
    MOST_ROUNDS,
    FitTable,
    Source,
    files_of,
    in_words,
    large_rows,
    memory_allowed,
    read_fit_table,
    read_large_table,
)
from spinney.cli.output import print_json, print_lines, table_of
from spinney.cli.tables import check_writable

if TYPE_CHECKING:
    import polars as pl

_STOPPING = {"early_stopping": True, "n_iter_no_change": 20}  # where most rounds are named
# what is set unless the user says, and what is said of it, where a table is read some rows at a time
_OF_LARGE: dict[str, tuple[dict[str, object], str]] = {
    "boosting": (
        {"n_estimators": MOST_ROUNDS},
        "Some rows are held out to stop by, in the place of cross-validation.",
    ),
    "forest": (
        {"max_bins": MOST_BINS, "oob_score": True},
        f"Columns are cut into at most {MOST_BINS} bins. Rows out of bag stand in for cross-validation.",
    ),
    "extra-trees": ({}, "There is no cross-validation."),
    "tree": ({"max_bins": MOST_BINS}, f"Columns are cut into at most {MOST_BINS} bins. There is no cross-validation."),
}
_FEWEST_TO_STOP_BY = 50  # with fewer rows, held-out ones say little: boosting runs all rounds


@dataclass(frozen=True)
class FitOptions:
    """What is fitted to a table, and what is done with it.

    Attributes
    ----------
    kind : str
        A word of ``--model``.
    parameters : dict of str to value
        Of the estimator; None: left open.
    n_folds : int
        0: no cross-validation.
    memory : str or None
        What a table may take, such as "2GB".
    """

    kind: str
    parameters: dict[str, Any]
    n_folds: int
    seed: int
    out: Path | None
    as_json: bool
    memory: str | None = None

    def estimator(self, task: str, **more: object) -> Any:
        """Return the unfitted model of a task; `more` is set where the user left it open."""
        name: str | None = FITTED_BY_COMMAND_ALONE.get(self.kind)
        if name is None:
            name = estimator_of(FITTED_BY_COMMAND[self.kind], task == "classification")
        if name is None:
            raise fail(f"--model {self.kind} tells classes apart, and the target holds numbers. Use another model.")
        given = {key: value for key, value in self.parameters.items() if value is not None}
        model = public(name)().set_params(**more | given)
        return model.set_params(random_state=self.seed) if "random_state" in model.get_params(deep=False) else model

    @property
    def has_rounds(self) -> bool:
        """Whether a number of boosting rounds is named."""
        is_boosting = self.kind in ("boosting", *FITTED_BY_COMMAND_ALONE)
        return is_boosting and isinstance(self.parameters.get("n_estimators"), int)


def run_fit(source: Source, options: FitOptions) -> None:
    """Cross-validate and fit a model, print the result, and save the model if a file is named."""
    check_writable(options.out)
    if source.task == "auto" and options.parameters.get("loss") in NUMBER_LOSSES:
        source = replace(source, task="regression")  # a loss of numbers says what the target is
    large = large_rows(source.path, memory_allowed(options.memory))
    if large is not None:
        _fit_large(source, options, *large)
        return
    table = read_fit_table(source)
    check_boosting(table, options.parameters)
    more: dict[str, object] = {"n_neighbors": "cv"} if options.kind == "knn" else {}
    if options.has_rounds and table.n_rows >= _FEWEST_TO_STOP_BY:
        more |= _STOPPING
    with failures_in_words(), warnings_in_words():
        model = options.estimator(table.task, **more)
        scores = cross_validate(model, table, options.n_folds, options.seed) if options.n_folds else {}
        if options.kind == "forest":
            model.set_params(oob_score=True)
        model.fit(table.X, table.y, table.weight, **table.fit_params)
        if options.out is not None:
            model.save(options.out)
    _report(source, options, table, model, scores)


def _fit_large(source: Source, options: FitOptions, rows: pl.LazyFrame, why: str) -> None:
    """Fit rows that are not in memory; those held out, or out of bag, stand in for cross-validation."""
    import spinney

    if options.kind not in _OF_LARGE:
        raise fail(
            f"{why} Only --model boosting, forest, extra-trees and tree learn from such a table. Pass one, or raise "
            "--memory."
        )
    table = read_large_table(source, rows)
    check_boosting(table, options.parameters)
    more, how = _OF_LARGE[options.kind]
    if options.kind == "boosting" and options.parameters.get("n_estimators") != "auto":
        more = more | _STOPPING
    click.echo(f"{why} {how}", err=True)
    named = {"sample_weight": source.weight, "offset": source.offset}
    with failures_in_words(), warnings_in_words(), in_words(files_of(source.path)):
        model = options.estimator(table.task, **more)
        model.fit(spinney.scan(table.X.rows), source.target, **{option: name for option, name in named.items() if name})
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
    """Refuse what boosting cannot do with the target."""
    loss = parameters.get("loss")
    if table.task in ("ranking", "survival"):
        return
    if parameters.get("quantile") is not None and loss not in ("quantile", "expectile"):
        raise fail("--quantile says which quantile or expectile to predict. Pass --loss quantile or expectile too.")
    if table.task == "regression":
        if loss is not None and loss not in NUMBER_LOSSES:
            raise fail(f"--loss {loss} is for classes, and the target holds numbers. Pass --task classification.")
        return
    if loss in NUMBER_LOSSES:
        raise fail(f"--loss {loss} is for numbers, and the target holds classes. Pass --task regression.")
    if table.offset is not None and len(set(table.y)) > 2:
        raise fail(
            "--offset goes with numbers or two classes: with more, each row needs a number for every class, which the "
            "command line cannot give. Leave it out, or fit the model from Python."
        )


# ---- the score --------------------------------------------------------------------------------------------

Metric = Callable[[Array, Array, Floats, Array | None], float]  # of truth, predictions, weights and lists


def _concordance(y: Array, expected: Array, weight: Floats, lists: Array | None) -> float:
    low, high = np.abs(y).astype(float), np.where(y > 0, y, np.inf).astype(float)
    return float(_engine.concordance(low, high, expected.astype(float), weight))


METRICS: dict[str, dict[str, Metric]] = {
    "classification": {"accuracy": lambda y, said, weight, _: accuracy_score(y, said, sample_weight=weight)},
    "regression": {
        "R²": lambda y, said, weight, _: r2_score(y, said, sample_weight=weight, force_finite=False),
        "RMSE": lambda y, said, weight, _: root_mean_squared_error(y, said, sample_weight=weight),
    },
    "ranking": {
        "NDCG@10": lambda y, said, weight, lists: ranking_score(y, said, lists, metric="ndcg@10", sample_weight=weight)
    },
    "survival": {"concordance": _concordance},
}


def cross_validate(model: EstimatorLike, table: FitTable, n_folds: int, seed: int) -> Scores:
    """Score a model and the baseline on each fold's rows."""
    problem = _problem(table)
    if n_folds > problem.n_rows:
        raise fail(f"{n_folds} folds need at least {n_folds} rows, and there are {problem.n_rows}. Pass fewer --folds.")
    if problem.groups is not None and (n_lists := len(np.unique(problem.groups))) < n_folds:
        raise fail(f"{n_folds} folds need as many lists, and --group has {n_lists}. Pass fewer --folds.")
    folds = draw_folds(problem, n_folds, 1, np.random.RandomState(seed))[0]
    offset = {} if table.offset is None else {"offset": table.offset}
    runners = {
        "model": (Runner(problem, table.fit_params, offset), Candidate("model", model)),
        BASELINE: (Runner(problem), Candidate(BASELINE, baseline_of(table.task))),
    }
    scores: Scores = {name: {side: [] for side in runners} for name in METRICS[table.task]}
    weight = np.ones(problem.n_rows) if table.weight is None else table.weight
    with EvaluationProgress(sys.stderr.isatty(), len(folds), Budget(None)) as progress:
        for fold in folds:
            test = fold.held_out
            lists = None if problem.groups is None else problem.groups[test]
            for side, (runner, candidate) in runners.items():
                said = _as_scored(model, runner.run_labels(candidate, fold))
                for name, metric in METRICS[table.task].items():
                    known = float(weight[test].sum()) > 0
                    value = metric(table.y[test], said, weight[test], lists) if known else float("nan")
                    scores[name][side].append(value)
            progress.step("fold")
    return scores


def _problem(table: FitTable) -> Problem:
    codes = classes = None
    if table.task == "classification":
        classes, places = np.unique(table.y, return_inverse=True)
        codes = places.astype(np.intp)
    return Problem(pick_table(table.X), table.y, codes, classes, table.weight, table.groups)


def _as_scored(model: EstimatorLike, predictions: Array) -> Array:
    """Of several quantiles take the one nearest to the median; a hazard orders rows the other way than a time."""
    params = model.get_params(deep=False)
    if predictions.ndim == 2:
        predictions = predictions[:, int(np.abs(np.array(params["quantile"]) - 0.5).argmin())]
    return -predictions if params.get("loss") == "cox" else predictions


Scores = dict[str, dict[str, list[float]]]  # by metric, then "model" and "baseline", by fold
_MOST_NAMED = 4  # columns in the report
_BASELINES = {"classification": "most frequent class", "regression": "mean"}


def summary(
    source: Source, table: FitTable, model: Estimator, scores: Scores, n_folds: int, out: Path | None
) -> dict[str, Any]:
    """Gather what is printed, as JSON can hold it."""
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
        "baseline": _BASELINES.get(table.task, "any order"),
        "scores": {
            name: {about.noun: _mean_and_sd(by_side["model"]), "baseline": _mean_and_sd(by_side["baseline"])}
            for name, by_side in scores.items()
        },
        **about.size,
        "importances": dict(zip(ranked["column"], ranked["importance"], strict=True)),
        "model": None if out is None else str(out),
    }


def _mean_and_sd(values: list[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1))}


def print_summary(result: dict[str, Any], why: str, about: About) -> None:
    """Print the summary as a table."""
    without = result["rows_without_target"]
    left_out = f" ({without:,} more without a target, left out)" if without else ""
    rows = {
        "rows": f"{result['rows']:,}{left_out}",
        "columns": str(len(result["columns"])),
        "target": result["target"],
        "task": f"{result['task']} ({why.rstrip('.')})",
    }
    lines = list(rows.items())
    for name, score in result["scores"].items():
        lines.append((f"{name}, {result['folds']} folds", _in_words(name, **score[about.noun])))
        lines.append((f"  {result['baseline']}", _in_words(name, **score["baseline"])))
    lines += about.lines.items()
    ranked = [f"{name} {share:.2f}" for name, share in result["importances"].items() if share > 0]
    if ranked:
        lines.append(("importances", ", ".join(ranked[:_MOST_NAMED]) + (", …" if len(ranked) > _MOST_NAMED else "")))
    if result["model"] is not None:
        lines.append(("model", result["model"]))
    print_lines(table_of(["", ""], lines))


def _in_words(metric: str, mean: float, sd: float) -> str:
    if not np.isfinite([mean, sd]).all():
        return "–"
    return f"{mean:.1%} ± {sd:.1%}" if metric == "accuracy" else f"{mean:.4g} ± {sd:.2g}"
