"""Rows of a Dask collection on a worker: some of a partition, all of them in memory, or all of them in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from spinney._cluster import dask
from spinney._cluster.waits import LOOK_EVERY
from spinney._data.scan import Scan

_HELD = "256MB"  # of files, at a time


class GivenUpError(Exception):
    """Nobody waits for the fit any more."""


def n_rows_of(rows: dask.Rows) -> int:
    """Return the number of rows of a frame, an array or a sparse matrix."""
    return int(rows.shape[0])


def rows_between(rows: Any, begin: int, end: int) -> dask.Rows:
    """Return some rows of a frame, an array or a sparse matrix."""
    found: dask.Rows = rows.iloc[begin:end] if hasattr(rows, "iloc") else rows[begin:end]
    return found


def joined(partitions: Sequence[Any]) -> Any:
    """Put partitions one below the other, as Dask does when it collects them."""
    if hasattr(partitions[0], "iloc"):
        concat = dask.load("dask.dataframe.dispatch").concat
        return concat([rows for rows in partitions if len(rows)] or partitions[:1])
    if hasattr(partitions[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(partitions, format="csr")
    return np.concatenate(partitions)


def scan_of(keys: Sequence[str], worker: dask.Worker, is_wanted: Callable[[], bool]) -> Scan:
    """Return a table in files of a worker; partitions, by their keys, pass through memory one after the other."""
    client = dask.load("distributed").get_client()
    return Scan(partial(_fetched, client, keys, is_wanted), True, worker.local_directory, _HELD)


def _fetched(client: object, keys: Sequence[str], is_wanted: Callable[[], bool]) -> Iterator[dask.Rows]:
    for key in keys:
        future = dask.load("distributed").Future(key, client)
        while True:
            try:
                rows: dask.Rows = future.result(timeout=LOOK_EVERY)
                break
            except TimeoutError:
                if future.done():
                    raise  # by the task itself
                if not is_wanted():
                    raise GivenUpError from None
        if n_rows_of(rows):
            yield rows
