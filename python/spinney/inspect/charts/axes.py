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


# Okabe and Ito's eight, ordered so that neighbours differ in lightness too.
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
# For categories beside the blue and the orange of low and high values.
CATEGORY_COLOURS = ("#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#6A3D9A", "#7F5F1F")
CLASS_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
VALUE_COLOUR = "#0072B2"
INK, PALE = "#222222", "#777777"


def class_colour(code: int) -> str:
    """Colour of a class; after eight they come again, darker."""
    base = CLASS_COLOURS[code % len(CLASS_COLOURS)]
    return mixed(base, "#000000", min(0.6, 0.3 * (code // len(CLASS_COLOURS))))


def mixed(colour: str, other: str, share: float) -> str:
    """Mix two colours; `share` is the part of the other."""
    parts = [(int(colour[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in parts)


def tint(colour: str, strength: float) -> str:
    """Colour on white; strength 0 is nearly white, 1 well filled but light enough for dark letters."""
    return mixed("#ffffff", colour, 0.10 + 0.55 * min(max(strength, 0.0), 1.0))


def ink_on(colour: str) -> str:
    """Colour of letters that can be read on a colour: a contrast of 4.5 at least."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    if luminance > 0.26:
        return INK
    return "#000000" if luminance > 0.179 else "#ffffff"
