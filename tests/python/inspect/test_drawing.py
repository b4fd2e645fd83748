"""Tree drawings: no overlap, no clipping, escaped names, lazy imports; other plots of models."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.tree
import spinney
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from spinney.inspect.draw.axes import CLASS_COLOURS, class_colour, ink_on, tint
from spinney.inspect.draw.layout import Rectangle, Text, text_width
from spinney.inspect.draw.look import Look
from spinney.inspect.draw.picture import draw
from spinney.inspect.draw.plane import regions
from spinney.inspect.text.reader import TreeReader

mpl.use("agg")
import matplotlib.pyplot as plt

PACKAGE_PARENT = str(Path(spinney.__file__).parent.parent)
SLOW = pytest.mark.slow
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def penguins():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    return X, y


@pytest.fixture(scope="module")
def model(penguins):
    return spinney.DecisionTreeClassifier(max_depth=3).fit(*penguins)


def random_tree(n_leaves, seed=0, n_classes=3):
    """Return an unbalanced tree, fitted on noise with long and short names."""
    rng = np.random.default_rng(seed)
    n = 12 * n_leaves + 20
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "income_in_thousands", "bill_length_mm", "z"])
    X["town"] = rng.choice(["Ely", "Rye", "Stow-on-the-Wold", "Wem"], size=n)
    X.loc[rng.random(n) < 0.1, "town"] = None
    return spinney.DecisionTreeClassifier(max_leaf_nodes=n_leaves).fit(X, rng.integers(0, n_classes, size=n))


# ---- layout -----------------------------------------------------------------------------------------------------


def edges(box):
    return box.x, box.y, box.x + box.width, box.y + box.height


def overlap(first, second, slack=0.5):
    a, b = edges(first), edges(second)
    return a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack


def text_box(text):
    width, height = text_width(text.words, text.size, bold=text.bold), text.size
    width, height = (height, width) if text.upright else (width, height)
    return Rectangle(text.x - width / 2, text.y - height / 2, width, height, "")


def solids(picture):
    """Return the rectangles that may not overlap: boxes, the names below them, and the labels of the branches."""
    found = [part.box for part in picture.nodes]
    for part in picture.nodes:
        inside = edges(part.box)
        found += [b for s in part.shapes if isinstance(s, Text) and (b := text_box(s)).y >= inside[3]]
    found += [text_box(shape) for shape in picture.labels if isinstance(shape, Text)]
    return found + [text_box(shape) if isinstance(shape, Text) else shape for shape in picture.legend]


@pytest.mark.parametrize("style", ["full", "compact"])
@pytest.mark.parametrize("n_leaves", [2, 3, 5, 8, 13, 30, 60, *(pytest.param(n, marks=SLOW) for n in (120, 200))])
def test_nothing_overlaps(n_leaves, style):
    for seed in range(3 if n_leaves < 100 else 1):
        picture = draw(random_tree(n_leaves, seed), style=style)
        assert len(picture.nodes) == 2 * n_leaves - 1
        found = solids(picture)
        assert [pair for pair in combinations(found, 2) if overlap(*pair)] == []
        for box in found:
            left, top, right, bottom = edges(box)
            assert left >= 0
            assert top >= 0
            assert right <= picture.width
            assert bottom <= picture.height


@pytest.mark.parametrize("style", ["full", "compact"])
def test_no_line_runs_through_a_box(style):
    picture = draw(random_tree(40, 5), style=style)
    for line in picture.lines:
        for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
            thin = Rectangle(min(x1, x2), min(y1, y2), abs(x1 - x2), abs(y1 - y2), "")
            assert not [part for part in picture.nodes if overlap(thin, part.box)]


def test_text_stays_in_its_box():
    picture = draw(random_tree(12, 1), style="full")
    for part in picture.nodes:
        left, _, right, bottom = edges(part.box)
        for shape in part.shapes:
            box = edges(text_box(shape) if isinstance(shape, Text) else shape)
            if box[1] < bottom:
                assert left <= box[0]
                assert box[2] <= right
                assert box[3] <= bottom


def test_leaves_are_in_one_row_and_parents_are_centred():
    model = random_tree(20, 2)
    picture = draw(model, style="full")
    leaves = {part.box.y for part in picture.nodes if model.tree_.is_leaf[part.node]}
    assert len(leaves) == 1
    middle = {part.node: part.box.x + part.box.width / 2 for part in picture.nodes}
    for node in np.flatnonzero(~model.tree_.is_leaf):
        children = middle[node + 1], middle[int(model.tree_.children_right[node])]
        assert children[0] < children[1]
        assert middle[node] == pytest.approx(sum(children) / 2)


def test_large_trees_stay_narrow():
    widths = [draw(random_tree(60, seed=seed), style="auto").width for seed in range(8)]
    assert np.mean(widths) < 60 * 36


def test_measured_texts_are_as_wide_as_drawn_ones():
    figure = plt.figure()
    renderer = figure.canvas.get_renderer()
    for words in ("flipper_length_mm", "≤ 206.5 or missing", "n = 1,234 (56%)", "MWQ@%", "Grüße, 東京"):
        for weight in ("normal", "bold"):
            drawn = figure.text(0, 0, words, fontsize=10, fontweight=weight, parse_math=False)
            if "東" not in words:
                width = drawn.get_window_extent(renderer).width * 72 / figure.dpi
                assert text_width(words, 10, bold=weight == "bold") == pytest.approx(width, rel=0.08)
    assert text_width("東京", 10) >= 20


# ---- what is drawn ----------------------------------------------------------------------------------------------


def words_of(picture):
    found = [s.words for part in picture.nodes for s in part.shapes if isinstance(s, Text)]
    return [*found, *(shape.words for shape in picture.labels if isinstance(shape, Text))]


def test_texts_of_boxes_and_branches(model):
    words = words_of(draw(model))
    assert {"Adelie", "Chinstrap", "Gentoo", "n = 344 (100%)", "flipper_length_mm", "≤ 206.5", "> 206.5"} <= set(words)
    assert "or missing" in words
    assert "or missing" not in words_of(draw(model, show_missing=False))


@pytest.mark.parametrize("style", ["full", "compact"])
@pytest.mark.parametrize("depth", [0, 1, 2, 4])
def test_collapsed_branches_are_counted(depth, style):
    model = random_tree(30, 4)
    picture = draw(model, max_depth=depth, style=style)
    tree = model.tree_
    assert {part.node for part in picture.nodes} == set(np.flatnonzero(tree.depth <= depth))
    hidden = [w.rpartition("… ")[2].split()[0] for w in words_of(picture) if "…" in w and "lea" in w]
    shown_leaves = int((tree.is_leaf & (tree.depth <= depth)).sum())
    assert sum(map(int, hidden)) + shown_leaves == 30
    assert sum(part.box.dashed for part in picture.nodes) == len(hidden)


def test_regression_and_several_outputs_are_drawn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    for target in (y, np.column_stack([y, -y])):
        model = spinney.DecisionTreeRegressor(max_depth=3).fit(X, target)
        assert spinney.tree_svg(model).startswith("<svg")
    model = spinney.DecisionTreeClassifier().fit(X, (y > 0)[:, None] * [1, 2])
    assert spinney.tree_svg(model).startswith("<svg")


def test_a_single_leaf_is_drawn():
    model = spinney.DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    for style in ("full", "compact"):
        assert len(draw(model, style=style).nodes) == 1


@pytest.mark.parametrize("draws", [spinney.tree_svg, spinney.plot_tree])
def test_unknown_styles_and_depths_are_rejected(draws, model):
    with pytest.raises(ValueError, match="style must be"):
        draws(model, style="tiny")
    with pytest.raises(ValueError, match="max_depth must be"):
        draws(model, max_depth=-1)


@pytest.mark.parametrize("n_colours", [8, 20])
def test_text_is_readable_on_every_colour(n_colours):
    for code in range(n_colours):
        for strength in (0.0, 0.5, 1.0):
            fill = tint(class_colour(code), strength)
            assert contrast(fill, ink_on(fill)) > 4.5


def contrast(first, second):
    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted([luminance(first), luminance(second)])
    return (light + 0.05) / (dark + 0.05)


def test_classes_have_distinct_colours():
    assert len({class_colour(code) for code in range(16)}) == 16
    assert len(set(CLASS_COLOURS)) == 8


# ---- SVG --------------------------------------------------------------------------------------------------------

ODD = ['<b>&"x"', "a\nb", "$\\alpha_1$", "naïve 東京", "n" * 300, "it's", "]]>", "\x0bbell\x07"]


def odd_model(names=ODD):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=200) for name in names})
    X["<i>"] = pd.Categorical(rng.choice(['<u>&"', "</svg>"], size=200))
    y = np.array(["</text><script>alert(1)</script>", 'b"&', "c\nd"])[rng.integers(0, 3, size=200)]
    return spinney.DecisionTreeClassifier(max_leaf_nodes=12).fit(X, y)


@pytest.mark.parametrize("style", ["full", "compact"])
def test_special_names_are_escaped(style):
    svg = spinney.tree_svg(odd_model(), style=style)
    root = ET.fromstring(svg)
    assert {element.tag for element in root.iter()} <= {
        SVG + t for t in ("svg", "g", "rect", "polyline", "text", "title")
    }
    assert "<script" not in svg
    assert max(len("".join(text.itertext())) for text in root.iter(f"{SVG}text")) < 60


def test_special_names_can_be_plotted():
    model = odd_model([name for name in ODD if "東" not in name])  # not in matplotlib's own font
    for ax in (spinney.plot_tree(model), spinney.plot_importances(model)):
        ax.figure.canvas.draw()
        assert all(text.get_window_extent().width > 0 for text in ax.texts if text.get_text().strip())
        assert ax.texts or ax.get_yticklabels()


def test_svg_has_every_node_with_a_title(model):
    root = ET.fromstring(spinney.tree_svg(model))
    titles = [group.find(f"{SVG}title").text for group in root.iter(f"{SVG}g")]
    assert len(titles) == model.tree_.node_count
    assert titles[0].startswith("344 rows (Adelie 44%")


def test_a_fitted_tree_has_an_html_representation(model):
    html = model._repr_html_()
    assert "<svg" in html
    assert "DecisionTreeClassifier(max_depth=3)" in html
    bundle = model._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == "DecisionTreeClassifier(max_depth=3)"
    assert "<svg" in bundle["text/html"]


def test_large_trees_are_truncated_in_a_notebook():
    html = random_tree(150)._repr_html_()
    assert html.count("<g>") < 60
    assert "leaves" in html


def test_the_diagram_of_scikit_learn_is_available():
    unfitted = spinney.DecisionTreeClassifier(max_depth=3)
    assert "sk-top-container" in unfitted._repr_html_()
    fitted = make_pipeline(StandardScaler(), unfitted).fit([[0.0], [1.0]], [0, 1])
    html = fitted._repr_html_()
    assert "sk-top-container" in html
    assert "DecisionTreeClassifier" in html


def test_text_display_is_respected(model):
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


# ---- matplotlib -------------------------------------------------------------------------------------------------


def test_plot_functions_return_the_axes(model, penguins):
    X, y = penguins
    assert isinstance(spinney.plot_tree(model), plt.Axes)
    figure, ax = plt.subplots()
    assert spinney.plot_tree(model, ax=ax) is ax
    assert spinney.plot_impurities(ax=ax) is ax
    assert spinney.plot_importances(model, ax=ax) is ax
    assert spinney.plot_partition(model, X, y, ax=ax) is ax
    assert isinstance(spinney.plot_pruning(model, model), plt.Figure)
    assert figure.axes[0] is ax


def test_the_figure_is_as_large_as_the_tree(model):
    picture = draw(model)
    width, height = spinney.plot_tree(model).figure.get_size_inches() * 72
    assert (width, height) == pytest.approx((picture.width, picture.height))


def test_the_font_shrinks_with_the_axes(model):
    sizes = []
    for inches in (4, 8):
        _, ax = plt.subplots(figsize=(inches, inches))
        spinney.plot_tree(model, ax=ax)
        sizes.append(ax.texts[0].get_fontsize())
    assert sizes[1] == pytest.approx(2 * sizes[0])


def test_drawn_text_does_not_overlap(model):
    ax = spinney.plot_tree(model)
    renderer = ax.figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in ax.texts]
    frame = ax.figure.bbox
    assert all(frame.x0 <= b.x0 and b.x1 <= frame.x1 and frame.y0 <= b.y0 and b.y1 <= frame.y1 for b in boxes)
    shrunk = [b.shrunk(0.98, 0.7) for b in boxes]
    assert not [1 for a, b in combinations(shrunk, 2) if a.overlaps(b)]


def test_two_trees_have_one_scale_and_style():
    large, small = random_tree(40), random_tree(4)
    figure = spinney.plot_pruning(large, small)
    assert [ax.get_title() for ax in figure.axes] == ["unpruned: 40 leaves", "pruned: 4 leaves"]
    sizes = [{round(t.get_fontsize(), 3) for t in ax.texts} for ax in figure.axes]
    assert sizes[0] == sizes[1] == {9.0}


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_regions_partition_the_plane_and_agree_with_predict(penguins, depth):
    X, y = penguins
    X = X[["bill_length_mm", "flipper_length_mm"]]
    model = spinney.DecisionTreeClassifier(max_depth=depth).fit(X, y)
    found = regions(TreeReader(model), (0, 1), [0.0, 0.0])
    points = np.random.default_rng(0).uniform([30, 170], [60, 235], size=(500, 2))
    leaves = model.apply(pd.DataFrame(points, columns=X.columns))
    for (px, py), leaf in zip(points, leaves, strict=True):
        assert [r.node for r in found if r.x[0] < px <= r.x[1] and r.y[0] < py <= r.y[1]] == [leaf]


def test_other_columns_are_fixed_at_a_typical_value(penguins):
    X, y = penguins
    model = spinney.DecisionTreeClassifier(max_depth=5).fit(X, y)
    ax = spinney.plot_partition(model, X, y, features=("flipper_length_mm", "bill_length_mm"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("flipper_length_mm", "bill_length_mm")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Adelie", "Chinstrap", "Gentoo"]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (("island", "year"), "two numeric columns"),
        (("year",), "two names or positions"),
        ("year", "two names or positions"),
        (("year", "yeer"), "does not have: 'yeer'. Did you mean 'year'"),
        ((0, 99), "positions from 0 to"),
    ],
)
def test_invalid_columns_of_the_plane_are_rejected(model, penguins, features, message):
    with pytest.raises(ValueError, match=message):
        spinney.plot_partition(model, *penguins, features=features)


def test_the_partition_of_a_regression_tree_has_a_colour_bar():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] * 3
    ax = spinney.plot_partition(spinney.DecisionTreeRegressor(max_depth=3).fit(X, y), X, y)
    assert len(ax.figure.axes) == 2
    assert len(ax.patches) == 8


def test_impurity_curves_agree_with_their_formulas():
    ax = spinney.plot_impurities(scaled=False)
    curves = {line.get_label(): line.get_ydata() for line in ax.lines}
    p = ax.lines[0].get_xdata()
    np.testing.assert_allclose(curves["Gini"], 2 * p * (1 - p))
    np.testing.assert_allclose(curves["misclassification"], np.minimum(p, 1 - p))
    assert curves["entropy"][[0, 100, 200]] == pytest.approx([0, 1, 0], abs=1e-9)
    assert spinney.plot_impurities().lines[0].get_ydata().max() == pytest.approx(0.5)


def test_importances_are_sorted_bars(model):
    ax = spinney.plot_importances(model, max_columns=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["flipper_length_mm", "bill_length_mm"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(sorted(model.feature_importances_)[:-3:-1])
    with pytest.raises(ValueError, match="at least 1"):
        spinney.plot_importances(model, max_columns=0)


@pytest.mark.parametrize(
    "show",
    [
        spinney.plot_tree,
        spinney.tree_svg,
        spinney.plot_importances,
        lambda m: spinney.plot_partition(m, [[0]], [0]),
        lambda m: spinney.plot_pruning(m, m),
    ],
)
def test_an_unfitted_model_is_rejected(show):
    with pytest.raises(NotFittedError):
        show(spinney.DecisionTreeClassifier())


# ---- imports ----------------------------------------------------------------------------------------------------

PLOTS = [
    "spinney.plot_tree(m)",
    "spinney.plot_pruning(m, m)",
    "spinney.plot_impurities()",
    "spinney.plot_importances(m)",
    "spinney.plot_partition(spinney.DecisionTreeClassifier().fit([[0, 0], [1, 1]], [0, 1]), [[0, 0]], [0])",
]

BARE = """
import importlib.util, json, sys
sys.path.insert(0, {path!r})
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in ("pandas", "polars") else find(name, *more)
sys.modules["pandas"] = sys.modules["polars"] = None
import spinney
m = spinney.DecisionTreeClassifier(max_depth=2).fit([[0.0], [1.0]], [0, 1])
m.export_text(); m.rules(); spinney.tree_svg(m); m._repr_html_(); spinney.to_json(m)
spinney.plot_tree; spinney.plot_partition
report = {{"loaded": "matplotlib" in sys.modules}}
sys.modules["matplotlib"] = None
for call in {calls!r}:
    try:
        eval(call)
    except ImportError as error:
        report[call] = str(error)
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def bare():
    """Return the output of a process without a frame library and, in the end, without matplotlib."""
    code = BARE.format(path=PACKAGE_PARENT, calls=[*PLOTS, "spinney.to_frame(m)"])
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_matplotlib_loads_only_for_plots(bare):
    assert bare["loaded"] is False


