"""Contents of tree pictures: legends, number formats, names, missing values."""

import io
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import spinney
from sklearn.datasets import load_iris
from spinney._data.display import grouped
from spinney.inspect.draw.layout import Rectangle, Text
from spinney.inspect.draw.picture import draw

mpl.use("agg")
import matplotlib.pyplot as plt

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def houses():
    rng = np.random.default_rng(0)
    n = 4000
    codes = [f"{110_000 + 7 * i}" for i in range(300)]
    X = pd.DataFrame(
        {
            "income": rng.gamma(3, 9000, n),
            "zip": rng.choice(codes, n),
            "ocean": rng.choice(["NEAR BAY", "INLAND", "ISLAND"], n),
            "age": rng.integers(1, 52, n).astype(float),
        }
    )
    worth = dict(zip(codes, rng.normal(0, 60_000, len(codes)), strict=True))
    y = 100_000 + 4 * X["income"] + X["zip"].map(worth) + 40_000 * (X["ocean"] != "INLAND") + 900 * X["age"]
    return X, y


def shown(model, **options):
    """Return the texts of a picture, line by line."""
    return [text.text for text in ET.fromstring(spinney.tree_svg(model, **options)).iter(f"{SVG}text")]


# ---- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "least", "written"),
    [
        ("206856", 1000, "206,856"),
        ("-1234.5678", 1000, "−1,234.5678"),
        ("≤ 2008.5", 10_000, "≤ 2008.5"),
        ("≤ 20500.25", 10_000, "≤ 20,500.25"),
        ("0.123456789", 1000, "0.123456789"),
        ("1.2345e-05", 1000, "1.2345e−05"),
        ("sd 1234567", 1000, "sd 1,234,567"),
        ("999", 1000, "999"),
        ("missing", 1000, "missing"),
    ],
)
def test_digits_are_grouped(text, least, written):
    assert grouped(text, least) == written


@pytest.mark.parametrize("n_leaves", [3, 8, 15, 40])
def test_numbers_of_a_picture_have_one_format(houses, n_leaves):
    X, y = houses
    model = spinney.DecisionTreeRegressor(max_leaf_nodes=n_leaves).fit(X.drop(columns="zip"), y)
    words = shown(model)
    assert not [line for line in words if re.search(r"(?<![\d.])\d{5,}", line)]
    assert any("," in line for line in words if "n =" not in line)


# ---- legends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_leaves", [3, 8, 15, 40])
def test_the_legend_names_the_classes(houses, n_leaves):
    X, y = houses
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    picture = draw(spinney.DecisionTreeClassifier(max_leaf_nodes=n_leaves).fit(X, labels))
    assert [shape.words for shape in picture.legend if isinstance(shape, Text)][:3] == ["0", "1", "2"]
    assert len({shape.fill for shape in picture.legend if isinstance(shape, Rectangle)}) == 3


def test_the_legend_of_a_compact_picture_describes_its_leaves(houses):
    X, y = houses
    regression = spinney.DecisionTreeRegressor(max_leaf_nodes=15).fit(X, y)
    assert shown(regression)[0] == "leaf: mean, fraction of the rows"
    classes = spinney.DecisionTreeClassifier(max_leaf_nodes=15).fit(X, y > y.median())
    assert shown(classes)[:3] == ["False", "True", "leaf: class, its probability, fraction of the rows"]
    many = spinney.DecisionTreeClassifier(max_leaf_nodes=40).fit(X, y > y.median())
    assert shown(many)[2] == "leaf, read upwards: class, its probability, fraction of the rows"


def test_leaves_are_vertical_only_if_there_are_many(houses):
    X, y = houses
    for n_leaves, upright in ((15, 0), (24, 0), (25, 25)):
        picture = draw(spinney.DecisionTreeRegressor(max_leaf_nodes=n_leaves).fit(X, y))
        texts = [s for part in picture.nodes for s in part.shapes if getattr(s, "upright", False)]
        assert len(texts) == upright


def test_many_classes_have_no_colour_legend(houses):
    X, y = houses
    labels = pd.qcut(y, 12, labels=False)
    picture = draw(spinney.DecisionTreeClassifier(max_leaf_nodes=15).fit(X, labels))
    assert [shape.words for shape in picture.legend] == ["leaf: class, its probability, fraction of the rows"]


# ---- lists of categories ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["full", "compact"])
def test_lists_of_categories_break_between_names(houses, style):
    X, y = houses
    words = shown(spinney.DecisionTreeRegressor(max_leaf_nodes=12).fit(X, y), style=style)
    assert any(re.fullmatch(r"\(\d+ of 300\)", line) for line in words)
    assert any(line.endswith(", …") for line in words)
    assert not [line for line in words if re.search(r"\S…\S", line)]


# ---- missing values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["full", "compact"])
def test_missing_values_are_shown_for_columns_that_had_any(houses, style):
    X, y = houses
    X = X.assign(age=X["age"].where(X["age"] > 5))
    model = spinney.DecisionTreeRegressor(max_leaf_nodes=12).fit(X[["income", "age"]], X["age"].fillna(60) + y / 8e3)
    pictures = [spinney.tree_svg(model, style=style), spinney.tree_svg(model, style=style, show_missing=["age"])]
    assert pictures[0] == pictures[1]
    assert "missing" in pictures[0]
    assert spinney.tree_svg(model, style=style, show_missing=True) != pictures[0]
    assert not [
        line for line in shown(spinney.DecisionTreeRegressor(max_depth=3).fit(X[["income"]], y)) if "mis" in line
    ]
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    assert spinney.tree_svg(spinney.load(file), style=style) == pictures[0]
    assert spinney.tree_svg(model.pruned(alpha=0.0), style=style) == pictures[0]


