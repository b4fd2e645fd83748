"""Columns of names: nearly every row has a value of its own, and what is learned of one says nothing of the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.columns import CodedColumn, Column, NumberColumn, RawTable
from spinney._data.display.warn import warn
from spinney._data.feature import Feature

_FEWEST_VALUES = 100  # with fewer, a table is small rather than its column an identifier
_LEAST_SHARE = 0.5  # of the rows that have a value


def warn_of_identifier(feature: Feature, column: Column, label: str) -> None:
    """Warn if a column of unordered categories has a value of its own for more than half of its rows."""
    n_values = len(feature.categories)
    if feature.kind != "category" or n_values < _FEWEST_VALUES or not isinstance(column, CodedColumn):
        return
    n_rows = int(np.count_nonzero(column.codes >= 0))
    if n_values <= _LEAST_SHARE * n_rows:
        return
    warn(
        f"{label} looks like an identifier: {n_values:,} values in {n_rows:,} rows. What a model learns of them does "
        "not hold for new rows. Leave the column out; if the order of its values means something, give it as "
        "numbers or dates; if it is meant as it is, name it in categorical_features."
    )


_EXACT = 2**53  # from here on float64 has no digit for ones


def warn_of_rounding(table: RawTable, columns: Sequence[int]) -> None:
    """Warn if distinct values of a column of whole numbers become one as float64."""
    block = table.matrix if table.matrix is not None else None if table.sparse is None else table.sparse.values
    if block is not None and not _is_wide(block):
        return
    for j in columns:
        column = table.column(j)
        if isinstance(column, CodedColumn):
            continue
        values = column.values
        if isinstance(column, NumberColumn) and column.missing is not None and values.dtype.itemsize == 8:
            values = values[column.missing == 0]
        if not _is_wide(values):
            continue
        wide = np.unique(values[(values >= _EXACT) | (values <= -_EXACT if values.dtype.kind == "i" else False)])
        n_lost = len(wide) - len(np.unique(wide.astype(np.float64)))
        if n_lost:
            warn(
                f"{table.label(j)} holds whole numbers beyond 2**53, of which {n_lost} cannot be told from others: "
                "trees compare numbers as float64, which has 53 binary digits. Subtract an offset, or, if they are "
                "labels, name the column in categorical_features."
            )


def _is_wide(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    return bool(values.max() >= _EXACT or (values.dtype.kind == "i" and values.min() <= -_EXACT))
