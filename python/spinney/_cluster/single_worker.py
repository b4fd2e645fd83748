"""Fits of Dask collections on one worker that holds all rows."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from spinney._cluster import dask
from spinney._cluster.actor import AbandonedFitError, FittingActor, Model, RemoteActor, n_rows_of, wait_until_ready
from spinney._cluster.collections import compute_columns, gather_columns, partitions_of, without_named_columns
from spinney._data.scan import is_collection
from spinney._estimator.fit_inputs import FitInputs

Fitted = TypeVar("Fitted", bound=Model)


@dask.secede_thread()
def fit_on_one_worker(
    client: dask.Client,
    model: Fitted,
    inputs: FitInputs,
    *,
    reason: str = "",
    table: WholeTable | None = None,
) -> Fitted:
    """Fit a model on the worker that has most threads.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    inputs : FitInputs
        Arguments of `fit`; X is a Dask DataFrame or Array.
    reason : str
        Why one worker needs all rows, for the progress report.
    table : WholeTable, optional
        The partitions of X, if they are computed already.
    """
    if any(is_collection(one.X) for one in inputs.validation):
        raise TypeError("X_val is a Dask collection. Pass X_val.compute(): validation sets are small.")
    return fit_copy(client, model, inputs, partial(_fitted_copy, client, reason), table)


def fit_copy(
    client: dask.Client,
    model: Fitted,
    inputs: FitInputs,
    fitted_copy: Callable[[Fitted, WholeTable, FitInputs], Fitted],
    table: WholeTable | None = None,
) -> Fitted:
    """Fit a copy of a model on workers that have all rows, and copy its fitted attributes to the model."""
    model._check_parameters()
    inputs = without_named_columns(inputs)
    table = table or WholeTable(client, partitions_of(inputs.X))
    validation = tuple(gather_columns(client, compute_columns(client, one)) for one in inputs.validation)
    here = replace(gather_columns(client, compute_columns(client, inputs)), X=None, validation=validation)
    fitted = fitted_copy(model, table, here)
    parameters = model.get_params(deep=False)
    for name in [name for name in vars(model) if name not in parameters]:
        delattr(model, name)
    vars(model).update({name: value for name, value in vars(fitted).items() if name not in parameters})
    return model


def _fitted_copy(client: dask.Client, reason: str, model: Fitted, table: WholeTable, inputs: FitInputs) -> Fitted:
    table.check_memory(model)
    parameters = model.get_params(deep=False)
    found = parameters.get("callbacks") or []
    callbacks = [found] if callable(found) else list(found)
    verbose = parameters.get("verbose", 0)
    quiet = {name: value for name, value in (("callbacks", None), ("verbose", 0)) if name in parameters}

    def report(progress: dict[str, Any]) -> bool:
        replies = [callback(progress) for callback in callbacks]  # call all of them
        if verbose:
            _print(progress)
        return any(replies)

    def fit() -> Fitted:
        address, n_threads = max(dask.threads_by_worker(client).items(), key=lambda item: (item[1], item[0]))
        if verbose:
            print(f"one worker has all {table.n_rows:,} rows{table.place}{reason}", file=sys.stderr, flush=True)
        sent = with_copied_random_state(model)
        vars(sent).update(quiet)
        with closing(table.actor(address, SingleWorkerFit, sent, n_threads)) as actor:
            wait_until_ready(client, [actor])
            first = actor.call("begin", inputs, bool(callbacks or verbose))
            fitted: Fitted = run_remote_fit(actor, first, report)
            return fitted

    return table.retry(fit)


def _print(progress: dict[str, Any]) -> None:
    """Print progress after every tenth of the rounds."""
    done, wanted = progress["round"], progress["n_estimators"]
    if done == wanted or done % max(1, wanted // 10) == 0:
        print(f"round {done} of {wanted}, loss {progress['train_loss']:.5g}", file=sys.stderr, flush=True)


def run_remote_fit(actor: RemoteActor, first: tuple[str, Any], reply: Callable[[Any], object]) -> Any:
    """Reply to the events of a fit on a worker until it ends; return the fitted model, or raise the fit's error.

    Parameters
    ----------
    actor : RemoteActor
    first : tuple
        The first event of the fit, as `FittingActor.next_event` returns it.
    reply : callable
        Returns the reply to the value of an event.
    """
    kind, value = first
    timer = dask.StallTimer(f"The worker {actor.address}")
    while kind not in ("done", "failed"):
        if kind == "busy":
            timer.check(value)
            kind, value = actor.call("next_event")
        else:
            kind, value = actor.call("resume", reply(value))
            timer = dask.StallTimer(f"The worker {actor.address}")
    if kind == "failed":
        raise value
    return value


def with_copied_random_state(model: Fitted) -> Fitted:
    """Return a copy of a model with a copy of its RandomState, if it has one."""
    copied = copy(model)
    state = model.get_params(deep=False).get("random_state")
    if isinstance(state, np.random.RandomState):
        other = np.random.RandomState()
        other.set_state(state.get_state())
        vars(copied)["random_state"] = other
        state.randint(np.iinfo(np.int32).max)  # as a fit in this process would
    return copied


class SingleWorkerFit(FittingActor):
    """A fit on a single worker, which ends when its client no longer waits."""

    def begin(self, inputs: FitInputs, reports: bool) -> tuple[str, Any]:
        """Start the fit and return its first event; with `reports`, each round waits for the client's reply."""
        model, inputs = self._model, replace(inputs, X=self._table)
        del self._table
        has_callbacks = "callbacks" in model.get_params(deep=False)
        if has_callbacks:
            model.set_params(callbacks=partial(self._after_round, reports))

        def fit() -> object:
            fitted = model._fit(inputs)
            return fitted.set_params(callbacks=None) if has_callbacks else fitted  # queues cannot be pickled

        self.start(fit)
        return self.next_event()

    def _after_round(self, reports: bool, progress: dict[str, Any]) -> bool:
        """Report a round to the client; return whether it is the last."""
        if not self.is_alive():
            raise AbandonedFitError
        return reports and bool(self.ask_client("round", progress))


