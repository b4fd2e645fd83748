"""Tables on disk: read whole for fitting and in batches for prediction."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney._data.csv_format import BLOCK_BYTES, CsvFormat, detect_format, open_bytes
from spinney._data.csv_types import ColumnTypes, Kind
from spinney._data.file_readers import (
    is_csv,
    is_parquet,
    on_disk,
    open_decoded,
    read_file,
    read_texts,
    reading_notes,
    record_blocks,
    translate_errors,
)
from spinney._data.scan import polars_batches
from spinney.cli.failures import command_errors, fail

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from spinney._data.file_readers import ReadTable

BATCH_ROWS = 50_000


def read_whole(path: Path, format_: CsvFormat, kinds: Mapping[str, Kind] | None = None) -> ReadTable:
    """Read a table of at least two columns and one row, and print what was found; ``-`` is standard input."""
    with command_errors():
        table = read_file(path, format_, kinds=kinds)
    print_notes(table.notes)
    return table


def print_notes(notes: list[str]) -> None:
    """Print notes on the reading of a file to standard error, one line each."""
    for note in notes:
        click.echo(note, err=True)


def column_names(path: Path, format_: CsvFormat) -> list[str]:
    """Return the names of a table's columns, reading no more than needed."""
    import polars as pl

    with command_errors(), translate_errors(path, format_):
        if is_parquet(path):
            return list(pl.read_parquet_schema(path))
        found = detect_format(path, format_)[0]
        with open_decoded(path, found.encoding) as file:
            header = next(record_blocks(file, BLOCK_BYTES))[0]
        return read_texts(header, found).columns


def require_target(target: str | None, path: Path, format_: CsvFormat) -> str:
    """Return the target; without one, raise an error that lists the columns."""
    if target is not None:
        return target
    names: list[str] = []
    if path.is_file() and (is_csv(path) or is_parquet(path)):
        with suppress(click.ClickException):
            names = column_names(path, format_)
    if not names:
        raise click.UsageError("Name the column to predict: --target COL.")
    listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    raise click.UsageError(f"Name the column to predict, such as --target {names[-1]}. The table has: {listed}.")


@contextmanager
def in_batches(path: Path, format_: CsvFormat) -> Iterator[tuple[Path, CsvFormat]]:
    """Yield a table as a UTF-8 CSV or Parquet file, and its format; others are converted to a temporary file."""
    import tempfile

    with on_disk(path) as file:
        if is_csv(file):
            with translate_errors(file, format_):
                format_, found = detect_format(file, format_)
            print_notes(reading_notes(file, found))
        if is_parquet(file) or (is_csv(file) and format_.encoding is None):
            yield file, format_
            return
        with tempfile.TemporaryDirectory(prefix="spinney-") as folder:
            written = Path(folder) / (f"{file.stem}{file.suffix.removesuffix('.gz')}" if is_csv(file) else "t.parquet")
            if is_csv(file):
                with (
                    translate_errors(file, format_),
                    open_decoded(file, format_.encoding) as text,
                    open(written, "wb") as target,
                ):
                    while block := text.read(BLOCK_BYTES):
                        target.write(block)
            else:
                read_file(file).frame.write_parquet(written)
            try:
                yield written, replace(format_, encoding=None)
            except click.ClickException as error:
                raise fail(error.message.replace(f"'{written}'", f"'{path}'")) from error


def example_of(column: pl.Series) -> str:
    """Return what a column holds, by its first value."""
    first = column.drop_nulls().head(1).to_list()
    return f"values such as '{first[0]}'" if first else "no values"


def number_column(column: pl.Series, option: str) -> NDArray[np.float64]:
    """Return the column of an option as numbers; raise an error if a value is missing or no number."""
    import polars as pl

    if not column.dtype.is_numeric():
        what = option.removeprefix("--").capitalize()
        raise fail(f"{option}: the column '{column.name}' holds {example_of(column)}. {what}s must be numbers.")
    if column.null_count() > 0:
        raise fail(f"{option}: the column '{column.name}' has missing values. Fill them or drop these rows.")
    numbers = column.cast(pl.Float64)
    if not numbers.is_finite().all():
        raise fail(f"{option}: the column '{column.name}' holds NaN or infinity. Fill them or drop these rows.")
    values: NDArray[np.float64] = numbers.to_numpy()
    return values


def batches(path: Path, kinds: Mapping[str, Kind], format_: CsvFormat) -> Iterator[pl.DataFrame]:
    """Yield the named columns in batches, in row order; the kinds are those to read from a CSV file.

    The memory needed is that of a few batches, however long the file. A CSV file is cut at ends of records here: with
    polars' own batches of a scanned CSV file memory grew with the file (333 MiB for 6 million rows, instead of 86).
    """
    import polars as pl

    with command_errors(), translate_errors(path, format_):
        if is_parquet(path):
            for frame in polars_batches(pl.scan_parquet(path, glob=False).select(list(kinds)), BATCH_ROWS):
                yield from frame.iter_slices(BATCH_ROWS)
            return
        types, notes, n_rows = ColumnTypes(format_, kinds), list[str](), 0  # later blocks are read as the first
        with open_bytes(path) as file:
            for header, records in record_blocks(file, BLOCK_BYTES):
                texts = read_texts(header + records, format_).select(list(kinds))
                frame = types.read(texts)
                check_kinds(frame, texts, types, path, n_rows)
                print_notes(reading_notes(path, [note for note in types.notes if note not in notes]))
                notes, n_rows = notes + types.notes, n_rows + frame.height
                yield frame.cast({name: pl.Float64 for name, kind in kinds.items() if kind == "number"})


def check_kinds(frame: pl.DataFrame, texts: pl.DataFrame, types: ColumnTypes, path: Path, n_before: int) -> None:
    """Raise an error that names the first value that is not read as the rest of a column of numbers or dates."""
    import polars as pl

    for name, kind in types.kinds.items():
        if kind == "date" and name not in types.format.dates:
            continue  # models read ISO 8601 themselves
        if kind == "text" or frame[name].dtype != pl.String or frame[name].null_count() == frame.height:
            continue
        row = types.unreadable(texts[name], kind).arg_max() or 0
        raise fail(
            f"Column '{name}' of '{path}' holds {kind}s in the training table, but {texts[name][row]!r} in row "
            f"{n_before + row + 1:,}. Correct that value (empty or NA if it is missing)."
        )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` on success and is deleted on failure."""
    import shutil
    import tempfile

    check_writable(path)
    if _is_device(path):
        yield path
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    folder = Path(tempfile.mkdtemp(prefix=".spinney-", dir=target.parent))
    try:
        written = folder / target.name
        yield written
        if target.exists():
            shutil.copymode(target, written)
        os.replace(written, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_writable(path: Path | None) -> None:
    """Raise an error if a file cannot be written, before the command runs."""
    if path is None or _is_device(path):
        return
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise fail(f"Cannot write '{path}': it is a folder. Name a file.")
    if not folder.is_dir():
        raise fail(f"Cannot write '{path}': there is no folder '{folder}'. Create it first.")
    if not os.access(folder, os.W_OK):
        raise fail(f"Cannot write '{path}': permission denied. Choose another folder.")


def _is_device(path: Path) -> bool:
    """Return whether a path is a device or a pipe, which is written to and not replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()
