"""Training rows: weights as counts of rows, and a fingerprint of the table.

Out-of-bag rows are identified by their positions in the table. The fingerprint detects the same rows in another order,
which would give wrong results without an error.
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
from spinney._data.types import Floats

_ROUNDING = 1e-9  # of a weight that was divided by a sum, for example
_MOST_COPIES = 16  # of a row on average; larger weights multiply statistics instead


def integer_weights(weight: Floats | None) -> NDArray[np.int64] | None:
    """Return weights as counts of rows; None if they are not integers, or too large."""
    if weight is None or weight.sum() > _MOST_COPIES * len(weight) + 1000 or (weight != np.floor(weight)).any():
        return None
    return weight.astype(np.int64)


def relative_weights(weight: Floats | None) -> tuple[Floats | None, NDArray[np.int64] | None]:
    """Return normalised weights, and the count of each row or None.

    Weights are counts if all are multiples of the smallest, which is then 1. Other weights are scaled to a mean of 1.
    Either way the unit of the caller's weights does not matter.
    """
    if weight is None:
        return None, None
    present = weight[weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # infinite ratios are no counts
        relative = weight / present.min()
        times = np.rint(relative)
        is_whole = bool((np.abs(relative - times) <= _ROUNDING * relative).all())
    copies = integer_weights(times) if is_whole else None
    if copies is not None:
        return times, copies
    return np.asarray(weight / (any_order_sum(present) / len(present))), None


def weight_of_one_row(weight: Floats | None) -> float:
    """Return the smallest weight if weights are counts of rows, else 0."""
    if weight is None or relative_weights(weight)[1] is None:
        return 0.0
    return float(weight[weight > 0].min())


def row_counts(weight: Floats | None) -> Floats | None:
    """Return the count of each row: by its weight, or 1 if that is positive but no count; None: all are 1."""
    if weight is None:
        return None
    copies = relative_weights(weight)[1]
    return (weight > 0).astype(np.float64) if copies is None else copies.astype(np.float64)


_BLOCK_ROWS = 2**20


@dataclass(frozen=True)
class RowFingerprint:
    """Hashes of the table and the target, which depend on all values and on the order of the rows.

    Attributes
    ----------
    table, target : int
    """

    table: int
    target: int

    @classmethod
    def of(cls, fingerprints: NDArray[np.uint64], target: NDArray[Any]) -> RowFingerprint:
        """Return the fingerprint of training rows, from the hashes of the table's rows and the target."""
        return cls(in_order(fingerprints), _target_fingerprint(target))

    @classmethod
    def of_any(cls, table: PickTable, target: NDArray[Any], n_jobs: int) -> RowFingerprint | None:
        """Return the fingerprint of any table; None if it has values that spinney cannot read."""
        rows = _row_hashes(table, n_jobs)
        return None if rows is None else cls.of(rows, _as_numbers(target))

    def check_table(self, columns: _engine.Table, n_jobs: int) -> None:
        """Refuse a table of other rows."""
        if in_order(columns.fingerprints(n_jobs)) != self.table:
            refuse_other_rows("X", "forest")

    def check_target(self, target: NDArray[Any]) -> None:
        """Refuse another target."""
        if _target_fingerprint(target) != self.target:
            refuse_other_rows("y", "forest")


def _row_hashes(table: PickTable, n_jobs: int) -> NDArray[np.uint64] | None:
    """Return a hash of each row of any table; None if it has values that spinney cannot read."""
    try:
        rows = read_table(table.native)
        with warnings.catch_warnings(action="ignore"):  # warnings about the values are left to the members
            return Schema.learn(rows).encode_inputs(rows).fingerprints(n_jobs)
    except (TypeError, ValueError):
        return None


def _as_numbers(target: NDArray[Any]) -> NDArray[Any]:
    if target.dtype.kind in "biuf":
        return target
    return np.unique(target.astype(str), return_inverse=True)[1].reshape(target.shape)


def order_by_values(
    table: PickTable, target: NDArray[Any], weight: Floats | None, n_jobs: int
) -> NDArray[np.intp] | None:
    """Return an order of the rows that depends only on what they hold; None if spinney cannot read the table.

    Samples and folds that are drawn from rows in this order do not depend on the order of the rows in the table.
    """
    keys = _row_hashes(table, n_jobs)
    if keys is None:
        return None
    columns = [_as_numbers(target).reshape(len(keys), -1), *([] if weight is None else [weight[:, np.newaxis]])]
    return np.argsort(keys + value_keys(np.hstack(columns), table.n_columns), kind="stable")


def refuse_other_rows(what: str, owner: str) -> NoReturn:
    """Raise ValueError: X or y is not that of the fit."""
    raise ValueError(
        f"{what} is not what the {owner} was fitted on: other rows, or the same rows in another order. Pass the "
        f"{what} of fit."
    )


def _target_fingerprint(target: NDArray[Any]) -> int:
    return in_order(value_keys(target.reshape(len(target), -1), 0))


def in_order(keys: NDArray[np.uint64], first: int = 0) -> int:
    """Return a hash of the rows' keys and their order.

    The hashes of chunks of a table, each with the position of its first row, add up to that of the table (modulo 2⁶⁴).
    """
    total = 0
    for begin in range(0, len(keys), _BLOCK_ROWS):
        block = keys[begin : begin + _BLOCK_ROWS]
        positions = np.arange(first + begin + 1, first + begin + len(block) + 1, dtype=np.uint64)
        total += int(mixed(block ^ mixed(positions * np.uint64(GOLDEN))).sum())
    return total % 2**64
