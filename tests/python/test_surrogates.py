"""Surrogate splits and competitors: found, ranked and followed as the slow twin says; read, kept and counted."""

import contextlib
import io
import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import surrogates as twin
from oracle.data import continuous_table, target_for
from oracle.models import CRITERIA, assert_identical, bits, spinney_tree
from oracle.saved import assert_same_model as assert_same_saved
from oracle.saved import through_bytes
from oracle.surrogates import check_surrogate_tree
from sklearn.utils.estimator_checks import parametrize_with_checks
from spinney.reading.reader import TreeReader

NAN = np.nan
WAYS = [
    {"missing_fallback": fallback, "surrogate_style": style}
    for fallback, style in itertools.product(["majority", "stop", "ignore"], ["all", "present"])
]


def table(seed, n=60, n_columns=4, share=0.25, categories=()):
    """Columns that imitate one another, with missing values everywhere; small whole numbers, so that ties abound."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    X = np.round(2 * common[:, None] + rng.normal(size=(n, n_columns))).clip(-4, 4)
    for j in categories:
        X[:, j] = (X[:, j] + 4) % 5
    y = (common + 0.5 * rng.normal(size=n) > 0).astype(int) + (common > 1)
    X[rng.random(X.shape) < share] = NAN
    return X, y


def same_splits(first, second):
    a, b = first.tree_.splits, second.tree_.splits
    assert a.keys() == b.keys()
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


# ---- the slow twin -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification", "squared_error", "absolute_error"])
def test_every_node_is_the_twins(criterion, way):
    for seed in range(3):
        X, y = table(seed)
        y = y if criterion in ("gini", "entropy", "misclassification") else X[:, 0] * 0 + np.nan_to_num(X).sum(axis=1)
        model = spinney_tree(criterion, missing="surrogate", min_samples_leaf=3, max_competitors=2, **way)
        model.fit(X, np.nan_to_num(y))
        assert (model.tree_.splits["role"] == 2).any()
        check_surrogate_tree(model, X, np.nan_to_num(y))


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 40),
    n_columns=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.1, 0.4, 0.8]),
    weights=st.sampled_from(["none", "whole", "quarters"]),
    with_categories=st.booleans(),
    is_class=st.booleans(),
    way=st.sampled_from(WAYS),
    max_surrogates=st.sampled_from([0, 1, 2, 5]),
    min_samples_leaf=st.integers(1, 3),
)
def test_small_tables_are_the_twins(
    seed, n, n_columns, share, weights, with_categories, is_class, way, max_surrogates, min_samples_leaf
):
    categories = tuple(range(0, n_columns, 2)) if with_categories else ()
    X, y = table(seed, n, n_columns, share, categories)
    rng = np.random.default_rng(seed)
    w = {"none": None, "whole": rng.integers(1, 4, n) * 1.0, "quarters": rng.integers(1, 9, n) / 4}[weights]
    kind = spinney.DecisionTreeClassifier if is_class else spinney.DecisionTreeRegressor
    y = np.minimum(y, 1) if is_class else rng.integers(-8, 8, n) / 4
    model = kind(
        missing="surrogate",
        max_surrogates=max_surrogates,
        min_samples_leaf=min_samples_leaf,
        max_competitors=2,
        categorical_features=list(categories) or None,
        **way,
    ).fit(X, y, sample_weight=w)
    check_surrogate_tree(model, recoded(model, X, categories), y, w, table=X, categories=categories)
    if (model.tree_.splits["role"] == 2).any():
        np.testing.assert_allclose(model.feature_importances_, twin.importances(model), rtol=1e-12)


def recoded(model, X, categories):
    """Return the table with the model's codes in place of the categories."""
    X = X.copy()
    for j in categories:
        values = list(model.schema_.features[j].categories)
        X[:, j] = [NAN if v != v else values.index(v) for v in X[:, j]]
    return X


