"""How often the splits of a tree survive a bootstrap."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier as ScikitTree
from spinney._evaluate import runner_up
from spinney._evaluate.fragility import _for_bootstraps, _Sample, _Tally
from spinney.inspect.text.reader import TreeReader
from sweep import examples

mpl.use("agg")


def one_dominant(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((n, 4)), columns=list("abcd"))
    return X, np.where(X["b"] > 0.5, "high", "low")


# ---- against a reference implementation ------------------------------------------------------------------------------


def place_columns(tree):
    """Map each place (columns and sides on the way) to the column asked there and its threshold, by recursion."""
    found = {}

    def walk(node, path):
        if tree.is_leaf[node]:
            return
        column = int(tree.feature[node])
        found[path] = (column, float(tree.threshold[node]), node)
        walk(int(tree.children_left[node]), (*path, (column, "left")))
        walk(int(tree.children_right[node]), (*path, (column, "right")))

    walk(0, ())
    return found


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_survival_equals_the_naive_count(kind):
    if kind == "classes":
        X, y = load_iris(return_X_y=True)
        tree = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    else:
        X, y = load_diabetes(return_X_y=True)
        tree = spinney.DecisionTreeRegressor(max_depth=3, min_samples_leaf=7).fit(X, y)
    report = spinney.fragility(tree, X, y, n_bootstraps=25, random_state=3, tolerance=0.05)
    ours = place_columns(tree.tree_)
    random = np.random.RandomState(3)
    survived, same, cuts, churn = [{path: [] for path in ours} for _ in range(3)] + [[]]
    for _ in range(25):
        rows = random.choice(np.arange(len(y)), len(y))
        random.randint(np.iinfo(np.int32).max)
        other = clone(tree).fit(X[rows], y[rows])
        theirs = place_columns(other.tree_)
        for path, (column, cut, node) in ours.items():
            is_there = path in theirs and theirs[path][0] == column
            survived[path].append(is_there)
            if is_there:
                here = X[tree.decision_path(X).toarray()[:, node] > 0, column]
                moved = np.mean((here <= cut) != (here <= theirs[path][1]))
                cuts[path].append(theirs[path][1])
            same[path].append(is_there and moved <= 0.05)
        if kind == "classes":
            churn.append(np.mean(tree.predict(X) != other.predict(X)))
        else:
            churn.append(np.mean(np.abs(tree.predict(X) - other.predict(X))) / y.std())
    for k, path in enumerate(ours):
        assert report.columns["survival"][k] == pytest.approx(np.mean(survived[path]))
        assert report.columns["same_cut"][k] == pytest.approx(np.mean(same[path]))
        if cuts[path]:
            points = np.quantile(cuts[path], [0.05, 0.5, 0.95], method="inverted_cdf")
            names = ("threshold_low", "threshold_median", "threshold_high")
            np.testing.assert_array_equal([report.columns[name][k] for name in names], points)
    assert report.churn == pytest.approx(np.mean(churn))
    assert 0 < np.mean(report.columns["survival"]) < 1


def best_gains(X, y):
    """Best Gini gain of each column, by scikit-learn's stumps."""
    gains = []
    for j in range(X.shape[1]):
        tree = ScikitTree(max_depth=1).fit(X[:, [j]], y).tree_
        share = tree.weighted_n_node_samples / len(y)
        gains.append(tree.impurity[0] - share[1:] @ tree.impurity[1:] if tree.node_count == 3 else 0.0)
    return np.array(gains)


def test_runner_ups_and_margins_equal_the_naive_ones():
    X, y = load_iris(return_X_y=True)
    X = X[:, [0, 1, 3]]
    tree = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    report = spinney.fragility(tree, X, y, n_bootstraps=1, random_state=0)
    passes = tree.decision_path(X).toarray()
    for node, column, name, margin in zip(
        *(report.columns[c] for c in ("node", "column", "runner_up", "margin")), strict=True
    ):
        gains = best_gains(X[passes[:, node] > 0], y[passes[:, node] > 0])
        j = int(column.removeprefix("x"))
        others = np.where(np.arange(3) == j, -1, gains)
        assert others[int(name.removeprefix("x"))] == pytest.approx(others.max())
        assert margin == pytest.approx(1 - others.max() / gains[j], abs=1e-9)


