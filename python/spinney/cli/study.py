"""``spinney study``, ``demo``, ``bench`` and ``compare``: several models on one table."""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from spinney._data.display import for_terminal
from spinney._data.file_readers import MAX_BYTES, read_file
from spinney._data.types import TableLike
from spinney._evaluate.compare import Comparison, compare
from spinney._evaluate.folds import split_test
from spinney._evaluate.progress import StatusLine
from spinney._evaluate.runner import Candidate, Runner
from spinney._evaluate.scoring import Scorers, read_metrics
from spinney._evaluate.study.plan import EFFORTS, estimator_for, peer_candidates
from spinney._evaluate.study.prepare import BEST, SIMPLEST, Prepared, StudyOptions, prepare
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.schedule import before_report
from spinney.cli.failures import INTERRUPTED, command_errors, fail, file_error, warnings_in_one_line
from spinney.cli.fit_table import Source, read_fit_table
from spinney.cli.output import print_json, print_lines, table_of
from spinney.cli.tables import check_writable

REPORT, MODEL, SINGLE, RESULTS = "report.html", "best.model", "single.model", "study.json"


def run_study(source: Source, options: dict[str, Any], start: float, *, out: Path | None, as_json: bool) -> None:
    """Run a study, print the leaderboard, and save the report and the best model; the command started at `start`."""
    folder = Path(f"{source.stem}-study") if out is None else out
    check_folder(folder)
    end = time.monotonic() + 60 * options["minutes"]
    with command_errors(), warnings_in_one_line(), _status() as status:
        read = read_file(source.path, source.format, max_bytes=MAX_BYTES)
        study = make_study(read, source.target, options, status)
        study.command = command_of(source, options)
        files = save_study(study, folder, start, end, status)
    if as_json:
        print_json(study.to_dict() | {"files": files})
    else:
        click.echo(f"{for_terminal(str(study))}\n")
        for kind, path in files.items():
            click.echo(f"{kind:7} {linked(Path(path))}")
    exit_if_interrupted(study)


def make_study(table: TableLike, target: str, options: dict[str, Any], status: StatusLine | None = None) -> Study:
    """Run a study that leaves time for the report, and show its progress."""
    import spinney

    minutes = before_report(options["minutes"])
    if status is not None:
        status.spare = 60 * (options["minutes"] - minutes)
    return spinney.study(table, target, progress=status or False, **options | {"minutes": minutes})


def exit_if_interrupted(study: Study) -> None:
    """Exit with the code of an interruption if Ctrl-C has ended the study."""
    if study.is_interrupted:
        raise SystemExit(INTERRUPTED)


def command_of(source: Source, options: dict[str, Any]) -> str:
    """Return the command line, with all options that differ from the defaults."""
    from spinney._evaluate.report.overview import command_line

    defaults = {"minutes": 2.0, "cv": 5, "random_state": 0, "task": "auto"}
    chosen = {name: value for name, value in options.items() if value != defaults.get(name)}
    if chosen.pop("prefer", SIMPLEST) == BEST:
        chosen["best"] = True
    chosen |= source.format.options
    return command_line(str(source.path), source.target, chosen)


