"""Fits of Dask collections that one worker does, which all rows are brought to."""

from __future__ import annotations

import sys
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from spinney._cluster.collections import begun_columns, joined_columns, partitions_of, without_named_columns
from spinney._cluster.dask_session import begun_again, conversation, talk
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.dask_waits import beside_others, threads_of
from spinney._cluster.workers import LoneFit
from spinney._data.scan import is_collection


@beside_others()
def fit_alone(
    client: Any, model: Any, X: Any, beside: dict[str, Any], why: str = "", rows: AllRows | None = None
) -> Any:
    """Fit a model on one worker that has all rows; `why` says so in words, `rows` are known already, if given."""
    for name in beside:
        sets = beside[name].values() if isinstance(beside[name], dict) else [beside[name]]
        if name.startswith("X_") and any(map(is_collection, sets)):
            raise TypeError(f"{name} is a Dask collection. Pass {name}.compute(): the rows held out are few.")
    return fit_copy(client, model, X, beside, partial(fit_on_one, why=why), rows)


def fit_copy(client: Any, model: Any, X: Any, beside: dict[str, Any], fit: Any, rows: AllRows | None) -> Any:
    """Fit a copy of a model to rows that are all in one place, and take over what it has learned."""
    model._check_parameters()
    X, taken = without_named_columns(X, beside)
    if rows is None:
        rows = AllRows(client, partitions_of(X)[0])
    done = fit(
        client,
        model,
        rows,
        {name: joined_columns(begun_columns(client, value), client) for name, value in taken.items()},
    )
    own = model.get_params(deep=False)
    for name in [name for name in vars(model) if name not in own]:
        delattr(model, name)
    model.__dict__.update({name: value for name, value in vars(done).items() if name not in own})
    return model


def fit_on_one(client: Any, model: Any, rows: AllRows, beside: dict[str, Any], why: str = "") -> Any:
    """Return a copy of a model, fitted by the one of the workers that has most threads.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    rows : AllRows
    beside : dict
        The other parameters of `fit`, here.
    why : str
        Why one worker does it, in words.
    """
    if not rows.fits:
        rows.check_files(model)
    callbacks = getattr(model, "callbacks", None) or []
    watches = [callbacks] if callable(callbacks) else list(callbacks)
    return begun_again(client, rows, lambda: _fitted_by(client, model, rows, beside, watches, why))


def _fitted_by(client: Any, model: Any, rows: AllRows, beside: dict[str, Any], callbacks: list[Any], why: str) -> Any:
    address, n_threads = max(threads_of(client).items(), key=lambda item: (item[1], item[0]))
    verbose = getattr(model, "verbose", 0)
    if verbose:
        print(f"one worker has all {rows.n_rows:,} rows{rows.place}{why}", file=sys.stderr, flush=True)
    sent = with_own_draws(model)
    sent.__dict__.update({name: None for name in ("callbacks",) if hasattr(model, name)})
    sent.__dict__.update({name: 0 for name in ("verbose",) if hasattr(model, name)})

    def reply(progress: dict[str, Any]) -> bool:
        answers = [callback(progress) for callback in callbacks]  # all are called, whatever one says
        if verbose:
            _report(progress)
        return any(answers)

    with talk(client) as (fit, actors):
        rows.bring(fit, [address], model)
        actors.make(address, LoneFit, fit, address, sent, n_threads, bool(callbacks or verbose))
        return conversation(actors, address, actors.call(address, "begin", beside), reply)


def _report(progress: dict[str, Any]) -> None:
    """Tell of every tenth part of the rounds."""
    done, wanted = progress["round"], progress["n_estimators"]
    if done == wanted or done % max(1, wanted // 10) == 0:
        print(f"round {done} of {wanted}, loss {progress['train_loss']:.5g}", file=sys.stderr, flush=True)


def with_own_draws(model: Any) -> Any:
    """Return a copy of a model whose state of random numbers, if it has one, is its own."""
    copied: Any = copy(model)
    state: Any = getattr(model, "random_state", None)
    if hasattr(state, "randint"):
        copied.random_state = np.random.RandomState()
        copied.random_state.set_state(state.get_state())
        state.randint(np.iinfo(np.int32).max)  # as a fit in this process would
    return copied
