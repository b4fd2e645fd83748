"""Split search of the rpart reference implementation: the best split of a column, the best splits, the surrogates.

A split sends a row left (-1), right (+1) or nowhere (0: missing value, or a level without rows in the node).
"""

from dataclasses import dataclass, field

import numpy as np

LEFT, NOWHERE, RIGHT = -1, 0, 1
SMALLEST_SHARE = 1e-10  # of the largest improvement seen, and of the adjusted agreement


@dataclass
class Table:
    """Columns of floats, NaN where missing; factors (ordered or not) hold their codes 1, 2, ..."""

    columns: list
    kinds: list  # "numeric", "factor" or "ordered"
    n_levels: list  # 0 for numbers

    def __len__(self):
        return len(self.columns)


@dataclass
class Split:
    column: int
    improve: float  # improvement, or agreement of a surrogate
    count: int = 0  # rows with a value and weight > 0; of a surrogate: rows it sent
    cut: float | None = None
    below: int = LEFT  # where x < cut goes
    levels: np.ndarray | None = field(default=None, repr=False)  # direction of each level
    adj: float = 0.0


def directions(split, values, cut_is_below=False):
    """Where the split sends each value; a value equal to the cut is above it unless `closed` is set."""
    sent = np.zeros(len(values), int)
    known = ~np.isnan(values)
    if split.levels is None:
        below = values[known] <= split.cut if cut_is_below else values[known] < split.cut
        sent[known] = np.where(below, split.below, -split.below)
    else:
        sent[known] = split.levels[values[known].astype(int) - 1]
    return sent


class Shortlist:
    """The best few splits, best first, equals in order of arrival."""

    def __init__(self, size, quirks):
        self.size, self.quirks, self.items = size, quirks, []

    def offer(self, split):
        place = sum(kept.improve >= split.improve for kept in self.items)
        if self.quirks and self.size == 2 and len(self.items) == 2 and place == 0:
            self.items = [split]  # the former best is lost along with the last
            return
        self.items.insert(place, split)
        del self.items[self.size :]


def best_split(table, column, rows, method, minbucket, node_risk, weights):
    """Best split of the node's rows on one column, or None."""
    values = table.columns[column][rows]
    usable = ~np.isnan(values) & (weights[rows] > 0)
    values, used = values[usable], rows[usable]
    if len(used) < 2:
        return None
    if table.kinds[column] == "factor":
        split = best_level_split(values.astype(int), table.n_levels[column], used, method, minbucket, node_risk)
    else:
        split = best_cut(values, used, method, minbucket, node_risk)
    if split is not None:
        split.column, split.count = column, len(used)
    return split


def best_cut(values, rows, method, minbucket, node_risk):
    order = np.argsort(values, kind="stable")
    values, statistics = values[order], method.prepare(rows[order], node_risk)
    left, right, total = both_sides(statistics)
    n = len(values)
    size = np.arange(1, n)
    allowed = (values[1:] != values[:-1]) & (size >= minbucket) & (n - size >= minbucket)
    winner = first_best(method, left, right, total, allowed)
    if winner is None:
        return None
    place, improve, lower = winner
    cut = (values[place] + values[place + 1]) / 2
    return Split(-1, improve, cut=float(cut), below=LEFT if lower else RIGHT)


def both_sides(statistics):
    """Running statistics left and right of every gap between two lines, and their total."""
    left = np.cumsum(statistics, axis=0)
    right = np.subtract.accumulate(np.vstack([left[-1:], statistics]), axis=0)[1:]
    return left[:-1], right[:-1], left[-1:]


def first_best(method, left, right, total, allowed):
    """Place, improvement and side of the first of the best allowed candidates; None if none improves the node."""
    places = np.flatnonzero(allowed)
    if not len(places):
        return None
    left, right = left[places], right[places]
    improve = method.improvement(left, right, total)
    best = int(np.argmax(improve))
    if not improve[best] > 0:
        return None
    lower = method.position(left[best : best + 1])[0] < method.position(right[best : best + 1])[0]
    return int(places[best]), float(improve[best]), bool(lower)


def best_level_split(codes, n_levels, rows, method, minbucket, node_risk):
    present, index, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    if len(present) < 2:
        return None
    row_statistics = method.prepare(rows, node_risk)
    statistics = np.zeros((len(present), row_statistics.shape[1]))
    np.add.at(statistics, index, row_statistics)
    members = candidate_subsets(statistics, method)
    total = np.cumsum(row_statistics, axis=0)[-1:]
    left, right = moving_sides(members, statistics, total)
    size = members @ sizes
    allowed = (size >= minbucket) & (len(rows) - size >= minbucket)
    winner = first_best(method, left, right, total, allowed)
    if winner is None:
        return None
    place, improve, lower = winner
    levels = np.zeros(n_levels, int)
    side = LEFT if lower else RIGHT
    levels[present - 1] = np.where(members[place] == 1, side, -side)
    return Split(-1, improve, levels=levels)


