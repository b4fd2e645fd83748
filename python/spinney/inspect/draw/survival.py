"""The survival curves of the leaves of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display import elide, plural
from spinney.inspect.draw import axes
from spinney.inspect.text.text import rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_LEAVES = 8
_MAX_LETTERS = 60


def draw_leaf_curves(model: Any, ax: Axes | None) -> Axes:
    """Draw a curve for each leaf, with its rule and its relative hazard, from the lowest hazard to the highest."""
    found = sorted(rules(model), key=lambda rule: float(np.sum(rule.prediction)))
    if len(found) > _MAX_LEAVES:
        raise ValueError(
            f"The tree has {plural(len(found), 'leaf')}, and at most {_MAX_LEAVES} curves can be distinguished. Prune "
            "it: model.pruned(alpha=…), or fit with max_leaf_nodes."
        )
    ax = axes.axes_of(ax, 7.5, 4.2, "top", "right")
    last = float(model.event_times_[-1])
    for k, rule in enumerate(found):
        curve = model.leaf_curve(rule.node)
        at = np.concatenate([[0.0], curve.time, [max(last, *curve.time, 0.0)]])
        height = np.concatenate([[1.0], curve.survival, curve.survival[-1:] if len(curve.time) else [1.0]])
        conditions = " and ".join(condition.describe(show_missing=False) for condition in rule.conditions) or "all"
        label = f"{elide(conditions, _MAX_LETTERS)}: {plural(rule.n, 'row')}"
        ax.step(at, height, where="post", color=axes.class_colour(k), linewidth=2, label=label)
    ax.set(xlabel="time", ylabel="probability of no event so far", ylim=(0, 1.02))
    ax.set_xlim(0, last)
    ax.legend(frameon=False, fontsize=8)
    return ax
