"""Importances of a forest's columns: bars with standard errors, boxes over trees, points for single rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import grouped, one_line, plural, shortest
from spinney.inspect.charts import axes
from spinney.inspect.charts.axes import CATEGORY_COLOURS, INK, PALE, VALUE_COLOUR, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_MOST_CLASSES = 10  # more labels than this are coloured as numbers, if they are


Floats = NDArray[np.float64]


def _lines(found: Any, max_columns: int, ax: Axes | None, inches: float) -> tuple[Axes, list[int]]:
    """Axes with a line per column, the most important on top."""
    require_columns(max_columns)
    shown = found.order[:max_columns]
    ax = axes.axes_of(ax, 6.5, 1.0 + inches * len(shown), "top", "right", "left")
    axes.name_lines(ax, [short(found.names[j]) for j in shown], (0.5, 0.5))
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    return ax, shown


def require_columns(max_columns: int) -> None:
    """Refuse a number of columns that leaves nothing to draw."""
    if max_columns < 1:
        raise ValueError(f"max_columns must be at least 1, not {max_columns!r}.")


def draw_importances(found: Any, style: str, max_columns: int, ax: Axes | None) -> Axes:
    """Draw an `Importances`.

    Parameters
    ----------
    found : Importances
        What to draw.
    style : {"bar", "box"}
        Bars, or boxes over trees.
    max_columns : int
        Lines at most.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    if style not in ("bar", "box"):
        raise ValueError(f"style must be 'bar' or 'box', not {style!r}.")
    ax, shown = _lines(found, max_columns, ax, 0.32)
    places = np.arange(len(shown))
    values, errors = found.importance[shown], np.nan_to_num(found.standard_error[shown])
    if style == "bar":
        ax.barh(places, values, height=0.62, color=axes.tint(VALUE_COLOUR, 0.7))
        ax.errorbar(values, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=1.4, capsize=2.5)
    else:
        known = found.by_tree[~np.isnan(found.by_tree).any(axis=1)][:, shown]
        look: dict[str, Any] = {name: {"color": PALE} for name in ("medianprops", "whiskerprops", "capprops")}
        look["boxprops"] = {"facecolor": axes.tint(VALUE_COLOUR, 0.35), "edgecolor": PALE}
        look["flierprops"] = {"marker": ".", "markersize": 2, "markeredgecolor": PALE}
        look |= {"orientation": "horizontal", "manage_ticks": False, "patch_artist": True}
        ax.boxplot(known, positions=places, widths=0.6, **look)
        ax.errorbar(values, places, xerr=errors, fmt="o", color=VALUE_COLOUR, ecolor=INK, markersize=4, capsize=2.5)
    ax.set_xlabel(found.measure)
    return ax


def draw_rows(found: Any, by_row: NDArray[np.float64], colour: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw the importances of single rows.

    Parameters
    ----------
    found : Importances
        Names and order.
    by_row : ndarray of shape (n_samples, n_names)
        Importances of rows.
    colour : array-like of shape (n_samples,), optional
        Numbers or labels of the rows.
    max_columns : int
        Lines at most.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax, shown = _lines(found, max_columns, ax, 0.42)
    row = np.arange(len(by_row))
    jitter = 0.6 * (row * 0.6180339887498949 % 1 - 0.5)  # even, and the same each time
    for points, look in _looks(colour, len(by_row)):
        for place, j in enumerate(shown):
            own = look if place == 0 else look | {"label": None}
            drawn = ax.scatter(by_row[points, j], place + jitter[points], s=9, linewidths=0, alpha=0.7, **own)
        if "c" in look:
            ax.figure.colorbar(drawn, ax=ax, fraction=0.04)
    for place, j in enumerate(shown):
        ax.plot([found.importance[j]] * 2, [place - 0.36, place + 0.36], color=INK, linewidth=1.6)
    if ax.get_legend_handles_labels()[0]:
        axes.legend_above(ax, 4)
    ax.set_xlabel(f"{found.measure}, by row")
    return ax


def _looks(colour: object, n_rows: int) -> list[tuple[NDArray[np.intp], dict[str, Any]]]:
    """Rows that look alike, and how."""
    rows = np.arange(n_rows)
    if colour is None:
        return [(rows, {"color": VALUE_COLOUR})]
    values = np.asarray(colour)
    if values.shape != (n_rows,):
        raise ValueError(f"colour must have one entry for each of the {n_rows} rows, not the shape {values.shape}.")
    labels, codes = np.unique(values.astype(str), return_inverse=True)
    if values.dtype.kind in "fiu" and len(labels) > _MOST_CLASSES:
        return [(rows, {"c": values.astype(np.float64), "cmap": "viridis"})]
    return [
        (np.flatnonzero(codes == k), {"color": axes.class_colour(k), "label": short(label, 24)})
        for k, label in enumerate(labels)
    ]


_LOW, _HIGH, _NEITHER = "#0072B2", "#D55E00", "#999999"
_NAME_LETTERS = 20  # of categories in one line
_BINS = 80  # along the axis, in which points are stacked


def _largest(importances: Floats, max_columns: int) -> NDArray[np.intp]:
    return np.argsort(-importances, kind="stable")[:max_columns]


def draw_points(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw a point per row and column: how much the column adds, coloured by its value.

    Few categories have a colour each, named at the end of their line; of many only the number is told.
    """
    shown = _largest(explained.importances, max_columns)
    ax = axes.axes_of(ax, 7.5, 1.3 + 0.36 * len(shown), "top", "right", "left")
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    size = float(np.clip(2000 / max(len(explained), 1), 4, 18))
    for place, j in enumerate(shown):
        values = explained.values[:, j]
        numbers = explained.numbers[:, j]
        height = place + _spread(values)
        style: dict[str, Any] = {"s": size, "linewidths": 0, "alpha": 0.85}
        if explained.is_category(int(j)):
            present = np.unique(numbers[~np.isnan(numbers)])
            ax.scatter(values, height, color=_category_colours(numbers, present), **style)
            _name_categories(ax, place, _present_names(explained, int(j), present))
            continue
        plain = np.isnan(numbers)
        ax.scatter(values[plain], height[plain], color=_NEITHER, **style)
        ax.scatter(values[~plain], height[~plain], c=_ranks(numbers[~plain]), cmap=_ramp(), vmin=0, vmax=1, **style)
    axes.name_lines(ax, [short(explained.feature_names[j], 36) for j in shown], (0.6, 0.6))
    ax.set_xlabel(f"added to the {one_line(explained.of)}")
    _legend(ax, explained, shown)
    return ax


def _category_colours(codes: Floats, present: Floats) -> list[str]:
    """Colour of each point of a column of categories: grey if there are too many, or if the value is missing."""
    few = present if len(present) <= len(CATEGORY_COLOURS) else present[:0]
    colour = dict(zip(few.tolist(), CATEGORY_COLOURS, strict=False))
    return [colour.get(code, _NEITHER) for code in codes.tolist()]


def _present_names(explained: Any, column: int, present: Floats) -> list[str]:
    first = [int(np.flatnonzero(explained.numbers[:, column] == code)[0]) for code in present]
    return [short(explained.text_of(row, column), 16) for row in first]


def _name_categories(ax: Axes, place: int, names: list[str]) -> None:
    """Write the categories of one line behind it, in their colours; how many there are, if they have none."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea, VPacker

    if len(names) > len(CATEGORY_COLOURS):
        pairs = [(plural(len(names), "category"), PALE)]
    else:
        pairs = list(zip(names, CATEGORY_COLOURS, strict=False))
    texts = [TextArea(name, textprops={"color": colour, "size": 8, "parse_math": False}) for name, colour in pairs]
    half = len(texts) if sum(map(len, names)) <= _NAME_LETTERS else (len(texts) + 1) // 2
    lines = [HPacker(children=[*part], pad=0, sep=5, align="baseline") for part in (texts[:half], texts[half:]) if part]
    packed = VPacker(children=[*lines], pad=0, sep=1, align="left")
    at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "box_alignment": (0.0, 0.5), "annotation_clip": False}
    ax.add_artist(AnnotationBbox(packed, (1.01, place), frameon=False, pad=0, **at))


def _ramp() -> Colormap:
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

    has_numbers = not all(explained.is_category(int(j)) for j in shown)
    handles = [dot(_LOW, "low value"), dot(_HIGH, "high value")] if has_numbers else []
    if np.isnan(explained.numbers[:, shown]).any():
        handles.append(dot(_NEITHER, "missing"))
    ax.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0.1)


