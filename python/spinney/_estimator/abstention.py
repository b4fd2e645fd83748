"""Methods of estimators that store the ranges of their training columns (`_ranges`): support and abstention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data import read_table
from spinney._data.arguments import given_numbers
from spinney._data.select import pick_table
from spinney._data.types import ColumnLike, TableLike
from spinney._estimator.support import REASONS, ColumnRanges, Support
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import check_length


def predict_support(estimator: TableEstimator, X: TableLike) -> Support:
    """How far the training rows support each prediction.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows. Categories that did not occur in training are reported, not refused, whatever `unseen` says.

    Returns
    -------
    Support
        The columns in which a row lies outside what was seen: numbers beyond the range, categories that did not
        occur, values missing where none ever was. A value outside a declared order counts as missing. Of forests
        that keep their rows, also the effective number of training rows behind each prediction. Prints as text;
        has `to_frame()`.
    """
    check_is_fitted(estimator)
    ranges: ColumnRanges | None = getattr(estimator, "_ranges", None)
    if ranges is None:
        raise AttributeError(
            "This model does not know the ranges of its columns: it was imported, or saved by a version that did "
            "not keep them. Fit it here."
        )
    columns = estimator.schema_.encode_inputs(read_table(X), unseen="other", estimator=type(estimator).__name__)
    reasons = np.array(REASONS)[ranges.reasons(columns)]
    return Support(estimator._effective_rows(columns), reasons, list(estimator.schema_.names))


def predict_or_abstain(
    estimator: TableEstimator,
    X: TableLike,
    *,
    max_outside: int = 0,
    min_rows: float | None = None,
    offset: ColumnLike = None,
) -> NDArray[Any]:
    """Predict the rows that training rows support, and say nothing of the others.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows. Categories that did not occur in training are abstained from, not refused, whatever `unseen` says;
        those that `max_outside` allows for are predicted as it says.
    max_outside : int, default=0
        Most columns in which a row may lie outside what was seen, as `predict_support` finds them.
    min_rows : float, optional
        Fewest effective training rows behind a prediction; for forests that keep their rows.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`; for boosting.

    Returns
    -------
    ndarray
        As of `predict`, with NaN in the place of values that are not predicted. Classes come as an array of
        objects, with None.
    """
    model: Any = estimator
    table, beside = pick_table(X), {}
    if offset is not None and not hasattr(model, "boosting_"):
        raise ValueError("offset is added to the scores of boosting, and this model has none. Leave it out.")
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
