"""Costs of mistakes, class priors and prices of columns."""

import io
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.check import check_tree
from oracle.data import continuous_table, target_for, weights_for
from oracle.models import assert_identical
from sklearn.datasets import load_iris
from spinney import DecisionTreeClassifier
from sweep import covering, examples

CRITERIA = ["gini", "entropy", "misclassification", "chi2", "gain_ratio"]
UNEVEN = [[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 4.0, 0.0]]
FAR = [[0.0, 1.0, 1.0], [2.0, 0.0, 30.0], [1.0, 30.0, 0.0]]
TEN = np.arange(10.0)[:, np.newaxis]


def three_classes(seed=3, n=60, **params):
    X = continuous_table(seed, n=n, **params)
    return X, target_for("gini", X, seed, n_classes=3)


def splits(model):
    return model.tree_.feature.tolist(), model.tree_.threshold.tolist()


def saved_and_loaded(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return file


# ---- by hand -----------------------------------------------------------------------------------------------


def test_a_leaf_predicts_the_class_of_least_expected_cost():
    """Nine healthy and one ill: missing the ill one costs 10, a false alarm 1."""
    y = ["healthy"] * 9 + ["ill"]
    cost = {"ill": {"healthy": 10}, "healthy": {"ill": 1}}
    model = DecisionTreeClassifier(cost_matrix=cost, min_samples_split=11).fit(TEN, y)
    assert model.predict(TEN[:1]) == ["ill"]
    np.testing.assert_allclose(model.predict_proba(TEN[:1]), [[0.9, 0.1]], rtol=1e-14)
    np.testing.assert_allclose(model._node_risks(model.tree_), [0.9], rtol=1e-14)  # 9 alarms in 10 rows
    np.testing.assert_array_equal(model.cost_matrix_, [[0, 1], [10, 0]])
    assert model.priors_ is None


def test_equal_costs_go_to_the_first_class_whatever_the_rounding():
    """0.3 * 7 and 0.7 * 3 are one number, but not in binary."""
    y = [0] * 7 + [1] * 3
    model = DecisionTreeClassifier(cost_matrix=[[0, 3], [7, 0]], min_samples_split=11).fit(TEN, y)
    assert 0.7 * 3 < 0.3 * 7
    assert model.predict(TEN[:1]) == [0]


def test_priors_restate_the_shares_and_keep_the_total_weight():
    """A clinic's sample is half ill; in the population 1 of 10 is. Left: 4 ill, 1 well; right: 1 ill, 4 well."""
    X = np.repeat([0.0, 1.0], 5)[:, np.newaxis]
    y = ["ill"] * 4 + ["well"] + ["ill"] + ["well"] * 4
    model = DecisionTreeClassifier(priors={"ill": 0.1, "well": 0.9}).fit(X, y)
    tree = model.tree_
    np.testing.assert_allclose(tree.flat_value[0], [0.1, 0.9], rtol=1e-14)
    np.testing.assert_allclose(tree.weighted_n_node_samples[0], 10, rtol=1e-14)
    left = np.array([4 * 0.1 / 0.5, 1 * 0.9 / 0.5])
    np.testing.assert_allclose(tree.flat_value[1], left / left.sum(), rtol=1e-14)
    assert model.predict([[0.0]]) == ["well"]  # 0.8 against 1.8
    np.testing.assert_allclose(model._node_risks(tree), [0.1, 0.08, 0.02], rtol=1e-13)
    np.testing.assert_allclose(model.priors_, [0.1, 0.9])


def test_altered_priors_choose_the_cut_that_costs_ask_for():
    """Ten rows, four of them ill. Column 0 finds two of the ill for sure, column 1 clears three of the well."""
    y = np.repeat([0, 1], [6, 4])
    X = np.zeros((10, 2))
    X[8:, 0] = 1
    X[3:, 1] = 1

    def decrease(well, ill, left_well, left_ill):
        """Weight times Gini, before less after."""
        right_well, right_ill = well - left_well, ill - left_ill
        burden = [2 * a * b / (a + b) for a, b in ((well, ill), (left_well, left_ill), (right_well, right_ill))]
        return burden[0] - burden[1] - burden[2]

    chosen = []
    for dear in (1, 8):
        by_column = [decrease(6, 4 * dear, 6, 2 * dear), decrease(6, 4 * dear, 3, 0)]
        model = DecisionTreeClassifier(cost_matrix=[[0, 1], [dear, 0]], max_depth=1).fit(X, y)
        assert model.tree_.feature[0] == np.argmax(by_column)
        chosen.append(int(model.tree_.feature[0]))
    assert chosen == [0, 1]


def test_generalised_gini_is_the_sum_over_pairs():
    y = [0] * 5 + [1] * 3 + [2] * 2
    model = DecisionTreeClassifier(cost_matrix=UNEVEN, cost_splits="generalised_gini", max_depth=1).fit(TEN, y)
    p = np.array([0.5, 0.3, 0.2])
    by_hand = sum(UNEVEN[i][j] * p[i] * p[j] for i in range(3) for j in range(3))
    np.testing.assert_allclose(model.tree_.impurity[0], by_hand, rtol=1e-14)


# ---- against the reference implementation -------------------------------------------------------------------


@pytest.mark.parametrize(*covering(criterion=list(CRITERIA), weights=["none", "real"], priors=[None, [0.2, 0.5, 0.3]]))
def test_every_node_is_the_oracles_under_altered_priors(criterion, weights, priors):
    X, y = three_classes(missing=True)
    w = weights_for(3, len(y), weights)
    model = DecisionTreeClassifier(criterion=criterion, cost_matrix=UNEVEN, priors=priors, min_samples_leaf=3)
    check_tree(model.fit(X, y, sample_weight=w), X, y, w)
    assert model.get_n_leaves() > 4


@pytest.mark.parametrize("growth", [{"min_samples_leaf": 3}, {"max_leaf_nodes": 8}], ids=["depth_first", "best_first"])
@pytest.mark.parametrize("categories", [{}, {1: 5}], ids=["numbers", "categories"])
def test_every_node_is_the_oracles_under_generalised_gini(categories, growth):
    X, y = three_classes(seed=8, missing=True, categories=categories)
    w = weights_for(8, len(y), "real")
    model = DecisionTreeClassifier(
        cost_matrix=FAR, cost_splits="generalised_gini", categorical_features=list(categories), **growth
    ).fit(X, y, sample_weight=w)
    check_tree(model, X, y, w, categories=list(categories))
    plain = DecisionTreeClassifier(categorical_features=list(categories), **growth).fit(X, y, sample_weight=w)
    assert splits(plain) != splits(model)


@pytest.mark.parametrize(
    *covering(
        criterion=[*CRITERIA, "squared_error", "absolute_error", "friedman_mse", "poisson"],
        growth=[{"min_samples_leaf": 3}, {"max_leaf_nodes": 8}],
    )
)
def test_every_node_is_the_oracles_under_feature_costs(criterion, growth):
    X = continuous_table(11, n=50, missing=True)
    y = target_for(criterion, X, 11, n_classes=3)
    kind = DecisionTreeClassifier if criterion in CRITERIA else spinney.DecisionTreeRegressor
    prices = [3.0, 1.5, 1.0, 0.5]
    model = kind(criterion=criterion, feature_costs=prices, **growth).fit(X, y)
    check_tree(model, X, y)
    assert splits(kind(criterion=criterion, **growth).fit(X, y)) != splits(model)


# ---- equal in other words ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cost_splits", ["altered_priors", "generalised_gini", None])
def test_mistakes_that_all_cost_one_change_nothing(cost_splits):
    X, y = three_classes(missing=True)
    w = weights_for(3, len(y), "real")
    plain = DecisionTreeClassifier(min_samples_leaf=4).fit(X, y, sample_weight=w)
    ones = 1.0 - np.eye(3)
    model = DecisionTreeClassifier(min_samples_leaf=4, cost_matrix=ones, cost_splits=cost_splits)
    assert_identical(plain, model.fit(X, y, sample_weight=w))
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_priors_are_class_weights_in_other_words(criterion):
    X, y = three_classes()
    priors = np.array([0.5, 0.25, 0.25])
    factor = priors / (np.bincount(y) / len(y))
    weighted = DecisionTreeClassifier(criterion=criterion, class_weight=dict(enumerate(factor))).fit(X, y)
    model = DecisionTreeClassifier(criterion=criterion, priors=priors).fit(X, y)
    assert_identical(weighted, model)


def test_priors_equal_to_the_shares_give_the_plain_tree():
    X, y = three_classes()
    plain = DecisionTreeClassifier().fit(X, y)
    model = DecisionTreeClassifier(priors=np.bincount(y) / len(y)).fit(X, y)
    assert splits(plain) == splits(model)
    np.testing.assert_allclose(plain.tree_.value, model.tree_.value, rtol=1e-13)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_class_costs_are_row_weights(criterion):
    X = continuous_table(4, n=90)
    y = target_for("gini", X, 4)
    cost = [[0, 1], [6, 0]]
    model = DecisionTreeClassifier(criterion=criterion, cost_matrix=cost, min_samples_leaf=2).fit(X, y)
    peer = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=2).fit(X, y, np.where(y == 1, 6.0, 1.0))
    assert splits(model) == splits(peer)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    counts = np.bincount(y[model.apply(X) == model.apply(X)[0]], minlength=2)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], counts / counts.sum(), rtol=1e-13)


