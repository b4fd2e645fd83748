"""How far to trust the trees of several folds: a factor of all their values, by rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.members import Member
from spinney._boosting.row_losses import row_losses
from spinney._boosting.rows import LearningRows

Floats = NDArray[np.float64]
_STEPS = 32  # to a factor of 1
_MOST = 48
_MANY = 20_000  # rows are enough to tell one factor from another
_DOUBT = 200  # rows that speak for a factor of 1


def best_factor(
    members: Sequence[Member], held_out: Sequence[LearningRows], first: Floats, loss: str, parameter: float
) -> float:
    """Factor of the trees with the least loss of the rows that each member has held out.

    Drawn towards 1 where rows are few. Losses are convex in it, so that one step after the other finds it.

    Parameters
    ----------
    members : sequence of Member
        Boosters that have kept the held-out scores of their best rounds.
    held_out : sequence of LearningRows
        The rows that each has held out, with targets as the engine sees them.
    first : ndarray of shape (n_scores, n_rows)
        Scores before the first tree.
    loss : str
        The loss, by the engine's name.
    parameter : float
        The loss's parameter.

    Returns
    -------
    float
        The factor, at least 0.
    """
    base, trees, rows = _together(members, held_out, first)
    weight = rows.weights()

    def loss_at(step: int) -> float:
        losses = row_losses(loss, parameter, base + step / _STEPS * trees, rows)
        return fsum((weight * losses).tolist())

    here, least = _STEPS, loss_at(_STEPS)
    for way in (1, -1):
        while 0 <= here + way <= _MOST and (there := loss_at(here + way)) < least:
            here, least = here + way, there
        if here != _STEPS:
            break
    n = len(weight)
    return 1 + (here / _STEPS - 1) * n / (n + _DOUBT)


def _together(
    members: Sequence[Member], held_out: Sequence[LearningRows], first: Floats
) -> tuple[Floats, Floats, LearningRows]:
    """Scores before the first tree, what the trees add, (n_rows, n_scores), and the rows, of all folds."""
    total = sum(rows.n_used for rows in held_out)
    step = -(-total // _MANY)
    chosen = [np.flatnonzero(rows.weights() > 0)[::step] for rows in held_out]
    base = np.concatenate([first.T[rows] for rows in chosen])
    found = np.concatenate([member.best_scores.T[rows] for member, rows in zip(members, chosen, strict=True)])
    target, weight = (
        np.concatenate([part[rows] for part, rows in zip(parts, chosen, strict=True)])
        for parts in ([rows.target for rows in held_out], [rows.weights() for rows in held_out])
    )
    return base, found - base, replace(held_out[0], target=target, weight=weight, offset=None)
