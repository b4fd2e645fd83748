"""Actors on workers: whoever waits for long work of theirs hears every few seconds that it goes on."""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from queue import Empty, Queue
from threading import Thread, get_ident
from typing import Any, Protocol, Self

import numpy as np

from spinney._cluster import dask
from spinney._cluster.transport import REQUEST, Reply, accept_connections
from spinney._data.scan import Scan

_OVER = ("closing", "closed", "failed")  # states of a worker, which may be threads of a process that lives on
REPLY_EVERY = 5.0  # seconds between two replies to whoever waits
_LONGEST_WAIT = 600.0  # seconds for the client


def thread_clock() -> Callable[[], float]:
    """Return a clock of the processor time of this thread, which any other one may read."""
    if sys.platform != "linux":
        return time.process_time  # of all threads: a call that hangs beside others is not told from them
    return partial(time.clock_gettime, time.pthread_getcpuclockid(get_ident()))


class _Work:
    """A call in a thread, and how long it has worked."""

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
    """Return what a call returns or raises; an error that cannot be sent is replaced by what it says."""
    try:
        return "done", call(*args)
    except Exception as error:
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return "failed", error
        return "failed", RuntimeError(f"{type(error).__name__}: {error}")


class Actor:
    """An object on a worker whose methods a `RemoteActor` calls."""

    def __init__(self) -> None:
        self._works: dict[int, _Work] = {}
        self._worker = dask.worker_here()
        if self._worker is not None:
            self._key = self._worker.get_current_task()
            accept_connections(self._worker)

    def is_held(self) -> bool:
        """Whether the worker still keeps this actor: its client may let it go, or die. No worker: it is kept."""
        if self._worker is None:
            return True
        return self._worker.status.name not in _OVER and self._key in self._worker.state.actors

    async def reply(self, method: str, args: Sequence[Any]) -> Reply:
        """Call a method; ("busy", its number and seconds of processor time): call `still` with the number."""
        if method == REQUEST:
            return await asyncio.to_thread(self.reply_now, *args)
        work = self._works.pop(args[0]) if method == "still" else _Work(getattr(self, method), args)
        await asyncio.wait([work.task], timeout=REPLY_EVERY)
        if work.task.done():
            return work.task.result()
        self._works[id(work)] = work
        return "busy", (id(work), work.seconds())

    def reply_now(self, request: bytes) -> Reply:
        """Reply to a request in the thread that calls this."""
        return _outcome(self.answer, [request])

    def answer(self, request: bytes) -> bytes:
        """Answer a request; actors that have any override this."""
        raise NotImplementedError


class Model(Protocol):
    """An estimator that can be fitted on a worker."""

    @property
    def _sorts_all_rows(self) -> bool: ...
    def _check_parameters(self) -> None: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...


class FittingActor(Actor):
    """An actor that has all rows, and whose fit runs in a thread of its own and asks the client for what it needs.

    Parameters
    ----------
    model : estimator
        Unfitted, or to be continued.
    n_jobs : int
        Threads.
    keys : list of str or None
        Of the partitions, where these are to lie in files.
    *partitions
        All rows, in order, where these are in memory.
    """

    def __init__(self, model: Model, n_jobs: int, keys: Sequence[str] | None, *partitions: dask.Rows) -> None:
        super().__init__()
        self._model: Any = copy(model).set_params(n_jobs=n_jobs)
        self._table: dask.Rows | Scan
        if keys is None:
            self._table = joined(partitions)
        else:
            assert self._worker is not None
            self._table = scan_of(keys, self._worker, self.is_held)
        self._events: Queue[tuple[str, Any]] = Queue()
        self._replies: Queue[Any] = Queue()
        self._clock: Callable[[], float] | None = None

    def start(self, fit: Callable[[], object]) -> None:
        """Begin the fit; its last event is "done" or "failed", with what it returns or raises."""

        def run() -> None:
            self._clock = thread_clock()
            status, value = _outcome(fit, ())
            self._events.put((status, value))

        Thread(target=run, name="spinney-fit", daemon=True).start()

    def ask_client(self, kind: str, what: object) -> Any:
        """Return the client's reply to an event; the fit ends if there is none."""
        self._events.put((kind, what))
        began = time.monotonic()
        while self.is_held() and time.monotonic() - began < _LONGEST_WAIT:
            with suppress(Empty):
                return self._replies.get(timeout=1.0)
        raise GivenUpError

    def next_event(self) -> tuple[str, Any]:
        """Return what the fit asks for, or its end; ("busy", seconds of processor time so far): neither for a while."""
        try:
            return self._events.get(timeout=REPLY_EVERY)
        except Empty:
            with suppress(OSError):  # it ends just now
                return "busy", 0.0 if self._clock is None else self._clock()
            return "busy", 0.0

    def go_on(self, reply: object) -> tuple[str, Any]:
        """Reply to the last event; return the next one."""
        self._replies.put(reply)
        return self.next_event()


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
                rows: dask.Rows = future.result(timeout=dask.LOOK_EVERY)
                break
            except TimeoutError:
                if future.done():
                    raise  # by the task itself
                if not is_wanted():
                    raise GivenUpError from None
        if n_rows_of(rows):
            yield rows
