"""Where the values of a row may move: which columns, to which values, and how far that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._data.value_arrays import row_table
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.model import ModelOfTrees
from spinney.inspect.explain.grids import numbers_of_cells
from spinney.inspect.explain.nearest import plain_row, row_as_table, scale_of
from spinney.inspect.explain.target_model import Asked, Floats, check_fitted

_MOST_VALUES = 200  # of a column that are tried


@dataclass(frozen=True)
class Limits:
    """What a column may become: numbers between two, perhaps whole ones, or some codes.

    Attributes
    ----------
    low, high : float
    codes : ndarray or None
        Categories, as codes.
    observed : ndarray
        Values that occur, ascending.
    is_whole : bool
        Whether only whole numbers make sense.
    """

    low: float
    high: float
    codes: Floats | None
    observed: Floats
    is_whole: bool


class Moves:
    """A row in numbers, and what it may become.

    Attributes
    ----------
    asked : Asked
        The model and the row.
    row : ndarray of shape (n_columns,)
    free : list of int
        Columns that may change.
    limits : dict of int to Limits
    """

    def __init__(self, asked: Asked, free: list[int], limits: dict[int, Limits], scales: Floats) -> None:
        self.asked = asked
        self.row = asked.row_numbers()
        self.free = free
        self.limits = limits
        self._scales = scales
        self._values: dict[int, Floats] = {}

    def steps(self, column: int, numbers: Floats) -> Floats:
        """How far values of a column are from the row's, with a sign: numbers by their usual range, else 1."""
        own, feature = self.row[column], self.asked.feature(column)
        if feature.kind == "category" or feature.kind == "boolean" or np.isnan(own):
            same = np.isnan(numbers) if np.isnan(own) else numbers == own
            return np.where(same, 0.0, 1.0)
        gap = (numbers - own) / self._scales[column]
        return np.where(np.isnan(gap), 1.0, gap)

    def sizes(self, rows: Floats) -> Floats:
        """How far rows are from the row, by row and free column."""
        found = np.zeros((len(rows), len(self.free)))
        for k, j in enumerate(self.free):
            found[:, k] = np.abs(self.steps(j, rows[:, j]))
        return found

    def distance(self, row: Floats) -> float:
        """Sum of the sizes of all steps."""
        return float(self.sizes(row[np.newaxis]).sum())

    def ranks(self, rows: Floats) -> Floats:
        """Return what ways are compared by: the distance, and a quarter for each column."""
        sizes = self.sizes(rows)
        return np.asarray(sizes.sum(axis=1) + 0.25 * (sizes > 0).sum(axis=1))

    def nearest(self, column: int, low: float, high: float) -> float | None:
        """Value with low < value <= high that is nearest to the row's; one that occurs, or has few digits."""
        limits, own = self.limits[column], self.row[column]
        low, high = (
            (low, min(high, limits.high))
            if limits.low <= low
            else (math.nextafter(limits.low, -math.inf), min(high, limits.high))
        )
        if not low < high:
            return None
        if low < own <= high:
            return float(own)
        goes_up = not own > high  # a missing value goes up
        inside = limits.observed[(limits.observed > low) & (limits.observed <= high)]
        if len(inside):
            return float(inside[0] if goes_up else inside[-1])
        if limits.is_whole:
            whole = math.floor(low) + 1 if goes_up else math.floor(high)
            return float(whole) if low < whole <= high else None
        room = self._scales[column] / 50
        return few_digits(low, min(high, low + room)) if goes_up else few_digits(max(low, high - room), high)

    def values(self, column: int) -> Floats:
        """Values of a column to try, the nearest first: one in each cell that the model tells apart."""
        if column not in self._values:
            self._values[column] = self._find_values(column)
        return self._values[column]

    def _find_values(self, column: int) -> Floats:
        limits = self.limits[column]
        if limits.codes is not None:
            return np.asarray(limits.codes[limits.codes != self.row[column]])
        cuts = cuts_of(self.asked, column)
        if cuts is None:
            found = limits.observed[limits.observed != self.row[column]]
        else:
            edges = np.r_[-np.inf, cuts, np.inf]
            places = [self.nearest(column, low, high) for low, high in pairwise(edges.tolist())]
            found = np.array([place for place in places if place is not None and place != self.row[column]])
        found = found[np.argsort(np.abs(self.steps(column, found)), kind="stable")] if len(found) else found
        if len(found) > _MOST_VALUES:
            found = found[np.unique(np.linspace(0, len(found) - 1, _MOST_VALUES).astype(np.intp))]
        return np.asarray(found)


def few_digits(low: float, high: float) -> float:
    """Return the number with low < number <= high that has the fewest digits after the point."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return high if math.isfinite(high) else math.nextafter(low, math.inf)
    for decimals in range(-int(math.log10(max(abs(low), abs(high), 1.0))) - 1, 18):
        step = 10.0**-decimals
        number = round(math.floor(high / step) * step, max(0, decimals))
        if low < number <= high:
            return number
    return high


def cuts_of(asked: Asked, column: int) -> Floats | None:
    """Thresholds of a column in all trees, ascending; None if the model is not made of spinney's trees."""
    if not asked.says_all or asked.schema.pool is not None or not isinstance(asked.model._fitted, ModelOfTrees):
        return None
    cuts = [tree.threshold[tree.feature == column] for tree in asked.trees]
    return np.unique(np.concatenate(cuts)) if cuts else np.empty(0)


