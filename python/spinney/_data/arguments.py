"""Conversion of arguments other than tables to arrays: targets, weights, groups, offsets, costs.

`numpy.asarray` would drop masks, read dates as counts of their unit and wrap a sparse matrix as one object.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.cells import kind_of
from spinney._data.columns import is_instance_of

Array = NDArray[Any]


def masked_array(values: object) -> np.ma.MaskedArray[Any, Any] | None:
    """Return a masked array, or a list of these, as one masked array; None for anything else."""
    if isinstance(values, np.ma.MaskedArray):
        return values
    if isinstance(values, (list, tuple)) and any(isinstance(value, np.ma.MaskedArray) for value in values):
        return np.ma.array(values)
    return None


def argument_array(values: object, name: str) -> Array:
    """Return an argument as an array; masked values are refused.

    Parameters
    ----------
    values : array-like
        The argument.
    name : str
        Its name, for messages.

    Returns
    -------
    ndarray
        Of any dtype and shape, in place where possible.
    """
    if is_instance_of(values, "scipy.sparse", "sparray", "spmatrix"):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required. Use '.toarray()' to convert it."
        )
    masked = masked_array(values)
    if masked is not None:
        mask = np.ma.getmaskarray(masked)
        if mask.any():
            row = int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0]) if mask.ndim else 0
            raise ValueError(
                f"{name} has {int(mask.sum())} masked value(s), the first in row {row}, and must not have any. Drop "
                "these rows, or replace the masked values."
            )
        return np.asarray(np.ma.getdata(masked))
    return rectangular_array(values, name)


def rectangular_array(values: object, name: str) -> Array:
    """Return `numpy.asarray` of values; the error for rows of different lengths states what to do."""
    try:
        return np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ValueError(f"The rows of {name} differ in length; every row needs one value per column.") from None
        raise


def argument_numbers(values: object, name: str, remedy: str = "Convert it to numbers") -> NDArray[np.float64]:
    """Return an argument as numbers; the error for any other value names its row."""
    array = argument_array(values, name)
    if _holds_times(array):
        raise TypeError(
            f"{name} holds dates or times, whose numbers depend on their unit. Convert them to numbers in the unit "
            "that you want, such as days: (dates - numpy.datetime64('2020-01-01')) / numpy.timedelta64(1, 'D')."
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers.")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must hold numbers{_first_non_number(array)}. {remedy}.") from None


def _holds_times(array: Array) -> bool:
    if array.dtype.kind == "O":
        return any(kind_of(type_) in ("date", "time") for type_ in set(map(type, array.ravel().tolist())))
    return array.dtype.kind in "mM"


def _first_non_number(array: Array) -> str:
    """Return the end of a sentence that names the first value that is not a number."""
    for row, values in enumerate(np.atleast_1d(array).tolist()):
        for value in values if isinstance(values, list) else [values]:
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                return f": row {row} has {value!r:.100}"
    return ""


_LARGEST_SIZE = 2**62
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def read_size(size: int | str, name: str) -> int:
    """Return a size as a number of bytes; `name` is the argument, for messages."""
    if isinstance(size, int) and not isinstance(size, bool) and 0 < size <= _LARGEST_SIZE:
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", size.lower()) if isinstance(size, str) else None
    if match is None:
        raise ValueError(f"{name} must be a number of bytes, or text such as '500MB' or '2GB', not {size!r}.")
    number, unit, binary = match.groups()
    scale = _UNITS[unit]
    if binary and unit:
        scale = 1024 ** (" kmgt".index(unit))
    return max(1, min(_LARGEST_SIZE, round(float(number) * scale)))
