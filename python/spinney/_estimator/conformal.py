"""Conformal prediction: intervals and class sets calibrated on rows that the model was not trained on.

The nonconformity score of a row is the size of its error, or how improbable its class is. A new row has a score below
the quantile of the scores of the calibration rows with the requested probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats
from spinney._estimator.rows import integer_weights


def check_coverage(coverage: object) -> None:
    """Refuse a coverage that is not between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage must be a number between 0 and 1, such as 0.9, not {coverage!r}.")


def conformal_quantile(scores: Floats, weight: Floats | None, coverage: float) -> float:
    """Return the smallest score that at least `coverage` of the weight does not exceed, with one more row at infinity.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
        Integer weights count rows; of others the largest is used for the additional row.
    coverage : float

    Returns
    -------
    float
        Infinite if there are too few rows.
    """
    needed = weight_needed(len(scores), weight, coverage)
    if weight is None:
        k = int(needed) - 1
        return float(np.partition(scores, k)[k]) if k < len(scores) else np.inf
    order = np.argsort(scores, kind="stable")
    k = int(np.count_nonzero(np.cumsum(weight[order]) < needed))
    return float(scores[order[k]]) if k < len(scores) else np.inf


def weight_needed(n: int, weight: Floats | None, coverage: float) -> float:
    """Return the weight of the scores that the quantile must not be below, of n rows and one more."""
    if weight is None:
        return float(np.ceil(coverage * (n + 1) - 1e-9))
    return float(coverage * (weight.sum() + weight_of_one(weight)) * (1 - 1e-12))


def weight_of_one(weight: Floats) -> float:
    """Return the weight of an additional row: 1 if weights count rows, else the largest."""
    return 1.0 if integer_weights(weight) is not None else float(weight.max(initial=0.0))


def class_sets(proba: Floats, known: CalibrationRows, coverage: float, method: str) -> NDArray[np.bool_]:
    """Return which classes are in the prediction set of each row.

    Parameters
    ----------
    proba : ndarray of shape (n_rows, n_classes)
        Class probabilities of the rows.
    known : CalibrationRows
    coverage : float
    method : {"lac", "aps"}

    Returns
    -------
    ndarray of shape (n_rows, n_classes), bool
    """
    check_coverage(coverage)
    if method not in ("lac", "aps"):
        raise ValueError(f"method must be 'lac' or 'aps', not {method!r}.")
    of_truth = nonconformity(known.proba, method)[np.arange(len(known.codes)), known.codes]
    limit = conformal_quantile(of_truth, known.weight, coverage)
    return np.asarray(nonconformity(proba, method) <= limit + 1e-12)


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Class probabilities of rows that the model was not trained on, and the codes of their classes."""

    proba: Floats
    codes: NDArray[np.integer[Any]]
    weight: Floats | None


def nonconformity(proba: Floats, method: str) -> Floats:
    """Return the score of each class of each row: 1 - its probability, or the sum of those of more probable classes.

    The sum excludes the class itself: otherwise the least probable class would always score 1, and if it is the true
    class more often than 1 - coverage, every set would contain every class.
    """
    if method == "lac":
        return 1.0 - proba
    order = np.argsort(-proba, axis=1, kind="stable")
    ranked = np.take_along_axis(proba, order, axis=1)
    before = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=before[:, 1:])
    scores = np.empty_like(before)
    np.put_along_axis(scores, order, before, axis=1)
    return scores
