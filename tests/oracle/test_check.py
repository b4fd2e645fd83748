"""The checker must notice a tree that is wrong in one place only."""

from types import SimpleNamespace

import numpy as np
import pytest

from oracle.check import check_tree
from oracle.data import continuous_table, target_for
from oracle.models import ARRAYS, spinney_tree

X = continuous_table(3, n=60, missing=True)
Y = target_for("squared_error", X, 3)


def fitted(**params):
    return spinney_tree("squared_error", min_samples_leaf=3, **params).fit(X, Y)


def forged(model, **changes):
    """The model with some arrays of its tree replaced; it still routes rows as it did."""
    tree = model.tree_
    fields = {name: np.array(getattr(tree, name)) for name in ARRAYS}
    fields |= {"node_count": tree.node_count, "n_leaves": tree.n_leaves, "max_depth": tree.max_depth}
    other = SimpleNamespace(**model.get_params())
    other.decision_path = model.decision_path
    other.tree_ = SimpleNamespace(**(fields | changes))
    return other


def changed(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


def test_an_untouched_copy_passes():
    model = fitted()
    assert model.get_n_leaves() > 5
    check_tree(forged(model), X, Y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("impurity", 0.123),
        ("value", 7.0),
        ("n_node_samples", 59),
        ("weighted_n_node_samples", 61.0),
        ("feature", 3),
        ("children_right", 2),
    ],
)
def test_one_wrong_number_is_noticed(name, value):
    model = fitted()
    assert model.tree_.feature[0] != 3
    with pytest.raises(AssertionError):
        check_tree(forged(model, **{name: changed(getattr(model.tree_, name), 0, value)}), X, Y)


def test_a_threshold_off_the_middle_is_noticed():
    model = fitted()
    at = int(np.flatnonzero(np.isfinite(model.tree_.threshold) & (model.tree_.feature >= 0))[0])
    shifted = changed(model.tree_.threshold, at, model.tree_.threshold[at] + 1e-9)
    with pytest.raises(AssertionError):
        check_tree(forged(model, threshold=shifted), X, Y)


def test_a_wrong_side_for_missing_rows_is_noticed():
    model = fitted()
    side = model.tree_.missing_go_to_left
    with pytest.raises(AssertionError):
        check_tree(forged(model, missing_go_to_left=changed(side, 0, 1 - side[0])), X, Y)


@pytest.mark.parametrize(
    ("grown", "claimed"),
    [
        ({"max_depth": 2}, {"max_depth": None}),
        ({"max_features": 1, "random_state": 0}, {}),
        ({"splitter": "random", "random_state": 0}, {}),
        ({}, {"min_samples_leaf": 8}),
        ({}, {"min_weight_fraction_leaf": 0.3}),
        ({}, {"monotonic_cst": [1, 1, 1, 1]}),
        ({}, {"interaction_cst": [{0}, {1}, {2}, {3}]}),
        ({}, {"min_impurity_decrease": 0.1}),
        ({"max_depth": 2}, {"max_depth": None, "max_leaf_nodes": 4}),
        ({"criterion": "absolute_error"}, {"criterion": "squared_error"}),
    ],
    ids=str,
)
def test_a_tree_grown_by_other_rules_is_noticed(grown, claimed):
    model = forged(spinney_tree(**{"criterion": "squared_error", "min_samples_leaf": 3, **grown}).fit(X, Y))
    for name, value in claimed.items():
        setattr(model, name, value)
    with pytest.raises(AssertionError):
        check_tree(model, X, Y)
