"""The table of ``spinney fit`` and ``spinney compare``: features, target, task, and columns with other roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from spinney._data.arguments import read_size
from spinney._data.csv_format import ANY_FORMAT, CsvFormat
from spinney._data.display import nearest_name
from spinney._data.file_readers import STANDARD_INPUT, is_csv, is_parquet, translate_errors
from spinney._data.memory import free_memory
from spinney._data.types import Floats
from spinney._evaluate.problem import Array, read_target
from spinney.cli.failures import command_errors, fail
from spinney.cli.tables import example_of, number_column, read_whole

if TYPE_CHECKING:
    import polars as pl

_NUMBERS_OF = {"ranking": "--model ranker needs relevance grades", "survival": "--model survival needs times"}


@dataclass(frozen=True, eq=False)
class FitTable:
    """Features, target and task of a table.

    Attributes
    ----------
    X : polars.DataFrame or polars.LazyFrame
        Features; out of core, with the target, weight and offset.
    y : ndarray of shape (n_rows,)
        Labels, numbers or times; censored times are negative.
    task : {"classification", "regression", "ranking", "survival"}
    why : str
        The reason for the task.
    columns : list of str
    n_without_target : int
        Rows excluded because they have no target.
    weight, offset, groups, time : ndarray of shape (n_rows,), or None
    format : CsvFormat, optional
        How a CSV file was read.
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
    format: CsvFormat | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows with a target."""
        return len(self.y)

    @property
    def fit_params(self) -> dict[str, Array]:
        """Further arguments of `fit`."""
        queries = self.groups if self.task == "ranking" else None
        return {name: one for name, one in {"offset": self.offset, "groups": queries}.items() if one is not None}


def read_fit_table(source: Source) -> FitTable:
    """Read a table and separate its features, target and other columns."""
    read = read_whole(source.path, source.format)
    frame = read.frame
    columns = source.columns(frame.columns)
    task, why, is_known = decide(frame[source.target], source)
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
    return FitTable(X, y, task, why, X.columns, n_without, weight, offset, groups, time, read.format)


def decide(target: pl.Series, source: Source) -> tuple[str, str, Array]:
    """Return the task of a target, the reason, and which rows have a value."""
    task = source.task
    is_special = task in _NUMBERS_OF
    if is_special and not target.dtype.is_numeric():
        raise fail(f"{_NUMBERS_OF[task]}, but the target '{target.name}' holds {example_of(target)}.")
    with command_errors():
        if source.why and read_target(target, "auto", target.name).values.dtype.kind not in "iuf":
            raise fail(
                f"{source.why} is a regression loss, but the target '{target.name}' holds labels. Choose a loss for "
                "classes, such as log_loss, or name a numeric column as the target."
            )
        read = read_target(target, "regression" if is_special else task, target.name)
    if read.task == "classification" and len(np.unique(read.values)) == len(read.values) > 1:
        raise fail(
            f"Every label of the target '{target.name}' occurs once, so that no model can be trained. Name another "
            "column; if it holds numbers as text, correct the values that are not numbers."
        )
    why = "as requested" if task != "auto" else read.why
    if is_special:
        event = f"; event in '{source.event}'" if source.event is not None else ""
        why = f"ranking by the grades in '{target.name}'" if task == "ranking" else f"times in '{target.name}'{event}"
    return (task if is_special else read.task), why, read.is_known


def labels_of(target: pl.Series) -> Array:
    """Return a target without missing values as an array."""
    import polars as pl

    if isinstance(target.dtype, pl.Categorical | pl.Enum):
        target = target.cast(pl.String)
    values: Array = target.to_numpy()
    return values.astype(float) if target.dtype == pl.Decimal else values


def _events(column: pl.Series) -> Array:
    """Return which rows have an observed event, from a column of 0 and 1 or of true and false."""
    values = column.to_numpy()
    if column.null_count() or not set(np.unique(values).tolist()) <= {0, 1}:
        raise fail(f"--event: '{column.name}' must hold 1 (or true) for observed events and 0 for censored times.")
    return np.asarray(values, dtype=bool)


def _with_date_parts(X: pl.DataFrame, source: Source) -> Any:
    from spinney._data.date_parts import PARTS, date_parts

    if not source.date_parts:
        return X
    if unknown := [part for part in source.date_parts if part not in PARTS]:
        raise fail(f"--date-parts: '{unknown[0]}' is not a part of a date. Choose from {', '.join(PARTS)}.")
    if not any(dtype.is_temporal() for dtype in X.dtypes):
        raise fail(
            f"--date-parts: '{source.path}' has no date column. Write dates such as 2024-05-31, or leave it out."
        )
    with command_errors():
        return date_parts(X, parts=source.date_parts)


@dataclass(frozen=True)
class Source:
    """A table file, the column to predict, and the columns with other roles."""

    path: Path
    target: str
    format: CsvFormat = ANY_FORMAT
    task: str = "auto"
    why: str = ""  # the option that implies the task, if it is not --task
    drop: tuple[str, ...] = ()
    date_parts: tuple[str, ...] = ()
    weight: str | None = None
    offset: str | None = None
    group: str | None = None
    time: str | None = None
    event: str | None = None

    @property
    def stem(self) -> str:
        """File name without folder and suffix."""
        return "table" if self.path == STANDARD_INPUT else self.path.name.partition(".")[0] or self.path.stem

    @property
    def _excluded(self) -> set[str]:
        """Columns that are no features."""
        return {name for _, name in self._named()}

    def _named(self) -> Iterator[tuple[str, str]]:
        for option in ("target", "weight", "offset", "group", "time", "event"):
            if (name := getattr(self, option)) is not None:
                yield f"--{option}", name
        yield from (("--drop", name) for name in self.drop)

    def columns(self, names: list[str]) -> list[str]:
        """Return the feature columns of a table; raise an error if an option names a column that it lacks."""
        named = list(self._named())
        for option, name in named:
            if name not in names:
                raise fail(f"{option}: '{self.path}' has no column '{name}'. {nearest_name(name, names)}")
        if self.target in [name for _, name in named[1:]]:
            raise fail(
                f"'{self.target}' is the target; it cannot be dropped, nor be the weight, offset, group, time or event."
            )
        features = [name for name in names if name not in self._excluded]
        if not features:
            raise fail("No feature column is left. Drop fewer columns.")
        return features


_BYTES_PER_CELL = 8
_BYTES_OF_TEXT = 4  # of memory per byte of a CSV file
MOST_ROUNDS = 500  # by default
MOST_BINS = 255


def memory_allowed(size: str | None) -> int:
    """Return the memory limit in bytes; by default half of the free memory."""
    if size is not None:
        try:
            return read_size(size, "--memory")
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="'--memory'") from error
    return free_memory() // 2


def large_rows(path: Path, allowed: int) -> tuple[pl.LazyFrame, str] | None:
    """Return the rows of a table to read out of core, and the reason; None for a table that fits in memory."""
    import polars as pl

    if path.is_file() and is_csv(path) and (n_bytes := _BYTES_OF_TEXT * path.stat().st_size) > allowed:
        raise fail(
            f"'{path}' takes about {_size_text(n_bytes)} of memory, and the limit is {_size_text(allowed)}. Convert it "
            "to Parquet, which boosting, forests and trees read out of core: in Python, "
            f"polars.scan_csv({str(path)!r}).sink_parquet({str(path.with_suffix('.parquet'))!r}). Or raise --memory."
        )
    is_pattern = path.is_dir() or (has_magic(str(path)) and not path.exists())
    if not is_pattern and not (path.is_file() and is_parquet(path)):
        return None
    files = files_of(path)
    rows = _rows_of(files)
    with naming_unreadable_file(files):
        n_bytes = int(rows.select(pl.len()).collect().item()) * len(rows.collect_schema()) * _BYTES_PER_CELL
    if n_bytes > allowed:
        sizes = f"takes about {_size_text(n_bytes)} of memory, and the limit is {_size_text(allowed)}"
        return rows, f"'{path}' {sizes}: it is read out of core."
    return (rows, f"'{path}' matches {len(files)} files: they are read out of core.") if is_pattern else None


def files_of(path: Path) -> list[Path]:
    """Return the Parquet files of a path, a folder or a pattern."""
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if is_parquet(file) and file.is_file())
        if not found:
            raise fail(f"Cannot use '{path}': it is a folder without Parquet files. Name a file or a pattern.")
        return found
    found = [Path(file) for file in sorted(glob(str(path), recursive=True))]
    if not found:
        raise fail(f"No file matches '{path}'. Check the pattern.")
    other = next((file for file in found if not is_parquet(file)), None)
    if other is not None:
        raise fail(f"'{other}' is not a Parquet file; only these are read out of core.")
    return found


def _rows_of(files: list[Path]) -> pl.LazyFrame:
    """Return the rows of all files; the order of columns and the numeric types may differ between files."""
    import polars as pl

    schemas: list[pl.Schema] = []
    for file in files:
        with command_errors(), translate_errors(file):
            schemas.append(pl.scan_parquet(file, glob=False).collect_schema())
    names = schemas[0].names()
    for file, schema in zip(files, schemas, strict=True):
        others = sorted(set(names) ^ set(schema))
        if others:
            whose = files[0] if others[0] in names else file
            raise fail(
                f"'{files[0]}' and '{file}' differ in columns: only '{whose}' has '{others[0]}'. Give all "
                "files the same columns."
            )
    if all(dict(schema) == dict(schemas[0]) for schema in schemas):
        return pl.scan_parquet(files, glob=False)
    for file, schema in zip(files, schemas, strict=True):
        name = next((name for name in names if not _are_compatible(schemas[0][name], schema[name])), None)
        if name is not None:
            raise fail(
                f"Column '{name}' is {schemas[0][name]} in '{files[0]}' and {schema[name]} in '{file}'. Convert it "
                "to one type."
            )
    return pl.concat([pl.scan_parquet(file, glob=False).select(names) for file in files], how="vertical_relaxed")


def _are_compatible(one: pl.DataType, other: pl.DataType) -> bool:
    """Return whether some type holds the values of two column types unchanged."""
    import polars as pl

    texts = (pl.String, pl.Categorical, pl.Enum)
    both_texts = isinstance(one, texts) and isinstance(other, texts)
    return one == other or (one.is_numeric() and other.is_numeric()) or both_texts or pl.Null in (one, other)


@contextmanager
def naming_unreadable_file(files: list[Path]) -> Iterator[None]:
    """Turn an error of polars into one that names the unreadable file."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        for file in files:
            with command_errors(), translate_errors(file):
                pl.read_parquet(file, glob=False)
        raise fail(f"Cannot read the rows: {error}. Check that all files are complete.") from error


def _size_text(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 10**8 else f"{n_bytes / 1e6:.1f} MB"


def read_large_table(source: Source, rows: pl.LazyFrame) -> FitTable:
    """Separate the columns of a table that is read out of core, and read its target."""
    import polars as pl

    columns = source.columns(rows.collect_schema().names())
    if source.date_parts:
        raise fail("--date-parts needs a table in memory. Add the parts to the files, or raise --memory.")
    with naming_unreadable_file(files_of(source.path)):
        whole = rows.select(source.target).collect()[source.target]
    if whole.len() == 0:
        raise fail(f"'{source.path}' has no rows. Name a table that has some.")
    task, why, is_known = decide(whole, source)
    retained = rows
    if not is_known.all():
        known = pl.col(source.target).is_not_null()
        retained = rows.filter(known & pl.col(source.target).is_not_nan() if whole.dtype.is_float() else known)
    others = [name for name in (source.target, source.weight, source.offset) if name is not None]
    selected = retained.select(*columns, *dict.fromkeys(others))
    y = labels_of(whole.filter(is_known))
    return FitTable(selected, y, task, why, columns, whole.len() - len(y))
