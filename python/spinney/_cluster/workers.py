"""What a worker does that fits a whole model: all rows are brought to it, into memory or into files of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

import numpy as np

from spinney._cluster.actor import SAY_EVERY, Answering, Told, held_here
from spinney._cluster.worker_tables import FEEDS, forget, is_over, leave, take
from spinney._data.scan import Scan

_LONGEST_WAIT = 600.0  # seconds for the next partition
_HELD = "256MB"  # of files, at a time


def joined(parts: Sequence[Any]) -> Any:
    """Put partitions one below the other, as Dask does when it collects them."""
    if hasattr(parts[0], "iloc"):
        concat: Any = import_module("dask.dataframe.dispatch").concat  # it has no types
        return concat([part for part in parts if len(part)] or parts[:1])
    if hasattr(parts[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def leave_table(fit: str, address: str, *parts: Any) -> int:
    """Leave all rows for an actor of this worker; return how many there are."""
    table = joined(parts)
    leave(fit, address, table)
    return int(table.shape[0])


class GivenUpError(Exception):
    """Nobody waits for the fit any more."""


class Feed:
    """Partitions that pass through memory one after the other, on their way to files.

    Parameters
    ----------
    fit : str
    folder : str
        Where files are made.
    categorical_features : as the parameter
    """

    def __init__(self, fit: str, folder: str | None, categorical_features: Any) -> None:
        self._fit = fit
        self._is_over = Event()
        self._queue: Queue[Any] = Queue(maxsize=1)
        self._done: Queue[Any] = Queue()
        Thread(target=self._spool, args=(folder, categorical_features), name="spinney-feed", daemon=True).start()

    def _parts(self) -> Iterator[Any]:
        began = time.monotonic()
        while not self._is_over.is_set():
            try:
                part = self._queue.get(timeout=1.0)
            except Empty:
                if time.monotonic() - began > _LONGEST_WAIT:
                    forget(self._fit)  # the client is gone
                continue
            if part is None:
                return
            yield part
            began = time.monotonic()
        raise GivenUpError

    def _spool(self, folder: str | None, categorical_features: Any) -> None:
        try:
            scan = Scan(self._parts, True, folder, _HELD)
            scan.spooled(categorical_features)
            self._done.put(scan)
        except BaseException as error:
            self._done.put(error)

    def put(self, part: Any) -> None:
        """Hand over a partition; None: there are no more."""
        began = time.monotonic()
        while self._done.empty():
            try:
                self._queue.put(part, timeout=SAY_EVERY)
                return
            except Full:
                if time.monotonic() - began > _LONGEST_WAIT:
                    raise
        self.result()

    def give_up(self) -> None:
        """Write no more: nobody wants the table."""
        self._is_over.set()

    def result(self) -> Scan:
        """Return the table in files, or raise what stood in its way."""
        found = self._done.get(timeout=_LONGEST_WAIT)
        if isinstance(found, BaseException):
            raise found
        assert isinstance(found, Scan)
        return found


def feed_table(fit: str, address: str, is_last: bool, categorical_features: Any, *parts: Any) -> int:
    """Write some rows to files of this worker; leave the table for an actor once they are all there."""
    if is_over(fit):
        raise GivenUpError(f"The fit has ended, or its next partitions have not come for {_LONGEST_WAIT:.0f} s.")
    if (fit, address) not in FEEDS:
        folder = import_module("distributed").get_worker().local_directory
        FEEDS[fit, address] = Feed(fit, folder, categorical_features)
    feed = FEEDS[fit, address]
    for part in parts:
        if part.shape[0]:
            feed.put(part)
    if is_last:
        feed.put(None)
        FEEDS.pop((fit, address), None)
        leave(fit, address, feed.result())
    return sum(int(part.shape[0]) for part in parts)


class LoneFit(Answering):
    """A fit that one worker does alone, in a thread of its own, which ends when nobody waits for it any more.

    Parameters
    ----------
    fit, address : str
        What the table was left by.
    model : estimator
        Unfitted, or to be gone on with.
    n_jobs : int
        Threads.
    reports : bool
        Whether each round waits until the client has seen it.
    """

    def __init__(self, fit: str, address: str, model: Any, n_jobs: int, reports: bool) -> None:
        self._table = take(fit, address)
        self._model = copy(model).set_params(n_jobs=n_jobs)
        self._reports = reports
        self._told = Told()
        self._answers: Queue[Any] = Queue()
        self._is_over = Event()
        self._is_held = held_here()

    def begin(self, beside: dict[str, Any]) -> tuple[str, Any]:
        """Begin the fit; return what it says first, as `go_on` does."""
        model, table, told = self._model, self._table, self._told
        del self._table
        is_watched = "callbacks" in model.get_params(deep=False)
        if is_watched:
            model.set_params(callbacks=Watcher(told, self._answers, self._is_over, self._is_held, self._reports))

        def fit() -> Any:
            done = model.fit(table, **beside)
            return done.set_params(callbacks=None) if is_watched else done  # queues stay here

        told.start(fit)
        return self.wait()

    def go_on(self, answer: Any) -> tuple[str, Any]:
        """Answer what was said last; return as `wait` does."""
        self._answers.put(answer)
        return self.wait()

    def wait(self) -> tuple[str, Any]:
        """Return a "round", "done", "failed" or "busy", and what it is."""
        return self._told.heard()

    def give_up(self) -> None:
        """End the fit after its present round."""
        self._is_over.set()


@dataclass(frozen=True)
class Watcher:
    """A callback that tells the client of each round, and ends a fit that is given up.

    Attributes
    ----------
    told : Told
        What the client hears.
    answers : Queue
        From the client.
    is_over : Event
        Whether the fit is given up.
    is_held : callable
        Whether anybody waits for it.
    reports : bool
        Whether the client is told.
    """

    told: Told
    answers: Queue[Any]
    is_over: Event
    is_held: Callable[[], bool]
    reports: bool

    def __call__(self, progress: dict[str, Any]) -> bool:
        """Say what a round has done; return whether it was the last."""
        if self._is_given_up():
            raise GivenUpError
        if not self.reports:
            return False
        self.told.say("round", progress)
        began = time.monotonic()
        while not self._is_given_up() and time.monotonic() - began < _LONGEST_WAIT:
            try:
                return bool(self.answers.get(timeout=1.0))
            except Empty:
                continue
        raise GivenUpError

    def _is_given_up(self) -> bool:
        return self.is_over.is_set() or not self.is_held()
