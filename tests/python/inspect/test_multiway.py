"""Trees of ID3 and C4.5, by the numbers of Quinlan's golf table."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from spinney.teaching import multiway_tree

GOLF = pd.DataFrame(
    [
        *[("sunny", 75, 70, "yes", "play"), ("sunny", 80, 90, "yes", "stay"), ("sunny", 85, 85, "no", "stay")],
        *[("sunny", 72, 95, "no", "stay"), ("sunny", 69, 70, "no", "play"), ("overcast", 72, 90, "yes", "play")],
        *[("overcast", 83, 78, "no", "play"), ("overcast", 64, 65, "yes", "play"), ("overcast", 81, 75, "no", "play")],
        *[("rain", 71, 80, "yes", "stay"), ("rain", 65, 70, "yes", "stay"), ("rain", 75, 80, "no", "play")],
        *[("rain", 68, 80, "no", "play"), ("rain", 70, 96, "no", "play")],
    ],
    columns=["outlook", "temperature", "humidity", "windy", "class"],
)
X, Y = GOLF.drop(columns="class"), GOLF["class"]


def test_gains_of_golf_are_those_of_the_book():
    tree = multiway_tree(X[["outlook", "windy"]], Y, max_depth=1)
    assert_allclose(tree.gains["outlook"], (0.246, 0.156), atol=0.001)
    assert_allclose(tree.gains["windy"], (0.048, 0.049), atol=0.001)


def test_a_missing_value_lowers_the_gain_and_divides_the_row():
    table = X.copy()
    table.loc[5, "outlook"] = None  # the overcast row of humidity 90
    tree = multiway_tree(table, Y, min_rows=2)
    assert_allclose(tree.gains["outlook"], (0.199, 0.110), atol=0.001)
    assert tree.column == 0
    weights = {tree._condition(code): branch.weights.tolist() for code, branch in tree.branches.items()}
    assert_allclose(weights["outlook = sunny"], (2 + 5 / 13, 3))
    assert_allclose(weights["outlook = overcast"], (3 + 3 / 13, 0))
    assert_allclose(weights["outlook = rain"], (3 + 5 / 13, 2))
    case = pd.DataFrame({"outlook": ["sunny"], "temperature": [70], "humidity": [np.nan], "windy": ["no"]})
    assert_allclose(
        tree.predict_proba(case), [[2.0 / 5.3846 + 3.3846 / 5.3846 * 0.3846 / 3.3846, 3.0 / 5.3846]], atol=1e-4
    )


def test_the_tree_of_golf():
    tree = multiway_tree(X, Y)
    assert str(tree).splitlines() == [
        "all: 9, 5",
        "    outlook = overcast: 4, 0 → play",
        "    outlook = rain: 3, 2",
        "        windy = no: 3, 0 → play",
        "        windy = yes: 0, 2 → stay",
        "    outlook = sunny: 2, 3",
        "        humidity ≤ 77.5: 2, 0 → play",
        "        humidity > 77.5: 0, 3 → stay",
    ]
    assert (tree.n_leaves, tree.depth) == (5, 2)
    assert (tree.predict(X) == Y).all()
    assert_allclose(tree.predict_proba(X).sum(axis=1), 1.0)


def test_the_ratio_penalises_columns_of_many_values():
    day = [f"day {i}" for i in range(14)]
    by_gain = multiway_tree(X.assign(day=day), Y, criterion="gain")
    assert (by_gain.column, len(by_gain.branches)) == (4, 14)
    gain, ratio = by_gain.gains["day"]
    assert_allclose((gain, ratio), (0.940, 0.940 / np.log2(14)), atol=0.001)


def test_unseen_categories_take_all_branches():
    tree = multiway_tree(X[["outlook"]], Y)
    found = tree.predict_proba(pd.DataFrame({"outlook": ["snow", None]}))
    assert_allclose(found, [[9 / 14, 5 / 14]] * 2)


def test_branches_need_their_rows():
    assert multiway_tree(X, Y, min_rows=6).n_leaves < multiway_tree(X, Y, min_rows=1).n_leaves
    assert multiway_tree(X, Y, max_depth=0).n_leaves == 1


@pytest.mark.parametrize(
    ("options", "match"), [({"criterion": "gini"}, "criterion must be"), ({"max_depth": -1}, "max_depth must be")]
)
def test_arguments_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        multiway_tree(X, Y, **options)


def test_another_number_of_columns_is_refused():
    with pytest.raises(ValueError, match="X has 1 columns, and the tree was grown on 4"):
        multiway_tree(X, Y).predict(X[["outlook"]])
