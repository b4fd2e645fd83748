"""Some rows of a table, as a table of the engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine


def rows_of(columns: _engine.Table, rows: NDArray[np.intp]) -> _engine.Table:
    """Copy some rows of a table; of one that is sparse the copy is not."""
    table = _engine.Table(len(rows))
    for j in range(columns.n_columns):
        values, n_categories = columns.values_at(j, rows.astype(np.uint32)), columns.n_categories(j)
        if n_categories:
            table.add_category(np.where(np.isnan(values), -1, values).astype(np.int32), n_categories)
        else:
            table.add_number(values)
    return table
