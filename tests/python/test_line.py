"""Lines between processes: questions and answers of bytes, for the one who knows the password."""

import socket
import threading

import pytest
from spinney._cluster.line import BrokenLineError, Line, listen

HERE = "127.0.0.1"


def patient():
    """Look whether the other end is there: it is."""


def opened(answer):
    port, password = listen(HERE, answer)
    return Line(HERE, port, password, look_every=0.05)


def test_answers_are_by_block():
    large = bytes(range(256)) * 5000
    line = opened(lambda question: {7: question * 2, 0: b"", 3: large})
    for question in (b"abc", b"", large):
        line.send(question)
        found = line.receive(patient)
        assert {block: bytes(some) for block, some in found.items()} == {7: question * 2, 0: b"", 3: large}
    line.close()


def test_it_is_looked_whether_the_other_end_is_there():
    may_go_on = threading.Event()
    line = opened(lambda question: {0: question} if may_go_on.wait(5) else {})
    looks = []

    def look():
        looks.append(1)
        may_go_on.set()

    line.send(b"x")
    assert bytes(line.receive(look)[0]) == b"x"
    assert looks
    line.close()


def test_a_failure_is_said_in_words():
    def fail(question):
        if question == b"good":
            return {0: b"fine"}
        raise MemoryError("no room for 3 trees")

    line = opened(fail)
    line.send(b"bad")
    with pytest.raises(RuntimeError, match="MemoryError: no room for 3 trees"):
        line.receive(patient)
    line.send(b"good")
    assert bytes(line.receive(patient)[0]) == b"fine"
    line.close()


def test_one_who_does_not_know_the_password_is_hung_up_on():
    asked = []
    port, _ = listen(HERE, asked.append)
    with pytest.raises((BrokenLineError, ConnectionResetError)):
        Line(HERE, port, bytes(32), look_every=1)
    assert not asked
    with pytest.raises(ConnectionRefusedError):  # nobody listens any more
        Line(HERE, port, bytes(32), look_every=1)


def test_an_end_that_is_gone_is_noticed():
    with socket.create_server((HERE, 0)) as listener:

        def hang_up():
            other, _ = listener.accept()
            other.recv(32)
            other.sendall(b"\x01")
            other.recv(9)
            other.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        line = Line(HERE, listener.getsockname()[1], bytes(32), look_every=1)
        line.send(b"?")
        with pytest.raises(BrokenLineError):
            line.receive(patient)
        thread.join()
        line.close()


def test_there_is_no_line_to_a_host_that_is_elsewhere():
    assert listen("192.0.2.1", lambda question: {0: question}) is None  # an address that nobody has
