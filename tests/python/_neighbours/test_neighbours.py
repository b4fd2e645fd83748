"""Nearest neighbours: distances, votes, and the choice of k."""

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
import spinney._engine as _engine
from hypothesis import given
from hypothesis import strategies as st
from oracle.neighbours import KERNELS, nearest, shares
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier as PeerClassifier
from sklearn.neighbors import KNeighborsRegressor as PeerRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

METRICS = ("squares", "absolute", "powers", "largest", "differing", "gower")


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.RandomState(0)
    X = rng.randn(200, 4) * [1, 10, 0.1, 3] + [5, 0, 0, 1]
    classes = np.array(["a", "b", "c"])[(X[:, 0] + X[:, 1] / 10 > 5).astype(int) + (X[:, 2] > 0.05)]
    return X, classes, X[:, 0] + np.sin(X[:, 3])


@pytest.fixture(scope="module")
def penguins():
    return spinney.datasets.load_penguins()


# ---- the search -------------------------------------------------------------------------------------------


@st.composite
def _searches(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, n_terms, n_queries = draw(st.integers(1, 300)), draw(st.integers(0, 6)), draw(st.integers(1, 12))
    rows, queries = rng.normal(size=(n, n_terms)), rng.normal(size=(n_queries, n_terms))
    if draw(st.booleans()):  # ties
        rows, queries = rows.round(), queries.round()
    if draw(st.booleans()):  # the same rows again
        rows = rows[rng.integers(0, n, n)]
        queries[0] = rows[0]
    shift, stretch = draw(st.sampled_from([0.0, 1e8, -3.0])), draw(st.sampled_from([1.0, 1e-9, 1e60]))
    far = draw(st.sampled_from([1.0, 1e20]))
    return (rows + shift) * stretch, (queries * far + shift) * stretch, draw(st.integers(1, min(n, 40))), rng


@given(_searches(), st.sampled_from(METRICS), st.sampled_from([0.5, 1.5, 3.0]))
def test_both_searches_agree_with_all_pairs(search, metric, p):
    rows, queries, k, rng = search
    if metric == "gower":
        rows, queries = (np.where(rng.random(part.shape) < 0.3, np.nan, part) for part in (rows, queries))
    expected = nearest(rows, queries, k, metric, p)
    for algorithm in ("brute", "tree", "auto"):
        for n_jobs in (1, 2):
            index = _engine.NeighbourIndex(np.ascontiguousarray(rows), metric, p, algorithm, k, n_jobs)
            found, keys = index.nearest(np.ascontiguousarray(queries), k, n_jobs)
            np.testing.assert_array_equal(found.reshape(-1, k), expected[0])
            np.testing.assert_array_equal(keys.reshape(-1, k), expected[1])


def test_single_precision_misses_no_neighbour():
    """Rows that differ by less than single precision, near and far from 0."""
    rng = np.random.default_rng(0)
    for scale in (1e-12, 1e-7, 1e-3):
        rows = np.ones((3000, 5)) + scale * rng.normal(size=(3000, 5))
        rows[::3] *= 1e4
        index = _engine.NeighbourIndex(rows, "squares", 2.0, "brute", 7, 1)
        found, _ = index.nearest(rows[:60].copy(), 7, 1)
        np.testing.assert_array_equal(found.reshape(-1, 7), nearest(rows, rows[:60], 7, "squares")[0])


def test_auto_uses_a_tree_in_few_dimensions_only():
    rng = np.random.default_rng(0)
    assert _engine.NeighbourIndex(rng.normal(size=(20_000, 3)), "squares", 2.0, "auto", 5, 2).has_tree
    assert not _engine.NeighbourIndex(rng.normal(size=(20_000, 12)), "squares", 2.0, "auto", 5, 2).has_tree
    assert not _engine.NeighbourIndex(rng.normal(size=(100, 3)), "squares", 2.0, "auto", 5, 2).has_tree


# ---- distances --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "minkowski", "cosine"])
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_distances_are_those_of_scikit_learn(numbers, metric, algorithm):
    X, y, _ = numbers
    model = spinney.KNeighborsClassifier(6, metric=metric, p=3, scale=None, algorithm=algorithm).fit(X[:150], y[:150])
    peer = PeerClassifier(6, metric=metric, p=3).fit(X[:150], y[:150])
    distance, rows = model.kneighbors(X[150:])
    expected, expected_rows = peer.kneighbors(X[150:])
    np.testing.assert_allclose(distance, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(model.predict_proba(X[150:]), peer.predict_proba(X[150:]))
    assert model.metric_ == metric


def test_mahalanobis_uses_the_covariance_and_drops_collinear_columns(numbers):
    X, y, _ = numbers
    inverse = np.linalg.inv(np.cov(X[:150].T))
    peer = PeerClassifier(6, metric="mahalanobis", algorithm="brute", metric_params={"VI": inverse})
    expected = peer.fit(X[:150], y[:150]).kneighbors(X[150:])[0]
    for more in ([], [X[:, :1] * 2 - X[:, 1:2] + 7]):
        table = np.hstack([X, *more])
        model = spinney.KNeighborsClassifier(6, metric="mahalanobis").fit(table[:150], y[:150])
        np.testing.assert_allclose(model.kneighbors(table[150:])[0], expected, rtol=1e-7)


def test_cosine_puts_a_row_of_zeros_at_a_right_angle():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [-2.0, 0.0]])
    model = spinney.KNeighborsRegressor(1, metric="cosine", scale=None).fit(X, [1, 2, 3, 4])
    distance, rows = model.kneighbors([[5.0, 0.0], [0.0, 0.0]], 4)
    assert rows.tolist() == [[1, 0, 2, 3], [0, 1, 2, 3]]
    np.testing.assert_allclose(distance, [[0, 1, 1, 2], [0, 1, 1, 1]], atol=1e-15)


