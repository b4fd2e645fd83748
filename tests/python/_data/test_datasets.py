"""The bundled tables: the same numbers whatever they come as, with and without frame libraries."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from spinney.datasets import PENGUIN_FEATURES, load_penguins


def test_pandas_penguins():
    X, y = load_penguins(as_frame="pandas")
    assert X.shape == (344, 7)
    assert tuple(X.columns) == PENGUIN_FEATURES
    assert list(X["island"].cat.categories) == ["Biscoe", "Dream", "Torgersen"]
    assert list(X["sex"].cat.categories) == ["female", "male"]
    assert X.isna().sum().to_dict() == {
        "island": 0,
        "bill_length_mm": 2,
        "bill_depth_mm": 2,
        "flipper_length_mm": 2,
        "body_mass_g": 2,
        "sex": 11,
        "year": 0,
    }
    assert y.name == "species"
    assert y.value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}


def test_polars_penguins():
    X, y = load_penguins(as_frame="polars")
    assert X.shape == (344, 7)
    assert X.schema["island"] == pl.Enum(["Biscoe", "Dream", "Torgersen"])
    assert X.schema["body_mass_g"] == pl.Int64
    assert X["sex"].null_count() == 11
    assert y.name == "species"
    assert y.dtype == pl.String


def test_all_three_forms_hold_the_same_values():
    from_pandas, species = load_penguins(as_frame="pandas")
    from_polars, _ = load_penguins(as_frame="polars")
    array, names = load_penguins(as_frame=False)
    assert array.dtype == object
    assert list(names) == list(species)
    for j, name in enumerate(PENGUIN_FEATURES):
        if name in ("island", "sex"):
            strings = [None if pd.isna(value) else value for value in from_pandas[name]]
            assert from_polars[name].to_list() == strings
            assert array[:, j].tolist() == strings
        else:
            np.testing.assert_array_equal(from_polars[name].cast(pl.Float64).to_numpy(), from_pandas[name])
            np.testing.assert_array_equal(array[:, j].astype(float), from_pandas[name])


def test_known_rows():
    X, y = load_penguins(as_frame="polars")
    assert X.row(0) == ("Torgersen", 39.1, 18.7, 181, 3750, "male", 2007)
    assert X.row(3) == ("Torgersen", None, None, None, None, None, 2007)
    assert X.row(343) == ("Dream", 50.2, 18.7, 198, 3775, "female", 2009)
    assert (y[0], y[343]) == ("Adelie", "Chinstrap")


@pytest.mark.parametrize("as_frame", [None, True])
def test_pandas_comes_first(as_frame):
    assert isinstance(load_penguins(as_frame=as_frame)[0], pd.DataFrame)


@pytest.mark.parametrize("wrong", ["numpy", 3, ["pandas"]])
def test_an_unknown_form_is_refused(wrong):
    with pytest.raises(ValueError, match=r"as_frame must be 'pandas', 'polars', True, False or None, not"):
        load_penguins(as_frame=wrong)


def load_without(blocked, as_frame):
    """Return the type of X in an interpreter that lacks some packages, or the ImportError's message."""
    code = (
        f"import json, sys; sys.path.insert(0, {str(Path(spinney.__file__).parent.parent)!r})\n"
        f"for name in {blocked!r}: sys.modules[name] = None\n"
        "from spinney.datasets import load_penguins\n"
        f"try: print(json.dumps(type(load_penguins(as_frame={as_frame!r})[0]).__module__.split('.')[0]))\n"
        "except ImportError as error: print(json.dumps(str(error)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_polars_serves_without_pandas():
    assert load_without(["pandas"], None) == "polars"
    assert load_without(["pandas"], True) == "polars"


def test_numpy_serves_without_either():
    assert load_without(["pandas", "polars"], None) == "numpy"


def test_a_frame_without_a_frame_library_states_what_to_do():
    assert "install one, or pass as_frame=False" in load_without(["pandas", "polars"], True)
    assert "pandas" in load_without(["pandas", "polars"], "pandas")
