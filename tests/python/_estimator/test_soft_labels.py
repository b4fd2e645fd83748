"""Soft labels: a probability of each class as the target, against copies of rows with weights."""

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

FEW = {"n_estimators": 5, "random_state": 0}
MODELS = {
    "tree": lambda: spinney.DecisionTreeClassifier(random_state=0),
    "pruned tree": lambda: spinney.DecisionTreeClassifier(prune="cv", random_state=0),
    "entropy tree": lambda: spinney.DecisionTreeClassifier(criterion="entropy", max_depth=3, random_state=0),
    "extra tree": lambda: spinney.ExtraTreeClassifier(random_state=0),
    "forest": lambda: spinney.RandomForestClassifier(**FEW),
    "extra trees": lambda: spinney.ExtraTreesClassifier(**FEW),
    "boosting": lambda: spinney.GradientBoostingClassifier(**FEW),
    "boosting, folds": lambda: spinney.GradientBoostingClassifier(effort=0.1, n_iter_no_change=3, random_state=0),
    "boosting, early stopping": lambda: spinney.GradientBoostingClassifier(**FEW, early_stopping=True),
}
USES_GROUPS = ("pruned tree", "forest", "boosting, folds", "boosting, early stopping")


def table(n=200, n_classes=3, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-1, 1, size=(n, 3))
    score = 2 * np.column_stack([X[:, 0], X[:, 1], np.zeros(n)])[:, :n_classes]
    proba = np.exp(score + random.normal(size=(n, n_classes)) / 2)
    proba[random.uniform(size=proba.shape) < 0.3] = 0.0
    proba[:, -1] += proba.sum(axis=1) == 0
    return X, proba / proba.sum(axis=1, keepdims=True)


def copied(X, y, weight):
    rows, columns = np.nonzero(y.proba)
    return X[rows], y.classes[columns], (weight[:, np.newaxis] * y.proba)[rows, columns], rows


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_soft_labels_are_copies_of_rows_with_weights(name, n_classes):
    X, proba = table(n_classes=n_classes)
    labels, weight = ["b", "a", "c"][:n_classes], np.random.RandomState(1).uniform(0.5, 2.0, len(X))
    y = spinney.SoftLabels(proba, classes=labels)
    model = MODELS[name]().fit(X, y, weight)
    rows, of_rows, weights, groups = copied(X, y, weight)
    more = {"groups": groups} if name in USES_GROUPS else {}
    same = MODELS[name]().fit(rows, of_rows, weights, **more)
    assert model.classes_.tolist() == sorted(labels) == y.classes.tolist()
    assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-12)
    assert model.score(X, y, weight) == pytest.approx(same.score(rows, of_rows, weights))
    entropy = y.cross_entropy(model.predict_proba(X), weight)
    assert entropy == pytest.approx(log_loss(of_rows, model.predict_proba(rows), sample_weight=weights))
    constant = np.tile(np.average(y.proba, axis=0, weights=weight), (len(X), 1))
    if name not in ("tree", "extra tree", "extra trees"):  # their probabilities of 0 have infinite losses
        assert entropy < y.cross_entropy(constant, weight)


@pytest.mark.parametrize("name", MODELS)
def test_certain_labels_are_hard_labels(name):
    X, proba = table()
    hard = np.array(["u", "v", "w"])[proba.argmax(axis=1)]
    certain = spinney.SoftLabels(pd.get_dummies(pd.Series(hard)))
    soft, plain = MODELS[name]().fit(X, certain), MODELS[name]().fit(X, hard)
    assert (soft.predict_proba(X) == plain.predict_proba(X)).all()
    assert soft.score(X, certain) == plain.score(X, hard)


