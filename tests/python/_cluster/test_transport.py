"""Transport of requests to actors on Dask workers: they are answered in order, and errors are the actor's own."""

import dis
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
import spinney
from dask_rows import FEW, make_frame, partitioned
from spinney._cluster import dask as waits
from spinney._cluster.actor import Actor, RemoteActor, request_all, wait_until_ready
from spinney._cluster.transport import Connection, SchedulerChannel

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(120),
]


class UnreadableError(Exception):
    """An error that is not made of one text alone, and so cannot be read again."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class Echo(Actor):
    """An actor that answers with the request, many times."""

    def answer(self, request):
        if request == b"disk":
            raise OSError("the disk of the actor is full")
        if request == b"odd":
            raise UnreadableError("something", "somewhere")
        return bytes(request) * (100_000 if len(request) < 100 else 1)

    def double(self, number):
        return 2 * number


@pytest.fixture(params=["connections", "scheduler"])
def echoes(client, request, monkeypatch):
    """Actors on two workers, called over connections or through the scheduler."""
    monkeypatch.setattr(client, "direct_to_workers", request.param == "connections")
    with ExitStack() as stack:
        actors = [stack.enter_context(closing(RemoteActor(client, address, Echo))) for address in client.nthreads()]
        wait_until_ready(client, actors)
        kind = Connection if request.param == "connections" else SchedulerChannel
        assert all(isinstance(actor._channel, kind) for actor in actors)
        yield actors


def test_answers_come_in_the_order_of_requests(client, echoes):
    requests = [bytes([65 + i]) * 30 for i in range(8)]
    waiting = [request_all(client, echoes, request) for request in requests]
    for request, wait in zip(requests, waiting, strict=True):
        assert [bytes(answer) for answer in wait()] == [request * 100_000] * 2
    assert [actor.call("double", 21) for actor in echoes] == [42, 42]


def test_errors_of_an_actor_are_not_transport_errors(client, echoes):
    wait = request_all(client, echoes, b"disk")
    for _ in range(2):  # whoever was interrupted may wait again
        with pytest.raises(OSError, match="disk of the actor"):
            wait()
    with pytest.raises(RuntimeError, match="UnreadableError: something at somewhere"):
        request_all(client, echoes, b"odd")()
    assert None not in request_all(client, echoes, b"after")()


def test_an_actor_that_is_gone_has_no_answer(client, echoes):
    gone, here = echoes
    client.run(lambda dask_worker: dask_worker.state.actors.clear(), workers=[gone.address])
    for _ in range(2):
        first, second = request_all(client, [gone, here], b"who")()
        assert first is None
        assert second is not None
    with pytest.raises(waits.WorkerLostError):
        gone.call("double", 1)


def test_a_closed_connection_ends_what_is_under_way(client, echoes):
    wait = request_all(client, echoes, bytes(20_000_000))
    echoes[0].close()
    echoes[1].close()
    assert len(wait()) == 2
    assert request_all(client, echoes, b"who")() == [None, None]


@pytest.mark.parametrize("size", [1000, 80_000_000])  # below what a socket takes at once, and above
def test_large_requests_and_answers_pass_one_another(client, echoes, size):
    """Neither end reads before it has written what it writes: both would wait for ever."""
    request = bytes(size)
    waiting = [request_all(client, echoes, request) for _ in range(2)]
    for wait in waiting:
        assert [len(answer) for answer in wait()] == [size] * 2


@pytest.mark.parametrize("size", [100, 12_800, 5_000_000])
def test_answers_of_any_size_are_the_same_bytes(client, echoes, size):
    request = np.random.default_rng(0).bytes(size)
    assert request_all(client, echoes, request)() == [request] * 2


def test_answers_are_there_again_after_an_interrupt(client, echoes, monkeypatch):
    """An interrupt while answers come leaves none for the next request."""
    first, wait = request_all(client, echoes, b"first"), waits.wait

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(waits, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        first()
    monkeypatch.setattr(waits, "wait", wait)
    second = request_all(client, echoes, b"second")
    assert [bytes(answer[:6]) for answer in second()] == [b"second"] * 2
    assert [bytes(answer[:5]) for answer in first()] == [b"first"] * 2


def test_a_connection_to_no_actor_is_refused(client):
    address = min(client.nthreads())
    with closing(RemoteActor(client, address, Echo)) as actor:
        wait_until_ready(client, [actor])
        with pytest.raises(OSError):  # noqa: PT011
            client.sync(Connection.open, client, address, "no such actor")


POINTS = "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "RESUME"  # after which Python looks for signals
SENDING = "transport.py", "actor.py", "blocks.py", "dask.py"


class Interrupt:
    """A trace that raises KeyboardInterrupt at a point of the files that send requests."""

    def __init__(self, at):
        self.at, self.is_on, self.n_points = at, False, 0

    def __call__(self, frame, event, arg):
        path = Path(frame.f_code.co_filename)
        if path.parent.name != "_cluster" or path.name not in SENDING:
            return None
        frame.f_trace_opcodes = True
        before = [None]

        def trace(frame, event, arg):
            if event == "opcode":
                if before[0] in POINTS and self.is_on:
                    self.n_points += 1
                    if self.n_points == self.at:
                        self.is_on = False
                        raise KeyboardInterrupt
                before[0] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            return trace

        return trace


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
def test_an_interrupt_at_any_point_keeps_the_rounds_before_it(client, monkeypatch, first):
    monkeypatch.setattr(waits, "MAX_WAIT_SECONDS", 20.0)
    options = FEW | {"n_estimators": 5, "keep_interrupted": True}
    frame = make_frame(9000)
    rows, plain = partitioned(frame, [4096]), frame.drop(columns="y")
    expected = spinney.GradientBoostingRegressor(**options | {"n_estimators": 2}).fit(plain, frame["y"]).predict(plain)
    n_interrupted = 0
    for at in range(1 + 5 * first, 400, 20):
        interrupt = Interrupt(at)

        def after_two_rounds(progress, interrupt=interrupt):
            interrupt.is_on = progress["round"] == 2

        model = spinney.GradientBoostingRegressor(**options, callbacks=after_two_rounds)
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            model.fit(rows, "y")
        finally:
            sys.settrace(before)
        if interrupt.n_points < at:
            break
        n_interrupted += 1
        assert np.array_equal(model.predict(plain), expected)
    assert n_interrupted >= 5
