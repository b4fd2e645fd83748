"""Trees as text and tables: text, rules, frames, dicts, single rows, split tables."""

import json
import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from spinney._data import Feature
from spinney._data.display import distinct_texts, elide, one_line, percent, shortest
from spinney.inspect.text.conditions import Condition

TOWNS = ["Ash", "Bow", "Cam", "Dee", "Ely", "Fox", "Gap", "Hay"]


@pytest.fixture(scope="module")
def shop():
    """Return a table with numbers, categories, ordered categories, booleans and missing values, and three classes."""
    rng = np.random.default_rng(7)
    n = 400
    town = rng.choice(TOWNS, size=n)
    size = pd.Categorical(rng.choice(["small", "medium", "large"], size=n), ["small", "medium", "large"], ordered=True)
    price = rng.normal(50, 20, size=n).round(1)
    member = rng.random(n) < 0.5
    score = 2 * np.isin(town, TOWNS[:3]) + (size.codes == 2) + (price > 50) + member * (price < 30)
    y = np.array(["low", "mid", "high"])[np.clip(score + (rng.random(n) < 0.1), 0, 2)]
    frame = pd.DataFrame({"town": town, "size": size, "price": price, "member": member})
    for name in ("town", "size", "price"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame, y


@pytest.fixture(scope="module")
def model(shop):
    return spinney.DecisionTreeClassifier(max_depth=7).fit(*shop)


@pytest.fixture(scope="module")
def regression(shop):
    X, _ = shop
    y = X["price"].fillna(30).to_numpy() * 2 + X["size"].cat.codes.to_numpy() * 7.0
    return spinney.DecisionTreeRegressor(max_depth=5).fit(X, y), X, y


# ---- numbers and names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (206.5, "206.5"),
        (2.449999988079071, "2.45"),
        (12345678.5, "12345678.5"),
        (12345679.5, "12345679.5"),
        (3.14159265, "3.1416"),
        (1234.56789, "1234.6"),
        (-0.003761234, "-0.0037612"),
        (3.0, "3"),
        (-0.0, "0"),
        (1e20, "1e+20"),
        (0.000012345678, "1.2346e-05"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_significant_digits(value, text):
    assert shortest(value) == text


def test_adjacent_cuts_have_distinct_texts():
    cuts = [0.123456, 0.123457, 0.1234571, 5.0]
    texts = distinct_texts(cuts, None)
    assert len(set(texts.values())) == 4
    assert [float(texts[c]) for c in cuts] == sorted(float(t) for t in texts.values())
    assert set(distinct_texts(cuts, 2).values()) == {"0.12", "5.00"}


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(1, "100%"), (0.997, ">99%"), (0.25, "25%"), (0.009, "<1%"), (0.012, "1%"), (0.99, "99%")],
)
def test_percent(fraction, text):
    assert percent(fraction) == text


def test_long_and_unprintable_names():
    assert elide("abcdefghij", 5) == "ab…ij"
    assert elide("abcde", 5) == "abcde"
    assert all(len(elide("x" * 50, n)) == n for n in range(2, 50))
    assert one_line("a\nb\tc\x00") == "a b c "


# ---- conditions -------------------------------------------------------------------------------------------------

