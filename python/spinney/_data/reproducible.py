"""Arithmetic and random numbers that are bit-identical on every processor.

NumPy and SciPy do not guarantee that: exponentials and logarithms depend on the library or vector code that is chosen
for the processor, and products of BLAS and of sparse matrices are fused with their sums on some processors (such as
arm64) and not on others. Sums of NumPy arrays, means, square roots and elementwise products are bit-identical
everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.types import Floats

_BITS_PER_NAT = 1.4426950408889634


def log(x: object) -> Floats:
    """Natural logarithm; minus infinity at 0, without a warning."""
    values = np.asarray(x, dtype=np.float64)
    return np.asarray(_engine.log(np.ascontiguousarray(values).reshape(-1)).reshape(values.shape))


def log2(x: object) -> Floats:
    """Logarithm to the base 2."""
    return np.asarray(log(x) * _BITS_PER_NAT)


def exp(x: object) -> Floats:
    """Exponential; infinite where it is too large, without a warning."""
    values = np.asarray(x, dtype=np.float64)
    return np.asarray(_engine.exp(np.ascontiguousarray(values).reshape(-1)).reshape(values.shape))


def log_sum_exp(scores: Floats) -> Floats:
    """Logarithm of the sum of the exponentials of each row."""
    most = scores.max(axis=1)
    return np.asarray(most + log(exp(scores - most[:, np.newaxis]).sum(axis=1)))


def dot(left: Floats, right: Floats) -> float:
    """Sum of the products of two vectors."""
    return float((left * right).sum())


def sample_deviation(values: Floats) -> Floats:
    """Return the standard deviation over the last axis, with n - 1, also if squares overflow; 0 of one value."""
    if values.shape[-1] == 1:
        return np.zeros(values.shape[:-1])
    size = 2.0 ** np.frexp(np.abs(values).max(initial=0.0))[1]
    return np.asarray(size * (values / size).std(axis=-1, ddof=1))


def any_order_sum(values: Floats) -> float:
    """Sum that is rounded once, so that it does not depend on the order of the terms."""
    return math.fsum(values.tolist())


def sums_by_code(codes: NDArray[Any], values: Floats | None, n_codes: int) -> Floats:
    """Sum of the values of each code, independent of their order; without values, the count of each code."""
    if values is None:
        return np.bincount(codes, minlength=n_codes).astype(np.float64)
    return np.array([any_order_sum(values[codes == k]) for k in range(n_codes)])


def times(left: NDArray[Any], right: Floats) -> Floats:
    """Product of an array with any number of rows and a small matrix, computed term by term."""
    total = np.asarray(left[..., :1] * right[0], dtype=np.float64)
    for k in range(1, len(right)):
        total = total + left[..., k : k + 1] * right[k]
    return total


def row_dots(matrix: Any, vector: Floats) -> Floats:
    """Product of a sparse matrix and a vector."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    products = matrix.data * vector[matrix.indices]
    return np.bincount(rows, weights=products, minlength=matrix.shape[0]).astype(np.float64, copy=False)


_PANEL = 32  # columns of a factor, or right-hand sides, that are computed together: they stay in the cache


def cholesky(matrices: Floats) -> Floats:
    """Lower factors L of symmetric positive definite matrices L Lᵀ, (…, k, k); all matrices at once."""
    if matrices.ndim == 2:
        return _cholesky(matrices)
    factor = np.zeros_like(matrices)
    for j in range(matrices.shape[-1]):
        rest = matrices[..., j:, j].copy()
        for i in range(j):
            rest -= factor[..., j:, i] * factor[..., j : j + 1, i]
        pivot = np.sqrt(rest[..., :1])
        factor[..., j:, j] = rest / pivot
    return factor


def _cholesky(matrix: Floats) -> Floats:
    """Return the factor of one matrix, panel by panel of its columns; the same operations for each entry."""
    upper = np.zeros_like(matrix)  # row j holds column j of the factor
    for begin in range(0, len(matrix), _PANEL):
        panel = matrix[begin:, begin : begin + _PANEL].T.copy()
        products = np.empty_like(panel)
        for row in upper[:begin, begin:]:
            panel -= np.multiply(row[: len(panel), np.newaxis], row, out=products)
        for j, column in enumerate(panel):
            for row in upper[begin : begin + j, begin + j :]:
                column[j:] -= row[0] * row
            upper[begin + j, begin + j :] = column[j:] / np.sqrt(column[j])
    return np.ascontiguousarray(upper.T)


def solve_factored(factor: Floats, right: Floats) -> Floats:
    """Solutions x of L Lᵀ x = b for factors (…, k, k) and right-hand sides (…, k)."""
    k = factor.shape[-1]
    if factor.ndim == 2 and right.ndim == 2 and len(right) > 1:
        return _solve_many(factor, right)
    x = right.copy()
    for j in range(k):
        x[..., j] /= factor[..., j, j]
        x[..., j + 1 :] -= factor[..., j + 1 :, j] * x[..., j : j + 1]
    for j in range(k - 1, -1, -1):
        x[..., j] /= factor[..., j, j]
        x[..., :j] -= factor[..., j, :j] * x[..., j : j + 1]
    return x


def _solve_many(factor: Floats, right: Floats) -> Floats:
    """Return the solutions of one factor, for some right-hand sides at a time; the same operations for each."""
    x, columns = np.empty_like(right), np.ascontiguousarray(factor.T)
    for begin in range(0, len(right), _PANEL):
        some = right[begin : begin + _PANEL].T.copy()
        for j in range(len(factor)):
            some[j] /= factor[j, j]
            some[j + 1 :] -= columns[j, j + 1 :, np.newaxis] * some[j]
        for j in range(len(factor) - 1, -1, -1):
            some[j] /= factor[j, j]
            some[:j] -= factor[j, :j, np.newaxis] * some[j]
        x[begin : begin + _PANEL] = some.T
    return x


GOLDEN = 0x9E3779B97F4A7C15


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of each number over all 64: the finaliser of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def value_keys(values: NDArray[Any], first: int) -> NDArray[np.uint64]:
    """Return a hash of each row of numbers, equal to the engine's `fingerprints` of columns counted from `first`.

    It depends only on the values: -0 equals 0, and all NaN are equal.
    """
    keys = np.zeros(len(values), dtype=np.uint64)
    for j, column in enumerate(values.T, start=first):
        numbers = np.asarray(column, dtype=np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        keys += mixed(numbers.view(np.uint64) + np.uint64((j + 1) * GOLDEN % 2**64))
    return keys


def random_bits(seed: int, *parts: object) -> NDArray[np.uint64]:
    """Return 64 random bits for each tuple of numbers, which are broadcast, as a function of them and the seed."""
    bits = mixed(np.array([seed], dtype=np.uint64))
    for part in parts:
        bits = mixed(bits + (np.atleast_1d(np.asarray(part, dtype=np.uint64)) + np.uint64(1)) * np.uint64(GOLDEN))
    return bits


def random_uniform(seed: int, *parts: object) -> NDArray[np.float64]:
    """Return uniform random numbers in [0, 1), drawn like `random_bits`."""
    return np.asarray((random_bits(seed, *parts) >> np.uint64(11)) * 2.0**-53)
