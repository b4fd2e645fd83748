"""Single rows, as tables of one row: for models that read tables alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._model.model import FittedModel
from spinney._model.row_reader import Row, RowReader

Floats = NDArray[np.float64]


class RowTableReader(RowReader):
    """Turns a row into a table of one row."""

    def __init__(self, schema: Schema, unseen: str) -> None:
        super().__init__(schema, unseen)
        self._sizes = schema.n_categories

    def _table(self, row: Row) -> _engine.Table:
        table = _engine.Table(1)
        numbers = self._numbers(row)
        for j, n_categories in enumerate(self._sizes):
            if n_categories:
                known = numbers[j] >= 0  # NaN is not
                code = np.array([numbers[j] if known else -1], dtype=np.int32)
                table.add_category(code, n_categories)
            else:
                table.add_number(numbers[j : j + 1].copy())
        return table


class TableRowPredictor(RowTableReader):
    """A fitted model prepared to predict single rows.

    Rows are sequences of values in column order, mappings from column names to values, or float64 arrays. A handle is
    for one thread at a time.
    """

    def __init__(self, model: FittedModel, schema: Schema, unseen: str, classes: Any) -> None:
        super().__init__(schema, unseen)
        self._model = model
        self._classes = classes

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
        model, table = self._model, self._table(row)
        if self._classes is None:
            values = model.predictions(table, 1)[0]
            return float(values[0]) if model.n_outputs == 1 else values
        codes = model.codes(table, 1)
        labels = model.labels(codes, [self._classes] if model.n_outputs == 1 else self._classes)
        return labels[0]

    def predict_proba(self, row: Row) -> Any:
        """Class shares of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        ndarray of shape (n_classes,), or a list of these
            Shares in the order of the classes.
        """
        if self._classes is None:
            raise AttributeError("The model predicts numbers and has no class shares. Use predict.")
        shares = self._model.spread(self._model.predictions(self._table(row), 1))
        return [part[0] for part in shares] if isinstance(shares, list) else shares[0]
