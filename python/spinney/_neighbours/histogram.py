"""What histograms of classes and of values share: cells, how wide they are, and what their rows have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data import Schema, read_table
from spinney._data.design import mean_and_spread
from spinney._estimator.costs import ClassCosts
from spinney._estimator.folds import read_folds
from spinney._estimator.scaling import SCALE, scale_word
from spinney._estimator.summary import About, counted
from spinney._estimator.target import read_weights
from spinney._model.file.container import field
from spinney._model.neighbours.histogram import EMPTY, FittedCells, Grid, Places, table_values
from spinney._model.neighbours.model import Ballot, Rows
from spinney._model.saving.model_part import FittedPart
from spinney._neighbours.choice import choose, read_results
from spinney._neighbours.target import LocalEstimator

Floats = NDArray[np.float64]
_FARTHEST = 1e100
# cells of the range of a column that are tried, if the caller does not say; other scales try edges from 4 units down
_TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


@dataclass(frozen=True)
class CellTable:
    """Training rows, and how cells of any edge are laid over them.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features)
        The table: NaN is missing, a category is its code.
    sizes : list of int
        Categories of each column; 0 for numbers.
    weight : ndarray of shape (n_rows,)
    ballot : Ballot
        What the rows have.
    scale : str or None
        What edges are multiples of.
    empty : str
        What answers for a cell without rows.
    costs : ClassCosts
    n_jobs : int
    """

    values: Floats
    sizes: list[int]
    weight: Floats
    ballot: Ballot
    scale: str | None
    empty: str
    costs: ClassCosts
    n_jobs: int

    def units(self) -> tuple[Floats, Floats]:
        """Where cells begin in each column, and what their edge is multiplied by."""
        n = len(self.sizes)
        origin, unit = np.zeros(n), np.ones(n)
        for j in np.flatnonzero(np.array(self.sizes) == 0).tolist():
            used = (self.weight > 0) & ~np.isnan(self.values[:, j])
            there, weight = self.values[used, j], self.weight[used]
            if self.scale is None or not len(there):
                continue
            if self.scale == "range":
                origin[j], unit[j] = there.min(), np.ptp(there)
            else:
                origin[j], unit[j] = mean_and_spread(there, weight)
            if not unit[j] > 1e-12 * abs(origin[j]):
                unit[j] = 1.0
        return origin, unit

    def grid(self, cell: float) -> Grid:
        """Cells of one edge."""
        origin, unit = self.units()
        used = self.values[self.weight > 0]
        return Grid.over(used, self.sizes, origin, cell * unit, self.scale == "range")

    def sums(self, places: NDArray[Any], weight: Floats, n_cells: int) -> tuple[Floats, Floats]:
        """Weighted sums of what the rows of each cell have, (n_cells, width), and their weights."""
        ballot, total = self.ballot, np.empty((n_cells, self.ballot.width))
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
        """Return what the cells of the rows of positive weight have."""
        kept = np.flatnonzero(weight > 0)
        places = Places(grid.cells(self.values[kept], self.sizes))
        own = replace(self, ballot=replace(self.ballot, target=self.ballot.target[kept]))
        total, weights = own.sums(places.of_rows, weight[kept], len(places.cells))
        value, overall = total / weights[:, np.newaxis], total.sum(axis=0) / weights.sum()
        has_costs = self.costs.cost is not None or self.costs.priors is not None
        return FittedCells(
            grid,
            self.sizes,
            places,
            value,
            weights,
            overall,
            self.empty,
            self.ballot.n_classes,
            self.ballot.target.shape[1],
            self.costs.prior_factor,
            self.costs.decision if has_costs else None,
        )


@dataclass(frozen=True)
class FoldOfCells:
    """Rows that an edge is judged by, and those that it is learned from."""

    table: CellTable
    among: Floats
    held_out: Rows
    model: FittedCells

    def answers(self, values: Sequence[float]) -> Iterator[Floats]:
        """Yield what cells of each edge say of the rows."""
        for cell in values:
            grid = self.table.grid(cell)
            model = self.table.model(grid, self.among)
            yield model.answers(grid.cells(self.table.values[self.held_out], self.table.sizes), self.table.n_jobs)


@dataclass(frozen=True)
class LeftOutOfCells:
    """The same where each row is taken out of its own cell in turn."""

    table: CellTable
    held_out: Rows
    model: FittedCells

    def answers(self, values: Sequence[float]) -> Iterator[Floats]:
        """Yield what cells of each edge say of the rows without the row itself."""
        table, rows = self.table, self.held_out
        own = table.weight[rows]
        alone, _ = table.sums(np.arange(len(table.weight)), table.weight, len(table.weight))
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
            yield model.by_class(flat if table.ballot.n_classes is None else np.maximum(flat, 0.0))


class BaseHistogram(LocalEstimator):
    """Rows of one cell answer for each other."""

    _model_attribute = "cells_"
    cells_: FittedCells
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cell": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"cv"})],
        "scale": SCALE,
        "empty": [StrOptions(set(EMPTY))],
        "cell_values": ["array-like", None],
        "cv": [StrOptions({"loo"}), Integral, "cv_object", "array-like"],
        "scoring": [str, callable, None],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Count the rows of each cell; with ``cell="cv"``, choose how wide cells are.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together (``cell="cv"`` with folds).

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        read = read_table(X)
        schema = Schema.learn(read, categorical_features=self.categorical_features, unseen=self.unseen)
        target, n_classes, learned = self._read_target(y, read.n_rows)
        given = read_weights(sample_weight, read.n_rows)
        weight = np.ones(read.n_rows) if given is None else given
        costs = self._read_costs(target, given, learned)
        columns = schema.encode(read, unseen=self.unseen, estimator=type(self).__name__)
        values = np.clip(table_values(columns), -_FARTHEST, _FARTHEST)
        ballot = Ballot(target, n_classes)
        sizes = schema.n_categories
        table = CellTable(values, sizes, weight, ballot, scale_word(self.scale), self.empty, costs, self._n_threads)
        results: dict[str, Any] | None = None
        cell = self.cell
        if self.cell == "cv":
            edges = self._read_edges()
            judge = self._make_judge(target, weight, costs, learned)
            cell, results = choose(self._make_trials(table, groups, edges[0]), "cell", edges, judge)
        elif groups is not None:
            raise ValueError('groups say which rows are held out together, which needs cell="cv" and folds.')
        self.cells_ = table.model(table.grid(float(cell)), weight)
        self.cell_ = float(cell)
        self._keep_learned(schema, self.cells_, learned, costs, results)
        return self

    def _read_edges(self) -> list[float]:
        if self.cell_values is None:
            return [1 / n for n in _TRIED] if self.scale == "range" else [4 / n for n in _TRIED]
        values = np.asarray(self.cell_values, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(f"cell_values must be positive numbers. Got {self.cell_values!r}.")
        return sorted((float(value) for value in values), reverse=True)

    def _make_trials(self, table: CellTable, groups: Any, edge: float) -> list[Any]:
        model = table.model(table.grid(edge), table.weight)
        used = np.flatnonzero(table.weight > 0)
        if isinstance(self.cv, str):
            if groups is not None:
                raise ValueError("cv='loo' holds out one row at a time. Pass a number of folds with groups.")
            if len(used) < 2:
                raise ValueError("cell='cv' needs at least 2 rows: one of n_samples=1 leaves none to learn from.")
            return [LeftOutOfCells(table, used, model)]
        random = check_random_state(self.random_state)
        target = table.ballot.target
        strata = target if self._is_class_target else None
        trials = []
        for fold in read_folds(self.cv, strata, target, table.weight, groups, random):
            among = np.zeros(len(table.weight))
            among[fold.grown_on] = table.weight[fold.grown_on]
            trials.append(FoldOfCells(table, among, fold.held_out, model))
        return trials

    @property
    def n_cells_(self) -> int:
        """Cells with training rows."""
        check_is_fitted(self)
        return len(self.cells_.weight)

    # ---- files ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        found: dict[str, Any] = {"cell": self.cell_}
        if hasattr(self, "cv_results_"):
            found["cv_results"] = {name: values.tolist() for name, values in self.cv_results_.items()}
        return found

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        found: dict[str, Any] = {"cell_": float(field(header, "cell", float))}
        if "cv_results" in header:
            found["cv_results_"] = read_results(field(header, "cv_results", dict), "cell", np.float64)
        return found

    def _about(self) -> About:
        cells, edge = counted(self.n_cells_, "cell", "cells"), f"{self.cell_:.4g}"
        lines = {"cells": f"{cells} with rows", "edge": edge}
        size: dict[str, Any] = {"cells": self.n_cells_, "edge": self.cell_}
        sentence = f"{cells} with rows, of edge {edge}"
        if hasattr(self, "cv_results_"):
            error = float(self.cv_results_["error"].min())
            lines["error, cross-validated"] = f"{error:.4g}"
            size["cross_validated_error"] = error
            sentence += f", chosen by cross-validation (error {error:.4g})"
        return About("histogram", size, lines, sentence, why_no_trees="the model is made of cells, not of trees.")
