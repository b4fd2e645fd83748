"""Counts of events with exposures, and leaf rates drawn to the overall rate."""

import io
import pickle

import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.check import check_tree
from oracle.data import continuous_table, weights_for
from oracle.models import assert_identical, assert_same_partition
from spinney import DecisionTreeRegressor
from sweep import examples


def claims(seed=0, n=120, **params):
    """Rare events, so that many groups of rows have none."""
    X = continuous_table(seed, n=n, **params)
    rng = np.random.default_rng(seed + 5)
    years = rng.uniform(0.1, 3.0, size=n)
    return X, rng.poisson(years * np.exp(np.nan_to_num(X[:, 0]) - 1.5)).astype(float), years


def poisson_tree(**params):
    return DecisionTreeRegressor(criterion="poisson", **params)


def half_deviance(events, time, rate, w):
    """From the definition, term by term."""
    total = 0.0
    for c, t, weight in zip(events, time, w, strict=True):
        total += weight * ((c * np.log(c / (rate * t)) if c > 0 else 0.0) - (c - rate * t))
    return total


# ---- by hand -----------------------------------------------------------------------------------------------


def test_leaves_say_events_per_exposure():
    """Left: 3 claims in 6 years; right: 8 claims in 4 years."""
    X = [[0.0], [0.0], [1.0], [1.0]]
    model = poisson_tree().fit(X, [1, 2, 3, 5], exposure=[4, 2, 1, 3])
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [0.5, 2.0], rtol=1e-14)
    np.testing.assert_allclose(model.tree_.weighted_n_node_samples, [10, 6, 4], rtol=1e-14)
    for node, rows, rate in ((0, slice(0, 4), 1.1), (1, slice(0, 2), 0.5), (2, slice(2, 4), 2.0)):
        events, time = np.array([1, 2, 3, 5])[rows], np.array([4, 2, 1, 3])[rows]
        expected = half_deviance(events, time, rate, np.ones(4)[rows]) / time.sum()
        np.testing.assert_allclose(model.tree_.impurity[node], expected, rtol=1e-12)


def test_shrunken_rates_are_events_plus_a_over_exposure_plus_b():
    """k = 1/2: a = 4, root rate 1.1: b = 4 / 1.1."""
    X, events, time = [[0.0], [0.0], [1.0], [1.0]], np.array([1, 2, 3, 5]), np.array([4, 2, 1, 3])
    model = poisson_tree(rate_shrinkage=0.5).fit(X, events, exposure=time)
    b = 4 / 1.1
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [(3 + 4) / (6 + b), (8 + 4) / (4 + b)], rtol=1e-14)
    np.testing.assert_allclose(model.tree_.flat_value[0, 0], 1.1, rtol=1e-14)  # the root stays
    for node, rows in ((0, slice(0, 4)), (1, slice(0, 2)), (2, slice(2, 4))):
        rate = model.tree_.flat_value[node, 0]
        expected = half_deviance(events[rows], time[rows], rate, np.ones(4)[rows]) / time[rows].sum()
        np.testing.assert_allclose(model.tree_.impurity[node], expected, rtol=1e-12)


def test_a_side_without_events_is_allowed_and_never_predicted_impossible():
    X, events = np.arange(6.0)[:, np.newaxis], [0, 0, 0, 2, 1, 2]
    plain = poisson_tree(max_depth=1).fit(X, events)
    assert plain.tree_.threshold[0] != 2.5  # scikit-learn's rule
    model = poisson_tree(max_depth=1).fit(X, events, exposure=np.ones(6))
    assert model.tree_.threshold[0] == 2.5
    assert model.predict([[0.0]]) == [0.0]
    shrunken = poisson_tree(max_depth=1, rate_shrinkage=1).fit(X, events)
    assert shrunken.tree_.threshold[0] == 2.5
    np.testing.assert_allclose(shrunken.predict([[0.0]]), [1 / (3 + 6 / 5)], rtol=1e-14)
    np.testing.assert_allclose(shrunken.tree_.impurity[1], 1 / (3 + 6 / 5), rtol=1e-13)  # no events: the rate itself


