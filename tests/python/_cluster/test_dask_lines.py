"""Lines to actors on Dask workers: what is asked over them is answered in order, and errors are the actor's own."""

import dis
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import spinney
from dask_rows import FEW, make_frame, partitioned
from spinney._cluster import dask_actors, dask_waits
from spinney._cluster import dask_channel as dask_line
from spinney._cluster.actor import Answering
from spinney._cluster.dask_actors import Actors
from spinney._cluster.dask_channel import hear_lines, move_lines

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(120),
]


class UnreadableError(Exception):
    """An error that is not made of one text alone, and so cannot be read again."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class Echo(Answering):
    """An actor that says what it hears, many times."""

    def __init__(self):
        hear_lines(self)

    def heard(self, question):
        if question == b"disk":
            raise OSError("the disk of the actor is full")
        if question == b"odd":
            raise UnreadableError("something", "somewhere")
        return [question, question * (100_000 if len(question) < 100 else 1)]


@pytest.fixture
def asked(client):
    """Actors on two workers, to whom there are sockets."""
    actors = Actors(client)
    for address in client.scheduler_info()["workers"]:
        actors.make(address, Echo)
    actors.connect()
    yield actors
    assert actors._lines
    actors.close()


def test_answers_come_in_the_order_of_questions(asked):
    questions = [bytes([65 + i]) * 30 for i in range(8)]
    waits = [asked.ask(asked.addresses, question) for question in questions]
    for question, wait in zip(questions, waits, strict=True):
        found = wait()
        assert list(found) == asked.addresses
        assert all(bytes(said) == question * 100_001 for said in found.values())


def test_errors_of_an_actor_are_not_those_of_the_way_to_it(asked):
    wait = asked.ask(asked.addresses, b"disk")
    for _ in range(2):  # whoever leaves the answers where they are read hears of it again
        with pytest.raises(OSError, match="disk of the actor"):
            wait()
    with pytest.raises(RuntimeError, match="UnreadableError: something at somewhere"):
        asked.ask(asked.addresses, b"odd")()
    assert len(asked.ask(asked.addresses, b"after")()) == 2


def test_an_actor_that_is_gone_is_left_out(asked):
    gone, here = asked.addresses
    asked._futures[gone] = SimpleNamespace(key="no such actor", status="finished")
    assert list(asked.ask(asked.addresses, b"who")()) == [here]
    assert list(asked.ask(asked.addresses, b"and then")()) == [here]


def test_an_actor_that_goes_while_its_line_is_open_is_left_out(asked):
    gone, here = asked.addresses
    assert len(asked.ask(asked.addresses, b"who")()) == 2
    dask_line._HEARERS.pop(asked._futures[gone].key)
    assert list(asked.ask(asked.addresses, b"and then")()) == [here]


def test_a_worker_that_cannot_answer_any_more_hangs_up(asked, monkeypatch):
    """What Dask would say of it is no answer: its first bytes were read as the number of those to come."""
    ending, here = asked.addresses
    assert len(asked.ask(asked.addresses, b"who")()) == 2
    answer = dask_line._answered

    def answer_unless_ending(actor, question):
        if actor == asked._futures[ending].key:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return answer(actor, question)

    monkeypatch.setattr(dask_line, "_answered", answer_unless_ending)
    assert list(asked.ask(asked.addresses, b"and then")()) == [here]


def test_large_questions_and_answers_pass_one_another(asked):
    """Neither end reads before it has written what it writes: both would wait for ever."""
    question = bytes(80_000_000)
    waits = [asked.ask(asked.addresses, question) for _ in range(2)]
    for wait in waits:
        assert [len(said) for said in wait().values()] == [2 * len(question)] * 2


def test_messages_go_in_parts(asked, monkeypatch):
    monkeypatch.setattr(dask_line, "_MOST_AT_ONCE", 1000)
    question = bytes(range(256)) * 50
    assert [bytes(said) for said in asked.ask(asked.addresses, question)().values()] == [question * 2] * 2


def test_an_interrupt_while_bytes_come_closes_the_line(asked, monkeypatch):
    """Nobody knows how many have come: what comes later would be read as something else."""
    asked.ask(asked.addresses, b"who")()
    one, other = asked._lines.values()
    monkeypatch.setattr(one, "_begin_next", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        asked.ask(asked.addresses, b"and then")()
    assert not one.is_open
    assert other.is_open
    assert list(asked.ask(asked.addresses, b"and now")()) == asked.addresses[1:]


def test_an_interrupt_between_two_lines_leaves_none_behind(asked, monkeypatch):
    """The answers to one question were taken for those to the next."""
    asked.ask(asked.addresses, b"who")()
    _, other = asked._lines.values()
    ask, calls = other.ask, []

    def interrupted(number, question):
        calls.append(number)
        if len(calls) == 1:
            raise KeyboardInterrupt
        ask(number, question)

    monkeypatch.setattr(other, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asked.ask(asked.addresses, b"first")
    found = asked.ask(asked.addresses, b"second")()
    assert [bytes(said[:6]) for said in found.values()] == [b"second"] * 2


def test_answers_that_an_interrupt_has_found_are_heard_again(asked, monkeypatch):
    """They were taken from the line, and waited for once more."""
    wait = asked.ask(asked.addresses, b"who")
    over = asked._answers_over

    def interrupted(lines, number):
        over(lines, number)
        raise KeyboardInterrupt

    monkeypatch.setattr(asked, "_answers_over", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait()
    monkeypatch.undo()
    assert [bytes(said[:3]) for said in wait().values()] == [b"who"] * 2
    assert not any(line.answers for line in asked._lines.values())


def test_connections_are_given_back_whatever_ends_their_opening(asked, client, monkeypatch):
    wait, calls = dask_actors.waited_for, []

    def interrupted(coming, look):
        calls.append(coming)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return wait(coming, look)

    monkeypatch.setattr(dask_actors, "waited_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asked.ask(asked.addresses, b"who")
    monkeypatch.undo()
    assert len(asked.ask(asked.addresses, b"and then")()) == 2
    addresses = asked.addresses
    asked.close()
    began = time.monotonic()
    while any(client.rpc.occupied[address] for address in addresses):
        assert time.monotonic() - began < 30
        time.sleep(0.05)
    for address in addresses:
        asked.make(address, Echo)
    asked.ask(asked.addresses, b"once more")()


def test_a_connection_that_the_client_closes_meanwhile_is_no_line_any_more(asked, client):
    wait = asked.ask(asked.addresses, b"who")
    gone, here = asked._lines.values()
    gone.answers.clear()
    client.sync(_closed, gone.comm)
    move_lines([gone, here], 0.0)
    assert [line.is_open for line in (gone, here)] == [False, True]
    assert list(wait()) == asked.addresses[1:]


async def _closed(comm):
    comm.abort()


POINTS = "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "RESUME"  # after which Python looks for signals
ASKING = "dask_channel.py", "dask_actors.py", "dask_carrier.py"


class Interrupt:
    """A trace that raises KeyboardInterrupt at a point of the files that ask."""

    def __init__(self, at):
        self.at, self.is_on, self.n_points = at, False, 0

    def __call__(self, frame, event, arg):
        if Path(frame.f_code.co_filename).name not in ASKING:
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
    monkeypatch.setattr(dask_waits, "LONGEST_WAIT", 20.0)
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
