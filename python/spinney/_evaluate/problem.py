"""What is evaluated: the rows of a table with their target, and the models, as callers give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier, is_regressor

from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import estimator_of_word, read_members
from spinney._estimator.held_out import read_row_groups, read_time
from spinney._estimator.target import read_one_class, read_one_value, read_weights
from spinney._evaluate.task import Task

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
