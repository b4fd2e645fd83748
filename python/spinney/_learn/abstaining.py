"""Predictions of those rows alone that training rows support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.given import given_numbers
from spinney._data.pick import pick_table
from spinney._learn.target import check_length


def predict_or_abstain(
    model: Any, X: Any, max_outside: int, min_rows: float | None = None, offset: Any = None
) -> NDArray[Any]:
    """Predict the rows that are supported; others are not even asked for, so that no category of theirs is refused.

    Parameters
    ----------
    model : estimator
        Has `predict_support`.
    X : table of shape (n_samples, n_features)
        Rows.
    max_outside, min_rows
        As of `Support.is_enough`.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        Goes to `predict`.

    Returns
    -------
    ndarray
        Predictions, with NaN in the place of values that are not predicted. Classes come as objects, with None.
    """
    table, beside = pick_table(X), {}
    if offset is not None:
        beside["offset"] = given_numbers(offset, "offset")
        check_length(len(beside["offset"]), table.n_rows, "offset")
    rows = np.flatnonzero(model.predict_support(table.native).is_enough(max_outside, min_rows))
    n_outputs = getattr(model, "n_outputs_", 1)
    shape = (table.n_rows,) if n_outputs == 1 else (table.n_rows, n_outputs)
    found = np.full(shape, None, dtype=object) if hasattr(model, "classes_") else np.full(shape, np.nan)
    if len(rows):
        found[rows] = model.predict(table.take(rows), **{name: given[rows] for name, given in beside.items()})
    return found
