"""Tables on disk: CSV and Parquet, read whole to fit and in batches to predict."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from spinney.cli.failures import fail, os_failure

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

# Text that stands for a missing value in a CSV file, besides nothing at all.
MISSING = ["NA", "N/A", "NaN", "nan", "null", "NULL"]
BATCH_ROWS = 50_000
BLOCK_BYTES = 4 << 20
_DELIMITERS = ";\t|,"
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


def is_parquet(path: Path) -> bool:
    """Say whether a file is Parquet, by its suffix."""
    return path.suffix.lower() in (".parquet", ".pq")


def read_whole(path: Path, delimiter: str | None) -> pl.DataFrame:
    """Read a table of at least two columns and one row."""
    import polars as pl

    _refuse_model(path)
    with _reading(path, delimiter):
        if is_parquet(path):
            frame = pl.read_parquet(path, glob=False)
        else:
            frame = pl.read_csv(
                path,
                separator=delimiter_of(path, delimiter),
                null_values=MISSING,
                infer_schema_length=None,
                try_parse_dates=True,
                glob=False,
            )
    if frame.width == 1:
        raise fail(one_column_only(path, frame.columns[0], delimiter))
    if frame.height == 0:
        raise fail(f"'{path}' has no rows. A tree needs rows to learn from.")
    return frame


def _refuse_model(path: Path) -> None:
    """Refuse a model file: its bytes might happen to parse as a table."""
    from spinney._file.container import MAGIC

    with suppress(OSError), path.open("rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            raise fail(f"Cannot read '{path}': it is a model and not a table. Name a CSV or Parquet file.")


def column_names(path: Path, delimiter: str | None) -> list[str]:
    """Return the names of a table's columns, reading no more than needed."""
    import polars as pl

    with _reading(path, delimiter):
        if is_parquet(path):
            return list(pl.read_parquet_schema(path))
        with _opened(path) as file:
            header = next(_record_blocks(file))[0]
        return pl.read_csv(header, separator=delimiter_of(path, delimiter), infer_schema=False).columns


def number_column(column: pl.Series, option: str) -> NDArray[np.float64]:
    """Return a column that an option names and that must hold a number in every row."""
    import polars as pl

    if not column.dtype.is_numeric():
        what = option.removeprefix("--").capitalize()
        raise fail(f"{option}: the column '{column.name}' holds {column.dtype} values. {what}s must be numbers.")
    if column.null_count() > 0:
        raise fail(f"{option}: the column '{column.name}' has missing values. Fill them or drop these rows.")
    numbers = column.cast(pl.Float64)
    if not numbers.is_finite().all():
        raise fail(f"{option}: the column '{column.name}' holds NaN or infinity. Fill them or drop these rows.")
    values: NDArray[np.float64] = numbers.to_numpy()
    return values


def batches(path: Path, types: dict[str, Any], delimiter: str | None) -> Iterator[pl.DataFrame]:
    """Yield the named columns in batches, in row order; the types are those to read from a CSV file.

    The memory needed is that of a few batches, however long the file. A CSV file is cut at ends of records here: with
    polars' own batches of a scanned CSV file memory grew with the file (333 MiB for 6 million rows, instead of 86).
    """
    import polars as pl

    with _reading(path, delimiter):
        if is_parquet(path):
            yield from _parquet_batches(pl.scan_parquet(path, glob=False).select(list(types)))
            return
        separator = delimiter_of(path, delimiter)
        with _opened(path) as file:
            for header, records in _record_blocks(file):
                yield pl.read_csv(
                    header + records,
                    separator=separator,
                    null_values=MISSING,
                    schema_overrides=types,
                    infer_schema=False,
                ).select(list(types))


def _parquet_batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    import warnings

    if hasattr(rows, "collect_batches"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # polars calls it unstable
            found = iter(rows.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, lazy=True))
        for frame in found:
            yield from frame.iter_slices(BATCH_ROWS)
        return
    start = 0  # an older polars skips the rows before a slice anew each time
    while (frame := rows.slice(start, BATCH_ROWS).collect()).height > 0:
        yield frame
        start += frame.height


def _opened(path: Path) -> IO[bytes]:
    import gzip

    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


