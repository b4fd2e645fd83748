"""Rows as boosting takes them: columns, target, weights and offsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine

Floats = NDArray[np.float64]


@dataclass
class LearningRows:
    """Rows as the engine takes them.

    Attributes
    ----------
    columns : Table
    target : ndarray of shape (n_rows,) or (n_rows, n_outputs)
    weight : ndarray of shape (n_rows,), or None
        Class weights included.
    offset : ndarray of shape (n_scores, n_rows), or None
    given : table
        The rows as the caller gave them.
    more : ndarray of shape (n_rows,), or None
        What the loss must know of each row beside its target: its list, the end of its interval.
    """

    columns: _engine.Table
    target: Floats
    weight: Floats | None
    offset: Floats | None = None
    given: Any = None
    more: NDArray[Any] | None = None

    def weights(self) -> Floats:
        """Weights, 1 where there are none."""
        return np.ones(len(self.target)) if self.weight is None else self.weight

    @property
    def seen_weights(self) -> Floats:
        """The same, to be read alone: ones take no memory."""
        return np.broadcast_to(np.float64(1.0), len(self.target)) if self.weight is None else self.weight

    @property
    def used(self) -> NDArray[np.bool_] | slice:
        """Rows of positive weight, as an index."""
        return slice(None) if self.weight is None else self.weight > 0

    @property
    def n_used(self) -> int:
        """Number of rows of positive weight."""
        return len(self.target) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.seen_weights.sum())

    def scores(self, start: Floats) -> Floats:
        """Scores before the first tree, (n_scores, n_rows)."""
        scores = np.empty((len(start), len(self.target)))
        scores[:] = start[:, np.newaxis]
        return scores if self.offset is None else scores + self.offset

    def with_offset(self, scores: Floats) -> LearningRows:
        """Return the rows with these scores, (n_scores, n_rows), added to their offsets."""
        return replace(self, offset=scores if self.offset is None else self.offset + scores)


def stored_with(columns: Any, numbers: Floats) -> Floats:
    """Store numbers where a table lies: as a copy in files, or as the array itself."""
    if not isinstance(columns, _engine.Table):  # rows of any estimator's, as they were given
        return numbers
    if numbers.ndim == 1:
        return cast(Floats, columns.kept(numbers))
    return cast(Floats, columns.kept(np.ascontiguousarray(numbers).reshape(-1))).reshape(numbers.shape)
