"""Shrinking many estimates towards a common target: James and Stein's estimator and its empirical Bayes form."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from spinney._data.arguments import argument_numbers
from spinney._data.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class JamesStein:
    """Shrunken estimates; returned by `james_stein`.

    Attributes
    ----------
    estimates : ndarray of shape (n,)
        ``target + factor * (y - target)``.
    y : ndarray of shape (n,)
        Estimates before the shrinkage.
    factor : float or ndarray of shape (n,)
        Fraction of each distance to the target that is retained: one number for equal variances, else one per estimate.
    target : float or ndarray of shape (n,)
        Target of the shrinkage.
    spread : float
        Estimated variance of the true values around the target; 0 if `y` varies no more than its noise.

    Examples
    --------
    >>> import spinney
    >>> spinney.james_stein([0.0, 4.0, 8.0], 2.0, target=0.0).factor
    0.975
    """

    estimates: Floats
    factor: Any  # float or ndarray
    target: Any
    spread: float
    y: Floats

    def plot(self, *, truth: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
        """Plot the estimates before and after the shrinkage, with a line for each estimate.

        Parameters
        ----------
        truth : array-like of shape (n,), optional
            The true means, or later observations, drawn below.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        from spinney.inspect.draw.teaching import draw_shrinkage

        return draw_shrinkage(self, None if truth is None else _read_numbers(truth, "truth"), ax)


def james_stein(
    y: ArrayLike,
    variance: ArrayLike | None = None,
    *,
    family: Literal["binomial", "poisson"] | None = None,
    n: ArrayLike | None = None,
    target: ArrayLike = "mean",
    n_fitted: int = 0,
    positive_part: bool = False,
) -> JamesStein:
    r"""Shrink estimates of several unknown means towards a target, which lowers their expected total squared error.

    Each y_i estimates a separate mean with a known variance :math:`V_i`. If the means scatter around a target with the
    variance A, the best estimate retains the fraction :math:`1 - V_i / (V_i + A)` of each distance to the target.
    A is the solution of

    .. math:: Q(A) = \sum_i \frac{(y_i - t_i)^2}{V_i + A} = I - r

    or 0 if there is none, and the factors are

    .. math:: c_i = 1 - \frac{I - r - 2}{Q(A)} \, \frac{V_i}{V_i + A},

    where I is the number of estimates and r the number of coefficients of the target that were estimated from `y`: 1
    for the mean, whose weights are :math:`1 / (V_i + A)`. With equal variances this is the estimator of James and Stein
    [1]_: towards the mean, :math:`c = 1 - (I - 3) \sigma^2 / \sum (y_i - \bar y)^2`; towards a fixed target, the same
    with I - 2 and the target in place of the mean. With unequal variances and A > 0 it is the empirical Bayes estimate
    of Efron and Morris [2]_ with Morris' constant [3]_.

    With equal variances, the expected total squared error is below that of `y` itself, whatever the means are. With
    unequal variances, this holds on average over means that scatter around the target.

    Parameters
    ----------
    y : array-like of shape (n,)
        Estimates; at least 4 towards the mean and 3 towards a fixed target.
    variance : float or array-like of shape (n,), optional
        Their variances: one number for all estimates, or one for each. None if `family` is set.
    family : {"binomial", "poisson"}, optional
        Compute the variances. "binomial": `y` are fractions of successes in n trials, with the variances m (1 - m) / n.
        "poisson": `y` are events per unit of an exposure n, with the variances m / n. In both, m is the mean of `y`
        weighted by n.
    n : float or array-like of shape (n,), optional
        With `family`: the number of trials, or the exposure, of each estimate.
    target : "mean", float or array-like of shape (n,), default="mean"
        What to shrink towards: the mean of `y` (weighted as described above), a number, or one number per estimate such
        as the predictions of a regression.
    n_fitted : int, default=0
        Number of coefficients of a passed target that were estimated from this `y`: 2 for a fitted straight line.
    positive_part : bool, default=False
        Whether to replace negative factors by 0. That never increases the expected error, because a negative factor
        moves an estimate beyond its target.

    Returns
    -------
    JamesStein
        `estimates`, `factor`, `target` and `spread`; `plot()` draws it.

    References
    ----------
    .. [1] W. James and C. Stein (1961). Estimation with quadratic loss. Proceedings of the Fourth Berkeley Symposium
       1, 361-379.
    .. [2] B. Efron and C. Morris (1975). Data analysis using Stein's estimator and its generalizations. Journal of
       the American Statistical Association 70, 311-319.
    .. [3] C. N. Morris (1983). Parametric empirical Bayes inference: theory and applications. Journal of the American
       Statistical Association 78, 47-55.

    Examples
    --------
    >>> import spinney
    >>> shrunk = spinney.james_stein([0.0, 1.0, 2.0, 5.0], 1.0)
    >>> round(shrunk.factor, 3), shrunk.target
    (0.929, 2.0)
    >>> shrunk.estimates.round(2)
    array([0.14, 1.07, 2.  , 4.79])
    """
    values = _read_numbers(y, "y")
    if (variance is None) == (family is None):
        raise ValueError("Pass either the variance of the estimates, or a family with n.")
    if family is not None:
        variance = _family_variance(values, family, n)
    assert variance is not None
    given = _read_target(target, len(values))
    n_coefficients = 1 if given is None else _read_count(n_fitted)
    n_free = len(values) - n_coefficients
    if n_free < 3:
        towards = "the mean" if given is None else "this target"
        least = n_coefficients + 3
        raise ValueError(
            f"james_stein needs at least {least} estimates to shrink towards {towards}; y has {len(values)}."
        )
    noise = _read_variance(variance, len(values))
    spread = _spread(values, noise, given, n_free)
    centre = _centre(values, noise + spread, given)
    distance = values - centre
    misfit = float((distance**2 / (noise + spread)).sum())
    factor = np.zeros(len(values))  # without a misfit y is the target
    if misfit > 0:
        factor = 1 - (n_free - 2) / misfit * (noise / (noise + spread))
    if positive_part:
        factor = np.maximum(factor, 0.0)
    return JamesStein(
        estimates=centre + factor * distance,
        factor=float(factor[0]) if _all_equal(noise) else factor,
        target=centre if isinstance(given, np.ndarray) else float(centre[0]),
        spread=spread,
        y=values,
    )


