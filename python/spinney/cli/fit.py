"""``spinney fit``: a tree, a forest or boosting from a table, judged by cross-validation beside a baseline."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from spinney._names import FITTED_BY_COMMAND, FITTED_BY_COMMAND_ALONE, estimator_of
from spinney.cli.failures import fail, failures_in_words, nearest, warnings_in_words
from spinney.cli.large import (
    MOST_BINS,
    MOST_ROUNDS,
    files_of,
    in_words,
    large_rows,
    memory_allowed,
    take_large_apart,
)
from spinney.cli.tables import check_writable, number_column, read_whole

if TYPE_CHECKING:
    from spinney._estimator.summary import About

MOST_INTEGER_CLASSES = 10
_MOST_NAMED = 4  # columns in the report

Scores = dict[str, tuple[list[float], list[float]]]


@dataclass(frozen=True)
class Source:
    """Where the rows come from and which columns have a part of their own."""

    path: Path
    target: str
    task: str = "auto"
    drop: tuple[str, ...] = ()
    weight: str | None = None
    offset: str | None = None
    delimiter: str | None = None
    date_parts: tuple[str, ...] = ()
    group: str | None = None
    time: str | None = None
    event: str | None = None
    encoding: str | None = None

    @property
    def beside(self) -> dict[str, str]:
        """Columns that are not learned from, by the options that name them."""
        named = {"--weight": self.weight, "--offset": self.offset, "--group": self.group, "--time": self.time}
        named["--event"] = self.event
        return {option: name for option, name in named.items() if name is not None}


@dataclass(frozen=True)
class Problem:
    """A table taken apart: what to learn from, and what to learn."""

    X: Any
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    task: str
    why: str
    n_without_target: int
    beside: dict[str, NDArray[Any]] = field(default_factory=dict)

    def given_offset(self, rows: Any = slice(None)) -> dict[str, Any]:
        """Return the keyword of fit and predict for some rows; none if there is no offset."""
        return {} if self.offset is None else {"offset": self.offset[rows]}

    def given_to_fit(self, rows: Any = slice(None)) -> dict[str, Any]:
        """Return the keywords of fit for some rows."""
        lists = {"groups": self.beside["--group"][rows]} if self.task == "ranking" else {}
        return self.given_offset(rows) | lists


_STOPPING = {"early_stopping": True, "n_iter_no_change": 20}  # where most rounds are named
# what is set unless the user says, and what is said of it, where a table is read some rows at a time
_OF_LARGE: dict[str, tuple[dict[str, Any], str]] = {
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


def run_fit(
    source: Source,
    kind: str,
    parameters: dict[str, Any],
    *,
    n_folds: int,
    seed: int,
    out: Path | None,
    as_json: bool,
    memory: str | None = None,
) -> None:
    """Judge and fit a model of a kind, print what came of it, and keep it if a file is named."""
    import spinney

    if out is not None:
        check_writable(out)
    large = large_rows(source.path, memory_allowed(memory))
    if large is not None:
        _run_large(source, kind, parameters, *large, seed=seed, out=out, as_json=as_json)
        return
    problem = take_apart(source)
    check_boosting(problem, parameters)
    if kind in FITTED_BY_COMMAND_ALONE:
        name: str | None = FITTED_BY_COMMAND_ALONE[kind]
    else:
        name = estimator_of(FITTED_BY_COMMAND[kind], problem.task == "classification")
    if name is None:
        raise fail(f"--model {kind} tells classes apart, and the target holds numbers. Use another model.")
    given = {name: value for name, value in parameters.items() if value is not None}
    if kind == "knn":
        given = {"n_neighbors": "cv"} | given
    is_counted = isinstance(given.get("n_estimators"), int) and problem.X.height >= _FEWEST_TO_STOP_BY
    if kind in ("boosting", *FITTED_BY_COMMAND_ALONE) and is_counted:
        given = _STOPPING | given
    with failures_in_words(), warnings_in_words():
        model = getattr(spinney, name)(**given)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=seed)
        scores = cross_validate(model, problem, n_folds, seed) if n_folds else {}
        if kind == "forest":
            model.set_params(oob_score=True)
        model.fit(problem.X, problem.y, problem.weight, **problem.given_to_fit())
        if out is not None:
            model.save(out)
    _report(summary(source, problem, model, scores, n_folds, out), problem, model, as_json)


def _report(result: dict[str, Any], problem: Problem, model: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False, allow_nan=False, indent=2))
    else:
        print_summary(result, problem, model._about())


def _run_large(
    source: Source,
    kind: str,
    parameters: dict[str, Any],
    rows: Any,
    why: str,
    *,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit rows that are not in memory; those held out, or out of bag, stand in for cross-validation."""
    import spinney

    if kind not in _OF_LARGE:
        raise fail(
            f"{why} Only --model boosting, forest, extra-trees and tree learn from such a table. Pass one, or raise "
            "--memory."
        )
    table, target, n_without = take_large_apart(source, rows)
    task, reason = task_of(target, source.task)
    problem = Problem(table, _labels(target), None, None, task, reason, n_without)
    check_boosting(problem, parameters)
    usual, how = _OF_LARGE[kind]
    given = usual | {name: value for name, value in parameters.items() if value is not None}
    click.echo(f"{why} {how}", err=True)
    if kind == "boosting" and isinstance(given["n_estimators"], int):
        given = _STOPPING | given
    named = {"sample_weight": source.weight, "offset": source.offset}
    with failures_in_words(), warnings_in_words(), in_words(files_of(source.path)):
        name = estimator_of(FITTED_BY_COMMAND[kind], task == "classification")
        model = getattr(spinney, str(name))(**given, random_state=seed)
        model.fit(spinney.scan(table.rows), source.target, **{option: n for option, n in named.items() if n})
        if out is not None:
            model.save(out)
    _report(summary(source, problem, model, {}, 0, out), problem, model, as_json)


