"""Fitted histograms: regular cells of a table, and the targets or frequencies of their training rows.

The cell of a row has a coordinate for each column: for a number, its distance from the origin in cell widths, rounded
down; for a category, its code; for a missing value, a reserved number.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.feature import columns_of
from spinney._data.reproducible import log
from spinney._data.types import Floats
from spinney._model.file.codec import Field, array, numbers, optional, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel, LocalModel, ModelSpec, digest_of

Cells = NDArray[np.int64]
EMPTY = ("overall", "nearest")
_MISSING = -(2**40)  # coordinate of a missing value
_FARTHEST = 2.0**39
INFINITE = 1e100  # numbers from here on are in the outermost cells
_ROUNDING = 1e-9  # of a cell width: an excess at the end of a range that makes no further cell


@dataclass(frozen=True)
class Grid:
    """Positions of the cells.

    Attributes
    ----------
    origin, edge : ndarray of shape (n_features,)
        Start of the cell with coordinate 0 in each column of numbers, and the width of cells.
    low, high : ndarray of shape (n_features,)
        Lowest and highest coordinate of the training rows. Numbers beyond belong to the outermost cells.
    """

    origin: Floats
    edge: Floats
    low: Cells
    high: Cells

    @classmethod
    def over(cls, values: Floats, sizes: list[int], origin: Floats, edge: Floats, closed: bool) -> Grid:
        """Make the grid of the training rows, (n_rows, n_features); with `closed` the last cell includes its end."""
        low, high = np.zeros(len(edge), dtype=np.int64), np.zeros(len(edge), dtype=np.int64)
        for j, n_categories in enumerate(sizes):
            present = values[np.abs(values[:, j]) < INFINITE, j]
            if n_categories or not len(present):
                continue
            low[j], high[j] = _coordinate(np.array([present.min(), present.max()]), origin[j], edge[j])
            if closed:
                last = np.ceil((present.max() - origin[j]) / edge[j] - _ROUNDING) - 1
                high[j] = min(high[j], max(low[j], int(np.clip(last, -_FARTHEST, _FARTHEST))))
        return cls(origin, edge, low, high)

    def cells(self, values: Floats, sizes: list[int]) -> Cells:
        """Return the coordinates of rows, (n_rows, n_features)."""
        found = np.empty(values.shape, dtype=np.int64)
        for j, n_categories in enumerate(sizes):
            absent = np.isnan(values[:, j])
            numbers = np.where(absent, 0.0, values[:, j])
            if n_categories:
                found[:, j] = numbers
            else:
                found[:, j] = np.clip(_coordinate(numbers, self.origin[j], self.edge[j]), self.low[j], self.high[j])
            found[absent, j] = _MISSING
        return found


def _coordinate(numbers: Floats, origin: float, edge: float) -> Cells:
    with np.errstate(over="ignore"):
        return np.floor(np.clip((numbers - origin) / edge, -_FARTHEST, _FARTHEST)).astype(np.int64)


def table_values(columns: _engine.Table) -> Floats:
    """Return a table as numbers, (n_rows, n_features): NaN for missing values, codes for categories."""
    return np.column_stack(columns_of(columns))


class Places:
    """An index of known cells, searched column by column.

    Attributes
    ----------
    cells : ndarray of shape (n_cells, n_features)
        The distinct cells, sorted.
    """

    def __init__(self, cells: Cells) -> None:
        """Index the cells of rows; `of_rows` holds the position of each row's cell."""
        self._steps: list[tuple[Cells, Cells]] = []
        places = np.zeros(len(cells), dtype=np.int64)
        for column in cells.T:
            known, codes = np.unique(column, return_inverse=True)
            pairs, places = np.unique(places * len(known) + codes, return_inverse=True)
            self._steps.append((known, pairs))
        self.of_rows = places
        first = np.unique(places, return_index=True)[1]
        self.cells = cells[first]

    def find(self, cells: Cells) -> NDArray[np.intp]:
        """Positions of cells, (n_rows,); -1 for unknown cells."""
        places = np.zeros(len(cells), dtype=np.int64)
        for column, (known, pairs) in zip(cells.T, self._steps, strict=True):
            code = np.minimum(np.searchsorted(known, column), len(known) - 1)
            pair = places * len(known) + code
            place = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
            is_there = (places >= 0) & (known[code] == column) & (pairs[place] == pair)
            places = np.where(is_there, place, -1)
        return places