@pytest.mark.parametrize("call", PLOTS)
def test_without_matplotlib_the_error_has_a_remedy(bare, call):
    assert bare[call] == "Plots need matplotlib: pip install 'spinney-ml[plot]'. tree_svg works without it."


def test_without_a_frame_library_the_error_has_a_remedy(bare):
    assert bare["spinney.to_frame(m)"] == "A frame needs pandas or polars: pip install pandas"


# ---- learning curves --------------------------------------------------------------------------------------


def boosted(**parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    given = {"n_estimators": 20, "random_state": 0} | parameters
    return spinney.GradientBoostingRegressor(**given).fit(X, X[:, 0] + rng.normal(size=200))


def test_a_learning_curve_marks_the_best_round():
    model = boosted(early_stopping=True)
    ax = spinney.plot_learning_curve(model)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["training rows", "held-out rows", f"best: round {model.validation_score_.argmin() + 1}"]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), model.train_score_)
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), model.validation_score_)
    plt.close(ax.figure)


def test_a_learning_curve_without_held_out_rows_or_with_a_metric():
    ax = spinney.plot_learning_curve(boosted())
    assert len(ax.get_lines()) == 1
    plt.close(ax.figure)
    ax = spinney.plot_learning_curve(boosted(early_stopping=True, scoring="r2"))
    assert [part.get_ylabel() for part in ax.figure.axes] == ["loss", "-r2"]
    plt.close(ax.figure)
    with pytest.raises(TypeError, match="needs a gradient boosting model, not a DecisionTreeRegressor"):
        spinney.plot_learning_curve(spinney.DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0]))


