"""Rows drawn by their gradients, trees that belong together, prices of columns."""

import numpy as np
import pytest
import spinney
from oracle.saved import through_bytes

RNG = np.random.default_rng(6)
X = RNG.normal(size=(400, 4))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * RNG.normal(size=400)
THREE = np.digitize(Y, [0, 1.5])
SMALL = {"n_estimators": 12, "max_leaf_nodes": 6, "random_state": 0}


def values(**parameters):
    return spinney.GradientBoostingRegressor(**(SMALL | parameters))


@pytest.mark.parametrize(
    "parameters",
    [
        {"sampling": "gradient", "subsample": 0.3},
        {"growth": {"n_parallel_trees": 3}, "subsample": 0.6},
        {"growth": "symmetric"},
        {"feature_costs": [3.0, 1.0, 1.0, 1.0]},
        {"sampling": "gradient", "growth": "symmetric"},
    ],
    ids=str,
)
@pytest.mark.parametrize("y", [Y, THREE], ids=["values", "classes"])
def test_identical_models_for_any_threads_and_everything_reads_it(parameters, y):
    kind = spinney.GradientBoostingRegressor if y is Y else spinney.GradientBoostingClassifier
    models = [kind(**(SMALL | parameters), n_jobs=n).fit(X, y) for n in (1, 3)]
    assert models[0].fingerprint() == models[1].fingerprint()
    assert models[0].fingerprint() != kind(**SMALL).fit(X, y).fingerprint()
    model = models[0]
    back = through_bytes(model)
    assert np.array_equal(back.predict(X), model.predict(X))
    assert model.to_predictor().predict(X[3]) == model.predict(X[3:4])[0]
    shap = model.shap_values(X[:5])
    scores = model.predict(X[:5]) if y is Y else model.decision_function(X[:5])
    np.testing.assert_allclose(np.asarray(shap.values).sum(axis=1) + shap.base_values, scores)
    longer = kind(**(SMALL | parameters | {"warm_start": True, "n_estimators": 6})).fit(X, y)
    assert longer.set_params(n_estimators=12).fit(X, y).fingerprint() == model.fingerprint()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [spinney.GradientBoostingRegressor, spinney.GradientBoostingClassifier])
def test_few_columns_added_up_alone_show_the_splits_of_whole_histograms(kind, weighted):
    """One thread adds up the columns of a node alone; three share the histograms of so many rows."""
    n = 4000
    numbers = np.round(RNG.normal(size=(n, 30)), 1)
    numbers[RNG.random(numbers.shape) < 0.05] = np.nan
    flags = np.eye(9)[RNG.integers(9, size=n)][:, :8]  # share a lane
    many = RNG.integers(400, size=(n, 1))
    wide = np.column_stack((numbers, flags, many, RNG.integers(3, size=(n, 4))))
    y = np.nan_to_num(numbers[:, 0]) + 2 * flags[:, 1] + many[:, 0] % 7 / 3 + RNG.normal(size=n)
    y = y if kind is spinney.GradientBoostingRegressor else (y > y.mean() + 2).astype(int)
    weight = RNG.integers(1, 4, size=n).astype(float) if weighted else None
    options = SMALL | {"max_leaf_nodes": 20, "max_features": 0.2, "min_samples_leaf": 40, "categorical_features": [38]}
    models = [kind(**options, n_jobs=k).fit(wide, y, sample_weight=weight) for k in (1, 3)]
    assert models[0].fingerprint() == models[1].fingerprint()


