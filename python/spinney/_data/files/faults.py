"""What is wrong with a file that cannot be read as a table, and what to do."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinney._data.files.records import DELIMITERS, delimiter_of, opened

ARROW = (".arrow", ".feather", ".ipc")
EXCEL = (".xlsx", ".xls", ".xlsb", ".ods")


def is_parquet(path: Path) -> bool:
    """Say whether a file is Parquet, by its suffix."""
    return path.suffix.lower() in (".parquet", ".pq")


def is_csv(path: Path) -> bool:
    """Say whether a file holds text, by its suffix."""
    return path.suffix.lower() not in (
        ".parquet",
        ".pq",
        ".arrow",
        ".feather",
        ".ipc",
        ".xlsx",
        ".xls",
        ".xlsb",
        ".ods",
    )


def one_column_only(path: Path, header: str, delimiter: str | None) -> str:
    """Say that a table has one column only, and why that may be."""
    found = f"'{path}' has one column only, '{header[:60]}'."
    used = delimiter_of(path, delimiter) if is_csv(path) else ""
    for sign in DELIMITERS:
        if sign != used and sign in header and is_csv(path):
            name = "tab" if sign == "\t" else sign
            return f"{found} The delimiter is probably another: try --delimiter '{name}'."
    return f"{found} A target and at least one more column are needed; if there are more, pass --delimiter."


_MARKS = {  # how files of other kinds begin
    b"PAR1": "It looks like Parquet: give it the ending .parquet.",
    b"ARROW1": "It looks like Arrow: give it the ending .arrow.",
    b"PK\x03\x04": "It looks like Excel: give it the ending .xlsx.",
    b"\x1f\x8b": "It looks like gzip: give it the ending .csv.gz.",
    b"\xff\xfe": "It looks like UTF-16: pass --encoding utf-16.",
    b"\xfe\xff": "It looks like UTF-16: pass --encoding utf-16.",
}


def _refuse_bytes(path: Path, start: bytes) -> None:
    """Refuse a file that begins as no text does."""
    known = next((words for mark, words in _MARKS.items() if start.startswith(mark)), None)
    if known is not None or b"\0" in start:
        remedy = known or "Name a CSV, Parquet, Arrow or Excel file."
        raise ValueError(f"Cannot read '{path}' as CSV: it is not text. {remedy}")


@contextmanager
def reading(path: Path, delimiter: str | None, encoding: str | None = None) -> Iterator[None]:
    """Turn what polars raises on an unreadable file into one sentence."""
    import polars as pl

    try:
        with open(path, "rb") as file:
            if not (start := file.read(1024)):
                raise ValueError(f"'{path}' is empty. Name a table with a line of column names and rows.")
        if is_csv(path) and path.suffix.lower() != ".gz" and encoding is None:
            _refuse_bytes(path, start)
        yield
    except OSError as error:
        if error.errno is None:  # of polars, about what the file holds
            raise ValueError(_in_words(str(error), path, delimiter)) from error
        error.filename = error.filename or str(path)
        raise
    except pl.exceptions.NoDataError as error:
        raise ValueError(f"'{path}' is empty. Name a table with a line of column names and rows.") from error
    except UnicodeError as error:
        raise ValueError(_not_text(path)) from error
    except pl.exceptions.PolarsError as error:
        raise ValueError(_in_words(str(error), path, delimiter)) from error


def _in_words(text: str, path: Path, delimiter: str | None) -> str:
    said = text.strip().splitlines()[0].rstrip(".") if text.strip() else "it cannot be understood"
    if is_parquet(path):
        return f"Cannot read '{path}' as Parquet: {said}. Check that it is a whole Parquet file."
    if not is_csv(path):
        return f"Cannot read '{path}': {said}. Check that the file is whole and its suffix right."
    if "more fields than" in said:
        return _ragged(path, delimiter)
    if "utf-8" in said.lower() or "utf8" in said.lower():
        return _not_text(path)
    return (
        f"Cannot read '{path}' as CSV: {said}. Correct that value (empty or NA if it is missing), "
        "or pass --delimiter if columns are not separated as expected."
    )


def _not_text(path: Path) -> str:
    """Say which line of a file is not UTF-8, as far as it can be told."""
    where = ""
    with suppress(OSError), opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                where = f"; line {number} is the first that is not"
                break
    return f"Cannot read '{path}': it is not UTF-8 text{where}. Name its encoding, such as --encoding latin-1."


def _ragged(path: Path, delimiter: str | None) -> str:
    """Say which line of a CSV file has more cells than there are columns, as far as it can be told."""
    with suppress(OSError, UnicodeDecodeError, csv.Error), opened(path) as file:
        lines = csv.reader((line.decode() for line in file), delimiter=delimiter_of(path, delimiter))
        n_columns = len(next(lines))
        for cells in lines:
            if len(cells) > n_columns:
                return (
                    f"Cannot read '{path}' as CSV: line {lines.line_num} has {len(cells)} cells, and the first line "
                    f"names {n_columns} columns. Correct that line; text that holds the delimiter needs quotes."
                )
    return f"Cannot read '{path}' as CSV: a line has more cells than the first line names columns. Correct it."