def test_a_learning_curve_has_a_right_spine_only_with_a_second_axis():
    X = np.arange(120.0).reshape(60, 2)
    for options, is_closed in (({}, False), ({"early_stopping": True}, False), ({"scoring": "r2"}, True)):
        options = {"early_stopping": True, **options} if "scoring" in options else options
        model = spinney.GradientBoostingRegressor(n_estimators=3, random_state=0, **options).fit(X, X[:, 0])
        ax = spinney.plot_learning_curve(model)
        assert not ax.spines["top"].get_visible()
        assert ax.spines["right"].get_visible() == is_closed
        mpl.pyplot.close(ax.figure)


# ---- margins ------------------------------------------------------------------------------------------------


def test_margins_are_plotted_as_cumulative_distributions():
    X, y = load_breast_cancer(return_X_y=True)
    model = spinney.AdaBoostClassifier(n_estimators=30).fit(X, y)
    ax = spinney.plot_margins(model, X, y)
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in lines] == ["3 rounds", "10 rounds", "30 rounds"]
    np.testing.assert_array_equal(lines[-1].get_xdata(), np.sort(model.margins(X, y)))
    assert lines[-1].get_ydata()[-1] == 1
    again = spinney.plot_margins(model, X, y, rounds=[1], ax=ax)
    assert again is ax
    with pytest.raises(ValueError, match="from 1 to 30"):
        spinney.plot_margins(model, X, y, rounds=[31])
    with pytest.raises(TypeError, match="need a classifier"):
        spinney.plot_margins(spinney.AdaBoostRegressor(n_estimators=2).fit(X, y), X, y)