NUMBER, FLAG = Feature("size", "number"), Feature("size", "boolean")
ORDER = Feature("size", "ordered", ("s", "m", "l", "xl"))
FEW, MANY = Feature("town", "category", ("a", "b", "c")), Feature("town", "category", tuple(f"t{k}" for k in range(40)))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Condition(NUMBER, upper=2.5), "size ≤ 2.5 (or missing)"),
        (Condition(NUMBER, upper=2.5, missing=False), "size ≤ 2.5"),
        (Condition(NUMBER, lower=1, upper=2.5, missing=False), "1 < size ≤ 2.5"),
        (Condition(NUMBER, missing=False), "size is known"),
        (Condition(NUMBER, lower=math.inf), "size is missing"),
        (Condition(FLAG, upper=0.5, missing=False), "size is false"),
        (Condition(FLAG, lower=0.5), "size is true (or missing)"),
        (Condition(ORDER, upper=0.5, missing=False), "size is s"),
        (Condition(ORDER, upper=1.5, missing=False), "size ≤ m"),
        (Condition(ORDER, lower=1.5, missing=False), "size ≥ l"),
        (Condition(ORDER, lower=0.5, upper=2.5, missing=False), "m ≤ size ≤ l"),
        (Condition(FEW, codes=frozenset({1}), missing=False), "town is b"),
        (Condition(FEW, codes=frozenset({0, 1}), missing=False), "town in {a, b}"),
        (Condition(FEW, codes=frozenset({0, 1, 2, 3}), missing=False), "town is known"),
        (Condition(FEW, codes=frozenset()), "town is missing"),
        (Condition(FEW, codes=frozenset({3}), missing=False), "town is something else"),
        (Condition(MANY, codes=frozenset(range(3)), missing=False), "town in {t0, t1, t2}"),
        (
            Condition(MANY, codes=frozenset(range(12)), missing=False),
            "town in {t0, t1, t2, t3, t4, …} (12 of 40 categories)",
        ),
        (Condition(MANY, codes=frozenset(range(3, 40)), missing=False), "town not in {t0, t1, t2}"),
        (Condition(MANY, codes=frozenset(range(1, 40)), missing=False), "town is not t0"),
        (
            Condition(MANY, codes=frozenset(range(12, 40)), missing=False),
            "town not in {t0, t1, t2, t3, t4, …} (12 of 40 categories)",
        ),
    ],
)
def test_conditions_as_phrases(condition, text):
    assert str(condition) == text


def test_a_condition_names_only_reachable_categories():
    left = Condition(MANY, codes=frozenset({1, 5, 9, *range(20, 40)}))
    reach = Condition(MANY, codes=frozenset({1, 2}), missing=False)
    assert left.describe(reach) == "town is t1"


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        (Condition(NUMBER, upper=2.5), ["≤ 2.5", "or missing"]),
        (Condition(NUMBER, lower=math.inf), ["missing"]),
        (Condition(FEW, codes=frozenset({0, 1}), missing=False), ["a, b"]),
        (Condition(MANY, codes=frozenset(range(2, 40)), missing=False), ["not t0, t1"]),
        (Condition(MANY, codes=frozenset(range(12)), missing=False), ["t0, t1, …", "(12 of 40)"]),
        (
            Condition(Feature("c", "category", ("first place", "second place", "z")), codes=frozenset({0, 1})),
            ["first place,", "second place", "or missing"],
        ),
    ],
)
def test_conditions_as_short_lines(condition, lines):
    assert condition.short_lines() == lines


def test_conditions_merge():
    both = Condition(NUMBER, upper=5) & Condition(NUMBER, lower=1, missing=False)
    assert (both.lower, both.upper, both.missing) == (1, 5, False)
    sets = Condition(FEW, codes=frozenset({0, 1})) & Condition(FEW, codes=frozenset({1, 2}))
    assert sets.categories == ("b",)


# ---- text -------------------------------------------------------------------------------------------------------


def test_text_of_a_tree_with_categories_and_missing_values():
    X = pd.DataFrame(
        {"town": ["Ely", "Rye", "Wem", None] * 3, "age": [20, 30, 40, 50, 21, 31, 41, 51, 22, None, 42, 52]}
    )
    y = np.array(["no", "yes", "no", "no"] * 2 + ["no", "no", "no", "no"])
    model = spinney.DecisionTreeClassifier().fit(X, y)
    assert spinney.export_text(model) == (
        "all: 12 rows (no 83%, yes 17%)\n"
        "├── town in {Ely, Wem} (or missing): 9 rows (no 100%) → no\n"
        "└── town is Rye: 3 rows (no 33%, yes 67%)\n"
        "    ├── age is known: 2 rows (yes 100%) → yes\n"
        "    └── age is missing: 1 row (no 100%) → no"
    )
    assert spinney.export_text(model, max_depth=1, show_weights=True, show_missing=False) == (
        "all: 12 rows, weight 12 (no 83%, yes 17%)\n"
        "├── town in {Ely, Wem}: 9 rows, weight 9 (no 100%) → no\n"
        "└── town is Rye: 3 rows, weight 3 (no 33%, yes 67%) … 2 leaves below"
    )
    assert "Wem} (or missing)" in spinney.export_text(model, show_missing=["town"])
    assert "or missing" not in spinney.export_text(model, show_missing=["age"])


