"""Feature weights: columns that are sampled more often, never, or considered at every split."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from oracle.saved import bytes_of, through_bytes
from scipy.stats import chisquare
from spinney import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    fragility,
)

FORESTS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor]
WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0, 0.0])


def noise(n=40, n_columns=5, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, n_columns)), random.integers(0, 2, size=n)


def roots(forest):
    return forest.forest_.engine.feature[forest.forest_.root[:-1]]


def stumps(kind, n=1500, **parameters):
    return kind(n_estimators=n, max_depth=1, random_state=0, **parameters)


def sequential_shares(weights, n_drawn):
    """Return the probability that each column is among n_drawn, sampled by weight without replacement."""
    if n_drawn == 0:
        return np.zeros(len(weights))
    shares = np.zeros(len(weights))
    for j in np.flatnonzero(weights):
        rest = weights.copy()
        rest[j] = 0
        one_more = sequential_shares(rest, n_drawn - 1)
        one_more[j] = 1
        shares += weights[j] / weights.sum() * one_more
    return shares


# ---- weights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORESTS)
def test_a_single_column_is_sampled_in_proportion_to_its_weight(kind):
    X, y = noise()
    found = np.bincount(roots(stumps(kind, max_features=1, feature_weights=WEIGHTS).fit(X, y)), minlength=5)
    assert found[4] == 0
    assert chisquare(found[:4], WEIGHTS[:4] / 10 * 1500).pvalue > 0.001


def test_columns_are_sampled_equally_without_weights():
    X, y = noise()
    found = np.bincount(roots(stumps(RandomForestClassifier, max_features=1).fit(X, y)), minlength=5)
    assert chisquare(found).pvalue > 0.001
    assert chisquare(found[:4], WEIGHTS[:4] / 10 * found[:4].sum()).pvalue < 1e-9


@pytest.mark.parametrize("kind", FORESTS)
def test_several_columns_are_sampled_without_replacement(kind):
    X, y = noise()
    X[:, 1] = y  # taken wherever it is tried
    found = np.mean(roots(stumps(kind, max_features=2, feature_weights=WEIGHTS).fit(X, y)) == 1)
    expected = sequential_shares(WEIGHTS, 2)[1]
    assert abs(found - expected) < 3.5 * np.sqrt(expected * (1 - expected) / 1500)


def test_the_columns_of_a_tree_are_sampled_by_weight():
    X, y = noise()
    forest = stumps(RandomForestClassifier, max_features=None, max_features_per_tree=1, feature_weights=WEIGHTS)
    found = np.bincount(roots(forest.fit(X, y)), minlength=5)
    assert found[4] == 0
    assert chisquare(found[:4], WEIGHTS[:4] / 10 * 1500).pvalue > 0.001


@pytest.mark.parametrize("kind", [*FORESTS, DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("parameters", [{"max_features": 2}, {"max_features": None}, {"max_leaf_nodes": 6}])
def test_columns_of_weight_zero_are_never_used(kind, parameters):
    X, y = noise(80)
    X[:, 4] = y
    size = {"n_estimators": 10} if kind in FORESTS else {}
    model = kind(random_state=1, feature_weights=[1, 1, 1, 1, 0], **(parameters | size)).fit(X, y)
    assert model.feature_importances_[4] == 0
    alike = kind(random_state=1, **(parameters | size)).fit(X, y)
    assert alike.feature_importances_[4] > 0
    if parameters == {"max_features": None} and "ExtraTrees" not in kind.__name__:  # as if the column were not there
        without = kind(random_state=1, **(parameters | size)).fit(X[:, :4], y)
        if kind not in FORESTS:  # samples of rows depend on all values
            assert np.array_equal(model.predict(X), without.predict(X[:, :4]))


def test_equal_weights_have_no_effect():
    X, y = noise(100)
    plain = RandomForestClassifier(n_estimators=8, max_features=2, random_state=5).fit(X, y)
    equal = RandomForestClassifier(n_estimators=8, max_features=2, random_state=5, feature_weights=[7] * 5).fit(X, y)
    for name in ("feature", "threshold", "right", "value"):
        assert np.array_equal(getattr(plain.forest_.engine, name), getattr(equal.forest_.engine, name))


def test_weights_are_relative_and_matched_by_name():
    X, y = noise(100)
    frame = pd.DataFrame(X, columns=list("abcde"))
    by_name = {"a": 2.0, "c": 6.0, "e": 0}
    forests = [
        RandomForestClassifier(n_estimators=8, max_features=2, random_state=5, n_jobs=n_jobs, feature_weights=w).fit(
            t, y
        )
        for w, t, n_jobs in (
            ([2.0, 1.0, 6.0, 1.0, 0], X, 1),
            ([4.0, 2.0, 12.0, 2.0, 0], X, 2),
            (by_name, frame, 7),
            (by_name, pl.from_pandas(frame), 2),
            (pd.Series([0.0, 6.0, 2.0, 1.0, 1.0], index=list("ecabd")), frame, 1),
        )
    ]
    for other in forests[1:]:
        assert np.array_equal(forests[0].forest_.engine.feature, other.forest_.engine.feature)
        assert np.array_equal(forests[0].forest_.engine.threshold, other.forest_.engine.threshold)


# ---- columns that are always tried ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORESTS)
def test_an_informative_column_that_is_always_considered_is_every_root(kind):
    X, y = noise()
    X[:, 3] = y
    assert (roots(stumps(kind, 50, max_features=1, always_try=[3]).fit(X, y)) == 3).all()
    assert not (roots(stumps(kind, 50, max_features=1).fit(X, y)) == 3).all()


def test_always_considered_columns_are_added_to_the_sample():
    X, y = noise()
    X[:, 3] = y  # wins where it is drawn: from four others, two are
    found = np.mean(roots(stumps(RandomForestClassifier, max_features=2, always_try=[0]).fit(X, y)) == 3)
    assert abs(found - 0.5) < 3.5 * np.sqrt(0.25 / 1500)


def test_sampled_and_always_considered_columns_can_be_all_columns():
    X, y = noise(100)
    plain = RandomForestClassifier(n_estimators=5, max_features=None, random_state=5).fit(X, y)
    other = RandomForestClassifier(n_estimators=5, max_features=3, always_try=[1, 4], random_state=5).fit(X, y)
    assert np.array_equal(plain.forest_.engine.feature, other.forest_.engine.feature)


def test_always_considered_columns_belong_to_every_tree():
    X, y = noise(60)
    forest = RandomForestClassifier(
        n_estimators=200, max_features=None, max_features_per_tree=1, always_try=[2], random_state=0
    ).fit(X, y)
    engine = forest.forest_.engine
    for t in range(forest.forest_.n_trees):
        used = set(engine.feature[engine.root[t] : engine.root[t + 1]].tolist()) - {-1}
        assert len(used - {2}) <= 1
    assert set(engine.feature.tolist()) == {-1, 0, 1, 2, 3, 4}


def test_names_positions_and_masks_are_equivalent():
    X, y = noise(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    given = [["b", "e"], [4, 1], np.array([False, True, False, False, True]), ("e", "b", "b")]
    features = [
        RandomForestClassifier(n_estimators=4, max_features=1, always_try=names, random_state=0)
        .fit(frame, y)
        .forest_.engine.feature
        for names in given
    ]
    for other in features[1:]:
        assert np.array_equal(features[0], other)
    one = RandomForestClassifier(n_estimators=4, max_features=1, always_try="b", random_state=0).fit(frame, y)
    assert not np.array_equal(features[0], one.forest_.engine.feature)


# ---- refusals, files, neighbours --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"feature_weights": {"nome": 1}}, "feature_weights names a column that the table does not have: 'nome'"),
        ({"feature_weights": [1, 2]}, "feature_weights has shape \\(2,\\)"),
        ({"feature_weights": [1, 2, 3, -4, 5]}, "numbers from 0 up. Column 'd' has -4"),
        ({"feature_weights": [1, 2, np.nan, 4, 5]}, "numbers from 0 up. Column 'c' has nan"),
        ({"feature_weights": [0] * 5}, "feature_weights are all 0"),
        ({"always_try": ["a", "z"]}, "always_try names a column that the table does not have: 'z'"),
        ({"always_try": [5]}, "always_try must name columns or give positions from 0 to 4. Got 5"),
        ({"always_try": [True, False]}, "always_try has 2 entries of True and False"),
        (
            {"always_try": ["a"], "feature_weights": {"a": 0}},
            "always_try names column 'a', but feature_weights gives it 0",
        ),
    ],
)
@pytest.mark.parametrize("kind", [RandomForestClassifier, DecisionTreeRegressor])
def test_errors(kind, parameters, message):
    X, y = noise()
    with pytest.raises(ValueError, match=message):
        kind(max_features=2, **parameters).fit(pd.DataFrame(X, columns=list("abcde")), y)


def test_weights_without_sampling_raise_a_warning():
    X, y = noise()
    with pytest.warns(UserWarning, match="max_features=1.0 tries all columns"):
        RandomForestRegressor(n_estimators=2, feature_weights=[1, 2, 3, 4, 5]).fit(X, y)
    with pytest.warns(UserWarning, match="max_features=3 tries all columns"):
        RandomForestRegressor(n_estimators=2, max_features=3, feature_weights=[0, 2, 3, 4, 5], always_try=[2]).fit(X, y)
    RandomForestRegressor(n_estimators=2, feature_weights=[1, 1, 0, 1, 1]).fit(X, y)
    RandomForestRegressor(n_estimators=2, feature_weights=[1, 2, 3, 4, 5], max_features_per_tree=2).fit(X, y)


def test_models_with_weights_are_saved():
    X, y = noise()
    weights, always = {"a": 2.0, "b": 0.0}, ["c"]
    forest = RandomForestClassifier(
        n_estimators=3, max_features=1, feature_weights=weights, always_try=always, random_state=0
    ).fit(pd.DataFrame(X, columns=list("abcde")), y)
    for again in (through_bytes(forest), pickle.loads(pickle.dumps(forest))):
        assert again.feature_weights == weights
        assert again.always_try == always
        assert bytes_of(again) == bytes_of(forest)
    tree = forest.estimators_[0]
    assert tree.feature_weights == weights


def test_a_column_of_weight_zero_is_not_a_runner_up():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, size=120)
    X = pd.DataFrame({"a": y + random.normal(size=120) / 9, "b": y + random.normal(size=120) / 2})
    X["c"] = random.normal(size=120)
    for weights, second in ((None, "b"), ({"b": 0}, "c")):
        tree = DecisionTreeClassifier(max_depth=1, feature_weights=weights).fit(X, y)
        report = fragility(tree, X, y, n_bootstraps=3, random_state=0)
        assert report.to_frame("pandas")["runner_up"].tolist() == [second]
