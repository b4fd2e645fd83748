"""Metrics of nearest neighbours: the names and parameters of scikit-learn."""

import io

import numpy as np
import pytest
import spinney
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier as PeerClassifier
from sklearn.neighbors import KNeighborsRegressor as PeerRegressor


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.RandomState(0)
    X = rng.randn(200, 4) * [1, 10, 0.1, 3] + [5, 0, 0, 1]
    classes = np.array(["a", "b", "c"])[(X[:, 0] + X[:, 1] / 10 > 5).astype(int) + (X[:, 2] > 0.05)]
    return X, classes, X[:, 0] + np.sin(X[:, 3])


def test_defaults_give_the_neighbours_of_scikit_learn(numbers):
    X, y, values = numbers
    X = X * [1.0, 10.0, 100.0, 0.1]
    peer = PeerClassifier().fit(X, y)
    model = spinney.KNeighborsClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), peer.predict_proba(X))
    np.testing.assert_allclose(model.kneighbors(X)[0], peer.kneighbors(X)[0])
    np.testing.assert_allclose(
        spinney.KNeighborsRegressor().fit(X, values).predict(X), PeerRegressor().fit(X, values).predict(X)
    )


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_the_default_metric_uses_p(numbers, p):
    X, y, _ = numbers
    found = spinney.KNeighborsClassifier(4, p=p).fit(X, y).kneighbors(X)
    wanted = PeerClassifier(4, p=p).fit(X, y).kneighbors(X)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("l1", "manhattan"),
        ("cityblock", "manhattan"),
        ("l2", "euclidean"),
        ("infinity", "chebyshev"),
    ],
)
def test_other_names_of_metrics(numbers, name, metric):
    X, y, _ = numbers
    assert spinney.KNeighborsClassifier(metric=name).fit(X, y).metric_ == metric


def test_precomputed_distances(numbers):
    X, y, values = numbers
    train, new = X[:120], X[120:]
    within, across = cdist(train, train), cdist(new, train)
    weight = np.where(np.arange(120) % 7, 1.0, 0.0)
    for own in (None, weight):
        known = spinney.KNeighborsClassifier(5, weights="distance").fit(train, y[:120], own)
        model = spinney.KNeighborsClassifier(5, weights="distance", metric="precomputed").fit(within, y[:120], own)
        np.testing.assert_allclose(model.predict_proba(across), known.predict_proba(new))
        np.testing.assert_array_equal(model.kneighbors(across)[1], known.kneighbors(new)[1])
        np.testing.assert_array_equal(model.kneighbors()[1], known.kneighbors()[1])
        file = io.BytesIO()
        model.save(file)
        loaded = spinney.load(io.BytesIO(file.getvalue()))
        np.testing.assert_array_equal(loaded.predict(across), model.predict(across))
    plain = spinney.KNeighborsRegressor("cv", cv=4, random_state=0).fit(train, values[:120])
    matrix = clone(plain).set_params(metric="precomputed").fit(within, values[:120])
    np.testing.assert_allclose(matrix.cv_results_["error"], plain.cv_results_["error"])
    scores = cross_val_score(spinney.KNeighborsRegressor(metric="precomputed"), within, values[:120])
    np.testing.assert_allclose(scores, cross_val_score(spinney.KNeighborsRegressor(), train, values[:120]))
    with pytest.raises(ValueError, match="needs a square matrix"):
        model.fit(across, y[120:])
    for use in (lambda: model.fit(csr_array(within), y[:120]), lambda: model.predict(csr_array(across))):
        with pytest.raises(TypeError, match="metric='precomputed' does not support sparse"):
            use()
    within[2, 3] = -1
    with pytest.raises(ValueError, match="finite distances of at least 0, but X has -1 in row 2, column 3"):
        model.fit(within, y[:120])


@pytest.mark.parametrize(
    ("metric", "params", "peer_params"),
    [
        ("minkowski", {"p": 3}, {"p": 3}),
        ("minkowski", {"w": [1.0, 0.5, 4.0, 0.0]}, {"p": 2, "w": [1.0, 0.5, 4.0, 0.0]}),
        ("minkowski", {"p": 1.5, "w": [1.0, 0.5, 4.0, 2.0]}, {"p": 1.5, "w": [1.0, 0.5, 4.0, 2.0]}),
        ("seuclidean", {"V": [1.0, 0.5, 4.0, 2.0]}, {"V": [1.0, 0.5, 4.0, 2.0]}),
        ("seuclidean", None, {}),
        ("mahalanobis", {"V": "covariance"}, {"VI": "inverse"}),
        ("mahalanobis", {"VI": "inverse"}, {"VI": "inverse"}),
        ("sqeuclidean", None, {}),
        ("correlation", None, {}),
    ],
)
def test_parameters_of_metrics_mean_the_same_as_in_scikit_learn(numbers, metric, params, peer_params):
    X, y, _ = numbers
    covariance = np.cov(X[:, ::-1].T) + np.eye(4)
    matrices = {"covariance": covariance, "inverse": np.linalg.inv(covariance)}

    def of(given):
        return {name: matrices[value] if isinstance(value, str) else value for name, value in given.items()}

    given, wanted = of(params or {}), {name: np.array(value) for name, value in of(peer_params).items()}
    if metric == "seuclidean" and params is None:
        wanted = {"V": X[:150].var(axis=0, ddof=1)}
    model = spinney.KNeighborsClassifier(6, metric=metric, metric_params=given)
    if "p" in given:
        with pytest.warns(SyntaxWarning, match="the parameter p is ignored"):
            model.fit(X[:150], y[:150])
    else:
        model.fit(X[:150], y[:150])
    expected = cdist(X[150:], X[:150], metric, **wanted)
    distance, rows = model.kneighbors(X[150:])
    np.testing.assert_allclose(np.take_along_axis(expected, rows, axis=1), distance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.sort(expected, axis=1)[:, :6], distance, rtol=1e-9, atol=1e-12)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    np.testing.assert_array_equal(spinney.load(file).predict_proba(X), model.predict_proba(X))


