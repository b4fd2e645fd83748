"""Reading of tables from files: formats, encodings, samples of large files, and errors."""

from __future__ import annotations

import codecs
import csv
import sys
import tempfile
import time as clock
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from spinney._data.columns import listed
from spinney._data.csv_format import (
    ANY_FORMAT,
    BLOCK_BYTES,
    DELIMITERS,
    CsvFormat,
    delimiter_sign,
    detect_format,
    open_bytes,
)
from spinney._data.csv_types import ColumnTypes, Kind
from spinney._data.display import plural
from spinney._names import MODEL_FILE_MAGIC

if TYPE_CHECKING:
    import polars as pl

PARQUET, ARROW, EXCEL = (".parquet", ".pq"), (".arrow", ".feather", ".ipc"), (".xlsx", ".xls", ".xlsb", ".ods")


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its suffix."""
    return path.suffix.lower() in PARQUET


def is_csv(path: Path) -> bool:
    """Return whether a file is text, by its suffix."""
    return path.suffix.lower() not in (*PARQUET, *ARROW, *EXCEL)


def one_column_only(path: Path, header: str, delimiter: str | None) -> str:
    """Return the error for a table with a single column, with the probable reason."""
    problem = f"'{path}' has only one column, '{header[:60]}'."
    used = delimiter_sign(delimiter or ",")
    for sign in DELIMITERS:
        if sign != used and sign in header and is_csv(path):
            name = "tab" if sign == "\t" else sign
            return f"{problem} The delimiter is probably another: try --delimiter '{name}'."
    return f"{problem} A target and at least one more column are needed; if there are more, pass --delimiter."


_FIRST_BYTES = {  # of binary formats: their names and suffixes
    b"PAR1": ("Parquet", ".parquet"),
    b"ARROW1": ("Arrow", ".arrow"),
    b"PK\x03\x04": ("Excel", ".xlsx"),
    b"\x1f\x8b": ("gzip", ".csv.gz"),
}


def _refuse_bytes(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes are not text."""
    kind, suffix = _kind_of(start)
    if kind:
        remedy = f"It looks like {kind}: give it the suffix {suffix}."
    elif b"\0" in start:
        remedy = "Name a CSV, Parquet, Arrow or Excel file."
    else:
        return
    raise ValueError(f"Cannot read '{path}' as CSV: it is not text. {remedy}")


def _kind_of(start: bytes) -> tuple[str, str]:
    """Return the name and suffix of a binary format by the first bytes of a file; those of CSV for any other."""
    return next((kind for mark, kind in _FIRST_BYTES.items() if start.startswith(mark)), ("", ".csv"))


@contextmanager
def translate_errors(path: Path, format_: CsvFormat = ANY_FORMAT) -> Iterator[None]:
    """Replace errors of polars on an unreadable file by a sentence that states what to do."""
    import polars as pl

    try:
        with open(path, "rb") as file:
            if not (start := file.read(1024)):
                raise ValueError(f"'{path}' is empty. Name a file with a line of column names and rows.")
        is_utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if is_csv(path) and path.suffix.lower() != ".gz" and format_.encoding is None and not is_utf16:
            _refuse_bytes(path, start)
        yield
    except OSError as error:
        if error.errno is None:  # raised by polars, about the content
            raise ValueError(_explain(str(error), path, format_)) from error
        error.filename = error.filename or str(path)
        raise
    except pl.exceptions.NoDataError as error:
        raise ValueError(f"'{path}' is empty. Name a file with a line of column names and rows.") from error
    except UnicodeError as error:
        raise ValueError(_not_text(path)) from error
    except pl.exceptions.PolarsError as error:
        raise ValueError(_explain(str(error), path, format_)) from error
    except (EOFError, zlib.error) as error:
        raise ValueError(f"Cannot read '{path}': it is cut short or damaged. Copy it again from its source.") from error
    except BaseException as error:  # panics of polars are no exceptions, and readers of Excel files raise their own
        is_of_excel = path.suffix.lower() in EXCEL and isinstance(error, Exception)
        if isinstance(error, (ValueError, MemoryError)) or not (
            is_of_excel or type(error).__name__ == "PanicException"
        ):
            raise
        raise ValueError(_explain(str(error), path, format_)) from error


