"""Curves and bars of models: importances, pruning, chosen parameters, learning curves, margins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import plural
from spinney._data.types import Floats
from spinney._estimator.parameters import require_whole
from spinney._estimator.table_estimator import TableEstimator, trees_of
from spinney._model.links import cuts_of, is_of_ordered_classes
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import CLASS_COLOURS, VALUE_COLOUR, axes_of, short
from spinney.inspect.text.tables import importance_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_importances(model: TableEstimator, *, max_columns: int = 15, ax: Axes | None = None) -> Axes:
    """Plot the fraction of the total decrease of the impurity (boosting: of the total gain) that is due to each column.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest or boosted model.
    max_columns : int, default=15
        Maximum number of bars: the most important columns.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

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
    require_whole("max_columns", max_columns)
    columns = importance_columns(model)
    names = [axes.short(name) for name in columns["column"]][:max_columns]
    values = columns["importance"][:max_columns]
    ax = axes_of(ax, 6.0, 1.0 + 0.3 * len(names), "top", "right")
    ax.barh(range(len(names)), values, color=VALUE_COLOUR, height=0.65)
    for position, value in enumerate(values):
        axes.write_beside(ax, f"{value:.2f}", value, position)
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12 * max([*values, 1e-9])), xlabel=f"fraction of the {trees_of(model).gain_is}")
    return ax


def plot_cp(model: TableEstimator, *, ax: Axes | None = None) -> Axes:
    """Plot the cross-validated error of the nested pruned trees against their size.

    Bars (a band, if there are many trees) are one standard error. The dashed line is the lowest error plus the number
    of standard errors that the tree's `rule` allows; the ring marks the selected tree, which is the smallest one not
    above the line.

    Parameters
    ----------
    model : estimator or ComplexityTable
        A tree fitted with ``prune="cv"``, or its ``cp_table_``.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    plot_pruning : The unpruned and the pruned tree side by side.

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
        raise ValueError("There is no complexity table to plot. Fit the tree with prune='cv' first.")
    return draw_complexity(table, ax)


_LABELS = {
    "n_neighbors": "neighbours",
    "cell": "edge of a cell",
    "bin_count": "bins between origin and largest value",
    "max_depth": "maximum depth",
    "min_samples_leaf": "rows in a leaf, at least",
    "C": "C",
    "gamma": "gamma",
    "learning_rate": "learning rate",
}
_LOGARITHMIC = ("C", "gamma", "learning_rate")


def plot_error_curve(model: TableEstimator, *, ax: Axes | None = None) -> Axes:
    """Plot the cross-validated error against the values of a parameter that a fit has chosen.

    A ring marks the chosen value, and bars are standard errors. For a `HistogramDensity`, the estimated risk is plotted
    against the number of bins.

    Parameters
    ----------
    model : estimator
        A fitted nearest-neighbour model with ``n_neighbors="cv"``, a histogram model with ``cell="cv"``, a density with
        ``bin_width="cv"``, a tree with ``max_depth="cv"`` or ``min_samples_leaf="cv"``, a support vector machine with
        ``C="cv"`` or ``gamma="cv"`` (with both, a line for each gamma), or a boosted model with ``learning_rate="cv"``.
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
    >>> X, y = spinney.datasets.load_penguins()
    >>> ax = spinney.plot_error_curve(spinney.KNeighborsClassifier("cv").fit(X, y))
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    results = getattr(model, "cv_results_", {})
    tried = [name for name in _LABELS if name in results]
    name = next((name for name in tried if len(np.unique(results[name])) > 1), next(iter(tried), None))
    if name is None:
        raise TypeError(
            f"An error curve needs a parameter that was chosen by cross-validation, which this {type(model).__name__} "
            'does not have. Fit one with n_neighbors="cv", cell="cv", bin_width="cv", max_depth="cv", C="cv" '
            'or learning_rate="cv".'
        )
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    values, error, spread = results[name], results["risk" if name == "bin_count" else "error"], _spread(results)
    shown = np.ones(len(values), dtype=bool)
    if name == "C" and "gamma" in results:
        shown = results["gamma"] == model.gamma_
        for k, gamma in enumerate(np.unique(results["gamma"][~shown])):
            own, label = results["gamma"] == gamma, "_" if k else "other values of gamma"
            ax.plot(values[own], error[own], color=axes.pale(), linewidth=0.8, label=label)
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "marker": "o", "markersize": 4}
    label = "held-out rows" if shown.all() else f"held-out rows, gamma {model.gamma_:.2g}"
    bars = None if spread is None else spread[shown]
    ax.errorbar(values[shown], error[shown], bars, capsize=3, elinewidth=1, label=label, **line)
    chosen = getattr(model, f"{name}_", None)
    best = int(np.argmin(error)) if chosen is None else int(np.flatnonzero(shown & (values == chosen))[0])
    axes.ring(ax, values[best], error[best], f"chosen: {values[best]:.4g}")
    if name in _LOGARITHMIC:
        ax.set_xscale("log")
    ax.set(xlabel=_LABELS[name], ylabel="estimated risk" if name == "bin_count" else _error_name(model))
    ax.legend(frameon=False)
    return ax


