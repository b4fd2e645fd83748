"""Waits for a Dask cluster: none is without a limit of time, and all can be interrupted."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from importlib import import_module
from typing import Any

LONGEST_WAIT = 600.0  # seconds for one answer, for one more partition, or without any work
LOOK_EVERY = 1.0  # seconds between looks whether a worker still lives


class WorkerLostError(RuntimeError):
    """A worker does not answer any more."""


class Patience:
    """How long nothing has happened that is waited for.

    Parameters
    ----------
    who : str
        Who is waited for, as a sentence begins with it.
    since : float, optional
        When the wait began, by the monotonic clock; None: now.
    """

    def __init__(self, who: str, since: float | None = None) -> None:
        self._who = who
        self._since = time.monotonic() if since is None else since
        self._done = 0.0

    def check(self, done: float = 0.0) -> None:
        """Fail if no more is done than long ago."""
        if done > self._done:
            self._since, self._done = time.monotonic(), done
        if time.monotonic() - self._since > LONGEST_WAIT:
            what = "has not answered" if self._done == 0.0 else "has made no progress"
            raise TimeoutError(f"{self._who} {what} for {LONGEST_WAIT:.0f} s. Look at its log; fit again.")


def worker_in_words(address: str) -> str:
    """Begin a sentence about a worker."""
    return f"The worker {address}"


def begun(client: Any, call: Callable[[], Awaitable[Any]]) -> Future[Any]:
    """Begin to ask something on the event loop of a client, where its methods can be waited for."""

    async def asked() -> Any:
        return await call()

    return asyncio.run_coroutine_threadsafe(asked(), client.loop.asyncio_loop)


def waited_for(waiting: Future[Any], look: Callable[[], None]) -> Any:
    """Return what was begun, or raise what it raises; `look` fails if there is nothing to wait for."""
    try:
        while True:
            wait([waiting], timeout=LOOK_EVERY)
            if waiting.done():
                return waiting.result()  # or what a task has raised, be it a TimeoutError
            look()
    finally:
        waiting.cancel()


def in_time(client: Any, call: Callable[[], Awaitable[Any]], who: str = "The scheduler") -> Any:
    """Return what a method of the client returns, in time or not at all."""
    return waited_for(begun(client, call), Patience(who).check)


@contextmanager
def beside_others() -> Iterator[None]:
    """Leave the thread of a worker to others while a fit in one of its tasks waits, as Dask's `compute` does."""
    distributed: Any = import_module("distributed")  # it has no types
    try:
        distributed.secede()
    except (ValueError, AttributeError, KeyError):  # this is no task, or it has left its thread already
        yield
        return
    try:
        yield
    finally:
        distributed.rejoin()


def threads_of(client: Any) -> dict[str, int]:
    """Return how many threads each worker has, by address."""
    found: dict[str, int] = in_time(client, client.nthreads)
    return found


def wait_for_a_worker(client: Any) -> None:
    """Wait until there is a worker; whoever fits is told where there is none."""
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


def check_lives(client: Any, address: str | None) -> None:
    """Fail if a worker is gone."""
    if address is not None and address not in threads_of(client):
        raise WorkerLostError(address)


def gathered(client: Any, futures: Sequence[Any], address: str | None = None) -> list[Any]:
    """Return results of tasks, on one worker if it is given; the time begins anew whenever another one is there."""
    patience = Patience("The cluster" if address is None else worker_in_words(address))

    def look() -> None:
        check_lives(client, address)
        patience.check(sum(future.done() for future in futures))

    found: list[Any] = waited_for(begun(client, lambda: client.gather(list(futures))), look)
    return found
