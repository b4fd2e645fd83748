"""Columns that boosting combines: sums, differences, products and ratios of numbers, and crosses of categories."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle.saved import through_bytes
from sklearn.base import clone
from spinney._data import Schema

N = 240
PAIRS = [("a", "+", "b"), ("b", "-", "c"), ("a", "*", "c"), ("c", "/", "a")]
KINDS = [spinney.GradientBoostingRegressor, spinney.GradientBoostingClassifier]


@cache
def table() -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(3)
    X: dict[str, Any] = {name: rng.normal(size=N).round(2) for name in "abc"}
    X["a"][::9], X["b"][::7] = 0.0, np.nan
    X["kind"] = rng.choice(["u", "v", "w"], size=N)
    y = X["a"] * X["c"] + (X["kind"] == "u") + np.nan_to_num(X["b"]) / 4
    return X, y


def target(kind: Any) -> Any:
    y = table()[1]
    return (y > 0.3).astype(int) if kind is spinney.GradientBoostingClassifier else y


def by_hand() -> dict[str, Any]:
    """Return the table with the combined columns at its end."""
    X = table()[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(X["a"] == 0, np.nan, X["c"] / X["a"])
    return X | {"p": X["a"] + X["b"], "q": X["b"] - X["c"], "r": X["a"] * X["c"], "s": ratio}


def small(kind: Any, **parameters: Any) -> Any:
    return kind(**({"n_estimators": 12, "min_samples_leaf": 3, "feature_combinations": PAIRS} | parameters))


def scores_of(model: Any, X: Any) -> Any:
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameters", [{}, {"linear_leaves": True}, {"max_features": 3, "random_state": 2}])
def test_the_model_is_that_of_a_table_with_these_columns(kind: Any, parameters: dict[str, Any]) -> None:
    X, wide = table()[0], by_hand()
    model = small(kind, **parameters).fit(X, target(kind))
    reference = small(kind, **parameters, feature_combinations=None).fit(wide, target(kind))
    assert np.array_equal(scores_of(model, X), scores_of(reference, wide))
    assert model.schema_.names == list(X)
    assert model.boosting_.split_counts(8)[4:].sum() > 0
    half_and_half = reference.feature_importances_[6:] / 2
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_[0] >= reference.feature_importances_[0] + half_and_half.sum() - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_files_handles_and_staged_predictions(kind: Any) -> None:
    X = table()[0]
    model = small(kind, linear_leaves=True).fit(X, target(kind))
    loaded = through_bytes(model)
    assert loaded.fingerprint() == model.fingerprint()
    assert np.array_equal(loaded.predict(X), model.predict(X))
    handle = loaded.to_predictor()
    rows = [{name: column[i] for name, column in X.items()} for i in range(40)]
    assert np.array_equal([handle.predict(row) for row in rows], model.predict(X)[:40])
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last.astype(float), model.predict(X).astype(float), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_background", [False, True])
def test_shapley_values_are_those_of_the_columns_of_the_table(kind: Any, with_background: bool) -> None:
    X, wide = table()[0], by_hand()
    model = small(kind).fit(X, target(kind))
    reference = small(kind, feature_combinations=None).fit(wide, target(kind))
    given: dict[str, Any] = {"interactions": True}
    of_wide = given | ({"background": {k: v[:9] for k, v in wide.items()}} if with_background else {})
    given |= {"background": {k: v[:9] for k, v in X.items()}} if with_background else {}
    explained, expected = model.shap_values(X, **given), reference.shap_values(wide, **of_wide)
    assert explained.values.shape == (N, 4)
    np.testing.assert_allclose(explained.predictions, scores_of(model, X), atol=1e-9)
    np.testing.assert_allclose(explained.interactions.sum(axis=2), explained.values, atol=1e-9)
    spread = {name: float(f"{np.nanstd(X[name]):.3g}") for name in "abc"}
    of_sum, of_difference = spread["a"] / (spread["a"] + spread["b"]), spread["c"] / (spread["b"] + spread["c"])
    p, q, r, s = expected.values[:, 4:].T
    np.testing.assert_allclose(explained.values[:, 0], expected.values[:, 0] + of_sum * p + r / 2 + s / 2, atol=1e-9)
    np.testing.assert_allclose(
        explained.values[:, 2], expected.values[:, 2] + of_difference * q + r / 2 + s / 2, atol=1e-9
    )


def test_permuted_columns_change_the_combined_ones() -> None:
    X, y = table()
    model = small(spinney.GradientBoostingRegressor).fit(X, y)
    found = model.importances(X, y, kind="permutation")
    assert found.names == list(X)
    losses = [
        np.square(y - model.predict(X | {"a": X["a"][np.random.default_rng([0, 0, k]).permutation(N)]})).mean()
        for k in range(5)
    ]
    np.testing.assert_allclose(found.importance[0], np.mean(losses) - np.square(y - model.predict(X)).mean())
    np.testing.assert_allclose(model.importances(kind="splits").importance.sum(), 1.0)


def test_text_names_the_combined_columns() -> None:
    X, y = table()
    model = small(spinney.GradientBoostingRegressor, n_estimators=30).fit(X, y)
    text = "\n".join(spinney.export_text(tree) for tree in model.estimators_[:, 0])
    assert all(name in text for name in ("a + b", "b − c", "a × c", "c / a"))
    assert " a + " not in text.replace("├── a + b", "").replace("└── a + b", "")


def test_a_combined_column_with_the_name_of_a_column_has_parentheses() -> None:
    X, y = table()
    named = {"a": X["a"], "c": X["c"], "a × c": X["b"]}
    model = small(spinney.GradientBoostingRegressor, feature_combinations=[("a", "*", "c")]).fit(named, y)
    assert [feature.name for feature in model.schema_.split_features] == ["a", "c", "a × c", "(a × c)"]
    assert "(a × c) ≤" in "".join(str(rule) for rule in spinney.rules(model.estimators_[0, 0]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "empty list"),
        ([("a", "b")], "is a list of"),
        (["a + b"], "is a list of"),
        ([("kind", "*", "kind")], "with itself"),
        ([("a", "^", "b")], "'\\+', '-', '\\*', '/'"),
        ([("a", "+", "A")], "names a column that the table does not have: 'A'"),
        ([("a", "+", 9)], "positions from 0 to 3"),
        ([("a", "+", "kind")], "'a' holds numbers and 'kind' holds categories"),
        ([("a", "+", "a")], "with itself"),
        ([("a", "+", "b"), (0, "+", 1)], "twice"),
    ],
)
def test_unusable_lists_are_refused(given: Any, message: str) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=message):
        small(spinney.GradientBoostingRegressor, feature_combinations=given).fit(X, y)


def test_other_settings_by_column_are_refused() -> None:
    X, y = table()
    for parameters in ({"monotonic_cst": {"a": 1}}, {"interaction_cst": [["a"]]}, {"feature_costs": {"a": 2.0}}):
        with pytest.raises(ValueError, match="feature_combinations does not support"):
            small(spinney.GradientBoostingRegressor, **parameters).fit(X, y)
    with pytest.raises(ValueError, match="in temporary files"):
        small(spinney.GradientBoostingRegressor).fit(spinney.scan([X | {"y": y}]), "y")


def test_a_warm_start_keeps_them() -> None:
    X, y = table()
    model = small(spinney.GradientBoostingRegressor, warm_start=True).fit(X, y)
    model.set_params(n_estimators=20).fit(X, y)
    assert model.fingerprint() == small(spinney.GradientBoostingRegressor, n_estimators=20).fit(X, y).fingerprint()
    with pytest.raises(ValueError, match="grown with a \\+ b, b − c, a × c, c / a"):
        model.set_params(n_estimators=30, feature_combinations=PAIRS[:2]).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"operations": ["sum"]},
        {"operations": ["sum", "sum", "product", "power"]},
        {"operations": "sum"},
        {"coefficients": [[1.0, 1.0], [1.0, -1.0], [1.0, 2.0], [1.0, 1.0]]},
        {"parts": [[0, 1], [1, 2], [0, 3], [2, 0]]},
        {"plain": [1, 3]},
        {"operations": ["sum", "sum", "product", "cross"]},
    ],
)
def test_damaged_combinations_are_refused(change: dict[str, Any]) -> None:
    X, y = table()
    fields = small(spinney.GradientBoostingRegressor).fit(X, y).schema_.to_dict()
    assert Schema.from_dict(fields).to_dict() == fields
    with pytest.raises(ValueError, match="This is not a schema"):
        Schema.from_dict(fields | {"combinations": fields["combinations"] | change})


# ---- crosses of categories ---------------------------------------------------------------------------------------


def categories(n: int = N) -> tuple[dict[str, Any], Any]:
    """Return two columns of categories whose pairs matter, a number, and the target."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, [4, 5], size=(n, 2))
    X: dict[str, Any] = {"colour": np.array([*"rgbw"], dtype=object)[codes[:, 0]]}
    X |= {"size": np.array([*"vwxyz"], dtype=object)[codes[:, 1]], "x": rng.normal(size=n)}
    effect = rng.normal(size=(4, 5))
    y = effect[codes[:, 0], codes[:, 1]] + 0.3 * X["x"] + 0.3 * rng.normal(size=n)
    X["colour"][::13] = None
    return X, y


