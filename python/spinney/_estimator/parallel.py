"""Parallel work on threads, or on other machines by joblib, and its progress."""

from __future__ import annotations

import contextvars
import multiprocessing
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

from sklearn import config_context, get_config

import spinney._engine as _engine

Result = TypeVar("Result")
_PATIENCE = 0.5  # seconds that an interrupted call waits for tasks that may be about to end


def count_threads(n_jobs: int | None, n_tasks: int) -> int:
    """Return the number of threads for a number of tasks.

    None and -1 mean all cores that the process may use, -2 all but one; inside another parallel computation of joblib
    it is one.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0. Use None for all the cores the process may use, or a number.")
    from joblib import effective_n_jobs

    return max(1, min(int(effective_n_jobs(-1 if n_jobs is None else n_jobs)), n_tasks))


def in_order(work: Callable[[int], Result], n_tasks: int, n_threads: int) -> Iterator[Result]:
    """Yield work(0), work(1) and so on, computed on threads.

    At most two tasks per thread are running or finished but not yet consumed, which bounds memory. After an error no
    further task is started, and running tasks are awaited. After an interruption the engine's calls stop, and other
    running tasks are awaited briefly; a task that cannot be stopped continues, and its result is dropped.

    Parameters
    ----------
    work : callable
        From the number of a task to its result.
    n_tasks, n_threads : int
        With one thread, tasks run in the thread of the caller.

    Yields
    ------
    object
        Results, in order.
    """
    if n_threads == 1:
        yield from map(work, range(n_tasks))
        return
    settings = get_config()  # scikit-learn has them per thread

    stop = _engine.StopFlag()

    def task(k: int) -> Result:
        stop.obey()
        with config_context(**settings):
            return work(k)

    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="spinney")
    waiting: deque[Future[Any]] = deque()
    numbers = iter(range(n_tasks))
    try:
        for k in islice(numbers, 2 * n_threads):
            waiting.append(_submit(pool, task, k))
        while waiting:
            result = waiting[0].result()
            waiting.popleft()
            for k in islice(numbers, 1):
                waiting.append(_submit(pool, task, k))
            yield result
    except (KeyboardInterrupt, GeneratorExit):
        stop.request()
        pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in waiting if future.running()], timeout=_PATIENCE)
        raise
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


def _submit(pool: ThreadPoolExecutor, task: Callable[[int], Result], k: int) -> Future[Result]:
    """Queue a task in a copy of the context; MemoryError if the system starts no more threads."""
    try:
        return pool.submit(contextvars.copy_context().run, task, k)
    except RuntimeError as error:
        if "thread" not in str(error):
            raise
        raise MemoryError(
            "The system started no more threads: its memory, or its limit of memory or threads, is used up. Use fewer "
            "threads (n_jobs=1), or raise the limit (ulimit -v, ulimit -u)."
        ) from error


_LOCAL = ("sequential", "threading", "loky", "multiprocessing")  # backends of joblib on one machine


def is_distributed() -> bool:
    """Return whether the active backend of joblib runs on other machines, such as Dask's."""
    from joblib.parallel import BACKENDS, get_active_backend

    here = tuple(BACKENDS[name] for name in _LOCAL if name in BACKENDS)
    return not isinstance(get_active_backend()[0], here)


def run_distributed(work: Callable[[Any], Result], inputs: list[Any]) -> list[Result]:
    """Return the results of a function for each input, in order, computed by the active backend of joblib."""
    from joblib import Parallel, delayed

    results: list[Result] = Parallel(n_jobs=-1)(delayed(work)(one) for one in inputs)
    return results


_LINES = 10  # of output per fit, where the output is not a terminal
_TERMINAL_SECONDS = 0.1  # between two updates of the line


SILENT_SECONDS = 2.0  # before progress is shown that was not requested


def is_interactive() -> bool:
    """Return whether standard error is a terminal or the output of a notebook's cell."""
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def is_unwatched() -> bool:
    """Return whether a call that starts here may show progress by default.

    It may not inside another call that does, nor in threads and processes of workers.
    """
    return (
        is_interactive()
        and _watch.get() is None
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.current_process().name == "MainProcess"
    )


