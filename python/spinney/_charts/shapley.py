"""Shapley values as pictures: over all rows, and step by step for one.

What is drawn has the attributes of `spinney.ShapValues`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._charts.axes import axes_of, pyplot
from spinney._charts.colours import CLASS_COLOURS, INK, PALE, VALUE_COLOUR, class_colour
from spinney._words.digits import elide, one_line, plural, shortest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

Floats = NDArray[np.float64]
_LOW, _HIGH, _NEITHER = "#0072B2", "#D55E00", "#999999"
_BINS = 80  # along the axis, in which points are stacked


def _largest(importances: Floats, max_columns: int) -> NDArray[np.intp]:
    return np.argsort(-importances, kind="stable")[:max_columns]


def _name(text: object) -> str:
    return elide(one_line(text), 36)


def draw_points(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw a point per row and column: how much the column adds, coloured by its value."""
    shown = _largest(explained.importances, max_columns)
    ax = axes_of(ax, 7.5, 1.3 + 0.36 * len(shown), "top", "right", "left")
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    size = float(np.clip(2000 / max(len(explained), 1), 4, 18))
    for place, j in enumerate(shown):
        values = explained.values[:, j]
        numbers = explained.numbers[:, j]
        plain = np.isnan(numbers) | explained.is_category(int(j))
        height = place + _spread(values)
        style: dict[str, Any] = {"s": size, "linewidths": 0, "alpha": 0.85}
        ax.scatter(values[plain], height[plain], color=_NEITHER, **style)
        ax.scatter(values[~plain], height[~plain], c=_ranks(numbers[~plain]), cmap=_ramp(), vmin=0, vmax=1, **style)
    ax.set_yticks(range(len(shown)), [_name(explained.feature_names[j]) for j in shown], parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel(f"added to the {one_line(explained.of)}")
    ax.tick_params(axis="y", length=0)
    _legend(ax, explained, shown)
    return ax


def _ramp() -> Colormap:
    pyplot()
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("low_high", [_LOW, "#b9a3c4", _HIGH])


def _ranks(numbers: Floats) -> Floats:
    """Where numbers stand among each other, from 0 to 1: colours that far-off values do not wash out."""
    distinct, place = np.unique(numbers, return_inverse=True)
    return np.asarray(place / max(1, len(distinct) - 1), dtype=np.float64)


def _spread(values: Floats) -> Floats:
    """Heights that lay points of about the same value beside each other, around 0."""
    height = np.zeros(len(values))
    extent = np.ptp(values) if len(values) else 0.0
    if extent == 0:
        return np.linspace(-0.3, 0.3, len(values)) if len(values) > 1 else height
    bins = np.floor((values - values.min()) / extent * _BINS).astype(np.intp)
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(bins[order]) > 0])
    counts = np.diff(np.r_[starts, len(values)])
    turn = np.arange(len(values)) - np.repeat(starts, counts)
    height[order] = np.where(turn % 2 == 0, 1, -1) * ((turn + 1) // 2)
    return np.asarray(height * min(0.06, 0.72 / max(1, counts.max())))


def _legend(ax: Axes, explained: Any, shown: NDArray[np.intp]) -> None:
    from matplotlib.lines import Line2D

    def dot(colour: str, label: str) -> Line2D:
        return Line2D([], [], marker="o", linestyle="", color=colour, markersize=5, label=label)

    categories = [explained.is_category(int(j)) for j in shown]
    numbers = [j for j, is_category in zip(shown, categories, strict=True) if not is_category]
    handles = [dot(_LOW, "low value"), dot(_HIGH, "high value")] if numbers else []
    missing = bool(np.isnan(explained.numbers[:, numbers]).any())
    if any(categories) or missing:
        words = ["category"] * any(categories) + ["missing"] * missing
        handles.append(dot(_NEITHER, " or ".join(words)))
    ax.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0.1)


def draw_bars(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw the mean size of each column's values, stacked over outputs."""
    sizes = explained.importances.reshape(len(explained.feature_names), -1)
    shown = _largest(sizes.sum(axis=1), max_columns)
    ax = axes_of(ax, 7.0, 1.3 + 0.32 * len(shown), "top", "right", "left")
    start = np.zeros(len(shown))
    for k, name in enumerate(explained.output_names or [None]):
        colour = VALUE_COLOUR if name is None else class_colour(k)
        ax.barh(range(len(shown)), sizes[shown, k], left=start, color=colour, height=0.66, label=_name(name))
        start += sizes[shown, k]
    ax.set_yticks(range(len(shown)), [_name(explained.feature_names[j]) for j in shown], parse_math=False)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    of = "" if explained.of == "prediction" else f" to the {one_line(explained.of)}"
    ax.set_xlabel(f"mean size of what the column adds{of}")
    if explained.output_names is not None:
        ax.legend(frameon=False, loc="lower right")
    return ax


def draw_row(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw the steps from the base value to the prediction of the first row, the largest on top."""
    values = explained.values[0]
    order = _largest(np.abs(values), max_columns if len(values) > max_columns else len(values))
    if len(values) > max_columns:
        order = order[: max_columns - 1]
    steps = [values[j] for j in order]
    names = [f"{_name(explained.feature_names[j])} = {_name(explained.text_of(0, int(j)))}" for j in order]
    if len(order) < len(values):
        steps.append(values.sum() - values[order].sum())
        names.append(plural(len(values) - len(order), "other column"))
    ax = axes_of(ax, 7.5, 1.5 + 0.36 * len(steps), "top", "right", "left")
    total = float(explained.predictions[0])
    ends = total - np.r_[0.0, np.cumsum(steps)]  # the largest step comes last on the way, and is drawn on top
    for place, step in enumerate(steps):
        colour = CLASS_COLOURS[5] if step > 0 else VALUE_COLOUR
        ax.barh(place, step, left=ends[place + 1], color=colour, height=0.62)
        ax.plot([ends[place]] * 2, [place - 0.69, place + 0.31], color=PALE, linewidth=0.8, zorder=0)
        right = max(ends[place], ends[place + 1])
        text = ("+" if step > 0 else "−" if step < 0 else "") + shortest(abs(float(f"{step:.3g}")), 3)
        ax.annotate(text, (right, place), xytext=(4, 0), textcoords="offset points", va="center", color=INK)
    base = float(explained.base_values[0])
    ax.axvline(base, color=PALE, linestyle=":", linewidth=1, zorder=0)
    ax.set_yticks(range(len(steps)), names, parse_math=False)
    ax.set_ylim(len(steps) - 0.4, -0.75)
    low, high = min([base, *ends]), max([base, *ends])
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.05 * room, high + 0.16 * room)
    ax.tick_params(axis="y", length=0)
    of = "" if explained.of == "prediction" else f"{one_line(explained.of)}, "
    ends_at = shortest(float(f"{total:.4g}"), 4)
    ax.set_xlabel(f"{of}from the base value {shortest(float(f'{base:.4g}'), 4)} to {ends_at}")
    return ax
