"""Distributions that boosting predicts for each row, by the name of their loss and link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

import spinney._engine as _engine
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats

_ROOT_OF_PI = 1.7724538509055159


class PredictedDistribution(ABC):
    """The distribution of each row's target; returned by `predict_distribution`.

    Its attributes are the parameters, arrays of shape (n_samples,). Iteration yields the means and the standard
    deviations.
    """

    loss: ClassVar[str]
    score_names: ClassVar[tuple[str, ...]]  # of the scores that boosting learns
    is_of_counts: ClassVar[bool] = False

    @classmethod
    def of_scores(cls, scores: Floats) -> Self:
        """Return the distributions of rows with these scores, (n_rows, n_scores)."""
        low, high = np.array(_engine.score_bounds(cls.loss)).T
        return cls.of_bounded(*np.clip(scores, low, high).T)

    @classmethod
    @abstractmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        """Return the distributions of rows with scores within their bounds."""

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.mean, self.std))

    @property
    def parameters(self) -> dict[str, Floats]:
        """The parameters by name."""
        of_class: Any = self  # each class is a dataclass of its parameters
        return {field.name: getattr(self, field.name) for field in fields(of_class)}

    if TYPE_CHECKING:  # parameters or properties

        @property
        def mean(self) -> Floats: ...
        @property
        def std(self) -> Floats: ...

    @abstractmethod
    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a target of at most `y`, one number or one for each row."""

    @abstractmethod
    def log_likelihood(self, y: ArrayLike) -> Floats:
        """Return the logarithm of the density, or of the probability of a count, at the target of each row."""

    @abstractmethod
    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score at the target of each row, in the unit of the target.

        It is the integral of the squared difference between the distribution function and that of the target alone;
        for a distribution without spread, the absolute error. Smaller is better.
        """

    @abstractmethod
    def _quantile(self, level: float) -> Floats: ...

    def quantile(self, levels: ArrayLike) -> Floats:
        """Return quantiles, (n_samples, n_levels); (n_samples,) if `levels` is one number."""
        wanted = np.asarray(levels, dtype=np.float64)
        if wanted.ndim > 1 or wanted.size == 0 or not ((wanted > 0) & (wanted < 1)).all():
            raise ValueError(f"Quantiles must be numbers above 0 and below 1, not {levels!r}.")
        found = np.column_stack([self._quantile(float(level)) for level in wanted.reshape(-1)])
        return found if wanted.ndim else found[:, 0]


def _normal_crps(z: Floats) -> Floats:
    """Continuous ranked probability score of a standard normal distribution."""
    from scipy.special import ndtr

    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return np.asarray(z * (2 * ndtr(z) - 1) + 2 * density - 1 / _ROOT_OF_PI)


@dataclass(frozen=True, eq=False)
class NormalPrediction(PredictedDistribution):
    """Normal distributions: ``mean`` and ``std``."""

    loss = "normal"
    score_names = ("mean", "log of the standard deviation")

    mean: Floats
    std: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(scores[0].copy(), exp(scores[1]))

    def cdf(self, y: ArrayLike) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr((np.asarray(y) - self.mean) / self.std))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        z = (np.asarray(y) - self.mean) / self.std
        return np.asarray(-z * z / 2 - log(self.std) - np.log(2 * np.pi) / 2)

    def crps(self, y: ArrayLike) -> Floats:
        return self.std * _normal_crps((np.asarray(y) - self.mean) / self.std)

    def _quantile(self, level: float) -> Floats:
        from scipy.special import ndtri

        return self.mean + self.std * ndtri(level)


@dataclass(frozen=True, eq=False)
class LogNormalPrediction(PredictedDistribution):
    """Log-normal distributions: ``location`` and ``scale``, the mean and standard deviation of the logarithm."""

    loss = "log_normal"
    score_names = ("mean of the logarithm", "log of the standard deviation of the logarithm")

    location: Floats
    scale: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(scores[0].copy(), exp(scores[1]))

    @property
    def mean(self) -> Floats:
        return exp(self.location + self.scale**2 / 2)

    @property
    def std(self) -> Floats:
        return self.mean * np.sqrt(np.expm1(self.scale**2))

    def _z(self, y: ArrayLike) -> Floats:
        return np.asarray((log(np.maximum(y, 0.0)) - self.location) / self.scale)

    def cdf(self, y: ArrayLike) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr(self._z(y)))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        z = self._z(y)
        return np.asarray(-z * z / 2 - log(self.scale) - np.log(2 * np.pi) / 2 - log(np.maximum(y, 0.0)))

    def crps(self, y: ArrayLike) -> Floats:
        from scipy.special import ndtr

        z, root = self._z(y), self.scale / np.sqrt(2)
        spread = 2 * self.mean * (ndtr(z - self.scale) + ndtr(root) - 1)
        return np.asarray(np.asarray(y) * (2 * ndtr(z) - 1) - spread)

    def _quantile(self, level: float) -> Floats:
        from scipy.special import ndtri

        return exp(self.location + self.scale * ndtri(level))


@dataclass(frozen=True, eq=False)
class StudentPrediction(PredictedDistribution):
    """Student's t distributions: ``location``, ``scale`` and ``degrees_of_freedom``, which exceed 2."""

    loss = "student_t"
    score_names = ("location", "log of the scale", "log of (degrees of freedom - 2)")

    location: Floats
    scale: Floats
    degrees_of_freedom: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(scores[0].copy(), exp(scores[1]), 2 + exp(scores[2]))

    @property
    def mean(self) -> Floats:
        return self.location

    @property
    def std(self) -> Floats:
        return self.scale * np.sqrt(self.degrees_of_freedom / (self.degrees_of_freedom - 2))

    def _z(self, y: ArrayLike) -> Floats:
        return np.asarray((np.asarray(y) - self.location) / self.scale)

    def _log_density(self, z: Floats) -> Floats:
        from scipy.special import gammaln

        nu = self.degrees_of_freedom
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu * np.pi) / 2
        return np.asarray(constant - (nu + 1) / 2 * np.log1p(z * z / nu))

    def cdf(self, y: ArrayLike) -> Floats:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.degrees_of_freedom, self._z(y)))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        return np.asarray(self._log_density(self._z(y)) - log(self.scale))

    def crps(self, y: ArrayLike) -> Floats:
        from scipy.special import betaln, stdtr

        z, nu = self._z(y), self.degrees_of_freedom
        between = 2 * np.sqrt(nu) / (nu - 1) * np.exp(betaln(0.5, nu - 0.5) - 2 * betaln(0.5, nu / 2))
        tails = 2 * np.exp(self._log_density(z)) * (nu + z * z) / (nu - 1)
        return np.asarray(self.scale * (z * (2 * stdtr(nu, z) - 1) + tails - between))

    def _quantile(self, level: float) -> Floats:
        from scipy.special import stdtrit

        return np.asarray(self.location + self.scale * stdtrit(self.degrees_of_freedom, level))


