"""Stopping rules and constraints: legal at every node, and true of the finished function."""

import itertools

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle.check import check_tree, interaction_groups
from oracle.data import continuous_table, target_for, weights_for
from oracle.models import CRITERIA, assert_identical, spinney_tree
from sweep import covering

MONOTONE_CRITERIA = [c for c in CRITERIA if c != "friedman_mse"]
GROWTH = [{"min_samples_leaf": 2}, {"max_leaf_nodes": 9}]


def response(model, X):
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def used_together(tree, node=0, above=frozenset()):
    """The set of columns on each path from the root to a leaf."""
    if tree.children_left[node] == -1:
        return [above]
    here = above | {int(tree.feature[node])}
    left, right = tree.children_left[node], tree.children_right[node]
    return used_together(tree, left, here) + used_together(tree, right, here)


@pytest.mark.parametrize(*covering(criterion=MONOTONE_CRITERIA, growth=GROWTH))
def test_monotone_tree_is_the_oracles(criterion, growth):
    X = continuous_table(41, n=60, missing=True)
    y, w = target_for(criterion, X, 41), weights_for(41, 60, "integer")
    model = spinney_tree(criterion, monotonic_cst=[1, -1, 0, 1], **growth).fit(X, y, sample_weight=w)
    assert model.get_n_leaves() > 4
    check_tree(model, X, y, w)


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("criterion", MONOTONE_CRITERIA)
def test_response_is_monotone_along_the_column(criterion, sign, splitter):
    rng = np.random.default_rng(42)
    X = rng.normal(size=(300, 3))
    y = target_for(criterion, X * [sign, 1, 1], 42)
    params = {"splitter": splitter, "random_state": 0, "min_samples_leaf": 3}
    free = spinney_tree(criterion, **params).fit(X, y)
    model = spinney_tree(criterion, monotonic_cst=[sign, 0, 0], **params).fit(X, y)
    assert 0 in model.tree_.feature
    grid = np.linspace(-3, 3, 60)
    rises = {"free": [], "constrained": []}
    for others in rng.normal(size=(40, 2)):
        probe = np.column_stack([grid, np.tile(others, (60, 1))])
        rises["free"].append(sign * np.diff(response(free, probe)))
        rises["constrained"].append(sign * np.diff(response(model, probe)))
    assert np.min(rises["constrained"]) >= 0
    assert np.min(rises["free"]) < 0


def test_monotone_constraints_by_name():
    X = continuous_table(43)
    y = target_for("gini", X, 43)
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_name = spinney.DecisionTreeClassifier(monotonic_cst={"d": -1, "a": 1}, max_depth=4).fit(frame, y)
    by_position = spinney.DecisionTreeClassifier(monotonic_cst=[1, 0, 0, -1], max_depth=4).fit(frame, y)
    free = spinney.DecisionTreeClassifier(max_depth=4).fit(frame, y)
    assert_identical(by_name, by_position)
    assert free.tree_.node_count != by_name.tree_.node_count or np.any(free.tree_.value != by_name.tree_.value)


def test_classifier_constrains_the_second_class():
    X = np.arange(40.0)[:, None]
    y = np.where(np.arange(40) < 20, "yes", "no")  # P("yes"), the second class, falls with x
    falling = spinney.DecisionTreeClassifier(monotonic_cst=[-1]).fit(X, y)
    rising = spinney.DecisionTreeClassifier(monotonic_cst=[1]).fit(X, y)
    assert falling.get_n_leaves() == 2
    assert rising.get_n_leaves() == 1


REFUSED_MONOTONE = {
    "too short": ({"monotonic_cst": [1]}, "y2", "monotonic_cst"),
    "not a sign": ({"monotonic_cst": [2, 0, 0, 0]}, "y2", "monotonic_cst"),
    "unknown name": ({"monotonic_cst": {"height": 1}}, "y2", "height"),
    "three classes": ({"monotonic_cst": [1, 0, 0, 0]}, "y3", "multiclass|classes"),
    "two outputs": ({"monotonic_cst": [1, 0, 0, 0]}, "two", "output"),
    "category": ({"monotonic_cst": [1, 0, 0, 0], "categorical_features": [0]}, "y2", "categor"),
}


@pytest.mark.parametrize("case", REFUSED_MONOTONE)
def test_impossible_monotone_constraints_are_refused(case):
    params, target, message = REFUSED_MONOTONE[case]
    X = np.round(continuous_table(44, n=40))
    rng = np.random.default_rng(0)
    y = {"y2": rng.integers(2, size=40), "y3": np.arange(40) % 3, "two": rng.integers(2, size=(40, 2))}[target]
    with pytest.raises(ValueError, match=message):
        spinney.DecisionTreeClassifier(**params).fit(X, y)
    if target != "y3":
        with pytest.raises(ValueError, match=message):
            spinney.DecisionTreeRegressor(**params).fit(X, y.astype(float))


INTERACTIONS = [
    [{0, 1}, {2, 3}],
    [[0, 1], [1, 2], [3]],
    [(0,), (1, 2)],  # column 3 is a group by itself
    "pairwise",
    "no_interactions",
]


