"""Transport of messages to actors on workers, over a Dask connection to each or through the scheduler.

`Channel` is the interface: an actor replies to messages in order, and several may be in flight. A message on a
connection is a name and a value, which is bytes or a pickle. Dask's own message format is not used, because packing and
unpacking it takes longer than sending it; see decision 21.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import ssl
import struct
from collections.abc import Sequence
from concurrent.futures import wait
from contextlib import suppress
from threading import Thread
from typing import Any, Literal, Protocol

from spinney._cluster import dask

Reply = tuple[Literal["done", "failed", "busy", "lost"], Any]  # with the result, the error, or how to poll
REQUEST = "answer"  # the method that answers requests (bytes), in order and without "busy" replies
_OPEN, _READY = "spinney-connection", "ready"
_MAX_CHUNK = 1 << 30  # bytes: TLS sockets take fewer than 2^31
_HEAD = struct.Struct("!32s?Q")  # the name, whether the value is pickled, and the number of its bytes


class Channel(Protocol):
    """A channel to one actor; all methods run on the event loop of the client."""

    async def exchange(self, method: str, args: Sequence[object]) -> Reply:
        """Send a message and wait for the reply; OSError if the actor cannot be reached."""

    def close(self) -> None:
        """Cancel the messages in flight."""


class Connection:
    """A Dask connection to an actor, encrypted if the cluster uses encryption."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._sends, self._receives = asyncio.Lock(), asyncio.Lock()  # first come, first served

    @classmethod
    async def open(cls, client: dask.Client, address: str, actor: str) -> Connection:
        """Connect to the actor with this key."""
        comm = await dask.load("distributed.comm").connect(address, **client.connection_args)
        try:
            await comm.write({"op": _OPEN, "actor": actor})
            if (await _receive(comm))[0] != _READY:
                raise ConnectionRefusedError("The worker has no such actor.")
        except BaseException:
            comm.abort()
            raise
        return cls(comm)

    async def exchange(self, method: str, args: Sequence[object]) -> Reply:
        """Send a message and wait for the reply."""
        async with self._sends:
            await _send(self._comm, method, args[0] if method == REQUEST else args)
        async with self._receives:
            status, value = await _receive(self._comm)
        return status, value

    def close(self) -> None:
        """Close the connection."""
        self._comm.abort()


class SchedulerChannel:
    """Messages through the scheduler, if this process cannot connect to the worker."""

    def __init__(self, client: dask.Client, address: str, actor: str) -> None:
        self._scheduler, self._address, self._actor = client.scheduler, address, actor
        self._send_order = asyncio.Lock()

    async def exchange(self, method: str, args: Sequence[object]) -> Reply:
        """Send a message and wait for the reply."""
        arguments = [dask.load("distributed.protocol").to_serialize(value) for value in (method, list(args))]
        call: dict[str, object] = {"op": "actor_execute", "function": "reply", "actor": self._actor, "kwargs": {}}
        try:
            async with self._send_order:
                found = await self._scheduler.proxy(worker=self._address, msg=call | {"args": arguments})
        except Exception as error:  # never the actor's error; a new worker at the same address has no such actor
            raise ConnectionError(str(error)) from error
        if found["status"] != "OK":
            raise ConnectionError(str(found["exception"]))
        reply: Reply = found["result"]
        return reply

    def close(self) -> None:
        """Do nothing: there is no connection."""


def accept_connections(worker: dask.Worker) -> None:
    """Let a worker accept connections to its actors, which have methods `reply` and, for requests, `reply_now`."""

    async def serve(comm: Any, actor: str) -> object:
        try:
            if hasattr(comm, "stream"):
                await _SocketServer(comm, actor, worker).wait()
            else:
                await _serve_on_loop(comm, actor, worker)
        finally:
            comm.abort()
        return dask.load("distributed.core").Status.dont_reply

    worker.handlers[_OPEN] = serve


async def _serve_on_loop(comm: Any, actor: str, worker: dask.Worker) -> None:
    """Reply to messages over a connection without a stream: a client in the same process, or WebSockets."""
    with suppress(OSError, KeyError):  # the client has closed the connection, or the actor is gone
        if actor in worker.state.actors:
            await comm.write([_READY, None])
        while actor in worker.state.actors:
            await comm.write(await worker.state.actors[actor].reply(*await comm.read()))


