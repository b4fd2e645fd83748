"""Bundles of exclusive columns, beside a search row by row."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import spinney
from oracle.bundles import greedy_bundles
from spinney.teaching import bundle_columns


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_conflicts", [0.0, 0.05, 0.3])
def test_the_greedy_bundles_are_those_of_the_oracle(seed, max_conflicts):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((60, 12)) < rng.uniform(0.02, 0.4, 12), rng.integers(1, 5, (60, 12)), 0).astype(float)
    found = bundle_columns(X, max_conflicts=max_conflicts)
    bundles, conflicts = greedy_bundles(X.tolist(), int(max_conflicts * 60))
    assert found.bundles == [[f"x{j}" for j in bundle] for bundle in bundles]
    assert found.conflicts.tolist() == conflicts
    assert (found.conflicts <= max_conflicts * 60).all()
    clear = np.ones(60, dtype=bool)
    for bundle in bundles:
        clear &= (X[:, bundle] != 0).sum(axis=1) <= 1
    np.testing.assert_array_equal(found.restore()[clear], X[clear])
    if max_conflicts == 0:
        assert clear.all()


def test_indicators_of_one_column_are_one_bundle_of_its_values():
    town = np.random.default_rng(0).integers(0, 5, 200)
    indicators = np.eye(5)[town]
    for table in (
        indicators,
        sp.csr_matrix(indicators),
        pd.DataFrame(indicators, columns=list("abcde")),
        pd.get_dummies(pd.Series(town)).add_prefix("town "),  # of booleans
    ):
        found = bundle_columns(table)
        assert len(found) == 1
        assert len(np.unique(found.codes)) == 5
        assert len({(code, own) for code, own in zip(found.codes[:, 0], town, strict=True)}) == 5


def test_a_tree_of_bundles_separates_what_one_of_columns_separates():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (400, 2))
    X = np.hstack([np.eye(4)[codes[:, 0]], np.eye(4)[codes[:, 1]]])
    y = (codes[:, 0] == 1) ^ (codes[:, 1] == 2)
    found = bundle_columns(X)
    assert len(found) == 2
    for table in (X, found.codes):
        assert spinney.DecisionTreeClassifier().fit(table, y).score(table, y) == 1


def test_missing_values_are_not_0_and_are_restored():
    X = np.array([[np.nan, 0.0], [0.0, 2.0], [1.5, 0.0], [0.0, 0.0]])
    found = bundle_columns(X)
    assert len(found) == 1
    np.testing.assert_array_equal(found.restore(), X)


def test_the_allowed_conflicts_are_not_rounded_down():
    X = np.zeros((100, 2))
    X[:29] = 1.0
    assert len(bundle_columns(X, max_conflicts=0.29)) == 1
    assert len(bundle_columns(X, max_conflicts=0.28)) == 2


def test_what_cannot_be_bundled_is_refused():
    with pytest.raises(ValueError, match="'town' is not numeric"):
        bundle_columns(pd.DataFrame({"town": ["a", "b"]}))


@pytest.mark.parametrize("max_conflicts", ["x", None, -0.1, 1.0, float("nan")])
def test_conflicts_are_a_fraction(max_conflicts):
    with pytest.raises(ValueError, match="max_conflicts must be a fraction of the rows, at least 0 and below 1, not"):
        bundle_columns([[0.0, 1.0]], max_conflicts=max_conflicts)