def test_weights_that_are_no_whole_numbers():
    X, y = table(5, n=80)
    w = np.random.default_rng(5).uniform(0.2, 3.0, 80)
    w[::7] = 0
    model = spinney.DecisionTreeClassifier(missing="surrogate", min_samples_leaf=3).fit(X, y, sample_weight=w)
    check_surrogate_tree(model, X, y, w)


# ---- what must hold ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_without_missing_values_it_is_the_same_tree(criterion):
    X = continuous_table(3, n=90, categories={1: 4})
    y = target_for(criterion, X, 3, n_classes=3)
    options = {"categorical_features": [1], "min_samples_leaf": 2}
    plain = spinney_tree(criterion, **options).fit(X, y)
    model = spinney_tree(criterion, missing="surrogate", **options).fit(X, y)
    assert_identical(plain, model)
    np.testing.assert_array_equal(bits(plain, X), bits(model, X))


@pytest.mark.parametrize("options", [{}, {"feature_costs": [2, 1, 2, 1]}, {"max_leaf_nodes": 7}, {"max_bins": 4}])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_competitors_change_nothing(criterion, options):
    for seed in range(4):
        X = np.round(continuous_table(seed, n=90, missing=True, categories={1: 4}), 1)
        y = target_for(criterion, X, seed, n_classes=3)
        kept = {"categorical_features": [1], **options}
        plain = spinney_tree(criterion, **kept).fit(X, y)
        model = spinney_tree(criterion, max_competitors=3, **kept).fit(X, y)
        assert_identical(plain, model)
        np.testing.assert_allclose(plain.feature_importances_, model.feature_importances_, rtol=1e-12)
        assert (model.tree_.splits["role"] == 1).any()


def test_competitors_do_not_change_where_categories_go_that_a_node_has_not_seen():
    rng = np.random.default_rng(0)
    for unseen in ("missing", "other"):
        X = pd.DataFrame({"a": rng.normal(size=60), "c": rng.choice([*"pqrst", None], 60)})
        y = rng.integers(0, 2, 60)
        new = pd.DataFrame({"a": rng.normal(size=200), "c": rng.choice([*"pqrstz"], 200)})
        plain = spinney.DecisionTreeClassifier(unseen=unseen).fit(X, y)
        model = spinney.DecisionTreeClassifier(unseen=unseen, max_competitors=2).fit(X, y)
        np.testing.assert_array_equal(plain.apply(new), model.apply(new))


@pytest.mark.parametrize("way", WAYS[:3:2], ids=lambda way: way["missing_fallback"])
def test_any_number_of_threads_gives_the_same_bits(way):
    X, y = table(8, n=3000, n_columns=6)
    y = y + np.nan_to_num(X[:, 1])
    models = [
        spinney.DecisionTreeRegressor(missing="surrogate", max_competitors=2, min_samples_leaf=5, n_jobs=k, **way)
        for k in (1, 2, 7)
    ]
    for model in models:
        model.fit(X, y)
        assert_identical(models[0], model)
        assert same_splits(models[0], model)
        np.testing.assert_array_equal(models[0].apply(X), model.apply(X))


def test_frame_libraries_give_the_same_tree():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    frames = [X, pl.from_pandas(X), pl.from_pandas(X).to_arrow()]
    models = [spinney.DecisionTreeClassifier(missing="surrogate").fit(frame, list(y)) for frame in frames]
    for model, frame in zip(models, frames, strict=True):
        assert_identical(models[0], model)
        assert same_splits(models[0], model)
        np.testing.assert_array_equal(model.predict(frame), models[0].predict(X))


def test_a_row_twice_is_a_row_of_weight_two():
    for seed in range(5):
        X, y = table(seed, n=50, n_columns=3)
        twice = np.random.default_rng(seed).integers(1, 3, 50)
        # two rows that disagree count as two: where rows are counted, the trees must not come near the limit
        options = {"missing": "surrogate", "min_samples_leaf": 1, "max_depth": 2}
        weighted = spinney.DecisionTreeClassifier(**options).fit(X, y, sample_weight=twice)
        repeated = spinney.DecisionTreeClassifier(**options).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
        assert_identical(weighted, repeated, but=("n_node_samples",))
        a, b = weighted.tree_.splits, repeated.tree_.splits
        for name in ("feature", "threshold", "role", "flags", "improve", "adjusted"):
            np.testing.assert_array_equal(a[name], b[name])