# ---- names and arguments of scikit-learn's functions --------------------------------------------------------------


def test_column_and_class_names_of_the_caller_are_shown():
    X, y = load_iris(return_X_y=True)
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    names = {"feature_names": np.array(["a", "b", "length", "d"]), "class_names": ["one", "two", "three"]}
    assert "length ≤ 2.45: 50 rows (one 100%) → one" in spinney.export_text(model, **names)
    shown = {text.get_text() for text in spinney.plot_tree(model, **names).texts}
    assert {"length", "one", "two", "three"} <= shown
    assert ">length<" in spinney.tree_svg(model, **names)
    assert spinney.export_text(model, class_names=True) == spinney.export_text(model)


def test_column_names_are_those_of_combined_columns():
    X, y = load_iris(return_X_y=True)
    forest = spinney.RandomForestClassifier(n_estimators=1, oblique=2, n_combined=2, random_state=0, max_depth=1).fit(
        X, y
    )
    text = spinney.export_text(forest.estimators_[0], feature_names=["aa", "bb", "cc", "dd"])
    assert not re.search(r"\bx\d", text)
    assert len(set(re.findall(r"aa|bb|cc|dd", text))) == 2


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"feature_names": ["a"]}, ValueError, "feature_names must contain 4 elements, got 1"),
        ({"class_names": ["a"]}, ValueError, "class_names must contain 3 elements"),
        ({"label": "some"}, ValueError, "label must be 'all', 'root' or 'none', not 'some'"),
        ({"precision": -1}, ValueError, "precision must be a whole number"),
        ({"precision": 2, "decimals": 2}, TypeError, "precision is another name for decimals"),
        ({"spacing": 0}, ValueError, "spacing must be a whole number of at least 1"),
    ],
)
def test_wrong_options_are_refused(given, error, message):
    X, y = load_iris(return_X_y=True)
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    functions = [spinney.export_text] if "names" in str(given) or "spacing" in given else []
    functions += [] if "spacing" in given else [spinney.plot_tree, spinney.tree_svg]
    for function in functions:
        with pytest.raises(error, match=message):
            function(model, **given)


