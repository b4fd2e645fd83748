"""Fit and predict with Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._cluster import dask_forest
from spinney._cluster.dask_actors import WorkerLostError
from spinney._cluster.dask_carrier import DaskCarrier
from spinney._cluster.deal import Dealt
from spinney._cluster.holder import n_rows_of
from spinney._data.scan import active_client

_MOST_STARTS = 5


def fit_boosting(model: Any, X: Any, beside: dict[str, Any], checkpoint: Any) -> Any:
    """Boost on the workers that the active client knows.

    Parameters
    ----------
    model : estimator
    X : dask DataFrame or Array
    beside : dict
        The other parameters of `fit`, by name.
    checkpoint : str, path or None
        A file on the client that keeps the rounds.
    """
    client = active_client()
    _check_request(model, beside)
    X, taken = _taken_apart(X, beside)
    y, weight = taken["y"], taken["sample_weight"]
    parts, names, n_columns = _parts_of(X)
    for attempt in range(_MOST_STARTS):
        carrier = None
        try:
            carrier = DaskCarrier(client, parts)
            target, weights = _collected(y, "y", carrier), _collected(weight, "sample_weight", carrier)
            table = Dealt(carrier, n_columns, names)
            return model._fit(table, target, weights, None, None, (None, None, None, None), None, checkpoint)
        except WorkerLostError as lost:  # before the first round
            if attempt + 1 == _MOST_STARTS:
                raise RuntimeError(
                    f"The cluster loses workers before the fit begins, the last of them {lost}."
                ) from lost
        finally:
            if carrier is not None:
                carrier.close()
    raise AssertionError


def fit_forest(model: Any, X: Any, beside: dict[str, Any]) -> Any:
    """Grow the trees of a forest on all workers, each of which has all rows."""
    return _fitted_there(model, X, beside, dask_forest.fit_forest)


def fit_tree(model: Any, X: Any, beside: dict[str, Any]) -> Any:
    """Grow a single tree on a worker that has all rows."""
    for name in ("X_val", "y_val", "sample_weight_val"):
        if hasattr(beside.get(name), "dask"):
            raise TypeError(f"{name} is a Dask collection. Pass {name}.compute(): the rows held out are few.")
    return _fitted_there(model, X, beside, dask_forest.fit_on_one)


def _fitted_there(model: Any, X: Any, beside: dict[str, Any], fit: Any) -> Any:
    """Fit a copy of a model to rows that are all in one place, and take over what it has learned."""
    model._check_parameters()
    client = active_client()
    X, taken = _taken_apart(X, beside)
    parts, _, _ = _parts_of(X)
    for name in ("y", "sample_weight", "groups", "exposure"):
        if hasattr(taken.get(name), "dask"):
            taken[name] = taken[name].compute()
    done = fit(client, model, parts, taken)
    own = model.get_params(deep=False)
    for name in [name for name in vars(model) if name not in own]:
        delattr(model, name)
    model.__dict__.update({name: value for name, value in vars(done).items() if name not in own})
    return model


def _check_request(model: Any, beside: dict[str, Any]) -> None:
    """Refuse what rows on several workers cannot do yet."""
    for name, value in beside.items():
        if name not in ("y", "sample_weight") and value is not None:
            raise ValueError(
                f"{name} is not taken with a Dask collection yet. Leave it out, or pass the rows as spinney.scan(X), "
                "which are then read at the client, some at a time."
            )
    refused = {
        "n_estimators": (
            model.n_estimators == "auto" and not model.early_stopping,
            "a number of rounds, such as n_estimators=300, or early_stopping=True beside it",
        ),
        "effort": (model.effort == "search", "a number"),
        "growth": (model.growth == "symmetric", "growth='leaf' or growth='depth'"),
        "leaves": (model._setting("leaves") == "vector", "leaves='single'"),
        "sampling": (model._setting("sampling") != "uniform", "sampling='uniform'"),
        "drop_rate": (model._setting("drop_rate") > 0, "drop_rate=0"),
        "forced_splits": (model._setting("forced_splits") is not None, "forced_splits=None"),
        "hierarchical_shrinkage": (model._setting("hierarchical_shrinkage") > 0, "hierarchical_shrinkage=0"),
        "linear_leaves": (model._setting("linear_leaves"), "linear_leaves=False"),
        "n_parallel_trees": (model._setting("n_parallel_trees") > 1, "n_parallel_trees=1"),
        "scoring": (model.scoring is not None, "scoring=None, the loss"),
        "init": (model._starts_at_model, "init='constant'"),
        "loss": (not _is_plain(getattr(model, "loss", None)), "a loss whose leaves are not refitted"),
    }
    for name, (is_refused, remedy) in refused.items():
        if is_refused:
            raise ValueError(
                f"{name}={getattr(model, name, None)!r} does not go with rows on several workers yet. Use {remedy}; or "
                "pass spinney.scan(X), whose rows are read at the client, some at a time."
            )


def _is_plain(loss: Any) -> bool:
    known = _engine.losses()
    if not isinstance(loss, str):
        return False
    return not known.get(loss, {}).get("refits_leaves", False) and loss != "log_cosh"


def _taken_apart(X: Any, beside: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take columns that are named out of the frame; return what remains, and what is beside it."""
    named = {option: name for option, name in beside.items() if isinstance(name, str)}
    if not named:
        return X, dict(beside)
    columns = list(getattr(X, "columns", []))
    for option, name in named.items():
        if name not in columns:
            raise ValueError(f"{option}={name!r} names no column of X.")
    return X.drop(columns=list(named.values())), beside | {option: X[name] for option, name in named.items()}


