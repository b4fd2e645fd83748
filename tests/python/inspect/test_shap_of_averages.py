"""SHAP values and importances of stacks, votes and calibrated models."""

import numpy as np
import polars as pl
import pytest
import spinney
from spinney._ensemble.weighted_stack import weighted_stack

RNG = np.random.default_rng(4)
X = pl.DataFrame(
    {"x": RNG.normal(size=200), "z": RNG.normal(size=200), "c": np.array(["a", "b", "c"])[np.arange(200) % 3]}
)
VALUES = np.asarray(X["x"]) * 2 + (np.arange(200) % 3) + RNG.normal(size=200) * 0.3
THREE = np.array(["low", "mid", "high"])[np.digitize(VALUES, [0.0, 2.0])]
TWO = np.where(VALUES > 1, "yes", "no")


def fitted(kind, y, **parameters):
    return getattr(spinney, kind)(random_state=0, **parameters).fit(X, y)


def classifiers(y):
    return {
        "tree": fitted("DecisionTreeClassifier", y, max_depth=3),
        "boosting": fitted("GradientBoostingClassifier", y, n_estimators=10),
        "adaboost": fitted("AdaBoostClassifier", y, n_estimators=5),
    }


def test_means_of_trees_are_means_of_their_values():
    stack = spinney.StackingRegressor(["tree", "forest"], "greedy", random_state=0).fit(X, VALUES)
    vote = spinney.VotingClassifier(["tree", "forest"], weights=[1, 3], random_state=0).fit(X, TWO)
    for model, weights in ((stack, stack.final_estimator_.weights_), (vote, [0.25, 0.75])):
        each = [member.shap_values(X) for member in model.estimators_]
        found = model.shap_values(X)
        wanted = sum(w * one.values for w, one in zip(weights, each, strict=True))
        np.testing.assert_allclose(found.values, wanted, atol=1e-12)
        importances = sum(w * m.feature_importances_ for w, m in zip(weights, model.estimators_, strict=True))
        np.testing.assert_allclose(model.feature_importances_, importances, atol=1e-12)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("calibration", [None, 1.4])
def test_contributions_add_up_to_the_probabilities(y, calibration):
    members, classes = classifiers(y), np.unique(y)
    options = {"scores": {}, "temperatures": [2.0, 0.6, 1.0], "calibration": calibration}
    model = weighted_stack(members, [0.3, 0.5, 0.2], X, classes, **options)
    found = model.shap_values(X[:40])
    assert found.output_names == classes.tolist()
    np.testing.assert_allclose(found.predictions, model.predict_proba(X[:40]), atol=1e-12)
    np.testing.assert_allclose(found.values.sum(axis=2), 0, atol=1e-9)  # probabilities add up to 1
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_a_function_of_one_sum_shares_its_rise_in_proportion():
    boosting = fitted("GradientBoostingClassifier", TWO, n_estimators=10)
    model = spinney.VotingClassifier(["boosting"]).fit(X, TWO)
    model.estimators_ = [boosting]
    scores, found = boosting.shap_values(X[:30]), model.shap_values(X[:30]).output("yes")
    start, end = 1 / (1 + np.exp(-scores.base_value)), boosting.predict_proba(X[:30])[:, 1]
    rise = (end - start) / (scores.predictions - scores.base_value)
    assert found.base_value == pytest.approx(start)
    np.testing.assert_allclose(found.values, scores.values * rise[:, np.newaxis], atol=1e-7)


def test_contributions_are_integrals_along_the_line():
    """Against a slow sum of small steps from the base values of the members to their sums."""
    members = {name: model for name, model in classifiers(THREE).items() if name != "adaboost"}
    model = weighted_stack(
        members, [0.4, 0.6], X, np.unique(THREE), scores={}, temperatures=[1.5, 0.8], calibration=1.2
    )
    tree, boosting = (member.shap_values(X[:5]) for member in members.values())

    def predicted(of_tree, of_boosting):
        sizes = np.exp(of_boosting - of_boosting.max(axis=-1, keepdims=True))
        each = [of_tree, sizes / sizes.sum(axis=-1, keepdims=True)]
        tempered = [np.maximum(p, 2.0**-52) ** (1 / t) for p, t in zip(each, (1.5, 0.8), strict=True)]
        each = [p / p.sum(axis=-1, keepdims=True) for p in tempered]
        mean = (0.4 * each[0] + 0.6 * each[1]) ** (1 / 1.2)
        return mean / mean.sum(axis=-1, keepdims=True)

    n_steps, eps = 2000, 1e-5
    wanted = np.zeros_like(tree.values)
    for t in (np.arange(n_steps) + 0.5) / n_steps:
        at = [one.base_value + t * one.values.sum(axis=1) for one in (tree, boosting)]
        for j in range(3):
            ahead, behind = (
                predicted(at[0] + side * tree.values[:, j], at[1] + side * boosting.values[:, j])
                for side in (eps, -eps)
            )
            wanted[:, j] += (ahead - behind) / (2 * eps) / n_steps
    np.testing.assert_allclose(model.shap_values(X[:5]).values, wanted, atol=2e-3)


def test_what_has_no_values_has_no_method():
    assert not hasattr(spinney.VotingClassifier(["tree", "knn"]).fit(X[["x"]], TWO), "shap_values")
    assert not hasattr(spinney.VotingClassifier(["tree"], voting="hard").fit(X, TWO), "shap_values")
    stack = spinney.StackingClassifier(["tree", "forest"], "linear", cv=2, random_state=0).fit(X, TWO)
    assert not hasattr(stack, "shap_values")
    with pytest.raises(AttributeError, match="final_estimator='greedy'"):
        stack.feature_importances_  # noqa: B018
    median = spinney.VotingRegressor([("a", spinney.AdaBoostRegressor(n_estimators=3))]).fit(X[["x", "z"]], VALUES)
    with pytest.raises(TypeError, match="median"):
        median.shap_values(X[["x", "z"]])


def test_adaboost_values_come_with_its_probabilities():
    for y in (TWO, THREE):
        model = fitted("AdaBoostClassifier", y, n_estimators=5)
        explained = model.shap_values(X)
        wanted = model.predict_proba(X)
        np.testing.assert_allclose(explained.response[:, 1], wanted[:, 1] if y is TWO else wanted, atol=1e-12)
