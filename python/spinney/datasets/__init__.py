"""Small tables that come with the package, for examples and tests.

They need no network and no frame library: without pandas and polars they come as NumPy arrays.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from spinney.datasets.simulated import ThresholdClasses

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["PENGUIN_FEATURES", "ThresholdClasses", "load_penguins"]

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

ObjectArray = np.ndarray[Any, np.dtype[np.object_]]


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
        True: the same, but an error if neither is installed. False: NumPy arrays.

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
    library = _chosen_library(as_frame)
    columns = _read_columns("penguins.csv")
    species = columns.pop("species")
    if library == "pandas":
        return _pandas_penguins(columns, species)
    if library == "polars":
        return _polars_penguins(columns, species)
    table = np.empty((len(species), len(PENGUIN_FEATURES)), dtype=object)
    for j, name in enumerate(PENGUIN_FEATURES):
        table[:, j] = columns[name] if name in _PENGUIN_CATEGORIES else _as_floats(columns[name])
    return table, np.array(species, dtype=object)


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


def _read_columns(name: str) -> dict[str, list[str | None]]:
    text = (files("spinney.datasets") / name).read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    return {column: [row[j] or None for row in rows] for j, column in enumerate(header)}


def _as_floats(column: list[str | None]) -> list[float]:
    return [float("nan") if value is None else float(value) for value in column]


def _pandas_penguins(columns: dict[str, list[str | None]], species: list[str | None]) -> tuple[Any, Any]:
    import pandas as pd

    table: dict[str, Any] = {}
    for name in PENGUIN_FEATURES:
        if name in _PENGUIN_CATEGORIES:
            table[name] = pd.Categorical(columns[name], categories=_PENGUIN_CATEGORIES[name])
        elif name == "year":
            table[name] = np.array(columns[name], dtype=np.int64)
        else:
            table[name] = _as_floats(columns[name])
    return pd.DataFrame(table), pd.Series(species, name="species")


def _polars_penguins(columns: dict[str, list[str | None]], species: list[str | None]) -> tuple[Any, Any]:
    import polars as pl

    whole_numbers = ("flipper_length_mm", "body_mass_g", "year")
    table = []
    for name in PENGUIN_FEATURES:
        if name in _PENGUIN_CATEGORIES:
            table.append(pl.Series(name, columns[name], dtype=pl.Enum(_PENGUIN_CATEGORIES[name])))
        else:
            dtype = pl.Int64 if name in whole_numbers else pl.Float64
            table.append(pl.Series(name, columns[name], dtype=pl.String).cast(dtype))
    return pl.DataFrame(table), pl.Series("species", species, dtype=pl.String)
