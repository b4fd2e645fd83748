"""`spinney convert`: a model file of another library as one of ours."""

from __future__ import annotations

from pathlib import Path

import click

from spinney.cli.failures import failures_in_words
from spinney.cli.tables import check_writable


def run_convert(file: Path, out: Path | None) -> None:
    """Import a file and save what it holds."""
    from spinney._interchange.reading.import_file import import_file

    target = out or file.with_suffix(".spinney")
    check_writable(target)
    with failures_in_words():
        model = import_file(file)
        model.save(target)
    click.echo(f"{target}: {model._about().sentence}.", err=True)
