"""What is wrong with a file that cannot be read as a table, and what to do."""

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
    """Say whether a file is Parquet, by its suffix."""
    return path.suffix.lower() in PARQUET


def is_csv(path: Path) -> bool:
    """Say whether a file holds text, by its suffix."""
    return path.suffix.lower() not in (*PARQUET, *ARROW, *EXCEL)


def one_column_only(path: Path, header: str, delimiter: str | None) -> str:
    """Say that a table has one column only, and why that may be."""
    found = f"'{path}' has one column only, '{header[:60]}'."
    used = delimiter_of(path, delimiter) if is_csv(path) else ""
    for sign in DELIMITERS:
        if sign != used and sign in header and is_csv(path):
            name = "tab" if sign == "\t" else sign
            return f"{found} The delimiter is probably another: try --delimiter '{name}'."
    return f"{found} A target and at least one more column are needed; if there are more, pass --delimiter."


_MARKS = {  # how files of other kinds begin, and their endings
    b"PAR1": ("Parquet", ".parquet"),
    b"ARROW1": ("Arrow", ".arrow"),
    b"PK\x03\x04": ("Excel", ".xlsx"),
    b"\x1f\x8b": ("gzip", ".csv.gz"),
}


def _refuse_bytes(path: Path, start: bytes) -> None:
    """Refuse a file that begins as no text does."""
    kind, ending = _kind_of(start)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        remedy = "It looks like UTF-16: pass --encoding utf-16."
    elif kind:
        remedy = f"It looks like {kind}: give it the ending {ending}."
    elif b"\0" in start:
        remedy = "Name a CSV, Parquet, Arrow or Excel file."
    else:
        return
    raise ValueError(f"Cannot read '{path}' as CSV: it is not text. {remedy}")


def _kind_of(start: bytes) -> tuple[str, str]:
    """Return kind and ending of a file by its first bytes; those of text if they are of none."""
    return next((found for mark, found in _MARKS.items() if start.startswith(mark)), ("", ".csv"))


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


# Text that stands for a missing value, besides nothing at all.
MISSING = ["NA", "N/A", "NaN", "nan", "null", "NULL"]
BLOCK_BYTES = 4 << 20
DELIMITERS = ";\t|,"
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_NEWLINE, _QUOTE = 10, 34


def delimiter_of(path: Path, delimiter: str | None) -> str:
    """Return the delimiter asked for, or the one that the suffix suggests."""
    if delimiter is None:
        return "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    sign = _DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(sign.encode()) != 1:
        raise ValueError(f"--delimiter must be one character, or 'tab', not '{delimiter}'.")
    return sign


def opened(path: Path) -> IO[bytes]:
    """Open a file, packed by gzip or not."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


def record_blocks(file: IO[bytes], block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first record, which holds the names, and whole records after it, block by block."""
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
    """Find where the last whole record ends: after a newline that an even number of quotes precedes."""
    end = data.rfind(b"\n")
    n_quotes = data.count(b'"', 0, end) if end >= 0 else 0
    while end >= 0 and n_quotes % 2:
        before = data.rfind(b"\n", 0, end)
        n_quotes -= data.count(b'"', max(before, 0), end)
        end = before
    return end + 1


def ends_of_records(block: bytes) -> NDArray[np.intp]:
    """Return where each record of a block of whole ones ends."""
    letters = np.frombuffer(block, dtype=np.uint8)
    newlines = np.flatnonzero(letters == _NEWLINE)
    if b'"' in block:
        quotes = np.flatnonzero(letters == _QUOTE)
        newlines = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    ends = newlines + 1
    return ends if len(ends) and ends[-1] == len(block) else np.append(ends, len(block))


def drawn_records(
    file: IO[bytes], most_bytes: int, seed: int, block_bytes: int = BLOCK_BYTES
) -> tuple[bytes, int, int]:
    """Read a file of any length; draw records at random where they are more than some bytes.

    Each record has a number between 0 and 1, and those below a share are kept. The share is halved whenever they become
    too many. So the length need not be known before, and the memory is that of what is kept.

    Returns
    -------
    tuple of bytes, int, int
        The names and the records, in order; how many records are kept; how many there were.
    """
    kept: list[tuple[bytes, NDArray[np.intp], NDArray[np.float64]]] = []  # records, their ends, their numbers
    header, share, n_bytes, n_all = b"", 1.0, 0, 0
    for k, (first, block) in enumerate(record_blocks(file, block_bytes)):
        header = first
        if not block:
            continue
        ends = ends_of_records(block)
        n_all += len(ends)
        kept.append(_below((block, ends, np.random.default_rng([seed, k]).random(len(ends))), share))
        n_bytes += len(kept[-1][0])
        while n_bytes > most_bytes and share > 2.0**-40:
            share /= 2
            kept = [_below(one, share) for one in kept]
            n_bytes = sum(len(text) for text, _, _ in kept)
    if header and not header.endswith(b"\n") and kept:
        header += b"\n"
    return b"".join([header, *(text for text, _, _ in kept)]), sum(len(ends) for _, ends, _ in kept), n_all


def _below(
    records: tuple[bytes, NDArray[np.intp], NDArray[np.float64]], share: float
) -> tuple[bytes, NDArray[np.intp], NDArray[np.float64]]:
    """Keep the records whose number is below a share."""
    text, ends, numbers = records
    if share >= 1.0:
        return records
    taken = numbers < share
    lengths = np.diff(ends, prepend=0)
    kept = np.frombuffer(text, dtype=np.uint8)[np.repeat(taken, lengths)].tobytes()
    return kept, np.cumsum(lengths[taken], dtype=np.intp), numbers[taken]


