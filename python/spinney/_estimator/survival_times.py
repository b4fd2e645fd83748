"""Targets of survival analysis: times until an event, of which some are censored, and the causes of the events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney._data.arguments import argument_array, argument_numbers
from spinney._data.cells import is_missing
from spinney._data.types import Floats, TableLike
from spinney._estimator.target import check_length, read_one_value

_FORMS = (
    "Pass times, with a minus sign where the event had not happened by then; a structured array of (event, time); or "
    "two columns, the first and the last time at which it may have happened."
)
_CAUSE_FORMS = (
    "Pass times, with a minus sign where the event had not happened by then; or a structured array, or a data frame, "
    "of two columns: event and time. The event is True or False; or the cause, a positive integer or text, and 0 or "
    "missing where the row is censored."
)
_EVENT_NAMES = ("event", "cause", "status")  # of a column, if its type does not distinguish it from times


class Times(NamedTuple):
    """Earliest and latest possible time of each row's event; the latest is infinite if the row is right-censored."""

    low: Floats
    high: Floats

    @property
    def is_event(self) -> NDArray[np.bool_]:
        """Whether the time of the event is known."""
        return np.asarray(self.low == self.high)


def read_times(y: TableLike, n_rows: int, name: str = "y") -> Times:
    """Return the times of a target in any of its forms: signed times, events with times, or intervals."""
    columns = _two_columns(y, name)
    if columns is None:
        signed = read_one_value(y, n_rows, "boosting of times", name)
        times = Times(np.abs(signed), np.where(signed > 0, np.abs(signed), np.inf))
    else:
        times = _of_columns(*columns, name)
    check_length(len(times.low), n_rows, name)
    return _checked(times, name)


def _two_columns(y: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        if len(names) != 2:
            raise ValueError(f"{name} has the fields {', '.join(names)}; times have two. {_FORMS}")
        return y[names[0]], y[names[1]]
    if hasattr(y, "columns") and hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] == 2:
        first, second = y.columns
        return np.asarray(y[first]), np.asarray(y[second])
    given = None if hasattr(y, "columns") or y is None else argument_array(y, name)
    return None if given is None or given.ndim != 2 or given.shape[1] != 2 else (given[:, 0], given[:, 1])


def _of_columns(first: NDArray[Any], second: NDArray[Any], name: str) -> Times:
    """Read events and times, in either order, or intervals of times."""
    for event, time in ((first, second), (second, first)):
        if event.dtype == bool or (event.dtype == object and all(isinstance(v, (bool, np.bool_)) for v in event)):
            found = argument_numbers(time, name)
            return Times(found, np.where(event.astype(bool), found, np.inf))
    low, high = argument_numbers(first, name), argument_numbers(second, name)
    for which, column in (("first", low), ("second", high)):
        if np.isin(column, (0.0, 1.0)).all() and np.unique(column).size == 2:  # probably events, not times
            raise ValueError(
                f"The {which} column of {name} holds only 0 and 1. If it indicates whether the event has happened, "
                "pass booleans; if it is a time, use another unit."
            )
    return Times(low, high)


def _checked(times: Times, name: str) -> Times:
    low, high = (np.ascontiguousarray(side, dtype=np.float64) for side in times)
    bad = (
        np.isnan(low)
        | np.isnan(high)
        | ~np.isfinite(low)
        | (low < 0)
        | (high < low)
        | ~(high > 0)
        | ((low == 0) & (high == np.inf))
    )
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        is_point = low[row] == high[row] or high[row] == np.inf
        value = f"{low[row]:g}" if is_point else f"{low[row]:g} to {high[row]:g}"
        raise ValueError(
            f"Times must be above 0 and finite, and intervals must not end before they begin (an end may be infinite). "
            f"Row {row} of {name} has {value}. {_FORMS}"
        )
    if not (low == high).any() and not np.isfinite(high).any():
        raise ValueError(f"No event of {name} has happened: there is nothing to learn. {_FORMS}")
    return Times(low, high)


# ---- events of several causes ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Events:
    """Times of rows, and the causes of their events.

    Attributes
    ----------
    time : ndarray of shape (n_rows,)
    cause : ndarray of int, shape (n_rows,)
        1 for the first of `causes`, and so on; 0 if the row is censored.
    causes : ndarray
        Labels.
    entry : ndarray of shape (n_rows,), or None
        Time from which each row was observed; None: 0.
    """

    time: Floats
    cause: NDArray[np.intp]
    causes: NDArray[Any]
    entry: Floats | None = None