def test_generalised_gini_of_two_classes_is_gini():
    X = continuous_table(4, n=90)
    y = target_for("gini", X, 4)
    plain = DecisionTreeClassifier().fit(X, y)
    model = DecisionTreeClassifier(cost_matrix=[[0, 1], [6, 0]], cost_splits="generalised_gini").fit(X, y)
    assert splits(plain) == splits(model)
    np.testing.assert_array_equal(plain.tree_.value, model.tree_.value)
    np.testing.assert_allclose(model.tree_.impurity, 3.5 * plain.tree_.impurity, rtol=1e-13)


def test_costs_that_do_not_steer_splits_only_decide_what_is_predicted():
    X, y = three_classes()
    plain = DecisionTreeClassifier(max_depth=2).fit(X, y)
    model = DecisionTreeClassifier(max_depth=2, cost_matrix=UNEVEN, cost_splits=None).fit(X, y)
    assert_identical(plain, model)
    assert (plain.predict(X) != model.predict(X)).any()


def test_a_column_that_is_too_dear_might_as_well_not_be_there():
    X, y = three_classes(missing=True)
    dear = DecisionTreeClassifier(feature_costs=[1e12, 1, 1, 1], max_depth=4).fit(X, y)
    without = DecisionTreeClassifier(max_depth=4).fit(X[:, 1:], y)
    assert 0 in DecisionTreeClassifier(max_depth=4).fit(X, y).tree_.feature
    np.testing.assert_array_equal(np.maximum(dear.tree_.feature - 1, -2)[~dear.tree_.is_leaf], splits_of(without))
    np.testing.assert_array_equal(dear.tree_.value, without.tree_.value)


