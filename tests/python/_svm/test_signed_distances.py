"""Signed distances from separating hyperplanes, in the units of the columns."""

import numpy as np
import pytest
import spinney
from numpy.testing import assert_allclose

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)) * [1.0, 50.0] + [3.0, -100.0]
SIDE = np.where(X[:, 0] + X[:, 1] / 50 > 1.0, "right", "left")
MODELS = {
    "perceptron": spinney.Perceptron(tol=1e-3),
    "perceptron, scaled": spinney.Perceptron(scale="standard"),
    "LinearSVC": spinney.LinearSVC(scale="standard"),
    "SVC": spinney.SVC(kernel="linear", scale="standard", C=10.0),
    "NuSVC": spinney.NuSVC(kernel="linear", nu=0.2, scale="range"),
}


@pytest.mark.parametrize("name", MODELS)
def test_moving_a_row_by_its_distance_along_the_normal_puts_it_on_the_plane(name):
    model = MODELS[name].fit(X, SIDE)
    distance = model.signed_distances(X)
    assert distance.shape == (60,)
    assert ((distance > 0) == (model.predict(X) == "right")).all()
    normal = model.coef_[0] / np.linalg.norm(model.coef_[0])
    assert_allclose(model.signed_distances(X - distance[:, None] * normal), 0.0, atol=1e-9 * np.abs(distance).max())
    assert_allclose(distance, (X @ model.coef_[0] + model.intercept_[0]) / np.linalg.norm(model.coef_[0]))


@pytest.mark.parametrize("kind", [spinney.LinearSVC, spinney.Perceptron, spinney.SVC])
def test_there_is_a_column_for_each_hyperplane(kind):
    three = RNG.integers(0, 4, 60)
    options = {"kernel": "linear"} if kind is spinney.SVC else {"tol": 1e-3}
    model = kind(**options).fit(X / 50, three)
    distance = model.signed_distances(X / 50)
    assert distance.shape == (60, 6 if kind is spinney.SVC else 4)
    expected = (X / 50 @ model.coef_.T + model.intercept_) / np.linalg.norm(model.coef_, axis=1)
    assert_allclose(distance, expected, atol=1e-9)


def test_other_models_have_none():
    for model, reason in (
        (spinney.SVC(), "needs kernel='linear'"),
        (spinney.SVR(kernel="linear"), "needs classes"),
        (spinney.LinearSVR(), "needs classes"),
    ):
        assert not hasattr(model, "signed_distances")
        with pytest.raises(AttributeError, match=reason):
            model.signed_distances(X)
    flat = spinney.LinearSVC().fit(np.zeros((4, 1)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="nothing has a distance"):
        flat.signed_distances(np.zeros((4, 1)))
