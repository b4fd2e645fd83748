"""SciPy sparse matrices and arrays of any format, as compressed columns.

SciPy's conversions believe the indices of a matrix and read or write outside its memory if they are wrong, so they are
checked first.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from spinney._data.columns import RawTable, SparseMatrix, raise_not_2d, readable


def read_sparse(X: Any) -> RawTable:
    """Read a sparse matrix; stored NaN is missing, what is not stored is 0, duplicates are summed."""
    from scipy.sparse import csc_array

    if X.ndim != 2:
        raise_not_2d(X.ndim, X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X is a sparse matrix of complex numbers.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X is a sparse matrix of dtype {X.dtype}; its argument must be a number.")
    n_rows, n_columns = X.shape
    compressed = checked_sparse(X).tocsc()
    # a matrix notes that it is in order, and whoever changes its arrays may leave the note: count again
    compressed = csc_array((compressed.data, compressed.indices, compressed.indptr), shape=X.shape)
    if not compressed.has_canonical_format:
        compressed = compressed.copy()  # the caller's matrix stays as it is
        compressed.sum_duplicates()
    matrix = SparseMatrix(
        starts=compressed.indptr.astype(np.int64, copy=False),
        rows=compressed.indices.astype(np.int32, copy=False),
        values=readable(compressed.data),
    )
    return RawTable(n_rows, n_columns, sparse=matrix)


def checked_sparse(X: Any) -> Any:
    """Return a sparse matrix of two dimensions that SciPy can convert and index, if its parts fit each other."""
    if X.format == "lil":
        lengths = [[len(line) for line in lines] for lines in (X.rows, X.data)]
        if lengths[0] != lengths[1] or len(lengths[0]) != X.shape[0]:
            _refuse("its lists of columns and of values differ in length")
        X = X.tocsr()
    elif X.format == "dok":
        X = X.tocoo()
    _CHECKS[X.format](X)
    return X


def _check_compressed(X: Any) -> None:
    """Check compressed rows, columns or blocks of rows."""
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n_lines, n_places = X.shape[0] // height, X.shape[1] // width
    if X.format == "csc":
        n_lines, n_places = n_places, n_lines
    _check_integers(X.indptr, "indptr")
    if len(X.indptr) != n_lines + 1:
        _refuse(f"its indptr has {len(X.indptr)} entries instead of {n_lines + 1}")
    if X.indptr[0] != 0 or (X.indptr[1:] < X.indptr[:-1]).any():
        _refuse("its indptr does not start at 0, or decreases")
    if len(X.indices) != len(X.data) or X.indptr[-1] > len(X.data):
        _refuse(f"its indptr, indices and data disagree: {X.indptr[-1]}, {len(X.indices)} and {len(X.data)} entries")
    _check_places(X.indices[: X.indptr[-1]], n_places, "indices")


def _check_coordinates(X: Any) -> None:
    if any(len(places) != len(X.data) for places in X.coords):
        _refuse("its coordinates and its data differ in length")
    for places, length, name in zip(X.coords, X.shape, ("row", "col"), strict=True):
        _check_places(places, length, name)


def _check_diagonals(X: Any) -> None:
    _check_integers(X.offsets, "offsets")
    if X.data.ndim != 2 or len(X.offsets) != len(X.data):
        _refuse("its offsets and its data differ in length")


def _check_places(places: Any, length: int, name: str) -> None:
    _check_integers(places, name)
    if places.size and (places.min() < 0 or places.max() >= length):
        wrong = places[(places < 0) | (places >= length)][0]
        _refuse(f"its {name} names place {wrong} of {length}, counted from 0")


def _check_integers(array: Any, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        _refuse(f"its {name} is not a row of integers")


_CHECKS = {
    "csr": _check_compressed,
    "csc": _check_compressed,
    "bsr": _check_compressed,
    "coo": _check_coordinates,
    "dia": _check_diagonals,
}


def _refuse(fault: str) -> NoReturn:
    raise ValueError(f"X is a sparse matrix whose parts do not fit together: {fault}. Build it again from its entries.")
