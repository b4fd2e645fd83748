"""SHAP values of trees and forests: agreement with the definition and the package shap, inputs and plots."""

from __future__ import annotations

import pickle
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle import shap as oracle
from sweep import examples

mpl.use("agg")


def next_of(model: Any, X: Any, row: int) -> Any:
    """Return the child of each node for a row, from the tree's arrays."""
    from spinney._data import read_table
    from spinney._data.schema import column_values

    numbers = np.column_stack(column_values(model.schema_, read_table(X), "tree", "missing"))[row]
    return lambda node: oracle.goes(model.tree_, node, numbers)


def brute_force(model: Any, X: Any, row: int) -> tuple[Any, Any]:
    game, columns = oracle.tree_game(model.tree_, next_of(model, X, row))
    n = model.n_features_in_
    return oracle.shapley(game, columns, n), oracle.interactions(game, columns, n)


def table(seed: int, n_rows: int = 80, n_columns: int = 5, missing: float = 0.1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(n_rows, n_columns)) / 2.0
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=n_rows) / 4
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def mixed(seed: int, n_rows: int = 90) -> tuple[Any, Any]:
    import pandas as pd

    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Cork", "Bern"], n_rows)
    size = rng.normal(size=n_rows).round(1)
    size[rng.random(n_rows) < 0.2] = np.nan
    X = pd.DataFrame({"city": city, "size": size, "age": rng.integers(0, 6, n_rows)})
    X.loc[rng.random(n_rows) < 0.1, "city"] = None
    y = (city == "Rome") * 2.0 + np.nan_to_num(size) * (X["age"] > 2) + rng.normal(size=n_rows) / 5
    return X, y.to_numpy()


# ---- by definition -----------------------------------------------------------------------------------


