"""What code written for scikit-learn's trees and ensembles asks of fitted models."""

import numpy as np
import pandas as pd
import pytest
import spinney
from scipy.sparse import csc_array, issparse
from sklearn.exceptions import NotFittedError
from sklearn.tree import export_graphviz

TREES = ["DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"]
FORESTS = ["RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"]
BOOSTING = ["GradientBoostingClassifier", "GradientBoostingRegressor"]


def table(n=120, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    return X, (X[:, 0] > X[:, 1] ** 2).astype(int)


def mixed(n=120, seed=0):
    """Return a frame of integers, strings and numbers, and classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(18, 80, n), "town": rng.choice(["Ely", "Rye", "Wem"], n)})
    X["income"] = rng.lognormal(size=n)
    return X, np.where((X["town"] == "Rye") | (X["age"] > 60), "yes", "no")


# ---- the tree inside an estimator ------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
def test_the_tree_is_asked_without_its_estimator(name):
    X, y = table()
    model = getattr(spinney, name)(random_state=0).fit(X, y)
    tree = model.tree_
    np.testing.assert_array_equal(tree.apply(X), model.apply(X))
    np.testing.assert_array_equal(tree.apply(csc_array(X)), model.apply(X))
    np.testing.assert_array_equal(tree.predict(X), tree.value[model.apply(X)].squeeze(axis=1))
    assert issparse(tree.decision_path(X))
    np.testing.assert_array_equal(tree.decision_path(X).toarray(), model.decision_path(X).toarray())
    np.testing.assert_array_equal(tree.compute_feature_importances(), model.feature_importances_)
    assert tree.n_features == 3
    assert tree.n_outputs == 1
    assert tree.max_n_classes == (2 if "Classifier" in name else 1)
    assert tree.n_classes.tolist() == [tree.max_n_classes]


def test_the_tree_of_several_outputs():
    X, y = table()
    model = spinney.DecisionTreeClassifier(max_depth=3).fit(X, np.column_stack([y, np.arange(len(y)) % 3]))
    assert model.tree_.n_classes.tolist() == [2, 3]
    assert model.tree_.predict(X).shape == (len(X), 2, 3)
    values = spinney.DecisionTreeRegressor(max_depth=3).fit(X, X[:, :2]).tree_
    assert values.n_classes.tolist() == [1, 1]
    assert values.predict(X).shape == (len(X), 2, 1)


def test_a_tree_of_strings_is_asked_through_its_estimator():
    X, y = mixed()
    tree = spinney.DecisionTreeClassifier().fit(X, y).tree_
    with pytest.raises(ValueError, match=r"Ask the estimator: model\.apply"):
        tree.apply(np.zeros((2, 3)))
    numbers = spinney.DecisionTreeClassifier().fit(X[["age"]], y).tree_
    with pytest.raises(ValueError, match="X has 2 columns, and the tree was grown on 1"):
        numbers.apply(np.zeros((2, 2)))


def test_width_of_a_tree_that_was_loaded(tmp_path):
    X, y = table()
    for model in (
        spinney.DecisionTreeClassifier(max_depth=1).fit(X, y),
        spinney.RandomForestRegressor(2, max_depth=1, random_state=0).fit(X, y),
        spinney.GradientBoostingClassifier(n_estimators=2, max_depth=1).fit(X, y),
    ):
        model.save(tmp_path / "model")
        copy = spinney.load(tmp_path / "model")
        trees = [copy] if hasattr(copy, "tree_") else np.ravel(copy.estimators_[:])
        assert [tree.tree_.n_features for tree in trees] == [3] * len(trees)


def test_graphviz_draws_a_tree_of_numbers():
    X, y = table()
    for name in TREES:
        dot = export_graphviz(getattr(spinney, name)(max_depth=2, random_state=0).fit(X, y))
        assert dot.startswith("digraph Tree")
        assert "x[0] <=" in dot or "x[1] <=" in dot or "x[2] <=" in dot


# ---- ensembles as sequences ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FORESTS, "BaggingClassifier", "BaggingRegressor"])
def test_an_ensemble_is_a_sequence_of_its_members(name):
    X, y = table()
    model = getattr(spinney, name)(n_estimators=4, random_state=0)
    assert model  # an unfitted one is no empty list
    with pytest.raises((NotFittedError, AttributeError)):
        len(model)
    model.fit(X, y)
    assert len(model) == 4
    np.testing.assert_array_equal(model[1].predict(X), model.estimators_[1].predict(X))
    np.testing.assert_array_equal(model[-1].predict(X), list(model)[3].predict(X))
    assert len(model[1:3]) == 2


@pytest.mark.parametrize("name", BOOSTING)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_of_boosting_stand_by_round_and_score(name, n_classes):
    X, y = table()
    y = y + (n_classes == 3) * (X[:, 2] > 0.5)
    n_scores = 3 if n_classes == 3 and "Classifier" in name else 1
    model = getattr(spinney, name)(n_estimators=5).fit(X, y)
    trees = model.estimators_
    assert trees.shape == (5, n_scores)
    assert (trees.ndim, trees.size, len(trees), len(model)) == (2, 5 * n_scores, 5, 5)
    assert trees[:, 0].shape == (5,)
    assert trees[0].shape == (n_scores,)
    assert trees.ravel().shape == trees.flatten().shape == (5 * n_scores,)
    assert np.asarray(trees).shape == trees.shape
    leaves = model.apply(X)
    assert leaves.shape == ((len(X), 5, n_scores) if "Classifier" in name else (len(X), 5))
    np.testing.assert_array_equal(leaves.reshape(len(X), 5, -1)[:, 3, -1], trees[3, -1].apply(X))
    np.testing.assert_array_equal(model[-1][0].apply(X), trees[4, 0].apply(X))
    for stage, again in zip(trees, model, strict=True):
        np.testing.assert_array_equal(stage[0].predict(X), again[0].predict(X))
    with pytest.raises(IndexError):
        trees[5, 0]


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("bootstrap", [False, True])
def test_rows_of_each_tree(name, bootstrap):
    X, y = table()
    weight = np.arange(len(X)) % 3.0
    model = getattr(spinney, name)(n_estimators=3, random_state=0, bootstrap=bootstrap).fit(X, y, weight)
    rows = model.estimators_samples_
    assert len(rows) == len(rows.copy()) == 3
    assert all((weight[each] > 0).all() for each in rows)
    if not bootstrap:
        np.testing.assert_array_equal(rows[0], np.flatnonzero(weight > 0))
        whole = getattr(spinney, name)(n_estimators=3, random_state=0, bootstrap=False).fit(X, y)
        np.testing.assert_array_equal(whole.estimators_samples_[2], np.arange(len(X)))


def test_trees_of_an_isolation_forest():
    X, _ = table()
    model = spinney.IsolationForest(n_estimators=6, max_samples=32, random_state=0).fit(X)
    assert len(model) == len(model.estimators_) == 6
    assert all(len(np.unique(rows)) == 32 for rows in model.estimators_samples_)
    assert all(tree.tree_.n_node_samples[0] == 32 for tree in model)
    assert max(tree.get_depth() for tree in model) <= 5
    lengths = np.mean([tree.predict(X[:, f]) for tree, f in zip(model, model.estimators_features_, strict=True)], 0)
    np.testing.assert_array_equal(np.argsort(lengths, kind="stable"), np.argsort(model.score_samples(X), kind="stable"))
    path, pointer = model.decision_path(X)
    assert path.shape == (len(X), pointer[-1])


def test_trees_of_an_embedding(tmp_path):
    X, _ = table()
    model = spinney.RandomTreesEmbedding(n_estimators=5, max_depth=2, random_state=0).fit(X, sample_weight=X[:, 0] > 0)
    assert [tree.get_depth() for tree in model] == [2] * 5
    np.testing.assert_array_equal(model.apply(X)[:, 3], model[3].apply(X))
    np.testing.assert_array_equal(model.estimators_samples_[0], np.flatnonzero(X[:, 0] > 0))
    model.save(tmp_path / "model")
    with pytest.raises(AttributeError, match="A model file does not keep which rows the trees were grown on"):
        spinney.load(tmp_path / "model").estimators_samples_  # noqa: B018


# ---- parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TREES, *FORESTS, "RandomTreesEmbedding"])
def test_a_share_of_all_rows_is_all_of_them(name):
    X, y = table()
    kind = getattr(spinney, name)
    model = kind(min_samples_split=1.0, random_state=0, **({"bootstrap": False} if name in FORESTS else {})).fit(X, y)
    depths = [tree.get_depth() for tree in (model if hasattr(model, "estimators_") else [model])]
    assert set(depths) == {1}
    with pytest.raises(ValueError, match="min_samples_split"):
        kind(min_samples_split=1).fit(X, y)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "RandomForestRegressor"])
def test_more_rows_may_be_drawn_than_there_are(name):
    X, y = table()
    for more in (1.5, 180):
        model = getattr(spinney, name)(n_estimators=3, max_samples=more, random_state=0).fit(X, y)
        assert [len(rows) for rows in model.estimators_samples_] == [180] * 3
    with pytest.raises(ValueError, match=r"max_samples=1.5 is more than the 120 rows"):
        getattr(spinney, name)(max_samples=1.5, replace=False).fit(X, y)
