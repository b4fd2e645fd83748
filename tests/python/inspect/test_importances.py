"""Importances of forests: impurity, unbiased, permutation; by tree and by row."""

import copy
import pickle
import signal
import time

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.forest_importance import permutation, permutation_importances, unbiased_importances
from oracle.saved import through_bytes
from scipy.sparse import csc_array
from sklearn.datasets import load_diabetes, load_iris, load_wine
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sweep import covering, examples

mpl.use("agg")

CLASSIFIERS, REGRESSORS = [RandomForestClassifier, ExtraTreesClassifier], [RandomForestRegressor, ExtraTreesRegressor]
LOSSES = {True: ["error", "brier", "margin"], False: ["squared_error", "absolute_error"]}


def mixed(n=80, seed=0):
    """Return a table with numbers, categories, missing values, and an irrelevant column."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": random.normal(size=n).round(2), "b": random.choice(["u", "v", "w"], size=n)})
    frame["c"] = random.integers(0, 9, size=n).astype(float)
    frame.loc[random.random(n) < 0.2, "c"] = np.nan
    frame["d"] = 1.0
    score = frame["a"] + (frame["b"] == "u") + frame["c"].fillna(0) / 4 + random.normal(size=n) / 3
    return frame, np.array(["low", "middle", "high"])[np.digitize(score, [0.6, 1.6])], score.to_numpy()


def small(kind, **parameters):
    return kind(**({"n_estimators": 7, "bootstrap": True, "random_state": 3, "max_features": 2} | parameters))


def fitted(kind, n_outputs=1, weight=None, **parameters):
    X, labels, values = mixed()
    y = labels if kind in CLASSIFIERS else values
    if n_outputs == 2:
        y = np.column_stack([y, y[::-1]])
    return small(kind, **parameters).fit(X, y, weight), X, y


# ---- reference implementations ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(*covering(kind=CLASSIFIERS + REGRESSORS, n_outputs=[1, 2]))
def test_permutation_agrees_with_the_reference(kind, n_outputs):
    forest, X, y = fitted(kind, n_outputs, max_depth=5)
    groups = [[0], [1], [2], [3]]
    for loss in LOSSES[kind in CLASSIFIERS]:
        found = forest.importances(X, y, loss=loss, n_repeats=2, by_row=True)
        by_tree, by_row = permutation_importances(forest, X, y, groups, loss=loss, n_repeats=2)
        np.testing.assert_allclose(found.by_tree, by_tree, atol=1e-12)
        np.testing.assert_allclose(found.by_row, by_row, atol=1e-12)
        assert abs(found.by_tree[:, :3]).max() > 0
        assert (found.by_tree[:, 3] == 0).all()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("weight", [None, np.tile([0.0, 0.5, 2.0], 40)])
def test_outputs_are_scaled_before_they_are_averaged(loss, weight):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    y = X + 0.1 * random.normal(size=X.shape)
    forest = small(RandomForestRegressor, max_features=None, n_estimators=20).fit(X, y, weight)
    found = forest.importances(X, y, loss=loss, sample_weight=weight).importance
    np.testing.assert_allclose(found[0], found[1], rtol=0.5)
    mixed_units = RandomForestRegressor(20, random_state=0, max_features=1).fit(X, y * [1, 1e6], weight)
    other = mixed_units.importances(X, y * [1, 1e6], loss=loss, sample_weight=weight)
    np.testing.assert_allclose(other.importance[0], other.importance[1], rtol=1)  # by a factor of 1e6 before
    assert 0 < other.tree_loss < 1.5  # of what a constant loses


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_unbiased_agrees_with_the_reference(kind, n_outputs):
    forest, X, y = fitted(kind, n_outputs)
    found = forest.importances(X, y, kind="unbiased")
    np.testing.assert_allclose(found.by_tree, unbiased_importances(forest, X, y), atol=1e-12)
    assert found.importance[0] > 0


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_sample_weights_are_used(kind):
    X, labels, values = mixed()
    y = labels if kind is RandomForestClassifier else values
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.25], size=len(X))
    forest = small(kind).fit(X, y, weight)
    loss = LOSSES[kind is RandomForestClassifier][0]
    found = forest.importances(X, y, sample_weight=weight, by_row=True)
    by_tree, by_row = permutation_importances(forest, X, y, [[0], [1], [2], [3]], loss=loss, weight=weight)
    np.testing.assert_allclose(found.by_tree, by_tree, atol=1e-12)
    np.testing.assert_allclose(found.by_row, by_row, atol=1e-12)
    assert np.isnan(found.by_row[weight == 0]).all()
    found = forest.importances(X, y, kind="unbiased", sample_weight=weight)
    np.testing.assert_allclose(found.by_tree, unbiased_importances(forest, X, y, weight), atol=1e-12)


def test_class_weights_are_used_in_the_unbiased_decrease():
    X, y, _ = mixed()
    by_class = {"low": 1.0, "middle": 2.0, "high": 5.0}
    forest = small(RandomForestClassifier, class_weight=by_class).fit(X, y)
    weight = np.array([by_class[label] for label in y])
    found = forest.importances(X, y, kind="unbiased")
    np.testing.assert_allclose(found.by_tree, unbiased_importances(forest, X, y, weight), atol=1e-12)


def test_groups_are_permuted_together():
    forest, X, y = fitted(RandomForestClassifier)
    found = forest.importances(X, y, groups=[["c", "a"]], by_row=True)
    by_tree, by_row = permutation_importances(forest, X, y, [[0, 2], [1], [3]], loss="error")
    assert found.names == ["a + c", "b", "d"]
    np.testing.assert_allclose(found.by_tree, by_tree, atol=1e-12)
    np.testing.assert_allclose(found.by_row, by_row, atol=1e-12)
    alone = forest.importances(X, y)
    assert found.importance[0] > max(alone.importance[[0, 2]])
    assert np.array_equal(found.by_tree[:, 1], alone.by_tree[:, 1])  # single columns are permuted as before
    named = forest.importances(X, y, groups={"both": [0, "c"]})
    assert named.names == ["both", "b", "d"]
    assert np.array_equal(named.by_tree, found.by_tree)


@pytest.mark.parametrize("kind", ["unbiased", "impurity"])
def test_decreases_of_a_group_are_summed(kind):
    forest, X, y = fitted(RandomForestClassifier)
    alone, together = forest.importances(X, y, kind), forest.importances(X, y, kind, groups=[["a", "c"]])
    np.testing.assert_allclose(together.importance, [alone.importance[[0, 2]].sum(), *alone.importance[[1, 3]]])
    assert together.n_splits.sum() == alone.n_splits.sum()


def test_costs_are_used_in_the_error():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = small(RandomForestClassifier, cost_matrix=[[0, 1, 1], [5, 0, 1], [1, 9, 0]], max_depth=2).fit(X, y)
    by_tree, _ = permutation_importances(forest, X, y, [[0], [1], [2], [3]], loss="error")
    np.testing.assert_allclose(forest.importances(X, y).by_tree, by_tree, atol=1e-12)


@examples(5)
@given(
    n=st.integers(4, 40),
    n_columns=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    replace=st.booleans(),
    is_class=st.booleans(),
)
def test_small_tables_agree_with_the_reference(n, n_columns, seed, replace, is_class):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.integers(0, 4, size=(n, n_columns)).astype(float), columns=list("abcd")[:n_columns])
    X = X.mask(random.random(X.shape) < 0.1)
    y = random.integers(0, 3, size=n)
    kind = RandomForestClassifier if is_class else RandomForestRegressor
    forest = small(kind, n_estimators=3, replace=replace, max_features=None, max_samples=0.5).fit(X, y)
    loss = LOSSES[is_class][-1]
    found = forest.importances(X, y, loss=loss, by_row=True, random_state=seed)
    drawn = np.random.RandomState(seed).randint(2**31 - 1)
    groups = [[j] for j in range(n_columns)]
    by_tree, by_row = permutation_importances(forest, X, y, groups, loss=loss, seed=drawn)
    np.testing.assert_allclose(found.by_tree, by_tree, atol=1e-12)
    np.testing.assert_allclose(found.by_row, by_row, atol=1e-12)
    unbiased = forest.importances(X, y, kind="unbiased").by_tree
    np.testing.assert_allclose(unbiased, unbiased_importances(forest, X, y), atol=1e-12)


def test_permutations_are_uniform():
    n, times = 5, 2000
    first = np.bincount([permutation(n, 7, t, 1, 0)[0] for t in range(times)], minlength=n)
    assert abs(first - times / n).max() < 5 * np.sqrt(times / n)


# ---- what the numbers mean --------------------------------------------------------------------------------


def noisy(seed, n=150, is_class=True):
    """Return a table with a binary informative column, and noise of 2, 10 and n values and of many categories."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"true": random.integers(0, 2, size=n).astype(float)})
    X["two"], X["ten"], X["many"] = random.integers(0, 2, size=n), random.integers(0, 10, size=n), random.normal(size=n)
    X["labels"] = random.choice([f"c{i}" for i in range(25)], size=n)
    score = X["true"] + random.normal(size=n)
    return X, (score > 0.5).astype(int) if is_class else score


