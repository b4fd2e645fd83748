"""Importances of a forest's columns: bars with standard errors, boxes over trees, points for single rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display.digits import elide, one_line
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import INK, PALE, VALUE_COLOUR, class_colour, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_CLASSES = 10  # more labels than this are coloured as numbers, if they are


def _lines(found: Any, max_columns: int, ax: Axes | None, inches: float) -> tuple[Axes, list[int]]:
    """Axes with a line per column, the most important on top."""
    if max_columns < 1:
        raise ValueError(f"max_columns must be at least 1, not {max_columns!r}.")
    shown = found.order[:max_columns]
    ax = axes_of(ax, 6.5, 1.0 + inches * len(shown), "top", "right", "left")
    names = [elide(one_line(found.names[j]), 40) for j in shown]
    ax.set_yticks(np.arange(len(shown)), names, parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    ax.tick_params(axis="y", length=0)
    return ax, shown


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
        ax.barh(places, values, height=0.62, color=tint(VALUE_COLOUR, 0.7))
        ax.errorbar(values, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=1.4, capsize=2.5)
    else:
        known = found.by_tree[~np.isnan(found.by_tree).any(axis=1)][:, shown]
        ax.boxplot(
            known,
            orientation="horizontal",
            positions=places,
            widths=0.6,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": tint(VALUE_COLOUR, 0.35), "edgecolor": PALE},
            medianprops={"color": PALE},
            whiskerprops={"color": PALE},
            capprops={"color": PALE},
            flierprops={"marker": ".", "markersize": 2, "markeredgecolor": PALE},
        )
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
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, borderaxespad=0.2)
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
        (np.flatnonzero(codes == k), {"color": class_colour(k), "label": elide(one_line(str(label)), 24)})
        for k, label in enumerate(labels)
    ]
