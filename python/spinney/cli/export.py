"""``spinney export``: a saved model in another format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from spinney._estimator.estimator import Estimator
from spinney._names import public
from spinney.cli.failures import fail, failures_in_words
from spinney.cli.tables import check_writable

_NAMED = ("c", "sql")  # formats that name something
_BINARY = frozenset({"onnx", "treelite"})


def written_as(model: Estimator, to: str, name: str | None) -> bytes:
    """Return a model in a format; `name` is what the format names, where it names something."""
    write = public(f"to_{to}")
    named = {"c": {"name": name or "model"}, "sql": {"table": name or "data"}}
    written = write(model, **named.get(to, {}))
    if isinstance(written, str):
        return written.encode()
    return bytes(written.serialize_bytes() if to == "treelite" else written.SerializeToString())


def run_export(model_path: Path, *, to: str, out: Path | None, name: str | None) -> None:
    """Write a saved model in another format."""
    from spinney._estimator.estimator import load
    from spinney._model.file.disk import write_file

    if out is None and to in _BINARY and sys.stdout.isatty():
        raise fail(f"{to} is not text: name a file with --out.")
    if name is not None and to not in _NAMED:
        raise click.UsageError(f"--name goes with --to {' and '.join(_NAMED)}.")
    if out is not None:
        check_writable(out)
    with failures_in_words():
        try:
            written = written_as(load(model_path), to, name)
        except ImportError as error:
            raise fail(str(error)) from None
        if out is not None:
            write_file(out, written)
            return
    click.echo(written, nl=False)