def test_rows_of_weight_zero_are_not_there():
    X, y = table(2, n=60)
    w = np.arange(60) % 3 > 0
    all_rows = spinney.DecisionTreeClassifier(missing="surrogate").fit(X, y, sample_weight=w)
    some = spinney.DecisionTreeClassifier(missing="surrogate").fit(X[w], y[w])
    assert_identical(all_rows, some)
    assert same_splits(all_rows, some)


@pytest.mark.parametrize("is_category", [False, True])
def test_a_copy_of_a_column_stands_in_for_it(is_category):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 3))
    if is_category:
        X[:, 0] = rng.integers(0, 5, 120)
    X = np.column_stack([X, X[:, 0]])
    y = (X[:, 0] > 0.5) * 3.0 + X[:, 0] + 0.1 * X[:, 1]
    options = {"categorical_features": [0, 3] if is_category else None, "min_samples_leaf": 4}
    model = spinney.DecisionTreeRegressor(missing="surrogate", **options).fit(X, y)
    splits = model.tree_.splits
    firsts = 0
    for node in np.flatnonzero(model.tree_.feature == 0):
        begin, end = splits["begin"][node : node + 2]
        first = next(s for s in range(begin, end) if splits["role"][s] == 2)
        assert splits["feature"][first] == 3
        assert splits["improve"][first] == splits["adjusted"][first] == 1.0
        firsts += 1
    assert firsts > 3
    blanked = X.copy()
    blanked[:, 0] = NAN
    np.testing.assert_array_equal(model.predict(X), model.predict(blanked))


# ---- rows that stop ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["stop", "ignore"])
def test_rows_that_stop_predict_what_the_node_says(fallback):
    X, y = table(1, n=120)
    model = spinney.DecisionTreeRegressor(missing="surrogate", missing_fallback=fallback, min_samples_leaf=4).fit(X, y)
    blank = np.full((1, 4), NAN)
    assert model.apply(blank).tolist() == [0]
    assert model.predict(blank) == pytest.approx(y.mean())
    assert model.decision_path(blank).toarray().tolist() == [[1] + [0] * (model.tree_.node_count - 1)]
    nodes = model.apply(X)
    assert (~model.tree_.is_leaf[nodes]).any()
    np.testing.assert_array_equal(model.predict(X), model.tree_.value[nodes, 0, 0])
    path = model.decision_path(X).toarray()
    np.testing.assert_array_equal(path.sum(axis=0), model.tree_.n_node_samples)
    for row in range(len(X)):
        assert path[row].nonzero()[0].max() == nodes[row]
        assert path[row].sum() == model.tree_.depth[nodes[row]] + 1
    handle = model.to_predictor()
    assert [handle.apply(list(row)) for row in X] == nodes.tolist()


def test_only_rows_that_nothing_places_stop():
    X, y = table(1, n=120)
    model = spinney.DecisionTreeClassifier(missing="surrogate", missing_fallback="stop", max_depth=1).fit(X, y)
    own = X[:, model.tree_.feature[0]]
    others = [s for s in range(len(model.tree_.splits["role"])) if model.tree_.splits["role"][s] == 2]
    columns = model.tree_.splits["feature"][others]
    lost = np.isnan(own) & np.isnan(X[:, columns]).all(axis=1)
    np.testing.assert_array_equal(model.apply(X) == 0, lost)


# ---- beside the other parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"max_leaf_nodes": 6},
        {"max_features": 2, "random_state": 0},
        {"max_bins": 4},
        {"splitter": "random", "random_state": 0},
        {"interaction_cst": [[0, 1], [2, 3]]},
        {"ccp_alpha": 0.01},
        {"feature_costs": [1, 2, 3, 4]},
        {"min_impurity_decrease": 0.01},
        {"min_weight_fraction_leaf": 0.05},
        {"shrinkage": 5.0},
        {"prune": "cv", "cv": 3, "random_state": 0},
        {"validation_fraction": 0.2, "random_state": 0},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("way", WAYS[::2], ids=lambda way: way["missing_fallback"])
