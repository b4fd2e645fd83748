"""Names of the types that cross the seams of the package."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A caller's table, whatever its kind: NumPy array, pandas, polars or pyarrow frame, sparse matrix, list of rows, stream
# or collection. `read_table` finds out which at the door; nothing behind the door takes it.
TableLike: TypeAlias = object

# One value per row, as callers pass it: a target, weights, groups, offsets; for streams also the name of a column.
ColumnLike: TypeAlias = ArrayLike | None

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
