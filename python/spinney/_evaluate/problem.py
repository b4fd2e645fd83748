"""The inputs of an evaluation: a table with its target and task, and the models.

Classification or regression is decided by one rule, which `study`, `compare`, ``spinney fit`` and ``spinney bench``
use. Strings, booleans and categories are labels: classification. Integers (1.0 is one too) with at most ten distinct
values, each of which occurs at least twice on average, are classes; other numbers make a regression. Dates are not
supported.
``task="classification"`` or ``task="regression"`` overrides the rule.
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
from spinney._data.display import elide, one_line, shortest, with_article
from spinney._data.select import PickTable, missing_rows, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import estimator_of_name, read_members
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
        """Fit the estimator to a table and a target."""

    @property
    def predict(self) -> Any:  # Pipeline and the searches of scikit-learn have a descriptor that is no callable
        """Predict rows of a table."""

    @property
    def get_params(self) -> Callable[..., dict[str, Any]]:
        """Return the parameters by name."""

    @property
    def set_params(self) -> Callable[..., Any]:
        """Set parameters by name."""


Models = Mapping[str, EstimatorLike | str] | list[Any] | EstimatorLike | str  # argument of callers


@dataclass(frozen=True, eq=False)
class Problem:
    """A table with its target, weights, groups and times.

    Attributes
    ----------
    table : PickTable
    y : ndarray of shape (n_rows,)
        Labels or numbers.
    codes, classes : ndarray or None
        Codes and labels of classes; None for regression.
    weight : ndarray of shape (n_rows,), or None
    groups, time : ndarray of shape (n_rows,), or None
        Group of each row, and its time.
    groups_are_copies : bool
        Whether groups are duplicate rows: many groups, most of one row.
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
        """The table in the caller's type."""
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
    """Return a checked problem of a known task."""
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
    """Return the models by name: estimators, or values of ``--model``."""
    return dict(read_members([models] if isinstance(models, (str, EstimatorLike)) else models, "models"))


def task_of_models(models: dict[str, EstimatorLike | str]) -> Task | None:
    """Return the task of the first estimator among the models; None without estimators."""
    for model in models.values():
        if not isinstance(model, str) and (is_classifier(model) or is_regressor(model)):
            return "classification" if is_classifier(model) else "regression"
    return None


def estimators_of(models: dict[str, EstimatorLike | str], task: Task, baseline: bool) -> dict[str, EstimatorLike]:
    """Return the models as estimators, and the baseline."""
    kind, is_right = ("Classifier", is_classifier) if task == "classification" else ("Regressor", is_regressor)
    estimators: dict[str, EstimatorLike] = {}
    for name, one in models.items():
        estimators[name] = estimator = estimator_of_name(one, kind) if isinstance(one, str) else one
        if not is_right(estimator):
            raise ValueError(
                f"The model {name!r} is {with_article(type(estimator).__name__)}, which is not a "
                f"{kind.lower()} like the others."
            )
    return estimators | ({BASELINE: baseline_of(task)} if baseline and BASELINE not in estimators else {})


def baseline_of(task: str) -> EstimatorLike:
    """Return the baseline, which ignores the columns."""
    return ConstantRegressor() if task == "regression" else ConstantClassifier()


