"""Node for node the tree that scikit-learn grows, wherever both offer the same options.

The tables have no ties and hold numbers that float32 represents, to which scikit-learn casts and spinney
does not.
"""

import numpy as np
import pytest
from oracle.data import continuous_table, sklearn_tree, tie_free
from oracle.models import spinney_tree
from oracle.pruning import collapse
from sweep import covering

SHARED = ["gini", "entropy", "log_loss", "squared_error", "absolute_error", "poisson", "friedman_mse"]
WITH_MISSING = [c for c in SHARED if c != "absolute_error"]  # scikit-learn has no missing values there
SOME = ["gini", "entropy", "squared_error", "absolute_error", "poisson"]
GROWTH = {
    "depth_first": {"max_depth": 4, "min_samples_leaf": 8},
    "best_first": {"max_leaf_nodes": 12, "min_samples_leaf": 5},
    "weight_rule": {"min_weight_fraction_leaf": 0.08, "min_samples_split": 60},
    "decrease_rule": {"min_impurity_decrease": 0.005, "min_samples_leaf": 5, "max_leaf_nodes": 20},
    "shares": {"min_samples_leaf": 0.06, "min_samples_split": 0.25},
}
N_ROWS = 260
WEIGHTS_AND_GROWTH = {"weights": ["none", "real"], "growth": ["depth_first", "best_first"]}


def preorder(tree, node=0):
    """scikit-learn numbers best-first trees by creation; spinney numbers every tree in preorder."""
    if tree.children_left[node] == -1:
        return [node]
    return [node, *preorder(tree, tree.children_left[node]), *preorder(tree, tree.children_right[node])]


def assert_agrees(mine, peer, X):
    tree, order = peer.tree_, preorder(peer.tree_)
    assert mine.tree_.node_count == tree.node_count
    for name in ("feature", "threshold", "n_node_samples"):
        np.testing.assert_array_equal(getattr(mine.tree_, name), getattr(tree, name)[order], err_msg=name)
    scale = max(1.0, float(np.abs(tree.value).max()))
    for name in ("impurity", "weighted_n_node_samples", "value"):
        expected = getattr(tree, name)[order]
        np.testing.assert_allclose(getattr(mine.tree_, name), expected, rtol=1e-12, atol=1e-12 * scale**2, err_msg=name)
    assert mine.get_depth() == peer.get_depth()
    assert mine.get_n_leaves() == peer.get_n_leaves()
    np.testing.assert_allclose(mine.feature_importances_, peer.feature_importances_, atol=1e-12)
    assert_predicts_alike(mine, peer, X, order)