def test_text_of_a_regression_tree():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    model = spinney.DecisionTreeRegressor(max_depth=1).fit(X, [1.0, 1.5, 7.0, 8.0])
    assert model.export_text(show_missing=False) == (
        "all: 4 rows (mean 4.375, sd 3.15)\n├── x0 ≤ 2.5: 2 rows (sd 0.25) → 1.25\n└── x0 > 2.5: 2 rows (sd 0.5) → 7.5"
    )
    assert "→ 7.50" in model.export_text(decimals=2)


def test_text_of_many_classes_names_the_largest():
    y = np.repeat(np.arange(9), np.arange(9, 0, -1))
    model = spinney.DecisionTreeClassifier(max_depth=1).fit(np.arange(45.0)[:, None], y)
    assert spinney.export_text(model).startswith("all: 45 rows (0 20%, 1 18%, 2 16%, 3 13%, 5 others 33%)")


def test_text_of_several_outputs():
    X = np.arange(6.0)[:, None]
    y = np.array([["a", "u"], ["a", "u"], ["a", "v"], ["b", "v"], ["b", "v"], ["b", "v"]])
    text = spinney.export_text(spinney.DecisionTreeClassifier(max_depth=1).fit(X, y))
    assert "(y0: a 50%, b 50%; y1: u 33%, v 67%)" in text
    assert "→ a, u" in text


def test_text_of_a_single_leaf():
    model = spinney.DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    assert spinney.export_text(model) == "all: 2 rows (a 100%) → a"
    assert str(spinney.rules(model)) == "Always a: 2 rows (100%), 100% correct."


def test_text_of_a_very_deep_tree():
    n = 1600
    model = spinney.DecisionTreeClassifier().fit(np.arange(n)[:, None], np.arange(n) % 2)
    assert model.get_depth() > sys.getrecursionlimit()
    assert len(spinney.export_text(model).splitlines()) == model.tree_.node_count


def test_names_on_several_lines_stay_on_one():
    X = pd.DataFrame({"a\nb": [1, 2, 3, 4]})
    text = spinney.export_text(spinney.DecisionTreeClassifier().fit(X, ["x\ny", "x\ny", "z", "z"]))
    assert len(text.splitlines()) == 3
    assert "a b ≤ 2.5" in text


@pytest.mark.parametrize("bad", [-1, 1.5, "2"])
def test_invalid_depths_and_decimals_are_rejected(model, bad):
    with pytest.raises(ValueError, match="max_depth must be a whole number"):
        spinney.export_text(model, max_depth=bad)
    with pytest.raises(ValueError, match="decimals must be a whole number"):
        spinney.export_text(model, decimals=bad)


READERS = [
    spinney.export_text,
    spinney.rules,
    spinney.to_frame,
    spinney.to_dict,
    spinney.to_json,
    spinney.importance_frame,
    lambda m: spinney.explain_row(m, [1]),
    lambda m: m.export_text(),
    lambda m: m.rules(),
    lambda m: m.explain_row([1]),
]


@pytest.mark.parametrize("read", READERS)
def test_an_unfitted_model_is_rejected(read):
    with pytest.raises(NotFittedError):
        read(spinney.DecisionTreeClassifier())


