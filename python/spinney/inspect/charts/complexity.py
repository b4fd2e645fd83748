"""The nested trees of a pruning: their error against their size.

What is drawn has the attributes of `spinney.ComplexityTable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display.digits import plural
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import CLASS_COLOURS, INK, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_BARS = 60  # beyond, bars run into each other


_WIDE = 60  # leaves beyond which the small trees need a logarithmic axis


def draw_complexity(table: Any, ax: Axes | None) -> Axes:
    """Draw the error against the number of leaves, and ring the tree that was kept."""
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    size, error, spread = table.n_leaves, table.cv_error, table.cv_se
    name = "held-out rows" if table.scoring is None else "mean score"
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "label": name}
    if len(table) <= _MOST_BARS:
        ax.errorbar(size, error, spread, marker="o", markersize=4, capsize=3, elinewidth=1, **line)
    else:
        ax.plot(size, error, **line)
        ax.fill_between(size, error - spread, error + spread, color=VALUE_COLOUR, alpha=0.2, linewidth=0)
    if table.scoring is None:
        ax.plot(size, table.relative_error, color="#999999", linewidth=1, label="training rows")
    if table.chosen is not None:
        _mark_choice(ax, table)
    if size.max() > _WIDE:
        ax.set_xscale("log")
    label = "error as a share of the root's" if table.scoring is None else table.scoring
    ax.set(xlabel="leaves", ylabel=label)
    ax.legend(frameon=False)
    return ax


def _mark_choice(ax: Axes, table: Any) -> None:
    """Draw the line that the rule allows, and a ring around the tree that was kept."""
    worse = 1.0 if table.scoring is None else -1.0
    best = int(np.nanargmin(worse * table.cv_error))  # of equal ones the smallest tree, which comes first
    width = {"min": 0.0, "1se": 1.0}[table.rule] if isinstance(table.rule, str) else float(table.rule or 0.0)
    level = table.cv_error[best] + worse * width * table.cv_se[best]
    what = {"min": "the best", "1se": "1 standard error off the best"}.get(
        str(table.rule), f"{width:g} standard errors"
    )
    ax.axhline(level, color=INK, linestyle="--", linewidth=1, label=what)
    leaves, cp = int(table.n_leaves[table.chosen]), float(table.cp[table.chosen])
    ax.plot(
        [leaves],
        [table.cv_error[table.chosen]],
        "o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=CLASS_COLOURS[5],
        markeredgewidth=2,
        label=f"kept: {plural(leaves, 'leaf')}, cp {cp:.2g}",
    )
