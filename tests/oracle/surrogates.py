"""Surrogate splits in their most obvious form, for trees grown with ``missing="surrogate"``.

A row that has no value in the column of a split has no *side* there: its side is None until a surrogate, or the
majority, gives it one.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from oracle.impurity import impurity, node_value, split_score
from oracle.tree import (
    MISSING_CODE,
    Node,
    Problem,
    category_splits,
    chance_gain,
    make_problem,
    midpoint,
    number_splits,
)

LEFT, RIGHT, NONE = 1, 0, 2


@dataclass(frozen=True)
class Surrogate:
    column: int
    threshold: float | None  # numbers
    reversed: bool  # whether values up to the threshold go right
    left: tuple  # codes, for categories
    right: tuple
    agreement: float
    adjusted: float

    def sides(self, problem, rows):
        values = problem.columns[self.column][rows]
        if self.threshold is None:
            return np.where(np.isin(values, self.left), LEFT, np.where(np.isin(values, self.right), RIGHT, NONE))
        side = np.where((values <= self.threshold) != self.reversed, LEFT, RIGHT)
        return np.where(np.isnan(values), NONE, side)


def find_surrogates(problem, rows, column, side, style, most):
    """Every column's best imitation of a split, best first; the earlier column of equals."""
    found = [imitate(problem, rows, j, side, style) for j in range(len(problem.columns)) if j != column]
    useful = [s for s in found if s is not None and s.adjusted > 1e-10]
    return sorted(useful, key=lambda s: -s.agreement)[:most]


def imitate(problem, rows, column, side, style):
    w, absent = problem.w[rows], problem.missing(column, rows)
    counted = side != NONE if style == "all" else (side != NONE) & ~absent
    weights = [w[counted & (side == s)].sum() for s in (LEFT, RIGHT)]
    if sum(weights) == 0:
        return None
    ties_left = weights[0] >= weights[1]
    known = (side != NONE) & ~absent
    way = imitate_by_set if problem.is_category[column] else imitate_by_cut
    best = way(problem.columns[column][rows], w, side, known, absent, ties_left, 2 * problem.w.min())
    if best is None:
        return None
    agreeing, shape = best
    agreement, majority = agreeing / sum(weights), max(weights) / sum(weights)
    adjusted = (agreement - majority) / (1 - majority) if majority < 1 else 0.0
    return Surrogate(column, *shape, agreement, adjusted)


def imitate_by_cut(values, w, side, known, absent, ties_left, least):
    """Cuts between any two neighbours, with placed rows of so much weight on each side; the lowest of equals."""
    best = None
    present = np.unique(values[~absent])
    for low, high in itertools.pairwise(present):
        below = values <= low
        if w[known & below].sum() < least or w[known & ~below].sum() < least:
            continue
        alike = w[known & (below == (side == LEFT))].sum()
        opposite = w[known & (below != (side == LEFT))].sum()
        if best is None or max(alike, opposite) > best[0]:
            best = max(alike, opposite), (midpoint(low, high), bool(opposite > alike), (), ())
    return best


def imitate_by_set(values, w, side, known, absent, ties_left, least):
    """Each category goes where most of its weight goes; with placed rows of at least so much weight on each side."""
    left, right, agreeing = [], [], 0.0
    for code in np.unique(values[known]):
        of = [w[known & (values == code) & (side == s)].sum() for s in (LEFT, RIGHT)]
        goes_left = of[0] > of[1] or (of[0] == of[1] and ties_left)
        (left if goes_left else right).append(int(code))
        agreeing += max(of)
    if any(w[known & np.isin(values, codes)].sum() < least for codes in (left, right)):
        return None
    return agreeing, (None, False, tuple(left), tuple(right))


