"""What one fit boosts, once everything that was given is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.losses.loss import Loss
from spinney._boosting.losses.rows import LearningRows
from spinney._data import Schema
from spinney._model.boosting import FittedBoosting

Parts = list[tuple[LearningRows, LearningRows | None]]


@dataclass(frozen=True)
class Task:
    """Rows dealt out to boosters, the loss, and where its scores start.

    Attributes
    ----------
    schema : Schema
    loss : Loss
    rows : LearningRows
        All that any booster learns from.
    parts : list of (LearningRows, LearningRows or None)
        For each booster the rows it learns from and those it is judged by.
    n_of_deals : list of int
        Number of boosters of each time that rows are dealt out, in the order of `parts`.
    start : ndarray of shape (n_scores,)
    earlier : FittedBoosting or None
        The model that a warm start goes on from.
    seed : int
    learned : dict
        Fitted attributes so far.
    judged : list of (str, LearningRows or None)
        Sets to judge after each round, by name.
    """

    schema: Schema
    loss: Loss
    rows: LearningRows
    parts: Parts
    n_of_deals: list[int]
    start: NDArray[np.float64]
    earlier: FittedBoosting | None
    seed: int
    learned: dict[str, Any]
    judged: list[tuple[str, LearningRows | None]]
