"""Charts of explanations: counterfactuals, shapes, interactions, nearest rows, partial dependence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import elide, one_line, percent, shortest
from spinney.inspect.charts import axes
from spinney.inspect.charts.axes import INK, PALE, VALUE_COLOUR, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_ways(found: Any, ax: Axes | None) -> Axes:
    """Draw an arrow per changed column, in a block for each way."""
    lines = [(k, name) for k, texts in enumerate(found.texts) for name in texts]
    ax = axes.axes_of(ax, 7.5, 1.5 + 0.4 * len(lines) + 0.2 * len(found.texts), "top", "right", "left")
    places = [place + 0.5 * k for place, (k, _) in enumerate(lines)]
    for place, (k, name) in zip(places, lines, strict=True):
        step = found.moves[k][name]
        old, new = found.texts[k][name]
        arrow = {"arrowstyle": "-|>", "color": axes.class_colour(k), "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (step, place), (0, place), arrowprops=arrow)
        look = {"ha": "left" if step > 0 else "right", "fontsize": 9, "parse_math": False}
        axes.write_beside(ax, f"{short(old, 16)} → {short(new, 16)}", step, place, 6 if step > 0 else -6, **look)
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    names = [f"{k + 1}.  {short(name, 28)}" for k, name in lines]
    ax.set_yticks(places, names, parse_math=False)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    steps = [0.0, *(found.moves[k][name] for k, name in lines)]
    room = max(steps) - min(steps)
    ax.set_xlim(min(steps) - (0.6 * room if min(steps) < 0 else 0.05), max(steps) + 0.6 * room)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"ways to {one_line(found.wanted)}: how far values move, as a share of their usual range")
    return ax


_MOST_NAMES = 12


def draw_shapes(shapes: Sequence[Any]) -> Figure:
    """Draw functions, each with its column's name; all on one scale, so that their sizes compare."""
    n = max(1, len(shapes))
    n_wide = min(3, n)
    n_high = math.ceil(n / n_wide)
    figure: Figure = axes.pyplot().figure(figsize=(3.2 * n_wide, 2.5 * n_high), layout="constrained")
    cells = figure.subplots(n_high, n_wide, sharey=True, squeeze=False)
    for ax, shape in zip(cells.flat, shapes, strict=False):
        _draw_shape(ax, shape)
    for ax in cells.flat[len(shapes) :]:
        ax.set_visible(False)
    for ax in cells[:, 0]:
        ax.set_ylabel("adds to the score")
    return figure


def _draw_shape(ax: Axes, shape: Any) -> None:
    axes.axes_of(ax, 0, 0, "top", "right")
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


def draw_pairs(found: Any, max_pairs: int, ax: Axes | None) -> Axes:
    """Draw H of the strongest pairs as bars, with the size of what they do together."""
    shown = found.pairs[:max_pairs]
    ax = axes.axes_of(ax, 7.0, 1.3 + 0.34 * max(1, len(shown)), "top", "right", "left")
    ax.barh(range(len(shown)), found.pairwise[: len(shown)], color=VALUE_COLOUR, height=0.62)
    for place, size in enumerate(found.size[: len(shown)]):
        text = shortest(float(f"{size:.2g}"), 3)
        axes.write_beside(ax, text, found.pairwise[place], place, color=PALE, fontsize=9)
    axes.name_lines(ax, [short(f"{a} × {b}", 44) for a, b in shown], (0.6, 0.6))
    ax.set_xlim(0, max(0.05, 1.12 * max(found.pairwise[: len(shown)], default=0)))
    ax.set_xlabel(f"share of what the pair does that is not a sum (H); grey: its size in the {one_line(found.of)}")
    return ax


