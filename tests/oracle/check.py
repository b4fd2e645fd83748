"""Check a fitted spinney tree against the slow reference implementation: each node must follow from its rows."""

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from oracle.impurity import GeneralisedGini, impurity, node_value, split_information, split_score
from oracle.tree import (
    Candidate,
    Node,
    Problem,
    Rules,
    allowed_columns,
    best_split,
    chance_gain,
    clip,
    improvement,
    is_admissible,
    make_problem,
    midpoint,
    priority,
    row_counts,
    scalar_value,
    stops_before_search,
    tied_for_best,
)


@dataclass
class Walk:
    """One tree being checked. `went` holds the rows of positive weight of each node."""

    problem: Problem
    rules: Rules
    tree: object
    went: list
    search: str


def check_tree(model, X, y, w=None, *, table=None, categories=(), search="best", criterion=None):
    """Assert that every node of `model.tree_` follows from the training data.

    Parameters
    ----------
    X : float matrix, with codes in the columns listed in `categories` and NaN where missing
    table : what the model was fitted on, if not X
    search : "best" (every column searched), "column" (best cut of the chosen column only, for
        `max_features`), "any" (any admissible cut: random or binned thresholds), "pruned" (best, but a leaf
        needs no reason)
    criterion : name in the reference implementation, if it differs from the model's
    """
    weights = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    if getattr(model, "class_weight", None) is not None:
        weights = weights * compute_sample_weight(model.class_weight, y)
    searched, stated, own = under_costs(model, np.asarray(y), weights)
    times = row_counts(np.ones(len(X)) if w is None else np.asarray(w, dtype=float))
    least = getattr(model, "min_samples_category", 1)
    problem = make_problem(X, y, searched, criterion or own, categories, stated, least, times)
    path = model.decision_path(X if table is None else table).toarray().astype(bool)[weights > 0]
    walk = Walk(problem, rules_of(model, X), model.tree_, [np.flatnonzero(p) for p in path.T], search)
    check_layout(model.tree_)
    nodes, next_free = check_node(walk, 0, Node(np.arange(len(problem.w))))
    assert next_free == model.tree_.node_count
    if walk.rules.max_leaf_nodes is not None and search == "best":
        check_best_first_order(walk, nodes)


def under_costs(model, y, w):
    """Weights of the search, weights by which values are stated, and the criterion, under costs and priors."""
    cost, priors = getattr(model, "cost_matrix", None), getattr(model, "priors", None)
    if cost is None and priors is None:
        return w, w, model.criterion
    classes, codes = np.unique(y, return_inverse=True)
    shares = np.array([w[codes == k].sum() / w.sum() for k in range(len(classes))])
    priors = shares if priors is None else np.asarray(priors)
    stated = w * (priors / shares)[codes]
    cost_splits = getattr(model, "cost_splits", "altered_priors")
    if cost is None or cost_splits is None:
        return stated, stated, model.criterion
    if cost_splits == "generalised_gini":
        return stated, stated, GeneralisedGini(cost)
    altered = priors * np.sum(cost, axis=1)
    return w * (altered / altered.sum() / shares)[codes], stated, model.criterion


def rules_of(model, X):
    n = len(X)

    def count(value, least):
        return value if isinstance(value, (int, np.integer)) else max(least, ceil(value * n))

    return Rules(
        max_depth=np.inf if model.max_depth is None else model.max_depth,
        min_samples_split=count(model.min_samples_split, 2),
        min_samples_leaf=count(model.min_samples_leaf, 1),
        min_weight_fraction_leaf=model.min_weight_fraction_leaf,
        max_leaf_nodes=model.max_leaf_nodes,
        min_impurity_decrease=model.min_impurity_decrease,
        min_purity=np.inf if getattr(model, "min_purity", None) is None else model.min_purity,
        monotonic_cst=None if model.monotonic_cst is None else tuple(model.monotonic_cst),
        interaction_cst=interaction_groups(model.interaction_cst, X.shape[1]),
        feature_costs=None if getattr(model, "feature_costs", None) is None else tuple(model.feature_costs),
        charges_categories=getattr(model, "min_samples_category", 1) > 1 and getattr(model, "splitter", "") != "random",
    )


def interaction_groups(groups, n_columns):
    if groups == "no_interactions":
        return [{j} for j in range(n_columns)]
    if groups == "pairwise":
        return [{i, j} for i in range(n_columns) for j in range(i)] or [{0}]
    return groups


