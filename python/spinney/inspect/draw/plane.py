"""The partition of the plane: the regions of a tree in two of its columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Feature
from spinney._data.cells import date_text
from spinney._data.display import elide, one_line
from spinney._data.types import ColumnLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import encode_labels, read_values
from spinney.inspect.charts.axes import CLASS_MARKERS, INK, VALUE_COLOUR, axes_of, class_colour, pyplot, tint
from spinney.inspect.text.reader import TreeReader

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_MOST_POINTS = 3000


@dataclass(frozen=True)
class Region:
    """A rectangle of the plane in which a tree predicts the same."""

    node: int
    x: tuple[float, float]
    y: tuple[float, float]


def plot_partition(
    model: TableEstimator,
    X: Any,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the regions into which a tree parts the plane of two columns, with the rows as points.

    Parameters
    ----------
    model : estimator
        A fitted decision tree with one output.
    X : table of shape (n_samples, n_features)
        Rows. Columns of the model other than the two are held at the median (numbers) or the most frequent value of
        these rows, so that the picture is a cut through the whole.
    y : array-like of shape (n_samples,), optional
        Classes or values of the rows. None: no points.
    features : two names or positions, optional
        Columns across and up; number columns. None: those of the model if it has two, else the two most important.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> X = X[["bill_length_mm", "flipper_length_mm"]]
    >>> model = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    >>> ax = spinney.plot_partition(model, X, y)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    reader = TreeReader(model)
    if reader.tree.n_outputs > 1:
        raise ValueError("plot_partition draws trees with one output; this one has several.")
    if model.schema_.pool is not None:
        raise ValueError("plot_partition draws cuts along the axes, but those of this tree are oblique. Use plot_tree.")
    a, b = _two_columns(reader, features)
    columns = reader.values(X)
    pyplot()
    ax = axes_of(ax, 6.4, 4.8)
    limits = [_limits(columns[j]) for j in (a, b)]
    span = _span(reader, y, len(columns[a]))
    for region in regions(reader, (a, b), [_typical(reader, j, columns[j]) for j in range(len(columns))]):
        _fill(ax, reader, region, limits, span)
    if y is not None:
        _points(ax, reader, columns[a], columns[b], y, span)
    ax.set(
        xlim=limits[0],
        ylim=limits[1],
        xlabel=elide(one_line(reader.features[a].name), 60),
        ylabel=elide(one_line(reader.features[b].name), 60),
    )
    for axis, j in ((ax.xaxis, a), (ax.yaxis, b)):
        if reader.features[j].clock:
            axis.set_major_formatter(partial(_date_tick, reader.features[j]))
    return ax


def _date_tick(feature: Feature, seconds: float, _: int) -> str:
    return date_text(seconds, feature.resolution, feature.clock)


def _two_columns(reader: TreeReader, features: Sequence[str | int] | None) -> tuple[int, int]:
    names = [feature.name for feature in reader.features]
    numbers = [j for j, feature in enumerate(reader.features) if feature.kind == "number"]
    if features is None:
        importance = reader.model.feature_importances_
        chosen = sorted(sorted(numbers, key=lambda j: -importance[j])[:2])
    else:
        if isinstance(features, str) or len(features) != 2:
            raise ValueError("features must be two names or positions of columns.")
        for f in features:
            if f not in names if isinstance(f, str) else not 0 <= f < len(names):
                raise ValueError(f"The model has no column {f!r}.")
        chosen = [names.index(f) if isinstance(f, str) else int(f) for f in features]
    if len(chosen) != 2 or any(j not in numbers for j in chosen):
        raise ValueError("plot_partition needs two number columns.")
    return chosen[0], chosen[1]


def _span(reader: TreeReader, y: ColumnLike, n_rows: int) -> tuple[float, float]:
    """Values between which colours run: those of the rows if there are any, else those of the leaves."""
    values = reader.tree.flat_value[reader.tree.is_leaf, 0]
    if y is not None and not reader.is_classifier:
        values = read_values(y, n_rows)[:, 0]
    return float(values.min()), float(values.max())


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def _typical(reader: TreeReader, j: int, values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan
    if reader.features[j].kind == "number":
        return float(np.median(known))
    found, count = np.unique(known, return_counts=True)
    return float(found[count.argmax()])


def regions(reader: TreeReader, columns: tuple[int, int], typical: list[float]) -> list[Region]:
    """Find the rectangles of the plane of two columns, the others having their typical values."""
    found = []
    stack = [(0, [(-math.inf, math.inf), (-math.inf, math.inf)])]
    while stack:
        node, box = stack.pop()
        if reader.is_leaf(node):
            found.append(Region(node, box[0], box[1]))
            continue
        j = reader.column(node)
        if j not in columns:
            next_node = reader.turn(node, typical).child
            if next_node is None:
                found.append(Region(node, box[0], box[1]))
            else:
                stack.append((next_node, box))
            continue
        for child, side in zip(reader.children(node), reader.sides(node), strict=True):
            k = columns.index(j)
            low, high = max(box[k][0], side.lower), min(box[k][1], side.upper)
            if low < high:
                stack.append((child, [(low, high), box[1]] if k == 0 else [box[0], (low, high)]))
    return found


def _fill(
    ax: Axes, reader: TreeReader, region: Region, limits: list[tuple[float, float]], span: tuple[float, float]
) -> None:
    from matplotlib.patches import Rectangle

    corner, size = [], []
    for (low, high), (first, last) in zip((region.x, region.y), limits, strict=True):
        start, end = max(low, first), min(high, last)
        if start >= end:
            return
        corner.append(start)
        size.append(end - start)
    if reader.is_classifier:
        strength = 0.1 + 0.5 * reader.certainty(region.node)
        colour = tint(class_colour(int(reader.tree.majority[region.node, 0])), strength)
    else:
        value = float(reader.tree.flat_value[region.node, 0])
        colour = tint(VALUE_COLOUR, (value - span[0]) / (span[1] - span[0]) if span[1] > span[0] else 0.5)
    ax.add_patch(Rectangle((corner[0], corner[1]), *size, facecolor=colour, edgecolor=INK, linewidth=0.8, zorder=1))


def _points(
    ax: Axes, reader: TreeReader, xs: NDArray[np.float64], ys: NDArray[np.float64], y: Any, span: tuple[float, float]
) -> None:
    step = max(1, len(xs) // _MOST_POINTS)
    rows = np.arange(0, len(xs), step)
    edge: dict[str, Any] = {"edgecolors": "#ffffff", "linewidths": 0.5, "s": 26, "zorder": 3}
    if not reader.is_classifier:
        values = read_values(y, len(xs))[rows, 0]
        scale: dict[str, Any] = {"c": values, "cmap": _value_map(), "vmin": span[0], "vmax": span[1]}
        drawn = ax.scatter(xs[rows], ys[rows], **scale, **{**edge, "edgecolors": INK})
        ax.figure.colorbar(drawn, ax=ax, label="value of points and regions")
        return
    codes = encode_labels(y, [np.asarray(reader.model.classes_)], len(xs))[rows, 0]
    for code, label in enumerate(reader.classes[0]):
        here = rows[codes == code]
        marker = CLASS_MARKERS[code % len(CLASS_MARKERS)]
        ax.scatter(
            xs[here], ys[here], color=class_colour(code), marker=marker, label=elide(one_line(label), 30), **edge
        )
    ax.legend(loc="best", framealpha=0.9)


def _value_map() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("values", [tint(VALUE_COLOUR, 0.0), tint(VALUE_COLOUR, 1.0)])
