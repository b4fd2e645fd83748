"""Dask collections: their partitions, and the columns that belong to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spinney._cluster import dask
from spinney._cluster.waits import gathered
from spinney._cluster.worker_rows import joined
from spinney._data.columns import listed


@dataclass(frozen=True)
class ColumnFutures:
    """A column that is computed while other things are done, partition by partition."""

    partitions: list[dask.Future]


def begun_columns(client: dask.Client, value: object) -> object:
    """Have a column that is a collection computed, or each of a dict of such; `joined_columns` returns it."""
    if isinstance(value, dict):
        return {name: begun_columns(client, one) for name, one in value.items()}
    return ColumnFutures(client.compute(partitions_of(value))) if hasattr(value, "dask") else value


def joined_columns(client: dask.Client, value: object) -> Any:
    """Return a column that was begun, or a dict of such, as an array."""
    if isinstance(value, dict):
        return {name: joined_columns(client, one) for name, one in value.items()}
    return joined(gathered(client, value.partitions)) if isinstance(value, ColumnFutures) else value


def column_of_all_rows(client: dask.Client, value: object, name: str, n_rows: int, table: str = "X") -> Any:
    """Return the numbers or labels of all rows: they are few beside the table, and the client needs them all."""
    found = joined_columns(client, value)
    if found is not None and len(found) != n_rows:
        raise ValueError(f"{name} has {len(found)} rows and {table} has {n_rows}. Take both from the same collection.")
    return found


def without_named_columns(X: Any, arguments: Mapping[str, object], table: str = "X") -> tuple[Any, dict[str, object]]:
    """Take columns that arguments name out of a frame; return what remains, and the arguments with these columns."""
    mine = {option: name for option, name in arguments.items() if table != "X" or not option.endswith("_val")}
    named = {option: name for option, name in mine.items() if isinstance(name, str)}
    if not named:
        return X, dict(arguments)
    columns = list(getattr(X, "columns", []))
    for option, name in named.items():
        if name not in columns:
            raise ValueError(f"{option}={name!r} names no column of {table}, which has {listed(columns)}.")
    return X.drop(columns=list(named.values())), {**arguments, **{option: X[name] for option, name in named.items()}}


def partitions_of(values: Any) -> list[object]:
    """Return the partitions in order, as delayed; those of an array have some rows and all columns."""
    if not hasattr(values, "chunks"):
        return list(values.to_delayed())
    return list((values if values.ndim == 1 else values.rechunk({1: -1})).to_delayed().ravel())


def columns_of(X: Any) -> tuple[int, list[str] | None]:
    """Return the number of columns of a table, and their names."""
    if hasattr(X, "columns"):
        return len(X.columns), [str(name) for name in X.columns]
    if X.ndim != 2:
        raise ValueError(f"Expected a Dask array of 2 dimensions, got {X.ndim}.")
    return int(X.shape[1]), None