MAX_ATTEMPTS = 5  # of a fit that loses workers
_MEMORY_FACTOR = 2.5  # memory of a worker over the size of the table: partitions, their concatenation, codes
_FILE_BYTES, _FILE_BYTES_PER_ROW = 0.8e9, 120  # memory of a worker whose table is spooled to files

Result = TypeVar("Result")


class WholeTable:
    """The partitions of a collection, for workers that need all rows.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed
        In order.
    """

    def __init__(self, client: dask.Client, partitions: Sequence[object]) -> None:
        dask.require_workers(client)
        self._client = client
        self._partitions = list(partitions)
        self._futures = client.compute(self._partitions)
        sizeof = dask.load("dask.sizeof").sizeof
        self.n_rows = sum(dask.gather(client, client.map(n_rows_of, self._futures, pure=False)))
        self.n_bytes = sum(dask.gather(client, client.map(sizeof, self._futures, pure=False)))

    @property
    def _least_limit(self) -> float:
        """Memory of the smallest worker."""
        known = dask.wait_for_scheduler(
            self._client, lambda: asyncio.to_thread(self._client.scheduler_info, n_workers=-1)
        )
        limits = [worker.get("memory_limit") or 0 for worker in known["workers"].values()]
        return min((limit for limit in limits if limit > 0), default=float("inf"))

    @property
    def fits(self) -> bool:
        """Whether each worker can hold all rows in memory."""
        return bool(self._least_limit >= _MEMORY_FACTOR * self.n_bytes)

    @property
    def place(self) -> str:
        """Where the rows are, as the end of a progress report."""
        return "" if self.fits else ", in files, as they do not fit into its memory"

    def check_memory(self, model: Model) -> None:
        """Refuse a table that fits neither into the memory of a worker nor into its files."""
        if self.fits:
            return
        least, wanted = self._least_limit, _FILE_BYTES + _FILE_BYTES_PER_ROW * self.n_rows
        table = f"The table takes {self.n_bytes / 1e9:.2g} GB, and a worker that holds all of its rows"
        if model._sorts_all_rows:
            raise ValueError(
                f"{table} needs {_MEMORY_FACTOR * self.n_bytes / 1e9:.2g} GB of memory; the smallest has "
                f"{least / 1e9:.2g} GB. Set max_bins=255, which spools the rows to files of each worker; or use larger "
                "workers, or gradient boosting, which partitions the rows."
            )
        if least < wanted:
            raise ValueError(
                f"{table} needs {wanted / 1e9:.2g} GB of memory even if they are spooled to files; the smallest has "
                f"{least / 1e9:.2g} GB. Use larger workers; or gradient boosting with options that partition the rows."
            )

    def actor(self, address: str, kind: type[FittingActor], model: Model, n_threads: int) -> RemoteActor:
        """Start an actor that holds all rows."""
        if self.fits:
            return RemoteActor(self._client, address, kind, model, n_threads, None, *self._futures)
        return RemoteActor(self._client, address, kind, model, n_threads, [future.key for future in self._futures])

    def retry(self, fit: Callable[[], Result]) -> Result:
        """Fit, and retry with the remaining workers if one is lost, at most `MAX_ATTEMPTS` times."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                return fit()
            except dask.WorkerLostError as lost:
                if attempt + 1 == MAX_ATTEMPTS:
                    raise RuntimeError(
                        f"The cluster has lost workers {MAX_ATTEMPTS} times during the fit, the last of them {lost}. "
                        "They may lack memory: use larger workers."
                    ) from lost
                dask.wait_for_worker(self._client)
                self._futures = self._client.compute(self._partitions)  # those of the lost worker are gone
        raise AssertionError