STANDARD_INPUT = Path("-")
MOST_BYTES = 256 << 20  # of a table that is read whole: text, or eight bytes a cell
_BYTES_A_CELL = 8
_CELLS_JUDGED, _FEWEST_JUDGED = 1_000_000, 200  # by which it is judged what columns of text hold; rows
_SCATTER = 2654435761  # odd, near 2**32 divided by the golden ratio: multiples are spread evenly


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table that was read, what was done to it, and when reading began, by the monotonic clock."""

    frame: pl.DataFrame
    notes: list[str] = field(default_factory=list)
    since: float = field(default_factory=clock.monotonic)


def read_file(
    path: Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    *,
    most_bytes: int | None = None,
    seed: int = 0,
) -> ReadTable:
    """Read a table of at least two columns and one row.

    Parameters
    ----------
    path : Path
        CSV (also packed by gzip), Parquet, Arrow or Excel by its suffix; ``-`` is standard input.
    delimiter : str, optional
        What separates columns of a CSV file.
    encoding : str, optional
        Of a CSV file that is not UTF-8.
    most_bytes : int, optional
        Of a larger table rows are drawn at random. None: all rows.
    seed : int
        Of this draw.

    Raises
    ------
    ValueError
        If the file cannot be used, with what to do.
    OSError
        If it cannot be opened.
    """
    _require_polars()
    since = clock.monotonic()
    with on_disk(path) as file:
        _refuse_model(file)
        with reading(file, delimiter, encoding):
            found = _read(file, delimiter, encoding, most_bytes, seed)
    if found.frame.width == 1:
        raise ValueError(one_column_only(path, found.frame.columns[0], delimiter))
    if found.frame.height == 0:
        raise ValueError(f"'{path}' has no rows. A table needs rows to learn from.")
    return replace(found, since=since)


def _require_polars() -> None:
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading a file needs polars: pip install 'spinney-ml[cli]', or pass a data frame."
        ) from error


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """Give a path that can be read twice: standard input is written to a file that vanishes."""
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


def _read(path: Path, delimiter: str | None, encoding: str | None, most: int | None, seed: int) -> ReadTable:
    import polars as pl

    if is_parquet(path):
        return _drawn(pl.scan_parquet(path, glob=False), most, seed)
    if path.suffix.lower() in EXCEL:
        return ReadTable(_read_excel(path))
    if not is_csv(path):
        return _drawn(pl.scan_ipc(path), most, seed)
    size = path.stat().st_size
    packed = path.suffix.lower() == ".gz"
    if encoding is None and (most is None or (size <= most and not packed)):
        return ReadTable(_parsed(path, path, delimiter))
    with decoded(path, encoding) as file:
        text, n_kept, n_all = drawn_records(file, sys.maxsize if most is None else most, seed)
    return ReadTable(_parsed(text, path, delimiter), _said(n_kept, n_all))


@contextmanager
def decoded(path: Path, encoding: str | None) -> Iterator[IO[bytes]]:
    """Open a file as bytes of UTF-8."""
    with opened(path) as file:
        try:
            yield file if encoding is None else cast(IO[bytes], codecs.EncodedFile(file, "utf-8", encoding))
        except LookupError as error:
            raise ValueError(f"--encoding: there is no encoding '{encoding}'. Try latin-1 or utf-16.") from error


def _parsed(source: Any, path: Path, delimiter: str | None) -> pl.DataFrame:
    """Read text; judge what columns hold by the first rows and, where later ones differ, by all, which takes long."""
    import polars as pl

    sign = delimiter_of(path, delimiter)
    given: dict[str, Any] = {"separator": sign, "null_values": MISSING, "glob": False, "try_parse_dates": True}
    with opened(path) as file:
        n_columns = 1 + file.readline(BLOCK_BYTES).count(sign.encode())
    n_judged = max(_FEWEST_JUDGED, _CELLS_JUDGED // n_columns)
    with suppress(pl.exceptions.PolarsError):  # a later row holds something else
        frame = pl.read_csv(source, infer_schema_length=n_judged, **given)
        if not any(_begins_after(column, n_judged) for column in frame):
            return frame
    return pl.read_csv(source, infer_schema_length=None, **given)


def _begins_after(column: pl.Series, n_judged: int) -> bool:
    """Say whether the first rows tell nothing of a column, and others do."""
    n_judged = min(len(column), n_judged)
    return column.null_count() < len(column) and column.head(n_judged).null_count() == n_judged


def _read_excel(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_excel(path)
    except ImportError as error:  # polars names the reader that it lacks
        raise ValueError(
            f"Cannot read '{path}': Excel files need a reader: pip install fastexcel. Or save the sheet as CSV."
        ) from error


def _drawn(rows: pl.LazyFrame, most: int | None, seed: int) -> ReadTable:
    """Read rows, a part of them if they are too many; which ones depends on their number alone."""
    import polars as pl

    n_all = int(rows.select(pl.len()).collect().item())
    n_cells = n_all * len(rows.collect_schema())
    if most is None or n_cells * _BYTES_A_CELL <= most:
        return ReadTable(rows.collect())
    share = most / (n_cells * _BYTES_A_CELL)
    number = pl.int_range(pl.len(), dtype=pl.UInt64)
    spread = ((number + seed) * _SCATTER) % 2**32
    frame = rows.filter(spread < round(share * 2**32)).collect(engine="streaming")
    return ReadTable(frame, _said(frame.height, n_all))


def _said(n_kept: int, n_all: int) -> list[str]:
    if n_kept == n_all:
        return []
    return [f"The table is larger than is read whole: {n_kept:,} of its {n_all:,} rows were drawn at random."]
