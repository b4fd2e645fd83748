"""Shares of classes made better: by a temperature, or, of two classes, by a curve that only rises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._model.predictions import tempered

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """A rising line through some points, level before the first and after the last.

    Attributes
    ----------
    said : ndarray of shape (n_points,)
        Shares of the second class that a model gives, ascending.
    true : ndarray of shape (n_points,)
        Shares that they stand for, never falling.
    """

    said: Floats
    true: Floats

    def __call__(self, shares: Floats) -> Floats:
        """Read shares of both classes off the curve."""
        second = np.clip(shares[:, 1], self.said[0], self.said[-1])
        if len(self.said) == 1:
            found = np.full(len(second), self.true[0])
        else:
            at = np.clip(np.searchsorted(self.said, second, side="right") - 1, 0, len(self.said) - 2)
            way = (second - self.said[at]) / (self.said[at + 1] - self.said[at])
            rise = self.true[at + 1] - self.true[at]
            step = way * rise  # apart, so that no processor fuses it with the sum
            found = np.where(way == 1, self.true[at + 1], self.true[at] + step)
        return np.column_stack([1 - found, found])

    def tobytes(self) -> bytes:
        """Return its numbers, for fingerprints."""
        return self.said.tobytes() + self.true.tobytes()


Calibration = float | Curve | None


def calibrated(shares: Floats, by: Calibration) -> Floats:
    """Apply a temperature or a curve; None: shares stay as they are."""
    return by(shares) if isinstance(by, Curve) else tempered(shares, by)


def rising_curve(second: Floats, is_second: NDArray[np.bool_]) -> Curve:
    """Find the rising curve of least squared error, by pooling, as a line through the middles of its steps.

    One row of the second class is added below all others, and one of the first above them: no share becomes 0 or 1.

    Parameters
    ----------
    second : ndarray of shape (n_rows,)
        Shares of the second class that a model gives to rows that it has not seen.
    is_second : ndarray of bool of shape (n_rows,)
        Whether they are of that class.
    """
    at, place = np.unique(second, return_inverse=True)
    rows, hits = np.bincount(place), np.bincount(place, weights=is_second).astype(np.intp)
    rows[0], hits[0] = rows[0] + 1, hits[0] + 1
    rows[-1] += 1
    steps: list[tuple[int, int, float, float]] = []  # rows, hits, first and last share
    for n, k, share in zip(rows.tolist(), hits.tolist(), at.tolist(), strict=True):
        step = (n, k, share, share)
        while steps and steps[-1][1] * step[0] >= step[1] * steps[-1][0]:
            before = steps.pop()
            step = (before[0] + step[0], before[1] + step[1], before[2], step[3])
        steps.append(step)
    return Curve(np.array([(low + high) / 2 for _, _, low, high in steps]), np.array([k / n for n, k, _, _ in steps]))
