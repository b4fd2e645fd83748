"""Typical rows of each class: where members of the class lie thickest by proximity (Breiman and Cutler 2003)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinney._data import Schema, read_table
from spinney._data.dates import cells_of
from spinney._data.display.frames import frame_of
from spinney._data.feature import Feature
from spinney._data.value_arrays import input_values
from spinney._forest.proximities.neighbourhood import Neighbourhood
from spinney._forest.proximities.proximity import Kind, Proximities

Floats = NDArray[np.float64]
_MOST_NEIGHBOURS = 100
_STATISTICS = ("lower quartile", "median", "upper quartile")


@dataclass(frozen=True)
class Prototype:
    """A typical row, and the rows that it stands for.

    Attributes
    ----------
    row : int
        The row whose neighbours are most often of the class.
    members : ndarray of int
        Neighbours of the class, itself among them.
    """

    row: int
    members: NDArray[np.intp]


class ClassPrototypes(Neighbourhood):
    """Methods of forests for classes."""

    def prototypes(
        self, X: Any, y: Any, *, n_prototypes: int = 1, n_neighbors: int | None = None, kind: Kind = "all"
    ) -> Any:
        """Describe typical rows of each class.

        For each class, the row with the most members of the class among its nearest is found; the prototype is the
        median of these members in each column, or their most frequent category. A further prototype is sought among
        the rows that belong to none yet.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        n_prototypes : int, default=1
            Prototypes of each class, as far as there are rows for them.
        n_neighbors : int, optional
            Nearest rows that are looked at, the row itself among them; None: as many as the smallest class has, at
            most 100.
        kind : {"all", "oob"}, default="all"
            Trees that count, as of `proximity`. "oob" needs the rows that the forest was fitted on.

        Returns
        -------
        frame
            Of polars or pyarrow if `X` is, else of pandas where it is installed. Three rows per prototype: the lower
            quartile, the median and the upper quartile, in the columns of `X`; categories have their most frequent
            value beside the median and none beside the quartiles. Before them stand the class, the number of the
            prototype (from 1), the statistic, the position of the row, and the number of its neighbours of the class.

        Examples
        --------
        >>> import spinney
        >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
        >>> forest = spinney.RandomForestClassifier(random_state=0).fit(X, y)
        >>> typical = forest.prototypes(X, y).query("statistic == 'median'")
        >>> typical[["class", "island", "bill_length_mm"]].to_string(index=False).splitlines()[0].split()
        ['class', 'island', 'bill_length_mm']
        """
        if kind not in ("all", "oob"):
            raise ValueError(f"kind must be 'all' or 'oob', not {kind!r}.")
        for name, number in (("n_prototypes", n_prototypes), ("n_neighbors", n_neighbors)):
            if number is not None and (not isinstance(number, Integral) or number < 1):
                raise ValueError(f"{name} must be a whole number of at least 1, not {number!r}.")
        resting = self._resting(X, kind)
        target = self._read_target(y, resting.n_rows)  # type: ignore[attr-defined]
        if len(target.classes) > 1:
            raise ValueError("Prototypes are of one output's classes. Pass a forest and a y with one column.")
        codes = self._engine_target(target)[0][:, 0]  # type: ignore[attr-defined]
        k = n_neighbors or min(_MOST_NEIGHBOURS, int(np.bincount(codes)[np.unique(codes)].min()))
        proximities = Proximities.between(resting, resting, kind, True)
        near = proximities.sparse(self.n_jobs, k - 1) if k > 1 else None
        found = [
            (target.classes[0][c], number, prototype)
            for c in np.unique(codes).tolist()
            for number, prototype in enumerate(_of_class(codes == c, near, n_prototypes), start=1)
        ]
        return _frame(self.schema_, X, found, type(self).__name__)  # type: ignore[attr-defined]


def _of_class(is_member: NDArray[np.bool_], near: csr_array | None, n_prototypes: int) -> list[Prototype]:
    free = is_member.copy()
    found: list[Prototype] = []
    while len(found) < n_prototypes and free.any():
        # the share of a proximity in a count below 1 breaks ties: the nearer neighbours win
        count = free.astype(np.float64)
        if near is not None:
            count += (near > 0).astype(np.float64) @ free + (near @ free) / (1 + near.shape[0])
        row = int(np.where(free, count, -1.0).argmax())
        neighbours = near.indices[near.indptr[row] : near.indptr[row + 1]] if near is not None else np.zeros(0, np.intp)
        members = np.sort(np.append(neighbours[free[neighbours]], row))
        found.append(Prototype(row, members))
        free[members] = False
    return found


def _frame(schema: Schema, X: Any, found: list[tuple[Any, int, Prototype]], estimator: str) -> Any:
    values = input_values(schema, read_table(X), estimator, "missing")
    columns: dict[str, list[Any]] = {}
    n_each = len(_STATISTICS)
    for name, cells in (
        ("class", [label.item() if hasattr(label, "item") else label for label, *_ in found]),
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
    """Quartiles and median; the most frequent category in the middle; positions in an order as the values there."""
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
