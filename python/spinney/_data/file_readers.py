"""Reading of tables from files: formats, encodings, samples of large files, and errors."""

from __future__ import annotations

import codecs
import csv
import gzip
import sys
import tempfile
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

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
    used = delimiter_of(path, delimiter) if is_csv(path) else ""
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
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        remedy = "It looks like UTF-16: pass --encoding utf-16."
    elif kind:
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
def translate_errors(path: Path, delimiter: str | None, encoding: str | None = None) -> Iterator[None]:
    """Replace errors of polars on an unreadable file by a sentence that states what to do."""
    import polars as pl

    try:
        with open(path, "rb") as file:
            if not (start := file.read(1024)):
                raise ValueError(f"'{path}' is empty. Name a file with a line of column names and rows.")
        if is_csv(path) and path.suffix.lower() != ".gz" and encoding is None:
            _refuse_bytes(path, start)
        yield
    except OSError as error:
        if error.errno is None:  # raised by polars, about the content
            raise ValueError(_explain(str(error), path, delimiter)) from error
        error.filename = error.filename or str(path)
        raise
    except pl.exceptions.NoDataError as error:
        raise ValueError(f"'{path}' is empty. Name a file with a line of column names and rows.") from error
    except UnicodeError as error:
        raise ValueError(_not_text(path)) from error
    except pl.exceptions.PolarsError as error:
        raise ValueError(_explain(str(error), path, delimiter)) from error


def _explain(text: str, path: Path, delimiter: str | None) -> str:
    reason = text.strip().splitlines()[0].rstrip(".") if text.strip() else "unknown error"
    if is_parquet(path):
        return f"Cannot read '{path}' as Parquet: {reason}. Check that it is a complete Parquet file."
    if not is_csv(path):
        return f"Cannot read '{path}': {reason}. Check that the file is complete and has the right suffix."
    if "more fields than" in reason:
        return _ragged(path, delimiter)
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


def _ragged(path: Path, delimiter: str | None) -> str:
    """Return the error for a CSV file with too many cells in a line, with the line if it can be found."""
    with suppress(OSError, UnicodeDecodeError, csv.Error), open_bytes(path) as file:
        lines = csv.reader((line.decode() for line in file), delimiter=delimiter_of(path, delimiter))
        n_columns = len(next(lines))
        for cells in lines:
            if len(cells) > n_columns:
                return (
                    f"Cannot read '{path}' as CSV: line {lines.line_num} has {len(cells)} cells, and the first line "
                    f"names {n_columns} columns. Correct that line; text that holds the delimiter needs quotes."
                )
    return f"Cannot read '{path}' as CSV: a line has more cells than the first line names columns. Correct it."


# Text of missing values, in addition to empty cells.
MISSING = ["NA", "N/A", "NaN", "nan", "null", "NULL"]
BLOCK_BYTES = 4 << 20
DELIMITERS = ";\t|,"
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_NEWLINE, _QUOTE = 10, 34
Records = tuple[bytes, NDArray[np.intp], NDArray[np.float64]]  # text, end of each record, random number of each


def delimiter_of(path: Path, delimiter: str | None) -> str:
    """Return the requested delimiter, or the default of the suffix."""
    if delimiter is None:
        return "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    sign = _DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(sign.encode()) != 1:
        raise ValueError(f"--delimiter must be one character, or 'tab', not '{delimiter}'.")
    return sign


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, compressed by gzip or not."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


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
) -> tuple[bytes, int, int]:
    """Read a file of any length; draw records at random if it has more than `max_bytes`.

    Each record gets a random number between 0 and 1, and records below a limit are retained. The limit is halved
    whenever they exceed `max_bytes`. So the length need not be known in advance, and memory is bounded.

    Returns
    -------
    tuple of bytes, int, int
        The column names and the records, in order; the number of retained records, and of all records.
    """
    retained: list[Records] = []
    header, limit, n_bytes, n_all = b"", 1.0, 0, 0
    for k, (first, block) in enumerate(record_blocks(file, block_bytes)):
        header = first
        if not block:
            continue
        ends = ends_of_records(block)
        n_all += len(ends)
        retained.append(_below((block, ends, np.random.default_rng([seed, k]).random(len(ends))), limit))
        n_bytes += len(retained[-1][0])
        while n_bytes > max_bytes and limit > 2.0**-40:
            limit /= 2
            retained = [_below(records, limit) for records in retained]
            n_bytes = sum(len(text) for text, _, _ in retained)
    if header and not header.endswith(b"\n") and retained:
        header += b"\n"
    return b"".join([header, *(text for text, _, _ in retained)]), sum(len(ends) for _, ends, _ in retained), n_all


