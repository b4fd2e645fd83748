"""Support of predictions: the effective number of training rows, and values outside the training range."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import read_table
from spinney._data.arguments import argument_numbers
from spinney._data.display import Backend, ShownAsTable, elide, frame_of, one_line, plural, shortest
from spinney._data.select import pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import check_length
from spinney._model.file.codec import array, saved_fields, table

REASONS = ("", "below", "above", "unseen", "missing")
_BELOW, _ABOVE, _UNSEEN, _MISSING = 1, 2, 3, 4
_MOST_LINES = 15


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """Range of the training rows in each column.

    Attributes
    ----------
    low, high : ndarray of shape (n_columns,)
        Smallest and largest number, or position in the order of ordered categories; NaN for categories and for columns
        without a value.
    has_missing : ndarray of shape (n_columns,), bool
    """

    low: Floats
    high: Floats
    has_missing: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: _engine.Table, weight: Floats | None, n_jobs: int) -> ColumnRanges:
        """Return the ranges of the rows of positive weight."""
        low, high, has_missing = columns.ranges(weight, n_jobs)
        return cls(low, high, has_missing.astype(bool))

    def first(self, n: int) -> ColumnRanges:
        """Return the ranges of the first columns."""
        return ColumnRanges(self.low[:n], self.high[:n], self.has_missing[:n])

    def reasons(self, columns: _engine.Table) -> NDArray[np.uint8]:
        """Return why each value lies outside, as positions in `REASONS`; new categories have the code n."""
        reasons = np.zeros((columns.n_rows, columns.n_columns), dtype=np.uint8)
        for j in range(columns.n_columns):
            values = np.asarray(columns.column(j), dtype=np.float64)
            n_categories = columns.n_categories(j)
            if n_categories:
                reasons[values >= n_categories, j] = _UNSEEN
            elif np.isnan(self.low[j]):
                reasons[~np.isnan(values), j] = _UNSEEN
            else:
                reasons[values < self.low[j], j] = _BELOW
                reasons[values > self.high[j], j] = _ABOVE
            if not self.has_missing[j]:
                reasons[np.isnan(values), j] = _MISSING
        return reasons


SAVED_RANGES = table(
    saved_fields(
        low=array("float64", "n_features", finite=False),
        high=array("float64", "n_features", finite=False),
        has_missing=array("bool", "n_features"),
    ),
    ColumnRanges,
    key="ranges",
)


@dataclass(frozen=True, eq=False)
class Support(ShownAsTable):
    """Result of `predict_support`; prints as text.

    Attributes
    ----------
    effective_rows : ndarray of shape (n_samples,), or None
        Effective number of training rows of each prediction: 1 / Σ w² of the weights that `leaf_weights` returns.
        None unless the model is a forest fitted with ``keep_rows=True``.
    outside : ndarray of shape (n_samples, n_features), bool
        Whether a value lies outside the range of the training rows in its column.
    reason : ndarray of shape (n_samples, n_features), str
        Why a value is outside: "below" or "above" the range; "unseen" for a category that did not occur in training;
        "missing" in a column without missing values in training; "" if the value is not outside.
    names : list of str
        The columns.

    Examples
    --------
    >>> import spinney
    >>> forest = spinney.RandomForestRegressor(random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> print(forest.predict_support([[2.5], [9.0]]))
    2 rows, 1 with a value outside the range of the training rows
      x0: 1 above
    """

    effective_rows: Floats | None
    reason: NDArray[np.str_]
    names: list[str]

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Whether each value lies outside the range of the training rows in its column."""
        return np.asarray(self.reason != "")

    def __len__(self) -> int:
        return len(self.reason)

    def columns_outside(self, row: int) -> list[str]:
        """Return the names of the columns in which a row lies outside the range of the training rows.

        Parameters
        ----------
        row : int
            Position of the row.

        Returns
        -------
        list of str
            Names.
        """
        return [name for name, reason in zip(self.names, self.reason[row], strict=True) if reason]

    def is_enough(self, max_outside: int = 0, min_rows: float | None = None) -> NDArray[np.bool_]:
        """Return which rows are supported well enough to be predicted.

        Parameters
        ----------
        max_outside : int, default=0
            Maximum number of columns in which a row may lie outside the range of the training rows.
        min_rows : float, optional
            Minimum effective number of training rows; see `predict_support`. For forests fitted with
            ``keep_rows=True``.

        Returns
        -------
        ndarray of shape (n_samples,), bool
            Whether each row is supported.
        """
        if isinstance(max_outside, bool) or not isinstance(max_outside, Integral) or max_outside < 0:
            raise ValueError(f"max_outside must be a number of columns, at least 0, not {max_outside!r}.")
        enough = np.asarray(self.outside.sum(axis=1) <= int(max_outside))
        if min_rows is None:
            return enough
        if isinstance(min_rows, bool) or not isinstance(min_rows, Real) or not float(min_rows) >= 0:
            raise ValueError(f"min_rows must be a number of training rows, at least 0, not {min_rows!r}.")
        if self.effective_rows is None:
            raise ValueError(
                "min_rows needs the training rows of each prediction, which this model does not store. Fit a forest "
                "with keep_rows=True, or leave it out."
            )
        return enough & (self.effective_rows >= float(min_rows))

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the rows as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per predicted row: `effective_rows` (if known), `n_outside` (the number of columns outside), and
            `outside` (which columns, and why).
        """
        columns: dict[str, list[Any]] = {}
        if self.effective_rows is not None:
            columns["effective_rows"] = self.effective_rows.tolist()
        columns["n_outside"] = self.outside.sum(axis=1).tolist()
        columns["outside"] = [""] * len(self)
        for row in np.flatnonzero(self.outside.any(axis=1)).tolist():
            pairs = zip(self.names, self.reason[row].tolist(), strict=True)
            columns["outside"][row] = ", ".join(f"{name} ({reason})" for name, reason in pairs if reason)
        return frame_of(columns, backend)

    def __repr__(self) -> str:
        return f"<Support: {plural(len(self), 'row')}, {int(self.outside.any(axis=1).sum())} outside>"

    def __str__(self) -> str:
        n_outside = int(self.outside.any(axis=1).sum())
        lines = [f"{plural(len(self), 'row')}, {n_outside} with a value outside the range of the training rows"]
        if self.effective_rows is not None and len(self):
            low, middle, high = (shortest(float(v), 3) for v in np.quantile(self.effective_rows, (0, 0.5, 1)))
            lines.append(f"Effective training rows: {low} to {high}, median {middle}")
        counts = self.outside.sum(axis=0)
        worst = [j for j in np.argsort(-counts, kind="stable") if counts[j]]
        for j in worst[:_MOST_LINES]:
            numbers = {why: int((self.reason[:, j] == why).sum()) for why in REASONS[1:]}
            parts = [f"{n} {why}" for why, n in numbers.items() if n]
            lines.append(f"  {elide(one_line(self.names[j]), 40)}: {', '.join(parts)}")
        if len(worst) > _MOST_LINES:
            lines.append(f"  … and {len(worst) - _MOST_LINES} more columns")
        return "\n".join(lines)


def predict_support(estimator: TableEstimator, X: TableLike) -> Support:
    """Return how well the training rows support each prediction.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows. Categories that did not occur in training are reported and raise no error, whatever `unseen` is.

    Returns
    -------
    Support
        The columns in which a row lies outside the range of the training rows: numbers beyond the range, categories
        that did not occur, missing values in columns that had none. A value that is not in the declared order of an
        ordered categorical column counts as missing. For forests fitted with ``keep_rows=True``, also the effective
        number of training rows of each prediction: 1 / the sum of its squared `leaf_weights`. Prints as text; has
        `to_frame()`.
    """
    check_is_fitted(estimator)
    ranges: ColumnRanges | None = getattr(estimator, "_ranges", None)
    if ranges is None:
        raise AttributeError(
            "This model does not have the ranges of its training columns, because it was imported. Fit a model with "
            "spinney."
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
    """Predict the rows that the training rows support, and abstain from the others.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows. With a category that did not occur in training, a row counts as outside in this column. If `max_outside`
        allows that, the row is predicted according to `unseen`, and "error" raises an error.
    max_outside : int, default=0
        Maximum number of columns in which a row may lie outside the range of the training rows; see
        `predict_support`.
    min_rows : float, optional
        Minimum effective number of training rows; see `predict_support`. For forests fitted with ``keep_rows=True``.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`; for boosting.

    Returns
    -------
    ndarray
        As returned by `predict`, with NaN for rows that are not predicted; classes are an array of objects, with
        None.
    """
    model: Any = estimator
    table, offsets = pick_table(X), None
    if offset is not None and not hasattr(model, "boosting_"):
        raise ValueError("offset is added to the scores of boosting, and this model has none. Leave it out.")
    if offset is not None:
        offsets = argument_numbers(offset, "offset")
        check_length(len(offsets), table.n_rows, "offset")
    rows = np.flatnonzero(model.predict_support(table.native).is_enough(max_outside, min_rows))
    n_outputs = getattr(model, "n_outputs_", 1)
    shape = (table.n_rows,) if n_outputs == 1 else (table.n_rows, n_outputs)
    predictions = np.full(shape, None, dtype=object) if hasattr(model, "classes_") else np.full(shape, np.nan)
    if len(rows):
        options = {} if offsets is None else {"offset": offsets[rows]}
        predictions[rows] = model.predict(table.take(rows), **options)
    return predictions
