"""Proximities and what is computed from them, against slow reference implementations."""

import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from spinney._forest import proximities as module
from sweep import examples


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def forest(iris):
    return spinney.RandomForestClassifier(40, min_samples_leaf=3, shrinkage=None, oob_score=True, random_state=0).fit(
        *iris
    )


@pytest.fixture(scope="module")
def drawn(forest):
    return np.stack([forest._draws.counts(t) for t in range(40)], axis=1)


def slow_proximity(leaves, others, counts=None, other_counts=None):
    """Share of the trees that count for both rows in which they rest in the same leaf."""
    found = np.zeros((len(leaves), len(others)))
    for i in range(len(leaves)):
        for j in range(len(others)):
            both = np.ones(leaves.shape[1], dtype=bool)
            if other_counts is not None:
                both = other_counts[j] if counts is None else counts[i] & other_counts[j]
            if both.any():
                found[i, j] = np.count_nonzero(leaves[i][both] == others[j][both]) / np.count_nonzero(both)
    return found


def test_all_trees(forest, iris):
    X = iris[0][::3]
    found = forest.proximity(X)
    assert np.array_equal(found, slow_proximity(forest.apply(X), forest.apply(X)))
    assert np.array_equal(found, found.T)
    assert (np.diag(found) == 1).all()


def test_rows_beside_other_rows(forest, iris):
    X, Y = iris[0][:7], iris[0][60:90]
    assert np.array_equal(forest.proximity(X, Y), slow_proximity(forest.apply(X), forest.apply(Y)))
    assert np.array_equal(forest.proximity(X, Y, sparse=True).toarray(), forest.proximity(X, Y))


@pytest.mark.parametrize("kind", ["oob", "in_bag"])
def test_trees_by_what_they_have_seen(forest, iris, drawn, kind):
    X, leaves = iris[0], forest.apply(iris[0])
    counts = drawn == 0 if kind == "oob" else drawn > 0
    expected = slow_proximity(leaves, leaves, counts, counts)
    np.fill_diagonal(expected, 1.0)
    found = forest.proximity(X, kind=kind)
    assert np.array_equal(found, expected)
    assert np.array_equal(forest.proximity(X, kind=kind, sparse=True).toarray(), expected)
    new = X[:5] + 0.01
    assert np.array_equal(forest.proximity(new, X, kind=kind), slow_proximity(forest.apply(new), leaves, None, counts))


def test_gap_gives_the_out_of_bag_prediction(forest, iris, drawn):
    X, y = iris
    found, leaves = forest.proximity(X, kind="gap"), forest.apply(X)
    i = 17
    unseen = np.flatnonzero(drawn[i] == 0)
    expected = np.zeros(len(X))
    for t in unseen:
        shares = drawn[:, t] * (leaves[:, t] == leaves[i, t])
        expected += shares / shares.sum() / len(unseen)
    np.testing.assert_allclose(found[i], expected, atol=1e-15)
    np.testing.assert_allclose(found @ np.eye(3)[y], forest.oob_decision_function_, atol=1e-13)
    np.testing.assert_allclose(forest.proximity(X[:9], X, kind="gap") @ np.eye(3)[y], forest.predict_proba(X[:9]))
    sparse = forest.proximity(X, kind="gap", n_neighbors=200)
    np.testing.assert_array_equal(sparse.toarray(), found)


def test_gap_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.RandomForestRegressor(n_estimators=60, oob_score=True, random_state=1).fit(X, y)
    np.testing.assert_allclose(model.proximity(X, kind="gap") @ y, model.oob_prediction_)


@pytest.mark.parametrize("kind", ["all", "oob", "gap"])
def test_the_largest_of_each_row(forest, iris, kind):
    X = iris[0]
    whole = forest.proximity(X, kind=kind)
    np.fill_diagonal(whole, 0.0)
    expected = np.zeros_like(whole)
    for i, row in enumerate(whole):
        best = np.argsort(-row, kind="stable")[:4]
        expected[i, best] = row[best]
    if kind != "gap":
        expected = np.maximum(expected, expected.T)
        np.fill_diagonal(expected, 1.0)
    found = forest.proximity(X, kind=kind, n_neighbors=4)
    assert np.array_equal(found.toarray(), expected)
    assert found.has_sorted_indices


def test_a_threshold(forest, iris):
    whole = forest.proximity(iris[0])
    found = forest.proximity(iris[0], threshold=0.4)
    assert np.array_equal(found.toarray(), np.where(whole >= 0.4, whole, 0.0))


