"""What all actors on workers share: whoever asks for long work hears every few seconds that it goes on."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from queue import Empty, Queue
from threading import Thread, get_ident
from typing import Any

_OVER = ("closing", "closed", "failed")  # states of a worker, which may be threads of a process that lives on
SAY_EVERY = 5.0  # seconds between two answers to whoever waits


def own_clock() -> Callable[[], float]:
    """Return a clock of the processor time of this thread, which any other one may read."""
    if sys.platform != "linux":
        return time.process_time  # of all threads: a call that hangs beside others is not told from them
    return partial(time.clock_gettime, time.pthread_getcpuclockid(get_ident()))


@dataclass(frozen=True)
class _Held:
    """Tells whether a worker still keeps an actor; can be copied with the model that it watches. No worker: none."""

    worker: Any
    key: Any

    def __call__(self) -> bool:
        if self.worker is None:
            return True
        return self.worker.status.name not in _OVER and self.key in self.worker.state.actors


def held_here() -> Callable[[], bool]:
    """Return what tells whether this worker still keeps the actor that is being made: its client may let it go, or die.

    When Python deletes it would tell as much, if nobody else knew it.
    """
    find: Any = import_module("distributed").get_worker
    try:
        worker = find()
    except ValueError:  # it is no actor
        return _Held(None, None)
    return _Held(worker, worker.get_current_task())


class Told:
    """What a fit in a thread of its own says, to whoever asks again and again."""

    def __init__(self) -> None:
        self._said: Queue[tuple[str, Any]] = Queue()
        self._clock: Callable[[], float] | None = None

    def start(self, fit: Callable[[], Any]) -> None:
        """Begin; in the end it says "done" or "failed", with what it returns or raises."""

        def run() -> None:
            self._clock = own_clock()
            try:
                self.say("done", fit())
            except BaseException as error:
                self.say("failed", error)

        Thread(target=run, name="spinney-fit", daemon=True).start()

    def say(self, kind: str, what: Any) -> None:
        """Have the client told of something."""
        self._said.put((kind, what))

    def heard(self) -> tuple[str, Any]:
        """Return what was said; ("busy", seconds of processor time so far): nothing for a while."""
        try:
            return self._said.get(timeout=SAY_EVERY)
        except Empty:
            with suppress(OSError):  # it ends just now
                return "busy", 0.0 if self._clock is None else self._clock()
            return "busy", 0.0


class _Work:
    """A call in a thread, and how long it has worked."""

    def __init__(self, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._clock: Callable[[], float] | None = None
        self._began = 0.0
        self.task = asyncio.create_task(asyncio.to_thread(self._run, call, args))

    def _run(self, call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
        clock = own_clock()
        self._began, self._clock = clock(), clock
        try:
            return "done", call(*args)
        except Exception as error:  # its own, which cannot be taken for one of the way to this worker
            return "failed", error

    def seconds(self) -> float:
        """Processor time so far."""
        return 0.0 if self._clock is None else self._clock() - self._began


class Answering:
    """An actor whose long work is asked for again and again, until it is done."""

    async def do(self, method: str, *args: Any) -> tuple[str, Any]:
        """Call a method; return "done" or "failed" with what it returns or raises, or as `still` does."""
        return await self._heard(_Work(getattr(self, method), args))

    async def still(self, number: int) -> tuple[str, Any]:
        """Wait on for what was begun; ("busy", its number and seconds of processor time): ask again."""
        return await self._heard(self._works().pop(number))

    async def _heard(self, work: _Work) -> tuple[str, Any]:
        await asyncio.wait([work.task], timeout=SAY_EVERY)
        if work.task.done():
            return work.task.result()
        self._works()[id(work)] = work
        return "busy", (id(work), work.seconds())

    def _works(self) -> dict[int, _Work]:
        """Return what is at work, by number."""
        found: dict[int, _Work] = self.__dict__.setdefault("_at_work", {})
        return found

    def is_there(self) -> bool:
        """Answer whoever asks whether there is a way to this worker."""
        return True