@contextmanager
def _status() -> Iterator[StatusLine | None]:
    """Show the progress of a study, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    with StatusLine() as status:
        yield status


def check_folder(folder: Path) -> None:
    """Raise an error if the output folder cannot be written, before the study runs."""
    if folder.exists() and not folder.is_dir():
        raise fail(f"Cannot save the study in '{folder}': it is a file. Name a folder with --out.")
    if not folder.resolve().parent.is_dir():
        raise fail(
            f"Cannot save the study in '{folder}': its parent folder does not exist. Create it first, or name another "
            "folder with --out."
        )


def save_study(
    study: Study, folder: Path, start: float, end: float, status: StatusLine | None = None
) -> dict[str, str]:
    """Save the models, report and results of a study to a folder; return the files by content.

    The report takes until the end, on the monotonic clock; if it is interrupted, it is left out. The seconds of the
    study become those since the start.
    """
    if status is not None:
        status(0, 0, "writing the report", status.spare)
        status.spare = 0.0
    try:
        folder.mkdir(exist_ok=True)
        study.save(folder / MODEL)
        files = {"report": str(folder / REPORT), "model": str(folder / MODEL)}
        if study.single != study.best:
            study.single_model.save(folder / SINGLE)
            files["single"] = str(folder / SINGLE)
        try:
            study.report(folder / REPORT, seconds=end - time.monotonic())
        except KeyboardInterrupt:
            study.is_interrupted = True
            del files["report"]
        files["results"] = str(folder / RESULTS)
        study.seconds = time.monotonic() - start
        text = json.dumps(study.to_dict() | {"files": files}, ensure_ascii=False, allow_nan=False, indent=2)
        (folder / RESULTS).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise fail(file_error(error, folder)) from error
    return files


def linked(path: Path) -> str:
    """Return a path, as a link if standard output is a terminal."""
    if not sys.stdout.isatty():
        return str(path)
    return f"\x1b]8;;{path.resolve().as_uri()}\x1b\\{path}\x1b]8;;\x1b\\"


def run_demo(*, out: Path | None, **options: Any) -> None:
    """Run a study of the penguins, print the leaderboard and the tree, and the path of the report."""
    import polars as pl

    from spinney import export_text
    from spinney.datasets import load_penguins

    folder = Path("penguins-study") if out is None else out
    check_folder(folder)
    X, y = load_penguins(as_frame="polars")
    categories = [name for name in X.columns if isinstance(X[name].dtype, pl.Enum | pl.Categorical | pl.String)]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(y.to_list()).items()))
    print_lines(
        f"Palmer penguins: {X.height} rows, {X.width} features ({len(categories)} categorical: "
        f"{', '.join(categories)}), {sum(X.null_count().row(0))} missing values",
        f"Target: species ({counts})\n",
    )
    start = time.monotonic()
    with command_errors(), _status() as status:
        study = make_study(X.with_columns(species=y), "species", options, status)
        files = save_study(study, folder, start, start + 60 * options["minutes"], status)
    with_missing = {name for name in X.columns if X[name].null_count() > 0}
    click.echo(f"{for_terminal(str(study))}\n\nPruned decision tree:")
    print_lines(export_text(study.tree, show_missing=with_missing))
    if "report" in files:
        click.echo(f"\nReport: {linked(Path(files['report']).resolve())} (open it in a browser)")
    click.echo(f"Model that is kept ({study.best}): {files['model']}\nNow run a study of your own table:")
    click.echo("  spinney study loans.csv --target repaid")
    exit_if_interrupted(study)


_OWN = ("tree", "forest", "extra-trees", "boosting")
_PLAIN = EFFORTS[-1]


def run_bench(source: Source | None, *, rows: int, columns: int, rounds: int, seed: int, as_json: bool) -> None:
    """Fit models several times, and print their median times and their loss on held-out rows."""
    with command_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _synthetic(rows, columns, seed) if source is None else _read(source)
        metric = "neg_root_mean_squared_error" if data.classes is None else "neg_log_loss"
        scorers, runner = Scorers(read_metrics(metric, data.classes), data.classes), Runner(data)
        fold, models = split_test(data, np.random.RandomState(seed)), _models(data, seed)
        runs = [[runner.run(candidate, fold) for candidate in models] for _ in range(rounds)]
    results = [
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
        print_json({"rows": n_train, "columns": n_columns, "loss": loss, "rounds": rounds, "models": results})
        return
    cells = [
        [one["model"], f"{one['fit_seconds']:.3g}", f"{one['predict_seconds']:.3g}", f"{one['loss']:.4g}"]
        for one in sorted(results, key=lambda one: one["loss"])
    ]
    print_lines(
        f"{n_train:,} training rows, {len(fold.held_out):,} held-out rows, {n_columns} columns",
        table_of(["model", "fit s", "predict s", loss], cells),
    )


def _read(source: Source) -> Prepared:
    read = read_file(source.path, source.format, max_bytes=MAX_BYTES)
    return prepare(read.frame, source.target, StudyOptions(task=source.task), 0)


def _synthetic(n_rows: int, n_columns: int, seed: int) -> Prepared:
    """Return a synthetic table of numbers and two classes that depend on some of them."""
    import polars as pl

    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_columns))
    score = np.sin(X[:, 0]) + X[:, n_columns // 2] * X[:, -1] + 0.5 * random.standard_normal(n_rows)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(n_columns)}).with_columns(y=np.where(score > 0, "a", "b"))
    return prepare(frame, "y", StudyOptions(), seed)


def _models(data: Prepared, seed: int) -> list[Candidate]:
    own = [Candidate(f"spinney {word}", estimator_for(word, data.task, _PLAIN, seed)) for word in _OWN]
    return own + peer_candidates(data.task, seed)


def run_compare(source: Source, options: dict[str, Any], *, plot: Path | None, as_json: bool) -> None:
    """Compare models, print the comparison, and draw it if a plot file is set."""
    check_writable(plot)
    table = read_fit_table(source)
    options = {"groups": table.groups, "time": table.time, "sample_weight": table.weight, "task": table.task} | options
    with command_errors(), warnings_in_one_line():
        comparison = compare(X=table.X, y=table.y, progress=sys.stderr.isatty(), **options)
        if plot is not None:
            _draw(comparison, plot, options["learning_curves"])
    if not as_json:
        click.echo(str(comparison))
        return
    print_json(
        {
            "table": str(source.path),
            "target": source.target,
            "best": comparison.best_,
            "reference": comparison.reference_,
            "folds": comparison.n_folds,
            "training_rows": comparison.n_train,
            "test_rows": comparison.n_test,
            "note": comparison.note,
            "models": comparison.to_frame(backend="polars").to_dicts(),
            "unfinished": comparison.unfinished,
            "curves": {name: scores.tolist() for name, scores in comparison.curves.items()},
            "curve_rows": comparison.curve_rows.tolist(),
        }
    )


def _draw(comparison: Comparison, path: Path, curves: bool) -> None:
    import matplotlib.figure

    matplotlib.use("agg")
    ax = comparison.plot_curves() if curves else comparison.plot()
    assert isinstance(ax.figure, matplotlib.figure.Figure)
    ax.figure.savefig(path, dpi=150)
