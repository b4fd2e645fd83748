"""Missing values: searched on both sides and against the present ones, and routed at predict."""

import numpy as np
import pytest
import spinney
from oracle.check import check_tree
from oracle.data import continuous_table, target_for, weights_for
from oracle.models import CRITERIA, assert_identical, bits, spinney_tree

NAN = np.nan


@pytest.mark.parametrize("weights", ["none", "real"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_node_is_the_oracles(criterion, weights):
    X = continuous_table(21, n=60, n_columns=3, missing=True)
    y, w = target_for(criterion, X, 21, n_classes=3), weights_for(21, 60, weights)
    model = spinney_tree(criterion, min_samples_leaf=2).fit(X, y, sample_weight=w)
    assert model.get_n_leaves() > 6
    check_tree(model, X, y, w)


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("criterion", ["gini", "squared_error", "absolute_error"])
def test_columns_that_are_mostly_missing(criterion, share):
    rng = np.random.default_rng(22)
    X = rng.normal(size=(50, 3))
    X[rng.random(50) < share, 0] = NAN
    X[rng.random(50) < share, 1] = NAN
    y = target_for(criterion, np.nan_to_num(X), 22)
    model = spinney_tree(criterion, min_samples_leaf=2).fit(X, y)
    check_tree(model, X, y)
    if share == 1.0:
        assert set(model.tree_.feature) <= {-2, 2}


def test_missing_against_present_is_a_split_at_infinity():
    X = np.array([[1.0], [2.0], [3.0], [NAN], [NAN], [NAN]])
    y = [0, 0, 0, 1, 1, 1]
    model = spinney.DecisionTreeClassifier().fit(X, y)
    assert model.tree_.threshold.tolist() == [np.inf, -2.0, -2.0]
    assert model.tree_.missing_go_to_left[0] == 0
    assert model.predict([[NAN], [1e308], [-1e308], [np.inf]]).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(("side", "y"), [("left", [0, 0, 1, 1, 0]), ("right", [0, 0, 1, 1, 1])])
def test_missing_rows_follow_the_side_they_resemble(side, y):
    X = np.array([[1.0], [2.0], [3.0], [4.0], [NAN]])
    model = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert model.tree_.threshold[0] == 2.5
    assert model.tree_.missing_go_to_left[0] == (side == "left")
    assert model.predict([[NAN]])[0] == y[-1]


def test_an_exact_tie_sends_missing_rows_right():
    X = np.array([[1.0], [2.0], [NAN], [NAN]])
    model = spinney.DecisionTreeRegressor(max_depth=1).fit(X, [0.0, 1.0, 0.0, 1.0])
    assert model.tree_.threshold[0] == 1.5
    assert model.tree_.missing_go_to_left[0] == 0


@pytest.mark.parametrize(
    ("weight", "goes_left"),
    [(None, 0), ([1, 1, 1, 1, 1], 0), ([9, 1, 1, 1, 1], 1), ([2, 1, 1, 1, 1], 0), ([1, 1, 1, 1, 1.5], 0)],
)
def test_missing_only_at_predict_goes_to_the_heavier_child(weight, goes_left):
    """Left holds two rows and right three; equal weight means right."""
    X, y = np.arange(5.0)[:, None], [0, 0, 1, 1, 1]
    model = spinney.DecisionTreeClassifier().fit(X, y, sample_weight=weight)
    assert model.tree_.missing_go_to_left[0] == goes_left
    assert model.predict([[NAN]])[0] == (0 if goes_left else 1)


@pytest.mark.parametrize(
    "model",
    [
        spinney.DecisionTreeRegressor(),
        spinney.DecisionTreeRegressor(max_leaf_nodes=2),
        spinney.DecisionTreeRegressor(max_surrogates=2),
        spinney.RandomForestRegressor(1, bootstrap=False),
        spinney.GradientBoostingRegressor(n_estimators=1, min_samples_leaf=1, learning_rate=1),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_missing_only_at_predict_goes_right_if_both_sides_weigh_the_same(model):
    """As in scikit-learn."""
    model.fit(np.arange(4.0)[:, None], [0.0, 0.0, 1.0, 1.0])
    assert model.predict([[NAN]])[0] == model.predict([[3.0]])[0] != model.predict([[0.0]])[0]


def test_missing_values_are_recognised_in_every_guise():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    x = [1.0, 2.0, None, 4.0, None, 6.0] * 3
    y = [0, 0, 1, 1, 1, 0] * 3
    as_nan = np.array([NAN if v is None else v for v in x])
    reference = spinney.DecisionTreeClassifier().fit(as_nan[:, None], y)
    whole = [None if v is None else int(v) for v in x]
    for frame in (
        pl.DataFrame({"x": x}),
        pl.DataFrame({"x": as_nan}),
        pl.DataFrame({"x": whole}),
        pd.DataFrame({"x": as_nan}),
        pd.DataFrame({"x": pd.array(whole, dtype="Int64")}),
        pd.DataFrame({"x": pd.array(x, dtype="Float64")}),
        pd.DataFrame({"x": pd.array(x, dtype="double[pyarrow]")}),
        pa.table({"x": x}),
        as_nan.astype(np.float32)[:, None],
    ):
        model = spinney.DecisionTreeClassifier().fit(frame, y)
        assert_identical(model, reference)
        np.testing.assert_array_equal(bits(model, frame), bits(reference, as_nan[:, None]))


def test_infinities_are_values_and_not_missing():
    X = np.array([[-np.inf], [-1.0], [1.0], [np.inf], [NAN]])
    y = [0, 1, 2, 3, 4]
    model = spinney.DecisionTreeClassifier().fit(X, y)
    assert model.predict(X).tolist() == y
    inner = model.tree_.feature >= 0
    assert not np.isnan(model.tree_.threshold[inner]).any()


def test_two_infinities_can_be_separated():
    X = np.array([[-np.inf], [np.inf]] * 3)
    model = spinney.DecisionTreeRegressor().fit(X, [0.0, 1.0] * 3)
    assert model.predict(X).tolist() == [0.0, 1.0] * 3


@pytest.mark.parametrize("tree", ["ExtraTreeClassifier", "ExtraTreeRegressor"])
def test_random_thresholds_keep_missing_rows_together(tree):
    X = continuous_table(23, n=60, missing=True)
    y = target_for("gini", X, 23)
    for seed in range(5):
        model = getattr(spinney, tree)(random_state=seed).fit(X, y)
        check_tree(model, X, y, search="any")


def test_a_column_missing_throughout_is_ignored():
    X = np.column_stack([np.full(20, NAN), np.arange(20.0)])
    y = np.arange(20) // 10
    model = spinney.DecisionTreeClassifier().fit(X, y)
    assert model.tree_.feature.tolist() == [1, -2, -2]
    np.testing.assert_array_equal(model.predict(np.column_stack([np.ones(20), X[:, 1]])), y)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_a_table_of_nothing_but_missing_values_makes_one_leaf(criterion):
    model = spinney_tree(criterion).fit(np.full((6, 2), NAN), [0, 0, 1, 1, 1, 1])
    assert model.get_n_leaves() == 1
    np.testing.assert_allclose(bits(model, [[1.0, NAN]])[0], [1 / 3, 2 / 3] if criterion == "gini" else 2 / 3)