@pytest.mark.parametrize(
    "kind",
    [
        RandomForestClassifier,
        pytest.param(RandomForestRegressor, marks=pytest.mark.slow),
        pytest.param(ExtraTreesClassifier, marks=pytest.mark.slow),
    ],
)
def test_only_impurity_favours_noise_with_many_values(kind):
    n_tables = 60  # so that three standard errors, which four columns of noise hardly ever exceed by chance, are little
    found = {"impurity": [], "unbiased": [], "permutation": []}
    for seed in range(n_tables):
        X, y = noisy(seed, is_class=kind in CLASSIFIERS)
        forest = small(kind, n_estimators=20).fit(X, y)
        for name, values in found.items():
            values.append(forest.importances(X, y, name).importance)
    for name in ("unbiased", "permutation"):
        mean = np.mean(found[name], axis=0)
        error = np.std(found[name], axis=0, ddof=1) / np.sqrt(n_tables)
        assert mean[0] > 8 * error[0]
        assert mean[0] > 5 * abs(mean[1:]).max()
        assert (abs(mean[1:]) < 3 * error[1:]).all(), (name, mean / error)
    impurity = np.mean(found["impurity"], axis=0)
    assert impurity[3] > impurity[0]  # noise of many values beats the column that matters
    assert impurity[1] < impurity[2] < impurity[3]


