"""Methods of a booster that predicts a normal distribution: its deviation, and how much of a doubt is the model's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.boosting import BaseBoosting
from spinney._data.reproducible import exp
from spinney._data.types import TableLike
from spinney._estimator.estimator import only_if

Floats = NDArray[np.float64]


class NormalPrediction(NamedTuple):
    """Mean and standard deviation of each row's target."""

    mean: Floats
    std: Floats


class Uncertainty(NamedTuple):
    """Variances of each row: of its target, and of what shorter models say of its mean."""

    data: Floats
    knowledge: Floats


def _why_no_deviation(model: BaseBoosting) -> str | None:
    if vars(model).get("loss") == "normal":
        return None
    return "needs a model that learns a spread for each row. Fit with loss='normal'."


@only_if(_why_no_deviation)
def predict_distribution(model: BaseBoosting, X: TableLike, *, offset: ArrayLike | None = None) -> NormalPrediction:
    """Mean and standard deviation of each row's target.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples, 2), optional
        Added to the mean and to the logarithm of the standard deviation, as in `fit`.

    Returns
    -------
    NormalPrediction
        ``mean`` and ``std``, ndarrays of shape (n_samples,).
    """
    scores = model._scores(X, offset)
    return NormalPrediction(scores[:, 0].copy(), exp(scores[:, 1]))


@only_if(_why_no_deviation)
def predict_std(model: BaseBoosting, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
    """Predict the standard deviation of each row's target.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples, 2), optional
        As in `predict_distribution`.

    Returns
    -------
    ndarray of shape (n_samples,)
        In the unit of the target.
    """
    return exp(model._scores(X, offset)[:, 1])


@only_if(_why_no_deviation)
def predict_uncertainty(
    model: BaseBoosting, X: TableLike, n_members: int = 10, *, offset: ArrayLike | None = None
) -> Uncertainty:
    """Part the doubt about each row into that of the data and that of the model.

    The model after some of its rounds, from half of them up to all, is an ensemble without a further fit. Where
    the members' means agree, what is left is the spread of the data; where they differ, more rows would help.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    n_members : int, default=10
        Members; at most as many as half the rounds are used.
    offset : array-like of shape (n_samples, 2), optional
        As in `predict_distribution`.

    Returns
    -------
    Uncertainty
        ``data``, the mean of the members' variances, and ``knowledge``, the variance of their means; ndarrays of
        shape (n_samples,).
    """
    if isinstance(n_members, bool) or not isinstance(n_members, (int, np.integer)) or n_members < 2:
        raise ValueError(f"n_members must be a whole number from 2 up, not {n_members!r}.")
    check_is_fitted(model)
    view, columns = model.boosting_, model._columns(X)
    given = model._read_offset(X, offset, columns.n_rows)
    ends = np.unique(np.linspace(-(-view.n_rounds // 2), view.n_rounds, n_members).astype(np.intp))
    scores = np.zeros((columns.n_rows, 2)) + view.start + (0.0 if given is None else given.T)
    means, variances, done = [], [], 0
    for end in ends.tolist():
        scores = scores + view.engine.sums(columns, done * 2, end * 2, model._n_threads)
        done = end
        means.append(scores[:, 0])
        variances.append(exp(2 * scores[:, 1]))
    return Uncertainty(np.mean(variances, axis=0), np.var(means, axis=0))
