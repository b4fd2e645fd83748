"""Targets far from 0, tiny or huge ones, and weights of very different size: what is learned is the same."""

import numpy as np
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st

DISTANCE_LOSSES = ["squared_error", "absolute_error", "huber", "quantile"]
seeds = st.integers(0, 2**31 - 1)


def table(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.round(8 * (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n))) / 8


def boost(loss, X, y, weight=None, **parameters):
    given = {"n_estimators": 30, "max_leaf_nodes": 8, "min_samples_leaf": 5} | parameters
    return spinney.GradientBoostingRegressor(loss, **given).fit(X, y, weight)


@pytest.mark.parametrize("c", [1e15, -1e12, 2.0**49])
@pytest.mark.parametrize("loss", DISTANCE_LOSSES)
def test_boosting_learns_as_much_of_a_target_far_from_zero(loss, c):
    X, y = table()
    near, far = boost(loss, X, y), boost(loss, X, y + c)
    assert far.train_score_[-1] == pytest.approx(near.train_score_[-1], rel=0.05)
    errors = [np.abs(near.predict(X) - y).mean(), np.abs((far.predict(X) - c) - y).mean()]
    assert errors[1] <= 1.05 * errors[0] + np.spacing(abs(c))


def test_boosting_learns_as_much_beside_an_offset_far_from_zero():
    X, y = table()
    c = 1e15 * np.sign(X[:, 2])
    near = boost("squared_error", X, y, init="zero")
    far = spinney.GradientBoostingRegressor(n_estimators=30, max_leaf_nodes=8, min_samples_leaf=5, init="zero")
    far.fit(X, y + c, offset=c)
    assert far.fingerprint() == near.fingerprint()


@settings(max_examples=40, deadline=None)
@given(seed=seeds, loss=st.sampled_from(DISTANCE_LOSSES), power=st.integers(0, 49), sign=st.sampled_from([-1, 1]))
def test_boosting_a_shifted_target_is_boosting_and_a_shift(seed, loss, power, sign):
    X, y = table(seed, n=60)
    y = np.append(y, -y)  # mean and median are whole: scores start where they do without the shift
    X = np.vstack([X, X + 0.5])
    c = sign * 2.0**power
    near, far = boost(loss, X, y, n_estimators=5), boost(loss, X, y + c, n_estimators=5)
    assert far.boosting_.start[0] == pytest.approx(near.boosting_.start[0] + c, rel=1e-15)
    if far.boosting_.start[0] - c == near.boosting_.start[0]:
        np.testing.assert_array_equal(far.train_score_, near.train_score_)
        np.testing.assert_array_equal(far.predict(X), near.predict(X) + c)
    else:
        np.testing.assert_allclose(far.predict(X) - c, near.predict(X), atol=np.ptp(y))


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds, power=st.integers(0, 49), sign=st.sampled_from([-1, 1]), weighted=st.booleans(), scale=st.integers(0, 9)
)
def test_a_tree_of_a_shifted_target_is_the_tree_and_a_shift(seed, power, sign, weighted, scale):
    X, y = table(seed, n=80)
    weight = np.random.default_rng(seed).integers(1, 10**scale + 1, size=80).astype(float) if weighted else None
    c = sign * 2.0**power
    near = spinney.DecisionTreeRegressor(max_leaf_nodes=6).fit(X, y, weight)
    far = spinney.DecisionTreeRegressor(max_leaf_nodes=6).fit(X, y + c, weight)
    close = {"rtol": 1e-6, "atol": 4 * np.spacing(abs(c))}
    np.testing.assert_allclose(far.predict(X) - c, near.predict(X), **close)


@pytest.mark.parametrize(("size", "leaves"), [(2.0**-990, None), (2.0**-460, 12), (2.0**460, 12), (2.0**990, None)])
def test_trees_and_forests_do_not_mind_the_size_of_a_target(size, leaves):
    X, y = table()
    given = {"random_state": 0, "max_leaf_nodes": leaves, "min_samples_leaf": 3}
    for kind in (spinney.DecisionTreeRegressor, spinney.RandomForestRegressor):
        more = {"n_estimators": 5, "bootstrap": False} if kind is spinney.RandomForestRegressor else {}
        plain, scaled = kind(**given, **more).fit(X, y), kind(**given, **more).fit(X, y * size)
        np.testing.assert_allclose(scaled.predict(X) / size, plain.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ratio", [1e6, 1e12, 1e15])
def test_weights_of_very_different_size_leave_the_heavy_rows_their_splits(ratio):
    X, y = table()
    heavy = np.arange(len(y)) % 2 == 0
    weight = np.where(heavy, 1.0, 1.0 / ratio)
    for kind in (spinney.DecisionTreeRegressor, spinney.RandomForestRegressor, spinney.GradientBoostingRegressor):
        model = kind(random_state=0, min_samples_leaf=5).fit(X, y, weight)
        alone = kind(random_state=0, min_samples_leaf=5).fit(X[heavy], y[heavy])
        errors = [np.mean((m.predict(X) - y)[heavy] ** 2) for m in (model, alone)]
        assert errors[0] <= 2 * errors[1] + 0.01 * np.var(y)