def draw_nearest(found: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw a line per column with the row's value in the middle and those of its neighbours around it."""
    shown = min(max_columns, len(found.columns))
    ax = axes.axes_of(ax, 7.0, 1.4 + 0.36 * shown, "top", "right", "left")
    for place in range(shown):
        values, own = found.values[:, place], found.row_values[place]
        ax.axhline(place, color=PALE, linewidth=0.5, zorder=0)
        gap = values - own
        if np.isnan(own):
            gap = np.where(np.isnan(values), 0.0, np.nan)
        elif found.features[place].kind == "category":
            gap = np.where(values == own, 0.0, 1.0)
        reach = np.nanmax(np.abs(gap), initial=0.0) or 1.0
        x = np.nan_to_num(gap / reach, nan=1.15)
        ax.scatter(x, np.full(len(x), place), s=10 + 70 * found.likeness, color=VALUE_COLOUR, alpha=0.55, linewidths=0)
        ax.plot([0], [place], marker="D", color=INK, markersize=5, zorder=3)
        far = int(np.argmax(np.abs(x)))
        if x[far]:
            look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 7, "color": PALE}
            ax.annotate(short(found.text_of(far, place), 14), (x[far], place), xytext=(0, 5), **look)
    texts = [short(found.text_of(None, j), 14) for j in range(shown)]
    names = [f"{short(name, 24)} = {text}" for name, text in zip(found.columns, texts, strict=False)]
    axes.name_lines(ax, names, (0.6, 0.7))
    ax.set_xlim(-1.3, 1.3)
    ax.set_xticks([0], ["the row"])
    ax.tick_params(axis="both", length=0)
    ax.set_xlabel("near rows, lower values to the left; larger points are more alike")
    return ax


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
    ax = axes.axes_of(ax, 7.5, 1.4 + 0.36 * len(shown), "top", "right", "left")
    places = np.arange(len(shown))
    survival = np.array([columns["survival"][k] for k in shown])
    same = np.array([columns["same_cut"][k] for k in shown])
    ax.barh(places, np.ones(len(shown)), color="#f2f2f2", height=0.66)
    ax.barh(places, survival, color=axes.tint(VALUE_COLOUR, 0.55), height=0.66, label="same column")
    ax.barh(places, same, color=VALUE_COLOUR, height=0.66, label="and same cut")
    for place, share in zip(places, survival, strict=True):
        axes.write_beside(ax, percent(share), 1, place, 5)
    names = ["   " * min(columns["depth"][k], 8) + elide(columns["cut"][k], 36) for k in shown]
    axes.name_lines(ax, names, ha="left")
    ax.tick_params(axis="y", pad=6.0 * max(map(len, names), default=0))  # names start at one line: an indent is a level
    ax.set(xlim=(0, 1), xlabel="share of the bootstrap trees that have the split")
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.spines["bottom"].set_color(PALE)
    if len(shown):
        axes.legend_above(ax, 2)
    return ax


Floats = NDArray[np.float64]


def draw_curves(found: Any, max_lines: int, ax: Axes | None) -> Axes:
    """Draw what is said as one column changes; single rows as thin lines behind the mean."""
    ax = axes.axes_of(ax, 6.5, 4.2, "top", "right")
    x, is_category = _places(found, 0), found.is_category(0)
    parts = [(found, None)] if found.outputs is None else [(found.output(name), name) for name in found.outputs]
    for k, (part, name) in enumerate(parts):
        look = axes.class_look(k) if name is not None else axes.class_look(0) | {"color": VALUE_COLOUR}
        if part.individual is not None:
            _draw_rows(ax, x, part.individual, max_lines, look["color"], is_category)
        style = {"linestyle": "", "markersize": 9} if is_category else {"linewidth": 2.4, "marker": None}
        ax.plot(x, part.average, label=None if name is None else short(name, 24), zorder=3, **look | style)
    _label_values(ax, found, 0, x)
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
    ax = axes.axes_of(ax, 6.6, 5.0)
    x, y = (_places(found, axis) for axis in (0, 1))
    if found.is_category(0) or found.is_category(1) or min(found.average.shape) < 3:
        drawn: Any = ax.pcolormesh(x, y, found.average.T, cmap="cividis", shading="nearest")
    else:
        drawn = ax.contourf(x, y, found.average.T, levels=12, cmap="cividis")
        lines = ax.contour(x, y, found.average.T, levels=drawn.levels[1:-1:2], colors="white", linewidths=0.6)
        ax.clabel(lines, fontsize=7)
    axes.pyplot()
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.set_label(one_line(found.of), parse_math=False)
    _label_values(ax, found, 0, x)
    _label_values(ax, found, 1, y)
    return ax


def _places(found: Any, axis: int) -> Any:
    """Where the values of a column stand along an axis."""
    return np.arange(len(found.grid[axis])) if found.is_category(axis) else found.numbers[axis]


def _label_values(ax: Axes, found: Any, axis: int, places: Any) -> None:
    """Name an axis, and the categories or dates on it."""
    set_label: Any = (ax.set_xlabel, ax.set_ylabel)[axis]
    ticks: Any = (ax.set_xticks, ax.set_yticks)[axis]
    set_label(one_line(found.columns[axis]), parse_math=False)
    if found.is_category(axis):
        names = [short(text, 18) for text in found.texts(axis)]
        turn: dict[str, Any] = {"rotation": 30, "ha": "right"} if axis == 0 and sum(map(len, names)) > 60 else {}
        ticks(places, names, parse_math=False, **turn)
    elif found.features[axis].clock:
        texts = found.texts(axis)
        shown = np.unique(np.linspace(0, len(texts) - 1, min(5, len(texts))).astype(np.intp))
        ticks(places[shown], [texts[k] for k in shown], parse_math=False, color=INK)