def test_gower_is_the_mean_over_the_columns_that_both_have():
    table = pd.DataFrame({"size": [0.0, 10.0, 5.0, np.nan], "town": ["Ely", "Rye", None, "Rye"]})
    model = spinney.KNeighborsRegressor(4).fit(table, [1, 2, 3, 4])
    assert model.metric_ == "gower"
    distance, rows = model.kneighbors(pd.DataFrame({"size": [2.0, np.nan, 40.0], "town": ["Rye", None, "Wem"]}))
    by_row = np.empty((3, 4))
    np.put_along_axis(by_row, rows, distance, axis=1)
    np.testing.assert_allclose(by_row, [[0.6, 0.4, 0.3, 0.0], [1, 1, 1, 1], [1.0, 1.0, 1.0, 1.0]])
    other = model.set_params(unseen="other").kneighbors(pd.DataFrame({"size": [10.0], "town": ["Wem"]}))
    assert other[0][0].tolist() == [0.5, 0.5, 1.0, 1.0]


def test_hamming_is_the_fraction_of_differing_columns():
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": ["x", "y", "y"], "c": [True, False, True]})
    model = spinney.KNeighborsClassifier(3, metric="hamming").fit(table, [0, 1, 2])
    distance, rows = model.kneighbors(table)
    assert rows[:, 0].tolist() == [0, 1, 2]
    np.testing.assert_allclose(distance[2], [0, 2 / 3, 2 / 3])


def test_the_metric_may_be_a_function(numbers):
    X, y, _ = numbers

    def twice(a, b):
        return 2 * np.abs(a - b).sum()

    model = spinney.KNeighborsClassifier(3, metric=twice).fit(X[:60], y[:60])
    same = spinney.KNeighborsClassifier(3, metric="manhattan").fit(X[:60], y[:60])
    np.testing.assert_array_equal(model.kneighbors(X[60:80])[1], same.kneighbors(X[60:80])[1])
    with pytest.raises(TypeError, match="metric cannot be saved"):
        model.save(io.BytesIO())
    with pytest.raises(ValueError, match="at least 0"):
        spinney.KNeighborsClassifier(3, metric=lambda a, b: -1.0).fit(X, y).predict(X)


