"""A fitted model, and its predictions for rows in which some values are replaced.

Vocabulary
----------
number      a value as trees read it: a number, the seconds of a date, the code of a category; NaN is missing
cell        a value as in the caller's table
point       one number for each of some columns, which replaces the values of rows
prediction  a value, class probabilities, or scores of a row
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Feature, Schema, read_table
from spinney._data.cells import cells_of, date_text
from spinney._data.columns import match_columns
from spinney._data.display import shortest
from spinney._data.feature import Unseen, feature_values, table_of
from spinney._data.reproducible import times
from spinney._data.select import Cells, Constant, PickTable, pick_table
from spinney._data.types import Floats, TableLike
from spinney._estimator.parameters import column_index
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.model import ModelOfTrees

Rows = NDArray[np.intp]

_MAX_PREDICTIONS = 1 << 24  # numbers in memory at a time: 128 MB
ResponseMethod: TypeAlias = Literal["auto", "predict_proba", "decision_function", "predict"]
METHODS = get_args(ResponseMethod)


@dataclass(frozen=True, eq=False)
class Points:
    """Numbers that replace the values of some columns.

    Attributes
    ----------
    columns : list of int
    numbers : list of ndarray of shape (n_points,)
        By column.
    rows : list of ndarray of shape (n_points,)
        By column: a row with this value, -1 if there is none.
    """

    columns: list[int]
    numbers: list[Floats]
    rows: list[Rows]

    def __len__(self) -> int:
        return len(self.numbers[0])

    def batch(self, begin: int, end: int) -> Points:
        """Return the points from `begin` to `end`."""
        return Points(self.columns, [n[begin:end] for n in self.numbers], [r[begin:end] for r in self.rows])


class ModelQuery:
    """A fitted model and the rows of a table to predict.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library with `predict`.
    X : table
        Rows.
    method : {"auto", "predict_proba", "decision_function", "predict"}
        Method that predicts.
    output : class label, or number of an output, optional
        Which of several outputs; None: all of them, or the second of two classes.
    both_classes : bool
        Whether to predict both of two classes.

    Attributes
    ----------
    schema : Schema
        The model's columns, or, if it stores no schema, those of the table.
    outputs : list or None
        Classes or numbers of the outputs; None if there is one.
    of : str
        Description of the predictions.
    predicts_alone : bool
        Whether this is a model of spinney whose `_fitted` alone makes the predictions.
    """

    def __init__(
        self, model: BaseEstimator, X: Any, method: str = "auto", output: Any = None, *, both_classes: bool = False
    ) -> None:
        check_fitted(model)
        self.model = model
        self.table: PickTable = pick_table(X)
        self._raw = read_table(self.table.native)
        self.is_own = isinstance(model, TableEstimator) and model._has_target
        self.predicts_alone = self.is_own and model._predicts_alone
        self.schema: Schema = model.schema_ if self.is_own else Schema.learn(self._raw)
        expected = self.schema.names if self.schema.has_names else None
        self._order = match_columns(
            self._raw.names, self._raw.n_columns, expected, self.schema.n_features, type(model).__name__
        )
        self.method = _method(model, method)
        self._selected: list[int] | None = None
        self.outputs: list[Any] | None = None
        self.of = getattr(model, "_predicted_quantity", "prediction")
        n_outputs = self.predict(self.table.take(np.zeros(1, dtype=np.intp))).shape[1]
        self._select_outputs(n_outputs, output, both_classes)

    def _select_outputs(self, n_outputs: int, output: Any, both_classes: bool) -> None:
        """Select and name the outputs."""
        classes = getattr(self.model, "classes_", None)
        has_classes = classes is not None and self.method != "predict"
        names = list(np.asarray(classes).tolist()) if has_classes else list(range(n_outputs))
        what = self.of
        if has_classes:
            what = "probability of class" if self.method == "predict_proba" else "score of class"
        if has_classes and n_outputs == 1:  # one score for two classes
            _require_output(output, names[-1:])
            self.of = f"{what} {names[-1]}"
            return
        _require_output(output, names)
        if output is not None:
            self._selected = [names.index(output)]
        elif has_classes and len(names) == 2 and not both_classes:
            self._selected = [1]
        if self._selected is None and n_outputs > 1:
            self.outputs = names
            self.of = f"{what.removesuffix(' class')} the class" if has_classes else what
        elif has_classes:
            self.of = f"{what} {names[(self._selected or [0])[0]]}"

    # ---- columns ---------------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def n_outputs(self) -> int:
        """Number of outputs per row."""
        return 1 if self.outputs is None else len(self.outputs)

    def column(self, column: object, parameter: str = "columns") -> int:
        """Return the position of a column given by name or position."""
        return column_index(column, self.schema, parameter)

    def feature(self, column: int) -> Feature:
        """Return the description of a column."""
        return self.schema.features[column]

    def table_position(self, column: int) -> int:
        """Return the position of a column in the caller's table."""
        return column if self._order is None else self._order[column]

    def numbers(self, column: int) -> Floats:
        """Return the numbers of a column."""
        unseen: Unseen = self.model._unseen_policy if self.is_own else "missing"
        raw, label = self._raw.column(self.table_position(column)), f"Column {self.feature(column).name!r}"
        return feature_values(self.feature(column), raw, self.n_rows, unseen, label)

    def all_numbers(self) -> Floats:
        """Return the numbers of all columns, (n_rows, n_columns)."""
        return np.column_stack([self.numbers(j) for j in range(self.schema.n_features)])

    # ---- predictions -----------------------------------------------------------------------------------------------

    def predict(self, X: TableLike) -> Floats:
        """Return the predictions for a table like the caller's, (n_rows, n_outputs)."""
        predictions = getattr(self.model, self.method)(X)
        if isinstance(predictions, list):
            raise ValueError(
                f"{type(self.model).__name__} predicts several outputs of classes. Explain a model of one output."
            )
        predictions = np.asarray(predictions)
        if predictions.dtype.kind not in "fiub":
            raise ValueError(
                f"{type(self.model).__name__} predicts labels, which have no mean. It needs predict_proba or "
                "decision_function to be explained."
            )
        return self.select(predictions.astype(np.float64).reshape(len(predictions), -1))

    def select(self, predictions: Floats) -> Floats:
        """Return the selected outputs of predictions."""
        return predictions if self._selected is None else predictions[..., self._selected]

    def predict_at_points(self, points: Points, fast: bool = True) -> Iterator[tuple[int, Floats]]:
        """Yield batches of predictions for all rows at each point: the first point, and (n, n_rows, n_outputs)."""
        batch_size = int(np.clip(_MAX_PREDICTIONS // max(1, self.n_rows * self.n_outputs), 1, 64))
        for begin in range(0, len(points), batch_size):
            batch = points.batch(begin, begin + batch_size)
            predictions = self._predict_by_trees(batch) if fast else None
            yield begin, self._predict_each_point(batch) if predictions is None else predictions

    def _predict_each_point(self, points: Points) -> Floats:
        predictions = np.empty((len(points), self.n_rows, self.n_outputs))
        for p in range(len(points)):
            new: dict[int, Any] = {}
            for j, numbers, rows in zip(points.columns, points.numbers, points.rows, strict=True):
                if rows[p] >= 0:
                    new[self.table_position(j)] = np.full(self.n_rows, rows[p])
                else:
                    new[self.table_position(j)] = Constant(cells_of_feature(self.feature(j), numbers[p : p + 1])[0])
            predictions[p] = self.predict(self.table.with_columns(new))
        return predictions

    # ---- rows of numbers -------------------------------------------------------------------------------------------

    @cached_property
    def trees(self) -> list[_engine.Tree]:
        """Trees of a model of spinney."""
        return list(self.model._fitted.trees())

    def row_numbers(self) -> Floats:
        """Return the numbers of the first row."""
        return np.asarray(self.all_numbers()[0])

    def predict_numbers(self, rows: Floats) -> Floats:
        """Return the predictions for variants of the first row, given as numbers, (n_rows, n_outputs)."""
        if self.predicts_alone and self.method in ("predict_proba", "predict") and self.schema.pool is None:
            table = point_table(self.schema, dict(enumerate(rows.T)))
            return self.select(self.model._fitted.predictions(table, self.model._n_threads))
        return self.predict(self._as_table(rows))

    def _as_table(self, rows: Floats) -> Any:
        repeated = pick_table(self.table.take(np.zeros(len(rows), dtype=np.intp)))
        original = np.broadcast_to(self.row_numbers(), rows.shape)
        changed = [j for j in range(rows.shape[1]) if not np.array_equal(rows[:, j], original[:, j], equal_nan=True)]
        new = {self.table_position(j): Cells(cells_of_feature(self.feature(j), rows[:, j]).tolist()) for j in changed}
        return repeated.with_columns(new) if new else repeated.native

    def predict_row(self, row: Floats) -> Any:
        """Return the label or value that the model's `predict` returns for one row of numbers."""
        prediction = np.asarray(self.model.predict(self._as_table(row[np.newaxis])))[0]
        prediction = prediction[0] if np.ndim(prediction) else prediction  # CatBoost returns a column
        return prediction.item() if isinstance(prediction, np.generic) else prediction

    def class_merits(self, probabilities: Floats) -> Floats:
        """Return the quantities whose maximum is the predicted class: probabilities, or negative expected costs."""
        cost = getattr(self.model._fitted, "cost", None) if self.is_own else None
        return probabilities if cost is None else -np.asarray(times(probabilities, cost))

    # ---- many points at once ---------------------------------------------------------------------------------------

    @property
    def predicts_by_trees(self) -> bool:
        """Whether one pass of a row through the trees gives its predictions at many points."""
        predicts_labels = self.method == "predict" and hasattr(self.model, "classes_")
        return self.has_trees and not predicts_labels

    @property
    def has_trees(self) -> bool:
        """Whether the model consists of spinney's trees with splits on single columns."""
        return self.predicts_alone and self.schema.pool is None and isinstance(self.model._fitted, ModelOfTrees)

    @cached_property
    def encoded(self) -> _engine.Table:
        """Rows as the engine reads them."""
        return self.schema.encode(self._raw, unseen=self.model._unseen_policy, estimator=type(self.model).__name__)

    def _predict_by_trees(self, points: Points) -> Floats | None:
        """Return the same as `_predict_each_point`, in one pass; None if the model does not support it."""
        if not self.predicts_by_trees:
            return None
        numbers, scores = dict(zip(points.columns, points.numbers, strict=True)), self.method == "decision_function"
        table = point_table(self.schema, numbers)
        predictions = self.model._fitted.at_points(self.encoded, table, points.columns, scores, self.model._n_threads)
        return None if predictions is None else self.select(predictions)


def point_table(schema: Schema, numbers: dict[int, Floats]) -> _engine.Table:
    """Return numbers by column as a table of the engine; other columns are 0."""
    zeros, sizes = np.zeros(len(next(iter(numbers.values())))), schema.n_categories
    return table_of((numbers.get(j, zeros) for j in range(len(sizes))), len(zeros), sizes)


def all_thresholds(trees: Sequence[_engine.Tree], column: int) -> Floats:
    """Return the thresholds of a column in all trees, ascending."""
    return np.unique(np.concatenate([np.empty(0), *(tree.threshold[tree.feature == column] for tree in trees)]))


def check_fitted(model: object) -> None:
    """Raise unless a model is fitted and has `predict`."""
    if not hasattr(model, "predict"):
        raise TypeError(f"model must be a fitted estimator with predict, not {type(model).__name__}.")
    if hasattr(model, "fit") and hasattr(model, "get_params"):
        check_is_fitted(model)


def cells_of_feature(feature: Feature, numbers: Floats) -> NDArray[Any]:
    """Return numbers of a column as cells of the caller's table."""
    cells = np.empty(len(numbers), dtype=object)
    if feature.categories:
        names = [*feature.categories, "(other)"]
        cells[:] = [None if np.isnan(code) else names[int(code)] for code in numbers]
        return cells
    if feature.clock:
        cells[:] = cells_of(numbers, feature.resolution, feature.clock)
        return cells
    if feature.kind == "boolean" and not np.isnan(numbers).any():
        return np.asarray(numbers != 0)
    return numbers


def text_of_value(feature: Feature, number: float) -> str:
    """Return a value of a column as text."""
    if np.isnan(number):
        return "missing"
    if feature.clock:
        return date_text(float(number), feature.resolution, feature.clock)
    if feature.categories or feature.kind == "boolean":
        return str(cells_of_feature(feature, np.array([number]))[0])
    return shortest(float(number), 4)


def _method(model: object, method: str) -> str:
    if method not in METHODS:
        raise ValueError(f"response_method must be one of {', '.join(map(repr, METHODS))}, not {method!r}.")
    if method == "auto":
        has_classes = hasattr(model, "classes_") or hasattr(model, "predict_proba")
        available = [name for name in METHODS[1:3] if hasattr(model, name)] if has_classes else []
        return available[0] if available else "predict"
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}. Use response_method='auto'.")
    return method


def _require_output(output: object, names: Sequence[Any]) -> None:
    """Raise if an output is not one of some names."""
    if output is not None and output not in names:
        known = ", ".join(repr(name) for name in names[:10])
        raise ValueError(f"output must be one of {known}{', …' * (len(names) > 10)}, not {output!r}.")