class _SocketServer:
    """A thread that reads messages from the socket of a connection and writes the replies.

    On the event loop of the worker, each request would wait for two other threads.
    """

    def __init__(self, comm: Any, actor: str, worker: dask.Worker) -> None:
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._comm, self._actor, self._actors = comm, actor, worker.state.actors
        comm.stream.io_loop.remove_handler(comm.stream.fileno())
        self._socket: socket.socket = comm.stream.socket
        Thread(target=self._run, name="spinney-connection", daemon=True).start()

    async def wait(self) -> None:
        """Wait until the thread ends; end it if this task is cancelled."""
        try:
            await self._over.wait()
        finally:
            with suppress(OSError):  # it is closed
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # which wakes the thread

    def _run(self) -> None:
        try:
            self._socket.settimeout(None)
            with suppress(OSError, ValueError, KeyError):  # the client has closed the connection, or the actor is gone
                if self._actor in self._actors:
                    self._send(_READY, b"")
                while self._actor in self._actors and not self._comm.closed():
                    if self._has_message():
                        self._send(*self._reply(*self._receive()))
        finally:
            with suppress(RuntimeError):  # the worker has ended
                self._loop.call_soon_threadsafe(self._over.set)

    def _has_message(self) -> bool:
        """Wait for a message, until the next check of the connection."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(dask.POLL_SECONDS))

    def _receive(self) -> tuple[str, Any]:
        name, is_pickled, size = _HEAD.unpack(self._read(_HEAD.size))
        return _unpacked(name, is_pickled, self._read(size))

    def _read(self, size: int) -> bytearray:
        body = bytearray(size)
        left = memoryview(body)
        while left:
            if (n := self._socket.recv_into(left[:_MAX_CHUNK])) == 0:
                raise ConnectionResetError
            left = left[n:]
        return body

    def _send(self, name: str, value: object) -> None:
        message = memoryview(b"".join(_packed(name, value)))
        for begin in range(0, len(message), _MAX_CHUNK):
            self._socket.sendall(message[begin : begin + _MAX_CHUNK])

    def _reply(self, method: str, value: Any) -> Reply:
        actor = self._actors[self._actor]
        if method == REQUEST:
            found: Reply = actor.reply_now(value)
            return found
        future = asyncio.run_coroutine_threadsafe(actor.reply(method, value), self._loop)
        while not wait([future], timeout=dask.POLL_SECONDS).done:
            if self._comm.closed():
                raise ConnectionResetError
        reply: Reply = future.result()
        return reply


def _packed(name: str, value: object) -> tuple[bytes, bytes]:
    """Return the header of a message, and its value as bytes."""
    body = value if isinstance(value, bytes) else dask.load("distributed.protocol.pickle").dumps(value)
    return _HEAD.pack(name.encode(), body is not value, len(body)), body


def _unpacked(name: bytes, is_pickled: bool, body: bytearray) -> tuple[str, Any]:
    value = dask.load("distributed.protocol.pickle").loads(body) if is_pickled else bytes(body)
    return name.rstrip(b"\0").decode(), value


def _stream_of(comm: Any) -> Any:
    """Return the stream of a connection, or None if it has none; OSError if this end has closed it."""
    if not hasattr(comm, "stream"):
        return None
    if comm.stream is None:
        raise ConnectionAbortedError("The connection was closed.")
    return comm.stream


async def _send(comm: Any, name: str, value: object) -> None:
    """Send a name and a value."""
    if (stream := _stream_of(comm)) is None:
        await comm.write([name, [value] if name == REQUEST else value])
        return
    for part in _packed(name, value):
        await stream.write(part)


async def _receive(comm: Any) -> Any:
    """Wait for a name and a value."""
    if (stream := _stream_of(comm)) is None:
        return await comm.read()
    name, is_pickled, size = _HEAD.unpack(await stream.read_bytes(_HEAD.size))
    body = bytearray(size)
    await stream.read_into(body)
    return _unpacked(name, is_pickled, body)
