"""A time by which work is to be begun, here or on another machine."""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """A moment some seconds from now, by the clock that nobody sets.

    That clock means nothing on another machine: one that is sent there travels as a time of day, and the two machines
    must agree on that.

    Parameters
    ----------
    seconds : float or None
        None: it never comes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Tell whether the moment has passed."""
        return self._end is not None and time.monotonic() > self._end

    def __reduce__(self) -> tuple[Callable[[float | None], Deadline], tuple[float | None]]:
        return _deadline_at, (None if self._end is None else time.time() + (self._end - time.monotonic()),)


def _deadline_at(time_of_day: float | None) -> Deadline:
    return Deadline(None if time_of_day is None else time_of_day - time.time())
