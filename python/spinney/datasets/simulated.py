"""Sources of simulated rows whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Seed = int | np.random.Generator | None


@dataclass(frozen=True)
class ThresholdClasses:
    """Two classes that depend on the first of several correlated features.

    The features are normal with mean 0, variance 1 and the same correlation between any two. A row is of class 1 with
    the probability `low` if its first feature is at most `cut`, and with the probability `high` otherwise. Any feature
    can stand in for the first, so that trees fitted to small samples differ a lot, and bagging improves them (Hastie,
    Tibshirani and Friedman 2009, section 8.7.1).

    Parameters
    ----------
    n_features : int, default=5
        Number of features.
    correlation : float, default=0.95
        Correlation between any two features, from 0 to 1.
    cut : float, default=0.5
        Value of the first feature at which the probability changes.
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
            Source of the random numbers.
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


@dataclass(frozen=True)
class TwoSources:
    """Two classes, given by the probability p of class 1 and the distributions P₊ and P₋ of the rows of each class.

    Parameters
    ----------
    p : float
        Probability of class 1.
    positive, negative : distributions of scipy.stats
        Distributions of the rows of class 1 and of class 0: frozen, continuous, of one column or of several.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from spinney.datasets import TwoSources
    >>> source = TwoSources(0.5, norm(1, 1), norm(-1, 1))
    >>> source.eta([[0.0], [2.0]]).round(3)
    array([0.5  , 0.982])
    >>> round(source.bayes_error(), 4)
    0.1587
    """

    p: float
    positive: Any
    negative: Any

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise ValueError(f"p must be between 0 and 1, not {self.p!r}.")
        for name in ("positive", "negative"):
            if not all(hasattr(getattr(self, name), method) for method in ("pdf", "rvs")):
                raise TypeError(f"{name} must be a continuous distribution of scipy.stats, such as norm(0, 1).")

    def __call__(self, rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw rows.

        Parameters
        ----------
        rng : Generator
            Source of the random numbers.
        n : int
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n, n_features)
        y : ndarray of shape (n,)
            0 or 1.
        """
        y = (rng.uniform(size=n) < self.p).astype(np.int64)
        drawn = [np.asarray(source.rvs(size=n, random_state=rng)) for source in (self.negative, self.positive)]
        X = np.where(y[:, np.newaxis] == 1, drawn[1].reshape(n, -1), drawn[0].reshape(n, -1))
        return X, y

    def _densities(self, X: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return p f₊ and (1 − p) f₋ at each row."""
        rows = np.asarray(X, dtype=np.float64)
        at = rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows
        one, other = (np.atleast_1d(source.pdf(at)) for source in (self.positive, self.negative))
        return self.p * one, (1 - self.p) * other

    def eta(self, X: object) -> NDArray[np.float64]:
        """Return η(x), the probability of class 1 given the row: p f₊ / (p f₊ + (1 − p) f₋).

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            NaN where both densities are 0.
        """
        one, other = self._densities(X)
        with np.errstate(invalid="ignore"):
            return np.asarray(one / (one + other))

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
        one = self.eta(X)
        return np.column_stack([1 - one, one])

    def bayes_error(self, n: int = 100_000, random_state: Seed = 0) -> float:
        """Return L*, the lowest possible error: the mean of min(η, 1 − η).

        Parameters
        ----------
        n : int, default=100_000
            Number of points: evenly spaced quantiles if there is one column, random rows if there are several.
        random_state : int, Generator or None, default=0
            Seed of the random rows.

        Returns
        -------
        float
            Between 0 and min(p, 1 - p).
        """
        sources = ((self.p, self.positive), (1 - self.p, self.negative))
        rng, total = np.random.default_rng(random_state), 0.0
        for share, source in sources:
            if hasattr(source, "ppf"):
                X = np.asarray(source.ppf((np.arange(n) + 0.5) / n)).reshape(n, -1)
            else:
                X = np.asarray(source.rvs(size=n, random_state=rng)).reshape(n, -1)
            one = self.eta(X)
            total += share * float(np.minimum(one, 1 - one).mean())
        return total


Table = tuple[NDArray[np.float64], NDArray[np.int64]]


