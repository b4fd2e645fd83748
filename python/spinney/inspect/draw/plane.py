"""Plots in the plane: regions of a tree, proximities and outlier scores of forests, isolation, support vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data import Feature, Schema, read_table
from spinney._data.cells import date_text
from spinney._data.display import elide
from spinney._data.schema import column_values
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.parameters import column_index
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import encode_labels, read_values
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import INK, VALUE_COLOUR, axes_of, class_colour, class_look, short, tint
from spinney.inspect.text.reader import TreeReader

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 3000
_GRID, _POINTS = 150, 200  # points in each direction
_MIN_SLACK = 1e-3
_LONGEST_STEP, _MAX_STEPS = 0.02, 100  # of the path of a margin violation; the length as a fraction of the range
Interval = tuple[float, float]


class Region(NamedTuple):
    """A rectangle of the plane in which the prediction of a tree is constant."""

    node: int
    x: Interval
    y: Interval


# ---- regions of a tree -------------------------------------------------------------------------------------------


def plot_partition(
    model: TableEstimator,
    X: Any,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the partition of the plane of two columns by a tree, with the rows as points.

    Parameters
    ----------
    model : estimator
        A fitted decision tree with one output.
    X : table of shape (n_samples, n_features)
        Rows. Other columns of the model are fixed at the median (numbers) or the most frequent value of these rows.
    y : array-like of shape (n_samples,), optional
        Target of the rows. None: no points.
    features : two names or positions, optional
        Numeric columns on the x and y axis. None: those of the model if it has two, else the two most important.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

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
        raise ValueError("plot_partition needs splits on single columns, but this tree is oblique. Use plot_tree.")
    a, b = _two_columns(reader, features)
    columns = reader.values(X)
    axes.pyplot()
    ax = axes_of(ax, 6.4, 4.8)
    limits = [limits_of(columns[j]) for j in (a, b)]
    values = reader.tree.flat_value[reader.tree.is_leaf, 0]
    if y is not None and not reader.is_classifier:
        values = read_values(y, len(columns[a]))[:, 0]
    span = float(values.min()), float(values.max())  # of the colours
    typical = [_typical(feature, column) for feature, column in zip(reader.features, columns, strict=True)]
    for region in regions(reader, (a, b), typical):
        _fill(ax, reader, region, limits, span)
    if y is not None:
        _points(ax, reader, columns[a], columns[b], y, span)
    ax.set(xlim=limits[0], ylim=limits[1])
    _name_axes(ax, [reader.features[a].name, reader.features[b].name])
    for axis, j in ((ax.xaxis, a), (ax.yaxis, b)):
        if reader.features[j].clock:
            axis.set_major_formatter(partial(_date_tick, reader.features[j]))
    return ax


def _name_axes(ax: Axes, names: list[str]) -> None:
    ax.set(xlabel=short(names[0], 60), ylabel=short(names[1], 60))


def _date_tick(feature: Feature, seconds: float, _: int) -> str:
    return date_text(seconds, feature.resolution, feature.clock)


def _two_columns(reader: TreeReader, features: Sequence[str | int] | None) -> tuple[int, int]:
    numbers = [j for j, feature in enumerate(reader.features) if feature.kind == "number"]
    if features is None:
        importance = reader.model.feature_importances_
        chosen = sorted(sorted(numbers, key=lambda j: -importance[j])[:2])
    else:
        if isinstance(features, str) or len(features) != 2:
            raise ValueError("features must be two names or positions of columns.")
        chosen = [column_index(f, reader.model.schema_, "features") for f in features]
    if len(chosen) != 2 or any(j not in numbers for j in chosen):
        raise ValueError("plot_partition needs two numeric columns. Name them with features.")
    return chosen[0], chosen[1]


def limits_of(values: Floats, margin: float = 0.05) -> Interval:
    """Return the range of known values, widened by a margin."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    padding = margin * (high - low) or 0.5
    return low - padding, high + padding


def _typical(feature: Feature, values: Floats) -> float:
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan
    if feature.kind == "number":
        return float(np.median(known))
    values, count = np.unique(known, return_counts=True)
    return float(values[count.argmax()])


def regions(reader: TreeReader, columns: tuple[int, int], typical: list[float]) -> list[Region]:
    """Return the rectangles of the plane of two columns, with the other columns at their typical values."""
    steps = list(reader.walk(values=typical, free=columns))
    inner = {int(reader.parent[step.node]) for step in steps}
    found = []
    for step in reversed(steps):
        conditions = [step.path.get(j) for j in columns]
        box = [(-math.inf, math.inf) if c is None else (c.lower, c.upper) for c in conditions]
        if step.node not in inner and all(low < high for low, high in box):
            found.append(Region(step.node, box[0], box[1]))
    return found


