"""Reads single rows, for services: no validation, no threads."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.cells import seconds_of
from spinney._data.types import ColumnLike

Row = Sequence[Any] | Mapping[str, Any] | NDArray[np.float64]


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
    """A fitted tree prepared to predict single rows in microseconds.

    Everything that can be prepared is: predictions are looked up by leaf, values are written to one buffer. A handle
    is therefore for one thread at a time; make one per thread.

    Rows are sequences of values in column order, mappings from column names to values, or float64 arrays; a
    pandas Series whose index is of names is read by these where the model has names. A value of a category column is
    the category itself; None, NaN, pandas.NA and what is masked are missing. Numbers are not checked.
    """

    def __init__(self, tree: Any, schema: Schema, unseen: str, classes: Any) -> None:
        super().__init__(schema, unseen)
        self._tree: _engine.Tree = tree.engine
        single = tree.n_outputs == 1
        if classes is None:
            self._prediction = tree.flat_value[:, 0].tolist() if single else list(tree.flat_value)
            self._shares: list[Any] | None = None
        elif single:
            self._prediction = [classes[code] for code in tree.majority[:, 0]]
            self._shares = list(tree.flat_value)
        else:
            labels = [np.asarray(c)[tree.majority[:, k]] for k, c in enumerate(classes)]
            self._prediction = list(np.column_stack(labels))
            self._shares = [[row[s] for s in tree.class_columns] for row in tree.flat_value]

    def apply(self, row: Row) -> int:
        """Leaf of a row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        int
            Node number.
        """
        return self._tree.apply_one(self._numbers(row))

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
        return self._prediction[self.apply(row)]

    def predict_proba(self, row: Row) -> Any:
        """Class shares of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        ndarray of shape (n_classes,)
            Read-only; a list of these if the model has several outputs.
        """
        if self._shares is None:
            raise AttributeError("A regression model has no class shares. Use predict.")
        return self._shares[self.apply(row)]


class LinesRowPredictor(RowPredictor):
    """As `RowPredictor`, for a tree whose leaves are lines."""

    def __init__(self, tree: Any, schema: Schema, unseen: str, classes: Any) -> None:
        super().__init__(tree, schema, unseen, classes)
        self._value = _engine.RowScorer(tree.summed, np.zeros(1), "identity").value

    def predict(self, row: Row) -> Any:
        """Predict one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        float
            Prediction.
        """
        return self._value(self._numbers(row))


class ForestRowPredictor(RowReader):
    """A fitted forest prepared to predict single rows in microseconds, without threads.

    Rows are taken as by `RowPredictor`. A handle is for one thread at a time; make one per thread.
    """

    def __init__(self, forest: Any, schema: Schema, unseen: str, classes: Any) -> None:
        super().__init__(schema, unseen)
        self._forest = forest
        forest.engine.prepare()
        self._mean = forest.engine.predict_one
        self._classes = [classes] if classes is not None and forest.n_outputs == 1 else classes
        by_share = classes is not None and forest.n_outputs == 1 and forest.cost is None
        self._labels = list(classes) if by_share else None
        self._is_number = classes is None and forest.n_outputs == 1
        self._class = forest.engine.predict_one_class
        self._number = forest.engine.predict_one_number

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
        numbers = self._numbers(row)
        if self._labels is not None:
            return self._labels[self._class(numbers)]
        if self._is_number:
            return self._number(numbers)
        mean = self._mean(numbers)
        if self._classes is None:
            return mean
        return self._forest.labels(self._forest.best_codes(mean[np.newaxis]), self._classes)[0]

    def predict_proba(self, row: Row) -> Any:
        """Class shares of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        ndarray of shape (n_classes,)
            A list of these if the model has several outputs.
        """
        if self._classes is None:
            raise AttributeError("A regression model has no class shares. Use predict.")
        mean = self._mean(self._numbers(row))
        return mean if self._forest.n_outputs == 1 else [mean[s] for s in self._forest.class_columns]


class SumOfScores(Protocol):
    """What a handle asks of a fitted boosting model."""

    start: NDArray[np.float64]
    link: str
    cost: NDArray[np.float64] | None

    @property
    def engine(self) -> _engine.Additive:
        """The trees."""

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""

    @property
    def class_columns(self) -> list[slice]:
        """Where each output's classes are in a row of flat numbers."""

    def predicted(self, scores: NDArray[np.float64], /) -> NDArray[np.float64]:
        """Turn scores into predictions."""

    def score_codes(self, scores: NDArray[np.float64], /) -> NDArray[np.intp]:
        """Codes of the classes that scores stand for."""

    def best_codes(self, flat: NDArray[np.float64], /) -> NDArray[np.intp]:
        """Codes of the most probable or least costly classes."""

    def labels(self, codes: NDArray[np.intp], classes: list[NDArray[Any]], /) -> NDArray[Any]:
        """Labels of class codes."""


