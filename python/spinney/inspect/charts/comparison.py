"""Models compared: paired differences with intervals, and learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import CLASS_MARKERS, INK, PALE, VALUE_COLOUR, class_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_comparison(found: Any, metric: str, ax: Axes | None) -> Axes:
    """Draw what each model of a `Comparison` scores more or less than the reference.

    Parameters
    ----------
    found : Comparison
        What to draw.
    metric : str
        The metric.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    sign = -1 if metric.startswith("neg_") else 1
    shown = metric.removeprefix("neg_")
    gaps = found.differences(metric=metric)
    names = [name for name in found.names if not np.isnan(gaps[name].mean)]
    ax = axes_of(ax, 7.5, 1.4 + 0.45 * len(names), "top", "right", "left")
    for place, name in enumerate(names):
        gap, mean = gaps[name], sign * found.mean(name, metric)[0]
        is_reference = name == found.reference_
        colour = INK if is_reference else VALUE_COLOUR
        if not is_reference and not np.isnan(gap.low):
            ax.plot([sign * gap.low, sign * gap.high], [place, place], color=colour, linewidth=2.2, alpha=0.55)
        ax.plot([sign * gap.mean], [place], marker="D" if is_reference else "o", color=colour, markersize=7)
        ax.annotate(
            f"{mean:.4g}", (1.01, place), xycoords=("axes fraction", "data"), va="center", color=PALE, fontsize=9
        )
    ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(names)), [elide(one_line(name), 40) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    better = "lower" if sign < 0 else "higher"
    ax.set_xlabel(
        f"difference of {shown} to {elide(one_line(found.reference_), 30)}, 95% interval ({better} is better)"
    )
    ax.annotate(shown, (1.01, 1.0), xycoords="axes fraction", va="bottom", color=PALE, fontsize=9)
    return ax


def draw_curves(found: Any, ax: Axes | None) -> Axes:
    """Draw the learning curves of a `Comparison`.

    Parameters
    ----------
    found : Comparison
        What to draw.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = axes_of(ax, 7.0, 4.4, "top", "right")
    metric = found.metrics[0]
    sign = -1 if metric.startswith("neg_") else 1
    for k, name in enumerate(found.names):
        scores = sign * found.curves[name]
        mean = scores.mean(axis=1)
        spread = scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else np.zeros(len(mean))
        colour = class_colour(k)
        ax.fill_between(found.curve_rows, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        marker = CLASS_MARKERS[k % len(CLASS_MARKERS)]
        ax.plot(found.curve_rows, mean, color=colour, marker=marker, markersize=5, label=elide(one_line(name), 30))
    ax.set(xlabel="rows learned from", ylabel=metric.removeprefix("neg_"))
    ax.legend(frameon=False)
    return ax