def crossed(kind: Any, **parameters: Any) -> Any:
    return small(kind, feature_combinations=[("colour", "*", "size")], **parameters)


def of_kind(kind: Any, y: Any) -> Any:
    return (y > 0).astype(int) if kind is spinney.GradientBoostingClassifier else y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameters", [{}, {"linear_leaves": True}, {"categories": {"max_one_hot": 0}}])
def test_a_cross_is_a_column_of_the_pairs_of_categories(kind: Any, parameters: dict[str, Any]) -> None:
    X, y = categories()
    pairs = [None if a is None else f"{a}{b}" for a, b in zip(X["colour"], X["size"], strict=True)]
    wide = X | {"pair": np.array(pairs, dtype=object)}
    model = crossed(kind, **parameters).fit(X, of_kind(kind, y))
    reference = small(kind, **parameters, feature_combinations=None).fit(wide, of_kind(kind, y))
    np.testing.assert_allclose(scores_of(model, X), scores_of(reference, wide), rtol=0, atol=1e-12)
    expected = reference.feature_importances_
    credited = [expected[0] + expected[3] / 2, expected[1] + expected[3] / 2, expected[2]]
    np.testing.assert_allclose(model.feature_importances_, credited)
    assert expected[3] > 0.1


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_files_and_handles_cross_unseen_and_missing_categories(unseen: str) -> None:
    X, y = categories()
    model = crossed(spinney.GradientBoostingRegressor, unseen=unseen).fit(X, y)
    loaded, new = through_bytes(model), {name: column[:40].copy() for name, column in X.items()}
    new["colour"][:4], new["size"][2:9] = ["?", None, "?", "r"], ["?", None, "v", "?", "w", None, "?"]
    assert loaded.fingerprint() == model.fingerprint()
    assert loaded.schema_ == model.schema_
    assert np.array_equal(loaded.predict(new), model.predict(new))
    handle = loaded.to_predictor()
    singles = [handle.predict({name: column[i] for name, column in new.items()}) for i in range(40)]
    assert np.array_equal(singles, model.predict(new))
    explained = model.shap_values(new)
    assert explained.values.shape == (40, 3)
    np.testing.assert_allclose(explained.predictions, model.predict(new), atol=1e-9)
    if unseen == "missing":
        known = {name: np.where(column == "?", None, column) for name, column in new.items()}
        assert np.array_equal(model.predict(known), model.predict(new))