class BoostingRowPredictor(RowReader):
    """A fitted boosting model prepared to predict single rows in microseconds, without threads.

    Rows are taken as by `RowPredictor`. A handle is for one thread at a time; make one per thread.
    """

    def __init__(self, model: SumOfScores, schema: Schema, unseen: str, classes: Any) -> None:
        super().__init__(schema, unseen)
        self._model = model
        self._is_by_output = model.link == "by_output"  # then the engine gives scores alone
        self._is_normal = model.link == "normal"
        link = "identity" if self._is_by_output or self._is_normal else model.link
        scorer = _engine.RowScorer(model.engine, np.ascontiguousarray(model.start), link)
        self._code, self._value, self._shares = scorer.code, scorer.value, scorer.shares
        self._classes = None if classes is None else list(classes)
        self._n_scores = model.n_scores
        self._n_values = model.n_scores if self._is_by_output or classes is None else len(classes)
        self._is_number = classes is None and model.n_scores == 1

    def _read_offset(self, offset: ColumnLike) -> NDArray[np.float64]:
        try:
            given = np.array(offset, dtype=np.float64, ndmin=1)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != (self._n_scores,):
            wanted = "one number" if self._n_scores == 1 else f"{self._n_scores} numbers, one per score"
            raise ValueError(f"The offset of a row is {wanted}. Got {offset!r}.")
        if not np.isfinite(given).all():
            raise ValueError(f"The offset of a row must be finite. Got {offset!r}.")
        return given

    def predict(self, row: Row, offset: Any = None) -> Any:
        """Predict one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.
        offset : float or array-like of shape (n_scores,), optional
            Scores to add to those of the trees.

        Returns
        -------
        label or float
            Prediction; an array if the model has several outputs.
        """
        given = None if offset is None else self._read_offset(offset)
        if self._is_number:
            return self._value(self._inputs(row), given)
        if self._is_normal:
            return float(self._flat_of(row, given)[0])
        if self._classes is None:
            return self._flat_of(row, given)
        if self._is_by_output:
            codes = self._model.score_codes(self._flat_of(row, given)[np.newaxis])
            return self._model.labels(codes, self._classes)[0]
        if self._model.cost is not None:
            return self._classes[int(self._model.best_codes(self._flat_of(row, given)[np.newaxis])[0, 0])]
        return self._classes[self._code(self._inputs(row), given)]

    def _flat_of(self, row: Row, given: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Values, shares of the classes, or scores by output."""
        out = np.empty(self._n_values)
        self._shares(self._inputs(row), out, given)
        return out

    def predict_proba(self, row: Row, offset: Any = None) -> Any:
        """Class probabilities of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.
        offset : float or array-like of shape (n_scores,), optional
            Scores to add to those of the trees.

        Returns
        -------
        ndarray of shape (n_classes,)
            In the order of the classes; a list of these if the model has several outputs.
        """
        if self._classes is None:
            raise AttributeError("A regression model has no class shares. Use predict.")
        found = self._flat_of(row, None if offset is None else self._read_offset(offset))
        if not self._is_by_output:
            return found
        shares = self._model.predicted(found[np.newaxis])[0]
        return [shares[columns] for columns in self._model.class_columns]
