"""Prediction intervals and sets, and distributions, of boosted models."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.calibration import Calibration
from spinney._boosting.loss import distribution_of
from spinney._data.reproducible import exp
from spinney._data.types import Floats, TableLike
from spinney._estimator.conformal import CalibrationRows, check_coverage, class_sets
from spinney._estimator.estimator import only_if
from spinney._estimator.parameters import require_whole
from spinney._estimator.target import read_weights
from spinney._model.distributions import DISTRIBUTIONS, PredictedDistribution
from spinney.inspect.explain import coverage as coverage_methods

Booster = TypeVar("Booster", bound=BaseBoosting)
METHODS = ("scaled", "residual")


def _why_not_calibrated(model: BaseBoosting) -> str | None:
    fitted = vars(model)
    if fitted.get("n_outputs_", 1) > 1:
        return (
            "is for one output. A model of several quantiles predicts intervals itself; for several outputs, fit one "
            "model per output."
        )
    if "boosting_" not in fitted or "_calibration" in fitted:
        return None  # whether there will be folds is not known before the fit
    return (
        "needs rows that were not used in training. Call calibrate(X, y) with such rows, or fit with the default "
        "n_estimators and early_stopping, which hold out each row."
    )


def calibrate(
    model: Booster,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    offset: ArrayLike | None = None,
) -> Booster:
    """Calibrate `predict_interval`, or `predict_set` of a classifier, by rows that were not used in training.

    Predictions do not change.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows that were not used in the fit, not even for early stopping.
    y : array-like of shape (n_samples,)
        Their target.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`.

    Returns
    -------
    self
        The estimator.
    """
    check_is_fitted(model)
    if model.boosting_.n_outputs > 1:
        raise ValueError("calibrate is for one output. Fit one model per output.")
    predicted = model.boosting_.predicted(model._scores(X, offset))
    target = model._fitted_target().read(y, len(predicted)).values
    model._calibration = Calibration.of(predicted, target, read_weights(sample_weight, len(predicted)))
    return model


def _calibration_of(model: BaseBoosting) -> Calibration:
    check_is_fitted(model)
    return model._calibration


@only_if(_why_not_calibrated)
def predict_interval(
    model: BaseBoosting,
    X: TableLike,
    coverage: float = 0.9,
    method: Literal["scaled", "residual"] = "scaled",
    *,
    offset: ArrayLike | None = None,
) -> Floats:
    """Predict an interval for each row that contains the target with a probability of about `coverage`.

    Intervals are calibrated by errors of rows that were not used in training. After a call of `calibrate`, they are
    the errors of the rows passed to it, and the coverage is guaranteed for exchangeable rows of any distribution.
    Otherwise, with default settings, they are out-of-fold errors, and the coverage is approximate. Out-of-fold errors
    are scaled down, because the mean of all boosters has smaller errors than the boosters that have held out a row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    coverage : float, default=0.9
        Fraction of new rows whose interval should contain the target.
    method : {"scaled", "residual"}, default="scaled"
        - "scaled": the width depends on the errors of rows with similar predictions.
        - "residual": all intervals have the same width.
    offset : array-like of shape (n_samples,), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper ends; infinite if there are too few calibration rows.
    """
    check_coverage(coverage)
    if method not in METHODS:
        raise ValueError(f"method must be 'scaled' or 'residual', not {method!r}.")
    calibration = _calibration_of(model)
    centre = model.boosting_.predicted(model._scores(X, offset))[:, 0]
    margin = calibration.margins(centre, float(coverage), method)
    low = centre - margin
    is_positive = model.boosting_.link in ("log", "log1p")
    return np.column_stack([np.maximum(low, 0.0) if is_positive else low, centre + margin])


@only_if(_why_not_calibrated)
def predict_set(
    model: BaseBoosting,
    X: TableLike,
    coverage: float = 0.9,
    method: Literal["lac", "aps"] = "lac",
    *,
    offset: ArrayLike | None = None,
) -> NDArray[np.bool_]:
    """Predict a set of classes for each row that contains its class with a probability of about `coverage`.

    Sets are calibrated by class probabilities of rows that were not used in training: out-of-fold probabilities with
    default settings, else those of the rows passed to `calibrate`.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    coverage : float, default=0.9
        Fraction of new rows whose set should contain their class.
    method : {"lac", "aps"}, default="lac"
        - "lac": classes whose probability is at least a threshold. The smallest sets on average; a set is empty if no
          class is likely enough.
        - "aps": the most probable classes until their total probability exceeds a threshold: larger sets where classes
          are hard to distinguish. Never empty.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), bool
        Whether each class is in the set, in the order of `classes_`.
    """
    calibration = _calibration_of(model)
    proba = model.boosting_.predicted(model._scores(X, offset))
    rows = CalibrationRows(calibration.predicted, calibration.target.astype(np.intp), calibration.weight)
    return class_sets(proba, rows, coverage, method)


coverage_report = only_if(_why_not_calibrated)(coverage_methods.coverage_report)


class Uncertainty(NamedTuple):
    """Uncertainty of each prediction as two variances; returned by `predict_uncertainty`.

    Attributes
    ----------
    data : ndarray of shape (n_samples,)
        Variance of the target: the mean over the members of the virtual ensemble.
    knowledge : ndarray of shape (n_samples,)
        Variance of the means that the members predict.
    """

    data: Floats
    knowledge: Floats


def _why_no_distribution(model: BaseBoosting) -> str | None:
    if distribution_of(vars(model).get("loss")) is not None:
        return None
    names = ", ".join(map(repr, DISTRIBUTIONS))
    return f"needs a distribution of each row's target. Fit with loss='normal', or another of {names}."


def _why_not_normal(model: BaseBoosting) -> str | None:
    if vars(model).get("loss") == "normal":
        return None
    return "needs a model of the standard deviation of each row. Fit with loss='normal'."


def _distributions(model: BaseBoosting, X: TableLike, offset: ArrayLike | None) -> PredictedDistribution:
    return model.boosting_.distributions(model._scores(X, offset))


@only_if(_why_no_distribution)
def predict_distribution(
    model: BaseBoosting, X: TableLike, *, offset: ArrayLike | None = None
) -> PredictedDistribution:
    """Distribution of each row's target, for losses that are the name of a distribution, such as "normal".

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples, n_scores), optional
        Added to the scores, as in `fit`: for ``loss="normal"`` to the mean and to the logarithm of the standard
        deviation.

    Returns
    -------
    PredictedDistribution
        Its ``parameters``, ``mean`` and ``std`` are ndarrays of shape (n_samples,); the methods ``quantile(levels)``,
        ``cdf(y)``, ``log_likelihood(y)`` and ``crps(y)`` evaluate it. ``mean, std = …`` unpacks two of them.
    """
    return _distributions(model, X, offset)


@only_if(_why_no_distribution)
def predict_std(model: BaseBoosting, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
    """Predict the standard deviation of each row's target, for losses that are the name of a distribution.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples, n_scores), optional
        As in `predict_distribution`.

    Returns
    -------
    ndarray of shape (n_samples,)
        In the unit of the target.
    """
    return np.asarray(_distributions(model, X, offset).std)


@only_if(_why_no_distribution)
def predict_quantiles(
    model: BaseBoosting,
    X: TableLike,
    quantiles: ArrayLike = (0.025, 0.5, 0.975),
    *,
    offset: ArrayLike | None = None,
) -> Floats:
    """Predict quantiles of each row's target, for losses that are the name of a distribution, such as "normal".

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    quantiles : float or sequence of float, default=(0.025, 0.5, 0.975)
        Above 0 and below 1, in any order. Those of counts are the least counts whose probability, together with that
        of all lower ones, reaches the quantile.
    offset : array-like of shape (n_samples, n_scores), optional
        As in `predict_distribution`.

    Returns
    -------
    ndarray of shape (n_samples, n_quantiles) or (n_samples,)
        Quantiles; (n_samples,) if `quantiles` is one number.
    """
    return _distributions(model, X, offset).quantile(quantiles)


@only_if(_why_not_normal)
def predict_uncertainty(
    model: BaseBoosting, X: TableLike, n_members: int = 10, *, offset: ArrayLike | None = None
) -> Uncertainty:
    """Decompose the uncertainty of each prediction into that of the data and that of the model.

    For models with ``loss="normal"``. The members of a virtual ensemble are the model after different numbers of
    rounds, from half of them to all, so that no further fits are needed. Where the members' means agree, the
    uncertainty comes from the noise of the data; where they differ, more training rows would reduce it.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    n_members : int, default=10
        Number of models in the ensemble, at most half the rounds.
    offset : array-like of shape (n_samples, 2), optional
        As in `predict_distribution`.

    Returns
    -------
    Uncertainty
        ``data``, the mean of the members' variances, and ``knowledge``, the variance of their means; ndarrays of
        shape (n_samples,).
    """
    require_whole("n_members", n_members, 2)
    check_is_fitted(model)
    fitted, columns = model.boosting_, model._columns(X)
    added = model._read_offset(X, offset, columns.n_rows)
    ends = np.unique(np.linspace(-(-fitted.n_rounds // 2), fitted.n_rounds, n_members).astype(np.intp))
    scores = np.zeros((columns.n_rows, 2)) + fitted.start + (0.0 if added is None else added.T)
    means, variances, done = [], [], 0
    for end in ends.tolist():
        scores = scores + fitted.engine.sums(columns, done * 2, end * 2, model._n_threads)
        done = end
        means.append(scores[:, 0])
        variances.append(exp(2 * scores[:, 1]))
    return Uncertainty(np.mean(variances, axis=0), np.var(means, axis=0))
