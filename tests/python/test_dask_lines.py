"""Lines to actors on Dask workers: what is asked over them is answered in order, and errors are the actor's own."""

from types import SimpleNamespace

import pytest
from spinney._cluster import dask_line
from spinney._cluster.actor import Answering
from spinney._cluster.dask_actors import Actors
from spinney._cluster.dask_line import hear_lines

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


def test_an_interrupt_while_bytes_come_closes_the_line(asked, monkeypatch):
    """Nobody knows how many have come: what comes later would be read as something else."""
    wait = asked.ask(asked.addresses, b"who")
    one, other = asked._lines.values()
    monkeypatch.setattr(one, "_begin_next", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert not one.is_open
    assert other.is_open
    assert list(wait()) == list(asked.ask(asked.addresses, b"and then")()) == asked.addresses[1:]
