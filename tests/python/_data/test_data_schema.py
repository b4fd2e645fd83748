"""Schemas: the kinds that are learned, how later tables are matched with them, and how they are saved."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from spinney._data import Feature, Schema, read_table

NAN = np.nan


def learn(X, **options):
    return Schema.learn(read_table(X), **options)


def codes(schema, X, **options):
    engine = schema.encode(read_table(X), **options)
    return np.column_stack([engine.column(j) for j in range(engine.n_columns)])


def cities(*values):
    return pd.DataFrame({"city": list(values)})


def test_features_say_name_kind_and_categories():
    X = pd.DataFrame(
        {
            "age": [30.5, NAN],
            "n": [1, 2],
            "member": [True, False],
            "city": ["Rome", "Bern"],
            "size": pd.Categorical(["s", "l"], ["s", "m", "l"], ordered=True),
            "void": [None, None],
        }
    )
    assert learn(X).features == (
        Feature("age", "number"),
        Feature("n", "number"),
        Feature("member", "boolean"),
        Feature("city", "category", ("Bern", "Rome")),
        Feature("size", "ordered", ("s", "m", "l")),
        Feature("void", "number", empty=True),
    )
    assert learn(X).names == list(X.columns)
    assert learn(X).n_features == 6
    assert learn(X).has_names


def test_columns_without_names_are_numbered():
    schema = learn(np.ones((2, 3), dtype=bool))
    assert schema.names == ["x0", "x1", "x2"]
    assert not schema.has_names
    assert {feature.kind for feature in schema.features} == {"boolean"}


# ---- categories -------------------------------------------------------------------------------------------


def test_categories_are_the_sorted_values_that_occur():
    X = pd.DataFrame({"c": pd.Categorical(["é", "b", "b", ""], ["b", "unused", "é", ""])})
    schema = learn(X)
    assert schema.features[0].categories == ("", "b", "é")
    np.testing.assert_array_equal(codes(schema, X).ravel(), [2, 1, 1, 0])


def test_one_category_is_a_category():
    X = cities("Bern", None)
    assert learn(X).features[0] == Feature("city", "category", ("Bern",))
    engine = learn(X).encode(read_table(X))
    assert engine.n_categories(0) == 1


@pytest.mark.parametrize(
    ("unseen", "expected"),
    [("missing", [0, NAN, NAN, 1]), ("other", [0, 2, NAN, 1])],
    ids=["missing", "other"],
)
def test_unseen_categories(unseen, expected):
    schema = learn(cities("Bern", "Rome"))
    later = cities("Bern", "Oslo", None, "Rome")
    np.testing.assert_array_equal(codes(schema, later, unseen=unseen).ravel(), expected)
    np.testing.assert_array_equal(codes(learn(cities("Bern", "Rome"), unseen=unseen), later).ravel(), expected)
    as_category = later.astype(pd.CategoricalDtype(["Oslo", "Rome", "Bern", "Nice"]))
    np.testing.assert_array_equal(codes(schema, as_category, unseen=unseen).ravel(), expected)


def test_levels_that_do_not_occur_are_not_unseen():
    later = cities("Bern").astype(pd.CategoricalDtype(["Oslo", "Bern"]))
    assert codes(learn(cities("Bern", "Rome")), later, unseen="error") == [[0]]


def test_a_missing_value_is_never_unseen():
    schema = learn(cities("Bern", "Rome"))
    nat = pd.Series([pd.NaT], dtype=object)
    for nothing in [[None], [NAN], [pd.NA], nat, np.array([NAN]), pd.Categorical([None], ["Oslo"])]:
        assert np.isnan(codes(schema, pd.DataFrame({"city": nothing}), unseen="error")).all()


GRADES = [1, 2, 2, 3]


@pytest.mark.parametrize(
    "later",
    [
        np.array([[3], [1], [2]], dtype=np.int8),
        np.array([[3], [1], [2]], dtype=np.uint64),
        np.array([[3.0], [1.0], [2.0]], dtype=np.float32),
        np.array([[3], [1.0], [2]], dtype=object),
        sp.csr_array(np.array([[3], [1], [2]])),
        pa.RecordBatch.from_arrays([pa.array([3, 1, 2]).dictionary_encode()], [""]),
        pd.DataFrame({0: pd.Categorical([3.0, 1.0, 2.0])}),
        pd.DataFrame({0: pd.array([3, 1, 2], dtype="Int8")}),
    ],
    ids=lambda later: type(later).__name__,
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_numbers_as_categories_are_compared_by_value(later):
    schema = learn(np.array([GRADES]).T, categorical_features=[0])
    assert schema.features[0] == Feature("x0", "category", (1, 2, 3))
    np.testing.assert_array_equal(codes(schema, later, unseen="error").ravel(), [2, 0, 1])


def test_booleans_as_categories_are_compared_by_value():
    schema = learn(pd.DataFrame({"b": [True, False]}), categorical_features=["b"])
    assert schema.features[0].categories == (False, True)
    np.testing.assert_array_equal(codes(schema, pl.DataFrame({"b": [1.0, 0.0, 2.0]})).ravel(), [1, 0, NAN])


@pytest.mark.parametrize("declared", [["b"], [1], [False, True], np.array([False, True]), (np.int64(1),)])
def test_categories_are_declared_by_name_position_or_mask(declared):
    X = pd.DataFrame({"a": [5, 6], "b": [8, 7]})
    assert [f.kind for f in learn(X, categorical_features=declared).features] == ["number", "category"]
    np.testing.assert_array_equal(codes(learn(X, categorical_features=declared), X), [[5, 1], [6, 0]])


def test_declared_categories_with_missing_and_infinite_values():
    X = np.array([[NAN], [np.inf], [-0.0], [0.0], [-np.inf]])
    schema = learn(X, categorical_features=[0])
    assert schema.features[0].categories == (-np.inf, 0.0, np.inf)
    np.testing.assert_array_equal(codes(schema, X).ravel(), [NAN, 2, 1, 1, 0])
    masked = pd.DataFrame({"a": pd.array([3, None, 1], dtype="Int8")})
    np.testing.assert_array_equal(codes(learn(masked, categorical_features=["a"]), masked).ravel(), [1, NAN, 0])


def test_an_order_is_declared_not_guessed():
    X = pd.DataFrame({"size": pd.Categorical(["l", "s", None], ["s", "m", "l"], ordered=True)})
    schema = learn(X)
    np.testing.assert_array_equal(codes(schema, X).ravel(), [2, 0, NAN])
    np.testing.assert_array_equal(codes(schema, {"size": ["m", "xl", "s"]}).ravel(), [1, NAN, 0])
    np.testing.assert_array_equal(codes(schema, {"size": ["m", "xl", "s"]}, unseen="other").ravel(), [1, NAN, 0])
    assert learn(X, categorical_features=["size"]).features[0] == Feature("size", "category", ("l", "s"))
    assert learn(X.astype(str)).features[0].kind == "category"


# ---- other representations of the same column -------------------------------------------------------------


def test_nan_in_a_dictionary_is_missing_not_unseen():
    X = pa.table({"c": pa.array([NAN, 2.5, 1.5]).dictionary_encode()})
    assert learn(X).features[0].categories == (1.5, 2.5)
    for unseen in ["error", "other"]:
        np.testing.assert_array_equal(codes(learn(X), X, unseen=unseen).ravel(), [NAN, 1, 0])


def test_numbers_may_come_as_categories_of_numbers():
    schema = learn(pd.DataFrame({"a": [1.0, 2.0]}))
    for values in [pd.Categorical([2, 5, None]), pd.array([2, 5, None], dtype="Int8"), [2, 5, None]]:
        np.testing.assert_array_equal(codes(schema, pd.DataFrame({"a": values})).ravel(), [2, 5, NAN])
    booleans = pl.DataFrame({"a": [True, None]})
    np.testing.assert_array_equal(codes(schema, booleans).ravel(), [1, NAN])


def test_numbers_may_come_as_nothing():
    schema = learn(pd.DataFrame({"a": [1.0, 2.0]}))
    for values in [[None], pd.Categorical([None], ["x"]), pd.array([None], dtype="str")]:
        assert np.isnan(codes(schema, pd.DataFrame({"a": values}))).all()


def test_columns_that_were_empty_at_fit_take_anything():
    for nothing in [
        [None, None],
        [NAN, NAN],
        pd.array([None, None], dtype="str"),
        pd.Categorical([None, None]),
    ]:
        schema = learn(pd.DataFrame({"a": nothing, "b": [1, 2]}))
        assert schema.features[0] == Feature("a", "number", empty=True)
        assert np.isnan(codes(schema, {"a": ["x"], "b": [1]})[0, 0])
        assert np.isnan(codes(schema, {"a": ["x"], "b": [1]}, unseen="other")[0, 0])
        assert codes(schema, {"a": [3], "b": [1]}, unseen="error")[0, 0] == 3
    assert learn(np.array([[NAN, NAN], [NAN, 1]])).features[0].empty
    assert not learn(np.array([[NAN, NAN], [NAN, 1]])).features[1].empty
    assert not learn(pd.DataFrame({"a": pd.array([None, 1], dtype="Int8")})).features[0].empty
    assert learn(pd.DataFrame({"a": pd.array([None, None], dtype="Int8")})).features[0].empty


# ---- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_columns_are_realigned_by_name(make):
    columns = {"a": [1.0, 2.0], "s": ["x", "y"], "b": [3.0, 4.0]}
    schema = learn(make(columns))
    expected = [[1, 0, 3], [2, 1, 4]]
    turned = make({name: columns[name] for name in ["b", "a", "s"]})
    np.testing.assert_array_equal(codes(schema, turned), expected)
    numbers = learn(make({"a": columns["a"], "b": columns["b"]}))
    turned = make({"b": columns["b"], "a": columns["a"]})
    np.testing.assert_array_equal(codes(numbers, turned), [[1, 3], [2, 4]])


def test_names_on_one_side_only_warn():
    named, bare = pd.DataFrame(np.eye(2), columns=["a", "b"]), np.eye(2)
    sentence = "^X does not have valid feature names, but Model was fitted with feature names$"
    with pytest.warns(UserWarning, match=sentence):
        np.testing.assert_array_equal(codes(learn(named), bare, estimator="Model"), bare)
    with pytest.warns(UserWarning, match="^X has feature names, but Model was fitted without feature names$"):
        np.testing.assert_array_equal(codes(learn(bare), named, estimator="Model"), bare)
    with warnings.catch_warnings(record=True) as caught:
        codes(learn(named), named)
        codes(learn(bare), bare)
        codes(learn(bare), pd.DataFrame(bare))
    assert not caught


# ---- saving -----------------------------------------------------------------------------------------------


def test_schemas_survive_json_with_the_types_of_their_values():
    X = pd.DataFrame(
        {
            "s": ["x", "1"],
            "i": [2**60, 1],
            "f": [0.1, np.inf],
            "b": [True, False],
            "o": pd.Categorical([2, 1], [2, 1], ordered=True),
            "n": [0.5, NAN],
            "v": [None, None],
        }
    )
    schema = learn(X, categorical_features=["i", "f", "b"], unseen="other")
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False)))
    assert again == schema
    assert again.features == schema.features
    assert again.unseen == "other"
    for old, new in zip(schema.features, again.features, strict=True):
        assert list(map(type, old.categories)) == list(map(type, new.categories))
    types = {feature.name: {type(value) for value in feature.categories} for feature in schema.features}
    assert types == {"s": {str}, "i": {int}, "f": {float}, "b": {bool}, "o": {int}, "n": set(), "v": set()}
    np.testing.assert_array_equal(codes(schema, X), codes(again, X))


def test_schemas_differ_if_any_part_does():
    schema = learn(cities("Bern", "Rome"))
    assert schema != learn(cities("Bern", "Oslo"))
    assert schema != learn(cities("Bern", "Rome"), unseen="error")
    assert schema != learn(np.array([["Bern"], ["Rome"]]))
    assert schema != "schema"
    assert repr(schema) == "Schema(1 features: 'city')"
