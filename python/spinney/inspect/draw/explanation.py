"""Charts of explanations: counterfactuals, shapes, interactions, nearest rows, dependence, importances, SHAP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import elide, grouped, one_line, percent, plural, shortest
from spinney._data.types import Floats
from spinney._estimator.parameters import require_whole
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import CATEGORY_COLOURS, VALUE_COLOUR, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_counterfactuals(found: Any, ax: Axes | None) -> Axes:
    """Plot an arrow per changed column, in a block for each alternative."""
    lines = [(k, name) for k, texts in enumerate(found.texts) for name in texts]
    ax = axes.axes_of(ax, 7.5, 1.5 + 0.4 * len(lines) + 0.2 * len(found.texts), "top", "right", "left")
    places = [line + 0.5 * k for line, (k, _) in enumerate(lines)]
    for place, (k, name) in zip(places, lines, strict=True):
        step = found.steps[k][name]
        old, new = found.texts[k][name]
        arrow = {"arrowstyle": "-|>", "color": axes.class_colour(k), "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (step, place), (0, place), arrowprops=arrow)
        look = {"ha": "left" if step > 0 else "right", "fontsize": 9, "parse_math": False}
        axes.write_beside(ax, f"{short(old, 16)} → {short(new, 16)}", step, place, 6 if step > 0 else -6, **look)
    ax.axvline(0, color=axes.pale(), linewidth=0.8, zorder=0)
    names = [f"{k + 1}.  {short(name, 28)}" for k, name in lines]
    ax.set_yticks(places, names, parse_math=False)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    steps = [0.0, *(found.steps[k][name] for k, name in lines)]
    span = max(steps) - min(steps)
    ax.set_xlim(min(steps) - (0.6 * span if min(steps) < 0 else 0.05), max(steps) + 0.6 * span)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"changes that lead to {one_line(found.wanted)}, relative to the typical range")
    return ax


_MAX_CATEGORIES = 12


def draw_shapes(shapes: Sequence[Any]) -> Figure:
    """Plot the functions of columns on a common scale."""
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
        ax.set_ylabel("contribution to the score")
    return figure


def _draw_shape(ax: Axes, shape: Any) -> None:
    axes.axes_of(ax, 0, 0, "top", "right")
    ax.axhline(0, color=axes.pale(), linewidth=0.8)
    if shape.at.dtype.kind == "O":
        shown = np.argsort(-np.abs(shape.adds), kind="stable")[:_MAX_CATEGORIES]
        shown = shown[np.argsort(shape.adds[shown], kind="stable")]
        places = np.arange(len(shown))
        ax.bar(places, shape.adds[shown], color=VALUE_COLOUR, width=0.7)
        ax.set_xticks(places, [str(name)[:16] for name in shape.at[shown]], rotation=45, ha="right", parse_math=False)
    else:
        ax.plot(shape.at, shape.adds, color=VALUE_COLOUR, drawstyle="steps-pre" if shape.is_stepped else "default")
    ax.set_title(shape.column, color=axes.ink(), fontsize=10, parse_math=False)


def draw_pairs(found: Any, max_pairs: int, ax: Axes | None) -> Axes:
    """Plot H of the strongest pairs as bars, with the size of their interaction."""
    shown = found.pairs[:max_pairs]
    ax = axes.axes_of(ax, 7.0, 1.3 + 0.34 * max(1, len(shown)), "top", "right", "left")
    ax.barh(range(len(shown)), found.pairwise[: len(shown)], color=VALUE_COLOUR, height=0.62)
    for place, size in enumerate(found.size[: len(shown)]):
        text = shortest(float(f"{size:.2g}"), 3)
        axes.write_beside(ax, text, found.pairwise[place], place, color=axes.pale(), fontsize=9)
    axes.name_lines(ax, [short(f"{a} × {b}", 44) for a, b in shown], (0.6, 0.6))
    ax.set_xlim(0, max(0.05, 1.12 * max(found.pairwise[: len(shown)], default=0)))
    ax.set_xlabel(f"interaction relative to the joint effect (H); grey: its size in the {one_line(found.of)}")
    return ax


def draw_nearest(found: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Plot a line per column with the value of the row in the middle and those of its neighbours around it."""
    shown = min(max_columns, len(found.columns))
    ax = axes.axes_of(ax, 7.0, 1.4 + 0.36 * shown, "top", "right", "left")
    for place in range(shown):
        values, value = found.values[:, place], found.row_values[place]
        ax.axhline(place, color=axes.pale(), linewidth=0.5, zorder=0)
        gap = values - value
        if np.isnan(value):
            gap = np.where(np.isnan(values), 0.0, np.nan)
        elif found.features[place].kind == "category":
            gap = np.where(values == value, 0.0, 1.0)
        reach = np.nanmax(np.abs(gap), initial=0.0) or 1.0
        x = np.nan_to_num(gap / reach, nan=1.15)
        ax.scatter(
            x, np.full(len(x), place), s=10 + 70 * found.similarity, color=VALUE_COLOUR, alpha=0.55, linewidths=0
        )
        ax.plot([0], [place], marker="D", color=axes.ink(), markersize=5, zorder=3)
        far = int(np.argmax(np.abs(x)))
        if x[far]:
            look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 7, "color": axes.pale()}
            ax.annotate(short(found.text_of(far, place), 14), (x[far], place), xytext=(0, 5), **look)
    texts = [short(found.text_of(None, j), 14) for j in range(shown)]
    names = [f"{short(name, 24)} = {text}" for name, text in zip(found.columns, texts, strict=False)]
    axes.name_lines(ax, names, (0.6, 0.7))
    ax.set_xlim(-1.3, 1.3)
    ax.set_xticks([0], ["the row"])
    ax.tick_params(axis="both", length=0)
    ax.set_xlabel("nearest rows, lower values to the left; larger points are more similar")
    return ax


