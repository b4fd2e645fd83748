"""Lines to actors: connections of Dask's that carry questions and answers as they are.

A message of Dask's is a dictionary that is looked through, measured, packed and unpacked at both ends, which takes as
long as to send it. Over a line go bytes alone: their number, then they. Whoever asks and whoever answers reads and
writes them in its own thread: on the event loops of both, each question would wait for four other threads.
"""

from __future__ import annotations

import asyncio
import pickle
import selectors
import socket
import ssl
import struct
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from spinney._cluster.dask_waits import LOOK_EVERY

_OPEN = "spinney-line"  # what a connection is asked to become one
_READY = "ready"
_SIZE = struct.Struct("!Q")
_DONE, _FAILED = b"\0", b"\1"  # what an answer begins with
_HEARERS: WeakValueDictionary[Any, Any] = WeakValueDictionary()  # actors of this process, by their keys
_MOST_AT_ONCE = 1 << 30  # bytes: sockets of TLS take fewer than 2^31
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def hear_lines(actor: Any) -> None:
    """Let the worker that makes an actor take lines to it, over which its `heard` is asked."""
    find: Any = import_module("distributed").get_worker
    with suppress(ValueError):  # it is no actor
        worker = find()
        _HEARERS[worker.get_current_task()] = actor
        worker.handlers[_OPEN] = _serve


