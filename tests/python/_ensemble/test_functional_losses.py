"""Losses of the margin, and the score before the first round."""

import numpy as np
import pytest
import spinney
from numpy.testing import assert_allclose
from spinney.datasets import make_diagonal, make_xor
from spinney.teaching import margin_losses

NAMES = {"hinge": "hinge", "squared_hinge": "squared hinge", "squared_error": "squared"}


@pytest.mark.parametrize("loss", NAMES)
def test_reported_losses_are_means_of_the_margin_loss(loss):
    X, y = make_diagonal(150, noise=0.1, random_state=0)
    model = spinney.FunctionalBoostingClassifier("linear_pairs", loss=loss, n_estimators=30).fit(X, y)
    f = model.decision_function(X)
    assert model.train_score_[-1] == pytest.approx(np.mean(margin_losses[NAMES[loss]](y * f)))
    assert (np.diff(model.train_score_) <= 1e-12).all()
    assert model.score(X, y) > 0.8


def test_the_squared_error_of_classes_is_a_regression_of_their_signs():
    X, y = make_xor(200, noise=0.1, random_state=0)
    model = spinney.FunctionalBoostingClassifier("trees", loss="squared_error", n_estimators=10).fit(X, y)
    peer = spinney.FunctionalBoostingRegressor("trees", n_estimators=10).fit(X, y.astype(float))
    assert_allclose(model.decision_function(X), peer.predict(X), rtol=1e-6, atol=1e-9)


def test_rounds_start_at_init():
    X, y = make_diagonal(100, random_state=0)
    values = X[:, 0] + 5
    for init, start in ((None, values.mean()), (0.0, 0.0), (7.5, 7.5)):
        model = spinney.FunctionalBoostingRegressor("stumps", n_estimators=1, learning_rate=1e-9, init=init)
        assert_allclose(model.fit(X, values).predict(X), start, atol=1e-6)
    classifier = spinney.FunctionalBoostingClassifier("stumps", n_estimators=1, learning_rate=1e-9, init=1.25)
    assert_allclose(classifier.fit(X, y).decision_function(X), 1.25, atol=1e-6)


def test_losses_of_the_margin_need_two_classes():
    X, y = spinney.datasets.load_penguins()
    with pytest.raises(ValueError, match="loss='hinge' is for two classes; y has 3"):
        spinney.FunctionalBoostingClassifier(loss="hinge").fit(X, y)


def test_a_model_of_a_margin_loss_can_be_saved(tmp_path):
    X, y = make_diagonal(100, noise=0.1, random_state=0)
    model = spinney.FunctionalBoostingClassifier("stumps", loss="hinge", init=0.0, n_estimators=5).fit(X, y)
    model.save(tmp_path / "hinge.spinney")
    loaded = spinney.load(tmp_path / "hinge.spinney")
    assert (loaded.loss, loaded.init) == ("hinge", 0.0)
    assert_allclose(loaded.decision_function(X), model.decision_function(X))
