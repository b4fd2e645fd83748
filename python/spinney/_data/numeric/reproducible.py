"""Arithmetic that gives the same bits on every processor.

NumPy and SciPy do not promise that: exponentials and logarithms come from whichever library or vector code suits the
processor, and the products of BLAS and of sparse matrices are fused with their sums on some processors (on arm64, say)
and not on others. Sums of NumPy arrays, means, square roots and elementwise products have the same bits everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine

Floats = NDArray[np.float64]
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


def any_order_sum(values: Floats) -> float:
    """Sum that is rounded once, so that the order of the terms does not show."""
    return math.fsum(values.tolist())


def sums_by_code(codes: NDArray[Any], values: Floats | None, n_codes: int) -> Floats:
    """Sum of the values of each code, in any order of them; without values, how often it occurs."""
    if values is None:
        return np.bincount(codes, minlength=n_codes).astype(np.float64)
    return np.array([any_order_sum(values[codes == k]) for k in range(n_codes)])


def times(left: NDArray[Any], right: Floats) -> Floats:
    """Product of an array of any number of rows and a small square matrix, term by term."""
    total = np.asarray(left[..., :1] * right[0], dtype=np.float64)
    for k in range(1, len(right)):
        total = total + left[..., k : k + 1] * right[k]
    return total


def row_dots(matrix: Any, vector: Floats) -> Floats:
    """Product of a sparse matrix and a vector."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    found = np.bincount(rows, weights=matrix.data * vector[matrix.indices], minlength=matrix.shape[0])
    return np.asarray(found, dtype=np.float64)


def cholesky(matrices: Floats) -> Floats:
    """Lower factors L of symmetric positive definite matrices L Lᵀ, (…, k, k); row by row, all matrices at once."""
    factor = np.zeros_like(matrices)
    for j in range(matrices.shape[-1]):
        rest = matrices[..., j:, j].copy()
        for i in range(j):
            rest -= factor[..., j:, i] * factor[..., j : j + 1, i]
        pivot = np.sqrt(rest[..., :1])
        factor[..., j:, j] = rest / pivot
    return factor


def solve_factored(factor: Floats, right: Floats) -> Floats:
    """Solutions x of L Lᵀ x = b for factors (…, k, k) and right sides (…, k)."""
    k = factor.shape[-1]
    x = right.copy()
    for j in range(k):
        x[..., j] /= factor[..., j, j]
        x[..., j + 1 :] -= factor[..., j + 1 :, j] * x[..., j : j + 1]
    for j in range(k - 1, -1, -1):
        x[..., j] /= factor[..., j, j]
        x[..., :j] -= factor[..., j, :j] * x[..., j : j + 1]
    return x
