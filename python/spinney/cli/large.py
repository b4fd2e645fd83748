"""``spinney fit`` of tables that are larger than the memory they may take: read some rows at a time."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney._data.sizes import read_size
from spinney._tables.faults import is_parquet, reading
from spinney.cli.failures import fail, failures_in_words, nearest

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
    height: int


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

    is_pattern = has_magic(str(path)) and not path.exists()
    if not is_pattern and not (path.is_file() and is_parquet(path)):
        return None
    files = sorted(glob(str(path), recursive=True)) if is_pattern else [str(path)]
    if not files:
        raise fail(f"No file is called '{path}'.")
    strange = [file for file in files if not is_parquet(Path(file))]
    if strange:
        raise fail(f"'{strange[0]}' is no Parquet file; only these are read some rows at a time.")
    with failures_in_words(), reading(Path(files[0]), None):
        rows = pl.scan_parquet(files, glob=False)
        n_bytes = int(rows.select(pl.len()).collect().item()) * len(rows.collect_schema()) * _BYTES_A_CELL
    if n_bytes > allowed:
        more = f"takes about {_in_words(n_bytes)} in memory, of which {_in_words(allowed)} may be used"
        return rows, f"'{path}' {more}: it is read some rows at a time."
    return (rows, f"'{path}' stands for {len(files)} files: they are read some rows at a time.") if is_pattern else None


def _in_words(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 10**8 else f"{n_bytes / 1e6:.1f} MB"


def take_large_apart(source: Any, rows: pl.LazyFrame) -> tuple[LargeTable, Any, int]:
    """Return the rows that have a target, the target, and how many have none."""
    import polars as pl

    names = rows.collect_schema().names()
    named = {"--target": source.target, **source.beside}
    for option, name in [*named.items(), *(("--drop", name) for name in source.drop)]:
        if name not in names:
            raise fail(f"{option}: '{source.path}' has no column '{name}'. {nearest(name, names)}")
    if source.target in (*source.beside.values(), *source.drop):
        raise fail(f"'{source.target}' is the target; it cannot be dropped or be the weight or offset too.")
    if source.date_parts:
        raise fail("--date-parts is for tables in memory. Add the parts to the files, or raise --memory.")
    columns = [name for name in names if name not in (*named.values(), *source.drop)]
    if not columns:
        raise fail("No column is left to learn from. Drop fewer columns.")
    known = pl.col(source.target).is_not_null()
    if rows.collect_schema()[source.target].is_float():
        known = known & pl.col(source.target).is_not_nan()
    with failures_in_words():
        n_all = int(rows.select(pl.len()).collect().item())
        target = rows.filter(known).select(source.target).collect()[source.target]
    if target.len() == 0:
        raise fail(f"The target '{source.target}' has no values at all. Name another column with --target.")
    kept = rows if target.len() == n_all else rows.filter(known)
    return LargeTable(kept.select(*columns, *named.values()), columns, target.len()), target, n_all - target.len()
