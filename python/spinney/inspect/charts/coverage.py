"""How often intervals or sets cover the truth, as points with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import INK, PALE, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_coverage(columns: dict[str, list[Any]], nominal: float, ax: Axes | None) -> Axes:
    """Draw the columns of a `CoverageReport`.

    Parameters
    ----------
    columns : dict of lists
        All rows first, then one entry per bin or group.
    nominal : float
        The coverage asked for.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    names = [elide(one_line(name), 36) for name in columns["rows"]]
    ax = axes_of(ax, 6.5, 1.2 + 0.36 * len(names), "top", "right", "left")
    places = np.arange(len(names))
    coverage, error = np.array(columns["coverage"]), np.array(columns["standard_error"])
    ax.axvline(nominal, color=PALE, linestyle="--", linewidth=1, label=f"asked for: {nominal:.0%}")
    ax.errorbar(
        coverage, places, xerr=2 * error, fmt="o", color=VALUE_COLOUR, ecolor=VALUE_COLOUR, capsize=3,
        label="covered, ± 2 standard errors",
    )  # fmt: skip
    ax.set_yticks(places, names, parse_math=False, color=INK)
    ax.invert_yaxis()
    low = min(float((coverage - 2 * error).min()), nominal) - 0.02
    ax.set(xlim=(max(0.0, low), 1.01), xlabel="share of the rows that are covered")
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_color(PALE)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)
    return ax