def _spread(results: dict[str, Floats]) -> Floats | None:
    """Return the standard errors of cross-validated errors; None if they are unknown."""
    if "sd" not in results:
        return results.get("error_se")
    return np.asarray(results["sd"] / np.sqrt(sum(name.startswith("fold_") for name in results)))


def _error_name(model: TableEstimator) -> str:
    scoring = getattr(model, "scoring", None)
    if scoring is not None:
        return f"-{scoring}" if isinstance(scoring, str) else "negative score"
    if hasattr(model, "train_score_") and not hasattr(model, "estimator_weights_"):
        return "loss"  # of boosting; that of AdaBoost is an error
    if not hasattr(model, "classes_"):
        return "mean squared error"
    return "error rate" if getattr(model, "cost_matrix_", None) is None else "mean cost"


def plot_learning_curve(model: TableEstimator, *, ax: Axes | None = None) -> Axes:
    """Plot the loss of the training rows, and of the validation set if there is one, after each round.

    The ring is the round with the lowest loss of the validation set. With a metric (``scoring``), the curve of the
    validation set shows the metric, with its sign changed, on a second axis.

    Parameters
    ----------
    model : estimator
        A fitted gradient boosting model.
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
        _draw_validation(ax, model, rounds[len(rounds) - len(held_out) :], held_out)
    ax.set(xlabel="round", ylabel="loss", xlim=(0, len(rounds) * 1.02))
    lines = [line for other in ax.figure.axes if other.bbox.bounds == ax.bbox.bounds for line in other.get_lines()]
    named = [line for line in lines if not str(line.get_label()).startswith("_")]
    ax.legend(named, [str(line.get_label()) for line in named], frameon=False)
    return ax


def _draw_validation(ax: Axes, model: TableEstimator, rounds: Any, loss: Any) -> None:
    name = "held-out rows"
    if model.scoring is not None:
        ax = ax.twinx()
        metric = model.scoring if isinstance(model.scoring, str) else getattr(model.scoring, "__name__", "the metric")
        name = f"held-out rows: -{metric}"
        ax.set_ylabel(f"-{metric}")
        ax.spines["top"].set_visible(False)
    ax.plot(rounds, loss, color=VALUE_COLOUR, linewidth=2, label=name)
    best = int(np.argmin(loss))
    axes.ring(ax, rounds[best], loss[best], f"best: round {rounds[best]}")
    ax.axvline(rounds[best], color=axes.ink(), linestyle=":", linewidth=1, label="_best")


def plot_margins(
    model: TableEstimator, X: Any, y: Any, *, rounds: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the distribution of the margins of rows after some rounds of boosting, or some trees of a forest.

    Each curve is the cumulative distribution of the margins. Its value at 0 is the error. In boosting, margins keep
    growing after all training rows are classified correctly. The margin is the probability of a row's class less the
    largest probability of another class; for AdaBoost, the difference of the votes as a fraction of all votes.

    Parameters
    ----------
    model : estimator
        A fitted classifier with `staged_predict_proba`, such as AdaBoost, gradient boosting, bagging or a forest.
    X : table of shape (n_samples, n_features)
        Rows, such as the training set.
    y : array-like of shape (n_samples,)
        Their classes.
    rounds : sequence of int, optional
        Numbers of rounds or trees after which to plot a curve; None: a tenth, a third, and all of them.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    AdaBoostClassifier.margins : The numbers.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ax = spinney.plot_margins(spinney.AdaBoostClassifier(n_estimators=30).fit(X, y), X, y)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    if not hasattr(model, "staged_margins") and not hasattr(model, "staged_predict_proba"):
        raise TypeError(f"Margins need a classifier with staged_predict_proba, which {type(model).__name__} lacks.")
    is_boosted = hasattr(model, "n_iter_")
    n_rounds = int(model.n_iter_) if is_boosted else len(model.estimators_)
    chosen = sorted({max(1, n_rounds // 10), max(1, n_rounds // 3), n_rounds} if rounds is None else set(rounds))
    if not chosen or chosen[0] < 1 or chosen[-1] > n_rounds:
        raise ValueError(f"rounds must be numbers from 1 to {n_rounds}, the rounds of the model, not {rounds!r}.")
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    styles = [":", "--", "-"]
    staged = model.staged_margins(X, y) if hasattr(model, "staged_margins") else _staged_margins(model, X, y)
    for t, margins in enumerate(staged, start=1):
        if t in chosen:
            k = chosen.index(t)
            fraction = np.arange(1, len(margins) + 1) / len(margins)
            style = styles[max(0, len(styles) - len(chosen) + k)]
            look: dict[str, Any] = {"color": CLASS_COLOURS[k % len(CLASS_COLOURS)], "linewidth": 2}
            look["label"] = plural(t, "round" if is_boosted else "member")
            ax.plot(np.sort(margins), fraction, style, drawstyle="steps-post", **look)
    ax.axvline(0, color=axes.ink(), linewidth=0.8)
    ax.set(xlabel="margin", ylabel="fraction of the rows with at most this margin", xlim=(-1, 1), ylim=(0, 1))
    ax.legend(frameon=False, loc="upper left")
    return ax


def plot_ordered_classes(model: TableEstimator, X: Any = None, *, ax: Axes | None = None) -> Axes:
    """Plot the probabilities of ordered classes against the score of a row, with the cuts between the classes.

    The dotted lines are the cuts: at a cut, the probability of a higher class is one half. With rows, ticks below the
    curves show their scores.

    Parameters
    ----------
    model : GradientBoostingClassifier
        A fitted model with ``loss="ordinal"``.
    X : table of shape (n_samples, n_features), optional
        Rows.
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
    >>> import numpy as np
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> grades = np.digitize(y, [100, 200])
    >>> model = spinney.GradientBoostingClassifier("ordinal", n_estimators=30).fit(X, grades)
    >>> ax = spinney.plot_ordered_classes(model, X)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    check_is_fitted(model)
    fitted = getattr(model, "boosting_", None)
    if fitted is None or not is_of_ordered_classes(fitted.link):
        raise TypeError("Ordered classes need a GradientBoostingClassifier with loss='ordinal'.")
    scores = None if X is None else np.asarray(model.decision_function(X))
    cuts, labels = cuts_of(fitted.link), model.classes_.tolist()
    ends = cuts if scores is None else np.concatenate([cuts, scores])
    grid = np.linspace(ends.min() - 3, ends.max() + 3, 400)
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    for k, proba in enumerate(fitted.predicted(grid[:, np.newaxis]).T):
        ax.plot(grid, proba, color=CLASS_COLOURS[k % len(CLASS_COLOURS)], linewidth=2, label=short(labels[k]))
    for cut in cuts:
        ax.axvline(cut, color=axes.ink(), linestyle=":", linewidth=1)
    if scores is not None:
        ax.plot(scores, np.full(len(scores), -0.03), "|", color=axes.ink(), alpha=0.4, markersize=8)
    ax.set(xlabel="score", ylabel="probability", xlim=(grid[0], grid[-1]), ylim=(-0.06, 1.02))
    ax.legend(frameon=False)
    return ax


