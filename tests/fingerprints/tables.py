"""Tables whose numbers are made from integers alone, so that they are the same on every machine.

NumPy's random normals, sines and logarithms come from a mathematical library that rounds as it likes; a quotient of two
integers is rounded in one way only.
"""

import numpy as np

N_ROWS = 150


def whole(stream, below, n=N_ROWS):
    """Integers from 0 to below - 1, by splitmix64 of the row's number: `stream` is the column."""
    with np.errstate(over="ignore"):
        word = (np.arange(n, dtype=np.uint64) + np.uint64(1000 * stream + 1)) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return (word % np.uint64(below)).astype(np.int64)


NUMBERS = np.column_stack([whole(1, 1000) / 7, whole(2, 40) / 3, whole(3, 5000) / 11, whole(4, 12), whole(5, 300) / 13])
HOLES = np.where(np.column_stack([whole(s, 9) == 0 for s in range(10, 15)]), np.nan, NUMBERS)
GROUPS = whole(6, 12)
TOWNS = np.array(["Ayr", "Ely", "Rye", "Wem", "Ulm", "Bray"], dtype=object)[whole(7, 6)]
MIXED = {"length": HOLES[:, 0], "width": HOLES[:, 1], "town": TOWNS, "plot": whole(8, 30).astype(str).astype(object)}
SUM = NUMBERS[:, 0] / 9 + 3 * NUMBERS[:, 1] - NUMBERS[:, 2] / 50 + 2 * (NUMBERS[:, 3] > 6) * NUMBERS[:, 3]
VALUES = SUM + 5 * (TOWNS == "Rye") + whole(9, 700) / 101
COUNTS = whole(15, 4) + (NUMBERS[:, 1] > 6) * whole(16, 5)
CLASSES = np.array(["low", "mid", "top"])[np.searchsorted([10, 40], VALUES)]
TWO = np.where(VALUES > 28, "yes", "no")
WEIGHTS = (whole(17, 50) + 1) / 17
SURVIVAL = np.column_stack([NUMBERS[:, 0] + 1, whole(18, 3) > 0])
BOTH = np.column_stack([VALUES, COUNTS / 3])
NEW = HOLES[::3] + 1 / 3

# Long enough for sums in blocks, ranks of more than 8 bits and every path that is for more than a few rows.
N_LONG = 6000
LONG = np.column_stack([whole(s, 10 ** (s % 5 + 1), N_LONG) / 7 for s in range(40, 48)])
LONG_VALUES = LONG[:, 1] - LONG[:, 3] / 90 + (LONG[:, 6] > 7) * LONG[:, 2] / 13 + whole(48, 1000, N_LONG) / 99
LONG_CLASSES = np.searchsorted([-40.0, 0.0, 30.0], LONG_VALUES)
