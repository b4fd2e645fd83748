"""Hierarchical shrinkage of trees and the estimator of James and Stein."""

import io
import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split
from spinney._tree.shrinkage import _folds
from spinney._tree.task import Growth
from sweep import examples

# hits per at-bat of 18 players after 45 at-bats each
BATTING = np.array(
    [0.400, 0.378, 0.356, 0.333, *[0.311] * 2, 0.289, 0.267, *[0.244] * 2, *[0.222] * 5, 0.200, 0.178, 0.156]
)


def paths(tree):
    """Path from the root to every node, by recursion."""
    found = {}

    def walk(node, path):
        found[node] = [*path, node]
        if not tree.is_leaf[node]:
            walk(int(tree.children_left[node]), found[node])
            walk(int(tree.children_right[node]), found[node])

    walk(0, [])
    return found


def shrunken_by_path(tree, strength):
    """Formula of the paper, node by node."""
    value, weight = tree.flat_value, tree.weighted_n_node_samples
    result = np.empty_like(value)
    for node, path in paths(tree).items():
        total = value[0].copy()
        for above, below in itertools.pairwise(path):
            total += (value[below] - value[above]) / (1 + strength / weight[above])
        result[node] = total
    return result


def table(seed, n=60):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, size=(n, 3)).astype(float)
    X[rng.random((n, 3)) < 0.1] = np.nan
    return X, rng


# ---- trees -----------------------------------------------------------------------------------------------------------


@examples(10)
@given(
    seed=st.integers(0, 10_000),
    strength=st.sampled_from([0.0, 0.01, 1.0, 7.5, 1e3, 1e12]),
    n_outputs=st.integers(1, 3),
    kind=st.sampled_from(["classes", "values", "medians"]),
    ccp_alpha=st.sampled_from([0.0, 0.01]),
)
def test_values_follow_the_formula(seed, strength, n_outputs, kind, ccp_alpha):
    X, rng = table(seed)
    weight = rng.integers(1, 4, size=len(X)) / 2
    if kind == "classes":
        y = rng.integers(0, 3, size=(len(X), n_outputs))
        make = spinney.DecisionTreeClassifier(ccp_alpha=ccp_alpha)
    else:
        y = rng.normal(size=(len(X), n_outputs))
        criterion = "squared_error" if kind == "values" else "absolute_error"
        make = spinney.DecisionTreeRegressor(criterion=criterion, ccp_alpha=ccp_alpha)
    plain = make.fit(X, y, weight)
    expected = shrunken_by_path(plain.tree_, strength)
    shrunken = clone(make).set_params(shrinkage=strength).fit(X, y, weight)
    np.testing.assert_allclose(shrunken.tree_.flat_value, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(shrunken.tree_.impurity, plain.tree_.impurity)
    np.testing.assert_array_equal(shrunken.tree_.weighted_n_node_samples, plain.tree_.weighted_n_node_samples)
    np.testing.assert_array_equal(shrunken.tree_.feature, plain.tree_.feature)
    assert shrunken.shrinkage_ == strength
    later = spinney.shrink_tree(plain, strength)
    np.testing.assert_array_equal(later.tree_.flat_value, shrunken.tree_.flat_value)
    assert later.shrinkage_ == strength
    if strength == 0:
        np.testing.assert_array_equal(shrunken.tree_.flat_value, plain.tree_.flat_value)
    if kind == "classes":
        assert (shrunken.tree_.flat_value >= 0).all()
        for columns in shrunken.tree_.class_columns:
            np.testing.assert_allclose(shrunken.tree_.flat_value[:, columns].sum(axis=1), 1, rtol=1e-12)


def test_a_split_by_hand():
    X, y = [[1], [2], [3], [4]], [0.0, 0.0, 0.0, 8.0]
    tree = spinney.DecisionTreeRegressor(max_depth=1, shrinkage=4).fit(X, y)
    np.testing.assert_allclose(tree.tree_.flat_value[:, 0], [2, 1, 5])  # halfway to the root's 2
    np.testing.assert_allclose(tree.predict([[0], [9]]), [1, 5])
    twice = spinney.DecisionTreeRegressor(max_depth=1, shrinkage=8).fit(X, y, [2, 2, 2, 2])
    np.testing.assert_allclose(twice.predict([[0], [9]]), [1, 5])


def test_very_strong_shrinkage_predicts_the_root_everywhere():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.DecisionTreeRegressor(shrinkage=1e15).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-9)


