"""Values of a column at which a model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spinney._data import Feature
from spinney._data.column_names import listed
from spinney._data.object_columns import read_cells
from spinney._data.value_arrays import feature_values
from spinney.inspect.explain.target_model import Asked, Floats, Points, Rows

KINDS = ("quantiles", "even")


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of one column, ascending, or categories in their order.

    Attributes
    ----------
    numbers : ndarray of shape (n_values,)
    rows : ndarray of shape (n_values,)
        A row that has the value; -1: none has.
    """

    numbers: Floats
    rows: Rows


def make_grid(
    asked: Asked,
    column: int,
    given: object,
    n_points: int,
    percentiles: tuple[float, float],
    weight: Floats | None,
) -> Grid:
    """Choose values of a column: all that occur if they are few or categories, else quantiles or even steps."""
    feature, numbers = asked.feature(column), asked.numbers(column)
    if not isinstance(given, str):
        return _looked_up(_given_numbers(asked, column, given), numbers)
    if given not in KINDS:
        raise ValueError(f"grid must be 'quantiles', 'even' or values, not {given!r}.")
    known = ~np.isnan(numbers)
    if weight is not None:
        known &= weight > 0
    present = numbers[known]
    if len(present) == 0:
        raise ValueError(f"Column {feature.name!r} has no values to ask the model about. Leave it out.")
    distinct = np.unique(present)
    if feature.kind != "category" and len(distinct) > n_points:
        if given == "even":
            low, high = _quantiles(present, np.array(percentiles), None if weight is None else weight[known])
            distinct = np.linspace(low, high, n_points) if high > low else np.array([low])
        else:
            levels = np.linspace(percentiles[0], percentiles[1], n_points)
            distinct = np.unique(_quantiles(present, levels, None if weight is None else weight[known]))
    return _looked_up(distinct, numbers)


def _quantiles(values: Floats, levels: Floats, weight: Floats | None) -> Floats:
    """Quantiles that are values themselves: the least value that so large a share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(np.ones(len(values)) if weight is None else weight[order])
    places = np.searchsorted(share, levels * share[-1] * (1 - 1e-12), side="left")
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])


def _given_numbers(asked: Asked, column: int, given: Any) -> Floats:
    feature = asked.feature(column)
    if len(given) == 0:
        raise ValueError(f"grid has no values for column {feature.name!r}.")
    return numbers_of_cells(feature, given, "grid")


def numbers_of_cells(feature: Feature, given: Any, parameter: str) -> Floats:
    """Read values that a caller gives for a column; refuse what is missing, or no category that the model knows."""
    cells = np.empty(len(given), dtype=object)
    cells[:] = list(given)
    label = f"{parameter} for column {feature.name!r}"
    numbers = feature_values(feature, read_cells(cells, label), len(cells), "missing", label)
    if np.isnan(numbers).any():
        wrong = cells[int(np.argmax(np.isnan(numbers)))]
        known = f" Its categories are {listed(feature.categories)}." if feature.categories else ""
        raise ValueError(f"The {label} has {wrong!r}, which is no value of that column.{known}")
    return numbers


def _looked_up(values: Floats, numbers: Floats) -> Grid:
    """Find a row for each value."""
    order = np.argsort(numbers, kind="stable")  # NaN comes last
    place = np.minimum(np.searchsorted(numbers[order], values), len(numbers) - 1)
    rows = order[place]
    return Grid(values, np.where(numbers[rows] == values, rows, -1))


def points_of(columns: list[int], grids: list[Grid]) -> Points:
    """Return all combinations of the values of grids, those of the last column fastest."""
    places = np.meshgrid(*(np.arange(len(grid.numbers)) for grid in grids), indexing="ij")
    flat = [place.ravel() for place in places]
    return Points(
        columns,
        [grid.numbers[p] for grid, p in zip(grids, flat, strict=True)],
        [grid.rows[p] for grid, p in zip(grids, flat, strict=True)],
    )
