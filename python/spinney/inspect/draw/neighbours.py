"""Plots of how rows lie to each other: the map of a forest's proximities, outlier scores, isolation in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data import read_table
from spinney._data.display import elide, one_line
from spinney._data.schema import column_values
from spinney._data.types import ColumnLike
from spinney._estimator.parameters import column_index
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_values
from spinney.inspect.charts.axes import CLASS_MARKERS, INK, VALUE_COLOUR, axes_of, class_colour, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 150  # points across and up
Groups = list[tuple[str, NDArray[np.intp]]]


def plot_proximity_map(model: TableEstimator, X: Any, y: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw rows so that those which share many leaves lie close to each other.

    Parameters
    ----------
    model : estimator
        A fitted forest.
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), optional
        Their classes, or values in a regression, for colours.
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
    >>> forest = spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> ax = spinney.plot_proximity_map(forest, X, y)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    placed = model.proximity_map(X)
    ax = axes_of(ax, 6.0, 4.8, "top", "right")
    if y is not None and not hasattr(model, "classes_"):
        values = read_values(y, len(placed))[:, 0]
        points = ax.scatter(placed[:, 0], placed[:, 1], s=12, c=values, cmap="viridis", linewidths=0)
        ax.figure.colorbar(points, ax=ax)
    else:
        for code, (name, rows) in enumerate(_groups(y, len(placed))):
            across, up = placed[rows].T
            ax.scatter(across, up, s=14, linewidths=0, alpha=0.8, label=name, **_look(code))
        _add_legend(ax, y is not None)
    ax.set(xlabel="first direction", ylabel="second direction")
    return ax


def plot_outlier_scores(
    model: TableEstimator, X: Any, y: Any = None, *, kind: Any = "all", ax: Axes | None = None
) -> Axes:
    """Draw the outlier score of each row, class by class.

    Parameters
    ----------
    model : estimator
        A fitted forest.
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), optional
        Their classes; not used in a regression.
    kind : {"all", "oob"}, default="all"
        Trees that count, as of the forest's `outlier_score`.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes drawn on. The line at 10 marks scores that deserve a look.

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
        places = first + np.arange(len(rows))
        ax.vlines(places, 0, score[rows], color=_look(code)["color"], linewidth=1, label=name)
        first += len(rows)
    ax.axhline(10, color=INK, linewidth=0.8, linestyle=":")
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set(xlabel="rows, class by class" if len(groups) > 1 else "rows", ylabel="outlier score", xlim=(-1, len(score)))
    _add_legend(ax, len(groups) > 1)
    return ax


def plot_isolation(
    model: TableEstimator, X: Any, *, features: Sequence[str | int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the scores of an isolation forest over the plane of two columns, with the rows as points.

    Parameters
    ----------
    model : IsolationForest
        Fitted, on number columns.
    X : table of shape (n_samples, n_features)
        Rows. Columns other than the two are held at their median.
    features : two names or positions, optional
        Columns across and up; None: the first two.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes drawn on. Outliers are crosses; the line is where `predict` changes its mind.

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
        raise ValueError("plot_isolation needs columns of numbers.")
    chosen = [0, 1] if features is None else [column_index(f, schema, "features") for f in features]
    if len(chosen) != 2 or schema.n_features < 2:
        raise ValueError("features must be two names or positions of columns.")
    pyplot()
    ax = axes_of(ax, 6.4, 4.8)
    table = np.column_stack(column_values(schema, read_table(X), type(model).__name__, "missing"))
    across, up = (_steps(table[:, j]) for j in chosen)
    grid = np.tile(np.nanmedian(table, axis=0), (len(across) * len(up), 1))
    grid[:, chosen[0]], grid[:, chosen[1]] = np.tile(across, len(up)), np.repeat(up, len(across))
    score = model.score_samples(_named(schema, grid)).reshape(len(up), len(across))
    filled = ax.contourf(across, up, score, levels=12, cmap="Blues_r")
    ax.figure.colorbar(filled, ax=ax, label="score")
    if score.min() < model.offset_ < score.max():
        ax.contour(across, up, score, levels=[model.offset_], colors=INK, linewidths=1.2, linestyles="-")
    inside = model.predict(_named(schema, table)) > 0
    for rows, marker, colour in ((inside, "o", VALUE_COLOUR), (~inside, "x", class_colour(5))):
        ax.scatter(table[rows, chosen[0]], table[rows, chosen[1]], s=14, marker=marker, color=colour, linewidths=1)
    names = [elide(one_line(schema.features[j].name), 60) for j in chosen]
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax


def _named(schema: Any, rows: NDArray[np.float64]) -> Any:
    return dict(zip(schema.names, rows.T, strict=True)) if schema.has_names else rows


def _steps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.1 * (high - low) or 0.5
    return np.linspace(low - margin, high + margin, _GRID)


def _groups(y: ColumnLike, n_rows: int) -> Groups:
    """Rows of each class with its name; without classes, all rows without one."""
    if y is None:
        return [("", np.arange(n_rows))]
    labels = np.asarray(y).reshape(-1)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} entries, but X has {n_rows} rows.")
    return [(elide(str(label), 30), np.flatnonzero(labels == label)) for label in np.unique(labels)]


def _look(code: int) -> dict[str, Any]:
    return {"color": class_colour(code), "marker": CLASS_MARKERS[code % len(CLASS_MARKERS)]}


def _add_legend(ax: Axes, has_classes: bool) -> None:
    if has_classes:
        ax.legend(frameon=False, loc="best")