def check_boosting(problem: Problem, parameters: dict[str, Any]) -> None:
    """Refuse what boosting cannot do with the target."""
    from spinney._boosting.losses.loss import NUMBER_LOSSES

    loss = parameters.get("loss")
    if problem.task in ("ranking", "survival"):
        return
    if parameters.get("quantile") is not None and loss != "quantile":
        raise fail("--quantile says which quantile to predict. Pass --loss quantile too.")
    if problem.task != "classification":
        if loss is not None and loss not in NUMBER_LOSSES:
            raise fail(f"--loss {loss} is for classes, and the target holds numbers. Pass --task classification.")
        return
    if loss in NUMBER_LOSSES:
        raise fail(f"--loss {loss} is for numbers, and the target holds classes. Pass --task regression.")
    if problem.offset is not None and len(set(problem.y)) > 2:
        raise fail(
            "--offset goes with numbers or two classes: with more, each row needs a number for every class, which the "
            "command line cannot give. Leave it out, or fit the model from Python."
        )


# ---- the table --------------------------------------------------------------------------------------------


def take_apart(source: Source) -> Problem:
    """Read the table and separate target, weight and the columns to learn from."""
    frame = read_whole(source.path, source.delimiter, source.encoding)
    special = [("--target", source.target), *(("--drop", name) for name in source.drop), *source.beside.items()]
    for option, name in special:
        if name not in frame.columns:
            raise fail(f"{option}: '{source.path}' has no column '{name}'. {nearest(name, frame.columns)}")
    if source.target in (*source.beside.values(), *source.drop):
        raise fail(
            f"'{source.target}' is the target; it cannot be dropped or be the weight, offset, group or time too."
        )
    known = frame[source.target].is_not_null()
    if frame[source.target].dtype.is_float():
        known = known & frame[source.target].is_not_nan().fill_null(False)
    rows = frame.filter(known)
    if rows.height == 0:
        raise fail(f"The target '{source.target}' has no values at all. Name another column with --target.")
    X = rows.drop({source.target, *source.drop, *source.beside.values()})
    if X.width == 0:
        raise fail("No column is left to learn from. Drop fewer columns.")
    X = _with_date_parts(X, source)
    task, why = task_of(rows[source.target], source.task)
    weight, offset = (
        number_column(rows[source.beside[option]], option) if option in source.beside else None
        for option in ("--weight", "--offset")
    )
    options = [option for option in ("--group", "--time") if option in source.beside]
    beside: dict[str, NDArray[Any]] = {option: rows[source.beside[option]].to_numpy() for option in options}
    y = _labels(rows[source.target])
    if source.event is not None:
        y = np.where(_events(rows[source.event]), y, -y.astype(float))
    return Problem(X, y, weight, offset, task, why, frame.height - rows.height, beside)


def _events(column: Any) -> NDArray[Any]:
    """Return which rows have had their event, of a column of 0 and 1 or of true and false."""
    values = column.to_numpy()
    if column.null_count() or not set(np.unique(values).tolist()) <= {0, 1}:
        raise fail(f"--event: '{column.name}' must hold 1 (or true) where the event has happened, and 0 where not yet.")
    return np.asarray(values, dtype=bool)


