"""Predictions of a forest for the rows that its trees were not grown on, and how good they are.

Vocabulary: `sums` are the trees' flat values added up over the trees that did not see a row, `n_used` counts these
trees.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

import spinney._engine as _engine
from spinney._data.types import Floats
from spinney._estimator.held_out import KnownShares, KnownValues
from spinney._forest.samples import Draws
from spinney._model.forest import FittedForest

Metric = Callable[[NDArray[Any], NDArray[Any]], float] | str | None


@dataclass
class OutOfBag:
    """Out-of-bag sums of a growing forest.

    Attributes
    ----------
    columns : Table
        The training rows.
    draws : Draws
        The rows of each tree.
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
    def y(self) -> NDArray[Any]:
        """Target as metrics take it: labels or values."""
        if self.classes is None:
            y = self.target
        else:
            y = np.column_stack([labels[self.target[:, k]] for k, labels in enumerate(self.classes)])
        return y[:, 0] if y.shape[1] == 1 else y

    def with_values(self, columns: _engine.Table, forest: FittedForest) -> KnownShares | KnownValues:
        """Return what the trees predict out of bag for the same rows with other values, as `as_model` does."""
        changed = replace(self, columns=columns, n_trees=0, sums=None)
        changed.add(forest)
        return changed.as_model(forest)

    def add(self, forest: FittedForest, last: int | None = None) -> None:
        """Count the trees in that are not counted yet, up to `last`."""
        last = forest.n_trees if last is None else last
        sums, n_used = forest.engine.out_of_bag(self.columns, self.draws.engine, self.n_trees, last, self.n_jobs)
        if self.sums is None:
            self.sums, self.n_used = np.zeros_like(sums), np.zeros(len(n_used), dtype=np.int64)
        self.sums += sums
        self.n_used += n_used
        self.n_trees = last

    def each_tree(self, forest: FittedForest) -> Iterator[None]:
        """Count the trees in one by one."""
        for t in range(self.n_trees, forest.n_trees):
            self.add(forest, t + 1)
            yield

    @property
    def rows(self) -> NDArray[np.intp]:
        """Rows that have a weight and a tree that did not see them."""
        known = self.n_used > 0
        return np.flatnonzero(known if self.weight is None else known & (self.weight > 0))

    def means(self, rows: NDArray[np.intp] | None = None) -> Floats:
        """Mean flat values; NaN for rows without a tree."""
        assert self.sums is not None
        sums, n = (self.sums, self.n_used) if rows is None else (self.sums[rows], self.n_used[rows])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(n[:, np.newaxis] > 0, sums / n[:, np.newaxis], np.nan))

    def _average(self, loss: Floats, rows: NDArray[np.intp]) -> float:
        if len(rows) == 0:
            return float("nan")
        return float(np.average(loss, weights=None if self.weight is None else self.weight[rows]))

    def error(self, forest: FittedForest) -> float:
        """Misclassification rate (over all outputs), or mean squared error."""
        rows = self.rows
        means = self.means(rows)
        if self.classes is None:
            return self._average(((means - self.target[rows]) ** 2).mean(axis=1), rows)
        return self._average((forest.best_codes(means) != self.target[rows]).mean(axis=1), rows)

    def smooth_error(self, forest: FittedForest) -> float:
        """Brier score, or mean squared error: what tells whether more trees still help."""
        if self.classes is None:
            return self.error(forest)
        rows = self.rows
        means = self.means(rows)
        loss = np.zeros(len(rows))
        for k, columns in enumerate(forest.class_columns):
            shares = means[:, columns]
            loss += ((shares - (np.arange(shares.shape[1]) == self.target[rows, k][:, np.newaxis])) ** 2).sum(axis=1)
        return self._average(loss, rows)

    def score(self, forest: FittedForest, metric: Metric) -> float:
        """Accuracy or R² (weighted), a scikit-learn scorer by name, or ``metric(y, predicted)``."""
        rows = self.rows
        if len(rows) == 0:
            return float("nan")
        if isinstance(metric, str):
            return float(get_scorer(metric)(self.as_model(forest), rows, self.y[rows]))
        if metric is not None:
            return float(metric(self.y[rows], self.as_model(forest).predict(rows)))
        if self.classes is not None:  # as `score`: all outputs of a row must be right
            right = (forest.best_codes(self.means(rows)) == self.target[rows]).all(axis=1)
            return self._average(right.astype(np.float64), rows)
        weight = None if self.weight is None else self.weight[rows]
        actual, means = self.target[rows], self.means(rows)
        rest = np.average((actual - means) ** 2, axis=0, weights=weight)
        spread = np.average((actual - np.average(actual, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        # as scikit-learn: a constant output counts as 1 if it is met, else as 0
        by_output = np.where(spread > 0, 1.0 - rest / np.where(spread > 0, spread, 1.0), np.where(rest > 0, 0.0, 1.0))
        return float(np.mean(by_output))

    def curve(self, forest: FittedForest, metric: Metric = None) -> Floats:
        """Error (or value of the metric) after each tree that is not counted yet."""
        value = self.error if metric is None else (lambda f: self.score(f, metric))
        return np.array([value(forest) for _ in self.each_tree(forest)])

    def as_model(self, forest: FittedForest) -> KnownShares | KnownValues:
        """Return the out-of-bag predictions as a model that predicts row numbers."""
        predictions = forest.spread(self.means())
        if self.classes is None:
            return KnownValues(predictions)
        labels = forest.labels(forest.best_codes(np.nan_to_num(self.means())), self.classes)
        return KnownShares(predictions, labels, self.classes)

    def warn_if_lacking(self) -> None:
        """Warn if some rows were drawn for every tree."""
        lacking = np.count_nonzero(self.n_used == 0 if self.weight is None else (self.n_used == 0) & (self.weight > 0))
        if lacking:
            warnings.warn(
                f"Some inputs do not have OOB scores: {lacking} rows were drawn for every tree and have no out-of-bag "
                "prediction (NaN). Grow more trees, or draw fewer rows with max_samples.",
                UserWarning,
                stacklevel=3,
            )
