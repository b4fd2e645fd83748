"""scikit-learn's partial dependence by recursion, and the initial estimator of boosting."""

import io

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree
import spinney
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import PartialDependenceDisplay, partial_dependence
from sklearn.linear_model import LinearRegression


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X, y


@pytest.mark.parametrize("features", [[2], [2, 8], [1, 2, 8]])
def test_recursion_in_a_tree_is_that_of_scikit_learn(diabetes, features):
    model = spinney.DecisionTreeRegressor(max_depth=4).fit(*diabetes)
    peer = sklearn.tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(*diabetes)
    given = {"features": features, "grid_resolution": 9}
    found = partial_dependence(model, diabetes[0], **given)["average"]  # "auto" is recursion, as in scikit-learn
    expected = partial_dependence(peer, diabetes[0], method="recursion", **given)["average"]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        spinney.RandomForestRegressor(10, random_state=0),
        spinney.ExtraTreeRegressor(random_state=0),
        spinney.GradientBoostingRegressor(n_estimators=20),
        spinney.GradientBoostingRegressor(),  # linear leaves
    ],
)
def test_recursion_is_that_of_our_partial_dependence(diabetes, model):
    X, y = diabetes
    model.fit(X, y)
    found = partial_dependence(model, X, [2], method="recursion", grid_resolution=9)
    own = spinney.partial_dependence(model, X, 2, method="recursion", grid=found["grid_values"][0])
    np.testing.assert_allclose(found["average"][0], own.average, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_recursion_averages_the_scores_of_boosted_classes(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[: 50 * n_classes], y[: 50 * n_classes]
    model = spinney.GradientBoostingClassifier(n_estimators=5, init=None).fit(X[:, :1], y)
    found = partial_dependence(model, X[:, :1], [0])["average"]  # "auto" is recursion if init is None
    grid = partial_dependence(model, X[:, :1], [0])["grid_values"][0]
    scores = model.decision_function(grid[:, np.newaxis])
    np.testing.assert_allclose(found, scores.T.reshape(len(found), -1), rtol=1e-9)


def test_boosting_is_averaged_over_rows_by_default(diabetes):
    X, y = diabetes
    model = spinney.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    default, brute = (partial_dependence(model, X, [2], method=how)["average"] for how in ("auto", "brute"))
    np.testing.assert_array_equal(default, brute)


def test_recursion_on_columns_of_a_frame_with_categories(diabetes):
    X, y = diabetes
    frame = pd.DataFrame(X[:, 2:4], columns=["bmi", "bp"]).assign(town=np.where(X[:, 0] > 0, "Ely", "Rye"))
    model = spinney.RandomForestRegressor(5, random_state=0).fit(frame, y)
    found = partial_dependence(model, frame, ["town"], categorical_features=["town"])
    own = spinney.partial_dependence(model, frame, "town", method="recursion")
    np.testing.assert_allclose(found["average"][0], own.average, rtol=1e-12)
    PartialDependenceDisplay.from_estimator(model, frame, ["bmi", ("bmi", "bp")], grid_resolution=5)


def test_models_without_means_by_weight_name_the_other_method(diabetes):
    X, y = diabetes[0].copy(), diabetes[1]
    X[::3, 8] = X[1::3, 2] = np.nan
    for model in (
        spinney.GradientBoostingRegressor(n_estimators=3, init=spinney.LinearRegressor()),
        spinney.DecisionTreeRegressor(max_depth=3, missing="surrogate"),
    ):
        with pytest.raises(ValueError, match=r"Use method='brute'\."):
            partial_dependence(model.fit(X, y), X, [3], method="recursion")
        assert np.isfinite(partial_dependence(model, X, [3], method="brute")["average"]).all()


# ---- init_ ------------------------------------------------------------------------------------------------------


def test_the_initial_estimator_predicts_the_start(diabetes):
    X, y = diabetes
    model = spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y)
    peer = sklearn.ensemble.GradientBoostingRegressor(n_estimators=3).fit(X, y)
    np.testing.assert_allclose(model.init_.predict(X), peer.init_.predict(X), rtol=1e-12)
    assert (
        model.predict(X[:2]).tolist()
        == spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y).predict(X[:2]).tolist()
    )
    X, y = load_iris(return_X_y=True)
    X, y = X[20:], y[20:]
    for labels in (y, y == 0):
        model = spinney.GradientBoostingClassifier(n_estimators=3).fit(X, labels)
        peer = sklearn.ensemble.GradientBoostingClassifier(n_estimators=3).fit(X, labels)
        np.testing.assert_allclose(model.init_.predict_proba(X), peer.init_.predict_proba(X), rtol=1e-12)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    np.testing.assert_array_equal(spinney.load(file).init_.predict_proba(X), model.init_.predict_proba(X))


def test_other_initial_estimators(diabetes):
    X, y = diabetes
    assert spinney.GradientBoostingRegressor(n_estimators=3, init="zero").fit(X, y).init_ == "zero"
    own = spinney.GradientBoostingRegressor(n_estimators=3, init=LinearRegression()).fit(X, y)
    assert isinstance(own.init_, LinearRegression)
    again = own.set_params(init="constant").fit(X, y)
    assert again.init_.predict(X[:1]) == pytest.approx(y.mean())
    levels = spinney.GradientBoostingRegressor(n_estimators=3, loss="quantile", quantile=[0.1, 0.9]).fit(X, y)
    assert levels.init_.predict(X[:2]).shape == (2, 2)
    several = spinney.GradientBoostingClassifier(n_estimators=3).fit(X, np.column_stack([y > 100, y > 200]))
    assert not hasattr(several, "init_")
    assert not hasattr(spinney.GradientBoostingRegressor(), "init_")
