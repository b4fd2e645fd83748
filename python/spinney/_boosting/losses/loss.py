"""Losses of gradient boosting as Python sees them: targets they take, where scores start, what scores mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.losses.custom import Outside, OwnLoss
from spinney._boosting.losses.row_losses import row_slopes, weighted_quantile
from spinney._data.numeric.reproducible import exp, log

NUMBER_LOSSES = tuple(name for name, traits in _engine.losses().items() if not traits["of_classes"])

Floats = NDArray[np.float64]
Slopes = Callable[[Floats, Floats], Floats]  # (y, score)
Start = Callable[[Floats, Floats, Floats], float]  # (y, weight, offset): the constant that has the least loss
Starts = Callable[[Floats, Floats, Floats | None], Floats]  # the same of several scores; offsets by score and row


def _mean(y: Floats, weight: Floats) -> float:
    return float(np.average(y, weights=weight))


def _mean_anywhere(y: Floats, weight: Floats) -> float:
    """Return the mean, to the last digit far from 0 too."""
    first = _mean(y, weight)
    return first + _mean(y - first, weight) if np.isfinite(first) else first


@dataclass(frozen=True)
class Loss:
    """One loss.

    Attributes
    ----------
    name : str
        As the engine calls it.
    start : callable
        ``start(y, weight, offset)``: the constant score of least loss beside an offset.
    link : str
        How scores become predictions, as `_fitted.links` names them.
    least_target : float
        No target may be smaller.
    positive : bool
        Every target is above 0.
    needs_event : bool
        The targets' sum is above 0.
    outside : callable or None
        Makes the loss of certain rows, if the engine does not know it: then its name is "outside".
    parameter : float
        Of the loss, as the engine takes it.
    n_scores : int
        Scores of a row.
    starts : callable or None
        With several scores: ``starts(y, weight, offset)``, the constants of least loss.
    weight : float
        Of this part in the sum over all parts.
    of : tuple of Loss
        Parts, each of a target of its own and the scores that follow those of the part before; empty: it is whole.
    """

    name: str
    start: Start
    link: str = "identity"
    least_target: float = -np.inf
    positive: bool = False
    needs_event: bool = False
    outside: Outside | None = None
    parameter: float = 0.0
    n_scores: int = 1
    starts: Starts | None = None
    weight: float = 1.0
    of: tuple[Loss, ...] = ()

    @property
    def parts(self) -> tuple[Loss, ...]:
        """The losses of its targets: itself, if it has one."""
        return self.of or (self,)

    @property
    def is_shifted(self) -> bool:
        """Whether nothing but the distance from score to target matters, so that both may be moved."""
        return self.link in ("identity", "ascending") and self.outside is None

    def constants(self, y: Floats, weight: Floats, offset: Floats | None) -> Floats:
        """Return the constant scores of least loss of one target, beside offsets of shape (n_scores, n_rows)."""
        if self.starts is not None:
            return self.starts(y, weight, offset)
        return np.array([self.start(y, weight, np.zeros(len(y)) if offset is None else offset[0])])

    def check(self, y: Floats, used: NDArray[np.bool_], name: str) -> None:
        """Refuse targets that the loss is not for, among the rows in use; `name` is what the caller calls them."""
        if y.ndim == 2:
            for part, column in zip(self.parts, y.T, strict=True):
                part.check(column, used, name)
            return
        bad = ~(y > 0) if self.positive else ~(y >= self.least_target)
        rows = np.flatnonzero(bad & used)
        if len(rows):
            wanted = "above 0" if self.positive else f"of at least {self.least_target:g}"
            raise ValueError(f"loss={self.name!r} needs targets {wanted}. Row {rows[0]} of {name} has {y[rows[0]]:g}.")
        if self.needs_event and name == "y" and not y[used].sum() > 0:
            raise ValueError(f"loss={self.name!r} needs a target above 0 in some row. All of y is 0.")


def own_loss(given: Any, of_classes: bool, n_jobs: int | None) -> Loss:
    """Return a user's loss."""
    own = OwnLoss(given, of_classes, n_jobs)

    def start(y: Floats, weight: Floats, offset: Floats) -> float:
        y = 2 * y - 1 if of_classes else y
        base = _mean_anywhere(y, weight) if own.link == "identity" else 0.0
        scale = float(np.abs(y - base).max(initial=0.0)) if own.link == "identity" else 1.0
        constant = _where_slopes_cancel(own.slopes, base, scale or 1.0)(y, weight, offset)
        own.check_slopes(y, constant + offset)
        return constant

    return Loss("outside", start, own.link, outside=own)


# ---- values -----------------------------------------------------------------------------------------------


def _log_ratio(power: float) -> Start:
    """Best constant of Poisson (power 1), Tweedie and gamma (power 2)."""

    def start(y: Floats, weight: Floats, offset: Floats) -> float:
        above = np.average(y * exp((1 - power) * offset), weights=weight)
        below = np.average(exp((2 - power) * offset), weights=weight)
        return float(log(above / below))

    return start


LEAST_SPREAD = 1e-8  # of a target, in its own size


def _normal_starts(y: Floats, weight: Floats, offset: Floats | None) -> Floats:
    """Mean and logarithm of the standard deviation; offsets are added to both."""
    offset = np.zeros((2, len(y))) if offset is None else offset
    mean = _mean_anywhere(y - offset[0], weight)
    variance = _mean(((y - offset[0] - mean) * exp(-offset[1])) ** 2, weight)
    least = LEAST_SPREAD * max(1.0, abs(mean))
    return np.array([mean, float(log(max(variance, least * least))) / 2])


def regression_loss(name: str, quantile: float, tweedie_power: float) -> Loss:
    """Return a loss of values by its name."""
    if name == "squared_error":
        return Loss(name, lambda y, w, offset: _mean_anywhere(y - offset, w))
    if name in ("absolute_error", "huber", "log_cosh"):
        return Loss(name, lambda y, w, offset: weighted_quantile(y - offset, w, 0.5))
    if name == "quantile":
        return Loss(name, lambda y, w, offset: weighted_quantile(y - offset, w, quantile))
    if name == "normal":
        return Loss(
            name, lambda y, w, offset: _mean_anywhere(y - offset, w), "normal", n_scores=2, starts=_normal_starts
        )
    if name == "gamma":
        return Loss(name, _log_ratio(2.0), "log", positive=True)
    power = tweedie_power if name == "tweedie" else 1.0
    return Loss(name, _log_ratio(power), "log", least_target=0.0, needs_event=True)


# ---- classes ----------------------------------------------------------------------------------------------

TWO_CLASS_LOSSES = tuple(name for name, traits in _engine.losses().items() if traits["of_two_classes"])
_MOST_STEPS, _CLOSE = 100, 1e-12
_FAR, _HALVINGS, _NARROW = 700.0, 60, 2.0**-50
_ROUNDED = 1e-13  # of the sizes of terms: more than NumPy's sums are off


def _log_odds(y: Floats, weight: Floats, offset: Floats) -> float:
    share = _mean(y, weight)
    constant = float(log(share / (1 - share)))
    for _ in range(_MOST_STEPS if offset.any() else 0):  # Newton, with steps that cannot run away
        p = 1 / (1 + exp(-np.clip(constant + offset, -500, 500)))
        slope = _mean(p * (1 - p), weight)
        step = float(np.clip((share - _mean(p, weight)) / max(slope, 1e-300), -1, 1))
        constant += step
        if abs(step) <= _CLOSE * (1 + abs(constant)):
            break
    return constant


def _half_log_odds(y: Floats, weight: Floats, offset: Floats) -> float:
    second = np.average(y * exp(-offset), weights=weight)
    first = np.average((1 - y) * exp(offset), weights=weight)
    return float(log(second / first) / 2)


def class_constants(totals: Floats, weight: Floats, offset: Floats | None) -> Floats:
    """Constants of the multinomial loss: log shares, or what gives the classes their shares beside an offset."""
    shares = totals / totals.sum()
    constants = log(shares)
    for _ in range(0 if offset is None else _MOST_STEPS):
        assert offset is not None
        scores = constants[:, np.newaxis] + offset
        raised = exp(scores - scores.max(axis=0))
        found = np.average(raised / raised.sum(axis=0), axis=1, weights=weight)
        step = log(shares / np.maximum(found, 1e-300))
        constants = constants + step
        if np.abs(step).max() <= _CLOSE * (1 + np.abs(constants).max()):
            break
    return np.asarray(constants if offset is None else constants - constants.mean())