@given(st.lists(st.integers(0, 8), min_size=24, max_size=24), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_quarters_are_repeated_rows(parts, seed):
    counts = np.array(parts).reshape(12, 2) + np.array([1, 0])
    proba = counts / counts.sum(axis=1, keepdims=True)
    if not (proba > 0).any(axis=0).all():
        return
    X = np.random.RandomState(seed).normal(size=(12, 2))
    total = counts.sum(axis=1).astype(float)
    model = spinney.DecisionTreeClassifier(max_depth=3).fit(X, spinney.SoftLabels(proba), total)
    rows, weight = np.repeat(np.arange(12), 2), counts.reshape(-1).astype(float)
    same = spinney.DecisionTreeClassifier(max_depth=3).fit(X[rows], np.tile([0, 1], 12), weight)
    assert_allclose(model.predict_proba(X), same.predict_proba(X), atol=1e-9)


def test_the_leaf_of_all_rows_is_their_mean():
    X, proba = table()
    for model in (
        spinney.DecisionTreeClassifier(min_impurity_decrease=1e9),
        spinney.GradientBoostingClassifier(n_estimators=1, max_leaf_nodes=2, learning_rate=1e-9),
    ):
        found = model.fit(X, spinney.SoftLabels(proba)).predict_proba(X[:1])[0]
        assert_allclose(found, proba.mean(axis=0), rtol=1e-6)


def test_frames_and_validation_sets():
    X, proba = table()
    frame, names = pd.DataFrame(X, columns=["p", "q", "r"]), ["small", "medium", "large"]
    y = spinney.SoftLabels(pd.DataFrame(proba, columns=names))
    assert y.classes.tolist() == sorted(names)
    assert_allclose(y.proba, proba[:, np.argsort(names)])
    assert len(y[:5]) == 5
    assert repr(y) == "<SoftLabels: 200 rows, 3 classes>"
    model = spinney.GradientBoostingClassifier(n_estimators=30, early_stopping=True)
    model.fit(frame[:150], y[:150], X_val=frame[150:], y_val=y[150:])
    found = y[150:].cross_entropy(model.predict_proba(frame[150:]))
    assert min(model.validation_score_) == pytest.approx(found, rel=1e-6)
    one = {"one": frame[150:], "two": frame[100:150]}
    model.fit(frame[:150], y[:150], X_val=one, y_val={"one": y[150:], "two": y[100:150]})
    assert min(model.history_["one loss"]) == pytest.approx(found, rel=1e-6)
    ordered = spinney.GradientBoostingClassifier("ordinal", class_order=names, n_estimators=5).fit(frame, y)
    assert ordered.classes_.tolist() == names


def test_out_of_bag_predictions_are_of_rows():
    X, proba = table()
    y = spinney.SoftLabels(proba)
    model = spinney.RandomForestClassifier(n_estimators=60, oob_score=True, random_state=0).fit(X, y)
    assert model.oob_decision_function_.shape == proba.shape
    known = np.isfinite(model.oob_decision_function_).all(axis=1)
    assert y[known].cross_entropy(model.oob_decision_function_[known]) < y.cross_entropy(np.full(proba.shape, 1 / 3))
    assert 0.3 < model.oob_score_ < 0.9


def test_metrics_by_name_expect_soft_labels():
    from spinney._estimator.metrics import NamedScorer

    X, proba = table()
    y = spinney.SoftLabels(proba)
    model = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, y)
    assert NamedScorer("log_loss")(model, X, y) == pytest.approx(-y.cross_entropy(model.predict_proba(X)))


@pytest.mark.parametrize(
    ("proba", "classes", "sentence"),
    [
        ([[0.5, 0.6]], None, "sum of 1. Row 0"),
        ([[0.5, 0.5], [1.5, -0.5]], None, "sum of 1. Row 1"),
        ([[0.5, np.nan]], None, "sum of 1. Row 0"),
        ([[1.0, 0.0]], None, "class 1 has probability 0 in every row"),
        ([[0.5, 0.5]], ["a"], "a different label for each of the 2 columns"),
        ([[0.5, 0.5]], ["a", "a"], "a different label"),
        ([[1.0]], None, "a column per class"),
        ([0.5, 0.5], None, "a column per class"),
    ],
)
def test_impossible_soft_labels_are_refused(proba, classes, sentence):
    with pytest.raises(ValueError, match=sentence):
        spinney.SoftLabels(proba, classes)


@pytest.mark.parametrize("name", ["AdaBoostClassifier", "BaggingClassifier", "LinearClassifier", "SVC"])
def test_other_classifiers_learn_soft_labels(name):
    X, proba = table(n_classes=2)
    y = spinney.SoftLabels(proba)
    rows, labels, weight, _ = copied(X, y, np.ones(len(X)))
    model = getattr(spinney, name)().fit(X, y)
    assert model.score(X, y) == pytest.approx(model.score(rows, labels, weight))
    assert model.score(X, y) > np.average(labels == 1, weights=weight)


def test_what_cannot_learn_soft_labels_is_refused():
    X, proba = table()
    y = spinney.SoftLabels(proba)
    with pytest.raises(TypeError, match="SoftLabels are for classifiers, and DecisionTreeRegressor is none"):
        spinney.DecisionTreeRegressor().fit(X, y)
    with pytest.raises(TypeError, match="SoftLabels are probabilities of classes"):
        np.asarray(y)
    with pytest.raises(ValueError, match="X has 199 rows, and y has 200"):
        spinney.DecisionTreeClassifier().fit(X[:-1], y)
    with pytest.raises(ValueError, match="some copies of a row"):
        spinney.DecisionTreeClassifier(validation_fraction=0.2, prune="validation").fit(X, y)
    with pytest.raises(ValueError, match="it needs"):
        y.cross_entropy(proba[:, :2])
