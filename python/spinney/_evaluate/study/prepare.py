"""A caller's table, prepared: what to learn from, what to predict, and what was done with the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import read_table
from spinney._data.columns import CodedColumn, Column, NumberColumn, RawTable, is_instance_of, listed
from spinney._data.date_parts import DEFAULT_PARTS, date_parts, part_name
from spinney._data.display import plural
from spinney._data.select import PickTable, missing_rows, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._evaluate.problem import Array, Models, Problem, Rows, Target, column_table, decide_task, read_task
from spinney._evaluate.scoring import Scoring
from spinney._evaluate.study.columns import ColumnProfile, Columns, find_leaks, profile_columns, row_groups

FEWEST_ROWS = 20
_FEWEST_GROUPS = 4
_MOST_CLASSES = 1000
_MOST_NAMED = 8


@dataclass(frozen=True)
class StudyOptions:
    """What the caller wants of a study: the parameters of `study` beside table and target."""

    group: str | None = None
    time: str | None = None
    metric: Scoring = None
    task: str = "auto"
    minutes: float = 2.0
    peers: bool = False
    models: Models | None = None
    folds: int = 5
    repeats: int | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    random_state: int | np.random.RandomState | None = 0


@dataclass(frozen=True, eq=False)
class Prepared(Problem):
    """A table to study: the columns to learn from, the rows with a target, and where they come from.

    Attributes
    ----------
    target : str
    columns : list of ColumnProfile
        Of all columns but the target.
    notes : list of str
    """

    target: str = ""
    columns: list[ColumnProfile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_columns(self, places: Rows, why: str) -> Prepared:
        """Return some of the columns that are learned from; the others get a note."""
        names = self.table.names or [f"x{j}" for j in range(self.table.n_columns)]
        kept = {names[j] for j in places.tolist()}
        columns = [one if not one.is_used or one.name in kept else one.left_out(why) for one in self.columns]
        return replace(self, table=pick_table(self.table.take(columns=places)), columns=columns)


def prepare(table: TableLike, target: str | ColumnLike, options: StudyOptions, seed: int) -> Prepared:
    """Separate the target from a table and decide which columns to learn from.

    Parameters
    ----------
    table : frame, dict of columns or array
    target : str or array-like
        Name of the column to predict, or its values.
    options : StudyOptions
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
    asked, whole = read_task(options.task), _read_whole(table)
    if isinstance(target, str):
        _check_target(target, whole)
        name, column = target, read_table(_one_column(whole, target))
    else:
        name, column = _read_values(target, whole)
    _check_names(whole, name, options)
    found = decide_task(column, asked, name)
    y, codes, classes, notes = _read_classes(found)
    rows = np.flatnonzero(found.is_known)
    apart = {one for one in (name, options.group) if one is not None}
    if options.time is not None and not _is_date(_column(whole, options.time)):
        apart.add(options.time)
    places = np.array([j for j, one in enumerate(whole.names or []) if one not in apart], dtype=np.intp)
    X, with_parts = _with_parts(whole.take(None if found.is_known.all() else rows, places))
    columns = Columns.read(X)
    profiles = _judged(columns, y if codes is None else codes, codes is not None, options, seed)
    notes += with_parts
    notes += [f"Column {one.name!r} was left out. {one.note}" for one in profiles if one.note and not one.is_used]
    notes += [f"Column {one.name!r} is used as you say. {one.note}" for one in profiles if one.note and one.is_used]
    used = [j for j, one in enumerate(profiles) if one.is_used]
    if not used:
        raise ValueError(
            "No column is left to learn from: all others name rows, hold one value or tell the target alone. Keep some "
            "of them with keep (--keep)."
        )
    groups = time = None
    if options.group is not None:
        groups = _groups(_values_of(whole, options.group, rows), options.group)
    elif options.time is not None:
        time, order = _order(_values_of(whole, options.time, rows), options.time)
        notes += order
    else:
        groups, equal = _equal_rows([columns.values[j] for j in used])
        notes += equal
    used_table = pick_table(pick_table(X).take(columns=np.array(used, dtype=np.intp)))
    are_copies = groups is not None and options.group is None
    return Prepared(used_table, y, codes, classes, None, groups, time, are_copies, name, profiles, notes)


# ---- the target ------------------------------------------------------------------------------------------------------


def _read_whole(table: TableLike) -> PickTable:
    """Return a table with named columns."""
    if is_instance_of(table, "polars", "LazyFrame"):
        table = table.collect()  # type: ignore[attr-defined]
    try:
        whole = pick_table(table)
    except ValueError as error:
        if "while a minimum of 1 is required" not in str(error):
            raise
        raise ValueError("The table has no rows or no columns. Give it a line of names and some rows.") from None
    if is_instance_of(whole.native, "scipy.sparse", "sparray", "spmatrix"):
        raise TypeError("A study takes dense tables. Turn the sparse matrix into an array or a frame first.")
    if whole.names is not None:
        return whole
    return pick_table({f"x{j}": _column_array(whole, j) for j in range(whole.n_columns)})


def _check_target(target: str, table: PickTable) -> None:
    if table.names is None or target not in table.names:
        raise ValueError(f"The table has no column {target!r}. {nearest(target, table.names or [])}")
    if table.n_columns == 1:
        raise ValueError(
            f"The table has one column only, {target!r}. Give it at least one more to learn from; if there are "
            "more, another sign separates them: see delimiter (--delimiter)."
        )


def _read_values(target: ColumnLike, table: PickTable) -> tuple[str, RawTable]:
    """Return the name and the column of a target that is no column of the table."""
    name = str(getattr(target, "name", None) or "target")
    while name in (table.names or ()):
        name += "'"
    column = column_table(target, name)
    if column.n_rows != table.n_rows:
        raise ValueError(
            f"target has {column.n_rows} values and the table {table.n_rows} rows. Give one value per row."
        )
    return name, column


