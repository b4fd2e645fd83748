"""Dask as this package uses it: lazy imports, types of its objects, and waits with a time limit."""

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
            f"Tables on a cluster need {module.partition('.')[0]}: pip install 'spinney-ml[dask]'."
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
    """Return the Dask worker that runs this task; None outside of tasks."""
    try:
        found: Worker = load("distributed").get_worker()
    except ValueError:
        return None
    return found


MAX_WAIT_SECONDS = 600.0  # for one reply, for one more partition, or without progress
POLL_SECONDS = 1.0  # between checks whether a worker is alive

Result = TypeVar("Result")


class WorkerLostError(RuntimeError):
    """A worker no longer replies."""


class StallTimer:
    """Time since the last progress of a worker or a cluster.

    Parameters
    ----------
    name : str
        Subject of the error message, such as "The scheduler".
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._since = time.monotonic()
        self._progress = 0.0

    def check(self, progress: float = 0.0) -> None:
        """Raise TimeoutError if there has been no progress for too long."""
        if progress > self._progress:
            self._since, self._progress = time.monotonic(), progress
        if time.monotonic() - self._since > MAX_WAIT_SECONDS:
            what = "has not answered" if self._progress == 0.0 else "has made no progress"
            raise TimeoutError(f"{self._name} {what} for {MAX_WAIT_SECONDS:.0f} s. Look at its log; fit again.")


def start_on_loop(client: Client, call: Callable[[], Awaitable[Result]]) -> ThreadFuture[Result]:
    """Start a coroutine on the event loop of a client, where the client's methods can be awaited."""

    async def awaited() -> Result:
        return await call()

    return asyncio.run_coroutine_threadsafe(awaited(), client.loop.asyncio_loop)


def wait_for(future: ThreadFuture[Result], check: Callable[[], None]) -> Result:
    """Wait for a result, and call `check` meanwhile, which raises an error if waiting is pointless."""
    while True:
        wait([future], timeout=POLL_SECONDS)
        if future.done():
            return future.result()  # or raise the error of the task, which may be a TimeoutError
        check()


def wait_for_scheduler(client: Client, call: Callable[[], Awaitable[Result]]) -> Result:
    """Return a reply of the scheduler; TimeoutError if it takes too long."""
    future = start_on_loop(client, call)
    try:
        return wait_for(future, StallTimer("The scheduler").check)
    finally:
        future.cancel()


@contextmanager
def secede_thread() -> Iterator[None]:
    """Leave the thread pool of a worker while a fit in one of its tasks waits, as Dask's `compute` does."""
    distributed = load("distributed")
    try:
        distributed.secede()
    except (ValueError, AttributeError, KeyError):  # this is no task, or it has seceded already
        yield
        return
    try:
        yield
    finally:
        distributed.rejoin()


def threads_by_worker(client: Client) -> dict[str, int]:
    """Return the number of threads of each worker, by address."""
    return wait_for_scheduler(client, client.nthreads)


def require_workers(client: Client) -> dict[str, int]:
    """Return the number of threads of each worker; RuntimeError if there is no worker."""
    if threads := threads_by_worker(client):
        return threads
    raise RuntimeError("The cluster has no workers. Start some, or wait for them with client.wait_for_workers.")


def wait_for_worker(client: Client) -> None:
    """Wait until the cluster has a worker; warn if it has none."""
    if threads_by_worker(client):
        return
    warnings.warn(
        f"The cluster has lost all of its workers. The fit waits up to {MAX_WAIT_SECONDS:.0f} s for another one.",
        stacklevel=2,
    )
    try:
        client.wait_for_workers(1, timeout=MAX_WAIT_SECONDS)
    except TimeoutError as error:
        raise RuntimeError(
            f"The cluster has lost all of its workers, and no new one has joined in {MAX_WAIT_SECONDS:.0f} s. Start "
            "workers, and fit again; gradient boosting resumes from a file that was passed as checkpoint."
        ) from error


def check_alive(client: Client, address: str) -> None:
    """Raise WorkerLostError if a worker is gone."""
    if address not in threads_by_worker(client):
        raise WorkerLostError(address)


def gather(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Return the results of tasks; the time limit restarts whenever a task ends."""
    timer = StallTimer("The cluster")
    results = start_on_loop(client, lambda: client.gather(list(futures)))
    try:
        return wait_for(results, lambda: timer.check(sum(future.done() for future in futures)))
    finally:
        results.cancel()
