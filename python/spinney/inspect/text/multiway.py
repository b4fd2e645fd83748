"""ID3 and C4.5: trees with a branch for each category, and rows with missing values divided among all branches.

A reference in plain NumPy for lectures and small tables; `spinney.DecisionTreeClassifier` has binary splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature, read_table
from spinney._data.columns import default_names
from spinney._data.display import fixed
from spinney._data.feature import feature_values, learn_feature
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.target import read_classes
from spinney.inspect.text.split_tables import node_impurity

Codes = NDArray[np.intp]
_SMALLEST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class MultiwayTree:
    """A node of a tree with several branches, with all nodes below it; returned by `multiway_tree`.

    `spinney.plot_tree` and `spinney.tree_svg` draw it.

    Attributes
    ----------
    weights : ndarray of shape (n_classes,)
        Weight of the training rows of each class; fractional below a split on a column with missing values.
    column : int or None
        Position of the column of the split; None in a leaf.
    threshold : float or None
        Of a numeric column: rows below or at it take the first branch, the others the second.
    branches : dict
        Child nodes, by the code of their category, or 0 and 1 for a numeric column.
    gains : dict
        Gain and gain ratio, in bits, of the best split of each column that has one, by column name.
    """

    weights: Floats
    column: int | None
    threshold: float | None
    branches: dict[int, MultiwayTree] = field(repr=False)
    gains: dict[str, tuple[float, float]] = field(repr=False)
    _classes: NDArray[Any] = field(repr=False)
    _features: tuple[Feature, ...] = field(repr=False)
    _names: tuple[str, ...] = field(repr=False)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return sum(branch.n_leaves for branch in self.branches.values()) or 1

    @property
    def depth(self) -> int:
        """Number of splits on the longest path to a leaf."""
        return 1 + max((branch.depth for branch in self.branches.values()), default=-1)

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities; a row with a missing value is divided among the branches as the training rows were.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, with the columns in the order of training.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of the sorted labels.
        """
        table = read_table(X)
        if table.n_columns != len(self._features):
            raise ValueError(f"X has {table.n_columns} columns, and the tree was grown on {len(self._features)}.")
        values = np.column_stack([
            feature_values(feature, table.column(j), table.n_rows, "missing", self._names[j])
            for j, feature in enumerate(self._features)
        ])  # fmt: skip
        found = np.zeros((table.n_rows, len(self._classes)))
        self._add(values, np.ones(table.n_rows), found)
        return found

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Most probable class of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, with the columns in the order of training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return np.asarray(self._classes[self.predict_proba(X).argmax(axis=1)])

    def _add(self, values: Floats, weight: Floats, found: Floats) -> None:
        """Add the class probabilities of the leaves that rows reach, times the fraction of the row that does."""
        if self.column is None:
            found += weight[:, np.newaxis] * (self.weights / self.weights.sum())
            return
        for code, share in _branch_weights(self, values[:, self.column], weight):
            self.branches[code]._add(values, share, found)

    def __str__(self) -> str:
        return "\n".join(self._lines("all", 0))

    def _lines(self, condition: str, level: int) -> Iterator[str]:
        counts = ", ".join(f"{value:.3g}" for value in self.weights)
        label = f" → {self._classes[self.weights.argmax()]}" if self.column is None else ""
        yield f"{'    ' * level}{condition}: {counts}{label}"
        for code, branch in self.branches.items():
            yield from branch._lines(self._condition(code), level + 1)

    def _condition(self, code: int) -> str:
        assert self.column is not None
        return f"{self._names[self.column]} {self.branch_text(code)}"

    def branch_text(self, code: int, decimals: int | None = None) -> str:
        """Return the condition of a branch without the name of the column.

        Parameters
        ----------
        code : int
            Key of the branch.
        decimals : int, optional
            Decimals of a threshold; None: at most 4.

        Returns
        -------
        str
            Such as "= sun" or "≤ 77.5".
        """
        assert self.column is not None
        if self.threshold is None:
            return f"= {self._features[self.column].categories[code]}"
        threshold = fixed(self.threshold, 4 if decimals is None else decimals)
        if decimals is None:
            threshold = threshold.rstrip("0").rstrip(".")
        return f"{'>' if code else '≤'} {threshold}"


