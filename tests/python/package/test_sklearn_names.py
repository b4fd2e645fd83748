"""Names and behaviour that code written for scikit-learn's trees and ensembles relies on."""

import io
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.ensemble
import sklearn.tree
import spinney
from scipy.sparse import csc_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
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


@pytest.mark.parametrize("name", [*FORESTS, "IsolationForest", "RandomTreesEmbedding"])
def test_forests_show_an_unfitted_tree(name):
    X, y = table()
    model = getattr(spinney, name)(n_estimators=2, random_state=0)
    assert not hasattr(model, "estimator_")
    theirs = getattr(sklearn.ensemble, name)(n_estimators=2).fit(X, y).estimator_
    tree = model.fit(X, y).estimator_
    assert type(tree).__name__ == type(theirs).__name__
    assert tree.get_params() == model.estimators_[0].get_params()
    with pytest.raises(NotFittedError):
        tree.predict(X)


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
    theirs = getattr(sklearn.tree, name)(random_state=0).fit(X, y).tree_
    if name.startswith("Decision"):
        mine = tree.compute_feature_importances(normalize=False)
        np.testing.assert_allclose(mine.sum(), theirs.compute_feature_importances(normalize=False).sum(), rtol=1e-9)
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
    with pytest.raises(ValueError, match=r"Use the estimator: model\.apply"):
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
    assert len(list(trees.flat)) == trees.size
    assert getattr(spinney, name)(n_estimators=1, max_depth=2).fit(X, y).estimators_[0, 0].max_depth == 2
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
    with pytest.raises(AttributeError, match="A model file does not store which rows the trees were grown on"):
        spinney.load(tmp_path / "model").estimators_samples_  # noqa: B018


@pytest.mark.parametrize("name", ["IsolationForest", "RandomTreesEmbedding"])
def test_a_warm_start_that_adds_nothing_is_warned_of(name):
    X, _ = table()
    model = getattr(spinney, name)(n_estimators=3, warm_start=True, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="Warm-start fitting without increasing n_estimators"):
        model.fit(X)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesClassifier"])
def test_out_of_bag_score_of_several_outputs_counts_rows_that_are_right_in_all(name):
    X, y = table(300)
    y = np.column_stack([y, X[:, 2] > 0, X[:, 1] > 1]).astype(int)
    model = getattr(spinney, name)(40, bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    shares = np.stack([share.argmax(axis=1) for share in model.oob_decision_function_], axis=1)
    assert model.oob_score_ == pytest.approx((y == shares).all(axis=1).mean(), abs=1e-12)  # as `score` does
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        getattr(spinney, name)(1, bootstrap=True, oob_score=True, random_state=0).fit(X, y)


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


# ---- boosting --------------------------------------------------------------------------------------------


def smooth(n=400, seed=3):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, X[:, 0] * 2 + np.sin(3 * X[:, 1]) + np.random.default_rng(seed + 1).normal(size=n) * 0.3


def test_alpha_is_understood_as_the_quantile_and_as_the_share_of_squares():
    X, y = smooth()
    Regressor = spinney.GradientBoostingRegressor
    for loss, own in (("quantile", "quantile"), ("huber", "huber_share")):
        theirs = Regressor(loss=loss, alpha=0.8, n_estimators=5)
        assert getattr(theirs, own) == theirs.alpha == 0.8
        assert "alpha" not in theirs.get_params()
        mine = Regressor(loss=loss, n_estimators=5, **{own: 0.8}).fit(X, y)
        assert theirs.fit(X, y).fingerprint() == clone(theirs).fit(X, y).fingerprint() == mine.fingerprint()
        assert Regressor(loss=loss, n_estimators=5).set_params(alpha=0.8).fit(X, y).fingerprint() == mine.fingerprint()
        theirs.alpha = 0.7
        assert theirs.get_params()[own] == 0.7
        with pytest.raises(TypeError, match=f"'alpha' is another name for '{own}'"):
            Regressor(alpha=0.5, **{own: 0.5})
    assert not hasattr(Regressor(), "alpha")
    search = GridSearchCV(Regressor(loss="quantile", n_estimators=3), {"alpha": [0.1, 0.5]}, cv=2).fit(X, y)
    assert search.best_params_ == {"alpha": 0.5}
    with pytest.raises(TypeError, match="no parameter 'alpha'"):
        spinney.GradientBoostingClassifier(alpha=0.5)
    for name, hint in (("criterion", "Leave it out"), ("ccp_alpha", "not pruned"), ("max_iter", "n_estimators")):
        with pytest.raises(TypeError, match=f"no parameter '{name}'.*{hint}"):
            Regressor(**{name: 1})


@pytest.mark.parametrize("name", BOOSTING)
def test_nodes_of_few_rows_are_not_split(name):
    X, y = table(400)
    for asked, fewest in ((150, 150), (0.5, 200), (1.0, 400)):
        model = getattr(spinney, name)(n_estimators=3, min_samples_leaf=1, min_samples_split=asked).fit(X, y)
        for tree in model.estimators_.ravel():
            split = tree.tree_.children_left >= 0
            assert split.any()
            assert tree.tree_.n_node_samples[split].min() >= fewest
    with pytest.raises(ValueError, match="min_samples_split"):
        getattr(spinney, name)(min_samples_split=1).fit(X, y)


@pytest.mark.parametrize("scale", [1, 3])
def test_impurity_decrease_is_that_of_a_regression_tree(scale):
    X, y = smooth()
    weight = np.full(len(y), scale)
    limit = {"min_samples_leaf": 1, "max_leaf_nodes": None, "min_impurity_decrease": 0.01}
    tree = spinney.DecisionTreeRegressor(**limit).fit(X, y, weight)
    boosted = spinney.GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, max_bins=65535, **limit)
    first = boosted.fit(X, y, weight).estimators_[0, 0]
    assert 5 < first.get_n_leaves() == tree.get_n_leaves() < 100
    np.testing.assert_allclose(boosted.predict(X), tree.predict(X), rtol=1e-6)


