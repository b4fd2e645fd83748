"""Rows of a fit: how often each is there by its weight, and a fingerprint of all of them.

Which rows a tree has not seen is known by their places in the table. The same rows in another order would silently be
taken for others: the fingerprint tells.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.reproducible import GOLDEN, any_order_sum, mixed, value_keys
from spinney._data.select import PickTable

_ROUNDING = 1e-9  # of a weight that was divided by a sum, say
_MOST_COPIES = 16  # entries per row, on average; beyond that weights multiply instead

Floats = NDArray[np.float64]


def integer_weights(weight: Floats | None) -> NDArray[np.int64] | None:
    """Return weights that say how often each row is there; None if they are not whole numbers, or too large."""
    if weight is None or weight.sum() > _MOST_COPIES * len(weight) + 1000 or (weight != np.floor(weight)).any():
        return None
    return weight.astype(np.int64)


def relative_weights(weight: Floats | None) -> tuple[Floats | None, NDArray[np.int64] | None]:
    """Return weights in a unit of their own, and how often each row is there, or None.

    Rows are there several times if all weights are whole multiples of the smallest: that is then 1. Of others the mean
    is 1. Either way it does not matter which unit the caller's weights are in.
    """
    if weight is None:
        return None, None
    present = weight[weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # too large is no count
        relative = weight / present.min()
        times = np.rint(relative)
        is_whole = bool((np.abs(relative - times) <= _ROUNDING * relative).all())
    copies = integer_weights(times) if is_whole else None
    if copies is not None:
        return times, copies
    return np.asarray(weight / (any_order_sum(present) / len(present))), None


def weight_of_one_row(weight: Floats | None) -> float:
    """Return the smallest weight where weights say how often each row is there; 0: they do not, rows are rows."""
    if weight is None or relative_weights(weight)[1] is None:
        return 0.0
    return float(weight[weight > 0].min())


def row_counts(weight: Floats | None) -> Floats | None:
    """Return how often each row is there: by its weight, or once if that is positive; None: all are, once."""
    if weight is None:
        return None
    copies = relative_weights(weight)[1]
    return (weight > 0).astype(np.float64) if copies is None else copies.astype(np.float64)


_SOME_ROWS = 2**20


@dataclass(frozen=True)
class RowFingerprint:
    """Two numbers that change with any value, and with the order of the rows.

    Attributes
    ----------
    table, target : int
    """

    table: int
    target: int

    @classmethod
    def of(cls, fingerprints: NDArray[np.uint64], target: NDArray[Any]) -> RowFingerprint:
        """Look at all rows as a fit takes them: the fingerprints of its table's rows, and the target."""
        return cls(in_order(fingerprints), _target_fingerprint(target))

    @classmethod
    def of_any(cls, table: PickTable, target: NDArray[Any], n_jobs: int) -> RowFingerprint | None:
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
        if _target_fingerprint(target) != self.target:
            refuse_other_rows("y", "forest")


def refuse_other_rows(what: str, owner: str) -> NoReturn:
    """Say that X or y is not that of the fit."""
    raise ValueError(
        f"{what} is not what the {owner} was fitted on: other rows, or the same rows in another order. Pass {what} as "
        "it was given to fit."
    )


def _target_fingerprint(target: NDArray[Any]) -> int:
    return in_order(value_keys(target.reshape(len(target), -1), 0))


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