async def _serve(comm: Any, actor: Any) -> Any:
    """Answer what comes over a line until it is closed; a connection to no such actor is closed at once."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    try:
        if actor in _HEARERS:
            await comm.write(_READY)
            Thread(target=_listen, args=(comm, _taken(comm), actor, loop, is_over), daemon=True).start()
            await is_over.wait()
    finally:
        hang_up(comm)  # whatever ends it: Dask would say so over the line, where it would be read as an answer
    return import_module("distributed.core").Status.dont_reply


def _listen(comm: Any, line: Any, actor: Any, loop: Any, is_over: asyncio.Event) -> None:
    """Answer what comes over a socket, in a thread of its own."""
    try:
        line.settimeout(None)
        with suppress(OSError, ValueError, KeyError):  # whoever asked has hung up, or the actor is gone
            while actor in _HEARERS and not comm.closed():
                if _is_coming(line):
                    (size,) = _SIZE.unpack(_received(line, _SIZE.size))
                    answer = _answered(actor, _received(line, size))
                    _send_all(line, b"".join([_SIZE.pack(sum(map(len, answer))), *answer]))
    finally:
        with suppress(RuntimeError):  # the worker has ended
            loop.call_soon_threadsafe(is_over.set)


def _is_coming(line: Any) -> bool:
    """Whether something comes before the next look at the connection."""
    if isinstance(line, ssl.SSLSocket) and line.pending():
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(line, selectors.EVENT_READ)
        return bool(selector.select(LOOK_EVERY))


def _send_all(line: Any, message: bytes) -> None:
    """Send bytes, however many."""
    whole = memoryview(message)
    for begin in range(0, len(whole), _MOST_AT_ONCE):
        line.sendall(whole[begin : begin + _MOST_AT_ONCE])


def _received(line: Any, size: int) -> memoryview:
    """Wait for some bytes."""
    whole = left = memoryview(bytearray(size))
    while len(left):
        if (n := line.recv_into(left[:_MOST_AT_ONCE])) == 0:
            raise ConnectionResetError
        left = left[n:]
    return whole


def _answered(actor: Any, question: memoryview) -> Sequence[Any]:
    """Return what an actor says; a KeyError is raised if it is gone."""
    hearer = _HEARERS[actor]
    try:
        return _DONE, *hearer.heard(bytes(question))
    except Exception as error:
        return _FAILED, _pickled(error)


def _pickled(error: Exception) -> bytes:
    """Return what an error says, and the error itself where it can be sent."""
    found = b""
    with suppress(Exception):
        found = pickle.dumps(error)
    return pickle.dumps((f"{type(error).__name__}: {error}", found))


def _error_in(said: memoryview) -> Exception:
    """Return what an actor has raised; what it says, if it cannot be read here."""
    text, found = pickle.loads(said)
    with suppress(Exception):
        error: Exception = pickle.loads(found)
        return error
    return RuntimeError(text)


def can_be_line(comm: Any) -> bool:
    """Whether a connection is a socket: the two ends may be in one process, or Dask have a way of its own to it."""
    return hasattr(getattr(comm, "stream", None), "socket")


async def opened(comm: Any, actor: Any) -> Line:
    """Make a connection a line to an actor."""
    await comm.write({"op": _OPEN, "actor": actor})
    if await comm.read() != _READY:
        raise ConnectionRefusedError("The worker has no such actor.")
    return Line(comm)


def _taken(comm: Any) -> Any:
    """Take the socket of a connection from the event loop; it is closed with the connection."""
    stream = comm.stream
    stream.io_loop.remove_handler(stream.fileno())
    return stream.socket


def hang_up(comm: Any) -> None:
    """Close a line; whoever reads it in another thread is woken."""
    if can_be_line(comm):
        with suppress(OSError):
            socket.socket.shutdown(comm.stream.socket, socket.SHUT_RDWR)
    comm.abort()


class Line:
    """The end of a line that asks; questions are answered in order.

    Whoever interrupts `ask` or `move` closes it, as nobody knows how far these have come; all else may be done again.

    Attributes
    ----------
    comm : distributed.comm.Comm
    answers : dict of int to memoryview or Exception
        Those that have come, by the numbers of their questions, and what the actor has raised.
    is_open : bool
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.answers: dict[int, memoryview | Exception] = {}
        self.is_open = True
        self._last = -1  # question
        self._unanswered: deque[int] = deque()
        self._socket = _taken(comm)
        self._to_send: deque[memoryview] = deque()
        self._size = memoryview(bytearray(_SIZE.size))
        self._whole = self._left = self._size  # what comes now, and what is to come of it

    def ask(self, number: int, question: bytes) -> None:
        """Send a question, or as much of it as goes at once, if it was not sent before; numbers rise."""
        if self._last >= number:
            return
        was_open, self.is_open = self.is_open, False
        self._last = number
        self._unanswered.append(number)
        self._to_send.append(memoryview(_SIZE.pack(len(question)) + question))
        self.is_open = was_open
        self.move()

    def move(self) -> None:
        """Send and receive what goes at once."""
        was_open, self.is_open = self.is_open, False
        if was_open:
            with suppress(OSError, ValueError):
                self._send()
                self._receive()
                self.is_open = True

    def _send(self) -> None:
        with suppress(*_LATER):
            while self._to_send:
                n = self._socket.send(self._to_send[0][:_MOST_AT_ONCE])
                if n < len(self._to_send[0]):
                    self._to_send[0] = self._to_send[0][n:]
                else:
                    self._to_send.popleft()

    def _receive(self) -> None:
        with suppress(*_LATER):
            while True:
                if (n := self._socket.recv_into(self._left[:_MOST_AT_ONCE])) == 0:
                    raise ConnectionResetError
                self._left = self._left[n:]
                if not len(self._left):
                    self._begin_next()

    def _begin_next(self) -> None:
        """Note what has come as a whole: the number of bytes of an answer, or these."""
        if self._whole is self._size:
            (size,) = _SIZE.unpack(self._size)
            self._whole = np.empty(size, dtype=np.uint8).data  # which nobody fills with zeros first
        else:
            said = self._whole
            self.answers[self._unanswered.popleft()] = _error_in(said[1:]) if said[:1] == _FAILED else said[1:]
            self._whole = self._size
        self._left = self._whole

    def fileno(self) -> int:
        """Return what an operating system knows the socket by; -1: it is closed."""
        found: int = self._socket.fileno()
        return found

    @property
    def events(self) -> int:
        """What is waited for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._to_send else 0)


def move_lines(lines: Collection[Line], seconds: float) -> None:
    """Wait until some lines can go on, for so long at most, and let them."""
    try:
        with selectors.DefaultSelector() as selector:
            for line in lines:
                selector.register(line, line.events, line)
            ready = selector.select(seconds)
    except (OSError, ValueError):
        closed = [line for line in lines if line.fileno() < 0]  # by the client, in another thread
        for line in closed:
            line.is_open = False
        if not closed:
            raise
        return
    for key, _ in ready:
        key.data.move()