@pytest.mark.parametrize("scale", ["standard", "range", None])
def test_scaling_is_visible_and_can_be_switched_off(numbers, scale):
    X, y, _ = numbers
    model = spinney.KNeighborsClassifier(3, scale=scale).fit(X, y)
    center = {"standard": X.mean(axis=0), "range": X.min(axis=0), None: np.zeros(4)}[scale]
    width = {"standard": X.std(axis=0), "range": np.ptp(X, axis=0), None: np.ones(4)}[scale]
    np.testing.assert_allclose(model.center_, center)
    np.testing.assert_allclose(model.scale_, width)
    assert model.terms_ == ["x0", "x1", "x2", "x3"]
    peer = PeerClassifier(3).fit((X - center) / width, y)
    np.testing.assert_array_equal(model.kneighbors()[1], peer.kneighbors()[1])


def test_categories_and_missing_values_have_terms():
    table = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0], "b": ["x", "y", "x", "z"]})
    model = spinney.KNeighborsClassifier(1, metric="euclidean", scale=None).fit(table, [0, 1, 0, 1])
    assert model.terms_ == ["a", "a is missing", "b = x", "b = y", "b = z"]
    np.testing.assert_allclose(model.neighbors_.rows[1], [3, 1, 0, 1, 0])
    assert model.predict(table).tolist() == [0, 1, 0, 1]


# ---- who counts, and how much -----------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance", *KERNELS])
@pytest.mark.parametrize("ties", ["first", "all"])
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_agree_with_the_reference_implementation(weights, ties, weighted):
    rng = np.random.default_rng(3)
    X, codes = rng.integers(0, 4, (60, 2)).astype(float), rng.integers(0, 3, 60)
    queries = rng.integers(0, 4, (20, 2)) + 0.25 * rng.integers(0, 2, (20, 2))
    weight = rng.integers(0, 4, 60) if weighted else None
    for k in (1, 4, 60, 200):
        model = spinney.KNeighborsClassifier(k, weights=weights, ties=ties, scale=None)
        model.fit(X, codes, weight)
        for query, found in zip(queries, model.predict_proba(queries), strict=True):
            distance = np.sqrt(((X - query) ** 2).sum(axis=1))
            expected = shares(distance, codes, k, 3, weights, ties, weight)
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_weights_may_be_a_function(numbers):
    X, _, values = numbers
    for given_weights in (lambda d: 1 / (1 + d), lambda d: np.exp(-d)):
        model = spinney.KNeighborsRegressor(5, weights=given_weights, scale="standard").fit(X, values)
        scaled = StandardScaler().fit_transform(X)
        peer = PeerRegressor(5, weights=given_weights).fit(scaled, values)
        np.testing.assert_allclose(model.predict(X), peer.predict(scaled))
    with pytest.raises(ValueError, match="finite numbers of at least 0; for row 0"):
        spinney.KNeighborsRegressor(5, weights=lambda d: d - 100).fit(X, values).predict(X)
    with pytest.raises(ValueError, match="one number per distance"):
        spinney.KNeighborsRegressor(5, weights=lambda d: d[:, 0]).fit(X, values).predict(X)


def test_ties_go_to_the_first_row_and_the_first_class():
    X = [[0.0], [1.0], [2.0], [2.0]]
    model = spinney.KNeighborsClassifier(1, scale=None).fit(X, ["b", "c", "d", "a"])
    assert model.predict([[2.0], [0.5]]).tolist() == ["d", "b"]
    assert model.set_params(ties="all").fit(X, ["b", "c", "d", "a"]).predict_proba([[2.0]]).tolist() == [
        [0.5, 0, 0, 0.5]
    ]
    assert spinney.KNeighborsClassifier(2, scale=None).fit(X, ["b", "c", "d", "a"]).predict([[2.0]]) == ["a"]


@pytest.mark.parametrize("k", [1, 3, 8])
def test_several_outputs_are_those_of_scikit_learn(numbers, k):
    X, y, values = numbers
    model = spinney.KNeighborsRegressor(k, scale=None).fit(X[:150], np.column_stack([values, -values])[:150])
    peer = PeerRegressor(k).fit(X[:150], np.column_stack([values, -values])[:150])
    np.testing.assert_allclose(model.predict(X), peer.predict(X))
    both = np.column_stack([y, values > 5])
    labels = spinney.KNeighborsClassifier(k, scale=None).fit(X[:150], both[:150])
    expected = PeerClassifier(k).fit(X[:150], both[:150])
    np.testing.assert_array_equal(labels.predict(X), expected.predict(X))
    for one, other in zip(labels.predict_proba(X), expected.predict_proba(X), strict=True):
        np.testing.assert_allclose(one, other)


