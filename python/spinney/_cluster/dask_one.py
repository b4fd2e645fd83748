"""Fits of Dask collections that one worker does, which all rows are brought to."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any
from uuid import uuid4

from spinney._cluster.dask_actors import Actors, WorkerLostError
from spinney._cluster.dask_forest import MOST_STARTS, with_own_draws
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.left import forget_everywhere
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
    for attempt in range(MOST_STARTS):
        try:
            return _fitted_by(client, model, rows, beside, watches, why)
        except WorkerLostError as lost:
            if attempt + 1 == MOST_STARTS:
                raise RuntimeError(
                    f"The cluster has lost workers {MOST_STARTS} times during the fit, the last of them {lost}. They "
                    "may lack memory: use larger workers."
                ) from lost
            client.wait_for_workers(1, timeout=60)
            rows.renew()
    raise AssertionError


def _fitted_by(client: Any, model: Any, rows: AllRows, beside: dict[str, Any], callbacks: list[Any], why: str) -> Any:
    address, n_threads = max(client.nthreads().items(), key=lambda item: (item[1], item[0]))
    fit, actors = f"spinney-{uuid4().hex}", Actors(client)
    verbose = getattr(model, "verbose", 0)
    if verbose:
        print(f"one worker has all {rows.n_rows:,} rows{rows.place}{why}", file=sys.stderr, flush=True)
    sent = with_own_draws(model)
    sent.__dict__.update({name: None for name in ("callbacks",) if hasattr(model, name)})
    sent.__dict__.update({name: 0 for name in ("verbose",) if hasattr(model, name)})
    try:
        rows.bring(fit, [address], model)
        actors.make(address, LoneFit, fit, address, sent, n_threads, bool(callbacks or verbose))
        said, what = actors.call(address, "begin", beside)
        while said in ("round", "busy"):
            answer = None
            if said == "round":
                answers = [callback(what) for callback in callbacks]  # all are called, whatever one says
                answer = any(answers)
                if verbose:
                    _report(what)
            said, what = actors.call(address, "go_on", answer)
        if said == "failed":
            raise what
        return what
    except BaseException:
        if address in actors:
            with suppress(WorkerLostError):
                actors.send(address, "give_up")  # and wait for nothing
        forget_everywhere(client, fit)
        raise
    finally:
        actors.close()


def _report(progress: dict[str, Any]) -> None:
    """Tell of every tenth part of the rounds."""
    done, wanted = progress["round"], progress["n_estimators"]
    if done == wanted or done % max(1, wanted // 10) == 0:
        print(f"round {done} of {wanted}, loss {progress['train_loss']:.5g}", file=sys.stderr, flush=True)
