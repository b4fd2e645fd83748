"""A file, or standard input, as a frame."""

from __future__ import annotations

import io
import sys
import tempfile
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spinney._data.files.faults import EXCEL, is_csv, is_parquet, one_column_only, reading
from spinney._data.files.records import BLOCK_BYTES, MISSING, delimiter_of, drawn_records, opened
from spinney._names import MODEL_FILE_MAGIC

if TYPE_CHECKING:
    import polars as pl

STANDARD_INPUT = Path("-")
MOST_BYTES = 256 << 20  # of a table that is read whole: text, or eight bytes a cell
_BYTES_A_CELL = 8
_CELLS_JUDGED, _FEWEST_JUDGED = 1_000_000, 200  # by which it is judged what columns of text hold; rows
_MARKS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".xlsx"}  # how other files begin
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
        raise ImportError("Reading a file needs polars: pip install 'spinney[cli]', or pass a data frame.") from error


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """Give a path that can be read twice: standard input is written to a file that vanishes."""
    if path != STANDARD_INPUT:
        yield path
        return
    source: IO[bytes] = sys.stdin.buffer
    first = source.read(8)
    suffix = next((suffix for mark, suffix in _MARKS.items() if first.startswith(mark)), ".csv")
    with tempfile.TemporaryDirectory(prefix="spinney-") as folder:
        file = Path(folder) / f"standard input{suffix}"
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
        if encoding is None:
            yield file
            return
        try:
            yield _Recoded(io.TextIOWrapper(file, encoding=encoding, newline=""))  # type: ignore[misc]
        except LookupError as error:
            raise ValueError(f"--encoding: there is no encoding '{encoding}'. Try latin-1 or utf-16.") from error


class _Recoded:
    """Text, read as bytes of UTF-8."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def read(self, size: int) -> bytes:
        return self._text.read(size).encode()


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
