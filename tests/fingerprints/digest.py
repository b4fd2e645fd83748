"""Short hashes of anything a model gives, of every bit of it."""

import hashlib

import numpy as np


def digest(value):
    """Return 16 hexadecimal digits."""
    hasher = hashlib.sha256()
    _add(hasher, value)
    return hasher.hexdigest()[:16]


def _add(hasher, value):
    if isinstance(value, bytes):
        hasher.update(value)
    elif value is None or isinstance(value, str):
        hasher.update(repr(value).encode())
    elif isinstance(value, dict):
        for key, entry in value.items():
            _add(hasher, str(key))
            _add(hasher, entry)
    elif isinstance(value, list | tuple):
        hasher.update(f"{len(value)}:".encode())
        for entry in value:
            _add(hasher, entry)
    elif hasattr(value, "indptr"):
        ordered = value.copy()
        ordered.sort_indices()
        _add(hasher, [ordered.indptr, ordered.indices, ordered.data])
    else:
        _add_array(hasher, np.asarray(value))


def _add_array(hasher, array):
    """Numbers as 64 bits, the lowest byte first. A NaN is a NaN: 0/0 has the sign bit on some processors."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array).astype("<f8")
    elif array.dtype.kind in "iub":
        array = array.astype("<i8")
    elif array.dtype.kind in "OUS":
        hasher.update(repr(array.tolist()).encode())
        return
    else:
        raise TypeError(f"no digest of {array.dtype}")
    hasher.update(f"{array.dtype.kind}{array.shape}".encode())
    hasher.update(np.ascontiguousarray(array).tobytes())
