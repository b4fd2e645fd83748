"""Ways to another answer: how far each moves which columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import INK, PALE, class_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_ways(found: Any, ax: Axes | None) -> Axes:
    """Draw an arrow per changed column, in a block for each way."""
    lines = [(k, name) for k, texts in enumerate(found.texts) for name in texts]
    ax = axes_of(ax, 7.5, 1.5 + 0.4 * len(lines) + 0.2 * len(found.texts), "top", "right", "left")
    places = [place + 0.5 * k for place, (k, _) in enumerate(lines)]
    for place, (k, name) in zip(places, lines, strict=True):
        step = found.moves[k][name]
        old, new = found.texts[k][name]
        arrow = {"arrowstyle": "-|>", "color": class_colour(k), "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (step, place), (0, place), arrowprops=arrow)
        ax.annotate(
            f"{elide(one_line(old), 16)} → {elide(one_line(new), 16)}",
            (step, place),
            xytext=(6 if step > 0 else -6, 0),
            textcoords="offset points",
            ha="left" if step > 0 else "right",
            va="center",
            color=INK,
            fontsize=9,
            parse_math=False,
        )
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    names = [f"{k + 1}.  {elide(one_line(name), 28)}" for k, name in lines]
    ax.set_yticks(places, names, parse_math=False)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    steps = [0.0, *(found.moves[k][name] for k, name in lines)]
    room = max(steps) - min(steps)
    ax.set_xlim(min(steps) - (0.6 * room if min(steps) < 0 else 0.05), max(steps) + 0.6 * room)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"ways to {one_line(found.wanted)}: how far values move, as a share of their usual range")
    return ax
