"""Weakest-link pruning step by step, of fitted trees and of trees made from the class counts of their leaves.

Vocabulary. R(t) is the risk of node t as a leaf, R(T_t) that of the leaves of its branch, |T_t| their number, and
g(t) = (R(t) − R(T_t)) / (|T_t| − 1) the penalty per leaf at which the branch is not worth its leaves. Nodes have the
numbers of a complete binary tree: the root is 1, the children of t are 2 t and 2 t + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney import _engine
from spinney._data.display import Backend, ShownAsTable, align, fixed, frame_of, plural
from spinney._data.types import Floats
from spinney._estimator.table_estimator import TableEstimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Nested = Any  # the counts of a leaf, or a pair of branches


@dataclass(frozen=True)
class CountedTree:
    """A tree made from the class counts of its leaves; returned by `tree_from_counts`.

    Attributes
    ----------
    counts : dict from int to tuple of float
        Class counts of each node by its number, parents before children.
    risks : dict from int to float
        R(t): the misclassified fraction of all rows if the node is a leaf.
    """

    counts: dict[int, tuple[float, ...]]
    risks: dict[int, float] = field(repr=False)

    @property
    def leaves(self) -> list[int]:
        """Numbers of the leaves, from left to right."""
        return _leaves(self.risks, 1)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the tree: each node with its number, class counts and R(t), in the colour of its most frequent class.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        from spinney.inspect.draw.teaching import draw_counted_tree

        return draw_counted_tree(self, ax)

    def __str__(self) -> str:
        lines = []
        for node in _preorder(self.risks, 1):
            depth = node.bit_length() - 1
            counts = ", ".join(f"{count:g}" for count in self.counts[node])
            lines.append(f"{'    ' * depth}t{node}: {counts}; R = {fixed(self.risks[node], 4)}")
        return "\n".join(lines)


def tree_from_counts(tree: Nested) -> CountedTree:
    """Return a tree made from the class counts of its leaves.

    Parameters
    ----------
    tree : nested pairs of class counts
        A leaf is the sequence of its class counts, an inner node the pair of its left and its right branch.

    Returns
    -------
    CountedTree
        With the class counts and the risk R(t) of each node, and `plot()`; pass it to `weakest_links` and
        `count_subtrees`.

    Examples
    --------
    >>> from spinney.teaching import tree_from_counts
    >>> print(tree_from_counts(([80, 0], ([0, 60], [10, 0]))))
    t1: 90, 60; R = 0.4000
        t2: 80, 0; R = 0.0000
        t3: 10, 60; R = 0.0667
            t6: 0, 60; R = 0.0000
            t7: 10, 0; R = 0.0000
    """
    counts: dict[int, Floats] = {}
    _enter(tree, 1, counts)
    total = float(counts[1].sum())
    if not total > 0:
        raise ValueError("The tree has no rows: all counts are 0.")
    risks = {node: float((own.sum() - own.max()) / total) for node, own in counts.items()}
    return CountedTree({node: tuple(own.tolist()) for node, own in counts.items()}, risks)


def _enter(tree: Nested, node: int, counts: dict[int, Floats]) -> Floats:
    """Add the counts of a branch, and return those of its root."""
    if not isinstance(tree, (Sequence, np.ndarray)) or isinstance(tree, str) or len(tree) < 2:
        raise ValueError(f"A leaf is a sequence of class counts, an inner node a pair of branches, not {tree!r}.")
    if not any(isinstance(part, (Sequence, np.ndarray)) for part in tree):
        own = np.asarray(tree, dtype=np.float64)
        if not (np.isfinite(own).all() and (own >= 0).all()):
            raise ValueError(f"Class counts must be numbers of at least 0, not {tree!r}.")
        counts[node] = own
        return own
    if len(tree) != 2:
        raise ValueError(f"An inner node has two branches, but one has {len(tree)}.")
    counts[node] = np.zeros(0)  # its place in the order
    left, right = _enter(tree[0], 2 * node, counts), _enter(tree[1], 2 * node + 1, counts)
    if len(left) != len(right):
        raise ValueError(f"All leaves need counts of the same classes, but some have {len(left)} and {len(right)}.")
    counts[node] = left + right
    return counts[node]


# ---- any tree -----------------------------------------------------------------------------------------------------


def _preorder(risks: dict[int, float], node: int) -> list[int]:
    found, waiting = [], [node]
    while waiting:
        at = waiting.pop()
        found.append(at)
        waiting += [child for child in (2 * at + 1, 2 * at) if child in risks]
    return found


def _leaves(risks: dict[int, float], node: int) -> list[int]:
    return [t for t in _preorder(risks, node) if 2 * t not in risks]


def _risks(tree: TableEstimator | CountedTree) -> dict[int, float]:
    """Return R(t) by number of the node, parents first."""
    if isinstance(tree, CountedTree):
        return dict(tree.risks)
    fitted = getattr(tree, "tree_", None)
    if fitted is None or not hasattr(tree, "_node_risks"):
        raise TypeError(f"This needs a fitted decision tree, or a tree_from_counts, not a {type(tree).__name__}.")
    own = tree._node_risks(fitted)
    number = {0: 1}
    for node in np.flatnonzero(~fitted.is_leaf).tolist():  # preorder
        number[node + 1], number[int(fitted.children_right[node])] = 2 * number[node], 2 * number[node] + 1
    return {number[node]: float(own[node]) for node in range(fitted.node_count)}


def count_subtrees(tree: TableEstimator | CountedTree) -> int:
    """Return the number of pruned subtrees of a tree, the root alone and the tree itself included.

    A leaf has one, and a node whose branches have m and n subtrees has 1 + m n.

    Parameters
    ----------
    tree : estimator or CountedTree
        A fitted decision tree, or the result of `tree_from_counts`.

    Returns
    -------
    int
        Exact, however large.

    Examples
    --------
    >>> from spinney.teaching import count_subtrees, tree_from_counts
    >>> count_subtrees(tree_from_counts((([9, 1], [1, 9]), ([5, 4], [2, 2]))))
    5
    """
    risks, found = _risks(tree), dict[int, int]()
    for node in reversed(_preorder(risks, 1)):
        found[node] = 1 if 2 * node not in risks else 1 + found[2 * node] * found[2 * node + 1]
    return found[1]


@dataclass(frozen=True)
class PruningStep:
    """One step of weakest-link pruning.

    Attributes
    ----------
    alpha : float
        Smallest penalty per leaf at which this tree is the best.
    pruned : tuple of int
        Inner nodes whose splits this step removes, including those below other pruned nodes.
    n_leaves : int
        Leaves of the tree after the step.
    risk : float
        R(T), the risk of the tree after the step.
    links : dict from int to float
        g(t) of each inner node before the step: the increase of the risk per leaf that is removed if the branch below
        the node is pruned. The weakest links have the smallest g(t).
    """

    alpha: float
    pruned: tuple[int, ...]
    n_leaves: int
    risk: float
    links: dict[int, float]


@dataclass(frozen=True, repr=False)
class WeakestLinks(ShownAsTable):
    """The nested trees of cost-complexity pruning; returned by `weakest_links`.

    Attributes
    ----------
    steps : list of PruningStep
        The steps, from the smallest tree that has the risk of the unpruned one (penalty 0) to the root alone.
    """

    steps: list[PruningStep]

    @property
    def alphas(self) -> list[float]:
        """The penalties at which branches are pruned, beginning with 0."""
        return [step.alpha for step in self.steps]

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, k: int) -> PruningStep:
        return self.steps[k]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the steps as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per step: alpha, pruned (as text), n_leaves, risk.
        """
        columns = {name: [getattr(step, name) for step in self.steps] for name in ("alpha", "n_leaves", "risk")}
        return frame_of({"pruned": [_names(step.pruned) for step in self.steps]} | columns, backend)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the penalised risk, R(T) plus α per leaf, of each nested tree against α; the best tree is at the bottom.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        from spinney.inspect.draw.teaching import draw_penalised_risks

        return draw_penalised_risks(self, ax)

    def __repr__(self) -> str:
        return f"<WeakestLinks: {plural(len(self), 'step')}>"

    def __str__(self) -> str:
        rows = [["alpha", "leaves", "R(T)", "pruned", "g(t) before"]]
        for step in self.steps:
            links = ", ".join(f"t{node}: {fixed(value, 4)}" for node, value in sorted(step.links.items()))
            rows.append([fixed(step.alpha, 4), str(step.n_leaves), fixed(step.risk, 4), _names(step.pruned), links])
        return "\n".join(align(rows, left=(3, 4)))


