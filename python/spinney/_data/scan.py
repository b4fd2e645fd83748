"""Streams of tables, whose rows are read in batches because they may not fit into memory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from spinney._data.arguments import read_size
from spinney._data.columns import RawTable, is_instance_of, listed
from spinney._data.file_readers import ARROW, PARQUET, is_parquet
from spinney._data.read import read_table
from spinney._data.schema import forced_categories
from spinney._data.spool import BATCH_ROWS, SpooledTable, spool
from spinney._data.types import TableLike

NO_ROWS = (
    "The stream has no rows. Pass one that has some; a generator or reader that was read before is exhausted: create a "
    "new one, or scan it once and use the scan."
)


class Scan:
    """A table that is read in batches; see `scan`.

    Nothing is read before it is needed. The first fit writes the columns to uncompressed temporary files, which other
    fits use again; they are removed with this object, or when it is closed.
    """

    def __init__(self, source: Callable[[], Iterable[Any]], once: bool, folder: str | None, memory: int | str) -> None:
        self._source = source
        self._once = once
        self._is_read = False
        self._folder = folder
        self._held_bytes = read_size(memory, "memory")
        self._spooled: tuple[frozenset[int], SpooledTable] | None = None

    def __repr__(self) -> str:
        if self._spooled is None:
            return "<Scan: not read yet>"
        table = self._spooled[1]
        return f"<Scan: {table.n_rows:,} rows and {table.n_columns} columns in files>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary files. A scan that can be read again creates new ones when they are needed."""
        self._spooled = None

    def batches(self, columns: Iterable[str] | None = None) -> Iterator[RawTable]:
        """Yield the rows in batches, which are tables that every function of spinney accepts.

        Parameters
        ----------
        columns : iterable of str, optional
            Columns to include. None: all, in the order of the stream.

        Yields
        ------
        table
            A batch of rows.
        """
        wanted = None if columns is None else list(columns)
        for table in self._tables():
            yield table if wanted is None else _only(table, wanted)

    def _tables(self) -> Iterator[RawTable]:
        if self._spooled is not None:
            yield from self._spooled[1].batches()
            return
        if self._once and self._is_read:
            raise ValueError(
                "The stream was already read, and cannot be read again. Pass files, or a function that returns a new "
                "iterator."
            )
        self._is_read = True
        for i, batch in enumerate(self._source()):
            if _n_rows(batch) != 0:
                yield _as_table(batch, i)

    def spooled(self, categorical_features: Any = None) -> SpooledTable:
        """Return all rows as a table in temporary files."""
        tables = self._tables()
        if (first := next(tables, None)) is None:
            raise ValueError(NO_ROWS)
        forced = frozenset(forced_categories(categorical_features, first))
        if self._spooled is None or self._spooled[0] != forced:
            self._spooled = forced, spool(chain([first], tables), forced, self._folder, self._held_bytes)
        return self._spooled[1]


def scan(source: object, *, folder: str | None = None, memory: int | str = "256MB") -> Scan:
    """Read a table in batches, to fit models to more rows than fit into memory.

    In `fit`, the target, weights, groups and offset are passed as names of columns of this table. Gradient boosting,
    forests and single trees are bit-identical to models fitted to the same rows in memory, with one exception: with
    ``n_estimators="auto"``, boosting fits linear leaves only to tables in memory (of fewer than 20,000 rows).

    Parameters
    ----------
    source : str, path, list of these, dataset, lazy frame, stream, function or iterable of tables
        Files by name or pattern (Parquet or Arrow; a folder means all of its files), in the order of their names or of
        the list; a pyarrow dataset; a polars LazyFrame; a Dask DataFrame; any object with the Arrow C stream interface;
        a function that returns a new iterator of tables; an iterable of tables. A source that can be read only once,
        such as a generator or a RecordBatchReader, is read at the first fit; the temporary files then hold its rows.
    folder : str, optional
        Folder for temporary files, which hold the columns and, during a fit, their bins. None: the system's folder for
        temporary files.
    memory : int or str, default="256MB"
        Approximate amount of the temporary files that is held in memory at a time.

    Returns
    -------
    Scan
        The table, which is read when a model is fitted or predicts.

    Examples
    --------
    >>> import numpy as np, spinney
    >>> def halves():
    ...     for i in range(2):
    ...         x = np.arange(100.0) + 100 * i
    ...         yield {"x": x, "target": x % 7}
    >>> table = spinney.scan(halves)
    >>> model = spinney.GradientBoostingRegressor(n_estimators=5).fit(table, "target")
    >>> model.predict(table).shape
    (200,)
    """
    if isinstance(source, Scan):
        return source
    source_of_batches = _as_source(source)
    if source_of_batches is None:
        raise TypeError(
            f"A value of type {type(source).__name__} is not a stream of tables. Pass files, a dataset, a lazy frame, "
            "a function that returns an iterator of tables, or an iterable of tables."
        )
    return Scan(*source_of_batches, folder, memory)