# ---- against the reference implementation -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "growth"),
    [
        pytest.param("none", {"min_samples_leaf": 3}, id="none-depth_first"),
        pytest.param("real", {"max_leaf_nodes": 9}, id="real-best_first"),
        pytest.param("real", {"min_samples_leaf": 3}, id="real-depth_first", marks=pytest.mark.slow),
        pytest.param("none", {"max_leaf_nodes": 9}, id="none-best_first", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("categories", [{}, {1: 6}], ids=["numbers", "categories"])
def test_every_node_is_the_oracles(categories, weights, growth):
    X, events, years = claims(missing=True, categories=categories)
    w = weights_for(0, len(events), weights)
    model = poisson_tree(categorical_features=list(categories), **growth)
    model.fit(X, events, sample_weight=w, exposure=years)
    weight = years if w is None else w * years
    check_tree(model, X, events / years, weight, categories=list(categories), criterion="rate")
    assert (model.tree_.flat_value == 0).any()


def test_several_outputs_share_the_exposure():
    X, events, years = claims()
    both = np.column_stack([events, events[::-1]])
    model = poisson_tree(min_samples_leaf=3).fit(X, both, exposure=years)
    check_tree(model, X, both / years[:, np.newaxis], years, criterion="rate")
    assert model.predict(X).shape == both.shape


# ---- equal in other words ----------------------------------------------------------------------------------


def test_twice_the_exposure_is_half_the_rate():
    X, events, years = claims()
    once = poisson_tree().fit(X, events, exposure=years)
    twice = poisson_tree().fit(X, events, exposure=2 * years)
    np.testing.assert_array_equal(once.tree_.threshold, twice.tree_.threshold)
    np.testing.assert_array_equal(once.predict(X), 2 * twice.predict(X))


def test_a_weight_of_two_is_twice_the_exposure_and_the_events():
    X, events, years = claims()
    weighted = poisson_tree(min_samples_leaf=2).fit(X, events, sample_weight=np.full(len(X), 2.0), exposure=years)
    longer = poisson_tree(min_samples_leaf=2).fit(X, 2 * events, exposure=2 * years)
    assert_same_partition(weighted, longer)


@examples(6)
@given(seed=st.integers(0, 1000))
def test_a_long_row_is_many_short_ones(seed):
    """Rows of whole exposure t and count c split as t rows of exposure 1 that share the events."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    time = rng.integers(1, 5, size=40)
    each = rng.poisson(np.exp(X[:, 0] - 1), size=40)  # events of each unit of time
    params = {"max_depth": 3, "rate_shrinkage": 0.8}
    whole = poisson_tree(**params).fit(X, each * time, exposure=time.astype(float))
    parts = poisson_tree(**params).fit(np.repeat(X, time, axis=0), np.repeat(each, time))
    np.testing.assert_array_equal(whole.tree_.feature, parts.tree_.feature)
    np.testing.assert_array_equal(whole.tree_.threshold, parts.tree_.threshold)
    np.testing.assert_allclose(whole.predict(X), parts.predict(X), rtol=1e-12)
    np.testing.assert_allclose(whole.tree_.impurity, parts.tree_.impurity, rtol=1e-9, atol=1e-12)


def test_an_exposure_of_one_is_none_where_every_side_has_events():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    events = rng.poisson(3, size=200) + 1
    assert_identical(poisson_tree().fit(X, events), poisson_tree().fit(X, events, exposure=np.ones(200)))


def test_faint_shrinkage_is_none():
    X, events, years = claims()
    free = poisson_tree(min_samples_leaf=5).fit(X, events, exposure=years)
    faint = poisson_tree(min_samples_leaf=5, rate_shrinkage=1e9).fit(X, events, exposure=years)
    np.testing.assert_allclose(free.predict(X), faint.predict(X), atol=1e-12)
    strong = poisson_tree(min_samples_leaf=5, rate_shrinkage=1e-6).fit(X, events, exposure=years)
    np.testing.assert_allclose(strong.predict(X), events.sum() / years.sum(), rtol=1e-6)


# ---- held-out rows -----------------------------------------------------------------------------------------


def test_the_loss_of_training_rows_adds_up_to_the_risk():
    X, events, years = claims()
    for k in (0.0, 0.7):
        model = poisson_tree(max_depth=3, min_samples_leaf=10, rate_shrinkage=k).fit(X, events, exposure=years)
        rates = (events / years)[:, np.newaxis]
        loss = model._task.loss(rates, None)
        total = years @ loss(model.apply(X), model.tree_, np.arange(len(X))) / years.sum()
        risk = model._node_risks(model.tree_)[model.tree_.is_leaf].sum()
        np.testing.assert_allclose(total, risk, rtol=1e-12)


def test_a_fraction_of_the_rows_is_held_out_with_its_exposure():
    X, events, years = claims(n=600)
    model = poisson_tree(validation_fraction=0.3, random_state=0).fit(X, events, exposure=years)
    assert 1 < model.get_n_leaves() < poisson_tree().fit(X, events, exposure=years).get_n_leaves()
    other = poisson_tree(validation_fraction=0.3, random_state=0).fit(X, events, exposure=4 * years)
    np.testing.assert_array_equal(model.predict(X), 4 * other.predict(X))


# ---- the rest ----------------------------------------------------------------------------------------------


def test_bit_identical_on_any_number_of_threads():
    X, events, years = claims(n=3000, missing=True)
    one, *others = (poisson_tree(n_jobs=n, rate_shrinkage=1.0).fit(X, events, exposure=years) for n in (1, 2, 7))
    for other in others:
        assert_identical(one, other)


def test_files_pickles_and_handles_predict_the_same():
    X, events, years = claims()
    model = poisson_tree(rate_shrinkage=1.0).fit(X, events, exposure=years)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    for other in (spinney.load(file), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    handle = model.to_predictor()
    assert [handle.predict(row) for row in X] == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("exposure", "words"),
    [
        ([1.0, 0.0, 1.0, 1.0], "positive: row 1 has 0"),
        ([1.0, 1.0, -2.0, 1.0], "positive: row 2 has -2"),
        ([1.0, np.nan, 1.0, 1.0], "positive: row 1 has nan"),
        ([1.0, 1.0], r"shape \(2,\), but X has 4 rows"),
        (3.0, r"shape \(\)"),
    ],
)
def test_an_unusable_exposure_is_refused_in_words(exposure, words):
    with pytest.raises(ValueError, match=words):
        poisson_tree().fit(np.arange(4.0)[:, np.newaxis], [0, 1, 2, 3], exposure=exposure)


def test_what_does_not_go_with_exposure_is_refused_in_words():
    X, events, years = claims()
    with pytest.raises(ValueError, match="exposure requires criterion='poisson', not 'squared_error'"):
        DecisionTreeRegressor().fit(X, events, exposure=years)
    with pytest.raises(ValueError, match="is for counts"):
        spinney.DecisionTreeClassifier().fit(X, events, exposure=years)
    with pytest.raises(ValueError, match="rate_shrinkage requires criterion='poisson'"):
        DecisionTreeRegressor(rate_shrinkage=1.0).fit(X, events)
    with pytest.raises(ValueError, match="Use validation_fraction"):
        poisson_tree().fit(X, events, exposure=years, X_val=X, y_val=events)
