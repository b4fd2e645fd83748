"""spinney's trees under one name, and what two of them must share to be called equal."""

import numpy as np
import spinney

from oracle.impurity import CLASSIFICATION, REGRESSION

CRITERIA = tuple(c for c in CLASSIFICATION if c != "log_loss") + REGRESSION
TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")

ARRAYS = (
    "children_left",
    "children_right",
    "feature",
    "threshold",
    "missing_go_to_left",
    "impurity",
    "n_node_samples",
    "weighted_n_node_samples",
    "value",
)


def spinney_tree(criterion, **params):
    """The decision tree that knows this criterion."""
    kind = spinney.DecisionTreeClassifier if criterion in CLASSIFICATION else spinney.DecisionTreeRegressor
    return kind(criterion=criterion, **params)


def bits(model, X):
    """Return the predictions of a model for X, to be compared exactly."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def assert_identical(first, second, but=()):
    """Every array of the two trees is the same, bit for bit, and so are the categories that go left."""
    for name in ARRAYS:
        if name not in but:
            np.testing.assert_array_equal(getattr(first.tree_, name), getattr(second.tree_, name), err_msg=name)
    for node in np.flatnonzero(np.isnan(first.tree_.threshold)):
        assert list(first.tree_.left_categories(node)) == list(second.tree_.left_categories(node))


def assert_same_model(first, second):
    """Same structure to the bit; sums of reals may differ in the last bits with the order of the rows."""
    sums = ("impurity", "weighted_n_node_samples", "n_node_samples", "value")
    assert_identical(first, second, but=sums)
    for name in ("impurity", "weighted_n_node_samples", "value"):
        np.testing.assert_allclose(
            getattr(first.tree_, name), getattr(second.tree_, name), rtol=1e-13, atol=1e-13, err_msg=name
        )
    if hasattr(first, "classes_"):
        np.testing.assert_array_equal(first.tree_.value, second.tree_.value)


def assert_same_partition(first, second):
    """The two trees cut the same rows in the same nodes, whatever the thresholds are called."""
    for name in ("children_left", "children_right", "feature", "n_node_samples"):
        np.testing.assert_array_equal(getattr(first.tree_, name), getattr(second.tree_, name), err_msg=name)
    np.testing.assert_allclose(first.tree_.value, second.tree_.value, rtol=1e-12, atol=1e-12)
