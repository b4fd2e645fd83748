"""Trees written as text or JSON decide like the tree: thresholds of any size, deep trees, missing values."""

import json
import re

import numpy as np
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st

BOUND = re.compile(r"x0 (≤|>) (\S+?):")


def predicted_by_hand(text, value):
    """Go down the printed tree with one number, reading nothing but the text."""
    lines = text.splitlines()[1:]
    at, depth = 0, 0
    while True:
        line = lines[at]
        sign, bound = BOUND.search(line).groups()
        goes = value <= float(bound) if sign == "≤" else value > float(bound)
        if goes and "→" in line:
            return float(line.rsplit("→ ", 1)[1].replace(",", ""))
        at += 1
        if goes:
            depth += 1
            continue
        while lines[at].index("── ") != 4 * depth + 1:  # the sister of the branch that was refused
            at += 1


def assert_read_alike(x):
    x = np.unique(np.asarray(x, dtype=float))
    y = np.arange(len(x), dtype=float) * 7 % 5
    model = spinney.DecisionTreeRegressor().fit(x[:, np.newaxis], y)
    text = spinney.export_text(model, show_missing=False)
    for value, wanted in zip(x, y, strict=True):
        assert predicted_by_hand(text, value) == wanted, f"{value!r} in\n{text}"
    for rule in spinney.rules(model, show_missing=False):
        numbers = [float(part) for part in re.findall(r"(?<![\w.])[-\d][\d.e+-]*", rule.text.replace("x0", ""))]
        bounds = [b for c in rule.conditions for b in (c.lower, c.upper) if np.isfinite(b)]
        for written, bound in zip(numbers, bounds, strict=True):
            np.testing.assert_array_equal(x <= written, x <= bound)


@pytest.mark.parametrize(
    "x",
    [
        1e15 + np.arange(20),
        1e15 + 2 * np.arange(20),
        1_700_000_000_000_000_000 + 1_000_000 * np.arange(20),  # nanoseconds
        -4e18 + 1024 * np.arange(20),
        1 + 1e-9 * np.arange(20),
        123456 + 0.001 * np.arange(20),
        1e-12 * np.arange(1, 20),
        3e-7 + 1e-14 * np.arange(20),
        1e300 * np.arange(1, 20),
        np.arange(20) / 10,
    ],
)
def test_a_tree_read_by_hand_sends_the_rows_the_same_way(x):
    assert_read_alike(x)
    assert_read_alike(x[3:5])  # one cut alone
    assert_read_alike(x[[0, 1, -2, -1]])


@settings(max_examples=80, deadline=None)
@given(
    first=st.integers(-(10**9), 10**9),
    steps=st.lists(st.integers(1, 1000), min_size=2, max_size=12),
    power=st.integers(-12, 9),
)
def test_decimals_are_cut_by_decimals(first, steps, power):
    assert_read_alike([float(f"{k}e{power}") for k in first + np.cumsum(steps)])


def test_small_cuts_stay_short():
    x = np.array([0.1, 0.2, 0.3, 0.7, 1.1])[:, np.newaxis]
    text = spinney.export_text(spinney.DecisionTreeRegressor().fit(x, np.arange(5.0)), show_missing=False)
    assert {bound for _, bound in BOUND.findall(text)} == {"0.15", "0.25", "0.5", "0.9"}


def test_a_competitor_that_separates_missing_values_is_written_as_json():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X[::3, 1] = np.nan
    y = 5.0 * (X[:, 0] > 0) + np.isnan(X[:, 1])
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 1.0)
    model = spinney.DecisionTreeRegressor(max_depth=3, max_competitors=2).fit(X, y)
    found = json.loads(spinney.to_json(model))
    assert found == spinney.to_dict(model)
    nodes, others = [found["tree"]], []
    while nodes:
        node = nodes.pop()
        if "split" in node:
            others += node["split"].get("competitors", [])
            nodes += [node["left"], node["right"]]
    alone = [other for other in others if other["column"] == "x1"]
    assert alone
    assert {(other["threshold"], other["below"]) for other in alone} == {(None, "left")}


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_json_of_a_shallow_tree_is_that_of_the_json_module(indent):
    X, y = spinney.datasets.load_penguins()
    model = spinney.DecisionTreeClassifier(max_depth=4, missing="surrogate").fit(X, y)
    wanted = json.dumps(spinney.to_dict(model), indent=indent, ensure_ascii=False, allow_nan=False)
    assert spinney.to_json(model, indent=indent) == wanted


@pytest.mark.filterwarnings("ignore:y reaches from")
@pytest.mark.slow
def test_trees_of_any_depth_are_written_as_json_and_text():
    n = 3000
    x = np.arange(n, dtype=float)
    model = spinney.DecisionTreeRegressor().fit(x[:, np.newaxis], 2.0 ** -(x / 4))
    assert model.get_depth() > 1000
    text = spinney.to_json(model)
    assert text.count('"split"') == model.get_n_leaves() - 1
    assert text.count("{") == text.count("}")
    assert len(spinney.export_text(model).splitlines()) == model.tree_.node_count


def test_means_are_written_as_counts_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = np.where(X[:, 0] > 0, 306_856.0, -1234.0)
    model = spinney.DecisionTreeRegressor().fit(X, y)
    text = spinney.export_text(model, show_missing=False)
    assert "2,000 rows" in text
    assert "→ 306,856" in text
    assert "→ -1,234" in text
    assert "then 306,856:" in str(spinney.rules(model))
