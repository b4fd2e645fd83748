"""A line between two processes, for questions and answers that are bytes: nothing else is read from it.

It costs a fraction of a millisecond a question where a call by way of an event loop costs several. Whoever listens does
so for one caller, who was given the password by another way.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
from collections.abc import Callable
from threading import Thread

_SHORT_WAIT = 3.0  # seconds for a connection
_FOR_A_CALL = 10.0  # seconds that a listener waits for one
_ASKED = struct.Struct("!Q")  # bytes of a question
_ANSWERED = struct.Struct("!iQ")  # how many answers, or that there is none; bytes that follow
_ONE = struct.Struct("!iQ")  # block of an answer, and its bytes
_FAILED = -1

Answer = Callable[[bytes], dict[int, bytes]]  # by block


class BrokenLineError(OSError):
    """The other end is gone."""


def listen(host: str, answer: Answer) -> tuple[int, bytes] | None:
    """Answer questions, in a thread of its own, until the caller is gone.

    Parameters
    ----------
    host : str
        Address of this machine, as the caller knows it.
    answer : callable
        Turns a question into answers by block.

    Returns
    -------
    tuple of (int, bytes) or None
        Port and password; None if there is no such address here.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family, backlog=1)
    except OSError:
        return None
    password = secrets.token_bytes(32)
    Thread(target=_serve, args=(listener, password, answer), name="spinney-line", daemon=True).start()
    return listener.getsockname()[1], password


def _serve(listener: socket.socket, password: bytes, answer: Answer) -> None:
    """Wait for the one who knows the password, and answer."""
    with listener:
        listener.settimeout(_FOR_A_CALL)
        try:
            caller, _ = listener.accept()
        except OSError:
            return
    with caller:
        try:
            caller.settimeout(_FOR_A_CALL)
            if not hmac.compare_digest(_received(caller, len(password)), password):
                return
            caller.settimeout(None)
            _make_quick(caller)
            caller.sendall(b"\x01")
            while True:
                (n_bytes,) = _ASKED.unpack(_received(caller, _ASKED.size))
                _reply(caller, bytes(_received(caller, n_bytes)), answer)
        except OSError:
            return


def _reply(caller: socket.socket, question: bytes, answer: Answer) -> None:
    try:
        found = answer(question)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".encode()
        caller.sendall(_ANSWERED.pack(_FAILED, len(said)) + said)
        return
    heads = b"".join(_ONE.pack(block, len(some)) for block, some in found.items())
    n_bytes = len(heads) + sum(map(len, found.values()))
    caller.sendall(_ANSWERED.pack(len(found), n_bytes) + heads)
    for some in found.values():
        caller.sendall(some)


def _make_quick(line: socket.socket) -> None:
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # an end that is gone without a word is found out


def _received(line: socket.socket, n_bytes: int, look: Callable[[], None] | None = None) -> bytearray:
    """Return so many bytes; `look` is called when they keep us waiting."""
    found = bytearray(n_bytes)
    rest = memoryview(found)
    while rest:
        try:
            n = line.recv_into(rest)
        except TimeoutError:
            if look is None:
                raise
            look()
            continue
        if n == 0:
            raise BrokenLineError("the line is closed")
        rest = rest[n:]
    return found


class Line:
    """The caller's end of a line.

    Parameters
    ----------
    host : str
    port : int
    password : bytes
    look_every : float
        Seconds between looks whether the other end is still there, while an answer is waited for.
    """

    def __init__(self, host: str, port: int, password: bytes, look_every: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=_SHORT_WAIT)
        try:
            _make_quick(self._socket)
            self._socket.sendall(password)
            _received(self._socket, 1)
        except OSError:
            self.close()
            raise
        self._socket.settimeout(look_every)

    def send(self, question: bytes) -> None:
        """Ask a question."""
        self._socket.sendall(_ASKED.pack(len(question)) + question)

    def receive(self, look: Callable[[], None]) -> dict[int, memoryview]:
        """Return the answers to the next question that was asked, by block; `look` is called while there is none."""
        n_answers, n_bytes = _ANSWERED.unpack(_received(self._socket, _ANSWERED.size, look))
        rest = memoryview(_received(self._socket, n_bytes, look))
        if n_answers == _FAILED:
            raise RuntimeError(bytes(rest).decode())
        found, begin = {}, n_answers * _ONE.size
        for block, size in _ONE.iter_unpack(rest[:begin]):
            found[block] = rest[begin : begin + size]
            begin += size
        return found

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
