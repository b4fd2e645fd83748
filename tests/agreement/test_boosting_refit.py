"""Refitted leaves agree with LightGBM's `refit`, on the same trees."""

import numpy as np
import pytest
import spinney

lightgbm = pytest.importorskip("lightgbm")


@pytest.mark.parametrize(("decay", "l2"), [(0.9, 0.0), (0.3, 4.0), (0.0, 0.0)])
@pytest.mark.parametrize("task", ["values", "two classes"])
def test_refit_is_that_of_lightgbm(task, decay, l2):
    """All leaves have rows. LightGBM reads the learning rate from the file, where spinney writes 1."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=500)
    new = y + np.where(X[:, 0] > 0, 1.0, -0.5)
    kind = spinney.GradientBoostingRegressor
    if task == "two classes":
        kind, y, new = spinney.GradientBoostingClassifier, (y > 0).astype(int), (new > 0.3).astype(int)
    options = {
        "n_estimators": 6,
        "max_leaf_nodes": 6,
        "learning_rate": 1.0,
        "init": "zero",
        "regularization": {"max_step": None},
    }
    model = kind(**options, l2_regularization=l2).fit(X, y)
    objective = "binary" if task == "two classes" else "regression"
    parameters = {"objective": objective, "lambda_l2": l2, "boost_from_average": False, "verbosity": -1}
    peer = lightgbm.Booster(model_str=spinney.to_lightgbm(model))
    peer.params = parameters
    theirs = peer.refit(X, new, decay_rate=decay).predict(X, raw_score=True)
    ours = model.refit(X, new, decay=decay)._scores(X, None)[:, 0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