class Watch:
    """Shows the progress of a call on standard error, from a thread, once it takes over two seconds.

    A context manager. Calls inside it show no progress by default; the first `Progress` among them is shown.

    Parameters
    ----------
    name : str
        The call; empty: show nothing, here and in calls inside.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._start = time.monotonic()
        self._is_done, self._has_shown = threading.Event(), False
        self._thread = threading.Thread(target=self._run, daemon=True) if name else None
        self.progress: Progress | None = None  # of the call

    def __enter__(self) -> Self:
        self._token = _watch.set(self)
        if self._thread is not None:
            try:
                self._thread.start()
            except RuntimeError:  # the system starts no more threads: there is no progress
                self._thread = None
        return self

    def __exit__(self, *_: object) -> None:
        _watch.reset(self._token)
        if self._thread is not None:
            self._is_done.set()
            self._thread.join()
        if self._has_shown:
            self._show()
            print(file=sys.stderr, flush=True)

    def _run(self) -> None:
        wait = SILENT_SECONDS
        while not self._is_done.wait(wait):
            self._show()
            wait = _TERMINAL_SECONDS

    def _show(self) -> None:
        self._has_shown = True
        seconds = time.monotonic() - self._start
        line = f"{seconds:.1f} s" if self.progress is None else self.progress.line(seconds)
        print(f"\r\x1b[2K{self._name}: {line}", end="", file=sys.stderr, flush=True)


_watch: contextvars.ContextVar[Watch | None] = contextvars.ContextVar("watch", default=None)


class Progress:
    """Progress reports on standard error; a context manager, which ends the line.

    Parameters
    ----------
    noun : str
        The counted things, in the plural.
    n_wanted : int
        The total number, or its maximum.
    is_most : bool
        Whether `n_wanted` is a maximum.
    n_before : int
        The number at the start.
    verbose : int or None
        0: no output; 2: if the output is not a terminal, one line for every report. None: shown by the `Watch` of the
        call, if there is one.
    delay : float, default=0.0
        Seconds before the first line.
    """

    def __init__(
        self, noun: str, n_wanted: int, is_most: bool, n_before: int, verbose: int | None, delay: float = 0.0
    ) -> None:
        self._noun = noun
        self._n_wanted = n_wanted
        self._is_most = is_most
        self._n_before = n_before
        self._verbose = verbose or 0
        self._latest: tuple[int, str] | None = None  # for the watch
        self.is_over: bool = False
        self._watch = _watch.get() if verbose is None else None
        if self._watch is not None and (self._watch.progress is None or self._watch.progress.is_over):
            self._watch.progress = self
        self._is_terminal = is_interactive()
        self._start = time.monotonic()
        self._silent_until = self._start + delay
        self._shown_at = self._start - _TERMINAL_SECONDS
        self._n_shown = n_before
        self._pending = ""  # the last line that was not shown
        self._has_shown = False

    @property
    def is_watched(self) -> bool:
        """Whether the watch of the call shows this progress."""
        return self._watch is not None and self._watch.progress is self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over = True
        if self._pending:
            self._show(self._pending)
        if self._is_terminal and self._has_shown:
            print(file=sys.stderr, flush=True)

    def report(self, n_done: int, error: float | None = None, note: str = "") -> None:
        """Report the number done, and the out-of-bag error so far or another note."""
        if n_done <= self._n_before:
            return
        if self.is_watched:
            self._latest = n_done, note if error is None else _out_of_bag(error)
        if not self._verbose:
            return
        now = time.monotonic()
        if now < self._silent_until:
            return
        note = note if error is None else _out_of_bag(error)
        self._pending = self._line(n_done, note, now - self._start)
        if self._is_terminal:
            is_due = now - self._shown_at >= _TERMINAL_SECONDS
        else:
            step = 1 if self._verbose > 1 else max(1, self._n_wanted // _LINES)
            is_due = n_done // step > self._n_shown // step
        if is_due or n_done == self._n_wanted:
            self._shown_at, self._n_shown = now, n_done
            self._show(self._pending)

    def line(self, seconds: float) -> str:
        """Return the latest report after some seconds."""
        return f"{seconds:.1f} s" if self._latest is None else self._line(*self._latest, seconds)

    def _line(self, n_done: int, note: str, seconds: float) -> str:
        left = seconds / (n_done - self._n_before) * (self._n_wanted - n_done)
        most = "at most " if self._is_most else ""
        return f"{n_done} of {most}{self._n_wanted} {self._noun}{note}, {seconds:.1f} s, {most}{left:.1f} s left"

    def _show(self, line: str) -> None:
        self._pending, self._has_shown = "", True
        if self._is_terminal:
            print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


def _out_of_bag(error: float) -> str:
    return f", out-of-bag error {error:.4g}"