def splits_of(model):
    return model.tree_.feature[~model.tree_.is_leaf]


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("max_bins", [None, 16])
@pytest.mark.parametrize("criterion", ["gini", "gain_ratio"])
def test_prices_count_in_large_nodes_binned_nodes_and_random_cuts(criterion, max_bins, splitter):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70_000, 4))
    y = (X[:, 0] + X[:, 1] + 0.9 * X[:, 2] + 0.5 * rng.normal(size=70_000) > 0).astype(int)
    params = {"criterion": criterion, "max_bins": max_bins, "splitter": splitter, "max_depth": 4, "random_state": 0}
    names = pd.DataFrame(X, columns=list("abcd"))
    model = DecisionTreeClassifier(feature_costs={"a": 1e9, "b": 1e9}, **params).fit(names, y)
    assert set(splits_of(model)) <= {2, 3}
    assert set(splits_of(DecisionTreeClassifier(**params).fit(names, y))) & {0, 1}


def test_equal_prices_change_nothing_and_importances_are_not_divided():
    X, y = three_classes()
    plain = DecisionTreeClassifier().fit(X, y)
    assert_identical(plain, DecisionTreeClassifier(feature_costs=[7.0] * 4).fit(X, y))
    stump = DecisionTreeClassifier(max_depth=1, feature_costs={0: 1e-6}).fit(X, y)
    np.testing.assert_array_equal(stump.feature_importances_, [1, 0, 0, 0])
    assert stump.tree_.impurity[0] == plain.tree_.impurity[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "params",
    [
        {"cost_matrix": [[0, 9, 1], [1, 0, 1], [1, 2, 0]], "priors": [0.2, 0.6, 0.2]},
        {"feature_costs": [9.0, 1.0, 5.0, 0.2]},
    ],
    ids=["costs", "prices"],
)
def test_held_out_rows_cut_back_in_the_order_of_best_first_growth(params, seed):
    """The splits kept are those that best-first growth with as many leaves makes, prices and costs included."""
    X, y = three_classes(seed, n=300)
    kept = DecisionTreeClassifier(**params).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    grown = DecisionTreeClassifier(max_leaf_nodes=kept.get_n_leaves(), **params).fit(X[:200], y[:200])
    assert splits(kept) == splits(grown)