def _staged_margins(model: Any, X: Any, y: Any) -> Iterator[Floats]:
    """Yield the margins of class probabilities after each round or tree."""
    is_own = np.asarray(y).reshape(-1, 1) == np.asarray(model.classes_)
    for proba in model.staged_predict_proba(X):
        yield proba[is_own] - np.where(is_own, -np.inf, proba).max(axis=1)


def draw_comparison(found: Any, metric: str, ax: Axes | None) -> Axes:
    """Plot the score differences of the models of a `Comparison` to the reference."""
    sign = -1 if metric.startswith("neg_") else 1
    shown = metric.removeprefix("neg_")
    gaps = found.differences(metric=metric)
    names = [name for name in found.names if not np.isnan(gaps[name].mean)]
    ax = axes.axes_of(ax, 7.5, 1.4 + 0.45 * len(names), "top", "right", "left")
    for place, name in enumerate(names):
        gap, mean = gaps[name], sign * found.mean(name, metric)[0]
        is_reference = name == found.reference_
        colour = axes.ink() if is_reference else VALUE_COLOUR
        if not is_reference and not np.isnan(gap.low):
            ax.plot([sign * gap.low, sign * gap.high], [place, place], color=colour, linewidth=2.2, alpha=0.55)
        ax.plot([sign * gap.mean], [place], marker="D" if is_reference else "o", color=colour, markersize=7)
        at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(f"{mean:.4g}", (1.01, place), color=axes.pale(), fontsize=9, **at)
    ax.axvline(0, color=axes.ink(), linewidth=0.8, zorder=0)
    axes.name_lines(ax, [short(name) for name in names], (0.5, 0.5))
    better = "lower" if sign < 0 else "higher"
    ax.set_xlabel(f"difference of {shown} to {short(found.reference_, 30)}, 95% interval ({better} is better)")
    ax.annotate(shown, (1.01, 1.0), xycoords="axes fraction", va="bottom", color=axes.pale(), fontsize=9)
    return ax


