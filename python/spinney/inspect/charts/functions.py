"""Small pictures of functions of one column, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.inspect.charts.axes import pyplot
from spinney.inspect.charts.colours import INK, PALE, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NAMES = 12


def draw_shapes(shapes: Sequence[Any]) -> Figure:
    """Draw functions, each with its column's name; all on one scale, so that their sizes compare."""
    n = max(1, len(shapes))
    n_wide = min(3, n)
    n_high = math.ceil(n / n_wide)
    figure, axes = pyplot().subplots(
        n_high, n_wide, figsize=(3.2 * n_wide, 2.5 * n_high), layout="constrained", sharey=True, squeeze=False
    )
    for ax, shape in zip(axes.flat, shapes, strict=False):
        _draw_shape(ax, shape)
    for ax in axes.flat[len(shapes) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("adds to the score")
    result: Figure = figure
    return result


def _draw_shape(ax: Axes, shape: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.axhline(0, color=PALE, linewidth=0.8)
    if shape.at.dtype.kind == "O":
        kept = np.argsort(-np.abs(shape.adds), kind="stable")[:_MOST_NAMES]
        kept = kept[np.argsort(shape.adds[kept], kind="stable")]
        places = np.arange(len(kept))
        ax.bar(places, shape.adds[kept], color=VALUE_COLOUR, width=0.7)
        ax.set_xticks(places, [str(name)[:16] for name in shape.at[kept]], rotation=45, ha="right", parse_math=False)
    else:
        ax.plot(shape.at, shape.adds, color=VALUE_COLOUR, drawstyle="steps-pre" if shape.is_stepped else "default")
    ax.set_title(shape.column, color=INK, fontsize=10, parse_math=False)
