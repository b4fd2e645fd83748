"""What members say of the rows that they have not seen, added up, and what scorers make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

Values = NDArray[np.float64]
Weights = Values | None
Metric = Callable[[NDArray[Any], NDArray[Any]], float]


@dataclass
class OutOfBag:
    """Sums over the members so far, and the errors after each of them.

    Attributes
    ----------
    n_rows : int
    curve, smooth : list of float
        Error after each member: the one that is shown, and the one that tells whether more of them help.
    """

    n_rows: int
    curve: list[float] = field(default_factory=list)
    smooth: list[float] = field(default_factory=list)
    _total: Any = 0.0
    _n_said: Any = 0.0

    def add(self, left_out: NDArray[np.bool_], said: Values) -> None:
        """Add what a member says of the rows that it has not seen."""
        if isinstance(self._n_said, float):
            self._total, self._n_said = np.zeros((self.n_rows, 1)), np.zeros((self.n_rows, 1))
        if not left_out.any():
            return
        if self._total.shape[1] != said.shape[1]:
            self._total = np.zeros((self.n_rows, said.shape[1]))
        self._total[left_out] += said
        self._n_said[left_out] += 1

    @property
    def mean(self) -> Values:
        """Mean of what was said, (n_rows, n_values), NaN where nothing was."""
        return np.where(self._n_said > 0, self._total / np.maximum(self._n_said, 1), np.nan)


def mean_loss(losses: Values, mean: Values, weight: Weights) -> float:
    """Average the losses of rows that were judged and have a weight; NaN if there is none."""
    rows = ~np.isnan(mean[:, 0])
    if weight is not None:
        rows &= weight > 0
    if not rows.any():
        return float("nan")
    return float(np.average(losses[rows], weights=None if weight is None else weight[rows]))


def scored(name: str, judged: Any, actual: NDArray[Any], weight: Weights) -> float:
    """Return a scorer's value of a model that knows the answers for rows 0, 1 and so on."""
    scorer, rows = get_scorer(name), np.arange(len(actual))
    return float(scorer(judged, rows, actual) if weight is None else scorer(judged, rows, actual, sample_weight=weight))