def _fill(ax: Axes, reader: TreeReader, region: Region, limits: list[Interval], span: Interval) -> None:
    from matplotlib.patches import Rectangle

    lows = [max(low, first) for (low, _), (first, _) in zip(region[1:], limits, strict=True)]
    highs = [min(high, last) for (_, high), (_, last) in zip(region[1:], limits, strict=True)]
    if lows[0] >= highs[0] or lows[1] >= highs[1]:
        return
    if reader.is_classifier:
        strength = 0.1 + 0.5 * reader.certainty(region.node)
        colour = tint(class_colour(int(reader.tree.majority[region.node, 0])), strength)
    else:
        colour = axes.value_tint(float(reader.tree.flat_value[region.node, 0]), *span)
    size = (highs[0] - lows[0], highs[1] - lows[1])
    ax.add_patch(Rectangle((lows[0], lows[1]), *size, facecolor=colour, edgecolor=INK, linewidth=0.8, zorder=1))


def _points(ax: Axes, reader: TreeReader, xs: Floats, ys: Floats, y: Any, span: Interval) -> None:
    rows = np.arange(0, len(xs), max(1, len(xs) // MAX_POINTS))
    edge: dict[str, Any] = {"edgecolors": "#ffffff", "linewidths": 0.5, "s": 26, "zorder": 3}
    if not reader.is_classifier:
        values = read_values(y, len(xs))[rows, 0]
        colours = axes.colour_map(tint(VALUE_COLOUR, 0.0), tint(VALUE_COLOUR, 1.0))
        scale: dict[str, Any] = {"c": values, "cmap": colours, "vmin": span[0], "vmax": span[1]}
        drawn = ax.scatter(xs[rows], ys[rows], **scale, **{**edge, "edgecolors": INK})
        ax.figure.colorbar(drawn, ax=ax, label="value of points and regions")
        return
    codes = encode_labels(y, [np.asarray(reader.model.classes_)], len(xs))[rows, 0]
    for code, label in enumerate(reader.classes[0]):
        here = rows[codes == code]
        ax.scatter(xs[here], ys[here], label=short(label, 30), **class_look(code), **edge)
    ax.legend(loc="best", framealpha=0.9)


# ---- forests ------------------------------------------------------------------------------------------------------


def plot_proximity_map(model: TableEstimator, X: Any, y: Any = None, *, ax: Axes | None = None) -> Axes:
    """Plot rows in a plane, in which rows that share many leaves of a forest are close to each other.

    Parameters
    ----------
    model : estimator
        A fitted forest.
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), optional
        Their target, for the colours.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> forest = spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> ax = spinney.plot_proximity_map(forest, X, y)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    positions = model.proximity_map(X)
    ax = axes_of(ax, 6.0, 4.8, "top", "right")
    if y is not None and not hasattr(model, "classes_"):
        values = read_values(y, len(positions))[:, 0]
        points = ax.scatter(positions[:, 0], positions[:, 1], s=12, c=values, cmap="viridis", linewidths=0)
        ax.figure.colorbar(points, ax=ax)
    else:
        for code, (name, rows) in enumerate(_groups(y, len(positions))):
            ax.scatter(
                positions[rows, 0], positions[rows, 1], s=14, linewidths=0, alpha=0.8, label=name, **class_look(code)
            )
        if y is not None:
            ax.legend(frameon=False, loc="best")
    ax.set(xlabel="first direction", ylabel="second direction")
    return ax


def plot_outlier_scores(
    model: TableEstimator, X: Any, y: Any = None, *, kind: Literal["all", "oob"] = "all", ax: Axes | None = None
) -> Axes:
    """Plot the outlier score of each row, class by class.

    Parameters
    ----------
    model : estimator
        A fitted forest.
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), optional
        Their classes; not used in a regression.
    kind : {"all", "oob"}, default="all"
        "all": use all trees. "oob": for each pair of rows, use the trees in which both are out of bag; `X` must then be
        the training rows.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes. The line at 10 is the score above which rows are candidates for outliers.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> forest = spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> ax = spinney.plot_outlier_scores(forest, X, y, kind="oob")
    >>> matplotlib.pyplot.close(ax.figure)
    """
    score = model.outlier_score(X, y, kind=kind)
    ax = axes_of(ax, 6.4, 3.6, "top", "right")
    first = 0
    groups = _groups(y if hasattr(model, "classes_") else None, len(score))
    for code, (name, rows) in enumerate(groups):
        positions = first + np.arange(len(rows))
        ax.vlines(positions, 0, score[rows], color=class_colour(code), linewidth=1, label=name)
        first += len(rows)
    ax.axhline(10, color=axes.ink(), linewidth=0.8, linestyle=":")
    ax.axhline(0, color=axes.ink(), linewidth=0.8)
    ax.set(xlabel="rows, class by class" if len(groups) > 1 else "rows", ylabel="outlier score", xlim=(-1, len(score)))
    if len(groups) > 1:
        ax.legend(frameon=False, loc="best")
    return ax


def plot_isolation(
    model: TableEstimator, X: Any, *, features: Sequence[str | int] | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the scores of an outlier detector in the plane of two columns, with the rows as points.

    Parameters
    ----------
    model : IsolationForest or OneClassSVM
        Fitted, on numeric columns.
    X : table of shape (n_samples, n_features)
        Rows. Columns that are not drawn are fixed at their median.
    features : two names or positions, optional
        Columns on the x and y axis; None: the first two.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes. Outliers are crosses; the line is the decision boundary of `predict`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> import spinney
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ax = spinney.plot_isolation(spinney.IsolationForest(random_state=0).fit(X), X)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    schema = model.schema_
    if any(feature.kind != "number" for feature in schema.features):
        raise ValueError("plot_isolation needs numeric columns. Name two with features.")
    chosen = [0, 1] if features is None else [column_index(f, schema, "features") for f in features]
    if len(chosen) != 2 or schema.n_features < 2:
        raise ValueError("features must be two names or positions of columns.")
    axes.pyplot()
    ax = axes_of(ax, 6.4, 4.8)
    table = np.column_stack(column_values(schema, read_table(X), type(model).__name__, "missing"))
    across, up = (np.linspace(*limits_of(table[:, j], 0.1), _GRID) for j in chosen)
    grid = np.tile(np.nanmedian(table, axis=0), (_GRID**2, 1))
    grid[:, chosen] = grid_of(across, up)
    score = model.score_samples(_named(schema, grid)).reshape(_GRID, _GRID)
    filled = ax.contourf(across, up, score, levels=12, cmap="Blues_r")
    ax.figure.colorbar(filled, ax=ax, label="score")
    if score.min() < model.offset_ < score.max():
        ax.contour(across, up, score, levels=[model.offset_], colors=INK, linewidths=1.2, linestyles="-")
    inside = model.predict(_named(schema, table)) > 0
    for rows, marker, colour in ((inside, "o", VALUE_COLOUR), (~inside, "x", class_colour(5))):
        ax.scatter(table[rows, chosen[0]], table[rows, chosen[1]], s=14, marker=marker, color=colour, linewidths=1)
    _name_axes(ax, [schema.features[j].name for j in chosen])
    return ax


def grid_of(across: Floats, up: Floats) -> Floats:
    """Return all points of a grid, (n_points, 2), row by row."""
    return np.array(np.meshgrid(across, up)).reshape(2, -1).T


def _named(schema: Schema, rows: Floats) -> Any:
    """Return rows with the column names of the model, if it has any."""
    return dict(zip(schema.names, rows.T, strict=True)) if schema.has_names else rows


def _groups(y: ColumnLike, n_rows: int) -> list[tuple[str, NDArray[np.intp]]]:
    """Return the name and the rows of each class; without classes, all rows."""
    if y is None:
        return [("", np.arange(n_rows))]
    labels = np.asarray(y).reshape(-1)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} entries, but X has {n_rows} rows.")
    return [(elide(str(label), 30), np.flatnonzero(labels == label)) for label in np.unique(labels)]


# ---- support vectors ----------------------------------------------------------------------------------------------


def plot_support(model: TableEstimator, X: Any, y: Any, *, slacks: bool = True, ax: Axes | None = None) -> Axes:
    """Plot the decision boundary of two classes, its margin, the support vectors, and the margin violations.

    The solid line is where the score is 0, the dashed ones where it is 1 and -1. Support vectors have a ring. A line
    leads from each row that violates the margin to the margin of its class, along the gradient of the score, if the
    gradient leads there. The scores of a perceptron have no unit; if it separates the classes, its dashed lines go
    through the rows nearest to the boundary.

    Parameters
    ----------
    model : estimator
        A fitted `SVC`, `LinearSVC` or `Perceptron` of two classes and two numeric columns.
    X : array-like of shape (n_samples, 2)
        The training rows.
    y : array-like of shape (n_samples,)
        Their classes.
    slacks : bool, default=True
        Whether to draw the margin violations.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> X = X[["bill_length_mm", "flipper_length_mm"]].fillna(190.0)
    >>> model = spinney.SVC(kernel="linear").fit(X, y == "Gentoo")
    >>> ax = spinney.plot_support(model, X, y == "Gentoo")
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    if not hasattr(model, "margin_") or len(getattr(model, "classes_", ())) != 2 or model.n_features_in_ != 2:
        raise ValueError("plot_support needs two classes and two columns. Fit an SVC or LinearSVC on such data.")
    axes.pyplot()
    ax = axes_of(ax, 6.4, 4.8)
    rows = np.column_stack(column_values(model.schema_, read_table(X), type(model).__name__, "missing"))
    sides = encode_labels(y, [model.classes_], len(rows))[:, 0]
    limits = [limits_of(column) for column in rows.T]
    sign = np.where(sides == 1, 1.0, -1.0)
    scores = model.decision_function(_named(model.schema_, rows))
    has_unit = not hasattr(type(model), "novikoff_bound_")  # a perceptron has no margin in its objective
    _colour_sides(ax, model, limits, 1.0 if has_unit else float((sign * scores).min()))
    edge: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.4, "markersize": 5, "linestyle": ""}
    for code, label in enumerate(model.classes_.tolist()):
        ax.plot(*rows[sides == code].T, label=str(label), **class_look(code), **edge)
    if hasattr(model, "support_"):
        ax.plot(
            *rows[model.support_].T,
            "o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor=INK,
            markeredgewidth=0.9,
        )
    if slacks and has_unit:
        _slacks(ax, model, rows, sign, scores)
    names = [feature.name for feature in model.schema_.features]
    ax.set(xlim=limits[0], ylim=limits[1], xlabel=names[0], ylabel=names[1])
    ax.legend(loc="best", framealpha=0.9)
    return ax


