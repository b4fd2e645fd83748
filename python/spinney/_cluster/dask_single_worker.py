"""Fits of Dask collections that one worker does, which all rows are brought to."""

from __future__ import annotations

import sys
from typing import Any

from spinney._cluster.dask_forest import with_own_draws
from spinney._cluster.dask_session import begun_again, conversation, talk
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.dask_waits import threads_of
from spinney._cluster.workers import LoneFit


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
