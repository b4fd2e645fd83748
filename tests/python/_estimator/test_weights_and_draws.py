"""What weights do to the draws of forests and bagging, and what a warm start may not change."""

import numpy as np
import pandas as pd
import pytest
import spinney
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

RANDOM = np.random.default_rng(0)
X = np.round(RANDOM.normal(size=(300, 4)), 1)
VALUES = X[:, 0] + RANDOM.normal(size=300)
CLASSES = np.digitize(VALUES, [-0.5, 0.5])
WHOLE = RANDOM.integers(1, 10, size=300).astype(float)
ANY = RANDOM.uniform(0.2, 3.0, size=300)
FLOWERS, SPECIES = load_iris(return_X_y=True)

FORESTS = {
    "values": (spinney.RandomForestRegressor(), VALUES),
    "counts of events": (spinney.RandomForestRegressor(criterion="poisson"), np.abs(VALUES)),
    "classes": (spinney.RandomForestClassifier(), CLASSES),
    "entropy": (spinney.RandomForestClassifier(criterion="entropy"), CLASSES),
    "class weights": (spinney.RandomForestClassifier(class_weight={0: 1, 1: 3, 2: 7}), CLASSES),
    "balanced": (spinney.RandomForestClassifier(class_weight="balanced", criterion="entropy"), CLASSES),
    "balanced samples": (spinney.RandomForestClassifier(class_weight="balanced_subsample"), CLASSES),
    "extra-trees": (spinney.ExtraTreesRegressor(), VALUES),
    "extra-trees, drawn": (spinney.ExtraTreesClassifier(bootstrap=True), CLASSES),
    "shrinkage": (spinney.RandomForestRegressor(shrinkage=2.0), VALUES),
    "bagging": (spinney.BaggingRegressor(), VALUES),
    "bagging of classes": (spinney.BaggingClassifier(stratified=True), CLASSES),
    "isolation": (spinney.IsolationForest(), None),
}


@pytest.mark.parametrize("weight", [WHOLE, ANY], ids=["whole", "any"])
@pytest.mark.parametrize("name", FORESTS)
def test_the_unit_of_the_weights_does_not_matter(name, weight):
    model, y = FORESTS[name]
    model.set_params(n_estimators=6, random_state=1)
    prints = {model.fit(X, y, sample_weight=scale * weight).fingerprint() for scale in (1.0, 2.0, 0.5)}
    assert len(prints) == 1


def with_rows_of_no_weight(y, weight):
    """The table with rows of weight 0 among the others, beyond their values and with a value missing."""
    random = np.random.default_rng(3)
    at = np.sort(random.integers(len(X) + 1, size=60))
    others = np.round(3 * random.normal(size=(60, X.shape[1])), 1)
    others[0, 2] = np.nan
    more_y = None if y is None else np.insert(y, at, random.choice(y, size=60))
    return np.insert(X, at, others, axis=0), more_y, np.insert(weight, at, 0.0)


@pytest.mark.parametrize("name", FORESTS)
def test_rows_of_weight_0_change_nothing(name):
    model, y = FORESTS[name]
    model.set_params(n_estimators=6, random_state=1)
    guess = "score_samples" if y is None else "predict_proba" if y is CLASSES else "predict"
    for weight in (WHOLE, ANY):
        table, target, weights = with_rows_of_no_weight(y, weight)
        found = [getattr(model.fit(*some), guess)(X) for some in ((X, y, weight), (table, target, weights))]
        np.testing.assert_array_equal(*found)


def test_weights_that_are_multiples_of_the_smallest_are_rows_in_any_unit():
    forest = spinney.RandomForestRegressor(6, random_state=1)
    wanted = forest.fit(X.repeat(WHOLE.astype(int), axis=0), VALUES.repeat(WHOLE.astype(int))).predict(X)
    for scale in (1.0, 10.0, 0.1, 1 / WHOLE.sum()):
        np.testing.assert_array_equal(forest.fit(X, VALUES, scale * WHOLE).predict(X), wanted)


def test_large_weights_that_are_alike_leave_rows_out_of_bag():
    weight = np.where(X[:, 0] > 0, 7.0, 5.0)  # no multiples of each other: not five rows each
    forest = spinney.RandomForestRegressor(30, oob_score=True, random_state=1).fit(X, VALUES, weight)
    assert 0.55 < np.mean([np.mean(forest._draws.counts(t) > 0) for t in range(30)]) < 0.7


HEAVY = np.where(np.arange(150) % 2, 9.0, 1.0)


