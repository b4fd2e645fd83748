"""Small tables that come with the package, and generators of simulated rows, for examples, teaching and tests.

The tables need neither a network nor a frame library: without pandas and polars they are returned as NumPy arrays.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from spinney.datasets.simulated import (
    ThresholdClasses,
    TwoSources,
    make_darts,
    make_diagonal,
    make_nested_spheres,
    make_thresholds,
    make_xor,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = [
    "PENGUIN_FEATURES",
    "ThresholdClasses",
    "TwoSources",
    "load_batting",
    "load_heart",
    "load_loans",
    "load_penguins",
    "make_darts",
    "make_diagonal",
    "make_nested_spheres",
    "make_thresholds",
    "make_xor",
]

PENGUIN_FEATURES = (
    "island",
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
    "sex",
    "year",
)
"""The feature columns of the penguins, in order."""

_PENGUIN_CATEGORIES = {"island": ["Biscoe", "Dream", "Torgersen"], "sex": ["female", "male"]}

_LOAN_CATEGORIES = {"married": ["no", "yes"], "own_house": ["no", "yes"], "gender": ["female", "male"]}

_HEART_CATEGORIES = {
    "sex": ["female", "male"],
    "chest_pain": ["asympt", "atyp_angina", "non_anginal", "typ_angina"],
    "high_sugar": ["no", "yes"],
    "rest_ecg": ["left_vent_hyper", "normal", "st_t_wave_abnormality"],
    "exercise_angina": ["no", "yes"],
    "st_slope": ["down", "flat", "up"],
    "thallium": ["fixed_defect", "normal", "reversible_defect"],
}

ObjectArray = np.ndarray[Any, np.dtype[np.object_]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Columns = dict[str, list[str | None]]


@overload
def load_penguins(*, as_frame: Literal["pandas"]) -> tuple[pd.DataFrame, pd.Series[str]]: ...
@overload
def load_penguins(*, as_frame: Literal["polars"]) -> tuple[pl.DataFrame, pl.Series]: ...
@overload
def load_penguins(*, as_frame: Literal[False]) -> tuple[ObjectArray, ObjectArray]: ...
@overload
def load_penguins(*, as_frame: bool | None = None) -> tuple[Any, Any]: ...


def load_penguins(*, as_frame: Literal["pandas", "polars"] | bool | None = None) -> tuple[Any, Any]:
    """Load the Palmer penguins: 344 birds, 7 features, the species as the target.

    Two features are categories (island, sex), five are numbers; 11 rows have missing values. The data are in
    the public domain (CC0).

    Parameters
    ----------
    as_frame : {"pandas", "polars"}, bool or None, default=None
        What to return. None: a pandas frame if pandas is installed, else a polars frame, else NumPy arrays.
        True: the same, with an error if neither is installed. False: NumPy arrays.

    Returns
    -------
    X : DataFrame of shape (344, 7), or ndarray of shape (344, 7) and dtype object
        The columns of `PENGUIN_FEATURES`. In a frame the categories have a categorical dtype (pandas
        ``category``, polars ``Enum``); in an array they are strings, with None where missing.
    y : Series or ndarray of shape (344,)
        The species as a string: Adelie, Chinstrap or Gentoo.

    Examples
    --------
    >>> from spinney.datasets import load_penguins
    >>> X, y = load_penguins()
    >>> X.shape
    (344, 7)
    """
    columns = _read_columns("penguins.csv")
    return _as_table(as_frame, columns, "species", _PENGUIN_CATEGORIES)


def load_loans(*, as_frame: Literal["pandas", "polars"] | bool | None = None) -> tuple[Any, Any]:
    """Load ten loans, small enough to search a split by hand: 5 features, and whether the credit was good or bad.

    Parameters
    ----------
    as_frame : {"pandas", "polars"}, bool or None, default=None
        What to return, as in `load_penguins`.

    Returns
    -------
    X : DataFrame of shape (10, 5), or ndarray of shape (10, 5) and dtype object
        age and income (numbers), married, own_house and gender (categories).
    y : Series or ndarray of shape (10,)
        The credit: "good" or "bad", five of each.

    Examples
    --------
    >>> from spinney.datasets import load_loans
    >>> X, y = load_loans()
    >>> list(X)
    ['age', 'married', 'own_house', 'income', 'gender']
    """
    columns = _read_columns("loans.csv")
    return _as_table(as_frame, columns, "credit", _LOAN_CATEGORIES)


def load_heart(*, as_frame: Literal["pandas", "polars"] | bool | None = None) -> tuple[Any, Any]:
    """Load 303 patients of a clinic in Cleveland: 13 features, and whether a coronary artery is narrowed.

    Six features are numbers, seven are categories; 7 rows have a missing value. The source is the processed Cleveland
    file of "Heart Disease" in the UCI Machine Learning Repository (https://doi.org/10.24432/C52P4X), collected by A.
    Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano, donated by D. W. Aha, and published under CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0): whoever passes the table on must name these people and state the
    changes. Changes in this copy: codes became words, columns have longer names, and the diagnosis is only "no" or
    "yes".

    Parameters
    ----------
    as_frame : {"pandas", "polars"}, bool or None, default=None
        What to return, as in `load_penguins`.

    Returns
    -------
    X : DataFrame of shape (303, 13), or ndarray of shape (303, 13) and dtype object
        Age, sex, kind of chest pain, blood pressure and cholesterol, and results of the tests at rest and in exercise.
    y : Series or ndarray of shape (303,)
        The disease: "no" (165) or "yes" (138).

    Examples
    --------
    >>> from spinney.datasets import load_heart
    >>> X, y = load_heart()
    >>> X.shape
    (303, 13)
    """
    return _as_table(as_frame, _read_columns("heart.csv"), "disease", _HEART_CATEGORIES)


def load_batting() -> tuple[Floats, Floats]:
    """Load the batting averages of 18 baseball players in 1970, an example of the James-Stein estimator.

    Returns
    -------
    first_45 : ndarray of shape (18,)
        Fraction of hits in the first 45 at-bats; their mean is .265.
    rest_of_season : ndarray of shape (18,)
        Fraction of hits in the rest of the season, which the first fraction is to predict.

    Examples
    --------
    >>> from spinney.datasets import load_batting
    >>> first, rest = load_batting()
    >>> round(float(first.mean()), 3), round(float(rest.mean()), 3)
    (0.265, 0.265)
    """
    columns = _read_columns("batting.csv")
    return np.array(_as_floats(columns["first_45"])), np.array(_as_floats(columns["rest_of_season"]))


def _chosen_library(as_frame: object) -> str | None:
    if as_frame is False:
        return None
    if isinstance(as_frame, str) and as_frame in ("pandas", "polars"):
        return as_frame
    if as_frame is not None and as_frame is not True:
        raise ValueError(f"as_frame must be 'pandas', 'polars', True, False or None, not {as_frame!r}.")
    for library in ("pandas", "polars"):
        if find_spec(library) is not None:
            return library
    if as_frame is True:
        raise ImportError("as_frame=True needs pandas or polars: install one, or pass as_frame=False.")
    return None


def _read_columns(name: str) -> Columns:
    text = (files("spinney.datasets") / name).read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    return {column: [row[j] or None for row in rows] for j, column in enumerate(header)}


def _as_floats(column: list[str | None]) -> list[float]:
    return [float("nan") if value is None else float(value) for value in column]


def _as_table(as_frame: object, columns: Columns, target: str, categories: dict[str, list[str]]) -> tuple[Any, Any]:
    """Return the features and the target as tables of the chosen library."""
    library, y = _chosen_library(as_frame), columns.pop(target)
    if library == "pandas":
        import pandas as pd

        numbers = {name: np.array(_as_numbers(column)) for name, column in columns.items() if name not in categories}
        given = {name: pd.Categorical(columns[name], categories=levels) for name, levels in categories.items()}
        return pd.DataFrame({name: (numbers | given)[name] for name in columns}), pd.Series(y, name=target)
    if library == "polars":
        import polars as pl

        table = [
            pl.Series(name, column, dtype=pl.Enum(categories[name]))
            if name in categories
            else pl.Series(name, column, dtype=pl.String).cast(pl.Int64 if _are_whole(column) else pl.Float64)
            for name, column in columns.items()
        ]
        return pl.DataFrame(table), pl.Series(target, y, dtype=pl.String)
    array = np.empty((len(y), len(columns)), dtype=object)
    for j, (name, column) in enumerate(columns.items()):
        array[:, j] = column if name in categories else _as_floats(column)
    return array, np.array(y, dtype=object)


def _are_whole(column: list[str | None]) -> bool:
    return all(value is None or value.isdigit() for value in column)


def _as_numbers(column: list[str | None]) -> list[float] | list[int]:
    """Return whole numbers without missing values as int, others as float."""
    is_int = _are_whole(column) and None not in column
    return [int(value or 0) for value in column] if is_int else _as_floats(column)
