"""Histogram classification and regression: the class or the mean of the training rows in the cell of a regular grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.design import means_and_spreads
from spinney._data.display import plural
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.parameters import SCALE, estimator, parameter, scale_name
from spinney._model.file.codec import SavedState, columns, number
from spinney._model.neighbours.histogram import EMPTY, INFINITE, FittedCells, Grid, Places, table_values
from spinney._model.neighbours.model import Ballot, Rows
from spinney._neighbours.local_estimator import (
    LocalClassifier,
    LocalEstimator,
    LocalRegressor,
    LocalRows,
    LocalTarget,
    Results,
)

# numbers of cells per column that cell="cv" tries with scale="range"; other scales try widths from 4 units down
_TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


@dataclass(frozen=True)
class CellTable:
    """Training rows, and the grids of cells on them.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features)
        The table: NaN for missing values, codes for categories.
    sizes : list of int
        Number of categories of each column; 0 for numeric columns.
    weight : ndarray of shape (n_rows,)
        Weights.
    target : LocalTarget
        Target.
    scale : str or None
        Unit of the cell width.
    empty : str
        Prediction of cells without rows.
    n_jobs : int
        Threads.
    """

    values: Floats
    sizes: list[int]
    weight: Floats
    target: LocalTarget
    scale: str | None
    empty: str
    n_jobs: int

    def units(self) -> tuple[Floats, Floats]:
        """Return the origin of the cells and the unit of their width, by column."""
        n = len(self.sizes)
        origin, unit = np.zeros(n), np.ones(n)
        for j in np.flatnonzero(np.array(self.sizes) == 0).tolist():
            used = (self.weight > 0) & (np.abs(self.values[:, j]) < INFINITE)  # neither missing nor infinite
            there, weight = self.values[used, j], self.weight[used]
            if self.scale is None or not len(there):
                continue
            if self.scale == "range":
                origin[j], unit[j] = there.min(), np.ptp(there)
            else:
                origin[j], unit[j] = (found[0] for found in means_and_spreads(there[np.newaxis], weight))
            if not unit[j] > 1e-12 * abs(origin[j]):
                unit[j] = 1.0
        return origin, unit

    def grid(self, cell: float) -> Grid:
        """Return the grid of cells of a width."""
        origin, unit = self.units()
        used = self.values[self.weight > 0]
        return Grid.over(used, self.sizes, origin, cell * unit, self.scale == "range")

    @staticmethod
    def sums(ballot: Ballot, places: NDArray[np.intp], weight: Floats, n_cells: int) -> tuple[Floats, Floats]:
        """Return the weighted sums of the targets in each cell, (n_cells, width), and the weights of the cells."""
        total = np.empty((n_cells, ballot.width))
        first = 0
        for output in range(ballot.target.shape[1]):
            column = ballot.target[:, output]
            if ballot.n_classes is None:
                total[:, output] = np.bincount(places, weight * column, n_cells)
                continue
            n = ballot.n_classes[output]
            total[:, first : first + n] = np.bincount(places * n + column, weight, n_cells * n).reshape(n_cells, n)
            first += n
        return total, np.asarray(np.bincount(places, weight, n_cells), dtype=np.float64)

    def model(self, grid: Grid, weight: Floats) -> FittedCells:
        """Return the fitted cells of the rows of positive weight."""
        used, ballot = np.flatnonzero(weight > 0), self.target.ballot
        places = Places(grid.cells(self.values[used], self.sizes))
        own = replace(ballot, target=ballot.target[used])
        total, weights = self.sums(own, places.of_rows, weight[used], len(places.cells))
        value, overall = total / weights[:, np.newaxis], total.sum(axis=0) / weights.sum()
        return FittedCells(
            grid,
            self.sizes,
            places,
            value,
            weights,
            overall,
            self.empty,
            ballot.n_classes,
            ballot.target.shape[1],
            self.target.costs.prior_factor,
            self.target.decision,
        )


@dataclass(frozen=True)
class FoldOfCells:
    """The training weights and the held-out rows of one fold."""

    table: CellTable
    among: Floats
    held_out: Rows
    model: FittedCells

    def predictions(self, values: Sequence[float]) -> Iterator[Floats]:
        """Yield the predictions of the held-out rows for each cell width."""
        for cell in values:
            grid = self.table.grid(cell)
            model = self.table.model(grid, self.among)
            yield model.predict_cells(grid.cells(self.table.values[self.held_out], self.table.sizes), self.table.n_jobs)


@dataclass(frozen=True)
class LeftOutOfCells:
    """Leave-one-out predictions: each row is taken out of its cell in turn."""

    table: CellTable
    held_out: Rows
    model: FittedCells

    def predictions(self, values: Sequence[float]) -> Iterator[Floats]:
        """Yield the leave-one-out predictions for each cell width."""
        table, rows = self.table, self.held_out
        own = table.weight[rows]
        n, ballot = len(table.weight), table.target.ballot
        alone, _ = table.sums(ballot, np.arange(n), table.weight, n)
        alone = alone[rows]
        for cell in values:
            model = table.model(table.grid(cell), table.weight)
            places = model.places.of_rows
            total = model.value * model.weight[:, np.newaxis]
            n_rows = np.bincount(places, minlength=len(model.weight))[places]
            lost = n_rows == 1
            rest = np.where(lost, 1.0, model.weight[places] - own)
            flat = (total[places] - alone) / rest[:, np.newaxis]
            if table.empty == "nearest" and len(model.weight) > 1:
                flat[lost] = model.value[model.nearest_others(places[lost], table.n_jobs)]
            else:
                whole = model.weight.sum()
                flat[lost] = (model.overall * whole - alone[lost]) / (whole - own[lost])[:, np.newaxis]
            yield model.by_class(flat if ballot.n_classes is None else np.maximum(flat, 0.0))


@estimator
class BaseHistogram(LocalEstimator):
    """Prediction by the training rows in the same cell of a regular grid."""

    cell: float | Literal["cv"] = parameter(
        Interval(Real, 0.0, None, closed="neither"), StrOptions({"cv"}), default="cv", kw_only=False
    )
    scale: Literal["standard", "range"] | bool | None = parameter(*SCALE, default="range")
    empty: Literal["overall", "nearest"] = parameter(StrOptions(set(EMPTY)), default="nearest")
    cell_values: ArrayLike | None = parameter("array-like", None, default=None)

    cells_: FittedCells = field(init=False)
    cell_: float = field(init=False)
    _model_attribute = "cells_"
    _saved: ClassVar[SavedState] = SavedState("fitted", {"cell_": number(0.0), "cv_results_": columns()})

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the cells; with ``cell="cv"``, choose the cell width first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values need no encoding.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are in the same fold (``cell="cv"`` with folds).

        Returns
        -------
        self
            The fitted estimator.
        """
        rows = self._read_rows(X, y, sample_weight)
        values = np.clip(table_values(rows.columns), -INFINITE, INFINITE)
        sizes, scale = rows.schema.n_categories, scale_name(self.scale)
        table = CellTable(values, sizes, rows.weight, rows.target, scale, self.empty, self._n_threads)
        results: Results | None = None
        cell = self.cell
        if cell == "cv":
            edges = self._edges_to_try()
            cell, results = self._choose(rows, self._trials(rows, table, groups, edges[0]), "cell", edges)
        elif groups is not None:
            raise ValueError('groups are only used by cross-validation: cell="cv" and cv with folds. Leave groups out.')
        model = table.model(table.grid(float(cell)), rows.weight)
        self.cell_ = float(cell)
        self._set_fitted(rows, model, results)
        return self

    def _edges_to_try(self) -> list[float]:
        if self.cell_values is None:
            return [1 / n for n in _TRIED] if self.scale == "range" else [4 / n for n in _TRIED]
        values = np.asarray(self.cell_values, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(f"cell_values must be positive numbers. Got {self.cell_values!r}.")
        return sorted((float(value) for value in values), reverse=True)

    def _trials(
        self, rows: LocalRows, table: CellTable, groups: ArrayLike | None, edge: float
    ) -> Sequence[FoldOfCells | LeftOutOfCells]:
        """Return the models to evaluate, with their held-out rows."""
        folds = self._folds(rows, groups, "cell")
        model = table.model(table.grid(edge), table.weight)
        if folds is None:
            return [LeftOutOfCells(table, np.flatnonzero(table.weight > 0), model)]
        return [FoldOfCells(table, among, held_out, model) for among, held_out in folds]

    @property
    def n_cells_(self) -> int:
        """Number of cells with training rows."""
        check_is_fitted(self)
        return len(self.cells_.weight)

    def _about(self) -> About:
        cells, edge = plural(self.n_cells_, "cell"), f"{self.cell_:.4g}"
        size = {"cells": self.n_cells_, "edge": self.cell_}
        lines = {"cells": f"{cells} with rows", "edge": edge}
        return self._summary("histogram", size, lines, f"{cells} with rows, of edge {edge}", "cells")


@estimator
class HistogramClassifier(LocalClassifier, BaseHistogram):
    """Classification by the histogram rule: the training rows in the same cell of a regular grid vote for a class.

    Numeric columns are divided into intervals of equal width, with a boundary at the lowest value, the mean or 0,
    depending on ``scale``. Each category has separate cells, and so have missing values. Values outside the range of
    the training rows belong to the outermost cells.

    See Also
    --------
    HistogramRegressor : Regression with the same cells.
    KNeighborsClassifier : Nearest neighbours instead of cells.
    DecisionTreeClassifier : Adaptive cells.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.1], [0.2], [0.6], [0.9]]
    >>> model = spinney.HistogramClassifier(0.5, scale=None).fit(X, ["low", "low", "high", "high"])
    >>> model.predict([[0.3], [0.7]]).tolist()
    ['low', 'high']
    """


@estimator
class HistogramRegressor(LocalRegressor, BaseHistogram):
    """Regression by a regressogram: the mean target of the training rows in the same cell of a regular grid.

    Numeric columns are divided into intervals of equal width, with a boundary at the lowest value, the mean or 0,
    depending on ``scale``. Each category has separate cells, and so have missing values. Values outside the range of
    the training rows belong to the outermost cells.

    See Also
    --------
    HistogramClassifier : Classification with the same cells.
    KNeighborsRegressor : Nearest neighbours instead of cells.
    DecisionTreeRegressor : Adaptive cells.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x)] for x in range(8)]
    >>> y = [x // 2 for (x,) in X]
    >>> model = spinney.HistogramRegressor(2.0, scale=None).fit(X, y)
    >>> model.predict([[4.4]]).tolist()
    [2.0]
    """
