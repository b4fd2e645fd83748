"""A user's formula of one row: its value and derivatives, for all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.losses.blocks import InBlocks
from spinney._data.numeric.jets import derivatives
from spinney._data.numeric.recorded import recorded

Floats = NDArray[np.float64]
_TRIED, _OFF = 1000, 1e-9  # rows that show whether the engine computes the same, and what it may be off, of the largest


class FormulaOfRows:
    """Value, first and second derivative of a formula, by score.

    The engine computes them, by a program of the formula's operations, if it has all of these and gives what NumPy
    gives at some rows; otherwise NumPy does.
    """

    def __init__(self, formula: Callable[[Any, Any], Any], n_jobs: int | None) -> None:
        self._formula = formula
        self._by_numpy = InBlocks(lambda y, f: derivatives(lambda at: formula(y, at), f), n_jobs)
        self._program: Any = None
        self._is_tried = False
        self._n_jobs = n_jobs or 0

    def __call__(self, y: Floats, f: Floats, out: Floats | None = None) -> Floats | tuple[Floats, ...]:
        """Return the three by row; `out`, (3, n_rows), may be written to."""
        if not self._is_tried:
            self._is_tried = True
            self._program = self._proved(y, f)
        return self._by_numpy(y, f) if self._program is None else self._run(self._program, y, f, out)

    def _run(self, program: Any, y: Floats, f: Floats, out: Floats | None = None) -> Floats:
        found = np.empty((3, len(y))) if out is None else out
        program.run(np.ascontiguousarray(y), np.ascontiguousarray(f), found, self._n_jobs)
        return found

    def _proved(self, y: Floats, f: Floats) -> Any:
        """Return the program, if there is one that does the same."""
        program = recorded(self._formula)
        if program is None:
            return None
        some = np.unique(np.linspace(0, len(y) - 1, _TRIED).astype(np.intp))
        wanted = derivatives(lambda at: self._formula(y[some], at), f[some])
        is_same = all(
            np.allclose(mine, theirs, rtol=_OFF, atol=_OFF * float(np.abs(theirs).max(initial=0.0)), equal_nan=True)
            for mine, theirs in zip(self._run(program, y[some], f[some]), wanted, strict=True)
        )
        return program if is_same else None
