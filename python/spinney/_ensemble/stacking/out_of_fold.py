"""What members say of rows that they have not seen, collected fold by fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.folds import Fold, Rows

Floats = NDArray[np.float64]


def answers(said: Floats, classes: NDArray[Any] | None) -> NDArray[Any]:
    """Labels or values that follow from what was said."""
    if classes is None:
        return said[:, 0]
    if said.shape[1] == len(classes):
        return np.asarray(classes[said.argmax(axis=1)])
    if len(classes) == 2:
        return np.asarray(classes[(said[:, 0] > 0).astype(np.intp)])
    raise ValueError("These decisions are of pairs of classes and name none.")


class OutOfFold:
    """Sums over folds of what one member says of the rows held out.

    Attributes
    ----------
    total : ndarray of shape (n_rows, n_values)
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._count = np.zeros(n_rows)
        self.total = np.empty((n_rows, 0))

    def add(self, rows: Rows, said: Floats) -> None:
        """Add what was said of some rows."""
        if not self.total.shape[1]:
            self.total = np.zeros((self._n_rows, said.shape[1]))
        self.total[rows] += said
        self._count[rows] += 1

    @property
    def mean(self) -> Floats:
        """Mean over the folds that held a row out; NaN where none did."""
        with np.errstate(invalid="ignore"):
            return self.total / self._count[:, np.newaxis]


def folds_among(folds: list[Fold], judged: NDArray[np.bool_]) -> list[tuple[Rows, Rows]]:
    """Return the folds as splits of the rows that were judged, counted among these."""
    place = np.cumsum(judged) - 1
    found = [tuple(place[side[judged[side]]] for side in (fold.grown_on, fold.held_out)) for fold in folds]
    splits = [(grown_on, held_out) for grown_on, held_out in found if len(grown_on) and len(held_out)]
    if not splits:
        raise ValueError(
            "cv leaves too few rows for a further layer: those held out in one fold must be learned from in another. "
            "Use more folds, or no layers."
        )
    return splits
