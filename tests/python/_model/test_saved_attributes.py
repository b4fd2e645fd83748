"""Fitted attributes in the headers of model files."""

import json

import numpy as np
import pytest
from spinney._model.file.codec import (
    SavedState,
    bounds,
    columns,
    integer,
    number,
    numbers,
    word,
    words,
)
from spinney._model.file.container import ModelFileError, faults_named

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
    with pytest.raises(ModelFileError, match="damaged"), faults_named("x"):
        STATE.from_header(header)


def test_a_missing_entry_is_refused_unless_a_fit_may_leave_it_out():
    header = STATE.to_header(FITTED)
    del header["state"]["seed"]
    with pytest.raises(ModelFileError, match="seed"), faults_named("x"):
        STATE.from_header(header)
    with pytest.raises(ModelFileError, match="state"), faults_named("x"):
        STATE.from_header({})


def test_columns_of_different_lengths_are_refused():
    uneven = {"k": np.array([1]), "error": np.zeros(2)}
    header = STATE.to_header(FITTED | {"table_": uneven})
    with pytest.raises(ModelFileError, match="cross-validation"), faults_named("x"):
        STATE.from_header(header)
