"""Preparation of a table for a study: features, target, and notes on the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from spinney._data import read_table
from spinney._data.columns import CodedColumn, Column, NumberColumn, RawTable, is_instance_of, listed
from spinney._data.date_parts import DEFAULT_PARTS, date_parts, part_name
from spinney._data.display import nearest_name, plural
from spinney._data.select import PickTable, missing_rows, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._evaluate.folds import split_test
from spinney._evaluate.problem import Array, Models, Problem, Rows, Target, column_table, decide_task, read_task
from spinney._evaluate.scoring import Scoring
from spinney._evaluate.study.columns import ColumnProfile, Columns, find_leaks, profile_columns, row_groups
from spinney._evaluate.study.rows import RowNames

Preference = Literal["simplest", "best"]  # of the model that is kept
SIMPLEST: Preference = "simplest"
BEST: Preference = "best"
FEWEST_ROWS = 20
_FEWEST_GROUPS = 4
_MOST_CLASSES = 1000


@dataclass(frozen=True)
class StudyOptions:
    """The options of `study`, without table and target."""

    groups: str | None = None
    time: str | None = None
    id: str | None = None
    scoring: Scoring = None
    positive: object = None
    task: str = "auto"
    minutes: float = 2.0
    peers: bool = False
    models: Models | None = None
    cv: int | BaseCrossValidator = 5
    repeats: int | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    prefer: Preference = SIMPLEST
    random_state: int | np.random.RandomState | None = 0


@dataclass(frozen=True, eq=False)
class Prepared(Problem):
    """A prepared table: its features and the rows with a target.

    Attributes
    ----------
    target : str
    columns : list of ColumnProfile
        Profiles of all columns but the target.
    notes : list of str
    is_test : ndarray of bool of shape (n_rows,)
        Rows of the test set, which no decision on columns or models has seen.
    row_names : RowNames
    """

    target: str = ""
    columns: list[ColumnProfile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_test: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    row_names: RowNames = field(default_factory=lambda: RowNames(np.empty(0), ""))

    def take(self, rows: Rows) -> Prepared:
        """Return some of the rows."""
        return replace(super().take(rows), is_test=self.is_test[rows], row_names=self.row_names.take(rows))

    def with_columns(self, chosen: Rows, why: str) -> Prepared:
        """Return the table with some of its features; the others get a note."""
        names = self.table.names or [f"x{j}" for j in range(self.table.n_columns)]
        retained = {names[j] for j in chosen.tolist()}
        columns = [one if not one.is_used or one.name in retained else one.excluded(why) for one in self.columns]
        return replace(self, table=pick_table(self.table.take(columns=chosen)), columns=columns)


def prepare(
    table: TableLike,
    target: str | ColumnLike,
    options: StudyOptions,
    seed: int,
    row_names: RowNames | None = None,
) -> Prepared:
    """Separate the target from a table and choose the features.

    Parameters
    ----------
    table : frame, dict of columns or array
    target : str or array-like
        Name of the column to predict, or its values.
    options : StudyOptions
    seed : int
        Seed of the test set and of the search for target leaks.
    row_names : RowNames, optional
        None: by `options.id`, the index, or the position.

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        If the table cannot be used, with the remedy.
    """
    task, whole = read_task(options.task), _read_whole(table)
    if isinstance(target, str):
        _check_target(target, whole)
        name, column = target, read_table(_one_column(whole, target))
    else:
        name, column = _read_values(target, whole)
    _check_names(whole, name, options)
    decided = decide_task(column, task, name)
    y, codes, classes, notes = _read_classes(decided)
    rows = np.flatnonzero(decided.is_known)
    no_features = {one for one in (name, options.groups, options.id) if one is not None}
    if options.id is not None:
        row_names = RowNames.of_column(_values_of(whole, options.id, np.arange(whole.n_rows), row_names), options.id)
    row_names = (row_names or RowNames.of_table(whole)).take(rows)
    if options.time is not None and not _is_date(_column(whole, options.time)):
        no_features.add(options.time)
    features = np.array([j for j, one in enumerate(whole.names or []) if one not in no_features], dtype=np.intp)
    if not len(features):
        raise ValueError(
            f"No feature is left: the table has the columns {', '.join(map(repr, whole.names or []))}, which are the "
            "target, the groups or the times. Add columns to the table, or leave groups and time out."
        )
    X, note_on_dates = _with_parts(whole.take(None if decided.is_known.all() else rows, features))
    columns = Columns.read(X)
    profiles = _profiles(columns, options)
    groups, time, note_on_rows = _dependent_rows(whole, rows, columns, profiles, options, row_names)
    are_copies = groups is not None and options.groups is None
    problem = Problem(pick_table(X), y, codes, classes, None, groups, time, are_copies)
    is_test = np.zeros(len(y), dtype=np.bool_)
    is_test[split_test(problem, np.random.RandomState(seed)).held_out] = True
    profiles = _without_leaks(profiles, columns, problem, np.flatnonzero(~is_test), options.keep, seed)
    notes += note_on_dates
    notes += [f"Column {one.name!r} is excluded. {one.note}" for one in profiles if one.note and not one.is_used]
    notes += [f"Column {one.name!r} is used as requested. {one.note}" for one in profiles if one.note and one.is_used]
    used = np.array([j for j, one in enumerate(profiles) if one.is_used], dtype=np.intp)
    if not len(used):
        raise ValueError(
            "No feature is left: all columns are identifiers, constant or target leaks. Include some of them with keep "
            "(--keep)."
        )
    table = pick_table(problem.table.take(columns=used))
    notes += note_on_rows
    return Prepared(table, y, codes, classes, None, groups, time, are_copies, name, profiles, notes, is_test, row_names)


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
        raise ValueError("The table has no rows or no columns. Pass a table with a header and some rows.") from None
    if is_instance_of(whole.native, "scipy.sparse", "sparray", "spmatrix"):
        raise TypeError("A study needs a dense table. Convert the sparse matrix to an array or a frame.")
    if whole.names is not None:
        return whole
    return pick_table({f"x{j}": _column_array(whole, j) for j in range(whole.n_columns)})


def _check_target(target: str, table: PickTable) -> None:
    if table.names is None or target not in table.names:
        raise ValueError(f"The table has no column {target!r}. {nearest_name(target, table.names or [])}")
    if table.n_columns == 1:
        raise ValueError(
            f"The table has one column only, {target!r}. A study needs at least one feature; if the file has more "
            "columns, set its delimiter (--delimiter)."
        )


def _read_values(target: ColumnLike, table: PickTable) -> tuple[str, RawTable]:
    """Return the name and the column of a target that is passed as values."""
    shape = np.asarray(target).shape
    if len(shape) > 1 and shape[1] > 1:
        raise ValueError(f"target has {shape[1]} columns, and a study predicts one. Pass one column at a time.")
    name = str(getattr(target, "name", None) or "target")
    while name in (table.names or ()):
        name += "'"
    column = column_table(target, name)
    if column.n_rows != table.n_rows:
        raise ValueError(
            f"target has {column.n_rows} values, but the table has {table.n_rows} rows. Pass one value per row."
        )
    return name, column


def _column_array(table: PickTable, j: int) -> Array:
    column = table.take(columns=np.array([j]))
    if isinstance(column, dict):
        return np.asarray(next(iter(column.values())))
    if isinstance(column, np.ndarray):
        return column[:, 0]
    return np.asarray(column.iloc[:, 0].to_numpy())  # a frame whose column names are not strings


def _check_names(whole: PickTable, target: str, options: StudyOptions) -> None:
    names = whole.names or []
    roles = {"groups": options.groups, "time": options.time, "id": options.id}
    named = [(option, one) for option, one in roles.items() if one is not None]
    named += [("keep", one) for one in options.keep] + [("drop", one) for one in options.drop]
    for option, one in named:
        if one == target:
            raise ValueError(f"{option} names {one!r}, which is the target. Name another column.")
        if one not in names:
            raise ValueError(f"{option}: the table has no column {one!r}. {nearest_name(one, names)}")
    if both := [one for one in options.keep if one in options.drop]:
        raise ValueError(f"{both[0]!r} is in both keep and drop. Pass it in one of them.")
    if options.groups is not None and options.time is not None:
        raise ValueError("groups and time cannot be combined. Pass one of them.")


def _read_classes(target: Target) -> tuple[Array, Rows | None, Array | None, list[str]]:
    """Return the target, codes and labels of classes (None for regression), and notes."""
    values, name, notes = target.values, target.name, list[str]()
    if n_without := int((~target.is_known).sum()):
        notes.append(f"{plural(n_without, 'row')} without a value of {name!r} excluded.")
    if len(values) < FEWEST_ROWS:
        raise ValueError(
            f"The table has {plural(len(values), 'row')} with a target, but a study needs at least "
            f"{FEWEST_ROWS}. Add rows."
        )
    if target.task == "regression":
        return values.astype(np.float64), None, None, [*notes, target.why]
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) > min(_MOST_CLASSES, len(values) // 2):
        raise ValueError(
            f"The target {name!r} has {len(classes):,} distinct labels in {len(values):,} rows, too many for a "
            "classification. If it holds numbers as text, correct the values that are not numbers; else name another "
            "column."
        )
    why = target.why
    rare = [str(label) for label, n in zip(classes.tolist(), np.bincount(codes).tolist(), strict=True) if n < 5]
    if rare:
        why += f" {listed(rare)}: fewer than 5 rows each, which is hardly enough."
    return values, codes.astype(np.intp), classes, [*notes, why]


# ---- the other columns -----------------------------------------------------------------------------------------------


def _one_column(whole: PickTable, name: str) -> Any:
    return whole.take(columns=np.array([(whole.names or []).index(name)]))


def _column(whole: PickTable, name: str) -> Column:
    return read_table(_one_column(whole, name)).column(0)


def _is_date(column: Column) -> bool:
    return isinstance(column, NumberColumn) and bool(column.clock)


def _values_of(whole: PickTable, name: str, rows: Rows, row_names: RowNames | None) -> Array:
    """Return the values of a group, time or id column in some rows; raise an error for missing values."""
    column = _column(whole, name)
    absent = missing_rows(column)[rows]
    if absent.any():
        first = (row_names or RowNames.of_table(whole).take(rows)).texts(np.array([absent.argmax()]))[0]
        raise ValueError(
            f"The column {name!r} has missing values in {plural(int(absent.sum()), 'row')}, first in row {first}. Fill "
            "them or drop these rows."
        )
    if isinstance(column, CodedColumn):
        return np.array(list(column.values), dtype=object)[column.codes[rows]]
    return np.asarray(column.values)[rows]


def _groups(labels: Array, name: str) -> Rows:
    """Return the number of the group of each row."""
    names, groups = np.unique(labels.astype(str), return_inverse=True)
    if len(names) < _FEWEST_GROUPS:
        raise ValueError(
            f"The column {name!r} has {len(names)} groups, but at least {_FEWEST_GROUPS} are needed. "
            "Leave groups out, or name another column."
        )
    return groups.astype(np.intp)


def _order(times: Array, name: str) -> tuple[Array, list[str]]:
    """Return times as ascending numbers, and a note if they are text."""
    if times.dtype != object:
        return times, []
    texts, order = np.unique(times.astype(str), return_inverse=True)
    return order, [
        f"The time column {name!r} holds text and is sorted alphabetically, from {str(texts[0])!r} to "
        f"{str(texts[-1])!r}. If that is not the order in time, write dates such as 2024-05-31, or numbers."
    ]


def _with_parts(X: Any) -> tuple[Any, list[str]]:
    """Add the parts of date columns, and return a note."""
    table = read_table(X)
    dates = [
        name
        for j, name in enumerate(table.names or [])
        if _is_date(table.column(j)) and not any(part_name(name, part) in (table.names or []) for part in DEFAULT_PARTS)
    ]
    if not dates:
        return X, []
    return date_parts(X, dates), [f"Year, month, weekday and hour were derived from dates: {listed(dates)}."]


def feature_columns(table: TableLike, names: Sequence[str]) -> Any:
    """Return the features of a study from another table, with derived date parts."""
    whole = pick_table(table)
    if whole.names is None:
        return table
    if any(name not in whole.names for name in names):
        whole = pick_table(_with_parts(whole.native)[0])
    index = {name: j for j, name in enumerate(whole.names or [])}
    absent = [name for name in names if name not in index]
    if absent:
        raise ValueError(f"The table has no column {absent[0]!r}. {nearest_name(absent[0], list(index))}")
    return whole.take(columns=np.array([index[name] for name in names], dtype=np.intp))


def _profiles(columns: Columns, options: StudyOptions) -> list[ColumnProfile]:
    """Return the profiles of the columns; identifiers, constants and columns in `drop` are not used."""
    profiles = profile_columns(columns)
    for j, one in enumerate(profiles):
        if one.name in options.drop:
            profiles[j] = one.excluded("It is in drop.")
        elif one.name in options.keep and not one.is_used:
            profiles[j] = replace(one, is_used=True)
        elif one.is_identifier:
            profiles[j] = replace(one, note=f"{one.note} To use it: keep=[{one.name!r}] (--keep).")
    return profiles


def _without_leaks(
    profiles: list[ColumnProfile], columns: Columns, problem: Problem, rows: Rows, keep: Sequence[str], seed: int
) -> list[ColumnProfile]:
    """Return the profiles with target leaks excluded, which are found on some of the rows."""
    profiles, has_classes = list(profiles), problem.codes is not None
    tested = [j for j, one in enumerate(profiles) if one.is_used and not one.is_identifier]
    is_category = [columns.features[j].kind == "category" for j in tested]
    target = (problem.y if problem.codes is None else problem.codes)[rows]
    leaks = find_leaks([columns.values[j][rows] for j in tested], is_category, target, has_classes, seed)
    for k, fraction in leaks.items():
        j = tested[k]
        what = "errors of the baseline" if has_classes else "variance"
        note = f"Alone it explains {fraction:.1%} of the {what}"
        if profiles[j].name in keep:
            profiles[j] = replace(profiles[j], is_leak=True, note=f"{note}: is it known before the target?")
            continue
        note += (
            f", which suggests that it leaks the target. If it is known before the target: "
            f"keep=[{profiles[j].name!r}] (--keep)."
        )
        profiles[j] = profiles[j].excluded(note, is_leak=True)
    return profiles


def _dependent_rows(
    whole: PickTable,
    rows: Rows,
    columns: Columns,
    profiles: list[ColumnProfile],
    options: StudyOptions,
    row_names: RowNames,
) -> tuple[Rows | None, Array | None, list[str]]:
    """Return the groups of the rows (without a group column, of duplicates), their times, and notes."""
    if options.groups is not None:
        return _groups(_values_of(whole, options.groups, rows, row_names), options.groups), None, []
    if options.time is not None:
        time, notes = _order(_values_of(whole, options.time, rows, row_names), options.time)
        return None, time, notes
    used = [values for values, one in zip(columns.values, profiles, strict=True) if one.is_used]
    groups, notes = _duplicates(used) if used else (None, [])
    return groups, None, notes


def _duplicates(columns: list[Floats]) -> tuple[Rows | None, list[str]]:
    """Return groups of duplicate rows, and a note; None if there are none, or if most rows are duplicates."""
    groups = row_groups(columns)
    n_rows, n_distinct = len(groups), int(groups.max()) + 1
    if n_distinct == n_rows:
        return None, []
    n_repeated = n_rows - n_distinct
    if 2 * n_distinct < n_rows:
        return None, [
            f"{n_repeated:,} of {n_rows:,} rows duplicate another, because the columns have few values. They may be in "
            "different folds."
        ]
    return groups, [
        f"{plural(n_repeated, 'duplicate row')}: duplicates stay in the same fold, so that no held-out row is also a "
        "training row."
    ]
