"""``spinney study``, ``demo``, ``bench`` and ``compare``: several models of a table."""

from __future__ import annotations

import json
import statistics
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from spinney._data.file_readers import MOST_BYTES, read_file
from spinney._data.types import TableLike
from spinney._evaluate.compare import Comparison, compare
from spinney._evaluate.folds import split_test
from spinney._evaluate.runner import Candidate, ProgressCall, Runner
from spinney._evaluate.scoring import Scorers, read_metrics
from spinney._evaluate.study.plan import CARES, Care, Size, estimator_for, peer_candidates
from spinney._evaluate.study.prepare import Prepared, StudyOptions, prepare
from spinney._evaluate.study.result import Study
from spinney.cli.failures import fail, failures_in_words, os_failure, warnings_in_words
from spinney.cli.fit_table import Source, read_fit_table
from spinney.cli.output import print_json, print_lines, table_of
from spinney.cli.tables import check_writable

STUDY_SHARE = 0.85  # of the minutes; the rest is for the report
_REPORT_SECONDS = 9.0  # that a report takes at least
REPORT, MODEL, FACTS = "report.html", "best.model", "study.json"


def run_study(source: Source, options: dict[str, Any], *, out: Path | None, as_json: bool) -> None:
    """Study a table, print the leader board and keep the best model."""
    folder = Path(f"{source.stem}-study") if out is None else out
    check_folder(folder)
    with failures_in_words(), warnings_in_words():
        read = read_file(source.path, source.delimiter, source.encoding, most_bytes=MOST_BYTES)
        found = studied(read, source.target, options)
        found.command = command_of(source, options)
        files = keep_study(found, folder)
    if as_json:
        print_json(found.to_dict() | {"files": files})
        return
    click.echo(f"{found}\n")
    for what, path in files.items():
        click.echo(f"{what:6} {path}")


def studied(table: TableLike, target: str, options: dict[str, Any]) -> Study:
    """Study a table, with a bar on the terminal if there is one."""
    import spinney

    whole = options["minutes"]
    minutes = max(0.5 * whole, min(STUDY_SHARE * whole, whole - _REPORT_SECONDS / 60))
    with _bar() as progress:
        return spinney.study(table, target, progress=progress, **options | {"minutes": minutes})


def command_of(source: Source, options: dict[str, Any]) -> str:
    """Write the command that was given, with all options that are not the usual ones."""
    from spinney._evaluate.report.overview import command_line

    usual = {"minutes": 2.0, "folds": 5, "random_state": 0, "task": "auto"}
    given = {name: value for name, value in options.items() if value != usual.get(name)}
    asked = given | {"delimiter": source.delimiter, "encoding": source.encoding}
    return command_line(str(source.path), source.target, asked)


@contextmanager
def _bar() -> Iterator[bool | ProgressCall]:
    """Show how far a study is, on a terminal only."""
    if not sys.stderr.isatty():
        yield False
        return
    columns = (BarColumn(30), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("reading the columns", total=None)

        def tell(n_done: int, n_fits: int, what: str, left: float) -> None:
            text = f"{what} · at most {left:.0f} s left"
            shown.update(task, completed=n_done, total=n_fits, description=text)

        yield tell


def check_folder(folder: Path) -> None:
    """Refuse a folder that could not be written to, before any work is done for it."""
    if folder.exists() and not folder.is_dir():
        raise fail(f"Cannot keep the study in '{folder}': it is a file. Name a folder with --out.")
    if not folder.resolve().parent.is_dir():
        raise fail(f"Cannot keep the study in '{folder}': its folder does not exist. Make it first, or use --out.")


def keep_study(found: Study, folder: Path) -> dict[str, str]:
    """Write what a study found into a folder; return the files by what they hold."""
    try:
        folder.mkdir(exist_ok=True)
        found.save(folder / MODEL)
        files = {
            "report": str(found.report(folder / REPORT)),
            "model": str(folder / MODEL),
            "facts": str(folder / FACTS),
        }
        text = json.dumps(found.to_dict() | {"files": files}, ensure_ascii=False, allow_nan=False, indent=2)
        (folder / FACTS).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise fail(os_failure(error, folder)) from error
    return files


def run_demo(*, out: Path | None, **options: Any) -> None:
    """Study the penguins, print the leader board and the tree, and say where the report is."""
    import polars as pl

    from spinney import export_text
    from spinney.datasets import load_penguins

    folder = Path("penguins-study") if out is None else out
    check_folder(folder)
    X, y = load_penguins(as_frame="polars")
    categories = [name for name in X.columns if isinstance(X[name].dtype, pl.Enum | pl.Categorical | pl.String)]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(y.to_list()).items()))
    print_lines(
        f"Palmer penguins: {X.height} rows, {X.width} features ({len(categories)} categories: "
        f"{', '.join(categories)}), {sum(X.null_count().row(0))} missing values",
        f"Which species? {counts}\n",
    )
    with failures_in_words():
        found = studied(X.with_columns(species=y), "species", options)
        files = keep_study(found, folder)
    with_gaps = {name for name in X.columns if X[name].null_count() > 0}
    click.echo(f"{found}\n\nThe pruned tree, as questions:")
    print_lines(export_text(found.tree, show_missing=with_gaps))
    click.echo(f"\nThe report is {Path(files['report']).resolve()}: open it in a browser.")
    click.echo(f"The best model is kept in {files['model']}. Now study a table of your own:")
    click.echo("  spinney study loans.csv --target repaid")


