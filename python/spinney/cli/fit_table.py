"""The table of ``spinney fit`` and ``spinney compare``: what to learn from, what to predict, and by which task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from spinney._data.arguments import read_size
from spinney._data.file_readers import STANDARD_INPUT, is_parquet, reading
from spinney._data.types import Floats
from spinney._evaluate.problem import Array, read_target
from spinney.cli.failures import fail, failures_in_words, nearest
from spinney.cli.tables import number_column, read_whole

if TYPE_CHECKING:
    import polars as pl

_NUMBERS_OF = {"ranking": "--model ranker needs grades", "survival": "--model survival needs times"}


@dataclass(frozen=True, eq=False)
class FitTable:
    """A table, separated.

    Attributes
    ----------
    X : polars.DataFrame or LargeTable
        Columns to learn from.
    y : ndarray of shape (n_rows,)
        Labels, numbers or times; times without an event are negative.
    task : {"classification", "regression", "ranking", "survival"}
    why : str
        The reason for the task.
    columns : list of str
    n_without_target : int
        Rows that were left out.
    weight, offset, groups, time : ndarray of shape (n_rows,), or None
    """

    X: Any
    y: Array
    task: str
    why: str
    columns: list[str]
    n_without_target: int
    weight: Floats | None = None
    offset: Floats | None = None
    groups: Array | None = None
    time: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows with a target."""
        return len(self.y)

    @property
    def fit_params(self) -> dict[str, Array]:
        """Further arguments of `fit`."""
        lists = self.groups if self.task == "ranking" else None
        return {name: one for name, one in {"offset": self.offset, "groups": lists}.items() if one is not None}


def read_fit_table(source: Source) -> FitTable:
    """Read a table and separate the target and what else is not learned from."""
    frame = read_whole(source.path, source.delimiter, source.encoding)
    columns = source.columns(frame.columns)
    task, why, is_known = decide(frame[source.target], source.task)
    rows = frame.filter(is_known)
    X = _with_date_parts(rows.select(columns), source)
    weight, offset = (
        None if name is None else number_column(rows[name], f"--{option}")
        for option, name in (("weight", source.weight), ("offset", source.offset))
    )
    groups, time = (None if name is None else rows[name].to_numpy() for name in (source.group, source.time))
    y = labels_of(rows[source.target])
    if source.event is not None:
        y = np.where(_events(rows[source.event]), y, -y.astype(float))
    n_without = frame.height - rows.height
    return FitTable(X, y, task, why, X.columns, n_without, weight, offset, groups, time)


def decide(target: pl.Series, asked: str) -> tuple[str, str, Array]:
    """Return the task of a target, why, and which rows have a value."""
    is_special = asked in _NUMBERS_OF
    if is_special and not target.dtype.is_numeric():
        raise fail(f"{_NUMBERS_OF[asked]}, but the target '{target.name}' holds {target.dtype} values.")
    with failures_in_words():
        found = read_target(target, "regression" if is_special else asked, target.name)
    return (asked if is_special else found.task), ("as asked" if asked != "auto" else found.why), found.is_known


def labels_of(target: pl.Series) -> Array:
    """Return a target without missing values as an array."""
    import polars as pl

    if isinstance(target.dtype, pl.Categorical | pl.Enum):
        target = target.cast(pl.String)
    values: Array = target.to_numpy()
    return values.astype(float) if target.dtype == pl.Decimal else values


def _events(column: pl.Series) -> Array:
    """Return which rows have had their event, of a column of 0 and 1 or of true and false."""
    values = column.to_numpy()
    if column.null_count() or not set(np.unique(values).tolist()) <= {0, 1}:
        raise fail(f"--event: '{column.name}' must hold 1 (or true) where the event has happened, and 0 where not yet.")
    return np.asarray(values, dtype=bool)


def _with_date_parts(X: pl.DataFrame, source: Source) -> Any:
    from spinney._data.date_parts import PARTS, date_parts

    if not source.date_parts:
        return X
    if strange := [part for part in source.date_parts if part not in PARTS]:
        raise fail(f"--date-parts: dates have no part '{strange[0]}'. They have {', '.join(PARTS)}.")
    if not any(dtype.is_temporal() for dtype in X.dtypes):
        raise fail(
            f"--date-parts: '{source.path}' has no column of dates. Write them as in 2024-05-31, or leave it out."
        )
    with failures_in_words():
        return date_parts(X, parts=source.date_parts)


@dataclass(frozen=True)
class Source:
    """Where the rows come from, the column to predict, and which columns say something else of the rows."""

    path: Path
    target: str
    delimiter: str | None = None
    encoding: str | None = None
    task: str = "auto"
    drop: tuple[str, ...] = ()
    date_parts: tuple[str, ...] = ()
    weight: str | None = None
    offset: str | None = None
    group: str | None = None
    time: str | None = None
    event: str | None = None

    @property
    def stem(self) -> str:
        """Name of the table without folder and suffix."""
        return "table" if self.path == STANDARD_INPUT else self.path.name.partition(".")[0] or self.path.stem

    @property
    def not_learned_from(self) -> set[str]:
        """Columns that models do not see."""
        return {name for _, name in self._named()}

    def _named(self) -> Iterator[tuple[str, str]]:
        for option in ("target", "weight", "offset", "group", "time", "event"):
            if (name := getattr(self, option)) is not None:
                yield f"--{option}", name
        yield from (("--drop", name) for name in self.drop)

    def columns(self, names: list[str]) -> list[str]:
        """Return the columns to learn from of those that the table has; refuse options that name no such column."""
        named = list(self._named())
        for option, name in named:
            if name not in names:
                raise fail(f"{option}: '{self.path}' has no column '{name}'. {nearest(name, names)}")
        if self.target in [name for _, name in named[1:]]:
            raise fail(
                f"'{self.target}' is the target; it cannot be dropped or be the weight, offset, group or time too."
            )
        found = [name for name in names if name not in self.not_learned_from]
        if not found:
            raise fail("No column is left to learn from. Drop fewer columns.")
        return found


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
