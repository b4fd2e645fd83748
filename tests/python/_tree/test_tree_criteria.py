"""Split criteria: every node against the slow reference implementation, and the worked numbers of the textbooks."""

import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.check import check_tree
from oracle.data import continuous_table, target_for, weights_for
from oracle.impurity import CLASSIFICATION, chi2_score, impurity, split_information
from oracle.models import CRITERIA, assert_identical, spinney_tree
from oracle.tree import best_split, make_problem
from sweep import covering, examples

CLASS_CRITERIA = [c for c in CRITERIA if c in CLASSIFICATION]

# age, married, own house, income, gender, class
LOANS = [
    (22, "no", "no", 28, "male", "bad"),
    (46, "no", "yes", 32, "female", "bad"),
    (24, "yes", "yes", 24, "male", "bad"),
    (25, "no", "no", 27, "male", "bad"),
    (29, "yes", "yes", 32, "female", "bad"),
    (45, "yes", "yes", 30, "female", "good"),
    (63, "yes", "yes", 58, "male", "good"),
    (36, "yes", "no", 52, "male", "good"),
    (23, "no", "yes", 40, "female", "good"),
    (50, "yes", "yes", 28, "female", "good"),
]


def stump_root_impurity(criterion, counts):
    """Impurity that a fitted tree reports for a node with these class counts."""
    y = np.repeat(np.arange(len(counts)), counts)
    model = spinney_tree(criterion, max_depth=1).fit(np.arange(len(y), dtype=float)[:, None], y)
    return float(model.tree_.impurity[0])


