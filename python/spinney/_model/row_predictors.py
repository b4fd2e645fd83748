"""Reads single rows, for services: no validation, no threads."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.cells import seconds_of

Row = Sequence[Any] | Mapping[str, Any] | NDArray[np.float64]
Answer = Callable[[NDArray[np.float64]], Any]


_FLOAT64 = np.dtype(np.float64)


_IN_ONE_PIECE = (_FLOAT64.itemsize,)  # strides


class RowReader:
    """Turns a row as a caller has it into the engine's numbers, in one buffer."""

    def __init__(self, schema: Schema, unseen: str) -> None:
        self._buffer = np.empty(schema.n_features)
        self._shape = self._buffer.shape
        self._format = f"{schema.n_features}d"
        self._pool = schema.pool
        self._names = list(schema.names or [])
        self._has_names = schema.has_names
        self._codes = [(j, {**f.code_of, None: np.nan}, f) for j, f in enumerate(schema.features) if f.categories]
        self._dates = [(j, f.clock, f"Column '{f.name}'") for j, f in enumerate(schema.features) if f.clock]
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
                if array.dtype is _FLOAT64 and array.strides == _IN_ONE_PIECE:
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
        except (struct.error, OverflowError):  # a None, say
            self._fill(row)
        for j, low, high in self._absent:
            if low <= self._buffer[j] <= high:
                self._buffer[j] = np.nan
        return self._buffer

    def _values(self, row: Any) -> Any:
        """Values, in column order, of a row that is not a list: as a list, or as an array of one dimension."""
        if isinstance(row, Mapping):
            return self._by_name(row)
        if isinstance(row, (str, bytes, bytearray, Set)) or not hasattr(row, "__iter__"):
            raise TypeError(
                f"A row is a list, a mapping from column names or an array of its values, not {type(row).__name__}."
            )
        n_dims = getattr(row, "ndim", 1)
        if n_dims != 1:
            raise ValueError(
                f"A handle takes one row, and this has {n_dims} dimensions. Pass one row of it, such as X[0], or give "
                "the table to the model's predict."
            )
        if isinstance(row, np.ma.MaskedArray):
            return row.tolist()  # with None where it is masked
        if type(row) is np.ndarray:
            return row
        if self._has_names and _is_named_series(row):
            return self._by_name(dict(zip(row.index, row.tolist(), strict=True)))
        return list(row)

    def _by_name(self, row: Mapping[Any, Any]) -> list[Any]:
        try:
            return [row[name] for name in self._names]
        except KeyError:
            lacking = next(name for name in self._names if name not in row)
            raise ValueError(
                f"The row has no value for column '{lacking}'. Give one for every column; None is missing."
            ) from None

    def _fill(self, row: Any) -> None:
        """Write values that are not all numbers."""
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
                "every column; None is missing."
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
        for j, clock, label in self._dates:
            row[j] = seconds_of(row[j], clock, label)
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
    """Say whether a value that is not NaN stands for none: pandas' NA has no truth value to compare by."""
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _is_named_series(row: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(row, pandas.Series) and all(isinstance(name, str) for name in row.index)


class RowPredictor(RowReader):
    """A fitted model prepared to predict single rows in microseconds, without threads.

    Everything that can be prepared is: predictions of a tree are looked up by leaf, values are written to one buffer. A
    handle is therefore for one thread at a time; make one per thread.

    Rows are sequences of values in column order, mappings from column names to values, or float64 arrays; a
    pandas Series whose index is of names is read by these where the model has names. A value of a category column is
    the category itself; None, NaN, pandas.NA and what is masked are missing. Numbers are not checked.
    """

    def __init__(self, schema: Schema, unseen: str, answer: Answer, shares: Answer | None = None) -> None:
        """Take what turns the numbers of a row into its prediction, and into its class shares."""
        super().__init__(schema, unseen)
        self._answer = answer
        self._shares_of = shares

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
        return self._answer(self._numbers(row))

    def predict_proba(self, row: Row) -> Any:
        """Class shares of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        ndarray of shape (n_classes,)
            In the order of the classes, read-only; a list of these if the model has several outputs.
        """
        if self._shares_of is None:
            raise AttributeError("A regression model has no class shares. Use predict.")
        return self._shares_of(self._numbers(row))