def test_costs_and_priors_change_predictions():
    X, y = [[0.0], [0.1], [0.2], [5.0]], ["no", "no", "yes", "no"]
    plain = spinney.KNeighborsClassifier(3).fit(X, y)
    dear = spinney.KNeighborsClassifier(3, cost_matrix={"yes": {"no": 5.0}}).fit(X, y)
    even = spinney.KNeighborsClassifier(3, priors="uniform").fit(X, y)
    assert [model.predict([[0.1]])[0] for model in (plain, dear, even)] == ["no", "yes", "yes"]
    np.testing.assert_allclose(even.predict_proba([[0.1]]), [[0.4, 0.6]])
    with pytest.raises(ValueError, match="single output"):
        spinney.KNeighborsClassifier(priors="uniform").fit(X, np.column_stack([y, y]))


# ---- how many ---------------------------------------------------------------------------------------------


FOLDS = [KFold(5), StratifiedKFold(4, shuffle=True, random_state=1)]


@pytest.mark.parametrize("cv", FOLDS)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_the_number_of_neighbours_is_that_of_a_grid_search(numbers, cv, weights):
    X, y, _ = numbers
    values = [1, 2, 3, 5, 8, 13, 20, 30]
    grid = {"kneighborsclassifier__n_neighbors": values}
    peer = GridSearchCV(make_pipeline(StandardScaler(), PeerClassifier(weights=weights)), grid, cv=cv).fit(X, y)
    model = spinney.KNeighborsClassifier("cv", cv=cv, weights=weights, k_values=values, scale="standard").fit(X, y)
    np.testing.assert_allclose(1 - model.cv_results_["error"], peer.cv_results_["mean_test_score"], atol=1e-12)
    assert model.n_neighbors_ == peer.best_params_["kneighborsclassifier__n_neighbors"]
    folds = [peer.cv_results_[f"split{f}_test_score"] for f in range(cv.get_n_splits())]
    np.testing.assert_allclose(1 - model.cv_results_["fold_errors"], np.transpose(folds), atol=1e-12)


@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_absolute_error"])
def test_the_choice_of_k_in_regression_and_by_a_scorer(numbers, scoring):
    X, _, values = numbers
    grid = {"n_neighbors": [2, 3, 5, 9, 20]}
    peer = GridSearchCV(PeerRegressor(), grid, cv=KFold(3), scoring=scoring or "neg_mean_squared_error").fit(X, values)
    model = spinney.KNeighborsRegressor("cv", cv=KFold(3), scale=None, scoring=scoring, k_values=grid["n_neighbors"])
    model.fit(X, values)
    np.testing.assert_allclose(-model.cv_results_["error"], peer.cv_results_["mean_test_score"])
    assert model.n_neighbors_ == peer.best_params_["n_neighbors"]


def test_leave_one_out_is_a_grid_search(numbers):
    X, y, _ = numbers
    grid = {"n_neighbors": [1, 4, 9]}
    peer = GridSearchCV(PeerClassifier(), grid, cv=LeaveOneOut()).fit(X[:60], y[:60])
    model = spinney.KNeighborsClassifier("cv", scale=None, k_values=[9, 1, 4]).fit(X[:60], y[:60])
    np.testing.assert_allclose(1 - model.cv_results_["error"], peer.cv_results_["mean_test_score"])
    assert model.cv_results_["n_neighbors"].tolist() == [1, 4, 9]
    assert model.n_neighbors_ == peer.best_params_["n_neighbors"]


