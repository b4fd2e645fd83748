"""Waits for a Dask cluster: none is without a limit of time, and all can be interrupted."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from spinney._cluster import dask

LONGEST_WAIT = 600.0  # seconds for one reply, for one more partition, or without any work
LOOK_EVERY = 1.0  # seconds between checks whether a worker still lives

Result = TypeVar("Result")


class WorkerLostError(RuntimeError):
    """A worker does not reply any more."""


class Patience:
    """How long nothing has happened that is waited for.

    Parameters
    ----------
    who : str
        Who is waited for, as a sentence begins with it.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._since = time.monotonic()
        self._done = 0.0

    def check(self, done: float = 0.0) -> None:
        """Fail if no more is done than long ago."""
        if done > self._done:
            self._since, self._done = time.monotonic(), done
        if time.monotonic() - self._since > LONGEST_WAIT:
            what = "has not answered" if self._done == 0.0 else "has made no progress"
            raise TimeoutError(f"{self._who} {what} for {LONGEST_WAIT:.0f} s. Look at its log; fit again.")


def begun(client: dask.Client, call: Callable[[], Awaitable[Result]]) -> Future[Result]:
    """Begin a call on the event loop of a client, where its methods can be awaited."""

    async def awaited() -> Result:
        return await call()

    return asyncio.run_coroutine_threadsafe(awaited(), client.loop.asyncio_loop)


def waited_for(future: Future[Result], check: Callable[[], None]) -> Result:
    """Return what a call returns, or raise what it raises; `check` fails if there is nothing to wait for."""
    while True:
        wait([future], timeout=LOOK_EVERY)
        if future.done():
            return future.result()  # or what a task has raised, be it a TimeoutError
        check()


def in_time(client: dask.Client, call: Callable[[], Awaitable[Result]]) -> Result:
    """Return what the scheduler replies, in time or not at all."""
    future = begun(client, call)
    try:
        return waited_for(future, Patience("The scheduler").check)
    finally:
        future.cancel()


@contextmanager
def thread_left_to_others() -> Iterator[None]:
    """Leave the thread of a worker to others while a fit in one of its tasks waits, as Dask's `compute` does."""
    distributed = dask.load("distributed")
    try:
        distributed.secede()
    except (ValueError, AttributeError, KeyError):  # this is no task, or it has left its thread already
        yield
        return
    try:
        yield
    finally:
        distributed.rejoin()


def threads_of(client: dask.Client) -> dict[str, int]:
    """Return how many threads each worker has, by address."""
    return in_time(client, client.nthreads)


def threads_of_some(client: dask.Client) -> dict[str, int]:
    """Return the same of a cluster that must have workers."""
    if threads := threads_of(client):
        return threads
    raise RuntimeError("The cluster has no workers. Start some, or wait for them with client.wait_for_workers.")


def wait_for_a_worker(client: dask.Client) -> None:
    """Wait until there is a worker; warn where there is none."""
    if threads_of(client):
        return
    warnings.warn(
        f"The cluster has lost all of its workers. The fit waits up to {LONGEST_WAIT:.0f} s for another one.",
        stacklevel=2,
    )
    try:
        client.wait_for_workers(1, timeout=LONGEST_WAIT)
    except TimeoutError as error:
        raise RuntimeError(
            f"The cluster has lost all of its workers, and no other one has come in {LONGEST_WAIT:.0f} s. Start some, "
            "and fit again; what checkpoint=... of gradient boosting keeps is gone on with."
        ) from error


def check_lives(client: dask.Client, address: str) -> None:
    """Fail if a worker is gone."""
    if address not in threads_of(client):
        raise WorkerLostError(address)


def gathered(client: dask.Client, futures: Sequence[dask.Future]) -> list[Any]:
    """Return results of tasks; the time begins anew whenever another one is there."""
    patience = Patience("The cluster")
    coming = begun(client, lambda: client.gather(list(futures)))
    try:
        return waited_for(coming, lambda: patience.check(sum(future.done() for future in futures)))
    finally:
        coming.cancel()