def test_margins_of_other_criteria_agree_with_split_tables():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    for criterion in ("entropy", "chi2", "misclassification"):
        tree = spinney.DecisionTreeClassifier(criterion=criterion, max_depth=1).fit(X, y)
        report = spinney.fragility(tree, X, y, n_bootstraps=1, random_state=0)
        goodness = "score" if criterion == "chi2" else "gain"
        best = {c: max(spinney.split_table(X, y, c, criterion=criterion).columns[goodness]) for c in X.columns}
        chosen = best.pop(report.columns["column"][0])
        assert report.columns["margin"][0] == pytest.approx(1 - max(best.values()) / chosen, abs=1e-9)
        assert best[report.columns["runner_up"][0]] == pytest.approx(max(best.values()))


@pytest.mark.parametrize("seed", range(4))
def test_runner_ups_by_gain_ratio_keep_to_columns_of_average_gain(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((60, 4)), rng.integers(0, 3, 60)
    tree = spinney.DecisionTreeClassifier(criterion="gain_ratio", max_depth=3).fit(X, y)
    margins = np.array(spinney.fragility(tree, X, y, n_bootstraps=1, random_state=0).columns["margin"])
    assert np.isfinite(margins).any()
    assert (margins[np.isfinite(margins)] >= 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"priors": {0: 0.1, 1: 0.1, 2: 0.8}},
        {"cost_matrix": [[0, 1, 9], [1, 0, 9], [1, 1, 0]]},
        {"feature_costs": [1.0, 1.0, 5.0, 1.0]},
        {"missing": "surrogate"},
        {"class_weight": "balanced"},
    ],
)
def test_the_column_chosen_is_the_best_one_with_costs_and_prices_too(options):
    rng = np.random.default_rng(2)
    X, y = load_iris(return_X_y=True)
    X = X + 0.8 * rng.normal(size=X.shape)
    tree = spinney.DecisionTreeClassifier(max_depth=3, **options).fit(X[:130], y[:130])
    report = spinney.fragility(tree, X[:130], y[:130], n_bootstraps=3, random_state=0)
    margins = np.array(report.columns["margin"])
    assert np.isfinite(margins).sum() > 3
    assert (margins[np.isfinite(margins)] >= 0).all()


def test_samples_of_rare_events_have_one_at_least():
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2)), np.zeros(30)
    y[3], y[7] = 2, 1
    tree = spinney.DecisionTreeRegressor(criterion="poisson", max_depth=2).fit(X, y)
    report = spinney.fragility(tree, X, y, n_bootstraps=60, random_state=0)  # 12 % of all samples have none
    assert sum(report.root_columns.values()) == pytest.approx(1)


# ---- designs with a known answer -------------------------------------------------------------------------------------


def test_a_dominant_column_survives():
    X, y = one_dominant()
    tree = spinney.DecisionTreeClassifier().fit(X, y)
    report = spinney.fragility(tree, X, y, random_state=0)
    assert report.columns["survival"] == [1.0]
    assert report.columns["same_cut"][0] > 0.95
    assert report.root_columns == {"b": 1.0}
    assert report.columns["margin"][0] > 0.5
    assert report.churn < 0.02


def test_two_equally_noisy_copies_share_the_root():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    X = pd.DataFrame({"one": truth + 0.1 * rng.normal(size=2000), "two": truth + 0.1 * rng.normal(size=2000)})
    y = (truth > 0.5).astype(int)
    tree = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y)
    report = spinney.fragility(tree, X, y, n_bootstraps=200, random_state=1)
    assert set(report.root_columns) == {"one", "two"}
    assert 0.25 < report.root_columns["one"] < 0.75
    assert 0 <= report.columns["margin"][0] < 0.1


def test_exact_copies_have_no_margin():
    X, y = one_dominant()
    X["e"] = X["b"]
    report = spinney.fragility(spinney.DecisionTreeClassifier().fit(X, y), X, y, n_bootstraps=3, random_state=0)
    assert report.columns["runner_up"] == ["e"]
    assert report.columns["margin"] == [0.0]


def test_category_splits_are_matched_whichever_side_is_which():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(list("pqrs"), 400), "x": rng.random(400)})
    y = np.where(X["town"].isin(["p", "r"]), np.where(X["x"] > 0.5, "u", "v"), rng.choice(["w", "z"], 400))
    tree = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert tree.tree_.is_categorical[0]
    report = spinney.fragility(tree, X, y, n_bootstraps=50, random_state=0)
    assert report.columns["survival"][0] == 1
    assert report.columns["similarity"][0] == 1
    by_x = report.columns["column"].index("x", 1)
    assert report.columns["cut"][by_x].startswith("x ≤")
    assert max(s for s, c in zip(report.columns["survival"], report.columns["column"], strict=True) if c == "x") == 1
    assert np.isnan(report.columns["threshold_median"][0])


