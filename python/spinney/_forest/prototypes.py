"""Prototypes: typical rows of each class by proximity (Breiman and Cutler 2003)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinney._data import Schema, read_table
from spinney._data.cells import cells_of
from spinney._data.display import frame_of
from spinney._data.feature import Feature
from spinney._data.schema import input_values
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.parameters import require_whole
from spinney._estimator.table_estimator import TableEstimator
from spinney._forest.proximities import Kind, Proximities, RowLeaves, check_kind_among_rows, row_leaves

_MOST_NEIGHBOURS = 100
_STATISTICS = ("lower quartile", "median", "upper quartile")


@dataclass(frozen=True)
class Prototype:
    """A typical row, and the rows that it represents.

    Attributes
    ----------
    row : int
        The row whose neighbours are most often of the class.
    members : ndarray of int
        Neighbours of the class, including the row itself.
    """

    row: int
    members: NDArray[np.intp]


def find_prototypes(
    leaves: RowLeaves,
    codes: NDArray[np.int32],
    kind: Kind,
    n_prototypes: int,
    n_neighbors: int | None,
    n_jobs: int | None,
) -> list[tuple[int, int, Prototype]]:
    """Return the class, number (from 1) and prototype of each prototype, from the class of each row."""
    for name, number in (("n_prototypes", n_prototypes), ("n_neighbors", n_neighbors)):
        if number is not None:
            require_whole(name, number)
    k = n_neighbors or min(_MOST_NEIGHBOURS, int(np.bincount(codes)[np.unique(codes)].min()))
    near = Proximities.between(leaves, leaves, kind, True).sparse(n_jobs, k - 1) if k > 1 else None
    return [
        (c, number, prototype)
        for c in np.unique(codes).tolist()
        for number, prototype in enumerate(_of_class(codes == c, near, n_prototypes), start=1)
    ]


def _of_class(is_member: NDArray[np.bool_], near: csr_array | None, n_prototypes: int) -> list[Prototype]:
    free = is_member.copy()
    found: list[Prototype] = []
    while len(found) < n_prototypes and free.any():
        # proximities, scaled below 1, break ties in favour of nearer neighbours
        count = free.astype(np.float64)
        if near is not None:
            count += (near > 0).astype(np.float64) @ free + (near @ free) / (1 + near.shape[0])
        row = int(np.where(free, count, -1.0).argmax())
        neighbours = near.indices[near.indptr[row] : near.indptr[row + 1]] if near is not None else np.zeros(0, np.intp)
        members = np.sort(np.append(neighbours[free[neighbours]], row))
        found.append(Prototype(row, members))
        free[members] = False
    return found


def prototype_frame(
    schema: Schema, X: TableLike, labels: NDArray[Any], found: list[tuple[int, int, Prototype]], estimator: str
) -> Any:
    """Return the prototypes as a table of the library of X: three rows for each."""
    values = input_values(schema, read_table(X), estimator, "missing")
    columns: dict[str, list[Any]] = {}
    n_each = len(_STATISTICS)
    for name, cells in (
        ("class", [label for c, *_ in found for label in labels[c : c + 1].tolist()]),
        ("prototype", [number for _, number, _ in found]),
        ("row", [prototype.row for *_, prototype in found]),
        ("n_members", [len(prototype.members) for *_, prototype in found]),
    ):
        columns[_free_name(name, schema)] = [cell for cell in cells for _ in range(n_each)]
    columns[_free_name("statistic", schema)] = list(_STATISTICS) * len(found)
    for feature, column in zip(schema.features, values, strict=True):
        columns[feature.name] = [
            cell for *_, prototype in found for cell in _summary(feature, column[prototype.members])
        ]
    if type(X).__module__.partition(".")[0] == "pyarrow" and "pyarrow" in sys.modules:
        return sys.modules["pyarrow"].table(columns)
    return frame_of(columns, "polars" if type(X).__module__.partition(".")[0] == "polars" else None)


def _free_name(name: str, schema: Schema) -> str:
    while name in schema.names:
        name += "_"
    return name


def _summary(feature: Feature, values: Floats) -> list[Any]:
    """Return quartiles and median; for categories, the most frequent one in place of the median."""
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return [None] * 3
    if feature.kind in ("category", "boolean"):
        most = int(np.bincount(values.astype(np.int64)).argmax())
        return [None, feature.categories[most] if feature.categories else bool(most), None]
    if feature.kind == "ordered":
        places = np.quantile(values, [0.25, 0.5, 0.75], method="lower").astype(np.int64)
        return [feature.categories[place] for place in places.tolist()]
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    return cells_of(quartiles, feature.resolution, feature.clock) if feature.clock else quartiles.tolist()


def prototypes(
    forest: TableEstimator,
    X: TableLike,
    y: ColumnLike,
    *,
    n_prototypes: int = 1,
    n_neighbors: int | None = None,
    kind: Kind = "all",
) -> Any:
    """Return typical rows of each class, and the spread of the rows around them.

    For each class, the row with the most members of the class among its nearest neighbours is found; the prototype is
    the median of these members in each column, or their most frequent category. Further prototypes are found among the
    rows that belong to no prototype yet.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their classes.
    n_prototypes : int, default=1
        Number of prototypes of each class, if it has enough rows.
    n_neighbors : int, optional
        Number of nearest neighbours, including the row itself; None: the size of the smallest class, at most 100.
    kind : {"all", "oob"}, default="all"
        Which trees are used; see `proximity`. With "oob", `X` must be the rows that the forest was fitted on.

    Returns
    -------
    frame
        A polars or pyarrow table if `X` is one, else a pandas frame if pandas is installed. Three rows per prototype:
        the lower quartile, the median and the upper quartile, in the columns of `X`; for categories, the most frequent
        value in the row of the median. The first columns are the class, the number of the prototype (from 1), the
        position of the row around which it was found, the number of that row's neighbours in the class, and the
        statistic.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> forest = spinney.RandomForestClassifier(random_state=0).fit(X, y)
    >>> typical = forest.prototypes(X, y).query("statistic == 'median'")
    >>> typical[["class", "island", "bill_length_mm"]].to_string(index=False).splitlines()[0].split()
    ['class', 'island', 'bill_length_mm']
    """
    check_kind_among_rows(kind)
    leaves = row_leaves(forest, X, kind)
    target = forest._task.read(y, leaves.n_rows)
    if target.classes is None or target.n_outputs > 1:
        raise ValueError("Prototypes need a single output. Pass a forest and a y with one column.")
    found = find_prototypes(leaves, target.array[:, 0], kind, n_prototypes, n_neighbors, forest.n_jobs)
    return prototype_frame(forest.schema_, X, target.classes[0], found, type(forest).__name__)