def _names(nodes: Sequence[int]) -> str:
    return ", ".join(f"t{node}" for node in nodes) or "–"


def weakest_links(tree: TableEstimator | CountedTree) -> WeakestLinks:
    """Return the nested trees of cost-complexity pruning, with the strength g(t) of each link at each step.

    ``g(t) = (R(t) - R(T_t)) / (|T_t| - 1)``, where R(t) is the risk of node t as a leaf, R(T_t) that of the branch T_t
    below it, and ``|T_t|`` the number of its leaves. The first step prunes all branches that do not lower the risk (α =
    0), each further step those with the smallest g(t).

    Parameters
    ----------
    tree : estimator or CountedTree
        A fitted decision tree, whose parameter `risk` sets the risk, or the result of `tree_from_counts`.

    Returns
    -------
    WeakestLinks
        Prints as text; has `steps`, `alphas`, `to_frame()` and `plot()`.

    Examples
    --------
    >>> from spinney.teaching import tree_from_counts, weakest_links
    >>> tree = tree_from_counts((([80, 0], ([0, 60], [10, 0])), ([10, 0], [0, 40])))
    >>> print(weakest_links(tree))
     alpha  leaves    R(T)  pruned  g(t) before
    0.0000       5  0.0000  –       t1: 0.1250, t2: 0.1500, t3: 0.0500, t5: 0.0500
    0.0500       3  0.1000  t3, t5  t1: 0.1250, t2: 0.1500, t3: 0.0500, t5: 0.0500
    0.2000       1  0.5000  t1, t2  t1: 0.2000, t2: 0.2500
    """
    risks, steps, alpha = _risks(tree), list[PruningStep](), 0.0
    while True:
        before, pruned = _links(risks), set[int]()
        links = before
        alpha = max(alpha, min(links.values(), default=alpha)) if steps else 0.0
        while weakest := [node for node, g in links.items() if g <= alpha * (1 + _engine.alpha_rounding) + _NO_GAIN]:
            for node in weakest:
                pruned |= {below for below in _preorder(risks, node) if below in before} if node in risks else set()
                for below in _preorder(risks, node)[1:] if node in risks else []:
                    del risks[below]
            links = _links(risks)
        ends = _leaves(risks, 1)
        steps.append(PruningStep(alpha, tuple(sorted(pruned)), len(ends), sum(risks[t] for t in ends), before))
        if len(ends) == 1:
            return WeakestLinks(steps)


_NO_GAIN = 1e-14  # rounding of the sum of risks


def _links(risks: dict[int, float]) -> dict[int, float]:
    """Return g(t) of the inner nodes."""
    below: dict[int, tuple[float, int]] = {}
    for node in reversed(_preorder(risks, 1)):
        branches = [below[child] for child in (2 * node, 2 * node + 1) if child in risks]
        below[node] = reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), branches) if branches else (risks[node], 1)
    return {t: (risks[t] - risk) / (n - 1) for t, (risk, n) in sorted(below.items()) if n > 1}
