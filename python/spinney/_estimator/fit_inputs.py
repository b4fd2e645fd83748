"""The arguments of `fit`: training rows, validation sets, streams.

If X is a stream, other arguments may name its columns, which are removed from X.
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
UNNAMED = "validation"  # default name of a validation set


class CopiedRows(np.ndarray[Any, np.dtype[np.intp]]):
    """Labels of groups that the caller has not passed: the row of which each row is a copy."""


def groups_of_caller(groups: ColumnLike) -> ColumnLike:
    """Return the groups if the caller has passed them, else None."""
    return None if isinstance(groups, CopiedRows) else groups


@dataclass(frozen=True)
class RowInputs:
    """A set of rows as passed by the caller.

    Attributes
    ----------
    X, y, sample_weight, offset, groups, time, exposure : arguments of `fit`
        If X is a stream, they may be names of its columns.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None
    groups: Any = None
    time: Any = None
    exposure: Any = field(default=None, kw_only=True)

    def spooled(self, categorical_features: object, suffix: str = "") -> Self:
        """Return the rows with a stream replaced by a table in temporary files, and names of columns by arrays."""
        others = {name + suffix: getattr(self, name) for name in ROW_FIELDS}
        X, arrays = split_stream(self.X, others, categorical_features, "X" + suffix)
        return replace(self, X=X, **dict(zip(ROW_FIELDS, arrays, strict=True)))


@dataclass(frozen=True)
class ValidationSet(RowInputs):
    """A validation set, with its name in the history."""

    name: str = UNNAMED


@dataclass(frozen=True)
class FitInputs(RowInputs):
    """All arguments of `fit`.

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
        """Whether the caller determines which rows are held out: by validation sets, or by time."""
        return bool(self.validation) or self.time is not None

    @property
    def first_validation(self) -> ValidationSet | None:
        """The set that stops the fit, if there is one."""
        return self.validation[0] if self.validation else None


def validation_sets(
    X_val: Any, y_val: Any, sample_weight_val: Any = None, offset_val: Any = None, groups_val: Any = None
) -> tuple[ValidationSet, ...]:
    """Return the validation sets of a fit: several by name if `y_val` is a dict, else one or none."""
    arguments = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val, "offset_val": offset_val}
    arguments["groups_val"] = groups_val
    if not isinstance(y_val, dict):
        check_together(arguments)
        return () if X_val is None else (ValidationSet(X_val, y_val, sample_weight_val, offset_val, groups_val),)
    for name, by_set in arguments.items():
        if by_set is None and name not in ("X_val", "y_val"):
            continue
        if not isinstance(by_set, dict) or by_set.keys() != y_val.keys():
            raise ValueError(
                f"y_val names the sets {', '.join(map(str, y_val))}. Pass a dict with the same names for {name}."
            )
    if not y_val:
        raise ValueError("y_val names no set. Pass some rows, or leave it out.")
    sets = []
    for key in y_val:
        X, y, weight, offset, groups = (None if by_set is None else by_set[key] for by_set in arguments.values())
        sets.append(ValidationSet(X, y, weight, offset, groups, name=str(key)))
    return tuple(sets)


def check_together(arguments: dict[str, Any]) -> None:
    """Refuse arguments of a validation set without its X_val and y_val."""
    if (arguments["X_val"] is None) != (arguments["y_val"] is None):
        raise ValueError("X_val and y_val go together. Pass both or neither.")
    alone = [name for name, value in arguments.items() if value is not None] if arguments["X_val"] is None else []
    if alone:
        raise ValueError(f"{alone[0]} goes with X_val. Pass X_val and y_val too.")


def split_stream(
    X: TableLike, others: dict[str, Any], categorical_features: object, name: str = "X"
) -> tuple[Any, list[Any]]:
    """Return a stream as a table in temporary files, without the named columns, and these as arrays.

    Parameters
    ----------
    X : table or stream
        A table is returned unchanged, with the other arguments.
    others : dict
        Other arguments by name: the name of a column, a list of names, or values.
    categorical_features : as the parameter
    name : str
        Name of the argument X, for messages.
    """
    stream = stream_of(X)
    if stream is None:
        return X, list(others.values())
    for option, value in others.items():
        if is_dask(value) or type(value).__module__.startswith("dask"):
            raise TypeError(
                f"{option} is a Dask collection. Name its column of {name} instead, such as {option}='y'; or start a "
                "distributed.Client, whose workers accept both."
            )
    table = stream.spooled(categorical_features)
    arrays = [_array_of(table, value, option) for option, value in others.items()]
    named = {name for value in others.values() for name in _names_in(value)}
    remaining = [j for j in range(table.n_columns) if table.names is None or table.names[j] not in named]
    if not remaining:
        raise ValueError("No column is left to learn from: all columns of the stream are named.")
    return (table.only(remaining) if named else table), arrays


def _names_in(value: Any) -> list[str]:
    """Return the column names in an argument: one, or a list of them."""
    if isinstance(value, str):
        return [value]
    is_names = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return list(value) if is_names else []


def _array_of(table: SpooledTable, value: object, option: str) -> Any:
    names = _names_in(value)
    if not names:
        return value
    arrays = [array_of(table, name, option) for name in names]
    return arrays[0] if isinstance(value, str) else np.column_stack(arrays)


def batches_of(X: TableLike, schema: Schema) -> Iterator[RawTable] | None:
    """Return the batches of a stream with the columns of a model; None if X is a table."""
    batches = batches_with(X, schema, None)
    return None if batches is None else (batch for batch, _ in batches)


def _not_empty(batches: Iterator[RawTable]) -> Iterator[RawTable]:
    """Yield batches; raise ValueError if they have no rows."""
    n_rows = 0
    for batch in batches:
        n_rows += batch.n_rows
        yield batch
    if n_rows == 0:
        raise ValueError(NO_ROWS)


def batches_with(X: TableLike, schema: Schema, offset: ColumnLike) -> Iterator[tuple[RawTable, Any]] | None:
    """Return the batches of a stream with their rows of the offset, if there is one; None if X is a table.

    Parameters
    ----------
    X : table or stream
    schema : Schema
        Columns of the model.
    offset : array-like, str or None
        Offset of all rows, or the name of its column in the stream.
    """
    stream = stream_of(X)
    if stream is None:
        return None
    if not isinstance(offset, str):
        return _with_rows(_not_empty(stream.batches(schema.names if schema.has_names else None)), offset)
    if not schema.has_names:
        raise ValueError(
            f"offset={offset!r} names a column, and the model was fitted without column names. Pass offset as an array."
        )
    return _with_column(_not_empty(stream.batches([*schema.names, offset])), offset)


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
