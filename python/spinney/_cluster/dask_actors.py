"""Actors on the workers of a Dask cluster, asked in time or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from importlib import import_module
from typing import Any

LONGEST_WAIT = 600.0  # seconds for one answer
LOOK_EVERY = 1.0  # seconds between looks whether a worker still lives
_SHARE_OF_POOL = 3  # one part in so many of the client's connections is kept: a fit may have two tables
_SHORT_WAIT = 3.0  # seconds for a first connection to a worker


class WorkerLostError(RuntimeError):
    """A worker does not answer any more."""


class Actors:
    """One actor on each of some workers, by address.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._actors: dict[str, Any] = {}
        self._futures: dict[str, Any] = {}
        self._is_direct = False
        self._comms: dict[str, Any] = {}  # to workers, that are kept
        self._busy: set[str] = set()  # those that an answer is to come from
        self._to_serialize: Any = import_module("distributed.protocol").to_serialize

    def __contains__(self, address: str) -> bool:
        return address in self._actors

    def make(self, address: str, kind: type, *args: Any) -> None:
        """Make an actor on a worker."""
        self.begin(address, kind, *args)()

    def begin(self, address: str, kind: type, *args: Any) -> Callable[[], None]:
        """Begin to make an actor; return what waits until it is made."""
        made = self._client.submit(kind, *args, workers=[address], actor=True, pure=False)

        def wait_for_it() -> None:
            self._actors[address] = self.gathered([made], address)[0]
            self._futures[address] = made  # an actor by itself is kept by the process's latest client, whichever it is

        return wait_for_it

    def forget(self, address: str) -> None:
        """Let the actor of a worker go; those that take its place have to be connected to."""
        self._actors.pop(address, None)
        self._futures.pop(address, None)
        self._is_direct = False
        self._hang_up([address])

    def close(self) -> None:
        """Let all go."""
        self._actors.clear()
        self._futures.clear()
        self._hang_up(list(self._comms))

    def _hang_up(self, addresses: Sequence[str]) -> None:
        """Give connections back to the client, who closes those that an answer may still come from."""
        for address in addresses:
            if (comm := self._comms.pop(address, None)) is not None:
                self._client.loop.add_callback(_give_back, self._client.rpc, address, comm, address in self._busy)
            self._busy.discard(address)

    def gathered(self, futures: Sequence[Any], address: str | None = None) -> list[Any]:
        """Return results, in time or not at all; the time begins anew whenever another one is there."""
        coming = self._client.gather(list(futures), asynchronous=True)
        waiting = asyncio.run_coroutine_threadsafe(coming, self._client.loop.asyncio_loop)
        began, n_known = time.monotonic(), 0
        try:
            while True:
                wait([waiting], timeout=LOOK_EVERY)
                if waiting.done():
                    found: list[Any] = waiting.result()  # or what a task has raised, be it a TimeoutError
                    return found
                if (n_done := sum(future.done() for future in futures)) > n_known:
                    began, n_known = time.monotonic(), n_done
                self.check_wait(address, began)
        finally:
            waiting.cancel()

    def check_wait(self, address: str | None, began: float) -> None:
        """Fail if a worker is gone, or has not answered since `began` for longer than any answer takes."""
        if address is not None and address not in self._client.nthreads():
            raise WorkerLostError(address)
        if time.monotonic() - began > LONGEST_WAIT:
            who = "The cluster" if address is None else f"The worker {address}"
            raise TimeoutError(f"{who} has not answered for {LONGEST_WAIT:.0f} s. Look at its log; fit again.")

    def answer(self, address: str, future: Any) -> Any:
        """Wait for an actor, as long as its worker lives."""
        began = time.monotonic()
        while True:
            try:
                is_done, found = future.result(timeout=LOOK_EVERY)
                break
            except TimeoutError:
                self.check_wait(address, began)
            except (OSError, RuntimeError) as error:
                raise WorkerLostError(address) from error
        if not is_done:
            raise found  # by the actor itself
        return found

    def send(self, address: str, method: str, *args: Any) -> Any:
        """Call a method of a holder; return a future."""
        if address not in self._actors:
            raise WorkerLostError(address)  # it was forgotten, and has blocks still that nobody has asked for since
        try:
            call = self._actors[address].do  # fails if its worker is known to be gone
            return call(method, *args) if not self._is_direct else self._straight(address, method, *args)
        except RuntimeError as error:
            raise WorkerLostError(address) from error

    def ask(self, addresses: Sequence[str], question: bytes) -> dict[str, Any]:
        """Ask actors that `hear` and answer questions; those that do not answer any more are left out."""
        if not self._is_direct or len(self._actors) * _SHARE_OF_POOL > self._client.rpc.limit:
            return self._asked_one_by_one(addresses, question)
        waiting = asyncio.run_coroutine_threadsafe(self._ask_all(addresses, question), self._client.loop.asyncio_loop)
        began = time.monotonic()
        try:
            while True:
                wait([waiting], timeout=LOOK_EVERY)
                if waiting.done():
                    said = waiting.result()
                    break
                self._look(began)
        finally:
            waiting.cancel()  # who interrupts it keeps no connection
        for reply in said.values():
            if reply["status"] != "OK":
                raise reply["exception"]  # by the actor itself
        return {address: reply["result"] for address, reply in said.items()}

    async def _ask_all(self, addresses: Sequence[str], question: bytes) -> dict[str, Any]:
        """Send a question over all connections before an answer is waited for."""
        found: dict[str, Any] = {}
        for address in (address for address in addresses if address in self._actors):
            try:
                if address not in self._comms:
                    self._comms[address] = await self._client.rpc.connect(address)
                self._busy.add(address)
                message = {"op": "actor_execute", "function": "hear", "actor": self._actors[address].key}
                await self._comms[address].write(message | {"args": [question], "kwargs": {}, "reply": True})
            except OSError:
                continue
        for address in [address for address in addresses if address in self._busy]:
            try:
                found[address] = await self._comms[address].read()
                self._busy.discard(address)
            except OSError:
                continue
        return found

    def _look(self, began: float) -> None:
        """Stop waiting for workers that are gone."""
        for address in list(self._busy):
            try:
                self.check_wait(address, began)
            except WorkerLostError:
                self._client.loop.add_callback(self._comms[address].abort)

    def _asked_one_by_one(self, addresses: Sequence[str], question: bytes) -> dict[str, Any]:
        found, sent = {}, {}
        for address in addresses:
            with suppress(WorkerLostError):
                sent[address] = self.send(address, "answers_to", question)
        for address, future in sent.items():
            with suppress(WorkerLostError):
                found[address] = self.answer(address, future)
        return found

    def _straight(self, address: str, method: str, *args: Any) -> Any:
        """Call a method of an actor over a connection to its worker, and not by way of the scheduler."""
        client, key = self._client, self._actors[address].key

        async def call() -> Any:
            given = [self._to_serialize(value) for value in (method, *args)]
            found = await client.rpc(address).actor_execute(function="do", actor=key, args=given, kwargs={})
            if found["status"] != "OK":
                raise found["exception"]
            return found["result"]

        return asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)

    def connect(self) -> None:
        """Find out whether this process can connect to all workers: it may know the scheduler alone."""
        try:
            waiting = [self._straight(address, "is_there") for address in self._actors]
            self._is_direct = all(future.result(timeout=_SHORT_WAIT) for future in waiting)
        except Exception:  # whatever it is that stands between
            self._is_direct = False

    def call(self, address: str, method: str, *args: Any) -> Any:
        """Call a method of an actor, and wait for what it returns."""
        return self.answer(address, self.send(address, method, *args))


def _give_back(pool: Any, address: str, comm: Any, is_busy: bool) -> None:
    """Give a connection back to the pool that it is of; on the event loop."""
    if is_busy:
        comm.abort()
    pool.reuse(address, comm)
