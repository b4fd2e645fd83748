"""Predictions of survival trees and forests from the curves of their leaves, and what files hold of these."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine
from spinney._data.arguments import argument_numbers
from spinney._data.types import Floats, TableLike
from spinney._estimator.leaf_curves import SAVED_CURVES, LeafCurves, curves_from_header
from spinney._estimator.survival_times import read_events
from spinney._estimator.target import read_weights
from spinney._model.file.codec import saved_fields
from spinney._model.file.container import refuse
from spinney._model.file.values import labels
from spinney._model.forest import FittedForest
from spinney._model.model import FittedModel
from spinney._model.saving.saved_model import SavedModel

PREDICTED_QUANTITY = "relative hazard of the event"  # what `predict` returns, for tables and plots
_SAVED_CAUSES = saved_fields(causes_=labels(key="causes"))


class LeafCurve(NamedTuple):
    """The curves of a leaf.

    Attributes
    ----------
    time : ndarray of shape (n_times,)
        Times of the events of its training rows.
    at_risk : ndarray of shape (n_times,)
        Weight of the rows at risk.
    events : ndarray of shape (n_times, n_causes)
        Weight of the events of each cause.
    survival : ndarray of shape (n_times,)
        Kaplan–Meier estimate of the survival function.
    cumulative_hazard : ndarray of shape (n_times, n_causes)
        Nelson–Aalen estimate for each cause.
    cumulative_incidence : ndarray of shape (n_times, n_causes)
        Aalen–Johansen estimate for each cause.

    Examples
    --------
    >>> import spinney
    >>> tree = spinney.SurvivalTree().fit([[0.0], [0.0], [0.0]], [2.0, 5.0, -7.0])
    >>> tree.leaf_curve(0).survival.round(3)
    array([0.667, 0.333])
    """

    time: Floats
    at_risk: Floats
    events: Floats
    survival: Floats
    cumulative_hazard: Floats
    cumulative_incidence: Floats


class SurvivalModel(Protocol):
    """A fitted survival tree or forest."""

    leaf_curves_: LeafCurves
    event_times_: Floats
    causes_: NDArray[Any]
    n_outputs_: int

    @property
    def _fitted(self) -> FittedModel: ...

    @property
    def _n_threads(self) -> int: ...

    def _columns(self, X: TableLike, /) -> _engine.Table: ...

    def predict(self, X: TableLike, /) -> NDArray[Any]:
        """Return the relative hazard of each row."""


def _curves(self: SurvivalModel, X: TableLike, times: ArrayLike | None, which: str) -> Floats:
    columns = self._columns(X)
    at = self.event_times_ if times is None else argument_numbers(times, "times")
    if at.ndim != 1 or not (at >= 0).all():
        raise ValueError("times must be a list of numbers, at least 0.")
    fitted: Any = self._fitted
    leaves = fitted.engine.apply(columns, self._n_threads).reshape(columns.n_rows, -1).astype(np.int64)
    if isinstance(fitted, FittedForest):
        leaves += fitted.root[:-1].astype(np.int64)
    return self.leaf_curves_.curves(leaves, which, at)


def predict_survival_function(self: SurvivalModel, X: TableLike, times: ArrayLike | None = None) -> Floats:
    """Survival probability of each row at each time: the probability that no event has happened.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    times : array-like of shape (n_times,), optional
        Times, at least 0. None: `event_times_`.

    Returns
    -------
    ndarray of shape (n_samples, n_times)
        The Kaplan–Meier estimate of the leaf or, in a forest, the mean over the trees. It is constant after the
        last event time.
    """
    incidence = _curves(self, X, times, "incidence").sum(axis=2)
    return np.asarray(np.clip(1.0 - incidence, 0.0, 1.0))


def predict_cumulative_hazard(self: SurvivalModel, X: TableLike, times: ArrayLike | None = None) -> Floats:
    """Cumulative hazard of each row up to each time.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    times : array-like of shape (n_times,), optional
        Times, at least 0. None: `event_times_`.

    Returns
    -------
    ndarray of shape (n_samples, n_times), or (n_samples, n_times, n_causes) with several causes
        The Nelson–Aalen estimate of the leaf or, in a forest, the mean over the trees.
    """
    return _by_cause(self, _curves(self, X, times, "hazard"))


def predict_cumulative_incidence(self: SurvivalModel, X: TableLike, times: ArrayLike | None = None) -> Floats:
    """Probability that an event of each cause has happened by each time.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    times : array-like of shape (n_times,), optional
        Times, at least 0. None: `event_times_`.

    Returns
    -------
    ndarray of shape (n_samples, n_times), or (n_samples, n_times, n_causes) with several causes
        The Aalen–Johansen estimate of the leaf or, in a forest, the mean over the trees. Over all causes it sums to
        1 minus the survival probability.
    """
    return _by_cause(self, _curves(self, X, times, "incidence"))


def _by_cause(self: SurvivalModel, curves: Floats) -> Floats:
    return np.asarray(curves[:, :, 0] if self.n_outputs_ == 1 else curves)


def predict_quantile(self: SurvivalModel, X: TableLike, q: float = 0.5) -> Floats:
    """Quantile of the time until the event of each row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    q : float, default=0.5
        Level of the quantile, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_samples,)
        The first event time by which the probability of an event is at least `q`; infinity if there is none.
    """
    if not 0 < q < 1:
        raise ValueError(f"q={q} must lie between 0 and 1.")
    incidence = _curves(self, X, None, "incidence").sum(axis=2)
    # sums that are at least q but for rounding
    reached = np.column_stack([incidence >= q - 1e-12, np.ones(len(incidence), dtype=bool)])
    return np.asarray(np.append(self.event_times_, np.inf)[reached.argmax(axis=1)])


def predict_median(self: SurvivalModel, X: TableLike) -> Floats:
    """Median of the time until the event of each row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,)
        Times, as returned by `predict_quantile`.
    """
    return predict_quantile(self, X, 0.5)


def score(self: SurvivalModel, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Harrell's concordance index: how often the order of two events is predicted correctly.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like
        Their times, in any form that `fit` takes.
    sample_weight : array-like of shape (n_samples,), optional
        Pairs count by the product of their weights.

    Returns
    -------
    float
        Fraction of the comparable pairs that the predictions order correctly, where tied predictions count half.
        Random predictions have 0.5; NaN if no pair is comparable. With several causes, the mean over the causes, in
        each of which the other events are censored.
    """
    risk = self.predict(X).reshape(-1, self.n_outputs_)
    events = read_events(y, len(risk), causes=self.causes_)
    return mean_concordance(events.time, events.cause, risk, read_weights(sample_weight, len(risk)))


