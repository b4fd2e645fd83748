"""Stages of a stack: the stacks of its first member, of the first two, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from spinney._data.types import Floats, TableLike
from spinney._ensemble.members import takes_weights
from spinney._ensemble.stack_members import GreedySelection


@dataclass(frozen=True, eq=False)
class FinalRows:
    """The rows that the final estimator of a stack was fitted to.

    Attributes
    ----------
    which : ndarray of bool
        Training rows with out-of-fold predictions.
    target : ndarray
        Their labels, class codes or values.
    weight : ndarray or None
        Their weights.
    """

    which: NDArray[np.bool_]
    target: NDArray[Any]
    weight: Floats | None


def why_no_stages(model: Any) -> str | None:
    """Return why a stack has no stages; None if it may have them."""
    if model.passthrough or model.layers:
        what = "passthrough=True adds the columns of the table" if model.passthrough else "there are further layers"
        return f"needs a final estimator of the members' predictions alone, but {what}."
    if hasattr(model, "final_estimator_") and not hasattr(model, "_final_rows_of_fit"):
        return "needs the out-of-fold predictions, which model files do not hold. Pickle the model, or fit it again."
    return None


def staged_predict(self: Any, X: TableLike) -> Iterator[NDArray[Any]]:
    """Yield the predictions of the stack of the first member, of the first two, and so on.

    The final estimator of each stack is fitted to the out-of-fold predictions of its members; the last stack is the
    model itself.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Yields
    ------
    ndarray of shape (n_samples,)
        In the form of `predict`.
    """
    check_is_fitted(self)
    table, n_members = self._matched(X), len(self.estimators_)
    columns = self._member_columns(table)
    for n in range(1, n_members + 1):
        final = self.final_estimator_ if n == n_members else _final_of_first(self, n)
        named = self._named_columns(self._names[:n], columns[:n], self._classes)
        yield self._decoded(np.asarray(final.predict(self._final_table(table, named, final))))


def _final_of_first(stack: Any, n: int) -> BaseEstimator:
    """Return the final estimator of the first members."""
    rows: FinalRows = stack._final_rows_of_fit
    edges = np.cumsum([0, *stack._widths])[: n + 1]
    columns = [stack.oof_predictions_[rows.which, a:b] for a, b in pairwise(edges)]
    if isinstance(stack.final_estimator_, GreedySelection):
        return GreedySelection(n).fit(np.hstack(columns), rows.target, rows.weight, classes=stack._classes)
    final: Any = clone(stack.final_estimator_)
    weighted = {} if rows.weight is None or not takes_weights(final) else {"sample_weight": rows.weight}
    named = stack._named_columns(stack._names[:n], columns, stack._classes)
    final.fit(stack._final_table(None, named, final), rows.target, **weighted)
    return final
