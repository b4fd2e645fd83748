"""One row at a time, for services: no validation, no threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._tree_view import FittedTree


class RowPredictor:
    """A fitted model prepared to predict single rows in microseconds.

    Everything that can be prepared is: predictions are looked up by leaf, values are written to one buffer. A handle
    is therefore for one thread at a time; make one per thread.

    Rows are sequences of values in column order, mappings from column names to values, or float64 arrays. A value of
    a category column is the category itself, and None or NaN is missing. Numbers are not checked.
    """

    def __init__(self, tree: FittedTree, schema: Schema, unseen: str, classes: Any) -> None:
        self._tree = tree.engine
        self._buffer = np.empty(schema.n_features)
        self._names = list(schema.names or [])
        self._codes = [(j, {**f.code_of, None: np.nan}, f) for j, f in enumerate(schema.features) if f.categories]
        self._unseen = unseen
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

    def apply(self, row: Sequence[Any] | Mapping[str, Any] | NDArray[np.float64]) -> int:
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
        if not self._codes and type(row) is np.ndarray and row.dtype == np.float64 and row.flags.c_contiguous:
            return self._tree.apply_one(row)
        if isinstance(row, Mapping):
            row = [row[name] for name in self._names]
        if self._codes:
            row = self._encode(list(row))
        self._buffer[:] = row
        return self._tree.apply_one(self._buffer)

    def _encode(self, row: list[Any]) -> list[Any]:
        for j, codes, feature in self._codes:
            code = codes.get(row[j])
            if code is None:
                code = self._code_of_unseen(row[j], feature)
            row[j] = code
        return row

    def _code_of_unseen(self, value: Any, feature: Any) -> float:
        if value != value or type(value).__name__ == "NAType":
            return np.nan
        if self._unseen == "error":
            raise ValueError(f"Column '{feature.name}' has a value that was not seen in training: {value!r}.")
        if self._unseen == "other" and feature.kind == "category":
            return float(len(feature.categories))
        return np.nan

    def predict(self, row: Sequence[Any] | Mapping[str, Any] | NDArray[np.float64]) -> Any:
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

    def predict_proba(self, row: Sequence[Any] | Mapping[str, Any] | NDArray[np.float64]) -> Any:
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
