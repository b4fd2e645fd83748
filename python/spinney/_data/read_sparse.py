"""SciPy sparse matrices and arrays of any format, as compressed columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._data.columns import RawTable, SparseMatrix, raise_not_2d, readable


def read_sparse(X: Any) -> RawTable:
    """Read a sparse matrix; stored NaN is missing, what is not stored is 0, duplicates are summed."""
    if X.ndim != 2:
        raise_not_2d(X.ndim, X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X is a sparse matrix of complex numbers.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X is a sparse matrix of dtype {X.dtype}; its argument must be a number.")
    n_rows, n_columns = X.shape
    compressed = X.tocsc()
    if not compressed.has_canonical_format:
        if compressed is X:
            compressed = X.copy()  # the caller's matrix stays as it is
        compressed.sum_duplicates()
    matrix = SparseMatrix(
        starts=compressed.indptr.astype(np.int64, copy=False),
        rows=compressed.indices.astype(np.int32, copy=False),
        values=readable(compressed.data),
    )
    return RawTable(n_rows, n_columns, sparse=matrix)
