"""All rows of a Dask collection on some workers: in memory where there is room, else in files of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from spinney._cluster import dask
from spinney._cluster.actor import FittingActor, Model
from spinney._cluster.remote_actor import RemoteActor
from spinney._cluster.waits import WorkerLostError, gathered, in_time, threads_of_some, wait_for_a_worker
from spinney._cluster.worker_rows import n_rows_of

MOST_STARTS = 5  # of a fit that loses workers
_ROOM = 2.5  # times the size of a table that a worker needs: partitions, all rows together, what is made of them
_FILES, _FILES_A_ROW = 0.8e9, 120  # bytes that a worker needs whose table lies in files

Fitted = TypeVar("Fitted")


class WholeTable:
    """The partitions of a collection, for workers that need all of them.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed
        In order.
    """

    def __init__(self, client: dask.Client, partitions: Sequence[object]) -> None:
        threads_of_some(client)
        self._client = client
        self._partitions = list(partitions)
        self._futures = client.compute(self._partitions)
        sizeof = dask.load("dask.sizeof").sizeof
        self.n_rows = sum(gathered(client, client.map(n_rows_of, self._futures, pure=False)))
        self.n_bytes = sum(gathered(client, client.map(sizeof, self._futures, pure=False)))

    @property
    def _least_limit(self) -> float:
        """Memory of the smallest worker."""
        known = in_time(self._client, lambda: asyncio.to_thread(self._client.scheduler_info, n_workers=-1))
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

    def retried(self, fit: Callable[[], Fitted]) -> Fitted:
        """Fit, and again with the workers that are left whenever one is lost, but not without end."""
        for attempt in range(MOST_STARTS):
            try:
                return fit()
            except WorkerLostError as lost:
                if attempt + 1 == MOST_STARTS:
                    raise RuntimeError(
                        f"The cluster has lost workers {MOST_STARTS} times during the fit, the last of them {lost}. "
                        "They may lack memory: use larger workers."
                    ) from lost
                wait_for_a_worker(self._client)
                self._futures = self._client.compute(self._partitions)  # which the worker has taken with it
        raise AssertionError
