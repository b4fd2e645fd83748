"""Python work on several threads: results in order, a few tasks ahead, nothing copied."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

from sklearn import config_context, get_config

import spinney._engine as _engine

Result = TypeVar("Result")
_PATIENCE = 0.5  # seconds that an interrupted call waits for tasks that may be about to end


def count_threads(n_jobs: int | None, n_tasks: int) -> int:
    """Return the number of threads for so many tasks.

    None stands for all cores that the process may use, -1 too, -2 for all but one; inside another parallel computation
    of joblib it is one.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0. Use None for all the cores the process may use, or a number.")
    from joblib import effective_n_jobs

    return max(1, min(int(effective_n_jobs(-1 if n_jobs is None else n_jobs)), n_tasks))


def in_order(work: Callable[[int], Result], n_tasks: int, n_threads: int) -> Iterator[Result]:
    """Yield work(0), work(1) and so on, computed on threads.

    At most two tasks per thread are under way or waiting to be fetched, so that results do not pile up. After an error
    no further task is started, and those that run are waited for. After an interruption the engine's calls stop, and
    what else runs is waited for briefly: a task that cannot be stopped runs to its end, and its result is dropped.

    Parameters
    ----------
    work : callable
        From the number of a task to its result.
    n_tasks, n_threads : int
        With one thread everything runs in the caller's.

    Yields
    ------
    object
        Results, in order.
    """
    if n_threads == 1:
        yield from map(work, range(n_tasks))
        return
    settings = get_config()  # scikit-learn keeps them by thread

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
            waiting.append(pool.submit(contextvars.copy_context().run, task, k))
        while waiting:
            result = waiting[0].result()
            waiting.popleft()
            for k in islice(numbers, 1):
                waiting.append(pool.submit(contextvars.copy_context().run, task, k))
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
