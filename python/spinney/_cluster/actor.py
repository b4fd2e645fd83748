"""Actors on Dask workers, and the client's handles to them; long calls report progress every few seconds."""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from functools import partial
from queue import Empty, Queue
from threading import Thread, get_ident
from typing import Any, Protocol, Self

import numpy as np

from spinney._cluster import dask
from spinney._cluster.transport import REQUEST, Channel, Connection, Reply, SchedulerChannel, accept_connections
from spinney._data.scan import Scan

_ENDED = ("closing", "closed", "failed")  # states of a worker; its threads may be in a process that lives on
REPLY_SECONDS = 5.0  # between two replies to a waiting client
_MAX_CLIENT_WAIT = 600.0  # seconds for the client


def thread_clock() -> Callable[[], float]:
    """Return a clock of this thread's processor time, which other threads may read."""
    if sys.platform != "linux":
        return time.process_time  # of all threads, so that a hanging call may go unnoticed
    return partial(time.clock_gettime, time.pthread_getcpuclockid(get_ident()))


class _Call:
    """A call in a thread, with its processor time."""

    def __init__(self, call: Callable[..., object], args: Sequence[object]) -> None:
        self._clock: Callable[[], float] | None = None
        self._began = 0.0
        self.task = asyncio.create_task(asyncio.to_thread(self._run, call, args))

    def _run(self, call: Callable[..., object], args: Sequence[object]) -> Reply:
        clock = thread_clock()
        self._began, self._clock = clock(), clock
        return _outcome(call, args)

    def seconds(self) -> float:
        """Processor time so far."""
        return 0.0 if self._clock is None else self._clock() - self._began


def _outcome(call: Callable[..., object], args: Sequence[object]) -> Reply:
    """Return the result of a call, or its error; an error that cannot be pickled is replaced by its message."""
    try:
        return "done", call(*args)
    except Exception as error:
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return "failed", error
        return "failed", RuntimeError(f"{type(error).__name__}: {error}")


class Actor:
    """An object on a worker whose methods are called by a `RemoteActor`."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._worker = dask.worker_here()
        if self._worker is not None:
            self._key = self._worker.get_current_task()
            accept_connections(self._worker)

    def is_alive(self) -> bool:
        """Return whether the worker still holds this actor, which its client may release; True without a worker."""
        if self._worker is None:
            return True
        return self._worker.status.name not in _ENDED and self._key in self._worker.state.actors

    async def reply(self, method: str, args: Sequence[Any]) -> Reply:
        """Call a method; the reply ("busy", (id, seconds of processor time)) means: call `poll` with the id."""
        if method == REQUEST:
            return await asyncio.to_thread(self.reply_now, *args)
        call = self._calls.pop(args[0]) if method == "poll" else _Call(getattr(self, method), args)
        await asyncio.wait([call.task], timeout=REPLY_SECONDS)
        if call.task.done():
            return call.task.result()
        self._calls[id(call)] = call
        return "busy", (id(call), call.seconds())

    def reply_now(self, request: bytes) -> Reply:
        """Reply to a request in the calling thread."""
        return _outcome(self.answer, [request])

    def answer(self, request: bytes) -> bytes:
        """Answer a request; overridden by actors that take requests."""
        raise NotImplementedError


class Model(Protocol):
    """An estimator that can be fitted on a worker."""

    @property
    def _sorts_all_rows(self) -> bool: ...
    def _check_parameters(self) -> None: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...


class FittingActor(Actor):
    """An actor that holds all rows; its fit runs in a separate thread and may request data from the client.

    Parameters
    ----------
    model : estimator
        Unfitted, or fitted before a warm start.
    n_jobs : int
        Threads.
    keys : list of str or None
        Keys of the partitions, if rows are to be spooled to files.
    *partitions
        All rows, in order, if they are held in memory.
    """

    def __init__(self, model: Model, n_jobs: int, keys: Sequence[str] | None, *partitions: dask.Rows) -> None:
        super().__init__()
        self._model: Any = copy(model).set_params(n_jobs=n_jobs)
        self._table: dask.Rows | Scan
        if keys is None:
            self._table = joined(partitions)
        else:
            assert self._worker is not None
            self._table = scan_partitions(keys, self._worker, self.is_alive)
        self._events: Queue[tuple[str, Any]] = Queue()
        self._replies: Queue[Any] = Queue()
        self._clock: Callable[[], float] | None = None

    def start(self, fit: Callable[[], object]) -> None:
        """Start the fit; its last event is ("done", result) or ("failed", error)."""

        def run() -> None:
            self._clock = thread_clock()
            status, value = _outcome(fit, ())
            self._events.put((status, value))

        Thread(target=run, name="spinney-fit", daemon=True).start()

    def ask_client(self, kind: str, value: object) -> Any:
        """Send an event to the client and return its reply; AbandonedFitError if there is none."""
        self._events.put((kind, value))
        began = time.monotonic()
        while self.is_alive() and time.monotonic() - began < _MAX_CLIENT_WAIT:
            with suppress(Empty):
                return self._replies.get(timeout=1.0)
        raise AbandonedFitError

    def next_event(self) -> tuple[str, Any]:
        """Return the next event of the fit; ("busy", seconds of processor time) if there is none for a while."""
        try:
            return self._events.get(timeout=REPLY_SECONDS)
        except Empty:
            with suppress(OSError):  # the thread is ending
                return "busy", 0.0 if self._clock is None else self._clock()
            return "busy", 0.0

    def resume(self, reply: object) -> tuple[str, Any]:
        """Pass the client's reply to the fit; return the next event."""
        self._replies.put(reply)
        return self.next_event()