# ---- risk and loss -----------------------------------------------------------------------------------------


def test_the_loss_of_training_rows_adds_up_to_the_risk():
    X, y = three_classes()
    w = weights_for(3, len(y), "real")
    for params in ({"cost_matrix": UNEVEN}, {"priors": [0.6, 0.3, 0.1]}, {"cost_matrix": UNEVEN, "priors": "uniform"}):
        model = DecisionTreeClassifier(max_depth=2, **params).fit(X, y, sample_weight=w)
        task = model._task
        target = task.read(y, len(y))
        loss = task.loss(target.codes, task.costs(target, w))
        leaves = model.apply(X)
        total = w @ loss(leaves, model.tree_, np.arange(len(y))) / w.sum()
        risk = model._node_risks(model.tree_)[model.tree_.is_leaf].sum()
        np.testing.assert_allclose(total, risk, rtol=1e-12)


def test_impurity_stays_the_risk_when_asked_for():
    X, y = three_classes()
    model = DecisionTreeClassifier(max_depth=2, cost_matrix=UNEVEN, risk="impurity").fit(X, y)
    np.testing.assert_allclose(model._node_risks(model.tree_)[0], model.tree_.impurity[0])


def test_pruning_drops_what_does_not_lower_the_expected_cost():
    """Splits between leaves that predict the same class lower the impurity, but no cost."""
    X, y = three_classes()
    params = {"cost_matrix": UNEVEN, "min_samples_leaf": 3}
    grown = DecisionTreeClassifier(**params).fit(X, y)
    pruned = DecisionTreeClassifier(ccp_alpha=1e-9, **params).fit(X, y)
    assert pruned.get_n_leaves() < grown.get_n_leaves()
    np.testing.assert_array_equal(pruned.predict(X), grown.predict(X))
    tree, risk = pruned.tree_, pruned._node_risks(pruned.tree_)
    for node in np.flatnonzero(~tree.is_leaf):
        end = node + 1
        while end < tree.node_count and tree.depth[end] > tree.depth[node]:
            end += 1
        below = risk[node:end][tree.is_leaf[node:end]].sum()
        assert below < risk[node] - 1e-12


def test_cross_validation_minimises_cost():
    """Relative to the root: predicting one class for all costs 1, whatever the units of the costs."""
    X, y = three_classes(n=200)
    tables = []
    for unit in (1.0, 100.0):
        model = DecisionTreeClassifier(
            cost_matrix=np.multiply(UNEVEN, unit), prune="cv", cv=np.arange(200) % 5, rule="min", min_samples_leaf=3
        ).fit(X, y)
        tables.append(model)
    assert tables[0].get_n_leaves() == tables[1].get_n_leaves() > 1
    np.testing.assert_array_equal(tables[0].predict(X), tables[1].predict(X))