def _family_variance(values: Floats, family: str, n: ArrayLike | None) -> Floats:
    """Return the variances of fractions of successes, or of rates of events, about their common mean."""
    if family not in ("binomial", "poisson"):
        raise ValueError(f"family must be 'binomial' or 'poisson', not {family!r}.")
    if n is None:
        raise ValueError(f"family={family!r} needs n, the {'trials' if family == 'binomial' else 'exposure'} of each.")
    size = _read_variance(n, len(values), "n")
    mean = float(np.average(values, weights=size))
    top = 1.0 if family == "binomial" else np.inf
    if not ((values >= 0) & (values <= top)).all() or not 0 < mean < top:
        kind = "fractions from 0 to 1" if family == "binomial" else "rates from 0 up"
        raise ValueError(f"family={family!r} needs {kind} that are not all equal to a bound.")
    return np.asarray((mean * (1 - mean) if family == "binomial" else mean) / size)


# ---- the estimate ------------------------------------------------------------------------------------------------


def _centre(values: Floats, variance: Floats, given: float | Floats | None) -> Floats:
    """Return the target of each unit: the one given, or the mean weighted by precision."""
    if given is None:
        given = float(values.mean() if _all_equal(variance) else np.average(values, weights=1 / variance))
    return np.broadcast_to(np.asarray(given, dtype=np.float64), values.shape)


def _spread(values: Floats, noise: Floats, given: float | Floats | None, n_free: int) -> float:
    """Return the variance around the target that explains the misfit; 0 if the noise alone does."""

    def excess(spread: float) -> float:
        total = noise + spread
        return float(((values - _centre(values, total, given)) ** 2 / total).sum()) - n_free

    squares = float(((values - _centre(values, noise, given)) ** 2).sum())
    if _all_equal(noise):
        return max(0.0, squares / n_free - float(noise[0]))
    if excess(0.0) <= 0:
        return 0.0
    # the misfit falls with the spread; at `squares` it is below 1, whatever the mean is then
    return float(brentq(excess, 0.0, squares, xtol=1e-14 * squares, rtol=8.9e-16, maxiter=500))


def _all_equal(values: Floats) -> bool:
    return bool((values == values[0]).all())


# ---- what may be given -------------------------------------------------------------------------------------------


def _read_numbers(values: ArrayLike, name: str) -> Floats:
    array = argument_numbers(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one row of numbers, not an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must hold finite numbers; entry {where} is {array[where]}. Leave such estimates out.")
    return array


def _read_target(target: ArrayLike, n: int) -> float | Floats | None:
    if isinstance(target, str):
        if target != "mean":
            raise ValueError(f"target must be 'mean', a number or one number per estimate, not {target!r}.")
        return None
    if np.ndim(target) == 0:
        number = float(np.asarray(target))
        if not np.isfinite(number):
            raise ValueError(f"target must be a finite number, not {number}.")
        return number
    array = _read_numbers(target, "target")
    if len(array) != n:
        raise ValueError(f"target has {len(array)} numbers and y has {n}: give one for each estimate, or one for all.")
    return array


def _read_count(n_fitted: int) -> int:
    if isinstance(n_fitted, bool) or not isinstance(n_fitted, Integral) or n_fitted < 0:
        raise ValueError(f"n_fitted must be a whole number of at least 0, not {n_fitted!r}.")
    return int(n_fitted)


def _read_variance(variance: ArrayLike, n: int, name: str = "variance") -> Floats:
    array = np.full(n, float(np.asarray(variance))) if np.ndim(variance) == 0 else _read_numbers(variance, name)
    if len(array) != n:
        raise ValueError(f"{name} has {len(array)} numbers and y has {n}: give one for each estimate, or one for all.")
    if not (np.isfinite(array) & (array > 0)).all():
        where = int(np.flatnonzero(~(np.isfinite(array) & (array > 0)))[0])
        raise ValueError(f"{name} must be positive and finite; entry {where} is {array[where]}.")
    return array
