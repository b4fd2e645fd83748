"""The table of ``spinney fit`` and ``spinney compare``: what to learn from, what to predict, and by which task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.types import Floats
from spinney._evaluate.problem import Array
from spinney._evaluate.task import read_target
from spinney.cli.failures import fail, failures_in_words
from spinney.cli.source import Source
from spinney.cli.tables import number_column, read_whole

if TYPE_CHECKING:
    import polars as pl

_NUMBERS_OF = {"ranking": "--model ranker needs grades", "survival": "--model survival needs times"}


@dataclass(frozen=True, eq=False)
class FitTable:
    """A table, separated.

    Attributes
    ----------
    X : polars.DataFrame or LargeTable
        Columns to learn from.
    y : ndarray of shape (n_rows,)
        Labels, numbers or times; times without an event are negative.
    task : {"classification", "regression", "ranking", "survival"}
    why : str
        The reason for the task.
    columns : list of str
    n_without_target : int
        Rows that were left out.
    weight, offset, groups, time : ndarray of shape (n_rows,), or None
    """

    X: Any
    y: Array
    task: str
    why: str
    columns: list[str]
    n_without_target: int
    weight: Floats | None = None
    offset: Floats | None = None
    groups: Array | None = None
    time: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows with a target."""
        return len(self.y)

    @property
    def fit_params(self) -> dict[str, Array]:
        """Further arguments of `fit`."""
        lists = self.groups if self.task == "ranking" else None
        return {name: one for name, one in {"offset": self.offset, "groups": lists}.items() if one is not None}


def read_fit_table(source: Source) -> FitTable:
    """Read a table and separate the target and what else is not learned from."""
    frame = read_whole(source.path, source.delimiter, source.encoding)
    columns = source.columns(frame.columns)
    task, why, is_known = decide(frame[source.target], source.task)
    rows = frame.filter(is_known)
    X = _with_date_parts(rows.select(columns), source)
    weight, offset = (
        None if name is None else number_column(rows[name], f"--{option}")
        for option, name in (("weight", source.weight), ("offset", source.offset))
    )
    groups, time = (None if name is None else rows[name].to_numpy() for name in (source.group, source.time))
    y = labels_of(rows[source.target])
    if source.event is not None:
        y = np.where(_events(rows[source.event]), y, -y.astype(float))
    n_without = frame.height - rows.height
    return FitTable(X, y, task, why, X.columns, n_without, weight, offset, groups, time)


def decide(target: pl.Series, asked: str) -> tuple[str, str, Array]:
    """Return the task of a target, why, and which rows have a value."""
    is_special = asked in _NUMBERS_OF
    if is_special and not target.dtype.is_numeric():
        raise fail(f"{_NUMBERS_OF[asked]}, but the target '{target.name}' holds {target.dtype} values.")
    with failures_in_words():
        found = read_target(target, "regression" if is_special else asked, target.name)
    return (asked if is_special else found.task), ("as asked" if asked != "auto" else found.why), found.is_known


def labels_of(target: pl.Series) -> Array:
    """Return a target without missing values as an array."""
    import polars as pl

    if isinstance(target.dtype, pl.Categorical | pl.Enum):
        target = target.cast(pl.String)
    values: Array = target.to_numpy()
    return values.astype(float) if target.dtype == pl.Decimal else values


def _events(column: pl.Series) -> Array:
    """Return which rows have had their event, of a column of 0 and 1 or of true and false."""
    values = column.to_numpy()
    if column.null_count() or not set(np.unique(values).tolist()) <= {0, 1}:
        raise fail(f"--event: '{column.name}' must hold 1 (or true) where the event has happened, and 0 where not yet.")
    return np.asarray(values, dtype=bool)


def _with_date_parts(X: pl.DataFrame, source: Source) -> Any:
    from spinney._data.date_parts import PARTS, date_parts

    if not source.date_parts:
        return X
    if strange := [part for part in source.date_parts if part not in PARTS]:
        raise fail(f"--date-parts: dates have no part '{strange[0]}'. They have {', '.join(PARTS)}.")
    if not any(dtype.is_temporal() for dtype in X.dtypes):
        raise fail(
            f"--date-parts: '{source.path}' has no column of dates. Write them as in 2024-05-31, or leave it out."
        )
    with failures_in_words():
        return date_parts(X, parts=source.date_parts)
