"""Progress of a study, as a function of the caller or lines on standard error."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from spinney._estimator.progress import Progress
from spinney._evaluate.study.run import Budget


class Teller:
    """Tells how far a study is.

    Parameters
    ----------
    progress : bool or callable
        What the caller of `study` gave.
    n_fits : int
        Fits there will be, if time allows.
    budget : Budget
    """

    def __init__(self, progress: Any, n_fits: int, budget: Budget) -> None:
        self._call = progress if callable(progress) else None
        self._lines = Progress("fits", n_fits, True, 0, int(bool(progress) and self._call is None))
        self._n_fits, self._n_done, self._budget = n_fits, 0, budget

    def __enter__(self) -> Self:
        self._lines.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.__exit__(kind, error, trace)

    def fold(self, name: str, n: int, of: int) -> None:
        """Tell that a model was fitted to a fold."""
        self._tell(f"{name}, fold {n} of {of}")

    def step(self, what: str) -> None:
        """Tell that another fit begins."""
        self._tell(what)

    def done(self) -> None:
        """Tell that all is done."""
        self._n_done = self._n_fits - 1
        self._tell("done")

    def _tell(self, what: str) -> None:
        self._n_done = min(self._n_done + 1, self._n_fits)
        self._lines.report(self._n_done)
        if self._call is not None:
            pace = self._budget.elapsed / self._n_done
            left = max(0.0, min(self._budget.left, pace * (self._n_fits - self._n_done)))
            self._call(self._n_done, self._n_fits, what, left)
