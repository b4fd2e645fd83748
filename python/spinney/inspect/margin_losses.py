"""Losses of two classes as functions of the margin m = y f(x): what they estimate, and what they bound.

Vocabulary. With η the probability of class 1, a score f has the conditional risk η φ(f) + (1 − η) φ(−f). f* is the
score that minimises it. With H(η) its minimum and θ = 2 η − 1, the calibration function of a convex loss is
ψ(θ) = φ(0) − H(η), and the excess error of any score is bounded by its excess risk A − A*: ψ(L − L*) ≤ A − A*
(Bartlett, Jordan and McAuliffe 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from spinney._data.types import Floats


@dataclass(frozen=True)
class MarginLoss:
    """A loss of two classes as a function φ of the margin y f, with y = ±1 and the score f.

    The dict `margin_losses` has the losses by name. A loss is called with margins and returns its values there.

    Attributes
    ----------
    name : str
        Its name.
    is_convex : bool
        Whether it is convex; the 0-1 loss is not.

    Examples
    --------
    >>> from spinney.teaching import margin_losses
    >>> hinge = margin_losses["hinge"]
    >>> hinge([-1.0, 0.0, 2.0]).tolist(), float(hinge.minimiser(0.9)), float(hinge.calibration(0.8))
    ([2.0, 1.0, 0.0], 1.0, 0.8)
    """

    name: str
    is_convex: bool
    _loss: Callable[[Floats], NDArray[Any]]
    _minimiser: Callable[[Floats], NDArray[Any]]
    _calibration: Callable[[Floats], NDArray[Any]]

    def __call__(self, margin: ArrayLike) -> Floats:
        """Return φ at margins.

        Parameters
        ----------
        margin : array-like
            y f, with y = ±1.

        Returns
        -------
        ndarray
            Losses; 1 at 0.
        """
        return np.asarray(self._loss(np.asarray(margin, dtype=np.float64)))

    def minimiser(self, eta: ArrayLike) -> Floats:
        """Return f*, the score with the smallest expected loss.

        Parameters
        ----------
        eta : array-like
            η, the probability of y = 1.

        Returns
        -------
        ndarray
            The f at which η φ(f) + (1 - η) φ(-f) is smallest; for every loss, it has the sign of 2 η - 1. Infinite
            where the expected loss has no minimum.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(self._minimiser(np.asarray(eta, dtype=np.float64)))

    def calibration(self, theta: ArrayLike) -> Floats:
        """Return ψ, by which the excess expected loss bounds the excess error rate.

        For every score function, ψ(L - L*) ≤ A - A*, where L is its error rate, A its expected loss, and L* and A* are
        the smallest possible values of the two (Bartlett, Jordan and McAuliffe 2006).

        Parameters
        ----------
        theta : array-like
            Excess error rates L - L*, from 0 to 1.

        Returns
        -------
        ndarray
            Smallest excess expected loss A - A* with which this excess error rate is possible.
        """
        return np.asarray(self._calibration(np.asarray(theta, dtype=np.float64)))


def _bits(theta: Floats) -> Floats:
    """Return 1 less the entropy of (1 + θ) / 2 in bits."""
    p, q = (1 + theta) / 2, (1 - theta) / 2
    return np.asarray(1 + (xlogy(p, p) + xlogy(q, q)) / np.log(2))


def _sign(eta: Floats) -> Floats:
    return np.sign(2 * eta - 1)


def _log_odds(eta: Floats) -> Floats:
    return np.asarray(np.log(eta / (1 - eta)))


_LOSSES = (
    MarginLoss("0-1", False, lambda m: (m <= 0) * 1.0, _sign, np.abs),
    MarginLoss("hinge", True, lambda m: np.maximum(0, 1 - m), _sign, np.abs),
    MarginLoss(
        "exponential", True, lambda m: np.exp(-m), lambda eta: _log_odds(eta) / 2, lambda t: 1 - np.sqrt(1 - t**2)
    ),
    MarginLoss("logistic", True, lambda m: np.logaddexp(0, -m) / np.log(2), _log_odds, _bits),
    MarginLoss("squared", True, lambda m: (1 - m) ** 2, lambda eta: 2 * eta - 1, np.square),
    MarginLoss(
        "Huber",
        True,
        lambda m: np.where(m < -1, -4 * m, np.maximum(0, 1 - m) ** 2),
        lambda eta: 2 * eta - 1,
        np.square,
    ),
    MarginLoss("squared hinge", True, lambda m: np.maximum(0, 1 - m) ** 2, lambda eta: 2 * eta - 1, np.square),
)
margin_losses = MappingProxyType({loss.name: loss for loss in _LOSSES})