@pytest.mark.parametrize(*covering(criterion=CRITERIA, weights=["none", "integer", "real"]))
def test_every_node_is_the_oracles(criterion, weights):
    X = continuous_table(5, n=70)
    y, w = target_for(criterion, X, 5), weights_for(5, 70, weights)
    model = spinney_tree(criterion, min_samples_leaf=2).fit(X, y, sample_weight=w)
    assert model.get_n_leaves() > 4
    check_tree(model, X, y, w)


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_every_node_is_the_oracles_for_several_classes(criterion):
    X = continuous_table(6, n=70)
    y, w = target_for(criterion, X, 6, n_classes=4), weights_for(6, 70, "integer")
    model = spinney_tree(criterion, max_leaf_nodes=12).fit(X, y, sample_weight=w)
    assert model.get_n_leaves() == 12
    check_tree(model, X, y, w)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_node_is_the_oracles_for_several_outputs(criterion):
    X = continuous_table(7, n=60)
    y = target_for(criterion, X, 7, n_classes=3, n_outputs=3)
    model = spinney_tree(criterion, max_depth=4, min_samples_leaf=2).fit(X, y)
    assert model.n_outputs_ == 3
    assert model.get_n_leaves() > 6
    check_tree(model, X, y)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_node_is_the_oracles_on_tied_values(criterion):
    """Few distinct values: runs of equal values must not be cut, and gains tie all the time."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 4, size=(60, 3)).astype(float)
    y = rng.integers(0, 3, size=60) if criterion in CLASSIFICATION else rng.integers(1, 5, size=60) * 0.5
    model = spinney_tree(criterion).fit(X, y)
    assert model.get_n_leaves() > 6
    check_tree(model, X, y)


@pytest.mark.parametrize("criterion", ["chi2", "gain_ratio", "gini", "squared_error"])
@pytest.mark.parametrize("growth", [{"max_leaf_nodes": 6}, {}])
def test_min_impurity_decrease_is_compared_with_the_weighted_score(criterion, growth):
    X = continuous_table(9, n=80)
    y = target_for(criterion, X, 9, n_classes=3)
    full = spinney_tree(criterion, min_samples_leaf=3).fit(X, y)
    model = spinney_tree(criterion, min_samples_leaf=3, min_impurity_decrease=0.03, **growth).fit(X, y)
    assert 1 < model.get_n_leaves() < full.get_n_leaves()
    check_tree(model, X, y)


def test_log_loss_is_entropy():
    X = continuous_table(10)
    y = target_for("entropy", X, 10, n_classes=3)
    assert_identical(
        spinney.DecisionTreeClassifier(criterion="log_loss").fit(X, y),
        spinney.DecisionTreeClassifier(criterion="entropy").fit(X, y),
    )


def test_friedman_equals_squared_error_for_one_output():
    X = continuous_table(11)
    y = target_for("squared_error", X, 11)
    assert_identical(
        spinney.DecisionTreeRegressor(criterion="friedman_mse").fit(X, y),
        spinney.DecisionTreeRegressor(criterion="squared_error").fit(X, y),
    )


@pytest.mark.parametrize(
    ("criterion", "at_half"),
    [("gini", 0.5), ("entropy", 1.0), ("misclassification", 0.5), ("chi2", 0.5), ("gain_ratio", 1.0)],
)
def test_impurity_of_two_equal_classes(criterion, at_half):
    assert stump_root_impurity(criterion, (40, 40)) == pytest.approx(at_half, rel=1e-14)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@examples(8)
@given(counts=st.lists(st.integers(1, 30), min_size=2, max_size=4))
def test_impurity_is_symmetric_positive_and_largest_at_equal_shares(criterion, counts):
    here = stump_root_impurity(criterion, counts)
    level = stump_root_impurity(criterion, [7] * len(counts))
    assert stump_root_impurity(criterion, counts[::-1]) == pytest.approx(here, rel=1e-12)
    assert 0 < here <= level * (1 + 1e-12)
    assert here == pytest.approx(
        impurity(
            criterion,
            np.repeat(np.arange(len(counts)), counts)[:, None],
            np.ones(sum(counts)),
            (len(counts),),
        )
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_pure_node_has_impurity_zero_and_is_not_split(criterion):
    model = spinney_tree(criterion).fit(continuous_table(12, n=20), np.ones(20))
    assert model.get_n_leaves() == 1
    assert model.tree_.impurity.tolist() == [0.0]


def two_way_example():
    """Parent (400, 400); column 0 gives (300, 100), (100, 300); column 1 gives (200, 400), (200, 0)."""
    y = np.repeat([0, 1], 400)
    first = np.concatenate([np.repeat([0, 1], [300, 100]), np.repeat([0, 1], [100, 300])])
    second = np.concatenate([np.repeat([0, 1], [200, 200]), np.repeat([0, 1], [400, 0])])
    return np.stack([first, second], axis=1).astype(float), y


@pytest.mark.parametrize(("criterion", "column"), [("gini", 1), ("entropy", 1), ("misclassification", 0)])
def test_misclassification_cannot_choose_where_gini_and_entropy_can(criterion, column):
    X, y = two_way_example()
    gains = {c.column: c.score for c in best_split(make_problem(X, y, criterion=criterion))}
    if criterion == "misclassification":
        assert gains == {0: pytest.approx(0.25), 1: pytest.approx(0.25)}
    else:
        assert gains[1] > gains[0] + 1e-3
    model = spinney_tree(criterion, max_depth=1).fit(X, y)
    assert model.tree_.feature[0] == column
    decrease = model.tree_.impurity[0] - np.dot(model.tree_.weighted_n_node_samples[1:] / 800, model.tree_.impurity[1:])
    assert decrease == pytest.approx(gains[column], rel=1e-12)


def test_income_of_the_loan_records():
    """With i = p (1 - p), half of Gini, the cuts of income reduce impurity by these amounts."""
    income = np.array([[row[3]] for row in LOANS], dtype=float)
    y = np.array([row[5] for row in LOANS])
    gains = [c.score / 2 for c in best_split(make_problem(income, y))]
    assert np.round(gains, 2).tolist() == [0.03, 0.06, 0.04, 0.01, 0.11, 0.06, 0.03]
    model = spinney.DecisionTreeClassifier(max_depth=1).fit(income, y)
    assert model.tree_.threshold[0] == 36.0
    decrease = model.tree_.impurity[0] - np.dot(model.tree_.n_node_samples[1:] / 10, model.tree_.impurity[1:])
    assert decrease / 2 == pytest.approx(max(gains), rel=1e-12)


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_the_loan_records_with_their_categories(criterion):
    import polars as pl

    names = ["age", "married", "own_house", "income", "gender"]
    frame = pl.DataFrame([row[:5] for row in LOANS], schema=names, orient="row")
    y = np.array([row[5] for row in LOANS])
    codes = np.array([[r[0], r[1] == "yes", r[2] == "yes", r[3], r[4] == "male"] for r in LOANS], dtype=float)
    model = spinney.DecisionTreeClassifier(criterion=criterion).fit(frame, y)
    check_tree(model, codes, y, table=frame, categories=[1, 2, 4])
    assert model.score(frame, y) == 1.0


def test_chi2_ranks_by_pearsons_statistic():
    from scipy.stats import chi2_contingency

    X, y = two_way_example()
    for column in range(2):
        table = [[np.sum((X[:, column] == side) & (y == k)) for k in range(2)] for side in range(2)]
        expected = chi2_contingency(table, correction=False).statistic / 800
        mine = chi2_score(y[:, None], np.ones(800), X[:, column] == 0, (2,))
        assert mine == pytest.approx(expected, rel=1e-12)
    model = spinney.DecisionTreeClassifier(criterion="chi2", max_depth=1).fit(X, y)
    assert model.tree_.feature[0] == 1


def gain_ratio_example():
    """Column 0 cuts off a little: a gain below the average; columns 1 and 2 gain more."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 100)
    tiny = np.zeros(200)
    tiny[:3] = 1
    balanced = np.where(rng.random(200) < 0.78, y, 1 - y)
    skewed = np.where(rng.random(200) < 0.55, y, 0)
    return np.stack([tiny, balanced, skewed], axis=1).astype(float), y


