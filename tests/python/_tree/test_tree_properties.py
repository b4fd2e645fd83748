"""Properties of trees for any table, by Hypothesis; bit for bit where that is guaranteed."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle.check import check_tree
from oracle.models import (
    ARRAYS,
    TREES,
    assert_identical,
    assert_same_model,
    assert_same_partition,
    bits,
    spinney_tree,
)
from sweep import examples

PROPERTY = examples(8)
CLASS_RULES = ("gini", "entropy", "misclassification", "chi2", "gain_ratio")
VALUE_RULES = ("squared_error", "absolute_error", "poisson", "friedman_mse")


@st.composite
def tables(draw, max_rows=24, missing=True):
    """A small matrix with many ties and, perhaps, missing values."""
    shape = (draw(st.integers(2, max_rows)), draw(st.integers(1, 3)))
    cells = st.integers(-4, 4).map(float)
    if missing and draw(st.booleans()):
        cells = cells | st.just(np.nan)
    return draw(hnp.arrays(float, shape, elements=cells))


@st.composite
def problems(draw, rules=CLASS_RULES + VALUE_RULES, missing=True, categories=False):
    """Return (X, y, criterion, growth parameters); with `categories`, columns may be declared to be such."""
    X, criterion = draw(tables(missing=missing)), draw(st.sampled_from(rules))
    y = draw(hnp.arrays(float, len(X), elements=st.integers(0, 3).map(float)))
    if criterion == "poisson":
        y[0] += 1
    growth = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "max_depth": st.integers(1, 4),
                "min_samples_leaf": st.integers(1, 3),
                "max_leaf_nodes": st.integers(2, 8),
                "min_samples_split": st.integers(2, 6),
            },
        )
    )
    if categories:
        growth["categorical_features"] = draw(st.lists(st.integers(0, X.shape[1] - 1), unique=True))
    return X, y, criterion, growth


def as_codes(X, columns):
    """Replace the values of category columns by their rank among those that occur."""
    X = X.copy()
    for j in columns:
        present = ~np.isnan(X[:, j])
        X[present, j] = np.searchsorted(np.unique(X[present, j]), X[present, j])
    return X


@PROPERTY
@given(problem=problems(categories=True), data=st.data())
def test_every_tree_is_the_oracles(problem, data):
    X, y, criterion, growth = problem
    w = data.draw(hnp.arrays(float, len(X), elements=st.integers(1, 3).map(float)))
    model = spinney_tree(criterion, **growth).fit(X, y, sample_weight=w)
    used = [j for j in growth["categorical_features"] if not np.isnan(X[:, j]).all()]
    check_tree(model, as_codes(X, used), y, w, table=X, categories=used)


@PROPERTY
@given(problem=problems(categories=True), data=st.data())
def test_weight_two_is_the_row_twice(problem, data):
    X, y, criterion, growth = problem
    growth = {k: v for k, v in growth.items() if not k.startswith("min_samples")}  # these count rows
    least = 1 if growth["categorical_features"] else 0  # a category of weight zero is still known
    times = data.draw(hnp.arrays(int, len(X), elements=st.integers(least, 3)))
    times[0] += times.sum() == 0
    if criterion == "poisson" and np.dot(times, y) == 0:
        y = y + 1
    model = spinney_tree(criterion, **growth)
    if hasattr(model, "predict_proba"):  # a class of weight zero stays in classes_
        times[np.unique(y, return_index=True)[1]] += 1
    weighted = model.fit(X, y, sample_weight=times)
    repeated = spinney_tree(criterion, **growth).fit(X.repeat(times, axis=0), y.repeat(times))
    assert_same_model(weighted, repeated)
    np.testing.assert_array_equal(weighted.apply(X), repeated.apply(X))


@PROPERTY
@given(problem=problems(categories=True), seed=st.integers(0, 10**6))
def test_the_order_of_the_rows_does_not_matter(problem, seed):
    X, y, criterion, growth = problem
    order = np.random.default_rng(seed).permutation(len(X))
    w = np.random.default_rng(seed).uniform(0.5, 2.0, len(X))
    first = spinney_tree(criterion, **growth).fit(X, y, sample_weight=w)
    second = spinney_tree(criterion, **growth).fit(X[order], y[order], sample_weight=w[order])
    assert_same_model(first, second)
    np.testing.assert_array_equal(first.tree_.n_node_samples, second.tree_.n_node_samples)


@PROPERTY
@given(problem=problems(missing=True), name=st.sampled_from(["cube", "exp", "affine", "rank"]))
def test_a_rising_map_of_a_column_changes_thresholds_only(problem, name):
    X, y, criterion, growth = problem
    rising = {
        "cube": lambda x: x**3,
        "exp": np.exp,
        "affine": lambda x: 1e6 + 1e-3 * x,
        "rank": lambda x: np.where(np.isnan(x), np.nan, np.searchsorted(np.unique(x[~np.isnan(x)]), x) * 1e-300),
    }[name]
    mapped = X.copy()
    mapped[:, 0] = rising(X[:, 0])
    first = spinney_tree(criterion, **growth).fit(X, y)
    second = spinney_tree(criterion, **growth).fit(mapped, y)
    assert_same_partition(first, second)
    np.testing.assert_array_equal(first.apply(X), second.apply(mapped))


@PROPERTY
@given(problem=problems(), shift=st.sampled_from([-3.0, 5.0, 2.0**20]), scale=st.sampled_from([0.25, 8.0]))
def test_a_linear_map_of_the_target_moves_the_leaves_only(problem, shift, scale):
    X, y, _, growth = problem
    first = spinney.DecisionTreeRegressor(**growth).fit(X, y)
    second = spinney.DecisionTreeRegressor(**growth).fit(X, shift + scale * y)
    np.testing.assert_array_equal(first.tree_.feature, second.tree_.feature)
    np.testing.assert_array_equal(first.tree_.threshold, second.tree_.threshold)
    np.testing.assert_allclose(second.predict(X), shift + scale * first.predict(X), rtol=1e-12)


@PROPERTY
@given(problem=problems(categories=True))
def test_pickle_gives_the_same_tree(problem):
    X, y, criterion, growth = problem
    model = spinney_tree(criterion, **growth).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_identical(model, copy)
    np.testing.assert_array_equal(bits(model, X), bits(copy, X))
    np.testing.assert_array_equal(model.apply(X), copy.apply(X))


@PROPERTY
@given(problem=problems(categories=True))
def test_enough_bins_are_exact(problem):
    X, y, criterion, growth = problem
    exact = spinney_tree(criterion, **growth).fit(X, y)
    binned = spinney_tree(criterion, max_bins=16, **growth).fit(X, y)
    assert_identical(exact, binned)
    np.testing.assert_array_equal(bits(binned, X), bits(exact, X))


@PROPERTY
@given(problem=problems(missing=False))
def test_frames_of_every_library_give_the_same_tree(problem):
    X, y, criterion, growth = problem
    names = [f"x{j}" for j in range(X.shape[1])]
    columns = dict(zip(names, X.T, strict=True))
    reference = spinney_tree(criterion, **growth).fit(X, y)
    frames = [
        pd.DataFrame(X, columns=names),
        pl.DataFrame(columns),
        pa.table(columns),
        np.asfortranarray(X),
        X.astype(np.float32),
        X.astype(np.int8),
        X[::-1][::-1],
        X.tolist(),
    ]
    for frame in frames:
        model = spinney_tree(criterion, **growth).fit(frame, y)
        assert_identical(reference, model)
        np.testing.assert_array_equal(bits(reference, X), bits(model, frame))


@PROPERTY
@given(problem=problems(categories=True))
def test_prediction_row_by_row_is_prediction_at_once(problem):
    X, y, criterion, growth = problem
    model = spinney_tree(criterion, **growth).fit(X, y)
    np.testing.assert_array_equal(np.concatenate([bits(model, row[None]) for row in X]), bits(model, X))
    leaves = model.apply(X)
    assert np.all(model.tree_.children_left[leaves] == -1)
    path = model.decision_path(X)
    assert path.shape == (len(X), model.tree_.node_count)
    np.testing.assert_array_equal(path[np.arange(len(X)), leaves], 1)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=0)).ravel(), model.tree_.n_node_samples)


@PROPERTY
@given(problem=problems(rules=("gini", "squared_error")), seed=st.integers(0, 50))
def test_random_trees_are_legal_and_repeatable(problem, seed):
    X, y, criterion, growth = problem
    model = spinney_tree(criterion, splitter="random", random_state=seed, **growth).fit(X, y)
    check_tree(model, X, y, search="any")
    assert_identical(model, spinney_tree(criterion, splitter="random", random_state=seed, **growth).fit(X, y))


@PROPERTY
@given(problem=problems(rules=("gini", "squared_error", "absolute_error")), seed=st.integers(0, 50))
def test_searching_some_columns_takes_the_best_cut_of_the_chosen_one(problem, seed):
    X, y, criterion, growth = problem
    model = spinney_tree(criterion, max_features=1, random_state=seed, **growth).fit(X, y)
    check_tree(model, X, y, search="column" if "max_leaf_nodes" not in growth else "any")


@PROPERTY
@given(problem=problems(rules=("gini", "squared_error")))
def test_pruning_at_zero_keeps_the_training_error(problem):
    X, y, criterion, growth = problem
    full = spinney_tree(criterion, **growth).fit(X, y)
    pruned = spinney_tree(criterion, ccp_alpha=1e-12, **growth).fit(X, y)
    assert pruned.get_n_leaves() <= full.get_n_leaves()
    np.testing.assert_allclose(bits(pruned, X), bits(full, X), atol=1e-5)


@pytest.mark.parametrize("tree", TREES)
def test_the_number_of_threads_does_not_matter(tree):
    rng = np.random.default_rng(60)
    X = rng.normal(size=(20_000, 6)).round(2)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=20_000) > 0).astype(int)
    w = rng.uniform(0.1, 5.0, 20_000)
    params = {"random_state": 3, "max_leaf_nodes": 60}
    models = [getattr(spinney, tree)(n_jobs=n, **params).fit(X, y, sample_weight=w) for n in (1, 2, 7)]
    for model in models[1:]:
        assert_identical(models[0], model)
        np.testing.assert_array_equal(bits(models[0], X), bits(model, X))


@pytest.mark.parametrize("criterion", CLASS_RULES + VALUE_RULES)
def test_the_number_of_threads_does_not_matter_for_any_criterion(criterion):
    rng = np.random.default_rng(61)
    n = 2_000 if criterion == "absolute_error" else 6_000
    X = rng.normal(size=(n, 4))
    y = rng.integers(3, size=n) if criterion in CLASS_RULES else rng.gamma(2.0, size=n)
    params = {"max_depth": 6, "min_samples_leaf": 5}
    models = [spinney_tree(criterion, n_jobs=k, **params).fit(X, y) for k in (1, 2, 7)]
    assert models[0].get_n_leaves() > 8
    for model in models[1:]:
        assert_identical(models[0], model)


def test_the_arrays_of_a_tree_are_read_only():
    X = np.arange(20.0)[:, None]
    tree = spinney.DecisionTreeClassifier().fit(X, X[:, 0] > 9).tree_
    for name in ARRAYS:
        with pytest.raises(ValueError, match=r"read-only|assignment destination"):
            getattr(tree, name)[...] = 0
    with pytest.raises(AttributeError):
        tree.node_count = 5
