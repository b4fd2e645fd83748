"""Predictions of Dask collections, which are computed partition by partition when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._cluster.worker_rows import n_rows_of
from spinney._data.scan import is_collection
from spinney._estimator.estimator import Estimator

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
