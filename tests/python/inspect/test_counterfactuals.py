"""Counterfactuals: the smallest changes of a row that change its prediction."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from spinney.inspect.explain.counterfactual_search import few_digits

X, Y = spinney.datasets.load_penguins()
TREE = spinney.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y)
FOREST = spinney.RandomForestClassifier(6, random_state=0).fit(X, Y)


@pytest.mark.parametrize("model", [TREE, FOREST], ids=["tree", "forest"])
def test_changed_rows_have_the_wanted_prediction(model):
    found = spinney.counterfactual(model, X.iloc[0], "Gentoo", X=X)
    assert found.prediction == "Adelie"
    sets = []
    for alternative in found:
        assert (
            model.predict(pd.DataFrame([alternative.row]).astype(X.dtypes.to_dict()))[0]
            == alternative.prediction
            == "Gentoo"
        )
        assert 1 <= len(alternative.changes) <= 3
        assert all(old != new for old, new in alternative.changes.values())
        unchanged = set(X.columns) - set(alternative.changes)
        assert all(alternative.row[name] == X.iloc[0][name] for name in unchanged)
        sets.append(frozenset(alternative.changes))
    assert len(set(sets)) == len(sets)
    assert "1. " in str(found)
    assert found.to_frame("polars")["alternative"][0] == 1
    assert found.is_exact == (model is TREE)


def test_boosting_with_an_init_estimator():
    random = np.random.default_rng(0)
    Z = random.normal(size=(120, 2))
    model = spinney.GradientBoostingRegressor(n_estimators=3, init=LinearRegression()).fit(
        Z, 3 * Z[:, 0] + Z[:, 1] ** 2
    )
    found = spinney.counterfactual(model, Z[0], (5.0, None), X=Z)
    for alternative in found:
        row = np.array(list(alternative.row.values()), dtype=float)[np.newaxis]
        assert model.predict(row)[0] == alternative.prediction >= 5


def test_fixed_columns_and_ranges_are_respected():
    ranges = {"flipper_length_mm": (None, 215), "sex": ["female"]}
    found = spinney.counterfactual(FOREST, X.iloc[0], "Gentoo", X=X, fixed=["island"], ranges=ranges, max_columns=5)
    for alternative in found:
        assert "island" not in alternative.changes
        assert alternative.row["flipper_length_mm"] <= 215
        assert alternative.changes.get("sex", (None, "female"))[1] == "female"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_the_nearest_point_of_a_tree_is_found(seed):
    random = np.random.default_rng(seed)
    Z = random.integers(0, 5, (40, 3)).astype(float)
    y = (Z[:, 0] * Z[:, 1] + random.normal(size=40) > 4).astype(int)
    model = spinney.DecisionTreeClassifier(max_depth=4, random_state=0).fit(Z, y)
    if len(model.classes_) < 2:
        return
    row = Z[0]
    wanted = 1 - model.predict(row[np.newaxis])[0]
    grid = np.array(list(product(*(np.unique(Z[:, j]) for j in range(3)))))  # all points of values that occur
    scale = np.array([np.subtract(*np.quantile(Z[:, j], (0.95, 0.05))) or np.ptp(Z[:, j]) or 1 for j in range(3)])
    rank = (np.abs(grid - row) / scale).sum(axis=1) + 0.25 * (grid != row).sum(axis=1)
    reached = model.predict(grid) == wanted
    if not reached.any():
        with pytest.raises(ValueError, match="There is no change"):
            spinney.counterfactual(model, row, X=Z)
        return
    found = spinney.counterfactual(model, row, X=Z)
    best = found[0]
    assert best.distance + 0.25 * len(best.changes) == pytest.approx(rank[reached].min(), abs=1e-12)


def test_ties_are_resolved_as_by_predict():
    Z, y = [[0.0], [1], [1], [2]], ["no", "no", "yes", "yes"]
    model = spinney.DecisionTreeClassifier().fit(Z, y)
    assert model.predict([[1.0]])[0] == "no"  # the first of two equal probabilities
    assert spinney.counterfactual(model, [0.0], "yes", X=Z)[0].changes == {"x0": (0.0, 2.0)}
    assert spinney.counterfactual(model, [2.0], "no", X=Z)[0].changes == {"x0": (2.0, 1.0)}


def test_regression_with_missing_values():
    Z, mass = X.drop(columns="body_mass_g"), X["body_mass_g"].fillna(4200)
    for kind in (
        spinney.DecisionTreeRegressor(max_depth=4),
        spinney.GradientBoostingRegressor(n_estimators=10, random_state=0),
    ):
        model = kind.fit(Z, mass)
        row = Z.iloc[3]  # the bill is missing
        found = spinney.counterfactual(model, row, (model.predict(Z.iloc[[3]])[0] + 300, None), X=Z)
        assert found[0].prediction >= model.predict(Z.iloc[[3]])[0] + 300
    with pytest.raises(ValueError, match="the closest prediction is"):
        spinney.counterfactual(model, row, (90_000, None), X=Z)


def test_thresholds_are_used_without_rows():
    found = spinney.counterfactual(TREE, X.iloc[0].to_dict(), "Gentoo")
    assert found[0].prediction == "Gentoo"
    with pytest.raises(ValueError, match="Pass X"):
        spinney.counterfactual(LogisticRegression().fit([[0.0], [1]], [0, 1]), [0.0])


def test_other_libraries():
    Z = X[["bill_length_mm", "flipper_length_mm"]].dropna()
    model = LogisticRegression(max_iter=500).fit(Z, Y[Z.index] == "Gentoo")
    found = spinney.counterfactual(model, Z.iloc[0], X=Z)
    assert found.prediction is False
    assert found[0].prediction is True
    sure = spinney.counterfactual(model, 0, True, X=Z, probability=0.9)
    assert sure[0].probability >= 0.9
    assert sure[0].distance > found[0].distance


def test_errors():
    for options, message in (
        ({"wanted": "Emperor"}, "wanted must be one of the classes"),
        ({}, "wanted is required"),
        ({"wanted": "Adelie"}, "The prediction is already Adelie"),
        ({"wanted": "Gentoo", "fixed": list(X.columns)}, "No column may change"),
        ({"wanted": "Gentoo", "fixed": ["islands"]}, "Did you mean 'island'"),
        ({"wanted": "Gentoo", "fixed": ["island"], "ranges": {"island": ["Dream"]}}, "both in fixed and in ranges"),
        ({"wanted": "Gentoo", "ranges": {"island": ["Elba"]}}, "not a value of that column"),
        ({"wanted": "Gentoo", "ranges": {"body_mass_g": (5, 1)}}, "low must not exceed high"),
        ({"wanted": "Gentoo", "probability": 2}, "probability must be"),
        ({"wanted": "Gentoo", "n": 0}, "n must be"),
    ):
        with pytest.raises(ValueError, match=message):
            spinney.counterfactual(TREE, X.iloc[0], X=X, **options)
    model = spinney.DecisionTreeRegressor(max_depth=2).fit(X[["flipper_length_mm"]], X["body_mass_g"].fillna(0))
    for wanted in (5000, "heavy"):
        with pytest.raises(ValueError, match="the smallest and the largest"):
            spinney.counterfactual(model, [190.0], wanted, X=X[["flipper_length_mm"]])


def test_few_digits():
    assert few_digits(2.4499, 2.6) == 2.6
    assert few_digits(2.4499, 2.5) == 2.5
    assert few_digits(0.12344, 0.12346) == 0.12345
    assert few_digits(-1.5, -1.2) == -1.2
    assert 1e6 < few_digits(1e6, 1_000_400.0) <= 1_000_400


@pytest.mark.slow
def test_plot():
    import matplotlib.pyplot as plt

    found = spinney.counterfactual(FOREST, X.iloc[0], "Gentoo", X=X)
    ax = found.plot()
    ax.figure.canvas.draw()
    shown = " ".join(text.get_text() for text in ax.get_figure().findobj(plt.Text))
    assert all(column in shown for alternative in found for column in alternative.changes)
    plt.close(ax.figure)


@pytest.mark.parametrize("kind", ["pandas", "series", "polars", "pyarrow", "dict", "tuple"])
@pytest.mark.parametrize("with_table", [False, True])
def test_rows_of_every_kind_are_accepted(kind, with_table):
    X, y = spinney.datasets.load_penguins(as_frame="polars")
    model = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    row = {
        "pandas": lambda: X[:1].to_pandas(),
        "series": lambda: X[:1].to_pandas().iloc[0],
        "polars": lambda: X[:1],
        "pyarrow": lambda: X[:1].to_arrow(),
        "dict": lambda: X.row(0, named=True),
        "tuple": lambda: X.row(0),
    }[kind]()
    found = spinney.counterfactual(model, row, "Gentoo", X=X if with_table else None)
    assert found[0].changes["flipper_length_mm"][0] == 181
    if kind in ("pandas", "polars", "pyarrow"):
        two = {"pandas": X[:2].to_pandas, "polars": X[:2].clone, "pyarrow": X[:2].to_arrow}[kind]()
        with pytest.raises(ValueError, match="one row, not a table of 2 rows"):
            spinney.counterfactual(model, two, "Gentoo", X=X if with_table else None)
