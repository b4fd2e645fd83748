"""Streams of tables in the place of X: the columns that are named beside them are taken out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spinney._data.columns import RawTable
from spinney._data.scan import is_dask, stream_of
from spinney._data.schema import Schema
from spinney._data.spool import array_of


def taken_apart(X: Any, beside: dict[str, Any], categorical_features: Any, name: str = "X") -> tuple[Any, list[Any]]:
    """Return a stream as a table that lies in files, without the columns that are named, and these as arrays.

    Parameters
    ----------
    X : table or stream
        What is no stream is returned as it is, with what is beside it.
    beside : dict
        By the name of a parameter: the name of a column, or what it is without a stream.
    categorical_features : as the parameter
    name : str
        What the caller calls the stream.
    """
    stream = stream_of(X)
    if stream is None:
        return X, list(beside.values())
    for option, value in beside.items():
        if is_dask(value) or type(value).__module__.startswith("dask"):
            raise TypeError(f"{option} is a Dask collection. Name its column of {name} instead, such as {option}='y'.")
    table = stream.spooled(categorical_features)
    arrays = [array_of(table, value, option) if isinstance(value, str) else value for option, value in beside.items()]
    taken = {value for value in beside.values() if isinstance(value, str)}
    kept = [j for j in range(table.n_columns) if table.names is None or table.names[j] not in taken]
    if not kept:
        raise ValueError("No column is left to learn from: all columns of the stream are named.")
    return (table.only(kept) if taken else table), arrays


def batches_of(X: Any, schema: Schema) -> Iterator[RawTable] | None:
    """Return the rows of a stream, some at a time, with the columns of a model; None if it is no stream."""
    stream = stream_of(X)
    return None if stream is None else stream.batches(schema.names if schema.has_names else None)
