"""All rows of a Dask collection on some workers: in memory where there is room, else in files of each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from spinney._cluster.blocks import n_rows_of
from spinney._cluster.dask_waits import gathered, in_time, threads_of
from spinney._cluster.workers import feed_table, leave_table

_ROOM = 2.5  # times the size of a table that a worker needs: partitions, all rows together, what is made of them
_FILES, _FILES_A_ROW = 0.8e9, 120  # bytes that a worker needs whose table lies in files
_AT_ONCE = 4  # partitions that are on their way to files


class AllRows:
    """The partitions of a collection, and where all of them fit.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed
        The partitions, in order.
    """

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        from dask.sizeof import sizeof

        if not threads_of(client):
            raise RuntimeError("The cluster has no workers. Start some, or wait for them with client.wait_for_workers.")
        self._client = client
        self._delayed = list(parts)
        self._futures = client.compute(self._delayed)
        self.n_rows = sum(gathered(client, client.map(n_rows_of, self._futures, pure=False)))
        self.n_bytes = sum(gathered(client, client.map(sizeof, self._futures, pure=False)))

    @property
    def _least_limit(self) -> float:
        """Memory of the smallest worker."""
        known = in_time(self._client, lambda: asyncio.to_thread(self._client.scheduler_info, n_workers=-1))
        workers = known["workers"].values()
        limits = [worker.get("memory_limit") or 0 for worker in workers]
        return min((limit for limit in limits if limit > 0), default=float("inf"))

    @property
    def fits(self) -> bool:
        """Whether each worker can hold all rows in memory."""
        return bool(self._least_limit >= _ROOM * self.n_bytes)

    def check_files(self, model: Any) -> None:
        """Refuse a table that no worker can hold, and that cannot lie in files."""
        least, wanted = self._least_limit, _FILES + _FILES_A_ROW * self.n_rows
        lacks = f"The table takes {self.n_bytes / 1e9:.2g} GB, and a worker that has all of its rows"
        if model._sorts_all_rows:
            raise ValueError(
                f"{lacks} needs {_ROOM * self.n_bytes / 1e9:.2g} GB of memory; the smallest has {least / 1e9:.2g} GB. "
                "Set max_bins=255, and the rows lie in files of each worker; or use larger workers, or gradient "
                "boosting, which shares out the rows."
            )
        if least < wanted:
            raise ValueError(
                f"{lacks} needs {wanted / 1e9:.2g} GB of memory even where they lie in files; the smallest has "
                f"{least / 1e9:.2g} GB. Use larger workers; or gradient boosting with options that share out the rows."
            )

    def renew(self) -> None:
        """Make the partitions anew that a worker has taken with it."""
        self._futures = self._client.compute(self._delayed)

    def bring(self, fit: str, workers: Sequence[str], model: Any) -> None:
        """Leave all rows on some workers, for an actor of each."""
        submit = self._client.submit
        if self.fits:
            left = {a: submit(leave_table, fit, a, *self._futures, workers=[a], pure=False) for a in workers}
            for address, future in left.items():
                gathered(self._client, [future], address)
            return
        for first in range(0, len(self._futures), _AT_ONCE):
            some, is_last = self._futures[first : first + _AT_ONCE], first + _AT_ONCE >= len(self._futures)
            given = is_last, model.categorical_features
            left = {a: submit(feed_table, fit, a, *given, *some, workers=[a], pure=False) for a in workers}
            for address, future in left.items():
                gathered(self._client, [future], address)

    @property
    def place(self) -> str:
        """Say where the rows lie."""
        return "" if self.fits else ", in files, as they do not fit into its memory"