def _with_date_parts(X: Any, source: Source) -> Any:
    from spinney._data.date_parts import PARTS, date_parts

    if not source.date_parts:
        return X
    if strange := [part for part in source.date_parts if part not in PARTS]:
        raise fail(f"--date-parts: dates have no part '{strange[0]}'. They have {', '.join(PARTS)}.")
    if not any(dtype.is_temporal() for dtype in X.dtypes):
        raise fail(
            f"--date-parts: '{source.path}' has no column of dates. Write them as in 2024-05-31, or leave it out."
        )
    with failures_in_words():
        return date_parts(X, parts=source.date_parts)


def task_of(target: Any, asked: str) -> tuple[str, str]:
    """Say which task a target makes, and why."""
    dtype = target.dtype
    if not (dtype.is_numeric() or _is_label(dtype)):
        raise fail(f"The target '{target.name}' holds {dtype} values. Make it numbers or strings.")
    if asked in ("regression", "ranking", "survival") and _is_label(dtype):
        needs = {"ranking": "--model ranker needs grades", "survival": "--model survival needs times"}.get(
            asked, "--task regression needs numbers"
        )
        raise fail(f"{needs}, but the target '{target.name}' holds {dtype} values.")
    if asked == "classification" and dtype.is_float() and (target != target.round(0)).any():
        raise fail(f"--task classification needs labels, but '{target.name}' holds fractions. Use --task regression.")
    if asked != "auto":
        return asked, "as asked"
    if _is_label(dtype):
        return "classification", "the target holds labels"
    n_distinct = target.n_unique()
    if dtype.is_integer() and n_distinct <= MOST_INTEGER_CLASSES and 2 * n_distinct <= target.len():
        return "classification", f"the target has {n_distinct} distinct integers; else pass --task regression"
    if dtype.is_integer():
        return "regression", f"the target has {n_distinct} distinct integers; else pass --task classification"
    return "regression", "the target holds numbers"


def _is_label(dtype: Any) -> bool:
    import polars as pl

    return isinstance(dtype, pl.String | pl.Boolean | pl.Categorical | pl.Enum)


def _labels(target: Any) -> NDArray[Any]:
    import polars as pl

    if isinstance(target.dtype, pl.Categorical | pl.Enum):
        target = target.cast(pl.String)
    values: NDArray[Any] = target.to_numpy()
    return values.astype(float) if target.dtype == pl.Decimal else values


# ---- the score --------------------------------------------------------------------------------------------


def cross_validate(model: Any, problem: Problem, n_folds: int, seed: int) -> Scores:
    """Score the model and the baseline on each fold's rows."""
    from sklearn.base import clone

    y, weight = problem.y, problem.weight
    if n_folds > len(y):
        raise fail(f"{n_folds} folds need at least {n_folds} rows, and there are {len(y)}. Pass fewer --folds.")
    scores: Scores = {name: ([], []) for name in _metrics(problem.task)}
    folds = list(_folds(problem, n_folds, seed))
    shown = track(
        folds, "Cross-validating", console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True
    )
    for train, test in shown:
        train_weight = None if weight is None else weight[train]
        tree = clone(model).fit(problem.X[train], y[train], train_weight, **problem.given_to_fit(train))
        said = _middle(tree, tree.predict(problem.X[test], **problem.given_offset(test)))
        guesses = said, np.full(len(test), _baseline(y[train], train_weight, problem.task))
        for side, guess in enumerate(guesses):
            test_weight = np.ones(len(test)) if weight is None else weight[test]
            if problem.task == "ranking":
                found = _score_of_lists(y[test], guess, problem.beside["--group"][test], test_weight)
            elif problem.task == "survival":
                found = _score_of_times(y[test], guess * (-1 if model.loss == "cox" else 1), test_weight)
            else:
                found = _score(problem.task, y[test], guess, test_weight)
            for name, value in found.items():
                scores[name][side].append(value)
    return scores


def _middle(model: Any, said: NDArray[Any]) -> NDArray[Any]:
    """Of several quantiles, the one nearest to the median."""
    return said if said.ndim == 1 else said[:, int(np.abs(np.array(model.quantile) - 0.5).argmin())]