def test_a_tree_as_deep_as_its_rows_is_shrunk():
    n = 3000
    X, y = np.arange(n)[:, np.newaxis], np.cumsum(2.0 ** np.minimum(np.arange(n), 60)) ** 0.5
    tree = spinney.DecisionTreeRegressor(max_leaf_nodes=n).fit(X, y * np.arange(n) ** 6)
    chain = spinney.DecisionTreeClassifier().fit(X, np.arange(n) % 2)
    for model in (tree, chain):
        value = model.tree_.shrunk(3.0).flat_value
        assert np.isfinite(value).all()
    assert chain.tree_.max_depth > 900  # beyond Python's recursion limit


def test_monotone_constraints_survive():
    rng = np.random.default_rng(4)
    X = rng.random((400, 2))
    y = X[:, 0] + rng.normal(size=400)
    grid = np.linspace(0, 1, 200)
    for strength in (0.5, 10, 100):
        model = spinney.DecisionTreeRegressor(monotonic_cst=[1, 0], shrinkage=strength).fit(X, y)
        for other in (0.1, 0.5, 0.9):
            predicted = model.predict(np.column_stack([grid, np.full(200, other)]))
            assert (np.diff(predicted) >= -1e-12).all()


def test_missing_values_and_categories():
    X, y = spinney.datasets.load_penguins()
    plain = spinney.DecisionTreeClassifier().fit(X, y)
    model = spinney.DecisionTreeClassifier(shrinkage=10).fit(X, y)
    np.testing.assert_allclose(model.tree_.flat_value, shrunken_by_path(plain.tree_, 10), rtol=1e-12, atol=1e-15)
    assert model.predict_proba(X).min() > 0  # every class of the root has some share everywhere


def test_shrinking_again_shrinks_the_values_there_are():
    X, y = load_diabetes(return_X_y=True)
    once = spinney.DecisionTreeRegressor(max_depth=4, shrinkage=20).fit(X, y)
    again = spinney.shrink_tree(once, 20)
    np.testing.assert_allclose(again.tree_.flat_value, shrunken_by_path(once.tree_, 20))
    np.testing.assert_array_equal(spinney.shrink_tree(once, 0).predict(X), once.predict(X))
    assert once.predict(X).std() > again.predict(X).std()


def test_shrink_tree_leaves_the_model_alone():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.ExtraTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    before = model.predict(X)
    made = spinney.shrink_tree(model, 50)
    np.testing.assert_array_equal(model.predict(X), before)
    assert type(made) is type(model)
    assert made.get_params() == model.get_params()
    assert made.predict(X).std() < before.std()
    assert model.shrinkage_ == 0


@pytest.mark.parametrize("strength", [-1, np.inf, np.nan, "cv", True])
def test_bad_strengths_are_refused(strength):
    model = spinney.DecisionTreeRegressor().fit([[1], [2]], [1.0, 2.0])
    with pytest.raises(ValueError, match="strength must be a finite number of at least 0"):
        spinney.shrink_tree(model, strength)