def moving_sides(members, statistics, total):
    """Statistics of each subset and of the rest, moving one level at a time."""
    moves = np.diff(members, axis=0, prepend=0)
    changes = np.stack([line @ statistics for line in moves])  # one level each: nothing is added up
    return np.cumsum(changes, axis=0), np.subtract.accumulate(np.vstack([total, changes]), axis=0)[1:]


def candidate_subsets(statistics, method):
    """One line per subset of levels to try, in the order of trying; 1 marks a member."""
    k = len(statistics)
    if getattr(method, "n_classes", 2) > 2:
        return gray_subsets(k)
    order = np.argsort(method.level_rank(statistics), kind="stable")
    members = np.zeros((k - 1, k))
    for i in range(k - 1):
        members[i, order[: i + 1]] = 1
    return members


def gray_subsets(k):
    """Each subset of the first k - 1 levels but the empty one, neighbours differing in one level; the first first."""
    numbers = np.arange(1, 2 ** (k - 1))
    gray = numbers ^ (numbers >> 1)
    return ((gray[:, None] >> np.arange(k)) & 1).astype(float)


def best_surrogate(table, column, rows, sent, style, weights, quirks):
    """The split on one column that best repeats the primary one, or None."""
    values, w = table.columns[column][rows], weights[rows]
    present = ~np.isnan(values)
    to_left, to_right = w * (sent == LEFT), w * (sent == RIGHT)
    counted = present if style == 1 else np.ones(len(rows), bool)
    total = np.sum(to_left[counted] + to_right[counted])
    left, right = np.sum(to_left[counted]), np.sum(to_right[counted])
    majority, larger_side = max(left, right), LEFT if left > right else RIGHT
    values, to_left, to_right = values[present], to_left[present], to_right[present]
    if table.kinds[column] == "factor":
        split = surrogate_levels(values, table.n_levels[column], to_left, to_right, majority, larger_side, quirks)
    else:
        split = surrogate_cut(values, to_left, to_right, majority)
    if split is None or total <= 0:
        return None
    agree, base = split.improve / total, majority / total
    split.column, split.improve, split.adj = column, float(agree), float((agree - base) / (1 - base))
    return split if split.adj >= SMALLEST_SHARE else None


def surrogate_cut(values, to_left, to_right, majority):
    order = np.argsort(values, kind="stable")
    values, to_left, to_right = values[order], to_left[order], to_right[order]
    if len(values) < 2:
        return None
    below_left, below_right = np.cumsum(to_left)[:-1], np.cumsum(to_right)[:-1]
    above_left, above_right = np.sum(to_left) - below_left, np.sum(to_right) - below_right
    counts = np.cumsum((to_left > 0) | (to_right > 0))
    allowed = (values[1:] != values[:-1]) & (counts[:-1] >= 2) & (counts[-1] - counts[:-1] >= 2)
    same, opposite = below_left + above_right, below_right + above_left
    agreement = np.where(allowed, np.maximum(same, opposite), -np.inf)
    best = int(np.argmax(agreement))
    if not agreement[best] > majority:
        return None
    cut = (values[best] + values[best + 1]) / 2
    return Split(-1, float(agreement[best]), cut=float(cut), below=LEFT if same[best] > opposite[best] else RIGHT)


def surrogate_levels(values, n_levels, to_left, to_right, majority, larger_side, quirks):
    if not len(values):
        return None
    codes = values.astype(int) - 1
    left, right = np.bincount(codes, to_left, n_levels), np.bincount(codes, to_right, n_levels)
    levels = np.where(left > right, LEFT, np.where(right > left, RIGHT, larger_side))
    levels[left + right == 0] = NOWHERE
    agreement = np.sum(np.maximum(left, right))
    goes = levels[codes]
    counted = (to_left > 0) | (to_right > 0)
    agrees = np.where(goes == LEFT, to_left > 0, to_right > 0) & counted
    enough = np.sum(counted & ~agrees) >= 2
    if not quirks:  # what rpart means to ask for is enough as well
        enough |= np.sum(counted & (goes == LEFT)) >= 2 and np.sum(counted & (goes == RIGHT)) >= 2
    return Split(-1, float(agreement), levels=levels) if enough and agreement > majority else None
