"""Tables in temporary files: batches of rows are written column by column, and read in place like any other table."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.cells import mixed_error
from spinney._data.columns import (
    Array,
    CodedColumn,
    Column,
    NumberColumn,
    RawTable,
    SparseColumn,
    coded_column,
    column_label,
    dense_column,
    listed,
    missing_column,
)
from spinney._data.feature import is_empty

BATCH_ROWS = 65_536


class SpooledTable(RawTable):
    """A table whose columns are in temporary files, which are removed with it.

    Parameters
    ----------
    n_rows : int
    names : list of str or None
    columns : list of columns
    spill : Spill
        The files.
    """

    spill: _engine.Spill

    def __init__(self, n_rows: int, names: list[str] | None, columns: list[Column], spill: _engine.Spill) -> None:
        super().__init__(n_rows, len(columns), names, columns=columns, spill=spill)

    def column(self, j: int) -> Column:
        """Return column ``j``; memory pages of columns that were read before are released."""
        self.spill.release_pages()
        return super().column(j)

    def only(self, places: Iterable[int]) -> SpooledTable:
        """Return some of the columns."""
        chosen = list(places)
        names = None if self.names is None else [self.names[j] for j in chosen]
        return SpooledTable(self.n_rows, names, [super(SpooledTable, self).column(j) for j in chosen], self.spill)

    def verify(self) -> None:
        """Raise RuntimeError if the files were changed; reads all of them."""
        self.spill.verify()

    def batches(self) -> Iterator[RawTable]:
        """Yield the rows in batches."""
        columns = [super(SpooledTable, self).column(j) for j in range(self.n_columns)]
        for begin in range(0, self.n_rows, BATCH_ROWS):
            rows = slice(begin, min(begin + BATCH_ROWS, self.n_rows))
            self.spill.touch(8 * (rows.stop - begin) * self.n_columns)
            yield RawTable(
                rows.stop - begin, self.n_columns, self.names, columns=[_some_rows(column, rows) for column in columns]
            )


def _some_rows(column: Column, rows: slice) -> Column:
    if isinstance(column, CodedColumn):
        return CodedColumn(column.codes[rows], column.values, column.ordered, column.declared)
    assert isinstance(column, NumberColumn)
    return NumberColumn(column.values[rows], None if column.missing is None else column.missing[rows], column.clock)


def spool(batches: Iterable[RawTable], forced: frozenset[int], folder: str | None, held_bytes: int) -> SpooledTable:
    """Write batches to files, in their order.

    Parameters
    ----------
    batches : iterable of RawTable
        Batches with the same columns, by name where they have names.
    forced : set of int
        Positions of numeric columns that are categories.
    folder : str or None
        Folder of the unnamed temporary files; None: the system's folder for temporary files.
    held_bytes : int
        Approximate amount of the files that is held in memory at a time.
    """
    parent = tempfile.gettempdir() if folder is None else folder
    _check_folder(parent)
    writers: list[_Writer] | None = None
    names: list[str] | None = None
    n_rows = 0
    try:
        for i, batch in enumerate(batches):
            if writers is None:
                names = batch.names
                writers = [_Writer(parent, column_label(j, names), j in forced) for j in range(batch.n_columns)]
            for writer, j in zip(writers, _positions(batch, names, len(writers), i), strict=True):
                writer.add(batch.column(j), batch.n_rows, i)
            n_rows += batch.n_rows
        if writers is None:
            raise ValueError("The stream has no rows. Pass a table with rows to learn from.")
        spill = _engine.Spill(parent, held_bytes)
        return SpooledTable(n_rows, names, [writer.finish(spill, n_rows) for writer in writers], spill)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        n_bytes = sum(writer.n_bytes for writer in writers or ())
        raise OSError(
            error.errno,
            f"The folder {parent} is too small for the uncompressed columns of the stream: "
            f"{n_bytes:,} bytes for somewhat more than {n_rows:,} rows so far. Choose a folder with more free space: "
            "spinney.scan(..., folder=...)",
        ) from None
    finally:
        for writer in writers or ():
            writer.close()


def _check_folder(folder: str) -> None:
    """Refuse a folder in which no files can be created."""
    if not os.path.isdir(folder):
        raise NotADirectoryError(
            errno.ENOTDIR,
            f"There is no folder {folder} for temporary files. Create it, or name another with folder=...",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES, f"No files can be created in the folder {folder}. Name another: spinney.scan(..., folder=...)"
        )


def _positions(batch: RawTable, names: list[str] | None, n_columns: int, i: int) -> list[int]:
    """Return the positions of the columns of the first batch in another one."""
    if batch.names == names and batch.n_columns == n_columns:
        return list(range(n_columns))
    found, wanted = batch.names or [], names or []
    if set(found) != set(wanted) or names is None:
        absent, more = [n for n in wanted if n not in found], [n for n in found if n not in wanted]
        numbers = f"has {batch.n_columns} columns, and the first has {n_columns}"
        what = f"lacks {listed(absent)}" if absent else f"also has {listed(more)}" if more else numbers
        raise ValueError(f"Batch {i} of the stream {what}: all batches need the columns of the first.")
    position = {name: j for j, name in enumerate(found)}
    return [position[name] for name in wanted]


class _File:
    """An unnamed temporary file, which the system removes when the process ends; written in chunks."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = _temporary_file(folder)
        self._sums = _engine.Checksums()
        self.n_bytes = 0

    def append(self, values: Array) -> None:
        """Append an array."""
        if values.size == 0:
            return
        remaining = np.ascontiguousarray(values).data.cast("B")
        self._sums.add(np.frombuffer(remaining, np.uint8))
        self.n_bytes += len(remaining)
        while remaining:
            remaining = remaining[self._file.write(remaining) :]

    def transformed(self, dtype: Any, change: Callable[[Array], Array]) -> _File:
        """Return a file with a function of the values, and close this one."""
        other = _File(self._folder)
        self._file.seek(0)
        while block := self._file.read(BATCH_ROWS * np.dtype(dtype).itemsize):
            other.append(change(np.frombuffer(block, dtype)))
        self.close()
        return other

    def mapped(self, spill: _engine.Spill) -> NDArray[np.uint8]:
        """Return all bytes as a memory map, which checksums protect."""
        mapped = spill.map(self._file.fileno(), self.n_bytes, self._sums.finish())
        self.close()
        return mapped

    def close(self) -> None:
        """Close the file; memory maps stay valid."""
        self._file.close()