@pytest.mark.parametrize("options", [{"weights": "tricube"}, {"ties": "all"}, {"weights": "gaussian", "ties": "all"}])
def test_the_errors_are_those_of_separate_fits(penguins, options):
    X, y = penguins
    weight = np.arange(len(y)) % 3
    folds = np.arange(len(y)) % 4
    model = spinney.KNeighborsClassifier("cv", cv=folds, k_values=[1, 6, 15], **options).fit(X, y, weight)
    for i, k in enumerate((1, 6, 15)):
        for fold in range(4):
            out = folds == fold
            one = spinney.KNeighborsClassifier(k, **options).fit(X, y, weight * ~out)
            error = np.average(one.predict(X)[out] != y[out], weights=weight[out])
            assert model.cv_results_["fold_errors"][i, fold] == pytest.approx(error)


def test_groups_stay_together_and_need_folds(numbers):
    X, y, _ = numbers
    groups = np.arange(len(y)) // 20
    model = spinney.KNeighborsClassifier("cv", cv=5).fit(X, y, groups=groups)
    same = spinney.KNeighborsClassifier("cv", cv=GroupKFold(5)).fit(X, y, groups=groups)
    np.testing.assert_array_equal(model.cv_results_["error"], same.cv_results_["error"])
    with pytest.raises(ValueError, match="one row at a time"):
        spinney.KNeighborsClassifier("cv").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match='n_neighbors="cv"'):
        spinney.KNeighborsClassifier(3).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="whole numbers of at least 1"):
        spinney.KNeighborsClassifier("cv", k_values=[0, 1]).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 rows"):
        spinney.KNeighborsClassifier("cv").fit(X[:1], y[:1])


# ---- tables, weights, files -------------------------------------------------------------------------------


def test_all_table_types_give_the_same_model(penguins):
    X, y = penguins
    frame = pd.DataFrame({name: X[name] for name in X}) if isinstance(X, dict) else pd.DataFrame(X)
    model = spinney.KNeighborsClassifier(7).fit(frame, y)
    other = spinney.KNeighborsClassifier(7).fit(pl.from_pandas(frame), y)
    assert model.fingerprint() == other.fingerprint()
    np.testing.assert_array_equal(model.predict_proba(frame), other.predict_proba(pl.from_pandas(frame)))


def test_sparse_tables(numbers):
    X, y, _ = numbers
    holes = np.where(X > 1, X, 0.0)
    dense = spinney.KNeighborsClassifier(4).fit(holes, y)
    sparse = spinney.KNeighborsClassifier(4).fit(csr_array(holes), y)
    np.testing.assert_array_equal(sparse.predict_proba(csr_array(holes)), dense.predict_proba(holes))


def test_rows_without_weight_are_no_neighbours(numbers):
    X, y, _ = numbers
    weight = (np.arange(len(y)) % 2).astype(float)
    model = spinney.KNeighborsClassifier(3).fit(X, y, weight)
    same = spinney.KNeighborsClassifier(3).fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(model.kneighbors(X)[1], 2 * same.kneighbors(X)[1] + 1)
    graph = model.kneighbors_graph()
    assert graph.shape == (len(y), len(y))
    assert np.diff(graph.indptr).tolist() == [0, 3] * (len(y) // 2)


def test_the_graph_is_that_of_scikit_learn(numbers):
    X, y, _ = numbers
    model, peer = spinney.KNeighborsClassifier(5, scale=None).fit(X, y), PeerClassifier(5).fit(X, y)
    for mode in ("connectivity", "distance"):
        for rows in (None, X[:7]):
            found, expected = model.kneighbors_graph(rows, 4, mode), peer.kneighbors_graph(rows, 4, mode)
            np.testing.assert_allclose(found.toarray(), expected.toarray())
    with pytest.raises(ValueError, match="mode"):
        model.kneighbors_graph(mode="length")
    with pytest.raises(ValueError, match="n_neighbors <= n_samples_fit"):
        model.kneighbors(X, 201)
    with pytest.raises(ValueError, match="n_neighbors <= n_samples_fit"):
        model.kneighbors(None, 200)


def test_a_row_is_not_its_own_neighbour_even_among_equal_rows():
    X = np.zeros((30, 2))
    rows = spinney.KNeighborsRegressor(2).fit(X, np.arange(30)).kneighbors(return_distance=False)
    assert rows[0].tolist() == [1, 2]
    assert rows[1].tolist() == [0, 2]
    assert rows[20].tolist() == [0, 1]


def test_a_constant_column_does_not_change_gowers_distance():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((80, 3)) < 0.3, np.nan, rng.normal(size=(80, 3)))
    y = np.nansum(X, axis=1)
    plain = spinney.KNeighborsRegressor(5).fit(X, y)
    assert plain.metric_ == "gower"
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    few = frame[:20]
    of_numbers = spinney.KNeighborsRegressor(5).fit(frame.assign(c=7.0), y)
    of_words = spinney.KNeighborsRegressor(5).fit(frame.assign(c="same", d=None), y)
    np.testing.assert_array_equal(of_numbers.predict(few.assign(c=[7.0, 9.0] * 10)), plain.predict(X[:20]))
    np.testing.assert_array_equal(of_words.predict(few.assign(c="same", d=None)), plain.predict(X[:20]))
    assert of_numbers.scale_[3] == 0
    file = io.BytesIO()
    of_numbers.save(file)
    again = spinney.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict(few.assign(c=7.0)), plain.predict(X[:20]))


