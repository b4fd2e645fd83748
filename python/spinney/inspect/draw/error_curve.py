"""Cross-validated error against what was chosen by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import CLASS_COLOURS, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = {"n_neighbors": "neighbours", "cell": "edge of a cell", "bin_count": "bins between origin and largest value"}


def plot_error_curve(model: TableEstimator, *, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated error against the number of neighbours, or the edge of cells, and ring the choice.

    Bars are standard errors. For a `HistogramDensity`, the estimated risk is drawn against the number of bins.

    Parameters
    ----------
    model : estimator
        A fitted model of neighbours with ``n_neighbors="cv"``, of cells with ``cell="cv"``, or a density with
        ``bin_width="cv"``.
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
    >>> X, y = spinney.datasets.load_penguins()
    >>> ax = spinney.plot_error_curve(spinney.KNeighborsClassifier("cv").fit(X, y))
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    results = getattr(model, "cv_results_", {})
    name = next((name for name in _LABELS if name in results), None)
    if name is None:
        raise TypeError(
            f"An error curve needs neighbours, cells or bins that were chosen by cross-validation, not a "
            f'{type(model).__name__} like this. Fit one with n_neighbors="cv", cell="cv" or bin_width="cv".'
        )
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    values, error = results[name], results["risk" if name == "bin_count" else "error"]
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "marker": "o", "markersize": 4}
    ax.errorbar(values, error, results.get("error_se"), capsize=3, elinewidth=1, label="held-out rows", **line)
    best = int(np.argmin(error))
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": CLASS_COLOURS[5], "markeredgewidth": 2}
    ax.plot([values[best]], [error[best]], "o", markersize=11, label=f"chosen: {values[best]:.4g}", **ring)
    ax.set(xlabel=_LABELS[name], ylabel=_said(model, name))
    ax.legend(frameon=False)
    return ax


def _said(model: TableEstimator, name: str) -> str:
    if name == "bin_count":
        return "estimated risk"
    scoring = getattr(model, "scoring", None)
    if scoring is not None:
        return f"-{scoring}" if isinstance(scoring, str) else "negative score"
    if not hasattr(model, "classes_"):
        return "mean squared error"
    return "share of wrong rows" if getattr(model, "cost_matrix_", None) is None else "mean cost"