def draw_survival(columns: dict[str, list[Any]], max_splits: int, ax: Axes | None) -> Axes:
    """Plot the columns of a `Fragility`."""
    require_whole("max_splits", max_splits)
    shown = sorted(sorted(range(len(columns["n"])), key=lambda k: -columns["n"][k])[:max_splits])
    ax = axes.axes_of(ax, 7.5, 1.4 + 0.36 * len(shown), "top", "right", "left")
    places = np.arange(len(shown))
    survival = np.array([columns["survival"][k] for k in shown])
    same = np.array([columns["same_cut"][k] for k in shown])
    ax.barh(places, np.ones(len(shown)), color="#f2f2f2", height=0.66)
    ax.barh(places, survival, color=axes.tint(VALUE_COLOUR, 0.55), height=0.66, label="same column")
    ax.barh(places, same, color=VALUE_COLOUR, height=0.66, label="and same cut")
    for place, fraction in zip(places, survival, strict=True):
        axes.write_beside(ax, percent(fraction), 1, place, 5)
    names = ["   " * min(columns["depth"][k], 8) + elide(columns["cut"][k], 36) for k in shown]
    axes.name_lines(ax, names, ha="left")
    ax.tick_params(axis="y", pad=6.0 * max(map(len, names), default=0))  # left-aligned names: the indent is the depth
    ax.set(xlim=(0, 1), xlabel="fraction of the bootstrap trees with this split")
    ax.xaxis.set_major_formatter(lambda fraction, _: f"{fraction:.0%}")
    ax.spines["bottom"].set_color(axes.pale())
    if len(shown):
        axes.legend_above(ax, 2)
    return ax


def draw_curves(found: Any, max_lines: int, ax: Axes | None) -> Axes:
    """Plot the dependence on one column; single rows are thin lines behind the mean."""
    ax = axes.axes_of(ax, 6.5, 4.2, "top", "right")
    x, is_category = _places(found, 0), found.is_category(0)
    curves = [(found, None)] if found.outputs is None else [(found.output(name), name) for name in found.outputs]
    for k, (curve, name) in enumerate(curves):
        look = axes.class_look(k) if name is not None else axes.class_look(0) | {"color": VALUE_COLOUR}
        drawstyle = "steps-mid" if found.is_stepped and not is_category else "default"
        if curve.individual is not None:
            _draw_rows(ax, x, curve.individual, max_lines, look["color"], is_category, drawstyle)
        style: dict[str, Any] = {"linestyle": "", "markersize": 9}
        style = style if is_category else {"linewidth": 2.4, "marker": None}
        style["drawstyle"] = drawstyle
        ax.plot(x, curve.average, label=None if name is None else short(name, 24), zorder=3, **look | style)
    _label_values(ax, found, 0, x)
    if len(found.deciles[0]):
        low, high = x[0], x[-1]
        ticks = [d for d in found.deciles[0] if low <= d <= high]
        ax.vlines(ticks, 0, 0.03, transform=ax.get_xaxis_transform(), color=axes.pale(), linewidth=1)
    ax.set_ylabel(one_line(found.of), parse_math=False)
    if found.outputs is not None:
        ax.legend(frameon=False)
    return ax


