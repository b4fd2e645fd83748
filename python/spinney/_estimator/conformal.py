"""Points that calibrate intervals and sets of classes: how far off predictions of rows not seen are."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.row_copies import whole_weights

Floats = NDArray[np.float64]


def check_coverage(coverage: Any) -> None:
    """Refuse a coverage that is not between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage must be a number between 0 and 1, such as 0.9, not {coverage!r}.")


def upper_point(scores: Floats, weight: Floats | None, coverage: float) -> float:
    """Smallest score that at least `coverage` of the weight does not exceed, counting one more row at infinity.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
        Whole weights count rows; of others the largest stands for the row to come.
    coverage : float

    Returns
    -------
    float
        Infinite where the rows are too few.
    """
    needed = weight_needed(len(scores), weight, coverage)
    if weight is None:
        k = int(needed) - 1
        return float(np.partition(scores, k)[k]) if k < len(scores) else np.inf
    order = np.argsort(scores, kind="stable")
    k = int(np.count_nonzero(np.cumsum(weight[order]) < needed))
    return float(scores[order[k]]) if k < len(scores) else np.inf


def weight_needed(n: int, weight: Floats | None, coverage: float) -> float:
    """Return the weight of the scores that a point must not leave out, of n rows and one more."""
    if weight is None:
        return float(np.ceil(coverage * (n + 1) - 1e-9))
    return float(coverage * (weight.sum() + weight_of_one(weight)) * (1 - 1e-12))


def weight_of_one(weight: Floats) -> float:
    """Return the weight of one row more: 1 if weights count rows, else that of the heaviest."""
    return 1.0 if whole_weights(weight) is not None else float(weight.max(initial=0.0))


def class_scores(shares: Floats, method: str) -> Floats:
    """How badly each class of each row conforms: 1 - its share, or the shares of the more probable classes together.

    The latter without the class's own share: with it the least probable class always scores 1, so that where it is the
    true one more often than 1 - coverage every set would hold every class.
    """
    if method == "lac":
        return 1.0 - shares
    order = np.argsort(-shares, axis=1, kind="stable")
    ranked = np.take_along_axis(shares, order, axis=1)
    before = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=before[:, 1:])
    found = np.empty_like(before)
    np.put_along_axis(found, order, before, axis=1)
    return found