def _record_blocks(file: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first record, which holds the names, and whole records after it, block by block."""
    header = rest = b""
    while block := file.read(BLOCK_BYTES):
        rest += block
        if not header:
            header, rest = _first_record(rest)
        cut = _end_of_records(rest)
        if header and cut:
            yield header, rest[:cut]
            rest = rest[cut:]
    if rest or header:
        yield header or rest, rest if header else b""


def _first_record(data: bytes) -> tuple[bytes, bytes]:
    end = data.find(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end + 1)
    return data[: end + 1], data[end + 1 :]


def _end_of_records(data: bytes) -> int:
    """Find where the last whole record ends: after a newline that an even number of quotes precedes."""
    end = data.rfind(b"\n")
    n_quotes = data.count(b'"', 0, end) if end >= 0 else 0
    while end >= 0 and n_quotes % 2:
        before = data.rfind(b"\n", 0, end)
        n_quotes -= data.count(b'"', max(before, 0), end)
        end = before
    return end + 1


def delimiter_of(path: Path, delimiter: str | None) -> str:
    """Return the delimiter asked for, or the one that the suffix suggests."""
    if delimiter is None:
        return "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    sign = _DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(sign.encode()) != 1:
        raise fail(f"--delimiter must be one character, or 'tab', not '{delimiter}'.")
    return sign


def one_column_only(path: Path, header: str, delimiter: str | None) -> str:
    """Say that a table has one column only, and why that may be."""
    found = f"'{path}' has one column only, '{header[:60]}'."
    used = "" if is_parquet(path) else delimiter_of(path, delimiter)
    for sign in _DELIMITERS:
        if sign != used and sign in header and not is_parquet(path):
            name = "tab" if sign == "\t" else sign
            return f"{found} The delimiter is probably another: try --delimiter '{name}'."
    return f"{found} A target and at least one more column are needed; if there are more, pass --delimiter."


@contextmanager
def _reading(path: Path, delimiter: str | None) -> Iterator[None]:
    """Turn what polars raises on an unreadable file into the error of a command."""
    import polars as pl

    try:
        with open(path, "rb") as file:
            if not file.read(1):
                raise fail(f"'{path}' is empty. Name a table with a line of column names and rows.")
        yield
    except OSError as error:
        raise fail(os_failure(error, path)) from error
    except pl.exceptions.NoDataError as error:
        raise fail(f"'{path}' is empty. Name a table with a line of column names and rows.") from error
    except pl.exceptions.PolarsError as error:
        said = str(error).strip().splitlines()[0].rstrip(".")
        if is_parquet(path):
            raise fail(f"Cannot read '{path}' as Parquet: {said}. Check that it is a whole Parquet file.") from error
        if "more fields than" in said:
            raise fail(_ragged(path, delimiter)) from error
        if "utf-8" in said.lower() or "utf8" in said.lower():
            raise fail(f"Cannot read '{path}': it is not UTF-8 text. Convert it to UTF-8 first.") from error
        raise fail(
            f"Cannot read '{path}' as CSV: {said}. Correct that value (empty or NA if it is missing), "
            "or pass --delimiter if columns are not separated as expected."
        ) from error


def _ragged(path: Path, delimiter: str | None) -> str:
    """Say which line of a CSV file has more cells than there are columns, as far as it can be told."""
    import csv

    with suppress(OSError, UnicodeDecodeError, csv.Error), _opened(path) as file:
        lines = csv.reader((line.decode() for line in file), delimiter=delimiter_of(path, delimiter))
        n_columns = len(next(lines))
        for cells in lines:
            if len(cells) > n_columns:
                return (
                    f"Cannot read '{path}' as CSV: line {lines.line_num} has {len(cells)} cells, and the first line "
                    f"names {n_columns} columns. Correct that line; text that holds the delimiter needs quotes."
                )
    return f"Cannot read '{path}' as CSV: a line has more cells than the first line names columns. Correct it."


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to that becomes `path` when all is written, and vanishes if anything fails."""
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


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    if _is_device(path):
        return
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise fail(f"Cannot write '{path}': it is a folder. Name a file.")
    if not folder.is_dir():
        raise fail(f"Cannot write '{path}': there is no folder '{folder}'. Make it first.")
    if not os.access(folder, os.W_OK):
        raise fail(f"Cannot write '{path}': permission denied. Choose another folder.")


def _is_device(path: Path) -> bool:
    """Say whether a path is a device or a pipe: such a thing is written to, not replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()
