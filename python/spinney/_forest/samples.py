"""The samples of rows that the trees of a forest are grown on, and out-of-bag predictions.

The units of sampling are rows, or groups of rows that stay together. A stratum lists its units, repeated by their whole
weights; for each tree a number of its entries is drawn, as a function of (seed, tree). Units are ordered by their
values alone, so that the forest depends neither on the order of the rows nor on whether a row occurs twice or has a
weight of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.reproducible import exp, value_keys
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.held_out import KnownProba, KnownValues, read_row_groups
from spinney._estimator.metrics import find_scorer
from spinney._model.forest import FittedForest

_NEVER = 2**32 - 1
_SUBSAMPLE = 0.632  # fraction of the rows that a bootstrap sample holds at least once


@dataclass(frozen=True, eq=False)
class Draws:
    """The samples of all trees.

    Attributes
    ----------
    n_rows : int
    replace : bool
        Whether an entry may be drawn several times.
    seed : int
    unit_of_row : ndarray of shape (n_rows,), uint32
        Unit of each row; the largest number: never drawn.
    strata : list of ndarray
        Units of each stratum, repeated by their whole weights.
    n_drawn : list of int
        Entries drawn from each stratum for one tree.
    """

    n_rows: int
    replace: bool
    seed: int
    unit_of_row: NDArray[np.uint32]
    strata: list[NDArray[np.uint32]]
    n_drawn: list[int]

    @cached_property
    def engine(self) -> _engine.Sampling:
        """The engine's sampling."""
        return _engine.make_sampling(self.replace, self.seed, self.unit_of_row, self.strata, self.n_drawn)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "engine"}

    def counts(self, tree: int) -> NDArray[np.uint32]:
        """Return how often each row was drawn for a tree."""
        return self.engine.counts(tree)

    def counts_by_row(self, n_trees: int) -> NDArray[np.uint32]:
        """Return how often each row was drawn for each tree, (n_rows, n_trees)."""
        drawn = np.empty((self.n_rows, n_trees), dtype=np.uint32)
        for t in range(n_trees):
            drawn[:, t] = self.counts(t)
        return drawn

    def rows(self, tree: int) -> NDArray[np.intp]:
        """Return the rows drawn for a tree, repeated as often as drawn, in ascending order."""
        return np.repeat(np.arange(self.n_rows), self.counts(tree))

    def same_samples(self, other: Draws) -> bool:
        """Return whether both define the same samples."""
        mine, theirs = ((d.n_rows, d.replace, d.seed, d.n_drawn, len(d.strata)) for d in (self, other))
        return (
            mine == theirs
            and np.array_equal(self.unit_of_row, other.unit_of_row)
            and all(map(np.array_equal, self.strata, other.strata))
        )

    @property
    def fraction(self) -> float:
        """Number of entries drawn for a tree over the number of all entries."""
        return sum(self.n_drawn) / sum(len(stratum) for stratum in self.strata)

    @property
    def times_drawn(self) -> float:
        """Mean number of times that a sampled entry is drawn for a tree: about 1.58 for a bootstrap sample."""
        fraction = self.fraction
        return float(fraction / (1.0 - exp(-fraction))) if self.replace else 1.0


def row_keys(fingerprints: NDArray[np.uint64], target: NDArray[Any], n_columns: int) -> NDArray[np.uint64]:
    """Return a key for each row that depends on its values and its target, not on its position.

    Parameters
    ----------
    fingerprints : ndarray of shape (n_rows,)
        Fingerprints of the rows.
    target : ndarray of shape (n_rows, n_outputs)
    n_columns : int
        Number of columns of the table.
    """
    return fingerprints + value_keys(target, n_columns)


def rows_with_weight(weight: Floats | None, n_rows: int) -> NDArray[np.intp]:
    """Return the rows of positive weight, which trees without samples are grown on."""
    return np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)


