"""``spinney fit`` of tables that are larger than the memory they may take: read some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney._data.arguments import read_size
from spinney._data.file_readers import is_parquet, reading
from spinney.cli.failures import fail, failures_in_words
from spinney.cli.fit_table import FitTable, decide, labels_of
from spinney.cli.source import Source

if TYPE_CHECKING:
    import polars as pl

_BYTES_A_CELL = 8
MOST_ROUNDS = 500  # unless the user says
MOST_BINS = 255


@dataclass(frozen=True)
class LargeTable:
    """Rows that are not in memory, with what a report says of a table."""

    rows: pl.LazyFrame
    columns: list[str]


def memory_allowed(given: str | None) -> int:
    """Return how many bytes a table may take: as asked, or half of what is free."""
    if given is not None:
        try:
            return read_size(given, "--memory")
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="'--memory'") from error
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 // 2
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def large_rows(path: Path, allowed: int) -> tuple[pl.LazyFrame, str] | None:
    """Return the rows of a pattern of files, or of a file that takes more than is allowed, and why; else None."""
    import polars as pl

    is_pattern = path.is_dir() or (has_magic(str(path)) and not path.exists())
    if not is_pattern and not (path.is_file() and is_parquet(path)):
        return None
    files = files_of(path)
    rows = _rows_of(files)
    with in_words(files):
        n_bytes = int(rows.select(pl.len()).collect().item()) * len(rows.collect_schema()) * _BYTES_A_CELL
    if n_bytes > allowed:
        more = f"takes about {_in_words(n_bytes)} in memory, of which {_in_words(allowed)} may be used"
        return rows, f"'{path}' {more}: it is read some rows at a time."
    return (rows, f"'{path}' stands for {len(files)} files: they are read some rows at a time.") if is_pattern else None


def files_of(path: Path) -> list[Path]:
    """Return the Parquet files that a path, a folder or a pattern stands for."""
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if is_parquet(file) and file.is_file())
        if not found:
            raise fail(f"Cannot use '{path}': it is a folder without Parquet files. Name a file, or a pattern of some.")
        return found
    found = [Path(file) for file in sorted(glob(str(path), recursive=True))]
    if not found:
        raise fail(f"No file is called '{path}'. Check the pattern.")
    strange = next((file for file in found if not is_parquet(file)), None)
    if strange is not None:
        raise fail(f"'{strange}' is no Parquet file; only these are read some rows at a time.")
    return found


def _rows_of(files: list[Path]) -> pl.LazyFrame:
    """Return the rows of all files; columns of the same name may be in another order, and numbers of another kind."""
    import polars as pl

    schemas: list[pl.Schema] = []
    for file in files:
        with failures_in_words(), reading(file, None):
            schemas.append(pl.scan_parquet(file, glob=False).collect_schema())
    names = schemas[0].names()
    for file, schema in zip(files, schemas, strict=True):
        others = sorted(set(names) ^ set(schema))
        if others:
            whose = files[0] if others[0] in names else file
            raise fail(
                f"'{files[0]}' and '{file}' differ in columns: only '{whose}' has '{others[0]}'. Give all the same."
            )
    if all(dict(schema) == dict(schemas[0]) for schema in schemas):
        return pl.scan_parquet(files, glob=False)
    for file, schema in zip(files, schemas, strict=True):
        name = next((name for name in names if not _go_together(schemas[0][name], schema[name])), None)
        if name is not None:
            raise fail(
                f"Column '{name}' is {schemas[0][name]} in '{files[0]}' and {schema[name]} in '{file}'. Convert its "
                "values to one kind."
            )
    return pl.concat([pl.scan_parquet(file, glob=False).select(names) for file in files], how="vertical_relaxed")


def _go_together(one: pl.DataType, other: pl.DataType) -> bool:
    """Tell whether two types of a column have one that holds the values of both as they are."""
    import polars as pl

    texts = (pl.String, pl.Categorical, pl.Enum)
    both_texts = isinstance(one, texts) and isinstance(other, texts)
    return one == other or (one.is_numeric() and other.is_numeric()) or both_texts or pl.Null in (one, other)


@contextmanager
def in_words(files: list[Path]) -> Iterator[None]:
    """Turn what polars raises when it reads files into a sentence that names the one that cannot be read."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        for file in files:
            with failures_in_words(), reading(file, None):
                pl.read_parquet(file, glob=False)
        raise fail(f"Cannot read the rows: {error}. Check that all files are whole.") from error


def _in_words(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 10**8 else f"{n_bytes / 1e6:.1f} MB"


def read_large_table(source: Source, rows: pl.LazyFrame) -> FitTable:
    """Separate rows that are not in memory, and read their target."""
    import polars as pl

    columns = source.columns(rows.collect_schema().names())
    if source.date_parts:
        raise fail("--date-parts is for tables in memory. Add the parts to the files, or raise --memory.")
    with in_words(files_of(source.path)):
        whole = rows.select(source.target).collect()[source.target]
    if whole.len() == 0:
        raise fail(f"'{source.path}' has no rows. Name a table that has some.")
    task, why, is_known = decide(whole, source.task)
    retained = rows
    if not is_known.all():
        known = pl.col(source.target).is_not_null()
        retained = rows.filter(known & pl.col(source.target).is_not_nan() if whole.dtype.is_float() else known)
    others = [name for name in (source.target, source.weight, source.offset) if name is not None]
    large = LargeTable(retained.select(*columns, *dict.fromkeys(others)), columns)
    y = labels_of(whole.filter(is_known))
    return FitTable(large, y, task, why, columns, whole.len() - len(y))
