"""Fitted attributes in the headers of model files."""

import json

import numpy as np
import pytest
from spinney import ModelFileError
from spinney._model.file.codec import (
    SavedState,
    array,
    bounds,
    columns,
    flag,
    integer,
    listed,
    nullable,
    number,
    numbers,
    optional,
    saved_fields,
    score,
    table,
    text,
    word,
    words,
)
from spinney._model.file.container import model_file_errors

STATE = SavedState(
    "state",
    {
        "alpha_": number(0.0),
        "seed_": integer(key="seed"),
        "why_": word({"done": "", "settled": ""}),
        "names_": words(),
        "curve_": numbers(is_optional=True),
        "n_iter_": numbers(np.int64),
        "bounds_": bounds(),
        "table_": columns("k"),
    },
)
FITTED = {
    "alpha_": np.inf,
    "seed_": 3,
    "why_": "done",
    "names_": ["a", "b"],
    "n_iter_": np.array([1, 2]),
    "bounds_": np.array([1.5, np.inf]),
    "table_": {"k": np.array([1, 2]), "error": np.array([0.5, 0.25]), "folds": np.zeros((2, 3))},
    "other_": object(),
}


def test_what_is_written_is_read_again():
    header = json.loads(json.dumps(STATE.to_header(FITTED), allow_nan=False))
    found = STATE.from_header(header)
    assert found.keys() == FITTED.keys() - {"other_"}
    assert (found["alpha_"], found["seed_"], found["why_"], found["names_"]) == (np.inf, 3, "done", ["a", "b"])
    np.testing.assert_array_equal(found["bounds_"], FITTED["bounds_"])
    for name, column in FITTED["table_"].items():
        np.testing.assert_array_equal(found["table_"][name], column)
        assert found["table_"][name].dtype == column.dtype
    assert found["n_iter_"].dtype == np.int64


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("alpha_", -1.0),
        ("alpha_", "many"),
        ("alpha_", None),
        ("seed", 1.5),
        ("seed", True),
        ("why_", "lost"),
        ("why_", 1),
        ("names_", ["a", 1]),
        ("names_", "a"),
        ("curve_", [1.0, "2"]),
        ("curve_", 1.0),
        ("n_iter_", None),
        ("bounds_", ["inf"]),
        ("table_", {}),
        ("table_", [1]),
        ("table_", {"k": [1, 2]}),
    ],
)
def test_damaged_entries_are_refused(key, value):
    header = STATE.to_header(FITTED)
    header["state"][key] = value
    with pytest.raises(ModelFileError, match="damaged"), model_file_errors("x"):
        STATE.from_header(header)


def test_a_missing_entry_is_refused_unless_a_fit_may_leave_it_out():
    header = STATE.to_header(FITTED)
    del header["state"]["seed"]
    with pytest.raises(ModelFileError, match="seed"), model_file_errors("x"):
        STATE.from_header(header)
    with pytest.raises(ModelFileError, match="state"), model_file_errors("x"):
        STATE.from_header({})


def test_columns_of_different_lengths_are_refused():
    uneven = {"k": np.array([1]), "error": np.zeros(2)}
    header = STATE.to_header(FITTED | {"table_": uneven})
    with pytest.raises(ModelFileError, match="different lengths"), model_file_errors("x"):
        STATE.from_header(header)


MODEL = saved_fields(
    rows=array("float64", "n_rows", "n_terms"),
    codes=array(("uint16", "int32"), "n_rows", least=0, below="n_classes"),
    weight=optional(array("float64", "n_rows", above=0)),
    low=array("float64", "n_terms", finite=False),
    cost=numbers(np.float64, "n_classes", "n_classes", least=0),
    counts=numbers(np.int64, 2),
    n_near=integer(least=1, most="n_rows"),
    is_soft=flag(),
    origin=nullable(text(5)),
    scores=listed(score(), "n_terms"),
    curve=table(saved_fields(predicted=numbers(np.float64, "n_points"), observed=numbers(np.float64, "n_points"))),
)
VALUES = {
    "rows": np.arange(6.0).reshape(3, 2),
    "codes": np.array([0, 1, 1], dtype=np.int32),
    "low": np.array([np.nan, -np.inf]),
    "cost": np.array([[0.0, 2.0], [1.0, 0.0]]),
    "counts": np.array([3, 4]),
    "n_near": 3,
    "is_soft": True,
    "origin": None,
    "scores": [np.nan, 0.5],
    "curve": {"predicted": np.array([0.1, 0.9]), "observed": np.array([0.2, 0.8])},
}


def header_with(**entries):
    return json.loads(json.dumps(MODEL.to_header(VALUES), allow_nan=False)) | entries


def test_shapes_and_bounds_by_name_are_read_again():
    found = MODEL.from_header(header_with(), n_classes=2)
    assert found.keys() == VALUES.keys()
    for name in ("rows", "codes", "low", "cost", "counts", "scores"):
        np.testing.assert_array_equal(found[name], VALUES[name])
    assert found["codes"].dtype == np.int32
    assert (found["n_near"], found["is_soft"], found["origin"]) == (3, True, None)
    np.testing.assert_array_equal(found["curve"]["observed"], [0.2, 0.8])


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("codes", {"codes": np.zeros(2, dtype=np.int32)}),
        ("rows", {"rows": np.full((3, 2), np.inf)}),
        ("rows", {"rows": np.zeros((3, 2), dtype=np.int32)}),
        ("rows", {"rows": np.zeros(3)}),
        ("codes", {"codes": np.array([0, 1, 2], dtype=np.int32)}),
        ("codes", {"codes": np.array([0, -1, 1], dtype=np.int32)}),
        ("weight", {"weight": np.array([1.0, 0.0, 1.0])}),
        ("weight", {"weight": np.ones(2)}),
        ("low", {"low": np.zeros(3)}),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, changed):
    header = header_with(**{name: MODEL.fields[name].write(changed[name])})
    with pytest.raises(ModelFileError, match=f"damaged: its '{name}' (holds|has|is)"), model_file_errors("x"):
        MODEL.from_header(header, n_classes=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight", None),
        ("cost", [[0.0, 1.0]]),
        ("cost", [[0.0, -1.0], [1.0, 0.0]]),
        ("cost", [[0.0, 1.0], [1.0]]),
        ("counts", [3.5, 4]),
        ("counts", [[3, 4]]),
        ("n_near", 4),
        ("n_near", 0),
        ("is_soft", 1),
        ("origin", "a long way off"),
        ("origin", 1),
        ("scores", [None, "inf"]),
        ("scores", [None]),
        ("curve", {"predicted": [0.1], "observed": [0.2, 0.3]}),
        ("curve", {"predicted": [0.1]}),
        ("curve", [0.1]),
    ],
)
def test_entries_that_do_not_fit_are_refused(name, value):
    with pytest.raises(ModelFileError, match="damaged"), model_file_errors("x"):
        MODEL.from_header(header_with(**{name: value}), n_classes=2)
