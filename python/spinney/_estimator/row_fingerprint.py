"""A fingerprint of the rows that a model was fitted on, to notice when others are passed in their place.

Which rows a tree has not seen is known by their places in the table. The same rows in another order would silently be
taken for others.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.reproducible import GOLDEN, keys_of, mixed
from spinney._data.select import PickTable

_SOME_ROWS = 2**20


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
    def of(cls, fingerprints: NDArray[np.uint64], target: NDArray[Any]) -> RowPrint:
        """Look at all rows as a fit takes them: the fingerprints of its table's rows, and the target."""
        return cls(in_order(fingerprints), _print_of_target(target))

    @classmethod
    def of_any(cls, table: PickTable, target: NDArray[Any], n_jobs: int) -> RowPrint | None:
        """Look at all rows of any table; None if its cells are of kinds that only its model can read."""
        try:
            rows = read_table(table.native)
            with warnings.catch_warnings(action="ignore"):  # warnings about the values are left to the members
                columns = Schema.learn(rows).encode_inputs(rows)
        except (TypeError, ValueError):
            return None
        if target.dtype.kind not in "biuf":
            target = np.unique(target.astype(str), return_inverse=True)[1].reshape(target.shape)
        return cls.of(columns.fingerprints(n_jobs), target)

    def check_table(self, columns: _engine.Table, n_jobs: int) -> None:
        """Refuse a table of other rows."""
        if in_order(columns.fingerprints(n_jobs)) != self.table:
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


def _print_of_target(target: NDArray[Any]) -> int:
    return in_order(keys_of(target.reshape(len(target), -1), 0))


def in_order(keys: NDArray[np.uint64], first: int = 0) -> int:
    """Return a number that changes with any of the rows' keys, and with their order.

    Such numbers of parts of a table, whose first rows are known, add up to that of the table (modulo 2⁶⁴).
    """
    found = 0
    for begin in range(0, len(keys), _SOME_ROWS):
        some = keys[begin : begin + _SOME_ROWS]
        places = np.arange(first + begin + 1, first + begin + len(some) + 1, dtype=np.uint64)
        found += int(mixed(some ^ mixed(places * np.uint64(GOLDEN))).sum())
    return found % 2**64
