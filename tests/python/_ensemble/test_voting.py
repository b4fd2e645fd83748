"""Voting: scikit-learn's for the same members, weights, tables."""

import numpy as np
import pytest
import spinney
from every_estimator import CLASSES, PAIR, TABLE, VALUES, WHOLE
from sklearn import ensemble
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import estimator_html_repr

MEMBERS = [
    ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ("line", LogisticRegression()),
    ("deep", DecisionTreeClassifier(random_state=0)),
]


@pytest.mark.parametrize("y", [PAIR, CLASSES], ids=["two", "three"])
@pytest.mark.parametrize("weights", [None, [1, 2, 0.5]])
def test_classes_equal_scikit_learns(y, weights):
    for voting in ("soft", "hard"):
        ours = spinney.VotingClassifier(MEMBERS, voting=voting, weights=weights).fit(WHOLE, y)
        theirs = ensemble.VotingClassifier(MEMBERS, voting=voting, weights=weights).fit(WHOLE, y)
        np.testing.assert_array_equal(ours.predict(WHOLE), theirs.predict(WHOLE))
        predicted = theirs.transform(WHOLE)
        np.testing.assert_allclose(ours.transform(WHOLE), predicted)
        assert len(ours.get_feature_names_out()) == predicted.shape[1]
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
        if voting == "soft":
            np.testing.assert_allclose(ours.predict_proba(WHOLE), theirs.predict_proba(WHOLE))
            ours.flatten_transform = theirs.flatten_transform = False
            np.testing.assert_allclose(ours.transform(WHOLE), theirs.transform(WHOLE))


def test_values_equal_scikit_learns():
    members = [("tree", DecisionTreeRegressor(max_depth=3, random_state=0)), ("line", Ridge())]
    ours = spinney.VotingRegressor(members, weights=[1, 3]).fit(WHOLE, VALUES)
    theirs = ensemble.VotingRegressor(members, weights=[1, 3]).fit(WHOLE, VALUES)
    np.testing.assert_allclose(ours.predict(WHOLE), theirs.predict(WHOLE))
    np.testing.assert_allclose(ours.transform(WHOLE), theirs.transform(WHOLE))


def test_votes_are_counted_where_a_member_has_no_probabilities():
    model = spinney.VotingClassifier([*MEMBERS, ("ridge", RidgeClassifier())]).fit(WHOLE, CLASSES)
    assert set(np.unique(model.predict_proba(WHOLE))) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    with pytest.raises(ValueError, match="'ridge' has no predict_proba"):
        model.set_params(voting="soft").fit(WHOLE, CLASSES)


def test_weights_that_make_no_sense():
    for weights, words in (([1], "must be equal; got 1 weights, 3"), ([0, 0, 0], "not all 0"), ([-1, 1, 1], "least 0")):
        with pytest.raises(ValueError, match=words):
            spinney.VotingClassifier(MEMBERS, weights=weights).fit(WHOLE, PAIR)


def test_default_members_take_any_table():
    model = spinney.VotingClassifier(random_state=0).fit(TABLE, CLASSES)
    assert list(model.named_estimators_) == ["forest", "extra_trees", "boosting", "linear"]
    assert model.score(TABLE, CLASSES) > 0.9
    assert spinney.VotingRegressor(random_state=0).fit(TABLE, VALUES).score(TABLE, VALUES) > 0.8


@pytest.mark.parametrize(
    "model",
    [
        spinney.VotingClassifier(MEMBERS),
        spinney.StackingClassifier(MEMBERS),
        spinney.StackingClassifier(MEMBERS, final_estimator="greedy"),
        spinney.VotingRegressor([("line", Ridge()), ("tree", "forest")]),
    ],
)
def test_diagrams_show_the_members(model):
    diagram = estimator_html_repr(model)
    for name, member in model._members():
        assert name in diagram
        assert type(member).__name__ in diagram
    assert ("final_estimator" in diagram) == isinstance(model, spinney.StackingClassifier)
