"""``spinney export``: a saved model in another format."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spinney.cli.failures import fail, failures_in_words
from spinney.cli.tables import check_writable


def _c(model: Any, name: str) -> bytes:
    from spinney import to_c

    return to_c(model, name=name).encode()


def _onnx(model: Any, name: str) -> bytes:
    from spinney import to_onnx

    return bytes(to_onnx(model).SerializeToString())


def _sql(model: Any, name: str) -> bytes:
    from spinney import to_sql

    return to_sql(model, name).encode()


def _xgboost(model: Any, name: str) -> bytes:
    from spinney import to_xgboost

    return to_xgboost(model).encode()


def _lightgbm(model: Any, name: str) -> bytes:
    from spinney import to_lightgbm

    return to_lightgbm(model).encode()


def _treelite(model: Any, name: str) -> bytes:
    from spinney import to_treelite

    return bytes(to_treelite(model).serialize_bytes())


def _pmml(model: Any, name: str) -> bytes:
    from spinney import to_pmml

    return to_pmml(model).encode()


WRITERS: dict[str, Callable[[Any, str], bytes]] = {
    "onnx": _onnx,
    "c": _c,
    "sql": _sql,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "treelite": _treelite,
    "pmml": _pmml,
}
_NAMED = {"c": "model", "sql": "data"}  # formats that name something, and the name if none is given
_BINARY = frozenset({"onnx", "treelite"})


def run_export(model_path: Path, *, to: str, out: Path | None, name: str | None) -> None:
    """Write a saved model in another format."""
    from spinney import load
    from spinney._model.file.disk import write_file

    if out is None and to in _BINARY and sys.stdout.isatty():
        raise fail(f"{to} is not text: name a file with --out.")
    if name is not None and to not in _NAMED:
        raise click.UsageError(f"--name goes with --to {' and '.join(_NAMED)}.")
    if out is not None:
        check_writable(out)
    with failures_in_words():
        try:
            written = WRITERS[to](load(model_path), name or _NAMED.get(to, ""))
        except ImportError as error:
            raise fail(str(error)) from None
        if out is not None:
            write_file(out, written)
            return
    click.echo(written, nl=False)
