"""Isolation forests: rows that few random splits separate from the others are outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.reproducible import exp, log
from spinney._data.types import ColumnLike, Floats, Integers, TableLike
from spinney._estimator.parameters import count_features, estimator, parameter
from spinney._estimator.rows import relative_weights
from spinney._forest.growing import ForestRequest
from spinney._forest.growth_record import GrowthRecord
from spinney._forest.samples import draw_rows
from spinney._forest.unsupervised import Plan, UnsupervisedForest
from spinney._model.file.codec import SavedState, integer, number
from spinney._model.file.container import field
from spinney._model.forest import FittedForest, join_trees
from spinney._model.row_predictors import RowReader
from spinney._model.saving.saved_model import SavedModel
from spinney._tree.growing import at_least

_EULER, _LN2 = 0.5772156649015329, 0.6931471805599453
_FRACTION = Interval(Real, 0.0, 1.0, closed="right")
_UNITS = 16  # weights that are not whole are rounded to multiples of 1/16 of their mean

_SAVED = SavedState(
    "", {"offset_": number(-1, most=0, key="offset"), "max_samples_": integer(least=1, key="max_samples")}
)


@estimator
class IsolationForest(OutlierMixin, UnsupervisedForest):
    """Isolation forest: detects outliers, which few random splits separate from the other rows.

    Each tree is grown on a small sample without a target: each node is split at a random threshold of a random column.
    A row's score compares the mean length of its paths with the mean length of an unsuccessful search in a binary
    search tree (Liu, Ting and Zhou 2008).

    See Also
    --------
    RandomForestClassifier.outlier_score : Outliers within their class.

    Notes
    -----
    Categories are split into two random sets. Missing values are separated from the others in nodes where all other
    values are equal; otherwise they go to a random side.

    Examples
    --------
    >>> from spinney import IsolationForest
    >>> X = [[-1.1], [0.3], [0.5], [100.0]]
    >>> IsolationForest(random_state=0).fit(X).predict([[0.1], [0.0], [90.0]])
    array([ 1,  1, -1])
    """

    max_samples: int | float | Literal["auto"] = parameter(StrOptions({"auto"}), at_least(1), _FRACTION, default="auto")
    contamination: float | Literal["auto"] = parameter(
        StrOptions({"auto"}), Interval(Real, 0.0, 0.5, closed="right"), default="auto"
    )
    max_features: int | float = parameter(at_least(1), _FRACTION, default=1.0)
    bootstrap: bool = parameter("boolean", default=False)

    def fit(self, X: TableLike, y: ColumnLike = None, sample_weight: ColumnLike = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are supported.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows; a weight of 0 leaves the row out. Rows are drawn in proportion to
            their weights. Weights that are not whole multiples of the smallest are rounded to sixteenths of their mean.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._grow(X, sample_weight)
        return self

    def _plan(self, columns: _engine.Table, keys: NDArray[np.uint64], weight: Floats | None, seed: int) -> Plan:
        copies = None if weight is None else _copies(weight)
        n_rows = columns.n_rows if copies is None else int(copies.sum())
        n_drawn = self._count_samples(n_rows)
        if isinstance(self.max_features, (int, np.integer)) and self.max_features > columns.n_columns:
            raise ValueError(
                f"max_features={self.max_features} is more than the table's {columns.n_columns} columns. Use 1.0 for "
                "all."
            )
        draws = draw_rows(
            keys=keys,
            weight=None if copies is None else copies.astype(np.float64),
            copies=copies,
            seed=seed,
            replace=bool(self.bootstrap),
            max_samples=n_drawn,
        )
        return Plan(
            {"max_depth": (max(n_drawn, 2) - 1).bit_length()},
            draws=draws,
            max_features_per_tree=count_features(self.max_features, columns.n_columns),
            copies=copies,
            finisher=PathLengths(),
        )

    def _count_samples(self, n_rows: int) -> int:
        if isinstance(self.max_samples, str):
            return min(256, n_rows)
        if not isinstance(self.max_samples, (int, np.integer)):
            return max(1, int(self.max_samples * n_rows))
        if self.max_samples > n_rows:
            warn(f"max_samples={self.max_samples} is more than the {n_rows} rows: each tree is grown on all of them.")
        return min(int(self.max_samples), n_rows)

    def _set_more_attributes(self, columns: _engine.Table, plan: Plan) -> None:
        assert plan.draws is not None
        self.max_samples_ = plan.draws.n_drawn[0]
        self.offset_ = -0.5
        if not isinstance(self.contamination, str):
            score = _scores(self.forest_.predictions(columns, self._n_threads)[:, 0], self.max_samples_)
            score = score if plan.copies is None else np.repeat(score, plan.copies)
            self.offset_ = float(np.percentile(score, 100.0 * self.contamination))

    def _to_header(self) -> dict[str, Any]:
        return {"forest": self._growth.to_json() | _SAVED.to_header(self)}

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        entry = field(header, "forest", dict)
        return {"_growth": GrowthRecord.from_json(entry, saved, has_threshold=True)} | _SAVED.from_header(entry)

    # ---- scores --------------------------------------------------------------------------------------

    @property
    def estimators_features_(self) -> list[NDArray[np.intp]]:
        """For each tree, the positions of all columns of the table; the columns drawn for the tree are not recorded."""
        check_is_fitted(self)
        return [np.arange(self.n_features_in_) for _ in range(self.forest_.n_trees)]

    def score_samples(self, X: TableLike) -> Floats:
        """Score rows; the lower, the more abnormal.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Between -1 (isolated at once) and 0.
        """
        columns = self._columns(X)
        return _scores(self.forest_.predictions(columns, self._n_threads)[:, 0], self.max_samples_)

    def decision_function(self, X: TableLike) -> Floats:
        """Compute scores relative to the threshold; negative for outliers.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: TableLike) -> Integers:
        """Predict whether rows are outliers.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 for outliers, 1 for inliers.
        """
        return np.where(self.decision_function(X) < 0, -1, 1).astype(np.int64)

    def to_predictor(self) -> IsolationRowPredictor:  # type: ignore[override]
        """Return a predictor that scores single rows, which takes microseconds per row.

        The predictor does not check its input and starts no thread. It takes the values of a row in column order, or by
        name.

        Returns
        -------
        IsolationRowPredictor
            The predictor; each thread needs its own.
        """
        check_is_fitted(self)
        return IsolationRowPredictor(self)


