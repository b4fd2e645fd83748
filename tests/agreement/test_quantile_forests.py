"""Quantiles beside those of quantile-forest, where it is installed."""

import numpy as np
import pytest
from spinney import RandomForestRegressor

quantile_forest = pytest.importorskip("quantile_forest")
LEVELS = [0.05, 0.3, 0.5, 0.77, 0.95]


def table(n, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, X[:, 0] + np.exp(X[:, 1] / 2) * random.normal(size=n)


@pytest.mark.parametrize("weighted", [True, False])
def test_quantiles_of_equal_trees_lie_at_the_same_targets(weighted):
    """Without anything random the trees are equal; ours, the inverse, lies between its lower and higher neighbour."""
    X, y = table(300, 0)
    new, _ = table(200, 1)
    ours = RandomForestRegressor(
        n_estimators=2, bootstrap=False, max_features=None, min_samples_leaf=10, keep_rows=True
    )
    peer = quantile_forest.RandomForestQuantileRegressor(
        n_estimators=2, bootstrap=False, max_features=None, min_samples_leaf=10, max_samples_leaf=None
    )
    ours.fit(X, y)
    peer.fit(X, y)
    np.testing.assert_allclose(ours.predict(new), peer.predict(new, quantiles="mean"), rtol=1e-12)
    found = ours.predict_quantiles(new, LEVELS)
    low, high = (
        peer.predict(new, quantiles=LEVELS, weighted_quantile=weighted, interpolation=side)
        for side in ("lower", "higher")
    )
    assert (low - 1e-12 <= found).all()
    assert (found <= high + 1e-12).all()
    exact = [np.quantile(y[row.indices], LEVELS, method="inverted_cdf") for row in map(ours.leaf_weights, new[:, None])]
    np.testing.assert_array_equal(found, exact)


def test_quantiles_of_random_forests_are_alike():
    X, y = table(600, 0)
    new, _ = table(300, 1)
    settings = {"n_estimators": 100, "min_samples_leaf": 5, "random_state": 0}
    ours = RandomForestRegressor(keep_rows=True, **settings).fit(X, y)
    peer = quantile_forest.RandomForestQuantileRegressor(max_samples_leaf=None, **settings).fit(X, y)
    a, b = ours.predict_quantiles(new, [0.1, 0.5, 0.9]), peer.predict(new, quantiles=[0.1, 0.5, 0.9])
    for k in range(3):
        assert np.corrcoef(a[:, k], b[:, k])[0, 1] > 0.9
        assert abs(np.mean(a[:, k] - b[:, k])) < 0.08
