"""Shapley values of any model, sampled: columns become known in random orders, in place of those of other rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spinney._data.select import PickTable, Places, pick_table
from spinney._data.types import Floats

_MOST_ROWS = 20_000  # predicted at once


def sampled_shap(
    predict: Callable[[object], Floats], table: PickTable, rows: Places, background: Places, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return Shapley values of rows of a table against background rows of the same table.

    For each background row the columns of the explained row replace its own, one after the other, in a random order
    and in the reverse of it; the contribution of a column is the mean change of the prediction. The contributions add
    up to the difference between the prediction and the mean prediction of the background rows.

    Parameters
    ----------
    predict : callable
        From a table of the same kind to predictions of shape (n_rows, n_outputs).
    table : PickTable
    rows, background : ndarray of int
        Rows to explain, and rows that supply the values of unknown columns.
    seed : int
        Seed of the orders, which are the same for all explained rows.

    Returns
    -------
    tuple of ndarray
        Mean prediction of the background rows, (n_outputs,), and values, (n_rows, n_columns, n_outputs).
    """
    n_columns, random = table.n_columns, np.random.default_rng(seed)
    one_way = [random.permutation(n_columns) for _ in background]
    orders = np.array([order for forward in one_way for order in (forward, forward[::-1])])
    others = np.repeat(background, 2)
    ranks = np.argsort(orders, axis=1)
    # step s of a chain takes the first s columns of its order from the explained row
    is_known = ranks[:, np.newaxis, :] < np.arange(n_columns + 1)[np.newaxis, :, np.newaxis]
    n_chains, at_once = len(orders), max(1, _MOST_ROWS // (len(orders) * (n_columns + 1)))
    values = []
    for first in range(0, len(rows), at_once):
        chosen = rows[first : first + at_once]
        source = np.where(is_known, chosen[:, np.newaxis, np.newaxis, np.newaxis], others[:, np.newaxis, np.newaxis])
        predicted = predict(_mixed(table, source.reshape(-1, n_columns)))
        by_chain = predicted.reshape(len(chosen), n_chains, n_columns + 1, -1)
        steps = np.diff(by_chain, axis=2)
        place = np.broadcast_to(ranks[np.newaxis, :, :, np.newaxis], steps.shape)
        values.append(np.take_along_axis(steps, place, axis=2).mean(axis=1))
    base = predict(table.take(background)).mean(axis=0)
    return base, np.concatenate(values)


def _mixed(table: PickTable, source: Places) -> object:
    """Return a table whose cells come from the given rows of each column, (n_rows, n_columns)."""
    n_rows = max(len(source), table.n_rows)
    repeated = pick_table(table.take(np.arange(n_rows) % table.n_rows))
    padded = np.vstack([source, np.zeros((n_rows - len(source), table.n_columns), dtype=source.dtype)])
    mixed = repeated.with_columns({j: np.ascontiguousarray(padded[:, j]) for j in range(table.n_columns)})
    return pick_table(mixed).take(np.arange(len(source)))
