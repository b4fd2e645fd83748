"""A model, and rows that it is asked about with some of their values replaced.

Vocabulary
----------
number   what trees see of a value: itself, the seconds of a date, the code of a category; NaN is missing
cell     the value as the caller has it
point    one number for each of some columns, which rows are given in place of their own
answer   what the model says of a row: a value, shares of classes, or scores
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Feature, Schema, read_table
from spinney._data.cells import cells_of, date_text
from spinney._data.columns import match_columns
from spinney._data.display import shortest
from spinney._data.feature import Unseen, feature_values
from spinney._data.reproducible import times
from spinney._data.select import Cells, Constant, PickTable, pick_table
from spinney._data.types import Floats, TableLike
from spinney._estimator.parameters import column_index
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.model import ModelOfTrees

Rows = NDArray[np.intp]

_MOST_ANSWERS = 1 << 24  # numbers held at a time: 128 MB
METHODS = ("auto", "predict_proba", "decision_function", "predict")


@dataclass(frozen=True, eq=False)
class Points:
    """Values for some columns.

    Attributes
    ----------
    columns : list of int
    numbers : list of ndarray of shape (n_points,)
        By column.
    rows : list of ndarray of shape (n_points,)
        By column: a row that has the value, -1 if none has.
    """

    columns: list[int]
    numbers: list[Floats]
    rows: list[Rows]

    def __len__(self) -> int:
        return len(self.numbers[0])

    def part(self, begin: int, end: int) -> Points:
        """Return some of the points."""
        return Points(self.columns, [n[begin:end] for n in self.numbers], [r[begin:end] for r in self.rows])


class Asked:
    """A fitted model and a table.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library with `predict`.
    X : table
        Rows.
    method : {"auto", "predict_proba", "decision_function", "predict"}
        What answers.
    output : class label, or number of an output, optional
        Which of several answers; None: all of them, or the second of two classes.
    every : bool
        Keep the answers for both of two classes.

    Attributes
    ----------
    schema : Schema
        The model's columns, or, if it keeps no schema, those of the table.
    outputs : list or None
        What the answers are about; None if there is one.
    of : str
        What the answers are, in words.
    says_all : bool
        Whether the model is of spinney, and its answers are those of its `_fitted` alone.
    """

    def __init__(
        self, model: BaseEstimator, X: Any, method: str = "auto", output: Any = None, *, every: bool = False
    ) -> None:
        check_fitted(model)
        self.model = model
        self.table: PickTable = pick_table(X)
        self._raw = read_table(self.table.native)
        self.is_own = isinstance(model, TableEstimator) and model._has_target
        self.says_all = self.is_own and model._predicts_alone
        self.schema: Schema = model.schema_ if self.is_own else Schema.learn(self._raw)
        expected = self.schema.names if self.schema.has_names else None
        self._order = match_columns(
            self._raw.names, self._raw.n_columns, expected, self.schema.n_features, type(model).__name__
        )
        self.method = _method(model, method)
        self._picked: list[int] | None = None
        self.outputs: list[Any] | None = None
        self.of = "prediction"
        n_outputs = self.answers(self.table.take(np.zeros(1, dtype=np.intp))).shape[1]
        self._settle(n_outputs, output, every)

    def _settle(self, n_outputs: int, output: Any, every: bool) -> None:
        """Decide which answers count, and name them."""
        classes = getattr(self.model, "classes_", None)
        has_classes = classes is not None and self.method != "predict"
        names = list(np.asarray(classes).tolist()) if has_classes else list(range(n_outputs))
        what = "share of class" if self.method == "predict_proba" else "score of class" if has_classes else "prediction"
        if has_classes and n_outputs == 1:  # one score for two classes
            _refuse_output(output, names[-1:])
            self.of = f"{what} {names[-1]}"
            return
        _refuse_output(output, names)
        if output is not None:
            self._picked = [names.index(output)]
        elif has_classes and len(names) == 2 and not every:
            self._picked = [1]
        if self._picked is None and n_outputs > 1:
            self.outputs = names
            self.of = f"{what.removesuffix(' class')} the class" if has_classes else what
        elif has_classes:
            self.of = f"{what} {names[(self._picked or [0])[0]]}"

    # ---- columns ---------------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def n_outputs(self) -> int:
        """Number of answers to each question."""
        return 1 if self.outputs is None else len(self.outputs)

    def column(self, column: object, parameter: str = "columns") -> int:
        """Position of a column given by name or position."""
        return column_index(column, self.schema, parameter)

    def feature(self, column: int) -> Feature:
        """Return what is known of a column."""
        return self.schema.features[column]

    def place(self, column: int) -> int:
        """Position of a column in the caller's table."""
        return column if self._order is None else self._order[column]

    def numbers(self, column: int) -> Floats:
        """Return the numbers of a column."""
        unseen: Unseen = self.model._unseen_policy if self.is_own else "missing"
        raw, label = self._raw.column(self.place(column)), f"Column {self.feature(column).name!r}"
        return feature_values(self.feature(column), raw, self.n_rows, unseen, label)

    def all_numbers(self) -> Floats:
        """Return the numbers of all columns, (n_rows, n_columns)."""
        return np.column_stack([self.numbers(j) for j in range(self.schema.n_features)])

    # ---- answers ---------------------------------------------------------------------------------------------------

    def answers(self, X: TableLike) -> Floats:
        """Ask about the rows of a table of the same kind, (n_rows, n_outputs)."""
        found = getattr(self.model, self.method)(X)
        if isinstance(found, list):
            raise ValueError(
                f"{type(self.model).__name__} predicts several outputs of classes. Explain a model of one output."
            )
        found = np.asarray(found)
        if found.dtype.kind not in "fiub":
            raise ValueError(
                f"{type(self.model).__name__} predicts labels, which have no mean. It needs predict_proba or "
                "decision_function to be explained."
            )
        return self._pick(found.astype(np.float64).reshape(len(found), -1))

    def _pick(self, found: Floats) -> Floats:
        return found if self._picked is None else found[..., self._picked]

    def at_points(self, points: Points, fast: bool = True) -> Iterator[tuple[int, Floats]]:
        """Answers for all rows with the values of each point: positions of the first, and (n, n_rows, n_outputs)."""
        at_once = int(np.clip(_MOST_ANSWERS // max(1, self.n_rows * self.n_outputs), 1, 64))
        for begin in range(0, len(points), at_once):
            part = points.part(begin, begin + at_once)
            found = self._walked(part) if fast else None
            yield begin, self._one_by_one(part) if found is None else found

    def _one_by_one(self, points: Points) -> Floats:
        found = np.empty((len(points), self.n_rows, self.n_outputs))
        for p in range(len(points)):
            new: dict[int, Any] = {}
            for j, numbers, rows in zip(points.columns, points.numbers, points.rows, strict=True):
                if rows[p] >= 0:
                    new[self.place(j)] = np.full(self.n_rows, rows[p])
                else:
                    new[self.place(j)] = Constant(cells_of_feature(self.feature(j), numbers[p : p + 1])[0])
            found[p] = self.answers(self.table.with_columns(new))
        return found

    # ---- rows of numbers -------------------------------------------------------------------------------------------

    @cached_property
    def trees(self) -> list[_engine.Tree]:
        """The trees of a model of spinney, copied once."""
        trees: list[_engine.Tree] = self.model._fitted.trees()
        return trees

    def row_numbers(self) -> Floats:
        """Return the first row as numbers."""
        return np.asarray(self.all_numbers()[0])

    def answers_of_numbers(self, rows: Floats) -> Floats:
        """Answers for rows given as numbers, (n_rows, n_outputs); what is no number in the first row stays as it is."""
        if self.says_all and self.method in ("predict_proba", "predict") and self.schema.pool is None:
            table = point_table(self.schema, dict(enumerate(rows.T)))
            return self._pick(self.model._fitted.predictions(table, self.model._n_threads))
        return self.answers(self._as_table(rows))

    def _as_table(self, rows: Floats) -> Any:
        repeated = pick_table(self.table.take(np.zeros(len(rows), dtype=np.intp)))
        own = np.broadcast_to(self.row_numbers(), rows.shape)
        changed = [j for j in range(rows.shape[1]) if not np.array_equal(rows[:, j], own[:, j], equal_nan=True)]
        new = {self.place(j): Cells(cells_of_feature(self.feature(j), rows[:, j]).tolist()) for j in changed}
        return repeated.with_columns(new) if new else repeated.native

    def predicted(self, row: Floats) -> Any:
        """Return what the model's own `predict` says of one row."""
        found = np.asarray(self.model.predict(self._as_table(row[np.newaxis])))[0]
        found = found[0] if np.ndim(found) else found  # CatBoost gives a column
        return found.item() if isinstance(found, np.generic) else found

    def merits(self, answers: Floats) -> Floats:
        """Return what decides between the classes: shares, or costs with their sign turned."""
        cost = getattr(self.model._fitted, "cost", None) if self.is_own else None
        return answers if cost is None else -np.asarray(times(answers, cost))

    # ---- many points at once ---------------------------------------------------------------------------------------

    @property
    def walks(self) -> bool:
        """Whether the model is made of trees that rows can go down once for many points."""
        predicts_labels = self.method == "predict" and hasattr(self.model, "classes_")
        return self.has_trees and not predicts_labels

    @property
    def has_trees(self) -> bool:
        """Whether the model is made of spinney's trees, which split on single columns."""
        return self.says_all and self.schema.pool is None and isinstance(self.model._fitted, ModelOfTrees)

    @cached_property
    def encoded(self) -> _engine.Table:
        """The rows as the engine reads them."""
        return self.schema.encode(self._raw, unseen=self.model._unseen_policy, estimator=type(self.model).__name__)

    def _walked(self, points: Points) -> Floats | None:
        """As `_one_by_one`, if the model can."""
        if not self.walks:
            return None
        numbers, scores = dict(zip(points.columns, points.numbers, strict=True)), self.method == "decision_function"
        table = point_table(self.schema, numbers)
        found = self.model._fitted.at_points(self.encoded, table, points.columns, scores, self.model._n_threads)
        return None if found is None else self._pick(found)


def point_table(schema: Schema, numbers: dict[int, Floats]) -> _engine.Table:
    """Numbers by column as the engine reads tables; other columns do not count."""
    nothing = np.zeros(len(next(iter(numbers.values()))))
    table = _engine.Table(len(nothing))
    for j, n_categories in enumerate(schema.n_categories):
        values = numbers.get(j, nothing)
        if n_categories:
            table.add_category(np.where(np.isnan(values), -1, values).astype(np.int32), n_categories)
        else:
            table.add_number(np.ascontiguousarray(values, dtype=np.float64), None)
    return table


def all_thresholds(trees: Sequence[_engine.Tree], column: int) -> Floats:
    """Thresholds of a column in all trees, ascending."""
    return np.unique(np.concatenate([np.empty(0), *(tree.threshold[tree.feature == column] for tree in trees)]))


def check_fitted(model: object) -> None:
    """Refuse what cannot predict."""
    if not hasattr(model, "predict"):
        raise TypeError(f"model must be a fitted estimator with predict, not {type(model).__name__}.")
    if hasattr(model, "fit") and hasattr(model, "get_params"):
        check_is_fitted(model)


def cells_of_feature(feature: Feature, numbers: Floats) -> NDArray[Any]:
    """Turn numbers of a column into what the caller calls them."""
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
    """Write a value of a column as people read it."""
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
        found = [name for name in METHODS[1:3] if hasattr(model, name)] if _has_classes(model) else []
        return found[0] if found else "predict"
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}. Leave response_method out.")
    return method


def _has_classes(model: object) -> bool:
    return hasattr(model, "classes_") or hasattr(model, "predict_proba")


def _refuse_output(output: object, names: Sequence[Any]) -> None:
    if output is not None and output not in names:
        known = ", ".join(repr(name) for name in names[:10])
        raise ValueError(f"output must be one of {known}{', …' * (len(names) > 10)}, not {output!r}.")


def require_whole(name: str, number: object, least: int = 1) -> None:
    """Refuse what is not a whole number of at least so much."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise ValueError(f"{name} must be a whole number from {least} up, not {number!r}.")
