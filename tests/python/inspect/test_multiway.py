"""Trees of ID3 and C4.5, by the numbers of Quinlan's golf table."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import spinney
from numpy.testing import assert_allclose
from spinney.inspect.draw.picture import draw
from spinney.teaching import multiway_tree

mpl.use("agg")
import matplotlib.pyplot as plt

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


# ---- pictures ----------------------------------------------------------------------------------------------------


def words(tree, **options):
    return [
        text.text for text in ET.fromstring(spinney.tree_svg(tree, **options)).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_the_picture_has_every_branch_and_node():
    tree = multiway_tree(X, Y)
    picture = draw(tree)
    texts = [text.words for node in picture.nodes for text in node.shapes if hasattr(text, "words")]
    assert len(picture.nodes) == 8
    assert [label.words for label in picture.labels if hasattr(label, "words")] == [
        *["= overcast", "= rain", "= no", "= yes", "= sunny", "≤ 77.5", "> 77.5"]
    ]
    assert [text for text in texts if text in ("outlook", "windy", "humidity")] == ["outlook", "windy", "humidity"]
    assert texts[:3] == ["play", ".64\N{NO-BREAK SPACE} .36", "n = 14 (100%)"]
    assert "n = 4 (29%)" in texts
    legend = [text.words for text in picture.legend if hasattr(text, "words")]
    assert legend == ["play", "stay"]


def test_branches_of_a_picture_do_not_overlap_and_parents_are_centred():
    rng = np.random.default_rng(0)
    table = {
        "town": rng.choice(list("abcdefg"), 300),
        "size": rng.choice(["S", "M", "L"], 300),
        "z": rng.normal(size=300),
    }
    tree = multiway_tree(table, rng.integers(0, 3, 300), max_depth=3)
    picture = draw(tree)
    boxes = sorted((node.box for node in picture.nodes), key=lambda box: (box.y, box.x))
    for one, other in pairwise(boxes):
        assert one.y != other.y or one.x + one.width < other.x
    assert min(box.x for box in boxes) >= 0
    assert max(box.x + box.width for box in boxes) <= picture.width
    middles = [node.box.x + node.box.width / 2 for node in picture.nodes]
    below = [1]
    while below[-1] + size(list(tree.branches.values())[len(below) - 1]) < len(middles):
        below.append(below[-1] + size(list(tree.branches.values())[len(below) - 1]))
    assert middles[0] == pytest.approx((middles[below[0]] + middles[below[-1]]) / 2)


def size(tree):
    return 1 + sum(size(branch) for branch in tree.branches.values())


def test_options_of_the_picture():
    tree = multiway_tree(X, Y)
    assert "… 2 leaves" in words(tree, max_depth=1)
    assert "entropy = 0.940" in words(tree, impurity=True)
    assert "node = 7" in words(tree, node_ids=True)
    assert "9\N{NO-BREAK SPACE} 5" in words(tree, proportion=False)
    assert "> 77.50" in words(tree, decimals=2)
    table = X.copy()
    table.loc[5, "outlook"] = None
    assert "n = 5.38 (38%)" in words(multiway_tree(table, Y, max_depth=1))
    for wrong in ({"style": "compact"}, {"class_names": ["a", "b"]}, {"feature_names": ["a", "b", "c", "d"]}):
        with pytest.raises(ValueError, match="drawn in the full style"):
            spinney.plot_tree(tree, **wrong)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_the_picture_is_readable_in_light_and_dark(style):
    tree = multiway_tree(X, Y)
    with plt.style.context(style):
        ax = spinney.plot_tree(tree)
        paper = sum(mpl.colors.to_rgb(ax.get_facecolor())) / 3
    boxes = [patch for patch in ax.patches if isinstance(patch, mpl.patches.FancyBboxPatch)]
    assert len(ax.texts) == len(words(tree))
    for text in ax.texts:
        x, y = text.get_position()
        under = [box for box in boxes if box.get_bbox().contains(x, y)]
        background = sum(under[-1].get_facecolor()[:3]) / 3 if under else paper
        assert abs(sum(mpl.colors.to_rgb(text.get_color())) / 3 - background) > 0.25, text.get_text()
    plt.close(ax.figure)
