"""Densities in bins, as bars or as a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import VALUE_COLOUR, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def draw_histogram(low: Floats, high: Floats, density: Floats, names: list[str], ax: Axes | None) -> Axes:
    """Draw bins of one column as bars, or of two as rectangles that are the darker the denser.

    Parameters
    ----------
    low, high : ndarray of shape (n_bins, n_columns)
        Where the bins begin and end.
    density : ndarray of shape (n_bins,)
    names : list of str
        The columns.
    ax : Axes or None
    """
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    if len(names) == 1:
        widths = high[:, 0] - low[:, 0]
        ax.bar(low[:, 0], density, widths, align="edge", color=tint(VALUE_COLOUR, 0.6), edgecolor=VALUE_COLOUR)
        ax.set(xlabel=names[0], ylabel="density")
        return ax
    from matplotlib.patches import Rectangle

    for corner, end, height in zip(low, high, density / density.max(), strict=True):
        width, length = end - corner
        ax.add_patch(Rectangle(tuple(corner), width, length, facecolor=tint(VALUE_COLOUR, 1.5 * float(height))))
    ax.set(xlim=(low[:, 0].min(), high[:, 0].max()), ylim=(low[:, 1].min(), high[:, 1].max()))
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax
