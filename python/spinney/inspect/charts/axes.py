"""Getting matplotlib when it is needed, and a sentence when it is not there."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pyplot() -> ModuleType:
    """Import ``matplotlib.pyplot``."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'spinney[plot]'. tree_svg works without it.") from error
    return plt


def axes_of(ax: Axes | None, width: float, height: float, *open_sides: str) -> Axes:
    """Return the axes given, or those of a new figure of this size in inches; no line is drawn at the open sides."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
        assert ax is not None
    for side in open_sides:
        ax.spines[side].set_visible(False)
    return ax