@pytest.mark.parametrize("kind", ["all", "oob", "gap"])
def test_results_are_bit_identical_for_any_threads_and_blocks(iris, kind, monkeypatch):
    X, y = iris
    models = [spinney.RandomForestClassifier(n_estimators=70, n_jobs=n, random_state=0).fit(X, y) for n in (1, 2, 7)]
    whole = [model.proximity(X, kind=kind) for model in models]
    near = [model.proximity(X, kind=kind, n_neighbors=3) for model in models]
    monkeypatch.setattr(module, "_BLOCK_PRODUCTS", 500)
    whole.append(models[1].proximity(X, kind=kind))
    near.append(models[1].proximity(X, kind=kind, n_neighbors=3))
    assert all(np.array_equal(found, whole[0]) for found in whole)
    assert all((found != near[0]).nnz == 0 for found in near)


@examples(8)
@given(st.integers(1, 30), st.integers(1, 70), st.integers(1, 6), st.integers(0, 2**31))
def test_engine_and_products_agree(n_rows, n_trees, n_leaves, seed):
    rng = np.random.default_rng(seed)
    nodes = rng.integers(0, n_leaves, (n_rows, n_trees)) + n_leaves * np.arange(n_trees)
    drawn = rng.integers(0, 2, (n_rows, n_trees)).astype(np.uint32)
    resting = module.RowLeaves(nodes, n_leaves * n_trees, drawn)
    for kind in ("all", "oob"):
        found = module.Proximities.between(resting, resting, kind, True)
        k, least = int(rng.integers(1, n_rows + 1)), float(rng.choice([0.0, 0.3]))
        slow = found._sparse_by_products(1, k, least)
        assert (found.sparse(2, k, least) != slow).nnz == 0
        np.testing.assert_allclose(found.sums_of_squares(2), (found.sparse(1, None) ** 2).sum(axis=1), rtol=1e-12)


def test_frames_give_the_same():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    expected = forest.proximity(X)
    for other in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert np.array_equal(forest.proximity(other), expected)


def test_refusals(forest, iris):
    X, y = iris
    with pytest.raises(ValueError, match="kind must be one of 'all'"):
        forest.proximity(X, kind="some")
    with pytest.raises(ValueError, match="n_neighbors must be a whole number"):
        forest.proximity(X, n_neighbors=0)
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
        forest.proximity(X, threshold=2)
    with pytest.raises(ValueError, match="sparse=False cannot be combined with"):
        forest.proximity(X, n_neighbors=3, sparse=False)
    with pytest.raises(ValueError, match="X has 10 rows, but the forest was fitted on 150"):
        forest.proximity(X[:10], kind="oob")
    with pytest.raises(ValueError, match="every tree is grown on all rows"):
        spinney.ExtraTreesClassifier(n_estimators=3).fit(X, y).proximity(X, kind="oob")
    with pytest.raises(ValueError, match="take 5 GiB"):
        forest.proximity(np.tile(X, (170, 1)))
    with pytest.raises(ValueError, match="kind must be 'all' or 'oob'"):
        forest.outlier_score(X, y, kind="gap")


def slow_outlier_score(P, y):
    score = np.zeros(len(P))
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        raw = len(P) / (P[np.ix_(rows, rows)] ** 2).sum(axis=1)
        away = raw - np.median(raw)
        score[rows] = away / (1.4826022185056018 * np.median(np.abs(away)))
    return score


@pytest.mark.parametrize("kind", ["all", "oob"])
def test_outlier_score(forest, iris, kind):
    X, y = iris
    noisy = X + np.random.default_rng(0).normal(size=X.shape)
    model = spinney.RandomForestClassifier(n_estimators=40, random_state=0).fit(noisy, y)
    expected = slow_outlier_score(model.proximity(noisy, kind=kind), y)
    np.testing.assert_allclose(model.outlier_score(noisy, y, kind=kind), expected, atol=1e-12)


def test_outlier_score_finds_a_row_of_the_wrong_class(iris):
    X, y = iris[0], iris[1].copy()
    y[10] = 2
    model = spinney.RandomForestClassifier(n_estimators=100, random_state=0).fit(X, y)
    score = model.outlier_score(X, y, kind="oob")
    assert score.argmax() == 10
    assert score[10] > 10


def test_outlier_score_of_equal_rows_and_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.RandomForestRegressor(n_estimators=30, random_state=1).fit(X, y)
    expected = slow_outlier_score(model.proximity(X), np.zeros(len(X)))
    np.testing.assert_allclose(model.outlier_score(X, y), expected, atol=1e-12)
    assert (model.outlier_score(np.tile(X[:1], (5, 1))) == 0).all()


