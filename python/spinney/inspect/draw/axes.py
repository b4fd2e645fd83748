"""Helpers of all charts: the import of matplotlib, colours, named lines, marks."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spinney._data.display import elide, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


def pyplot() -> ModuleType:
    """Return ``matplotlib.pyplot``; raise if it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib: pip install 'spinney-ml[plot]'. tree_svg works without it."
        ) from error
    return plt


def axes_of(ax: Axes | None, width: float, height: float, *open_sides: str) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches, without spines at the open sides."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
        assert ax is not None
    for side in open_sides:
        ax.spines[side].set_visible(False)
    return ax


def short(text: object, max_letters: int = 40) -> str:
    """Return a name on one line, shortened to a number of letters."""
    return elide(one_line(text), max_letters)


def name_lines(ax: Axes, names: Sequence[str], ends: tuple[float, float] | None = None, **look: Any) -> None:
    """Name each line of a chart, the first on top; `ends`: space below the last and above the first."""
    ax.set_yticks(range(len(names)), names, parse_math=False, **look)
    ax.tick_params(axis="y", length=0)
    if ends is None:
        ax.invert_yaxis()
    else:
        ax.set_ylim(max(1, len(names)) - 1 + ends[0], -ends[1])


def write_beside(ax: Axes, text: str, x: Any, y: Any, gap: float = 4, **look: Any) -> None:
    """Write to the right of a point, at a distance in points."""
    look = {"color": ink(), "va": "center"} | look
    ax.annotate(text, (x, y), xytext=(gap, 0), textcoords="offset points", **look)


def ring(ax: Axes, x: float, y: float, label: str | None, size: float = 11) -> None:
    """Draw a ring around the selected point; at NaN, only its label in the legend."""
    edge: dict[str, Any] = {
        "markerfacecolor": "none",
        "markeredgecolor": CLASS_COLOURS[5],
        "markeredgewidth": 2,
        "linestyle": "none",
    }
    ax.plot([x], [y], "o", markersize=size, label=label, **edge)


def legend_above(ax: Axes, n_columns: int) -> None:
    """Draw the legend above the axes, without a frame."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=n_columns, frameon=False, borderaxespad=0.2)


# Okabe and Ito's eight, ordered so that neighbours differ in lightness too.
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
# For categories in charts that use blue and orange for low and high values.
CATEGORY_COLOURS = ("#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#6A3D9A", "#7F5F1F")
CLASS_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
VALUE_COLOUR = "#0072B2"
INK, PALE = "#222222", "#777777"


def ink() -> str:
    """Return the colour of lines and marks that stand out: dark, or light in a dark style of matplotlib."""
    return INK if _is_light() else "#eeeeee"


def pale() -> str:
    """Return the colour of lines in the background."""
    return PALE if _is_light() else "#999999"


def paper() -> str:
    """Return the background colour of axes in the current style of matplotlib."""
    from matplotlib.colors import to_hex

    colour: str = to_hex(pyplot().rcParams["axes.facecolor"])
    return colour


def _is_light() -> bool:
    return sum(int(paper()[k : k + 2], 16) for k in (1, 3, 5)) > 1.5 * 255


def class_colour(code: int) -> str:
    """Return the colour of a class; after eight they repeat, darker."""
    base = CLASS_COLOURS[code % len(CLASS_COLOURS)]
    return mixed(base, "#000000", min(0.6, 0.3 * (code // len(CLASS_COLOURS))))


def class_look(code: int) -> dict[str, Any]:
    """Return the colour and marker of a class."""
    return {"color": class_colour(code), "marker": CLASS_MARKERS[code % len(CLASS_MARKERS)]}


def mixed(colour: str, other: str, fraction: float) -> str:
    """Return a mixture of two colours; `fraction` is that of the other."""
    channels = [(int(colour[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * fraction):02x}" for a, b in channels)


def tint(colour: str, strength: float) -> str:
    """Return a light tint of a colour; strength 0 is nearly white, 1 still light enough for dark text."""
    return mixed("#ffffff", colour, 0.10 + 0.55 * min(max(strength, 0.0), 1.0))


def value_tint(value: float, low: float, high: float) -> str:
    """Return the colour of a value between the lowest and the highest."""
    return tint(VALUE_COLOUR, (value - low) / (high - low) if high > low else 0.5)


def colour_map(*colours: str) -> Colormap:
    """Return a colour map that interpolates colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("colours", colours)


def ink_on(colour: str) -> str:
    """Return a text colour with a contrast of at least 4.5 on a background colour."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    if luminance > 0.26:
        return INK
    return "#000000" if luminance > 0.179 else "#ffffff"
