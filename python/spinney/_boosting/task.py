"""What the boosters of a fit have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows, Splits
from spinney._boosting.loss import Loss
from spinney._boosting.target import BoostingTarget
from spinney._data import Schema
from spinney._model.boosting import FittedBoosting
from spinney._model.model import decision_costs


@dataclass(frozen=True)
class Task:
    """The rows of each booster, the loss, and the initial scores.

    Attributes
    ----------
    schema : Schema
    loss : Loss
    rows : LearningRows
        The training rows of all boosters together.
    splits : list of (LearningRows, LearningRows or None)
        Training and held-out rows of each booster.
    boosters_per_repeat : list of int
        Number of boosters of each split into folds, in the order of `splits`.
    start : ndarray of shape (n_scores,)
        Constant initial scores.
    earlier : FittedBoosting or None
        The model that a warm start continues.
    seed : int
    target : BoostingTarget
    validation : list of (str, LearningRows or None)
        Sets to evaluate after each round, with their names.
    """

    schema: Schema
    loss: Loss
    rows: LearningRows
    splits: Splits
    boosters_per_repeat: list[int]
    start: NDArray[np.float64]
    earlier: FittedBoosting | None
    seed: int
    target: BoostingTarget
    validation: list[tuple[str, LearningRows | None]]

    def with_columns(self, schema: Schema) -> Task:
        """Return the task of boosters of folds with the combined columns of a schema."""
        columns = schema.combined(self.rows.columns)

        def widened(rows: LearningRows) -> LearningRows:
            return replace(rows, columns=columns)

        splits = [(widened(training), held and widened(held)) for training, held in self.splits]
        return replace(self, schema=schema, rows=widened(self.rows), splits=splits)

    def model(self, trees: list[_engine.Tree] | _engine.Additive) -> FittedBoosting:
        """Return a model of trees."""
        target = self.target
        n_classes = None if target.classes is None else list(map(len, target.classes))
        cost = decision_costs(target.cost_matrix, target.priors)
        return FittedBoosting(trees, self.start, self.loss.link, self.schema.n_categories, n_classes, cost)
