"""Methods of boosted models that say how certain they are: calibrated intervals and sets, normal distributions."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.calibration import Calibration
from spinney._data.reproducible import exp
from spinney._data.types import Floats, TableLike
from spinney._estimator.conformal import CalibrationRows, check_coverage, class_sets
from spinney._estimator.estimator import only_if
from spinney._estimator.target import read_weights
from spinney.inspect.explain import coverage as coverage_methods

Booster = TypeVar("Booster", bound=BaseBoosting)
METHODS = ("scaled", "residual")


def _why_not_calibrated(model: BaseBoosting) -> str | None:
    fitted = vars(model)
    if fitted.get("n_outputs_", 1) > 1:
        return "is for one output. Several quantiles are intervals themselves; else fit one model per output."
    if "boosting_" not in fitted or "_calibration" in fitted:
        return None  # whether there will be folds is not known before the fit
    return (
        "needs rows that the model has not learned from. Call calibrate(X, y) with some, or fit with nothing said of "
        "rounds and early stopping: then each row is held out."
    )


def calibrate(
    model: Booster,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    offset: ArrayLike | None = None,
) -> Booster:
    """Learn how far off predictions are, from rows that the model has not learned from.

    Intervals and sets of classes are calibrated by them from now on. The predictions stay as they are.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows that had no part in the fit, not even to stop it.
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
    method: str = "scaled",
    *,
    offset: ArrayLike | None = None,
) -> Floats:
    """Interval that holds the target of each row with a probability of about `coverage`.

    The errors that calibrate it are of rows not learned from: with nothing set, of each row by the booster that
    held it out, made smaller by as much as the mean of the boosters errs less than each of them, which rows tell
    that two have held out; else of the rows that `calibrate` was given. Of the latter the coverage is at least what
    is asked for, whatever the distribution, if new rows are like them. Of the former it is close to that.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    coverage : float, default=0.9
        Share of new rows whose interval is to hold their target.
    method : {"scaled", "residual"}, default="scaled"
        - "scaled": as wide as the errors of rows with predictions near this one ask for.
        - "residual": of one width for all rows.
    offset : array-like of shape (n_samples,), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper ends; infinite where the rows that calibrate are too few.
    """
    check_coverage(coverage)
    if method not in METHODS:
        raise ValueError(f"method must be 'scaled' or 'residual', not {method!r}.")
    known = _calibration_of(model)
    centre = model.boosting_.predicted(model._scores(X, offset))[:, 0]
    margin = known.margins(centre, float(coverage), method)
    low = centre - margin
    return np.column_stack([np.maximum(low, 0.0) if model.boosting_.link == "log" else low, centre + margin])


@only_if(_why_not_calibrated)
def predict_set(
    model: BaseBoosting,
    X: TableLike,
    coverage: float = 0.9,
    method: str = "lac",
    *,
    offset: ArrayLike | None = None,
) -> NDArray[np.bool_]:
    """Set of classes that holds the class of each row with a probability of about `coverage`.

    Sets are calibrated by the shares of rows not learned from, as intervals of values are: with nothing set, by the
    booster that held each row out; else of the rows that `calibrate` was given.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    coverage : float, default=0.9
        Share of new rows whose set is to hold their class.
    method : {"lac", "aps"}, default="lac"
        - "lac": classes whose share is at least a threshold. The smallest sets on average; a set is empty where no
          class is likely enough.
        - "aps": the most probable classes until their shares exceed a threshold together: sets that grow where the
          classes are hard to tell apart. Never empty.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), bool
        Whether each class is in the set, in the order of `classes_`.
    """
    known = _calibration_of(model)
    proba = model.boosting_.predicted(model._scores(X, offset))
    rows = CalibrationRows(known.predicted, known.target.astype(np.intp), known.weight)
    return class_sets(proba, rows, coverage, method)


coverage_report = only_if(_why_not_calibrated)(coverage_methods.coverage_report)


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