def test_patience_alone_asks_for_early_stopping():
    X, y = smooth()
    fixed = {"learning_rate": 0.5, "random_state": 0}
    asked = spinney.GradientBoostingRegressor(n_estimators=300, n_iter_no_change=3, **fixed).fit(X, y)
    assert asked.n_estimators_ < 300
    explicit = spinney.GradientBoostingRegressor(n_estimators=300, early_stopping=True, n_iter_no_change=3, **fixed)
    assert asked.fingerprint() == explicit.fit(X, y).fingerprint()
    assert not hasattr(spinney.GradientBoostingRegressor(n_estimators=20, **fixed).fit(X, y), "validation_score_")
    never = spinney.GradientBoostingRegressor(n_estimators=20, early_stopping=False, n_iter_no_change=3, **fixed)
    assert never.fit(X, y).n_estimators_ == 20


# ---- rows out of bag in boosting -------------------------------------------------------------------------


def drawn(model, round_, n, subsample):
    """Rows that a round draws: a hash of (seed, round, row), as the engine has it."""
    key = derive(derive(model._seed, 11), round_)
    return np.array([(derive(key, row) >> 11) * 2.0**-53 < subsample for row in range(n)])


def derive(key, branch):
    mask = 2**64 - 1
    x = (key + 0x9E3779B97F4A7C15 * (branch + 1)) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "log_loss", "classes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_rows_out_of_bag(loss, weighted, tmp_path):
    X, y = smooth()
    weight = np.arange(len(y)) % 4.0 if weighted else None
    options = {"n_estimators": 6, "subsample": 0.6, "random_state": 5, "learning_rate": 0.3}
    if loss in ("log_loss", "classes"):
        y = np.digitize(y, [0.0] if loss == "log_loss" else [-1, 1])
        model = spinney.GradientBoostingClassifier(**options).fit(X, y, weight)
        stages = [model.boosting_.start + np.zeros((len(y), model.boosting_.n_scores))]
        stages += [scores.reshape(len(y), -1) for scores in model.staged_decision_function(X)]
        shares = [model.boosting_.predicted(scores) for scores in stages]
        factor = 2 if len(shares[0].T) == 2 else 1  # the deviance of two classes, as in scikit-learn
        losses = [-factor * np.log(each[np.arange(len(y)), y]) for each in shares]
    elif loss == "huber":
        model = spinney.GradientBoostingRegressor(loss=loss, **options).fit(X, y, weight)
        assert (model.oob_improvement_ > 0).all()
        assert model.oob_scores_.shape == (6,)
        return
    else:
        y = y if loss == "squared_error" else np.floor(np.exp(y / 3))
        model = spinney.GradientBoostingRegressor(loss=loss, **options).fit(X, y, weight)
        start = model.boosting_.predicted(np.full((len(y), 1), model.boosting_.start[0]))[:, 0]
        stages = [start, *model.staged_predict(X)]
        losses = [(y - f) ** 2 if loss == "squared_error" else f - y * np.log(f) for f in stages]
    for i in range(6):
        out = ~drawn(model, i, len(y), 0.6)
        before, after = (
            np.average(losses[k][out], weights=None if weight is None else weight[out]) for k in (i, i + 1)
        )
        assert model.oob_scores_[i] == pytest.approx(after, rel=1e-9)
        assert model.oob_improvement_[i] == pytest.approx(before - after, rel=1e-6, abs=1e-12)
    assert model.oob_score_ == model.oob_scores_[-1]
    model.save(tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(again.oob_scores_, model.oob_scores_)
    np.testing.assert_array_equal(again.oob_improvement_, model.oob_improvement_)
    assert again.oob_score_ == model.oob_score_


def test_training_scores_are_on_the_scale_of_scikit_learn():
    X, y = smooth(300)
    limits = {"max_depth": 3, "max_leaf_nodes": None, "min_samples_leaf": 1, "max_bins": 65535}
    for target, name in ((y, "Regressor"), (y > 0, "Classifier"), (np.digitize(y, [-1, 1]), "Classifier")):
        name = f"GradientBoosting{name}"
        peer = getattr(sklearn.ensemble, name)(n_estimators=5).fit(X, target)
        ours = getattr(spinney, name)(n_estimators=5, **limits).fit(X, target, X_val=X, y_val=target)
        exact = name.endswith("Regressor")
        np.testing.assert_allclose(ours.train_score_, peer.train_score_, rtol=1e-6 if exact else 0.05)
        np.testing.assert_allclose(ours.validation_score_, ours.train_score_, rtol=1e-9)


def test_some_of_many_out_of_bag_rows_are_scored():
    X, y = smooth(60_000)
    model = spinney.GradientBoostingRegressor(n_estimators=2, subsample=0.25, random_state=0).fit(X, y)
    losses = (y - model.predict(X)) ** 2
    out = np.flatnonzero(~drawn(model, 1, len(y), 0.25))
    assert model.oob_score_ == pytest.approx(losses[out[::3]].mean(), rel=1e-9)
    assert model.oob_score_ == pytest.approx(losses[out].mean(), rel=0.03)


def test_rows_out_of_bag_and_warm_starts():
    X, y = smooth()
    options = {"subsample": 0.5, "random_state": 1}
    once = spinney.GradientBoostingRegressor(n_estimators=8, **options).fit(X, y)
    twice = spinney.GradientBoostingRegressor(n_estimators=5, warm_start=True, **options).fit(X, y)
    twice.set_params(n_estimators=8).fit(X, y)
    np.testing.assert_allclose(twice.oob_scores_, once.oob_scores_, rtol=1e-12)
    np.testing.assert_allclose(twice.oob_improvement_, once.oob_improvement_, rtol=1e-9)
    later = spinney.GradientBoostingRegressor(n_estimators=3, warm_start=True, random_state=1).fit(X, y)
    assert not hasattr(later, "oob_scores_")
    later.set_params(n_estimators=5, subsample=0.5).fit(X, y)
    assert np.isnan(later.oob_scores_).tolist() == [True] * 3 + [False] * 2
    assert later.oob_improvement_[:3].tolist() == [0.0] * 3
    later.set_params(warm_start=False, subsample=1.0).fit(X, y)
    assert not hasattr(later, "oob_improvement_")


# ---- boosting that starts at another model ---------------------------------------------------------------


def test_scores_start_at_zero_at_a_constant_or_at_a_model():
    X, y = smooth()
    options = {"n_estimators": 5, "max_leaf_nodes": 4}
    constant, none = (spinney.GradientBoostingRegressor(init=init, **options).fit(X, y) for init in ("constant", None))
    assert constant.fingerprint() == none.fingerprint()
    line = LinearRegression().fit(X, y)
    beside = spinney.GradientBoostingRegressor(init="zero", **options).fit(X, y, offset=line.predict(X))
    model = spinney.GradientBoostingRegressor(init=LinearRegression(), **options).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), beside.predict(X, offset=line.predict(X)))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    with pytest.raises(ValueError, match="LinearRegression, whose contributions of columns are unknown"):
        model.shap_values(X)
    assert model.score(X, y) > line.score(X, y)
    assert isinstance(model.init_, LinearRegression)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_scores_of_classes_start_at_shares(n_classes, loss):
    if loss == "exponential" and n_classes > 2:
        return
    X, y = smooth()
    y = np.array(["a", "b", "c"])[np.digitize(y, [-1, 1][: n_classes - 1])]
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    first = LogisticRegression().fit(X, y, weight)
    model = spinney.GradientBoostingClassifier(loss, init=LogisticRegression(), n_estimators=1, learning_rate=1e-9)
    model.fit(X, y, weight)
    np.testing.assert_allclose(model.predict_proba(X), first.predict_proba(X), atol=2e-7)
    assert (model.predict(X) == first.predict(X)).mean() > 0.99


