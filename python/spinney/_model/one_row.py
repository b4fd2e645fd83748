"""Handles that predict one row at a time, for services: each is made by the model whose answers it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._model.row_reader import Row, RowReader


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


class BoostingRowPredictor(RowReader):
    """A fitted boosting model prepared to predict single rows in microseconds, without threads.

    Rows are taken as by `RowPredictor`. A handle is for one thread at a time; make one per thread.
    """

    def __init__(self, model: Any, schema: Schema, unseen: str, classes: Any) -> None:
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

    def _read_offset(self, offset: Any) -> NDArray[np.float64]:
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
