"""Dask as this package uses it: how its modules are loaded, and the types of its objects, of which it declares few."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any, Protocol


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
