"""Numbers that look random and are a function of what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of each number over all 64: the finaliser of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def keys_of(values: NDArray[Any], first: int) -> NDArray[np.uint64]:
    """Return a number for each row of numbers, as the engine's `fingerprints` of columns counted from `first`.

    It depends on the values alone: -0 is 0, and one NaN like any other.
    """
    keys = np.zeros(len(values), dtype=np.uint64)
    for j, column in enumerate(values.T, start=first):
        numbers = np.asarray(column, dtype=np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        keys += mixed(numbers.view(np.uint64) + np.uint64((j + 1) * GOLDEN % 2**64))
    return keys


def random_bits(seed: int, *parts: object) -> NDArray[np.uint64]:
    """Return 64 bits for each tuple of numbers, broadcast against each other, as a function of these and the seed."""
    bits = mixed(np.array([seed], dtype=np.uint64))
    for part in parts:
        bits = mixed(bits + (np.atleast_1d(np.asarray(part, dtype=np.uint64)) + np.uint64(1)) * np.uint64(GOLDEN))
    return bits


def random_shares(seed: int, *parts: object) -> NDArray[np.float64]:
    """Return uniform numbers from 0 up to 1, drawn as by `random_bits`."""
    return np.asarray((random_bits(seed, *parts) >> np.uint64(11)) * 2.0**-53)