@examples(4)
@given(st.integers(0, 10_000), st.integers(2, 14))
def test_values_and_interactions_agree_with_the_definition(seed: int, leaves: int) -> None:
    X, y = table(seed, n_rows=50)
    model = spinney.DecisionTreeRegressor(max_leaf_nodes=leaves).fit(X, y)
    explained = model.shap_values(X[:2], interactions=True)
    for row in range(2):
        values, pairs = brute_force(model, X, row)
        np.testing.assert_allclose(explained.values[row], values[:, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.interactions[row], pairs[..., 0], rtol=0, atol=1e-12)


@examples(4)
@given(st.integers(0, 10_000))
def test_categories_and_missing_values(seed: int) -> None:
    X, y = mixed(seed)
    model = spinney.DecisionTreeRegressor(max_leaf_nodes=12).fit(X, y)
    explained = model.shap_values(X, interactions=True)
    np.testing.assert_allclose(explained.predictions, model.predict(X), rtol=0, atol=1e-9)
    for row in range(3):
        values, pairs = brute_force(model, X, row)
        np.testing.assert_allclose(explained.values[row], values[:, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.interactions[row], pairs[..., 0], rtol=0, atol=1e-12)


def test_a_forest_is_the_mean_of_its_trees() -> None:
    X, y = table(1, n_rows=120)
    forest = spinney.RandomForestRegressor(n_estimators=7, max_leaf_nodes=9, random_state=0).fit(X, y)
    explained = forest.shap_values(X, interactions=True)
    trees = [tree.shap_values(X, interactions=True) for tree in forest.estimators_]
    np.testing.assert_allclose(explained.values, np.mean([t.values for t in trees], axis=0), atol=1e-13)
    np.testing.assert_allclose(explained.interactions, np.mean([t.interactions for t in trees], axis=0), atol=1e-13)
    assert explained.base_value == pytest.approx(np.mean([t.base_value for t in trees]), abs=1e-13)


@pytest.mark.parametrize("fallback", ["majority", "stop", "ignore"])
def test_surrogates_decide_for_the_column_of_the_split(fallback: str) -> None:
    X, y = table(3, n_rows=100, missing=0.25)
    X[:, 3] = X[:, 0] + np.random.default_rng(0).integers(0, 2, 100)  # an imitator
    model = spinney.DecisionTreeRegressor(max_depth=4, missing="surrogate", missing_fallback=fallback).fit(X, y)
    explained = model.shap_values(X, interactions=True)
    np.testing.assert_allclose(explained.predictions, model.predict(X), rtol=0, atol=1e-9)
    for row in np.flatnonzero(np.isnan(X[:, 0]))[:4]:
        game, columns = oracle.tree_game(model.tree_, lambda node, row=row: routed(model, X[row], node))
        np.testing.assert_allclose(explained.values[row], oracle.shapley(game, columns, 5)[:, 0], atol=1e-12)
        pairs = oracle.interactions(game, columns, 5)[..., 0]
        np.testing.assert_allclose(explained.interactions[row], pairs, atol=1e-12)


def routed(model: Any, row: Any, node: int) -> int:
    """Return the next node: by the primary split, then its surrogates, then the fallback."""
    tree, splits = model.tree_, model.tree_.splits
    flags = int(tree.engine.flags[node])
    for s in range(splits["begin"][node], splits["begin"][node + 1]):
        if splits["role"][s] == 1 or (splits["role"][s] == 2 and flags & 16):
            continue
        x = row[splits["feature"][s]]
        if not np.isnan(x):
            left = x <= splits["threshold"][s]
            if splits["role"][s] == 2 and splits["flags"][s] & 2:
                left = not left
            return int(tree.children_left[node] if left else tree.children_right[node])
    if flags & 8:
        return node
    return int(tree.children_left[node] if flags & 1 else tree.children_right[node])


def test_a_column_that_is_split_repeatedly_on_one_path() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[np.arange(64), rng.integers(0, 3, 64)].astype(float)
    model = spinney.DecisionTreeRegressor().fit(X, rng.normal(size=64))
    explained = model.shap_values(X, interactions=True)
    for row in (0, 31, 63):
        values, pairs = brute_force(model, X, row)
        np.testing.assert_allclose(explained.values[row], values[:, 0], atol=1e-12)
        np.testing.assert_allclose(explained.interactions[row], pairs[..., 0], atol=1e-12)


# ---- against a background -----------------------------------------------------------------------------


@examples(3)
@given(st.integers(0, 10_000))
def test_unknown_columns_come_from_the_background(seed: int) -> None:
    X, y = table(seed, n_rows=60, n_columns=4)
    forest = spinney.ExtraTreesRegressor(n_estimators=3, max_depth=4, random_state=seed).fit(X, y)
    rows, background = X[:3], X[20:25]
    explained = forest.shap_values(rows, background=background, interactions=True)
    assert explained.base_value == pytest.approx(forest.predict(background).mean(), abs=1e-12)
    np.testing.assert_allclose(explained.predictions, forest.predict(rows), rtol=0, atol=1e-9)
    subsets = [frozenset(j for j in range(4) if bits >> j & 1) for bits in range(16)]
    for row in range(3):
        mixtures = [
            [[rows[row, j] if j in known else other[j] for j in range(4)] for other in background] for known in subsets
        ]
        worth = forest.predict(np.concatenate(mixtures)).reshape(16, -1).mean(axis=1)
        game = dict(zip(subsets, worth[:, np.newaxis], strict=True))
        values = oracle.shapley(game.__getitem__, [0, 1, 2, 3], 4)
        pairs = oracle.interactions(game.__getitem__, [0, 1, 2, 3], 4)
        np.testing.assert_allclose(explained.values[row], values[:, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.interactions[row], pairs[..., 0], rtol=0, atol=1e-12)


def test_a_background_of_categories_and_classes() -> None:
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    explained = forest.shap_values(X[:40], background=X[::20])
    np.testing.assert_allclose(explained.predictions, forest.predict_proba(X[:40]), rtol=0, atol=1e-9)
    again = forest.set_params(n_jobs=1).shap_values(X[:40], background=X[::20])
    assert explained.values.tobytes() == again.values.tobytes()
    same = forest.shap_values(X[:1], background=X[:1])
    np.testing.assert_allclose(same.values, 0, atol=1e-15)


@pytest.mark.parametrize("fallback", ["majority", "stop"])
def test_a_background_of_rows_that_surrogates_place(fallback: str) -> None:
    X, y = table(3, n_rows=100, missing=0.25)
    model = spinney.DecisionTreeRegressor(max_depth=4, missing="surrogate", missing_fallback=fallback).fit(X, y)
    explained = model.shap_values(X, background=X[:10])
    np.testing.assert_allclose(explained.predictions, model.predict(X), rtol=0, atol=1e-9)
    assert explained.base_value == pytest.approx(model.predict(X[:10]).mean())


# ---- what must hold ----------------------------------------------------------------------------------


@examples(5)
@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([1, 2, 3]))
def test_values_sum_to_the_prediction(seed: int, n_rows: int, n_outputs: int) -> None:
    X, y = table(seed, n_rows=60)
    target = np.column_stack([y * (k + 1) + X[:, k].clip(-9, 9, where=~np.isnan(X[:, k])) for k in range(n_outputs)])
    target = np.nan_to_num(target)
    model = spinney.ExtraTreesRegressor(n_estimators=5, random_state=seed).fit(X, target)
    explained = model.shap_values(X[:n_rows], interactions=True)
    np.testing.assert_allclose(explained.predictions, model.predict(X[:n_rows]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(explained.interactions.sum(axis=2), explained.values, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(explained.interactions, np.swapaxes(explained.interactions, 1, 2))


@pytest.mark.parametrize("n", [33, 131])
def test_long_paths_of_different_columns_stay_exact(n: int) -> None:
    X = np.eye(n)  # each column sets one row apart: a chain, with n - 1 columns on the longest path
    model = spinney.DecisionTreeRegressor(random_state=0).fit(X, np.arange(n) ** 2 / n**2)
    assert model.tree_.max_depth == n - 1
    explained = model.shap_values(X)
    np.testing.assert_allclose(explained.predictions, model.predict(X), rtol=0, atol=1e-12)
    for row in (0, n // 2, n - 1):
        np.testing.assert_allclose(explained.values[row], by_leaves(model.tree_, X[row]), rtol=0, atol=1e-13)


def by_leaves(tree: Any, row: Any) -> Any:
    """Return Shapley values leaf by leaf, if no column occurs twice on a path, from the integral of the weights."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    t, weights = (1 + nodes) / 2, weights / 2
    out = np.zeros(len(row))
    paths: dict[int, list[tuple[int, float, float]]] = {0: []}
    for node in range(tree.node_count):
        if tree.is_leaf[node]:
            factors = [o * t + z * (1 - t) for _, o, z in paths[node]]
            whole = np.prod(factors, axis=0)
            for (column, o, z), factor in zip(paths[node], factors, strict=True):
                out[column] += tree.flat_value[node, 0] * (o - z) * (weights @ (whole / factor))
            continue
        goes, shares = oracle.goes(tree, node, row), oracle.node_shares(tree, node)
        for child, z in zip((tree.children_left[node], tree.children_right[node]), shares, strict=False):
            paths[int(child)] = [*paths[node], (int(tree.feature[node]), float(goes == child), z)]
    return out


def test_forests_with_pure_leaves() -> None:
    X, y = table(9, n_rows=500, n_columns=12)
    forest = spinney.ExtraTreesRegressor(n_estimators=4, max_features=1, random_state=0).fit(X, y)
    assert max(tree.get_depth() for tree in forest.estimators_) > 15
    np.testing.assert_allclose(forest.shap_values(X).predictions, forest.predict(X), rtol=0, atol=1e-12)


def test_values_do_not_depend_on_other_rows_or_threads() -> None:
    X, y = table(5, n_rows=300)
    forest = spinney.RandomForestClassifier(n_estimators=12, random_state=0).fit(X, y > 1)
    whole = forest.shap_values(X, interactions=True)
    for n_jobs in (1, 2, 3):
        again = forest.set_params(n_jobs=n_jobs).shap_values(X, interactions=True)
        assert whole.values.tobytes() == again.values.tobytes()
        assert whole.interactions.tobytes() == again.interactions.tobytes()
    parts = [forest.shap_values(X[k : k + 7]).values for k in range(0, 300, 7)]
    assert whole.values.tobytes() == np.concatenate(parts).tobytes()
    assert whole.values.tobytes() == forest.shap_values(X).values.tobytes()


def test_columns_without_splits_have_zero_values() -> None:
    X, y = table(2)
    X[:, 4] = 1.0
    explained = spinney.DecisionTreeRegressor(max_depth=3).fit(X, y).shap_values(X, interactions=True)
    assert (explained.values[:, 4] == 0).all()
    assert (explained.interactions[:, 4] == 0).all()


def test_a_single_leaf() -> None:
    model = spinney.DecisionTreeRegressor().fit([[1.0], [2.0]], [3.0, 3.0])
    explained = model.shap_values([[1.0], [np.nan]])
    assert explained.values.tolist() == [[0.0], [0.0]]
    assert explained.base_value == 3.0


def test_sample_weights_are_used() -> None:
    X, y = table(4, n_rows=60, missing=0)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    weighted = spinney.DecisionTreeRegressor(max_depth=3).fit(X, y, sample_weight=weight).shap_values(X)
    often = np.repeat(np.arange(60), weight)
    repeated = spinney.DecisionTreeRegressor(max_depth=3).fit(X[often], y[often]).shap_values(X)
    np.testing.assert_allclose(weighted.values, repeated.values, atol=1e-12)
    assert weighted.base_value == pytest.approx(np.average(y, weights=weight))


# ---- tables, targets, results ------------------------------------------------------------------------


def test_classes() -> None:
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    explained = forest.shap_values(X)
    assert explained.shape == (344, 7, 3)
    assert explained.output_names == ["Adelie", "Chinstrap", "Gentoo"]
    np.testing.assert_allclose(explained.predictions, forest.predict_proba(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(explained.values.sum(axis=2), 0, atol=1e-12)
    gentoo = explained.output("Gentoo")
    np.testing.assert_array_equal(gentoo.values, explained.values[:, :, 2])
    with pytest.raises(ValueError, match="Pass the output to explain: one of 'Adelie'"):
        explained.output()
    with pytest.raises(ValueError, match="Pass the output"):
        explained.output("Emperor")
    assert explained.data[0, 0] == "Torgersen"
    assert gentoo.text_of(0, 0) == "Torgersen"
    assert gentoo.text_of(3, 1) == "missing"


def test_multi_output_classification_returns_a_list() -> None:
    X, y = table(6)
    target = np.column_stack([y > 1, np.digitize(y, [-1, 0, 1])])
    tree = spinney.DecisionTreeClassifier(max_depth=4).fit(X, target)
    explained = tree.shap_values(X)
    for part, proba in zip(explained, tree.predict_proba(X), strict=True):
        np.testing.assert_allclose(part.predictions, proba, rtol=0, atol=1e-9)
    assert [part.output_names for part in explained] == [[0, 1], [0, 1, 2, 3]]


def test_a_single_class() -> None:
    explained = spinney.DecisionTreeClassifier().fit([[1], [2]], ["a", "a"]).shap_values([[1]])
    assert explained.output("a").predictions.tolist() == [1.0]


def test_results_do_not_depend_on_the_frame_library() -> None:
    import polars as pl
    import pyarrow as pa

    X, y = mixed(0)
    model = spinney.RandomForestRegressor(n_estimators=5, random_state=0).fit(X, y)
    expected = model.shap_values(X)
    for other in (pl.from_pandas(X), pa.Table.from_pandas(X), X[["age", "size", "city"]]):
        found = model.shap_values(other)
        assert found.values.tobytes() == expected.values.tobytes()
        np.testing.assert_array_equal(found.numbers, expected.numbers)


def test_methods_of_the_result() -> None:
    X, y = table(7)
    model = spinney.DecisionTreeRegressor(max_depth=3).fit(X, y)
    explained = model.shap_values(X, interactions=True)
    np.testing.assert_array_equal(np.asarray(explained), explained.values)
    assert len(explained[3:5]) == 2
    assert explained[-1].interactions.shape == (1, 5, 5)
    assert repr(explained) == "<ShapValues: 80 rows, 5 columns, with interactions>"
    frame = explained.to_frame("pandas")
    assert list(frame.columns) == ["(base)", "x0", "x1", "x2", "x3", "x4", "(prediction)"]
    np.testing.assert_allclose(frame.iloc[:, :-1].sum(axis=1), frame["(prediction)"])
    assert explained.base_values.shape == (80,)
    back = pickle.loads(pickle.dumps(explained))
    np.testing.assert_array_equal(back.values, explained.values)
    with pytest.raises(ValueError, match="only one output"):
        explained.output(1)
    with pytest.raises(IndexError, match="selects rows"):
        explained[0, 1]


def test_a_loaded_model_has_the_same_values(tmp_path: Any) -> None:
    X, y = mixed(1)
    model = spinney.RandomForestRegressor(n_estimators=4, random_state=0).fit(X, y)
    model.save(tmp_path / "model.spinney")
    again = spinney.load(tmp_path / "model.spinney").shap_values(X)
    assert again.values.tobytes() == model.shap_values(X).values.tobytes()


def test_an_unfitted_model_is_rejected() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        spinney.RandomForestRegressor().shap_values([[1.0]])


# ---- another program ---------------------------------------------------------------------------------


def test_agreement_with_the_shap_package() -> None:
    shap = pytest.importorskip("shap")
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)).astype(np.float32).astype(float)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=200) / 4
    theirs = DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=5, random_state=0).fit(X, y)
    ours = spinney.DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=5).fit(X, y)
    nodes = theirs.tree_.feature[theirs.tree_.feature >= 0]
    assert sorted(nodes) == sorted(ours.tree_.feature[ours.tree_.feature >= 0])
    explainer = shap.TreeExplainer(theirs)
    explained = ours.shap_values(X[:30], interactions=True)
    np.testing.assert_allclose(explained.values, explainer.shap_values(X[:30]), atol=1e-9)
    np.testing.assert_allclose(explained.interactions, explainer.shap_interaction_values(X[:30]), atol=1e-9)
    assert explained.base_value == pytest.approx(float(np.ravel(explainer.expected_value)[0]))
    by_rows = shap.TreeExplainer(theirs, X[:50]).shap_values(X[50:90])  # they count in single precision
    np.testing.assert_allclose(ours.shap_values(X[50:90], background=X[:50]).values, by_rows, atol=1e-6)


def test_explanations_for_the_shap_package() -> None:
    shap = pytest.importorskip("shap")
    X, y = mixed(2)
    explained = spinney.RandomForestRegressor(n_estimators=3, random_state=0).fit(X, y).shap_values(X)
    made = explained.to_explanation()
    assert isinstance(made, shap.Explanation)
    assert made.feature_names == ["city", "size", "age"]
    shap.plots.bar(made, show=False)
    shap.plots.waterfall(made[0], show=False)
    mpl.pyplot.close("all")


def test_an_explanation_of_classes_is_indexed_by_class() -> None:
    pytest.importorskip("shap")
    X, _ = mixed(2)
    y = np.resize(["low", "middle", "high"], len(X))
    explained = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y).shap_values(X)
    picked = explained.to_explanation()[:, :, "middle"]
    np.testing.assert_array_equal(picked.values, explained.output("middle").values)
    np.testing.assert_array_equal(picked.base_values, explained.output("middle").base_values)


# ---- pictures ----------------------------------------------------------------------------------------


def test_the_point_plot_shows_every_row_of_the_largest_columns() -> None:
    X, y = mixed(3)
    explained = spinney.RandomForestRegressor(n_estimators=5, random_state=0).fit(X, y).shap_values(X)
    ax = explained.plot(max_columns=2)
    drawn = sum(len(c.get_offsets()) for c in ax.collections)
    assert drawn == 2 * len(X)
    order = np.argsort(-explained.importances)
    assert [t.get_text() for t in ax.get_yticklabels()] == [explained.feature_names[j] for j in order[:2]]
    mpl.pyplot.close(ax.figure)


def _texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.findobj(mpl.text.Text)]


def test_categories_have_no_place_on_the_colour_scale() -> None:
    X, y = mixed(3)
    explained = spinney.DecisionTreeRegressor(max_depth=4).fit(X, y).shap_values(X)
    ax = explained.plot()
    assert {"Bern", "Cork", "Oslo", "Rome", "low value", "high value", "missing"} <= {t.strip() for t in _texts(ax)}
    ax = explained[X["city"].notna().to_numpy()].plot(max_columns=1)
    colours = {tuple(colour) for points in ax.collections for colour in points.get_facecolors().round(3)}
    assert len(colours) == 4
    assert not {"low value", "high value"} & set(_texts(ax))
    mpl.pyplot.close("all")


def test_many_categories_have_one_colour_that_is_not_that_of_missing_values() -> None:
    import pandas as pd

    name = np.resize([*"abcdefgh", None], 180)
    X = pd.DataFrame({"name": pd.Series(name, dtype="category")})
    y = np.resize(np.arange(9.0), 180)
    explained = spinney.DecisionTreeRegressor().fit(X, y).shap_values(X)
    ax = explained.plot()
    [points] = ax.collections
    colours = {tuple(colour): k for k, colour in enumerate(points.get_facecolors())}
    assert len(colours) == 2
    assert "8 categories" in _texts(ax)
    mpl.pyplot.close(ax.figure)


def test_bars_are_mean_absolute_values() -> None:
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    explained = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y).shap_values(X)
    ax = explained.plot("bars")
    widths = sum(bar.get_width() for bar in ax.patches)
    assert widths == pytest.approx(explained.importances.sum())
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["Adelie", "Chinstrap", "Gentoo"]
    mpl.pyplot.close(ax.figure)


@pytest.mark.parametrize("max_columns", [2, 3, 10])
def test_the_row_plot_leads_from_the_base_value_to_the_prediction(max_columns: int) -> None:
    X, y = mixed(4)
    explained = spinney.DecisionTreeRegressor(max_depth=4).fit(X, y).shap_values(X)
    ax = explained.plot_row(5, max_columns=max_columns)
    assert len(ax.patches) == min(max_columns, 3)
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert ends[0] == pytest.approx(explained.predictions[5])
    assert ax.patches[-1].get_x() == pytest.approx(explained.base_value)
    mpl.pyplot.close(ax.figure)


def test_invalid_plot_options_are_rejected() -> None:
    explained = spinney.DecisionTreeRegressor().fit([[1], [2]], [1, 2]).shap_values([[1]])
    with pytest.raises(ValueError, match="kind must be"):
        explained.plot("pie")
    with pytest.raises(ValueError, match="max_columns"):
        explained.plot(max_columns=0)
    with pytest.raises(ValueError, match="max_columns"):
        explained.plot_row(max_columns=0)