class Plain(spinney.DecisionTreeClassifier):
    """A tree whose fit has no sample_weight."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.parametrize(
    "member",
    [None, spinney.DecisionTreeClassifier(missing="surrogate"), KNeighborsClassifier(1), Plain(),
     make_pipeline(StandardScaler(), KNeighborsClassifier(1))],
    ids=["default", "tree", "neighbours", "plain", "pipeline"],
)  # fmt: skip
def test_bagging_draws_by_weight_whatever_the_member(member):
    model = spinney.BaggingClassifier(member, 40, random_state=0).fit(FLOWERS, SPECIES, HEAVY)
    drawn = np.concatenate(model.estimators_samples_)
    assert 0.87 < np.mean(HEAVY[drawn] == 9) < 0.93
    if member is None:  # and no more than that: the weights are in the sample
        assert {tree.tree_.weighted_n_node_samples[0] for tree in model.estimators_} == {150.0}


def test_without_weights_a_tree_that_takes_none_is_bagged():
    model = spinney.BaggingClassifier(Plain(), 5, random_state=0).fit(FLOWERS, SPECIES)
    assert model.score(FLOWERS, SPECIES) > 0.9


def test_members_that_get_all_rows_get_the_weights():
    model = spinney.BaggingClassifier(None, 2, bootstrap=False, random_state=0).fit(FLOWERS, SPECIES, HEAVY)
    assert {tree.tree_.weighted_n_node_samples[0] for tree in model.estimators_} == {HEAVY.sum()}


def test_heavy_rows_come_first_without_replacement():
    model = spinney.BaggingClassifier(None, 30, bootstrap=False, max_samples=0.3, random_state=0)
    model.fit(FLOWERS, SPECIES, HEAVY)
    assert np.mean(HEAVY[np.concatenate(model.estimators_samples_)] == 9) > 0.75


def test_importances_of_bagging_are_shares():
    noise = np.random.default_rng(1).normal(size=(60, 3))
    y = np.r_[np.zeros(57), np.ones(3)].astype(int)  # some samples hold one class: their trees have no split
    model = spinney.BaggingClassifier(spinney.DecisionTreeClassifier(), 40, random_state=0).fit(noise, y)
    assert any(tree.get_n_leaves() == 1 for tree in model.estimators_)
    assert model.feature_importances_.sum() == pytest.approx(1)
    stumps = spinney.BaggingClassifier(None, 3, random_state=0).fit(np.ones((60, 3)), y)
    np.testing.assert_array_equal(stumps.feature_importances_, np.zeros(3))


GOES_ON = {
    "bagging": spinney.BaggingClassifier(n_estimators=3, warm_start=True, random_state=0),
    "forest": spinney.RandomForestClassifier(n_estimators=3, warm_start=True, random_state=0),
    "boosting": spinney.GradientBoostingClassifier(n_estimators=3, warm_start=True, random_state=0),
}


@pytest.mark.parametrize(
    "labels", [SPECIES + 1, np.minimum(SPECIES, 1), SPECIES.astype(str)], ids=["more", "few", "text"]
)
@pytest.mark.parametrize("name", GOES_ON)
def test_a_warm_start_keeps_the_classes(name, labels):
    model = GOES_ON[name].set_params(n_estimators=3, warm_start=False).fit(FLOWERS, SPECIES)
    model.set_params(n_estimators=5, warm_start=True)
    with pytest.raises(
        ValueError, match=r"^warm_start needs the classes and outputs of the earlier fit\. Set warm_start=F"
    ):
        model.fit(FLOWERS, labels)
    assert model.score(FLOWERS, SPECIES) > 0.9  # the fitted model stays


@pytest.mark.parametrize("name", GOES_ON)
def test_a_warm_start_keeps_the_kind_of_the_classes(name):
    two = SPECIES == 0
    model = GOES_ON[name].set_params(n_estimators=3, warm_start=False).fit(FLOWERS, two)
    with pytest.raises(ValueError, match="warm_start needs the classes"):
        model.set_params(n_estimators=5, warm_start=True).fit(FLOWERS, two.astype(int))


@pytest.mark.parametrize("kind", [spinney.BaggingRegressor, spinney.RandomForestRegressor])
def test_a_warm_start_keeps_the_number_of_outputs(kind):
    model = kind(n_estimators=3, warm_start=True, random_state=0).fit(X, VALUES)
    with pytest.raises(ValueError, match="warm_start needs the classes and outputs"):
        model.set_params(n_estimators=5).fit(X, np.column_stack([VALUES, VALUES]))


def test_a_warm_start_of_bagging_matches_columns_by_name():
    frame = pd.DataFrame(FLOWERS, columns=["a", "b", "c", "d"])
    one = spinney.BaggingClassifier(n_estimators=6, random_state=0).fit(frame, SPECIES)
    model = spinney.BaggingClassifier(n_estimators=3, warm_start=True, random_state=0).fit(frame, SPECIES)
    model.set_params(n_estimators=6).fit(frame[["d", "c", "b", "a"]], SPECIES)
    assert model.fingerprint() == one.fingerprint()
    with pytest.raises(ValueError, match="yet now missing"):
        model.set_params(n_estimators=8).fit(frame.rename(columns={"a": "e"}), SPECIES)


def test_a_warm_start_of_bagging_has_the_same_out_of_bag_rows():
    model = spinney.BaggingClassifier(n_estimators=50, warm_start=True, oob_score=True, random_state=0)
    model.fit(FLOWERS, SPECIES)
    with pytest.raises(ValueError, match="X is not what the ensemble was fitted on"):
        model.set_params(n_estimators=55).fit(FLOWERS[::-1], SPECIES[::-1])


def test_the_out_of_bag_score_of_several_outputs_is_what_score_computes():
    both = np.column_stack([CLASSES > 0, X[:, 1] > 0]).astype(int)
    forest = spinney.RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, both, ANY)
    predicted = np.column_stack([shares.argmax(axis=1) for shares in forest.oob_decision_function_])
    scored = ~np.isnan(forest.oob_decision_function_[0][:, 0])
    wanted = accuracy_score(both[scored], predicted[scored], sample_weight=ANY[scored])
    assert forest.oob_score_ == pytest.approx(wanted)
    assert forest.oob_score_ < 1 - forest.oob_curve_[-1]  # whose error is by output
