"""Forests that split on random combinations of columns."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import spinney
from oracle.saved import through_bytes
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from spinney._data import Schema
from spinney._data.combinations import Combinations

KINDS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor]


def mixed(n=120, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": random.normal(size=n), "b": random.normal(size=n) * 100 + 1000})
    frame["kind"] = random.choice(["u", "v", "w"], size=n)
    frame["c"] = random.integers(0, 9, size=n)
    frame["flag"] = random.random(n) < 0.5
    y = frame["a"] + (frame["b"] - 1000) / 100 + (frame["kind"] == "u") > 0.3
    frame.loc[random.random(n) < 0.1, "a"] = np.nan
    return frame, y.to_numpy().astype(int)


def small(kind=RandomForestClassifier, **parameters):
    return kind(**({"n_estimators": 8, "random_state": 3, "oblique": 12} | parameters))


def split_on(model, X):
    """Columns that trees split on, computed the slow way from the names of the combinations."""
    frame, columns = pd.DataFrame(X), []
    for feature in model.schema_.split_features:
        if feature.name in frame.columns:
            columns.append(pd.Categorical(frame[feature.name], feature.categories).codes)
            continue
        total, words = 0.0, feature.name.replace("−", "-").replace(" - ", " + -").split(" + ")
        for word in words:
            coefficient, name = word.split(" ")
            total = total + float(coefficient) * frame[name].astype(float)
        columns.append(np.asarray(total))
    return columns


def test_the_name_of_a_combination_is_its_formula():
    X, y = mixed()
    model = small().fit(X, y)
    assert len(model.schema_.split_features) == 13
    assert model.schema_.split_features[0].name == "kind"
    table = model.schema_.encode(spinney._data.read_table(X))
    for j, expected in enumerate(split_on(model, X)):
        np.testing.assert_array_equal(np.asarray(table.column(j)), expected)


def test_a_tree_of_the_forest_is_a_tree_on_the_combinations():
    X, y = mixed()
    # leaves of twenty rows: in smaller nodes columns are equally good, and of these a forest takes any
    model = small(max_features=None, min_samples_leaf=20).fit(X, y)
    columns = split_on(model, X)
    names = [f"p{j}" for j in range(len(columns))]
    pool = pd.DataFrame(dict(zip(names, columns, strict=True)))
    pool["p0"] = np.array(["u", "v", "w"])[columns[0]]
    for t in range(3):
        counts = np.bincount(model.estimators_samples_[t], minlength=len(X))
        alone = spinney.DecisionTreeClassifier(min_samples_leaf=20, shrinkage=model.shrinkage_).fit(pool, y, counts)
        assert alone.tree_.node_count >= 5
        np.testing.assert_array_equal(model.forest_.tree(t).feature, alone.tree_.feature)
        np.testing.assert_array_equal(model[t].predict_proba(X), alone.predict_proba(pool))


def test_combinations_are_a_function_of_the_seed_and_of_their_number():
    X = np.random.default_rng(0).normal(size=(30, 6))
    table = spinney._data.read_table(X)
    schema = Schema.learn(table)
    few, many, other = (
        Combinations.draw(schema.features, schema.encode(table), None, n, 3, seed)
        for n, seed in ((5, 1), (9, 1), (9, 2))
    )
    np.testing.assert_array_equal(few.parts, many.parts[:5])
    np.testing.assert_array_equal(few.coefficients, many.coefficients[:5])
    assert not np.array_equal(many.parts, other.parts)
    assert (np.diff(many.parts, axis=1) > 0).all()  # no column twice


@pytest.mark.parametrize(("n_columns", "n_combined"), [(6, 3), (7, 3), (40, 3), (5, 1), (2, 3)])
def test_no_column_is_left_out_that_could_be_in(n_columns, n_combined):
    X = np.random.default_rng(0).normal(size=(30, n_columns))
    table = spinney._data.read_table(X)
    schema = Schema.learn(table)
    enough = -(-n_columns // n_combined)
    for seed in range(5):
        pool = Combinations.draw(schema.features, schema.encode(table), None, 4 * enough, n_combined, seed)
        for deal in np.split(pool.parts, 4):
            assert set(deal.ravel()) == set(range(n_columns))
        assert (np.diff(pool.parts, axis=1) > 0).all()


def test_columns_that_a_small_pool_leaves_out_are_named():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 10))).rename(columns=lambda j: f"x{j}")
    forest = RandomForestRegressor(2, oblique=3, random_state=0)
    with pytest.warns(
        UserWarning, match=r"oblique=3 .* leave out 1 of 10 numeric columns.*'x\d'.* Set oblique=4 or more"
    ):
        forest.fit(X, X["x0"])
    forest.set_params(oblique=4).fit(X, X["x0"])


def test_auto_is_enough_for_all_columns():
    X = np.random.default_rng(0).normal(size=(40, 3100)).astype(np.float32)
    pool = RandomForestRegressor(2, oblique="auto", random_state=0).fit(X, X[:, 0]).schema_.pool
    assert len(np.unique(pool.parts)) == 3100
    assert len(pool) == 1034


def test_columns_and_coefficients_are_drawn_evenly():
    X = np.random.default_rng(0).normal(size=(200, 5)) * [1, 10, 100, 1e-3, 1e6]
    table = spinney._data.read_table(X)
    schema = Schema.learn(table)
    pool = Combinations.draw(schema.features, schema.encode(table), None, 5000, 2, 7)
    counts = np.bincount(pool.parts.ravel(), minlength=5)
    assert np.abs(counts - 2000).max() < 150
    standardised = pool.coefficients * X.std(axis=0)[pool.parts]
    assert np.abs(standardised).max() <= 1.01
    assert np.abs(np.mean(standardised)) < 0.03
    assert standardised.var() == pytest.approx(1 / 3, rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_files_pickles_handles_and_threads_say_the_same(kind):
    X, y = mixed()
    model = small(kind, n_jobs=1).fit(X, y)
    values = model.predict(X)
    for other in (small(kind, n_jobs=3).fit(X, y), through_bytes(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), values)
        np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
        assert [f.name for f in other.schema_.split_features] == [f.name for f in model.schema_.split_features]
    handle = model.to_predictor()
    by_name = [handle.predict(row) for row in X.replace({np.nan: None}).to_dict("records")]
    np.testing.assert_array_equal(by_name, values)
    sizes = [model.forest_.tree(t).node_count for t in range(8)]
    assert (model.apply(X).max(axis=0) < sizes).all()


def test_a_predictor_without_scikit_learn_predicts_the_same(tmp_path):
    X, y = mixed()
    model = small().fit(X, y)
    model.save(tmp_path / "model")
    predictor = spinney.load_predictor(tmp_path / "model")
    np.testing.assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    model[2].save(tmp_path / "tree")
    np.testing.assert_array_equal(spinney.load(tmp_path / "tree").predict_proba(X), model[2].predict_proba(X))


def test_every_frame_library_gives_the_same_forest():
    X, y = mixed()
    shares = [small().fit(frame, y).predict_proba(frame) for frame in (X, pl.from_pandas(X), pa.Table.from_pandas(X))]
    np.testing.assert_array_equal(shares[0], shares[1])
    np.testing.assert_array_equal(shares[0], shares[2])


def test_sparse_and_dense_give_the_same_forest():
    X = np.random.default_rng(0).poisson(0.7, size=(80, 5)).astype(float)
    y = X[:, 0] > X[:, 1]
    dense, sparse = (small().fit(table, y).predict_proba(table) for table in (X, scipy.sparse.csr_array(X)))
    np.testing.assert_array_equal(dense, sparse)


def test_blocks_of_rows_are_predicted_as_the_whole(monkeypatch):
    X, y = mixed(3000)
    model = small().fit(X.iloc[:200], y[:200])
    whole, leaves = model.predict_proba(X), model.apply(X)
    monkeypatch.setattr("spinney._data.combinations._BLOCK_VALUES", 1)
    blocks = list(model.schema_.encode_blocks(spinney._data.read_table(X)))
    assert [block.n_rows for block in blocks] == [1024, 1024, 952]
    np.testing.assert_array_equal(model.predict_proba(X), whole)
    np.testing.assert_array_equal(model.apply(X), leaves)


def test_missing_in_a_part_is_missing_in_the_combination():
    X, y = mixed()
    model = small().fit(X, y)
    table = model.schema_.encode(spinney._data.read_table(X))
    for j, feature in enumerate(model.schema_.split_features):
        lacks = X["a"].isna().to_numpy() if " a" in feature.name else np.zeros(len(X), dtype=bool)
        np.testing.assert_array_equal(np.isnan(np.asarray(table.column(j))), lacks)


def test_row_order_and_weights_do_not_matter():
    X, y = mixed()
    forest = small().fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(small().fit(X.iloc[order], y[order]).predict_proba(X), forest.predict_proba(X))
    weight = 1.0 + np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    repeated, weighted = small().fit(X.iloc[rows], y[rows]), small().fit(X, y, weight)
    np.testing.assert_array_equal(repeated.predict_proba(X), weighted.predict_proba(X))
    np.testing.assert_array_equal(small().fit(X, y, 2 * weight).predict_proba(X), weighted.predict_proba(X))


def test_importances_are_those_of_the_table():
    X, y = mixed(400)
    model = small(oblique="auto", n_estimators=30, oob_score=True).fit(X, y)
    importances = pd.Series(model.feature_importances_, index=X.columns)
    assert importances.sum() == pytest.approx(1)
    assert set(importances.nlargest(2).index) == {"a", "b"}
    assert model.oob_score_ > 0.8
    by_pool = model.forest_.importances(model.schema_.n_split_features)
    assert by_pool[0] == pytest.approx(importances["kind"])
    frame = spinney.importance_frame(model, "pandas")
    assert set(frame["column"]) == set(X.columns)
    one = small(oblique=5, n_combined=1).fit(X[["a", "b"]], y)
    parts = one.schema_.pool.parts[:, 0]
    by_pool = one.forest_.importances(5)
    np.testing.assert_allclose(one.feature_importances_, [by_pool[parts == j].sum() for j in (0, 1)])


def test_trees_are_read_in_the_words_of_the_table():
    X, y = mixed()
    tree = small(max_depth=2).fit(X, y)[0]
    names = [f.name for f in tree.schema_.split_features]
    assert names[tree.tree_.feature[0]] in tree.export_text()
    assert "≤" in tree.export_text()
    row = X.iloc[0].to_dict()
    assert tree.explain_row(row)
    rules = tree.rules()
    assert len(rules) == tree.get_n_leaves()
    assert len(tree.feature_importances_) == X.shape[1]
    assert spinney.to_dict(tree)["combinations"]["parts"]
    assert spinney.tree_svg(tree).startswith("<svg")


def test_oblique_helps_where_classes_part_on_a_slope():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    plain, oblique = (
        small(n_estimators=50, oblique=pool, n_combined=2, oob_score=True).fit(X, y).oob_score_ for pool in (None, 50)
    )
    assert oblique > plain


def test_warm_start_goes_on_with_the_same_pool():
    X, y = mixed()
    at_once = small(n_estimators=9).fit(X, y)
    model = small(n_estimators=4, warm_start=True).fit(X, y)
    model.set_params(n_estimators=9).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), at_once.predict_proba(X))
    for other in ({"oblique": None}, {"oblique": 13}, {"oblique": "auto"}, {"oblique": 12, "n_combined": 2}):
        with pytest.raises(ValueError, match="the earlier trees were grown with oblique=12 and n_combined=3"):
            model.set_params(**({"n_estimators": 10} | other)).fit(X, y)
    with pytest.raises(ValueError, match="always_try is for splits on single columns"):
        model.set_params(oblique=12, n_combined=3, always_try=["a"]).fit(X, y)
    plain = small(n_estimators=4, oblique=None, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="the earlier trees were grown with oblique=None"):
        plain.set_params(n_estimators=10, oblique=12).fit(X, y)


def test_max_features_counts_as_without():
    X, y = mixed()
    assert small().fit(X, y).max_features_ == 2  # the root of 5 columns
    assert small(max_features=10).fit(X, y).max_features_ == 10
    assert small(max_features=None).fit(X, y).max_features_ == 13
    with pytest.raises(ValueError, match="more than the 13 in the pool"):
        small(max_features=14).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotonic_cst": {"a": 1}}, "monotonic_cst is for splits on single columns"),
        ({"interaction_cst": "pairwise"}, "interaction_cst is for splits on single columns"),
        ({"feature_costs": {"a": 2.0}}, "feature_costs is for splits on single columns"),
        ({"feature_weights": {"a": 2.0}}, "feature_weights is for splits on single columns"),
        ({"always_try": ["a"]}, "always_try is for splits on single columns"),
        ({"oblique": 0}, "oblique"),
        ({"n_combined": 0}, "n_combined"),
    ],
)
def test_what_does_not_go_with_it_is_refused(parameters, message):
    X, y = mixed()
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(X, y)


def test_a_table_without_numbers_is_refused():
    X, y = mixed()
    with pytest.raises(ValueError, match="the table has none"):
        small().fit(X[["kind"]], y)


def test_readings_along_the_axes_are_refused():
    X, y = mixed()
    tree = small().fit(X, y)[0]
    with pytest.raises(ValueError, match="oblique"):
        spinney.plot_partition(tree, X, y)
    with pytest.raises(ValueError, match="oblique"):
        spinney.fragility(tree, X, y)
    model = small().fit(X, y)
    with pytest.raises(ValueError, match="Use kind='unbiased' or 'impurity'"):
        model.importances(X, y)
    with pytest.raises(ValueError, match=r"oblique=None, or use .*permutation_importance"):
        model.shap_values(X)


def test_importances_are_shared_out_among_the_columns_of_a_split():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(150, 4)), columns=list("abcd"))
    X["b"] *= 1000
    X["text"] = random.choice(["u", "v"], size=150)
    y = (X["a"] + X["b"] / 1000 + 0.3 * random.normal(size=150) > 0).to_numpy()
    model = small(oblique=60, n_combined=2, n_estimators=30).fit(X, y)
    impurity = model.importances(kind="impurity")
    np.testing.assert_allclose(impurity.importance, model.feature_importances_, rtol=1e-12)
    unbiased = model.importances(X, y, "unbiased")
    for found in (impurity, unbiased):
        assert found.names == list(X.columns)
        assert set(found.order[:2]) == {0, 1}
        assert (found.standard_error[:4] > 0).all()
    by_hand = np.zeros(5)
    pool = model.schema_.pool
    for tree in model:
        for feature in tree.tree_.feature[tree.tree_.feature >= 0]:
            by_hand[[4] if feature == 0 else pool.parts[feature - 1]] += 1
    np.testing.assert_array_equal(impurity.n_splits, by_hand)
    np.testing.assert_array_equal(unbiased.n_splits, by_hand)


def test_constant_huge_and_infinite_columns_do_no_harm():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4)) * [1, 1e300, 0, 1]
    X[::7, 3] = np.inf
    y = X[:, 0] > 0
    model = small(oblique=20).fit(X, y)
    assert np.isfinite(model.schema_.pool.coefficients).all()
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    "change",
    [
        {"parts": [[0, 99, 1]]},
        {"parts": [[0, 1, 2]], "coefficients": [[1.0, 2.0]]},
        {"coefficients": "none"},
        {"spread": [0.0] * 5},
        {"parts": []},
        {"parts": [[2, 0, 1]], "coefficients": [[1.0, 1.0, 1.0]]},  # column 2 holds categories
        {"coefficients": None},
        {"plain": []},  # column 2 holds categories
        {"plain": [2, 9]},
        {"plain": [2, 2]},
        {"plain": [0.5, 2]},
        {"plain": [0, 2]},  # column 0 has a part in combinations
        {"plain": None},
    ],
)
def test_damaged_combinations_are_refused(change):
    X, y = mixed()
    fields = small().fit(X, y).schema_.to_dict()
    assert Schema.from_dict(fields).split_features
    with pytest.raises(ValueError, match="not a schema"):
        Schema.from_dict(fields | {"combinations": fields["combinations"] | change})


@pytest.mark.parametrize("value", [1.0, 0.0, 1e9, np.inf])
def test_a_column_of_one_value_has_no_part_in_combinations(value):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    y = X.sum(axis=1) > 0
    options = {"n_estimators": 20, "oblique": 50, "random_state": 0, "oob_score": True}
    with_constant = np.column_stack([X, np.full(len(X), value)])
    found = spinney.RandomForestClassifier(**options).fit(with_constant, y)
    assert found.feature_importances_[2] == 0
    assert found.oob_score_ > 0.9
    weight = np.r_[np.ones(100), np.zeros(20)]
    with_constant[100:, 2] = 7.0  # rows that do not count
    assert spinney.RandomForestClassifier(**options).fit(with_constant, y, weight).feature_importances_[2] == 0
    constant = spinney.RandomForestClassifier(**options).fit(np.full((120, 1), value), y)
    assert constant.estimators_[0].get_n_leaves() == 1


@pytest.mark.parametrize("unit", [1e-290, 1e-200, 1e200, 1e299])
def test_combinations_are_the_same_in_any_unit(unit):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    y = X.sum(axis=1) > 0
    scaled = X * [1.0, unit]
    model = spinney.RandomForestClassifier(n_estimators=20, oblique=50, random_state=0, oob_score=True).fit(scaled, y)
    assert model.oob_score_ > 0.9


def test_columns_that_lack_many_values_are_split_on_as_they_are():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 4)), columns=["a", "b", "c", "rare"])
    y = (X["a"] + X["b"] > 0).to_numpy()
    X.loc[random.random(300) < 0.9, "rare"] = np.nan
    X.loc[random.random(300) < 0.1, "c"] = np.nan
    model = small(oblique=40, n_estimators=30, oob_score=True).fit(X, y)
    assert [feature.name for feature in model.schema_.split_features[:1]] == ["rare"]
    assert set(np.unique(model.schema_.pool.parts)) == {0, 1, 2}
    without = small(oblique=40, n_estimators=30, oob_score=True).fit(X[["a", "b", "c"]], y)
    assert model.oob_score_ > without.oob_score_ - 0.03
    assert model.oob_score_ > 0.85
    for other in (through_bytes(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(
        [model.to_predictor().predict_proba(row) for row in X.to_numpy()[:20]], model.predict_proba(X[:20])
    )


def test_a_value_that_is_missing_can_still_decide():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 3)), columns=["a", "b", "rare"])
    y = random.random(200) < 0.5
    X.loc[y, "rare"] = np.nan
    assert small(oblique=200, oob_score=True, n_estimators=20).fit(X, y).oob_score_ > 0.95


def test_a_category_is_tried_as_often_beside_a_large_pool_as_without_one():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 3)), columns=["a", "b", "c"])
    X["kind"] = random.choice(["u", "v", "w"], size=300)
    y = (X["kind"] == "u") ^ (random.random(300) < 0.1)
    options = {"n_estimators": 200, "max_depth": 1, "max_features": 1}
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        shares = [small(kind, oblique=n, **options).fit(X, y).feature_importances_[3] for n in (None, 300)]
        np.testing.assert_allclose(shares, 0.25, atol=0.1)


@pytest.mark.parametrize(("n_combined", "share", "is_alone"), [(3, 0.3, True), (3, 0.15, False), (1, 0.3, False)])
def test_how_many_values_may_lack(n_combined, share, is_alone):
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[: int(100 * share), 1] = np.nan
    weight = np.ones(100)
    pools = [small(n_combined=n_combined).fit(X, X[:, 0] > 0, w).schema_.pool for w in (None, weight)]
    assert [pool.plain for pool in pools] == [[1] if is_alone else []] * 2
    weight[: int(100 * share)] = 0  # rows that do not count do not lack anything
    assert small(n_combined=n_combined).fit(X, X[:, 0] > 0, weight).schema_.pool.plain == []


def test_where_every_column_lacks_values_they_are_combined_all_the_same():
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = X[:, 0] > 0
    X[np.random.default_rng(1).random(X.shape) < 0.5] = np.nan
    pool = small().fit(X, y).schema_.pool
    assert pool.plain == []
    assert set(np.unique(pool.parts)) == {0, 1, 2}
