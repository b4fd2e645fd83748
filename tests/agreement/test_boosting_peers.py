"""Boosting is as accurate on new rows as scikit-learn's, with the same trees, leaves and learning rate."""

import numpy as np
import pytest
import spinney
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

N_SPLITS = 4


def friedman():
    return make_friedman1(1500, noise=1.0, random_state=0)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):  # scikit-learn's threads wait for each other on a busy machine
        yield


def losses(model, X, y):
    found = []
    for seed in range(N_SPLITS):
        X_fit, X_new, y_fit, y_new = train_test_split(X, y, random_state=seed)
        model.fit(X_fit, y_fit)
        if hasattr(model, "predict_proba"):
            found.append(log_loss(y_new, model.predict_proba(X_new), labels=model.classes_))
        else:
            found.append(np.mean((model.predict(X_new) - y_new) ** 2))
    return np.array(found)


@pytest.mark.parametrize(
    ("load", "is_class"),
    [
        (lambda: load_breast_cancer(return_X_y=True), True),
        (lambda: load_wine(return_X_y=True), True),
        (lambda: load_diabetes(return_X_y=True), False),
        (friedman, False),
    ],
    ids=["cancer", "wine", "diabetes", "friedman"],
)
@pytest.mark.slow
def test_the_loss_is_that_of_scikit_learn_within_noise(load, is_class):
    X, y = load()
    ours = spinney.GradientBoostingClassifier if is_class else spinney.GradientBoostingRegressor
    peer = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    mine = losses(ours(n_estimators=30), X, y)
    # with k classes, hessians here are k / (k - 1) times those there, as scores have one degree of freedom too many
    n_classes = len(np.unique(y)) if is_class else 2
    rate = 0.1 if n_classes == 2 else 0.1 * (n_classes - 1) / n_classes
    theirs = losses(peer(max_iter=30, learning_rate=rate, early_stopping=False), X, y)
    assert mine.mean() < theirs.mean() * 1.05 + theirs.std() / np.sqrt(N_SPLITS)


def test_a_poisson_model_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 3))
    y = rng.poisson(np.exp(1 + X[:, 0] - X[:, 1]))
    ours = spinney.GradientBoostingRegressor("poisson", n_estimators=30).fit(X, y).predict(X)
    peer = HistGradientBoostingRegressor(loss="poisson", max_iter=30, early_stopping=False).fit(X, y).predict(X)
    assert np.corrcoef(ours, peer)[0, 1] > 0.98
    assert ours.mean() == pytest.approx(peer.mean(), rel=0.01)


@pytest.mark.parametrize("weighted", [False, True])
def test_squared_error_is_scikit_learns_boosting(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=300)
    weight = rng.uniform(0.5, 2.0, size=300) if weighted else None
    limits = {"max_depth": 3, "n_estimators": 100}
    theirs = GradientBoostingRegressor(random_state=0, **limits).fit(X, y, weight)
    exact = {"max_leaf_nodes": None, "min_samples_leaf": 1, "max_bins": 65535}
    mine = spinney.GradientBoostingRegressor(**limits, **exact).fit(X, y, weight)
    np.testing.assert_allclose(mine.predict(X), theirs.predict(X), atol=1e-7)
