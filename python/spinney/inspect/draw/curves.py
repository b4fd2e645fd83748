"""Small plots about trees: the impurity of two classes, what the columns contribute, and how far to prune."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._data.display.digits import elide, one_line
from spinney._estimator.table_estimator import TableEstimator, trees_of
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import CLASS_COLOURS, INK, VALUE_COLOUR
from spinney.inspect.charts.complexity import draw_complexity
from spinney.inspect.text.tables import importance_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_impurity_curves(*, scaled: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the impurity of two classes as a function of the share p of one of them.

    Gini's impurity is 2 p (1 - p), the entropy -p log2 p - (1 - p) log2 (1 - p), the misclassification min(p, 1 - p).
    All are 0 for a pure node and largest at one half; the first two are strictly concave, so that they tell splits
    apart that misclassification finds equal.

    Parameters
    ----------
    scaled : bool, default=True
        Halve the entropy, so that all three reach one half.
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
    >>> ax = spinney.plot_impurity_curves()
    >>> matplotlib.pyplot.close(ax.figure)
    """
    ax = axes_of(ax, 6.0, 4.0, "top", "right")
    p = np.linspace(0, 1, 201)
    inside = np.clip(p, 1e-12, 1 - 1e-12)
    entropy = -inside * np.log2(inside) - (1 - inside) * np.log2(1 - inside)
    curves = [
        ("entropy / 2" if scaled else "entropy", entropy / 2 if scaled else entropy, "-"),
        ("Gini", 2 * p * (1 - p), "--"),
        ("misclassification", np.minimum(p, 1 - p), "-."),
    ]
    for (name, height, dash), colour in zip(
        curves, (CLASS_COLOURS[0], CLASS_COLOURS[5], CLASS_COLOURS[2]), strict=True
    ):
        ax.plot(p, height, dash, color=colour, linewidth=2, label=name)
    ax.set(xlim=(0, 1), ylim=(0, 0.55 if scaled else 1.05), xlabel="share p of the first class", ylabel="impurity")
    ax.legend(loc="lower center", frameon=False)
    return ax


def plot_importances(model: TableEstimator, *, max_columns: int = 15, ax: Axes | None = None) -> Axes:
    """Draw each column's share in the total decrease of the impurity (boosting: of the loss) as a bar.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest or boosted model.
    max_columns : int, default=15
        Bars at most; the most important columns are drawn.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    See Also
    --------
    importance_frame : The same as a table.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> ax = spinney.plot_importances(spinney.DecisionTreeClassifier(max_depth=3).fit(X, y))
    >>> matplotlib.pyplot.close(ax.figure)
    """
    if max_columns < 1:
        raise ValueError(f"max_columns must be at least 1, not {max_columns!r}.")
    columns = importance_columns(model)
    names = [elide(one_line(name), 40) for name in columns["column"]][:max_columns]
    values = columns["importance"][:max_columns]
    ax = axes_of(ax, 6.0, 1.0 + 0.3 * len(names), "top", "right")
    places = np.arange(len(names))
    ax.barh(places, values, color=VALUE_COLOUR, height=0.65)
    for place, value in zip(places, values, strict=True):
        ax.annotate(f"{value:.2f}", (value, place), xytext=(4, 0), textcoords="offset points", va="center", color=INK)
    ax.set_yticks(places, names, parse_math=False)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12 * max([*values, 1e-9])), xlabel=f"share in the {trees_of(model).gain_is}")
    return ax


def plot_cp(model: TableEstimator, *, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated error of the nested trees against their size.

    Bars (a band, if there are many trees) are one standard error. The dashed line is as many of these above the lowest
    error as the rule allows; the ring is the tree that was kept, the smallest below the line.

    Parameters
    ----------
    model : estimator or ComplexityTable
        A tree fitted with ``prune="cv"``, or its ``cp_table_``.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    See Also
    --------
    plot_pruning : The unpruned tree beside the pruned one.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> ax = spinney.plot_cp(spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(X, y))
    >>> matplotlib.pyplot.close(ax.figure)
    """
    table = getattr(model, "cp_table_", model)
    if not hasattr(table, "cv_error"):
        raise ValueError("There is no table to draw. Fit the tree with prune='cv' first.")
    return draw_complexity(table, ax)