def test_rows_with_large_gradients_are_drawn_and_stand_for_others():
    """A few rows lie far off: they are drawn for certain, and the mean step is as good as that of all rows."""
    y = np.where(np.arange(400) < 20, 50.0, 0.0)
    tiny = {"n_estimators": 1, "learning_rate": 1.0, "max_leaf_nodes": 2, "min_samples_leaf": 1}
    Z = (np.arange(400) < 20)[:, None].astype(float)
    weights = []
    for seed in range(20):
        model = values(**tiny, sampling="gradient", subsample=0.2, random_state=seed).fit(Z, y)
        tree = model.estimators_[0, 0].tree_
        assert tree.n_node_samples[2] == 20
        assert abs(tree.n_node_samples[0] - 80) < 30
        np.testing.assert_allclose(model.predict([[1.0], [0.0]]), [50.0, 0.0], atol=1e-6)
        weights.append(tree.weighted_n_node_samples[0])
    assert np.mean(weights) == pytest.approx(400, rel=0.05)


def test_gradient_sampling_has_no_out_of_bag_score():
    assert not hasattr(values(sampling="gradient", subsample=0.5).fit(X, Y), "oob_scores_")
    assert hasattr(values(subsample=0.5).fit(X, Y), "oob_improvement_")


def test_as_many_rows_are_drawn_as_asked_for():
    found = []
    for seed in range(40):
        model = values(n_estimators=1, subsample=0.3, sampling="gradient", random_state=seed, max_leaf_nodes=2)
        tree = model.fit(X, Y).estimators_[0, 0].tree_
        found.append((tree.n_node_samples[0], tree.weighted_n_node_samples[0]))
    n, weight = np.mean(found, axis=0)
    assert n == pytest.approx(120, rel=0.05)
    assert weight == pytest.approx(400, rel=0.05)


def test_trees_that_belong_together_see_the_same_scores():
    """Without draws they are the same tree, and count for their mean: one tree."""
    alone = values(n_estimators=4).fit(X, Y)
    together = values(n_estimators=12, growth={"n_parallel_trees": 3}).fit(X, Y)
    np.testing.assert_allclose(together.predict(X), alone.predict(X), atol=0.02)
    features = [tree.feature.tolist() for tree in together.boosting_.trees()]
    assert features[0] == features[1] == features[2] != features[3]
    np.testing.assert_allclose(together.train_score_[2::3], alone.train_score_, rtol=0.02)
    for loss in ("absolute_error", lambda y, f: (y - f) ** 2 / 2):
        found = values(loss=loss, n_estimators=6, growth={"n_parallel_trees": 3}).fit(X, Y)
        np.testing.assert_allclose(found.predict(X), values(loss=loss, n_estimators=2).fit(X, Y).predict(X), atol=0.1)


def test_a_dear_column_is_split_on_less():
    shares = [
        int((values(feature_costs={"x0": price}, growth=growth).fit(X, Y).boosting_.engine.feature == 0).sum())
        for growth in ("leaf", "symmetric")
        for price in (1.0, 3.0, 1e9)
    ]
    assert shares[0] > shares[1] > shares[2] == 0
    assert shares[3] > shares[5] == 0
    assert values(feature_costs=[2.0] * 4).fit(X, Y).fingerprint() == values().fit(X, Y).fingerprint()


def test_sparse_and_dense_tables_give_the_same_symmetric_trees():
    from scipy.sparse import csc_matrix

    Z = np.where(RNG.random((400, 6)) < 0.1, RNG.normal(size=(400, 6)), 0.0)
    y = Z.sum(axis=1) + 0.1 * RNG.normal(size=400)
    prints = {values(growth="symmetric").fit(table, y).fingerprint() for table in (Z, csc_matrix(Z))}
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sampling": "gradient", "loss": "quantile"}, "not informative for loss='quantile'"),
        ({"sampling": "gradient", "growth": {"n_parallel_trees": 2}}, "n_parallel_trees needs rows drawn uniformly"),
        ({"sampling": "random"}, "sampling"),
        ({"growth": {"n_parallel_trees": 0}}, "n_parallel_trees"),
        ({"feature_costs": [1.0, -1.0, 1.0, 1.0]}, "feature_costs must be positive"),
        ({"growth": "symmetric", "monotonic_cst": [1, 0, 0, 0]}, "constraints may forbid it"),
    ],
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        values(**parameters).fit(X, Y)
