"""The time that an evaluation may take, here or on another machine."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable


class Budget:
    """Seconds that an evaluation may take, and how fast the machine is against the counted work.

    It goes by the monotonic clock, which nobody sets. That clock means nothing on another machine: a budget that is
    sent there travels with its time of day, and the two machines must agree on that.

    Parameters
    ----------
    seconds : float or None
        None: there is no end.
    start : float, optional
        When it began, by the monotonic clock. None: now.
    """

    def __init__(self, seconds: float | None, start: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start = clock.monotonic() if start is None else start
        self._pace = 1.0
        self._worked = self._spent = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return clock.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - self.elapsed

    def is_over(self) -> bool:
        """Tell whether no time is left."""
        return self.left < 0

    def expected(self, work: float) -> float:
        """Seconds that some counted work may take here, by what was done so far."""
        return work * self._pace

    def learn(self, work: float, seconds: float) -> None:
        """Note how long some counted work took."""
        self._worked, self._spent = self._worked + work, self._spent + seconds
        if self._worked > 0.5:  # short fits tell little
            self._pace = self._spent / self._worked

    def __reduce__(self) -> tuple[Callable[[float, float], Budget], tuple[float, float]]:
        return _budget_of, (self.seconds, clock.time() - self.elapsed)


def _budget_of(seconds: float, began: float) -> Budget:
    return Budget(seconds, clock.monotonic() - (clock.time() - began))