_CELLS: dict[str, Field] = {
    "origin": array("float64", "n_features"),
    "edge": array("float64", "n_features", above=0),
    "low": array("int64", "n_features"),
    "high": array("int64", "n_features"),
    "cells": array("int64", "n_cells", "n_features", least=_MISSING, most=-_MISSING),
}


def _grid_of(found: dict[str, Any]) -> tuple[Grid, Places]:
    """Take the grid and its cells out of the entries read; refuse impossible ones."""
    grid = Grid(*(found.pop(name) for name in ("origin", "edge", "low", "high")))
    cells = found.pop("cells")
    places = Places(cells)
    if (grid.low > grid.high).any() or not len(cells) or not np.array_equal(places.cells, cells):
        refuse("is damaged: its grid or its cells are impossible")
    return grid, places


def _cells_to_header(model: FittedCells | FittedDensity) -> dict[str, Any]:
    fields = vars(model) | vars(model.grid) | {"cells": model.places.cells}
    return {"kind": model.kind, **model.saved.to_header(fields)}


@dataclass(eq=False, repr=False)
class FittedCells(LocalModel):
    """A fitted histogram classifier or regressor.

    Attributes
    ----------
    grid : Grid
        The cells.
    places : Places
        Index of the cells with training rows.
    value : ndarray of shape (n_cells, width)
        Class probabilities or mean targets of the rows of each cell.
    weight : ndarray of shape (n_cells,)
        Weight of the rows of each cell.
    overall : ndarray of shape (width,)
        Class probabilities or mean target of all rows.
    empty : str
        Prediction for cells without training rows: "overall", or that of the "nearest" cell with rows.
    factor : ndarray of shape (n_classes,), or None
        Factors for the class probabilities, from priors.
    """

    kind = "cells"
    attribute = "cells_"
    noun = "histogram"
    saved = saved_fields(
        empty=word(EMPTY),
        **_CELLS,
        value=array("float64", "n_cells", "width"),
        weight=array("float64", "n_cells", above=0),
        overall=array("float64", "width"),
        factor=optional(numbers(np.float64, "n_classes", above=0)),
    )

    grid: Grid
    sizes: list[int]
    places: Places
    value: Floats
    weight: Floats
    overall: Floats
    empty: str
    n_classes: InitVar[list[int] | None]
    n_outputs: int
    factor: Floats | None = None
    cost: Floats | None = None

    def __post_init__(self, n_classes: list[int] | None) -> None:
        super().__init__(n_classes, self.n_outputs, self.cost)

    def __repr__(self) -> str:
        return f"<FittedCells: {len(self.weight)} cells with rows>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_near", "_preferred")}

    # ---- cells without rows ----------------------------------------------------------------------------------

    @cached_property
    def _near(self) -> _engine.NeighbourIndex:
        terms = self._terms(self.places.cells[self._preferred])
        return _engine.NeighbourIndex(terms, "absolute", 1.0, "auto", 2, 1)

    @cached_property
    def _preferred(self) -> NDArray[np.intp]:
        """Positions of the cells, the one that ties go to first: the order of columns and rows plays no part.

        Sums whose terms come in another order differ by rounding, which must not break ties.
        """
        keys = [-self.weight, *self.value.T]
        rounded = [np.round(key / (np.abs(key).max() or 1.0), 12) for key in keys]
        return np.asarray(np.lexsort([*rounded, *keys][::-1]), dtype=np.intp)

    def _terms(self, cells: Cells) -> Floats:
        """Terms whose absolute differences add up to the distance of cells; another category has distance 1."""
        terms = []
        for column, n_categories in zip(cells.T, self.sizes, strict=True):
            absent = column == _MISSING
            if n_categories:
                terms += [0.5 * (column == code) for code in range(n_categories + 1)] + [0.5 * absent]
            else:
                terms += [np.where(absent, 0, column).astype(np.float64), absent.astype(np.float64)]
        return np.ascontiguousarray(np.column_stack(terms))

    def nearest(self, cells: Cells, n_jobs: int) -> NDArray[np.intp]:
        """Positions of the nearest cells with rows; ties go to the most weight, then the least value."""
        return self._preferred[np.asarray(self._near.nearest(self._terms(cells), 1, n_jobs)[0]).astype(np.intp)]

    def nearest_others(self, places: NDArray[np.intp], n_jobs: int) -> NDArray[np.intp]:
        """Positions of the nearest other cells, for cells with rows, of which there are at least two."""
        found = np.asarray(self._near.nearest(self._terms(self.places.cells[places]), 2, n_jobs)[0])
        both = self._preferred[found.astype(np.intp)].reshape(-1, 2)
        return np.where(both[:, 0] == places, both[:, 1], both[:, 0])

    # ---- predicting ------------------------------------------------------------------------------------------

    def predict_cells(self, cells: Cells, n_jobs: int) -> Floats:
        """Predictions of rows given by their cells."""
        places = self.places.find(cells)
        unknown = np.flatnonzero(places < 0)
        if self.empty == "nearest" and len(unknown):
            places[unknown] = self.nearest(cells[unknown], n_jobs)
        flat = self.value[places]
        flat[places < 0] = self.overall
        return self.by_class(flat)

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Predictions as flat rows, with a column for each number or class probability."""
        return self.predict_cells(self.grid.cells(table_values(columns), self.sizes), n_jobs)

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return the header entries of this kind of model."""
        return _cells_to_header(self)

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a header."""
        n_features, one = spec.schema.n_features, spec.n_classes is not None and len(spec.n_classes) == 1
        n_classes = spec.width if one else -1
        found = cls.saved.from_header(header, n_features=n_features, width=spec.width, n_classes=n_classes)
        if trees:
            refuse("is damaged: it holds trees, which a histogram does not have")
        grid, places = _grid_of(found)
        found |= {"n_classes": spec.n_classes, "n_outputs": spec.n_outputs, "cost": spec.cost}
        return cls(grid, spec.schema.n_categories, places, **found)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        of_cells = (*vars(self.grid).values(), self.places.cells)
        return digest_of(self.empty, *of_cells, self.value, self.weight, self.overall, self.factor, self.cost)


class FittedDensity(FittedModel):
    """A fitted density: bins, and the fraction of the training rows in each.

    Attributes
    ----------
    grid : Grid
        The bins; `low` and `high` are the first and the last with training rows.
    places : Places
        Index of the bins with training rows.
    fraction : ndarray of shape (n_bins,)
        Fraction of the training rows in each bin.
    top : ndarray of shape (n_features,)
        Highest value of the training rows, which the last bin includes even if it ends there.
    """

    kind = "density"
    attribute = "histogram_"
    noun = "histogram"
    takes_costs = False
    saved = saved_fields(
        **_CELLS,
        fraction=array("float64", "n_cells", above=0, most=1, key="share"),
        top=array("float64", "n_features"),
    )

    def __init__(self, grid: Grid, places: Places, fraction: Floats, top: Floats) -> None:
        super().__init__(None, 1)
        self.grid = grid
        self.places = places
        self.fraction = fraction
        self.top = top

    def __repr__(self) -> str:
        return f"<FittedDensity: {len(self.fraction)} bins with rows>"

    @property
    def volume(self) -> float:
        """Volume of a bin."""
        return float(np.prod(self.grid.edge))

    @property
    def density(self) -> Floats:
        """Density in each bin with rows."""
        return self.fraction / self.volume

    def densities(self, values: Floats) -> Floats:
        """Density at rows, (n_rows,); 0 outside all bins with rows."""
        grid, sizes = self.grid, [0] * len(self.top)
        found = np.append(self.density, 0.0)[self.places.find(grid.cells(values, sizes))]
        with np.errstate(over="ignore", invalid="ignore"):
            steps = (values - grid.origin) / grid.edge
        outside = (steps < grid.low) | ((steps >= grid.high + 1) & (values > self.top)) | np.isnan(values)
        return np.where(outside.any(axis=1), 0.0, found)

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Logarithm of the density at each row, (n_rows, 1)."""
        return log(self.densities(table_values(columns)))[:, np.newaxis]

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return the header entries of this kind of model."""
        return _cells_to_header(self)

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a header."""
        if trees or spec.n_classes is not None or spec.n_outputs != 1 or any(spec.schema.n_categories):
            refuse("is damaged: a density has neither trees, classes nor categories")
        found = cls.saved.from_header(header, n_features=spec.schema.n_features)
        return cls(*_grid_of(found), **found)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        return digest_of("", *vars(self.grid).values(), self.places.cells, self.fraction, self.top)
