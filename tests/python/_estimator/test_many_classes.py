"""Very many classes: the cost grows with rows + classes, or the fit is refused or announced before it begins."""

import numpy as np
import pytest
import spinney
from spinney._estimator import many_classes
from spinney._forest import fitting

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
