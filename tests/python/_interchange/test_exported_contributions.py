"""Contributions that other libraries compute of exported models are ours: counts and hessians are the true ones."""

import numpy as np
import pytest
import spinney

RNG = np.random.default_rng(3)
N_ROWS = 200
X = RNG.normal(size=(N_ROWS, 4)).astype(np.float32).astype(np.float64)
X[RNG.random(X.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + (np.nan_to_num(X[:, 1]) > 0.8) * 3
TABLE = {f"x{j}": X[:, j] for j in range(4)}
VALUES = SIGNAL + RNG.normal(size=N_ROWS) / 10
CLASSES = np.digitize(SIGNAL, [-0.5, 1.5])
WEIGHTS = RNG.integers(1, 4, N_ROWS).astype(float)
FEW = {"n_estimators": 8, "learning_rate": 0.3}

BY_COUNTS = {
    "tree": lambda: spinney.DecisionTreeRegressor(max_depth=4).fit(TABLE, VALUES),
    "forest": lambda: spinney.RandomForestRegressor(n_estimators=8, random_state=0).fit(TABLE, VALUES),
    "boosting": lambda: spinney.GradientBoostingRegressor(**FEW).fit(TABLE, VALUES),
    "whole weights": lambda: spinney.GradientBoostingRegressor(**FEW).fit(TABLE, VALUES, sample_weight=WEIGHTS),
}
BY_HESSIANS = BY_COUNTS | {
    "two classes": lambda: spinney.GradientBoostingClassifier(**FEW).fit(TABLE, CLASSES > 1),
    "three classes": lambda: spinney.GradientBoostingClassifier(**FEW).fit(TABLE, CLASSES),
    "weights": lambda: spinney.GradientBoostingRegressor(**FEW).fit(TABLE, VALUES, sample_weight=WEIGHTS / 7),
    "counts": lambda: spinney.GradientBoostingRegressor(loss="poisson", **FEW).fit(TABLE, np.round(np.exp(VALUES / 3))),
}


def contributions(model, rows=TABLE):
    """Return Shapley values and base values, of scores: (n_rows, n_scores, n_columns + 1)."""
    found = model.shap_values(rows)
    values, base = np.asarray(found.values), np.asarray(found.base_values, dtype=float)
    values, base = values.reshape(N_ROWS, 4, -1), base.reshape(N_ROWS, 1, -1)
    return np.concatenate([values, base], axis=1).transpose(0, 2, 1)


@pytest.mark.parametrize("name", BY_COUNTS)
def test_lightgbm_explains_the_model_as_we_do(name):
    lightgbm = pytest.importorskip("lightgbm")
    model = BY_COUNTS[name]()
    booster = lightgbm.Booster(model_str=spinney.to_lightgbm(model))
    found = booster.predict(X, pred_contrib=True, num_threads=1)
    np.testing.assert_allclose(found[:, np.newaxis], contributions(model), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", BY_HESSIANS)
def test_xgboost_explains_the_model_as_we_do(name):
    xgboost = pytest.importorskip("xgboost")
    model = BY_HESSIANS[name]()
    booster = xgboost.Booster(model_file=bytearray(spinney.to_xgboost(model).encode()))
    found = booster.predict(xgboost.DMatrix(X, feature_names=[*TABLE]), pred_contribs=True)
    found = found[:, np.newaxis] if found.ndim == 2 else found
    np.testing.assert_allclose(found, contributions(model), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["tree", "forest", "boosting"])
def test_contributions_survive_a_round_trip_through_lightgbm(name):
    model = BY_COUNTS[name]()
    again = spinney.from_lightgbm(spinney.to_lightgbm(model))
    np.testing.assert_allclose(contributions(again), contributions(model), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["tree", "two classes", "three classes", "weights"])
def test_contributions_survive_a_round_trip_through_xgboost(name):
    model = BY_HESSIANS[name]()
    again = spinney.from_xgboost(spinney.to_xgboost(model).encode())
    np.testing.assert_allclose(contributions(again), contributions(model), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["tree", "two classes", "weights"])
def test_contributions_survive_a_round_trip_through_treelite(name):
    pytest.importorskip("treelite")
    model = BY_HESSIANS[name]()
    again = spinney.from_treelite(spinney.to_treelite(model))  # which has no names of columns
    np.testing.assert_allclose(contributions(again, X), contributions(model), rtol=1e-9, atol=1e-9)


def test_lightgbm_has_the_true_counts_of_hessian_weighted_trees():
    lightgbm = pytest.importorskip("lightgbm")
    model = BY_HESSIANS["two classes"]()
    table = lightgbm.Booster(model_str=spinney.to_lightgbm(model)).trees_to_dataframe()
    roots = table[table["node_depth"] == 1]
    assert (roots["count"] == N_ROWS).all()
    leaves = table[table["split_feature"].isna()]
    assert (leaves.groupby("tree_index")["count"].sum() == N_ROWS).all()
    tree = model.boosting_.trees()[0]
    np.testing.assert_allclose(roots["weight"].iloc[0], tree.weight[0], rtol=1e-12)
    assert (table.loc[~table["split_feature"].isna(), "split_gain"] >= 0).all()
    importance = model.feature_importances_
    gained = table.groupby("split_feature")["split_gain"].sum()
    assert gained.idxmax() == f"x{importance.argmax()}"