@dataclass(frozen=True, eq=False)
class GammaPrediction(PredictedDistribution):
    """Gamma distributions: ``mean`` and ``shape``; the variance is the squared mean divided by the shape."""

    loss = "gamma_distribution"
    score_names = ("log of the mean", "log of the shape")

    mean: Floats
    shape: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(exp(scores[0]), exp(scores[1]))

    @property
    def std(self) -> Floats:
        return self.mean / np.sqrt(self.shape)

    def _scaled(self, y: ArrayLike) -> Floats:
        return np.asarray(np.maximum(y, 0.0) * self.shape / self.mean)

    def cdf(self, y: ArrayLike) -> Floats:
        from scipy.special import gammainc

        return np.asarray(gammainc(self.shape, self._scaled(y)))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        from scipy.special import gammaln

        x = self._scaled(y)
        return np.asarray(self.shape * log(x) - x - gammaln(self.shape) - log(np.maximum(y, 0.0)))

    def crps(self, y: ArrayLike) -> Floats:
        from scipy.special import betaln, gammainc

        x, k = self._scaled(y), self.shape
        of_unit = x * (2 * gammainc(k, x) - 1) - k * (2 * gammainc(k + 1, x) - 1) - np.exp(-betaln(0.5, k))
        return np.asarray(of_unit * self.mean / k)

    def _quantile(self, level: float) -> Floats:
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.shape, level) * self.mean / self.shape)


@dataclass(frozen=True, eq=False)
class BetaPrediction(PredictedDistribution):
    """Beta distributions: ``mean`` and ``precision``, the sum a + b of the usual parameters."""

    loss = "beta"
    score_names = ("log-odds of the mean", "log of the precision")

    mean: Floats
    precision: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(_logistic(scores[0]), exp(scores[1]))

    @property
    def std(self) -> Floats:
        return np.sqrt(self.mean * (1 - self.mean) / (1 + self.precision))

    @property
    def _ab(self) -> tuple[Floats, Floats]:
        return self.mean * self.precision, (1 - self.mean) * self.precision

    def cdf(self, y: ArrayLike) -> Floats:
        from scipy.special import betainc

        return np.asarray(betainc(*self._ab, np.clip(y, 0.0, 1.0)))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        from scipy.special import betaln

        (a, b), x = self._ab, np.asarray(y, dtype=np.float64)
        return np.asarray((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b))

    def crps(self, y: ArrayLike) -> Floats:
        from scipy.special import betainc, betaln

        (a, b), x = self._ab, np.asarray(y, dtype=np.float64)
        between = 2 / a * np.exp(betaln(2 * a, 2 * b) - 2 * betaln(a, b))
        return np.asarray(x * (2 * betainc(a, b, x) - 1) + self.mean * (1 - 2 * betainc(a + 1, b, x) - between))

    def _quantile(self, level: float) -> Floats:
        from scipy.special import betaincinv

        return np.asarray(betaincinv(*self._ab, level))


class _Counts(PredictedDistribution):
    is_of_counts = True

    def _quantile(self, level: float) -> Floats:
        """Return the least counts whose cumulative probability reaches the level, by bisection."""
        low = np.full(len(self.mean), -1.0)
        high = np.ceil(self.mean + self.std * np.sqrt(level / (1 - level)))  # by Cantelli's inequality
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            reaches = self.cdf(middle) >= level
            high = np.where(reaches, middle, high)
            low = np.where(reaches, low, middle)
        return np.asarray(high)


