"""Codes of rows by the leaves of random trees."""

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(200, 4))


def test_each_tree_has_one_code(rows):
    model = spinney.RandomTreesEmbedding(n_estimators=12, max_depth=3, random_state=0)
    codes = model.fit_transform(rows)
    assert codes.format == "csr"
    assert codes.shape == (200, model.forest_.n_leaves)
    leaves = model.apply(rows)
    first = 0
    for t in range(12):
        numbers = np.flatnonzero(model.forest_.tree(t).is_leaf)
        part = codes[:, first : first + len(numbers)].toarray()
        assert np.array_equal(part, (leaves[:, [t]] == numbers).astype(float))
        assert len(numbers) <= 8
        first += len(numbers)
    assert first == codes.shape[1]


def test_names_and_dense_output(rows):
    model = spinney.RandomTreesEmbedding(n_estimators=2, max_depth=1, sparse_output=False, random_state=0).fit(rows)
    codes = model.transform(rows)
    assert isinstance(codes, np.ndarray)
    assert model.get_feature_names_out().tolist() == [
        "randomtreesembedding_0_1",
        "randomtreesembedding_0_2",
        "randomtreesembedding_1_1",
        "randomtreesembedding_1_2",
    ]
    frame = model.set_output(transform="pandas").transform(rows)
    assert list(frame.columns) == model.get_feature_names_out().tolist()


def test_limits_hold(rows):
    model = spinney.RandomTreesEmbedding(n_estimators=5, max_depth=None, min_samples_leaf=20, random_state=0).fit(rows)
    forest = model.forest_.engine
    assert forest.n_rows[forest.feature < 0].min() >= 20
    small = spinney.RandomTreesEmbedding(n_estimators=5, max_leaf_nodes=6, random_state=0).fit(rows)
    assert small.forest_.n_leaves == 30


def test_a_linear_model_learns_circles():
    X, y = make_circles(300, factor=0.5, noise=0.1, random_state=0)
    linear = LogisticRegression(max_iter=1000)
    coded = make_pipeline(
        spinney.RandomTreesEmbedding(n_estimators=30, random_state=0), LogisticRegression(max_iter=1000)
    )
    assert linear.fit(X, y).score(X, y) < 0.7
    assert coded.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


def test_results_are_bit_identical_for_any_threads_and_libraries():
    X, _ = spinney.datasets.load_penguins(as_frame="pandas")
    expected = spinney.RandomTreesEmbedding(n_estimators=8, random_state=1, n_jobs=1).fit_transform(X)
    for n_jobs, table in ((2, X), (7, pl.from_pandas(X))):
        found = spinney.RandomTreesEmbedding(n_estimators=8, random_state=1, n_jobs=n_jobs).fit_transform(table)
        assert found.shape == expected.shape
        assert (found != expected).nnz == 0


def test_saved_and_pickled(rows):
    model = spinney.RandomTreesEmbedding(n_estimators=4, random_state=0).fit(pd.DataFrame(rows, columns=list("abcd")))
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    frame = pd.DataFrame(rows, columns=list("abcd"))
    for again in (spinney.load(file), pickle.loads(pickle.dumps(model))):
        assert (again.transform(frame) != model.transform(frame)).nnz == 0
        assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_weights_of_zero_leave_rows_out(rows):
    weight = np.ones(200)
    weight[:100] = 0
    model = spinney.RandomTreesEmbedding(n_estimators=4, random_state=0).fit(rows, sample_weight=weight)
    assert (model.forest_.engine.n_rows[model.forest_.root[:-1]] == 100).all()


def test_an_embedding_has_no_handle_that_predicts():
    assert not hasattr(spinney.RandomTreesEmbedding(), "to_predictor")