def test_missing_values_in_trees_of_forests(houses):
    X, y = houses
    forest = spinney.RandomForestRegressor(2, max_depth=3, random_state=0).fit(X[["income", "age"]], y)
    assert not [line for line in shown(forest.estimators_[0]) if "missing" in line]


def test_missing_values_are_shown_for_all_columns_if_unknown(houses):
    X, y = houses
    model = spinney.DecisionTreeRegressor(max_depth=2).fit(X[["income"]], y)
    del model._had_missing
    assert [line for line in shown(model) if "missing" in line]


# ---- Shapley values --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*looks like an identifier")
def test_the_axis_of_shap_values_names_the_class(houses):
    X, y = houses
    X = X[:200]
    labels = np.where(y[:200] > y.median(), "dear", "cheap")
    boosting = spinney.GradientBoostingClassifier(n_estimators=3).fit(X, labels).shap_values(X)
    assert boosting.plot().get_xlabel() == "contribution to the log-odds of class dear"
    forest = spinney.RandomForestClassifier(5, random_state=0).fit(X, labels).shap_values(X)
    assert forest.plot(output="cheap").get_xlabel() == "contribution to the probability of class cheap"
    assert forest.plot_row(output="dear").get_xlabel().startswith("probability of class dear, from the base value")
    assert forest.plot("bars").get_xlabel() == "mean absolute contribution to the probability of the class"
    three = spinney.GradientBoostingClassifier(n_estimators=3).fit(X, np.arange(200) % 3).shap_values(X)
    assert three.plot(output=2).get_xlabel() == "contribution to the score of class 2"


def test_few_categories_are_named_and_many_are_counted(houses):
    X, y = houses
    X, y = X[:500], y[:500]
    ax = spinney.GradientBoostingRegressor(n_estimators=20).fit(X, y).shap_values(X).plot()
    names = {text.get_text(): text.get_color() for text in ax.figure.findobj(mpl.text.Text)}
    assert len({names[name] for name in ("INLAND", "ISLAND", "NEAR BAY")}) == 3
    assert f"{X['zip'].nunique()} categories" in names
    drawn = {tuple(np.round(c, 3)) for dots in ax.collections for c in dots.get_facecolors()[:, :3]}
    for name in ("INLAND", "ISLAND", "NEAR BAY"):
        assert tuple(np.round(mpl.colors.mpl.colors.to_rgb(names[name]), 3)) in drawn


# ---- dark styles -------------------------------------------------------------------------------------------------


def test_words_beside_the_boxes_are_readable_in_the_dark():
    """All texts are dark on light boxes, or light on the background."""
    tree = spinney.DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True))
    with plt.style.context("dark_background"):
        ax = spinney.plot_tree(tree)
        ax.figure.canvas.draw()
        renderer = ax.figure.canvas.get_renderer()
        boxes = [patch for patch in ax.patches if isinstance(patch, mpl.patches.FancyBboxPatch)]
        for text in ax.texts:
            x, y = text.get_window_extent(renderer).get_points().mean(axis=0)
            under = [box for box in boxes if box.get_window_extent(renderer).contains(x, y)]
            background = sum(mpl.colors.to_rgb(under[-1].get_facecolor())) / 3 if under else 0.0
            assert abs(sum(mpl.colors.to_rgb(text.get_color())) / 3 - background) > 0.25, text.get_text()
        plt.close(ax.figure)


def charts():
    """Yield charts with lines and words on the background, by name."""
    X, y = spinney.datasets.make_diagonal(60, noise=0.1, random_state=0)
    tree = spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(X, y)
    boosted = spinney.GradientBoostingClassifier(n_estimators=5).fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    yield "pruning", lambda: spinney.plot_cp(tree)
    yield "rounds", lambda: spinney.plot_learning_curve(boosted)
    yield "importances", lambda: spinney.plot_importances(tree)
    yield "permutation", lambda: spinney.permutation_importance(tree, X, y, n_repeats=3, random_state=0).plot()
    yield "dependence", lambda: spinney.partial_dependence(tree, X, [0]).plot()
    yield "comparison", lambda: spinney.compare(["tree", "stump"], X, y, cv=2, repeats=1).plot()
    yield "tuning", lambda: spinney.plot_tuning(tree, X, y, {"max_depth": [1, 2]}, cv=2, simplest="first")
    yield "one row", lambda: tree.shap_values(X).plot_row(0)


def luminance(colour):
    return sum(mpl.colors.to_rgb(colour)) / 3


@pytest.mark.parametrize(("name", "chart"), list(charts()), ids=[name for name, _ in charts()])
def test_lines_and_words_of_charts_stand_out_in_the_dark(name, chart):
    with plt.style.context("dark_background"):
        made = chart()
        figure = getattr(made, "figure", made)
        for ax in figure.axes:
            lines = [line.get_color() for line in ax.get_lines()]
            words = [text.get_color() for text in (*ax.texts, ax.title, *ax.get_xticklabels(), *ax.get_yticklabels())]
            for colour in (*lines, *words):
                assert luminance(colour) > 0.3, f"{name}: {colour}"
