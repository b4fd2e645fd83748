"""The names of the rows of a table, by which a study and its report refer to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from spinney._data.columns import is_instance_of
from spinney._data.display import one_line
from spinney._data.file_readers import ReadTable
from spinney._data.select import PickTable
from spinney._evaluate.problem import Array, Rows


@dataclass(frozen=True, eq=False)
class RowNames:
    """Names of rows: numbers in a file, labels of an index, values of a column, or positions.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
    note : str
        What the names are, in a sentence.
    """

    values: Array
    note: str

    @classmethod
    def of_file(cls, read: ReadTable) -> Self:
        """Return the numbers of rows in a file, as ``spinney explain --row`` counts them: from 1."""
        rows = np.arange(read.frame.height) if read.rows is None else read.rows
        return cls(rows + 1, f"Rows are numbered as in {read.name}: the first row of data is row 1.")

    @classmethod
    def of_table(cls, table: PickTable) -> Self:
        """Return the index labels of a pandas frame, else positions from 0."""
        if is_instance_of(table.native, "pandas", "DataFrame"):
            return cls(_objects(table.native.index.tolist()), "Rows are named by the index of the table.")
        return cls(np.arange(table.n_rows), "Rows are numbered by their position in the table, from 0.")

    @classmethod
    def of_column(cls, values: Array, column: str) -> Self:
        """Return the values of a column that identifies rows."""
        return cls(_objects(values.tolist()), f"Rows are named by the column {column!r}.")

    def take(self, rows: Rows) -> Self:
        """Return the names of some rows."""
        return replace(self, values=self.values[rows])

    def texts(self, rows: Rows) -> list[str]:
        """Return the names of some rows as text."""
        return [one_line(str(value)) for value in self.values[rows].tolist()]


def _objects(values: list[Any]) -> Array:
    """Return values as an array of one dimension, also if they are tuples."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
