"""Members of ensembles, and models of comparisons, by name."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
import spinney
from spinney._names import FITTED_BY_COMMAND

X, Y = spinney.datasets.make_diagonal(120, random_state=0)
BY_NAME = {
    "tree": spinney.DecisionTreeClassifier(),
    "stump": spinney.DecisionTreeClassifier(max_depth=1),
    "linear": spinney.LinearClassifier(),
    "logistic": spinney.LinearClassifier(),
    "knn": spinney.KNeighborsClassifier(scale="standard"),
    "perceptron": spinney.Perceptron(scale="standard"),
}


def through_bytes(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return spinney.load(file)


@pytest.mark.parametrize("ensemble", [spinney.AdaBoostClassifier, spinney.BaggingClassifier])
@pytest.mark.parametrize(("name", "member"), BY_NAME.items())
def test_a_name_stands_for_a_member(ensemble, name, member):
    named = ensemble(name, n_estimators=4, random_state=0).fit(X, Y)
    alike = ensemble(member, n_estimators=4, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(named.predict_proba(X), alike.predict_proba(X))
    again = through_bytes(named)
    assert again.estimator == name
    np.testing.assert_array_equal(again.predict_proba(X), named.predict_proba(X))


@pytest.mark.parametrize("ensemble", [spinney.AdaBoostRegressor, spinney.BaggingRegressor])
def test_stumps_as_members_of_a_regression(ensemble):
    target = X[:, 0] + X[:, 1] ** 2
    named = ensemble("stump", n_estimators=4, random_state=0).fit(X, target)
    assert {member.get_depth() for member in named.estimators_} == {1}


@pytest.mark.parametrize("name", ["k-NN", "KNN", "extra_trees", "Extra-Trees", "linear svm", "linear_svm"])
def test_capitals_and_hyphens_make_no_difference(name):
    assert len(spinney.BaggingClassifier(name, 2, random_state=0).fit(X, Y).estimators_) == 2


@pytest.mark.parametrize("name", ["stump", "logistic"])
def test_the_same_names_everywhere(name):
    spinney.StackingClassifier([name, "tree"], cv=2, random_state=0).fit(X, Y)
    spinney.VotingClassifier([name, "tree"], random_state=0).fit(X, Y)
    assert name in spinney.compare([name], X, Y, cv=2, repeats=1).names
    assert name in [entry.name for entry in spinney.study(X, Y, models=[name, "tree"], repeats=1).leaderboard]


@pytest.mark.parametrize(
    "fit",
    [
        lambda: spinney.AdaBoostClassifier("lojistic").fit(X, Y),
        lambda: spinney.BaggingClassifier("lojistic").fit(X, Y),
        lambda: spinney.StackingClassifier(["lojistic"]).fit(X, Y),
        lambda: spinney.VotingClassifier(["lojistic"]).fit(X, Y),
        lambda: spinney.compare(["lojistic"], X, Y),
    ],
)
def test_an_unknown_name_is_refused_with_the_list(fit):
    names = ", ".join(FITTED_BY_COMMAND)
    with pytest.raises(ValueError, match=rf"no model called 'lojistic'. Did you mean 'logistic'\? Names are {names}."):
        fit()


@pytest.mark.parametrize("name", ["perceptron", "logistic"])
def test_classifiers_are_refused_for_values(name):
    for ensemble in (spinney.AdaBoostRegressor, spinney.BaggingRegressor):
        with pytest.raises(ValueError, match=f"'{name}' is not available as a regressor"):
            ensemble(name).fit(X, X[:, 0])


def test_the_words_of_ensembles_in_a_comparison():
    assert "bagging" in spinney.compare(["bagging", "tree"], X, Y, repeats=1, cv=3).names


@pytest.mark.parametrize("models", ["tree", ["tree"]])
def test_pictures_take_estimators(models):
    with pytest.raises(TypeError, match=r"tree is not an estimator\. Pass one, such as"):
        spinney.plot_regions(models, X, Y)


def test_the_names_are_listed_in_the_guide():
    guide = Path(__file__).parents[3] / "docs" / "guide" / "stacking.rst"
    (listed,) = re.findall(r"The names are the same .*?: (.*?)\.\n", guide.read_text(), re.DOTALL)
    words = re.sub(r"\(.*?\)", "", " ".join(listed.split())).replace(" and ", ", ")
    assert {word.strip() for word in words.split(",")} == set(FITTED_BY_COMMAND)
