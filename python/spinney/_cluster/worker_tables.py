"""Tables that tasks leave on a worker for an actor that is to come; none stays for long if it does not."""

from __future__ import annotations

from contextlib import suppress
from threading import Timer
from typing import Any

from spinney._cluster.dask_waits import begun

_LEFT: dict[tuple[str, Any], tuple[Any, Timer]] = {}  # by fit, and what else tells them apart
FEEDS: dict[tuple[str, Any], Any] = {}  # tables that are on their way to files, likewise
_OVER: dict[str, None] = {}  # fits that are over before they were done, the latest last
_MOST_OVER = 100
_LONGEST = 1800.0  # seconds that a table waits
_SHORT_WAIT = 5.0  # seconds for workers to answer


def leave(fit: str, which: Any, table: Any) -> None:
    """Leave a table for an actor of this process, unless the fit is over."""
    if fit in _OVER:
        return
    timer = Timer(_LONGEST, _LEFT.pop, ((fit, which), None))  # the client may be gone
    timer.daemon = True
    timer.name = "spinney-left"
    _LEFT[fit, which] = table, timer
    timer.start()


def take(fit: str, which: Any) -> Any:
    """Return a table that was left, and keep it no longer."""
    table, timer = _LEFT.pop((fit, which))
    timer.cancel()  # it is a thread
    return table


def n_left() -> int:
    """Return how many tables wait in this process."""
    return len(_LEFT)


def forget(fit: str) -> None:
    """Let go of what a fit has left in this process, and of what its last tasks are about to leave."""
    _OVER[fit] = None
    while len(_OVER) > _MOST_OVER:
        _OVER.pop(next(iter(_OVER)), None)
    for key in [key for key in list(_LEFT) if key[0] == fit]:
        if (found := _LEFT.pop(key, None)) is not None:
            found[1].cancel()
    for key in [key for key in list(FEEDS) if key[0] == fit]:
        if (feed := FEEDS.pop(key, None)) is not None:
            feed.give_up()


def is_over(fit: str) -> bool:
    """Tell whether a fit was forgotten."""
    return fit in _OVER


def forget_everywhere(client: Any, fit: str) -> None:
    """Have all workers let go of what a fit has left; whoever does not answer is asked in vain."""
    with suppress(Exception):
        begun(client, lambda: client.run(forget, fit, on_error="ignore")).result(timeout=_SHORT_WAIT)
