"""The arguments of a fit beside the parameters of the estimator: rows to learn from, validation sets, streams.

Of a stream in the place of X, the columns that are named beside it are taken out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from spinney._data.columns import RawTable
from spinney._data.scan import NO_ROWS, is_dask, stream_of
from spinney._data.schema import Schema
from spinney._data.spool import SpooledTable, array_of
from spinney._data.types import ColumnLike, TableLike

ROW_FIELDS = ("y", "sample_weight", "offset", "groups", "time", "exposure")  # of `RowInputs`, besides X
UNNAMED = "validation"  # name of a validation set that has none


@dataclass(frozen=True)
class RowInputs:
    """Rows as the caller gives them.

    Attributes
    ----------
    X, y, sample_weight, offset, groups, time, exposure : as of `fit`
        Of a stream, perhaps names of its columns.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None
    groups: Any = None
    time: Any = None
    exposure: Any = field(default=None, kw_only=True)

    def spooled(self, categorical_features: object, suffix: str = "") -> Self:
        """Return a stream as a table in files, and the columns that are named as arrays; any other table as it is."""
        beside = {name + suffix: getattr(self, name) for name in ROW_FIELDS}
        X, arrays = split_stream(self.X, beside, categorical_features, "X" + suffix)
        return replace(self, X=X, **dict(zip(ROW_FIELDS, arrays, strict=True)))


@dataclass(frozen=True)
class ValidationSet(RowInputs):
    """Rows that are not learned from, with the name that they have in the history."""

    name: str = UNNAMED


@dataclass(frozen=True)
class FitInputs(RowInputs):
    """All arguments of a fit.

    Attributes
    ----------
    validation : tuple of ValidationSet
        Sets to evaluate after each round; the first stops the fit.
    checkpoint : str, path or None
    """

    validation: tuple[ValidationSet, ...] = ()
    checkpoint: str | os.PathLike[str] | None = None

    @property
    def has_validation_rows(self) -> bool:
        """Whether the caller says which rows are held out: by validation sets, or by time."""
        return bool(self.validation) or self.time is not None

    @property
    def first_validation(self) -> ValidationSet | None:
        """The set that stops the fit, if there is one."""
        return self.validation[0] if self.validation else None


def validation_sets(
    X_val: Any, y_val: Any, sample_weight_val: Any = None, offset_val: Any = None, groups_val: Any = None
) -> tuple[ValidationSet, ...]:
    """Return the validation sets of a fit: of dicts by name if `y_val` is one, else one set, or none."""
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val, "offset_val": offset_val}
    given["groups_val"] = groups_val
    if not isinstance(y_val, dict):
        check_together(given)
        return () if X_val is None else (ValidationSet(X_val, y_val, sample_weight_val, offset_val, groups_val),)
    for name, part in given.items():
        if part is None and name not in ("X_val", "y_val"):
            continue
        if not isinstance(part, dict) or part.keys() != y_val.keys():
            raise ValueError(f"y_val names the sets {', '.join(map(str, y_val))}. Pass a dict of the same for {name}.")
    if not y_val:
        raise ValueError("y_val names no set. Pass some rows, or leave it out.")
    sets = []
    for key in y_val:
        X, y, weight, offset, groups = (None if part is None else part[key] for part in given.values())
        sets.append(ValidationSet(X, y, weight, offset, groups, name=str(key)))
    return tuple(sets)


def check_together(given: dict[str, Any]) -> None:
    """Refuse parts of a validation set without its X_val and y_val."""
    if (given["X_val"] is None) != (given["y_val"] is None):
        raise ValueError("X_val and y_val go together. Pass both or neither.")
    alone = [name for name, value in given.items() if value is not None] if given["X_val"] is None else []
    if alone:
        raise ValueError(f"{alone[0]} goes with X_val. Pass X_val and y_val too.")