def test_impurity_equals_feature_importances():
    X, y = load_wine(return_X_y=True)
    forest = small(RandomForestClassifier).fit(X, y)
    found = forest.importances(kind="impurity")
    np.testing.assert_allclose(found.importance, forest.feature_importances_, rtol=1e-12)
    assert found.standard_error.min() >= 0
    assert ExtraTreesClassifier(n_estimators=3).fit(X, y).importances(
        kind="impurity"
    ).importance.sum() == pytest.approx(1)


def test_unbiased_approaches_the_impurity_decrease_for_many_rows():
    random = np.random.default_rng(0)
    X = random.integers(0, 3, size=(20000, 2)).astype(float)
    y = X[:, 0] + (X[:, 1] == 2) + random.normal(size=20000) / 10
    forest = RandomForestRegressor(n_estimators=10, max_depth=2, random_state=0).fit(X, y)
    decrease = np.mean([t.tree_.impurity[0] - _mean_leaf_impurity(t.tree_) for t in forest.estimators_])
    assert forest.importances(X, y, kind="unbiased").importance.sum() == pytest.approx(decrease, rel=0.01)


def _mean_leaf_impurity(tree):
    leaves = tree.is_leaf
    return np.average(tree.impurity[leaves], weights=tree.weighted_n_node_samples[leaves])


def test_standard_errors_and_z_are_over_the_trees():
    forest, X, y = fitted(RandomForestClassifier)
    found = forest.importances(X, y)
    np.testing.assert_allclose(found.importance, found.by_tree.mean(axis=0))
    np.testing.assert_allclose(found.standard_error, found.by_tree.std(axis=0, ddof=1) / np.sqrt(7))
    np.testing.assert_allclose(found.z[:3], found.importance[:3] / found.standard_error[:3])
    assert np.isnan(found.z[3])


def test_more_repeats_reduce_the_standard_error():
    X, y = load_diabetes(return_X_y=True)
    forest = small(RandomForestRegressor, n_estimators=30).fit(X, y)
    one, many = forest.importances(X, y), forest.importances(X, y, n_repeats=10)
    assert many.standard_error.sum() < one.standard_error.sum()
    assert np.corrcoef(one.importance, many.importance)[0, 1] > 0.97