def _sign_of_sum(terms: Floats) -> int:
    """Sign of the exact sum; what rounding takes off the terms is added up too where it might hide the sign."""
    total, rest = float(terms.sum()), terms
    if abs(total) <= _ROUNDED * float(np.abs(terms).sum()):
        total, rest = _sum_and_rest(terms)
        more = float(rest.sum())
        if abs(total + more) <= _ROUNDED * float(np.abs(rest).sum()):
            total = math.fsum([total, *rest.tolist()])
        else:
            total += more
    return (total > 0) - (total < 0)


def _sum_and_rest(terms: Floats) -> tuple[float, Floats]:
    """Sum of numbers, two by two, and what the roundings took off: together exactly the sum of the numbers."""
    rests = [np.zeros(0)]
    while len(terms) > 1:
        half = len(terms) // 2
        a, b, odd = terms[:half], terms[half : 2 * half], terms[2 * half :]
        both = a + b
        of_b = both - a
        rests.append((a - (both - of_b)) + (b - of_b))
        terms = np.concatenate([both, odd])
    return float(terms.sum()), np.concatenate(rests)


def _where_slopes_cancel(slopes: Slopes, base: float = 0.0, scale: float = 1.0) -> Start:
    """Constant at which the slopes of the rows' losses add up to 0, halved in on from around `base`."""

    def start(y: Floats, weight: Floats, offset: Floats) -> float:
        high = 1 + float(np.abs(offset).max(initial=0.0)) / scale
        low = -high

        @cache
        def terms_at(at: float) -> tuple[float, int]:  # their sum and its sign
            terms = slopes(y, at + offset) * weight
            return float(terms.sum()), _sign_of_sum(terms)

        def sign_at(at: float) -> int:
            return terms_at(base + scale * at)[1]

        while sign_at(high) < 0 and high < _FAR:
            low, high = high, 2 * high
        while sign_at(low) > 0 and low > -_FAR:
            low, high = 2 * low, low
        below, above = _narrowed(lambda at: terms_at(base + scale * at), low, high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_below = middle <= below or (middle < above and sign_at(middle) < 0)
            low, high = (middle, high) if is_below else (low, middle)
        return base + scale * (low + high) / 2

    return start


def _narrowed(sum_at: Callable[[float], tuple[float, int]], low: float, high: float) -> tuple[float, float]:
    """Return places near each other at which a sum has different signs: false position, by the Illinois rule."""
    (at_low, sign_low), (at_high, sign_high) = sum_at(low), sum_at(high)
    if sign_low >= 0 or sign_high < 0:
        return low, high
    last = 0
    for _ in range(_MOST_STEPS):
        if high - low <= _NARROW:
            break
        share = at_low / (at_low - at_high) if at_low < at_high else 0.5
        middle = low + (high - low) * min(max(share, _CLOSE), 1 - _CLOSE)
        if not low < middle < high:
            break
        value, sign = sum_at(middle)
        if sign < 0:
            low, at_low = middle, min(value, -0.0)
            at_high, last = (at_high / 2 if last < 0 else at_high), -1
        else:
            high, at_high = middle, max(value, 0.0)
            at_low, last = (at_low / 2 if last > 0 else at_low), 1
    return low, high


def class_loss(name: str, n_classes: int, focal_gamma: float = 2.0) -> Loss:
    """Return a loss of classes, whose targets are codes."""
    if name == "exponential":
        return Loss(name, _half_log_odds, "half_logit")
    if name == "smooth_hinge":
        return Loss(name, _where_slopes_cancel(partial(row_slopes, name, 0.0)), "hinge")
    if name == "focal":
        start = _where_slopes_cancel(partial(row_slopes, name, focal_gamma))
        return Loss(name, start, f"focal {float(focal_gamma)!r}", parameter=focal_gamma)
    if n_classes == 2:
        return Loss("logistic", _log_odds, "logit")

    def starts(y: Floats, weight: Floats, offset: Floats | None) -> Floats:
        totals = np.bincount(y.astype(np.intp), weight, n_classes).astype(np.float64)
        return class_constants(totals, weight, offset)

    return Loss("multinomial", lambda y, w, offset: 0.0, "softmax", n_scores=n_classes, starts=starts)