def test_a_table_of_constant_columns_has_distances():
    model = spinney.KNeighborsRegressor(2, metric="gower").fit([[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0])
    assert model.kneighbors([[1.0]])[0].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("metric", ["euclidean", "minkowski", "cosine", "mahalanobis", "hamming", "gower"])
def test_files_and_pickles_predict_bit_identically(penguins, metric):
    X, y = penguins
    model = spinney.KNeighborsClassifier("cv", metric=metric, p=3, weights="tricube", k_values=[3, 8]).fit(X, y)
    file = io.BytesIO()
    model.save(file)
    expected = model.predict_proba(X)
    again = spinney.load(io.BytesIO(file.getvalue()))
    assert again.get_params() == model.get_params()
    for other in (again, pickle.loads(pickle.dumps(model)), spinney.load_predictor(io.BytesIO(file.getvalue()))):
        np.testing.assert_array_equal(other.predict_proba(X), expected)
    assert again.fingerprint() == model.fingerprint()
    assert again.cv_results_["error"].tolist() == model.cv_results_["error"].tolist()
    handle = model.to_predictor()
    row = pd.DataFrame(X).iloc[4]
    np.testing.assert_array_equal(handle.predict_proba(row), expected[4])
    assert handle.predict(row) == model.predict(X)[4]


def test_models_with_functions_can_be_pickled():
    model = spinney.KNeighborsRegressor(2, metric=_largest).fit([[0.0], [1.0], [5.0]], [1, 2, 3])
    assert pickle.loads(pickle.dumps(model)).predict([[0.2]]) == [1.5]


def _largest(a, b):
    return float(np.abs(a - b).max())


def test_fewer_rows_than_neighbours_and_constant_tables():
    assert spinney.KNeighborsRegressor(5).fit([[0.0], [1.0]], [1.0, 3.0]).predict([[0.0]]) == [2.0]
    assert spinney.KNeighborsRegressor(1).fit([[7.0], [7.0]], [1.0, 3.0]).predict([[0.0]]) == [1.0]


def test_incompatible_parameters_are_refused(numbers):
    X, y, _ = numbers
    with pytest.raises(ValueError, match="algorithm='kd_tree' does not support metric 'hamming'"):
        spinney.KNeighborsClassifier(metric="hamming", algorithm="kd_tree").fit(X, y)


@pytest.mark.parametrize("model", [spinney.KNeighborsClassifier(3, metric="gower"), spinney.HistogramClassifier()])
def test_infinite_numbers_do_not_blur_the_others(model):
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 10, 200)
    X = pd.DataFrame({"a": a, "b": rng.choice(["u", "v"], 200)})
    y = np.where(a > 5, "high", "low")
    expected = clone(model).fit(X, y).score(X, y)
    assert expected > 0.9
    X.loc[[3, 7], "a"] = np.inf
    y[[3, 7]] = "high"
    assert model.fit(X, y).score(X, y) > expected - 0.05
