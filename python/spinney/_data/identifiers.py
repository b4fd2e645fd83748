"""Columns of names: nearly every row has a value of its own, and what is learned of one says nothing of the next."""

from __future__ import annotations

import numpy as np

from spinney._data.columns import CodedColumn, Column
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
