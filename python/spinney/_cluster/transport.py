"""Transport of messages to actors on workers: a connection of Dask's to each, or by way of the scheduler.

`Channel` is the interface: an actor replies to messages in the order in which they are sent, and several may be under
way. Sockets read and written past Dask's event loops would save about a tenth of the time of a tree; see decision 21.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from spinney._cluster import dask

Reply = tuple[Literal["done", "failed", "busy", "lost"], Any]  # and what a method returns or raises, or how to wait on
_OPEN, _READY = "spinney-connection", "ready"
_LARGE = 1 << 20  # bytes: more are sent as they are, fewer with what surrounds them


class Channel(Protocol):
    """A way to one actor; all methods run on the event loop of the client."""

    async def exchange(self, method: str, args: Sequence[object]) -> Reply:
        """Send a message and wait for the reply; OSError if the actor cannot be reached."""

    def close(self) -> None:
        """End what is under way; nobody waits for replies any more."""


class Connection:
    """A connection of Dask's to an actor, encrypted where the cluster's are."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._sends, self._receives = asyncio.Lock(), asyncio.Lock()  # which let waiting tasks in by their order

    @classmethod
    async def open(cls, client: dask.Client, address: str, actor: str) -> Connection:
        """Connect to an actor, by its key."""
        comm = await dask.load("distributed.comm").connect(address, **client.connection_args)
        try:
            await comm.write({"op": _OPEN, "actor": actor})
            if await comm.read() != _READY:
                raise ConnectionRefusedError("The worker has no such actor.")
        except BaseException:
            comm.abort()
            raise
        return cls(comm)

    async def exchange(self, method: str, args: Sequence[object]) -> Reply:
        """Send a message and wait for the reply."""
        async with self._sends:
            await self._comm.write([method, [_packed(value) for value in args]])
        async with self._receives:
            status, value = await self._comm.read()
        return status, value

    def close(self) -> None:
        """End the connection."""
        self._comm.abort()


class SchedulerChannel:
    """Messages by way of the scheduler, where this process cannot connect to the worker."""

    def __init__(self, client: dask.Client, address: str, actor: str) -> None:
        self._scheduler, self._address, self._actor = client.scheduler, address, actor
        self._in_order = asyncio.Lock()

    async def exchange(self, method: str, args: Sequence[object]) -> Reply:
        """Send a message and wait for the reply."""
        given = [dask.load("distributed.protocol").to_serialize(value) for value in (method, list(args))]
        call: dict[str, object] = {"op": "actor_execute", "function": "reply", "actor": self._actor, "kwargs": {}}
        try:
            async with self._in_order:
                found = await self._scheduler.proxy(worker=self._address, msg=call | {"args": given})
        except Exception as error:  # none is the actor's own; a new worker at the same address has no such actor
            raise ConnectionError(str(error)) from error
        if found["status"] != "OK":
            raise ConnectionError(str(found["exception"]))
        reply: Reply = found["result"]
        return reply

    def close(self) -> None:
        """Do nothing: there is no connection."""


def accept_connections(worker: dask.Worker) -> None:
    """Have a worker accept connections to its actors, which have a method `reply`."""

    async def serve(comm: Any, actor: str) -> object:
        try:
            if actor in worker.state.actors:
                await comm.write(_READY)
            while actor in worker.state.actors:
                method, args = await comm.read()
                status, value = await worker.state.actors[actor].reply(method, args)
                await comm.write([status, _packed(value)])
        except (OSError, KeyError):  # the client has closed the connection, or the actor is gone
            pass
        finally:
            comm.abort()
        return dask.load("distributed.core").Status.dont_reply

    worker.handlers[_OPEN] = serve


def _packed(value: object) -> object:
    """Return a value as Dask sends it; it looks into everything but short runs of bytes."""
    if isinstance(value, bytes) and len(value) < _LARGE:
        return value
    return dask.load("distributed.protocol").to_serialize(value)
