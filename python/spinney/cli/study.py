"""``spinney study``: a table, a family of models, a leader board, and files that keep them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from spinney._data.file_readers import MOST_BYTES, read_file
from spinney._data.types import TableLike
from spinney._evaluate.runner import ProgressCall
from spinney._evaluate.study.result import Study
from spinney.cli.failures import fail, failures_in_words, os_failure, warnings_in_words
from spinney.cli.source import Source

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
        click.echo(json.dumps(found.to_dict() | {"files": files}, ensure_ascii=False, allow_nan=False, indent=2))
        return
    print_study(found, files)


def studied(table: TableLike, target: str, options: dict[str, Any]) -> Study:
    """Study a table, with a bar on the terminal if there is one."""
    import spinney

    whole = options["minutes"]
    minutes = max(0.5 * whole, min(STUDY_SHARE * whole, whole - _REPORT_SECONDS / 60))
    with _bar() as progress:
        return spinney.study(table, target, progress=progress, **options | {"minutes": minutes})


def command_of(source: Source, options: dict[str, Any]) -> str:
    """Write the command that was given, with all options that are not the usual ones."""
    from spinney._evaluate.report.provenance import command_line

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


def print_study(found: Study, files: dict[str, str]) -> None:
    """Print the leader board, the notes and the files."""
    click.echo(str(found))
    if files:
        click.echo()
    for what, path in files.items():
        click.echo(f"{what:6} {path}")
