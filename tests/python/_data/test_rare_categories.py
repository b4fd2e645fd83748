"""Columns of many categories: rare ones are one, many pay for what chance gives them, and names are warned of."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
import spinney
from oracle.check import check_tree
from oracle.data import continuous_table

TREES = [spinney.DecisionTreeClassifier, spinney.ExtraTreeClassifier]
FORESTS = [spinney.RandomForestClassifier, spinney.ExtraTreesClassifier]


def named_table(seed, n_rows, n_names, column="name", noise=1.0):
    """A number that decides, a column of names that do not, and noisy classes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    codes = rng.permutation(np.arange(n_rows) % n_names)
    y = (x + noise * rng.normal(size=n_rows) > 0).astype(int)
    return pl.DataFrame({"x": x, column: [f"n{c:04d}" for c in codes]}), y, codes


def fitted(kind, frame, y, **options):
    forest = {"n_estimators": 10, "n_jobs": 1} if kind in FORESTS else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(random_state=0, **forest, **options).fit(frame, y)


@pytest.mark.parametrize("kind", [*TREES, *FORESTS, spinney.AdaBoostClassifier, spinney.BaggingClassifier])
@pytest.mark.parametrize("rows_per_name", [1, 3])
def test_a_column_of_names_changes_nothing(kind, rows_per_name):
    frame, y, _ = named_table(1, 240, 240 // rows_per_name)
    model = fitted(kind, frame, y)
    others = frame.with_columns(name=pl.Series([f"other {i}" for i in range(240)]))
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(others))
    if hasattr(model, "feature_importances_"):
        assert model.feature_importances_[1] == 0


@pytest.mark.parametrize("kind", TREES)
def test_unknown_categories_go_with_the_rare_ones(kind):
    """Rare names have one value of y, and the common ones another."""
    rare = [f"r{i}" for i in range(20)]
    frame = pl.DataFrame({"c": rare + ["a"] * 30 + ["b"] * 30})
    y = np.repeat([1, 0], [20, 60])
    model = fitted(kind, frame, y)
    assert model.predict(pl.DataFrame({"c": ["r3", "a", "never seen", None]})).tolist() == [1, 0, 1, 1]
    if kind is spinney.DecisionTreeClassifier:
        left = set(model.tree_.left_categories(0))
        assert {0, 1} in (left, set(range(22)) - left)


@pytest.mark.parametrize("kind", [*TREES, spinney.RandomForestClassifier])
def test_few_rare_categories_are_distinguished(kind):
    frame = pl.DataFrame({"c": [f"c{i}" for i in range(10)] * 2})
    y = np.arange(20) % 10 < 4
    model = fitted(kind, frame, y, **({"bootstrap": False} if kind in FORESTS else {}))
    np.testing.assert_array_equal(model.predict(frame), y)


def test_many_categories_pay_for_what_chance_gives_them():
    """Forty uninformative names of six rows each, and an informative number."""
    frame, y, _ = named_table(2, 240, 40, noise=2.0)
    root = [fitted(spinney.DecisionTreeClassifier, frame, y, max_depth=1, min_samples_category=n) for n in (1, 5)]
    assert [tree.tree_.feature[0] for tree in root] == [1, 0]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "gain_ratio", "chi2", "squared_error", "absolute_error"])
@pytest.mark.parametrize(("n_categories", "weighted"), [(14, True), (40, False), (40, True)])
def test_trees_are_those_of_the_reference(criterion, n_categories, weighted):
    n_rows = 80
    X = continuous_table(3, n_rows, 3, missing=True, categories={1: n_categories})
    rng = np.random.default_rng(4)
    is_class = criterion not in ("squared_error", "absolute_error")
    y = np.nan_to_num(X[:, 1]) % 7 + 2 * (np.nan_to_num(X[:, 0]) > 0) + rng.normal(size=n_rows)
    y = np.digitize(y, [2.0, 4.0]) if is_class else y
    w = rng.integers(1, 4, size=n_rows).astype(float) if weighted else None
    frame = pl.DataFrame(
        {"a": X[:, 0], "b": [None if np.isnan(c) else f"c{int(c):03d}" for c in X[:, 1]], "c": X[:, 2]}
    ).fill_nan(None)
    codes = {f"c{int(c):03d}": i for i, c in enumerate(np.unique(X[~np.isnan(X[:, 1]), 1]))}
    X[:, 1] = [np.nan if v is None else codes[v] for v in frame["b"]]
    kind = spinney.DecisionTreeClassifier if is_class else spinney.DecisionTreeRegressor
    model = kind(criterion=criterion, min_samples_leaf=3, max_depth=3).fit(frame, y, sample_weight=w)
    check_tree(model, X, y, w, table=frame, categories=[1])


@pytest.mark.parametrize("kind", [*TREES, *FORESTS])
def test_a_weight_of_two_is_a_row_twice_and_order_does_not_matter(kind):
    frame, y, _ = named_table(5, 160, 30)
    times = np.random.default_rng(6).integers(1, 4, size=160)
    rows = np.random.default_rng(7).permutation(np.repeat(np.arange(160), times))
    options = {"random_state": 0, "categorical_features": ["name"]} | ({"n_estimators": 8} if kind in FORESTS else {})
    weighted = kind(**options).fit(frame, y, sample_weight=times)
    repeated = kind(**options).fit(frame[rows], y[rows])
    np.testing.assert_array_equal(weighted.predict_proba(frame), repeated.predict_proba(frame))


def test_names_are_warned_of():
    frame, y, _ = named_table(8, 100, 100, "ticket")
    message = "Column 'ticket' looks like an identifier: 100 values in 100 rows.* convert it to numbers or dates"
    with pytest.warns(UserWarning, match=message):
        spinney.RandomForestClassifier(n_estimators=2).fit(frame, y)
    spinney.RandomForestClassifier(n_estimators=2, categorical_features=["ticket"]).fit(frame, y)  # it is meant
    spinney.RandomForestClassifier(n_estimators=2).fit(frame.select("x"), y)  # numbers are all different, too
    half, y_half, _ = named_table(8, 100, 50, "ticket")
    spinney.RandomForestClassifier(n_estimators=2).fit(half, y_half)
