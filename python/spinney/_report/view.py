"""A table through the eyes of the tree: numbers of each column, texts of single cells, samples of rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.pick import pick_table
from spinney._words.digits import elide, one_line, shortest
from spinney.reading.reader import TreeReader

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_CELL_LETTERS = 28


class View:
    """Rows of a table, read with the schema of a fitted tree.

    Parameters
    ----------
    tree : estimator
        A fitted decision tree.
    X : table
        Rows.
    """

    def __init__(self, tree: Any, X: Any) -> None:
        self.reader = TreeReader(tree)
        self.table = pick_table(X)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [feature.name for feature in self.reader.features]

    @cached_property
    def numbers(self) -> list[Floats]:
        """By column: numbers, or codes of categories; NaN is missing."""
        return self.reader.values(self.table.native)

    def is_category(self, column: int) -> bool:
        """Whether a column holds categories."""
        return bool(self.reader.features[column].categories)

    def categories(self, column: int) -> list[str]:
        """Names of the categories of a column, with one more for those that did not occur at fit."""
        return [one_line(category) for category in self.reader.features[column].categories] + ["something else"]

    def is_date(self, column: int) -> bool:
        """Whether a column holds points in time."""
        return bool(self.reader.features[column].clock)

    def text(self, row: int, column: int) -> str:
        """Write one cell."""
        value = float(self.numbers[column][row])
        feature = self.reader.features[column]
        if feature.kind == "number" and not feature.clock and not np.isnan(value):
            return shortest(value, 5)
        return elide(self.reader.value_text(column, value), _CELL_LETTERS)

    def take(self, rows: Places) -> Any:
        """Take rows, as a table of the same kind."""
        return self.table.take(rows)


def sample(n_rows: int, most: int, seed: int = 0) -> Places:
    """Draw at most `most` of some rows, in their order, the same ones every time."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:most]).astype(np.intp)