def _branch_weights(node: MultiwayTree, values: Floats, weight: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield the code of each branch and how much of each row takes it; rows of other categories count as missing."""
    codes = _codes(values, node.threshold)
    total = sum(float(branch.weights.sum()) for branch in node.branches.values())
    is_known = np.isin(codes, list(node.branches))
    for code, branch in node.branches.items():
        fraction = float(branch.weights.sum()) / total
        yield code, weight * np.where(is_known, codes == code, fraction)


def _codes(values: Floats, threshold: float | None) -> Codes:
    """Return the branch of each value; -1 where it is missing."""
    codes = values if threshold is None else values > threshold
    return np.where(np.isnan(values), -1, codes).astype(np.intp)


@dataclass(frozen=True)
class _Split:
    column: int
    threshold: float | None
    gain: float
    ratio: float


@dataclass(frozen=True)
class _Grower:
    values: Floats
    codes: Codes
    names: tuple[str, ...]
    features: tuple[Feature, ...]
    classes: NDArray[Any]
    uses_ratio: bool
    max_depth: float
    min_rows: float

    def grow(self, weight: Floats, depth: int) -> MultiwayTree:
        """Return the tree of the rows with these weights."""
        counts = np.bincount(self.codes, weight, len(self.classes)).astype(np.float64)
        splits: list[_Split] = []
        if depth < self.max_depth and np.count_nonzero(counts) > 1:
            found = (self._split(j, weight, counts) for j in range(len(self.features)))
            splits = [split for split in found if split is not None]
        gains = {self.names[split.column]: (split.gain, split.ratio) for split in splits}
        shared = (gains, self.classes, self.features, self.names)
        split = self._best(splits)
        if split is None:
            return MultiwayTree(counts, None, None, {}, *shared)
        codes = _codes(self.values[:, split.column], split.threshold)
        sums = np.bincount(codes[codes >= 0], weight[codes >= 0])
        branches = {}
        for code in np.flatnonzero(sums).tolist():
            fraction = np.where(codes < 0, sums[code] / sums.sum(), codes == code)
            branches[code] = self.grow(weight * fraction, depth + 1)
        return MultiwayTree(counts, split.column, split.threshold, branches, *shared)

    def _best(self, splits: list[_Split]) -> _Split | None:
        """Return the split of the largest gain, or of the largest ratio among those of at least the mean gain."""
        if not splits or not self.uses_ratio:
            return max(splits, key=lambda split: split.gain, default=None)
        mean = sum(split.gain for split in splits) / len(splits)
        return max((split for split in splits if split.gain >= mean - _SMALLEST_GAIN), key=lambda split: split.ratio)

    def _split(self, j: int, weight: Floats, counts: Floats) -> _Split | None:
        """Return the split of a column, for a number that of the best threshold; None if there is none with a gain."""
        values = self.values[:, j]
        thresholds: list[float | None] = [None]
        if self.features[j].kind != "category":
            distinct = np.unique(values[(weight > 0) & ~np.isnan(values)])
            thresholds = ((distinct[1:] + distinct[:-1]) / 2).tolist()
        found = [split for cut in thresholds if (split := self._scored(j, cut, weight, counts)) is not None]
        return max(found, key=lambda split: split.gain, default=None)

    def _scored(self, j: int, threshold: float | None, weight: Floats, counts: Floats) -> _Split | None:
        codes = _codes(self.values[:, j], threshold)
        is_known = codes >= 0
        table = np.zeros((max(int(codes.max()), 0) + 1, len(counts)))
        np.add.at(table, (codes[is_known], self.codes[is_known]), weight[is_known])
        sizes = table.sum(axis=1)
        if np.count_nonzero(sizes >= max(self.min_rows, _SMALLEST_GAIN)) < 2:
            return None
        table, total = table[sizes > 0], float(counts.sum())
        sizes, known = sizes[sizes > 0], float(sizes.sum())
        before = float(node_impurity(table.sum(axis=0), "entropy", "bits"))
        after = float(sizes @ node_impurity(table, "entropy", "bits")) / known
        gain = known / total * (before - after)
        information = float(node_impurity(np.append(sizes, total - known), "entropy", "bits"))
        return _Split(j, threshold, gain, gain / information) if gain > _SMALLEST_GAIN else None


def multiway_tree(
    X: TableLike,
    y: ColumnLike,
    *,
    criterion: Literal["gain", "gain_ratio"] = "gain_ratio",
    max_depth: int | None = None,
    min_rows: float = 1.0,
) -> MultiwayTree:
    """Grow a tree with a branch for each category, as ID3 and C4.5 do, for lectures and small tables.

    Numbers are split in two at the best threshold. A row whose value is missing takes all branches, divided in
    proportion to the rows whose value is known. The gain of a column is multiplied by the fraction of the rows in which
    its value is known.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Classes.
    criterion : {"gain", "gain_ratio"}, default="gain_ratio"
        "gain": the decrease of the entropy (ID3). "gain_ratio": the decrease divided by the entropy of the branches,
        among columns with at least the mean gain (C4.5).
    max_depth : int, optional
        Maximum number of splits between the root and a leaf.
    min_rows : float, default=1.0
        Minimum weight that at least two branches of a split must have; C4.5 uses 2.

    Returns
    -------
    MultiwayTree
        Prints as text, and `spinney.plot_tree` draws it; has `predict`, `predict_proba` and `branches`.

    References
    ----------
    J. R. Quinlan (1986). Induction of decision trees. Machine Learning 1, 81-106.

    J. R. Quinlan (1993). C4.5: Programs for machine learning. Morgan Kaufmann.

    Examples
    --------
    >>> from spinney.teaching import multiway_tree
    >>> X = {"outlook": ["sun", "sun", "rain", "rain", "cloud"], "windy": ["no", "yes", "no", "yes", "no"]}
    >>> print(multiway_tree(X, ["stay", "stay", "go", "stay", "go"], criterion="gain"))
    all: 2, 3
        outlook = cloud: 1, 0 → go
        outlook = rain: 1, 1
            windy = no: 1, 0 → go
            windy = yes: 0, 1 → stay
        outlook = sun: 0, 2 → stay
    """
    if criterion not in ("gain", "gain_ratio"):
        raise ValueError(f"criterion must be 'gain' or 'gain_ratio', not {criterion!r}.")
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must be at least 0, or None, not {max_depth!r}.")
    table = read_table(X)
    target = read_classes(y, table.n_rows)
    names = tuple(table.names or default_names(table.n_columns))
    features = tuple(learn_feature(name, table.column(j), False, table.n_rows) for j, name in enumerate(names))
    values = np.column_stack([
        feature_values(feature, table.column(j), table.n_rows, "missing", names[j])
        for j, feature in enumerate(features)
    ])  # fmt: skip
    depth = np.inf if max_depth is None else max_depth
    codes = target.codes[:, 0].astype(np.intp)
    grower = _Grower(values, codes, names, features, target.classes[0], criterion == "gain_ratio", depth, min_rows)
    return grower.grow(np.ones(table.n_rows), 0)