def check_layout(tree):
    """Preorder numbering and the conventional marks of a leaf."""
    leaf = tree.children_left == -1
    np.testing.assert_array_equal(tree.children_right == -1, leaf)
    np.testing.assert_array_equal(tree.feature[leaf], -2)
    np.testing.assert_array_equal(tree.threshold[leaf], -2.0)
    assert np.all(tree.feature[~leaf] >= 0)
    np.testing.assert_array_equal(tree.children_left[~leaf], np.flatnonzero(~leaf) + 1)
    assert leaf.sum() == tree.n_leaves
    assert tree.node_count == len(leaf) == 2 * tree.n_leaves - 1
    assert tree.missing_go_to_left.dtype == np.uint8
    assert tree.threshold.dtype == np.float64


def check_node(walk, index, node):
    """Check the node and its subtree; return ({index: (node, gain)}, the next free index)."""
    np.testing.assert_array_equal(walk.went[index], node.rows)
    check_content(walk, index, node)
    if walk.tree.children_left[index] == -1:
        return {index: (node, check_leaf(walk, node))}, index + 1
    actual = check_split(walk, index, node)
    seen = {index: (node, priority(walk.problem, node, actual))}
    left, right = children_of(walk, node, actual)
    found, next_free = check_node(walk, index + 1, left)
    assert walk.tree.children_right[index] == next_free
    others, next_free = check_node(walk, next_free, right)
    return seen | found | others, next_free


def check_content(walk, index, node):
    problem, tree = walk.problem, walk.tree
    y, w = problem.y[node.rows], problem.stated[node.rows]
    scale = max(1.0, float(np.abs(problem.y).max()))
    assert tree.n_node_samples[index] == len(node.rows)
    np.testing.assert_allclose(tree.weighted_n_node_samples[index], w.sum(), rtol=1e-9)
    expected = impurity(problem.criterion, y, w, problem.n_classes)
    np.testing.assert_allclose(tree.impurity[index], expected, rtol=1e-9, atol=1e-10 * scale**2)
    value = node_value(problem.criterion, y, w, problem.n_classes)
    if walk.rules.monotonic_cst is not None:
        value = clip(value, node.lower, node.upper)
    np.testing.assert_allclose(tree.value[index], value, rtol=1e-9, atol=1e-10 * scale)


def check_leaf(walk, node):
    """A leaf needs a reason; return the improvement it forgoes when the reason is the number of leaves."""
    if walk.search == "pruned" or stops_before_search(walk.problem, walk.rules, node):
        return -np.inf
    candidates = best_split(walk.problem, walk.rules, node)
    if walk.search == "any" or not candidates:
        return -np.inf
    best = tied_for_best(walk.problem, node.rows, candidates)
    forgone = max(priority(walk.problem, node, c) for c in best)
    if max(improvement(walk.problem, node, c) for c in best) <= walk.rules.min_impurity_decrease + 1e-12:
        return -np.inf
    full = walk.rules.max_leaf_nodes is not None and walk.tree.n_leaves == walk.rules.max_leaf_nodes
    assert full, f"a node of {len(node.rows)} rows could be split with improvement {forgone}"
    return forgone


def actual_candidate(walk, index, node):
    problem, tree = walk.problem, walk.tree
    left = np.isin(node.rows, walk.went[index + 1])
    right = np.isin(node.rows, walk.went[tree.children_right[index]])
    np.testing.assert_array_equal(left, ~right)
    y, w, column = problem.y[node.rows], problem.w[node.rows], int(tree.feature[index])
    score = split_score(problem.criterion, y, w, left, problem.n_classes)
    charge = 0.0
    if problem.is_category[column] and walk.rules.charges_categories:
        before = impurity(problem.criterion, y, w, problem.n_classes)
        charge = chance_gain(problem, node, column, before)
    net = score - charge
    ratio = net / split_information(w, left) if problem.criterion == "gain_ratio" else net
    threshold = float(tree.threshold[index])
    missing_left = bool(tree.missing_go_to_left[index])
    price = 1.0 if walk.rules.feature_costs is None else walk.rules.feature_costs[column]
    return Candidate((), column, left, score, ratio, threshold, missing_left, price=price, charge=charge)


