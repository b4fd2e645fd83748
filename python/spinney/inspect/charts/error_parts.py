"""Noise, bias and variance of learners, as stacked bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import CLASS_COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY = "#BBBBBB"


def draw_parts(found: Any, ax: Axes | None) -> Axes:
    """Draw the parts of a `BiasVariance`.

    Parameters
    ----------
    found : BiasVariance
        What to draw.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = axes_of(ax, 7.0, 1.4 + 0.5 * len(found), "top", "right", "left")
    learners = list(found.parts.values())
    places = np.arange(len(learners))
    has_noise = any(part.noise is not None for part in learners)
    bias = "bias²" if found.loss == "squared" else "bias"
    stack = [("noise", [part.noise_effect or 0.0 for part in learners], _GREY)] if has_noise else []
    stack.append((bias if has_noise else f"{bias} + noise", [part.bias for part in learners], CLASS_COLOURS[0]))
    name = "variance" if found.loss == "squared" else "net variance"
    stack.append((name, [part.variance for part in learners], CLASS_COLOURS[1]))
    right, left = np.zeros(len(learners)), np.zeros(len(learners))
    for label, values, colour in stack:
        widths = np.array(values)
        start = np.where(widths >= 0, right, left)  # a part below zero goes to the left of it
        ax.barh(places, widths, left=start, height=0.62, color=colour, label=label)
        right, left = right + np.maximum(widths, 0), left + np.minimum(widths, 0)
    for place, part, end in zip(places, learners, right, strict=True):
        text = f"{part.error:.3g}"
        ax.annotate(text, (end, place), xytext=(5, 0), textcoords="offset points", va="center", color=INK)
    ax.set_yticks(places, [elide(one_line(name), 40) for name in found.parts], parse_math=False)
    ax.invert_yaxis()
    ax.axvline(0, color=INK, linewidth=0.8)
    low = 1.12 * left.min() if left.min() < 0 else 0.0
    ax.set(xlim=(low, 1.12 * max(right.max(), 1e-12)))
    ax.set_xlabel("expected squared error" if found.loss == "squared" else "expected share of wrong classes")
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2)
    return ax
