"""A tree depends neither on the order of the rows nor on the unit of the weights; weight 2 is a row given twice."""

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from sweep import examples

CLASSIFIERS = [
    *({"criterion": rule} for rule in ("gini", "entropy", "misclassification", "chi2", "gain_ratio")),
    {"criterion": "entropy", "missing": "surrogate"},
    {"criterion": "entropy", "max_bins": 5},
    {"class_weight": {0: 1, 1: 2.5, 2: 0.75}, "min_weight_fraction_leaf": 0.07},
    {"cost_matrix": [[0, 3, 1], [1, 0, 2], [1, 1, 0]], "cost_splits": "generalised_gini"},
    {"priors": [0.2, 0.5, 0.3], "ccp_alpha": 0.01},
]
REGRESSORS = [
    *({"criterion": rule} for rule in ("squared_error", "friedman_mse", "absolute_error", "poisson")),
    {"missing": "surrogate", "surrogate_style": "present"},
    {"max_leaf_nodes": 7, "min_impurity_decrease": 0.003},
    {"splitter": "random", "random_state": 3},
    {"max_features": 2, "random_state": 3},
    {"criterion": "absolute_error", "missing": "surrogate", "max_competitors": 2},
    {"monotonic_cst": {"a": 1}, "ccp_alpha": 0.01},
    {"min_weight_fraction_leaf": 0.07, "shrinkage": 0.5},
]


@st.composite
def problems(draw):
    """A table of numbers with ties and holes and of categories, a target for all criteria, and weights or none."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(5, 80))
    spread = draw(st.sampled_from([1.0, 1e-3, 1e9]))
    X = pd.DataFrame(
        {
            "a": np.round(random.normal(size=n), 1),
            "b": np.where(random.random(n) < 0.2, np.nan, random.integers(0, 6, size=n)),
            "c": random.choice(np.array(["u", "v", "w", "x"], dtype=object), size=n),
        }
    )
    X.loc[random.random(n) < 0.1, "c"] = None
    classes = random.permutation(np.arange(n) % 3)
    values = spread * (1 + np.abs(X["a"].to_numpy() / 3 + random.normal(size=n)))
    weight = draw(st.sampled_from([None, "whole", "quarters", "any"]))
    if weight is not None:
        divisor, above = {"whole": (1, 5), "quarters": (4, 9), "any": (7, 1000)}[weight]
        weight = random.integers(1, above, size=n) / divisor
    return X, classes, values, weight


def fitted(options, problem):
    X, classes, values, weight = problem
    kind = spinney.DecisionTreeClassifier if options in CLASSIFIERS else spinney.DecisionTreeRegressor
    return kind(**options).fit(X, classes if options in CLASSIFIERS else values, sample_weight=weight)


def same_but_for_weights(model, other, scale):
    engine, wanted = model.tree_.engine, other.tree_.engine
    for name in ("feature", "threshold", "value", "impurity"):
        np.testing.assert_array_equal(getattr(engine, name), getattr(wanted, name), err_msg=name)
    np.testing.assert_allclose(engine.weight, scale * wanted.weight, rtol=1e-12)


@pytest.mark.parametrize("options", CLASSIFIERS + REGRESSORS, ids=str)
@examples(6)
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_the_order_of_the_rows_does_not_matter(options, problem, seed):
    X, classes, values, weight = problem
    order = np.random.default_rng(seed).permutation(len(X))
    mixed = (X.iloc[order], classes[order], values[order], None if weight is None else weight[order])
    assert fitted(options, mixed).fingerprint() == fitted(options, problem).fingerprint()


@pytest.mark.parametrize("options", CLASSIFIERS + REGRESSORS, ids=str)
@examples(6)
@given(problem=problems(), scale=st.sampled_from([0.125, 0.5, 2.0, 2.0**40, 3.0, 10.0]))
def test_the_unit_of_the_weights_does_not_matter(options, problem, scale):
    X, classes, values, weight = problem
    weight = np.ones(len(X)) if weight is None else weight
    if scale in (3.0, 10.0) and (
        (weight * 4 % 1 > 0).any() or {"class_weight", "priors", "cost_matrix"} & set(options)
    ):
        scale = 2.0  # a product that is rounded is another weight
    if "shrinkage" in options:
        options = {**options, "shrinkage": None}  # which is in this unit
    scaled = fitted({**options}, (X, classes, values, scale * weight))
    same_but_for_weights(scaled, fitted(options, (X, classes, values, weight)), scale)


# Priors give weights that are rounded: twice such a weight is not what two of them add up to.
@pytest.mark.parametrize("options", [o for o in CLASSIFIERS + REGRESSORS if "priors" not in o], ids=str)
@examples(6)
@given(problem=problems(), seed=st.integers(0, 10**6))
def test_a_weight_of_two_is_a_row_that_is_there_twice(options, problem, seed):
    X, classes, values, _ = problem
    times = np.random.default_rng(seed).integers(0, 4, size=len(X))
    times[:3] = 1  # of each class, and one of the lightest
    classes = np.r_[0, 1, 2, classes[3:]]
    rows = np.repeat(np.arange(len(X)), times)
    twice = fitted(options, (X.iloc[rows], classes[rows], values[rows], None))
    same_but_for_weights(fitted(options, (X, classes, values, times)), twice, 1)
