"""`spinney.TreeExplainer` beside `shap.TreeExplainer`, and on all plots of shap."""

from textwrap import dedent

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
import spinney
from processes import run
from sklearn.datasets import load_diabetes, load_iris

DIABETES = load_diabetes(return_X_y=True, as_frame=True)
IRIS = load_iris(return_X_y=True)


def peers():
    regression, classes = DIABETES, IRIS
    return {
        "tree": (sklearn.tree.DecisionTreeRegressor(max_depth=4, random_state=0), regression),
        "forest": (sklearn.ensemble.RandomForestClassifier(5, max_depth=3, random_state=0), classes),
        "boosting": (sklearn.ensemble.GradientBoostingRegressor(n_estimators=8, random_state=0), regression),
    }


@pytest.mark.parametrize("kind", ["tree", "forest", "boosting"])
@pytest.mark.parametrize("background", [False, True])
def test_values_are_those_of_shap(kind, background):
    shap = pytest.importorskip("shap")
    model, (X, y) = peers()[kind]
    model.fit(X, y)
    data, rows = (X[:30] if background else None), X[40:60]
    theirs = shap.TreeExplainer(model, data)
    ours = spinney.TreeExplainer(spinney.from_sklearn(model), data)
    np.testing.assert_allclose(ours.expected_value, theirs.expected_value, rtol=1e-6)
    np.testing.assert_allclose(ours.shap_values(rows), theirs.shap_values(rows), rtol=1e-5, atol=1e-5)
    mine, other = ours(rows), theirs(rows)
    assert mine.values.shape == other.values.shape
    np.testing.assert_allclose(mine.base_values, other.base_values, rtol=1e-6)
    np.testing.assert_array_equal(mine.data, other.data)
    if kind == "tree":
        assert mine.feature_names == other.feature_names
    if not background:
        pairs = theirs.shap_interaction_values(rows)
        np.testing.assert_allclose(ours.shap_interaction_values(rows), pairs, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours(rows, interactions=True).values, pairs, rtol=1e-4, atol=1e-4)


def plots(shap, explainer, X):
    """Every plot of shap that takes values of a table."""
    explained, values, pairs = explainer(X), explainer.shap_values(X), explainer.shap_interaction_values(X[:20])
    base, names, quiet = explainer.expected_value, list(X.columns), {"show": False}
    draw = shap.plots
    return {
        "beeswarm": lambda: draw.beeswarm(explained, **quiet),
        "bar": lambda: draw.bar(explained, **quiet),
        "waterfall": lambda: draw.waterfall(explained[0], **quiet),
        "scatter": lambda: draw.scatter(explained[:, "bmi"], color=explained, **quiet),
        "heatmap": lambda: draw.heatmap(explained, **quiet),
        "violin": lambda: draw.violin(explained, **quiet),
        "decision": lambda: draw.decision(base, values, X, **quiet),
        "decision of pairs": lambda: draw.decision(base, pairs, X[:20], **quiet),
        "force": lambda: draw.force(base, values[0], X.iloc[0], matplotlib=True, **quiet),
        "force of a row": lambda: draw.force(explained[0], matplotlib=True, **quiet),
        "force of all rows": lambda: draw.force(base, values, X),
        "summary": lambda: shap.summary_plot(values, X, **quiet),
        "summary of pairs": lambda: shap.summary_plot(pairs, X[:20], **quiet),
        "dependence": lambda: shap.dependence_plot("bmi", values, X, **quiet),
        "dependence of a pair": lambda: shap.dependence_plot(("bmi", "s5"), pairs, X[:20], **quiet),
        "embedding": lambda: draw.embedding("bmi", values, feature_names=names, **quiet),
        "group difference": lambda: draw.group_difference(values, (X["sex"] > 0).to_numpy(), names, **quiet),
        "monitoring": lambda: draw.monitoring(0, values, X, **quiet),
        "partial dependence": lambda: draw.partial_dependence("bmi", explainer.model.predict, X, ice=False, **quiet),
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_plot_of_shap_takes_the_values():
    shap = pytest.importorskip("shap")
    X, y = DIABETES
    model = spinney.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    for draw in plots(shap, spinney.TreeExplainer(model), X[:200]).values():
        assert draw() is not None or plt.get_fignums()
        plt.close("all")


def test_categories_have_their_names_beside_their_codes():
    pytest.importorskip("shap")
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    explained = spinney.TreeExplainer(spinney.RandomForestClassifier(3, random_state=0).fit(X, y))(X[:5])
    assert explained.values.shape == (5, 7, 3)
    assert explained.output_names == ["Adelie", "Chinstrap", "Gentoo"]
    assert explained.display_data[0, 0] == X.iloc[0, 0]


def test_values_need_no_shap():
    code = """
        import sys; sys.modules["shap"] = None
        import spinney
        model = spinney.DecisionTreeRegressor().fit([[1.0], [2.0]], [1.0, 3.0])
        explainer = spinney.TreeExplainer(model)
        print(explainer.shap_values([[1.0]]), explainer.expected_value)
        try:
            explainer([[1.0]])
        except ImportError as error:
            print(error)
    """
    values, words = run(dedent(code)).stdout.splitlines()
    assert values == "[[-1.]] [2.]"
    assert "pip install shap" in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model_output": "probability"}, "the response of model.shap_values"),
        ({"feature_perturbation": "interventional"}, "Pass them as data"),
        ({"feature_perturbation": "other"}, "must be 'auto'"),
        ({"approximate": True}, "exact and fast"),
    ],
)
def test_what_is_not_supported_is_refused(options, words):
    model = spinney.DecisionTreeRegressor().fit(*DIABETES)
    with pytest.raises(ValueError, match=words):
        spinney.TreeExplainer(model, **options)
    explainer = spinney.TreeExplainer(model)
    for given in ({"y": [1]}, {"tree_limit": 3}, {"approximate": True}):
        with pytest.raises(ValueError, match="Leave it out"):
            explainer.shap_values(DIABETES[0], **given)
    with pytest.raises(TypeError, match="LinearSVC has no shap_values"):
        spinney.TreeExplainer(spinney.LinearSVC())


@pytest.mark.parametrize(
    "model",
    [
        spinney.VotingRegressor(["tree", "forest"]),
        spinney.StackingRegressor(["tree", "forest"], "greedy", cv=3),
        spinney.FunctionalBoostingRegressor(n_estimators=3),
    ],
)
def test_models_that_do_not_consist_of_trees_are_refused(model):
    X, y = np.asarray(DIABETES[0])[:100], np.asarray(DIABETES[1])[:100]
    with pytest.raises(TypeError, match=rf"does not support {type(model).__name__}\. Pass a tree, a forest, gradient"):
        spinney.TreeExplainer(model.fit(X, y))
    assert model.shap_values(X[:2]).values.shape == (2, X.shape[1])
