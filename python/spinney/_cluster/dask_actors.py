"""Actors on the workers of a Dask cluster, asked in time or not at all."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from spinney._cluster.dask_channel import Line, can_be_line, hang_up, move_lines, opened
from spinney._cluster.dask_waits import (
    LOOK_EVERY,
    Patience,
    WorkerLostError,
    begun,
    check_lives,
    waited_for,
    worker_in_words,
)

_SHARE_OF_POOL = 3  # one part in so many of the client's connections is kept: a fit may have two tables
_SHORT_WAIT = 3.0  # seconds for a first connection to a worker


class Actors:
    """One actor on each of some workers, by address.

    They are asked over the connections of this client. Dask's own proxies of actors would ask whichever client was
    made last in this process, which may be one of another cluster.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._futures: dict[str, Any] = {}  # of actors, which live as long as these are kept
        self._is_direct = False
        self._lines: dict[str, Line] = {}
        self._n_asked = 0
        self._to_serialize: Any = import_module("distributed.protocol").to_serialize

    @property
    def addresses(self) -> list[str]:
        """Workers that have one."""
        return list(self._futures)

    def __contains__(self, address: str) -> bool:
        return address in self._futures

    def make(self, address: str, kind: type, *args: Any) -> None:
        """Make an actor on a worker."""
        self.begin(address, kind, *args)()

    def begin(self, address: str, kind: type, *args: Any) -> Callable[[], None]:
        """Begin to make an actor; return what waits until it is made."""
        made = self._client.submit(kind, *args, workers=[address], actor=True, pure=False)

        def wait_for_it() -> None:
            error = waited_for(begun(self._client, made.exception), self._look_at(address))
            if error is not None:
                raise error
            if made.status != "finished":
                raise WorkerLostError(address)
            self._futures[address] = made

        return wait_for_it

    def _look_at(self, address: str) -> Callable[[], None]:
        """Return what fails once a worker is gone, or has not answered for longer than any answer takes."""
        patience = Patience(worker_in_words(address))

        def look() -> None:
            check_lives(self._client, address)
            patience.check()

        return look

    def forget(self, address: str) -> None:
        """Let the actor of a worker go; those that take its place have to be connected to."""
        self._futures.pop(address, None)
        self._is_direct = False
        self._hang_up([address])

    def close(self) -> None:
        """Let all go."""
        self._futures.clear()
        self._hang_up(list(self._lines))

    def _hang_up(self, addresses: Sequence[str]) -> None:
        """Close lines: nobody else can use them."""
        for address in addresses:
            if (line := self._lines.pop(address, None)) is not None:
                self._client.loop.add_callback(_close, self._client.rpc, address, line.comm)

    def check_wait(self, address: str, began: float) -> None:
        """Fail if a worker is gone, or has not answered since `began` for longer than any answer takes."""
        check_lives(self._client, address)
        Patience(worker_in_words(address), began).check()

    def answer(self, address: str, future: Future[Any]) -> Any:
        """Wait for an actor, as long as its worker lives and works."""
        working = Patience(worker_in_words(address))
        while True:
            said, found = waited_for(future, self._look_at(address))
            if said == "done":
                return found
            if said == "failed":
                raise found  # by the actor itself
            if said == "lost":
                raise WorkerLostError(address) from found
            number, seconds = found
            working.check(seconds)
            future = self._begun(address, "still", number)

    def send(self, address: str, method: str, *args: Any) -> Future[Any]:
        """Call a method of a holder; return a future."""
        if address not in self._futures:
            raise WorkerLostError(address)  # it was forgotten, and has blocks still that nobody has asked for since
        if self._futures[address].status != "finished":  # its worker is known to be gone
            raise WorkerLostError(address)
        return self._begun(address, "do", method, *args)

    def ask(self, addresses: Sequence[str], question: bytes) -> Callable[[], dict[str, Any]]:
        """Ask actors that `hear_lines`; return what waits for their answers.

        Those that do not answer any more are left out. Questions are answered in the order in which they are asked, and
        are to be waited for in it.
        """
        if not self._is_direct or len(self._futures) * _SHARE_OF_POOL > self._client.rpc.limit:
            return lambda: self._asked_one_by_one(addresses, question)
        if not self._open_lines([a for a in addresses if a in self._futures and a not in self._lines]):
            return lambda: self._asked_one_by_one(addresses, question)
        lines = {address: self._lines[address] for address in addresses if address in self._lines}
        self._n_asked += 1
        number = self._n_asked
        try:
            for line in lines.values():
                line.ask(number, question)
        except BaseException:
            for line in lines.values():  # who interrupts it finds all of them asked
                line.ask(number, question)
            raise
        known: list[dict[str, Any]] = []

        def wait_for_them() -> dict[str, Any]:
            if not known:  # whoever asks again, after an error or an interrupt, hears the same
                known.append(self._answers_over(lines, number))
            for line in lines.values():
                line.answers.pop(number, None)
            for reply in known[0].values():
                if isinstance(reply, Exception):
                    raise reply  # by the actor itself
            return known[0]

        return wait_for_them

    def _open_lines(self, addresses: Sequence[str]) -> bool:
        """Open lines to actors that have none; False: the connections of this client are of another kind."""
        coming = {address: begun(self._client, partial(self._open_line, address)) for address in addresses}
        can_be = True
        try:
            for address, line in coming.items():
                with suppress(OSError, WorkerLostError):
                    can_be &= waited_for(line, self._look_at(address))
        finally:
            for line in coming.values():
                line.cancel()
        return can_be

    async def _open_line(self, address: str) -> bool:
        """Make a connection of the client's a line to an actor; False: it cannot be one."""
        made, pool = self._futures[address], self._client.rpc
        comm = await pool.connect(address)
        if not can_be_line(comm):
            pool.reuse(address, comm)
            return False
        try:
            line = await opened(comm, made.key)
        except BaseException:
            _close(pool, address, comm)
            raise
        self._lines[address] = line
        if self._futures.get(address) is not made:  # it was forgotten by now
            self._hang_up([address])
        return True

    def _answers_over(self, lines: dict[str, Line], number: int) -> dict[str, Any]:
        """Wait for the answer to a question over each line that is open."""
        began = time.monotonic()
        look_at = began + LOOK_EVERY
        while silent := {a: line for a, line in lines.items() if line.is_open and number not in line.answers}:
            move_lines(silent.values(), LOOK_EVERY)
            if time.monotonic() >= look_at:
                self._look(silent, began)
                look_at = time.monotonic() + LOOK_EVERY
        return {address: line.answers[number] for address, line in lines.items() if number in line.answers}

    def _look(self, lines: dict[str, Line], began: float) -> None:
        """Stop waiting for workers that are gone."""
        for address, line in lines.items():
            try:
                self.check_wait(address, began)
            except WorkerLostError:
                line.is_open = False

    def _asked_one_by_one(self, addresses: Sequence[str], question: bytes) -> dict[str, Any]:
        found, sent = {}, {}
        for address in addresses:
            with suppress(WorkerLostError):
                sent[address] = self.send(address, "answers_to", question)
        for address, future in sent.items():
            with suppress(WorkerLostError):
                found[address] = self.answer(address, future)
        return found

    def _begun(self, address: str, function: str, *args: Any) -> Future[Any]:
        """Begin to call a function of an actor; errors of the way to it are returned as ("lost", error)."""
        client, key = self._client, self._futures[address].key
        given = [self._to_serialize(value) for value in args]
        is_direct = self._is_direct
        message: dict[str, Any] = {"function": function, "actor": key, "args": given, "kwargs": {}}

        async def call() -> Any:
            try:
                if is_direct:
                    found = await client.rpc(address).actor_execute(**message)
                else:
                    found = await client.scheduler.proxy(worker=address, msg={"op": "actor_execute", **message})
            except (OSError, RuntimeError, KeyError) as error:  # a new worker at the same address has no such actor
                return "lost", error
            return found["result"] if found["status"] == "OK" else ("failed", found["exception"])

        return begun(client, call)

    def connect(self) -> None:
        """Find out whether this process can connect to all workers: it may know the scheduler alone."""
        self._is_direct = self._client.direct_to_workers is not False  # unless the user forbids it
        if not self._is_direct:
            return
        waiting = {address: self._begun(address, "do", "is_there") for address in self._futures}
        _, late = wait(waiting.values(), timeout=_SHORT_WAIT)
        for address, future in waiting.items():
            error = f"no answer in {_SHORT_WAIT:.0f} s" if future in late else _error_of(future)
            if error and self._is_direct:
                self._is_direct = False
                warnings.warn(
                    f"This process cannot connect to the worker {address} ({error}). Questions go by way of the "
                    "scheduler, which takes longer; Client(…, direct_to_workers=False) says that it is meant so.",
                    stacklevel=2,
                )

    def call(self, address: str, method: str, *args: Any) -> Any:
        """Call a method of an actor, and wait for what it returns."""
        return self.answer(address, self.send(address, method, *args))


def _close(pool: Any, address: str, comm: Any) -> None:
    """Close a connection of a pool, which counts those that are open; on the event loop."""
    hang_up(comm)
    pool.reuse(address, comm)


def _error_of(future: Future[Any]) -> str:
    """Say what has gone wrong on the way to an actor; nothing: it has answered."""
    if (raised := future.exception()) is not None:
        return f"{type(raised).__name__}: {raised}"
    said, error = future.result()
    return f"{type(error).__name__}: {error}" if said == "lost" else ""
