"""Rows beside the rows that a model treats alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import INK, PALE, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_nearest(found: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw a line per column with the row's value in the middle and those of its neighbours around it."""
    shown = min(max_columns, len(found.columns))
    ax = axes_of(ax, 7.0, 1.4 + 0.36 * shown, "top", "right", "left")
    for place in range(shown):
        values, own = found.values[:, place], found.row_values[place]
        ax.axhline(place, color=PALE, linewidth=0.5, zorder=0)
        is_code = found.features[place].kind == "category" or np.isnan(own)
        gap = np.where(np.isnan(values) == np.isnan(own), 0.0, np.nan) if is_code and np.isnan(own) else values - own
        if is_code and not np.isnan(own):
            gap = np.where(values == own, 0.0, 1.0)
        reach = np.nanmax(np.abs(gap), initial=0.0) or 1.0
        x = np.nan_to_num(gap / reach, nan=1.15)
        ax.scatter(x, np.full(len(x), place), s=10 + 70 * found.likeness, color=VALUE_COLOUR, alpha=0.55, linewidths=0)
        ax.plot([0], [place], marker="D", color=INK, markersize=5, zorder=3)
        far = int(np.argmax(np.abs(x)))
        if x[far]:
            ax.annotate(
                elide(one_line(found.text_of(far, place)), 14),
                (x[far], place),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=PALE,
            )
    labels = [
        f"{elide(one_line(name), 24)} = {elide(one_line(found.text_of(None, j)), 14)}"
        for j, name in enumerate(found.columns[:shown])
    ]
    ax.set_yticks(range(shown), labels, parse_math=False)
    ax.set_ylim(shown - 0.4, -0.7)
    ax.set_xlim(-1.3, 1.3)
    ax.set_xticks([0], ["the row"])
    ax.tick_params(axis="both", length=0)
    ax.set_xlabel("near rows, lower values to the left; larger points are more alike")
    return ax
