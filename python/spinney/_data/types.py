"""Type aliases of arguments, used across packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A caller's table of any kind: NumPy array, pandas, polars or pyarrow frame, sparse matrix, list of rows, stream or
# collection. `read_table` converts it.
TableLike: TypeAlias = object

# One value per row, as callers pass it: a target, weights, groups, offsets; for streams also the name of a column.
ColumnLike: TypeAlias = ArrayLike | None

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# Parameters of estimators: a seed; columns by name, position or mask; a number for each column or class, in order or by
# name; groups of columns, or the name of a grouping.
RandomState: TypeAlias = int | np.random.RandomState | None
ColumnNames: TypeAlias = ArrayLike | None
ByColumn: TypeAlias = ArrayLike | Mapping[str, float] | None
ByClass: TypeAlias = ArrayLike | Mapping[Any, Any] | Sequence[Mapping[Any, float]] | None
ColumnGroups: TypeAlias = Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]] | str | None