def check_split(walk, index, node):
    problem, rules = walk.problem, walk.rules
    actual = actual_candidate(walk, index, node)
    assert not stops_before_search(problem, rules, node)
    assert actual.column in allowed_columns(rules, node.used, len(problem.columns))
    assert is_admissible(problem, relaxed(rules), node, actual.column, actual.left)
    assert actual.score > -np.inf
    assert improvement(problem, node, actual) >= rules.min_impurity_decrease - 1e-12
    if problem.is_category[actual.column]:
        check_category_routing(walk, node, actual)
    else:
        check_threshold(walk, node, actual)
    if walk.search != "any":
        candidates = best_split(problem, rules, node)
        if walk.search == "column":
            candidates = [c for c in candidates if c.column == actual.column]
        check_is_best(problem, node.rows, candidates, actual)
    return actual


def relaxed(rules):
    """Weights are sums of reals, so a side whose weight is exactly the minimum may differ in the last bit."""
    return replace(rules, min_weight_fraction_leaf=rules.min_weight_fraction_leaf * (1 - 1e-9))


def check_is_best(problem, rows, candidates, actual):
    tied = tied_for_best(problem, rows, candidates)
    by_column = {c.column: c for c in tied}
    assert actual.column in by_column, f"column {actual.column} is not among the best {sorted(by_column)}"
    scale = impurity(problem.criterion, problem.y[rows], problem.w[rows], problem.n_classes)
    for mine, best in ((actual.score, "score"), (actual.ratio, "ratio")):
        target = min(getattr(c, best) for c in tied if c.column == actual.column)
        assert mine >= target - 1e-9 * abs(target) - 1e-11 * scale, f"{best} {mine} is below {target}"


def check_threshold(walk, node, actual):
    """The midpoint of the gap it falls into; infinity when only missing rows go right."""
    values = walk.problem.columns[actual.column][node.rows]
    missing = np.isnan(values)
    low, high = values[actual.left & ~missing], values[~actual.left & ~missing]
    if high.size == 0:
        assert actual.threshold == np.inf
        assert not actual.missing_left
    elif walk.search == "any":
        assert low.max() <= actual.threshold < high.min()
    else:
        assert actual.threshold == midpoint(low.max(), high.min())
    if missing.any():
        np.testing.assert_array_equal(actual.left[missing], actual.missing_left)
    else:
        assert actual.missing_left == heavier_left(walk.problem, node, actual)


def check_category_routing(walk, node, actual):
    """A category is on one side only, and so are the missing rows."""
    codes = walk.problem.columns[actual.column][node.rows]
    for code in np.unique(codes):
        assert len(set(actual.left[codes == code])) == 1
    assert np.isnan(actual.threshold)
    pool = walk.problem.pools[actual.column]
    if np.any(codes == -1):
        assert bool(actual.left[codes == -1][0]) == actual.missing_left
    elif np.any(codes == pool):
        assert bool(actual.left[codes == pool][0]) == actual.missing_left
    else:
        assert actual.missing_left == heavier_left(walk.problem, node, actual)


def heavier_left(problem, node, actual):
    w = problem.w[node.rows]
    left, right = w[actual.left].sum(), w[~actual.left].sum()
    if np.isclose(left, right, rtol=1e-9):
        return actual.missing_left if np.any(w != np.round(w)) else False
    return bool(left > right)


def children_of(walk, node, actual):
    rows = node.rows[actual.left], node.rows[~actual.left]
    bounds = [(node.lower, node.upper)] * 2
    sign = walk.rules.monotonic_cst[actual.column] if walk.rules.monotonic_cst is not None else 0
    if sign:
        middle = (scalar_value(walk.problem, rows[0]) + scalar_value(walk.problem, rows[1])) / 2
        bounds = [(node.lower, middle), (middle, node.upper)][::sign]
    used = node.used | {actual.column}
    return [Node(r, node.depth + 1, low, high, used) for r, (low, high) in zip(rows, bounds, strict=True)]


def check_best_first_order(walk, nodes):
    """Replay the growth: the open node with the largest improvement must be one that was split."""
    assert can_replay(walk.tree, nodes, [0]), "a leaf was passed over for a node with a smaller improvement"


def can_replay(tree, nodes, frontier):
    """Whether some order of equal improvements leads to this tree."""
    if all(tree.children_left[i] == -1 for i in frontier):
        return True
    best = max(nodes[i][1] for i in frontier)
    for i in frontier:
        if tree.children_left[i] != -1 and nodes[i][1] >= best - 1e-9 * abs(best) - 1e-12:
            rest = [j for j in frontier if j != i]
            if can_replay(tree, nodes, [*rest, tree.children_left[i], tree.children_right[i]]):
                return True
    return False
