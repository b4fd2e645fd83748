"""Scores to add to those of a model, as callers give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney._data.arguments import given_numbers
from spinney._data.types import ColumnLike

Floats = NDArray[np.float64]


def read_offset(offset: ColumnLike, n_rows: int, n_scores: int, name: str = "offset") -> Floats | None:
    """Offsets as (n_scores, n_rows)."""
    if offset is None:
        return None
    given = given_numbers(offset, name)
    if given.shape == (n_rows,) and n_scores == 1:
        given = given[:, np.newaxis]
    if given.shape != (n_rows, n_scores):
        wanted = f"({n_rows},)" if n_scores == 1 else f"({n_rows}, {n_scores})"
        raise ValueError(f"{name} has shape {given.shape}; it needs {wanted}: one number per row and score.")
    if not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise ValueError(f"{name} must be finite numbers. Row {row} has {given[row].tolist()}.")
    return np.ascontiguousarray(given.T)
