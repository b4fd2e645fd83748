"""Partial dependence: curves, points per category, maps of two columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of, pyplot
from spinney.inspect.charts.colours import CLASS_MARKERS, INK, PALE, VALUE_COLOUR, class_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def draw_curves(found: Any, max_lines: int, ax: Axes | None) -> Axes:
    """Draw what is said as one column changes; single rows as thin lines behind the mean."""
    ax = axes_of(ax, 6.5, 4.2, "top", "right")
    is_category = found.is_category(0)
    x = np.arange(len(found.grid[0])) if is_category else found.numbers[0]
    averages = found.average if found.outputs is not None else found.average[:, np.newaxis]
    for k in range(averages.shape[1]):
        colour = VALUE_COLOUR if found.outputs is None else class_colour(k)
        if found.individual is not None:
            alone = found.individual if found.outputs is None else found.individual[..., k]
            _draw_rows(ax, x, alone, max_lines, colour, is_category)
        label = None if found.outputs is None else elide(one_line(found.outputs[k]), 24)
        style = {"linestyle": "", "markersize": 9} if is_category else {"linewidth": 2.4}
        marker = CLASS_MARKERS[k % len(CLASS_MARKERS)] if is_category else None
        ax.plot(x, averages[:, k], color=colour, marker=marker, label=label, zorder=3, **style)
    _label_values(ax, found, 0, x, "x")
    if len(found.deciles[0]):
        low, high = x[0], x[-1]
        ticks = [d for d in found.deciles[0] if low <= d <= high]
        ax.vlines(ticks, 0, 0.03, transform=ax.get_xaxis_transform(), color=PALE, linewidth=1)
    ax.set_ylabel(one_line(found.of), parse_math=False)
    if found.outputs is not None:
        ax.legend(frameon=False)
    return ax


def _draw_rows(ax: Axes, x: Any, alone: Floats, max_lines: int, colour: str, is_category: bool) -> None:
    shown = alone[np.unique(np.linspace(0, len(alone) - 1, min(max_lines, len(alone))).astype(np.intp))]
    if is_category:
        for place in range(shown.shape[1]):
            spread = np.linspace(-0.18, 0.18, len(shown))
            ax.scatter(place + spread, shown[:, place], s=6, color=colour, alpha=0.25, linewidths=0, zorder=1)
        return
    ax.plot(x, shown.T, color=colour, alpha=max(0.08, min(0.4, 12 / len(shown))), linewidth=0.8, zorder=1)


def draw_map(found: Any, ax: Axes | None) -> Axes:
    """Draw what is said as two columns change, as a map with lines of equal value."""
    if found.outputs is not None:
        known = ", ".join(map(repr, found.outputs[:10]))
        raise ValueError(f"A map shows one output. Pass output=…, one of {known}.")
    ax = axes_of(ax, 6.6, 5.0)
    cells = found.is_category(0) or found.is_category(1)
    x, y = (np.arange(len(found.grid[a])) if found.is_category(a) else found.numbers[a] for a in (0, 1))
    if cells or min(found.average.shape) < 3:
        drawn: Any = ax.pcolormesh(x, y, found.average.T, cmap="cividis", shading="nearest")
    else:
        drawn = ax.contourf(x, y, found.average.T, levels=12, cmap="cividis")
        lines = ax.contour(x, y, found.average.T, levels=drawn.levels[1:-1:2], colors="white", linewidths=0.6)
        ax.clabel(lines, fontsize=7)
    pyplot()
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.set_label(one_line(found.of), parse_math=False)
    _label_values(ax, found, 0, x, "x")
    _label_values(ax, found, 1, y, "y")
    return ax


def _label_values(ax: Axes, found: Any, axis: int, places: Any, side: str) -> None:
    """Name an axis, and the categories or dates on it."""
    set_label, ticks = (ax.set_xlabel, ax.set_xticks) if side == "x" else (ax.set_ylabel, ax.set_yticks)
    set_label(one_line(found.columns[axis]), parse_math=False)
    if found.is_category(axis):
        names = [elide(one_line(text), 18) for text in found.texts(axis)]
        turn: dict[str, Any] = {"rotation": 30, "ha": "right"} if side == "x" and sum(map(len, names)) > 60 else {}
        ticks(places, names, parse_math=False, **turn)
    elif found.features[axis].clock:
        texts = found.texts(axis)
        shown = np.unique(np.linspace(0, len(texts) - 1, min(5, len(texts))).astype(np.intp))
        ticks(places[shown], [texts[k] for k in shown], parse_math=False, color=INK)
