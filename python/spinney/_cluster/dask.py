"""Dask as this package uses it: how its modules are loaded, and the types of its objects, of which it declares few."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import wait
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, TypeVar


def load(module: str) -> Any:
    """Load a module of Dask."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Tables on a cluster need {module.partition('.')[0]}: pip install 'spinney[dask]'."
        ) from error


class Rows(Protocol):
    """A frame, an array or a sparse matrix."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class Future(Protocol):
    """A task on a cluster, and its result."""

    key: str
    status: str

    def done(self) -> bool: ...
    def exception(self) -> Awaitable[BaseException | None]: ...


class _Loop(Protocol):
    asyncio_loop: asyncio.AbstractEventLoop


class _Scheduler(Protocol):
    def proxy(self, *, worker: str, msg: dict[str, object]) -> Awaitable[dict[str, Any]]: ...


class Client(Protocol):
    """What knows a cluster: `distributed.Client`, whose methods are awaited on its own event loop."""

    loop: _Loop
    scheduler: _Scheduler
    connection_args: dict[str, Any]
    direct_to_workers: bool | None

    def submit(self, function: Callable[..., object], *args: object, **options: object) -> Future: ...
    def map(self, function: Callable[..., object], *args: Sequence[object], pure: bool) -> list[Future]: ...
    def compute(self, collections: Sequence[object]) -> list[Future]: ...
    def gather(self, futures: Sequence[Future]) -> Awaitable[list[Any]]: ...
    def nthreads(self) -> Awaitable[dict[str, int]]: ...
    def who_has(self, futures: Sequence[Future]) -> Awaitable[dict[str, Sequence[str]]]: ...
    def scheduler_info(self, n_workers: int) -> dict[str, Any]: ...
    def wait_for_workers(self, n_workers: int, timeout: float) -> object: ...


class _Status(Protocol):
    name: str


class _State(Protocol):
    actors: dict[str, Any]


class Worker(Protocol):
    """A worker of a cluster, in its own process: `distributed.Worker`."""

    status: _Status
    state: _State
    handlers: dict[str, Callable[..., object]]
    local_directory: str

    def get_current_task(self) -> str: ...


def worker_here() -> Worker | None:
    """Return the worker whose task this is; None outside of tasks."""
    try:
        found: Worker = load("distributed").get_worker()
    except ValueError:
        return None
    return found


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


def begun(client: Client, call: Callable[[], Awaitable[Result]]) -> ThreadFuture[Result]:
    """Begin a call on the event loop of a client, where its methods can be awaited."""

    async def awaited() -> Result:
        return await call()

    return asyncio.run_coroutine_threadsafe(awaited(), client.loop.asyncio_loop)


def waited_for(future: ThreadFuture[Result], check: Callable[[], None]) -> Result:
    """Return what a call returns, or raise what it raises; `check` fails if there is nothing to wait for."""
    while True:
        wait([future], timeout=LOOK_EVERY)
        if future.done():
            return future.result()  # or what a task has raised, be it a TimeoutError
        check()


def in_time(client: Client, call: Callable[[], Awaitable[Result]]) -> Result:
    """Return what the scheduler replies, in time or not at all."""
    future = begun(client, call)
    try:
        return waited_for(future, Patience("The scheduler").check)
    finally:
        future.cancel()


@contextmanager
def thread_left_to_others() -> Iterator[None]:
    """Leave the thread of a worker to others while a fit in one of its tasks waits, as Dask's `compute` does."""
    distributed = load("distributed")
    try:
        distributed.secede()
    except (ValueError, AttributeError, KeyError):  # this is no task, or it has left its thread already
        yield
        return
    try:
        yield
    finally:
        distributed.rejoin()


def threads_of(client: Client) -> dict[str, int]:
    """Return how many threads each worker has, by address."""
    return in_time(client, client.nthreads)


def threads_of_some(client: Client) -> dict[str, int]:
    """Return the same of a cluster that must have workers."""
    if threads := threads_of(client):
        return threads
    raise RuntimeError("The cluster has no workers. Start some, or wait for them with client.wait_for_workers.")


def wait_for_a_worker(client: Client) -> None:
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


def check_lives(client: Client, address: str) -> None:
    """Fail if a worker is gone."""
    if address not in threads_of(client):
        raise WorkerLostError(address)


def gathered(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Return results of tasks; the time begins anew whenever another one is there."""
    patience = Patience("The cluster")
    coming = begun(client, lambda: client.gather(list(futures)))
    try:
        return waited_for(coming, lambda: patience.check(sum(future.done() for future in futures)))
    finally:
        coming.cancel()