def test_map_is_classical_scaling(forest, iris):
    for X, n in ((iris[0], 3), (iris[0][::30], 4)):
        centre = np.eye(len(X)) - 1 / len(X)
        size, vectors = np.linalg.eigh(centre @ forest.proximity(X) @ centre / 2)
        expected = vectors[:, : -n - 1 : -1] * np.sqrt(size[: -n - 1 : -1])
        found = forest.proximity_map(X, n)
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)
        np.testing.assert_allclose((found**2).sum(axis=0), size[: -n - 1 : -1], atol=1e-8)
        assert (found.max(axis=0) >= -found.min(axis=0)).all()
    assert forest.proximity_map(iris[0][:1], 1).tolist() == [[0.0]]
    with pytest.raises(ValueError, match="n_components must be from 1"):
        forest.proximity_map(X, 0)


def test_leaf_embedding(forest, iris):
    codes = forest.leaf_embedding(iris[0])
    assert codes.shape == (150, forest.forest_.n_leaves)
    assert (codes.sum(axis=1) == 40).all()
    np.testing.assert_allclose((codes @ codes.T).toarray() / 40, forest.proximity(iris[0]))
    assert np.array_equal(forest.leaf_embedding(iris[0], sparse_output=False), codes.toarray())


def test_prototypes():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=50, random_state=0).fit(X, y)
    found = forest.prototypes(X, y, n_prototypes=2, n_neighbors=20)
    assert list(found.columns[5:]) == list(X.columns)
    assert found["statistic"].tolist() == ["lower quartile", "median", "upper quartile"] * 6
    # the first one, by hand
    P = forest.proximity(X)
    np.fill_diagonal(P, 2.0)
    near = np.argsort(-P, axis=1, kind="stable")[:, :20]
    label = np.asarray(y)
    members = (label[near] == "Adelie").sum(axis=1)
    first = found.iloc[1]
    assert label[first["row"]] == "Adelie"
    assert first["n_members"] == members[label == "Adelie"].max() == members[first["row"]]
    mine = near[first["row"]][label[near[first["row"]]] == "Adelie"]
    assert first["bill_length_mm"] == X["bill_length_mm"].iloc[mine].median()
    assert first["island"] == X["island"].iloc[mine].mode()[0]
    assert found.iloc[0]["bill_length_mm"] == X["bill_length_mm"].iloc[mine].quantile(0.25)
    rows = {tuple(part[["class", "row"]].iloc[0]) for _, part in found.groupby(["class", "prototype"])}
    assert len(rows) == 6


def test_prototypes_in_the_users_own_library():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    expected = forest.prototypes(X, y)
    polars, arrow = forest.prototypes(pl.from_pandas(X), y), forest.prototypes(pa.Table.from_pandas(X), y)
    assert polars["island"].to_list() == arrow.column("island").to_pylist()
    assert polars["island"].to_list()[1::3] == expected["island"].tolist()[1::3]
    assert polars["body_mass_g"].to_list() == expected["body_mass_g"].tolist()
    with pytest.raises(ValueError, match="n_prototypes must be a whole number"):
        forest.prototypes(X, y, n_prototypes=0)
    assert not hasattr(spinney.RandomForestRegressor(), "prototypes")


def test_of_a_pickled_forest(forest, iris):
    again = pickle.loads(pickle.dumps(forest))
    assert np.array_equal(again.proximity(iris[0], kind="oob"), forest.proximity(iris[0], kind="oob"))


def test_engine_refuses_what_does_not_fit():
    from spinney import _engine

    leaf, starts, others = np.zeros((2, 1), np.uint32), np.array([0, 2], np.uint64), np.array([0, 1], np.uint32)
    assert len(_engine.nearest_rows(leaf, starts, others, 2, True, None, None, 5, 0.0, 1)[1]) == 2
    for wrong in (
        (leaf + 1, starts, others, 2),
        (leaf, starts + 1, others, 2),
        (leaf, starts[::-1].copy(), others, 2),
        (leaf, starts, others, 1),
    ):
        with pytest.raises(ValueError, match=r"does not exist|does not match"):
            _engine.nearest_rows(*wrong, True, None, None, 5, 0.0, 1)


def test_pictures(forest, iris):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    X, y = iris
    ax = spinney.plot_proximity_map(forest, X, y)
    assert [len(points.get_offsets()) for points in ax.collections] == [50, 50, 50]
    assert np.array_equal(ax.collections[1].get_offsets(), forest.proximity_map(X)[50:100])
    plt.close(ax.figure)
    ax = spinney.plot_outlier_scores(forest, X, y)
    heights = [segment[1, 1] for lines in ax.collections for segment in lines.get_segments()]
    assert np.array_equal(heights, forest.outlier_score(X, y))
    plt.close(ax.figure)
    model = spinney.RandomForestRegressor(n_estimators=5).fit(X, X[:, 0])
    ax = spinney.plot_proximity_map(model, X, X[:, 0])
    assert np.array_equal(ax.collections[0].get_array(), X[:, 0])
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="y has 3 entries, but X has 150 rows"):
        spinney.plot_proximity_map(forest, X, y[:3])
