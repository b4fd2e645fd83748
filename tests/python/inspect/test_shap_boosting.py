"""SHAP values of boosting: agreement with the definition and other libraries, offsets, backgrounds and plots."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle import shap as oracle
from spinney._boosting import fit
from spinney._boosting.options.recipe import resolve
from spinney._data import read_table
from spinney._data.schema import column_values
from spinney._model.tree import FittedTree
from sweep import examples

mpl.use("agg")

Regressor, Classifier = spinney.GradientBoostingRegressor, spinney.GradientBoostingClassifier


def numbers(seed: int, n_rows: int = 120, n_columns: int = 4, missing: float = 0.1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(n_rows, n_columns)) / 2.0
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=n_rows) / 4
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def mixed(seed: int, n_rows: int = 150) -> tuple[Any, Any]:
    import pandas as pd

    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Cork", "Bern", "Graz", "Lund", "Nice"], n_rows)
    size = rng.normal(size=n_rows).round(1)
    size[rng.random(n_rows) < 0.2] = np.nan
    X = pd.DataFrame({"city": city, "size": size, "age": rng.integers(0, 6, n_rows)})
    X.loc[rng.random(n_rows) < 0.1, "city"] = None
    y = np.isin(city, ["Rome", "Nice"]) * 2.0 + np.nan_to_num(size) * (X["age"] > 2) + rng.normal(size=n_rows) / 5
    return X, y.to_numpy()


def small(kind: Any = Regressor, **options: Any) -> Any:
    return kind(**{"n_estimators": 6, "max_leaf_nodes": 6, "min_samples_leaf": 3} | options)


def brute_force(model: Any, X: Any, row: int) -> tuple[Any, Any, Any]:
    """Return the base value, values and interactions of each score, tree by tree."""
    known = np.column_stack(column_values(model.schema_, read_table(X), "boosting", "missing"))[row]
    n, k = model.n_features_in_, model.boosting_.n_scores
    base, values, pairs = model.boosting_.start.copy(), np.zeros((n, k)), np.zeros((n, n, k))
    for t, engine in enumerate(model.boosting_.trees()):
        tree = FittedTree(engine, None, 1)
        game, columns = oracle.tree_game(tree, lambda node, tree=tree: oracle.goes(tree, node, known), known)
        base[t % k] += game(frozenset())[0]
        values[:, t % k] += oracle.shapley(game, columns, n)[:, 0]
        pairs[..., t % k] += oracle.interactions(game, columns, n)[..., 0]
    return base, values, pairs


def check_by_definition(model: Any, X: Any, rows: range) -> None:
    explained = model.shap_values(X, interactions=True)
    width = model.boosting_.n_scores
    for row in rows:
        base, values, pairs = brute_force(model, X, row)
        np.testing.assert_allclose(np.ravel(explained.base_value), base, rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.values[row].reshape(-1, width), values, rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.interactions[row].reshape(pairs.shape), pairs, rtol=0, atol=1e-12)


# ---- by definition -----------------------------------------------------------------------------------


@examples(4)
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_values_agree_with_the_definition(seed: int, leaves: int) -> None:
    X, y = numbers(seed)
    check_by_definition(small(max_leaf_nodes=leaves).fit(X, y), X, range(2))


@examples(3)
@given(st.integers(0, 10_000))
def test_categories_missing_values_and_weights(seed: int) -> None:
    X, y = mixed(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    model = small(max_leaf_nodes=8, categories={"smoothing": 2.0}).fit(X, y, sample_weight=weight)
    assert model.boosting_.split_counts(3)[0] > 0
    check_by_definition(model, X, range(3))


def test_multiclass_values_agree_with_the_definition() -> None:
    X, y = numbers(3)
    check_by_definition(small(Classifier, n_estimators=3).fit(X, np.digitize(y, [0, 1])), X, range(2))


@examples(4)
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_values_of_linear_leaves_agree_with_the_definition(seed: int, leaves: int) -> None:
    X, y = numbers(seed, n_rows=300, missing=0.05)
    model = small(max_leaf_nodes=leaves, linear_leaves={"l2": 0.1}).fit(X, y)
    assert model.boosting_.has_linear_leaves
    check_by_definition(model, X, range(3))


def test_linear_leaves_of_mixed_columns_and_classes_agree_with_the_definition() -> None:
    X, y = mixed(4, n_rows=300)
    check_by_definition(small(max_leaf_nodes=8, linear_leaves=True).fit(X, y), X, range(3))
    X, y = numbers(3, n_rows=300)
    classes = small(Classifier, n_estimators=3, linear_leaves=True).fit(X, np.digitize(y, [0, 1]))
    check_by_definition(classes, X, range(2))


@pytest.mark.parametrize("leaves", [2, 5])
def test_linear_leaves_with_columns_off_their_path_agree_with_the_definition(
    monkeypatch: pytest.MonkeyPatch, leaves: int
) -> None:
    monkeypatch.setattr(fit, "resolve", lambda *args: replace(resolve(*args), is_linear=True))
    X, y = numbers(leaves, n_rows=300, missing=0.03)
    model = small(max_leaf_nodes=leaves, linear_leaves={"l2": 0.1}).fit(X, y)
    first = FittedTree(model.boosting_.trees()[0], None, 1)
    assert first.linear_terms is not None
    assert set(first.linear_terms["feature"].tolist()) > {f for f in first.feature.tolist() if f >= 0}
    check_by_definition(model, X, range(4))


def test_linear_leaves_sum_to_the_score_in_deep_trees() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(400, 30))
    X[rng.random(X.shape) < 0.02] = np.nan
    y = np.nan_to_num(X) @ rng.normal(size=30) + rng.normal(size=400)
    model = small(n_estimators=10, max_leaf_nodes=60, linear_leaves=True).fit(X, y)
    for background in (None, X[:7]):
        explained = model.shap_values(X[:40], interactions=True, background=background)
        np.testing.assert_allclose(explained.predictions, model.predict(X[:40]), rtol=0, atol=1e-9)
        np.testing.assert_allclose(explained.interactions.sum(axis=2), explained.values, rtol=0, atol=1e-9)


# ---- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_values_sum_to_the_score_for_every_loss(loss: str) -> None:
    X, y = numbers(4)
    y = y if loss in ("squared_error", "absolute_error", "huber", "quantile") else np.exp(y / 4)
    model = small(loss=loss, n_estimators=20).fit(X, y)
    explained = model.shap_values(X, interactions=True)
    score = np.log(model.predict(X)) if model.boosting_.link == "log" else model.predict(X)
    np.testing.assert_allclose(explained.predictions, score, rtol=0, atol=1e-9)
    np.testing.assert_allclose(explained.interactions.sum(axis=2), explained.values, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("init", ["constant", "zero"])
def test_binary_classification_has_one_score(loss: str, init: str) -> None:
    X, y = numbers(5)
    model = small(Classifier, loss=loss, init=init, n_estimators=20).fit(X, np.where(y > 1, "yes", "no"))
    explained = model.shap_values(X)
    assert explained.shape == X.shape
    assert isinstance(explained.base_value, float)
    assert explained.output_names is None
    np.testing.assert_allclose(explained.predictions, model.decision_function(X), rtol=0, atol=1e-9)
    half = "half the " if loss == "exponential" else ""
    assert explained.of == half + "log-odds of class yes"


def test_multiclass_has_one_score_per_class() -> None:
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    model = small(Classifier, n_estimators=15).fit(X, y)
    explained = model.shap_values(X, interactions=True)
    assert explained.shape == (344, 7, 3)
    assert explained.output_names == ["Adelie", "Chinstrap", "Gentoo"]
    np.testing.assert_allclose(explained.predictions, model.decision_function(X), rtol=0, atol=1e-9)
    gentoo = explained.output("Gentoo")
    np.testing.assert_array_equal(gentoo.values, explained.values[:, :, 2])
    assert explained.interactions.shape == (344, 7, 7, 3)
    with pytest.raises(ValueError, match="Pass the output to explain: one of 'Adelie'"):
        explained.output()


def test_an_offset_is_added_to_the_base_value() -> None:
    X, y = numbers(6)
    offset = np.linspace(-1, 1, len(y))
    model = small(loss="poisson", n_estimators=20).fit(X, np.exp(y / 4), offset=offset)
    plain, given_ = model.shap_values(X), model.shap_values(X, offset=offset)
    np.testing.assert_array_equal(plain.values, given_.values)
    np.testing.assert_allclose(given_.predictions, np.log(model.predict(X, offset=offset)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(given_.base_values, plain.base_value + offset)
    np.testing.assert_allclose(given_[5:8].predictions, given_.predictions[5:8])
    frame = given_.to_frame("pandas")
    np.testing.assert_allclose(frame.iloc[:, :-1].sum(axis=1), frame["(prediction)"])
    ax = given_.plot_row(3)
    assert "from the base value" in ax.get_xlabel()
    mpl.pyplot.close(ax.figure)
    with pytest.raises(ValueError, match="offset"):
        model.shap_values(X, offset=offset[:3])


def test_offsets_by_class() -> None:
    X, y = numbers(6)
    offset = np.random.default_rng(0).normal(size=(len(y), 3))
    model = small(Classifier).fit(X, np.digitize(y, [0, 1]), offset=offset)
    explained = model.shap_values(X, offset=offset)
    np.testing.assert_allclose(explained.predictions, model.decision_function(X, offset=offset), rtol=0, atol=1e-9)
    np.testing.assert_allclose(explained.output(1).predictions, explained.predictions[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("linear", "in_all"), [(False, False), (True, False), (True, True)])
def test_unknown_columns_come_from_the_background(monkeypatch: pytest.MonkeyPatch, linear: bool, in_all: bool) -> None:
    if in_all:
        monkeypatch.setattr(fit, "resolve", lambda *args: replace(resolve(*args), is_linear=True))
    X, y = numbers(7, n_columns=3, missing=0.0 if linear else 0.1)
    model = small(linear_leaves=linear).fit(X, y)
    assert model.boosting_.has_linear_leaves == linear
    rows, background = X[:3], X[20:25]
    explained = model.shap_values(rows, background=background, interactions=True)
    assert explained.base_value == pytest.approx(model.predict(background).mean(), abs=1e-12)
    np.testing.assert_allclose(explained.predictions, model.predict(rows), rtol=0, atol=1e-9)
    subsets = [frozenset(j for j in range(3) if bits >> j & 1) for bits in range(8)]
    for row in range(3):
        mixtures = [[[rows[row, j] if j in known else b[j] for j in range(3)] for b in background] for known in subsets]
        worth = model.predict(np.concatenate(mixtures)).reshape(8, -1).mean(axis=1)
        game = dict(zip(subsets, worth[:, np.newaxis], strict=True)).__getitem__
        values, pairs = oracle.shapley(game, [0, 1, 2], 3), oracle.interactions(game, [0, 1, 2], 3)
        np.testing.assert_allclose(explained.values[row], values[:, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(explained.interactions[row], pairs[..., 0], rtol=0, atol=1e-12)


def test_a_background_of_categories_and_classes() -> None:
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    model = small(Classifier, n_estimators=8).fit(X, y)
    explained = model.shap_values(X[:40], background=X[::20])
    np.testing.assert_allclose(explained.predictions, model.decision_function(X[:40]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(explained.base_value, model.decision_function(X[::20]).mean(axis=0), atol=1e-12)


def test_the_base_value_is_the_mean_over_the_training_weight() -> None:
    X, y = numbers(8)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    often = np.repeat(np.arange(len(y)), weight)
    options = {"min_samples_leaf": 1, "n_estimators": 4}
    weighted, repeated = small(**options).fit(X, y, weight), small(**options).fit(X[often], y[often])
    assert weighted.shap_values(X).base_value == pytest.approx(np.average(weighted.predict(X), weights=weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
    np.testing.assert_allclose(weighted.shap_values(X).values, repeated.shap_values(X).values, atol=1e-6)
    np.testing.assert_allclose(weighted.feature_importances_, repeated.feature_importances_, atol=1e-6)


def test_values_do_not_depend_on_other_rows_threads_or_frame() -> None:
    import polars as pl
    import pyarrow as pa

    X, y = mixed(1, 300)
    model = small(Classifier).fit(X, np.digitize(y, [0.5, 2]))
    whole = model.shap_values(X, interactions=True)
    for n_jobs in (1, 3):
        again = model.set_params(n_jobs=n_jobs).shap_values(X, interactions=True)
        assert whole.values.tobytes() == again.values.tobytes()
        assert whole.interactions.tobytes() == again.interactions.tobytes()
    parts = [model.shap_values(X[k : k + 7]).values for k in range(0, 300, 7)]
    assert whole.values.tobytes() == np.concatenate(parts).tobytes()
    for other in (pl.from_pandas(X), pa.Table.from_pandas(X), X[["age", "size", "city"]]):
        assert whole.values.tobytes() == model.shap_values(other).values.tobytes()


def test_sparse_rows_and_models_from_files(tmp_path: Any) -> None:
    from scipy.sparse import csr_array

    X, y = numbers(9, missing=0)
    model = small().fit(csr_array(X), y)
    expected = model.shap_values(X)
    assert model.shap_values(csr_array(X)).values.tobytes() == expected.values.tobytes()
    model.save(tmp_path / "model.spinney")
    loaded = spinney.load(tmp_path / "model.spinney")
    assert loaded.shap_values(X).values.tobytes() == expected.values.tobytes()
    assert pickle.loads(pickle.dumps(model)).shap_values(X).values.tobytes() == expected.values.tobytes()
    assert pickle.loads(pickle.dumps(expected)).values.tobytes() == expected.values.tobytes()


def test_an_unfitted_model_is_rejected() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        Regressor().shap_values([[1.0]])


def test_plot_labels_describe_the_score() -> None:
    X, y = numbers(10)
    explained = small(Classifier).fit(X, y > 1).shap_values(X)
    ax = explained.plot()
    assert ax.get_xlabel() == "contribution to the log-odds of class True"
    mpl.pyplot.close(ax.figure)
    ax = small(loss="poisson").fit(X, np.exp(y / 4)).shap_values(X).plot("bars")
    assert "log of the prediction" in ax.get_xlabel()
    mpl.pyplot.close(ax.figure)


def test_scores_come_with_probabilities_and_predictions() -> None:
    X, y = numbers(9)
    two, three = y > np.median(y), np.digitize(y, np.quantile(y, [0.3, 0.6]))
    offset = np.linspace(-1, 1, len(y))
    binary, several = small(Classifier).fit(X, two), small(Classifier).fit(X, three)
    for explained, proba in (
        (binary.shap_values(X), binary.predict_proba(X)[:, 1]),
        (binary.shap_values(X, offset=offset), binary.predict_proba(X, offset=offset)[:, 1]),
        (several.shap_values(X), several.predict_proba(X)),
        (several.shap_values(X).output(2)[5:9], several.predict_proba(X)[5:9, 2]),
    ):
        np.testing.assert_allclose(explained.response[:, 1], proba, rtol=0, atol=1e-12)
        assert explained.response_name == "probability"
    scores = several.shap_values(X).base_value
    np.testing.assert_allclose(
        several.shap_values(X).response[0, 0], np.exp(scores) / np.exp(scores).sum(), rtol=0, atol=1e-12
    )
    counts = small(loss="poisson").fit(X, np.abs(y).round())
    explained = counts.shap_values(X)
    np.testing.assert_allclose(explained.response[:, 1], counts.predict(X), rtol=1e-12)
    np.testing.assert_allclose(explained.response[:, 0], np.exp(explained.base_value), rtol=1e-12)
    assert explained.response_name == "prediction"
    for loss in ({}, {"loss": "quantile", "quantile": [0.2, 0.8]}, {"loss": "normal"}):
        assert small(**loss).fit(X, y).shap_values(X).response is None


def test_scores_of_several_outputs_come_with_probabilities() -> None:
    X, y = numbers(10)
    both = np.column_stack([y > 0, np.digitize(y, np.quantile(y, [0.3, 0.6]))])
    model = small(Classifier).fit(X, both)
    first, second = model.shap_values(X)
    np.testing.assert_allclose(first.response[:, 1], model.predict_proba(X)[0][:, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(second.response[:, 1], model.predict_proba(X)[1], rtol=0, atol=1e-12)


def test_row_plots_of_scores_name_the_probability() -> None:
    X, y = numbers(11)
    model = small(Classifier).fit(X, y > np.median(y))
    ax = model.shap_values(X).plot_row(3)
    first, second = ax.get_xlabel().split("\n")
    assert first.startswith("log-odds of class True, from the base value")
    assert second.startswith("probability: from ")
    shown = [float(word) for word in second.split() if word[0].isdigit()]
    assert shown == pytest.approx(model.shap_values(X).response[3], abs=1e-3)
    ax = small().fit(X, y).shap_values(X).plot_row(3)
    assert "\n" not in ax.get_xlabel()
    mpl.pyplot.close("all")


# ---- other programs ----------------------------------------------------------------------------------


def as_shap_trees(model: Any) -> dict[str, Any]:
    """Return the model in the format of the package shap."""
    trees = []
    for engine in model.boosting_.trees():
        tree = FittedTree(engine, None, 1)
        to_left = tree.missing_go_to_left.astype(bool)
        trees.append(
            {
                "children_left": tree.children_left, "children_right": tree.children_right,
                "children_default": np.where(to_left, tree.children_left, tree.children_right),
                "features": tree.feature, "thresholds": tree.threshold, "values": tree.flat_value,
                "node_sample_weight": tree.weighted_n_node_samples,
            }
        )  # fmt: skip
    return {"trees": trees, "base_offset": float(model.boosting_.start[0])}


def test_agreement_with_the_shap_package() -> None:
    shap = pytest.importorskip("shap")
    X, y = numbers(11, 200, 5, missing=0)
    model = small(n_estimators=12, max_leaf_nodes=12).fit(X, y)
    explained = model.shap_values(X[:40], interactions=True)
    explainer = shap.TreeExplainer(as_shap_trees(model))
    np.testing.assert_allclose(explained.values, explainer.shap_values(X[:40], check_additivity=False), atol=1e-6)
    theirs = explainer.shap_interaction_values(X[:40])
    np.testing.assert_allclose(explained.interactions, theirs, atol=1e-6)


def test_agreement_with_lightgbm() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X, y = numbers(12, 400, 5, missing=0)
    ours = Regressor(n_estimators=5, max_leaf_nodes=8, min_samples_leaf=10).fit(X, y)
    options = {"num_leaves": 8, "min_data_in_leaf": 10, "min_data_in_bin": 1, "verbose": -1, "num_threads": 1}
    theirs = lightgbm.train(options, lightgbm.Dataset(X, y), 5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)  # the same trees
    parts = theirs.predict(X, pred_contrib=True)
    explained = ours.shap_values(X)
    np.testing.assert_allclose(explained.values, parts[:, :-1], atol=1e-5)
    np.testing.assert_allclose(explained.base_values, parts[:, -1], atol=1e-5)


def test_agreement_with_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    X, y = numbers(13, 400, 5, missing=0)
    ours = Regressor(n_estimators=5, max_leaf_nodes=8, min_samples_leaf=1).fit(X, y)
    options = {
        "max_leaves": 8, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist", "lambda": 0, "eta": 0.1,
        "base_score": float(y.mean()), "nthread": 1,
    }  # fmt: skip
    rows = xgboost.DMatrix(X, y)
    theirs = xgboost.train(options, rows, 5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(rows), atol=1e-4)
    explained = ours.shap_values(X, interactions=True)
    np.testing.assert_allclose(explained.values, theirs.predict(rows, pred_contribs=True)[:, :-1], atol=1e-4)
    pairs = theirs.predict(rows, pred_interactions=True)[:, :-1, :-1]
    np.testing.assert_allclose(explained.interactions, pairs, atol=1e-4)


def test_a_stream_is_read_once() -> None:
    import pyarrow as pa

    X, y = numbers(0, missing=0.0)
    table = pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])})
    model = Regressor(n_estimators=3).fit(table, y)
    forest = spinney.RandomForestRegressor(n_estimators=2, random_state=0).fit(table, y)
    for fitted, options in ((model, {}), (model, {"offset": y}), (forest, {})):
        found = fitted.shap_values(table.to_reader(max_chunksize=50), **options)
        np.testing.assert_array_equal(found.predictions, fitted.shap_values(table, **options).predictions)


def test_the_base_value_is_the_initial_score_plus_the_mean_of_each_tree() -> None:
    X, y = numbers(1)
    for subsample in (0.4, 1.0):
        model = Regressor(n_estimators=5, subsample=subsample, random_state=0).fit(X, y)
        expected = model.boosting_.start[0]
        for tree in (estimator.tree_ for estimator in model.estimators_.ravel()):
            is_leaf = tree.children_left < 0
            expected += np.average(tree.value.ravel()[is_leaf], weights=tree.weighted_n_node_samples[is_leaf])
        base_value = model.shap_values(X).base_value
        np.testing.assert_allclose(base_value, expected, rtol=1e-12)
        assert np.isclose(base_value, model.predict(X).mean(), rtol=1e-9) == (subsample == 1)
