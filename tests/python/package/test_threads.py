"""The thread pool as Python meets it: fork, Ctrl-C, limits, environment, exit."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from spinney import _engine

HAS_AFFINITY = hasattr(os, "sched_setaffinity")
THREAD_VARIABLES = ("SPINNEY_NUM_THREADS", "OMP_NUM_THREADS")

# Python warns of what these tests do on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def start_python(code, **environment):
    """Start a fresh interpreter on `code`, with no thread variable but those given."""
    env = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-W", "error", "-c", textwrap.dedent(code)],
        env=env | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(code, **environment):
    """Output of a fresh interpreter that must end well and say nothing on stderr."""
    with start_python(code, **environment) as process:
        try:
            output, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert (process.returncode, errors) == (0, "")
    return output.strip()


def exit_status_of_fork(body, timeout=60.0):
    """Exit status of a forked child that runs `body`; fails where it hangs."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = body()
        finally:
            os._exit(status)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the forked child hangs")


def n_threads_of_process():
    return len(os.listdir("/proc/self/task"))


# ---- fork ----------------------------------------------------------------------------------------------


def spin_in_child():
    _engine._spin(0.02, 4)
    return 42 if n_threads_of_process() == 4 else 3


def spin_and_send(connection):
    connection.send(spin_in_child())
    connection.close()


def test_fork_after_use_then_use_in_child():
    for _ in range(5):
        _engine._spin(0.01, 4)
        assert exit_status_of_fork(spin_in_child) == 42
    _engine._spin(0.01, 4)


def test_fork_of_a_fork():
    _engine._spin(0.01, 4)
    assert exit_status_of_fork(lambda: exit_status_of_fork(spin_in_child)) == 42


def test_fork_while_other_threads_use_the_pool():
    stop = threading.Event()

    def use():
        while not stop.is_set():
            _engine._spin(0.003, 4)

    users = [threading.Thread(target=use) for _ in range(2)]
    for user in users:
        user.start()
    try:
        for _ in range(10):
            assert exit_status_of_fork(spin_in_child) == 42
    finally:
        stop.set()
        for user in users:
            user.join()


def test_multiprocessing_fork_after_use():
    _engine._spin(0.01, 4)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=spin_and_send, args=(sender,))
    process.start()
    assert receiver.poll(60), "the forked child hangs"
    assert receiver.recv() == 42
    process.join(60)
    assert process.exitcode == 0


# ---- Ctrl-C --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 20])
def test_ctrl_c_ends_a_long_call(n_jobs):
    code = f"""
        import time
        from spinney import _engine
        print("ready", flush=True)
        try:
            _engine._spin(60.0, {n_jobs})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        _engine._spin(0.05, {n_jobs})
        print("and well", flush=True)
    """
    with start_python(code) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        line = process.stdout.readline()
        elapsed = time.monotonic() - start
        output, errors = process.communicate(timeout=60)
    assert (line, output, errors, process.returncode) == ("interrupted\n", "and well\n", "", 0)
    assert elapsed < 30.0  # half of what it would have taken; some milliseconds on an idle machine


def test_a_signal_handler_that_returns_does_not_stop_the_call():
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        start = time.monotonic()
        _engine._spin(3.0, 2)
        end = time.monotonic()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert end - start >= 3.0
    assert len(seen) == 1
    assert seen[0] < start + 2.5, "the handler runs during the call"