def test_a_model_that_scores_start_at_sees_only_rows_that_are_learned_from():
    X, y = smooth()
    for held in ({}, {"X_val": X[:100], "y_val": y[:100]}):
        first = spinney.DecisionTreeRegressor(random_state=0)
        model = spinney.GradientBoostingRegressor(init=first, n_estimators=5, n_iter_no_change=2, random_state=0)
        model.fit(X, y, **held)
        assert model.init_.tree_.n_node_samples[0] == (400 if held else 360)
        assert len(model.validation_score_) >= 1


def test_what_a_model_to_start_at_cannot_do():
    X, y = smooth()
    model = spinney.GradientBoostingRegressor(init=make_pipeline(LinearRegression()), n_estimators=2)
    assert model.fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match="The initial estimator Pipeline does not support sample weights"):
        model.fit(X, y, np.ones(len(y)))
    with pytest.raises(ValueError, match="predictor of single rows"):
        model.to_predictor()
    with pytest.raises(ValueError, match="permutation_importance"):
        model.importances(X, y, "permutation")
    with pytest.raises(TypeError, match="init cannot be saved in a model file"):
        model.save(io.BytesIO())
    with pytest.raises(ValueError, match=r"init=LinearRegression predicts -.* for row"):
        spinney.GradientBoostingRegressor("poisson", init=LinearRegression()).fit(X, np.maximum(y, 0))
    with pytest.raises(ValueError, match="init"):
        spinney.GradientBoostingClassifier(init=LinearRegression()).fit(X, y > 0)
    warm = spinney.GradientBoostingRegressor(init=LinearRegression(), n_estimators=2, warm_start=True).fit(X, y)
    first = warm.init_
    assert warm.set_params(n_estimators=4).fit(X, y).init_ is first
    whole = spinney.GradientBoostingRegressor(init=LinearRegression(), n_estimators=4).fit(X, y)
    np.testing.assert_allclose(warm.predict(X), whole.predict(X), rtol=1e-9)


