"""What the columns of a table hold, and which of them are better not learned from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema, read_table
from spinney._data.cells import date_text
from spinney._data.columns import RawTable
from spinney._data.display import elide, one_line, shortest
from spinney._data.feature import Feature
from spinney._data.schema import feature_values
from spinney._data.types import Floats, TableLike

_EXAMPLES = 3
_ROWS_TO_JUDGE_BY = 20  # with fewer rows, distinct values prove nothing
_SHARE_OF_NAMES = 0.95  # distinct values of a column of names of rows, over its values


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "boolean", "ordered", "category", "date"}
        What its values are.
    missing, distinct : int
        Rows without a value, and different values.
    examples : tuple of str
        Some of its values.
    low, high : float
        Least and largest value of numbers and dates, which are seconds since 1970; NaN for others.
    is_identifier, is_leak, is_date, is_constant : bool
        Whether it names rows, tells the target nearly alone, holds dates, holds one value only.
    is_used : bool
        Whether models learn from it.
    note : str
        What was done with it and why; empty if nothing was.
    """

    name: str
    kind: str
    missing: int
    distinct: int
    examples: tuple[str, ...]
    low: float = float("nan")
    high: float = float("nan")
    is_identifier: bool = False
    is_leak: bool = False
    is_date: bool = False
    is_constant: bool = False
    is_used: bool = True
    note: str = ""

    def left_out(self, note: str, **marks: bool) -> ColumnProfile:
        """Return the profile of a column that is not learned from."""
        found: ColumnProfile = replace(self, is_used=False, note=note, **cast(Any, marks))
        return found


@dataclass(frozen=True, eq=False)
class Columns:
    """A table as numbers, column by column.

    Attributes
    ----------
    names : list of str
    features : sequence of Feature
    values : list of ndarray of shape (n_rows,)
        Numbers, or codes of categories; NaN is missing.
    """

    names: list[str]
    features: Sequence[Feature]
    values: list[Floats]

    @classmethod
    def read(cls, X: TableLike) -> Columns:
        """Read a table."""
        table: RawTable = read_table(X)
        schema = Schema.learn(table)
        values = [
            feature_values(feature, table.column(j), table.n_rows, "missing", table.label(j))
            for j, feature in enumerate(schema.features)
        ]
        return cls(list(schema.names), schema.features, values)


def profile_columns(columns: Columns) -> list[ColumnProfile]:
    """Describe each column by itself."""
    return [
        _profile(name, feature, values)
        for name, feature, values in zip(columns.names, columns.features, columns.values, strict=True)
    ]


def _profile(name: str, feature: Feature, values: Floats) -> ColumnProfile:
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    is_number = feature.kind == "number" and len(distinct) > 0
    found = ColumnProfile(
        name,
        feature.kind_in_words,
        len(values) - len(known),
        len(distinct),
        tuple(_text(feature, value) for value in distinct[_spread(len(distinct))]),
        float(distinct[0]) if is_number else float("nan"),
        float(distinct[-1]) if is_number else float("nan"),
        is_date=bool(feature.clock),
    )
    if len(distinct) <= 1 and (len(distinct) == 0 or len(known) == len(values)):
        what = "has no value at all" if not len(distinct) else "has the same value in every row"
        return found.left_out(f"It {what}, which tells nothing.", is_constant=True)
    if _has_decimal_commas(feature):
        return found.left_out("It holds numbers with decimal commas, which are read as text. Write them with a point.")
    if _names_rows(feature, known, distinct):
        return found.left_out(
            f"It has {len(distinct):,} different values in {len(known):,} rows: it names rows, and what is learned of "
            "a name holds for no other row.",
            is_identifier=True,
        )
    return found


def _spread(n: int) -> list[int]:
    """Places of a few values: the first, the last, and some between."""
    return sorted({round(k * (n - 1) / (_EXAMPLES - 1)) for k in range(_EXAMPLES)}) if n else []


def _text(feature: Feature, value: float) -> str:
    if feature.clock:
        return date_text(float(value), feature.resolution, feature.clock)
    if feature.kind in ("category", "ordered"):
        return elide(one_line(str(feature.categories[int(value)])), 24)
    if feature.kind == "boolean":
        return "true" if value else "false"
    return shortest(float(value))


def _has_decimal_commas(feature: Feature) -> bool:
    """Tell whether text holds numbers as they are written where a comma parts whole and fraction."""
    if feature.kind != "category" or len(feature.categories) < _ROWS_TO_JUDGE_BY:
        return False
    texts = [str(one).strip() for one in feature.categories]
    return any("," in one for one in texts) and all(re.fullmatch(r"[-+]?\d+(,\d+)?", one) for one in texts)


def _names_rows(feature: Feature, known: Floats, distinct: Floats) -> bool:
    """Tell whether a column names rows.

    It holds text, nearly every row another; or whole numbers, every row another, that count rows: they lie close
    together, or rise or fall from row to row. Dates and other numbers measure something.
    """
    if len(known) < _ROWS_TO_JUDGE_BY or feature.clock or feature.kind in ("boolean", "ordered"):
        return False
    if feature.kind == "category":
        return len(distinct) >= _SHARE_OF_NAMES * len(known)
    if len(distinct) < len(known) or (known != np.floor(known)).any():
        return False
    steps = np.diff(known)
    is_dense = distinct[-1] - distinct[0] < 2 * len(known)
    return bool(is_dense or (steps > 0).all() or (steps < 0).all())


def row_groups(columns: list[Floats]) -> NDArray[np.intp]:
    """Give each distinct row of some columns a number; equal rows have the same."""
    found = np.zeros(len(columns[0]), dtype=np.intp)
    for values in columns:
        codes = np.unique(values, return_inverse=True)[1]  # all NaN are one value
        if found.max() == len(found) - 1:
            break  # all rows differ already
        pairs = found * (int(codes.max()) + 1) + codes
        found = np.unique(pairs, return_inverse=True)[1]
    return found