def _explain(text: str, path: Path, format_: CsvFormat) -> str:
    reason = text.strip().splitlines()[0].rstrip(".") if text.strip() else "unknown error"
    if is_parquet(path):
        return f"Cannot read '{path}' as Parquet: {reason}. Check that it is a complete Parquet file."
    if not is_csv(path):
        return f"Cannot read '{path}': {reason}. Check that the file is complete and has the right suffix."
    if "more fields than" in reason:
        return _ragged(path, format_)
    if "utf-8" in reason.lower() or "utf8" in reason.lower():
        return _not_text(path)
    return (
        f"Cannot read '{path}' as CSV: {reason}. Correct that value (empty or NA if it is missing), "
        "or pass --delimiter if columns are not separated as expected."
    )


def _not_text(path: Path) -> str:
    """Return the error for a file that is not UTF-8, with its first such line if it can be found."""
    where = ""
    with suppress(OSError), open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                where = f"; line {number} is the first that is not"
                break
    return f"Cannot read '{path}': it is not UTF-8 text{where}. Name its encoding, such as --encoding latin-1."


def _ragged(path: Path, format_: CsvFormat) -> str:
    """Return the error for a CSV file with too many cells in a line, with the line if it can be found."""
    with suppress(OSError, ValueError, csv.Error):
        n_columns = 0
        for line, cells in _records(path, format_):
            n_columns = n_columns or len(cells)
            if len(cells) > n_columns:
                return (
                    f"Cannot read '{path}' as CSV: line {line} has {len(cells)} cells, and the first line "
                    f"names {n_columns} columns. Correct that line; text that holds the delimiter needs quotes."
                )
    return f"Cannot read '{path}' as CSV: a line has more cells than the first line names columns. Correct it."


def _records(path: Path, format_: CsvFormat) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the cells of each record of a CSV file."""
    sign = detect_format(path, format_)[0].sign
    with open_decoded(path, format_.encoding) as file:
        lines = csv.reader((line.decode() for line in file), delimiter=sign)
        try:
            for cells in lines:
                yield lines.line_num, cells
        except csv.Error as error:
            raise ValueError(f"Cannot read '{path}' as CSV: {error}, in line {lines.line_num}. Correct it.") from error


_NEWLINE, _QUOTE = 10, 34
Records = tuple[bytes, NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]  # text; end, draw and number of each


def record_blocks(file: IO[bytes], block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first record, which has the column names, with each block of complete records after it."""
    header = rest = b""
    while block := file.read(block_bytes):
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
    """Return the end of the last complete record: after a newline with an even number of quotes before it."""
    end = data.rfind(b"\n")
    n_quotes = data.count(b'"', 0, end) if end >= 0 else 0
    while end >= 0 and n_quotes % 2:
        before = data.rfind(b"\n", 0, end)
        n_quotes -= data.count(b'"', max(before, 0), end)
        end = before
    return end + 1


def ends_of_records(block: bytes) -> NDArray[np.intp]:
    """Return the end of each record of a block of complete records."""
    characters = np.frombuffer(block, dtype=np.uint8)
    newlines = np.flatnonzero(characters == _NEWLINE)
    if b'"' in block:
        quotes = np.flatnonzero(characters == _QUOTE)
        newlines = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    ends = newlines + 1
    return ends if len(ends) and ends[-1] == len(block) else np.append(ends, len(block))


def sample_records(
    file: IO[bytes], max_bytes: int, seed: int, block_bytes: int = BLOCK_BYTES
) -> tuple[bytes, NDArray[np.intp], int]:
    """Read a file of any length; draw records at random if it has more than `max_bytes`.

    Each record gets a random number between 0 and 1, and records below a limit are retained. The limit is halved
    whenever they exceed `max_bytes`. So the length need not be known in advance, and memory is bounded.

    Returns
    -------
    tuple of bytes, ndarray, int
        The column names and the records, in order; the positions of the retained records, and the number of all.
    """
    retained: list[Records] = []
    header, limit, n_bytes, n_all = b"", 1.0, 0, 0
    for k, (first, block) in enumerate(record_blocks(file, block_bytes)):
        header = first
        if not block:
            continue
        ends = ends_of_records(block)
        numbers = np.arange(n_all, n_all + len(ends), dtype=np.intp)
        n_all += len(ends)
        retained.append(_below((block, ends, np.random.default_rng([seed, k]).random(len(ends)), numbers), limit))
        n_bytes += len(retained[-1][0])
        while n_bytes > max_bytes and limit > 2.0**-40:
            limit /= 2
            retained = [_below(records, limit) for records in retained]
            n_bytes = sum(len(text) for text, *_ in retained)
    if header and not header.endswith(b"\n") and retained:
        header += b"\n"
    positions = np.concatenate([np.empty(0, np.intp), *(numbers for *_, numbers in retained)])
    return b"".join([header, *(text for text, *_ in retained)]), positions, n_all


