"""Charts of evaluations: models compared, learning curves, pruning, coverage, bias and variance, densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display import plural
from spinney._data.types import Floats
from spinney.inspect.charts import axes
from spinney.inspect.charts.axes import INK, PALE, VALUE_COLOUR, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_comparison(found: Any, metric: str, ax: Axes | None) -> Axes:
    """Plot the score differences of the models of a `Comparison` to the reference."""
    sign = -1 if metric.startswith("neg_") else 1
    shown = metric.removeprefix("neg_")
    gaps = found.differences(metric=metric)
    names = [name for name in found.names if not np.isnan(gaps[name].mean)]
    ax = axes.axes_of(ax, 7.5, 1.4 + 0.45 * len(names), "top", "right", "left")
    for place, name in enumerate(names):
        gap, mean = gaps[name], sign * found.mean(name, metric)[0]
        is_reference = name == found.reference_
        colour = INK if is_reference else VALUE_COLOUR
        if not is_reference and not np.isnan(gap.low):
            ax.plot([sign * gap.low, sign * gap.high], [place, place], color=colour, linewidth=2.2, alpha=0.55)
        ax.plot([sign * gap.mean], [place], marker="D" if is_reference else "o", color=colour, markersize=7)
        at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(f"{mean:.4g}", (1.01, place), color=PALE, fontsize=9, **at)
    ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
    axes.name_lines(ax, [short(name) for name in names], (0.5, 0.5))
    better = "lower" if sign < 0 else "higher"
    ax.set_xlabel(f"difference of {shown} to {short(found.reference_, 30)}, 95% interval ({better} is better)")
    ax.annotate(shown, (1.01, 1.0), xycoords="axes fraction", va="bottom", color=PALE, fontsize=9)
    return ax


def draw_curves(found: Any, ax: Axes | None) -> Axes:
    """Plot the learning curves of a `Comparison`."""
    ax = axes.axes_of(ax, 7.0, 4.4, "top", "right")
    metric = found.metrics[0]
    sign = -1 if metric.startswith("neg_") else 1
    for k, name in enumerate(found.names):
        scores = sign * found.curves[name]
        mean = scores.mean(axis=1)
        spread = scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else np.zeros(len(mean))
        look = axes.class_look(k)
        ax.fill_between(found.curve_rows, mean - spread, mean + spread, color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(found.curve_rows, mean, markersize=5, label=short(name, 30), **look)
    ax.set(xlabel="training rows", ylabel=metric.removeprefix("neg_"))
    ax.legend(frameon=False)
    return ax


_MAX_BARS = 60  # more error bars would overlap
_MAX_LINEAR = 60  # leaves beyond which the axis is logarithmic


def draw_complexity(table: Any, ax: Axes | None) -> Axes:
    """Plot the error against the number of leaves, with a ring around the selected tree."""
    ax = axes.axes_of(ax, 7.0, 4.2, "top", "right")
    size, error, spread = table.n_leaves, table.cv_error, table.cv_se
    name = "held-out rows" if table.scoring is None else "mean score"
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "label": name}
    if len(table) <= _MAX_BARS:
        ax.errorbar(size, error, spread, marker="o", markersize=4, capsize=3, elinewidth=1, **line)
    else:
        ax.plot(size, error, **line)
        ax.fill_between(size, error - spread, error + spread, color=VALUE_COLOUR, alpha=0.2, linewidth=0)
    if table.scoring is None:
        ax.plot(size, table.relative_error, color="#999999", linewidth=1, label="training rows")
    if table.chosen is not None:
        _mark_choice(ax, table)
    if size.max() > _MAX_LINEAR:
        ax.set_xscale("log")
    label = "error relative to the root" if table.scoring is None else table.scoring
    ax.set(xlabel="leaves", ylabel=label)
    ax.legend(frameon=False)
    return ax


def _mark_choice(ax: Axes, table: Any) -> None:
    """Draw the limit of the rule, and a ring around the selected tree."""
    worse = 1.0 if table.scoring is None else -1.0
    best = int(np.nanargmin(worse * table.cv_error))  # the first of equal ones is the smallest tree
    width = {"min": 0.0, "1se": 1.0}[table.rule] if isinstance(table.rule, str) else float(table.rule or 0.0)
    level = table.cv_error[best] + worse * width * table.cv_se[best]
    names = {"min": "the best", "1se": "1 standard error off the best"}
    label = names.get(str(table.rule), f"{width:g} standard errors")
    ax.axhline(level, color=INK, linestyle="--", linewidth=1, label=label)
    leaves, cp = int(table.n_leaves[table.chosen]), float(table.cp[table.chosen])
    axes.ring(ax, leaves, table.cv_error[table.chosen], f"selected: {plural(leaves, 'leaf')}, cp {cp:.2g}")


def draw_coverage(columns: dict[str, list[Any]], nominal: float, ax: Axes | None) -> Axes:
    """Plot the columns of a `CoverageReport`."""
    names = [short(name, 36) for name in columns["rows"]]
    ax = axes.axes_of(ax, 6.5, 1.2 + 0.36 * len(names), "top", "right", "left")
    coverage, error = np.array(columns["coverage"]), np.array(columns["standard_error"])
    ax.axvline(nominal, color=PALE, linestyle="--", linewidth=1, label=f"nominal: {nominal:.0%}")
    look: dict[str, Any] = {"color": VALUE_COLOUR, "capsize": 3, "label": "covered, ± 2 standard errors"}
    ax.errorbar(coverage, np.arange(len(names)), xerr=2 * error, fmt="o", **look)
    axes.name_lines(ax, names, color=INK)
    low = min(float((coverage - 2 * error).min()), nominal) - 0.02
    ax.set(xlim=(max(0.0, low), 1.01), xlabel="fraction of the rows that are covered")
    ax.xaxis.set_major_formatter(lambda fraction, _: f"{fraction:.0%}")
    ax.spines["bottom"].set_color(PALE)
    axes.legend_above(ax, 2)
    return ax


def draw_parts(found: Any, ax: Axes | None) -> Axes:
    """Plot the components of a `BiasVariance`."""
    ax = axes.axes_of(ax, 7.0, 1.4 + 0.5 * len(found), "top", "right", "left")
    learners = list(found.parts.values())
    positions, is_squared = np.arange(len(learners)), found.loss == "squared"
    has_noise = any(part.noise is not None for part in learners)
    bias, variance = ("bias²", "variance") if is_squared else ("bias", "net variance")
    stack = [("noise", [part.noise_effect or 0.0 for part in learners], "#BBBBBB")] if has_noise else []
    stack.append((bias if has_noise else f"{bias} + noise", [part.bias for part in learners], axes.CLASS_COLOURS[0]))
    stack.append((variance, [part.variance for part in learners], axes.CLASS_COLOURS[1]))
    right, left = np.zeros(len(learners)), np.zeros(len(learners))
    for label, values, colour in stack:
        widths = np.array(values)
        start = np.where(widths >= 0, right, left)  # negative components are on the left of zero
        ax.barh(positions, widths, left=start, height=0.62, color=colour, label=label)
        right, left = right + np.maximum(widths, 0), left + np.minimum(widths, 0)
    for position, part, end in zip(positions, learners, right, strict=True):
        axes.write_beside(ax, f"{part.error:.3g}", end, position, 5)
    axes.name_lines(ax, [short(name) for name in found.parts])
    ax.axvline(0, color=INK, linewidth=0.8)
    low = 1.12 * left.min() if left.min() < 0 else 0.0
    label = "expected squared error" if is_squared else "expected error rate"
    ax.set(xlim=(low, 1.12 * max(right.max(), 1e-12)), xlabel=label)
    axes.legend_above(ax, 3)
    return ax


def draw_histogram(low: Floats, high: Floats, density: Floats, names: list[str], ax: Axes | None) -> Axes:
    """Plot the bins of one column as bars, or of two columns as rectangles with the density as colour."""
    ax = axes.axes_of(ax, 7.0, 4.2, "top", "right")
    if len(names) == 1:
        widths = high[:, 0] - low[:, 0]
        ax.bar(low[:, 0], density, widths, align="edge", color=axes.tint(VALUE_COLOUR, 0.6), edgecolor=VALUE_COLOUR)
        ax.set(xlabel=names[0], ylabel="density")
        return ax
    from matplotlib.patches import Rectangle

    for corner, end, height in zip(low, high, density / density.max(), strict=True):
        width, length = end - corner
        ax.add_patch(Rectangle(tuple(corner), width, length, facecolor=axes.tint(VALUE_COLOUR, 1.5 * float(height))))
    ax.set(xlim=(low[:, 0].min(), high[:, 0].max()), ylim=(low[:, 1].min(), high[:, 1].max()))
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax
