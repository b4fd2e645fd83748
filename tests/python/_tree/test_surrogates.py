"""Surrogate and competitor splits: found, ranked and followed as by the reference implementation; read and saved."""

import contextlib
import io
import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle import surrogates as reference
from oracle.data import continuous_table, target_for
from oracle.models import CRITERIA, assert_identical, bits, spinney_tree
from oracle.saved import assert_same_model as assert_same_saved
from oracle.saved import through_bytes
from oracle.surrogates import check_surrogate_tree
from sklearn.utils.estimator_checks import parametrize_with_checks
from spinney.inspect.text.reader import TreeReader
from sweep import covering, examples

NAN = np.nan
WAYS = [
    {"missing_fallback": fallback, "surrogate_style": style}
    for fallback, style in itertools.product(["majority", "stop", "ignore"], ["all", "present"])
]


def table(seed, n=60, n_columns=4, share=0.25, categories=()):
    """Columns that imitate one another, with missing values everywhere; small whole numbers, so that ties abound."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    X = np.round(2 * common[:, None] + rng.normal(size=(n, n_columns))).clip(-4, 4)
    for j in categories:
        X[:, j] = (X[:, j] + 4) % 5
    y = (common + 0.5 * rng.normal(size=n) > 0).astype(int) + (common > 1)
    X[rng.random(X.shape) < share] = NAN
    return X, y


def same_splits(first, second):
    a, b = first.tree_.splits, second.tree_.splits
    assert a.keys() == b.keys()
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


# ---- the reference -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    *covering(criterion=["gini", "entropy", "misclassification", "squared_error", "absolute_error"], way=WAYS)
)
def test_every_node_is_that_of_the_reference(criterion, way):
    for seed in range(3):
        X, y = table(seed)
        y = y if criterion in ("gini", "entropy", "misclassification") else X[:, 0] * 0 + np.nan_to_num(X).sum(axis=1)
        model = spinney_tree(criterion, missing="surrogate", min_samples_leaf=3, max_competitors=2, **way)
        model.fit(X, np.nan_to_num(y))
        assert (model.tree_.splits["role"] == 2).any()
        check_surrogate_tree(model, X, np.nan_to_num(y))


@examples(25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 40),
    n_columns=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.1, 0.4, 0.8]),
    weights=st.sampled_from(["none", "whole", "quarters"]),
    with_categories=st.booleans(),
    is_class=st.booleans(),
    way=st.sampled_from(WAYS),
    max_surrogates=st.sampled_from([0, 1, 2, 5]),
    min_samples_leaf=st.integers(1, 3),
)
def test_small_tables_agree_with_the_reference(
    seed, n, n_columns, share, weights, with_categories, is_class, way, max_surrogates, min_samples_leaf
):
    categories = tuple(range(0, n_columns, 2)) if with_categories else ()
    X, y = table(seed, n, n_columns, share, categories)
    rng = np.random.default_rng(seed)
    w = {"none": None, "whole": rng.integers(1, 4, n) * 1.0, "quarters": rng.integers(1, 9, n) / 4}[weights]
    kind = spinney.DecisionTreeClassifier if is_class else spinney.DecisionTreeRegressor
    y = np.minimum(y, 1) if is_class else rng.integers(-8, 8, n) / 4
    model = kind(
        missing="surrogate",
        max_surrogates=max_surrogates,
        min_samples_leaf=min_samples_leaf,
        max_competitors=2,
        categorical_features=list(categories) or None,
        **way,
    ).fit(X, y, sample_weight=w)
    check_surrogate_tree(model, recoded(model, X, categories), y, w, table=X, categories=categories)
    if (model.tree_.splits["role"] == 2).any():
        np.testing.assert_allclose(model.feature_importances_, reference.importances(model), rtol=1e-12)


def recoded(model, X, categories):
    """Return the table with the model's codes in place of the categories."""
    X = X.copy()
    for j in categories:
        values = list(model.schema_.features[j].categories)
        X[:, j] = [NAN if v != v else values.index(v) for v in X[:, j]]
    return X


def test_weights_that_are_no_whole_numbers():
    X, y = table(5, n=80)
    w = np.random.default_rng(5).uniform(0.2, 3.0, 80)
    w[::7] = 0
    model = spinney.DecisionTreeClassifier(missing="surrogate", min_samples_leaf=3).fit(X, y, sample_weight=w)
    check_surrogate_tree(model, X, y, w)


# ---- what must hold ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_without_missing_values_it_is_the_same_tree(criterion):
    X = continuous_table(3, n=90, categories={1: 4})
    y = target_for(criterion, X, 3, n_classes=3)
    options = {"categorical_features": [1], "min_samples_leaf": 2}
    plain = spinney_tree(criterion, **options).fit(X, y)
    model = spinney_tree(criterion, missing="surrogate", **options).fit(X, y)
    assert_identical(plain, model)
    np.testing.assert_array_equal(bits(plain, X), bits(model, X))


@pytest.mark.parametrize(
    *covering(criterion=CRITERIA, options=[{}, {"feature_costs": [2, 1, 2, 1]}, {"max_leaf_nodes": 7}, {"max_bins": 4}])
)
def test_competitors_change_nothing(criterion, options):
    for seed in range(4):
        X = np.round(continuous_table(seed, n=90, missing=True, categories={1: 4}), 1)
        y = target_for(criterion, X, seed, n_classes=3)
        kept = {"categorical_features": [1], **options}
        plain = spinney_tree(criterion, **kept).fit(X, y)
        model = spinney_tree(criterion, max_competitors=3, **kept).fit(X, y)
        assert_identical(plain, model)
        np.testing.assert_allclose(plain.feature_importances_, model.feature_importances_, rtol=1e-12)
        assert (model.tree_.splits["role"] == 1).any()


def test_competitors_do_not_change_where_categories_go_that_a_node_has_not_seen():
    rng = np.random.default_rng(0)
    for unseen in ("missing", "other"):
        X = pd.DataFrame({"a": rng.normal(size=60), "c": rng.choice([*"pqrst", None], 60)})
        y = rng.integers(0, 2, 60)
        new = pd.DataFrame({"a": rng.normal(size=200), "c": rng.choice([*"pqrstz"], 200)})
        plain = spinney.DecisionTreeClassifier(unseen=unseen).fit(X, y)
        model = spinney.DecisionTreeClassifier(unseen=unseen, max_competitors=2).fit(X, y)
        np.testing.assert_array_equal(plain.apply(new), model.apply(new))


@pytest.mark.parametrize("way", WAYS[:3:2], ids=lambda way: way["missing_fallback"])
def test_results_are_bit_identical_for_any_number_of_threads(way):
    X, y = table(8, n=3000, n_columns=6)
    y = y + np.nan_to_num(X[:, 1])
    models = [
        spinney.DecisionTreeRegressor(missing="surrogate", max_competitors=2, min_samples_leaf=5, n_jobs=k, **way)
        for k in (1, 2, 7)
    ]
    for model in models:
        model.fit(X, y)
        assert_identical(models[0], model)
        assert same_splits(models[0], model)
        np.testing.assert_array_equal(models[0].apply(X), model.apply(X))


def test_frame_libraries_give_the_same_tree():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    frames = [X, pl.from_pandas(X), pl.from_pandas(X).to_arrow()]
    models = [spinney.DecisionTreeClassifier(missing="surrogate").fit(frame, list(y)) for frame in frames]
    for model, frame in zip(models, frames, strict=True):
        assert_identical(models[0], model)
        assert same_splits(models[0], model)
        np.testing.assert_array_equal(model.predict(frame), models[0].predict(X))


def test_a_row_twice_is_a_row_of_weight_two():
    for seed in range(5):
        X, y = table(seed, n=50, n_columns=3)
        twice = np.random.default_rng(seed).integers(1, 3, 50)
        # two rows that disagree count as two: where rows are counted, the trees must not come near the limit
        options = {"missing": "surrogate", "min_samples_leaf": 1, "max_depth": 2}
        weighted = spinney.DecisionTreeClassifier(**options).fit(X, y, sample_weight=twice)
        repeated = spinney.DecisionTreeClassifier(**options).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
        assert_identical(weighted, repeated, but=("n_node_samples",))
        a, b = weighted.tree_.splits, repeated.tree_.splits
        for name in ("feature", "threshold", "role", "flags", "improve", "adjusted"):
            np.testing.assert_array_equal(a[name], b[name])


def test_rows_of_weight_zero_are_not_there():
    X, y = table(2, n=60)
    w = np.arange(60) % 3 > 0
    all_rows = spinney.DecisionTreeClassifier(missing="surrogate").fit(X, y, sample_weight=w)
    some = spinney.DecisionTreeClassifier(missing="surrogate").fit(X[w], y[w])
    assert_identical(all_rows, some)
    assert same_splits(all_rows, some)


@pytest.mark.parametrize("is_category", [False, True])
def test_a_copy_of_a_column_stands_in_for_it(is_category):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 3))
    if is_category:
        X[:, 0] = rng.integers(0, 5, 120)
    X = np.column_stack([X, X[:, 0]])
    y = (X[:, 0] > 0.5) * 3.0 + X[:, 0] + 0.1 * X[:, 1]
    options = {"categorical_features": [0, 3] if is_category else None, "min_samples_leaf": 4}
    model = spinney.DecisionTreeRegressor(missing="surrogate", **options).fit(X, y)
    splits = model.tree_.splits
    firsts = 0
    for node in np.flatnonzero(model.tree_.feature == 0):
        begin, end = splits["begin"][node : node + 2]
        first = next(s for s in range(begin, end) if splits["role"][s] == 2)
        assert splits["feature"][first] == 3
        assert splits["improve"][first] == splits["adjusted"][first] == 1.0
        firsts += 1
    assert firsts > 3
    blanked = X.copy()
    blanked[:, 0] = NAN
    np.testing.assert_array_equal(model.predict(X), model.predict(blanked))


# ---- rows that stop ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["stop", "ignore"])
def test_rows_that_stop_get_the_value_of_the_node(fallback):
    X, y = table(1, n=120)
    model = spinney.DecisionTreeRegressor(missing="surrogate", missing_fallback=fallback, min_samples_leaf=4).fit(X, y)
    blank = np.full((1, 4), NAN)
    assert model.apply(blank).tolist() == [0]
    assert model.predict(blank) == pytest.approx(y.mean())
    assert model.decision_path(blank).toarray().tolist() == [[1] + [0] * (model.tree_.node_count - 1)]
    nodes = model.apply(X)
    assert (~model.tree_.is_leaf[nodes]).any()
    np.testing.assert_array_equal(model.predict(X), model.tree_.value[nodes, 0, 0])
    path = model.decision_path(X).toarray()
    np.testing.assert_array_equal(path.sum(axis=0), model.tree_.n_node_samples)
    for row in range(len(X)):
        assert path[row].nonzero()[0].max() == nodes[row]
        assert path[row].sum() == model.tree_.depth[nodes[row]] + 1
    handle = model.to_predictor()
    assert [handle.apply(list(row)) for row in X] == nodes.tolist()


def test_only_rows_that_nothing_places_stop():
    X, y = table(1, n=120)
    model = spinney.DecisionTreeClassifier(missing="surrogate", missing_fallback="stop", max_depth=1).fit(X, y)
    own = X[:, model.tree_.feature[0]]
    others = [s for s in range(len(model.tree_.splits["role"])) if model.tree_.splits["role"][s] == 2]
    columns = model.tree_.splits["feature"][others]
    lost = np.isnan(own) & np.isnan(X[:, columns]).all(axis=1)
    np.testing.assert_array_equal(model.apply(X) == 0, lost)


# ---- beside the other parameters ---------------------------------------------------------------------------------


OTHER_PARAMETERS = [
    {"max_leaf_nodes": 6},
    {"max_features": 2, "random_state": 0},
    {"max_bins": 4},
    {"splitter": "random", "random_state": 0},
    {"interaction_cst": [[0, 1], [2, 3]]},
    {"ccp_alpha": 0.01},
    {"feature_costs": [1, 2, 3, 4]},
    {"min_impurity_decrease": 0.01},
    {"min_weight_fraction_leaf": 0.05},
    {"shrinkage": 5.0},
    {"prune": "cv", "cv": 3, "random_state": 0},
    {"validation_fraction": 0.2, "random_state": 0},
]


@pytest.mark.parametrize(
    *covering(
        options=OTHER_PARAMETERS,
        way=WAYS[::2],
        kind=[spinney.DecisionTreeClassifier, spinney.DecisionTreeRegressor],
    )
)
def test_it_goes_with_the_other_parameters(kind, way, options):
    X, y = table(6, n=150)
    model = kind(missing="surrogate", min_samples_leaf=2, **way, **options).fit(X, y)
    assert model.get_n_leaves() > 1
    resting = model.apply(X)
    reader = TreeReader(model)
    for row, node in zip(X[:40], resting[:40], strict=True):
        assert list(reader.walk(values=row.tolist()))[-1].node == node
    if way["missing_fallback"] == "majority":
        assert model.tree_.is_leaf[resting].all()
    assert model.feature_importances_.sum() == pytest.approx(1)
    if "max_leaf_nodes" in options:
        assert model.get_n_leaves() <= 6
    assert model.score(X, y) > 0.3


@pytest.mark.parametrize("direction", [-1, 1])
def test_monotone_constraints_hold(direction):
    X, y = table(7, n=200)
    y = direction * y + np.random.default_rng(7).normal(size=200)
    model = spinney.DecisionTreeRegressor(missing="surrogate", monotonic_cst=[direction, 0, 0, 0], max_depth=5)
    model.fit(X, y)
    rows = X[:60].copy()
    answers = []
    for value in np.arange(-4.5, 4.6, 0.5):
        rows[:, 0] = value
        answers.append(model.predict(rows))
    assert (direction * np.diff(answers, axis=0) >= -1e-12).all()
    assert np.ptp(answers) > 0


def test_several_outputs():
    X, y = table(9, n=100)
    model = spinney.DecisionTreeRegressor(missing="surrogate", min_samples_leaf=3)
    check_surrogate_tree(model.fit(X, np.column_stack([y, -2.0 * y])), X, np.column_stack([y, -2.0 * y]))
    classes = spinney.DecisionTreeClassifier(missing="surrogate", min_samples_leaf=3)
    both = np.column_stack([y, y > 0]).astype(int)
    check_surrogate_tree(classes.fit(X, both), X, both)


def test_a_criterion_of_your_own():
    X, y = table(9, n=60)
    criterion = spinney.LossCriterion(lambda y, c: (y - c) ** 2)
    own = spinney.DecisionTreeRegressor(criterion=criterion, missing="surrogate", min_samples_leaf=5).fit(X, y)
    plain = spinney.DecisionTreeRegressor(missing="surrogate", min_samples_leaf=5).fit(X, y)
    np.testing.assert_array_equal(own.tree_.feature, plain.tree_.feature)
    np.testing.assert_array_equal(own.tree_.splits["feature"], plain.tree_.splits["feature"])
    np.testing.assert_allclose(own.predict(X), plain.predict(X), atol=1e-5)


def test_gain_ratio_chooses_by_its_rule_among_rows_with_a_value():
    X, y = table(3, n=200)
    model = spinney.DecisionTreeClassifier(criterion="gain_ratio", missing="surrogate", max_depth=1, max_competitors=3)
    model.fit(X, y)
    splits, ratios, gains = model.tree_.splits, {}, {}
    for s in np.flatnonzero(splits["role"] < 2):
        column, known = splits["feature"][s], ~np.isnan(X[:, splits["feature"][s]])
        share = np.mean(X[known, column] <= splits["threshold"][s])
        gains[column] = splits["improve"][s]
        ratios[column] = splits["improve"][s] / -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
    assert len(gains) == 4
    eligible = [j for j in gains if gains[j] >= np.mean(list(gains.values())) - 1e-9]
    assert model.tree_.feature[0] == max(eligible, key=lambda j: ratios[j])


@pytest.mark.slow
@parametrize_with_checks(
    [
        spinney.DecisionTreeClassifier(missing="surrogate", max_competitors=2),
        spinney.DecisionTreeRegressor(missing="surrogate", missing_fallback="stop"),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- reading -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def penguins():
    return spinney.datasets.load_penguins(as_frame="pandas")


def penguin_tree(penguins, **options):
    return spinney.DecisionTreeClassifier(missing="surrogate", max_depth=2, **options).fit(*penguins)


def test_text_names_the_first_surrogate(penguins):
    lines = penguin_tree(penguins).export_text().splitlines()
    assert lines[1].startswith("├── flipper_length_mm ≤ 206.5 (if missing: bill_depth_mm > 16.35, …): 214 rows")
    assert lines[4].startswith("└── flipper_length_mm > 206.5 (if missing: bill_depth_mm ≤ 16.35, …): 130 rows")
    one = penguin_tree(penguins, max_surrogates=1).export_text()
    assert "(if missing: bill_depth_mm > 16.35):" in one
    assert "or missing" not in one
    assert "missing" not in penguin_tree(penguins).export_text(show_missing=False)
    assert "(or missing)" in penguin_tree(penguins, max_surrogates=0).export_text()


def test_surrogates_and_competitors_are_printed_on_demand(penguins):
    model = penguin_tree(penguins, max_competitors=1)
    plain = model.export_text()
    assert "surrogate:" not in plain
    assert "competitor:" not in plain
    lines = model.export_text(surrogates=True, competitors=True).splitlines()
    assert lines[1] == "│   competitor: bill_length_mm ≤ 42.35 (gain 0.3093, 342 rows)"
    assert lines[2] == "│   surrogate: bill_depth_mm > 16.35 (agrees 93%, adjusted 82%, places 0 rows)"
    assert [line for line in lines if "surrogate:" not in line and "competitor:" not in line] == plain.splitlines()
    assert "surrogate:" not in model.export_text(competitors=True)


def test_text_states_which_rows_stop(penguins):
    stop = penguin_tree(penguins, missing_fallback="stop").export_text().splitlines()
    assert stop[0].endswith("→ Adelie if flipper_length_mm and its surrogates are missing")
    ignore = penguin_tree(penguins, missing_fallback="ignore").export_text().splitlines()
    assert ignore[0].endswith("→ Adelie if flipper_length_mm is missing")
    assert "(if missing" not in "".join(ignore)


def test_a_row_is_explained_by_the_surrogate_that_decided(penguins):
    row = dict.fromkeys(penguins[0].columns)
    known = row | {"body_mass_g": 4000.0}
    text = spinney.explain_row(penguin_tree(penguins), known).splitlines()
    assert text[1].startswith(
        "flipper_length_mm is missing; its surrogate body_mass_g is 4000, so body_mass_g ≤ 4525 replaces "
        "flipper_length_mm ≤ 206.5: 214 rows"
    )
    assert text[2].startswith("bill_length_mm is missing, and so is its surrogate, so with most rows")
    stopped = spinney.explain_row(penguin_tree(penguins, missing_fallback="stop"), row).splitlines()
    assert stopped[1:] == [
        "flipper_length_mm is missing, and so are its surrogates, so the row stops here",
        "Prediction: Adelie",
    ]
    ignored = spinney.explain_row(penguin_tree(penguins, missing_fallback="ignore"), known).splitlines()
    assert ignored[1] == "flipper_length_mm is missing, so the row stops here"


def town_tree(**options):
    """The first split is by town; Ely and Rye go left, Wem right, and Oslo occurs below the right branch only."""
    X = pd.DataFrame({"town": [*["Ely", "Rye", "Wem"] * 8, "Oslo"], "size": [*[1.0, 2.0, 9.0] * 8, 9.5]})
    y = [*[0, 0, 1] * 8, 1]
    w = [1.0] * 24 + [0.0]
    return spinney.DecisionTreeClassifier(missing="surrogate", feature_costs=[1, 9], **options).fit(X, y, w)


def test_a_category_that_the_node_has_not_seen_is_as_good_as_missing():
    model = town_tree()
    assert model.schema_.features[0].categories == ("Ely", "Oslo", "Rye", "Wem")
    assert (
        model.export_text()
        .splitlines()[1]
        .startswith("├── town in {Ely, Rye} (if missing or another: size ≤ 5.5): 16 rows")
    )
    oslo = {"town": "Oslo", "size": 1.0}
    assert (
        spinney.explain_row(model, oslo)
        .splitlines()[1]
        .startswith(
            "town is Oslo, which did not occur at fit; its surrogate size is 1, "
            "so size ≤ 5.5 replaces town in {Ely, Rye}: 16"
        )
    )
    assert model.predict(pd.DataFrame([oslo])) == [0]
    assert model.predict(pd.DataFrame([oslo | {"size": 9.0}])) == [1]
    split = spinney.to_dict(model)["tree"]["split"]
    assert (split["categories"], split["right_categories"]) == (["Ely", "Rye"], ["Wem"])
    stop = town_tree(missing_fallback="stop")
    assert stop.export_text().splitlines()[0].endswith("if town is missing or another and its surrogates are missing")


def walk_dict(split, node, row):
    """Where a row goes, from `to_dict` alone; None if it stops."""

    def side_of(asked, is_own):
        value = row[asked["index"]]
        if value is None or value != value:
            return None
        if asked["categories"] is None:
            below = "left" if is_own else asked["below"]
            return below if value <= asked["threshold"] else {"left": "right", "right": "left"}[below]
        if value in asked["categories"]:
            return "left"
        if "right_categories" in asked and value not in asked["right_categories"]:
            return None
        return "right"

    for k, asked in enumerate([split, *split.get("surrogates", [])]):
        side = side_of(asked, k == 0)
        if side is not None:
            return node[side]
    return None if split["missing"] == "stop" else node[split["missing"]]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS[::2], ids=lambda way: way["missing_fallback"])
@pytest.mark.parametrize("seeds", [(0, 1), (2, 3)])
def test_every_reader_agrees_with_apply(way, seeds):
    for seed in seeds:
        X, y = table(seed, n=80, categories=(1,))
        model = spinney.DecisionTreeClassifier(missing="surrogate", categorical_features=[1], min_samples_leaf=2, **way)
        model.fit(X, y)
        nodes = model.apply(X)
        rules = model.rules()
        expected = [next((i for i, r in enumerate(rules) if r.node == node), -1) for node in nodes]
        assert rules.apply(X).tolist() == expected
        assert (way["missing_fallback"] == "majority") == (-1 not in expected)
        root, reader = spinney.to_dict(model)["tree"], TreeReader(model)
        for row, resting in zip(X.tolist(), nodes, strict=True):
            at = root
            while "split" in at:
                below = walk_dict(at["split"], at, row)
                if below is None:
                    break
                at = below
            assert at["node"] == resting
            assert list(reader.walk(values=reader.row_values(row)))[-1].node == resting
            assert spinney.explain_row(model, row).endswith(f"Prediction: {at['prediction']}")
        frame = spinney.to_frame(model, "pandas")
        assert ("stop" in set(frame["missing"])) == (way["missing_fallback"] != "majority")
        spinney.tree_svg(model)


def test_rules_say_what_they_leave_open(penguins):
    assert str(penguin_tree(penguins).rules()).endswith("follow surrogate splits, then most rows.")
    assert str(penguin_tree(penguins, missing_fallback="stop").rules()).endswith(
        "follow surrogate splits, or stop where these are missing too."
    )
    assert str(penguin_tree(penguins, missing_fallback="ignore").rules()).endswith("stop at the split.")
    assert "surrogate" not in str(penguin_tree(penguins).rules(show_missing=False))
    assert "surrogate" not in str(spinney.DecisionTreeClassifier(max_depth=2).fit(*penguins).rules())


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_splits_frame_lists_every_split(penguins, backend):
    model = penguin_tree(penguins, max_competitors=1, max_surrogates=2)
    frame = spinney.splits_frame(model, backend)
    columns = {name: list(frame[name]) for name in frame.columns}
    assert columns["role"][:4] == ["split", "competitor", "surrogate", "surrogate"]
    assert columns["condition"][:3] == ["flipper_length_mm ≤ 206.5", "bill_length_mm ≤ 42.35", "bill_depth_mm > 16.35"]
    assert columns["n"][:4] == [342, 342, 0, 0]
    assert columns["agreement"][2] == pytest.approx(319 / 342)
    assert columns["adjusted_agreement"][2] == pytest.approx((319 - 213) / (342 - 213))
    assert columns["gain"][0] > columns["gain"][1] > 0
    assert len(columns["node"]) == len(model.tree_.splits["role"])


def test_splits_frame_of_a_plain_tree_has_its_splits(penguins):
    model = spinney.DecisionTreeClassifier(max_depth=2).fit(*penguins)
    frame = spinney.splits_frame(model, "pandas")
    assert set(frame["role"]) == {"split"}
    np.testing.assert_allclose(frame["gain"], spinney.to_frame(model, "pandas")["gain"].dropna())


def test_a_picture_names_the_surrogates(penguins):
    picture = spinney.tree_svg(penguin_tree(penguins))
    assert "missing: bill_depth_mm" in picture
    assert "or missing" not in picture
    assert "(if missing: bill_depth_mm &gt; 16.35, …)" in picture
    assert "missing" not in spinney.tree_svg(penguin_tree(penguins), show_missing=False).split("<title>")[0]


def test_a_partition_of_rows_that_stop():
    X, y = table(3, n=80)
    X[:, 2] = np.where(np.isnan(X[:, 0]), NAN, 3 * y)
    model = spinney.DecisionTreeClassifier(missing="surrogate", missing_fallback="ignore", max_depth=3).fit(X, y)
    assert len(np.unique(model.apply(X)[np.isnan(X[:, 0])])) > 0
    ax = spinney.plot_partition(model, X, y, features=[0, 1])
    assert len(ax.collections) + len(ax.images) + len(ax.patches) > 0
    assert sum(len(points.get_offsets()) for points in ax.collections if hasattr(points, "get_offsets")) > 0


def test_a_split_of_no_value_gains_nothing_for_rows_that_stay():
    X, y = table(1, n=120)
    model = spinney.DecisionTreeClassifier(missing="surrogate", missing_fallback="ignore", max_depth=1).fit(X, y)
    frame, splits = spinney.to_frame(model, "pandas"), model.tree_.splits
    assert frame["n"][1] + frame["n"][2] < frame["n"][0]
    by_hand = frame["impurity"][0] * (frame["n"][1] + frame["n"][2]) - (frame["impurity"] * frame["n"])[1:].sum()
    assert frame["gain"][0] == pytest.approx(by_hand / frame["n"][0])
    assert splits["count"][0] == frame["n"][1] + frame["n"][2]


# ---- importances -------------------------------------------------------------------------------------------------


def test_importances_count_surrogates_and_not_competitors(penguins):
    model = penguin_tree(penguins, max_competitors=3)
    np.testing.assert_allclose(model.feature_importances_, reference.importances(model), rtol=1e-12)
    assert model.feature_importances_[list(penguins[0].columns).index("bill_depth_mm")] > 0.1
    without = penguin_tree(penguins, max_surrogates=0)
    assert np.count_nonzero(without.feature_importances_) == 3
    frame = spinney.importance_frame(model, "pandas").set_index("column")["importance"]
    np.testing.assert_allclose(frame[list(penguins[0].columns)], model.feature_importances_)


def test_importances_of_rparts_trees_are_rparts(penguins):
    model = spinney.DecisionTreeClassifier.rpart(xval=0).fit(*penguins)
    total = model.rpart_.importance(model.n_features_in_)
    np.testing.assert_allclose(model.feature_importances_, total / total.sum())
    frame = spinney.importance_frame(model, "pandas").set_index("column")["importance"]
    np.testing.assert_allclose(frame[list(penguins[0].columns)], model.feature_importances_)
    anova = spinney.DecisionTreeRegressor.rpart(xval=0).fit(penguins[0], np.arange(344.0))
    by_hand = anova.rpart_.importance(anova.n_features_in_)
    np.testing.assert_allclose(anova.feature_importances_, by_hand / by_hand.sum())


def test_rparts_cuts_are_written_as_rparts(penguins):
    model = spinney.DecisionTreeClassifier.rpart(xval=0).fit(*penguins)
    assert "flipper_length_mm < 206.5 (if missing: bill_depth_mm ≥ 16.35, …)" in model.export_text()
    assert "flipper_length_mm ≥ 206.5" in model.export_text()
    row = dict.fromkeys(penguins[0].columns) | {"flipper_length_mm": 206.5}
    assert "flipper_length_mm is 206.5, so flipper_length_mm ≥ 206.5" in spinney.explain_row(model, row)


# ---- keeping -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS[::2], ids=lambda way: way["missing_fallback"])
def test_a_tree_with_surrogates_is_kept_whole(penguins, way):
    X, y = penguins
    model = spinney.DecisionTreeClassifier(missing="surrogate", max_competitors=2, **way).fit(X, y)
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.5)
    for other in (through_bytes(model), pickle.loads(pickle.dumps(model))):
        assert_same_saved(model, other, holes)
        assert same_splits(model, other)
        assert other.export_text(surrogates=True) == model.export_text(surrogates=True)
    predictor = through_bytes(model, spinney.load_predictor)
    np.testing.assert_array_equal(predictor.predict(holes), model.predict(holes))
    rows = holes.astype(object).where(holes.notna(), None).to_dict("records")
    assert [predictor.predict_one(row) for row in rows] == model.predict(holes).tolist()
    handle = model.to_predictor()
    assert [handle.predict(row) for row in rows] == model.predict(holes).tolist()


