"""What is evaluated: rows of a table with their target and task, and the models, as callers give them.

Classification or regression is decided by one rule, which `study`, `compare`, ``spinney fit`` and ``spinney bench``
use. Strings, booleans and categories are labels: classification. Numbers are classification where they are whole (1.0
is as whole as 1), have at most ten different values, and each value occurs twice on average; else regression. Dates
are neither. ``task="classification"`` or ``task="regression"`` overrides the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, cast, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier, is_regressor

from spinney._data import read_table
from spinney._data.arguments import argument_array
from spinney._data.columns import CodedColumn, NumberColumn, RawTable, SparseColumn, dense_column
from spinney._data.display import elide, one_line, shortest
from spinney._data.select import PickTable, missing_rows, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import estimator_of_word, read_members
from spinney._estimator.held_out import read_row_groups, read_time
from spinney._estimator.target import read_one_class, read_one_value, read_weights

Rows = NDArray[np.intp]
Array = NDArray[Any]
BASELINE = "baseline"


@runtime_checkable
class EstimatorLike(Protocol):
    """An estimator of any library, with scikit-learn's methods."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Fit it to a table and a target."""

    @property
    def predict(self) -> Callable[..., Any]:
        """Predict rows of a table."""

    @property
    def get_params(self) -> Callable[..., dict[str, Any]]:
        """Return its parameters by name."""

    @property
    def set_params(self) -> Callable[..., Any]:
        """Set parameters by name."""


Models = Mapping[str, EstimatorLike | str] | list[Any] | EstimatorLike | str  # as callers give them


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from and to be evaluated on.

    Attributes
    ----------
    table : PickTable
    y : ndarray of shape (n_rows,)
        Labels or numbers.
    codes, classes : ndarray or None
        Codes and labels of classes; None in a regression.
    weight : ndarray of shape (n_rows,), or None
    groups, time : ndarray of shape (n_rows,), or None
        Which rows belong together, and their order in time.
    groups_are_copies : bool
        Whether groups are rows that are equal, rather than those of a column: many, and most of one row.
    """

    table: PickTable
    y: Array
    codes: Rows | None = None
    classes: Array | None = None
    weight: Floats | None = None
    groups: Array | None = None
    time: Array | None = None
    groups_are_copies: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def X(self) -> Any:  # noqa: N802
        """The table, as the caller's library has it."""
        return self.table.native

    @property
    def task(self) -> str:
        """Return "binary", "multiclass" or "regression"."""
        return "regression" if self.classes is None else "binary" if len(self.classes) == 2 else "multiclass"

    def take(self, rows: Rows) -> Self:
        """Return some of the rows."""
        columns: list[Any] = [self.codes, self.weight, self.groups, self.time]
        codes, weight, groups, time = (None if one is None else one[rows] for one in columns)
        table = pick_table(self.table.take(rows))
        return replace(self, table=table, y=self.y[rows], codes=codes, weight=weight, groups=groups, time=time)


def read_problem(
    table: PickTable, y: ColumnLike, task: Task, weight: ColumnLike, groups: ColumnLike, time: ColumnLike
) -> Problem:
    """Check a target of a known task, and what goes with it."""
    n_rows = table.n_rows
    codes = classes = None
    if task == "regression":
        target: Array = read_one_value(y, n_rows, "a comparison")
    else:
        numbers, classes = read_one_class(y, n_rows, "a comparison")
        codes = numbers.astype(np.intp)
        target = classes[codes]
    return Problem(
        table,
        target,
        codes,
        classes,
        read_weights(weight, n_rows),
        None if groups is None else read_row_groups(groups, n_rows),
        None if time is None else read_time(time, n_rows),
    )


def read_models(models: Models) -> dict[str, EstimatorLike | str]:
    """Return the models by name: estimators, or words that stand for some."""
    return dict(read_members([models] if isinstance(models, (str, EstimatorLike)) else models, "models"))


def task_of_models(models: dict[str, EstimatorLike | str]) -> Task | None:
    """Return the task of the first estimator among some models; None if words alone are given."""
    for model in models.values():
        if not isinstance(model, str) and (is_classifier(model) or is_regressor(model)):
            return "classification" if is_classifier(model) else "regression"
    return None


def estimators_of(models: dict[str, EstimatorLike | str], task: Task, baseline: bool) -> dict[str, EstimatorLike]:
    """Return the models as estimators, and the baseline."""
    kind, is_right = ("Classifier", is_classifier) if task == "classification" else ("Regressor", is_regressor)
    found: dict[str, EstimatorLike] = {}
    for name, one in models.items():
        found[name] = estimator = estimator_of_word(one, kind) if isinstance(one, str) else one
        if not is_right(estimator):
            raise ValueError(
                f"The model {name!r} is a {type(estimator).__name__}, which is no {kind.lower()} as others are."
            )
    return found | ({BASELINE: baseline_of(task)} if baseline and BASELINE not in found else {})


def baseline_of(task: str) -> EstimatorLike:
    """Return the model that looks at no column."""
    return ConstantRegressor() if task == "regression" else ConstantClassifier()


