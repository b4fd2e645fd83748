"""Small linear systems with the same bits on every processor, which LAPACK does not promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