def _colour_sides(ax: Axes, model: TableEstimator, limits: list[Interval], margin: float) -> None:
    """Colour both sides, and draw the boundary and, if it is positive, the margin."""
    across, up = (np.linspace(*limit, _POINTS) for limit in limits)
    scores = model.decision_function(_named(model.schema_, grid_of(across, up))).reshape(_POINTS, _POINTS)
    colours = [tint(class_colour(code), 0.3) for code in (0, 1)]
    ax.contourf(across, up, scores, levels=[-np.inf, 0, np.inf], colors=colours)
    ax.contour(across, up, scores, levels=[0], colors=INK, linewidths=1.6)
    if margin > 0:
        ax.contour(across, up, scores, levels=[-margin, margin], colors=INK, linewidths=0.9, linestyles="--")


def _slacks(ax: Axes, model: TableEstimator, rows: Floats, sign: Floats, scores: Floats) -> None:
    """Draw the path of each margin violation along the gradient of the score, if it arrives at the margin."""
    span = np.ptp(rows, axis=0)
    walking = np.flatnonzero(1 - sign * scores > _MIN_SLACK)
    paths = {i: [rows[i]] for i in walking.tolist()}
    for _ in range(_MAX_STEPS):
        here = np.array([paths[i][-1] for i in walking.tolist()]).reshape(-1, 2)
        score = model.decision_function(_named(model.schema_, here)) if len(here) else np.zeros(0)
        is_far = np.abs(sign[walking] - score) > _MIN_SLACK
        walking, here, score = walking[is_far], here[is_far], score[is_far]
        if not len(walking):
            break
        slope = np.empty_like(here)  # per range of a column
        for j in (0, 1):
            moved = here.copy()
            moved[:, j] += span[j] * 1e-4
            slope[:, j] = (model.decision_function(_named(model.schema_, moved)) - score) / 1e-4
        steep = np.maximum(np.sqrt((slope**2).sum(axis=1)), 1e-300)
        length = np.clip((sign[walking] - score) / steep, -_LONGEST_STEP, _LONGEST_STEP)
        for i, place in zip(walking.tolist(), here + (length / steep)[:, np.newaxis] * slope * span, strict=True):
            paths[i].append(place)
    for i in set(paths) - set(walking.tolist()):
        ax.plot(*np.array(paths[i]).T, color=class_colour(int(sign[i] > 0)), linewidth=0.9, zorder=1)