def _column_array(table: PickTable, j: int) -> Array:
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


def _check_names(whole: PickTable, target: str, options: StudyOptions) -> None:
    names = whole.names or []
    named = {"group": options.group, "time": options.time}
    asked = [(option, one) for option, one in named.items() if one is not None]
    asked += [("keep", one) for one in options.keep] + [("drop", one) for one in options.drop]
    for option, one in asked:
        if one == target:
            raise ValueError(f"{option} names {one!r}, which is the target. Name another column.")
        if one not in names:
            raise ValueError(f"{option}: the table has no column {one!r}. {nearest(one, names)}")
    if both := [one for one in options.keep if one in options.drop]:
        raise ValueError(f"{both[0]!r} cannot be kept and dropped at once. Say one of both.")
    if options.group is not None and options.time is not None:
        raise ValueError("group and time make folds of different kinds. Give one of both.")


def _read_classes(target: Target) -> tuple[Array, Rows | None, Array | None, list[str]]:
    """Return the target, codes and labels of classes where there are any, and notes on the target."""
    values, name, notes = target.values, target.name, list[str]()
    if n_without := int((~target.is_known).sum()):
        notes.append(f"{plural(n_without, 'row')} without a value of {name!r} were left out.")
    if len(values) < FEWEST_ROWS:
        raise ValueError(
            f"The table has {plural(len(values), 'row')} with a target, and a study needs at least {FEWEST_ROWS}: some "
            "to learn from, some to choose by, some to judge by. Add rows."
        )
    if target.task == "regression":
        return values.astype(np.float64), None, None, [*notes, target.why]
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) > min(_MOST_CLASSES, len(values) // 2):
        raise ValueError(
            f"The target {name!r} has {len(classes):,} different labels in {len(values):,} rows, too many to learn "
            "them. If it holds numbers as text, correct what is no number in it; else name another column."
        )
    why = target.why
    rare = [str(label) for label, n in zip(classes.tolist(), np.bincount(codes).tolist(), strict=True) if n < 5]
    if rare:
        why += f" {listed(rare)}: fewer than 5 rows each, which is hardly enough to learn or judge them."
    return values, codes.astype(np.intp), classes, [*notes, why]


# ---- the other columns -----------------------------------------------------------------------------------------------


def _one_column(whole: PickTable, name: str) -> Any:
    return whole.take(columns=np.array([(whole.names or []).index(name)]))


def _column(whole: PickTable, name: str) -> Column:
    return read_table(_one_column(whole, name)).column(0)


def _is_date(column: Column) -> bool:
    return isinstance(column, NumberColumn) and bool(column.clock)


def _values_of(whole: PickTable, name: str, rows: Rows) -> Array:
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


def _groups(labels: Array, name: str) -> Rows:
    """Return the number of the group of each row."""
    names, groups = np.unique(labels.astype(str), return_inverse=True)
    if len(names) < _FEWEST_GROUPS:
        raise ValueError(
            f"The column {name!r} has {len(names)} groups, and at least four are needed to hold "
            "some out. Leave group (--group) out, or name another column."
        )
    return groups.astype(np.intp)


def _order(moments: Array, name: str) -> tuple[Array, list[str]]:
    """Moments as numbers that rise with them, and a note where they are text."""
    if moments.dtype != object:
        return moments, []
    texts, order = np.unique(moments.astype(str), return_inverse=True)
    return order, [
        f"Column {name!r}, by which rows are ordered in time, holds text: {str(texts[0])!r} comes first, and "
        f"{str(texts[-1])!r} last. If that is not their order, write dates as 2024-05-31, or numbers."
    ]


def _with_parts(X: Any) -> tuple[Any, list[str]]:
    """Add parts of dates, where there are dates."""
    table = read_table(X)
    dates = [
        name
        for j, name in enumerate(table.names or [])
        if _is_date(table.column(j)) and not any(part_name(name, part) in (table.names or []) for part in DEFAULT_PARTS)
    ]
    if not dates:
        return X, []
    return date_parts(X, dates), [f"Dates were also taken apart into year, month, weekday and hour: {listed(dates)}."]


def columns_to_learn_from(table: TableLike, names: Sequence[str]) -> Any:
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
    columns: Columns, target: NDArray[np.generic], has_classes: bool, options: StudyOptions, seed: int
) -> list[ColumnProfile]:
    """Profile the columns, and decide which to learn from."""
    found = profile_columns(columns)
    for j, one in enumerate(found):
        if one.name in options.drop:
            found[j] = one.left_out("You asked for that.")
        elif one.name in options.keep and not one.is_used:
            found[j] = replace(one, is_used=True)
        elif one.is_identifier:
            found[j] = replace(one, note=f"{one.note} To learn from it: keep=[{one.name!r}] (--keep).")
    left = [j for j, one in enumerate(found) if one.is_used and not one.is_identifier]
    is_category = [columns.features[j].kind == "category" for j in left]
    for k, share in find_leaks([columns.values[j] for j in left], is_category, target, has_classes, seed).items():
        j = left[k]
        what = "errors that always naming the most frequent class makes" if has_classes else "variance"
        note = f"Alone it takes away {share:.1%} of the {what}"
        if found[j].name in options.keep:
            found[j] = replace(found[j], is_leak=True, note=f"{note}: is it known before the target is?")
            continue
        note += (
            f", which is too good for a column that is known before the target is. If it is known by then: "
            f"keep=[{found[j].name!r}] (--keep)."
        )
        found[j] = found[j].left_out(note, is_leak=True)
    return found


def _equal_rows(columns: list[Floats]) -> tuple[Rows | None, list[str]]:
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
