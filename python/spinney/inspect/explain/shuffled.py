"""What spinney's trees say of rows whose columns have changed places, all permutations at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from spinney._data.select import PickTable
from spinney._estimator.known_predictions import KnownScores, KnownShares, KnownValues
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.tree import FittedTree

Rows = NDArray[np.intp]
Known = KnownShares | KnownValues

_MOST_DRAWS = 64
_MOST_ANSWERS = 1 << 22  # numbers held at a time: 32 MB


def exchanged_answers(
    model: object, table: PickTable, groups: list[list[int]], orders: list[Rows]
) -> Iterator[list[Known]] | None:
    """Ask a tree, a forest or boosted trees about a table with the columns of each group in other orders.

    Parameters
    ----------
    model : estimator
    table : PickTable
    groups : list of lists of int
        Columns that change places together, by their place in the schema.
    orders : list of ndarray of shape (n_rows,)
        For each permutation, the row whose values each row gets.

    Returns
    -------
    iterator of lists, or None
        For each group, and each order, the answers as a model that is asked by row numbers. None if the model is
        another one, or has to be asked in another way.
    """
    if not _is_walked(model) or len(orders) > _MOST_DRAWS:
        return None
    return _answers(model, table, groups, np.array(orders, dtype=np.uint32))


def _is_walked(model: object) -> bool:
    if not isinstance(model, TableEstimator) or not isinstance(model, (ClassifierMixin, RegressorMixin)):
        return False
    fitted: Any = model._fitted
    is_plain = model._predicts_alone and model.schema_.pool is None and getattr(fitted, "n_outputs", 0) == 1
    if not is_plain or type(fitted) not in (FittedTree, FittedForest, FittedBoosting) or fitted.has_lines:
        return False
    return type(fitted) is not FittedTree or fitted.splits is None


def _answers(
    model: Any, table: PickTable, groups: list[list[int]], others: NDArray[np.uint32]
) -> Iterator[list[Known]]:
    columns = model._columns(table.native)
    width = getattr(model._fitted, "n_scores", len(getattr(model, "classes_", (0,))))
    at_once = max(1, _MOST_ANSWERS // max(1, others.size * width))
    for begin in range(0, len(groups), at_once):
        found = model._fitted.exchanged(columns, others, groups[begin : begin + at_once], model._n_threads)
        for of_group in found:
            yield [_known(model, np.ascontiguousarray(flat)) for flat in of_group]


def _known(model: Any, flat: NDArray[np.float64]) -> Known:
    fitted, classes = model._fitted, [getattr(model, "classes_", None)]
    is_boosted = isinstance(fitted, FittedBoosting)
    said = fitted.spread(fitted.predicted(flat) if is_boosted else flat)
    if classes[0] is None:
        return KnownValues(said)
    if not is_boosted:
        return KnownShares(said, fitted.labels(fitted.best_codes(flat), classes), classes)
    scores = flat[:, 0] if fitted.n_scores == 1 else flat
    return KnownScores(said, fitted.labels(fitted.score_codes(flat), classes), classes, scores)