def test_exchanged_sides_of_categories():
    X = pd.DataFrame({"town": ["p", "q", "r"] * 20, "x": np.arange(60.0)})
    low = np.where(X["town"] == "p", np.where(X["x"] > 30, 1.0, 0.0), 9.0)
    tree = spinney.DecisionTreeRegressor(max_depth=2).fit(X, low)
    mirror = spinney.DecisionTreeRegressor(max_depth=2).fit(X, -low)  # the mean of p is the higher one: p goes right
    assert tree.tree_.left_categories(0) == [0]
    assert mirror.tree_.left_categories(0) == [1, 2]
    reader = TreeReader(tree)
    tally = _Tally(reader, _Sample.of(reader, X, low, None), 0.0)
    tally.add(mirror.tree_)
    tally.churn.append(0.0)
    columns = tally.columns({})
    assert columns["column"] == ["town", "x"]
    assert columns["survival"] == [1, 1]
    assert columns["same_cut"] == [1, 1]
    assert columns["similarity"][0] == 1


# ---- properties ------------------------------------------------------------------------------------------------------


@examples(5)
@given(seed=st.integers(0, 1000), max_depth=st.integers(1, 4), n_outputs=st.integers(1, 2), classes=st.booleans())
def test_shares_are_consistent(seed, max_depth, n_outputs, classes):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(40, 3)).astype(float)
    X[rng.random((40, 3)) < 0.15] = np.nan
    if classes:
        y = rng.integers(0, 3, size=(40, n_outputs))
        tree = spinney.DecisionTreeClassifier(max_depth=max_depth, min_samples_leaf=2).fit(X, y)
    else:
        y = rng.normal(size=(40, n_outputs))
        tree = spinney.DecisionTreeRegressor(max_depth=max_depth, min_samples_leaf=2).fit(X, y)
    report = spinney.fragility(tree, X, y, n_bootstraps=8, random_state=seed)
    parent = spinney.to_frame(tree)["parent"]
    survival = dict(zip(report.columns["node"], report.columns["survival"], strict=True))
    for node, share, same, given_parent in zip(
        *(report.columns[c] for c in ("node", "survival", "same_cut", "given_parent")), strict=True
    ):
        above = 1.0 if node == 0 else survival[parent[node]]
        assert 0 <= same <= share <= above
        assert np.isnan(given_parent) if above == 0 else given_parent == pytest.approx(share / above)
    assert sum(report.root_columns.values()) == pytest.approx(1)
    assert all(np.isnan(m) or m > -1e-9 for m in report.columns["margin"])  # the tree chose the best column
    assert str(report)


def test_the_report_is_the_same_for_any_number_of_threads():
    X, y = spinney.datasets.load_penguins()
    tree = spinney.DecisionTreeClassifier(max_depth=4, max_features=3, random_state=5).fit(X, y)
    one, two, seven = (
        spinney.fragility(tree, X, y, n_bootstraps=10, random_state=2, n_jobs=n).columns for n in (1, 2, 7)
    )
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
        np.testing.assert_array_equal(one[name], seven[name])
    other = spinney.fragility(tree, X, y, n_bootstraps=10, random_state=3).columns
    assert other["survival"] != one["survival"]


def test_weights_pruning_and_constraints_are_kept():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    weight = np.where(np.arange(len(y)) < 300, 2.0, 0.0)
    tree = spinney.DecisionTreeRegressor(
        max_depth=4, ccp_alpha=50, monotonic_cst={"bmi": 1}, interaction_cst=[["bmi", "s5"]], min_samples_leaf=0.02
    ).fit(X, y, weight)
    report = spinney.fragility(tree, X, y, weight, n_bootstraps=10, random_state=0)
    assert report.columns["n"][0] == 300
    assert len(report) == tree.get_n_leaves() - 1 > 2
    assert set(report.columns["column"]) == {"bmi", "s5"}
    assert set(report.columns["runner_up"][1:]) <= {"bmi", "s5", None}  # no other may meet the root's column


# ---- shown -----------------------------------------------------------------------------------------------------------


def test_the_report_prints_as_an_aligned_table():
    X, y = one_dominant()
    report = spinney.fragility(spinney.DecisionTreeClassifier().fit(X, y), X, y, n_bootstraps=10, random_state=0)
    lines = str(report).splitlines()
    assert lines[0] == "1 split, 10 bootstrap samples"
    assert lines[2].split() == ["split", "rows", "survives", "same", "cut", "cut", "runner-up", "margin"]
    assert lines[3].startswith("b ≤ 0.5")
    assert " 300 " in lines[3]
    assert " 100% " in lines[3]
    assert lines[5] == "First column: b 100%"
    assert lines[6].startswith("Predictions that change: ")
    assert repr(report) == "<Fragility: 1 split, 10 bootstrap samples>"


