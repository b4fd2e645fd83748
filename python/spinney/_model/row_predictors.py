"""Predictors of single rows, for services: no validation, no threads."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.cells import seconds_of

Row = Sequence[Any] | Mapping[Any, Any] | NDArray[np.float64]
RowFunction = Callable[[NDArray[np.float64]], Any]

_FLOAT64 = np.dtype(np.float64)
_CONTIGUOUS = (_FLOAT64.itemsize,)  # strides


class RowReader:
    """Converts a row in any accepted form to the engine's numbers, in one buffer."""

    def __init__(self, schema: Schema, unseen: str) -> None:
        self._buffer = np.empty(schema.n_features)
        self._shape = self._buffer.shape
        self._format = f"{schema.n_features}d"
        self._pool = schema.pool
        self._names = list(schema.names or [])
        self._has_names = schema.has_names
        self._codes = [(j, {**f.code_of, None: np.nan}, f) for j, f in enumerate(schema.features) if f.categories]
        self._dates = [(j, f.clock, f"Column '{f.name}'", f.written) for j, f in enumerate(schema.features) if f.clock]
        self._absent = [(j, *f.absent) for j, f in enumerate(schema.features) if f.absent is not None]
        self._is_plain = not (self._codes or self._dates or self._absent)
        self._unseen = unseen

    def _numbers(self, row: Row) -> NDArray[np.float64]:
        inputs = self._inputs(row)
        return inputs if self._pool is None else self._pool.of_row(inputs)

    def _inputs(self, row: Row) -> NDArray[np.float64]:
        kind = type(row)
        if kind is np.ndarray and self._is_plain:
            array: NDArray[Any] = row  # type: ignore[assignment]
            if array.shape == self._shape:
                if array.dtype is _FLOAT64 and array.strides == _CONTIGUOUS:
                    return array
                if array.dtype.kind in "fiub":
                    self._buffer[:] = array
                    return self._buffer
        if kind is not list and kind is not tuple:
            row = self._values(row)
        if self._codes:
            row = self._encode(list(row))
        if self._dates:
            row = self._read_dates(list(row))
        try:
            struct.pack_into(self._format, self._buffer.data, 0, *row)
        except (struct.error, OverflowError):  # such as a None
            self._fill(row)
        for j, low, high in self._absent:
            if low <= self._buffer[j] <= high:
                self._buffer[j] = np.nan
        return self._buffer

    def _values(self, row: Any) -> Any:
        """Return the values of a row that is not a list, in column order, as a list or a one-dimensional array."""
        if isinstance(row, Mapping):
            return self._by_name(row)
        if isinstance(row, (str, bytes, bytearray, Set)) or not hasattr(row, "__iter__"):
            raise TypeError(
                f"A row is a list, a mapping from column names or an array of its values, not {type(row).__name__}."
            )
        n_dims = getattr(row, "ndim", 1)
        if n_dims != 1:
            raise ValueError(
                f"A row predictor takes one row, but this has {n_dims} dimensions. Pass one row of it, such as X[0], "
                "or pass the table to the model's predict."
            )
        if isinstance(row, np.ma.MaskedArray):
            return row.tolist()  # masked values become None
        if type(row) is np.ndarray:
            return row
        if self._has_names and _is_named_series(row):
            return self._by_name(dict(zip(row.index, row.tolist(), strict=True)))
        return list(row)

    def _by_name(self, row: Mapping[Any, Any]) -> list[Any]:
        try:
            return [row[name] for name in self._names]
        except KeyError:
            missing = next(name for name in self._names if name not in row)
            raise ValueError(
                f"The row has no value for column '{missing}'. Pass one for every column, or None if it is missing."
            ) from None

    def _fill(self, row: Any) -> None:
        """Write values of which some are not numbers."""
        self._check_length(row)
        try:
            self._buffer[:] = row
        except (TypeError, ValueError, OverflowError):
            for j, value in enumerate(row):
                self._buffer[j] = np.nan if _is_missing(value) else self._read_number(value, j)

    def _check_length(self, row: Sequence[Any]) -> None:
        if len(row) != len(self._buffer):
            raise ValueError(
                f"The row has {len(row)} values, but the model has {len(self._buffer)} columns. Give one value for "
                "every column, or None if it is missing."
            )

    def _read_number(self, value: Any, j: int) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"Column '{self._names[j]}' holds numbers, but the row has {value!r}. Pass a number, or None if it is "
                "missing."
            ) from None

    def _encode(self, row: list[Any]) -> list[Any]:
        try:
            for j, codes, feature in self._codes:
                code = codes.get(row[j])
                if code is None:
                    code = self._code_of_unseen(row[j], feature)
                row[j] = code
        except IndexError:
            self._check_length(row)
            raise
        except TypeError:  # not hashable
            raise ValueError(
                f"Column '{feature.name}' holds categories, but the row has {row[j]!r}. Pass one category, or None if "
                "it is missing."
            ) from None
        return row

    def _read_dates(self, row: list[Any]) -> list[Any]:
        self._check_length(row)
        for j, clock, label, written in self._dates:
            row[j] = seconds_of(row[j], clock, label, written)
        return row

    def _code_of_unseen(self, value: Any, feature: Any) -> float:
        if _is_missing(value) or value != value:
            return np.nan
        if self._unseen == "error":
            raise ValueError(f"Column '{feature.name}' has a value that was not seen in training: {value!r}.")
        if self._unseen == "other" and feature.kind == "category":
            return float(len(feature.categories))
        return np.nan


def _is_missing(value: object) -> bool:
    """Return whether a value other than NaN is missing; pandas' NA has no truth value, so its type is compared."""
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _is_named_series(row: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(row, pandas.Series) and all(isinstance(name, str) for name in row.index)


class RowPredictor(RowReader):
    """A fitted model prepared to predict single rows in microseconds, without threads.

    All preparation is done once: predictions of a tree are looked up by leaf, values are written to one buffer.
    A row predictor must therefore be used by one thread at a time; make one per thread.

    Rows are sequences of values in column order, mappings from column names to values, or float64 arrays. A pandas
    Series indexed by strings is read by name if the model has column names. A value of a category column is the
    category itself; None, NaN, pandas.NA and masked values are missing. Numbers are not checked.
    """

    def __init__(self, schema: Schema, unseen: str, predict: RowFunction, proba: RowFunction | None = None) -> None:
        """Take the functions from the numbers of a row to its prediction and to its class probabilities."""
        super().__init__(schema, unseen)
        self._predict_row = predict
        self._proba_of_row = proba

    def predict(self, row: Row) -> Any:
        """Predict one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        label or float
            Prediction; an array if the model has several outputs.
        """
        return self._predict_row(self._numbers(row))

    def predict_proba(self, row: Row) -> Any:
        """Return the class probabilities of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        ndarray of shape (n_classes,)
            In the order of the classes, read-only; a list of these if the model has several outputs.
        """
        if self._proba_of_row is None:
            raise AttributeError("A regression model has no class probabilities. Use predict.")
        return self._proba_of_row(self._numbers(row))
