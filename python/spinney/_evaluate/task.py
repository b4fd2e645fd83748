"""Classification or regression: the one rule that `study`, `compare`, ``spinney fit`` and ``spinney bench`` go by.

Strings, booleans and categories are labels: classification. Numbers are classification where they are whole (1.0 is
as whole as 1), have at most ten different values, and each value occurs twice on average; else regression. Dates are
neither. ``task="classification"`` or ``task="regression"`` overrides the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from spinney._data import read_table
from spinney._data.arguments import given_array
from spinney._data.columns import CodedColumn, NumberColumn, RawTable, SparseColumn, dense_column
from spinney._data.display import elide, one_line, shortest
from spinney._data.select import missing_rows
from spinney._data.types import ColumnLike

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
    values = given_array(y, name)
    return read_table({name: values[:, 0] if values.ndim == 2 else values})


def decide_task(raw: RawTable, asked: Task | None, name: str) -> Target:
    """Decide by a table of one column; `asked` overrides the rule, `name` is what errors call the column."""
    column = raw.column(0)
    if isinstance(column, SparseColumn):
        column = dense_column(column, raw.n_rows)
    is_known = ~missing_rows(column)
    if not is_known.any():
        raise ValueError(f"The target {name!r} has no values at all. Name another column as the target.")
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
