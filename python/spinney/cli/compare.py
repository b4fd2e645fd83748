"""``spinney compare``: several models on the same folds of a table, with paired differences."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from spinney._evaluate.board import finite_or_none
from spinney._evaluate.compare import compare
from spinney._evaluate.comparison import Comparison
from spinney.cli.failures import failures_in_words, warnings_in_words
from spinney.cli.fit_table import read_fit_table
from spinney.cli.source import Source
from spinney.cli.tables import check_writable


def run_compare(source: Source, options: dict[str, Any], *, plot: Path | None, as_json: bool) -> None:
    """Compare models by options of `compare`, and print what came of it; draw it if a file is named."""
    if plot is not None:
        check_writable(plot)
    table = read_fit_table(source)
    with failures_in_words(), warnings_in_words():
        found = compare(
            X=table.X,
            y=table.y,
            groups=table.groups,
            time=table.time,
            sample_weight=table.weight,
            task=table.task,
            verbose=int(sys.stderr.isatty()),
            **options,
        )
        if plot is not None:
            _draw(found, plot, options["learning_curves"])
    click.echo(json.dumps(_as_json(found, source), ensure_ascii=False, indent=2) if as_json else str(found))


def _draw(found: Comparison, path: Path, curves: bool) -> None:
    import matplotlib.figure

    matplotlib.use("agg")
    ax = found.plot_curves() if curves else found.plot()
    assert isinstance(ax.figure, matplotlib.figure.Figure)
    ax.figure.savefig(path, dpi=150)


def _as_json(found: Comparison, source: Source) -> dict[str, Any]:
    frame = found.to_frame(backend="polars")
    rows = [{name: finite_or_none(value) for name, value in row.items()} for row in frame.iter_rows(named=True)]
    return {
        "table": str(source.path),
        "target": source.target,
        "best": found.best_,
        "reference": found.reference_,
        "folds": found.n_folds,
        "rows_to_learn_from": found.n_train,
        "rows_to_judge_by": found.n_test,
        "models": rows,
        "unfinished": found.unfinished,
        "curves": {name: scores.tolist() for name, scores in found.curves.items()},
        "curve_rows": found.curve_rows.tolist(),
    }
