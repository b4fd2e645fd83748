"""Quantiles, standard errors, intervals, sets of classes and support against loops and against the truth."""

import io
import json
import pickle

import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.forest_uncertainty import (
    drawn_counts,
    slow_infinitesimal,
    slow_jackknife,
    slow_jackknife_plus,
    slow_quantile,
    slow_upper_point,
    slow_weights,
    tree_predictions,
)
from oracle.saved import bytes_of, through_bytes
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor, _engine
from spinney._estimator.conformal import conformal_quantile, nonconformity, weight_needed
from sweep import examples

LEVELS = (0.05, 0.5, 0.9)


def values(n=120, seed=0, n_columns=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_columns))
    return X, X[:, 0] + random.normal(size=n)


def classes(n=150, seed=0):
    X, y = values(n, seed)
    return X, np.array(["a", "b", "c"])[np.digitize(y, [-0.6, 0.6])]


def small(kind=RandomForestRegressor, **parameters):
    return kind(**({"n_estimators": 15, "random_state": 0, "keep_rows": True, "min_samples_leaf": 3} | parameters))


# ---- weights and quantiles ------------------------------------------------------------------------------


DESIGNS = {
    "bootstrap": ({}, {}),
    "subsample": ({"replace": False}, {}),
    "few": ({"max_samples": 0.3}, {}),
    "all rows": ({"bootstrap": False}, {}),
    "groups": ({}, {"groups": np.arange(120) // 4}),
    "bins": ({"max_bins": 8}, {}),
    "pruned": ({"ccp_alpha": 0.02}, {}),
    "shrunk": ({"shrinkage": 2.0}, {}),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_weights_are_shares_of_leaves(design):
    parameters, more = DESIGNS[design]
    X, y = values()
    forest = small(**parameters).fit(X, y, **more)
    expected = slow_weights(forest, X[:10] + 0.1, X, drawn_counts(forest, len(X)))
    found = forest.leaf_weights(X[:10] + 0.1)
    assert found.shape == (10, 120)
    assert found.has_canonical_format or (np.diff(found.indices[: found.indptr[1]]) > 0).all()
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-14)
    if design != "shrunk":
        np.testing.assert_allclose(found @ y, forest.predict(X[:10] + 0.1), rtol=1e-10)
    quantiles = forest.predict_quantiles(X[:10] + 0.1, LEVELS)
    slow = [[slow_quantile(y, w, level) for level in LEVELS] for w in expected]
    np.testing.assert_array_equal(quantiles, slow)


@pytest.mark.parametrize("whole", [True, False])
def test_weights_of_rows_count(whole):
    X, y = values()
    weight = np.random.default_rng(1).integers(0, 4, 120) ** (1 if whole else 1.5)  # 2.83 is no multiple of 1
    forest = small().fit(X, y, sample_weight=weight)
    by_tree = drawn_counts(forest, 120) * (1.0 if whole else weight)
    np.testing.assert_allclose(forest.leaf_weights(X).toarray(), slow_weights(forest, X, X, by_tree), atol=1e-14)
    np.testing.assert_allclose(forest.leaf_weights(X) @ y, forest.predict(X), rtol=1e-10)


def test_a_whole_weight_is_a_row_that_is_there_so_often():
    X, y = values()
    times = np.random.default_rng(1).integers(1, 3, 120)
    weighted = small(min_samples_leaf=1, max_depth=4).fit(X, y, sample_weight=times)
    repeated = small(min_samples_leaf=1, max_depth=4).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_array_equal(weighted.predict_quantiles(X, LEVELS), repeated.predict_quantiles(X, LEVELS))


def test_weights_of_balanced_samples():
    X, y = classes()
    forest = small(RandomForestClassifier, class_weight="balanced_subsample", shrinkage=None).fit(X, y)
    shares = np.stack([forest.leaf_weights(X) @ (y == label).astype(float) for label in forest.classes_], axis=1)
    np.testing.assert_allclose(shares, forest.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_weights_of_classes_give_their_shares(kind):
    X, y = classes()
    forest = small(kind, class_weight="balanced", shrinkage=None).fit(X, y)
    shares = np.stack([forest.leaf_weights(X) @ (y == label).astype(float) for label in forest.classes_], axis=1)
    np.testing.assert_allclose(shares, forest.predict_proba(X), atol=1e-12)


def test_out_of_bag_quantiles_use_trees_that_have_not_seen_the_row():
    X, y = values(60)
    forest = small(n_estimators=4).fit(X, y)
    counts = drawn_counts(forest, 60)
    weights = slow_weights(forest, X, X, counts, oob=True)
    slow = [[slow_quantile(y, w, level) for level in LEVELS] for w in weights]
    assert np.isnan(slow).any()
    np.testing.assert_array_equal(forest.predict_quantiles(X, LEVELS, oob=True), slow)
    np.testing.assert_array_equal(forest.predict_quantiles(None, LEVELS, oob=True), slow)
    found = forest.leaf_weights(oob=True).toarray()
    np.testing.assert_allclose(found, np.nan_to_num(weights), atol=1e-14)


@examples(10)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_single_leaf_has_the_quantiles_of_the_sample(targets, levels):
    y = np.array(targets, dtype=float)
    X = np.zeros((len(y), 1))
    forest = small(bootstrap=False, n_estimators=2).fit(X, y)
    exact = np.quantile(y, levels, method="inverted_cdf")
    found = forest.predict_quantiles(X[:1], levels)[0]
    near = [abs(level * len(y) - round(level * len(y))) < 1e-6 for level in levels]
    np.testing.assert_array_equal(np.where(near, 0, found), np.where(near, 0, exact))
    assert forest.predict_quantiles(X[:1], 0.0) == y.min()
    assert forest.predict_quantiles(X[:1], 1.0) == y.max()


def test_quantiles_come_in_the_order_asked_for():
    X, y = values()
    forest = small().fit(X, y)
    found = forest.predict_quantiles(X, (0.9, 0.1, 0.5))
    np.testing.assert_array_equal(found[:, [1, 2, 0]], forest.predict_quantiles(X, (0.1, 0.5, 0.9)))
    assert (found[:, 1] <= found[:, 0]).all()
    assert forest.predict_quantiles(X, 0.5).shape == (120,)


def test_the_distribution_function_is_the_share_of_weights():
    X, y = values()
    forest = small().fit(X, y)
    at = np.array([-1.0, 0.0, 2.0])
    expected = np.stack([forest.leaf_weights(X) @ (y <= v).astype(float) for v in at], axis=1)
    np.testing.assert_allclose(forest.predict_cdf(X, at), expected)
    median = forest.predict_quantiles(X, 0.5)
    for row in range(5):
        assert forest.predict_cdf(X[row : row + 1], median[row])[0] >= 0.5 - 1e-9


def test_several_outputs():
    X, y = values()
    Y = np.column_stack([y, -2 * y])
    forest = small().fit(X, Y)
    found = forest.predict_quantiles(X, LEVELS)
    assert found.shape == (120, 2, 3)
    weights = forest.leaf_weights(X[:5]).toarray()
    slow = [[[slow_quantile(Y[:, k], w, level) for level in LEVELS] for k in range(2)] for w in weights]
    np.testing.assert_array_equal(found[:5], slow)
    assert forest.predict_cdf(X, [0.0]).shape == (120, 2, 1)
    for method in ("jackknife+", "residual", "quantile"):
        assert forest.predict_interval(X, method=method).shape == (120, 2, 2)
    assert forest.predict_standard_error(X, corrected=False).shape == (120, 2)
    with pytest.raises(ValueError, match="one output"):
        forest.coverage_report(X, Y)


# ---- the same for everyone ------------------------------------------------------------------------------


def answers(forest, X):
    return [
        forest.predict_quantiles(X, LEVELS),
        forest.leaf_weights(X).toarray(),
        forest.predict_standard_error(X, corrected=False),
        *(forest.predict_interval(X, method=method) for method in ("jackknife+", "residual", "quantile")),
        forest.predict_support(X).effective_rows,
    ]


def assert_same_answers(first, second):
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_results_are_bit_identical_for_any_number_of_threads(n_jobs):
    X, y = values(400)
    assert_same_answers(answers(small(n_jobs=3).fit(X, y), X), answers(small(n_jobs=n_jobs).fit(X, y), X))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_results_are_bit_identical_for_any_table(library):
    random = np.random.default_rng(0)
    n = 80
    columns = {
        "x": np.where(random.random(n) < 0.1, np.nan, random.normal(size=n)),
        "s": random.choice(np.array(["red", "green", "blue"], dtype=object), n),
    }
    y = random.normal(size=n)
    table = {
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(columns),
        "polars": lambda: pytest.importorskip("polars").DataFrame({k: v.tolist() for k, v in columns.items()}),
        "pyarrow": lambda: pytest.importorskip("pyarrow").table({k: v.tolist() for k, v in columns.items()}),
    }[library]()
    expected = answers(small().fit(columns, y), columns)
    assert_same_answers(expected, answers(small().fit(table, y), table))


def test_files_and_pickles_keep_what_was_kept():
    X, y = values()
    forest = small(max_samples=0.8).fit(X, y, groups=np.arange(120) // 3)
    expected = answers(forest, X)
    for copy in (through_bytes(forest), pickle.loads(pickle.dumps(forest)), through_bytes(through_bytes(forest))):
        assert_same_answers(expected, answers(copy, X))
        np.testing.assert_array_equal(copy.estimators_samples_[3], forest.estimators_samples_[3])
    predictor = through_bytes(forest, spinney.load_predictor)
    np.testing.assert_array_equal(predictor.predict(X), forest.predict(X))


def test_files_of_classifiers_keep_their_sets():
    X, y = classes()
    forest = small(RandomForestClassifier, sampling="balanced", class_weight="balanced_subsample").fit(X, y)
    np.testing.assert_array_equal(through_bytes(forest).predict_set(X, 0.8), forest.predict_set(X, 0.8))
    np.testing.assert_array_equal(through_bytes(forest).leaf_weights(X).toarray(), forest.leaf_weights(X).toarray())


def test_rows_are_kept_on_request_only():
    X, y = values()
    forest = small(keep_rows=False).fit(X, y)
    assert len(bytes_of(forest)) < len(bytes_of(small().fit(X, y))) - 2000
    for call in (
        lambda: forest.leaf_weights(X),
        lambda: forest.predict_quantiles(X),
        lambda: forest.predict_interval(X),
        lambda: forest.predict_cdf(X, 0.0),
    ):
        with pytest.raises(AttributeError, match="keep_rows=True"):
            call()
    assert forest.predict_standard_error(X, corrected=False).shape == (120,)
    with pytest.raises(ValueError, match="keep_rows=True"):
        through_bytes(forest).predict_standard_error(X)


def test_more_trees_by_warm_start_are_the_forest_grown_at_once():
    X, y = values()
    forest = small(n_estimators=6, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=15).fit(X, y)
    assert_same_answers(answers(small().fit(X, y), X), answers(forest, X))


def test_a_second_fit_forgets_the_rows():
    X, y = values()
    forest = small().fit(X, y)
    with pytest.raises(AttributeError, match="keep_rows"):
        forest.set_params(keep_rows=False).fit(X, y).predict_quantiles(X)


# ---- standard errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_standard_errors_are_those_of_the_formulas(kind, corrected):
    X, y = values(30)
    forest = small(kind, n_estimators=400, bootstrap=True).fit(X, y)
    counts, f = drawn_counts(forest, 30), tree_predictions(forest, X[:6])
    for method, slow in (("infinitesimal", slow_infinitesimal), ("jackknife", slow_jackknife)):
        expected = [slow(counts, f[:, row], corrected=corrected) for row in range(6)]
        assert min(expected) > 0
        found = forest.predict_standard_error(X[:6], method, corrected=corrected)
        np.testing.assert_allclose(found**2, expected, rtol=1e-9)


def test_the_correction_is_nearly_that_of_the_paper():
    X, y = values(60)
    forest = small(n_estimators=1500).fit(X, y)
    f = tree_predictions(forest, X[:3])
    raw, corrected = (forest.predict_standard_error(X[:3], corrected=c) ** 2 for c in (False, True))
    np.testing.assert_allclose(raw - corrected, 60 / 1500 * f.var(axis=0), rtol=0.05)
    raw, corrected = (forest.predict_standard_error(X[:3], "jackknife", corrected=c) ** 2 for c in (False, True))
    np.testing.assert_allclose(raw - corrected, (np.e - 1) * 60 / 1500 * f.var(axis=0), rtol=0.05)


def test_standard_errors_of_class_shares():
    X, y = classes(40)
    forest = small(RandomForestClassifier, n_estimators=300).fit(X, y)
    counts = drawn_counts(forest, 40)
    found = forest.predict_standard_error(X[:4])
    assert found.shape == (4, 3)
    for k in range(3):
        f = tree_predictions(forest, X[:4], k)
        expected = [max(0.0, slow_infinitesimal(counts, f[:, row])) for row in range(4)]
        np.testing.assert_allclose(found[:, k] ** 2, expected, rtol=1e-9, atol=1e-15)


def test_standard_errors_of_subsamples_groups_strata_and_copies():
    X, y = values(40)
    forest = small(n_estimators=200, replace=False, max_samples=10).fit(X, y)
    f = tree_predictions(forest, X[:3])
    expected = [slow_infinitesimal(drawn_counts(forest, 40), f[:, r], 39 / 40 * (40 / 30) ** 2) for r in range(3)]
    np.testing.assert_allclose(forest.predict_standard_error(X[:3]) ** 2, expected, rtol=1e-9)

    forest = small(n_estimators=300).fit(X, y, groups=np.arange(40) // 2)
    f, counts = tree_predictions(forest, X[:3]), drawn_counts(forest, 40)[:, ::2]
    for method, slow in (("infinitesimal", slow_infinitesimal), ("jackknife", slow_jackknife)):
        expected = [slow(counts, f[:, r]) for r in range(3)]
        np.testing.assert_allclose(forest.predict_standard_error(X[:3], method) ** 2, expected, rtol=1e-9)

    times = np.random.default_rng(0).integers(1, 3, 40)
    forest = small(n_estimators=300).fit(X, y, sample_weight=times)
    f, counts = tree_predictions(forest, X[:3]), drawn_counts(forest, 40)
    expected = [slow_infinitesimal(counts, f[:, r], 1 / times) for r in range(3)]
    np.testing.assert_allclose(forest.predict_standard_error(X[:3]) ** 2, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="whole weights"):
        forest.predict_standard_error(X, "jackknife")

    labels = (y > 0.8).astype(int)
    forest = small(RandomForestClassifier, n_estimators=200, sampling="balanced", replace=False, max_samples=0.5)
    forest.fit(X, labels)
    n_few = int(labels.sum())
    n = np.where(labels == 1, n_few, 40 - n_few)
    s = drawn_counts(forest, 40)[0].astype(int) @ np.eye(2)[labels]
    scale = (n - 1) / n * (n / (n - s[labels])) ** 2
    f = tree_predictions(forest, X[:3])
    expected = [max(0.0, slow_infinitesimal(drawn_counts(forest, 40), f[:, r], scale)) for r in range(3)]
    found = forest.predict_standard_error(X[:3], corrected=True)[:, 0]
    np.testing.assert_allclose(found**2, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("infinitesimal", {}),
        pytest.param("jackknife", {}, marks=pytest.mark.slow),
        pytest.param("infinitesimal", {"replace": False, "max_samples": 0.5}, marks=pytest.mark.slow),
    ],
)
def test_standard_errors_are_near_the_spread_over_training_samples(method, parameters):
    at = np.array([[-0.6], [0.1], [0.7]])
    predicted, estimated = [], []
    for seed in range(40):
        random = np.random.default_rng(seed)
        X = random.uniform(-1, 1, size=(50, 1))
        y = X[:, 0] + random.normal(size=50)
        forest = RandomForestRegressor(
            n_estimators=150, min_samples_leaf=10, random_state=seed, n_jobs=1, **parameters
        ).fit(X, y)
        predicted.append(forest.predict(at))
        estimated.append(forest.predict_standard_error(at, method) ** 2)
    ratio = np.mean(estimated, axis=0).mean() / np.var(predicted, axis=0, ddof=1).mean()
    assert 0.7 < ratio < 1.5


def test_variances_below_zero_become_zero_with_a_warning():
    X, y = values(200)
    forest = small(n_estimators=10, min_samples_leaf=1).fit(X, y)
    with pytest.warns(UserWarning, match=r"\d+ of 200 variances were negative"):
        found = forest.predict_standard_error(X)
    assert (found >= 0).all()
    assert (found == 0).any()


def test_standard_errors_of_several_class_outputs():
    X, y = classes(60)
    forest = small(RandomForestClassifier).fit(X, np.column_stack([y, y == "a"]))
    found = forest.predict_standard_error(X, corrected=False)
    assert [part.shape for part in found] == [(60, 3), (60, 2)]


def test_standard_errors_refuse_what_they_cannot_know():
    X, y = values(40)
    with pytest.raises(ValueError, match="bootstrap=False"):
        small(bootstrap=False).fit(X, y).predict_standard_error(X)
    with pytest.raises(ValueError, match="every tree has drawn all rows"):
        small(replace=False, max_samples=1.0).fit(X, y).predict_standard_error(X)
    with pytest.raises(ValueError, match="with replacement"):
        small(replace=False).fit(X, y).predict_standard_error(X, "jackknife")
    with pytest.raises(ValueError, match="'infinitesimal' or 'jackknife', not 'delta'"):
        small().fit(X, y).predict_standard_error(X, "delta")
    with pytest.raises(ValueError, match="at least 2 trees"):
        small(n_estimators=1).fit(X, y).predict_standard_error(X)
    with pytest.warns(UserWarning, match="were drawn for every tree"):
        small(n_estimators=3).fit(X, y).predict_standard_error(X, "jackknife", corrected=False)


# ---- intervals ------------------------------------------------------------------------------------------


def test_jackknife_plus_is_that_of_the_formula():
    X, y = values(50)
    forest = small(n_estimators=20).fit(X, y)
    counts, known = drawn_counts(forest, 50), tree_predictions(forest, X)
    by_tree = tree_predictions(forest, X[:5] + 0.2)
    found = forest.predict_interval(X[:5] + 0.2, 0.8, "jackknife+")
    for row in range(5):
        low, high = slow_jackknife_plus(counts, by_tree[:, row], known, y, 0.8)
        np.testing.assert_allclose(found[row], (low, high), rtol=1e-12)


def test_residual_intervals_are_the_prediction_and_a_quantile_of_the_errors():
    X, y = values()
    forest = small(n_estimators=60, oob_score=True).fit(X, y)
    margin = slow_upper_point(np.abs(y - forest.oob_prediction_), 0.9)
    found = forest.predict_interval(X, 0.9, "residual")
    np.testing.assert_allclose(found, forest.predict(X)[:, np.newaxis] + np.array([-margin, margin]), rtol=1e-12)


def test_quantile_intervals_are_widened_out_of_bag():
    X, y = values()
    forest = small(n_estimators=60).fit(X, y)
    known = forest.predict_quantiles(oob=True, quantiles=(0.1, 0.9))
    beyond = np.maximum(known[:, 0] - y, y - known[:, 1])
    margin = slow_upper_point(beyond, 0.8)
    expected = forest.predict_quantiles(X, (0.1, 0.9)) + np.array([-margin, margin])
    expected = np.clip(expected, y.min(), y.max())
    np.testing.assert_allclose(forest.predict_interval(X, 0.8), expected, rtol=1e-12)
    np.testing.assert_array_equal(forest.predict_interval(X, 0.8), forest.predict_interval(X, 0.8, "quantile"))


def test_quantile_intervals_of_few_rows_may_leave_the_targets():
    X, y = values(20)
    forest = small(n_estimators=60).fit(X, y)
    known = forest.predict_quantiles(oob=True, quantiles=(0.05, 0.95))
    margin = slow_upper_point(np.maximum(known[:, 0] - y, y - known[:, 1]), 0.9)
    expected = forest.predict_quantiles(X, (0.05, 0.95)) + np.array([-margin, margin])
    np.testing.assert_allclose(forest.predict_interval(X, 0.9), expected, rtol=1e-12)
    assert expected.max() > y.max()


def test_intervals_of_counts_do_not_go_below_zero():
    random = np.random.default_rng(0)
    X = random.uniform(size=(400, 2))
    y = random.poisson(np.exp(4 * X[:, 0])).astype(float)
    forest = small(n_estimators=60).fit(X[:300], y[:300])
    assert forest.predict_interval(X[300:], 0.9, "jackknife+").min() < 0
    ends = forest.predict_interval(X[300:])
    assert ends.min() >= 0
    assert np.mean((ends[:, 0] <= y[300:]) & (y[300:] <= ends[:, 1])) > 0.83


@examples(15)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=15),
    st.floats(0.01, 0.99),
)
def test_weighted_calibration_counts_rows(pairs, coverage):
    scores, times = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    expected = slow_upper_point(np.repeat(scores, times.astype(int)), coverage)
    assert conformal_quantile(scores, times, coverage) == expected
    assert conformal_quantile(np.repeat(scores, times.astype(int)), None, coverage) == expected
    needed = weight_needed(len(scores), times, coverage)
    seen_by_none, by_tree = np.ones((1, len(scores)), dtype=np.uint8), np.array([[0.0], [1.0]])
    ends = _engine.jackknife_plus(by_tree, seen_by_none, scores, times, needed, 1)
    np.testing.assert_array_equal(ends, [[-expected, expected], [1 - expected, expected + 1]])


@pytest.mark.parametrize("n_trees", [1, 8, 45])
@pytest.mark.parametrize("n_rows", [7, 5000])
@pytest.mark.parametrize("has_weights", [False, True])
def test_ends_of_intervals_are_those_of_the_reference(n_trees, n_rows, has_weights):
    random = np.random.default_rng(n_trees)
    unseen = random.random((n_rows, n_trees)) < 0.4
    unseen[np.arange(n_rows), random.integers(n_trees, size=n_rows)] = True
    bits = np.packbits(unseen.T, axis=0, bitorder="little")
    by_tree, error = random.integers(-9, 9, size=(4, n_trees)) / 4, random.integers(9, size=n_rows) / 8
    error[: n_rows // 2] = np.sort(error[: n_rows // 2])  # a sample of the rows is misleading
    weight = random.integers(4, size=n_rows).astype(float) if has_weights else None
    times = np.ones(n_rows, dtype=int) if weight is None else weight.astype(int)
    centres = np.array([[values[trees].mean() for trees in unseen] for values in by_tree])
    for coverage in (0.01, 0.5, 0.9, 0.9999999):
        needed = weight_needed(n_rows, weight, coverage)
        one, three = (_engine.jackknife_plus(by_tree, bits, error, weight, needed, n_jobs) for n_jobs in (1, 3))
        np.testing.assert_array_equal(one, three)
        for row in range(4):
            scores = [np.repeat(error + sign * centres[row], times) for sign in (-1, 1)]
            low, high = (slow_upper_point(side, coverage) for side in scores)
            np.testing.assert_allclose(one[row], (-low, high), rtol=1e-12, atol=1e-12)


def test_rows_of_weight_zero_do_not_calibrate():
    X, y = values(80)
    y_wild = y.copy()
    y_wild[:20] = 1e6
    weight = np.ones(80)
    weight[:20] = 0
    forest = small(n_estimators=40).fit(X, y_wild, sample_weight=weight)
    assert np.abs(forest.predict_interval(X)).max() < 100


def test_too_few_rows_give_infinite_intervals():
    X, y = values(8)
    ends = small(n_estimators=40).fit(X, y).predict_interval(X, 0.95)
    assert (ends == [-np.inf, np.inf]).all()


@pytest.mark.parametrize("method", ["jackknife+", "residual", "quantile"])
def test_intervals_cover_new_rows(method):
    X, y = values(1400)
    forest = small(n_estimators=60).fit(X[:400], y[:400])
    report = forest.coverage_report(X[400:], y[400:], 0.8, method, bins=0)
    assert abs(report.columns["coverage"][0] - 0.8) < 0.06
    assert report.columns["rows"] == ["all"]


# ---- sets of classes ------------------------------------------------------------------------------------


def test_scores_of_classes():
    shares = np.array([[0.2, 0.5, 0.3]])
    np.testing.assert_allclose(nonconformity(shares, "lac"), [[0.8, 0.5, 0.7]])
    np.testing.assert_allclose(nonconformity(shares, "aps"), [[0.8, 0.0, 0.5]])


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_hold_the_classes_of_new_rows(method):
    X, y = classes(1500)
    forest = small(RandomForestClassifier, n_estimators=60, oob_score=True).fit(X[:500], y[:500])
    sets = forest.predict_set(X[500:], 0.85, method)
    assert sets.shape == (1000, 3)
    codes = np.searchsorted(forest.classes_, y)
    known = nonconformity(forest.oob_decision_function_, method)[np.arange(500), codes[:500]]
    limit = slow_upper_point(known, 0.85)
    np.testing.assert_array_equal(sets, nonconformity(forest.predict_proba(X[500:]), method) <= limit + 1e-12)
    assert abs(sets[np.arange(1000), codes[500:]].mean() - 0.85) < 0.05
    assert sets.sum(axis=1).mean() < 2.6
    report = forest.coverage_report(X[500:], y[500:], 0.85, method)
    assert report.columns["rows"] == ["all", "a", "b", "c"]
    assert report.columns["coverage"][0] == sets[np.arange(1000), codes[500:]].mean()
    assert report.columns["mean_size"][0] == sets.sum(axis=1).mean()


def test_each_kind_refuses_the_words_of_the_other():
    X, y = values(40)
    labels = y > 0
    regressor, classifier = small().fit(X, y), small(RandomForestClassifier).fit(X, labels)
    with pytest.raises(AttributeError, match=r"predicts numbers\. Use predict_interval"):
        regressor.predict_set(X)
    with pytest.raises(AttributeError, match=r"predicts classes\. Use predict_proba"):
        classifier.predict_quantiles(X)
    with pytest.raises(AttributeError, match=r"predicts classes\. Use predict_set"):
        classifier.predict_interval(X)
    with pytest.raises(ValueError, match="'lac' or 'aps', not 'raps'"):
        classifier.predict_set(X, method="raps")
    with pytest.raises(ValueError, match="one output"):
        small(RandomForestClassifier).fit(X, np.column_stack([labels, labels])).predict_set(X)


@pytest.mark.parametrize("coverage", [0, 1, -0.2, 90, "high", True, None, float("nan")])
def test_a_coverage_is_a_share(coverage):
    X, y = values(40)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        small().fit(X, y).predict_interval(X, coverage)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        small(RandomForestClassifier).fit(X, y > 0).predict_set(X, coverage)


def test_wrong_questions_are_answered_in_words():
    X, y = values(40)
    forest = small().fit(X, y)
    for wrong in ([], [1.5], [-0.1], [np.nan], [[0.5]]):
        with pytest.raises(ValueError, match="quantiles must be numbers between 0 and 1"):
            forest.predict_quantiles(X, wrong)
    with pytest.raises(ValueError, match="X has 3 rows, but the forest was fitted on 40"):
        forest.predict_quantiles(X[:3], oob=True)
    with pytest.raises(ValueError, match=r"method must be 'quantile'"):
        forest.predict_interval(X, method="bayes")
    everything = small(bootstrap=False).fit(X, y)
    with pytest.raises(AttributeError, match="bootstrap=True"):
        everything.predict_interval(X)
    with pytest.raises(ValueError, match="bootstrap=True"):
        everything.predict_quantiles(X, oob=True)


class MeanAndSpread(spinney.Criterion):
    """Leaves of two values for a target of one."""

    def evaluate(self, y, weight):
        mean = np.average(y, weights=weight)
        total = np.sum(weight * (y - mean) ** 2)
        return [mean, np.sqrt(total / weight.sum())], total


def test_a_criterion_with_other_values_than_the_target():
    X, y = values(40)
    forest = small(n_estimators=4, criterion=MeanAndSpread(), max_depth=2).fit(X, y)
    expected = [[slow_quantile(y, w, level) for level in LEVELS] for w in forest.leaf_weights(X).toarray()]
    for model in (forest, through_bytes(forest)):
        np.testing.assert_array_equal(model.predict_quantiles(X, LEVELS), expected)
        with pytest.raises(ValueError, match="something other than y"):
            model.predict_interval(X)


# ---- coverage reports -----------------------------------------------------------------------------------


def test_a_report_counts_rows_by_bins_and_groups():
    X, y = values(300)
    forest = small(n_estimators=30).fit(X[:100], y[:100])
    ends, predicted = forest.predict_interval(X[100:], 0.7), forest.predict(X[100:])
    covered = (ends[:, 0] <= y[100:]) & (y[100:] <= ends[:, 1])
    report = forest.coverage_report(X[100:], y[100:], 0.7, bins=4)
    assert report.columns["coverage"][0] == pytest.approx(covered.mean())
    assert report.columns["n"][0] == 200 == sum(report.columns["n"][1:])
    assert report.columns["n"][1:] == [50, 50, 50, 50]
    lowest = np.argsort(predicted)[:50]
    assert report.columns["coverage"][1] == pytest.approx(covered[lowest].mean())
    assert report.columns["mean_width"][1] == pytest.approx(np.mean(ends[lowest, 1] - ends[lowest, 0]))
    share = covered.mean()
    assert report.columns["standard_error"][0] == pytest.approx(np.sqrt(share * (1 - share) / 200))
    groups = np.array(["north", "south"])[(X[100:, 1] > 0).astype(int)]
    by_group = forest.coverage_report(X[100:], y[100:], 0.7, groups=groups, sample_weight=np.full(200, 2.0))
    assert by_group.columns["rows"] == ["all", "north", "south"]
    assert by_group.columns["n"][0] == 400
    assert by_group.columns["coverage"][1] == pytest.approx(covered[groups == "north"].mean())


def test_a_report_prints_and_frames():
    X, y = values(200)
    report = small().fit(X[:100], y[:100]).coverage_report(X[100:], y[100:], bins=2)
    text = str(report)
    assert text.startswith("Nominal coverage: 90%\n\nrows")
    assert "predicted" in text.splitlines()[-1]
    assert repr(report).startswith("<CoverageReport: ")
    for backend in ("pandas", "polars"):
        pytest.importorskip(backend)
        frame = report.to_frame(backend)
        assert list(frame.columns) == ["rows", "n", "coverage", "standard_error", "mean_width"]
        assert len(frame) == 3


def test_a_report_draws():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, y = values(200)
    report = small().fit(X[:100], y[:100]).coverage_report(X[100:], y[100:], bins=3)
    ax = report.plot()
    assert len(ax.get_yticklabels()) == 4
    points = ax.containers[0].lines[0].get_xdata()
    np.testing.assert_allclose(points, report.columns["coverage"])
    matplotlib.pyplot.close(ax.figure)


# ---- support --------------------------------------------------------------------------------------------


TRAIN = {
    "size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "age": [1.0, None, 3.0, 4.0, 5.0, 6.0],
    "colour": ["red", "blue", "red", "blue", "red", "blue"],
    "none": [None] * 6,
}
NEW = {
    "size": [2.5, 0.0, 9.0, None, 6.0],
    "age": [2.0, None, 3.0, 7.0, 1.0],
    "colour": ["red", "green", None, "blue", "blue"],
    "none": [None, None, None, None, 1.0],
}
REASONS = [
    ["", "", "", ""],
    ["below", "", "unseen", ""],
    ["above", "", "missing", ""],
    ["missing", "above", "", ""],
    ["", "", "", "unseen"],
]


@pytest.mark.parametrize("unseen", ["missing", "error", "other"])
@pytest.mark.parametrize("keep_rows", [True, False])
def test_support_names_what_was_never_seen(keep_rows, unseen):
    forest = small(keep_rows=keep_rows, unseen=unseen, min_samples_leaf=1).fit(TRAIN, [1.0, 2, 3, 4, 5, 6])
    for model in (forest, through_bytes(forest), pickle.loads(pickle.dumps(forest))):
        support = model.predict_support(NEW)
        assert support.reason.tolist() == REASONS
        assert support.columns_outside(1) == ["size", "colour"]
        assert (support.effective_rows is not None) == keep_rows
    for backend in ("pandas", "polars"):
        pytest.importorskip(backend)
        frame = support.to_frame(backend)
        assert list(frame["n_outside"]) == [0, 2, 2, 2, 1]
        assert list(frame["outside"])[2] == "size (above), colour (missing)"
    lines = str(support).splitlines()
    assert lines[0] == "5 rows, 4 with a value outside the range of the training rows"
    assert "  size: 1 below, 1 above, 1 missing" in lines


@pytest.mark.parametrize("unseen", ["missing", "error"])
def test_rows_that_nothing_supports_are_abstained_from(unseen):
    forest = small(unseen=unseen, min_samples_leaf=1).fit(TRAIN, [1.0, 2, 3, 4, 5, 6])
    for model in (forest, through_bytes(forest)):
        assert np.isnan(model.predict_or_abstain(NEW)).tolist() == [False, True, True, True, True]
    X, y = classes()
    few = small(ExtraTreesClassifier).fit(X, y)
    rows = few.predict_support(X).effective_rows
    middle = float(np.median(rows))
    found = few.predict_or_abstain(X, min_rows=middle)
    assert [label is None for label in found] == (rows < middle).tolist()
    assert (found[rows >= middle] == few.predict(X)[rows >= middle]).all()
    with pytest.raises(ValueError, match=r"Fit a forest with keep_rows=True"):
        small(keep_rows=False).fit(*values()).predict_or_abstain(X, min_rows=3)
    with pytest.raises(ValueError, match="min_rows must be a number of training rows, at least 0, not -1"):
        few.predict_or_abstain(X, min_rows=-1)


def test_effective_rows_are_one_over_the_squared_weights():
    X, y = values()
    forest = small().fit(X, y)
    weights = forest.leaf_weights(X).toarray()
    np.testing.assert_allclose(forest.predict_support(X).effective_rows, 1 / (weights**2).sum(axis=1), rtol=1e-12)
    single = small(bootstrap=False, max_depth=1, min_samples_leaf=120).fit(X, y)
    np.testing.assert_allclose(single.predict_support(X).effective_rows, 120)


def test_rows_of_weight_zero_do_not_widen_the_ranges():
    X, y = values()
    X[0, 0] = 99.0
    forest = small().fit(X, y, sample_weight=np.r_[0.0, np.ones(119)])
    assert forest.predict_support(X).columns_outside(0) == ["x0"]


def test_a_training_row_lies_within():
    X, y = classes()
    X[::7, 1] = np.nan
    support = small(ExtraTreesClassifier).fit(X, y).predict_support(X)
    assert not support.outside.any()
    assert repr(support) == "<Support: 150 rows, 0 outside>"


def test_penguins_all_the_way():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    mass = X.pop("body_mass_g") if "body_mass_g" in X else X.pop(X.columns[3])
    known = mass.notna().to_numpy()
    forest = RandomForestRegressor(n_estimators=50, keep_rows=True, random_state=0).fit(X[known], mass[known])
    report = forest.coverage_report(X[known], mass[known], groups=y[known])
    assert len(report.columns["rows"]) == 4
    assert (np.diff(forest.predict_quantiles(X, (0.1, 0.9)), axis=1) >= 0).all()


# ---- damaged files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("ranges", "low"), None),
        (("rows", "leaf", "shape"), [15, 7]),
        (("rows", "leaf", "data"), "AAAA"),
        (("rows", "leaf", "type"), "float64"),
        (("rows", "target", "shape"), [-1, -120]),
        (("rows", "draws", "n_drawn"), [0]),
        (("rows", "draws", "n_drawn"), [10**12]),
        (("rows", "draws", "strata"), []),
        (("rows", "draws", "replace"), 1),
        (("rows", "balanced"), None),
    ],
)
def test_damaged_rows_are_refused(place, value):
    X, y = values()
    forest = small().fit(X, y)
    file = _engine.ModelFile(bytes_of(forest))
    header = json.loads(file.header)
    entry = header["forest"]
    for name in place[:-1]:
        entry = entry[name]
    entry[place[-1]] = value
    trees = [file.tree(t, [0, 0, 0]) for t in range(file.n_trees)]
    damaged = _engine.write_model_file(json.dumps(header).encode("ascii"), trees)
    with pytest.raises(spinney.ModelFileError, match="damaged"):
        spinney.load(io.BytesIO(damaged))