@pytest.mark.parametrize(*covering(criterion=["gini", "squared_error"], groups=INTERACTIONS, growth=GROWTH))
def test_interaction_constraints(criterion, groups, growth):
    X = continuous_table(45, n=80)
    y = target_for(criterion, X, 45)
    model = spinney_tree(criterion, interaction_cst=groups, **growth).fit(X, y)
    free = spinney_tree(criterion, **growth).fit(X, y)
    check_tree(model, X, y)
    allowed = [set(g) for g in interaction_groups(groups, 4)]
    rest = set(range(4)).difference(*allowed)
    assert all(any(path <= group for group in [*allowed, rest]) for path in used_together(model.tree_))
    assert max(map(len, used_together(free.tree_))) > 2


def test_interaction_constraints_by_name():
    X = continuous_table(46)
    y = target_for("squared_error", X, 46)
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_name = spinney.DecisionTreeRegressor(interaction_cst=[{"a", "b"}, {"c", "d"}]).fit(frame, y)
    assert_identical(by_name, spinney.DecisionTreeRegressor(interaction_cst=[{0, 1}, {2, 3}]).fit(frame, y))


@pytest.mark.parametrize("groups", ["triples", [{0, 9}], [{-1}], 3, [{"height"}], [0, 1]], ids=str)
def test_bad_interaction_constraints_are_refused(groups):
    with pytest.raises((ValueError, TypeError), match="interaction_cst"):
        spinney.DecisionTreeClassifier(interaction_cst=groups).fit(continuous_table(47, n=30), np.arange(30) % 2)


def test_constraints_combine():
    X = continuous_table(48, n=80, missing=True)
    y, w = target_for("squared_error", X, 48), weights_for(48, 80, "real")
    model = spinney.DecisionTreeRegressor(
        monotonic_cst=[0, 1, 0, 0],
        interaction_cst=[{0, 1}, {1, 2, 3}],
        min_samples_leaf=3,
        min_weight_fraction_leaf=0.04,
        max_leaf_nodes=10,
        max_depth=4,
    ).fit(X, y, sample_weight=w)
    assert model.get_n_leaves() > 4
    check_tree(model, X, y, w)


STOPPING = {
    "max_depth": {"max_depth": 3},
    "min_samples_split": {"min_samples_split": 20},
    "min_samples_split share": {"min_samples_split": 0.3},
    "min_samples_leaf": {"min_samples_leaf": 9},
    "min_samples_leaf share": {"min_samples_leaf": 0.11},
    "min_weight_fraction_leaf": {"min_weight_fraction_leaf": 0.12},
    "max_leaf_nodes": {"max_leaf_nodes": 5},
    "best first to the end": {"max_leaf_nodes": 1000},
    "best first and depth": {"max_leaf_nodes": 6, "max_depth": 3},
    "min_impurity_decrease": {"min_impurity_decrease": 0.06},
}


@pytest.mark.parametrize(*covering(criterion=["entropy", "squared_error"], rule=list(STOPPING)))
def test_stopping_rules(criterion, rule):
    X = continuous_table(49, n=70)
    y, w = target_for(criterion, X, 49, n_classes=3), weights_for(49, 70, "integer")
    model = spinney_tree(criterion, **STOPPING[rule]).fit(X, y, sample_weight=w)
    full = spinney_tree(criterion).fit(X, y, sample_weight=w)
    if rule == "best first to the end":
        assert_identical(model, full)
    else:
        assert 1 < model.get_n_leaves() < full.get_n_leaves()
    check_tree(model, X, y, w)


@pytest.mark.parametrize("min_purity", [0.6, 0.9, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_min_purity_stops_at_a_clear_majority(min_purity, n_classes):
    X = continuous_table(50, n=80)
    y = target_for("gini", X, 50, n_classes)
    model = spinney.DecisionTreeClassifier(min_purity=min_purity).fit(X, y)
    check_tree(model, X, y)
    leaf = model.tree_.children_left == -1
    majority = model.tree_.value[:, 0].max(axis=1)
    assert majority[leaf].min() >= min_purity - 1e-12
    assert majority[~leaf].max() < min_purity


def test_max_depth_zero_splits_is_the_root_alone():
    X = continuous_table(51, n=30)
    model = spinney.DecisionTreeRegressor(min_samples_split=31).fit(X, X[:, 0])
    assert (model.get_depth(), model.get_n_leaves()) == (0, 1)
    assert model.predict(X[:2]).tolist() == [pytest.approx(X[:, 0].mean())] * 2


def test_max_leaf_nodes_expands_the_best_node_first():
    """Each further leaf adds one split to the tree before; together they lower the impurity greedily."""
    X = continuous_table(52, n=120)
    y = target_for("squared_error", X, 52)
    trees = [spinney.DecisionTreeRegressor(max_leaf_nodes=k).fit(X, y) for k in range(2, 12)]
    errors = [np.mean((tree.predict(X) - y) ** 2) for tree in trees]
    assert [tree.get_n_leaves() for tree in trees] == list(range(2, 12))
    assert np.all(np.diff(errors) < 0)
    for smaller, larger in itertools.pairwise(trees):
        splits = [
            set(zip(t.tree_.feature, t.tree_.threshold, t.tree_.n_node_samples, strict=True)) for t in (smaller, larger)
        ]
        assert splits[0] - {s for s in splits[0] if s[0] == -2} <= splits[1]
