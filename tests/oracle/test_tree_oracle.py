"""The slow reference implementation agrees with scikit-learn."""

import numpy as np
import pytest
from sweep import covering

from oracle.data import sklearn_tree, tie_free
from oracle.pruning import collapse, pruning_path
from oracle.tree import Rules, best_split, flatten, grow, make_problem, midpoint, preorder

SHARED = ["gini", "entropy", "squared_error", "absolute_error", "poisson", "friedman_mse"]
GROWTH = {
    "depth_first": {"max_depth": 4, "min_samples_leaf": 7},
    "best_first": {"max_leaf_nodes": 7, "min_samples_leaf": 5},
    "weight_rule": {"min_weight_fraction_leaf": 0.1, "min_samples_split": 20},
    "decrease_rule": {"min_impurity_decrease": 0.02, "min_samples_leaf": 5},
}


def assert_same_tree(root, tree, atol=1e-10):
    """Both trees hold the same nodes in preorder (scikit-learn's best-first order is renumbered)."""
    mine = flatten(root)
    order = sklearn_preorder(tree)
    assert mine["feature"] == tree.feature[order].tolist()
    np.testing.assert_array_equal(mine["threshold"], tree.threshold[order])
    np.testing.assert_array_equal(mine["n_node_samples"], tree.n_node_samples[order])
    np.testing.assert_allclose(mine["impurity"], tree.impurity[order], atol=atol)
    np.testing.assert_allclose(mine["value"], tree.value[order], atol=atol)


def sklearn_preorder(tree, node=0):
    if tree.children_left[node] == -1:
        return [node]
    left, right = tree.children_left[node], tree.children_right[node]
    return [node, *sklearn_preorder(tree, left), *sklearn_preorder(tree, right)]


def rules_for(params):
    return Rules(**{**params, "monotonic_cst": params.get("monotonic_cst")})


SETTINGS = [
    ("none", "depth_first"),
    ("integer", "best_first"),
    ("none", "best_first"),
    ("real", "weight_rule"),
    ("integer", "decrease_rule"),
]


@pytest.mark.parametrize(*covering(criterion=SHARED, setting=SETTINGS))
def test_grows_scikit_learns_tree(criterion, setting):
    weights, growth = setting
    X, y, w, peer = tie_free(criterion, weights, n_classes=3, **GROWTH[growth])
    root = grow(make_problem(X, y, w, criterion), rules_for(GROWTH[growth]))
    assert root.children
    assert_same_tree(root, peer.tree_)


@pytest.mark.parametrize(*covering(criterion=["gini", "entropy", "squared_error", "poisson"], weights=["none", "real"]))
def test_treats_missing_values_like_scikit_learn(criterion, weights):
    params = {"min_samples_leaf": 6, "max_depth": 4}
    X, y, w, peer = tie_free(criterion, weights, missing=True, **params)
    problem = make_problem(X, y, w, criterion)
    root = grow(problem, rules_for(params))
    assert_same_tree(root, peer.tree_)
    for node, go_left in zip(preorder(root), peer.tree_.missing_go_to_left, strict=True):
        if node.children and problem.missing(node.split.column, node.rows).any():
            assert node.missing_left == bool(go_left)


@pytest.mark.parametrize("criterion", ["gini", "squared_error", "absolute_error", "poisson"])
def test_averages_several_outputs_like_scikit_learn(criterion):
    params = {"min_samples_leaf": 8, "max_depth": 3}
    X, y, w, peer = tie_free(criterion, "real", n_outputs=2, n_classes=3, **params)
    assert_same_tree(grow(make_problem(X, y, w, criterion), rules_for(params)), peer.tree_)


@pytest.mark.parametrize(
    *covering(
        criterion=["gini", "entropy", "squared_error", "absolute_error", "poisson"],
        growth=["depth_first", "best_first"],
    )
)
def test_obeys_monotone_constraints_like_scikit_learn(criterion, growth):
    params = {**GROWTH[growth], "monotonic_cst": (1, -1, 0, 0)}
    X, y, w, peer = tie_free(criterion, "real", **params)
    assert_same_tree(grow(make_problem(X, y, w, criterion), rules_for(params)), peer.tree_)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_prunes_like_scikit_learn(criterion):
    X, y, w, peer = tie_free(criterion, "real", min_samples_leaf=6)
    path = peer.cost_complexity_pruning_path(X, y, sample_weight=w)
    mine = pruning_path(peer.tree_)
    theirs = collapse(path.ccp_alphas, path.impurities)
    np.testing.assert_allclose([step[:2] for step in mine], theirs, atol=1e-12)
    for alpha, _, n_leaves in mine:
        pruned = sklearn_tree(criterion, min_samples_leaf=6, ccp_alpha=alpha + 1e-10).fit(X, y, sample_weight=w)
        assert pruned.get_n_leaves() == n_leaves


def test_midpoint_never_reaches_the_upper_value():
    low = 1.0
    high = np.nextafter(low, 2.0)
    assert midpoint(low, high) == low
    assert midpoint(-3.0, 5.0) == 1.0
    assert midpoint(-1.7e308, 1.7e308) == 0.0


@pytest.mark.parametrize(("n_categories", "n_candidates"), [(4, 2**3 - 1), (10, 2**9 - 1)])
def test_lists_every_bipartition_of_few_categories(n_categories, n_candidates):
    codes = np.arange(n_categories).repeat(3)
    y = np.resize([0, 1, 2], codes.size)
    candidates = best_split(make_problem(codes[:, None], y, categories=[0]))
    partitions = {frozenset((c.left_codes, frozenset(range(n_categories)) - c.left_codes)) for c in candidates}
    assert len(candidates) == len(partitions) == n_candidates


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson", "chi2", "misclassification"])
def test_ordered_scan_finds_the_best_subset(criterion):
    """For two classes or one output no bipartition beats those along the ordering."""
    from oracle.impurity import split_score

    rng = np.random.default_rng(3)
    codes, y = rng.integers(6, size=80), rng.integers(2, size=80)
    problem = make_problem(codes[:, None], y, rng.uniform(0.5, 2, 80), criterion, categories=[0])
    scanned = max(c.score for c in best_split(problem))
    every = [
        split_score(criterion, problem.y, problem.w, np.isin(codes, np.flatnonzero(bits)), problem.n_classes)
        for bits in np.ndindex(*[2] * 6)
        if 0 < sum(bits) < 6
    ]
    assert scanned == pytest.approx(max(every), rel=1e-12)
