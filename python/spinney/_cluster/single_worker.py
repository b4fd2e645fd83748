"""Fits of Dask collections that one worker does, which has all rows."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from typing import Any, TypeVar

import numpy as np

from spinney._cluster import dask
from spinney._cluster.actor import FittingActor, GivenUpError, Model, n_rows_of
from spinney._cluster.collections import begun_columns, joined_columns, partitions_of, without_named_columns
from spinney._cluster.remote_actor import RemoteActor, made
from spinney._data.scan import is_collection

Arguments = Mapping[str, object]  # of `fit`, but X, by name
Fitted = TypeVar("Fitted", bound=Model)


@dask.thread_left_to_others()
def fit_on_one_worker(
    client: dask.Client,
    model: Fitted,
    X: object,
    arguments: Arguments,
    *,
    why: str = "",
    rows: WholeTable | None = None,
) -> Fitted:
    """Fit a model on the worker that has most threads.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    X : dask DataFrame or Array
    arguments : dict
        The other parameters of `fit`, by name.
    why : str
        Why one worker does it, in words.
    rows : WholeTable, optional
        What is known of the rows already.
    """
    for name, value in arguments.items():
        sets = value.values() if isinstance(value, dict) else [value]
        if name.startswith("X_") and any(map(is_collection, sets)):
            raise TypeError(f"{name} is a Dask collection. Pass {name}.compute(): the rows held out are few.")
    return fit_copy(client, model, X, arguments, partial(_fitted_copy, client, why), rows)


def fit_copy(
    client: dask.Client,
    model: Fitted,
    X: object,
    arguments: Arguments,
    fitted_copy: Callable[[Fitted, WholeTable, dict[str, Any]], Fitted],
    rows: WholeTable | None = None,
) -> Fitted:
    """Fit a copy of a model on workers that have all rows, and take over what it has learned."""
    model._check_parameters()
    X, columns = without_named_columns(X, arguments)
    rows = rows or WholeTable(client, partitions_of(X))
    here = {name: joined_columns(client, begun_columns(client, value)) for name, value in columns.items()}
    fitted = fitted_copy(model, rows, here)
    parameters = model.get_params(deep=False)
    for name in [name for name in vars(model) if name not in parameters]:
        delattr(model, name)
    vars(model).update({name: value for name, value in vars(fitted).items() if name not in parameters})
    return model


def _fitted_copy(client: dask.Client, why: str, model: Fitted, rows: WholeTable, arguments: dict[str, Any]) -> Fitted:
    rows.check_memory(model)
    parameters = model.get_params(deep=False)
    found = parameters.get("callbacks") or []
    callbacks = [found] if callable(found) else list(found)
    verbose = parameters.get("verbose", 0)
    quiet = {name: value for name, value in (("callbacks", None), ("verbose", 0)) if name in parameters}

    def report(progress: dict[str, Any]) -> bool:
        replies = [callback(progress) for callback in callbacks]  # all are called, whatever one says
        if verbose:
            _print(progress)
        return any(replies)

    def fit() -> Fitted:
        address, n_threads = max(dask.threads_of(client).items(), key=lambda item: (item[1], item[0]))
        if verbose:
            print(f"one worker has all {rows.n_rows:,} rows{rows.place}{why}", file=sys.stderr, flush=True)
        sent = with_own_draws(model)
        vars(sent).update(quiet)
        with closing(rows.actor(address, LoneFit, sent, n_threads)) as actor:
            made(client, [actor])
            first = actor.call("begin", arguments, bool(callbacks or verbose))
            fitted: Fitted = conversation(actor, first, report)
            return fitted

    return rows.retried(fit)


def _print(progress: dict[str, Any]) -> None:
    """Report every tenth part of the rounds."""
    done, wanted = progress["round"], progress["n_estimators"]
    if done == wanted or done % max(1, wanted // 10) == 0:
        print(f"round {done} of {wanted}, loss {progress['train_loss']:.5g}", file=sys.stderr, flush=True)


def conversation(actor: RemoteActor, first: tuple[str, Any], reply: Callable[[Any], object]) -> Any:
    """Return the model that an actor fits, or raise what stands in its way.

    Parameters
    ----------
    actor : RemoteActor
    first : tuple
        The first event of the fit, as `FittingActor.next_event` returns it.
    reply : callable
        Returns what the fit asks for.
    """
    kind, what = first
    patience = dask.Patience(f"The worker {actor.address}")
    while kind not in ("done", "failed"):
        if kind == "busy":
            patience.check(what)
            kind, what = actor.call("next_event")
        else:
            kind, what = actor.call("go_on", reply(what))
            patience = dask.Patience(f"The worker {actor.address}")
    if kind == "failed":
        raise what
    return what


def with_own_draws(model: Fitted) -> Fitted:
    """Return a copy of a model whose state of random numbers, if it has one, is its own."""
    copied = copy(model)
    state = model.get_params(deep=False).get("random_state")
    if isinstance(state, np.random.RandomState):
        own = np.random.RandomState()
        own.set_state(state.get_state())
        vars(copied)["random_state"] = own
        state.randint(np.iinfo(np.int32).max)  # as a fit in this process would
    return copied


class LoneFit(FittingActor):
    """A fit that one worker does alone, and that ends when nobody waits for it any more."""

    def begin(self, arguments: dict[str, Any], reports: bool) -> tuple[str, Any]:
        """Begin the fit; return its first event. `reports`: each round waits until the client has seen it."""
        model, table = self._model, self._table
        del self._table
        is_watched = "callbacks" in model.get_params(deep=False)
        if is_watched:
            model.set_params(callbacks=partial(self._after_round, reports))

        def fit() -> object:
            fitted = model.fit(table, **arguments)
            return fitted.set_params(callbacks=None) if is_watched else fitted  # queues stay here

        self.start(fit)
        return self.next_event()

    def _after_round(self, reports: bool, progress: dict[str, Any]) -> bool:
        """Report a round to the client; return whether it is the last."""
        if not self.is_held():
            raise GivenUpError
        return reports and bool(self.ask_client("round", progress))


MOST_STARTS = 5  # of a fit that loses workers
_ROOM = 2.5  # times the size of a table that a worker needs: partitions, all rows together, what is made of them
_FILES, _FILES_A_ROW = 0.8e9, 120  # bytes that a worker needs whose table lies in files

Result = TypeVar("Result")


class WholeTable:
    """The partitions of a collection, for workers that need all of them.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed
        In order.
    """

    def __init__(self, client: dask.Client, partitions: Sequence[object]) -> None:
        dask.threads_of_some(client)
        self._client = client
        self._partitions = list(partitions)
        self._futures = client.compute(self._partitions)
        sizeof = dask.load("dask.sizeof").sizeof
        self.n_rows = sum(dask.gathered(client, client.map(n_rows_of, self._futures, pure=False)))
        self.n_bytes = sum(dask.gathered(client, client.map(sizeof, self._futures, pure=False)))

    @property
    def _least_limit(self) -> float:
        """Memory of the smallest worker."""
        known = dask.in_time(self._client, lambda: asyncio.to_thread(self._client.scheduler_info, n_workers=-1))
        limits = [worker.get("memory_limit") or 0 for worker in known["workers"].values()]
        return min((limit for limit in limits if limit > 0), default=float("inf"))

    @property
    def fits(self) -> bool:
        """Whether each worker can hold all rows in memory."""
        return bool(self._least_limit >= _ROOM * self.n_bytes)

    @property
    def place(self) -> str:
        """Say where the rows lie."""
        return "" if self.fits else ", in files, as they do not fit into its memory"

    def check_memory(self, model: Model) -> None:
        """Refuse a table that no worker can hold, and that cannot lie in files."""
        if self.fits:
            return
        least, wanted = self._least_limit, _FILES + _FILES_A_ROW * self.n_rows
        lacks = f"The table takes {self.n_bytes / 1e9:.2g} GB, and a worker that has all of its rows"
        if model._sorts_all_rows:
            raise ValueError(
                f"{lacks} needs {_ROOM * self.n_bytes / 1e9:.2g} GB of memory; the smallest has {least / 1e9:.2g} GB. "
                "Set max_bins=255, and the rows lie in files of each worker; or use larger workers, or gradient "
                "boosting, which partitions the rows."
            )
        if least < wanted:
            raise ValueError(
                f"{lacks} needs {wanted / 1e9:.2g} GB of memory even where they lie in files; the smallest has "
                f"{least / 1e9:.2g} GB. Use larger workers; or gradient boosting with options that partition the rows."
            )

    def actor(self, address: str, kind: type[FittingActor], model: Model, n_threads: int) -> RemoteActor:
        """Begin to make an actor that has all rows."""
        if self.fits:
            return RemoteActor(self._client, address, kind, model, n_threads, None, *self._futures)
        return RemoteActor(self._client, address, kind, model, n_threads, [future.key for future in self._futures])

    def retried(self, fit: Callable[[], Result]) -> Result:
        """Fit, and again with the workers that are left whenever one is lost, but not without end."""
        for attempt in range(MOST_STARTS):
            try:
                return fit()
            except dask.WorkerLostError as lost:
                if attempt + 1 == MOST_STARTS:
                    raise RuntimeError(
                        f"The cluster has lost workers {MOST_STARTS} times during the fit, the last of them {lost}. "
                        "They may lack memory: use larger workers."
                    ) from lost
                dask.wait_for_a_worker(self._client)
                self._futures = self._client.compute(self._partitions)  # which the worker has taken with it
        raise AssertionError