def _draw_rows(
    ax: Axes, x: Any, by_row: Floats, max_lines: int, colour: str, is_category: bool, drawstyle: str
) -> None:
    shown = by_row[np.unique(np.linspace(0, len(by_row) - 1, min(max_lines, len(by_row))).astype(np.intp))]
    if is_category:
        for place in range(shown.shape[1]):
            spread = np.linspace(-0.18, 0.18, len(shown))
            ax.scatter(place + spread, shown[:, place], s=6, color=colour, alpha=0.25, linewidths=0, zorder=1)
        return
    alpha = max(0.08, min(0.4, 12 / len(shown)))
    ax.plot(x, shown.T, color=colour, alpha=alpha, linewidth=0.8, drawstyle=drawstyle, zorder=1)


def draw_map(found: Any, ax: Axes | None) -> Axes:
    """Plot the dependence on two columns as a map with contour lines."""
    if found.outputs is not None:
        known = ", ".join(map(repr, found.outputs[:10]))
        raise ValueError(f"A map shows one output. Pass output=…, one of {known}.")
    ax = axes.axes_of(ax, 6.6, 5.0)
    x, y = (_places(found, axis) for axis in (0, 1))
    if found.is_stepped or found.is_category(0) or found.is_category(1) or min(found.average.shape) < 3:
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
    """Return the positions of the values of a column along an axis."""
    return np.arange(len(found.grid[axis])) if found.is_category(axis) else found.numbers[axis]


def _label_values(ax: Axes, found: Any, axis: int, places: Any) -> None:
    """Label an axis, and the categories or dates on it."""
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
        ticks(places[shown], [texts[k] for k in shown], parse_math=False, color=axes.ink())


# ---- importances --------------------------------------------------------------------------------------------------

_MAX_CLASSES = 10  # more numeric labels than this have a continuous colour scale


def _lines(found: Any, max_columns: int, ax: Axes | None, inches: float) -> tuple[Axes, list[int]]:
    """Return axes with a line per column, the most important on top, and the columns."""
    require_whole("max_columns", max_columns)
    shown = found.order[:max_columns]
    ax = axes.axes_of(ax, 6.5, 1.0 + inches * len(shown), "top", "right", "left")
    axes.name_lines(ax, [short(found.names[j]) for j in shown], (0.5, 0.5))
    ax.axvline(0, color=axes.pale(), linewidth=0.8, zorder=0)
    return ax, shown


def draw_importances(found: Any, style: str, max_columns: int, ax: Axes | None) -> Axes:
    """Plot an `Importances`."""
    if style not in ("bar", "box"):
        raise ValueError(f"style must be 'bar' or 'box', not {style!r}.")
    ax, shown = _lines(found, max_columns, ax, 0.32)
    places = np.arange(len(shown))
    values, errors = found.importance[shown], np.nan_to_num(found.standard_error[shown])
    if style == "bar":
        ax.barh(places, values, height=0.62, color=axes.tint(VALUE_COLOUR, 0.7))
        ax.errorbar(values, places, xerr=errors, fmt="none", ecolor=axes.ink(), elinewidth=1.4, capsize=2.5)
    else:
        known = found.by_tree[~np.isnan(found.by_tree).any(axis=1)][:, shown]
        look: dict[str, Any] = {name: {"color": axes.pale()} for name in ("medianprops", "whiskerprops", "capprops")}
        look["boxprops"] = {"facecolor": axes.tint(VALUE_COLOUR, 0.35), "edgecolor": axes.pale()}
        look["flierprops"] = {"marker": ".", "markersize": 2, "markeredgecolor": axes.pale()}
        look |= {"orientation": "horizontal", "manage_ticks": False, "patch_artist": True}
        ax.boxplot(known, positions=places, widths=0.6, **look)
        ax.errorbar(
            values, places, xerr=errors, fmt="o", color=VALUE_COLOUR, ecolor=axes.ink(), markersize=4, capsize=2.5
        )
    ax.set_xlabel(found.measure)
    return ax