def test_row_importances_average_to_those_of_the_forest():
    X, y = load_iris(return_X_y=True)
    forest = small(RandomForestClassifier, n_estimators=200).fit(X, y)
    found = forest.importances(X, y, by_row=True)
    np.testing.assert_allclose(np.nanmean(found.by_row, axis=0), found.importance, atol=0.01)
    # the first class differs from the others in petals alone: no row of it needs the width of its sepals
    assert abs(found.by_row[y == 0, 1]).mean() < found.by_row[y == 0, 2].mean() / 10


# ---- the same for everyone --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_results_are_bit_identical_for_any_number_of_threads_and_frame_library(kind):
    forest, X, y = fitted(kind, n_estimators=13)
    tables = [X, pl.from_pandas(X), pa.Table.from_pandas(X)]
    for name in ("permutation", "unbiased"):
        options = {"by_row": True, "n_repeats": 2} if name == "permutation" else {}
        expected = forest.set_params(n_jobs=1).importances(X, y, name, **options)
        for n_jobs, table in zip((2, 7, 1), tables, strict=True):
            found = forest.set_params(n_jobs=n_jobs).importances(table, y, name, **options)
            assert np.array_equal(found.by_tree, expected.by_tree)
            assert name == "unbiased" or np.array_equal(found.by_row, expected.by_row, equal_nan=True)


def test_the_default_seed_is_that_of_the_forest():
    forest, X, y = fitted(RandomForestClassifier)
    assert np.array_equal(forest.importances(X, y).by_tree, forest.importances(X, y).by_tree)
    one, two = (forest.importances(X, y, random_state=seed).by_tree for seed in (1, 2))
    assert not np.array_equal(one, two)
    assert np.array_equal(one, forest.importances(X, y, random_state=1).by_tree)


def test_pickled_forests_and_results_have_the_same_numbers():
    forest, X, y = fitted(RandomForestClassifier)
    found = forest.importances(X, y)
    again = pickle.loads(pickle.dumps(forest)).importances(X, y)
    assert np.array_equal(found.by_tree, again.by_tree)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).by_tree, found.by_tree)
    assert copy.deepcopy(found).names == found.names


def test_sparse_rows_have_the_same_importances():
    X, y = load_iris(return_X_y=True)
    X = np.where(X > 2.5, X, 0)
    forest = small(RandomForestClassifier).fit(X, y)
    for kind in ("permutation", "unbiased"):
        dense, sparse = (forest.importances(table, y, kind).by_tree for table in (X, csc_array(X)))
        assert np.array_equal(dense, sparse)


def test_columns_are_matched_by_name():
    forest, X, y = fitted(RandomForestClassifier)
    found = forest.importances(X[["d", "b", "a", "c"]], y)
    assert np.array_equal(found.by_tree, forest.importances(X, y).by_tree)


