"""Models of spinney in shap's plots, dtreeviz, MLflow, and scikit-learn's inspection, selection and AdaBoost."""

import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import spinney
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor
from sklearn.feature_selection import RFE, RFECV
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

MODELS = {
    "tree": spinney.DecisionTreeClassifier(max_depth=3),
    "forest": spinney.RandomForestClassifier(3, random_state=0),
    "boosting": spinney.GradientBoostingClassifier(n_estimators=3),
}


def recipe(tool):
    """Return the names that the recipe for a tool in the documentation sets."""
    page = (Path(__file__).parents[2] / "docs/coming_from/index.rst").read_text(encoding="utf-8")
    code = re.search(rf"\n( +import {tool}\n.*?)\n\n\*\*", page, re.DOTALL)
    names = {}
    exec(dedent(code[1]), names)
    return names


@pytest.fixture(scope="module")
def penguins():
    X, y = spinney.datasets.load_penguins()
    X = X.assign(number=np.arange(len(X)) % 7)
    whole = X.notna().all(axis=1)
    return X[whole], np.asarray(y)[whole]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_scikit_learn_inspects_tables_of_words_and_numbers(penguins, name):
    pytest.importorskip("matplotlib").use("Agg")
    X, y = penguins
    model = MODELS[name].fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=1, random_state=0)
    assert found.importances_mean.shape == (8,)
    display = PartialDependenceDisplay.from_estimator(
        model, X, ["bill_length_mm", "island"], categorical_features=["island"], target=y[0], grid_resolution=4
    )
    assert display.axes_.size == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_scikit_learn_selects_columns(penguins, name):
    X, y = penguins
    assert RFE(MODELS[name], n_features_to_select=3, step=3).fit(X, y).support_.sum() == 3
    numbers = X.select_dtypes("number")  # RFECV itself takes nothing else
    assert RFECV(MODELS[name], cv=3, step=3).fit(numbers, y).predict(numbers).shape == y.shape


def test_scikit_learns_adaboost_boosts_our_trees(penguins):
    X, y = penguins
    model = AdaBoostClassifier(spinney.DecisionTreeClassifier(max_depth=2), n_estimators=3).fit(X, y)
    assert model.score(X, y) > 0.9
    values = AdaBoostRegressor(spinney.DecisionTreeRegressor(max_depth=3), n_estimators=3).fit(X, X["body_mass_g"])
    assert values.score(X, X["body_mass_g"]) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_plot_of_shap_runs_on_an_explanation():
    shap = pytest.importorskip("shap")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = spinney.datasets.load_penguins()
    weight = X["body_mass_g"].fillna(4000)
    boosted = spinney.GradientBoostingRegressor(n_estimators=3).fit(X, weight).shap_values(X[:40]).to_explanation()
    forest = spinney.RandomForestClassifier(3, random_state=0).fit(X, y).shap_values(X[:40]).to_explanation()
    for explanation in (boosted, *(forest[..., k] for k in range(3))):
        for plot in (shap.plots.beeswarm, shap.plots.bar, shap.plots.violin, shap.plots.heatmap):
            plot(explanation, show=False)
        shap.plots.waterfall(explanation[0], show=False)
        shap.plots.scatter(explanation[:, 0], color=explanation, show=False)
        shap.plots.scatter(explanation[:, 1], show=False)
        shap.plots.force(explanation[0], matplotlib=True, show=False)
        names, rows = explanation.feature_names, explanation.display_data
        shap.plots.decision(explanation.base_values[0], explanation.values, rows, feature_names=names, show=False)
        matplotlib.pyplot.close("all")
    with pytest.raises(Exception, match="not yet supported by TreeExplainer"):  # it knows a list of libraries alone
        shap.TreeExplainer(MODELS["tree"].fit(X, y))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_documented_adapter_shows_a_tree_to_dtreeviz():
    pytest.importorskip("dtreeviz")
    pytest.importorskip("matplotlib").use("Agg")
    found = recipe("dtreeviz")
    model, rows, drawing = found["model"], found["iris"].data, found["drawing"]
    leaves = {leaf.id: leaf.nsamples() for leaf in drawing.shadow_tree.leaves}
    assert leaves == dict(zip(*np.unique(model.apply(rows), return_counts=True), strict=True))
    for row in rows[::30]:
        assert drawing.shadow_tree.predict(row) == model.predict([row])[0]
        assert drawing.explain_prediction_path(row)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_records_the_documented_pipeline(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    try:
        model = recipe("mlflow")["model"]
    finally:
        mlflow.sklearn.autolog(disable=True)
    recorded = mlflow.last_active_run().data
    X, y = spinney.datasets.load_penguins()
    assert recorded.metrics["training_accuracy_score"] == model.score(X, y)
    assert recorded.params["randomforestclassifier__n_estimators"] == "20"