def test_bad_models_and_parameters_are_refused():
    with pytest.raises(TypeError, match="fitted decision tree"):
        spinney.shrink_tree("tree", 1)
    with pytest.raises(ValueError, match="shrinkage"):
        spinney.DecisionTreeRegressor(shrinkage=-1.0).fit([[1], [2]], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least two rows"):
        spinney.DecisionTreeRegressor(shrinkage="cv").fit([[1]], [1.0])


# ---- cross-validation ------------------------------------------------------------------------------------------------


def test_cross_validation_chooses_no_shrinkage_without_noise_and_much_with_it():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    clear = np.floor(4 * X[:, 0])
    assert spinney.DecisionTreeRegressor(shrinkage="cv", random_state=0).fit(X, clear).shrinkage_ == 0
    noise = spinney.DecisionTreeRegressor(shrinkage="cv", random_state=0).fit(X, rng.normal(size=400))
    assert noise.shrinkage_ >= 500
    labels = rng.integers(0, 2, size=400)
    assert spinney.DecisionTreeClassifier(shrinkage="cv", random_state=0).fit(X, labels).shrinkage_ >= 500


def test_cross_validation_helps_on_rows_not_seen():
    X, y = load_diabetes(return_X_y=True)
    for seed in range(3):
        X_fit, X_new, y_fit, y_new = train_test_split(X, y, random_state=seed)
        plain = spinney.DecisionTreeRegressor().fit(X_fit, y_fit)
        model = spinney.DecisionTreeRegressor(shrinkage="cv", random_state=seed).fit(X_fit, y_fit)
        assert model.shrinkage_ > 0
        np.testing.assert_array_equal(
            model.tree_.flat_value, spinney.shrink_tree(plain, model.shrinkage_).tree_.flat_value
        )
        error = mean_squared_error(y_new, model.predict(X_new))
        assert error < 0.8 * mean_squared_error(y_new, plain.predict(X_new))


def test_the_chosen_strength_scales_with_the_weights():
    X, y = load_diabetes(return_X_y=True)
    one = spinney.DecisionTreeRegressor(max_depth=6, shrinkage="cv", random_state=1).fit(X, y)
    heavy = spinney.DecisionTreeRegressor(max_depth=6, shrinkage="cv", random_state=1).fit(X, y, np.full(len(y), 8.0))
    assert heavy.shrinkage_ == pytest.approx(8 * one.shrinkage_)
    assert one.shrinkage_ > 0
    np.testing.assert_allclose(heavy.predict(X), one.predict(X))


def test_folds_leave_out_rows_without_weight_and_share_the_classes():
    rng = np.random.default_rng(0)
    codes = rng.choice([0, 1, 2], size=(103, 1), p=[0.7, 0.2, 0.1]).astype(np.int32)
    weight = (rng.random(103) < 0.8).astype(float)
    growth = Growth(SimpleNamespace(n_rows=103), codes, weight, None, None, None, None, 1)
    fold = _folds(growth, np.random.RandomState(0))
    np.testing.assert_array_equal(fold == -1, weight == 0)
    for code in range(3):
        counts = np.bincount(fold[(codes[:, 0] == code) & (weight > 0)], minlength=5)
        assert np.ptp(counts) <= 1
    assert (fold != _folds(growth, np.random.RandomState(1))).any()


def test_rows_without_weight_do_not_count():
    X, y = load_diabetes(return_X_y=True)
    weight = (np.arange(len(y)) < 300).astype(float)
    y_wild = np.where(weight > 0, y, 1e5)
    model = spinney.DecisionTreeRegressor(max_depth=6, shrinkage="cv", random_state=1).fit(X, y_wild, weight)
    alone = spinney.DecisionTreeRegressor(max_depth=6, shrinkage="cv", random_state=1).fit(X[:300], y[:300])
    assert model.shrinkage_ == alone.shrinkage_
    np.testing.assert_allclose(model.predict(X), alone.predict(X))


def test_the_choice_is_the_same_for_any_number_of_threads():
    X, y = spinney.datasets.load_penguins()
    found = {
        spinney.DecisionTreeClassifier(shrinkage="cv", random_state=3, n_jobs=n).fit(X, y).shrinkage_ for n in (1, 2, 7)
    }
    assert len(found) == 1


def test_several_outputs_and_few_rows():
    rng = np.random.default_rng(2)
    X = rng.random((60, 2))
    classes = np.column_stack([rng.integers(0, 3, 60), rng.integers(0, 2, 60)])
    assert spinney.DecisionTreeClassifier(shrinkage="cv", random_state=0).fit(X, classes).shrinkage_ > 0
    assert spinney.DecisionTreeRegressor(shrinkage="cv", random_state=0).fit(X, rng.normal(size=(60, 2))).shrinkage_ > 0
    assert spinney.DecisionTreeRegressor(shrinkage="cv").fit([[1], [2]], [1.0, 1.0]).shrinkage_ == 0


def test_a_refit_forgets_and_files_remember():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.DecisionTreeRegressor(max_depth=5, shrinkage="cv", random_state=0).fit(X, y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded, unpickled = spinney.load(file), pickle.loads(pickle.dumps(model))
    assert loaded.shrinkage_ == unpickled.shrinkage_ == model.shrinkage_ > 0
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert model.set_params(shrinkage=None).fit(X, y).shrinkage_ == 0


# ---- forests ---------------------------------------------------------------------------------------------------------


def values_of(forest):
    return forest.forest_.engine.value.reshape(-1, forest.forest_.engine.value_width)


@pytest.mark.parametrize("kind", [spinney.RandomForestClassifier, spinney.ExtraTreesClassifier])
@pytest.mark.parametrize("more", [{}, {"ccp_alpha": 0.01}, {"class_weight": "balanced"}, {"priors": "uniform"}])
def test_a_forest_shrinks_each_of_its_trees(kind, more):
    X, rng = table(3)
    y = rng.integers(0, 3, size=len(X)) * (X[:, 0] > 3)
    plain = kind(n_estimators=6, random_state=0, shrinkage=None, **more).fit(X, y)
    expected = np.concatenate([shrunken_by_path(tree.tree_, 0.7) for tree in plain.estimators_])
    for n_jobs in (1, 3):
        shrunken = kind(n_estimators=6, random_state=0, shrinkage=0.7, n_jobs=n_jobs, **more).fit(X, y)
        np.testing.assert_allclose(values_of(shrunken), expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(
            values_of(shrunken), np.concatenate([t.tree_.shrunk(0.7).flat_value for t in plain.estimators_])
        )
    assert not np.allclose(values_of(plain), expected)


def test_classifiers_shrink_by_default_and_regressors_do_not():
    X, rng = table(4)
    y = rng.integers(0, 2, size=len(X))
    for kind in (spinney.RandomForestClassifier, spinney.ExtraTreesClassifier):
        assert (kind(n_estimators=20, random_state=0).fit(X, y).predict_proba(X) > 0).all()
        plain = [kind(n_estimators=3, random_state=0, shrinkage=s).fit(X, y) for s in (None, 0)]
        assert values_of(plain[0]).tobytes() == values_of(plain[1]).tobytes()
        assert (values_of(plain[0]) == 0).any()
    for kind in (spinney.RandomForestRegressor, spinney.ExtraTreesRegressor):
        found, plain = (kind(n_estimators=3, random_state=0, **more).fit(X, 1.0 * y) for more in ({}, {"shrinkage": 0}))
        assert values_of(found).tobytes() == values_of(plain).tobytes()


def test_the_unit_of_class_weights_does_not_matter_to_shrinkage():
    X, rng = table(5)
    y = rng.integers(0, 2, size=len(X))
    shares = [
        spinney.RandomForestClassifier(n_estimators=5, random_state=0, class_weight={0: unit, 1: 3 * unit})
        .fit(X, y)
        .predict_proba(X)
        for unit in (1.0, 1024.0)
    ]
    np.testing.assert_allclose(shares[0], shares[1], rtol=1e-12)


def test_files_of_shrunken_forests_hold_counts_and_are_bit_identical():
    X, rng = table(6, n=300)
    y = rng.integers(0, 7, size=len(X))
    sizes = {}
    for shrinkage in (None, 0.3, 0.1, 17.0):
        forest = spinney.RandomForestClassifier(n_estimators=10, random_state=0, shrinkage=shrinkage).fit(X, y)
        file = io.BytesIO()
        forest.save(file)
        sizes[shrinkage] = len(file.getvalue())
        file.seek(0)
        for again in (spinney.load(file), pickle.loads(pickle.dumps(forest))):
            assert values_of(again).tobytes() == values_of(forest).tobytes()
    assert max(sizes.values()) < 1.15 * sizes[None]


# ---- James and Stein -------------------------------------------------------------------------------------------------


def test_batting_averages():
    mean = BATTING.mean()
    shrunk = spinney.james_stein(BATTING, mean * (1 - mean) / 45)
    assert round(shrunk.target, 3) == 0.265
    assert round(shrunk.factor, 3) == 0.212
    np.testing.assert_allclose(shrunk.estimates, mean + shrunk.factor * (BATTING - mean))


@examples(25)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 30), scale=st.sampled_from([0.01, 1.0, 100.0]))
def test_equal_variances_follow_the_formula(seed, n, scale):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n) * scale
    to_mean = spinney.james_stein(y, 2.0)
    assert to_mean.factor == pytest.approx(1 - (n - 3) * 2.0 / ((y - y.mean()) ** 2).sum(), rel=1e-10)
    to_one = spinney.james_stein(y, 2.0, target=1.0)
    assert to_one.factor == pytest.approx(1 - (n - 2) * 2.0 / ((y - 1) ** 2).sum(), rel=1e-10)
    line = np.linspace(0, 1, n)
    to_line = spinney.james_stein(y, np.full(n, 2.0), target=line)
    assert to_line.factor == pytest.approx(1 - (n - 2) * 2.0 / ((y - line) ** 2).sum(), rel=1e-10)
    np.testing.assert_allclose(to_line.estimates, line + to_line.factor * (y - line))
    kept = spinney.james_stein(y, 2.0, positive_part=True)
    assert kept.factor == max(0.0, to_mean.factor)


