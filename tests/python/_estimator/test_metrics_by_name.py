"""Metrics by name in estimators: the same names as in `compare` and `study`, and errors that name the remedy."""

from __future__ import annotations

import numpy as np
import pytest
import spinney
from sklearn.metrics import get_scorer, log_loss, roc_auc_score

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(240, 3))
NUMBERS = X[:, 0] + 0.5 * RANDOM.normal(size=240)
BINARY = (NUMBERS > 0.5).astype(int)
WORDS = np.where(BINARY == 1, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(NUMBERS, [-0.5, 0.5])]
CLASSIFIERS = {
    "scoring of boosting": lambda name, y: spinney.GradientBoostingClassifier(
        n_estimators=3, scoring=name, early_stopping=True
    ).fit(X, y),
    "scoring of AdaBoost": lambda name, y: spinney.AdaBoostClassifier(
        n_estimators=3, scoring=name, early_stopping=True
    ).fit(X, y),
    "scoring of a tree": lambda name, y: spinney.DecisionTreeClassifier(prune="cv", cv=3, scoring=name).fit(X, y),
    "scoring of k-NN": lambda name, y: spinney.KNeighborsClassifier(n_neighbors="cv", cv=3, scoring=name).fit(X, y),
    "oob_score of a forest": lambda name, y: spinney.RandomForestClassifier(n_estimators=40, oob_score=name).fit(X, y),
    "oob_score of bagging": lambda name, y: spinney.BaggingClassifier(n_estimators=40, oob_score=name).fit(X, y),
    "permutation importance": lambda name, y: spinney.permutation_importance(
        spinney.DecisionTreeClassifier(max_depth=2).fit(X, y), X, y, scoring=name
    ),
}
REGRESSORS = {
    "scoring of boosting": lambda name: spinney.GradientBoostingRegressor(
        n_estimators=3, scoring=name, early_stopping=True
    ).fit(X, NUMBERS),
    "scoring of a tree": lambda name: spinney.DecisionTreeRegressor(prune="cv", cv=3, scoring=name).fit(X, NUMBERS),
    "oob_score of a forest": lambda name: spinney.RandomForestRegressor(n_estimators=40, oob_score=name).fit(
        X, NUMBERS
    ),
}


@pytest.mark.parametrize("where", CLASSIFIERS)
@pytest.mark.parametrize("y", [BINARY, WORDS, THREE], ids=["binary", "words", "three"])
def test_classifiers_take_short_names(where, y):
    for name in ("auc", "log_loss", "accuracy"):
        found = CLASSIFIERS[where](name, y)
        if where == "permutation importance":
            assert np.argmax(found.importance) == 0
        else:
            assert found.score(X, y) >= np.unique(y, return_counts=True)[1].max() / len(y)


@pytest.mark.parametrize("where", CLASSIFIERS)
def test_metrics_of_numbers_are_refused_for_labels(where):
    with pytest.raises(ValueError, match=r"The metric 'rmse' evaluates numbers.* classes 'no', 'yes'\. Try 'log_loss'"):
        CLASSIFIERS[where]("rmse", WORDS)


@pytest.mark.parametrize("where", REGRESSORS)
def test_metrics_of_classes_are_refused_for_numbers(where):
    REGRESSORS[where]("rmse")
    with pytest.raises(ValueError, match=r"The metric 'auc' evaluates classes, but the target is numeric\. Try 'rmse'"):
        REGRESSORS[where]("auc")


def test_short_names_give_the_scores_of_scikit_learn():
    forest = spinney.RandomForestClassifier(n_estimators=30, oob_score="auc", random_state=0).fit(X, WORDS)
    assert forest.oob_score_ == roc_auc_score(WORDS, forest.oob_decision_function_[:, 1])
    forest.set_params(oob_score="log_loss").fit(X, WORDS)
    assert forest.oob_score_ == pytest.approx(-log_loss(WORDS, forest.oob_decision_function_), rel=1e-9)
    tree = spinney.DecisionTreeClassifier(max_depth=2).fit(X, BINARY)
    for short, name in {"auc": "roc_auc", "f1": "f1", "average precision": "average_precision", "r2": "r2"}.items():
        found = spinney.permutation_importance(tree, X, BINARY, scoring=short)
        theirs = spinney.permutation_importance(tree, X, BINARY, scoring=get_scorer(name))
        assert np.array_equal(found.importance, theirs.importance)


def test_a_metric_of_one_class_needs_to_know_it():
    CLASSIFIERS["scoring of a tree"]("f1", BINARY)
    with pytest.raises(ValueError, match=r"'f1' evaluates one class.* 'no' and 'yes'\. Use the labels 0 and 1, or"):
        CLASSIFIERS["scoring of boosting"]("f1", WORDS)


def test_an_unknown_metric_is_refused_with_similar_names():
    with pytest.raises(ValueError, match=r"There is no metric 'acuracy'\. Did you mean"):
        spinney.GradientBoostingClassifier(scoring="acuracy").fit(X, WORDS)


def test_a_metric_of_probabilities_names_the_model_without_them():
    model = spinney.SVC().fit(X, WORDS)
    with pytest.raises(ValueError, match=r"'log_loss' needs probabilities, and SVC has no predict_proba\. Use another"):
        spinney.permutation_importance(model, X, WORDS, scoring="log_loss")
    found = spinney.compare(["svm"], X, WORDS, scoring="log_loss", repeats=1, cv=2)
    assert "needs probabilities" in found.errors["svm"]
