"""Sources of simulated rows whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ThresholdClasses:
    """Two classes that hang on the first of several correlated features.

    The features are normal with mean 0, variance 1 and the same correlation between any two. A row is of class 1 with
    the probability `low` if its first feature is at most `cut`, and with the probability `high` otherwise. Any of the
    features can stand in for the first, so that trees fitted to small samples differ much: bagging helps them
    (Hastie, Tibshirani and Friedman 2009, section 8.7.1).

    Parameters
    ----------
    n_features : int, default=5
        Number of features.
    correlation : float, default=0.95
        Between any two of them, from 0 to 1.
    cut : float, default=0.5
        Where the probability changes.
    low, high : float, default=0.2 and 0.8
        Probability of class 1 up to the cut and above it.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.datasets import ThresholdClasses
    >>> source = ThresholdClasses()
    >>> X, y = source(np.random.default_rng(0), 30)
    >>> X.shape
    (30, 5)
    >>> source.truth([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """

    n_features: int = 5
    correlation: float = 0.95
    cut: float = 0.5
    low: float = 0.2
    high: float = 0.8

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise ValueError(f"n_features must be at least 1, not {self.n_features!r}.")
        for name in ("correlation", "low", "high"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)!r}.")

    def __call__(self, rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw rows.

        Parameters
        ----------
        rng : Generator
            What to draw with.
        n : int
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n, n_features)
        y : ndarray of shape (n,)
            0 or 1.
        """
        shared, own = rng.normal(size=(n, 1)), rng.normal(size=(n, self.n_features))
        X = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
        y = (rng.uniform(size=n) < self.truth(X)[:, 1]).astype(np.int64)
        return X, y

    def truth(self, X: object) -> NDArray[np.float64]:
        """Return the probabilities of the classes 0 and 1.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, 2)
            Probabilities.
        """
        first = np.asarray(X, dtype=np.float64)[:, 0]
        one = np.where(first <= self.cut, self.low, self.high)
        return np.column_stack([1 - one, one])
