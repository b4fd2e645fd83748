"""Exclusive feature bundling: columns that are hardly ever nonzero in the same row become one column.

A reference in plain NumPy for lectures. Boosting of spinney needs no bundles: its histograms read only the rows of a
sparse column that are not at its most frequent value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from spinney._data import read_table
from spinney._data.display import align, elide, plural
from spinney._data.schema import Schema, column_values
from spinney._data.types import Floats, TableLike

_LONGEST = 60  # letters of the names of a bundle


@dataclass(frozen=True, eq=False)
class ColumnBundles:
    """Bundles of columns; returned by `bundle_columns`.

    Attributes
    ----------
    bundles : list of list of str
        Names of the columns of each bundle.
    codes : ndarray of shape (n_rows, n_bundles)
        The bundles as columns. 0: all columns are 0; other codes stand for the nonzero values of the first column in
        ascending order, then for those of the second and so on. Where several columns of a bundle are not 0, the last
        one counts.
    conflicts : ndarray of shape (n_bundles,)
        Number of rows of each bundle in which several columns are not 0.
    """

    bundles: list[list[str]]
    codes: NDArray[np.intp] = field(repr=False)
    conflicts: NDArray[np.intp]
    _places: list[list[int]] = field(repr=False)
    _values: list[list[Floats]] = field(repr=False)  # nonzero values of each column of each bundle

    def restore(self) -> Floats:
        """Return the table that the bundles stand for, equal to the original in rows without conflicts.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Columns in the order of the original table.
        """
        table = np.zeros((len(self.codes), sum(map(len, self._places))))
        for b, (places, values) in enumerate(zip(self._places, self._values, strict=True)):
            first = 1
            for j, own in zip(places, values, strict=True):
                rows = np.flatnonzero((self.codes[:, b] >= first) & (self.codes[:, b] < first + len(own)))
                table[rows, j] = own[self.codes[rows, b] - first]
                first += len(own)
        return table

    def __len__(self) -> int:
        return len(self.bundles)

    def __str__(self) -> str:
        rows = [["columns", "codes", "conflicts"]]
        for names, values, n_conflicts in zip(self.bundles, self._values, self.conflicts, strict=True):
            rows.append([elide(", ".join(names), _LONGEST), str(1 + sum(map(len, values))), str(n_conflicts)])
        n_columns = sum(map(len, self.bundles))
        return "\n".join([f"{plural(n_columns, 'column')} in {plural(len(self), 'bundle')}", *align(rows)])


def bundle_columns(X: TableLike, *, max_conflicts: float = 0.0) -> ColumnBundles:
    """Bundle columns that are hardly ever nonzero in the same row, as LightGBM does, for lectures and small tables.

    Finding the fewest bundles means colouring the graph whose edges join columns that are nonzero in a common row. The
    greedy rule takes the columns with the most nonzero rows first, and adds each to the first bundle with which it has
    few enough conflicts, or opens a new one.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Numeric or boolean columns. Missing values are not 0.
    max_conflicts : float, default=0.0
        Largest fraction of rows in which several columns of a bundle may be nonzero; there the bundle loses values.

    Returns
    -------
    ColumnBundles
        Prints as text; has `bundles`, `codes`, `conflicts` and `restore`.

    References
    ----------
    G. Ke and others (2017). LightGBM: a highly efficient gradient boosting decision tree. Advances in Neural
    Information Processing Systems 30.

    Examples
    --------
    >>> from spinney.teaching import bundle_columns
    >>> X = {"red": [1, 0, 0, 0], "green": [0, 1, 0, 0], "blue": [0, 0, 1, 1], "size": [3, 1, 2, 2]}
    >>> found = bundle_columns(X)
    >>> print(found)
    4 columns in 2 bundles
    columns           codes  conflicts
    size                  4          0
    blue, red, green      4          0
    >>> found.codes[:, 1].tolist()
    [2, 3, 1, 1]
    """
    if not isinstance(max_conflicts, Real) or not 0 <= max_conflicts < 1:
        raise ValueError(
            f"max_conflicts must be a fraction of the rows, at least 0 and below 1, not {max_conflicts!r}."
        )
    table = read_table(X)
    schema = Schema.learn(table)
    if wrong := [feature.name for feature in schema.features if feature.kind not in ("number", "boolean")]:
        raise ValueError(f"Column {wrong[0]!r} is not numeric. Encode categories as columns of 0 and 1 first.")
    columns = column_values(schema, table, "bundle_columns", "missing")
    is_used = [column != 0 for column in columns]
    budget = int(max_conflicts * table.n_rows + 1e-9)  # 0.29 of 100 rows are 29
    places: list[list[int]] = []
    counts: list[NDArray[np.intp]] = []  # nonzero columns of each row, by bundle
    for j in sorted(range(len(columns)), key=lambda j: -np.count_nonzero(is_used[j])):
        b = next((b for b, own in enumerate(counts) if np.count_nonzero(own + is_used[j] > 1) <= budget), len(counts))
        if b == len(counts):
            places.append([])
            counts.append(np.zeros(table.n_rows, dtype=np.intp))
        places[b].append(j)
        counts[b] = counts[b] + is_used[j]
    values = [[np.unique(columns[j][is_used[j]]) for j in own] for own in places]
    codes = np.zeros((table.n_rows, len(places)), dtype=np.intp)
    for b, own in enumerate(places):
        first = 1
        for j, distinct in zip(own, values[b], strict=True):
            codes[is_used[j], b] = first + np.searchsorted(distinct, columns[j][is_used[j]])
            first += len(distinct)
    names = [[schema.features[j].name for j in own] for own in places]
    conflicts = np.array([np.count_nonzero(own > 1) for own in counts], dtype=np.intp)
    return ColumnBundles(names, codes, conflicts, places, values)