def test_large_trees_print_their_largest_splits():
    X, y = load_diabetes(return_X_y=True)
    tree = spinney.DecisionTreeRegressor(min_samples_leaf=6).fit(X, y)
    report = spinney.fragility(tree, X, y, n_bootstraps=2, random_state=0)
    assert len(report) > 45
    text = str(report)
    assert f"… and {len(report) - 40} smaller splits" in text
    assert "standard deviations of y" in text


def test_only_the_largest_splits_get_a_runner_up(monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    tree = spinney.DecisionTreeRegressor(max_depth=3).fit(X, y)
    monkeypatch.setattr(runner_up, "_MOST_SPLITS", 2)
    report = spinney.fragility(tree, X, y, n_bootstraps=2, random_state=0)
    has_one = [name is not None for name in report.columns["runner_up"]]
    largest = sorted(report.columns["n"], reverse=True)[:2]
    assert has_one == [n in largest for n in report.columns["n"]]
    assert str(report)


def test_a_tree_without_splits():
    X, y = np.zeros((10, 2)), np.arange(10.0)
    report = spinney.fragility(spinney.DecisionTreeRegressor().fit(X, y), X, y, n_bootstraps=3, random_state=0)
    assert len(report) == 0
    assert report.root_columns == {"(no split)": 1.0}
    assert "0 splits" in str(report)
    plt.close(report.plot().figure)


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames(backend):
    X, y = one_dominant()
    report = spinney.fragility(spinney.DecisionTreeClassifier().fit(X, y), X, y, n_bootstraps=3, random_state=0)
    frame = report.to_frame(backend)
    assert frame.shape == (1, 15)
    assert list(frame["column"]) == ["b"]


def test_bars_show_the_shares():
    X, y = load_iris(return_X_y=True)
    report = spinney.fragility(
        spinney.DecisionTreeClassifier(max_depth=3).fit(X, y), X, y, n_bootstraps=10, random_state=0
    )
    ax = report.plot(max_splits=3)
    full, survival, same = (list(container) for container in ax.containers)
    kept = sorted(sorted(range(len(report)), key=lambda k: -report.columns["n"][k])[:3])
    assert [bar.get_width() for bar in full] == [1, 1, 1]
    assert [bar.get_width() for bar in survival] == [report.columns["survival"][k] for k in kept]
    assert [bar.get_width() for bar in same] == [report.columns["same_cut"][k] for k in kept]
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="max_splits"):
        report.plot(max_splits=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bootstraps": 0}, "n_bootstraps must be a whole number"),
        ({"n_bootstraps": 2.5}, "n_bootstraps must be a whole number"),
        ({"tolerance": 1.5}, "tolerance must be a fraction"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    X, y = one_dominant()
    with pytest.raises(ValueError, match=message):
        spinney.fragility(spinney.DecisionTreeClassifier().fit(X, y), X, y, **options)


def test_other_models_and_other_rows_are_refused():
    X, y = one_dominant()
    with pytest.raises(TypeError, match="decision tree of spinney"):
        spinney.fragility(ScikitTree().fit(X, y), X, y)
    tree = spinney.DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="was fitted to 300 rows and X has 100"):
        spinney.fragility(tree, X[:100], y[:100])


def test_least_numbers_of_rows_are_those_of_a_sample():
    X, y = one_dominant()
    options = {"min_samples_leaf": 10, "min_samples_split": 40}
    tree = spinney.DecisionTreeClassifier(**options).fit(X, y)
    reader = TreeReader(tree)
    even = _for_bootstraps(tree, _Sample.of(reader, X, y, np.full(300, 3.0)))
    assert (even.min_samples_leaf, even.min_samples_split) == (1, 25)
    assert even.min_weight_fraction_leaf == pytest.approx(9.5 / 300)
    uneven = _for_bootstraps(tree, _Sample.of(reader, X, y, np.arange(1, 301)))
    assert (uneven.min_samples_leaf, uneven.min_samples_split, uneven.min_weight_fraction_leaf) == (6, 25, 0.0)
    balanced = spinney.DecisionTreeClassifier(class_weight="balanced", **options).fit(X, y)
    assert _for_bootstraps(balanced, _Sample.of(reader, X, y, None)).min_samples_leaf == 6