def make_thresholds(n_samples: int = 30, *, random_state: Seed = None) -> Table:
    """Draw rows of `ThresholdClasses`: five equally correlated features; the class depends on the first, with noise.

    Parameters
    ----------
    n_samples : int, default=30
        Number of rows.
    random_state : int, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, 5)
    y : ndarray of shape (n_samples,)
        0 or 1. The Bayes error is 0.2.

    Examples
    --------
    >>> from spinney.datasets import make_thresholds
    >>> X, y = make_thresholds(random_state=0)
    >>> X.shape
    (30, 5)
    """
    return ThresholdClasses()(np.random.default_rng(random_state), n_samples)


def make_nested_spheres(n_samples: int = 2000, *, n_features: int = 10, random_state: Seed = None) -> Table:
    """Draw standard normal features; the class is 1 outside of the sphere that contains half of all rows.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of rows.
    n_features : int, default=10
        Number of features. For ten the squared radius of the sphere is 9.34, the median of χ².
    random_state : int, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        1 outside of the sphere, 0 inside. There is no noise.

    Examples
    --------
    >>> from spinney.datasets import make_nested_spheres
    >>> X, y = make_nested_spheres(2000, random_state=0)
    >>> bool(abs(y.mean() - 0.5) < 0.03)
    True
    """
    from scipy.stats import chi2

    X = np.random.default_rng(random_state).normal(size=(n_samples, n_features))
    return X, ((X**2).sum(axis=1) > chi2.ppf(0.5, n_features)).astype(np.int64)


def make_diagonal(n_samples: int = 200, *, noise: float = 0.0, random_state: Seed = None) -> Table:
    """Draw points of the unit square; the class is the sign of x₁ + x₂ − 1, which no single split separates.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    noise : float, default=0.0
        Probability that the class of a row is flipped, which is the Bayes error.
    random_state : int, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        -1 or 1.

    Examples
    --------
    >>> from spinney.datasets import make_diagonal
    >>> X, y = make_diagonal(50, random_state=0)
    >>> bool((y == (2 * (X.sum(axis=1) > 1) - 1)).all())
    True
    """
    rng = np.random.default_rng(random_state)
    X = rng.uniform(size=(n_samples, 2))
    return X, _exchanged(X.sum(axis=1) > 1, noise, rng)


def make_xor(n_samples: int = 200, *, noise: float = 0.0, random_state: Seed = None) -> Table:
    """Draw points of the square from -1 to 1; the class is the sign of x₁ x₂, so that no single split has a gain.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    noise : float, default=0.0
        Probability that the class of a row is flipped, which is the Bayes error.
    random_state : int, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        -1 or 1.

    Examples
    --------
    >>> from spinney.datasets import make_xor
    >>> X, y = make_xor(50, random_state=0)
    >>> bool((y == (X.prod(axis=1) > 0) * 2 - 1).all())
    True
    """
    rng = np.random.default_rng(random_state)
    X = rng.uniform(-1, 1, size=(n_samples, 2))
    return X, _exchanged(X.prod(axis=1) > 0, noise, rng)


def _exchanged(is_positive: NDArray[np.bool_], noise: float, rng: np.random.Generator) -> NDArray[np.int64]:
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be a probability from 0 to 1, not {noise!r}.")
    return np.where(is_positive ^ (rng.uniform(size=len(is_positive)) < noise), 1, -1).astype(np.int64)


def make_darts(n_samples: int = 200, *, random_state: Seed = None) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Draw throws of four darts players: most scatter around a corner of the board, some all hit one distant spot.

    A linear rule predicts the widely scattered throws well, nearest neighbours those on the spots, and a stack of the
    two models both.

    Parameters
    ----------
    n_samples : int, default=200
        Number of throws.
    random_state : int, Generator or None, default=None
        Source of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Coordinates of the hit of each dart; the centre of the board is (0, 0).
    y : ndarray of shape (n_samples,)
        Name of the thrower.

    Examples
    --------
    >>> from spinney.datasets import make_darts
    >>> X, y = make_darts(random_state=0)
    >>> sorted(set(y.tolist()))
    ['Ada', 'Ben', 'Cleo', 'Dan']
    """
    rng = np.random.default_rng(random_state)
    corners = np.array([(-0.55, 0.55), (0.55, 0.55), (-0.55, -0.55), (0.55, -0.55)])
    who = rng.integers(4, size=n_samples)
    X = corners[who] + rng.normal(scale=0.4, size=(n_samples, 2))
    is_spot = rng.uniform(size=n_samples) < 0.1
    X[is_spot] = corners[3 - who[is_spot]] + rng.normal(scale=0.02, size=(int(is_spot.sum()), 2))
    return X, np.array(["Ada", "Ben", "Cleo", "Dan"])[who]