class IsolationRowPredictor(RowReader):
    """A fitted isolation forest prepared to score single rows in microseconds; use one per thread."""

    def __init__(self, model: IsolationForest) -> None:
        super().__init__(model.schema_, model.unseen)
        self._mean = model.forest_.engine.predict_one
        self._n_drawn, self._offset = model.max_samples_, model.offset_

    def score(self, row: Sequence[Any] | Mapping[str, Any] | Floats) -> float:
        """Score one row, as `score_samples` does.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        float
            Between -1 (isolated at once) and 0.
        """
        return float(_scores(self._mean(self._numbers(row)), self._n_drawn)[0])

    def predict(self, row: Sequence[Any] | Mapping[str, Any] | Floats) -> int:
        """Predict whether one row is an outlier.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        int
            -1 for an outlier, 1 for an inlier.
        """
        return -1 if self.score(row) - self._offset < 0 else 1


class PathLengths:
    """Sets the values of the nodes to their path lengths."""

    def finish(self, forest: FittedForest, request: ForestRequest) -> FittedForest:
        """Return the trees with path lengths as values."""
        length = path_lengths(forest)
        trees = []
        for t in range(forest.n_trees):
            values = length[forest.root[t] : forest.root[t + 1], np.newaxis]
            trees.append(forest.tree(t).with_values(values))
        return forest.replaced(join_trees(trees, request.n_categories))


def average_path_length(n: ArrayLike) -> Floats:
    """Return the mean path length of an unsuccessful search in a binary search tree of n keys."""
    n = np.atleast_1d(np.asarray(n, dtype=np.float64))
    many = np.maximum(n, 3.0)
    length = 2.0 * (log(many - 1.0) + _EULER) - 2.0 * (many - 1.0) / many
    return np.asarray(np.select([n <= 1, n <= 2], [0.0, 1.0], length))


def path_lengths(forest: FittedForest) -> Floats:
    """Return the depth of each node plus the average depth of a tree that separates its rows."""
    engine = forest.engine
    depth = np.zeros(forest.node_count)
    level, here = 0, forest.root[:-1].astype(np.int64)
    while len(here):
        depth[here] = level
        split = here[engine.feature[here] >= 0]
        here = np.concatenate([split + 1, engine.right[split].astype(np.int64)])
        level += 1
    return np.asarray(depth + average_path_length(engine.weight))


def _scores(mean_length: Floats, n_drawn: int) -> Floats:
    average = average_path_length(n_drawn)[0]
    ratio = mean_length / average if average > 0 else np.ones_like(mean_length)
    # rows that no tree can separate lie exactly on the threshold, despite rounding
    return -exp(-_LN2 * np.where(np.abs(ratio - 1.0) < 1e-12, 1.0, ratio))


def _copies(weight: Floats) -> Integers:
    """Return how often each row counts, from its weight."""
    relative, copies = relative_weights(weight)
    if copies is not None:
        return copies
    assert relative is not None
    return np.where(weight > 0, np.maximum(np.rint(_UNITS * relative).astype(np.int64), 1), 0)