def test_gain_ratio_takes_the_best_ratio_among_gains_of_at_least_the_average():
    X, y = gain_ratio_example()
    problem = make_problem(X, y, criterion="gain_ratio")
    by_column = {c.column: c for c in best_split(problem)}
    gains = {j: c.score for j, c in by_column.items()}
    ratios = {j: c.ratio for j, c in by_column.items()}
    average = np.mean(list(gains.values()))
    assert gains[0] < average  # the guard of the rule is at work
    expected = max((j for j in gains if gains[j] >= average), key=ratios.get)
    model = spinney.DecisionTreeClassifier(criterion="gain_ratio", max_depth=1).fit(X, y)
    assert model.tree_.feature[0] == expected
    for candidate in by_column.values():
        assert candidate.ratio == pytest.approx(candidate.score / split_information(problem.w, candidate.left))


def test_gain_ratio_chooses_another_column_than_information_gain():
    """Column 0 gains most by halving the rows; column 1 gains nearly as much by cutting off few."""
    y = np.repeat([0, 1], [90, 30])
    halves = np.repeat([0, 1], [54, 66])
    cuts_off = np.repeat([0, 1], [108, 12])
    noise = np.resize([0, 1], 120)
    X = np.stack([halves, cuts_off, noise], axis=1).astype(float)
    by_gain = spinney.DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(X, y)
    by_ratio = spinney.DecisionTreeClassifier(criterion="gain_ratio", max_depth=1).fit(X, y)
    assert (by_gain.tree_.feature[0], by_ratio.tree_.feature[0]) == (0, 1)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_poisson_never_makes_a_leaf_without_events(n_outputs):
    rng = np.random.default_rng(13)
    X = rng.normal(size=(200, 3))
    y = rng.poisson(0.3, size=(200, n_outputs)).astype(float)
    model = spinney.DecisionTreeRegressor(criterion="poisson").fit(X, y if n_outputs == 2 else y[:, 0])
    assert model.get_n_leaves() > 10
    assert model.tree_.value.min() > 0


def test_squared_error_survives_a_large_offset():
    """The gain of a split is far below the square of the mean: a sum of squares would lose it."""
    X = continuous_table(14, n=80)
    y = target_for("squared_error", X, 14)
    rounded = np.round(y * 2**10) / 2**10  # exact after the shift
    near = spinney.DecisionTreeRegressor(min_samples_leaf=5).fit(X, rounded)
    far = spinney.DecisionTreeRegressor(min_samples_leaf=5).fit(X, rounded + 2.0**40)
    assert near.get_n_leaves() > 6
    np.testing.assert_array_equal(near.tree_.feature, far.tree_.feature)
    np.testing.assert_array_equal(near.tree_.threshold, far.tree_.threshold)
    np.testing.assert_allclose(far.tree_.impurity, near.tree_.impurity, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
def test_squared_error_does_not_depend_on_the_unit_of_the_target(scale):
    X = continuous_table(15, n=80)
    y = target_for("squared_error", X, 15)
    unit = 2.0 ** np.round(np.log2(scale))
    base = spinney.DecisionTreeRegressor(min_samples_leaf=5).fit(X, y)
    scaled = spinney.DecisionTreeRegressor(min_samples_leaf=5).fit(X, y * unit)
    np.testing.assert_array_equal(base.tree_.feature, scaled.tree_.feature)
    np.testing.assert_array_equal(base.tree_.threshold, scaled.tree_.threshold)
    np.testing.assert_allclose(scaled.predict(X), base.predict(X) * unit, rtol=1e-12)


def test_absolute_error_predicts_the_weighted_median():
    y = np.array([1.0, 2.0, 10.0, 20.0])
    X = np.zeros((4, 1))
    median = spinney.DecisionTreeRegressor(criterion="absolute_error")
    assert median.fit(X, y).predict(X[:1]).tolist() == [6.0]
    assert median.fit(X, y, sample_weight=[1, 1, 1, 4]).predict(X[:1]).tolist() == [20.0]
    assert median.fit(X, y, sample_weight=[3, 1, 1, 1]).predict(X[:1]).tolist() == [1.5]


def test_absolute_error_shrugs_off_an_outlier():
    X = np.arange(20.0)[:, None]
    y = (X[:, 0] >= 10) * 1.0
    y[3] = 1e6
    model = spinney.DecisionTreeRegressor(criterion="absolute_error", max_depth=1, min_samples_leaf=5).fit(X, y)
    assert model.tree_.threshold[0] == 9.5
    assert model.predict([[0.0], [19.0]]).tolist() == [0.0, 1.0]