_SPOOL_MEMORY = "256MB"  # memory for rows of spooled files


class AbandonedFitError(Exception):
    """No client waits for the fit any more."""


def n_rows_of(rows: dask.Rows) -> int:
    """Return the number of rows of a frame, an array or a sparse matrix."""
    return int(rows.shape[0])


def rows_between(rows: Any, begin: int, end: int) -> dask.Rows:
    """Return a range of rows of a frame, an array or a sparse matrix."""
    found: dask.Rows = rows.iloc[begin:end] if hasattr(rows, "iloc") else rows[begin:end]
    return found


def joined(partitions: Sequence[Any]) -> Any:
    """Concatenate partitions, as Dask does when it computes a collection."""
    if hasattr(partitions[0], "iloc"):
        concat = dask.load("dask.dataframe.dispatch").concat
        return concat([rows for rows in partitions if len(rows)] or partitions[:1])
    if hasattr(partitions[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(partitions, format="csr")
    return np.concatenate(partitions)


def scan_partitions(keys: Sequence[str], worker: dask.Worker, is_wanted: Callable[[], bool]) -> Scan:
    """Return a table that is spooled to files of a worker, one partition at a time."""
    client = dask.load("distributed").get_client()
    return Scan(partial(_fetch_partitions, client, keys, is_wanted), True, worker.local_directory, _SPOOL_MEMORY)


def _fetch_partitions(client: object, keys: Sequence[str], is_wanted: Callable[[], bool]) -> Iterator[dask.Rows]:
    for key in keys:
        future = dask.load("distributed").Future(key, client)
        while True:
            try:
                rows: dask.Rows = future.result(timeout=dask.POLL_SECONDS)
                break
            except TimeoutError:
                if future.done():
                    raise  # the error of the task
                if not is_wanted():
                    raise AbandonedFitError from None
        if n_rows_of(rows):
            yield rows


_SHORT_WAIT = 3.0  # seconds, for a first connection to a worker


class RemoteActor:
    """The client's handle to an actor on a worker; the actor lives until the handle is closed or deleted.

    Dask's own actor proxies use the client that was created last in this process, which may belong to another cluster.

    Parameters
    ----------
    client : distributed.Client
    address : str
        Address of the worker.
    kind : type
        Class of the actor.
    *args
        Its arguments; futures are replaced by their results.
    """

    def __init__(self, client: dask.Client, address: str, kind: type[Actor], *args: object) -> None:
        self.address = address
        self._client = client
        self._actor: dask.Future | None = client.submit(kind, *args, workers=[address], actor=True, pure=False)
        self._channel: Channel | None = None

    def _check(self) -> Callable[[], None]:
        """Return a function that raises an error if the worker is gone, or has not replied for too long."""
        timer = dask.StallTimer(f"The worker {self.address}")

        def check() -> None:
            dask.check_alive(self._client, self.address)
            timer.check()

        return check

    def wait(self) -> None:
        """Wait until the actor exists."""
        assert self._actor is not None
        error = dask.wait_for(dask.start_on_loop(self._client, self._actor.exception), self._check())
        if error is not None:
            raise error
        if self._actor.status != "finished":
            raise dask.WorkerLostError(self.address)

    async def connect(self) -> Exception | None:
        """Connect to the actor, directly or through the scheduler; return the error of the direct connection."""
        assert self._actor is not None
        address = self._client, self.address, self._actor.key
        self._channel = SchedulerChannel(*address)
        if self._client.direct_to_workers is False:  # the user forbids connections
            return None
        try:
            self._channel = await asyncio.wait_for(Connection.open(*address), _SHORT_WAIT)
        except Exception as error:
            return error
        return None

    async def exchange(self, method: str, *args: object) -> Reply:
        """Call a method, on the event loop; transport errors are returned as ("lost", error)."""
        if self._channel is None:
            return "lost", None
        try:
            return await self._channel.exchange(method, args)
        except (OSError, ValueError) as error:
            return "lost", error

    def send(self, method: str, *args: object) -> Future[Reply]:
        """Start a call of a method."""
        if self._actor is None or self._actor.status != "finished":  # its worker is known to be gone
            raise dask.WorkerLostError(self.address)
        return dask.start_on_loop(self._client, partial(self.exchange, method, *args))

    def result(self, future: Future[Reply]) -> Any:
        """Wait for a call while the worker is alive and makes progress."""
        timer = dask.StallTimer(f"The worker {self.address}")
        while True:
            status, value = dask.wait_for(future, self._check())
            if status == "done":
                return value
            if status == "failed":
                raise value  # the error of the actor
            if status == "lost":
                raise dask.WorkerLostError(self.address) from value
            call, seconds = value
            timer.check(seconds)
            future = self.send("poll", call)

    def call(self, method: str, *args: object) -> Any:
        """Call a method and return its result."""
        return self.result(self.send(method, *args))

    def close(self) -> None:
        """Release the actor and cancel its calls."""
        channel, self._channel, self._actor = self._channel, None, None
        if channel is not None:
            self._client.loop.asyncio_loop.call_soon_threadsafe(channel.close)


def wait_until_ready(client: dask.Client, actors: Sequence[RemoteActor]) -> None:
    """Wait until actors exist and can be called, over connections or through the scheduler."""
    for actor in actors:
        actor.wait()
    errors = dask.wait_for_scheduler(client, lambda: asyncio.gather(*(actor.connect() for actor in actors)))
    for actor, error in zip(actors, errors, strict=True):
        if error is not None:
            warnings.warn(
                f"This process cannot connect to the worker {actor.address} ({type(error).__name__}: {error}). "
                "Messages pass through the scheduler, which takes longer; Client(…, direct_to_workers=False) chooses "
                "this without a warning.",
                stacklevel=2,
            )
            break


def request_all(client: dask.Client, actors: Sequence[RemoteActor], request: bytes) -> Callable[[], list[Any]]:
    """Send a request to all actors; return a function that waits for the replies, None for lost actors.

    Actors answer requests in order. An interrupt happens before the request reaches any actor, or after all have it.
    """

    async def exchange() -> list[Reply]:
        return await asyncio.gather(*(actor.exchange(REQUEST, request) for actor in actors))

    future, timer = dask.start_on_loop(client, exchange), dask.StallTimer("The cluster")

    def check() -> None:
        alive = dask.threads_by_worker(client)
        for actor in actors:
            if actor.address not in alive:
                actor.close()
        timer.check()

    def replies() -> list[Any]:
        found = dask.wait_for(future, check)
        for status, value in found:
            if status == "failed":
                raise value  # the error of the actor
        return [value if status == "done" else None for status, value in found]

    return replies