def _temporary_file(folder: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="spinney-", dir=folder, buffering=0)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    with suppress(ImportError, ValueError, OSError):  # one file per column: raise the limit of open files
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else 2 * soft, hard))
    return tempfile.TemporaryFile(prefix="spinney-", dir=folder, buffering=0)


class _Writer:
    """A column that is written batch by batch."""

    def __init__(self, folder: str, label: str, forced: bool) -> None:
        self._folder, self._label, self._forced = folder, label, forced
        self._file = _File(folder)
        self._mask: _File | None = None
        self._n = 0  # rows so far
        self._dtype: np.dtype[Any] | None = None  # of numbers; None: no values so far, or categories
        self._clock = ""
        self._code_of: dict[Any, int] | None = None  # of categories
        self._ordered: tuple[Any, ...] | None = None

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._mask is not None:
            self._mask.close()

    @property
    def n_bytes(self) -> int:
        """Number of bytes written."""
        return self._file.n_bytes + (0 if self._mask is None else self._mask.n_bytes)

    def add(self, column: Column, n_rows: int, batch: int) -> None:
        if isinstance(column, SparseColumn):
            column = dense_column(column, n_rows)
        if isinstance(column, NumberColumn) and is_empty(column):
            self._add_missing(n_rows)
        elif isinstance(column, NumberColumn) and not self._forced:
            self._add_numbers(column, batch)
        else:
            self._add_codes(coded_column(column) if isinstance(column, NumberColumn) else column, batch)
        self._n += n_rows

    def _add_missing(self, n_rows: int) -> None:
        if self._code_of is not None:
            self._file.append(np.full(n_rows, -1, dtype=np.int32))
        elif self._dtype is not None:
            self._write_numbers(np.zeros(n_rows, self._dtype), np.ones(n_rows, dtype=np.uint8))

    def _add_numbers(self, column: NumberColumn, batch: int) -> None:
        if self._code_of is not None:
            raise mixed_error(self._label)
        if self._dtype is None:
            self._dtype, self._clock = column.values.dtype, column.clock
            n, self._n = self._n, 0
            if n:
                self._add_missing(n)
            self._n = n
        if column.clock != self._clock:
            raise TypeError(
                f"{self._label} changes between dates and numbers, or their time zones, in batch {batch} of the "
                "stream; convert all of its values to one type."
            )
        if column.values.dtype != self._dtype:
            wider = np.result_type(self._dtype, column.values.dtype)
            self._file = self._file.transformed(self._dtype, lambda values: values.astype(wider))
            self._dtype = wider
        self._write_numbers(column.values.astype(self._dtype, copy=False), column.missing)

    def _write_numbers(self, values: Array, missing: Array | None) -> None:
        if missing is not None and values.dtype.kind == "f":
            values, missing = np.where(missing != 0, values.dtype.type(np.nan), values), None
        self._file.append(values)
        if missing is None and self._mask is None:
            return
        if self._mask is None:
            self._mask = _File(self._folder)
            for begin in range(0, self._n, BATCH_ROWS):
                self._mask.append(np.zeros(min(BATCH_ROWS, self._n - begin), np.uint8))
        self._mask.append(np.zeros(len(values), np.uint8) if missing is None else missing)

    def _add_codes(self, column: CodedColumn, batch: int) -> None:
        if self._dtype is not None:
            raise mixed_error(self._label)
        if self._code_of is None:
            self._code_of = {}
            self._ordered = tuple(column.values) if column.ordered and not self._forced else None
            self._file.append(np.full(self._n, -1, dtype=np.int32))
        if self._ordered is not None and (not column.ordered or tuple(column.values) != self._ordered):
            raise ValueError(
                f"{self._label} has other ordered categories in batch {batch} of the stream than before; declare the "
                "same categories in all batches."
            )
        new_code = np.full(len(column.values) + 1, -1, dtype=np.int32)
        for old in column.occurring_codes() if self._ordered is None else range(len(column.values)):
            value = column.values[old]
            if value == value:
                new_code[old] = self._code_of.setdefault(value, len(self._code_of))
        if len({isinstance(value, str) for value in (next(iter(self._code_of), ""), *column.values[:1])}) > 1:
            raise mixed_error(self._label)
        self._file.append(new_code[column.codes])

    def finish(self, spill: _engine.Spill, n_rows: int) -> Column:
        """Return the column, memory-mapped."""
        if self._code_of is not None:
            return self._finish_codes(spill, self._code_of)
        if self._dtype is None:
            return missing_column(n_rows)
        values = self._file.mapped(spill).view(self._dtype)
        missing = None if self._mask is None else self._mask.mapped(spill)
        return NumberColumn(values, missing, self._clock)

    def _finish_codes(self, spill: _engine.Spill, code_of: dict[Any, int]) -> Column:
        """Return the column with codes in the order of the categories, as a schema needs them."""
        values = list(code_of) if self._ordered is not None else sorted(code_of)
        if values != list(code_of):
            new_code = np.full(len(values) + 1, -1, dtype=np.int32)
            new_code[[code_of[value] for value in values]] = np.arange(len(values))
            self._file = self._file.transformed(np.int32, lambda codes: new_code[codes])
        column = CodedColumn(self._file.mapped(spill).view(np.int32), values, ordered=self._ordered is not None)
        if self._ordered is None:
            column._occurring = list(range(len(values)))
        return column


def array_of(table: RawTable, name: str, option: str) -> Array:
    """Return a column as the array that a caller would pass for `option`, the parameter that names it."""
    names = table.names or []
    if not names:
        raise ValueError(
            f"{option}={name!r} names a column, and the columns of the stream have no names. Pass {option} as an "
            "array, or a stream of tables with column names."
        )
    if name not in names:
        raise ValueError(f"{option}={name!r} is not a column of the stream, which has {listed(names)}.")
    column = table.column(names.index(name))
    if isinstance(column, CodedColumn):
        labels = np.empty(len(column.values) + 1, dtype=object)
        labels[:-1] = column.values
        return labels[column.codes] if isinstance(column.values[0], str) else _with_missing(column)
    assert isinstance(column, NumberColumn)
    if column.clock:
        raise TypeError(f"{option}={name!r} holds dates. Convert them to numbers in a unit of your choice.")
    if column.missing is not None:
        return np.where(column.missing != 0, np.nan, column.values.astype(np.float64))
    return column.values


def _with_missing(column: CodedColumn) -> Array:
    values = np.array(column.values)
    if (column.codes < 0).any():
        return np.append(values.astype(np.float64), np.nan)[column.codes]
    return values[column.codes]
