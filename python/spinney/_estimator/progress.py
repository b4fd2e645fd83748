"""Progress of a long fit: one changing line on a terminal, a few plain lines elsewhere, nothing unless asked for."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_LINES = 10  # of output per fit, where the output is not a terminal
_TERMINAL_SECONDS = 0.1  # between two changes of the line


class Progress:
    """Reports to standard error; use it as a context manager, so that the line ends.

    Parameters
    ----------
    noun : str
        What is counted, in the plural.
    n_wanted : int
        How many there will be, or may be.
    is_most : bool
        Whether there may be fewer.
    n_before : int
        How many there were at the start.
    verbose : int
        0: say nothing; 2: if the output is not a terminal, one line for every report.
    """

    def __init__(self, noun: str, n_wanted: int, is_most: bool, n_before: int, verbose: int) -> None:
        self._noun = noun
        self._n_wanted = n_wanted
        self._is_most = is_most
        self._n_before = n_before
        self._verbose = verbose
        self._is_terminal = sys.stderr.isatty()
        self._start = time.monotonic()
        self._shown_at = self._start - _TERMINAL_SECONDS
        self._n_shown = n_before
        self._pending = ""  # the last line that was not shown
        self._has_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pending:
            self._show(self._pending)
        if self._is_terminal and self._has_shown:
            print(file=sys.stderr, flush=True)

    def report(self, n_done: int, error: float | None = None) -> None:
        """Say how many are done, and the out-of-bag error so far."""
        if not self._verbose or n_done <= self._n_before:
            return
        now = time.monotonic()
        self._pending = self._line(n_done, error, now - self._start)
        if self._is_terminal:
            is_due = now - self._shown_at >= _TERMINAL_SECONDS
        else:
            step = 1 if self._verbose > 1 else max(1, self._n_wanted // _LINES)
            is_due = n_done // step > self._n_shown // step
        if is_due or n_done == self._n_wanted:
            self._shown_at, self._n_shown = now, n_done
            self._show(self._pending)

    def _line(self, n_done: int, error: float | None, seconds: float) -> str:
        left = seconds / (n_done - self._n_before) * (self._n_wanted - n_done)
        judged = "" if error is None else f", out-of-bag error {error:.4g}"
        most = "at most " if self._is_most else ""
        return f"{n_done} of {most}{self._n_wanted} {self._noun}{judged}, {seconds:.1f} s, {most}{left:.1f} s left"

    def _show(self, line: str) -> None:
        self._pending, self._has_shown = "", True
        if self._is_terminal:
            print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