def draw_rows(
    *,
    keys: NDArray[np.uint64],
    weight: Floats | None,
    copies: NDArray[np.int64] | None,
    seed: int,
    groups: ColumnLike = None,
    classes: NDArray[np.intp] | None = None,
    balanced: bool = False,
    replace: bool = True,
    max_samples: int | float | None = None,
) -> Draws:
    """Return the samples of all trees.

    Parameters
    ----------
    keys : ndarray of shape (n_rows,)
        As returned by `row_keys`.
    weight : ndarray or None
        Rows of weight 0 are never drawn.
    copies : ndarray of int or None
        Whole weight of each row; None: 1.
    groups : array-like or None
        Rows with the same label are drawn together; all labels are equally likely.
    classes : ndarray of int or None
        Class of each row: the strata are the classes, or groups by their most frequent class; None: no strata.
    balanced : bool
        Whether as many entries are drawn from each stratum as the smallest one has, instead of in proportion.
    replace, max_samples, seed
        As the parameters of the estimator.
    """
    n_rows = len(keys)
    drawable = np.ones(n_rows, dtype=bool) if weight is None else weight > 0
    if groups is None:
        unit_of_row, order = np.arange(n_rows), _stable_order(keys, weight)
        order = order[drawable[order]]
        times = None if copies is None else copies[order]
    else:
        labels, unit_of_row = np.unique(read_row_groups(groups, n_rows), return_inverse=True)
        order = np.flatnonzero(np.bincount(unit_of_row[drawable], minlength=len(labels)))
        times = None
    stratum: NDArray[Any] = np.zeros(len(order), dtype=np.intp)
    if classes is not None:
        stratum = classes[order] if groups is None else _main_class(unit_of_row[drawable], classes[drawable])[order]
    strata = []
    for k in np.unique(stratum):
        members = order[stratum == k]
        strata.append((members if times is None else np.repeat(members, times[stratum == k])).astype(np.uint32))
    n_drawn = _numbers_drawn([len(s) for s in strata], max_samples, replace, balanced)
    return Draws(n_rows, replace, seed, np.where(drawable, unit_of_row, _NEVER).astype(np.uint32), strata, n_drawn)


def _stable_order(keys: NDArray[np.uint64], weight: Floats | None) -> NDArray[np.intp]:
    """Return the order of the keys, ties by weight; without ties by NumPy's quick sort, in a quarter of the time."""
    order = np.argsort(keys)
    ordered = keys[order]
    if not (ordered[1:] == ordered[:-1]).any():
        return order
    return np.argsort(keys, kind="stable") if weight is None else np.lexsort((weight, keys))


def _main_class(units: NDArray[np.intp], classes: NDArray[np.intp]) -> NDArray[np.intp]:
    counts = np.zeros((int(units.max()) + 1, int(classes.max()) + 1), dtype=np.intp)
    np.add.at(counts, (units, classes), 1)
    return np.asarray(counts.argmax(axis=1))


def _numbers_drawn(sizes: list[int], max_samples: int | float | None, replace: bool, balanced: bool) -> list[int]:
    available = [min(sizes)] * len(sizes) if balanced else sizes
    fraction = 1.0 if replace else _SUBSAMPLE
    if isinstance(max_samples, Integral):
        fraction = int(max_samples) / sum(available)
    elif max_samples is not None:
        fraction = float(max_samples)
    if not replace and fraction > 1:
        raise ValueError(
            f"max_samples={max_samples} is more than the {sum(available)} rows (or groups) that can be drawn without "
            "replacement. Lower it, or set replace=True."
        )
    return [max(1, int(fraction * n + 1e-9)) for n in available]


Metric = Callable[[NDArray[Any], NDArray[Any]], float] | str | None


