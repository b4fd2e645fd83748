"""Lines to actors: connections of Dask's that carry questions and answers as they are.

A message of Dask's is a dictionary that is looked through, measured, packed and unpacked at both ends, which takes as
long as to send it. Over a line go bytes alone: their number, then they.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

_OPEN = "spinney-line"  # what a connection is asked to become one
_READY = "ready"
_SIZE = struct.Struct("!Q")
_MOST_AT_ONCE = 1 << 30  # bytes: streams of TLS take fewer than 2^31
_DONE, _FAILED = b"\0", b"\1"  # what an answer begins with
_HEARERS: WeakValueDictionary[Any, Any] = WeakValueDictionary()  # actors of this process, by their keys


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
    try:
        with suppress(OSError, KeyError):  # whoever asked has hung up, or the actor is gone
            if actor in _HEARERS:
                await comm.write(_READY)
            while actor in _HEARERS:
                question = await _taken(comm)
                await _put(comm, await loop.run_in_executor(None, _answered, actor, question))
    finally:
        comm.abort()  # whatever ends it: Dask would say so over the line, where it would be read as an answer
    return import_module("distributed.core").Status.dont_reply


def _answered(actor: Any, question: Any) -> Sequence[Any]:
    """Return what an actor says; a KeyError is raised if it is gone."""
    hearer = _HEARERS[actor]
    try:
        return _DONE, *hearer.heard(bytes(question))
    except Exception as error:
        return _FAILED, _pickled(error)


def _pickled(error: Exception) -> bytes:
    """Return an error as it can be read again; what it says, if it cannot."""
    with suppress(Exception):
        found = pickle.dumps(error)
        pickle.loads(found)
        return found
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


async def made_line(comm: Any, actor: Any) -> None:
    """Make a connection a line to an actor."""
    await comm.write({"op": _OPEN, "actor": actor})
    if await comm.read() != _READY:
        raise OSError("The worker has no such actor.")


async def asked(comm: Any, question: bytes) -> None:
    """Send a question."""
    await _put(comm, [question])


async def answered(comm: Any) -> memoryview | Exception:
    """Wait for the answer to the first question that was not answered yet; return it, or what the actor has raised."""
    said = memoryview(await _taken(comm))
    if said[:1] == _FAILED:
        error: Exception = pickle.loads(said[1:])
        return error
    return said[1:]


async def _put(comm: Any, parts: Sequence[Any]) -> None:
    if (stream := _stream_of(comm)) is None:
        await comm.write(b"".join(parts))
        return
    whole = memoryview(b"".join([_SIZE.pack(sum(map(len, parts))), *parts]))
    for begin in range(0, len(whole), _MOST_AT_ONCE):
        stream.write(whole[begin : begin + _MOST_AT_ONCE])


async def _taken(comm: Any) -> Any:
    if (stream := _stream_of(comm)) is None:
        return await comm.read()
    (size,) = _SIZE.unpack(await stream.read_bytes(_SIZE.size))
    whole = np.empty(size, dtype=np.uint8).data  # which nobody fills with zeros first
    for begin in range(0, size, _MOST_AT_ONCE):
        await stream.read_into(whole[begin : begin + _MOST_AT_ONCE])
    return whole


def _stream_of(comm: Any) -> Any:
    """Return what carries bytes; None: the two ends are in one process, or Dask has a way of its own between them."""
    stream = getattr(comm, "stream", None)
    return stream if hasattr(stream, "read_into") else None
