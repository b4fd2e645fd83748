"""Features of forests that were made apart, used together."""

import warnings

import numpy as np
import pandas as pd
import pytest
import spinney
from spinney._forest.uncertainty import DrawnUnits


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "k": rng.choice(["x", "y"], 80), "b": rng.normal(size=80)})
    X.loc[::9, "b"] = np.nan
    return X, np.where(X["a"] + X["b"].fillna(0) > 0, "hi", "lo")


@pytest.fixture(scope="module")
def oblique(table):
    return spinney.RandomForestClassifier(n_estimators=10, oblique="auto", keep_rows=True, random_state=0).fit(*table)


def test_support_of_oblique_forests_speaks_of_the_columns(table, oblique):
    straight = spinney.RandomForestClassifier(n_estimators=10, random_state=0).fit(*table)
    new = pd.DataFrame({"a": [0.0, 99.0], "k": ["z", "x"], "b": [0.1, np.nan]})
    found = oblique.predict_support(new)
    assert found.reason.tolist() == straight.predict_support(new).reason.tolist()
    assert found.reason.tolist() == [["", "unseen", ""], ["above", "", ""]]
    np.testing.assert_allclose(
        oblique.predict_support(table[0]).effective_rows,
        1 / oblique.leaf_weights(table[0]).power(2).sum(axis=1),
    )


def test_prototypes_of_oblique_forests_are_rows_of_the_table(table, oblique):
    X, y = table
    typical = oblique.prototypes(X, y, n_neighbors=1)
    middle = typical[typical["statistic"] == "median"]
    chosen = X.iloc[middle["row"].to_numpy()]
    assert middle["a"].tolist() == chosen["a"].tolist()
    assert middle["k"].tolist() == chosen["k"].tolist()


@pytest.mark.parametrize("options", [{}, {"interactions": True}, {"background": [["x"]]}])
def test_shapley_values_of_oblique_splits_are_refused_in_words(table, oblique, options):
    if "background" in options:
        options = {"background": table[0][:3]}
    for model in (oblique, oblique.estimators_[0]):
        with pytest.raises(ValueError, match="oblique"):
            model.shap_values(table[0][:2], **options)


@pytest.mark.parametrize("cost_splits", ["altered_priors", "generalised_gini", None])
@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
def test_leaf_weights_give_the_class_shares_under_costs(table, cost_splits, class_weight):
    X, y = table
    weight = np.random.default_rng(1).uniform(0.5, 2, size=len(y))
    forest = spinney.RandomForestClassifier(
        n_estimators=10, cost_matrix=[[0, 5], [1, 0]], cost_splits=cost_splits, class_weight=class_weight,
        keep_rows=True, min_samples_leaf=5, shrinkage=None, random_state=0,
    ).fit(X, y, sample_weight=weight)  # fmt: skip
    np.testing.assert_allclose(forest.leaf_weights(X) @ np.eye(2)[(y == "lo").astype(int)], forest.predict_proba(X))


def test_rows_that_no_cut_parts_are_no_outliers():
    for n_estimators in (7, 100, 250):
        model = spinney.IsolationForest(n_estimators=n_estimators, random_state=0).fit(np.ones((50, 3)))
        assert (model.predict(np.ones((4, 3))) == 1).all()
        assert model.to_predictor().predict([1.0, 1.0, 1.0]) == 1


def test_rows_that_no_tree_parts_lie_in_one_place():
    X, y = np.ones((30, 2)), np.arange(30) % 2
    forest = spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    assert (forest.proximity_map(X) == 0).all()


def test_the_number_of_trees_may_come_first():
    for kind in ("RandomForest", "ExtraTrees"):
        for task in ("Classifier", "Regressor"):
            assert getattr(spinney, kind + task)(7).n_estimators == 7


def test_a_metric_that_there_is_not_is_refused_before_growing(monkeypatch):
    monkeypatch.setattr("spinney._forest.fitting.grow_in_batches", lambda *_: pytest.fail("grew trees"))
    with pytest.raises(ValueError, match="no_such"):
        spinney.RandomForestRegressor(oob_score="no_such").fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize("change", ["rows", "weights", "share"])
def test_a_warm_start_on_other_samples_is_refused(table, change):
    X, y = table
    model = spinney.RandomForestClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(n_estimators=8, max_samples=0.5 if change == "share" else None)
    n_rows = 60 if change == "rows" else len(y)
    weight = np.arange(n_rows) % 2 if change == "weights" else None
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X[:n_rows], y[:n_rows], sample_weight=weight)
    assert (model.predict_proba(X) == before).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.set_params(max_samples=None).fit(X, y).estimators_) == 8
    free = spinney.ExtraTreesClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    assert len(free.set_params(n_estimators=8).fit(X[:60], y[:60]).estimators_) == 8


def test_rows_may_be_drawn_very_often():
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 5.0, 9.0])
    forest = spinney.RandomForestRegressor(n_estimators=3, max_samples=400_000, random_state=0).fit(X, y)
    draws = forest._draws
    units = DrawnUnits.of(draws, 3)
    assert sorted(units.counts[2].tolist()) == sorted(draws.counts(2).tolist())
    assert units.counts.sum() == 3 * 400_000