def _parts_of(X: Any) -> tuple[list[Any], list[str] | None, int]:
    """Return the partitions in order, the names of columns, and their number."""
    if hasattr(X, "columns"):
        return list(X.to_delayed()), [str(name) for name in X.columns], len(X.columns)
    if X.ndim != 2:
        raise ValueError(f"Expected a Dask array of 2 dimensions, got {X.ndim}.")
    return list(X.rechunk({1: -1}).to_delayed().ravel()), None, int(X.shape[1])


def _collected(values: Any, name: str, carrier: DaskCarrier) -> Any:
    """Return the numbers or labels of all rows: they are few beside the table, and the client needs them all."""
    found = values.compute() if hasattr(values, "dask") else values
    n_rows = sum(carrier.n_rows_of_parts)
    if found is not None and len(found) != n_rows:
        raise ValueError(f"{name} has {len(found)} rows and X has {n_rows}. Take both from the same collection.")
    return found


def lazily(model: Any, method: str, X: Any) -> Any:
    """Return predictions that are computed when they are asked for, partition by partition.

    A frame gives a series, or a frame with a column for each class; an array gives an array.
    """
    if hasattr(X, "map_partitions"):
        meta = _predicted(X._meta_nonempty, model, method).iloc[:0]
        return X.map_partitions(_predicted, model, method, meta=meta)
    one = getattr(model, method)(np.zeros((1, X.shape[1]), dtype=X.dtype))
    rows = X.rechunk({1: -1})
    if one.ndim == 1:
        return rows.map_blocks(_predicted, model, method, dtype=one.dtype, drop_axis=1)
    return rows.map_blocks(_predicted, model, method, dtype=one.dtype, chunks=(rows.chunks[0], (one.shape[1],)))


def _predicted(part: Any, model: Any, method: str) -> Any:
    """Predict one partition."""
    if not hasattr(part, "iloc"):
        if n_rows_of(part):
            return getattr(model, method)(part)
        one = getattr(model, method)(np.zeros((1, part.shape[1]), dtype=part.dtype))
        return one[:0]
    import pandas as pd

    if len(part) == 0:
        width = len(model.classes_) if method == "predict_proba" else 0
        return pd.DataFrame(np.zeros((0, width)), columns=model.classes_) if width else pd.Series([], dtype=float)
    found = getattr(model, method)(part)
    if found.ndim == 1:
        return pd.Series(found, index=part.index)
    columns = model.classes_ if method == "predict_proba" else range(found.shape[1])
    return pd.DataFrame(found, index=part.index, columns=columns)