def test_text_names_crossed_columns_and_their_categories() -> None:
    X, y = categories()
    model = crossed(spinney.GradientBoostingRegressor).fit(X, y)
    assert [feature.name for feature in model.schema_.split_features] == ["colour", "size", "x", "colour × size"]
    assert "r × v" in model.schema_.split_features[3].categories
    text = "\n".join(spinney.export_text(tree) for tree in model.estimators_[:, 0])
    assert "colour × size" in text
    assert "r × y" in text


def test_too_many_pairs_of_categories_are_refused() -> None:
    X, y = categories(300)
    X["colour"], X["size"] = (np.array([f"{name}{i}" for i in range(300)], dtype=object) for name in "ab")
    model = crossed(spinney.GradientBoostingRegressor, categorical_features=["colour", "size"])
    with pytest.raises(ValueError, match="have 90,601 pairs of categories, more than 65,536"):
        model.fit(X, y)


def test_held_out_rows_choose_automatic_crosses() -> None:
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 6, size=(3200, 6))
    X: dict[str, Any] = {f"c{j}": np.array([*"pqrstu"], dtype=object)[codes[:, j]] for j in range(6)}
    effects = rng.normal(size=(3, 6, 6))
    y = sum(effects[j][codes[:, 2 * j], codes[:, 2 * j + 1]] for j in range(3)) + 0.1 * rng.normal(size=3200)
    train, new = ({name: column[which] for name, column in X.items()} for which in (slice(1200), slice(1200, None)))
    auto, without = (
        spinney.GradientBoostingRegressor(feature_combinations=given).fit(train, y[:1200]) for given in ("auto", None)
    )
    errors = [np.square(model.predict(new) - y[1200:]).mean() for model in (auto, without)]
    assert errors[0] < 0.9 * errors[1]
    names = [feature.name for feature in auto.schema_.split_features[6:]]
    assert {"c0 × c1", "c2 × c3", "c4 × c5"} <= set(names)
    assert through_bytes(auto).fingerprint() == auto.fingerprint()
    assert np.array_equal(through_bytes(auto).predict(new), auto.predict(new))


