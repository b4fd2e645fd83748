"""Small plots about trees: the impurity of two classes, what the columns contribute, and how far to prune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import elide, one_line
from spinney._estimator.table_estimator import TableEstimator, trees_of
from spinney.inspect.charts.axes import CLASS_COLOURS, INK, VALUE_COLOUR, axes_of
from spinney.inspect.charts.evaluation import draw_complexity
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


def plot_learning_curve(model: TableEstimator, *, ax: Axes | None = None) -> Axes:
    """Draw the loss of the training rows, and of the held-out rows if there are any, after each round.

    The ring is the round with the lowest loss of the held-out rows. Where a metric was asked for (``scoring``), the
    held-out curve is its negative, on an axis of its own.

    Parameters
    ----------
    model : estimator
        A fitted `GradientBoostingClassifier` or `GradientBoostingRegressor`.
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
    >>> model = spinney.GradientBoostingClassifier(n_estimators=50, early_stopping=True, random_state=0).fit(X, y)
    >>> ax = spinney.plot_learning_curve(model)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    if not hasattr(model, "train_score_"):
        raise TypeError(f"A learning curve needs a gradient boosting model, not a {type(model).__name__}.")
    held_out = getattr(model, "validation_score_", None)
    has_second_axis = held_out is not None and model.scoring is not None
    ax = axes_of(ax, 7.0, 4.2, "top", *(() if has_second_axis else ("right",)))
    rounds = np.arange(1, len(model.train_score_) + 1)
    ax.plot(rounds, model.train_score_, color="#999999", linewidth=1.5, label="training rows")
    if held_out is not None and len(held_out):
        _draw_held_out(ax, model, rounds[len(rounds) - len(held_out) :], held_out)
    ax.set(xlabel="round", ylabel="loss", xlim=(0, len(rounds) * 1.02))
    lines = [line for part in ax.figure.axes if part.bbox.bounds == ax.bbox.bounds for line in part.get_lines()]
    named = [line for line in lines if not str(line.get_label()).startswith("_")]
    ax.legend(named, [str(line.get_label()) for line in named], frameon=False)
    return ax


def _draw_held_out(ax: Axes, model: TableEstimator, rounds: Any, loss: Any) -> None:
    mine, name = ax, "held-out rows"
    if model.scoring is not None:
        mine = ax.twinx()
        what = model.scoring if isinstance(model.scoring, str) else getattr(model.scoring, "__name__", "the metric")
        name = f"held-out rows: -{what}"
        mine.set_ylabel(f"-{what}")
        mine.spines["top"].set_visible(False)
    mine.plot(rounds, loss, color=VALUE_COLOUR, linewidth=2, label=name)
    best = int(np.argmin(loss))
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": CLASS_COLOURS[5], "markeredgewidth": 2}
    mine.plot([rounds[best]], [loss[best]], "o", markersize=11, label=f"best: round {rounds[best]}", **ring)
    mine.axvline(rounds[best], color=INK, linestyle=":", linewidth=1, label="_best")
