"""Actors on the workers of a Dask cluster, asked in time or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

LONGEST_WAIT = 600.0  # seconds for one answer
LOOK_EVERY = 1.0  # seconds between looks whether a worker still lives
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
        self._is_direct = False
        self._to_serialize: Any = import_module("distributed.protocol").to_serialize

    def __contains__(self, address: str) -> bool:
        return address in self._actors

    def make(self, address: str, kind: type, *args: Any) -> None:
        """Make an actor on a worker."""
        self.begin(address, kind, *args)()

    def begin(self, address: str, kind: type, *args: Any) -> Callable[[], None]:
        """Begin to make an actor; return what waits until it is made."""
        made = self._client.submit(kind, *args, workers=[address], actor=True, pure=False)

        def wait() -> None:
            self._actors[address] = self.gathered([made], address)[0]

        return wait

    def forget(self, address: str) -> None:
        """Let the actor of a worker go; those that take its place have to be connected to."""
        self._actors.pop(address, None)
        self._is_direct = False

    def close(self) -> None:
        """Let all go."""
        self._actors.clear()

    def gathered(self, futures: Sequence[Any], address: str | None = None) -> list[Any]:
        """Return results, in time or not at all."""
        distributed: Any = import_module("distributed")  # it has no types
        began = time.monotonic()
        while True:
            try:
                distributed.wait(futures, timeout=LOOK_EVERY)
                found: list[Any] = self._client.gather(futures)
                return found
            except TimeoutError:
                self.check_wait(address, began)

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
        try:
            call = self._actors[address].do  # fails if its worker is known to be gone
            return call(method, *args) if not self._is_direct else self._straight(address, method, *args)
        except RuntimeError as error:
            raise WorkerLostError(address) from error

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
