"""Columns that are equally good: the first of them in a tree that is grown without chance, else any of them."""

import numpy as np
import pytest
import spinney
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

RANDOM = np.random.default_rng(0)
SIGNAL = RANDOM.normal(size=200)
EQUAL_COLUMNS = np.column_stack([SIGNAL, SIGNAL])
VALUES = SIGNAL + 0.3 * RANDOM.normal(size=200)
CLASSES = (VALUES > 0).astype(int)
THREE = np.digitize(VALUES, [-0.5, 0.5])


def pipeline(tree):
    return make_pipeline(FunctionTransformer(), tree)


MANY = {
    "forest of values": (spinney.RandomForestRegressor(50), VALUES),
    "forest of medians": (spinney.RandomForestRegressor(10, criterion="absolute_error"), VALUES),
    "forest in bins": (spinney.RandomForestRegressor(50, max_bins=20), VALUES),
    "forest, best first": (spinney.RandomForestRegressor(50, max_leaf_nodes=30), VALUES),
    "forest of classes": (spinney.RandomForestClassifier(50, max_features=None), CLASSES),
    "forest of three classes": (spinney.RandomForestClassifier(50, max_features=None), THREE),
    "forest by entropy": (spinney.RandomForestClassifier(50, max_features=None, criterion="entropy"), CLASSES),
    "forest by gain ratio": (spinney.RandomForestClassifier(50, max_features=None, criterion="gain_ratio"), CLASSES),
    "forest with prices": (spinney.RandomForestRegressor(50, feature_costs=[2.0, 2.0]), VALUES),
    "a column that is always tried": (spinney.RandomForestRegressor(50, max_features=1, always_try=[0]), VALUES),
    "extra-trees of values": (spinney.ExtraTreesRegressor(50), VALUES),
    "extra-trees of classes": (spinney.ExtraTreesClassifier(50, max_features=None), CLASSES),
    "bagging of values": (spinney.BaggingRegressor(n_estimators=50), VALUES),
    "bagging of classes": (spinney.BaggingClassifier(n_estimators=50), CLASSES),
    "bagging of copies": (spinney.BaggingRegressor(n_estimators=50, max_samples=0.2), VALUES),
    "bagging with competitors": (
        spinney.BaggingRegressor(spinney.DecisionTreeRegressor(max_competitors=2), 50),
        VALUES,
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_equal_columns_are_equally_important_to_many_trees(name):
    model, y = MANY[name]
    first, second = model.set_params(random_state=0).fit(EQUAL_COLUMNS, y).feature_importances_
    assert first + second == pytest.approx(1)
    assert 0.35 < first < 0.65


def test_equal_columns_are_equally_important_to_pipelines_in_a_bag():
    model = spinney.BaggingRegressor(pipeline(spinney.DecisionTreeRegressor()), 50, random_state=0)
    members = model.fit(EQUAL_COLUMNS, VALUES).estimators_
    assert 0.35 < np.mean([member[-1].feature_importances_[0] for member in members]) < 0.65


def test_a_tree_of_random_cuts_takes_any_of_the_equal_columns():
    y = np.repeat([0.0, 1.0], 10)  # between the values all cuts are the same
    trees = [spinney.ExtraTreeRegressor(max_features=None, random_state=seed) for seed in range(40)]
    share = np.mean([tree.fit(np.column_stack([y, y]), y).feature_importances_[0] for tree in trees])
    assert 0.25 < share < 0.75


@pytest.mark.parametrize("tree", [spinney.DecisionTreeRegressor(), spinney.DecisionTreeRegressor(max_competitors=1)])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_one_tree_takes_the_first_of_the_equal_columns(tree, seed):
    tree.set_params(random_state=seed).fit(EQUAL_COLUMNS, VALUES)
    np.testing.assert_array_equal(tree.feature_importances_, [1, 0])


def test_equal_columns_stand_in_for_a_column_equally_often():
    X = np.column_stack([SIGNAL, SIGNAL, SIGNAL])
    tree = spinney.DecisionTreeRegressor(max_depth=1, missing="surrogate", max_surrogates=1)
    model = spinney.BaggingRegressor(tree, 60, random_state=0).fit(X, VALUES)
    splits = [spinney.splits_frame(member, "pandas") for member in model.estimators_]
    standing_in = [frame[frame.role == "surrogate"].column.iloc[0] for frame in splits if frame.column[0] == "x0"]
    assert len(standing_in) > 10
    assert 0.2 < np.mean([column == "x1" for column in standing_in]) < 0.8


def importances_of(model, X, y):
    return model.fit(X, y).feature_importances_


@pytest.mark.parametrize("kind", [spinney.RandomForestRegressor, spinney.ExtraTreesRegressor])
def test_the_order_of_the_columns_matters_no_more_than_the_seed(kind):
    random = np.random.default_rng(1)
    X = np.round(random.normal(size=(300, 8)), 1)
    y = X[:, 3] + X[:, 4] + random.normal(size=300)
    ahead = np.array([importances_of(kind(100, random_state=seed), X, y) for seed in range(4)])
    back = np.array([importances_of(kind(100, random_state=seed), X[:, ::-1], y)[::-1] for seed in range(4, 8)])
    noise = np.sqrt(ahead.var(axis=0, ddof=1) + back.var(axis=0, ddof=1)) / 2
    assert (np.abs(ahead.mean(axis=0) - back.mean(axis=0)) < 4 * noise + 0.001).all()


@pytest.mark.parametrize("name", ["forest of values", "extra-trees of values", "forest of three classes"])
def test_ties_fall_the_same_way_on_any_number_of_threads(name):
    random = np.random.default_rng(2)
    X = np.round(random.normal(size=(3000, 6)), 1)
    X[:, 2] = X[:, 1]
    X[:, 4] = random.integers(2, size=3000)  # soon constant
    model, y = MANY[name]
    y = np.round(X[:, 0] + X[:, 1] + random.normal(size=3000), 1) if y is VALUES else random.integers(3, size=3000)
    prints = {model.set_params(random_state=0, n_jobs=n, n_estimators=3).fit(X, y).fingerprint() for n in (1, 2, 5)}
    assert len(prints) == 1


def test_a_member_grows_the_same_on_any_number_of_threads():
    random = np.random.default_rng(3)
    X = np.round(random.normal(size=(40000, 4)), 1)
    y = X[:, 0] + random.normal(size=40000)
    prints = set()
    for n_jobs in (1, 3):
        tree = spinney.DecisionTreeRegressor(n_jobs=n_jobs, min_samples_leaf=3)
        prints.add(spinney.BaggingRegressor(tree, 1, random_state=0).fit(X, y).fingerprint())
    assert len(prints) == 1
