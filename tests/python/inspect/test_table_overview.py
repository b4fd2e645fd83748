"""Statistics of a whole table: agreement with reference implementations in NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from spinney import _engine
from spinney._data.reproducible import GOLDEN, mixed
from spinney._estimator.support import ColumnRanges
from spinney._estimator.target import _factorise
from spinney._forest.samples import row_keys

N = 2500  # more than two chunks of rows


def make_table(n: int = N) -> _engine.Table:
    random = np.random.default_rng(0)
    table = _engine.Table(n)
    values = random.standard_normal((n, 3)).astype(np.float32)
    values[random.random(n) < 0.1, 1] = np.nan
    values[:5, 2] = -0.0
    table.add_matrix(values)
    table.add_number(random.integers(-9, 9, n), np.asarray(random.random(n) < 0.2).astype(np.uint8))
    table.add_number(np.full(n, np.nan), None)
    table.add_category(random.integers(-1, 4, n).astype(np.int32), 4)
    rows = np.flatnonzero(random.random(n) < 0.05).astype(np.int32)
    table.add_sparse(rows, random.standard_normal(len(rows)))
    return table


def slow_keys(table: _engine.Table, target: np.ndarray) -> np.ndarray:
    keys = np.zeros(table.n_rows, dtype=np.uint64)
    for j, part in enumerate([*(table.column(j) for j in range(table.n_columns)), *target.T]):
        values = np.asarray(part, dtype=np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        keys += mixed(values.view(np.uint64) + np.uint64((j + 1) * GOLDEN % 2**64))
    return keys


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n", [1, N])
def test_row_keys_agree_with_the_reference(n: int, n_jobs: int) -> None:
    table = make_table(n)
    for target in (np.zeros((n, 0)), np.random.default_rng(1).standard_normal((n, 2))):
        assert np.array_equal(row_keys(table.fingerprints(n_jobs), target, table.n_columns), slow_keys(table, target))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranges_agree_with_the_reference(weighted: bool, n_jobs: int) -> None:
    table = make_table()
    weight = (np.random.default_rng(2).random(N) < 0.01).astype(float) if weighted else None
    ranges = ColumnRanges.of(table, weight, n_jobs)
    used = slice(None) if weight is None else weight > 0
    for j in range(table.n_columns):
        values = table.column(j)[used]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            ends = np.nanmin(values), np.nanmax(values)
        if table.n_categories(j):
            ends = np.nan, np.nan
        assert np.array_equal((ranges.low[j], ranges.high[j]), ends, equal_nan=True), j
        assert ranges.has_missing[j] == np.isnan(values).any()
    assert ranges.has_missing.dtype == bool


@pytest.mark.parametrize(
    "column",
    [
        np.array([3, 1, 3, -2]),
        np.array([-128, 127, 5], dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64),
        np.array([0, 10**9, 10**9]),
        np.array([7], dtype=np.uint16),
    ],
)
def test_adjacent_labels_are_counted_as_by_sorting(column: np.ndarray) -> None:
    labels, codes = _factorise(column)
    expected, expected_codes = np.unique(column, return_inverse=True)
    assert labels.dtype == column.dtype
    assert np.array_equal(labels, expected)
    assert np.array_equal(codes, expected_codes)
