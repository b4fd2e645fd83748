"""Regression tests of rare cases."""

import pickle

import numpy as np
import pytest
import spinney


def test_a_monotone_tree_keeps_the_exact_values_of_leaves_that_no_bound_touches():
    random = np.random.default_rng(0)
    X = np.column_stack([np.zeros(2000), random.normal(size=2000)])
    y = np.exp(3 * random.normal(size=2000))
    y[0] = 1e9
    plain = spinney.DecisionTreeRegressor().fit(X, y)
    constrained = spinney.DecisionTreeRegressor(monotonic_cst=[1, 0]).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), y)
    np.testing.assert_array_equal(constrained.predict(X), y)


def test_values_on_either_side_of_a_bound_do_not_cross():
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 2))
    y = 1e6 + X[:, 0] + random.normal(size=3000)
    model = spinney.DecisionTreeRegressor(monotonic_cst=[1, 0]).fit(X, y)
    grid = np.linspace(-3, 3, 500)
    for second in (-1.0, 0.0, 1.0):
        assert (np.diff(model.predict(np.column_stack([grid, np.full(500, second)]))) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_search_by_bounds_survives_targets_of_wildly_different_size(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40_000, 2))
    X[random.random(40_000) < 0.5, 0] = np.nan
    y = random.normal(size=40_000)
    y[X[:, 1] > 1.2] *= 1e8
    depth_first = spinney.DecisionTreeRegressor(min_samples_leaf=4000).fit(X, y)
    best_first = spinney.DecisionTreeRegressor(min_samples_leaf=4000, max_leaf_nodes=10**6).fit(X, y)
    np.testing.assert_array_equal(depth_first.tree_.threshold, best_first.tree_.threshold)


def test_outliers_that_drown_all_else_are_named():
    X = np.arange(2000.0)[:, np.newaxis]
    y = np.sin(X[:, 0])
    y[7] = 1e17
    with pytest.warns(UserWarning, match=r"reaches from .* to 1e\+17.*log\(y\)"):
        spinney.DecisionTreeRegressor(max_depth=3).fit(X, y)
    spinney.DecisionTreeRegressor(max_depth=3, criterion="absolute_error").fit(X, y)  # counts ranks: no warning
    y[7] = 1e9
    spinney.DecisionTreeRegressor(max_depth=3).fit(X, y)


def test_weights_times_targets_that_overflow_are_refused():
    X = np.arange(20.0)[:, np.newaxis]
    with pytest.raises(ValueError, match="too large for a floating-point number"):
        spinney.DecisionTreeRegressor().fit(X, X[:, 0] * 1e250, sample_weight=np.full(20, 1e100))


def test_a_tree_whose_impurity_overflows_can_be_kept():
    X = np.arange(50.0)[:, np.newaxis]
    model = spinney.DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0] * 1e160)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_held_out_labels_of_another_type_are_refused():
    X = np.arange(20.0)[:, np.newaxis]
    y = (X[:, 0] > 9).astype(int)
    with pytest.raises(ValueError, match="None of the labels in y_val occurs in y"):
        spinney.DecisionTreeClassifier().fit(X, y, X_val=X[:4], y_val=["0", "1", "0", "1"])


def test_pruning_a_tree_that_is_one_long_chain_is_quick():
    n = 3000
    X, y = np.arange(float(n))[:, np.newaxis], np.arange(n) % 2
    path = spinney.DecisionTreeClassifier().cost_complexity_pruning_path(X, y, 1.001 ** -np.arange(n))
    assert path.ccp_alphas[0] == 0
    assert (np.diff(path.ccp_alphas) >= -1e-15).all()
    assert path.impurities[0] == pytest.approx(0, abs=1e-12)


def test_many_categories_are_split_by_their_means():
    random = np.random.default_rng(2)
    codes = np.arange(60_000) % 30_000
    effect = random.normal(size=30_000)
    model = spinney.DecisionTreeRegressor(max_depth=1, categorical_features=[0], min_samples_category=1)
    model.fit(codes[:, np.newaxis], effect[codes])
    left = np.zeros(30_000, dtype=bool)
    left[model.tree_.left_categories(0)] = True
    assert effect[left].max() < effect[~left].min()