def printed(report, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        report(*arguments)
    return text.getvalue()


def rpart_models(penguins):
    X, y = penguins
    rng = np.random.default_rng(0)
    numbers = X.drop(columns=["sex"])
    yield spinney.DecisionTreeClassifier.rpart(cp=0.001, random_state=0).fit(X, y)
    yield spinney.DecisionTreeClassifier.rpart(xval=0, loss=1 - np.eye(3), prior=[0.2, 0.3, 0.5]).fit(X, y)
    yield spinney.DecisionTreeRegressor.rpart(usesurrogate=1, random_state=0).fit(numbers, rng.normal(size=344))
    counts = np.column_stack([rng.uniform(1, 3, 344), rng.poisson(2, 344)])
    yield spinney.DecisionTreeRegressor.rpart(method="poisson", cp=0, xval=5, random_state=0).fit(X, counts)
    times = np.column_stack([rng.uniform(1, 3, 344), rng.integers(0, 2, 344)])
    yield spinney.DecisionTreeRegressor.rpart(method="exp", cp=0, xval=5, random_state=0).fit(X, times)
    yield spinney.DecisionTreeRegressor.rpart(random_state=0).fit(X, np.ones(344))


@pytest.mark.slow
def test_the_record_of_rpart_is_kept(penguins):
    for model in rpart_models(penguins):
        for other in (through_bytes(model), pickle.loads(pickle.dumps(model))):
            assert printed(other.summary) == printed(model.summary)
            assert printed(other.printcp) == printed(model.printcp)
            pd.testing.assert_frame_equal(other.rpart_frame(), model.rpart_frame())
            pd.testing.assert_frame_equal(other.rpart_splits(), model.rpart_splits())
            np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
            assert other.rpart_.tree is other.tree_
            cut = float(np.median(model.rpart_.complexity))
            assert printed(other.pruned(cp=cut).summary) == printed(model.pruned(cp=cut).summary)
            again = through_bytes(other.pruned(cp=cut))
            assert printed(again.summary) == printed(model.pruned(cp=cut).summary)


def test_rows_that_rpart_dropped_are_remembered(penguins):
    X, y = penguins
    X = X.copy()
    X.iloc[5] = None
    model = spinney.DecisionTreeClassifier.rpart(xval=0).fit(X, y)
    assert "(1 rows dropped" in printed(model.summary)
    assert "(1 rows dropped" in printed(through_bytes(model).summary)
