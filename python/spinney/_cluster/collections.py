"""Dask collections: their partitions, and the columns that belong to a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._cluster import dask
from spinney._cluster.actor import joined, n_rows_of
from spinney._data.columns import listed
from spinney._data.scan import is_collection
from spinney._estimator.estimator import Estimator


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
    return joined(dask.gathered(client, value.partitions)) if isinstance(value, ColumnFutures) else value


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


Method = TypeVar("Method", bound=Callable[..., Any])


def lazy_for_collections(is_one_array: Callable[[Any], bool] = lambda model: True) -> Callable[[Method], Method]:
    """Have a method that predicts a table return a lazy collection for a Dask collection.

    It does where no option (such as an offset, which is an array) is given and the model predicts one array; else the
    partitions are read one after the other, as those of any stream.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def predict(self: Estimator, X: Any, **options: Any) -> Any:
            if is_collection(X):
                check_is_fitted(self)
                if is_one_array(self) and all(value is None for value in options.values()):
                    return lazily(self, method.__name__, X)
            return method(self, X, **options)

        return cast(Method, predict)

    return decorate


def lazily(model: Estimator, method: str, X: Any) -> Any:
    """Return predictions that are computed when they are asked for, partition by partition.

    A frame gives a series, or a frame with a column for each class; an array gives an array.
    """
    if hasattr(X, "map_partitions"):
        meta = _predicted(X._meta_nonempty, model, method).iloc[:0]
        return X.map_partitions(_predicted, model, method, meta, meta=meta)
    one = getattr(model, method)(np.zeros((1, X.shape[1]), dtype=X.dtype))
    rows = X.rechunk({1: -1})
    if one.ndim == 1:
        return rows.map_blocks(_predicted, model, method, one[:0], dtype=one.dtype, drop_axis=1)
    chunks = rows.chunks[0], (one.shape[1],)
    return rows.map_blocks(_predicted, model, method, one[:0], dtype=one.dtype, chunks=chunks)


def _predicted(part: Any, model: Estimator, method: str, of_none: Any = None) -> Any:
    """Predict one partition; `of_none` is what is said of no rows."""
    if of_none is not None and n_rows_of(part) == 0:
        return of_none
    found = getattr(model, method)(part)
    if not hasattr(part, "iloc"):
        return found
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=part.index)
    is_by_class = method in ("predict_proba", "predict_log_proba")
    return pd.DataFrame(found, index=part.index, columns=model.classes_ if is_by_class else range(found.shape[1]))