# ---- scikit-learn's options -------------------------------------------------------------------------------------


def plotted(model, **options):
    """Return the texts that `plot_tree` puts into boxes, by node, as scikit-learn's annotations have them."""
    picture = draw(model, look=Look(**options))
    return {part.node: [s.words for s in part.shapes if isinstance(s, Text)] for part in picture.nodes}


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_boxes_show_the_numbers_of_scikit_learn(criterion):
    X, y = load_iris(return_X_y=True)
    model = spinney.DecisionTreeClassifier(max_depth=2, criterion=criterion).fit(X, y)
    peer = sklearn.tree.DecisionTreeClassifier(max_depth=2, criterion=criterion, random_state=0).fit(X, y)
    texts = plotted(model, impurity=True, node_ids=True, proportion=False)
    for node in range(peer.tree_.node_count):
        words = texts[node]
        assert f"node = {node}" in words
        assert float(next(w for w in words if w.startswith(criterion)).split(" = ")[1]) == pytest.approx(
            peer.tree_.impurity[node], rel=5e-3
        )
        assert f"n = {peer.tree_.n_node_samples[node]}" in words
        counts = peer.tree_.value[node, 0] * peer.tree_.weighted_n_node_samples[node]
        assert "\N{NO-BREAK SPACE} ".join(f"{count:.0f}" for count in counts) in words