@examples(25)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 30), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_unequal_variances_solve_their_equation(seed, n, scale):
    rng = np.random.default_rng(seed)
    variance, y = rng.uniform(0.1, 4, n), rng.normal(size=n) * scale
    shrunk = spinney.james_stein(y, variance)
    total = variance + shrunk.spread
    mean = (y / total).sum() / (1 / total).sum()
    assert shrunk.target == pytest.approx(mean)
    misfit = ((y - mean) ** 2 / total).sum()
    assert misfit <= (n - 1) * (1 + 1e-9)
    if shrunk.spread > 0:
        assert misfit == pytest.approx(n - 1)
    np.testing.assert_allclose(shrunk.factor, 1 - (n - 3) / misfit * variance / total)
    order = np.argsort(variance)
    assert (np.diff(shrunk.factor[order]) <= 1e-12).all()  # what is known worse is shrunk more


def test_nearly_equal_variances_give_nearly_the_same_as_equal_ones():
    rng = np.random.default_rng(5)
    for scale in (0.1, 3.0):  # without and with a spread beyond the noise
        y = rng.normal(size=12) * scale
        equal = spinney.james_stein(y, 1.0)
        nearly = spinney.james_stein(y, 1 + 1e-9 * np.arange(12))
        np.testing.assert_allclose(nearly.factor, equal.factor, rtol=1e-6)
        np.testing.assert_allclose(nearly.estimates, equal.estimates, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("n", "n_samples"), [pytest.param(4, 20_000, marks=pytest.mark.slow), (10, 3000), (40, 1000)])
