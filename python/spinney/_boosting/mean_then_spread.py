"""A mean and a spread from folds: first the mean, then the spread of errors of rows that its boosters have not seen.

Boosted together by their likelihood, the spread learns the errors of rows that the mean has learned by heart: it
becomes too small, the held-out likelihood gets worse, and the rounds end long before the mean is good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.calibration import Calibration
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import named_loss
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.rounds import Rounds
from spinney._boosting.settings import BoostingSettings
from spinney._boosting.task import Task
from spinney._data.reproducible import log
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]
Begin = Callable[[BoostingSettings, Recipe, Task], Rounds]


def fits_mean_first(settings: BoostingSettings, recipe: Recipe, task: Task) -> bool:
    """Whether a fit learns the mean and the spread one after the other."""
    is_plain = settings.metrics == (None,) and settings.leaves != "vector"
    return task.loss.name == "normal" and bool(recipe.n_folds) and len(task.parts) > 1 and is_plain


class MeanThenSpread:
    """The rounds of such a fit, as `Rounds` has them.

    The logarithm of a deviation has the likelihood of the gamma loss at twice itself, of squared errors.
    """

    evaluations = None

    def __init__(self, settings: BoostingSettings, recipe: Recipe, task: Task, begin: Begin):
        self._settings, self._recipe, self._begin = settings, recipe, begin
        rows, start = task.rows, task.start
        self._offset = None if rows.offset is None else 2 * rows.offset[1:]
        self._start = start
        self._of_mean = replace(
            task,
            loss=named_loss("squared_error"),
            rows=_of_mean(rows),
            parts=[(_of_mean(a), None if b is None else _of_mean(b)) for a, b in task.parts],
            start=start[:1],
            earlier=None,
        )
        self._mean = self._begin_with(self._of_mean, is_mean=True)
        self._spread: Rounds | None = None

    def _begin_with(self, task: Task, is_mean: bool) -> Rounds:
        settings = replace(self._settings, loss=task.loss.name)
        recipe = replace(self._recipe, has_statistics=is_mean, worth_of_present=is_mean)
        return self._begin(settings, recipe, task)

    def run(self) -> None:
        """Boost the mean, then the spread."""
        self._mean.run()
        unseen, of_mean = self._mean.unseen(self._of_mean), self._of_mean.rows
        if unseen is None or self._mean.is_cut_short:
            return
        known, scores = unseen
        least = (_engine.LEAST_DEVIATION * max(1.0, abs(self._start[0]))) ** 2
        squares, is_known = np.ones(len(of_mean.target)), np.zeros(len(of_mean.target))
        squares[known] = np.maximum((of_mean.target[known] - scores[0]) ** 2, least)
        unit = float(np.average(squares[known], weights=of_mean.seen_weights[known]))
        squares = squares / unit  # what an improvement is worth does not depend on it
        is_known[known] = 1.0

        def of_squares(rows: LearningRows) -> LearningRows:
            weight = rows.weight if is_known.all() else rows.weights() * is_known
            return replace(rows, target=squares, weight=weight, offset=self._offset)

        rows = of_squares(of_mean)
        parts = [(of_squares(a), None if b is None else of_squares(b)) for a, b in self._of_mean.parts]
        loss = named_loss("gamma")
        offset = None if rows.offset is None else rows.offset[:, rows.used]
        start = loss.constants(squares[rows.used], rows.seen_weights[rows.used], offset)
        if self._settings.init == "zero":
            start = -log(np.array([unit]))
        self._start = np.array([self._start[0], (start[0] + float(log(unit))) / 2])
        self._spread = self._begin_with(
            replace(self._of_mean, loss=loss, rows=rows, parts=parts, start=start), is_mean=False
        )
        self._spread.run()

    def calibrated(self, task: Task) -> Calibration | None:
        """Return what the boosters of the mean predict for the rows that they have held out."""
        return self._mean.calibrated(self._of_mean)

    @property
    def because(self) -> str:
        """Why no further round was tried."""
        return self._mean.because

    @property
    def is_cut_short(self) -> bool:
        """Whether a callback or an interruption has ended it."""
        return self._mean.is_cut_short or (self._spread is not None and self._spread.is_cut_short)

    def least_loss(self) -> float:
        """Mean over the boosters of the least likelihood of rows held out, with its sign changed."""
        assert self._spread is not None
        return self._spread.least_loss() / 2

    @property
    def n_dropped(self) -> NDArray[np.intp] | None:
        """How many earlier rounds those of the mean have dropped; None if it is not that kind of fit."""
        dropped = self._mean.n_dropped
        spread = None if self._spread is None else self._spread.n_dropped
        n_more = 0 if dropped is None or spread is None else max(0, len(spread) - len(dropped))
        return dropped if dropped is None else np.concatenate([dropped, np.zeros(n_more, dtype=np.intp)])

    def result(self) -> FittedBoosting:
        """Return the model; where one of the two has fewer rounds, its last trees do nothing."""
        mean = self._mean.mean(1.0).trees()
        spread = [] if self._spread is None else self._spread.mean(0.5).trees()
        view = self._mean.view([])
        n_rounds, n_categories = max(len(mean), len(spread)), view._n_categories
        nothing = _no_tree(self._of_mean.rows, n_categories)
        both = [trees + [nothing] * (n_rounds - len(trees)) for trees in (mean, spread)]
        trees = [tree for pair in zip(*both, strict=True) for tree in pair]
        return FittedBoosting(trees, self._start, "normal", n_categories, None, None)

    def curves(self) -> dict[str, Floats]:
        """Return the learning curves: the likelihood with the last mean, and what an earlier mean lacked."""
        found = {}
        squares = self._mean.curves()
        spreads = {} if self._spread is None else self._spread.curves()
        for name, curve in squares.items():
            n = max(len(curve), len(spreads.get(name, ())))
            lacks = _stretched(log(np.maximum(curve, 1e-300) / max(curve[-1], 1e-300)) / 2, n)
            found[name] = lacks + _stretched(spreads[name] / 2, n) if name in spreads else lacks
        return found


def _of_mean(rows: LearningRows) -> LearningRows:
    return rows if rows.offset is None else replace(rows, offset=rows.offset[:1])


def _stretched(curve: Floats, n: int) -> Floats:
    """Return a curve that stays where it ends."""
    return np.concatenate([curve, np.full(n - len(curve), curve[-1])])


def _no_tree(rows: LearningRows, n_categories: list[int]) -> _engine.Tree:
    """Return a single leaf that adds nothing."""
    none, zero = np.array([-1], dtype=np.int32), np.zeros(1)
    return _engine.make_tree(
        left=none,
        right=none,
        feature=none,
        threshold=zero,
        flags=np.zeros(1, dtype=np.uint8),
        begin=np.zeros(2, dtype=np.uint32),
        codes=np.zeros(0, dtype=np.uint32),
        weight=np.array([float(rows.seen_weights.sum())]),
        n_rows=np.array([rows.n_used], dtype=np.uint32),
        value=np.zeros((1, 1)),
        gain=zero,
        impurity=None,
        n_categories=n_categories,
    )
