"""Forests whose trees vote."""

import numpy as np
import pytest
import spinney
from oracle.saved import through_bytes
from sklearn.datasets import load_iris

KINDS = [spinney.RandomForestClassifier, spinney.ExtraTreesClassifier]


def rows(n=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)).round(1)
    labels = np.array(["a", "b", "c"])
    return X, labels[np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n), [-0.5, 0.7])]


def votes(trees, X, classes):
    """Return the fraction of the trees that predict each class, counted one by one."""
    found = np.zeros((len(X), len(classes)))
    for tree in trees:
        for i, label in enumerate(tree.predict(X)):
            found[i, list(classes).index(label)] += 1 / len(trees)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameters", [{}, {"min_samples_leaf": 7}, {"max_depth": 2, "ccp_alpha": 0.002}])
def test_trees_of_a_hard_vote_predict_as_before_and_their_votes_are_counted(kind, parameters):
    X, y = rows()
    given = {"n_estimators": 15, "random_state": 1, "shrinkage": None} | parameters
    soft, hard = kind(**given).fit(X, y), kind(voting="hard", **given).fit(X, y)
    new = rows(80, seed=1)[0]
    expected = votes(soft.estimators_, new, soft.classes_)
    np.testing.assert_allclose(hard.predict_proba(new), expected, atol=1e-12)
    assert (hard.predict(new) == hard.classes_[expected.round(9).argmax(axis=1)]).all()
    assert np.abs(soft.predict_proba(new) - expected).max() > 0.01 or not parameters
    for k, staged in enumerate(hard.staged_predict_proba(new), start=1):
        np.testing.assert_allclose(staged, votes(list(soft.estimators_)[:k], new, soft.classes_), atol=1e-12)


def test_out_of_bag_rows_are_voted_on():
    X, y = rows()
    model = spinney.RandomForestClassifier(30, voting="hard", min_samples_leaf=5, oob_score=True, random_state=0)
    model.fit(X, y)
    for i in range(0, len(y), 10):
        trees = [t for t, own in zip(model.estimators_, model.estimators_samples_, strict=True) if i not in own]
        np.testing.assert_allclose(
            model.oob_decision_function_[i], votes(trees, X[i : i + 1], model.classes_)[0], atol=1e-12
        )


def test_each_output_is_voted_on():
    X, y = rows()
    Y = np.column_stack([y, np.where(X[:, 3] > 0, "up", "down")])
    given = {"n_estimators": 9, "max_depth": 2, "random_state": 0, "shrinkage": None}
    soft = spinney.RandomForestClassifier(**given).fit(X, Y)
    hard = spinney.RandomForestClassifier(voting="hard", **given).fit(X, Y)
    for k, proba in enumerate(hard.predict_proba(X)):
        by_tree = np.stack([tree.predict(X)[:, k] for tree in soft.estimators_])
        expected = np.stack([(by_tree == label).mean(axis=0) for label in hard.classes_[k]], axis=1)
        np.testing.assert_allclose(proba, expected, atol=1e-12)


def test_votes_are_not_shrunk_by_default_and_shrunk_before_they_are_cast():
    X, y = load_iris(return_X_y=True)
    model = spinney.RandomForestClassifier(60, voting="hard", random_state=0).fit(X, y)
    assert model.shrinkage_ == 0
    strong = spinney.RandomForestClassifier(60, voting="hard", shrinkage=1e6, random_state=0).fit(X, y)
    assert set(np.unique(np.stack([tree.predict_proba(X) for tree in strong.estimators_]))) == {0.0, 1.0}


def test_a_forest_that_votes_is_saved_and_continued():
    X, y = rows()
    model = spinney.RandomForestClassifier(20, voting="hard", max_depth=3, random_state=0).fit(X, y)
    assert (through_bytes(model).predict_proba(X) == model.predict_proba(X)).all()
    grown = spinney.RandomForestClassifier(8, voting="hard", max_depth=3, random_state=0, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=20).fit(X, y)
    assert grown.fingerprint() == model.fingerprint()


def test_what_needs_probabilities_is_refused():
    X, y = rows()
    model = spinney.RandomForestClassifier(5, voting="hard", cost_matrix=1 - np.eye(3), random_state=0)
    with pytest.raises(ValueError, match="voting='hard' counts the votes of the trees, but cost_matrix needs"):
        model.fit(X, y)
    model.set_params(cost_matrix=None).fit(X, y)
    with pytest.raises(ValueError, match="kind='unbiased' needs the class probabilities of the leaves"):
        model.importances(X, y, "unbiased")
