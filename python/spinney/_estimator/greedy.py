"""Greedy selection of the members of a mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats


def select(loss_of: Callable[[Floats], float], predicted: Floats, n_steps: int) -> NDArray[np.intp]:
    """Return how often each member is selected.

    Each step adds the member that gives the smallest loss of the mean of the selected members, the first of equal
    ones. The selection after the best step is returned, the shortest of equal ones; the first if no loss is finite.

    Parameters
    ----------
    loss_of : callable
        Loss of a mean of predictions.
    predicted : ndarray of shape (n_members, ...)
        Predictions of each member.
    n_steps : int

    Returns
    -------
    ndarray of shape (n_members,)
    """
    total, counts = np.zeros_like(predicted[0]), np.zeros(len(predicted), dtype=np.intp)
    best, best_loss = counts, np.inf
    for step in range(1, n_steps + 1):
        losses = [loss_of((total + of_member) / step) for of_member in predicted]
        k = int(np.argmin(losses))
        total = total + predicted[k]
        counts = counts.copy()
        counts[k] += 1
        if losses[k] < best_loss or step == 1:
            best, best_loss = counts, losses[k]
    return best