def test_other_models_are_rejected():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(TypeError, match=r"LogisticRegression is not a single tree.*estimators_\[0\] of a forest"):
        spinney.export_text(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(TypeError, match="not str"):
        spinney.export_text("tree")


def test_importances_of_ensembles_of_models():
    X, y = spinney.datasets.load_penguins()
    members = [("tree", spinney.DecisionTreeClassifier(max_depth=2)), ("forest", spinney.RandomForestClassifier(3))]
    for model in (spinney.BaggingClassifier(n_estimators=3, random_state=0), spinney.VotingClassifier(members)):
        frame = spinney.importance_frame(model.fit(X, y), "polars")
        assert frame.columns == ["column", "importance"]
        expected = dict(zip(X.columns, model.feature_importances_, strict=True))
        assert dict(frame.iter_rows()) == expected
        assert frame["importance"].is_sorted(descending=True)


# ---- rules ------------------------------------------------------------------------------------------------------


def test_every_row_satisfies_exactly_one_rule(model, shop):
    X, _ = shop
    found = spinney.rules(model)
    columns = model_columns(model, X)
    counts = np.zeros(len(X), dtype=int)
    for rule in found:
        holds = np.ones(len(X), dtype=bool)
        for condition in rule.conditions:
            holds &= condition.holds(columns[condition.column])
        assert holds.sum() == rule.n
        counts += holds
    assert (counts == 1).all()
    assert sum(rule.n for rule in found) == len(X)
    assert sum(rule.fraction for rule in found) == pytest.approx(1)
    np.testing.assert_array_equal(np.array([rule.node for rule in found])[found.apply(X)], model.apply(X))
    np.testing.assert_array_equal(np.array([rule.prediction for rule in found])[found.apply(X)], model.predict(X))


def model_columns(model, X):
    from spinney.inspect.text.reader import TreeReader

    return dict(zip(X.columns, TreeReader(model).values(X), strict=True))


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_rules_hold_for_rows_with_new_categories(shop, unseen):
    X, y = shop
    model = spinney.DecisionTreeClassifier(max_depth=6, unseen=unseen).fit(X, y)
    new = X.assign(town=np.where(np.arange(len(X)) % 3 == 0, "Nowhere", X["town"]))
    found = model.rules()
    np.testing.assert_array_equal(np.array([rule.node for rule in found])[found.apply(new)], model.apply(new))


def test_a_rule_has_one_condition_per_column(model):
    found = spinney.rules(model)
    for rule in found:
        columns = [condition.column for condition in rule.conditions]
        assert len(set(columns)) == len(columns)
    assert any(model.tree_.depth[rule.node] > len(rule.conditions) for rule in found)


def test_rules_merge_bounds_of_a_column():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(X[["petal width (cm)"]], y)
    middle = spinney.rules(model)[1].conditions
    assert [(c.lower, c.upper) for c in middle] == [(0.8, 1.75)]


def test_order_of_rules(model):
    assert [r.node for r in spinney.rules(model)] == sorted(np.flatnonzero(model.tree_.is_leaf))
    weights = [r.weight for r in spinney.rules(model, sort="support")]
    assert weights == sorted(weights, reverse=True)
    purities = [r.purity for r in spinney.rules(model, sort="purity")]
    assert purities == sorted(purities, reverse=True)
    with pytest.raises(ValueError, match="sort must be"):
        spinney.rules(model, sort="size")


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), (None, pd.DataFrame)]
)
def test_frames(model, regression, backend, kind):
    for tree in (model, regression[0]):
        assert type(spinney.to_frame(tree, backend)) is kind
        assert type(spinney.rules(tree).to_frame(backend)) is kind
        assert type(spinney.importance_frame(tree, backend)) is kind
        assert len(spinney.to_frame(tree, backend)) == tree.tree_.node_count


def test_an_unknown_frame_library_is_rejected(model):
    with pytest.raises(ValueError, match="backend must be 'pandas', 'polars' or None"):
        spinney.to_frame(model, "dask")


def test_rules_use_sample_weights():
    X = np.arange(4.0)[:, None]
    model = spinney.DecisionTreeClassifier().fit(X, [0, 0, 1, 1], sample_weight=[1, 2, 3, 4])
    assert [(r.n, r.weight, r.fraction) for r in spinney.rules(model)] == [(2, 3.0, 0.3), (2, 7.0, 0.7)]


# ---- tables and dicts -------------------------------------------------------------------------------------------


def test_the_frame_matches_the_tree(model):
    frame = spinney.to_frame(model, "pandas")
    tree = model.tree_
    np.testing.assert_array_equal(frame["is_leaf"], tree.is_leaf)
    np.testing.assert_array_equal(frame["n"], tree.n_node_samples)
    assert frame["parent"][0] == -1
    assert (frame["n"][1:].to_numpy()[~tree.is_leaf[1:]] > 0).all()
    inner = frame[~frame["is_leaf"]]
    assert set(inner["column"]) <= set(model.feature_names_in_)
    assert (inner["gain"] >= -1e-12).all()
    probabilities = frame[["proba_high", "proba_low", "proba_mid"]]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    by_column = (inner["gain"] * inner["weight"]).groupby(inner["column"]).sum()
    fraction = by_column / by_column.sum()
    importance = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    assert fraction.to_dict() == pytest.approx({k: v for k, v in importance.items() if k in fraction})


