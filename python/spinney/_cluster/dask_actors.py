"""Actors on the workers of a Dask cluster, asked in time or not at all."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib import import_module
from typing import Any

from spinney._cluster.dask_line import answered, asked, made_line
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
        self._comms: dict[str, Any] = {}  # to workers, each a line to its actor
        self._to_come: dict[str, int] = {}  # answers, by those that they are to come from
        self._writing, self._reading = asyncio.Lock(), asyncio.Lock()  # questions are sent and answered in order
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
        self._hang_up(list(self._comms))

    def _hang_up(self, addresses: Sequence[str]) -> None:
        """Close lines: nobody else can use them."""
        for address in addresses:
            if (comm := self._comms.pop(address, None)) is not None:
                self._client.loop.add_callback(_close, self._client.rpc, address, comm)
            self._to_come.pop(address, None)

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
        coming = asyncio.run_coroutine_threadsafe(self._ask_all(addresses, question), self._client.loop.asyncio_loop)
        return lambda: self._answers_to(coming)

    def _answers_to(self, coming: Any) -> dict[str, Any]:
        """Wait for answers. Who interrupts it has to close the connections that they come by."""
        began = time.monotonic()
        while not coming.done():
            wait([coming], timeout=LOOK_EVERY)
            if not coming.done():
                self._look(began)
        said: dict[str, Any] = coming.result()
        for reply in said.values():
            if isinstance(reply, Exception):
                raise reply  # by the actor itself
        return said

    async def _ask_all(self, addresses: Sequence[str], question: bytes) -> dict[str, Any]:
        """Send a question over all lines before an answer is waited for."""
        lines: dict[str, Any] = {}
        async with self._writing:
            for address in addresses:
                with suppress(OSError):
                    line = await self._line_to(address)
                    if line is not None:
                        await asked(line, question)
                        lines[address] = line
        found: dict[str, Any] = {}
        async with self._reading:
            for address, line in lines.items():
                with suppress(OSError):
                    found[address] = await answered(line)
                    self._note_answer(address)
        return found

    async def _line_to(self, address: str) -> Any:
        """Return the line to an actor, of whom one more answer is to come; None: it was forgotten."""
        made, is_new = self._futures.get(address), address not in self._comms
        if made is not None and is_new:
            comm = await self._client.rpc.connect(address)
            if address not in self._futures:  # by now
                self._client.rpc.reuse(address, comm)
                return None
            self._comms[address] = comm
        if made is not None:
            self._to_come[address] = self._to_come.get(address, 0) + 1
            if is_new:
                await made_line(self._comms[address], made.key)
        return self._comms.get(address)

    def _note_answer(self, address: str) -> None:
        """Note that an answer has come."""
        if (n_left := self._to_come.pop(address, 1) - 1) > 0:
            self._to_come[address] = n_left

    def _look(self, began: float) -> None:
        """Stop waiting for workers that are gone."""
        for address in list(self._to_come):
            try:
                self.check_wait(address, began)
            except WorkerLostError:
                if (comm := self._comms.get(address)) is not None:
                    self._client.loop.add_callback(comm.abort)

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
    comm.abort()
    pool.reuse(address, comm)


def _error_of(future: Future[Any]) -> str:
    """Say what has gone wrong on the way to an actor; nothing: it has answered."""
    if (raised := future.exception()) is not None:
        return f"{type(raised).__name__}: {raised}"
    said, error = future.result()
    return f"{type(error).__name__}: {error}" if said == "lost" else ""
