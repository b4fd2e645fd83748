"""What ``spinney fit`` prints: rows, task, scores beside the baseline, and the columns that matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinney._estimator.estimator import About, Estimator
from spinney._evaluate.board import finite_or_none
from spinney.cli.fit_table import FitTable
from spinney.cli.source import Source

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


def _mean_and_sd(values: list[float]) -> dict[str, object]:
    return {
        "mean": finite_or_none(float(np.mean(values))),
        "sd": finite_or_none(float(np.std(values, ddof=1))),
    }


def print_summary(result: dict[str, Any], why: str, about: About) -> None:
    """Print the summary as a table."""
    table = Table(show_header=False)
    without = result["rows_without_target"]
    left_out = f" ({without:,} more without a target, left out)" if without else ""
    table.add_row("rows", f"{result['rows']:,}{left_out}")
    table.add_row("columns", str(len(result["columns"])))
    table.add_row("target", Text(result["target"]))
    table.add_row("task", Text(f"{result['task']} ({why.rstrip('.')})"))
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
