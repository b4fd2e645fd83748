"""Tables and columns as callers may pass them."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from spinney._data.columns import RawTable


class ArrowStream(Protocol):
    """A table that offers the Arrow C stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class Frame(Protocol):
    """A table with named columns: pandas, polars, pyarrow, Dask."""

    @property
    def columns(self) -> Any: ...


class Matrix(Protocol):
    """A matrix: NumPy, SciPy sparse, Dask."""

    @property
    def shape(self) -> Any: ...


TableLike = ArrayLike | ArrowStream | Frame | Matrix | RawTable
