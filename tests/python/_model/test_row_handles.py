"""Row predictors: rows of any form are predicted as by the model, or the error names the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import spinney

MODELS = (
    spinney.DecisionTreeRegressor(max_leaf_nodes=8),
    spinney.RandomForestRegressor(n_estimators=3, random_state=0),
    spinney.GradientBoostingRegressor(n_estimators=5),
)
by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def numbers() -> tuple[Any, Any]:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["a", "b", "c"])
    return X, X["a"] - 2 * X["b"]


def mixed() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    town = pd.array(rng.choice(["Ely", "Rye", None], 200), dtype="string")
    rooms = pd.array(np.where(rng.random(200) < 0.2, None, rng.integers(0, 5, 200)), dtype="Int64")
    X = pd.DataFrame({"size": rng.normal(size=200), "rooms": rooms, "town": town})
    is_ely = np.array([value == "Ely" for value in X["town"].fillna("none")])
    return X, X["size"].to_numpy() + 5.0 * is_ely + X["rooms"].fillna(9).to_numpy(float)


@by_model
def test_a_series_is_read_by_its_names(model: Any) -> None:
    X, y = numbers()
    handle = model.fit(X, y).to_predictor()
    expected = model.predict(X[:1])[0]
    assert handle.predict(X.iloc[0]) == expected
    assert handle.predict(X[["c", "a", "b"]].iloc[0]) == expected
    assert handle.predict(X.iloc[0].reset_index(drop=True)) == expected
    with pytest.raises(ValueError, match="no value for column 'b'"):
        handle.predict(X[["c", "a"]].iloc[0])
    nameless = model.fit(X.to_numpy(), y).to_predictor()
    assert nameless.predict(X.iloc[0]) == expected


@by_model
def test_what_is_masked_is_missing(model: Any) -> None:
    X, y = numbers()
    X.iloc[::5, 0], y[::5] = np.nan, 20.0
    handle = model.fit(X.to_numpy(), y).to_predictor()
    row = np.ma.array([1.0, 0.5, 0.1], mask=[True, False, False])
    assert handle.predict(row) == model.predict([[np.nan, 0.5, 0.1]])[0]


@by_model
def test_pandas_na_is_missing(model: Any) -> None:
    X, y = mixed()
    handle = model.fit(X, y).to_predictor()
    for column in ("rooms", "town"):
        row = X[X[column].isna()].iloc[:1]
        assert handle.predict(row.iloc[0].to_dict() | {column: pd.NA}) == model.predict(row)[0]


@by_model
def test_what_is_no_row_is_refused_in_words(model: Any) -> None:
    X, y = numbers()
    handle = model.fit(X, y).to_predictor()
    for table in (X.to_numpy()[:1], X.to_numpy()[:2], X, X.to_numpy()[:, :1]):
        with pytest.raises(ValueError, match="one row, but this has 2 dimensions"):
            handle.predict(table)
    for other in ("123", b"123", {1.0, 2.0, 3.0}, 3.0):
        with pytest.raises((TypeError, ValueError), match="A row is a list"):
            handle.predict(other)
    for short in ([1.0], np.ones(1), np.ones(1, dtype=np.float32), (1.0,)):
        with pytest.raises(ValueError, match="The row has 1 values, but the model has 3 columns"):
            handle.predict(short)
    for bad in ("x", [1.0], 1j, 10**400):
        with pytest.raises(ValueError, match="Column 'a' holds numbers, but the row has"):
            handle.predict([bad, 1.0, 2.0])
    with pytest.raises(ValueError, match="no value for column 'c'"):
        handle.predict({"a": 1.0, "b": 2.0})


@by_model
def test_rows_with_categories_are_refused_in_words(model: Any) -> None:
    X, y = mixed()
    handle = model.fit(X, y).to_predictor()
    with pytest.raises(ValueError, match="The row has 2 values, but the model has 3 columns"):
        handle.predict([1.0, 2.0])
    with pytest.raises(ValueError, match=r"Column 'town' holds categories, but the row has \['Ely'\]"):
        handle.predict([1.0, 2.0, ["Ely"]])


def test_offsets_of_a_row_are_finite() -> None:
    X, y = numbers()
    handle = spinney.GradientBoostingRegressor(n_estimators=2).fit(X, y).to_predictor()
    for offset in (np.nan, [np.inf]):
        with pytest.raises(ValueError, match="The offset of a row must be finite"):
            handle.predict([0.0, 0.0, 0.0], offset=offset)
    with pytest.raises(ValueError, match=r"The offset of a row is one number. Got 'a'"):
        handle.predict([0.0, 0.0, 0.0], offset="a")
