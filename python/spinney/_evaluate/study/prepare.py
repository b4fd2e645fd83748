"""A caller's table, taken apart: what to learn from, what to learn, and what was done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import read_table
from spinney._data.column_names import listed
from spinney._data.columns import CodedColumn, NumberColumn, comes_from, dense_column
from spinney._data.date_parts import USUAL, date_parts, part_name
from spinney._data.display.digits import elide, one_line, plural, shortest
from spinney._data.replace import missing_rows
from spinney._data.select import PickTable, pick_table
from spinney._evaluate.study.leaks import find_leaks
from spinney._evaluate.study.profile import ColumnProfile, Columns, profile_columns, row_groups

MOST_INTEGER_CLASSES = 10
FEWEST_ROWS = 20
_MOST_CLASSES = 1000
Target = tuple[str, NDArray[Any], NDArray[np.intp] | None, NDArray[Any] | None, str]
_TASKS = ("auto", "classification", "regression")
_MOST_NAMED = 8


@dataclass(frozen=True)
class Wishes:
    """What the caller says of the columns.

    Attributes
    ----------
    group, time : str or None
        Columns: rows of one group stay together; rows to judge by come later.
    keep, drop : tuple of str
        Columns to learn from, or not, whatever they look like.
    task : {"auto", "classification", "regression"}
    """

    group: str | None = None
    time: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    task: str = "auto"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table to study.

    Attributes
    ----------
    X : table
        Columns to learn from, rows with a target.
    y : ndarray of shape (n_rows,)
        Labels or values.
    codes, classes : ndarray or None
        Codes and labels of classes.
    task : {"binary", "multiclass", "regression"}
    target : str
    columns : list of ColumnProfile
        Of all columns but the target.
    groups, time : ndarray of shape (n_rows,), or None
        Labels of rows that stay together; order of rows in time.
    are_duplicates : bool
        Whether groups are rows that are equal, rather than those of a column.
    notes : list of str
    """

    X: Any
    y: NDArray[Any]
    codes: NDArray[np.intp] | None
    classes: NDArray[Any] | None
    task: str
    target: str
    columns: list[ColumnProfile]
    groups: NDArray[np.intp] | None
    time: NDArray[Any] | None
    are_duplicates: bool
    notes: list[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def take(self, rows: NDArray[np.intp]) -> Prepared:
        """Return some of the rows."""

        def of(values: Any) -> Any:
            return None if values is None else values[rows]

        X = pick_table(self.X).take(rows)
        return replace(self, X=X, y=self.y[rows], codes=of(self.codes), groups=of(self.groups), time=of(self.time))

    def with_columns(self, places: NDArray[np.intp], why: str) -> Prepared:
        """Return some of the columns that are learned from; the others get a note."""
        X = pick_table(self.X)
        names = X.names or [f"x{j}" for j in range(X.n_columns)]
        kept = {names[j] for j in places.tolist()}
        columns = [one if not one.is_used or one.name in kept else one.left_out(why) for one in self.columns]
        return replace(self, X=X.take(columns=places), columns=columns)


def prepare(table: Any, target: Any, wishes: Wishes, seed: int) -> Prepared:
    """Take a table apart and decide what to learn from.

    Parameters
    ----------
    table : frame, dict of columns or array
    target : str or array-like
        Name of the column to predict, or its values.
    wishes : Wishes
    seed : int
        Of the rows by which leaks are looked for.

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        If there is nothing to learn, with what to do.
    """
    if wishes.task not in _TASKS:
        raise ValueError(f"task must be one of {', '.join(_TASKS)}. Got {wishes.task!r}.")
    whole, name = _with_target(table, target)
    _check_names(whole, name, wishes)
    labels, known, is_number = read_target(whole, name)
    notes = []
    n_without = int((~known).sum())
    if n_without == whole.n_rows:
        raise ValueError(f"The target {name!r} has no values at all. Name another column as the target.")
    if n_without:
        notes.append(f"{plural(n_without, 'row')} without a value of {name!r} were left out.")
    rows = np.flatnonzero(known)
    task, y, codes, classes, why = _read_task(labels[rows], name, is_number, wishes.task)
    notes.append(why)
    asked = [one for one in (wishes.group, wishes.time) if one is not None]
    apart = {name, *([] if wishes.group is None else [wishes.group])}
    beside = {one: _beside(whole, one, rows) for one in asked}
    if wishes.time is not None and not _is_date(whole, wishes.time):
        apart.add(wishes.time)
    X = whole.take(None if not n_without else rows, _places(whole, apart))
    X, with_parts = _with_parts(X)
    notes += with_parts
    columns = Columns.read(X)
    profiles = _judged(columns, y if codes is None else codes, codes is not None, wishes, seed)
    notes += [f"Column {one.name!r} was left out. {one.note}" for one in profiles if one.note and not one.is_used]
    notes += [f"Column {one.name!r} is used as you say. {one.note}" for one in profiles if one.note and one.is_used]
    used = [j for j, one in enumerate(profiles) if one.is_used]
    if not used:
        raise ValueError(
            "No column is left to learn from: all others name rows, hold one value or tell the target alone. Keep some "
            "of them with keep (--keep)."
        )
    table_used = pick_table(X).take(columns=np.array(used, dtype=np.intp))
    groups, are_duplicates = None, False
    if wishes.group is not None:
        groups = np.unique(beside[wishes.group].astype(str), return_inverse=True)[1].astype(np.intp)
        if groups.max() < 3:
            raise ValueError(
                f"The column {wishes.group!r} has {int(groups.max()) + 1} groups, and at least four are needed to hold "
                "some out. Leave group (--group) out, or name another column."
            )
    elif wishes.time is None:
        groups, said = _duplicates([columns.values[j] for j in used])
        are_duplicates = groups is not None
        notes += said
    time = None if wishes.time is None else _order(beside[wishes.time])
    if wishes.time is not None and (moments := beside[wishes.time]).dtype == object:
        ends = sorted({str(moment) for moment in moments.tolist()})
        notes.append(
            f"Column {wishes.time!r}, by which rows are ordered in time, holds text: {ends[0]!r} comes first, and "
            f"{ends[-1]!r} last. If that is not their order, write dates as 2024-05-31, or numbers."
        )
    return Prepared(table_used, y, codes, classes, task, name, profiles, groups, time, are_duplicates, notes)


# ---- the target ------------------------------------------------------------------------------------------------------


def _with_target(table: Any, target: Any) -> tuple[PickTable, str]:
    """Return the table with the target as one of its columns, and its name."""
    if hasattr(table, "collect") and type(table).__module__.startswith("polars"):
        table = table.collect()
    try:
        whole = pick_table(table)
    except ValueError as error:
        if "while a minimum of 1 is required" not in str(error):
            raise
        raise ValueError("The table has no rows or no columns. Give it a line of names and some rows.") from None
    if comes_from(whole.native, "scipy.sparse", "sparray", "spmatrix"):
        raise TypeError("A study takes dense tables. Turn the sparse matrix into an array or a frame first.")
    if isinstance(target, str):
        if whole.names is None:
            raise ValueError("The table has no column names. Pass a data frame, or the values of the target.")
        if target not in whole.names:
            raise ValueError(f"The table has no column {target!r}. {nearest(target, whole.names)}")
        if whole.n_columns == 1:
            raise ValueError(
                f"The table has one column only, {target!r}. Give it at least one more to learn from; if there are "
                "more, another sign separates them: see delimiter (--delimiter)."
            )
        return whole, target
    values = target.to_numpy() if hasattr(target, "to_numpy") else np.asarray(target)
    if values.ndim != 1 or len(values) != whole.n_rows:
        raise ValueError(f"target has shape {values.shape} and the table {whole.n_rows} rows. Give one value per row.")
    names = whole.names or [f"x{j}" for j in range(whole.n_columns)]
    name = str(getattr(target, "name", None) or "target")
    while name in names:
        name += "'"
    return pick_table(_beside_target(whole, names, name, values)), name


def _beside_target(whole: PickTable, names: list[str], name: str, values: NDArray[Any]) -> Any:
    """Return the table with the target as its last column: a frame of the same kind, or a dict of columns."""
    native = whole.native
    if whole.names is not None and comes_from(native, "pandas", "DataFrame"):
        return native.assign(**{name: values})
    if comes_from(native, "polars", "DataFrame"):
        import polars as pl

        return native.with_columns(pl.Series(name, values))
    if comes_from(native, "pyarrow", "Table"):
        import pyarrow as pa

        return native.append_column(name, pa.array(values))
    return {one: _column_array(whole, j) for j, one in enumerate(names)} | {name: values}


def _column_array(table: PickTable, j: int) -> NDArray[Any]:
    column = table.take(columns=np.array([j]))
    if isinstance(column, dict):
        return np.asarray(next(iter(column.values())))
    if isinstance(column, np.ndarray):
        return column[:, 0]
    return np.asarray(column.iloc[:, 0].to_numpy())  # a frame whose names are no text


def nearest(name: str, known: Sequence[str]) -> str:
    """Suggest the nearest name, or list those there are."""
    by_lower_case = {other.lower(): other for other in reversed(known)}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    if close:
        return f"Did you mean {by_lower_case[close[0]]!r}?"
    more = ", …" if len(known) > _MOST_NAMED else ""
    return f"It has: {', '.join(known[:_MOST_NAMED])}{more}."


def _check_names(whole: PickTable, target: str, wishes: Wishes) -> None:
    names = whole.names or []
    named = {"group": wishes.group, "time": wishes.time}
    asked = [(option, one) for option, one in named.items() if one is not None]
    asked += [("keep", one) for one in wishes.keep] + [("drop", one) for one in wishes.drop]
    for option, one in asked:
        if one == target:
            raise ValueError(f"{option} names {one!r}, which is the target. Name another column.")
        if one not in names:
            raise ValueError(f"{option}: the table has no column {one!r}. {nearest(one, names)}")
    if both := [one for one in wishes.keep if one in wishes.drop]:
        raise ValueError(f"{both[0]!r} cannot be kept and dropped at once. Say one of both.")
    if wishes.group is not None and wishes.time is not None:
        raise ValueError("group and time make folds of different kinds. Give one of both.")


def read_target(whole: PickTable, name: str) -> tuple[NDArray[Any], NDArray[np.bool_], bool]:
    """Return the values of the target, which rows have one, and whether they are numbers."""
    raw = read_table(whole.take(columns=np.array([(whole.names or []).index(name)])))
    column = raw.column(0)
    if not isinstance(column, (NumberColumn, CodedColumn)):
        column = dense_column(column, raw.n_rows)
    known = ~missing_rows(column)
    if isinstance(column, CodedColumn):
        values = np.array([*column.values, None], dtype=object)[column.codes]
        is_number = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in column.values)
        return values, known, is_number and len(column.values) > 0
    if column.clock:
        raise ValueError(f"The target {name!r} holds dates. Predict a number or a class: name another column.")
    values = np.asarray(column.values)
    if values.dtype == bool:
        return values, known, False
    if np.isinf(values[known]).any():
        raise ValueError(f"The target {name!r} holds infinity. Drop these rows, or write what is meant.")
    return values, known, True


