"""Dask collections: their partitions, the columns that belong to a table, and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._cluster import dask
from spinney._cluster.actor import joined, n_rows_of
from spinney._data.columns import listed
from spinney._data.scan import is_collection
from spinney._estimator.estimator import Estimator
from spinney._estimator.fit_inputs import ROW_FIELDS, RowInputs

Inputs = TypeVar("Inputs", bound=RowInputs)


@dataclass(frozen=True)
class ColumnFutures:
    """A column whose partitions are being computed."""

    partitions: list[dask.Future]


def without_named_columns(inputs: Inputs, suffix: str = "") -> Inputs:
    """Take the columns that are named out of the frame X; the inputs hold these columns instead of their names."""
    named = {field: name for field, name in _columns(inputs).items() if isinstance(name, str)}
    if not named:
        return inputs
    X: Any = inputs.X
    known = list(getattr(X, "columns", []))
    for field, name in named.items():
        if name not in known:
            raise ValueError(f"{field}{suffix}={name!r} names no column of X{suffix}, which has {listed(known)}.")
    columns = {field: X[name] for field, name in named.items()}
    return replace(inputs, X=X.drop(columns=list(named.values())), **columns)


def compute_columns(client: dask.Client, inputs: Inputs) -> Inputs:
    """Start to compute the columns that are collections; `gather_columns` waits for them."""
    lazy = {field: value for field, value in _columns(inputs).items() if hasattr(value, "dask")}
    return replace(
        inputs, **{field: ColumnFutures(client.compute(partitions_of(value))) for field, value in lazy.items()}
    )


def gather_columns(client: dask.Client, inputs: Inputs, n_rows: int | None = None, suffix: str = "") -> Inputs:
    """Return the inputs with computed columns as arrays; refuse columns that have another length than X."""
    found = {
        field: joined(dask.gather(client, value.partitions)) if isinstance(value, ColumnFutures) else value
        for field, value in _columns(inputs).items()
    }
    for field, value in found.items():
        if n_rows is not None and value is not None and len(value) != n_rows:
            raise ValueError(
                f"{field}{suffix} has {len(value)} rows and X{suffix} has {n_rows}. Take both from the same collection."
            )
    return replace(inputs, **found)


def _columns(inputs: RowInputs) -> dict[str, Any]:
    """Return the fields of the inputs that hold a value, or several, for each row of X."""
    return {field: getattr(inputs, field) for field in ROW_FIELDS}


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
    """Make a prediction method return a lazy collection for a Dask collection.

    This applies if the model predicts one array and no option, such as an offset, is passed; otherwise partitions are
    read one after the other, like any stream.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def predict(self: Estimator, X: Any, **options: Any) -> Any:
            if is_collection(X):
                check_is_fitted(self)
                if is_one_array(self) and all(value is None for value in options.values()):
                    return lazy_predictions(self, method.__name__, X)
            return method(self, X, **options)

        return cast(Method, predict)

    return decorate


def lazy_predictions(model: Estimator, method: str, X: Any) -> Any:
    """Return predictions that are computed lazily, partition by partition.

    The predictions of a frame are a series, or a frame with a column for each class; those of an array are an array.
    """
    if hasattr(X, "map_partitions"):
        meta = _predict_partition(X._meta_nonempty, model, method).iloc[:0]
        return X.map_partitions(_predict_partition, model, method, meta, meta=meta)
    one = getattr(model, method)(np.zeros((1, X.shape[1]), dtype=X.dtype))
    rows = X.rechunk({1: -1})
    if one.ndim == 1:
        return rows.map_blocks(_predict_partition, model, method, one[:0], dtype=one.dtype, drop_axis=1)
    chunks = rows.chunks[0], (one.shape[1],)
    return rows.map_blocks(_predict_partition, model, method, one[:0], dtype=one.dtype, chunks=chunks)


def _predict_partition(part: Any, model: Estimator, method: str, empty_result: Any = None) -> Any:
    """Predict one partition; `empty_result` is the prediction of an empty one."""
    if empty_result is not None and n_rows_of(part) == 0:
        return empty_result
    found = getattr(model, method)(part)
    if not hasattr(part, "iloc"):
        return found
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=part.index)
    is_by_class = method in ("predict_proba", "predict_log_proba")
    return pd.DataFrame(found, index=part.index, columns=model.classes_ if is_by_class else range(found.shape[1]))
