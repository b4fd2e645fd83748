"""Connections to actors are closed on errors, so that the other end does not wait."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from spinney._cluster import transport


class Comm:
    """A connection in memory: what is read is known beforehand, and exceptions among it are raised."""

    def __init__(self, *incoming):
        self.incoming, self.sent, self.is_open = list(incoming), [], True

    async def write(self, message):
        self.sent.append(message)

    async def read(self):
        message = self.incoming.pop(0)
        if isinstance(message, BaseException):
            raise message
        return message

    def abort(self):
        self.is_open = False


def opened(comm, monkeypatch):
    async def connect(address, **arguments):
        return comm

    monkeypatch.setattr(transport.dask, "load", lambda name: SimpleNamespace(connect=connect))
    client = SimpleNamespace(connection_args={})
    return asyncio.run(transport.Connection.open(client, "tcp://somewhere", "actor"))


@pytest.mark.parametrize(
    ("incoming", "error"),
    [
        (OSError("reset"), OSError),
        (asyncio.CancelledError(), asyncio.CancelledError),  # an interrupt while it is opened
        (["no such actor", None], ConnectionRefusedError),
    ],
    ids=["lost", "interrupted", "refused"],
)
def test_a_connection_is_closed_whatever_ends_its_opening(incoming, error, monkeypatch):
    comm = Comm(incoming)
    with pytest.raises(error):
        opened(comm, monkeypatch)
    assert not comm.is_open


def test_a_connection_stays_open_once_the_actor_is_ready(monkeypatch):
    comm = Comm(["ready", None], ["done", 7])
    channel = opened(comm, monkeypatch)
    assert comm.is_open
    assert asyncio.run(channel.exchange("count", [b"few"])) == ("done", 7)
    assert comm.sent[1] == ["count", [b"few"]]


def served(reply, *incoming):
    comm = Comm(*incoming)
    actor = SimpleNamespace(reply=reply)
    worker = SimpleNamespace(handlers={}, state=SimpleNamespace(actors={"actor": actor}))
    transport.accept_connections(worker)
    (serve,) = worker.handlers.values()
    return comm, worker, serve


def test_a_worker_that_cannot_reply_any_more_hangs_up():
    async def reply(method, args):
        raise RuntimeError("cannot schedule new futures after shutdown")

    comm, _, serve = served(reply, ("count", []))
    with pytest.raises(RuntimeError, match="after shutdown"):
        asyncio.run(serve(comm, "actor"))
    assert comm.sent == [["ready", None]]  # and nothing that could be read as a reply
    assert not comm.is_open


def test_a_worker_hangs_up_where_the_actor_is_gone_or_never_was():
    async def reply(method, args):
        worker.state.actors.clear()
        return "done", b"last"

    comm, worker, serve = served(reply, ("count", []))
    asyncio.run(serve(comm, "actor"))
    assert comm.sent == [["ready", None], ("done", b"last")]
    assert not comm.is_open
    stranger = Comm()
    asyncio.run(serve(stranger, "actor"))
    assert (stranger.sent, stranger.is_open) == ([], False)


async def joined(handle):
    """Return both ends of a connection of Dask's over a socket, where `handle` has the worker's."""
    comm_module = pytest.importorskip("distributed.comm")
    ends = asyncio.Queue()

    async def accept(comm):
        await ends.put(comm)
        await handle(comm)

    async with comm_module.listen("tcp://127.0.0.1:0", accept) as listener:
        here = await comm_module.connect(listener.contact_address)
        return here, await ends.get()


@pytest.mark.parametrize("size", [10, 50_000_000], ids=["receiving", "sending"])
def test_a_connection_that_is_closed_here_is_lost_to_all_that_wait(size):
    """One task waits for the socket, the others for their turns."""

    async def close_under_way():
        here, there = await joined(lambda comm: asyncio.sleep(0))  # nobody replies
        connection = transport.Connection(here)
        tasks = [asyncio.create_task(connection.exchange(transport.REQUEST, [bytes(size)])) for _ in range(3)]
        await asyncio.sleep(0.2)
        connection.close()
        there.abort()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(close_under_way())
    assert all(isinstance(error, OSError) for error in found), found


def test_a_connection_that_the_worker_closes_ends_its_thread():
    _, _, serve = served(None)
    ended = []

    async def handle(comm):
        ended.extend(await asyncio.gather(serve(comm, "actor"), return_exceptions=True))

    async def close_at_worker():
        here, there = await joined(handle)
        assert (await transport._receive(here))[0] == "ready"
        await there.close()
        while not ended:
            await asyncio.sleep(0.05)
        here.abort()

    asyncio.run(asyncio.wait_for(close_at_worker(), 10))
    assert [found.name for found in ended] == ["dont_reply"]
    assert "spinney-connection" not in [thread.name for thread in threading.enumerate()]