def stream_of(X: TableLike) -> Scan | None:
    """Return a stream of tables as a scan; None if X is a table."""
    if isinstance(X, Scan):
        return X
    if _is_in_memory(X):
        return None
    is_stream = (
        _is_lazy(X)
        or isinstance(X, (str, Path))
        or (isinstance(X, (list, tuple)) and (_are_files(X) or _are_frames(X)))
        or (callable(X) and not hasattr(X, "__array__") and not hasattr(X, "__len__"))
        or (hasattr(X, "__next__") and not hasattr(X, "__array__"))
    )
    return scan(X) if is_stream else None


def _is_in_memory(X: TableLike) -> bool:
    """Return whether a table is of one of the most frequent kinds, none of which is a stream or a collection."""
    return isinstance(X, np.ndarray) or is_instance_of(X, "pandas", "DataFrame")


def is_dask(X: TableLike) -> bool:
    """Return whether a table is a Dask DataFrame."""
    return any(is_instance_of(X, module, "DataFrame") for module in ("dask.dataframe", "dask.dataframe.dask_expr"))


def is_collection(X: TableLike) -> bool:
    """Return whether a table is a Dask DataFrame or Array, with partitions to map functions over."""
    if _is_in_memory(X):
        return False
    return (is_dask(X) and hasattr(X, "map_partitions")) or is_instance_of(X, "dask.array", "Array")


def client_of(X: TableLike) -> Any:
    """Return the Dask client that computes a collection; None if X is no collection or there is no client.

    It is the one that already holds partitions of the collection, if any: the process may have created others since.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or not is_collection(X):
        return None
    client = _default_client(distributed)
    others = [other for other in getattr(distributed.Client, "_instances", [None]) if other is not client]
    if any(other is None or other.status == "running" for other in others):
        # only if there is a choice: it traverses the graph, which takes 0.5 to 10 s for 10,000 partitions
        futures = distributed.futures_of(X)
        client = futures[0].client if futures else client
    if client is None:
        return None
    if client.asynchronous:  # waiting here would block the event loop of the client
        raise TypeError(
            "The Dask client is asynchronous, and a fit waits for its workers. Fit in another thread, as with await "
            "asyncio.to_thread(model.fit, X, y); or use a Client without asynchronous=True, also in a notebook."
        )
    return client


def _default_client(distributed: Any) -> Any:
    """Return the default client of the process, or None."""
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _is_lazy(X: TableLike) -> bool:
    return (
        is_instance_of(X, "polars", "LazyFrame")
        or is_instance_of(X, "pyarrow.dataset", "Dataset", "Scanner")
        or is_instance_of(X, "pyarrow", "RecordBatchReader")
        or is_dask(X)
    )


def _are_files(X: Sequence[Any]) -> bool:
    """Return whether a list names table files: a row never consists of strings only."""
    return bool(X) and all(isinstance(path, (str, Path)) and _is_table_file(Path(path)) for path in X)


def _is_table_file(path: Path) -> bool:
    return path.suffix.lower() in (*PARQUET, *ARROW)


def _are_frames(X: Sequence[Any]) -> bool:
    """Return whether a list consists of frames; rows have no `columns`."""
    return bool(X) and all(hasattr(table, "columns") and not isinstance(table, Mapping) for table in X)


def _as_source(X: Any) -> tuple[Callable[[], Iterable[Any]], bool] | None:
    """Return a function that returns the batches, and whether it can be called only once."""
    if isinstance(X, (str, Path)):
        return _files([X]), False
    if isinstance(X, (list, tuple)) and X and all(isinstance(path, (str, Path)) for path in X):
        return _files(list(X)), False
    if is_instance_of(X, "polars", "LazyFrame"):
        return lambda: polars_batches(X, BATCH_ROWS), False
    if is_instance_of(X, "pyarrow.dataset", "Dataset"):
        return lambda: X.to_batches(batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1), False
    if is_instance_of(X, "pyarrow.dataset", "Scanner"):
        return X.to_batches, False
    if is_dask(X):
        return lambda: (X.get_partition(i).compute() for i in range(X.npartitions)), False
    if isinstance(X, (np.ndarray, Mapping)) or is_instance_of(X, "pandas", "DataFrame"):
        return lambda: [X], False
    if hasattr(X, "__next__"):
        return lambda: X, True
    if hasattr(X, "__arrow_c_stream__"):
        return lambda: _arrow_batches(X), is_instance_of(X, "pyarrow", "RecordBatchReader")
    if callable(X):
        return lambda: _batches_of_function(X), False
    return (lambda: X, False) if isinstance(X, Iterable) else None


def _batches_of_function(make: Callable[[], Any]) -> Iterable[Any]:
    """Return the batches of a function, which may return anything that can be scanned."""
    made = make()
    source = _as_source(made)
    if source is None:
        raise TypeError(
            f"The function that was passed as a stream returned a value of type {type(made).__name__}. It must return "
            "an iterator of tables: yield them, or return a list of them."
        )
    return source[0]()


def polars_batches(rows: Any, n_rows: int) -> Iterator[Any]:
    """Yield the rows of a lazy frame in batches of about `n_rows`."""
    if hasattr(rows, "collect_batches"):
        with warnings.catch_warnings(action="ignore"):  # polars calls it unstable
            batches = iter(rows.collect_batches(chunk_size=n_rows, maintain_order=True, lazy=True))
        yield from batches
        return
    start = 0  # older versions of polars skip the rows before each slice again
    while (frame := rows.slice(start, n_rows).collect()).height > 0:
        yield frame
        start += frame.height


def _arrow_batches(X: TableLike) -> Iterator[Any]:
    """Yield the batches of an Arrow stream if pyarrow is installed, else the whole stream."""
    try:
        from pyarrow import RecordBatchReader
    except ImportError:
        yield X
        return
    yield from X if isinstance(X, RecordBatchReader) else RecordBatchReader.from_stream(X)


def _files(patterns: list[str | Path]) -> Callable[[], Iterable[Any]]:
    paths: list[Path] = []
    for pattern in patterns:
        text = str(pattern)
        is_pattern = has_magic(text) and not Path(text).exists()  # names may contain brackets
        matches = [Path(p) for p in sorted(glob(text, recursive=True))] if is_pattern else [Path(text)]
        if not matches or not matches[0].exists():
            raise FileNotFoundError(f"There is no file '{text}'. Name a Parquet or Arrow file, or a pattern.")
        for path in matches:
            paths += _files_in(path) if path.is_dir() else [path]
    others = [str(path) for path in paths if not _is_table_file(path)]
    if others:
        raise ValueError(
            f"Cannot scan {listed(others)}: only Parquet and Arrow files are read in batches. For CSV files, pass "
            "polars.scan_csv(path)."
        )
    return lambda: (batch for path in paths for batch in _file_batches(path))


def _files_in(folder: Path) -> list[Path]:
    """Return the tables in a folder, in the order of their names."""
    paths = sorted(path for path in folder.iterdir() if _is_table_file(path) and path.is_file())
    if not paths:
        raise FileNotFoundError(
            f"The folder '{folder}' has no Parquet or Arrow files. Name another; for files in its subfolders pass a "
            f"pattern, such as '{folder / '**' / '*.parquet'}'."
        )
    return paths


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Replace errors of libraries about a file by errors that name the file and state what to do."""
    try:
        yield
    except (MemoryError, PermissionError):
        raise
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"The file '{path}' was removed after it was scanned. Restore it, or scan the remaining files."
        ) from error
    except Exception as error:  # of pyarrow or polars, which have many types
        reason = (str(error).strip().splitlines() or ["unknown error"])[0].rstrip(".")
        raise ValueError(f"Cannot read '{path}': {reason}. Write the file again, or leave it out.") from error


