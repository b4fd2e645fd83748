"""rpart's complexities: from the leaves up, the price per split at which a subtree is no longer worth keeping.

They are not always those of the weakest link: a node's value rests on its sons' subtrees as they are just before the
sons collapse.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALLEST_SHARE = 1e-10  # an improvement below this share of the largest so far counts as none


@dataclass
class Scale:
    """Largest improvement seen, over all trees of one fit."""

    largest: float = 0.0


@dataclass
class Shape:
    """A grown tree: rpart's left and right child of each node (-1 in leaves), and the improvement of its split."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    improve: Floats

    def __len__(self) -> int:
        return len(self.left)


@dataclass
class _Judge:
    shape: Shape
    risk: Floats
    alpha: float
    scale: Scale
    complexity: Floats = field(init=False)
    kept: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.complexity = np.full(len(self.shape), self.alpha)
        self.kept = np.zeros(len(self.shape), dtype=bool)

    def weigh(self, node: int, bound: float) -> tuple[float, int]:
        """Weigh the subtree of a node; give the risk of the leaves and the number of splits that survive in it.

        `bound` is the most that a split of this node can be worth: where that is not above alpha, none is tried.
        """
        risk = float(self.risk[node])
        bound = min(bound, risk)
        if bound <= self.alpha or not self._has_split(node):
            return risk, 0
        left, right = int(self.shape.left[node]), int(self.shape.right[node])
        left_risk, left_splits = self.weigh(left, bound - self.alpha)
        worth = max((risk - left_risk) / (left_splits + 1), risk - float(self.risk[left]))
        right_risk, right_splits = self.weigh(right, min(worth, bound) - self.alpha)
        leaves_risk, n_splits = self._before_collapse(
            risk, (left, left_risk, left_splits), (right, right_risk, right_splits)
        )
        self.complexity[node] = (risk - leaves_risk) / (n_splits + 1)
        if self.complexity[node] <= self.alpha:
            return risk, 0
        self.kept[node] = True
        return leaves_risk, n_splits + 1

    def _has_split(self, node: int) -> bool:
        if self.shape.left[node] < 0:
            return False
        improve = float(self.shape.improve[node])
        self.scale.largest = max(self.scale.largest, improve)
        return improve > SMALLEST_SHARE * self.scale.largest

    def _before_collapse(
        self, risk: float, left: tuple[int, float, int], right: tuple[int, float, int]
    ) -> tuple[float, int]:
        """Risk and splits left below a node when it collapses: a son that is worth less per split goes before."""
        weaker, stronger = (left, right) if self.complexity[right[0]] > self.complexity[left[0]] else (right, left)
        (weak, weak_risk, weak_splits), (strong, strong_risk, strong_splits) = weaker, stronger
        if (risk - weak_risk - strong_risk) / (weak_splits + strong_splits + 1) > self.complexity[weak]:
            weak_risk, weak_splits = float(self.risk[weak]), 0
            if (risk - weak_risk - strong_risk) / (strong_splits + 1) > self.complexity[strong]:
                strong_risk, strong_splits = float(self.risk[strong]), 0
        return weak_risk + strong_risk, weak_splits + strong_splits


def weigh_subtrees(shape: Shape, risk: Floats, alpha: float, scale: Scale) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each node's complexity and whether its split is kept at alpha; both in units of risk.

    Parameters
    ----------
    shape : Shape
        Tree grown without regard to alpha.
    risk : ndarray
        Risk of each node if it were a leaf.
    alpha : float
        Price of a split.
    scale : Scale
        Largest improvement so far; it is updated.
    """
    judge = _Judge(shape, risk, alpha, scale)
    judge.weigh(0, float(risk[0]))
    complexity, kept = judge.complexity, judge.kept
    stack = [0]
    while stack:  # no subtree outlives the one that contains it; what is not reached is cut off
        node = stack.pop()
        if not kept[node]:
            continue
        for child in (int(shape.left[node]), int(shape.right[node])):
            complexity[child] = min(complexity[child], complexity[node])
            stack.append(child)
    return complexity, kept