@pytest.mark.parametrize("kind", [spinney.DecisionTreeClassifier, spinney.DecisionTreeRegressor])
def test_it_goes_with_the_other_parameters(kind, way, options):
    X, y = table(6, n=150)
    model = kind(missing="surrogate", min_samples_leaf=2, **way, **options).fit(X, y)
    assert model.get_n_leaves() > 1
    resting = model.apply(X)
    reader = TreeReader(model)
    for row, node in zip(X[:40], resting[:40], strict=True):
        assert reader.steps(row.tolist())[-1].node == node
    if way["missing_fallback"] == "majority":
        assert model.tree_.is_leaf[resting].all()
    assert model.feature_importances_.sum() == pytest.approx(1)
    if "max_leaf_nodes" in options:
        assert model.get_n_leaves() <= 6
    assert model.score(X, y) > 0.3


@pytest.mark.parametrize("direction", [-1, 1])
def test_monotone_constraints_hold(direction):
    X, y = table(7, n=200)
    y = direction * y + np.random.default_rng(7).normal(size=200)
    model = spinney.DecisionTreeRegressor(missing="surrogate", monotonic_cst=[direction, 0, 0, 0], max_depth=5)
    model.fit(X, y)
    rows = X[:60].copy()
    answers = []
    for value in np.arange(-4.5, 4.6, 0.5):
        rows[:, 0] = value
        answers.append(model.predict(rows))
    assert (direction * np.diff(answers, axis=0) >= -1e-12).all()
    assert np.ptp(answers) > 0


def test_several_outputs():
    X, y = table(9, n=100)
    model = spinney.DecisionTreeRegressor(missing="surrogate", min_samples_leaf=3)
    check_surrogate_tree(model.fit(X, np.column_stack([y, -2.0 * y])), X, np.column_stack([y, -2.0 * y]))
    classes = spinney.DecisionTreeClassifier(missing="surrogate", min_samples_leaf=3)
    both = np.column_stack([y, y > 0]).astype(int)
    check_surrogate_tree(classes.fit(X, both), X, both)


def test_a_criterion_of_your_own():
    X, y = table(9, n=60)
    criterion = spinney.LossCriterion(lambda y, c: (y - c) ** 2)
    own = spinney.DecisionTreeRegressor(criterion=criterion, missing="surrogate", min_samples_leaf=5).fit(X, y)
    plain = spinney.DecisionTreeRegressor(missing="surrogate", min_samples_leaf=5).fit(X, y)
    np.testing.assert_array_equal(own.tree_.feature, plain.tree_.feature)
    np.testing.assert_array_equal(own.tree_.splits["feature"], plain.tree_.splits["feature"])
    np.testing.assert_allclose(own.predict(X), plain.predict(X), atol=1e-5)


def test_gain_ratio_chooses_by_its_rule_among_rows_with_a_value():
    X, y = table(3, n=200)
    model = spinney.DecisionTreeClassifier(criterion="gain_ratio", missing="surrogate", max_depth=1, max_competitors=3)
    model.fit(X, y)
    splits, ratios, gains = model.tree_.splits, {}, {}
    for s in np.flatnonzero(splits["role"] < 2):
        column, known = splits["feature"][s], ~np.isnan(X[:, splits["feature"][s]])
        share = np.mean(X[known, column] <= splits["threshold"][s])
        gains[column] = splits["improve"][s]
        ratios[column] = splits["improve"][s] / -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
    assert len(gains) == 4
    eligible = [j for j in gains if gains[j] >= np.mean(list(gains.values())) - 1e-9]
    assert model.tree_.feature[0] == max(eligible, key=lambda j: ratios[j])


@parametrize_with_checks(
    [
        spinney.DecisionTreeClassifier(missing="surrogate", max_competitors=2),
        spinney.DecisionTreeRegressor(missing="surrogate", missing_fallback="stop"),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)
