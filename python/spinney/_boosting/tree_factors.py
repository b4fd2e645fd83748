"""How far to trust the trees of several folds: factors of their values, by rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._boosting.member import Member

Floats = NDArray[np.float64]
_STEPS = 32  # to a factor of 1
_MOST = 48
_MANY = 20_000  # rows are enough to tell one factor from another
_DOUBT = 200  # rows that speak for a factor of 1


def best_factors(
    members: Sequence[Member], held_out: Sequence[LearningRows], targets: Floats, first: Floats, loss: Loss
) -> Floats:
    """Factors of the trees, by score, with the least loss of the rows that each member has held out.

    Those of a part of the loss share one. Drawn towards 1 where rows are few. Losses are convex in it, so that one step
    after the other finds it.

    Parameters
    ----------
    members : sequence of Member
        Boosters that hold the held-out scores of their best rounds.
    held_out : sequence of LearningRows
        The rows that each has held out.
    targets : ndarray of shape (n_parts, n_rows)
        Targets as the engine sees them.
    first : ndarray of shape (n_scores, n_rows)
        Scores before the first tree.
    loss : Loss
        The loss.

    Returns
    -------
    ndarray of shape (n_scores,)
        The factors, at least 0.
    """
    base, trees, targets, weight = _together(members, held_out, targets, first)
    found: list[float] = []
    for part, target in zip(loss.parts, targets, strict=True):
        mine = slice(len(found), len(found) + part.n_scores)
        found += [_best_factor(base[mine], trees[mine], target, weight, part)] * part.n_scores
    return np.array(found)


def _best_factor(base: Floats, trees: Floats, target: Floats, weight: Floats, part: Loss) -> float:
    """Factor of the scores of one part."""
    alone, targets = replace(part, weight=1.0), np.ascontiguousarray(target)[np.newaxis]

    def loss_at(step: int) -> float:
        losses = alone.values(targets, base + step / _STEPS * trees, weight)
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
    members: Sequence[Member], held_out: Sequence[LearningRows], targets: Floats, first: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Scores before the first tree, what the trees add, (n_scores, n_rows), targets and weights, of all folds."""
    total = sum(rows.n_used for rows in held_out)
    step = -(-total // _MANY)
    chosen = [np.flatnonzero(rows.weights() > 0)[::step] for rows in held_out]
    base = np.concatenate([first[:, rows] for rows in chosen], axis=1)
    found = np.concatenate([m.best_scores[:, rows] for m, rows in zip(members, chosen, strict=True)], axis=1)
    weight = np.concatenate([part.weights()[rows] for part, rows in zip(held_out, chosen, strict=True)])
    return base, found - base, np.concatenate([targets[:, rows] for rows in chosen], axis=1), weight
