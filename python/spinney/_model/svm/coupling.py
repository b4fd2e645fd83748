"""Probabilities from margins: an S-curve of each machine, and those of pairs of classes joined."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney._data.numeric.reproducible import exp

Floats = NDArray[np.float64]
_LEAST = 1e-7  # share of a pair: none is certain
_ROUNDS = 100


def curve(scores: Floats, calibration: Floats) -> Floats:
    """Share of the class on the positive side of each machine: 1 / (1 + exp(A f + B))."""
    along = scores * calibration[:, 0] + calibration[:, 1]
    small = exp(-np.abs(along))
    return np.asarray(np.where(along >= 0, small, 1.0) / (1.0 + small))


def join_pairs(shares: Floats, n_classes: int) -> Floats:
    """Class shares from those of the first class of each pair: Wu, Lin and Weng (2004), their second method.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_pairs)
        In the order (0, 1), (0, 2), ..., (1, 2), ...
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Rows sum to 1.
    """
    n_rows = len(shares)
    first, second = np.triu_indices(n_classes, 1)
    r = np.zeros((n_rows, n_classes, n_classes))
    r[:, first, second] = np.clip(shares, _LEAST, 1 - _LEAST)
    r[:, second, first] = 1 - r[:, first, second]
    q = -np.transpose(r, (0, 2, 1)) * r
    diagonal = (r**2).sum(axis=1)
    q[:, np.arange(n_classes), np.arange(n_classes)] = diagonal
    p = np.full((n_rows, n_classes), 1.0 / n_classes)
    moving = np.arange(n_rows)
    for _ in range(max(_ROUNDS, n_classes)):
        product = (q[moving] * p[moving][:, np.newaxis, :]).sum(axis=2)
        total = (p[moving] * product).sum(axis=1)
        off = np.abs(product - total[:, np.newaxis]).max(axis=1)
        left = off >= 0.005 / n_classes
        moving, product, total = moving[left], product[left], total[left]
        if not len(moving):
            break
        p[moving] = _one_round(q[moving], p[moving], product, total)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _one_round(q: Floats, p: Floats, product: Floats, total: Floats) -> Floats:
    """Set each share in turn to where the others want it."""
    for t in range(p.shape[1]):
        step = (total - product[:, t]) / q[:, t, t]
        p[:, t] += step
        grown = 1 + step
        total = (total + step * (step * q[:, t, t] + 2 * product[:, t])) / grown / grown
        product = (product + step[:, np.newaxis] * q[:, t, :]) / grown[:, np.newaxis]
        p = p / grown[:, np.newaxis]
    return p