def assert_predicts_alike(mine, peer, X, order):
    np.testing.assert_array_equal(np.asarray(order)[mine.apply(X)], peer.apply(X))
    np.testing.assert_array_equal(mine.decision_path(X).toarray(), peer.decision_path(X).toarray()[:, order])
    np.testing.assert_allclose(mine.predict(X), peer.predict(X), rtol=1e-12, atol=1e-12)
    if hasattr(peer, "predict_proba"):
        np.testing.assert_allclose(mine.predict_proba(X), peer.predict_proba(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(*covering(criterion=SHARED, weights=["none", "integer", "real"], growth=list(GROWTH)))
def test_same_tree(criterion, weights, growth):
    X, y, w, peer = tie_free(criterion, weights, n_classes=2, n=N_ROWS, **GROWTH[growth])
    mine = spinney_tree(criterion, **GROWTH[growth]).fit(X, y, sample_weight=w)
    assert mine.tree_.node_count > 5
    assert_agrees(mine, peer, X)
    probe = continuous_table(seed=99, n=200)
    np.testing.assert_array_equal(mine.predict(probe).shape, (200,))
    np.testing.assert_allclose(mine.predict(probe), peer.predict(probe), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(*covering(criterion=["gini", "entropy"], **WEIGHTS_AND_GROWTH))
def test_same_tree_for_several_classes(criterion, weights, growth):
    X, y, w, peer = tie_free(criterion, weights, n_classes=4, n=N_ROWS, **GROWTH[growth])
    assert_agrees(spinney_tree(criterion, **GROWTH[growth]).fit(X, y, sample_weight=w), peer, X)


@pytest.mark.parametrize(*covering(criterion=WITH_MISSING, **WEIGHTS_AND_GROWTH))
def test_same_tree_with_missing_values(criterion, weights, growth):
    X, y, w, peer = tie_free(criterion, weights, missing=True, n=N_ROWS, **GROWTH[growth])
    mine = spinney_tree(criterion, **GROWTH[growth]).fit(X, y, sample_weight=w)
    assert_agrees(mine, peer, X)
    assert_same_missing_side(mine, peer, X, w)


def assert_same_missing_side(mine, peer, X, w):
    """Only where rows were missing: elsewhere scikit-learn counts rows and spinney sums weights."""
    order, path = preorder(peer.tree_), peer.decision_path(X).toarray().astype(bool)
    if w is not None:
        path &= (w > 0)[:, None]
    n_checked = 0
    for node, theirs in enumerate(order):
        column = peer.tree_.feature[theirs]
        if column >= 0 and np.isnan(X[path[:, theirs], column]).any():
            assert mine.tree_.missing_go_to_left[node] == peer.tree_.missing_go_to_left[theirs]
            n_checked += 1
    assert n_checked > 0


@pytest.mark.parametrize(
    *covering(criterion=["gini", "entropy", "squared_error", "absolute_error", "poisson"], **WEIGHTS_AND_GROWTH)
)
def test_same_tree_for_several_outputs(criterion, weights, growth):
    X, y, w, peer = tie_free(criterion, weights, n_classes=3, n_outputs=2, n=N_ROWS, **GROWTH[growth])
    assert_agrees(spinney_tree(criterion, **GROWTH[growth]).fit(X, y, sample_weight=w), peer, X)


@pytest.mark.parametrize(*covering(criterion=SHARED, **WEIGHTS_AND_GROWTH))
def test_same_monotone_tree(criterion, weights, growth):
    params = {**GROWTH[growth], "monotonic_cst": (1, -1, 0, 1)}
    X, y, w, peer = tie_free(criterion, weights, n=N_ROWS, **params)
    assert_agrees(spinney_tree(criterion, **params).fit(X, y, sample_weight=w), peer, X)


@pytest.mark.parametrize("criterion", SOME)
def test_same_pruning(criterion):
    X, y, w, peer = tie_free(criterion, "real", n=N_ROWS, min_samples_leaf=9)
    mine = spinney_tree(criterion, min_samples_leaf=9)
    my_path = mine.cost_complexity_pruning_path(X, y, sample_weight=w)
    path = peer.cost_complexity_pruning_path(X, y, sample_weight=w)
    theirs = collapse(path.ccp_alphas, path.impurities)
    np.testing.assert_allclose(collapse(my_path.ccp_alphas, my_path.impurities), theirs, atol=1e-12)
    for alpha, _ in theirs[:: max(1, len(theirs) // 5)]:
        params = {"min_samples_leaf": 9, "ccp_alpha": alpha + 1e-10}
        pruned = sklearn_tree(criterion, **params).fit(X, y, sample_weight=w)
        assert_agrees(spinney_tree(criterion, **params).fit(X, y, sample_weight=w), pruned, X)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 5.0}])
@pytest.mark.parametrize("weights", ["none", "integer"])
def test_same_class_weights(class_weight, weights):
    X, y, w, _ = tie_free("gini", "real", n=N_ROWS, min_samples_leaf=8, max_depth=3)
    w = None if weights == "none" else np.round(w * 2)
    params = {"class_weight": class_weight, "min_samples_leaf": 8, "max_depth": 3}
    peer = sklearn_tree("gini", **params).fit(X, y, sample_weight=w)
    assert_agrees(spinney_tree("gini", **params).fit(X, y, sample_weight=w), peer, X)


def test_same_tree_on_a_real_table():
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    params = {"max_leaf_nodes": 12, "min_samples_leaf": 10}
    peer = sklearn_tree("squared_error", **params).fit(X, y)
    assert_agrees(spinney_tree("squared_error", **params).fit(X, y), peer, X)
