"""What one fit boosts, once everything that was given is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._boosting.row_splits import Parts
from spinney._boosting.target import BoostingTarget
from spinney._data import Schema
from spinney._model.boosting import FittedBoosting


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
        For each booster the rows it learns from and those that evaluate it.
    n_of_splits : list of int
        Number of boosters of each time that rows are split into folds, in the order of `parts`.
    start : ndarray of shape (n_scores,)
    earlier : FittedBoosting or None
        The model that a warm start goes on from.
    seed : int
    target : BoostingTarget
    validation : list of (str, LearningRows or None)
        Sets to evaluate after each round, by name.
    """

    schema: Schema
    loss: Loss
    rows: LearningRows
    parts: Parts
    n_of_splits: list[int]
    start: NDArray[np.float64]
    earlier: FittedBoosting | None
    seed: int
    target: BoostingTarget
    validation: list[tuple[str, LearningRows | None]]