def _read_task(labels: NDArray[Any], name: str, is_number: bool, asked: str) -> Target:
    """Decide what the target asks for; return task, target, codes and labels of classes, and why."""
    if len(labels) < FEWEST_ROWS:
        raise ValueError(
            f"The table has {plural(len(labels), 'row')} with a target, and a study needs at least {FEWEST_ROWS}: some "
            "to learn from, some to choose by, some to judge by. Add rows."
        )
    if is_number:
        labels = labels.astype(np.float64)
        if (labels == np.floor(labels)).all() and np.abs(labels).max() < 2**53:
            labels = labels.astype(np.int64)
    elif labels.dtype == object:
        labels = labels.astype(str)
    distinct = np.unique(labels)
    if len(distinct) == 1:
        shown = shortest(float(distinct[0])) if is_number else elide(one_line(str(distinct[0])), 40)
        raise ValueError(
            f"The target {name!r} is {shown} in all {len(labels):,} rows: there is nothing to tell apart. Name another "
            "column as the target, or add rows that differ."
        )
    few = len(distinct) <= MOST_INTEGER_CLASSES and 2 * len(distinct) <= len(labels)
    if asked == "regression" and not is_number:
        raise ValueError(
            f"task is 'regression', and the target {name!r} holds labels. Make it numbers, or leave it out."
        )
    if asked == "classification" or (asked == "auto" and (not is_number or (labels.dtype.kind == "i" and few))):
        return _classes(labels, distinct, name, is_number, asked)
    why = f"{name!r} holds numbers, so values are predicted (else task='classification', --task classification)."
    return "regression", labels.astype(np.float64), None, None, why


