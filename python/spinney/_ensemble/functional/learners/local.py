"""Neighbours and kernels as weak learners."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from spinney._data.reproducible import cholesky, solve_factored
from spinney._ensemble.functional.learners.weak import Candidate, Fitter, Floats, LearningTable, WeakLearner
from spinney._model.functional.local import KernelSteps, NeighbourSteps, bumps

_LEAST_RIDGE = 1e-8  # two rows may be the same


class Neighbors(WeakLearner):
    """Means over the nearest rows, by the distance of the scaled columns.

    Means are weighted by the rows' weights; a row of weight 2 is still one of the neighbours. All rows that are
    remembered count in every round.

    Parameters
    ----------
    n_neighbors : int, default=20
        Rows that a mean is over; all, if there are fewer.
    max_rows : int, default=5000
        Rows that are remembered at most; if the table has more, they are drawn.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_neighbors: int = 20, *, max_rows: int = 5000) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows

    def _begin(self, table: LearningTable) -> Fitter:
        return _NeighbourFitter(self, table)


class _NeighbourFitter(Fitter):
    def __init__(self, learner: Neighbors, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._rows = learner._sample(table, learner.max_rows)
        remembered = np.ascontiguousarray(table.inputs.terms[:, self._rows].T)
        n_neighbours = min(learner.n_neighbors, len(self._rows))
        self.steps: NeighbourSteps = NeighbourSteps(n_neighbours, remembered, table.weight[self._rows])

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Remember the residuals, and give rows the mean of those near them."""
        numbers = residual[self._rows]
        return Candidate(self.steps.means(self._inputs, numbers), lambda: self.steps.add(numbers))


class KernelRidge(WeakLearner):
    """Ridge regression with a Gaussian kernel of the scaled columns. All rows remembered count in every round.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the ridge, for rows of weight 1.
    gamma : float or None, default=None
        How narrow the kernel exp(-gamma · distance²) is; None: 1 / number of terms.
    max_rows : int, default=500
        Rows that are fitted to at most; if the table has more, they are drawn.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "gamma": [Interval(Real, 0.0, None, closed="neither"), None],
        "max_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, alpha: float = 1.0, *, gamma: float | None = None, max_rows: int = 500) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.max_rows = max_rows

    def _begin(self, table: LearningTable) -> Fitter:
        return _KernelFitter(self, table)


class _KernelFitter(Fitter):
    def __init__(self, learner: KernelRidge, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._rows = learner._sample(table, learner.max_rows)
        remembered = np.ascontiguousarray(table.inputs.terms[:, self._rows].T)
        gamma = float(learner.gamma or 1 / max(1, remembered.shape[1]))
        self.steps: KernelSteps = KernelSteps(gamma, remembered)
        ridge = float(learner.alpha) / table.weight[self._rows]
        kernel = bumps(remembered, remembered, gamma)
        self._factor = cholesky(kernel + np.diag(np.maximum(ridge, _LEAST_RIDGE)))

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Solve for the heights of the bumps."""
        heights = solve_factored(self._factor, residual[self._rows])
        return Candidate(self.steps._sums(self._inputs, heights), lambda: self.steps.add(heights))