def test_proportion_is_of_rows_and_classes():
    X, y = load_iris(return_X_y=True)
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    parts = plotted(model, proportion=True)
    assert parts[1] == ["0", "1\N{NO-BREAK SPACE} 0\N{NO-BREAK SPACE} 0", "n = 33%"]
    assert plotted(model)[1][-1] == "n = 50 (33%)"


def test_labels_are_in_all_boxes_the_root_or_none():
    X, y = load_iris(return_X_y=True)
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    for label, expected in {"all": {0, 1, 2, 3, 4}, "root": {0}, "none": set()}.items():
        texts = plotted(model, impurity=True, node_ids=True, label=label)
        assert {node for node, words in texts.items() if any(" = " in w for w in words)} == expected
        assert "50 (33%)" in texts[1] or label == "all"


def test_boxes_may_be_white_and_square(model):
    assert {part.box.fill for part in draw(model, look=Look(filled=False)).nodes} == {"#ffffff"}
    assert {part.box.radius for part in draw(model, look=Look(rounded=False)).nodes} == {0.0}
    svg = spinney.tree_svg(model, filled=False, rounded=False)
    assert svg != spinney.tree_svg(model)


@pytest.mark.parametrize("style", ["full", "compact"])
def test_boxes_with_all_options_hold_their_texts(style):
    look = Look(impurity=True, node_ids=True, proportion=False)
    picture = draw(random_tree(30, 3), style=style, look=look)
    for part in picture.nodes:
        for shape in part.shapes:
            if isinstance(shape, Text) and not shape.bold:
                assert text_box(shape).x >= part.box.x - 0.5
    first, *_ = [part for part in picture.nodes if part.node == 1]
    assert any("node = 1" in s.words for s in first.shapes if isinstance(s, Text))