def _classes(labels: NDArray[Any], distinct: NDArray[Any], name: str, is_number: bool, asked: str) -> Target:
    if len(distinct) > min(_MOST_CLASSES, len(labels) // 2):
        raise ValueError(
            f"The target {name!r} has {len(distinct):,} different labels in {len(labels):,} rows, too many to learn "
            "them. If it holds numbers as text, correct what is no number in it; else name another column."
        )
    codes = np.searchsorted(distinct, labels).astype(np.intp)
    why = f"{name!r} holds {len(distinct)} different labels, so classes are predicted."
    if is_number:
        why = f"{name!r} holds {len(distinct)} different whole numbers, so classes are predicted"
        why += "." if asked != "auto" else " (else task='regression', --task regression)."
    rare = [str(label) for label, n in zip(distinct.tolist(), np.bincount(codes).tolist(), strict=True) if n < 5]
    if rare:
        why += f" {listed(rare)}: fewer than 5 rows each, which is hardly enough to learn or judge them."
    return ("binary" if len(distinct) == 2 else "multiclass"), labels, codes, distinct, why


# ---- the other columns -----------------------------------------------------------------------------------------------


def _places(whole: PickTable, without: set[str]) -> NDArray[np.intp]:
    return np.array([j for j, name in enumerate(whole.names or []) if name not in without], dtype=np.intp)


def _column(whole: PickTable, name: str) -> Any:
    return read_table(whole.take(columns=np.array([(whole.names or []).index(name)]))).column(0)


def _is_date(whole: PickTable, name: str) -> bool:
    column = _column(whole, name)
    return isinstance(column, NumberColumn) and bool(column.clock)


def _beside(whole: PickTable, name: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Values of a column that is not learned from, which must all be there."""
    column = _column(whole, name)
    absent = missing_rows(column)[rows]
    if absent.any():
        raise ValueError(
            f"The column {name!r} lacks a value in {plural(int(absent.sum()), 'row')}, the first in row "
            f"{int(rows[absent.argmax()]) + 1}. Fill them or drop these rows."
        )
    if isinstance(column, CodedColumn):
        return np.array(list(column.values), dtype=object)[column.codes[rows]]
    return np.asarray(column.values)[rows]


def _order(moments: NDArray[Any]) -> NDArray[Any]:
    """Moments as numbers that rise with them."""
    if moments.dtype == object:
        return np.unique(moments.astype(str), return_inverse=True)[1]
    return moments


def _with_parts(X: Any) -> tuple[Any, list[str]]:
    """Add parts of dates, where there are dates."""
    table = read_table(X)
    dates = [
        name
        for j, name in enumerate(table.names or [])
        if isinstance(column := table.column(j), NumberColumn)
        and column.clock
        and not any(part_name(name, part) in (table.names or []) for part in USUAL)
    ]
    if not dates:
        return X, []
    return date_parts(X, dates), [f"Dates were also taken apart into year, month, weekday and hour: {listed(dates)}."]


def columns_to_learn_from(table: Any, names: Sequence[str]) -> Any:
    """Pick the columns of a study out of another table, with parts of its dates."""
    whole = pick_table(table)
    if whole.names is None:
        return table
    if any(name not in whole.names for name in names):
        whole = pick_table(_with_parts(whole.native)[0])
    places = {name: j for j, name in enumerate(whole.names or [])}
    absent = [name for name in names if name not in places]
    if absent:
        raise ValueError(f"The table has no column {absent[0]!r}. {nearest(absent[0], list(places))}")
    return whole.take(columns=np.array([places[name] for name in names], dtype=np.intp))


def _judged(
    columns: Columns, target: NDArray[Any], has_classes: bool, wishes: Wishes, seed: int
) -> list[ColumnProfile]:
    """Profile the columns, and decide which to learn from."""
    found = profile_columns(columns)
    for j, one in enumerate(found):
        if one.name in wishes.drop:
            found[j] = one.left_out("You asked for that.")
        elif one.name in wishes.keep and not one.is_used:
            found[j] = replace(one, is_used=True)
        elif one.is_identifier:
            found[j] = replace(one, note=f"{one.note} To learn from it: keep=[{one.name!r}] (--keep).")
    left = [j for j, one in enumerate(found) if one.is_used and not one.is_identifier]
    is_category = [columns.features[j].kind == "category" for j in left]
    for leak in find_leaks([columns.values[j] for j in left], is_category, target, has_classes, seed):
        j = left[leak.column]
        what = "errors that always naming the most frequent class makes" if has_classes else "variance"
        note = f"Alone it takes away {leak.share:.1%} of the {what}"
        if found[j].name in wishes.keep:
            found[j] = replace(found[j], is_leak=True, note=f"{note}: is it known before the target is?")
            continue
        note += (
            f", which is too good for a column that is known before the target is. If it is known by then: "
            f"keep=[{found[j].name!r}] (--keep)."
        )
        found[j] = found[j].left_out(note, is_leak=True)
    return found


def _duplicates(columns: list[NDArray[np.float64]]) -> tuple[NDArray[np.intp] | None, list[str]]:
    """Find equal rows, if there are any, unless columns have so few values that most rows have an equal."""
    groups = row_groups(columns)
    n_rows, n_distinct = len(groups), int(groups.max()) + 1
    if n_distinct == n_rows:
        return None, []
    n_repeated = n_rows - n_distinct
    if 2 * n_distinct < n_rows:
        return None, [
            f"{n_repeated:,} of {n_rows:,} rows are equal to another: the columns have few values. They were not kept "
            "together."
        ]
    return groups, [
        f"{plural(n_repeated, 'row')} equal to another: equal rows were kept together, so that none is judged by what "
        "was learned from its double."
    ]