def draw_curves(found: Any, ax: Axes | None) -> Axes:
    """Plot the learning curves of a `Comparison`."""
    ax = axes.axes_of(ax, 7.0, 4.4, "top", "right")
    metric = found.metrics[0]
    sign = -1 if metric.startswith("neg_") else 1
    for k, name in enumerate(found.names):
        scores = sign * found.curves[name]
        mean = scores.mean(axis=1)
        spread = scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else np.zeros(len(mean))
        look = axes.class_look(k)
        ax.fill_between(found.curve_rows, mean - spread, mean + spread, color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(found.curve_rows, mean, markersize=5, label=short(name, 30), **look)
    ax.set(xlabel="training rows", ylabel=metric.removeprefix("neg_"))
    ax.legend(frameon=False)
    return ax


_MAX_BARS = 60  # more error bars would overlap
_MAX_LINEAR = 60  # leaves beyond which the axis is logarithmic


def draw_complexity(table: Any, ax: Axes | None) -> Axes:
    """Plot the error against the number of leaves, with a ring around the selected tree."""
    ax = axes.axes_of(ax, 7.0, 4.2, "top", "right")
    size, error, spread = table.n_leaves, table.cv_error, table.cv_se
    name = "held-out rows" if table.scoring is None else "mean score"
    line: dict[str, Any] = {"color": VALUE_COLOUR, "linewidth": 1.5, "label": name}
    if len(table) <= _MAX_BARS:
        ax.errorbar(size, error, spread, marker="o", markersize=4, capsize=3, elinewidth=1, **line)
    else:
        ax.plot(size, error, **line)
        ax.fill_between(size, error - spread, error + spread, color=VALUE_COLOUR, alpha=0.2, linewidth=0)
    if table.scoring is None:
        ax.plot(size, table.relative_error, color="#999999", linewidth=1, label="training rows")
    if table.chosen is not None:
        _mark_choice(ax, table)
    if size.max() > _MAX_LINEAR:
        ax.set_xscale("log")
    label = "error relative to the root" if table.scoring is None else table.scoring
    ax.set(xlabel="leaves", ylabel=label)
    ax.legend(frameon=False)
    return ax


def _mark_choice(ax: Axes, table: Any) -> None:
    """Draw the limit of the rule, and a ring around the selected tree."""
    worse = 1.0 if table.scoring is None else -1.0
    best = int(np.nanargmin(worse * table.cv_error))  # the first of equal ones is the smallest tree
    width = {"min": 0.0, "1se": 1.0}[table.rule] if isinstance(table.rule, str) else float(table.rule or 0.0)
    level = table.cv_error[best] + worse * width * table.cv_se[best]
    names = {"min": "the best", "1se": "1 standard error off the best"}
    label = names.get(str(table.rule), f"{width:g} standard errors")
    ax.axhline(level, color=axes.ink(), linestyle="--", linewidth=1, label=label)
    leaves, cp = int(table.n_leaves[table.chosen]), float(table.cp[table.chosen])
    axes.ring(ax, leaves, table.cv_error[table.chosen], f"selected: {plural(leaves, 'leaf')}, cp {cp:.2g}")


def draw_coverage(columns: dict[str, list[Any]], nominal: float, ax: Axes | None) -> Axes:
    """Plot the columns of a `CoverageReport`."""
    names = [short(name, 36) for name in columns["rows"]]
    ax = axes.axes_of(ax, 6.5, 1.2 + 0.36 * len(names), "top", "right", "left")
    coverage, error = np.array(columns["coverage"]), np.array(columns["standard_error"])
    ax.axvline(nominal, color=axes.pale(), linestyle="--", linewidth=1, label=f"nominal: {nominal:.0%}")
    look: dict[str, Any] = {"color": VALUE_COLOUR, "capsize": 3, "label": "covered, ± 2 standard errors"}
    ax.errorbar(coverage, np.arange(len(names)), xerr=2 * error, fmt="o", **look)
    axes.name_lines(ax, names, color=axes.ink())
    low = min(float((coverage - 2 * error).min()), nominal) - 0.02
    ax.set(xlim=(max(0.0, low), 1.01), xlabel="fraction of the rows that are covered")
    ax.xaxis.set_major_formatter(lambda fraction, _: f"{fraction:.0%}")
    ax.spines["bottom"].set_color(axes.pale())
    axes.legend_above(ax, 2)
    return ax


def draw_parts(found: Any, ax: Axes | None) -> Axes:
    """Plot the components of a `BiasVariance`."""
    ax = axes.axes_of(ax, 7.0, 1.4 + 0.5 * len(found), "top", "right", "left")
    learners = list(found.parts.values())
    positions, is_squared = np.arange(len(learners)), found.loss == "squared"
    has_noise = any(part.noise is not None for part in learners)
    bias, variance = ("bias²", "variance") if is_squared else ("bias", "net variance")
    stack = [("noise", [part.noise_effect or 0.0 for part in learners], "#BBBBBB")] if has_noise else []
    stack.append((bias if has_noise else f"{bias} + noise", [part.bias for part in learners], axes.CLASS_COLOURS[0]))
    stack.append((variance, [part.variance for part in learners], axes.CLASS_COLOURS[1]))
    right, left = np.zeros(len(learners)), np.zeros(len(learners))
    for label, values, colour in stack:
        widths = np.array(values)
        start = np.where(widths >= 0, right, left)  # negative components are on the left of zero
        ax.barh(positions, widths, left=start, height=0.62, color=colour, label=label)
        right, left = right + np.maximum(widths, 0), left + np.minimum(widths, 0)
    for position, part, end in zip(positions, learners, right, strict=True):
        axes.write_beside(ax, f"{part.error:.3g}", end, position, 5)
    axes.name_lines(ax, [short(name) for name in found.parts])
    ax.axvline(0, color=axes.ink(), linewidth=0.8)
    low = 1.12 * left.min() if left.min() < 0 else 0.0
    label = "expected squared error" if is_squared else "expected error rate"
    ax.set(xlim=(low, 1.12 * max(right.max(), 1e-12)), xlabel=label)
    axes.legend_above(ax, 3)
    return ax


def draw_histogram(low: Floats, high: Floats, density: Floats, names: list[str], ax: Axes | None) -> Axes:
    """Plot the bins of one column as bars, or of two columns as rectangles with the density as colour."""
    ax = axes.axes_of(ax, 7.0, 4.2, "top", "right")
    if len(names) == 1:
        widths = high[:, 0] - low[:, 0]
        ax.bar(low[:, 0], density, widths, align="edge", color=axes.tint(VALUE_COLOUR, 0.6), edgecolor=VALUE_COLOUR)
        ax.set(xlabel=names[0], ylabel="density")
        return ax
    from matplotlib.patches import Rectangle

    for corner, end, height in zip(low, high, density / density.max(), strict=True):
        width, length = end - corner
        ax.add_patch(Rectangle(tuple(corner), width, length, facecolor=axes.tint(VALUE_COLOUR, 1.5 * float(height))))
    ax.set(xlim=(low[:, 0].min(), high[:, 0].max()), ylim=(low[:, 1].min(), high[:, 1].max()))
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax
