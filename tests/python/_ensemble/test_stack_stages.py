"""Stages of stacks, and their picture."""

import pickle

import matplotlib
import numpy as np
import pytest
import spinney
from oracle.saved import through_bytes
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LogisticRegression

matplotlib.use("agg")
MEMBERS = ["tree", "linear", ("near", spinney.KNeighborsClassifier(3))]


def darts(n=200, seed=0):
    return spinney.datasets.make_darts(n, random_state=seed)


@pytest.mark.parametrize("final", [None, "greedy", LogisticRegression()])
def test_a_stage_is_the_stack_of_the_first_members(final):
    """The folds are drawn before the members are fitted, and none of the members draws at random."""
    X, y = darts()
    new = darts(300, seed=1)[0]
    weight = np.where(np.arange(len(y)) % 5, 1.0, 3.0)
    staged = list(spinney.StackingClassifier(MEMBERS, final, random_state=0).fit(X, y, weight).staged_predict(new))
    assert len(staged) == 3
    for n, predicted in enumerate(staged, start=1):
        alone = spinney.StackingClassifier(MEMBERS[:n], final, random_state=0).fit(X, y, weight)
        assert (predicted == alone.predict(new)).all()


def test_stages_of_a_regression():
    X, y = make_friedman1(120, random_state=0)
    model = spinney.StackingRegressor(["linear", "tree"], random_state=0).fit(X, y)
    first, last = model.staged_predict(X)
    np.testing.assert_array_equal(first, spinney.StackingRegressor(["linear"], random_state=0).fit(X, y).predict(X))
    np.testing.assert_array_equal(last, model.predict(X))
    assert len(list(pickle.loads(pickle.dumps(model)).staged_predict(X))) == 2


def test_a_stack_without_stages_reports_why():
    X, y = darts()
    passing = spinney.StackingClassifier(["tree", "linear"], passthrough=True, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="but passthrough=True adds the columns of the table"):
        passing.staged_predict(X)
    model = spinney.StackingClassifier(["tree", "linear"], random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="out-of-fold predictions, which model files do not hold"):
        through_bytes(model).staged_predict(X)


def test_the_errors_of_stages_are_drawn():
    X, y = darts()
    new, label = darts(300, seed=1)
    model = spinney.StackingClassifier(MEMBERS, random_state=0).fit(X, y)
    ax = spinney.plot_errors(model, new, label, references={"chance": 0.75})
    expected = [np.mean(predicted != label) for predicted in model.staged_predict(new)]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), expected)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["tree", "linear", "near"]
    assert "members" in ax.get_xlabel()
    matplotlib.pyplot.close(ax.figure)
