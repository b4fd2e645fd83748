"""Every way down a forest ends in the same leaves: few rows and many, rows one by one, trees one by one."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sweep import examples

KINDS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor]
COLUMNS = ["float64", "float32", "int16", "tied", "flat", "category", "many categories"]


def column(kind, n, random, missing):
    if "categor" in kind:
        values = random.integers(3 if kind == "category" else 90, size=n).astype(str).astype(object)
        values[random.random(n) < missing] = None
        return values
    if kind == "int16":
        return random.integers(-40, 40, size=n).astype(np.int16)
    values = {"tied": random.integers(4, size=n) / 3, "flat": np.zeros(n)}.get(kind, random.normal(size=n))
    values[random.random(n) < missing] = np.nan
    return values.astype(np.float32 if kind == "float32" else np.float64)


def frame(kinds, n, random, missing):
    return pd.DataFrame({f"{j} {kind}": column(kind, n, random, missing) for j, kind in enumerate(kinds)})


def check_every_way(forest, X, wanted):
    """`wanted` is the sum of the trees' predictions in their order."""
    method = "predict_proba" if hasattr(forest, "predict_proba") else "predict"
    wanted = wanted / len(forest)
    few = pickle.loads(pickle.dumps(forest))  # not yet prepared for many rows
    np.testing.assert_array_equal(getattr(few, method)(X[:1]), wanted[:1])
    by_tree = [tree.apply(X) for tree in forest]
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(getattr(forest.set_params(n_jobs=n_jobs), method)(X), wanted)
        np.testing.assert_array_equal(forest.apply(X), np.column_stack(by_tree))


@pytest.mark.parametrize("kind", KINDS)
@examples(5)
@given(data=st.data())
def test_predictions_are_bit_identical_by_every_code_path(kind, data):
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kinds = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=20))
    n, n_trees = data.draw(st.integers(2, 150)), data.draw(st.sampled_from([1, 2, 15, 16, 17, 140]))
    missing = st.sampled_from([0.0, 0.2])
    train = frame(kinds, n, random, data.draw(missing))
    y = random.integers(data.draw(st.integers(1, 4)), size=n) if "Class" in kind.__name__ else random.normal(size=n)
    depth = data.draw(st.sampled_from([None, None, 1, 4]))
    forest = kind(n_estimators=n_trees, max_depth=depth, random_state=1, unseen="missing").fit(train, y)
    X = frame(kinds, data.draw(st.integers(1, 200)), random, data.draw(missing))
    method = "predict_proba" if hasattr(forest, "predict_proba") else "predict"
    wanted = sum(getattr(tree, method)(X) for tree in forest)
    check_every_way(forest, X, wanted)
    handle = forest.to_predictor()
    for i, row in enumerate(X[:20].to_dict("records")):
        np.testing.assert_array_equal(getattr(handle, method)(row), wanted[i] / n_trees)


def test_a_sparse_table_walks_as_a_dense_one():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 40)) * (random.random((300, 40)) < 0.2)
    forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, X[:, :5].sum(axis=1))
    wanted = sum(tree.predict(X) for tree in forest)
    check_every_way(forest, X, wanted)
    np.testing.assert_array_equal(forest.predict(scipy.sparse.csc_array(X)), wanted / 20)


def test_thresholds_of_doubles_are_not_rounded_for_floats():
    X = np.nextafter(np.float32(1), np.float32(2)) * np.ones((64, 1)) - np.arange(64)[:, None] * 2.0**-40
    forest = RandomForestRegressor(n_estimators=5, bootstrap=False).fit(X, np.arange(64.0))
    np.testing.assert_array_equal(forest.predict(X), np.arange(64.0))
    as_floats = X.astype(np.float32)
    np.testing.assert_array_equal(forest.predict(as_floats), forest.predict(as_floats.astype(float)))
    handle = forest.to_predictor()
    assert [handle.predict(row) for row in X] == list(range(64))


def test_a_forest_of_leaves_alone_predicts():
    X = np.ones((30, 2))
    forest = RandomForestRegressor(n_estimators=7).fit(X, np.full(30, 2.5))
    assert forest.predict(X).tolist() == [2.5] * 30
    assert forest.to_predictor().predict(X[0]) == 2.5


def test_a_row_may_come_as_any_sequence_of_numbers():
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    forest = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, X[:, 0])
    handle = forest.to_predictor()
    row = X[7].tolist()
    wanted = forest.predict(X[7:8])[0]
    assert {handle.predict(r) for r in (row, tuple(row), X[7], X[7].astype(float), pd.Series(row))} == {wanted}
    gaps = [None, *row[1:3], np.int64(1)]
    assert handle.predict(gaps) == forest.predict(np.array([[np.nan, *row[1:3], 1]]))[0]
    for wrong in ([1.0], row[:3], [*row, None], X[7, :1]):
        with pytest.raises(ValueError, match=f"The row has {len(wrong)} values, but the model has 4 columns"):
            handle.predict(wrong)
