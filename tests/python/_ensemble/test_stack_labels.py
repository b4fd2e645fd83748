"""Stacking of several labels of 0 and 1: as scikit-learn's for the same folds, members and final estimator."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
import spinney
from sklearn import ensemble
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

X, Y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=3, random_state=0)
FOLDS = KFold(3, shuffle=True, random_state=0)
MEMBERS = [
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ("ridge", RidgeClassifier()),
    ("net", MLPClassifier((5,), max_iter=20, random_state=0)),
]


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("method", ["auto", "predict"])
@pytest.mark.parametrize("passthrough", [False, True])
def test_labels_equal_scikit_learns(method, passthrough):
    options = {"cv": FOLDS, "stack_method": method, "passthrough": passthrough}
    ours = spinney.StackingClassifier(MEMBERS, KNeighborsClassifier(3), **options).fit(X, Y)
    theirs = ensemble.StackingClassifier(MEMBERS, KNeighborsClassifier(3), **options).fit(X, Y)
    assert ours.stack_method_ == theirs.stack_method_
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.predict(X).dtype == Y.dtype
    proba = ours.predict_proba(X)
    assert [one.shape for one in proba] == [(120, 2)] * 3
    np.testing.assert_allclose(np.column_stack([one[:, 0] for one in proba]), theirs.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), proba, atol=1e-12)
    assert ours.score(X, Y) == theirs.score(X, Y)
    assert all(0 < score < 1 for score in ours.oof_scores_.values())


def test_default_final_estimator_and_members_of_spinney():
    y = pd.DataFrame(Y, columns=["red", "green", "blue"]).astype(bool)
    model = spinney.StackingClassifier(["forest", "tree"], random_state=0).fit(X, y)
    assert isinstance(model.final_estimator_, MultiOutputClassifier)
    assert model.predict(X).dtype == bool
    assert model.score(X, y.to_numpy()) > 0.5
    assert model.oof_predictions_.shape == (120, 6)
    assert model.n_classes_ == [2, 2, 2]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    last = list(model.staged_predict(X))[-1]
    np.testing.assert_array_equal(last, model.predict(X))
    with pytest.raises(TypeError, match=r"several labels. Pickle"):
        model.save(io.BytesIO())


def test_weights_members_that_are_fitted_and_layers():
    weight = np.ones(120)
    weight[:20] = 0
    options = {"final_estimator": "forest", "random_state": 0}
    model = spinney.StackingClassifier(["tree"], **options).fit(X, Y, weight)
    assert np.isnan(model.oof_predictions_[:20]).all()
    fitted = [(name, clone(member).fit(X, Y)) for name, member in MEMBERS[:2]]
    prefit = spinney.StackingClassifier(fitted, KNeighborsClassifier(3), cv="prefit").fit(X, Y)
    theirs = ensemble.StackingClassifier(fitted, KNeighborsClassifier(3), cv="prefit").fit(X, Y)
    np.testing.assert_array_equal(prefit.predict(X), theirs.predict(X))
    deep = spinney.StackingClassifier(["tree"], layers=[["forest"]], **options).fit(X, Y)
    assert deep.predict(X).shape == Y.shape


def test_a_label_that_all_rows_have():
    y = Y.copy()
    y[:, 1] = 1
    model = spinney.StackingClassifier(["tree"], KNeighborsClassifier(3), random_state=0).fit(X, y)
    assert (model.predict(X)[:, 1] == 1).all()
    np.testing.assert_array_equal(model.transform(X)[:, 1], 1)
    np.testing.assert_array_equal(model.predict_proba(X)[1], np.tile([0.0, 1.0], (120, 1)))


def test_what_is_refused():
    several = Y + 3 * Y[:, ::-1]
    with pytest.raises(ValueError, match=r"several outputs.*MultiOutputClassifier"):
        spinney.StackingClassifier(["tree"]).fit(X, several)
    with pytest.raises(ValueError, match=r"'greedy' combines one output.*final_estimator"):
        spinney.StackingClassifier(["tree"], "greedy").fit(X, Y)
    with pytest.raises(ValueError, match="refit=False"):
        spinney.StackingClassifier(["tree"], refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="one column per label"):
        spinney.StackingClassifier([("a", _OfOneLabel())], KNeighborsClassifier(3)).fit(X, Y)


class _OfOneLabel(DecisionTreeClassifier):
    def fit(self, X, y):
        return super().fit(X, y[:, 0])