class ConstantRegressor(RegressorMixin, BaseEstimator):
    """Says the mean of the training rows."""

    def fit(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Find the mean."""
        self.mean_ = float(np.average(y, weights=sample_weight))
        return self

    def predict(self, X: TableLike) -> Floats:
        """Say it of every row."""
        return np.full(pick_table(X).n_rows, self.mean_)


class ConstantClassifier(ClassifierMixin, BaseEstimator):
    """Says the shares of the classes among the training rows."""

    def fit(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Count the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=sample_weight)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X: TableLike) -> Floats:
        """Say the shares of every row."""
        return np.tile(self.shares_, (pick_table(X).n_rows, 1))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Say the most frequent class of every row."""
        return np.full(pick_table(X).n_rows, self.classes_[self.shares_.argmax()])


Task = Literal["classification", "regression"]
TASKS = ("auto", *get_args(Task))
MOST_NUMERIC_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Target:
    """A target column, and what it asks for.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n_known,)
        Labels or numbers of the rows that have a value; whole numbers are integers.
    is_known : ndarray of shape (n_rows,)
        Which rows have a value.
    task : {"classification", "regression"}
    why : str
        The reason, as a sentence that names the override.
    """

    name: str
    values: NDArray[np.generic]
    is_known: NDArray[np.bool_]
    task: Task
    why: str


def read_task(task: str) -> Task | None:
    """Return the task that is asked for; None: the rule decides."""
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}. Got {task!r}.")
    return None if task == "auto" else cast(Task, task)


def read_target(y: ColumnLike, task: str = "auto", name: str = "y") -> Target:
    """Read a target and decide whether it is one of classification or regression.

    Parameters
    ----------
    y : array-like, or a pandas, polars or pyarrow column
        One value per row; None and NaN are missing.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": the rule above.
    name : str, default="y"
        What errors call it.

    Returns
    -------
    Target

    Raises
    ------
    ValueError
        If it has no values, a single one, dates or infinity, or values that `task` cannot be done with.
    """
    return decide_task(column_table(y, name), read_task(task), name)


def column_table(y: ColumnLike, name: str) -> RawTable:
    """Read a target as a table of one column; of several outputs the first."""
    if y is None:
        raise ValueError("A comparison requires y to be passed, but the target y is None.")
    if hasattr(y, "to_frame"):  # a frame tells categories from their values
        return read_table(y.to_frame(name))
    values = argument_array(y, name)
    return read_table({name: values[:, 0] if values.ndim == 2 else values})


def decide_task(raw: RawTable, asked: Task | None, name: str) -> Target:
    """Decide by a table of one column; `asked` overrides the rule, `name` is what errors call the column."""
    column = raw.column(0)
    if isinstance(column, SparseColumn):
        column = dense_column(column, raw.n_rows)
    is_known = ~missing_rows(column)
    if not is_known.any():
        raise ValueError(f"The target {name!r} has no values. Name another column as the target.")
    values, holds_labels = _known_values(column, is_known, name)
    distinct = np.unique(values)
    if len(distinct) == 1:
        shown = elide(one_line(str(distinct[0])), 40) if holds_labels else shortest(float(distinct[0]))
        raise ValueError(
            f"The target {name!r} is {shown} in all {len(values):,} rows: there is nothing to tell apart. Name another "
            "column as the target, or add rows that differ."
        )
    _check_asked(asked, holds_labels, values, name)
    is_whole = not holds_labels and values.dtype.kind in "iu"
    few = is_whole and len(distinct) <= MOST_NUMERIC_CLASSES and 2 * len(distinct) <= len(values)
    task = asked or ("classification" if holds_labels or few else "regression")
    what, other = "numbers, so values", "classification"
    if task == "classification":
        kind = "labels" if holds_labels else "whole numbers"
        what, other = f"{len(distinct)} different {kind}, so classes", "regression"
    override = f" (else task='{other}', --task {other})" if asked is None and is_whole else ""
    return Target(name, values, is_known, task, f"{name!r} holds {what} are predicted{override}.")


def _known_values(
    column: CodedColumn | NumberColumn, is_known: NDArray[np.bool_], name: str
) -> tuple[NDArray[np.generic], bool]:
    """Return the values of the rows that have one, and whether they are labels."""
    if isinstance(column, CodedColumn):
        plain = np.array(column.values)
        labels = plain if plain.dtype.kind in "iuf" else plain.astype(str)
        return labels[column.codes[is_known]], True
    if column.clock:
        raise ValueError(f"The target {name!r} holds dates. Predict a number or a class: name another column.")
    values = np.asarray(column.values)[is_known]
    if values.dtype == bool:
        return values, True
    if values.dtype.kind in "iu":
        return (values if values.dtype == np.uint64 else values.astype(np.int64)), False
    numbers = values.astype(np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"The target {name!r} holds infinity. Drop these rows, or write what is meant.")
    is_whole = (numbers == np.floor(numbers)).all() and np.abs(numbers).max() < 2**53
    return (numbers.astype(np.int64) if is_whole else numbers), False


def _check_asked(asked: Task | None, holds_labels: bool, values: NDArray[np.generic], name: str) -> None:
    if asked == "regression" and holds_labels:
        raise ValueError(
            f"task='regression' needs numbers, and the target {name!r} holds labels. Make it numbers, or leave the "
            "task (--task) out."
        )
    if asked == "classification" and values.dtype.kind == "f" and not holds_labels:
        raise ValueError(
            f"task='classification' needs labels or whole numbers, and the target {name!r} holds fractions. Use "
            "task='regression' (--task regression)."
        )