def best_gains(problem, rows, min_leaf, charges):
    """Return the largest gain of each column among its rows with a value; -inf where it cannot be cut."""
    gains = np.full(len(problem.columns), -np.inf)
    for column in range(len(problem.columns)):
        known = rows[~problem.missing(column, rows)]
        splits = category_splits if problem.is_category[column] else number_splits
        for _, left, _, _ in splits(problem, known, column):
            if min(left.sum(), (~left).sum()) >= min_leaf:
                gains[column] = max(gains[column], gain(problem, known, left))
        charge = charge_of(problem, rows, column) if charges else 0.0
        gains[column] = gains[column] - charge if gains[column] > charge or charge == 0 else -np.inf
    return gains


def charge_of(problem, rows, column):
    """What chance alone may have gained by the order of categories; 0 for numbers."""
    if not problem.is_category[column]:
        return 0.0
    known = rows[~problem.missing(column, rows)]
    before = impurity(problem.criterion, problem.y[rows], problem.w[rows], problem.n_classes)
    return problem.w[known].sum() * chance_gain(problem, Node(known), column, before)


def gain(problem, rows, left):
    y, w = problem.y[rows], problem.w[rows]
    return w.sum() * split_score(problem.criterion, y, w, left, problem.n_classes)


# ---- a fitted tree beside it -------------------------------------------------------------------------------------


@dataclass
class Walk:
    problem: Problem
    model: object
    splits: dict
    resting: np.ndarray

    @property
    def tree(self):
        return self.model.tree_


def check_surrogate_tree(model, X, y, w=None, *, table=None, categories=()):
    """Assert that every node of the tree, every list of splits and every row's place follow from the rows.

    X is a float matrix with codes in the columns listed in `categories` and NaN where missing; `table` is what the
    model was fitted on, if not X.
    """
    least = getattr(model, "min_samples_category", 1)
    problem = make_problem(X, y, w, model.criterion, categories, min_samples_category=least)
    positive = np.ones(len(X), dtype=bool) if w is None else np.asarray(w) > 0
    resting = model.apply(X if table is None else table)[positive]
    walk = Walk(problem, model, model.tree_.splits, resting)
    assert walk.splits is not None
    check_node(walk, 0, np.arange(len(problem.w)))


def check_node(walk, node, rows):
    tree, problem = walk.tree, walk.problem
    y, w = problem.y[rows], problem.w[rows]
    assert tree.n_node_samples[node] == len(rows)
    value = node_value(problem.criterion, y, w, problem.n_classes)
    np.testing.assert_allclose(tree.value[node], value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        tree.impurity[node], impurity(problem.criterion, y, w, problem.n_classes), rtol=1e-9, atol=1e-9
    )
    if tree.is_leaf[node]:
        np.testing.assert_array_equal(walk.resting[rows], node)
        return
    side = own_sides(walk, node, rows)
    check_gains(walk, node, rows, side)
    side = check_surrogates(walk, node, rows, side)
    np.testing.assert_array_equal(walk.resting[rows[side == NONE]], node)
    check_node(walk, node + 1, rows[side == LEFT])
    check_node(walk, int(tree.children_right[node]), rows[side == RIGHT])


def listed(walk, node, role):
    begin, end = walk.splits["begin"][node : node + 2]
    return [s for s in range(begin, end) if walk.splits["role"][s] == role]


def codes_of(splits, s):
    at = int(splits["set"][s])
    n_left = int(splits["sets"][at])
    left = splits["sets"][at + 1 : at + 1 + n_left]
    at += 1 + n_left
    return tuple(left.tolist()), tuple(splits["sets"][at + 1 : at + 1 + int(splits["sets"][at])].tolist())


def sides_of(walk, s, rows):
    """Sides of rows by a split of the tree's lists."""
    column = int(walk.splits["feature"][s])
    if walk.problem.is_category[column]:
        shape = (None, False, *codes_of(walk.splits, s))
    else:
        shape = (float(walk.splits["threshold"][s]), False, (), ())
    return Surrogate(column, *shape, 0.0, 0.0).sides(walk.problem, rows)