def test_the_total_error_falls(n, n_samples):
    rng = np.random.default_rng(n)
    means = np.linspace(-1, 1, n)
    y = means + rng.normal(size=(n_samples, n))
    shrunk = np.array([spinney.james_stein(row, 1.0).estimates for row in y])
    gain = ((y - means) ** 2).sum(axis=1) - ((shrunk - means) ** 2).sum(axis=1)
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))


@pytest.mark.slow
def test_the_total_error_falls_with_unequal_variances():
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.2, 3, 20)
    errors = np.zeros(2)
    for _ in range(500):
        means = 3 + rng.normal(size=20)
        y = means + rng.normal(size=20) * np.sqrt(variance)
        shrunk = spinney.james_stein(y, variance)
        errors += ((y - means) ** 2).sum(), ((shrunk.estimates - means) ** 2).sum()
    assert errors[1] < 0.6 * errors[0]


def test_a_fitted_target_costs_its_coefficients():
    rng = np.random.default_rng(1)
    x = np.arange(12.0)
    y = 2 * x + rng.normal(size=12)
    line = np.polyval(np.polyfit(x, y, 1), x)
    squares = ((y - line) ** 2).sum()
    assert spinney.james_stein(y, 1.0, target=line, n_fitted=2).factor == pytest.approx(1 - 8 / squares)
    assert spinney.james_stein(y, 1.0, target=line).factor == pytest.approx(1 - 10 / squares)


def test_estimates_that_are_all_alike_stay():
    same = spinney.james_stein([2.0] * 5, 1.0)
    np.testing.assert_array_equal(same.estimates, [2.0] * 5)
    assert same.factor == 0
    np.testing.assert_array_equal(spinney.james_stein([2.0] * 5, np.arange(1, 6)).estimates, [2.0] * 5)


@pytest.mark.parametrize(
    ("y", "variance", "options", "message"),
    [
        ([1, 2, 3], 1.0, {}, "at least 4 estimates to shrink towards the mean; y has 3"),
        ([1, 2], 1.0, {"target": 0}, "at least 3 estimates to shrink towards this target"),
        ([1, 2, 3, 4], 1.0, {"target": [1, 2, 3, 4], "n_fitted": 2}, "at least 5 estimates"),
        ([1, 2, 3, 4], 0.0, {}, "variance must be positive"),
        ([1, 2, 3, 4], [1, 1, -1, 1], {}, "entry 2 is -1"),
        ([1, 2, 3, 4], np.nan, {}, "variance must be positive"),
        ([1, 2, 3, 4], [1, 1], {}, "variance has 2 numbers and y has 4"),
        ([1, 2, 3, 4], 1.0, {"target": [1, 2]}, "target has 2 numbers and y has 4"),
        ([1, 2, 3, 4], 1.0, {"target": "median"}, "target must be 'mean'"),
        ([1, 2, 3, 4], 1.0, {"target": np.inf}, "target must be a finite number"),
        ([1, 2, np.nan, 4], 1.0, {}, "entry 2 is nan"),
        ([[1, 2], [3, 4]], 1.0, {}, "y must be one row of numbers"),
        ([1, 2, 3, 4], 1.0, {"target": 1.0, "n_fitted": -1}, "n_fitted must be a whole number"),
    ],
)
def test_bad_input_is_refused_in_words(y, variance, options, message):
    with pytest.raises(ValueError, match=message):
        spinney.james_stein(y, variance, **options)


def test_folds_keep_groups_together():
    groups = np.repeat(np.arange(17), 6)[:100]
    growth = Growth(SimpleNamespace(n_rows=100), None, None, None, None, None, None, 1)
    fold = _folds(growth, np.random.RandomState(0), groups)
    assert len(np.unique(fold)) == 5
    assert all(len(np.unique(fold[groups == g])) == 1 for g in range(17))