# ---- properties --------------------------------------------------------------------------------------------


def least_cost_class(counts, cost):
    """By exact arithmetic, from the definition."""
    n = len(counts)
    expected = [sum(Fraction(counts[i]) * Fraction(cost[i][j]) for i in range(n)) for j in range(n)]
    return expected.index(min(expected))


@examples(15)
@given(data=st.data(), n_classes=st.integers(2, 5))
def test_predictions_are_of_least_cost(data, n_classes):
    """Rows in three groups, small whole costs: ties are frequent."""
    whole = st.integers(0, 6)
    counts = data.draw(st.lists(st.lists(whole, min_size=n_classes, max_size=n_classes), min_size=3, max_size=3))
    counts[0] = [count + 1 for count in counts[0]]  # every class occurs
    cost = [[0 if i == j else data.draw(st.integers(1, 9)) for j in range(n_classes)] for i in range(n_classes)]
    group = np.repeat(np.arange(3.0), np.sum(counts, axis=1))
    y = np.concatenate([np.repeat(np.arange(n_classes), row) for row in counts])
    model = DecisionTreeClassifier(cost_matrix=cost, cost_splits=data.draw(st.sampled_from(["altered_priors", None])))
    model.fit(group[:, np.newaxis], y)
    handle = model.to_predictor()
    for g in np.unique(group):
        leaf = model.apply([[g]])[0]
        together = np.bincount(y[model.apply(group[:, np.newaxis]) == leaf], minlength=n_classes)
        expected = least_cost_class(together.tolist(), cost)
        assert model.predict([[g]])[0] == handle.predict([g]) == expected


@pytest.mark.parametrize(
    "params",
    [
        {"cost_matrix": UNEVEN, "priors": "uniform"},
        {"cost_matrix": UNEVEN, "cost_splits": "generalised_gini"},
        {"feature_costs": [1.0, 2.0, 3.0, 4.0]},
    ],
    ids=["altered", "generalised", "prices"],
)
def test_bit_identical_on_any_number_of_threads(params):
    X, y = three_classes(n=3000, missing=True)
    one, *others = (DecisionTreeClassifier(n_jobs=n, **params).fit(X, y) for n in (1, 2, 7))
    for other in others:
        assert_identical(one, other)


@pytest.mark.parametrize("params", [{"cost_matrix": [[0, 1], [9, 0]]}, {"priors": [0.9, 0.1]}], ids=["costs", "priors"])
def test_monotone_shares_stay_monotone(params):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0.8).astype(int)
    probe = np.column_stack([np.tile(np.linspace(-3, 3, 60), 20), np.repeat(rng.normal(size=20), 60)])
    rises = []
    for constraint in ([1, 0], None):
        model = DecisionTreeClassifier(monotonic_cst=constraint, min_samples_leaf=3, **params).fit(X, y)
        rises.append(np.diff(model.predict_proba(probe)[:, 1].reshape(20, 60), axis=1).min())
    assert rises[0] >= -1e-12 > rises[1]


# ---- forms of the parameters -------------------------------------------------------------------------------


