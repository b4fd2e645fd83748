"""Growth of one tree of the rpart reference implementation, and the nodes of its rows.

*Complexity* of a node: the price per split at which its subtree is no longer worth keeping. *Alpha* is cp in units of
risk. A node numbered k has children 2k and 2k + 1.
"""

from dataclasses import dataclass, field

import numpy as np

from oracle.rpart_splits import LEFT, NOWHERE, RIGHT, SMALLEST_SHARE, Shortlist, best_split, best_surrogate, directions


@dataclass
class Node:
    number: int
    rows: np.ndarray = field(repr=False)
    weight: float
    summary: object
    complexity: float
    primaries: list = field(default_factory=list)  # the split and its competitors
    surrogates: list = field(default_factory=list)
    majority: int = NOWHERE
    left: "Node | None" = None
    right: "Node | None" = None

    @property
    def is_leaf(self):
        return self.left is None

    def child(self, side):
        return self.left if side == LEFT else self.right

    def walk(self):
        """Depth first, left first."""
        yield self
        if not self.is_leaf:
            yield from self.left.walk()
            yield from self.right.walk()


@dataclass
class Grower:
    """Everything that stays the same while a tree grows."""

    table: object
    method: object
    weights: np.ndarray
    params: dict
    cost: np.ndarray
    quirks: bool
    largest_improvement: float = 0.0  # over all trees of one call of fit

    def grow(self, rows, alpha, with_surrogates=True):
        """Grow a tree on some rows of the table; risks and alpha are absolute."""
        self.alpha, self.with_surrogates = alpha, with_surrogates
        self.method.start(rows)
        root = self.make_node(1, rows)
        self.partition(root, root.summary.risk)
        cap_complexity(root, root.complexity)
        return root

    def make_node(self, number, rows):
        return Node(number, rows, float(np.sum(self.weights[rows])), self.method.evaluate(rows), self.alpha)

    def partition(self, node, bound):
        """Grow below the node; give the risk of its leaves and the number of splits that survive.

        ``bound`` is the most that a split of this node can be worth: where it does not exceed alpha, none is tried.
        """
        risk = node.summary.risk
        bound = min(bound, risk)
        too_deep = node.number > 2 ** self.params["maxdepth"] - 1
        if len(node.rows) < self.params["minsplit"] or bound <= self.alpha or too_deep:
            return risk, 0
        if not self.find_splits(node):
            return risk, 0
        sent = self.send(node)
        node.left = self.make_node(2 * node.number, node.rows[sent == LEFT])
        left_risk, left_splits = self.partition(node.left, bound - self.alpha)
        worth = max((risk - left_risk) / (left_splits + 1), risk - node.left.summary.risk)
        node.right = self.make_node(2 * node.number + 1, node.rows[sent == RIGHT])
        right_risk, right_splits = self.partition(node.right, min(worth, bound) - self.alpha)
        kept_risk, kept_splits = weakest_first(node, (left_risk, left_splits), (right_risk, right_splits))
        node.complexity = (risk - kept_risk) / (kept_splits + 1)
        if node.complexity <= self.alpha:
            node.left = node.right = None
            node.primaries, node.surrogates = [], []
            return risk, 0
        return kept_risk, kept_splits + 1

    def find_splits(self, node):
        params = self.params
        shortlist = Shortlist(params["maxcompete"] + 1, self.quirks)
        for column in range(len(self.table)):
            split = best_split(
                self.table, column, node.rows, self.method, params["minbucket"], node.summary.risk, self.weights
            )
            if split is None:
                continue
            split.improve /= self.cost[column]
            self.largest_improvement = max(self.largest_improvement, split.improve)
            if split.improve > SMALLEST_SHARE * self.largest_improvement:
                shortlist.offer(split)
        node.primaries = shortlist.items
        if node.primaries:
            self.find_surrogates(node)
        return bool(node.primaries)

    def find_surrogates(self, node):
        primary, rows = node.primaries[0], node.rows
        sent = directions(primary, self.table.columns[primary.column][rows])
        left = np.sum(self.weights[rows][sent == LEFT])
        right = np.sum(self.weights[rows][sent == RIGHT])
        node.majority = LEFT if left > right else RIGHT if right > left else NOWHERE
        if self.params["maxsurrogate"] == 0:
            if self.quirks:
                node.majority = NOWHERE
            return
        if not self.with_surrogates:
            return
        shortlist = Shortlist(self.params["maxsurrogate"], self.quirks)
        for column in range(len(self.table)):
            if column != primary.column:
                style = self.params["surrogatestyle"]
                split = best_surrogate(self.table, column, rows, sent, style, self.weights, self.quirks)
                if split is not None:
                    shortlist.offer(split)
        node.surrogates = shortlist.items

    def send(self, node):
        """Send the rows of a node to its children while growing; rows sent nowhere stay in the node."""
        values = self.table.columns[node.primaries[0].column][node.rows]
        sent = directions(node.primaries[0], values)
        waiting = np.isnan(values)  # a level without weight in the node does not wait: its rows stay
        if self.params["usesurrogate"] > 0:
            for surrogate in node.surrogates:
                by_surrogate = directions(surrogate, self.table.columns[surrogate.column][node.rows])
                moved = waiting & (by_surrogate != NOWHERE)
                sent[moved] = by_surrogate[moved]
                surrogate.count = int(np.sum(moved))
                waiting &= ~moved
        if self.params["usesurrogate"] == 2:
            sent[waiting] = node.majority
        return sent


def weakest_first(node, left, right):
    """Risk and splits that stay below the node when it collapses: sons that are worth less per split go before."""
    risk = node.summary.risk
    sons = [(node.left, *left), (node.right, *right)]
    if node.right.complexity <= node.left.complexity:
        sons.reverse()
    (weaker, weak_risk, weak_splits), (stronger, strong_risk, strong_splits) = sons
    if (risk - weak_risk - strong_risk) / (weak_splits + strong_splits + 1) > weaker.complexity:
        weak_risk, weak_splits = weaker.summary.risk, 0
        if (risk - weak_risk - strong_risk) / (strong_splits + 1) > stronger.complexity:
            strong_risk, strong_splits = stronger.summary.risk, 0
    return weak_risk + strong_risk, weak_splits + strong_splits


def cap_complexity(node, ceiling):
    """No subtree outlives the one that contains it."""
    node.complexity = min(node.complexity, ceiling)
    if not node.is_leaf:
        cap_complexity(node.left, node.complexity)
        cap_complexity(node.right, node.complexity)


def next_node(node, table, row, usesurrogate, majority, cut_is_below=False):
    """Child that a new row goes to, or None if it stays; ``majority(node)`` is the side of last resort.

    ``cut_is_below`` is about ordered factors: a level absent from the node can lie exactly on the cut.
    """
    for split in [node.primaries[0], *(node.surrogates if usesurrogate > 0 else [])]:
        with_cut = cut_is_below and table.kinds[split.column] == "ordered"
        side = directions(split, table.columns[split.column][row : row + 1], with_cut)[0]
        if side != NOWHERE:
            return node.child(side)
    side = majority(node) if usesurrogate == 2 else NOWHERE
    return None if side == NOWHERE else node.child(side)


def larger_child(node):
    """Majority rule of predict: more rows, whatever their weight."""
    left, right = len(node.left.rows), len(node.right.rows)
    return LEFT if left > right else RIGHT if right > left else NOWHERE


def final_node(node, table, row, usesurrogate):
    """Node where predict leaves a new row."""
    while not node.is_leaf:
        child = next_node(node, table, row, usesurrogate, larger_child, cut_is_below=True)
        if child is None:
            break
        node = child
    return node
