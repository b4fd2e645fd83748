"""SHAP values of weighted means of models: of stacks, votes, and calibrated models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spinney._data.types import Floats, TableLike
from spinney._model.model import ScoredModel
from spinney._model.predictions import WeightedMean, member_predictions
from spinney.inspect.explain.shap import ShapValues

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_STEP = 1e-4  # of central differences, relative to the contributions
_MOST_ROWS = 200_000  # evaluated at once
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class _Sums:
    """What a member adds up, and the function from the sums to its predictions.

    Attributes
    ----------
    model : estimator
    base : ndarray of shape (n_sums,)
    parts : ndarray of shape (n_rows, n_features, n_sums)
    explained : ShapValues
    """

    model: Any
    base: Floats
    parts: Floats
    explained: ShapValues

    @classmethod
    def of(cls, model: Any, X: TableLike) -> _Sums:
        explained = model.shap_values(X)
        base = np.atleast_1d(np.asarray(explained.base_value, dtype=np.float64))
        return cls(model, base, explained.values.reshape(*explained.values.shape[:2], len(base)), explained)

    @property
    def has_scores(self) -> bool:
        """Whether the sums are scores, which a link turns into predictions."""
        return isinstance(getattr(self.model, "_fitted", None), ScoredModel)

    def predicted(self, sums: Floats) -> Floats:
        """Return predictions, (n_rows, 1) or (n_rows, n_classes), for sums, (n_rows, n_sums)."""
        return np.asarray(self.model._fitted.predicted_from_explained(sums)) if self.has_scores else sums


def explain_mean(mean: WeightedMean, X: TableLike) -> ShapValues:
    """Return the SHAP values of a weighted mean of models that have SHAP values.

    Contributions to linear functions of sums are exact. Through other functions they are carried along the straight
    line from the base values of the members to their sums: the contribution of a column is the integral of the
    derivative in the direction of its contributions to the sums. They add up to the prediction.
    """
    members = [_Sums.of(member, X) for member in mean.members]
    _check(mean, members, X)
    if mean.is_linear and not any(one.has_scores for one in members):
        values = np.sum([w * one.parts for w, one in zip(mean.weights, members, strict=True)], axis=0)
        base = np.sum([w * one.base for w, one in zip(mean.weights, members, strict=True)], axis=0)
    else:
        base, values = _along_the_line(mean, members)
    first = members[0].explained
    explained = ShapValues(np.asarray(values), base, first.schema, first.numbers, list(range(len(base))))
    if mean.classes is None:
        return explained.output(0)
    return explained.of_outputs(slice(0, len(base)), mean.classes.tolist(), "probability of the class")


def _check(mean: WeightedMean, members: list[_Sums], X: TableLike) -> None:
    """Raise an error if the contributions of a member do not add up to its predictions."""
    for name, one in zip(mean.names, members, strict=True):
        method = "predict" if mean.classes is None else "predict_proba"
        wanted = member_predictions(one.model, X, method, mean.classes, False)
        found = one.predicted(one.base + one.parts.sum(axis=1))
        if found.shape != wanted.shape or np.abs(found - wanted).max() > _TOLERANCE * max(1.0, np.abs(wanted).max()):
            raise ValueError(
                f"shap_values is not available for this ensemble: the predictions of its member {name!r} are not a "
                "function of sums of contributions. Use spinney.permutation_importance or spinney.partial_dependence."
            )


def _along_the_line(mean: WeightedMean, members: list[_Sums]) -> tuple[Floats, Floats]:
    """Return the base value, (n_outputs,), and the contributions, (n_rows, n_features, n_outputs)."""
    ends = np.cumsum([len(one.base) for one in members])
    base, parts = np.concatenate([one.base for one in members]), np.concatenate([one.parts for one in members], axis=2)

    def predicted(sums: Floats) -> Floats:
        own = np.split(sums, ends[:-1], axis=1)
        each = [one.predicted(np.ascontiguousarray(z)) for one, z in zip(members, own, strict=True)]
        return mean.predicted(each)

    n_rows, n_columns, n_sums = parts.shape
    whole = parts.sum(axis=1)
    start, end = predicted(base[np.newaxis])[0], predicted(base + whole)
    values = np.zeros((n_rows, n_columns, len(start)))
    at_once = max(1, _MOST_ROWS // max(1, n_columns))
    for first in range(0, n_rows, at_once):
        rows = slice(first, first + at_once)
        step = _STEP * parts[rows]
        for node, weight in zip((_NODES + 1) / 2, _NODE_WEIGHTS / 2, strict=True):
            at = (base + node * whole[rows])[:, np.newaxis]
            ahead, behind = (predicted((at + side).reshape(-1, n_sums)) for side in (step, -step))
            slope = (ahead - behind) / (2 * _STEP)
            values[rows] += weight * slope.reshape(*step.shape[:2], -1)
    rest = end - start - values.sum(axis=1)  # of the quadrature, small: divided alike for all outputs
    size = np.abs(values).sum(axis=2, keepdims=True)
    total = size.sum(axis=1, keepdims=True)
    fraction = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
    return start, values + fraction * rest[:, np.newaxis]