def test_a_function_gets_the_parameters_of_the_metric(numbers):
    X, y, _ = numbers

    def weighted(a, b, factor):
        return factor * np.abs(a - b).sum()

    model = spinney.KNeighborsClassifier(3, metric=weighted, metric_params={"factor": 2.0}).fit(X[:60], y[:60])
    plain = spinney.KNeighborsClassifier(3, metric="l1").fit(X[:60], y[:60])
    np.testing.assert_allclose(model.kneighbors(X[60:])[0], 2 * plain.kneighbors(X[60:])[0])
    assert model.effective_metric_ is weighted
    assert model.effective_metric_params_ == {"factor": 2.0}


@pytest.mark.parametrize(
    ("metric", "params", "message"),
    [
        ("euclidean", {"p": 3}, "metric='euclidean' has no such parameter. It takes none"),
        ("minkowski", {"V": [1.0]}, "It takes 'p' and 'w'"),
        ("minkowski", {"w": [1.0]}, "'w' in metric_params must be 4 finite numbers"),
        ("minkowski", {"w": [1.0, 1.0, -1.0, 1.0]}, "of at least 0"),
        ("minkowski", {"p": 0}, "'p' in metric_params must be a number above 0"),
        ("seuclidean", {"V": np.eye(4)}, "Its shape is"),
        ("mahalanobis", {"VI": -np.eye(4)}, "positive definite"),
        ("mahalanobis", {"V": np.eye(3)}, "shape \\(4, 4\\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:metric_params:SyntaxWarning")
def test_wrong_parameters_of_metrics_are_refused(numbers, metric, params, message):
    X, y, _ = numbers
    with pytest.raises(ValueError, match=message):
        spinney.KNeighborsClassifier(metric=metric, metric_params=params).fit(X, y)


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
def test_the_metric_by_default_is_that_of_scikit_learn(numbers, p):
    X, y, _ = numbers
    model, peer = spinney.KNeighborsClassifier(p=p).fit(X, y), PeerClassifier(p=p).fit(X, y)
    assert model.effective_metric_ == peer.effective_metric_
    assert model.effective_metric_params_ == peer.effective_metric_params_
    np.testing.assert_allclose(model.kneighbors(X)[0], peer.kneighbors(X)[0])


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "l1"},
        {"metric": "cityblock"},
        {"metric": "cosine", "algorithm": "brute"},
        {"metric": "minkowski", "p": 3},
        {"metric": "minkowski", "metric_params": {"p": 1}},
        {"metric": "minkowski", "metric_params": {"w": (1.0, 2.0, 3.0, 4.0)}},
        {"metric": "seuclidean", "metric_params": {"V": (1.0, 2.0, 3.0, 4.0)}},
        {"metric": "mahalanobis", "metric_params": {"VI": np.eye(4)}},
    ],
)
@pytest.mark.filterwarnings("ignore:.*metric_params:SyntaxWarning")
def test_the_effective_metric_is_that_of_scikit_learn(numbers, options):
    X, y, _ = numbers
    model, peer = spinney.KNeighborsClassifier(**options).fit(X, y), PeerClassifier(**options).fit(X, y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    for found in (model, spinney.load(file)):
        assert found.effective_metric_ == peer.effective_metric_
        np.testing.assert_equal(found.effective_metric_params_, peer.effective_metric_params_)


def test_the_leaf_size_changes_nothing(numbers):
    X, y, _ = numbers
    model = spinney.KNeighborsClassifier(algorithm="kd_tree", leaf_size=2).fit(X, y)
    expected = spinney.KNeighborsClassifier(algorithm="brute").fit(X, y).kneighbors(X)
    np.testing.assert_array_equal(model.kneighbors(X), expected)
    with pytest.raises(ValueError, match="leaf_size"):
        spinney.KNeighborsClassifier(leaf_size=0).fit(X, y)
