"""Greedy selection: members are added one by one, some of them again, as long as their mean gets better."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney._data.numeric.reproducible import log
from spinney._model.calibration import Calibration, calibrated
from spinney._model.predictions import as_shares, mean_said, tempered_columns

Floats = NDArray[np.float64]
N_STEPS = 100
_LEAST_SHARE = 2.0**-52  # so that one wrong certainty does not cost an infinite loss


def select(losses_of: Any, said: Floats, n_steps: int) -> NDArray[np.intp]:
    """Count how often each member is taken.

    Each step adds the member whose addition to the mean of those taken so far gives the least loss, the first of equal
    ones; the best of these means is kept, the shortest of equal ones.

    Parameters
    ----------
    losses_of : callable
        From a mean of what members say to its loss.
    said : ndarray of shape (n_members, ...)
        What each says.
    n_steps : int

    Returns
    -------
    ndarray of shape (n_members,)
    """
    total, taken = np.zeros_like(said[0]), np.zeros(len(said), dtype=np.intp)
    best, best_loss = taken, np.inf
    for step in range(1, n_steps + 1):
        losses = [losses_of((total + one) / step) for one in said]
        k = int(np.argmin(losses))
        total = total + said[k]
        taken = taken.copy()
        taken[k] += 1
        if losses[k] < best_loss:
            best, best_loss = taken, losses[k]
    return best


class GreedySelection(BaseEstimator):
    """Weights of members, found by greedy selection on what they say of rows that they have not seen.

    Attributes
    ----------
    weights_ : ndarray of shape (n_members,)
        Weights, which add up to 1.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
    temperatures_ : list of float, or None
        By which logarithms of each member's shares are divided before their mean is taken; None: they stay as they are.
    calibration_ : float, Curve or None
        By which logarithms of the mean shares are divided, or a curve off which they are read; None: they stay as they
        are.

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.
    """

    temperatures_: list[float] | None = None
    calibration_: Calibration = None

    def __init__(self, n_members: int, n_steps: int = N_STEPS) -> None:
        self.n_members = n_members
        self.n_steps = n_steps

    def fit(self, said: Floats, y: NDArray[Any], sample_weight: Any = None, *, classes: Any = None) -> Self:
        """Select: by log loss for classes, by squared error for values.

        Parameters
        ----------
        said : ndarray of shape (n_samples, n_members * width)
            What the members say: a value, the share of the second of two classes, or the shares of all classes.
        y : ndarray of shape (n_samples,)
            Values, or codes of classes.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights.
        classes : ndarray of shape (n_classes,), optional
            Labels; None: y are values.

        Returns
        -------
        self
            With weights.
        """
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        parts = said.reshape(len(said), self.n_members, -1)
        if classes is None:
            own = parts[:, :, 0].T

            def loss(mean: Floats) -> float:
                return float((weight * (mean - y) ** 2).sum())
        else:
            self.classes_ = classes
            own = as_shares(parts)[np.arange(len(y)), :, y.astype(np.intp)].T

            def loss(mean: Floats) -> float:
                return -float((weight * log(np.maximum(mean, _LEAST_SHARE))).sum())

        taken = select(loss, np.ascontiguousarray(own), self.n_steps)
        self.weights_ = taken / taken.sum()
        return self

    def _mean(self, said: Floats) -> Floats:
        parts = said.reshape(len(said), self.n_members, -1)
        return mean_said(tempered_columns(list(parts.transpose(1, 0, 2)), self.temperatures_), self.weights_.tolist())

    def predict_proba(self, said: Floats) -> Floats:
        """Weighted mean of the members' shares.

        Parameters
        ----------
        said : ndarray of shape (n_samples, n_members * width)
            What the members say.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Shares.
        """
        return calibrated(as_shares(self._mean(said)), self.calibration_)

    def predict(self, said: Floats) -> NDArray[Any]:
        """Weighted mean of the members' values, or the class of the largest mean share.

        Parameters
        ----------
        said : ndarray of shape (n_samples, n_members * width)
            What the members say.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values or labels.
        """
        if not hasattr(self, "classes_"):
            return self._mean(said)[:, 0]
        return np.asarray(self.classes_[self.predict_proba(said).argmax(axis=1)])