def test_every_form_of_a_cost_matrix_means_the_same():
    X, y = three_classes()
    names = np.array(["c", "a", "b"])[y]  # classes_ are a, b, c
    array = [[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [1.0, 7.0, 0.0]]
    frame = pd.DataFrame(array, index=list("abc"), columns=list("abc")).loc[["b", "c", "a"], ["c", "a", "b"]]
    forms = [
        array,
        np.array(array, dtype=int),
        frame,
        pl.DataFrame({"true": ["b", "c", "a"], "c": [1.0, 0.0, 5.0], "a": [2.0, 1.0, 0.0], "b": [0.0, 7.0, 1.0]}),
        {"a": {"c": 5}, "b": {"a": 2}, "c": {"b": 7}},
    ]
    first = DecisionTreeClassifier(cost_matrix=array, max_depth=3).fit(X, names)
    for form in forms:
        model = DecisionTreeClassifier(cost_matrix=form, max_depth=3).fit(X, names)
        np.testing.assert_array_equal(model.cost_matrix_, array)
        assert_identical(first, model)
        again = spinney.load(saved_and_loaded(model))
        assert_identical(first, again.fit(X, names))  # the parameter has kept its labels


def test_a_polars_frame_names_number_classes_by_text():
    frame = pl.DataFrame({"true": [1, 0], "1": [0.0, 4.0], "0": [3.0, 0.0]})
    model = DecisionTreeClassifier(cost_matrix=frame).fit(TEN, [0] * 5 + [1] * 5)
    np.testing.assert_array_equal(model.cost_matrix_, [[0, 4], [3, 0]])


def test_priors_by_label_as_array_and_uniform():
    X, y = three_classes()
    for form in ([0.2, 0.3, 0.5], {2: 0.5, 0: 0.2, 1: 0.3}, np.array([0.2, 0.3, 0.5 + 1e-8])):
        np.testing.assert_allclose(DecisionTreeClassifier(priors=form).fit(X, y).priors_, [0.2, 0.3, 0.5], atol=1e-7)
    np.testing.assert_array_equal(DecisionTreeClassifier(priors="uniform").fit(X, y).priors_, [1 / 3] * 3)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ([[0, -1], [1, 0]], "at least 0.*costs -1"),
        ([[0, np.inf], [1, 0]], "finite"),
        ([[0, np.nan], [1, 0]], "finite"),
        ([[2, 1], [1, 0]], "diagonal.*Subtract"),
        ([[0, 1, 1], [1, 0, 1], [1, 1, 0]], r"shape \(3, 3\), but y has 2 classes"),
        ([[0, 1], [0, 0]], "row of zeros.*'ill'"),
        ([["a", 1], [1, 0]], "must hold numbers"),
        ({"sick": {"healthy": 3}}, "does not occur in y: 'sick'.*'healthy', 'ill'"),
        ({"ill": {"sick": 3}}, "does not occur in y: 'sick'"),
        ({"ill": 3}, "must hold dicts"),
        ({"ill": {"healthy": "dear"}}, "must hold numbers"),
        (pd.DataFrame([[0, 1], [1, 0]], index=["ill", "ill"], columns=["ill", "healthy"]), "a label twice"),
        (pd.DataFrame([[0, 1]], index=["ill"], columns=["ill", "healthy"]), "one row and one column for each"),
        (pd.DataFrame([[0, 1], [1, 0]], index=[0, 1], columns=[0, 1]), "does not occur in y: 0"),
    ],
)
def test_an_unusable_cost_matrix_is_refused_in_words(cost, words):
    with pytest.raises(ValueError, match=words):
        DecisionTreeClassifier(cost_matrix=cost).fit(TEN, ["healthy"] * 5 + ["ill"] * 5)


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ([0.5, 0.6], "sum to 1.1: divide"),
        ([1.0, 0.0], "positive"),
        ([0.5, 0.25, 0.25], "3 entries, but y has 2"),
        ({"ill": 1.0}, "leaves out the class 'healthy'"),
        ({"ill": 0.5, "well": 0.5}, "does not occur in y: 'well'"),
        ([0.5, None], "must hold numbers"),
    ],
)
def test_unusable_priors_are_refused_in_words(priors, words):
    with pytest.raises(ValueError, match=words):
        DecisionTreeClassifier(priors=priors).fit(TEN, ["healthy"] * 5 + ["ill"] * 5)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ([1.0, 2.0], r"shape \(2,\)"),
        ([1.0, 0.0, 1.0, 1.0], "positive numbers. Column 'x1' has 0"),
        ({"x9": 2.0}, "does not have: 'x9'"),
        ([1.0, np.nan, 1.0, 1.0], "positive numbers"),
    ],
)
def test_unusable_prices_are_refused_in_words(prices, words):
    X, y = three_classes()
    with pytest.raises(ValueError, match=words):
        DecisionTreeClassifier(feature_costs=prices).fit(X, y)


