"""Shapley values of boosting that starts from another model: that model is explained too, or refused."""

import numpy as np
import pytest
import spinney
from sklearn.linear_model import LinearRegression

RNG = np.random.default_rng(2)
X = RNG.normal(size=(150, 3))
Y = 3 * X[:, 0] + (X[:, 1] > 0) + RNG.normal(size=150) / 10


def boosted(init):
    return spinney.GradientBoostingRegressor(n_estimators=5, init=init).fit(X, Y)


def test_the_first_model_is_explained_too():
    model = boosted(spinney.RandomForestRegressor(n_estimators=5, random_state=0))
    explained = model.shap_values(X)
    np.testing.assert_allclose(explained.predictions, model.predict(X), rtol=1e-12)
    assert np.ndim(explained.base_value) == 0
    assert explained.base_value == pytest.approx(Y.mean(), abs=0.15)
    assert np.abs(explained.values[:, 0]).mean() > 1.0  # the forest explains most of the first column
    together = model.shap_values(X[:5], interactions=True)
    np.testing.assert_allclose(together.interactions.sum(axis=2), together.values, atol=1e-12)
    background = model.shap_values(X[:5], background=X[:20])
    assert background.base_value == pytest.approx(model.predict(X[:20]).mean())


@pytest.mark.parametrize("init", [LinearRegression(), spinney.LinearRegressor()])
def test_a_first_model_without_contributions_is_refused(init):
    with pytest.raises(ValueError, match="whose contributions of columns are unknown"):
        boosted(init).shap_values(X)


def test_the_scores_of_classes_are_refused():
    model = spinney.GradientBoostingClassifier(n_estimators=3, init=spinney.DecisionTreeClassifier(max_depth=2))
    with pytest.raises(ValueError, match="whose contributions of columns are unknown"):
        model.fit(X, Y > 0).shap_values(X)
