"""Column names: which tables have them, and how those at predict are matched with those at fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spinney._data.display.warn import warn

MISMATCH = "The feature names should match those that were passed during fit.\n"

_made: list[str] = []  # x0, x1, …


def position_names(n: int) -> list[str]:
    """Return x0, x1, …, the names of columns that have none; the strings are made once, and shared by all models."""
    global _made
    names = _made  # which other threads may replace
    if len(names) < n:
        _made = names = [*names, *(f"x{j}" for j in range(len(names), n))]
    return names[:n]


def usable_names(labels: Iterable[object]) -> list[str] | None:
    """Return the names of a frame if all of its labels are strings, None if none is.

    Raises
    ------
    TypeError
        If some labels are strings and others are not.
    ValueError
        If a name occurs twice.
    """
    names = list(labels)
    types = {type(name) for name in names}
    if types == {str}:
        _refuse_duplicates(names)  # type: ignore[arg-type]
        return names  # type: ignore[return-value]
    n_texts = sum(issubclass(type_, str) for type_ in types)
    if n_texts == 0:
        return None
    if n_texts < len(types):
        found = sorted(type_.__qualname__ for type_ in types)
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{found} as feature name / column name types. Make every name a string, for example with "
            "X.columns = X.columns.astype(str), or none."
        )
    return usable_names(str(name) for name in names)


def _refuse_duplicates(names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    twice = dict.fromkeys(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    raise ValueError(f"Column names must be unique; these occur more than once: {listed(twice)}.")


def listed(values: Iterable[object], limit: int = 5) -> str:
    """List values in a sentence: ``'a', 'b' and 3 more``."""
    shown = [repr(value) for value in values]
    rest = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + rest


def match_columns(
    found: Sequence[str] | None, n_found: int, expected: Sequence[str] | None, n_expected: int, estimator: str
) -> list[int] | None:
    """Find the position of each expected column; None if all stand in the expected order.

    Raises
    ------
    ValueError
        If a named column is absent or unknown, or the number of columns differs.

    Warns
    -----
    UserWarning
        If only one of the two has names: columns are then matched by position.
    """
    if found is not None and expected is not None:
        if list(found) == list(expected):
            return None
        return _match_names(found, expected)
    if found is not None:
        warn(f"X has feature names, but {estimator} was fitted without feature names")
    elif expected is not None:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
    if n_found != n_expected:
        raise ValueError(f"X has {n_found} features, but {estimator} is expecting {n_expected} features as input.")
    return None


def _match_names(found: Sequence[str], expected: Sequence[str]) -> list[int]:
    position = {name: j for j, name in enumerate(found)}
    unseen = sorted(set(found) - set(expected))
    absent = sorted(set(expected) - set(found))
    if unseen or absent:
        message = MISMATCH
        if unseen:
            message += "Feature names unseen at fit time:\n" + _bullets(unseen)
        if absent:
            message += "Feature names seen at fit time, yet now missing:\n" + _bullets(absent)
        raise ValueError(message)
    return [position[name] for name in expected]


def _bullets(names: list[str], limit: int = 5) -> str:
    lines = "".join(f"- {name}\n" for name in names[:limit])
    return lines + ("- ...\n" if len(names) > limit else "")
