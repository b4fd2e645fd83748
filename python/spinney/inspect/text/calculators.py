"""Calculators for teaching: impurities and gains of counts, and the search table of all columns.

They use the functions of `split_tables`, the reference implementation of the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spinney._data import read_table
from spinney._data.columns import default_names
from spinney._data.display import Backend, ShownAsTable, align, fixed, frame_of, plural
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney.inspect.text.split_tables import (
    CLASS_CRITERIA,
    SplitTable,
    Unit,
    check_criterion,
    node_impurity,
    split_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def impurity(counts: ArrayLike, criterion: str = "gini", *, unit: Unit = "bits") -> float:
    """Return the impurity of a node from its class counts.

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Rows, or their weights, by class.
    criterion : {"gini", "p(1-p)", "entropy", "misclassification"}, default="gini"
        "gini" is 1 − Σ p², which is 2 p (1 − p) for two classes; "p(1-p)" is half of it, for two classes only.
    unit : {"bits", "nats"}, default="bits"
        Unit of the entropy: logarithms to base 2, or natural logarithms.

    Returns
    -------
    float
        0 for a pure node.

    Examples
    --------
    >>> from spinney.teaching import impurity
    >>> impurity([5, 5]), impurity([5, 5], "p(1-p)"), impurity([5, 5], "entropy")
    (0.5, 0.25, 1.0)
    """
    return float(node_impurity(_counts(counts, criterion), criterion, unit))


def gain(parent: ArrayLike, children: Sequence[ArrayLike], criterion: str = "gini", *, unit: Unit = "bits") -> float:
    """Return the decrease of the impurity by a split: the parent's minus the weighted mean of the children's.

    For two criteria, another quantity is returned instead: the gain ratio of C4.5, which is the decrease of
    the entropy divided by the entropy of the children's sizes, and the χ² statistic of the children's class counts.

    Parameters
    ----------
    parent : array-like of shape (n_classes,)
        Class counts before the split.
    children : sequence of array-like of shape (n_classes,)
        Class counts of two or more children, which add up to the parent's.
    criterion : str, default="gini"
        As in `impurity`, or "gain_ratio" or "chi2".
    unit : {"bits", "nats"}, default="bits"
        As in `impurity`.

    Returns
    -------
    float
        The gain.

    Examples
    --------
    Two splits with equal errors, of which the second leaves a pure node:

    >>> from spinney.teaching import gain
    >>> splits = [[300, 100], [100, 300]], [[200, 400], [200, 0]]
    >>> [round(gain([400, 400], children, "misclassification"), 3) for children in splits]
    [0.25, 0.25]
    >>> [round(gain([400, 400], children), 3) for children in splits]
    [0.125, 0.167]

    One branch for each row, and its gain ratio:

    >>> rows = [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> gain([2, 2], rows, "entropy"), gain([2, 2], rows, "gain_ratio")
    (1.0, 0.5)
    """
    of_counts = {"gain_ratio": "entropy", "chi2": "gini"}.get(criterion, criterion)
    before, parts = _counts(parent, of_counts), [_counts(child, of_counts) for child in children]
    if any(len(part) != len(before) for part in parts) or not np.allclose(np.sum(parts, axis=0), before):
        total = np.sum(parts, axis=0).tolist() if len({len(part) for part in parts}) == 1 else "different numbers"
        raise ValueError(f"The children must add up to the parent, {before.tolist()}, but they have {total}.")
    if criterion == "chi2":
        found, expected = np.array(parts), np.outer([part.sum() for part in parts], before / before.sum())
        return float(((found - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum())
    inside = sum(float(part.sum() * node_impurity(part, of_counts, unit)) for part in parts)
    decrease = float(node_impurity(before, of_counts, unit)) - inside / float(before.sum())
    if criterion != "gain_ratio":
        return decrease
    sizes = float(node_impurity(np.array([part.sum() for part in parts]), "entropy", unit))
    return decrease / sizes if sizes > 0 else 0.0


_OF_COUNTS = tuple(name for name in CLASS_CRITERIA if name not in ("chi2", "gain_ratio"))


def _counts(counts: ArrayLike, criterion: str) -> Floats:
    found = np.asarray(counts, dtype=np.float64)
    if found.ndim != 1 or len(found) < 2 or not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(f"Class counts must be two or more numbers of at least 0, not {counts!r}.")
    if not found.sum() > 0:
        raise ValueError("A node without rows has no impurity: all counts are 0.")
    check_criterion(criterion, _OF_COUNTS, len(found))
    return found


@dataclass(frozen=True, eq=False, repr=False)
class SearchTable(ShownAsTable):
    """Every split of every column with its gain; returned by `search_table`.

    Attributes
    ----------
    tables : dict from str to SplitTable
        The splits of each column, by its name. ``table["income"]`` returns the splits of that column.
    criterion : str
        The criterion.
    impurity : float
        Impurity before the split.

    Examples
    --------
    >>> from spinney.datasets import load_loans
    >>> from spinney.teaching import search_table
    >>> found = search_table(*load_loans(), criterion="p(1-p)")
    >>> found.best["cut"], round(found.best["gain"], 2)
    ('income ≤ 36', 0.11)
    """

    tables: dict[str, SplitTable]
    criterion: str
    impurity: float

    def __getitem__(self, column: str) -> SplitTable:
        return self.tables[column]

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))

    @property
    def best(self) -> dict[str, Any]:
        """The best split of all columns (in a tie, the first), with the name of its column as ``"column"``."""
        candidates = [table.best | {"column": name} for name, table in self.tables.items() if len(table)]
        if not candidates:
            raise ValueError("Every column has only one value, so there is no split.")
        ranking = self._ranking
        largest = max(split[ranking] for split in candidates)
        return next(split for split in candidates if split[ranking] >= largest - 1e-12 * (abs(largest) + self.impurity))

    @property
    def _ranking(self) -> str:
        """What the search maximises: the gain, or the score of criteria that have one."""
        return "score" if any("score" in table.columns for table in self.tables.values()) else "gain"

    def plot(self) -> Figure:
        """Plot the gain of each split, with a panel for each column and a ring around the best split.

        Returns
        -------
        Figure
            The figure.
        """
        from spinney.inspect.draw.teaching import draw_search

        return draw_search(self.tables, self.best, self._ranking, self.criterion)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the splits as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per split: `column`, and the columns of a `SplitTable`.
        """
        columns: dict[str, list[Any]] = {"column": []}
        for name, table in self.tables.items():
            columns["column"] += [name] * len(table)
            for key, values in table.columns.items():
                if key != "categories":
                    columns.setdefault(key, []).extend(values)
        return frame_of(columns, backend)

    def __repr__(self) -> str:
        return (
            f"<SearchTable: {plural(len(self), 'split')} of {plural(len(self.tables), 'column')} by {self.criterion}>"
        )

    def __str__(self) -> str:
        best = self.best["cut"] if len(self) else None
        shown = ["n_left", "n_right", "gain", *(["score"] if self._ranking == "score" else [])]
        rows, chosen = [["cut", *(name.removeprefix("n_") for name in shown)]], 0
        for table in self.tables.values():
            for cut, *values in zip(*(table.columns[key] for key in ("cut", *shown)), strict=True):
                chosen = len(rows) if cut == best and not chosen else chosen
                rows.append([cut, *(fixed(value, 4) if isinstance(value, float) else str(value) for value in values)])
        lines = align(rows)
        if chosen:
            lines[chosen] += "  ← best"
        return "\n".join([f"{self.criterion} before the split: {fixed(self.impurity, 4)}", *lines])


def search_table(
    X: TableLike,
    y: ColumnLike,
    *,
    criterion: str = "gini",
    unit: Unit = "bits",
    sample_weight: ColumnLike = None,
    categorical_features: Iterable[str | int] = (),
) -> SearchTable:
    """Return every split of every column that a tree would consider at its root, with its gain.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Classes, or numbers for a regression criterion.
    criterion, unit, sample_weight
        As in `spinney.split_table`.
    categorical_features : names or positions, optional
        Columns of numbers that are treated as categories.

    Returns
    -------
    SearchTable
        Prints as text; has `best`, `tables`, `to_frame()` and `plot()`.

    See Also
    --------
    spinney.split_table : The splits of one column.

    Examples
    --------
    >>> from spinney.datasets import load_loans
    >>> from spinney.teaching import search_table
    >>> X, y = load_loans()
    >>> print(search_table({"income": X["income"], "age": X["age"]}, y, criterion="p(1-p)")["income"])
    p(1-p) before the split: 0.2500
    cut            n_left  n_right  impurity_left  impurity_right    gain
    income ≤ 25.5       1        9         0.0000          0.2469  0.0278
    income ≤ 27.5       2        8         0.0000          0.2344  0.0625
    income ≤ 29         4        6         0.1875          0.2222  0.0417
    income ≤ 31         5        5         0.2400          0.2400  0.0100
    income ≤ 36         7        3         0.2041          0.0000  0.1071  ← best
    income ≤ 46         8        2         0.2344          0.0000  0.0625
    income ≤ 55         9        1         0.2469          0.0000  0.0278
    """
    table = read_table(X)
    names = table.names or default_names(table.n_columns)
    categories = {names[c] if isinstance(c, (int, np.integer)) else c for c in categorical_features}
    if unknown := categories - set(names):
        raise ValueError(f"categorical_features has {sorted(unknown)}, which X does not have as columns.")
    options: dict[str, Any] = {"criterion": criterion, "unit": unit, "sample_weight": sample_weight}
    tables = {name: split_table(X, y, j, categorical=name in categories, **options) for j, name in enumerate(names)}
    return SearchTable(tables, criterion, next(iter(tables.values())).impurity)