_OWN = ("tree", "forest", "extra-trees", "boosting")
_PLAIN = Care(CARES[0].effort / 2, 100)


def run_bench(source: Source | None, *, rows: int, columns: int, rounds: int, seed: int, as_json: bool) -> None:
    """Fit models in turn, and print medians of their times and their loss on rows held out."""
    with failures_in_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _made(rows, columns, seed) if source is None else _read(source)
        metric = "neg_root_mean_squared_error" if data.classes is None else "neg_log_loss"
        scorers, runner = Scorers(read_metrics(metric), data.classes), Runner(data)
        fold, models = split_test(data, np.random.RandomState(seed)), _models(data, seed)
        runs = [[runner.run(candidate, fold) for candidate in models] for _ in range(rounds)]
    found = [
        {
            "model": candidate.name,
            "loss": -scorers.score(metric, one[0].predictions, data.y[fold.held_out]),
            "fit_seconds": statistics.median(run.fit_seconds for run in one),
            "predict_seconds": statistics.median(run.predict_seconds for run in one),
        }
        for candidate, one in zip(models, zip(*runs, strict=True), strict=True)
    ]
    loss = "log loss" if data.classes is not None else "root mean squared error"
    n_train, n_columns = len(fold.train), data.table.n_columns
    if as_json:
        print_json({"rows": n_train, "columns": n_columns, "loss": loss, "rounds": rounds, "models": found})
        return
    cells = [
        [one["model"], f"{one['fit_seconds']:.3g}", f"{one['predict_seconds']:.3g}", f"{one['loss']:.4g}"]
        for one in sorted(found, key=lambda one: one["loss"])
    ]
    print_lines(
        f"{n_train:,} rows to learn from, {len(fold.held_out):,} held out, {n_columns} columns",
        table_of(["model", "fit s", "predict s", loss], cells),
    )


def _read(source: Source) -> Prepared:
    read = read_file(source.path, source.delimiter, source.encoding, most_bytes=MOST_BYTES)
    return prepare(read.frame, source.target, StudyOptions(task=source.task), 0)


def _made(n_rows: int, n_columns: int, seed: int) -> Prepared:
    """Make a table of numbers whose classes depend on some of them."""
    import polars as pl

    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_columns))
    score = np.sin(X[:, 0]) + X[:, n_columns // 2] * X[:, -1] + 0.5 * random.standard_normal(n_rows)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(n_columns)}).with_columns(y=np.where(score > 0, "a", "b"))
    return prepare(frame, "y", StudyOptions(), seed)


def _models(data: Prepared, seed: int) -> list[Candidate]:
    size = Size(data.n_rows, 1, 1, 0 if data.classes is None else len(data.classes))
    own = [Candidate(f"spinney {word}", estimator_for(word, data.task, _PLAIN, seed)) for word in _OWN]
    return own + peer_candidates(data.task, size, seed)


def run_compare(source: Source, options: dict[str, Any], *, plot: Path | None, as_json: bool) -> None:
    """Compare models by options of `compare`, and print what came of it; draw it if a file is named."""
    check_writable(plot)
    table = read_fit_table(source)
    options = {"groups": table.groups, "time": table.time, "sample_weight": table.weight, "task": table.task} | options
    with failures_in_words(), warnings_in_words():
        found = compare(X=table.X, y=table.y, verbose=int(sys.stderr.isatty()), **options)
        if plot is not None:
            _draw(found, plot, options["learning_curves"])
    if not as_json:
        click.echo(str(found))
        return
    print_json(
        {
            "table": str(source.path),
            "target": source.target,
            "best": found.best_,
            "reference": found.reference_,
            "folds": found.n_folds,
            "rows_to_learn_from": found.n_train,
            "rows_to_judge_by": found.n_test,
            "models": found.to_frame(backend="polars").to_dicts(),
            "unfinished": found.unfinished,
            "curves": {name: scores.tolist() for name, scores in found.curves.items()},
            "curve_rows": found.curve_rows.tolist(),
        }
    )


def _draw(found: Comparison, path: Path, curves: bool) -> None:
    import matplotlib.figure

    matplotlib.use("agg")
    ax = found.plot_curves() if curves else found.plot()
    assert isinstance(ax.figure, matplotlib.figure.Figure)
    ax.figure.savefig(path, dpi=150)
