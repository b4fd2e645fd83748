"""A fingerprint of the rows that a model was fitted on, to notice when others are passed in their place.

Which rows a tree has not seen is known by their places in the table. The same rows in another order would silently be
taken for others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney import _engine
from spinney._data import Schema, read_table
from spinney._data.hashing import GOLDEN, mixed
from spinney._data.pick import PickTable

_MOST_ROWS = 4096  # that are looked at, evenly spread: any other order of all rows moves some of them


@dataclass(frozen=True)
class RowPrint:
    """Two numbers that change with any value, and with the order of the rows.

    Attributes
    ----------
    table, target : int
    """

    table: int
    target: int

    @classmethod
    def of(cls, columns: _engine.Table, target: NDArray[Any]) -> RowPrint:
        """Look at rows as a fit takes them."""
        return cls(_print_of_table(columns), _print_of_target(target))

    @classmethod
    def of_any(cls, table: PickTable, target: NDArray[Any]) -> RowPrint | None:
        """Look at rows of any table; None if its cells are of kinds that only its model can read."""
        try:
            rows = read_table(table.take(_looked_at(table.n_rows)))
            with warnings.catch_warnings(action="ignore"):  # what members make of the values is theirs to say
                columns = Schema.learn(rows).encode_inputs(rows)
        except (TypeError, ValueError):
            return None
        target = target[_looked_at(len(target))]
        if target.dtype.kind not in "biuf":
            target = np.unique(target.astype(str), return_inverse=True)[1].reshape(target.shape)
        return cls.of(columns, target)

    def check_table(self, columns: _engine.Table) -> None:
        """Refuse a table of other rows."""
        if _print_of_table(columns) != self.table:
            refuse_other_rows("X", "forest")

    def check_target(self, target: NDArray[Any]) -> None:
        """Refuse another target."""
        if _print_of_target(target) != self.target:
            refuse_other_rows("y", "forest")


def refuse_other_rows(what: str, owner: str) -> NoReturn:
    """Say that X or y is not that of the fit."""
    raise ValueError(
        f"{what} is not what the {owner} was fitted on: other rows, or the same rows in another order. Pass {what} as "
        "it was given to fit."
    )


def _looked_at(n_rows: int) -> NDArray[np.intp]:
    return np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.intp)


def _print_of_table(columns: _engine.Table) -> int:
    rows = _looked_at(columns.n_rows).astype(np.uint32)
    return _print_of((columns.values_at(j, rows) for j in range(columns.n_columns)), len(rows))


def _print_of_target(target: NDArray[Any]) -> int:
    rows = _looked_at(len(target))
    return _print_of(target[rows].reshape(len(rows), -1).T, len(rows))


def _print_of(columns: Iterable[Any], n_rows: int) -> int:
    keys = mixed(np.arange(1, n_rows + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    for column in columns:
        values = np.asarray(column, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan  # one NaN of the many
        keys = mixed(keys + values.view(np.uint64))
    return int(keys.sum())