def mean_concordance(time: Floats, cause: NDArray[Any], risk: Floats, weight: Floats | None) -> float:
    """Return the mean concordance over the causes; `risk` has one column per cause."""
    found = []
    for j, of_cause in enumerate(risk.T):
        high = np.where(cause == j + 1, time, np.inf)
        found.append(_engine.concordance(time, high, np.ascontiguousarray(-of_cause), weight))
    return float(np.mean(found))


# ---- model files -----------------------------------------------------------------------------------------------


def curves_to_header(model: SurvivalModel) -> dict[str, Any]:
    """Return the header entries of the curves."""
    return SAVED_CURVES.to_header(model.leaf_curves_) | _SAVED_CAUSES.to_header(model)


def curves_of_saved(header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
    """Return the fitted attributes of `curves_to_header`; refuse those that do not match the trees."""
    fitted: Any = saved.model
    curves = curves_from_header(header, fitted.n_outputs, fitted.engine.feature < 0)
    found = _SAVED_CAUSES.from_header(header)
    if len(found["causes_"]) != fitted.n_outputs:
        refuse("is damaged: its causes do not match its outputs")
    return found | {"leaf_curves_": curves, "event_times_": curves.times}


def survival_tags(tags: Any) -> Any:
    """Set the tags of a target of times."""
    tags.target_tags.required = True
    tags.target_tags.positive_only = True
    tags.target_tags.multi_output = False
    return tags
