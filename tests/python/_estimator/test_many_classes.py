"""Very many classes: the cost grows with rows + classes, or the fit is refused or announced before it begins."""

import subprocess
import sys

import numpy as np
import pytest
import spinney
from spinney._estimator import many_classes
from spinney._forest import fitting
from spinney._model import adaboost

FAST = {
    "DecisionTreeClassifier": {},
    "ExtraTreeClassifier": {},
    "KNeighborsClassifier": {"n_neighbors": 1},
    "BaggingClassifier": {"n_estimators": 1},
    "AdaBoostClassifier": {"n_estimators": 1},
    "RandomForestClassifier": {"n_estimators": 1},
    "ExtraTreesClassifier": {"n_estimators": 1},
}
PASSES = {
    "LinearClassifier": {},
    "LinearSVC": {},
    "Perceptron": {},
    "SVC": {"multi_class": "ovr"},
    "GradientBoostingClassifier": {"n_estimators": 1},
}


def three_rows_per_class(n_classes, n_columns=4):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 3)
    centres = rng.normal(size=(n_classes, n_columns))
    return centres[y] + 0.01 * rng.normal(size=(len(y), n_columns)), y


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_a_machine_for_each_of_very_many_pairs_is_refused(name):
    X, y = three_rows_per_class(1001)
    with pytest.raises(ValueError, match=r"500,500 of 1,001 classes.*multi_class='ovr'"):
        getattr(spinney, name)().fit(X, y)


@pytest.mark.parametrize("name", PASSES)
def test_passes_for_each_of_very_many_classes_are_announced(name, monkeypatch):
    monkeypatch.setattr(many_classes, "_MANY", 8)
    X, y = three_rows_per_class(8)
    with pytest.warns(UserWarning, match=f"{name} computes with 24 rows for each of 8 classes"):
        getattr(spinney, name)(**PASSES[name]).fit(X, y)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesClassifier"])
def test_a_forest_whose_probabilities_do_not_fit_in_memory_is_refused(name, monkeypatch):
    X, y = three_rows_per_class(200)
    forest = getattr(spinney, name)(n_estimators=10)
    stored = sum(tree.tree_.node_count for tree in forest.fit(X, y).estimators_) * 200 * 8
    monkeypatch.setattr(fitting, "free_memory", lambda: stored)
    forest.fit(X, y)  # what is refused is needed at least
    monkeypatch.setattr(fitting, "free_memory", lambda: stored // 3)
    with pytest.raises(MemoryError, match="probabilities of 200 classes at each node of its 10 trees"):
        forest.fit(X, y)
    forest.set_params(max_leaf_nodes=20).fit(X, y)
    forest.set_params(max_leaf_nodes=None).fit(X[:, :1] > 0, y)  # two leaves


@pytest.mark.parametrize(
    "limit",
    [
        {"min_samples_split": 300},
        {"min_samples_split": 0.5},
        {"min_weight_fraction_leaf": 0.2},
        {"min_impurity_decrease": 0.5},
        {"min_purity": 0.002},
    ],
    ids=str,
)
def test_a_forest_of_small_trees_is_not_refused(limit, monkeypatch):
    X, y = three_rows_per_class(200)
    monkeypatch.setattr(fitting, "free_memory", lambda: 10**6)
    forest = spinney.RandomForestClassifier(n_estimators=10, **limit).fit(X, y)
    assert sum(tree.tree_.node_count for tree in forest.estimators_) * 200 * 8 < 10**6


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_five_thousand_classes_are_fitted(name):
    X, y = three_rows_per_class(5000)
    model = getattr(spinney, name)(**FAST[name]).fit(X, y)
    if name == "AdaBoostClassifier":  # a stump predicts two of the classes
        assert len(np.unique(model.predict(X))) == 2
    else:
        assert model.score(X[:300], y[:300]) > 0.5


@pytest.mark.parametrize("algorithm", ["m1", "real"])
def test_scores_of_many_classes_are_those_of_the_sum_of_trees(algorithm, monkeypatch):
    X, y = three_rows_per_class(40)
    model = spinney.AdaBoostClassifier(n_estimators=4, max_depth=30, algorithm=algorithm, random_state=0).fit(X, y)
    row, explained = X[7].tolist(), model.shap_values(X[:5])
    direct = model.decision_function(X), model.predict_proba(X), model.predict(X), explained.values
    single = model.to_predictor()
    single = single.predict(row), single.predict_proba(row)
    assert "scoring" not in vars(model.adaboost_)
    monkeypatch.setattr(adaboost, "_FEW_SCORES", 40)
    summed = model.decision_function(X), model.predict_proba(X), model.predict(X), model.shap_values(X[:5]).values
    assert "scoring" in vars(model.adaboost_)
    by_trees = model.to_predictor()
    by_trees = by_trees.predict(row), by_trees.predict_proba(row)
    for one, other in zip([*direct, *single], [*summed, *by_trees], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_adaboost_scores_many_classes_in_the_memory_of_its_members():
    """A tree for each class and member takes 5 GB more than the members, which have 10 MB."""
    code = (
        "import resource, numpy as np, spinney\n"
        "rng = np.random.default_rng(0)\n"
        "y = np.repeat(np.arange(500), 3)\n"
        "X = rng.normal(size=(500, 4))[y] + 0.01 * rng.normal(size=(1500, 4))\n"
        "model = spinney.AdaBoostClassifier(n_estimators=5, max_depth=30, n_jobs=1).fit(X, y)\n"
        "size = sum(tree.size * 500 * 8 for tree in model.adaboost_.engine)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "model.predict_proba(X[:300])\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "print(size, after - before)\n"
    )
    size, more = map(int, subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split())
    assert more < 3 * size
