"""Pairs of columns that act together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinney._data.display.digits import elide, one_line, shortest
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import PALE, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_pairs(found: Any, max_pairs: int, ax: Axes | None) -> Axes:
    """Draw H of the strongest pairs as bars, with the size of what they do together."""
    shown = found.pairs[:max_pairs]
    ax = axes_of(ax, 7.0, 1.3 + 0.34 * max(1, len(shown)), "top", "right", "left")
    ax.barh(range(len(shown)), found.pairwise[: len(shown)], color=VALUE_COLOUR, height=0.62)
    for place, size in enumerate(found.size[: len(shown)]):
        ax.annotate(
            shortest(float(f"{size:.2g}"), 3),
            (found.pairwise[place], place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=PALE,
            fontsize=9,
        )
    names = [elide(one_line(f"{a} × {b}"), 44) for a, b in shown]
    ax.set_yticks(range(len(shown)), names, parse_math=False)
    ax.set_ylim(max(1, len(shown)) - 0.4, -0.6)
    ax.set_xlim(0, max(0.05, 1.12 * max(found.pairwise[: len(shown)], default=0)))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"share of what the pair does that is not a sum (H); grey: its size in the {one_line(found.of)}")
    return ax