def draw_bars(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw the mean size of each column's values, stacked over outputs."""
    sizes = explained.importances.reshape(len(explained.feature_names), -1)
    shown = _largest(sizes.sum(axis=1), max_columns)
    ax = axes.axes_of(ax, 7.0, 1.3 + 0.32 * len(shown), "top", "right", "left")
    start = np.zeros(len(shown))
    for k, name in enumerate(explained.output_names or [None]):
        colour = VALUE_COLOUR if name is None else axes.class_colour(k)
        ax.barh(range(len(shown)), sizes[shown, k], left=start, color=colour, height=0.66, label=short(name, 36))
        start += sizes[shown, k]
    axes.name_lines(ax, [short(explained.feature_names[j], 36) for j in shown])
    of = "" if explained.of == "prediction" else f" to the {one_line(explained.of)}"
    ax.set_xlabel(f"mean size of what the column adds{of}")
    if explained.output_names is not None:
        ax.legend(frameon=False, loc="lower right")
    return ax


def draw_row(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Draw the steps from the base value to the prediction of the first row, the largest on top."""
    values = explained.values[0]
    order = _largest(np.abs(values), len(values) if len(values) <= max_columns else max_columns - 1)
    steps = [values[j] for j in order]
    names = [f"{short(explained.feature_names[j], 36)} = {short(explained.text_of(0, int(j)), 36)}" for j in order]
    if len(order) < len(values):
        steps.append(values.sum() - values[order].sum())
        names.append(plural(len(values) - len(order), "other column"))
    ax = axes.axes_of(ax, 7.5, 1.5 + 0.36 * len(steps), "top", "right", "left")
    total = float(explained.predictions[0])
    ends = total - np.r_[0.0, np.cumsum(steps)]  # the largest step comes last on the way, and is drawn on top
    for place, step in enumerate(steps):
        colour = axes.CLASS_COLOURS[5] if step > 0 else VALUE_COLOUR
        ax.barh(place, step, left=ends[place + 1], color=colour, height=0.62)
        ax.plot([ends[place]] * 2, [place - 0.69, place + 0.31], color=PALE, linewidth=0.8, zorder=0)
        right = max(ends[place], ends[place + 1])
        text = ("+" if step > 0 else "") + grouped(shortest(float(f"{step:.3g}"), 3))
        axes.write_beside(ax, text, right, place)
    base = float(explained.base_values[0])
    ax.axvline(base, color=PALE, linestyle=":", linewidth=1, zorder=0)
    axes.name_lines(ax, names, (0.6, 0.75))
    low, high = min([base, *ends]), max([base, *ends])
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.05 * room, high + 0.16 * room)
    of = "" if explained.of == "prediction" else f"{one_line(explained.of)}, "
    start, end = (grouped(shortest(float(f"{number:.4g}"), 4)) for number in (base, total))
    ax.set_xlabel(f"{of}from the base value {start} to {end}")
    return ax