def predict_with_dict(node, row):
    """Follow one row (values by name, None where missing) down a tree of dicts."""
    while "split" in node:
        split, value = node["split"], row[node["split"]["column"]]
        if value is None:
            side = split["missing"]
        elif split["categories"] is not None:
            side = "left" if value in split["categories"] else "right"
        elif split["threshold"] is None:
            side = "left"
        else:
            side = "left" if value <= split["threshold"] else "right"
        node = node[side]
    return node["prediction"]


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_dict_round_trips_through_json_and_predicts(kind, model, regression, shop):
    X, _ = shop
    tree = model if kind == "classification" else regression[0]
    fields = json.loads(spinney.to_json(tree))
    assert fields == spinney.to_dict(tree)
    order = next(column for column in fields["columns"] if column["name"] == "size")["categories"]
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    for row in rows:
        row["size"] = None if row["size"] is None else order.index(row["size"])
    np.testing.assert_array_equal([predict_with_dict(fields["tree"], row) for row in rows], tree.predict(X))


def test_a_split_of_missing_from_known_values_is_json():
    model = spinney.DecisionTreeClassifier().fit([[1.0], [2.0], [np.nan], [np.nan]], [0, 0, 1, 1])
    split = json.loads(spinney.to_json(model))["tree"]["split"]
    assert (split["threshold"], split["missing"]) == (None, "right")


def test_importances_are_ranked(model):
    frame = spinney.importance_frame(model, "pandas")
    assert frame["importance"].is_monotonic_decreasing
    assert frame["importance"].sum() == pytest.approx(1)
    assert frame["n_splits"].sum() == (~model.tree_.is_leaf).sum()


# ---- one row ----------------------------------------------------------------------------------------------------


def test_the_path_of_a_row_as_text():
    X = pd.DataFrame({"age": [20, 30, 40, 50], "town": ["a", "b", "a", "b"]})
    model = spinney.DecisionTreeClassifier().fit(X, ["no", "no", "no", "yes"])
    words = "Start: 4 rows (no 75%, yes 25%)\nage is 50, so age > 45: 1 row (yes 100%)\nPrediction: yes"
    for row in ({"town": "b", "age": 50}, [50, "b"], X.iloc[3], X.iloc[[3]], pl.from_pandas(X)[3]):
        assert spinney.explain_row(model, row) == words
        assert model.explain_row(row) == words
    assert "age is missing, so age ≤ 45 (or missing)" in spinney.explain_row(model, [None, "b"])


def test_explanations_end_with_the_prediction(model, shop):
    X, _ = shop
    predicted = model.predict(X)
    for i in range(0, len(X), 17):
        assert spinney.explain_row(model, X.iloc[i]).endswith(f"Prediction: {predicted[i]}")


@pytest.mark.parametrize(
    ("row", "message"),
    [({"age": 1}, "no value for the column 'town'"), ([1], "has 1 values"), (np.zeros((2, 2)), "Pass one row, not 2")],
)
def test_invalid_rows_are_rejected(row, message):
    X = [[20, 1], [30, 2]] if isinstance(row, np.ndarray) else {"age": [20, 30], "town": [1, 2]}
    with pytest.raises(ValueError, match=message):
        spinney.explain_row(spinney.DecisionTreeClassifier().fit(X, [0, 1]), row)


# ---- split tables -----------------------------------------------------------------------------------------------

LOANS = pd.DataFrame(
    [
        (22, "no", "no", 28, "male", "bad"),
        (46, "no", "yes", 32, "female", "bad"),
        (24, "yes", "yes", 24, "male", "bad"),
        (25, "no", "no", 27, "male", "bad"),
        (29, "yes", "yes", 32, "female", "bad"),
        (45, "yes", "yes", 30, "female", "good"),
        (63, "yes", "yes", 58, "male", "good"),
        (36, "yes", "no", 52, "male", "good"),
        (23, "no", "yes", 40, "female", "good"),
        (50, "yes", "yes", 28, "female", "good"),
    ],
    columns=["age", "married", "house", "income", "gender", "class"],
)


def test_split_table_of_a_hand_computed_example():
    X, y = LOANS.drop(columns="class"), LOANS["class"]
    half = spinney.split_table(X, y == "bad", "income", criterion="squared_error")  # p (1 - p)
    assert np.round(half.columns["gain"], 2).tolist() == [0.03, 0.06, 0.04, 0.01, 0.11, 0.06, 0.03]
    gini = spinney.split_table(X, y, "income")  # 2 p (1 - p)
    np.testing.assert_allclose(np.array(gini.columns["gain"]), 2 * np.array(half.columns["gain"]))
    assert half.best["cut"] == "income ≤ 36"
    assert len(str(half).splitlines()) == len(half) + 2
    assert str(half).count("← best") == 1