def test_details_are_drawn_in_the_full_style():
    model = random_tree(20)
    assert draw(model).is_compact
    assert not draw(model, look=Look(impurity=True)).is_compact


@pytest.mark.parametrize("size", [6, 14.0])
def test_the_font_has_the_size_that_is_asked_for(model, size):
    ax = spinney.plot_tree(model, fontsize=size)
    sizes = {round(text.get_fontsize(), 6) for text in ax.texts}
    assert sizes == {size, round(0.9 * size, 6)}
    fixed = spinney.plot_tree(model, fontsize=size, ax=plt.subplots(figsize=(3, 3))[1])
    assert max(text.get_fontsize() for text in fixed.texts) == pytest.approx(size)


def test_precision_is_the_number_of_decimals(model):
    assert spinney.tree_svg(model, precision=3) == spinney.tree_svg(model, decimals=3)


@pytest.mark.parametrize("spacing", [1, 3, 6])
def test_the_indentation_of_text_has_the_width_that_is_asked_for(model, spacing):
    lines = spinney.export_text(model, spacing=spacing).split("\n")
    plain = spinney.export_text(model).split("\n")
    for line, other, depth in zip(lines, plain, model.tree_.depth, strict=True):
        assert line[(spacing + 1) * depth :] == other[4 * depth :]
        assert not line[: (spacing + 1) * depth].strip(" │├└─")


def test_class_names_are_for_one_output():
    X, y = load_iris(return_X_y=True)
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="class_names is for one output"):
        spinney.export_text(model, class_names=["a", "b", "c"])
    number = spinney.DecisionTreeRegressor(max_depth=2).fit(X, y)
    assert spinney.export_text(number, class_names=["a"]) == spinney.export_text(number)