@dataclass(frozen=True, eq=False)
class NegativeBinomialPrediction(_Counts):
    """Negative binomial distributions: ``mean`` m and ``size`` r; the variance is m + m² / r."""

    loss = "negative_binomial"
    score_names = ("log of the mean", "log of the size")

    mean: Floats
    size: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(exp(scores[0]), exp(scores[1]))

    @property
    def std(self) -> Floats:
        return np.sqrt(self.mean + self.mean**2 / self.size)

    def _cumulative(self, y: ArrayLike, size: Floats) -> Floats:
        from scipy.special import betainc

        y = np.floor(np.asarray(y, dtype=np.float64))
        known = betainc(size, np.maximum(y, 0) + 1, self.size / (self.size + self.mean))
        return np.asarray(np.where(y >= 0, known, 0.0))

    def cdf(self, y: ArrayLike) -> Floats:
        return self._cumulative(y, self.size)

    def log_likelihood(self, y: ArrayLike) -> Floats:
        from scipy.special import gammaln

        x, r = np.asarray(y, dtype=np.float64), self.size
        rise = np.log1p(self.mean / r)
        ways = gammaln(x + r) - gammaln(r) - gammaln(x + 1)
        return np.asarray(ways - r * rise + x * (np.log(self.mean / r) - rise))

    def crps(self, y: ArrayLike) -> Floats:
        from scipy.special import hyp2f1

        x, r, ratio = np.asarray(y, dtype=np.float64), self.size, self.mean / self.size
        off = x * (2 * self.cdf(x) - 1) - self.mean * (2 * self._cumulative(x - 1, r + 1) - 1)
        between = self.mean * (1 + ratio) * hyp2f1(r + 1, 0.5, 2.0, -4 * ratio * (1 + ratio))
        return np.asarray(off - between)


@dataclass(frozen=True, eq=False)
class ZeroInflatedPoissonPrediction(_Counts):
    """Poisson distributions with additional zeros: ``rate``, without these, and ``zero_proba``, their probability."""

    loss = "zero_inflated_poisson"
    score_names = ("log of the rate", "log-odds of an additional zero")

    rate: Floats
    zero_proba: Floats

    @classmethod
    def of_bounded(cls, *scores: Floats) -> Self:
        return cls(exp(scores[0]), _logistic(scores[1]))

    @property
    def mean(self) -> Floats:
        return (1 - self.zero_proba) * self.rate

    @property
    def std(self) -> Floats:
        return np.sqrt(self.mean * (1 + self.zero_proba * self.rate))

    def cdf(self, y: ArrayLike) -> Floats:
        from scipy.special import pdtr

        y = np.floor(np.asarray(y, dtype=np.float64))
        known = self.zero_proba + (1 - self.zero_proba) * pdtr(np.maximum(y, 0), self.rate)
        return np.asarray(np.where(y >= 0, known, 0.0))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        from scipy.special import gammaln

        x, q = np.asarray(y, dtype=np.float64), self.zero_proba
        counted = np.log1p(-q) + x * np.log(self.rate) - self.rate - gammaln(x + 1)
        return np.asarray(np.where(x == 0, np.log(q + (1 - q) * np.exp(-self.rate)), counted))

    def crps(self, y: ArrayLike) -> Floats:
        from scipy.special import ive, pdtr

        x, q, rate = np.asarray(y, dtype=np.float64), self.zero_proba, self.rate
        below = np.where(x >= 1, pdtr(np.maximum(x - 1, 0), rate), 0.0)
        off = x * (2 * pdtr(np.maximum(x, 0), rate) - 1) + rate * (1 - 2 * below)
        between = 2 * rate * (ive(0, 2 * rate) + ive(1, 2 * rate))
        mixed = q * np.abs(x) + (1 - q) * off
        return np.asarray(mixed - q * (1 - q) * rate - (1 - q) ** 2 * between / 2)


def _logistic(score: Floats) -> Floats:
    tail = exp(-np.abs(score))
    return np.asarray(np.where(score > 0, 1.0, tail) / (1 + tail))


_CLASSES: tuple[type[PredictedDistribution], ...] = (
    NormalPrediction,
    LogNormalPrediction,
    StudentPrediction,
    GammaPrediction,
    NegativeBinomialPrediction,
    BetaPrediction,
    ZeroInflatedPoissonPrediction,
)
DISTRIBUTIONS = {one.loss: one for one in _CLASSES}


def distributions_of(link: str, scores: Floats) -> PredictedDistribution:
    """Return the distributions of rows with these scores, (n_rows, n_scores); refuse a link that has none."""
    if link not in DISTRIBUTIONS:
        raise ValueError(
            "This model predicts no distributions. Fit GradientBoostingRegressor with loss='normal', or use another "
            "metric, such as 'rmse'."
        )
    return DISTRIBUTIONS[link].of_scores(scores)
