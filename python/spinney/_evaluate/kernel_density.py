"""Kernel density estimates of one column, beside histograms."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from spinney._data.display import warn
from spinney._data.rounding import unit_of
from spinney._data.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_BANDWIDTHS = 40
_CHUNK = 512  # values whose distances to all others are computed at once


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """A kernel density estimate with a Gaussian kernel; returned by `kernel_density`.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        The sample, sorted.
    bandwidth : float
        Standard deviation of the kernel.
    bandwidths : ndarray of shape (n_bandwidths,)
        Bandwidths that were compared; empty if the bandwidth was passed.
    risks : ndarray of shape (n_bandwidths,)
        Leave-one-out estimate of the integrated squared error of each bandwidth, up to a constant.
    """

    values: Floats = field(repr=False)
    bandwidth: float
    bandwidths: Floats = field(repr=False)
    risks: Floats = field(repr=False)

    def __call__(self, points: ArrayLike) -> Floats:
        """Return the density at points.

        Parameters
        ----------
        points : array-like of shape (n_points,)
            Where to evaluate the density.

        Returns
        -------
        ndarray of shape (n_points,)
            The density.
        """
        at = np.asarray(points, dtype=np.float64)
        if at.ndim != 1:
            raise ValueError(f"points must be one-dimensional; they have the shape {at.shape}.")
        found = [_normal(at[i : i + _CHUNK, None] - self.values, self.bandwidth).mean(axis=1)
                 for i in range(0, len(at), _CHUNK)]  # fmt: skip
        return np.concatenate(found) if found else np.zeros(0)

    def plot(self, *, bin_width: float | None = None, ax: Axes | None = None) -> Axes:
        """Plot the density, over a histogram if `bin_width` is set.

        Parameters
        ----------
        bin_width : float, optional
            Width of the histogram's bins, which start at a multiple of it; None: only the density.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        from spinney.inspect.draw.teaching import draw_density

        if bin_width is not None and not bin_width > 0:
            raise ValueError(f"bin_width must be positive, not {bin_width!r}.")
        return draw_density(self, bin_width, ax)


def kernel_density(values: ArrayLike, bandwidth: float | Literal["cv"] = "cv") -> KernelDensity:
    """Estimate a density by the mean of Gaussian kernels at the values.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Numbers of one column; missing values are left out.
    bandwidth : float or "cv", default="cv"
        Standard deviation of the kernel. "cv": of forty candidates, from a twentieth of the normal reference bandwidth
        to twice this bandwidth, the one with the smallest leave-one-out estimate of the integrated squared error, ∫ f²
        − 2/n Σ f₋ᵢ(xᵢ). If the values are rounded, the bandwidth is at least the unit of rounding.

    Returns
    -------
    KernelDensity
        A function of points, with `bandwidth`, `risks` and `plot`.

    Examples
    --------
    >>> from spinney.teaching import kernel_density
    >>> density = kernel_density([1.0, 2.0, 2.5, 4.0], bandwidth=1.0)
    >>> density([2.0, 10.0]).round(3)
    array([0.262, 0.   ])
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1:
        raise ValueError(f"values must be one-dimensional; they have the shape {sample.shape}.")
    sample = np.sort(sample[~np.isnan(sample)])
    if len(sample) < 2 or sample[0] == sample[-1] or not np.isfinite(sample).all():
        raise ValueError("A density needs two different finite values at least.")
    if bandwidth != "cv":
        if not isinstance(bandwidth, Real) or not bandwidth > 0:
            raise ValueError(f"bandwidth must be a positive number or 'cv', not {bandwidth!r}.")
        return KernelDensity(sample, float(bandwidth), np.zeros(0), np.zeros(0))
    reference = 1.06 * float(sample.std()) * len(sample) ** -0.2
    unit = unit_of(sample) or 0.0
    least = max(0.05 * reference, unit)
    grid = np.geomspace(least, 2 * max(reference, least), _N_BANDWIDTHS)
    risks = np.array([_risk(sample, width) for width in grid])
    best = int(risks.argmin())
    if best == 0 and least == unit:
        warn(
            f"The values are multiples of {unit:.3g}, and this is the bandwidth: smaller ones would only show the "
            "rounding. Pass a larger bandwidth for a smoother density."
        )
    elif best == 0:
        warn(
            f"The smallest bandwidth of the search, {grid[0]:.3g}, has the least estimated risk: smaller ones may be "
            "better. Pass a bandwidth."
        )
    return KernelDensity(sample, float(grid[best]), grid, risks)


def _normal(distance: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-((distance / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi)))


def _risk(sample: Floats, width: float) -> float:
    """Return ∫ f² − 2/n Σ f₋ᵢ(xᵢ); the integral of a product of two kernels is a kernel of √2 times the width."""
    n, square, left_out = len(sample), 0.0, 0.0
    for i in range(0, n, _CHUNK):
        distance = sample[i : i + _CHUNK, None] - sample
        square += float(_normal(distance, np.sqrt(2) * width).sum())
        left_out += float(_normal(distance, width).sum())
    left_out -= n * float(_normal(np.zeros(1), width)[0])
    return square / n**2 - 2 * left_out / (n * (n - 1))
