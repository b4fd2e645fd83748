"""How often the splits of a tree survive, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display.digits import elide, percent
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import INK, PALE, VALUE_COLOUR, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_survival(columns: dict[str, list[Any]], max_splits: int, ax: Axes | None) -> Axes:
    """Draw the columns of a `Fragility`.

    Parameters
    ----------
    columns : dict of lists
        Splits in preorder.
    max_splits : int
        Bars at most; the splits with most rows are drawn.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    if max_splits < 1:
        raise ValueError(f"max_splits must be at least 1, not {max_splits!r}.")
    shown = sorted(sorted(range(len(columns["n"])), key=lambda k: -columns["n"][k])[:max_splits])
    ax = axes_of(ax, 7.5, 1.4 + 0.36 * len(shown), "top", "right", "left")
    places = np.arange(len(shown))
    survival = np.array([columns["survival"][k] for k in shown])
    same = np.array([columns["same_cut"][k] for k in shown])
    ax.barh(places, np.ones(len(shown)), color="#f2f2f2", height=0.66)
    ax.barh(places, survival, color=tint(VALUE_COLOUR, 0.55), height=0.66, label="same column")
    ax.barh(places, same, color=VALUE_COLOUR, height=0.66, label="and same cut")
    for place, share in zip(places, survival, strict=True):
        ax.annotate(percent(share), (1, place), xytext=(5, 0), textcoords="offset points", va="center", color=INK)
    names = ["   " * min(columns["depth"][k], 8) + elide(columns["cut"][k], 36) for k in shown]
    ax.set_yticks(places, names, parse_math=False, ha="left")
    ax.tick_params(axis="y", length=0, pad=_pad(names))
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="share of the bootstrap trees that have the split")
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.spines["bottom"].set_color(PALE)
    if len(shown):
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)
    return ax


def _pad(names: list[str]) -> float:
    """Room in points for names that start at one line, so that the indent shows the depth."""
    return 6.0 * max((len(name) for name in names), default=0)
