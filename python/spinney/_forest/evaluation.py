"""A forest judged by its training rows: each by the trees that have not seen it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import read_table
from spinney._estimator.known_predictions import KnownShares, KnownValues
from spinney._estimator.row_fingerprint import RowPrint
from spinney._estimator.target import read_weights
from spinney._estimator.warm_start import same_classes
from spinney._forest.growing.out_of_bag import Metric, OutOfBag
from spinney._forest.growing.rows import Draws
from spinney._forest.members import ForestTrees

Floats = NDArray[np.float64]


class JudgedForest(ForestTrees):
    """Mixin for forests with a target."""

    def oob_errors(self, X: Any = None, y: Any = None, metric: Metric = None, *, sample_weight: Any = None) -> Floats:
        """Out-of-bag error after each tree, by any metric.

        Parameters
        ----------
        X, y : optional
            The rows that the forest was fitted on, in the same order, and their target. Not needed if it was fitted
            with `oob_score` and `metric` is None.
        metric : callable, str or None, default=None
            ``metric(y, predicted)``, or a scikit-learn scorer by name; None: share of wrong classes, or mean squared
            error.
        sample_weight : array-like of shape (n_samples,), optional
            Weights for the error without a metric; rows of weight 0 are not judged.

        Returns
        -------
        ndarray of shape (n_trees,)
            Error, or value of the metric, over the rows that at least one tree so far has not seen; NaN if there is
            none.
        """
        check_is_fitted(self)
        if X is None or y is None:
            if metric is not None or not hasattr(self, "oob_curve_"):
                raise ValueError(
                    "Pass X and y as they were at fit. Without them there is only the curve that oob_score=True keeps."
                )
            return np.array(self.oob_curve_)
        columns, draws, target, (array, n_classes) = self._read_training_rows(X, y)
        classes = target.classes if n_classes else None
        y_known = np.asarray(y)
        y_known = y_known[:, 0] if y_known.ndim == 2 and y_known.shape[1] == 1 else y_known
        weight = read_weights(sample_weight, columns.n_rows)
        oob = OutOfBag(columns, draws, array, y_known, classes, weight, self._n_threads)
        return oob.curve(self.forest_, metric)

    def _judge_unseen(
        self, X: Any, y: Any, weight: Floats | None
    ) -> tuple[NDArray[np.intp], Callable[[Any], KnownShares | KnownValues]]:
        """Read the training rows; return which of them have unseen trees, and how these answer if values change.

        What is returned second makes of the rows with other values a model that is asked by row numbers.
        """
        columns, draws, target, (array, n_classes) = self._read_training_rows(X, y)
        classes = target.classes if n_classes else None
        oob = OutOfBag(columns, draws, array, np.asarray(y), classes, weight, self._n_threads)
        oob.add(self.forest_)

        def answer(changed: Any) -> KnownShares | KnownValues:
            changed_oob = replace(oob, columns=self._columns(changed), n_trees=0, sums=None)
            changed_oob.add(self.forest_)
            return changed_oob.as_model(self.forest_)

        return oob.judged, answer

    def _read_training_rows(self, X: Any, y: Any) -> tuple[_engine.Table, Draws, Any, tuple[NDArray[Any], list[int]]]:
        """Read the rows that the forest was fitted on: columns, draws, target, and target as the engine takes it."""
        draws = self._known_draws()
        columns = self._training_columns(X, draws.n_rows)
        target = self._read_target(y, columns.n_rows)
        if not same_classes(self._learned(target), self.__dict__):
            raise ValueError("y does not have the classes that the forest was fitted on. Pass the same rows.")
        array, n_classes = self._engine_target(target)
        known: RowPrint | None = getattr(self, "_row_print", None)
        if known is not None:
            known.check_target(array)
        return columns, draws, target, (array, n_classes)

    def _training_columns(self, X: Any, n_rows: int, advice: str = "Pass the same rows.") -> _engine.Table:
        """Read the table that the forest was fitted on, as far as can be told."""
        check_is_fitted(self)
        inputs = self.schema_.encode_inputs(read_table(X), unseen=self.unseen, estimator=type(self).__name__)
        if inputs.n_rows != n_rows:
            raise ValueError(f"X has {inputs.n_rows} rows, but the forest was fitted on {n_rows}. {advice}")
        known: RowPrint | None = getattr(self, "_row_print", None)  # older models have none
        if known is not None:
            known.check_table(inputs, self._n_threads)
        return self.schema_.combined(inputs)