def product(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.slow
def test_held_out_rows_choose_automatic_combinations() -> None:
    X, y = product(2200)
    train, new = slice(0, 1200), slice(1200, None)
    models = {
        given: spinney.GradientBoostingRegressor(feature_combinations=given).fit(X[train], y[train])
        for given in ("auto", None)
    }
    auto, without = models["auto"], models[None]
    assert 1 - auto.score(X[new], y[new]) < 0.5 * (1 - without.score(X[new], y[new]))
    pool = auto.schema_.pool
    assert "x0 × x1" in [pool.name(k, auto.schema_.names) for k in range(len(pool))]
    assert without.schema_.pool is None
    assert clone(auto).set_params(n_jobs=3).fit(X[train], y[train]).fingerprint() == auto.fingerprint()
    assert np.array_equal(through_bytes(auto).predict(X), auto.predict(X))
    np.testing.assert_allclose(auto.shap_values(X[:50]).predictions, auto.predict(X[:50]), atol=1e-9)
    assert auto.feature_importances_[:2].min() > 3 * auto.feature_importances_[3:].max()
    assert auto.predict_interval(X[new]).shape[0] == 1000


def test_there_are_no_automatic_combinations_without_a_race() -> None:
    X, y = product(1200)
    for parameters, n in (({}, 1000), ({"n_estimators": 5}, 1200), ({"linear_leaves": False}, 1200)):
        assert spinney.GradientBoostingRegressor(**parameters).fit(X[:n], y[:n]).schema_.pool is None


def test_what_columns_hold_is_named_where_they_cannot_be_crossed() -> None:
    X = {"ordered": pd.Categorical(["a", "b"] * 30, ordered=True), "none": [None] * 60, "kind": ["x", "y"] * 30}
    for name, held in [("ordered", "ordered categories"), ("none", "no values")]:
        model = small(spinney.GradientBoostingRegressor, feature_combinations=[(name, "*", "kind")])
        with pytest.raises(ValueError, match=f"'{name}' holds {held} and 'kind' holds categories"):
            model.fit(pd.DataFrame(X), np.arange(60.0))