@dataclass
class OutOfBag:
    """Out-of-bag predictions of a growing forest, as sums over the trees.

    Attributes
    ----------
    columns : Table
        The training rows.
    draws : Draws
        The samples of the trees.
    target : ndarray of shape (n_rows, n_outputs)
        Values or class codes.
    classes : list of ndarray or None
        Labels by output; None for a numeric target.
    weight : ndarray or None
        Rows of weight 0 are not evaluated; errors are weighted by it.
    n_jobs : int
    """

    columns: _engine.Table
    draws: Draws
    target: NDArray[Any]
    classes: list[NDArray[Any]] | None
    weight: Floats | None
    n_jobs: int
    n_trees: int = 0
    sums: Floats | None = None
    n_used: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def n_classes(self) -> list[int]:
        """Number of classes by output; empty for a numeric target."""
        return [len(labels) for labels in self.classes or []]

    @property
    def y(self) -> NDArray[Any]:
        """Target in the form of metrics: labels or values."""
        if self.classes is None:
            y = self.target
        else:
            y = np.column_stack([labels[self.target[:, k]] for k, labels in enumerate(self.classes)])
        return y[:, 0] if y.shape[1] == 1 else y

    def with_values(self, columns: _engine.Table, forest: FittedForest) -> KnownProba | KnownValues:
        """Return the out-of-bag predictions for the same rows with other values, as `as_model` does."""
        changed = replace(self, columns=columns, n_trees=0, sums=None)
        changed.add(forest)
        return changed.as_model(forest)

    def add(self, forest: FittedForest, last: int | None = None) -> None:
        """Add the predictions of further trees, up to `last`."""
        last = forest.n_trees if last is None else last
        sums, n_used = forest.engine.out_of_bag(self.columns, self.draws.engine, self.n_trees, last, self.n_jobs)
        if self.sums is None:
            self.sums, self.n_used = np.zeros_like(sums), np.zeros(len(n_used), dtype=np.int64)
        self.sums += sums
        self.n_used += n_used
        self.n_trees = last

    def each_tree(self, forest: FittedForest) -> Iterator[None]:
        """Add the predictions of further trees one by one."""
        for t in range(self.n_trees, forest.n_trees):
            self.add(forest, t + 1)
            yield

    @property
    def rows(self) -> NDArray[np.intp]:
        """Rows of positive weight that are out of bag for at least one tree."""
        known = self.n_used > 0
        return np.flatnonzero(known if self.weight is None else known & (self.weight > 0))

    def means(self, rows: NDArray[np.intp] | None = None) -> Floats:
        """Return the mean predictions as flat values; NaN for rows that are in every sample."""
        assert self.sums is not None
        sums, n = (self.sums, self.n_used) if rows is None else (self.sums[rows], self.n_used[rows])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(n[:, np.newaxis] > 0, sums / n[:, np.newaxis], np.nan))

    def _average(self, loss: Floats, rows: NDArray[np.intp]) -> float:
        if len(rows) == 0:
            return float("nan")
        return float(np.average(loss, weights=None if self.weight is None else self.weight[rows]))

    def error(self, forest: FittedForest) -> float:
        """Return the misclassification rate (over all outputs), or the mean squared error."""
        rows = self.rows
        means = self.means(rows)
        if self.classes is None:
            return self._average(((means - self.target[rows]) ** 2).mean(axis=1), rows)
        return self._average((forest.best_codes(means) != self.target[rows]).mean(axis=1), rows)

    def smooth_error(self, forest: FittedForest) -> float:
        """Return the Brier score, or the mean squared error, by which growth with n_estimators="auto" stops."""
        if self.classes is None:
            return self.error(forest)
        rows = self.rows
        means = self.means(rows)
        loss = np.zeros(len(rows))
        for k, columns in enumerate(forest.class_columns):
            proba = means[:, columns]
            loss += ((proba - (np.arange(proba.shape[1]) == self.target[rows, k][:, np.newaxis])) ** 2).sum(axis=1)
        return self._average(loss, rows)

    def score(self, forest: FittedForest, metric: Metric) -> float:
        """Return the weighted accuracy or R², a scikit-learn score by name, or ``metric(y, predicted)``."""
        rows = self.rows
        if len(rows) == 0:
            return float("nan")
        if isinstance(metric, str):
            return float(find_scorer(metric)(self.as_model(forest), rows, self.y[rows]))
        if metric is not None:
            return float(metric(self.y[rows], self.as_model(forest).predict(rows)))
        if self.classes is not None:  # as in `score`, all outputs of a row must be correct
            is_correct = (forest.best_codes(self.means(rows)) == self.target[rows]).all(axis=1)
            return self._average(is_correct.astype(np.float64), rows)
        weight = None if self.weight is None else self.weight[rows]
        actual, means = self.target[rows], self.means(rows)
        rest = np.average((actual - means) ** 2, axis=0, weights=weight)
        spread = np.average((actual - np.average(actual, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        # as in scikit-learn, the R² of a constant output is 1 if it is predicted exactly, else 0
        by_output = np.where(spread > 0, 1.0 - rest / np.where(spread > 0, spread, 1.0), np.where(rest > 0, 0.0, 1.0))
        return float(np.mean(by_output))

    def curve(self, forest: FittedForest, metric: Metric = None) -> Floats:
        """Return the error, or the value of the metric, after each further tree."""
        value = self.error if metric is None else (lambda f: self.score(f, metric))
        return np.array([value(forest) for _ in self.each_tree(forest)])

    def as_model(self, forest: FittedForest) -> KnownProba | KnownValues:
        """Return the out-of-bag predictions as a model that is queried by row numbers."""
        predictions = forest.by_output(self.means())
        if self.classes is None:
            return KnownValues(predictions)
        labels = forest.labels(forest.best_codes(np.nan_to_num(self.means())), self.classes)
        return KnownProba(predictions, labels, self.classes)

    def warn_if_lacking(self) -> None:
        """Warn if some rows were drawn for every tree."""
        lacking = np.count_nonzero(self.n_used == 0 if self.weight is None else (self.n_used == 0) & (self.weight > 0))
        if lacking:
            warn(
                f"Some inputs do not have OOB scores: {lacking} rows were drawn for every tree and have no out-of-bag "
                "prediction (NaN). Grow more trees, or draw fewer rows with max_samples."
            )