def read_moves(model: object, row: object, X: TableLike, fixed: list[Any], ranges: Mapping[Any, Any] | None) -> Moves:
    """Find what a row may become."""
    check_fitted(model)
    known = None if X is None else Asked(model, X)
    asked = _about_row(model, row, known)
    held = {asked.column(column, "fixed") for column in fixed}
    given = {asked.column(column, "ranges"): value for column, value in (ranges or {}).items()}
    both = held & given.keys()
    if both:
        raise ValueError(f"Column {asked.feature(both.pop()).name!r} is both in fixed and in ranges. Drop one.")
    limits, scales = {}, np.ones(asked.schema.n_features)
    for j in range(asked.schema.n_features):
        seen = None if known is None else known.numbers(j)
        limits[j] = _limits(asked, j, seen, given.get(j))
        scales[j] = _scale(asked, j, seen)
    free = [j for j in limits if j not in held and _can_move(asked, j, limits[j])]
    return Moves(asked, free, limits, scales)


def _about_row(model: object, row: object, known: Asked | None) -> Asked:
    if isinstance(row, (int, np.integer)) and not isinstance(row, bool):
        if known is None or not 0 <= row < known.n_rows:
            raise ValueError(f"row is the position {row}. Pass X that has it, or the values of the row.")
        return Asked(model, known.table.take(np.array([row])), every=True)
    if known is not None:
        return Asked(model, row_as_table(known, row), every=True)
    if not (isinstance(model, TableEstimator) and model._has_target):
        raise ValueError(
            f"{type(model).__name__} keeps no columns and cuts. Pass X, some rows such as it was fitted on."
        )
    return Asked(model, _alone(model, row), every=True)


def _alone(model: Any, row: Any) -> Any:
    """Make a table of one row of what a model of spinney takes."""
    row = plain_row(row, model.schema_.has_names)
    if not isinstance(row, Mapping):
        if getattr(row, "ndim", 1) == 2 or hasattr(row, "columns"):
            if pick_table(row).n_rows != 1:
                raise ValueError(f"row must be one row, not a table of {pick_table(row).n_rows} rows.")
            return row
        row = dict(zip(model.schema_.names, row, strict=False)) if len(row) == model.schema_.n_features else row
    row_table(model.schema_, row)  # refuses what is missing, in words
    columns = {name: [row[name]] for name in model.schema_.names}
    return columns if model.schema_.has_names else [[column[0] for column in columns.values()]]


def _limits(asked: Asked, column: int, seen: Floats | None, given: Any) -> Limits:
    feature = asked.feature(column)
    present = np.empty(0) if seen is None else np.unique(seen[~np.isnan(seen)])
    if feature.kind == "category" or feature.kind == "boolean":
        n = 2 if feature.kind == "boolean" else len(feature.categories)
        codes = present if seen is not None else np.arange(float(n))
        if given is not None:
            codes = np.unique(_numbers(asked, column, given))
        return Limits(-np.inf, np.inf, codes, codes, True)
    low, high = (float(present[0]), float(present[-1])) if len(present) else (-np.inf, np.inf)
    if given is not None:
        low, high = _pair(asked, column, given)
        present = present[(present >= low) & (present <= high)]
    own = asked.numbers(column)[0]
    numbers = present if np.isnan(own) else np.r_[present, own]
    is_whole = feature.kind == "ordered" or (seen is not None and bool((numbers == np.rint(numbers)).all()))
    return Limits(low, high, None, present, is_whole)


def _pair(asked: Asked, column: int, given: Any) -> tuple[float, float]:
    name = asked.feature(column).name
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ValueError(f"ranges must give column {name!r} a pair (low, high), not {given!r}.") from None
    ends = [np.nan if end is None else _numbers(asked, column, [end])[0] for end in (low, high)]
    lowest, highest = -np.inf if low is None else float(ends[0]), np.inf if high is None else float(ends[1])
    if not lowest <= highest:
        raise ValueError(f"ranges gives column {name!r} the pair {given!r}, whose first is the larger. Turn it round.")
    return lowest, highest


def _numbers(asked: Asked, column: int, values: Iterable[Any]) -> Floats:
    if isinstance(values, str):
        raise ValueError(
            f"ranges must give column {asked.feature(column).name!r} a list of categories, not {values!r}."
        )
    return numbers_of_cells(asked.feature(column), list(values), "ranges")


def _scale(asked: Asked, column: int, seen: Floats | None) -> float:
    if seen is not None:
        return scale_of(seen)
    cuts = cuts_of(asked, column)
    own = asked.numbers(column)[0]
    known = np.r_[np.empty(0) if cuts is None else cuts, own]
    return scale_of(known)


def _can_move(asked: Asked, column: int, limits: Limits) -> bool:
    if limits.codes is not None:
        return len(limits.codes) > 0
    return limits.low < limits.high or (limits.low == limits.high != asked.numbers(column)[0])