@pytest.mark.parametrize("column", ["town", "size", "price", "member"])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification", "chi2", "gain_ratio"])
def test_the_best_split_is_the_root_of_a_stump(shop, column, criterion):
    X, y = shop
    y = np.where(y == "low", "low", "other") if column == "town" else y
    X = X[[column]]
    weight = np.random.default_rng(1).integers(1, 4, size=len(X))
    stump = spinney.DecisionTreeClassifier(max_depth=1, criterion=criterion).fit(X, y, weight)
    best = spinney.split_table(X, y, column, criterion=criterion, sample_weight=weight).best
    assert_same_split(stump, best)


@pytest.mark.parametrize("column", ["town", "size", "price", "member"])
@pytest.mark.parametrize("criterion", ["squared_error", "friedman_mse", "poisson"])
def test_the_best_regression_split_is_the_root_of_a_stump(shop, column, criterion):
    X, y = shop
    target = np.array([len(label) + len(str(town)) for label, town in zip(y, X["town"], strict=True)], dtype=float)
    stump = spinney.DecisionTreeRegressor(max_depth=1, criterion=criterion).fit(X[[column]], target)
    assert_same_split(stump, spinney.split_table(X, target, column, criterion=criterion).best)


def assert_same_split(stump, best):
    split = spinney.to_dict(stump)["tree"]["split"]
    tree = stump.tree_
    assert {int(tree.n_node_samples[1]), int(tree.n_node_samples[2])} == {best["n_left"], best["n_right"]}
    assert split["gain"] == pytest.approx(best["gain"], abs=1e-9)
    if best["threshold"] is not None:
        assert split["threshold"] == best["threshold"]
        assert best["missing"] in (None, split["missing"])


def test_multiclass_targets_try_all_sets_of_categories(shop):
    X, y = shop
    table = spinney.split_table(X.dropna(subset="town"), y[X["town"].notna()], "town")
    assert len(table) == 2 ** (len(TOWNS) - 1) - 1
    stump = spinney.DecisionTreeClassifier(max_depth=1).fit(X[["town"]][X["town"].notna()], y[X["town"].notna()])
    assert_same_split(stump, table.best)


def test_many_categories_are_searched_in_several_orders():
    rng = np.random.default_rng(3)
    town, y = rng.integers(0, 15, size=500), rng.integers(0, 3, size=500)
    table = spinney.split_table(town[:, None], y, 0, categorical=True)
    stump = spinney.DecisionTreeClassifier(max_depth=1, categorical_features=[0]).fit(town[:, None], y)
    assert_same_split(stump, table.best)


def test_errors_of_split_table():
    X = {"a": [1, 1], "b": [1, 2]}
    with pytest.raises(ValueError, match="X has no column 'c'; it has 'a', 'b'"):
        spinney.split_table(X, [0, 1], "c")
    with pytest.raises(ValueError, match="a position below 2, not 2"):
        spinney.split_table(X, [0, 1], 2)
    with pytest.raises(ValueError, match="criterion must be one of gini"):
        spinney.split_table(X, [0, 1], "a", criterion="twoing")
    with pytest.raises(ValueError, match="has only one value"):
        _ = spinney.split_table(X, [0, 1], "a").best
    assert len(spinney.split_table(X, [0, 1], "a")) == 0
    assert "before the split: 0.5" in str(spinney.split_table(X, [0, 1], "a"))
    with pytest.raises(ValueError, match="y has several columns"):
        spinney.split_table(X, [[0, 1], [1, 0]], "a")


def test_split_tables_to_frames(shop):
    X, y = shop
    table = spinney.split_table(X, y, "price")
    assert len(table.to_frame("polars")) == len(table.to_frame("pandas")) == len(table)


def test_date_splits_of_rpart_are_strict():
    days = pd.date_range("2020-01-01", periods=40, freq="D")
    model = spinney.DecisionTreeRegressor(max_depth=1, dialect="rpart").fit({"day": days}, np.arange(40) >= 25)
    text = spinney.export_text(model, show_missing=False)
    assert "day < 2020-01-26" in text
    assert "day ≥ 2020-01-26" in text
