"""Fit and predict with Dask collections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from spinney._boosting.options.recipe import VERY_MANY_ROWS, makes_folds
from spinney._boosting.settings import BoostingSettings
from spinney._cluster.dask_carrier import DaskCarrier
from spinney._cluster.dask_forest import fit_forest as share_trees
from spinney._cluster.dask_session import MOST_STARTS
from spinney._cluster.dask_single_worker import fit_on_one
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.dask_waits import WorkerLostError, beside_others, gathered, wait_for_a_worker
from spinney._cluster.partition_holder import n_rows_of
from spinney._cluster.partitioned_table import Dealt
from spinney._cluster.support import kept_whole
from spinney._cluster.workers import joined
from spinney._data.column_names import listed
from spinney._data.scan import is_collection

LATER = ("X_val", "y_val", "sample_weight_val", "offset_val")


@beside_others()
def fit_boosting(client: Any, model: Any, X: Any, beside: dict[str, Any], checkpoint: Any) -> Any:
    """Boost on the workers that a client knows.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    X : dask DataFrame or Array
    beside : dict
        The other parameters of `fit`, by name.
    checkpoint : str, path or None
        A file on the client that keeps the rounds.
    """
    model._check_parameters()
    settings = BoostingSettings.of(model)
    why, held = kept_whole(settings, beside), list[AllRows]()
    if why is None and makes_folds(settings, beside.get("X_val") is not None or beside.get("time") is not None):
        held = [AllRows(client, _parts_of(_taken_apart(X, beside)[0])[0])]
        if held[0].n_rows < VERY_MANY_ROWS and held[0].fits:
            why = f"n_estimators='auto' looks at all of fewer than {VERY_MANY_ROWS:,} rows at once"
    if why is None:
        return _share_rows(client, model, X, beside, checkpoint, held)
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint keeps rounds whose rows are shared out, and here one worker has all of them: {why}. Leave "
            "checkpoint out; or set what shares out the rows, such as n_estimators=300."
        )
    return fit_alone(client, model, X, beside, f": {why}", *held)


def _share_rows(client: Any, model: Any, X: Any, beside: dict[str, Any], checkpoint: Any, held: list[AllRows]) -> Any:
    """Boost where the rows lie; `held` keeps the partitions until others have them."""
    X, taken = _taken_apart(X, beside)
    parts, names, n_columns = _parts_of(X)
    for attempt in range(MOST_STARTS):
        carriers: list[DaskCarrier] = []
        try:
            coming = {name: _begun(client, value) for name, value in taken.items() if name not in LATER}
            carriers.append(DaskCarrier(client, parts))
            del held[:]  # the holders have them now
            given = {name: _collected(client, value, name, carriers[0]) for name, value in coming.items()}
            coming.clear()
            later = _later(client, taken, carriers)
            table = Dealt(carriers[0], n_columns, names)
            y, weight, offset, groups, time = map(given.get, ("y", "sample_weight", "offset", "groups", "time"))
            return model._fit(table, y, weight, offset, groups, later, time, checkpoint)
        except WorkerLostError as lost:  # before the first round
            if attempt + 1 == MOST_STARTS:
                raise RuntimeError(
                    f"The cluster loses workers before the fit begins, the last of them {lost}. They may lack memory: "
                    "make smaller partitions, or use larger workers."
                ) from lost
            wait_for_a_worker(client)
        finally:
            for carrier in carriers:
                carrier.close()
    raise AssertionError


def _later(client: Any, taken: dict[str, Any], carriers: list[DaskCarrier]) -> tuple[Any, ...]:
    """Return the rows that the caller holds out; those of a collection stay where they are."""
    X_val, *others = (taken.get(name) for name in LATER)
    if not is_collection(X_val):
        return X_val, *(_here(_begun(client, value), client) for value in others)
    X_val, found = _taken_apart(X_val, {name: taken.get(name) for name in LATER[1:]}, "X_val")
    parts, names, n_columns = _parts_of(X_val)
    coming = {name: _begun(client, found[name]) for name in LATER[1:]}
    carriers.append(DaskCarrier(client, parts))
    beside = (_collected(client, value, name, carriers[-1], "X_val") for name, value in coming.items())
    return Dealt(carriers[-1], n_columns, names), *beside


@beside_others()
def fit_forest(client: Any, model: Any, X: Any, beside: dict[str, Any]) -> Any:
    """Grow the trees of a forest on all workers, each of which has all rows."""
    return _fitted_there(client, model, X, beside, share_trees, None)


@beside_others()
def fit_alone(
    client: Any, model: Any, X: Any, beside: dict[str, Any], why: str = "", rows: AllRows | None = None
) -> Any:
    """Fit a model on one worker that has all rows; `why` says so in words, `rows` are known already, if given."""
    for name in beside:
        sets = beside[name].values() if isinstance(beside[name], dict) else [beside[name]]
        if name.startswith("X_") and any(map(is_collection, sets)):
            raise TypeError(f"{name} is a Dask collection. Pass {name}.compute(): the rows held out are few.")
    return _fitted_there(client, model, X, beside, partial(fit_on_one, why=why), rows)


def _fitted_there(client: Any, model: Any, X: Any, beside: dict[str, Any], fit: Any, rows: AllRows | None) -> Any:
    """Fit a copy of a model to rows that are all in one place, and take over what it has learned."""
    model._check_parameters()
    X, taken = _taken_apart(X, beside)
    if rows is None:
        rows = AllRows(client, _parts_of(X)[0])
    done = fit(client, model, rows, {name: _here(_begun(client, value), client) for name, value in taken.items()})
    own = model.get_params(deep=False)
    for name in [name for name in vars(model) if name not in own]:
        delattr(model, name)
    model.__dict__.update({name: value for name, value in vars(done).items() if name not in own})
    return model


@dataclass(frozen=True)
class _Coming:
    """A column that is computed while other things are done, partition by partition."""

    parts: list[Any]


def _begun(client: Any, value: Any) -> Any:
    """Have a column that is a collection computed, or each of a dict of such; `_here` returns it."""
    if isinstance(value, dict):
        return {name: _begun(client, one) for name, one in value.items()}
    if not hasattr(value, "dask"):
        return value
    parts = _blocks_of(value) if hasattr(value, "chunks") else value.to_delayed()
    return _Coming(client.compute(list(parts)))


def _blocks_of(values: Any) -> list[Any]:
    """Return an array in parts, each of which has some rows and all columns."""
    return list((values if values.ndim == 1 else values.rechunk({1: -1})).to_delayed().ravel())


def _here(value: Any, client: Any) -> Any:
    """Return a column that was begun, or a dict of such, as an array."""
    if isinstance(value, dict):
        return {name: _here(one, client) for name, one in value.items()}
    return joined(gathered(client, value.parts)) if isinstance(value, _Coming) else value


def _taken_apart(X: Any, beside: dict[str, Any], table: str = "X") -> tuple[Any, dict[str, Any]]:
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


def _parts_of(X: Any) -> tuple[list[Any], list[str] | None, int]:
    """Return the partitions in order, the names of columns, and their number."""
    if hasattr(X, "columns"):
        return list(X.to_delayed()), [str(name) for name in X.columns], len(X.columns)
    if X.ndim != 2:
        raise ValueError(f"Expected a Dask array of 2 dimensions, got {X.ndim}.")
    return _blocks_of(X), None, int(X.shape[1])


def _collected(client: Any, values: Any, name: str, carrier: DaskCarrier, table: str = "X") -> Any:
    """Return the numbers or labels of all rows: they are few beside the table, and the client needs them all."""
    found, n_rows = _here(values, client), sum(carrier.n_rows_of_parts)
    if found is not None and len(found) != n_rows:
        raise ValueError(f"{name} has {len(found)} rows and {table} has {n_rows}. Take both from the same collection.")
    return found


def lazily(model: Any, method: str, X: Any) -> Any:
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


def _predicted(part: Any, model: Any, method: str, of_none: Any = None) -> Any:
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