def _folds(problem: Problem, n_folds: int, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Deal the rows of each class in turn, so that every fold has its share; rows without classes all at once."""
    order = np.random.default_rng(seed).permutation(len(problem.y))
    if problem.task == "classification":
        codes = np.unique(problem.y, return_inverse=True)[1]
        order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(len(order), dtype=int)
    fold_of[order] = np.arange(len(order)) % n_folds
    if problem.task == "ranking":  # whole lists
        labels, codes = np.unique(problem.beside["--group"], return_inverse=True)
        if len(labels) < n_folds:
            raise fail(f"{n_folds} folds need as many lists, and --group has {len(labels)}. Pass fewer --folds.")
        fold_of = (np.random.default_rng(seed).permutation(len(labels)) % n_folds)[codes]
    for fold in range(n_folds):
        yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


def _metrics(task: str) -> list[str]:
    known = {"classification": ["accuracy"], "ranking": ["NDCG@10"], "survival": ["concordance"]}
    return known.get(task, ["R²", "RMSE"])


def _baseline(y: NDArray[Any], weight: NDArray[np.float64] | None, task: str) -> Any:
    if task in ("ranking", "survival"):
        return 0.0
    if task == "regression":
        return np.average(y.astype(float), weights=weight)
    labels, codes = np.unique(y, return_inverse=True)
    return labels[np.bincount(codes, weights=weight).argmax()]


def _score(task: str, y: NDArray[Any], guess: NDArray[Any], weight: NDArray[np.float64]) -> dict[str, float]:
    total = float(weight.sum())
    if total == 0.0:
        return dict.fromkeys(_metrics(task), math.nan)
    if task == "classification":
        return {"accuracy": float(weight @ (guess == y)) / total}
    truth = y.astype(float)
    error = float(weight @ (truth - guess) ** 2) / total
    spread = float(weight @ (truth - np.average(truth, weights=weight)) ** 2) / total
    return {"R²": 1.0 - error / spread if spread > 0.0 else math.nan, "RMSE": math.sqrt(error)}


def _score_of_lists(
    y: NDArray[Any], guess: NDArray[Any], lists: NDArray[Any], weight: NDArray[np.float64]
) -> dict[str, float]:
    from spinney._boosting.losses.ranking import ranking_score

    return {"NDCG@10": ranking_score(y, guess, lists, metric="ndcg@10", sample_weight=weight)}


def _score_of_times(y: NDArray[Any], expected: NDArray[Any], weight: NDArray[np.float64]) -> dict[str, float]:
    from spinney import _engine

    high = np.where(y > 0, y, np.inf).astype(float)
    return {"concordance": float(_engine.concordance(np.abs(y).astype(float), high, expected.astype(float), weight))}


# ---- the report -------------------------------------------------------------------------------------------


def summary(
    source: Source, problem: Problem, model: Any, scores: Scores, n_folds: int, out: Path | None
) -> dict[str, Any]:
    """Gather what is printed, as JSON can hold it."""
    from spinney.inspect.text.tables import importance_columns

    about: About = model._about()
    ranked = importance_columns(model) if hasattr(model, "feature_importances_") else {"column": [], "importance": []}
    importances = dict(zip(ranked["column"], ranked["importance"], strict=True))
    words = {"classification": "most frequent class", "ranking": "any order", "survival": "any order"}
    baseline = words.get(problem.task, "mean")
    return {
        "table": str(source.path),
        "rows": problem.X.height,
        "rows_without_target": problem.n_without_target,
        "columns": problem.X.columns,
        "target": source.target,
        "task": problem.task,
        "classes": [str(label) for label in model.classes_] if problem.task == "classification" else None,
        "folds": n_folds,
        "baseline": baseline,
        "scores": {
            name: {about.noun: _mean_and_sd(own), "baseline": _mean_and_sd(base)}
            for name, (own, base) in scores.items()
        },
        **about.size,
        "importances": importances,
        "model": None if out is None else str(out),
    }


def _mean_and_sd(values: list[float]) -> dict[str, float | None]:
    numbers = {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1))}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def print_summary(result: dict[str, Any], problem: Problem, about: About) -> None:
    """Print the summary as a table."""
    table = Table(show_header=False)
    without = result["rows_without_target"]
    left_out = f" ({without:,} more without a target, left out)" if without else ""
    table.add_row("rows", f"{result['rows']:,}{left_out}")
    table.add_row("columns", str(len(result["columns"])))
    table.add_row("target", Text(result["target"]))
    table.add_row("task", Text(f"{problem.task} ({problem.why})"))
    for name, score in result["scores"].items():
        table.add_row(f"{name}, {result['folds']} folds", _in_words(name, score[about.noun]))
        table.add_row(f"  {result['baseline']}", _in_words(name, score["baseline"]))
    for label, text in about.lines.items():
        table.add_row(label, text)
    ranked = [f"{name} {share:.2f}" for name, share in result["importances"].items() if share > 0]
    if ranked:
        more = ", …" if len(ranked) > _MOST_NAMED else ""
        table.add_row("importances", Text(", ".join(ranked[:_MOST_NAMED]) + more))
    if result["model"] is not None:
        table.add_row("model", Text(result["model"]))
    Console(highlight=False).print(table)


def _in_words(metric: str, score: dict[str, float | None]) -> str:
    mean, sd = score["mean"], score["sd"]
    if mean is None or sd is None:
        return "–"
    return f"{mean:.1%} ± {sd:.1%}" if metric == "accuracy" else f"{mean:.4g} ± {sd:.2g}"