def test_what_does_not_go_together_is_refused_in_words():
    X, y = three_classes()
    with pytest.raises(ValueError, match="priors and class_weight both"):
        DecisionTreeClassifier(priors="uniform", class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match=r"one output\. Fit one tree per output"):
        DecisionTreeClassifier(priors="uniform").fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="needs criterion='gini'"):
        DecisionTreeClassifier(cost_matrix=UNEVEN, cost_splits="generalised_gini", criterion="entropy").fit(X, y)
    with pytest.raises(ValueError, match=r"class 2 has no rows of positive weight"):
        DecisionTreeClassifier(priors="uniform").fit(X, y, sample_weight=(y != 2) * 1.0)


# ---- kept and read -----------------------------------------------------------------------------------------


@pytest.fixture
def costly():
    X, y = load_iris(return_X_y=True, as_frame=True)
    params = {"cost_matrix": [[0, 1, 1], [1, 0, 1], [1, 30, 0]], "cost_splits": None, "max_depth": 2}
    model = DecisionTreeClassifier(priors=[0.5, 0.25, 0.25], **params).fit(X, y)
    plain = model.tree_.flat_value.argmax(axis=1)
    assert (plain != model.tree_.majority[:, 0]).any()  # costs decide somewhere
    return model, X


def test_files_pickles_and_handles_predict_the_same(costly):
    model, X = costly
    expected = model.predict(X)
    file = saved_and_loaded(model)
    for other in (spinney.load(file), pickle.loads(pickle.dumps(model)), spinney.load_predictor(rewound(file))):
        np.testing.assert_array_equal(other.predict(X), expected)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    again = spinney.load(rewound(file))
    np.testing.assert_array_equal(again.cost_matrix_, model.cost_matrix_)
    np.testing.assert_array_equal(again.priors_, model.priors_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model.tree_)).majority, model.tree_.majority)
    handle = model.to_predictor()
    assert [handle.predict(row) for row in X.to_numpy()] == expected.tolist()


def rewound(file):
    file.seek(0)
    return file


def test_text_rules_frames_and_explanations_name_the_class_of_least_cost(costly):
    model, X = costly
    leaves, labels = np.unique(model.apply(X), return_index=True)
    predictions = dict(zip(leaves.tolist(), model.predict(X)[labels].tolist(), strict=True))
    text = spinney.export_text(model)
    assert [int(line.split("→ ")[1]) for line in text.splitlines() if "→" in line] == list(predictions.values())
    assert [rule.prediction for rule in spinney.rules(model)] == list(predictions.values())
    frame = spinney.to_frame(model, "pandas")
    assert frame[frame["node"].isin(leaves)]["prediction"].tolist() == list(predictions.values())
    row = int(np.flatnonzero(model.predict(X) != model.predict_proba(X).argmax(axis=1))[0])
    assert spinney.explain_row(model, X.iloc[row]).endswith(f"Prediction: {model.predict(X)[row]}")


def test_trees_without_costs_say_so():
    X, y = three_classes()
    model = DecisionTreeClassifier().fit(X, y)
    assert model.cost_matrix_ is None
    assert model.priors_ is None
    again = spinney.load(saved_and_loaded(model))
    assert again.cost_matrix_ is None


@pytest.mark.parametrize("field", ["cost_matrix", "priors"])
@pytest.mark.parametrize("damage", [[1.0], [[0.0, -1.0], [1.0, 0.0]], ["a", "b", "c"], {"a": 1}])
def test_damaged_costs_in_a_file_are_refused(field, damage, costly):
    from spinney._model.file.container import from_bytes, to_bytes

    model, _ = costly
    data = model._saved_model().to_bytes({"estimator": "DecisionTreeClassifier", "parameters": {}})
    header, _ = from_bytes(data)
    header[field] = damage
    with pytest.raises(spinney.ModelFileError, match="damaged"):
        spinney.load(io.BytesIO(to_bytes(header, [model.tree_.engine])))