def test_a_long_permutation_can_be_interrupted():
    X, y = load_diabetes(return_X_y=True)
    forest = small(RandomForestRegressor).fit(X, y)
    started = time.process_time()
    previous = signal.signal(signal.SIGALRM, _stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            forest.importances(X, y, n_repeats=10**7)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert time.process_time() - started < 5


def _stop(*_):
    raise KeyboardInterrupt


def test_samples_by_group_are_used():
    X, y, _ = mixed()
    people = np.arange(len(X)) // 4
    forest = small(RandomForestClassifier).fit(X, y, groups=people)
    by_tree, _ = permutation_importances(forest, X, y, [[0], [1], [2], [3]], loss="error")
    np.testing.assert_allclose(forest.importances(X, y).by_tree, by_tree, atol=1e-12)


# ---- refusals ---------------------------------------------------------------------------------------------


def test_errors():
    forest, X, y = fitted(RandomForestClassifier)
    for call, message in [
        (lambda: forest.importances(X, y, kind="gain"), "kind must be one of 'permutation', 'unbiased', 'impurity'"),
        (lambda: forest.importances(X, y, loss="squared_error"), "loss must be one of 'error', 'brier', 'margin' here"),
        (lambda: forest.importances(X, y, "unbiased", loss="error"), "loss requires kind='permutation'"),
        (lambda: forest.importances(X, y, "unbiased", by_row=True), "by_row requires kind='permutation'"),
        (lambda: forest.importances(X, y, n_repeats=0), "n_repeats must be a whole number of at least 1"),
        (lambda: forest.importances(), "measured on the training rows. Pass the X and y"),
        (lambda: forest.importances(X[:-1], y[:-1]), "X has 79 rows, but the forest was fitted on 80"),
        (lambda: forest.importances(X, ["low"] * 80), "y does not have the classes"),
        (
            lambda: forest.importances(X, y, groups=[["a", "z"]]),
            "groups names a column that the table does not have: 'z'",
        ),
        (lambda: forest.importances(X, y, groups=[["a"], ["a", "b"]]), "groups has column 'a' twice"),
        (lambda: forest.importances(X, y, groups=[[]]), "empty group"),
        (lambda: forest.importances(X, y, groups="a"), "groups must be a list of lists"),
        (lambda: forest.importances(X, y).plot_rows(), "by_row=True"),
        (lambda: forest.importances(X, y).rows_to_frame(), "by_row=True"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("kind", ["permutation", "unbiased"])
def test_forests_without_bootstrap_are_rejected(kind):
    X, y, _ = mixed()
    forest = ExtraTreesClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match=r"bootstrap=True, or use spinney\.permutation_importance"):
        forest.importances(X, y, kind)
    with pytest.raises(AttributeError, match="A model file stores which rows were drawn only with keep_rows=True"):
        through_bytes(small(RandomForestClassifier).fit(X, y)).importances(X, y, kind)


def test_a_user_criterion_is_rejected():
    X, _, y = mixed()
    own = spinney.LossCriterion(lambda y, constant: (y - constant) ** 2)
    forest = small(RandomForestRegressor, criterion=own, n_estimators=2, max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match="a user-defined criterion may predict"):
        forest.importances(X, y)


def test_no_out_of_bag_rows_is_an_error():
    X, y = [[0.0], [1.0]], [0, 1]
    forest = RandomForestClassifier(n_estimators=1, random_state=0, replace=False, max_samples=2).fit(X, y)
    with pytest.raises(ValueError, match="no row is out of bag"):
        forest.importances(X, y)


def test_unused_columns_have_importance_zero():
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 3))
    wide = np.hstack([X, np.zeros((2000, 500))])
    y = X[:, 0] > 0
    forest = RandomForestClassifier(n_estimators=5, max_features=None, random_state=0, n_jobs=1).fit(wide, y)
    started = time.process_time()
    forest.importances(wide, y, n_repeats=20)
    assert time.process_time() - started < 2


# ---- showing ----------------------------------------------------------------------------------------------


def test_frames():
    forest, X, y = fitted(RandomForestClassifier)
    found = forest.importances(X, y, by_row=True)
    for backend in ("pandas", "polars"):
        frame = found.to_frame(backend)
        assert list(frame.columns) == ["column", "importance", "standard_error", "z", "n_splits"]
        values = frame["importance"].to_list()
        assert values == sorted(values, reverse=True)
        assert found.rows_to_frame(backend).shape == (80, 4)
    assert len(found) == 4
    assert "error rate" in str(found)
    assert str(found).count("±") == 4
    assert repr(found) == "<Importances: permutation, 4 columns, 7 trees>"


def test_plots():
    forest, X, y = fitted(RandomForestClassifier)
    found = forest.importances(X, y, by_row=True)
    bars = found.plot()
    assert [text.get_text() for text in bars.get_yticklabels()] == [found.names[j] for j in found.order]
    assert sorted(patch.get_width() for patch in bars.patches) == pytest.approx(sorted(found.importance))
    assert len(found.plot(style="box", max_columns=2).get_yticklabels()) == 2
    points = found.plot_rows(colour=y)
    assert [text.get_text() for text in points.get_legend().get_texts()] == ["high", "low", "middle"]
    assert found.plot_rows(colour=np.arange(80.0)).figure.axes[1] is not None
    assert found.plot_rows().get_legend() is None
    for call in (
        lambda: found.plot(style="pie"),
        lambda: found.plot(max_columns=0),
        lambda: found.plot_rows(colour=[1]),
    ):
        with pytest.raises(ValueError, match=r"style|max_columns|colour"):
            call()
    mpl.pyplot.close("all")