def draw_rows(found: Any, by_row: NDArray[np.float64], colour: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Plot the importances of single rows."""
    ax, shown = _lines(found, max_columns, ax, 0.42)
    row = np.arange(len(by_row))
    jitter = 0.6 * (row * 0.6180339887498949 % 1 - 0.5)  # evenly spread, and reproducible
    for points, look in _looks(colour, len(by_row)):
        for place, j in enumerate(shown):
            style = look if place == 0 else look | {"label": None}
            drawn = ax.scatter(by_row[points, j], place + jitter[points], s=9, linewidths=0, alpha=0.7, **style)
        if "c" in look:
            ax.figure.colorbar(drawn, ax=ax, fraction=0.04)
    for place, j in enumerate(shown):
        ax.plot([found.importance[j]] * 2, [place - 0.36, place + 0.36], color=axes.ink(), linewidth=1.6)
    if ax.get_legend_handles_labels()[0]:
        axes.legend_above(ax, 4)
    ax.set_xlabel(f"{found.measure}, by row")
    return ax


def _looks(colour: object, n_rows: int) -> list[tuple[NDArray[np.intp], dict[str, Any]]]:
    """Return groups of rows with their colours and labels."""
    rows = np.arange(n_rows)
    if colour is None:
        return [(rows, {"color": VALUE_COLOUR})]
    values = np.asarray(colour)
    if values.shape != (n_rows,):
        raise ValueError(f"colour must have one entry for each of the {n_rows} rows, not the shape {values.shape}.")
    labels, codes = np.unique(values.astype(str), return_inverse=True)
    if values.dtype.kind in "fiu" and len(labels) > _MAX_CLASSES:
        return [(rows, {"c": values.astype(np.float64), "cmap": "viridis"})]
    return [
        (np.flatnonzero(codes == k), {"color": axes.class_colour(k), "label": short(label, 24)})
        for k, label in enumerate(labels)
    ]


_LOW_TO_HIGH = ("#0072B2", "#b9a3c4", "#D55E00")
_MISSING, _ANY_CATEGORY = "#999999", "#7F5F1F"
_NAME_LETTERS = 20  # of category names on one line
_BINS = 80  # along the axis, in which points are spread vertically


def _largest(importances: Floats, max_columns: int) -> NDArray[np.intp]:
    return np.argsort(-importances, kind="stable")[:max_columns]


def draw_points(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Plot a point per row and column: the contribution of the column, coloured by its value.

    Numbers have a colour scale. Few categories have separate colours, named at the end of the line; many are counted.
    """
    shown = _largest(explained.importances, max_columns)
    ax = axes.axes_of(ax, 7.5, 1.3 + 0.36 * len(shown), "top", "right", "left")
    ax.axvline(0, color=axes.pale(), linewidth=0.8, zorder=0)
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
        ax.scatter(values[plain], height[plain], color=_MISSING, **style)
        style |= {"cmap": axes.colour_map(*_LOW_TO_HIGH), "vmin": 0, "vmax": 1}
        ax.scatter(values[~plain], height[~plain], c=_ranks(numbers[~plain]), **style)
    axes.name_lines(ax, [short(explained.feature_names[j], 36) for j in shown], (0.6, 0.6))
    ax.set_xlabel(f"contribution to the {one_line(explained.of)}")
    _legend(ax, explained, shown)
    return ax


def _category_colours(codes: Floats, present: Floats) -> list[str]:
    """Return the colour of each point of a column of categories: one for all if there are many, grey if missing."""
    is_many = len(present) > len(CATEGORY_COLOURS)
    colours = [_ANY_CATEGORY] * len(present) if is_many else CATEGORY_COLOURS
    colour = dict(zip(present.tolist(), colours, strict=False))
    return [colour.get(code, _MISSING) for code in codes.tolist()]


def _present_names(explained: Any, column: int, present: Floats) -> list[str]:
    first = [int(np.flatnonzero(explained.numbers[:, column] == code)[0]) for code in present]
    return [short(explained.text_of(row, column), 16) for row in first]


def _name_categories(ax: Axes, place: int, names: list[str]) -> None:
    """Write the categories of a line after it, in their colours; only their number if they have none."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea, VPacker

    if len(names) > len(CATEGORY_COLOURS):
        pairs = [(plural(len(names), "category"), _ANY_CATEGORY)]
    else:
        pairs = list(zip(names, CATEGORY_COLOURS, strict=False))
    texts = [TextArea(name, textprops={"color": colour, "size": 8, "parse_math": False}) for name, colour in pairs]
    half = len(texts) if sum(map(len, names)) <= _NAME_LETTERS else (len(texts) + 1) // 2
    rows = [row for row in (texts[:half], texts[half:]) if row]
    lines = [HPacker(children=[*row], pad=0, sep=5, align="baseline") for row in rows]
    packed = VPacker(children=[*lines], pad=0, sep=1, align="left")
    at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "box_alignment": (0.0, 0.5), "annotation_clip": False}
    ax.add_artist(AnnotationBbox(packed, (1.01, place), frameon=False, pad=0, **at))


def _ranks(numbers: Floats) -> Floats:
    """Return the ranks of numbers, scaled from 0 to 1, for colours that are robust to outliers."""
    distinct, rank = np.unique(numbers, return_inverse=True)
    return np.asarray(rank / max(1, len(distinct) - 1), dtype=np.float64)


def _spread(values: Floats) -> Floats:
    """Return vertical offsets around 0 that separate points with similar values."""
    height = np.zeros(len(values))
    extent = np.ptp(values) if len(values) else 0.0
    if extent == 0:
        return np.linspace(-0.3, 0.3, len(values)) if len(values) > 1 else height
    bins = np.floor((values - values.min()) / extent * _BINS).astype(np.intp)
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(bins[order]) > 0])
    counts = np.diff(np.r_[starts, len(values)])
    position = np.arange(len(values)) - np.repeat(starts, counts)
    height[order] = np.where(position % 2 == 0, 1, -1) * ((position + 1) // 2)
    return np.asarray(height * min(0.06, 0.72 / max(1, counts.max())))


def _legend(ax: Axes, explained: Any, shown: NDArray[np.intp]) -> None:
    """Draw the colour bar of numbers and the colour of missing values above the axes."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, OffsetImage, TextArea

    parts: list[Any] = []
    if np.isnan(explained.numbers[:, shown]).any():
        parts += [TextArea("●", textprops={"color": _MISSING}), TextArea("missing    ")]
    if not all(explained.is_category(int(j)) for j in shown):
        scale = axes.colour_map(*_LOW_TO_HIGH)(np.tile(np.linspace(0, 1, 80), (8, 1)))
        parts += [TextArea("low value"), OffsetImage(scale, zoom=1), TextArea("high value")]
    if parts:
        packed = HPacker(children=parts, pad=0, sep=4, align="center")
        at: dict[str, Any] = {"xycoords": "axes fraction", "box_alignment": (1.0, 0.0), "annotation_clip": False}
        ax.add_artist(AnnotationBbox(packed, (1, 1.01), frameon=False, pad=0, **at))


def draw_bars(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Plot the mean absolute value of each column, stacked over outputs."""
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
    ax.set_xlabel(f"mean absolute contribution{of}")
    if explained.output_names is not None:
        ax.legend(frameon=False, loc="lower right")
    return ax


def draw_row(explained: Any, max_columns: int, ax: Axes | None) -> Axes:
    """Plot the contributions from the base value to the prediction of the first row, the largest on top."""
    values = explained.values[0]
    order = _largest(np.abs(values), len(values) if len(values) <= max_columns else max_columns - 1)
    steps = [values[j] for j in order]
    names = [f"{short(explained.feature_names[j], 36)} = {short(explained.text_of(0, int(j)), 36)}" for j in order]
    if len(order) < len(values):
        steps.append(values.sum() - values[order].sum())
        names.append(plural(len(values) - len(order), "other column"))
    ax = axes.axes_of(ax, 7.5, 1.5 + 0.36 * len(steps), "top", "right", "left")
    total = float(explained.predictions[0])
    ends = total - np.r_[0.0, np.cumsum(steps)]  # the largest contribution comes last, and is drawn on top
    for place, step in enumerate(steps):
        colour = axes.CLASS_COLOURS[5] if step > 0 else VALUE_COLOUR
        ax.barh(place, step, left=ends[place + 1], color=colour, height=0.62)
        ax.plot([ends[place]] * 2, [place - 0.69, place + 0.31], color=axes.pale(), linewidth=0.8, zorder=0)
        right = max(ends[place], ends[place + 1])
        text = ("+" if step > 0 else "") + grouped(shortest(float(f"{step:.3g}"), 3))
        axes.write_beside(ax, text, right, place)
    base = float(explained.base_values[0])
    ax.axvline(base, color=axes.pale(), linestyle=":", linewidth=1, zorder=0)
    axes.name_lines(ax, names, (0.6, 0.75))
    low, high = min([base, *ends]), max([base, *ends])
    span = (high - low) or 1.0
    ax.set_xlim(low - 0.05 * span, high + 0.16 * span)
    of = "" if explained.of == "prediction" else f"{one_line(explained.of)}, "
    label = f"{of}from the base value {_four_digits(base)} to {_four_digits(total)}"
    if explained.response is not None:
        label += f"\n{explained.response_name}: from " + " to ".join(map(_four_digits, explained.response[0].tolist()))
    ax.set_xlabel(label, parse_math=False)
    return ax


def _four_digits(number: float) -> str:
    return grouped(shortest(float(f"{number:.4g}"), 4))