def _below(records: Records, limit: float) -> Records:
    """Return the records whose random number is below a limit."""
    text, ends, draws, numbers = records
    if limit >= 1.0:
        return records
    chosen = draws < limit
    lengths = np.diff(ends, prepend=0)
    chosen_text = np.frombuffer(text, dtype=np.uint8)[np.repeat(chosen, lengths)].tobytes()
    return chosen_text, np.cumsum(lengths[chosen], dtype=np.intp), draws[chosen], numbers[chosen]


STANDARD_INPUT = Path("-")
MAX_BYTES = 256 << 20  # of a table that is read completely: text, or eight bytes per cell
_BYTES_PER_CELL = 8
_NUMBER = "\0number"  # name of a column that no table has
_SCATTER = 2654435761  # near 2**32 divided by the golden ratio: its multiples are spread evenly


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table from a file.

    Attributes
    ----------
    frame : DataFrame
    notes : list of str
        What was found in the file.
    since : float
        When reading began, on the monotonic clock.
    format : CsvFormat or None
        How a CSV file is written.
    name : str
        Name of the file.
    rows : ndarray of shape (n_rows,), or None
        Positions of the rows in the file, if they are a sample of it.
    """

    frame: pl.DataFrame
    notes: list[str] = field(default_factory=list)
    since: float = field(default_factory=clock.monotonic)
    format: CsvFormat | None = None
    name: str = ""
    rows: NDArray[np.intp] | None = None


def read_file(
    path: Path,
    format_: CsvFormat = ANY_FORMAT,
    *,
    max_bytes: int | None = None,
    seed: int = 0,
    kinds: Mapping[str, Kind] | None = None,
) -> ReadTable:
    """Read a table of at least two columns and one row.

    Parameters
    ----------
    path : Path
        CSV (also compressed by gzip), Parquet, Arrow or Excel, by its suffix; ``-`` is standard input.
    format_ : CsvFormat
        How a CSV file is written, as far as it is known; the rest is detected, and noted where it is unusual.
    max_bytes : int, optional
        Rows of larger tables are drawn at random. None: all rows.
    seed : int
        Seed of this draw.
    kinds : mapping of str to {"text", "number", "date"}, optional
        Types of columns of a CSV file that are known; the others are inferred.

    Raises
    ------
    ValueError
        If the file cannot be used; the message states what to do.
    OSError
        If it cannot be opened.
    """
    _require_polars()
    since = clock.monotonic()
    with on_disk(path) as file:
        _refuse_model(file)
        with translate_errors(file, format_):
            table = _read(file, format_, max_bytes, seed, kinds or {})
    if table.frame.width == 1:
        used = format_ if table.format is None else table.format
        raise ValueError(one_column_only(path, table.frame.columns[0], used.delimiter))
    if table.frame.height == 0:
        raise ValueError(f"'{path}' has no rows. Pass a table with rows to learn from.")
    return replace(table, since=since, name="standard input" if path == STANDARD_INPUT else path.name)


def _require_polars() -> None:
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading a file needs polars: pip install 'spinney-ml[cli]', or pass a data frame."
        ) from error


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """Yield a path that can be read twice: standard input is written to a temporary file."""
    if path != STANDARD_INPUT:
        yield path
        return
    source: IO[bytes] = sys.stdin.buffer
    first = source.read(8)
    with tempfile.TemporaryDirectory(prefix="spinney-") as folder:
        file = Path(folder) / f"standard input{_kind_of(first)[1]}"
        with open(file, "wb") as target:
            target.write(first)
            while block := source.read(BLOCK_BYTES):
                target.write(block)
        yield file


def _refuse_model(path: Path) -> None:
    """Refuse a model file: its bytes might happen to parse as a table."""
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(MODEL_FILE_MAGIC)) == MODEL_FILE_MAGIC:
            raise ValueError(f"Cannot read '{path}': it is a model and not a table. Name a CSV or Parquet file.")


def _read(path: Path, format_: CsvFormat, max_bytes: int | None, seed: int, kinds: Mapping[str, Kind]) -> ReadTable:
    import polars as pl

    if is_parquet(path):
        return _sample_rows(pl.scan_parquet(path, glob=False), max_bytes, seed)
    if path.suffix.lower() in EXCEL:
        return ReadTable(_read_excel(path))
    if not is_csv(path):
        return _sample_rows(pl.scan_ipc(path), max_bytes, seed)
    format_, found = detect_format(path, format_)
    size, notes, source, rows = path.stat().st_size, list[str](), cast(Any, path), None
    compressed = path.suffix.lower() == ".gz"
    if format_.encoding is not None or (max_bytes is not None and (size > max_bytes or compressed)):
        with open_decoded(path, format_.encoding) as file:
            source, rows, n_all = sample_records(file, sys.maxsize if max_bytes is None else max_bytes, seed)
        notes = _sampling_notes(len(rows), n_all)
    texts = read_texts(source, format_)
    types = ColumnTypes(format_, kinds, row="sampled row" if notes else "row")
    frame = types.read(texts)
    found += [*_layout_notes(path, format_, texts), *types.notes]
    return ReadTable(frame, notes + reading_notes(path, found), format=types.format, rows=rows if notes else None)


def reading_notes(path: Path, found: list[str]) -> list[str]:
    """Return one sentence on what was found in a CSV file."""
    return [f"Reading '{path.name}': {'; '.join(found)}."] if found else []


def read_texts(source: Path | bytes, format_: CsvFormat) -> pl.DataFrame:
    """Read all columns of a CSV file, or of its text, as text; missing values are null."""
    import polars as pl

    return pl.read_csv(source, separator=format_.sign, null_values=format_.null_values, infer_schema=False, glob=False)


def _layout_notes(path: Path, format_: CsvFormat, texts: pl.DataFrame) -> list[str]:
    """Return notes on columns with the same name, and on records with too few cells."""
    notes = []
    if repeated := [name for name in texts.columns if "_duplicated_" in name]:
        notes.append(f"columns of the same name renamed to {listed(repeated, 3)}")
    if texts[:, -1].null_count() and (short := _short_records(path, format_, texts.width)):
        notes.append(f"the last cells missing in {plural(len(short), 'row')}, first in line {short[0]}")
    return notes


def _short_records(path: Path, format_: CsvFormat, n_columns: int) -> list[int]:
    """Return the lines of records with fewer cells than columns, of which those that lack are read as missing."""
    n_lines = n_signs = 0
    with open_decoded(path, format_.encoding) as file:
        quoted, end = False, b""
        while not quoted and (block := file.read(BLOCK_BYTES)):
            n_lines, n_signs = n_lines + block.count(b"\n"), n_signs + block.count(format_.sign.encode())
            quoted, end = b'"' in block, block[-1:]
    n_lines += end != b"\n"
    if not quoted and n_signs == n_lines * (n_columns - 1):
        return []
    return [line for line, cells in _records(path, format_) if len(cells) < n_columns]


@contextmanager
def open_decoded(path: Path, encoding: str | None) -> Iterator[IO[bytes]]:
    """Open a file as UTF-8 bytes."""
    with open_bytes(path) as file:
        try:
            yield file if encoding is None else cast(IO[bytes], codecs.EncodedFile(file, "utf-8", encoding))
        except LookupError as error:
            raise ValueError(f"--encoding: there is no encoding '{encoding}'. Try latin-1 or utf-16.") from error


def _read_excel(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_excel(path)
    except ImportError as error:  # polars names the reader that it lacks
        raise ValueError(
            f"Cannot read '{path}': Excel files need a reader: pip install fastexcel. Or save the sheet as CSV."
        ) from error


def _sample_rows(rows: pl.LazyFrame, max_bytes: int | None, seed: int) -> ReadTable:
    """Read all rows, or a sample of them if they are too many; the sample depends only on their number."""
    import polars as pl

    n_all = int(rows.select(pl.len()).collect().item())
    n_cells = n_all * len(rows.collect_schema())
    if max_bytes is None or n_cells * _BYTES_PER_CELL <= max_bytes:
        return ReadTable(rows.collect())
    fraction = max_bytes / (n_cells * _BYTES_PER_CELL)
    number = pl.int_range(pl.len(), dtype=pl.UInt64)
    spread = ((number + seed) * _SCATTER) % 2**32
    drawn = rows.with_columns(number.alias(_NUMBER)).filter(spread < round(fraction * 2**32))
    frame = drawn.collect(engine="streaming")
    positions = frame[_NUMBER].to_numpy().astype(np.intp)
    return ReadTable(frame.drop(_NUMBER), _sampling_notes(frame.height, n_all), rows=positions)


def _sampling_notes(n_rows: int, n_all: int) -> list[str]:
    if n_rows == n_all:
        return []
    return [f"The table is too large to be read completely: {n_rows:,} of its {n_all:,} rows were drawn at random."]
