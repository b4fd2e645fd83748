"""Progress of an evaluation: a bar in a terminal or notebook, lines in a pipe if requested, or calls of a function."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time as clock
from types import TracebackType
from typing import Self

from spinney._data.display import elide, one_line
from spinney._estimator.parallel import SILENT_SECONDS, Progress, Watch, is_interactive
from spinney._evaluate.runner import Budget, ProgressCall

_WIDTH, _BAR = 80, 20  # columns
_REDRAWN = 0.1  # seconds between two drawings


class StatusLine:
    """A line on standard error: a bar, the current step, the time so far, and the time left at most.

    A context manager. A thread draws it, so that it moves during long fits; it is erased at the end. The time left is
    never raised by more than a tenth.

    Parameters
    ----------
    start : float, optional
        Start on the monotonic clock. None: now.
    delay : float, default=0.0
        Seconds before the line appears.
    """

    def __init__(self, start: float | None = None, delay: float = 0.0) -> None:
        self._start = clock.monotonic() if start is None else start
        self._delay, self._end = delay, math.inf
        self._step = "reading the table"
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._has_drawn = False
        self.spare = 0.0  # seconds of what follows the evaluation, such as a report

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_done.set()
        self._thread.join()
        if self._has_drawn:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)

    def __call__(self, n_done: int, n_fits: int, step: str, left: float) -> None:
        """Show another step, and the expected seconds left, as a progress function of a study."""
        now = clock.monotonic()
        self._end = now + min(left + self.spare, 1.1 * max(0.0, self._end - now))
        self._step = step

    def line(self, now: float, width: int = _WIDTH) -> str:
        """Return the line at some time, of fewer characters than the width."""
        so_far, left = max(0.0, now - self._start), max(0.0, self._end - now)
        known = math.isfinite(left)
        n_full = int(_BAR * so_far / (so_far + left)) if known and so_far > 0 else 0
        times = _minutes(so_far) + (f", at most {_minutes(left)} left" if known else "")
        bar = "█" * n_full + "░" * (_BAR - n_full)
        return f"{bar} {elide(one_line(self._step), max(8, width - _BAR - len(times) - 5))}  {times}"[: width - 1]

    def _run(self) -> None:
        wait = self._delay
        while not self._is_done.wait(wait):
            self._has_drawn, wait = True, _REDRAWN
            width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
            print(f"\r\x1b[2K{self.line(clock.monotonic(), width)}", end="", file=sys.stderr, flush=True)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class EvaluationProgress(Progress):
    """Reports the progress of an evaluation: to a function of the caller, or on standard error.

    Parameters
    ----------
    progress : bool, callable or None
        Argument of the caller. None: in a terminal or notebook, after two seconds.
    n_fits : int
        Planned number of fits.
    budget : Budget
    """

    def __init__(self, progress: bool | ProgressCall | None, n_fits: int, budget: Budget) -> None:
        shows = is_interactive() if progress is None else bool(progress) and not callable(progress)
        delay = SILENT_SECONDS if progress is None else 0.0
        self._status = StatusLine(clock.monotonic() - budget.elapsed, delay) if shows and is_interactive() else None
        self._call: ProgressCall | None = progress if callable(progress) else self._status
        super().__init__("fits", n_fits, True, 0, int(shows and self._status is None), delay=delay)
        self.n_fits, self._n_done, self._left, self.budget = n_fits, 0, math.inf, budget
        self._quiet = Watch()  # the fits show nothing

    def __enter__(self) -> Self:
        self._quiet.__enter__()
        if self._status is not None:
            self._status.__enter__()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.__exit__(kind, error, trace)
        self._quiet.__exit__()
        super().__exit__(kind, error, trace)

    def step(self, what: str, left: float | None = None) -> None:
        """Count a fit as finished or started, and report the expected seconds left; None: by the pace so far."""
        self._n_done = min(self._n_done + 1, self.n_fits)
        self.report(self._n_done)
        if self._call is not None:
            if left is None:
                left = self.budget.elapsed / self._n_done * (self.n_fits - self._n_done)
            self.begin(what, left)

    def begin(self, what: str, left: float) -> None:
        """Report that a fit begins, and the expected seconds left."""
        if self._call is not None:
            self._left = max(0.0, min(self.budget.left, left, 1.1 * self._left))
            self._call(self._n_done, self.n_fits, what, self._left)

    def done(self) -> None:
        """Report the end."""
        self._n_done = self.n_fits - 1
        self.step("done")