# ---- inside scikit-learn, on a table of integers, strings and numbers --------------------------------------


CLASSIFIERS = {
    "tree": lambda: spinney.DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": lambda: spinney.RandomForestClassifier(8, random_state=0),
    "boosting": lambda: spinney.GradientBoostingClassifier(n_estimators=5),
    "bagging": lambda: spinney.BaggingClassifier(spinney.DecisionTreeClassifier(max_depth=3), 4, random_state=0),
}
REGRESSORS = {
    "tree": lambda: spinney.DecisionTreeRegressor(max_depth=3, random_state=0),
    "forest": lambda: spinney.RandomForestRegressor(8, random_state=0),
    "boosting": lambda: spinney.GradientBoostingRegressor(n_estimators=5),
    "bagging": lambda: spinney.BaggingRegressor(spinney.DecisionTreeRegressor(max_depth=3), 4, random_state=0),
}
AROUND_CLASSES = {
    "AdaBoost": lambda model: AdaBoostClassifier(model, n_estimators=3, random_state=0),
    "Bagging": lambda model: BaggingClassifier(model, n_estimators=3, random_state=0),
    "Calibrated": lambda model: CalibratedClassifierCV(model, cv=3),
    "OneVsRest": OneVsRestClassifier,
    "Stacking": lambda model: StackingClassifier(
        [("a", model)], spinney.DecisionTreeClassifier(max_depth=3), cv=3, passthrough=True
    ),
    "TunedThreshold": lambda model: TunedThresholdClassifierCV(model, cv=3),
    "Voting": lambda model: VotingClassifier([("a", model), ("b", clone(model))], voting="soft"),
    "GridSearch": lambda model: GridSearchCV(make_pipeline("passthrough", model), {}, cv=3),
}
AROUND_VALUES = {
    "AdaBoost": lambda model: AdaBoostRegressor(model, n_estimators=3, random_state=0),
    "MultiOutput": MultiOutputRegressor,
    "Stacking": lambda model: StackingRegressor([("a", model)], cv=3),
    "Voting": lambda model: VotingRegressor([("a", model)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("around", AROUND_CLASSES)
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_classifiers_of_scikit_learn_around_ours(around, kind, library):
    X, y = mixed()
    X = X if library == "pandas" else pl.from_pandas(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AROUND_CLASSES[around](CLASSIFIERS[kind]()).fit(X, y)
        assert model.score(X, y) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("around", AROUND_VALUES)
@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_regressors_of_scikit_learn_around_ours(around, kind, library):
    X, y = mixed()
    y = X["age"].to_numpy() + 30.0 * (y == "yes")
    X = X if library == "pandas" else pl.from_pandas(X)
    y = np.column_stack([y, -y]) if around == "MultiOutput" else y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AROUND_VALUES[around](REGRESSORS[kind]()).fit(X, y)
        assert model.score(X, y) > (0.2 if kind == "boosting" else 0.7)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_columns_are_evaluated_by_scikit_learn(kind):
    X, y = mixed()
    model = CLASSIFIERS[kind]().fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0)
    assert found.importances_mean[:2].min() > found.importances_mean[2]
    assert SelectFromModel(CLASSIFIERS[kind]()).fit(X, y).get_support()[:2].any()
    for column in ("town", "income"):
        drawn_ = partial_dependence(model, X, [column], categorical_features=["town"], grid_resolution=5)
        assert drawn_["average"].shape == (1, 3 if column == "town" else 5)
    with pytest.raises(ValueError, match="contains integer data"):  # scikit-learn's own rule, whatever the model
        partial_dependence(model, X, ["age"])
    ages = partial_dependence(model, X.astype({"age": float}), ["age"], grid_resolution=5)["average"][0]
    assert ages[0] != ages[-1]


def test_columns_are_eliminated_by_scikit_learn_where_strings_are_numbers():
    X, y = mixed()
    with pytest.raises(ValueError, match="could not convert string"):  # scikit-learn's own check, whatever the model
        RFECV(spinney.DecisionTreeClassifier(), cv=3).fit(X, y)
    codes = X.assign(town=X["town"].astype("category").cat.codes)
    found = RFECV(spinney.DecisionTreeClassifier(max_depth=4, random_state=0), cv=3).fit(codes, y)
    assert found.support_.tolist() == [True, True, False]


# ---- what is passed on to members --------------------------------------------------------------------------


class Louder(ClassifierMixin, BaseEstimator):
    """A classifier with given probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X, volume=0.5):
        return np.column_stack([np.full(len(X), 1 - volume), np.full(len(X), volume)])

    def predict(self, X, volume=0.5):
        return self.classes_[(self.predict_proba(X, volume)[:, 1] > 0.5).astype(int)]


class Raised(RegressorMixin, BaseEstimator):
    """Predicts given values."""

    def fit(self, X, y):
        self.n_features_in_ = 1
        return self

    def predict(self, X, level=0.0):
        return np.full(len(X), level)


def test_members_of_bagging_get_what_they_request():
    X, y = table()
    model = spinney.BaggingClassifier(Louder(), 3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="only if metadata routing is enabled"):
        model.predict(X, volume=0.9)
    with sklearn.config_context(enable_metadata_routing=True):
        for voting in ("soft", "hard"):
            method = f"set_predict{'_proba' * (voting == 'soft')}_request"
            member = getattr(Louder(), method)(volume=True)
            model = spinney.BaggingClassifier(member, 3, voting=voting, random_state=0).fit(X, y)
            assert (model.predict(X, volume=0.9) == 1).all()
            assert (model.predict(X, volume=0.1) == 0).all()
            expected = 0.9 if voting == "soft" else 1.0
            np.testing.assert_allclose(model.predict_proba(X, volume=0.9)[:, 1], expected)
            np.testing.assert_allclose(model.predict_log_proba(X, volume=0.9)[:, 1], np.log(expected))
        with pytest.raises(TypeError, match="unexpected argument"):
            model.predict(X, tone=1)
        raised = Raised().set_predict_request(level=True)
        values = spinney.BaggingRegressor(raised, 3, random_state=0).fit(X, y)
        np.testing.assert_array_equal(values.predict(X, level=4.0), np.full(len(X), 4.0))
