"""A formula of rows, computed in blocks that stay in a core's cache, on several threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.threads import count_threads, in_order

Floats = NDArray[np.float64]
Formula = Callable[[Floats, Floats], tuple[Floats, ...]]  # of targets and scores, row by row
_ROWS = 32_768  # of a block: the arrays that a formula has under way fit a cache


class InBlocks:
    """Computes a formula block by block, if that gives what it gives for all rows at once, to the bit.

    A formula may look at its targets as a whole, at their mean for instance; it is computed at once then.
    """

    def __init__(self, formula: Formula, n_jobs: int | None) -> None:
        self._formula = formula
        self._n_jobs = n_jobs or None
        self._is_tried = self._is_apart = False

    def __call__(self, y: Floats, f: Floats) -> tuple[Floats, ...]:
        """Return what the formula gives."""
        if len(y) <= _ROWS or (self._is_tried and not self._is_apart):
            return self._formula(y, f)
        if self._is_tried:
            return self._apart(y, f)
        whole = self._formula(y, f)
        self._is_tried = True
        shaped = all(np.shape(part) == (len(y),) for part in whole)
        try:
            self._is_apart = shaped and all(map(np.array_equal, self._apart(y, f), whole))
        except ValueError:  # it cannot take the rows in part
            self._is_apart = False
        return whole

    def _apart(self, y: Floats, f: Floats) -> tuple[Floats, ...]:
        n_blocks = -(-len(y) // _ROWS)

        def work(block: int) -> tuple[Floats, ...]:
            rows = slice(block * _ROWS, (block + 1) * _ROWS)
            return self._formula(y[rows], f[rows])

        found = list(in_order(work, n_blocks, count_threads(self._n_jobs, n_blocks)))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