def own_sides(walk, node, rows):
    (own,) = listed(walk, node, 0)
    assert walk.splits["feature"][own] == walk.tree.feature[node]
    side = sides_of(walk, own, rows)
    column = int(walk.tree.feature[node])
    np.testing.assert_array_equal(side == NONE, walk.problem.missing(column, rows))
    if not walk.problem.is_category[column]:
        values = walk.problem.columns[column][rows]
        assert walk.tree.threshold[node] == midpoint(values[side == LEFT].max(), values[side == RIGHT].min())
    return side


def check_gains(walk, node, rows, side):
    """The split and its competitors are the best columns, each with its best cut."""
    model, splits = walk.model, walk.splits
    charges = model.min_samples_category > 1
    gains = best_gains(walk.problem, rows, model.min_samples_leaf, charges)
    kept = listed(walk, node, 0) + listed(walk, node, 1)
    found = splits["improve"][kept]
    best = np.sort(gains[np.isfinite(gains)])[::-1][: 1 + model.max_competitors]
    scale = walk.problem.w[rows].sum() * max(1.0, np.abs(walk.problem.y).max() ** 2)
    np.testing.assert_allclose(found, best, rtol=1e-7, atol=1e-9 * scale)
    for s, stated in zip(kept, found, strict=True):
        column = int(splits["feature"][s])
        np.testing.assert_allclose(stated, gains[column], rtol=1e-7, atol=1e-9 * scale)
        known = ~walk.problem.missing(column, rows)
        left = sides_of(walk, s, rows)[known] == LEFT
        charge = charge_of(walk.problem, rows, column) if charges else 0.0
        net = gain(walk.problem, rows[known], left) - charge
        np.testing.assert_allclose(net, stated, rtol=1e-7, atol=1e-9 * scale)
        assert splits["count"][s] == known.sum()


def check_surrogates(walk, node, rows, side):
    """Compare the list of surrogates and return the sides of all rows; NONE for those that stay."""
    model, splits = walk.model, walk.splits
    expected = find_surrogates(
        walk.problem, rows, int(walk.tree.feature[node]), side, model.surrogate_style, model.max_surrogates
    )
    kept = listed(walk, node, 2)
    assert splits["feature"][kept].tolist() == [s.column for s in expected]
    weights = [walk.problem.w[rows][side == s].sum() for s in (LEFT, RIGHT)]
    placed = side.copy()
    for s, surrogate in zip(kept, expected, strict=True):
        np.testing.assert_allclose(splits["improve"][s], surrogate.agreement, rtol=1e-12)
        np.testing.assert_allclose(splits["adjusted"][s], surrogate.adjusted, rtol=1e-9)
        if surrogate.threshold is None:
            assert codes_of(splits, s) == (surrogate.left, surrogate.right)
        else:
            assert splits["threshold"][s] == surrogate.threshold
            assert bool(splits["flags"][s] & 2) == surrogate.reversed
        if model.missing_fallback != "ignore":
            sides = surrogate.sides(walk.problem, rows)
            moved = (placed == NONE) & (sides != NONE)
            assert splits["count"][s] == moved.sum()
            placed = np.where(moved, sides, placed)
    if model.missing_fallback == "majority":
        placed[placed == NONE] = LEFT if weights[0] > weights[1] else RIGHT
    return placed


def importances(model):
    """Each split's gain, and a surrogate's adjusted agreement's part of it, by column; shares of the total."""
    tree, splits = model.tree_, model.tree_.splits
    total = np.zeros(model.n_features_in_)
    for node in np.flatnonzero(~tree.is_leaf):
        begin, end = splits["begin"][node : node + 2]
        for s in range(begin, end):
            part = {0: 1.0, 1: 0.0, 2: splits["adjusted"][s]}[int(splits["role"][s])]
            total[splits["feature"][s]] += part * splits["improve"][begin]
    return total / total.sum()


__all__ = ["MISSING_CODE", "check_surrogate_tree", "find_surrogates", "importances"]