def test_the_exception_of_a_signal_handler_arrives_unchanged():
    def handler(*_):
        raise LookupError("from the handler")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        start = time.monotonic()
        with pytest.raises(LookupError, match="from the handler"):
            _engine._spin(60.0, 2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - start < 30.0


# ---- several Python threads, many workers --------------------------------------------------------------


def test_the_gil_is_free_during_a_call():
    ticks = []
    thread = threading.Thread(target=_engine._spin, args=(2.0, 1))
    thread.start()
    while thread.is_alive():
        ticks.append(time.monotonic())
        time.sleep(0.01)
    thread.join()
    assert len(ticks) >= 5


def looked_at():
    """Calls that look at all numbers of a large array, and do nothing else."""
    n = 200_000
    table = _engine.Table(n)
    rows, numbers, codes = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.uint32), np.zeros(n, dtype=np.int32)
    values = np.ones(n)
    table.add_number(values)
    starts, some = np.array([0, n // 2, n], dtype=np.int64), np.tile(rows[: n // 2], 2)
    return {
        "add_category": lambda: _engine.Table(n).add_category(codes, 2),
        "add_sparse": lambda: _engine.Table(n).add_sparse(rows, values),
        "add_csc": lambda: _engine.Table(n).add_csc(starts, some, values),
        "column": lambda: table.column(0),
        "values_at": lambda: table.values_at(0, numbers),
    }


@pytest.mark.parametrize("name", looked_at())
def test_other_threads_go_on_while_numbers_are_looked_at(name):
    call, gate, went_on = looked_at()[name], threading.Lock(), threading.Event()
    gate.acquire()
    thread = threading.Thread(target=lambda: (gate.acquire(), went_on.set()))
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(
        1e3
    )  # seconds: nobody is made to give way, so that the thread goes on only if the call lets it
    try:
        gate.release()
        end = time.monotonic() + 20.0
        while not went_on.is_set() and time.monotonic() < end:
            call()
        has_gone_on = went_on.is_set()
    finally:
        sys.setswitchinterval(before)
    thread.join()
    assert has_gone_on


def test_two_python_threads_at_once():
    durations = []

    def use():
        start = time.monotonic()
        _engine._spin(0.3, 2)
        durations.append(time.monotonic() - start)

    threads = [threading.Thread(target=use) for _ in range(2)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(durations) == 2
    assert min(durations) >= 0.3
    assert time.monotonic() - start < 30.0


def test_one_hundred_threads_whatever_the_cores():
    code = """
        import os
        from spinney import _engine
        _engine._spin(0.2, 100)
        print(len(os.listdir("/proc/self/task")))
        _engine._spin(0.05, 3)
        print(len(os.listdir("/proc/self/task")))
    """
    assert run_python(code).split() == ["100", "100"]


def test_one_thread_starts_no_pool():
    code = """
        import os
        from spinney import _engine
        _engine._spin(0.02, 1)
        print(len(os.listdir("/proc/self/task")))
    """
    assert run_python(code) == "1"


def test_an_idle_pool_uses_no_cpu():
    _engine._spin(0.02, 8)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05


# ---- how many threads ----------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_AFFINITY, reason="needs affinity masks")
def test_available_threads_follows_affinity():
    code = """
        import os
        from spinney import _engine
        cpus = sorted(os.sched_getaffinity(0))
        print(_engine.available_threads() <= len(cpus))
        os.sched_setaffinity(0, cpus[:1])
        print(_engine.available_threads(), _engine.resolve_threads(None), _engine.resolve_threads(-1))
        print(_engine.resolve_threads(5))
    """
    assert run_python(code).split() == ["True", "1", "1", "1", "5"]


def test_available_threads_is_at_most_the_hardware():
    assert 1 <= _engine.available_threads() <= os.cpu_count()


def test_n_jobs():
    available = _engine.available_threads()
    assert _engine.resolve_threads(3) == 3
    assert _engine.resolve_threads(10**6) == 1024
    assert _engine.resolve_threads(-1) == available
    assert _engine.resolve_threads(-2) == max(1, available - 1)
    assert _engine.resolve_threads(-(10**6)) == 1


def test_environment(monkeypatch):
    available = _engine.available_threads()
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert _engine.resolve_threads(None) == available
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert _engine.resolve_threads(None) == 1
    assert _engine.resolve_threads(4) == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "1000")
    assert _engine.resolve_threads(None) == available
    monkeypatch.setenv("SPINNEY_NUM_THREADS", "7")
    assert _engine.resolve_threads(None) == 7
    assert _engine.resolve_threads(2) == 2
    monkeypatch.setenv("SPINNEY_NUM_THREADS", "seven")
    with pytest.raises(ValueError, match="SPINNEY_NUM_THREADS is 'seven'; set it to a whole number"):
        _engine.resolve_threads(None)
    assert _engine.resolve_threads(2) == 2


def test_environment_at_start():
    code = "from spinney import _engine; print(_engine.resolve_threads(None))"
    assert run_python(code, SPINNEY_NUM_THREADS="9") == "9"
    assert run_python(code, OMP_NUM_THREADS="1") == "1"


def test_joblib_workers_share_the_cores():
    code = """
        import joblib

        def n_threads():
            from spinney import _engine
            _engine._spin(0.01, 2)
            return _engine.resolve_threads(None)

        if __name__ == "__main__":
            counts = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(n_threads)() for _ in range(4))
            print(*counts)
    """
    expected = max(1, _engine.available_threads() // 2)
    assert run_python(code).split() == [str(expected)] * 4


# ---- exit ----------------------------------------------------------------------------------------------


def test_exit_with_a_sleeping_pool():
    assert run_python("from spinney import _engine; _engine._spin(0.02, 8); print('bye')") == "bye"


@pytest.mark.parametrize("seconds", [0.2, 30.0])
def test_exit_while_a_daemon_thread_is_busy(seconds):
    code = f"""
        import threading, time
        from spinney import _engine

        class SlowToGo:  # the shorter calls end while the interpreter is being taken down
            def __del__(self, sleep=time.sleep):
                sleep(0.4)

        slow_to_go = SlowToGo()
        for _ in range(2):
            threading.Thread(target=_engine._spin, args=({seconds}, 2), daemon=True).start()
        time.sleep(0.05)
        print("bye")
    """
    assert run_python(code) == "bye"
