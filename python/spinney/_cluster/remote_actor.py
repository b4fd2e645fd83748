"""Actors on the workers of a Dask cluster, called in time or not at all."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from spinney._cluster import dask
from spinney._cluster.actor import Actor
from spinney._cluster.transport import REQUEST, Channel, Connection, Reply, SchedulerChannel

_SHORT_WAIT = 3.0  # seconds for a first connection to a worker


class RemoteActor:
    """An actor on a worker; it lives as long as this is kept and not closed.

    Dask's own proxies of actors would ask whichever client was made last in this process, which may be one of another
    cluster.

    Parameters
    ----------
    client : distributed.Client
    address : str
        Of the worker.
    kind : type
        Of the actor.
    *args
        What it is made of; results of tasks in the place of their futures.
    """

    def __init__(self, client: dask.Client, address: str, kind: type[Actor], *args: object) -> None:
        self.address = address
        self._client = client
        self._made: dask.Future | None = client.submit(kind, *args, workers=[address], actor=True, pure=False)
        self._channel: Channel | None = None

    def _check(self) -> Callable[[], None]:
        """Return what fails once the worker is gone, or has not replied for longer than any reply takes."""
        patience = dask.Patience(f"The worker {self.address}")

        def check() -> None:
            dask.check_lives(self._client, self.address)
            patience.check()

        return check

    def wait(self) -> None:
        """Wait until the actor is made."""
        assert self._made is not None
        error = dask.waited_for(dask.begun(self._client, self._made.exception), self._check())
        if error is not None:
            raise error
        if self._made.status != "finished":
            raise dask.WorkerLostError(self.address)

    async def connect(self) -> Exception | None:
        """Open a connection to the actor; else messages go by way of the scheduler. Return why they must."""
        assert self._made is not None
        way = self._client, self.address, self._made.key
        self._channel = SchedulerChannel(*way)
        if self._client.direct_to_workers is False:  # the user forbids connections
            return None
        try:
            self._channel = await asyncio.wait_for(Connection.open(*way), _SHORT_WAIT)
        except Exception as error:
            return error
        return None

    async def exchange(self, method: str, *args: object) -> Reply:
        """Call a method, on the event loop; errors on the way to the actor are returned as ("lost", error)."""
        if self._channel is None:
            return "lost", None
        try:
            return await self._channel.exchange(method, args)
        except (OSError, ValueError) as error:
            return "lost", error

    def send(self, method: str, *args: object) -> Future[Reply]:
        """Begin to call a method."""
        if self._made is None or self._made.status != "finished":  # its worker is known to be gone
            raise dask.WorkerLostError(self.address)
        return dask.begun(self._client, partial(self.exchange, method, *args))

    def result(self, future: Future[Reply]) -> Any:
        """Wait for a call, as long as the worker lives and works."""
        working = dask.Patience(f"The worker {self.address}")
        while True:
            status, value = dask.waited_for(future, self._check())
            if status == "done":
                return value
            if status == "failed":
                raise value  # by the actor itself
            if status == "lost":
                raise dask.WorkerLostError(self.address) from value
            number, seconds = value
            working.check(seconds)
            future = self.send("still", number)

    def call(self, method: str, *args: object) -> Any:
        """Call a method, and wait for what it returns."""
        return self.result(self.send(method, *args))

    def close(self) -> None:
        """Let the actor go; calls that are under way end."""
        channel, self._channel, self._made = self._channel, None, None
        if channel is not None:
            self._client.loop.asyncio_loop.call_soon_threadsafe(channel.close)


def made(client: dask.Client, actors: Sequence[RemoteActor]) -> None:
    """Wait until actors are made and can be called: over connections, or by way of the scheduler."""
    for actor in actors:
        actor.wait()
    errors = dask.in_time(client, lambda: asyncio.gather(*(actor.connect() for actor in actors)))
    for actor, error in zip(actors, errors, strict=True):
        if error is not None:
            warnings.warn(
                f"This process cannot connect to the worker {actor.address} ({type(error).__name__}: {error}). "
                "Messages go by way of the scheduler, which takes longer; Client(…, direct_to_workers=False) says that "
                "it is meant so.",
                stacklevel=2,
            )
            break


def request_all(client: dask.Client, actors: Sequence[RemoteActor], request: bytes) -> Callable[[], list[Any]]:
    """Send all actors one request; return what waits for their replies, None of those that are lost.

    Requests are answered in the order in which they are sent. An interrupt finds all actors asked, or none.
    """

    async def exchange() -> list[Reply]:
        return await asyncio.gather(*(actor.exchange(REQUEST, request) for actor in actors))

    future, patience = dask.begun(client, exchange), dask.Patience("The cluster")

    def check() -> None:
        alive = dask.threads_of(client)
        for actor in actors:
            if actor.address not in alive:
                actor.close()
        patience.check()

    def replies() -> list[Any]:
        found = dask.waited_for(future, check)
        for status, value in found:
            if status == "failed":
                raise value  # by the actor itself
        return [value if status == "done" else None for status, value in found]

    return replies
