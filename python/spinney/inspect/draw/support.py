"""A margin in the plane: the boundary, the rows that hold it, and how far others lie beyond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import encode_labels
from spinney.inspect.charts.axes import CLASS_MARKERS, INK, axes_of, class_colour, pyplot, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 200  # across and up
_LEAST_SLACK = 1e-3


def plot_support(model: TableEstimator, X: Any, y: Any, *, slacks: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the boundary of two classes, its margin, the support vectors, and the slacks of rows beyond it.

    The solid line is where the score is 0, the dashed ones where it is 1 and -1. Support vectors have a ring. A line
    leads from each row that does not keep its margin toward the nearest place where the score is right, straight ahead.

    Parameters
    ----------
    model : estimator
        A fitted `SVC`, `LinearSVC` or `Perceptron` of two classes and two columns of numbers.
    X : array-like of shape (n_samples, 2)
        The rows of the fit.
    y : array-like of shape (n_samples,)
        Their classes.
    slacks : bool, default=True
        Whether to draw the slacks.
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
    >>> X = X[["bill_length_mm", "flipper_length_mm"]].fillna(190.0)
    >>> model = spinney.SVC(kernel="linear").fit(X, y == "Gentoo")
    >>> ax = spinney.plot_support(model, X, y == "Gentoo")
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    if not hasattr(model, "margin_") or len(getattr(model, "classes_", ())) != 2 or model.n_features_in_ != 2:
        raise ValueError("plot_support draws margins of two classes in two columns. Fit an SVC or LinearSVC of such.")
    pyplot()
    ax = axes_of(ax, 6.4, 4.8)
    rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in _columns(X)])
    sides = encode_labels(y, [model.classes_], len(rows))[:, 0]
    limits = [(low - 0.05 * (high - low), high + 0.05 * (high - low)) for low, high in zip(*_extent(rows), strict=True)]
    _fill(ax, model, limits)
    for code in (0, 1):
        mine = rows[sides == code]
        look: dict[str, Any] = {
            "color": class_colour(code),
            "markeredgecolor": INK,
            "markeredgewidth": 0.4,
            "markersize": 5,
        }
        ax.plot(*mine.T, CLASS_MARKERS[code], label=str(model.classes_.tolist()[code]), linestyle="", **look)
    if hasattr(model, "support_"):
        held = rows[model.support_]
        ax.plot(*held.T, "o", markersize=10, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=0.9)
    if slacks:
        _slacks(ax, model, rows, sides)
    names = [feature.name for feature in model.schema_.features]
    ax.set(xlim=limits[0], ylim=limits[1], xlabel=names[0], ylabel=names[1])
    ax.legend(frameon=False)
    return ax


def _columns(X: Any) -> list[Any]:
    if hasattr(X, "columns"):
        return [X[name] for name in X.columns]
    return list(np.asarray(X).T)


def _extent(rows: Any) -> tuple[Any, Any]:
    return rows.min(axis=0), rows.max(axis=0)


def _table(model: TableEstimator, rows: Any) -> Any:
    """Rows with the names that the model knows."""
    if not hasattr(model, "feature_names_in_"):
        return rows
    return {name: rows[:, j] for j, name in enumerate(model.feature_names_in_)}


def _fill(ax: Axes, model: TableEstimator, limits: list[tuple[float, float]]) -> None:
    """Colour the sides, and draw the lines of equal score."""
    across, up = (np.linspace(*limit, _POINTS) for limit in limits)
    grid = np.array(np.meshgrid(across, up)).reshape(2, -1).T
    scores = model.decision_function(_table(model, grid)).reshape(_POINTS, _POINTS)
    colours = [tint(class_colour(code), 0.3) for code in (0, 1)]
    ax.contourf(across, up, scores, levels=[-np.inf, 0, np.inf], colors=colours)
    ax.contour(
        across, up, scores, levels=[-1, 0, 1], colors=INK, linewidths=[0.9, 1.6, 0.9], linestyles=["--", "-", "--"]
    )


def _slacks(ax: Axes, model: TableEstimator, rows: Any, sides: Any) -> None:
    """Draw each slack along the slope of the score, as far as it would take if the slope stayed the same."""
    sign = np.where(sides == 1, 1.0, -1.0)
    scores = model.decision_function(_table(model, rows))
    lacking = np.maximum(1 - sign * scores, 0.0)
    short = (rows.max(axis=0) - rows.min(axis=0)) * 1e-4
    slope = np.empty_like(rows)
    for j in (0, 1):
        moved = rows.copy()
        moved[:, j] += short[j]
        slope[:, j] = (model.decision_function(_table(model, moved)) - scores) / short[j]
    span = rows.max(axis=0) - rows.min(axis=0)
    steep = ((slope * span) ** 2).sum(axis=1)
    for i in np.flatnonzero((lacking > _LEAST_SLACK) & (steep > 0)):
        end = rows[i] + sign[i] * lacking[i] * slope[i] * span**2 / steep[i]
        ax.plot(*zip(rows[i], end, strict=True), color=class_colour(int(sides[i])), linewidth=0.9, zorder=1)