def split_stream(
    X: TableLike, beside: dict[str, Any], categorical_features: object, name: str = "X"
) -> tuple[Any, list[Any]]:
    """Return a stream as a table that lies in files, without the columns that are named, and these as arrays.

    Parameters
    ----------
    X : table or stream
        What is no stream is returned as it is, with what is beside it.
    beside : dict
        By the name of a parameter: the name of a column, a list of names, or what it is without a stream.
    categorical_features : as the parameter
    name : str
        What the caller calls the stream.
    """
    stream = stream_of(X)
    if stream is None:
        return X, list(beside.values())
    for option, value in beside.items():
        if is_dask(value) or type(value).__module__.startswith("dask"):
            raise TypeError(
                f"{option} is a Dask collection. Name its column of {name} instead, such as {option}='y'; or start a "
                "distributed.Client, whose workers take both."
            )
    table = stream.spooled(categorical_features)
    arrays = [_array_of(table, value, option) for option, value in beside.items()]
    taken = {name for value in beside.values() for name in _names_in(value)}
    kept = [j for j in range(table.n_columns) if table.names is None or table.names[j] not in taken]
    if not kept:
        raise ValueError("No column is left to learn from: all columns of the stream are named.")
    return (table.only(kept) if taken else table), arrays


def _names_in(value: Any) -> list[str]:
    """Return the names of columns that a parameter gives: one, or a list of them."""
    if isinstance(value, str):
        return [value]
    is_names = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return list(value) if is_names else []


def _array_of(table: SpooledTable, value: object, option: str) -> Any:
    names = _names_in(value)
    if not names:
        return value
    found = [array_of(table, name, option) for name in names]
    return found[0] if isinstance(value, str) else np.column_stack(found)


def batches_of(X: TableLike, schema: Schema) -> Iterator[RawTable] | None:
    """Return the rows of a stream, some at a time, with the columns of a model; None if it is no stream."""
    found = batches_with(X, schema, None)
    return None if found is None else (batch for batch, _ in found)


def _some(batches: Iterator[RawTable]) -> Iterator[RawTable]:
    """Yield batches; refuse a stream without rows, as a table without rows is refused."""
    n_rows = 0
    for batch in batches:
        n_rows += batch.n_rows
        yield batch
    if n_rows == 0:
        raise ValueError(NO_ROWS)


def batches_with(X: TableLike, schema: Schema, offset: ColumnLike) -> Iterator[tuple[RawTable, Any]] | None:
    """Return the batches of a stream with their rows of an offset, if there is one; None if it is no stream.

    Parameters
    ----------
    X : table or stream
    schema : Schema
        What the model knows of its columns.
    offset : array-like, str or None
        Of all rows; or the name of the column of the stream that has it.
    """
    stream = stream_of(X)
    if stream is None:
        return None
    if not isinstance(offset, str):
        return _with_rows(_some(stream.batches(schema.names if schema.has_names else None)), offset)
    if not schema.has_names:
        raise ValueError(
            f"offset={offset!r} names a column, and the model was fitted without names. Pass offset as an array."
        )
    return _with_column(_some(stream.batches([*schema.names, offset])), offset)


def _with_rows(batches: Iterator[RawTable], offset: ColumnLike) -> Iterator[tuple[RawTable, Any]]:
    numbers = None if offset is None else np.asarray(offset)
    first = 0
    for batch in batches:
        rows = slice(first, first + batch.n_rows)
        if numbers is not None and len(numbers) < rows.stop:
            raise ValueError(f"offset has {len(numbers)} rows, and the stream has more. Pass one for each row.")
        yield batch, None if numbers is None else numbers[rows]
        first = rows.stop
    if numbers is not None and len(numbers) != first:
        raise ValueError(f"offset has {len(numbers)} rows, and the stream has {first}. Pass one for each row.")


def _with_column(batches: Iterator[RawTable], name: str) -> Iterator[tuple[RawTable, Any]]:
    for batch in batches:
        assert batch.names is not None
        names = batch.names[:-1]
        columns = [batch.column(j) for j in range(len(names))]
        yield RawTable(batch.n_rows, len(names), names, columns=columns), array_of(batch, name, "offset")