class ConstantRegressor(RegressorMixin, BaseEstimator):
    """Predicts the mean of the training target."""

    def fit(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Compute the mean."""
        self.mean_ = float(np.average(y, weights=sample_weight))
        return self

    def predict(self, X: TableLike) -> Floats:
        """Return the mean for every row."""
        return np.full(pick_table(X).n_rows, self.mean_)


class ConstantClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the class frequencies of the training target."""

    def fit(self, X: TableLike, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Compute the class frequencies."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=sample_weight)
        self.frequencies_ = counts / counts.sum()
        return self

    def predict_proba(self, X: TableLike) -> Floats:
        """Return the class frequencies for every row."""
        return np.tile(self.frequencies_, (pick_table(X).n_rows, 1))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return the most frequent class for every row."""
        return np.full(pick_table(X).n_rows, self.classes_[self.frequencies_.argmax()])


Task = Literal["classification", "regression"]
TASKS = ("auto", *get_args(Task))
MOST_NUMERIC_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Target:
    """A target column and its task.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n_known,)
        Labels or numbers of the rows with a value; whole numbers are integers.
    is_known : ndarray of shape (n_rows,)
        Which rows have a value.
    task : {"classification", "regression"}
    why : str
        The reason, as a sentence that names the option to override it.
    """

    name: str
    values: NDArray[np.generic]
    is_known: NDArray[np.bool_]
    task: Task
    why: str


def read_task(task: str) -> Task | None:
    """Return the requested task; None: decided by the rule."""
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}. Got {task!r}.")
    return None if task == "auto" else cast(Task, task)


def read_target(y: ColumnLike, task: str = "auto", name: str = "y") -> Target:
    """Read a target and decide between classification and regression.

    Parameters
    ----------
    y : array-like, or a pandas, polars or pyarrow column
        One value per row; None and NaN are missing.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": the rule above.
    name : str, default="y"
        Name of the target in errors.

    Returns
    -------
    Target

    Raises
    ------
    ValueError
        If it has no values, a single one, dates or infinity, or values that do not suit `task`.
    """
    return decide_task(column_table(y, name), read_task(task), name)


def column_table(y: ColumnLike, name: str) -> RawTable:
    """Read a target as a table of one column; of several outputs the first."""
    if y is None:
        raise ValueError("A comparison requires y to be passed, but the target y is None.")
    if hasattr(y, "to_frame"):  # a frame preserves categories
        return read_table(y.to_frame(name))
    values = argument_array(y, name)
    return read_table({name: values[:, 0] if values.ndim == 2 else values})


def decide_task(raw: RawTable, requested: Task | None, name: str) -> Target:
    """Decide the task of a table of one column; `requested` overrides the rule, `name` appears in errors."""
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
            f"The target {name!r} is {shown} in all {len(values):,} rows, so there is nothing to predict. Name another "
            "column as the target, or add rows with other values."
        )
    _check_requested(requested, holds_labels, values, name)
    is_whole = not holds_labels and values.dtype.kind in "iu"
    few = is_whole and len(distinct) <= MOST_NUMERIC_CLASSES and 2 * len(distinct) <= len(values)
    task = requested or ("classification" if holds_labels or few else "regression")
    what, other = "numbers", "classification"
    if task == "classification":
        kind = "labels" if holds_labels else "integers"
        what, other = f"{len(distinct)} distinct {kind}", "regression"
    override = f" To change it: task='{other}' (--task {other})." if requested is None and is_whole else ""
    return Target(name, values, is_known, task, f"{name!r} holds {what}, so the task is {task}.{override}")


def _known_values(
    column: CodedColumn | NumberColumn, is_known: NDArray[np.bool_], name: str
) -> tuple[NDArray[np.generic], bool]:
    """Return the values that are not missing, and whether they are labels."""
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
        raise ValueError(f"The target {name!r} holds infinity. Drop these rows, or replace the values.")
    is_whole = (numbers == np.floor(numbers)).all() and np.abs(numbers).max() < 2**53
    return (numbers.astype(np.int64) if is_whole else numbers), False


def _check_requested(requested: Task | None, holds_labels: bool, values: NDArray[np.generic], name: str) -> None:
    if requested == "regression" and holds_labels:
        raise ValueError(
            f"task='regression' needs numbers, but the target {name!r} holds labels. Convert it to numbers, or leave "
            "task (--task) out."
        )
    if requested == "classification" and values.dtype.kind == "f" and not holds_labels:
        raise ValueError(
            f"task='classification' needs labels or integers, but the target {name!r} holds fractions. Use "
            "task='regression' (--task regression)."
        )
