"""Dask collections: their partitions, and the columns that belong to a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinney._cluster.dask_waits import gathered
from spinney._cluster.workers import joined
from spinney._data.column_names import listed


@dataclass(frozen=True)
class _Coming:
    """A column that is computed while other things are done, partition by partition."""

    parts: list[Any]


def begun_columns(client: Any, value: Any) -> Any:
    """Have a column that is a collection computed, or each of a dict of such; `_here` returns it."""
    if isinstance(value, dict):
        return {name: begun_columns(client, one) for name, one in value.items()}
    if not hasattr(value, "dask"):
        return value
    parts = _blocks_of(value) if hasattr(value, "chunks") else value.to_delayed()
    return _Coming(client.compute(list(parts)))


def _blocks_of(values: Any) -> list[Any]:
    """Return an array in parts, each of which has some rows and all columns."""
    return list((values if values.ndim == 1 else values.rechunk({1: -1})).to_delayed().ravel())


def joined_columns(value: Any, client: Any) -> Any:
    """Return a column that was begun, or a dict of such, as an array."""
    if isinstance(value, dict):
        return {name: joined_columns(one, client) for name, one in value.items()}
    return joined(gathered(client, value.parts)) if isinstance(value, _Coming) else value


def without_named_columns(X: Any, beside: dict[str, Any], table: str = "X") -> tuple[Any, dict[str, Any]]:
    """Take columns that are named out of the frame; return what remains, and what is beside it."""
    mine = {option: name for option, name in beside.items() if table != "X" or not option.endswith("_val")}
    named = {option: name for option, name in mine.items() if isinstance(name, str)}
    if not named:
        return X, dict(beside)
    columns = list(getattr(X, "columns", []))
    for option, name in named.items():
        if name not in columns:
            raise ValueError(f"{option}={name!r} names no column of {table}, which has {listed(columns)}.")
    return X.drop(columns=list(named.values())), beside | {option: X[name] for option, name in named.items()}


def partitions_of(X: Any) -> tuple[list[Any], list[str] | None, int]:
    """Return the partitions in order, the names of columns, and their number."""
    if hasattr(X, "columns"):
        return list(X.to_delayed()), [str(name) for name in X.columns], len(X.columns)
    if X.ndim != 2:
        raise ValueError(f"Expected a Dask array of 2 dimensions, got {X.ndim}.")
    return _blocks_of(X), None, int(X.shape[1])


def column_of_all_rows(client: Any, values: Any, name: str, n_rows: int, table: str = "X") -> Any:
    """Return the numbers or labels of all rows: they are few beside the table, and the client needs them all."""
    found = joined_columns(values, client)
    if found is not None and len(found) != n_rows:
        raise ValueError(f"{name} has {len(found)} rows and {table} has {n_rows}. Take both from the same collection.")
    return found