def _below(records: Records, limit: float) -> Records:
    """Return the records whose random number is below a limit."""
    text, ends, numbers = records
    if limit >= 1.0:
        return records
    chosen = numbers < limit
    lengths = np.diff(ends, prepend=0)
    chosen_text = np.frombuffer(text, dtype=np.uint8)[np.repeat(chosen, lengths)].tobytes()
    return chosen_text, np.cumsum(lengths[chosen], dtype=np.intp), numbers[chosen]


STANDARD_INPUT = Path("-")
MAX_BYTES = 256 << 20  # of a table that is read completely: text, or eight bytes per cell
_BYTES_PER_CELL = 8
_CELLS_FOR_TYPES, _MIN_ROWS_FOR_TYPES = 1_000_000, 200  # from which the types of text columns are inferred
_SCATTER = 2654435761  # near 2**32 divided by the golden ratio: its multiples are spread evenly


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table from a file, notes about it, and when reading began, by the monotonic clock."""

    frame: pl.DataFrame
    notes: list[str] = field(default_factory=list)
    since: float = field(default_factory=clock.monotonic)


def read_file(
    path: Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    *,
    max_bytes: int | None = None,
    seed: int = 0,
) -> ReadTable:
    """Read a table of at least two columns and one row.

    Parameters
    ----------
    path : Path
        CSV (also compressed by gzip), Parquet, Arrow or Excel, by its suffix; ``-`` is standard input.
    delimiter : str, optional
        Separator of the columns of a CSV file.
    encoding : str, optional
        Encoding of a CSV file that is not UTF-8.
    max_bytes : int, optional
        Rows of larger tables are drawn at random. None: all rows.
    seed : int
        Seed of this draw.

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
        with translate_errors(file, delimiter, encoding):
            table = _read(file, delimiter, encoding, max_bytes, seed)
    if table.frame.width == 1:
        raise ValueError(one_column_only(path, table.frame.columns[0], delimiter))
    if table.frame.height == 0:
        raise ValueError(f"'{path}' has no rows. Pass a table with rows to learn from.")
    return replace(table, since=since)


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


def _read(path: Path, delimiter: str | None, encoding: str | None, max_bytes: int | None, seed: int) -> ReadTable:
    import polars as pl

    if is_parquet(path):
        return _sample_rows(pl.scan_parquet(path, glob=False), max_bytes, seed)
    if path.suffix.lower() in EXCEL:
        return ReadTable(_read_excel(path))
    if not is_csv(path):
        return _sample_rows(pl.scan_ipc(path), max_bytes, seed)
    size = path.stat().st_size
    compressed = path.suffix.lower() == ".gz"
    if encoding is None and (max_bytes is None or (size <= max_bytes and not compressed)):
        return ReadTable(_parse(path, path, delimiter))
    with open_decoded(path, encoding) as file:
        text, n_rows, n_all = sample_records(file, sys.maxsize if max_bytes is None else max_bytes, seed)
    return ReadTable(_parse(text, path, delimiter), _sampling_notes(n_rows, n_all))


@contextmanager
def open_decoded(path: Path, encoding: str | None) -> Iterator[IO[bytes]]:
    """Open a file as UTF-8 bytes."""
    with open_bytes(path) as file:
        try:
            yield file if encoding is None else cast(IO[bytes], codecs.EncodedFile(file, "utf-8", encoding))
        except LookupError as error:
            raise ValueError(f"--encoding: there is no encoding '{encoding}'. Try latin-1 or utf-16.") from error


def _parse(source: Any, path: Path, delimiter: str | None) -> pl.DataFrame:
    """Parse CSV; column types are inferred from the first rows and, if others differ, from all, which is slow."""
    import polars as pl

    sign = delimiter_of(path, delimiter)
    options: dict[str, Any] = {"separator": sign, "null_values": MISSING, "glob": False, "try_parse_dates": True}
    with open_bytes(path) as file:
        n_columns = 1 + file.readline(BLOCK_BYTES).count(sign.encode())
    n_first = max(_MIN_ROWS_FOR_TYPES, _CELLS_FOR_TYPES // n_columns)
    with suppress(pl.exceptions.PolarsError):  # another row has values of another type
        frame = pl.read_csv(source, infer_schema_length=n_first, **options)
        if not any(_begins_after(column, n_first) for column in frame):
            return frame
    return pl.read_csv(source, infer_schema_length=None, **options)


def _begins_after(column: pl.Series, n_first: int) -> bool:
    """Return whether a column is missing in the first rows, but not in all."""
    n_first = min(len(column), n_first)
    return column.null_count() < len(column) and column.head(n_first).null_count() == n_first


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
    frame = rows.filter(spread < round(fraction * 2**32)).collect(engine="streaming")
    return ReadTable(frame, _sampling_notes(frame.height, n_all))


def _sampling_notes(n_rows: int, n_all: int) -> list[str]:
    if n_rows == n_all:
        return []
    return [f"The table is too large to be read completely: {n_rows:,} of its {n_all:,} rows were drawn at random."]