def _file_batches(path: Path) -> Iterator[Any]:
    with _translate_errors(path):
        yield from _batches_in(path)


def _batches_in(path: Path) -> Iterator[Any]:
    try:
        import pyarrow.parquet
    except ImportError:
        import polars as pl

        rows = pl.scan_parquet(path, glob=False) if is_parquet(path) else pl.scan_ipc(path)
        yield from polars_batches(rows, BATCH_ROWS)
        return
    if is_parquet(path):
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from _read_ahead(file.iter_batches(batch_size=BATCH_ROWS))
        pyarrow.default_memory_pool().release_unused()  # which pyarrow would retain for the next file
        return
    with pyarrow.OSFile(str(path)) as opened:  # not mapped: a file that is cut meanwhile would end the process
        file = pyarrow.ipc.open_file(opened)
        for i in range(file.num_record_batches):
            yield file.get_batch(i)


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; a second thread decodes the next one in the meantime."""
    with ThreadPoolExecutor(1) as thread:
        try:
            following = thread.submit(next, batches, None)
        except RuntimeError as error:
            raise MemoryError(
                "The system started no more threads: its memory or limit of threads is used up."
            ) from error
        while (batch := following.result()) is not None:
            following = thread.submit(next, batches, None)
            yield batch


def _as_table(batch: object, i: int) -> RawTable:
    """Read a batch; errors name its number."""
    try:
        return read_table(batch)
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"Batch {i} of the stream cannot be read. {error}") from error


def _n_rows(batch: object) -> int:
    """Return the number of rows of a batch, or -1 if it is not known before it is read."""
    for name in ("num_rows", "height"):
        if isinstance(n_rows := getattr(batch, name, None), int):
            return n_rows
    if isinstance(batch, Mapping):
        return len(next(iter(batch.values()), ()))
    return batch.shape[0] if hasattr(batch, "shape") else len(batch) if hasattr(batch, "__len__") else -1


def _only(table: RawTable, wanted: list[str]) -> RawTable:
    if table.names is None:
        return table
    absent = [name for name in wanted if name not in table.names]
    if absent:
        raise ValueError(f"The stream has no column(s) {listed(absent)}, which the model needs.")
    columns = [table.column(table.names.index(name)) for name in wanted]
    return RawTable(table.n_rows, len(wanted), wanted, columns=columns)
