"""The nested trees of cost-complexity pruning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.tree import FittedTree

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NestedTrees:
    """The trees that are best at some penalty per leaf, from the largest to the root alone.

    Attributes
    ----------
    alpha : ndarray
        Smallest penalty at which each tree is the best one, ascending.
    risk : ndarray
        Total risk of each tree's leaves.
    n_leaves : ndarray of int
        Their number.
    root_risk : float
        Risk of the root alone.
    """

    alpha: Floats
    risk: Floats
    n_leaves: NDArray[np.int64]
    root_risk: float

    @classmethod
    def of(cls, tree: FittedTree, risks: Floats, floor: float = 0.0) -> NestedTrees:
        """Collect the trees that are best at `floor` or above."""
        _, alpha, risk, n_leaves, _ = tree.engine.pruning_path(risks)
        n_free = int(np.searchsorted(alpha, reached(floor), side="right"))
        dear = alpha[n_free:]
        last_of_its_alpha = np.flatnonzero(np.append(dear[1:] != dear[:-1], True)) if len(dear) else np.empty(0, int)
        after = np.append(n_free, n_free + 1 + last_of_its_alpha)
        return cls(
            np.append(floor, dear[last_of_its_alpha]), risk[after], n_leaves[after].astype(np.int64), float(risks[0])
        )

    @property
    def cuts(self) -> Floats:
        """A penalty that stands for each tree: the geometric mean of its own and the next; infinite for the root."""
        low, high = self.alpha[:-1], self.alpha[1:]
        with np.errstate(over="ignore", under="ignore"):
            products = low * high
        means = np.sqrt(products)
        lost = ~np.isfinite(products) | ((products < np.finfo(np.float64).tiny) & (low > 0))
        means[lost] = np.sqrt(low[lost]) * np.sqrt(high[lost])
        return np.append(means, np.inf)


def reached(alpha: Floats | float) -> Floats:
    """Return the largest alpha of a step that counts as no larger than these."""
    return np.asarray(alpha * (1 + _engine.alpha_rounding))
