"""A fitted histogram: how densely training rows lie in each bin."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.numeric.reproducible import log
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel, Frame
from spinney._model.neighbours.histogram import Grid, Places, read_grid, table_values
from spinney._model.row_table import TableRowPredictor

Floats = NDArray[np.float64]


class FittedDensity(FittedModel):
    """Bins, and the share of the training rows in each.

    Attributes
    ----------
    grid : Grid
        The bins; `low` and `high` are the first and the last with training rows.
    places : Places
        Those that hold training rows.
    share : ndarray of shape (n_bins,)
        Share of the training rows.
    top : ndarray of shape (n_features,)
        Highest value of the training rows, which is in the last bin even if that ends there.
    """

    kind = "density"
    attribute = "histogram_"
    noun = "histogram"
    takes_costs = False

    def __init__(self, grid: Grid, places: Places, share: Floats, top: Floats) -> None:
        super().__init__(None, 1)
        self.grid = grid
        self.places = places
        self.share = share
        self.top = top

    def __repr__(self) -> str:
        return f"<FittedDensity: {len(self.share)} bins with rows>"

    @property
    def volume(self) -> float:
        """Volume of a bin."""
        return float(np.prod(self.grid.edge))

    @property
    def density(self) -> Floats:
        """Density in each bin with rows."""
        return self.share / self.volume

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

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """There are no classes."""
        raise AttributeError("A histogram of densities has no classes. Use score_samples.")

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> TableRowPredictor:
        """Prepare a handle that gives the logarithm of the density at single rows."""
        return TableRowPredictor(self, schema, unseen, None)

    # ---- files -----------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, NDArray[Any]]:
        grid = self.grid
        found = {"origin": grid.origin, "edge": grid.edge, "low": grid.low, "high": grid.high}
        return found | {"cells": self.places.cells, "share": self.share, "top": self.top}

    def to_header(self) -> dict[str, Any]:
        """Return all of it."""
        return {"kind": self.kind} | {name: array_to_json(array) for name, array in self._arrays().items()}

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Turn back what `to_header` gives."""
        if trees or frame.n_classes is not None or frame.n_outputs != 1 or any(frame.schema.n_categories):
            refuse("is damaged: it cannot be a density")
        grid, places = read_grid(header, frame.schema.n_features)
        share = array_from_json(header.get("share"), ("float64",), (len(places.cells),))
        top = array_from_json(header.get("top"), ("float64",), (frame.schema.n_features,))
        if not ((share > 0) & (share <= 1)).all() or not np.isfinite(top).all():
            refuse("is damaged: its bins hold impossible numbers")
        return cls(grid, places, share, top)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        digest = hashlib.sha256()
        for array in self._arrays().values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self}