class EnteredTimes(NamedTuple):
    """A target with the times from which its rows were observed, and the weights of the rows."""

    y: Any
    entry: Any = None
    weight: Any = None


def without_entry(y: Any) -> Any:
    """Return a target as the caller passed it."""
    return y.y if isinstance(y, EnteredTimes) else y


def read_events(y: Any, n_rows: int, name: str = "y", causes: NDArray[Any] | None = None) -> Events:
    """Return the times and causes of a target; with `causes`, events of these causes alone are known."""
    y, entry = without_entry(y), y.entry if isinstance(y, EnteredTimes) else None
    columns = _two_columns(y, name)
    if columns is None:
        signed = read_one_value(y, n_rows, "survival analysis", name)
        label = np.array([1]) if causes is None else causes[:1]
        events = Events(np.abs(signed), (signed > 0).astype(np.intp), label)
    else:
        columns = _plain(columns[0]), _plain(columns[1])
        events = _events_of_columns(columns, _event_column(y, columns, name), name, causes)
    check_length(len(events.time), n_rows, name)
    is_bad = ~(np.isfinite(events.time) & (events.time > 0))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(
            f"Times must be above 0 and finite. Row {row} of {name} has {events.time[row]:g}. {_CAUSE_FORMS}"
        )
    if causes is None and not events.cause.any():
        raise ValueError(f"No event of {name} has happened: there is nothing to learn. {_CAUSE_FORMS}")
    return events if entry is None else _entered(events, entry)


def _entered(events: Events, entry: ArrayLike) -> Events:
    found = np.ascontiguousarray(argument_numbers(entry, "entry"), dtype=np.float64)
    if found.shape != events.time.shape:
        raise ValueError(f"entry has shape {found.shape}; pass one time for each of the {len(events.time)} rows.")
    is_bad = ~((found >= 0) & (found < events.time))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(
            f"A row must enter at time 0 or later, and before its own time. Row {row} enters at {found[row]:g}, and "
            f"its time is {events.time[row]:g}."
        )
    return Events(events.time, events.cause, events.causes, found if found.any() else None)


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of objects that are all numbers, or all booleans, with that type."""
    if column.dtype.kind != "O" or not len(column):
        return column
    found = np.array(column.tolist())
    return found if found.dtype.kind in "biuf" and found.shape == column.shape else column


def _event_column(y: Any, columns: tuple[NDArray[Any], NDArray[Any]], name: str) -> int:
    """Return which of two columns holds events: the only one without decimals or numbers, or the one with the name."""
    fields: Any = getattr(getattr(y, "dtype", None), "names", None)
    fields = getattr(y, "columns", ("", "")) if fields is None else fields
    names = [str(field).lower() for field in fields]
    by_name = [k for k in (0, 1) if names[k] in _EVENT_NAMES]
    by_type = [k for k in (0, 1) if columns[k].dtype.kind in "bOUST"]
    integers = [k for k in (0, 1) if columns[k].dtype.kind in "iu"]
    for found in (by_type, by_name, integers):
        if len(found) == 1:
            return found[0]
    raise ValueError(f"Which column of {name} holds events, and which times? Name one of them 'event'. {_CAUSE_FORMS}")


def _events_of_columns(
    columns: tuple[NDArray[Any], NDArray[Any]], at: int, name: str, causes: NDArray[Any] | None
) -> Events:
    event, time = columns[at], np.ascontiguousarray(argument_numbers(columns[1 - at], name), dtype=np.float64)
    if event.dtype.kind in "OUST":
        event = np.array([0 if is_missing(v) or v in ("", 0) else v for v in event.tolist()], dtype=object)
    is_event = event != 0
    labels = event[is_event]
    if labels.dtype.kind == "O" and len({isinstance(v, str) for v in labels.tolist()}) == 1:
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "b" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
        labels = labels.astype(np.intp)
    if labels.dtype.kind == "f":
        labels = labels.astype(np.int64)
    known, codes = np.unique(labels, return_inverse=True) if causes is None else (causes, None)
    if codes is None:
        codes = np.searchsorted(known, labels).clip(0, len(known) - 1)
        if not (known[codes] == labels).all():
            other = labels[known[codes] != labels].tolist()[0]
            raise ValueError(f"{name} has events of the cause {other!r}, which the model does not know.")
    cause = np.zeros(len(event), dtype=np.intp)
    cause[is_event] = codes + 1
    return Events(time, cause, known)
