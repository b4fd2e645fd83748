"""Pictures for lectures: impurities, losses, and penalised risks of nested trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spinney._data.display import one_line
from spinney._data.types import Floats
from spinney.datasets import TwoSources
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import CLASS_COLOURS, VALUE_COLOUR, axes_of, short
from spinney.inspect.draw.plane import limits_of
from spinney.inspect.margin_losses import MarginLoss, margin_losses
from spinney.inspect.text.split_tables import SplitTable, node_impurity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES = ("-", "--", "-.", ":")
_IMPURITIES = ("entropy", "gini", "misclassification")


def plot_impurities(
    *,
    scaled: bool = True,
    simplex: Literal["entropy", "gini", "misclassification"] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the impurity of two classes as a function of the probability p of one of them, or of three classes as a map.

    For two classes the Gini impurity is 2 p (1 - p), the entropy -p log2 p - (1 - p) log2 (1 - p), and the
    misclassification rate min(p, 1 - p). All are 0 for a pure node and largest at equal probabilities; the first two
    are strictly concave, so that they distinguish splits with equal misclassification rates.

    Parameters
    ----------
    scaled : bool, default=True
        For two classes: halve the entropy, so that all three reach one half.
    simplex : {"entropy", "gini", "misclassification"}, optional
        Draw this impurity of three classes, whose pure nodes are the corners of the triangle; None: two classes.
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
    >>> ax = spinney.plot_impurities()
    >>> matplotlib.pyplot.close(ax.figure)
    """
    if simplex is not None:
        return _draw_simplex(simplex, ax)
    ax = axes_of(ax, 6.0, 4.0, "top", "right")
    p = np.linspace(0, 1, 201)
    counts = np.column_stack([p, 1 - p])
    for name, dash, code in zip(_IMPURITIES, ("-", "--", "-."), (0, 5, 2), strict=True):
        halved = scaled and name == "entropy"
        height = node_impurity(counts, name) / (2 if halved else 1)
        label = {"gini": "Gini", "entropy": "entropy / 2" if halved else "entropy"}.get(name, name)
        ax.plot(p, height, dash, color=CLASS_COLOURS[code], linewidth=2, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 0.55 if scaled else 1.05), xlabel="probability of the first class", ylabel="impurity")
    ax.legend(loc="lower center", frameon=False)
    return ax


def _draw_simplex(criterion: str, ax: Axes | None) -> Axes:
    """Draw the impurity of three classes in a triangle."""
    if criterion not in _IMPURITIES:
        raise ValueError(f"simplex must be one of {', '.join(map(repr, _IMPURITIES))}, not {criterion!r}.")
    ax = axes_of(ax, 4.8, 4.2, "top", "right", "bottom", "left")
    n = 60
    shares = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
    corners = np.array([(0.0, 0.0), (1.0, 0.0), (0.5, math.sqrt(3) / 2)])
    x, y = (shares @ corners).T
    filled = ax.tricontourf(x, y, node_impurity(shares, criterion), levels=12, cmap="viridis")
    ax.figure.colorbar(filled, ax=ax, label=f"{'Gini' if criterion == 'gini' else criterion}, three classes")
    for k, (corner, shift) in enumerate(zip(corners, ((0, -14), (0, -14), (0, 6)), strict=True)):
        ax.annotate(f"class {k + 1}", corner, xytext=shift, textcoords="offset points", ha="center", color=axes.ink())
    ax.plot(*np.vstack([corners, corners[:1]]).T, color=axes.ink(), linewidth=1)
    ax.set(xticks=[], yticks=[], aspect="equal", ylim=(-0.1, 0.95))
    return ax


def plot_losses(names: Sequence[str] | None = None) -> Figure:
    """Plot losses of two classes against the margin, the scores f* that minimise them, and their bounds on the error.

    The left panel has the losses φ(m) of the margin m = y f. The middle one has f*, the score with the smallest
    expected loss, against the probability η of class 1. Every f* has the sign of the best class, so that minimising the
    loss gives the Bayes rule. The right panel has the upper bound on the excess error rate L - L* that follows from the
    excess expected loss A - A*.

    Parameters
    ----------
    names : sequence of str, optional
        Names in `spinney.teaching.margin_losses`: "0-1", "hinge", "exponential", "logistic", "squared", "squared
        hinge", "Huber" (the squared hinge for m ≥ -1, linear below). None: all but the squared hinge.

    Returns
    -------
    Figure
        Three panels.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> figure = spinney.plot_losses(["0-1", "hinge", "logistic"])
    >>> matplotlib.pyplot.close(figure)
    """
    chosen = [name for name in margin_losses if name != "squared hinge"] if names is None else list(names)
    if unknown := [name for name in chosen if name not in margin_losses]:
        raise ValueError(f"There is no loss {unknown[0]!r}. The losses are {', '.join(map(repr, margin_losses))}.")
    figure: Figure = axes.pyplot().figure(figsize=(11, 3.8), layout="constrained")
    panels = figure.subplots(1, 3)
    for code, name in enumerate(margin_losses):
        if name in chosen:
            _draw_loss(panels, margin_losses[name], code)
    panels[0].set(xlabel="margin y f", ylabel="loss", xlim=(-2, 2), ylim=(-0.1, 4))
    panels[1].set(xlabel="probability η of class 1", ylabel="best score f*", xlim=(0, 1), ylim=(-3, 3))
    panels[2].set(xlabel="excess risk A − A*", ylabel="bound of the excess error L − L*", xlim=(0, 1), ylim=(0, 1.02))
    for ax in panels:
        axes_of(ax, 0, 0, "top", "right")
    panels[1].axhline(0, color=axes.pale(), linewidth=0.8, zorder=0)
    panels[1].axvline(0.5, color=axes.pale(), linewidth=0.8, zorder=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_loss(panels: Sequence[Axes], loss: MarginLoss, code: int) -> None:
    look: dict[str, Any] = {"color": CLASS_COLOURS[code], "linestyle": _DASHES[code % 4], "linewidth": 2}
    margin, eta, theta = np.linspace(-2, 2, 401), np.linspace(0.001, 0.999, 999), np.linspace(0, 1, 301)
    panels[0].plot(margin, loss(margin), label=loss.name, **look)
    best: Floats = loss.minimiser(eta)
    panels[1].plot(eta, best, **look)
    if loss.is_convex:
        panels[2].plot(loss.calibration(theta), theta, **look)


def draw_search(tables: Mapping[str, SplitTable], best: Mapping[str, Any], ranking: str, criterion: str) -> Figure:
    """Plot the gain of each split in a panel for each column, against the threshold if it has thresholds."""
    shown = {name: table for name, table in tables.items() if len(table)}
    n_wide = min(5, len(shown))
    n_high = math.ceil(len(shown) / n_wide)
    figure: Figure = axes.pyplot().figure(figsize=(2.9 * n_wide + 0.6, 2.6 * n_high + 0.2), layout="constrained")
    cells = figure.subplots(n_high, n_wide, squeeze=False, sharey=True)
    for k, (ax, (name, table)) in enumerate(zip(cells.flat, shown.items(), strict=False)):
        axes_of(ax, 0, 0, "top", "right")
        ax.set_xlabel(short(name, 30), parse_math=False)
        heights, thresholds = table.columns[ranking], table.columns["threshold"]
        places: list[Any] = thresholds if None not in thresholds else list(range(len(table)))
        look: dict[str, Any] = {"color": VALUE_COLOUR, "marker": "o", "markersize": 4}
        ax.plot(places, heights, linestyle="-" if None not in thresholds else "", **look)
        if None in thresholds:
            ax.set_xticks(places, [short(cut, 20) for cut in table.columns["cut"]], parse_math=False)
            ax.set_xlim(-0.6, len(table) - 0.4)
        if name == best["column"]:
            at = table.columns["cut"].index(best["cut"])
            axes.ring(ax, places[at], heights[at], f"best: {short(best['cut'], 30)}")
            ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        if k % n_wide == 0:
            ax.set_ylabel({"chi2": "χ²", "gain_ratio": "gain ratio"}.get(criterion, f"gain, {criterion}"))
    for ax in cells.flat[len(shown) :]:
        ax.set_visible(False)
    cells[0, 0].set_ylim(bottom=0)
    return figure


def draw_perceptron_steps(steps: Any, max_updates: int) -> Figure:
    """Draw `PerceptronSteps` of two columns: a panel for each of the first updates, and for the last."""
    shown = [*range(min(len(steps), max_updates) - 1), len(steps) - 1]
    n_wide = min(4, len(shown))
    n_high = math.ceil(len(shown) / n_wide)
    figure: Figure = axes.pyplot().figure(figsize=(3.0 * n_wide, 3.0 * n_high + 0.3), layout="constrained")
    cells = figure.subplots(n_high, n_wide, squeeze=False, sharex=True, sharey=True)
    limits = [limits_of(np.append(column, 0.0)) for column in steps.X.T]
    for ax, k in zip(cells.flat, shown, strict=False):
        step = steps[k]
        for code, label in enumerate(np.unique(steps.y)):
            ax.scatter(*steps.X[steps.y == label].T, s=22, label=short(label, 30), **axes.class_look(code))
        before = (steps[k - 1].coef, steps[k - 1].intercept) if k > 0 else (np.zeros(2), 0.0)
        for (coef, intercept), dash in ((before, "--"), ((step.coef, step.intercept), "-")):
            if coef.any():
                foot = -intercept * coef / (coef @ coef)  # the nearest point of the line to the origin
                ax.axline(foot, foot + np.array([-coef[1], coef[0]]), color=axes.ink(), linestyle=dash, linewidth=1.2)
        ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": axes.ink(), "markersize": 12}
        ax.plot(*steps.X[step.row], "o", **ring)
        weights = ", ".join(f"{value:.3g}" for value in step.coef)
        ax.set_title(f"update {k + 1}: w = ({weights}), b = {step.intercept:.3g}", fontsize=9)
        ax.set(xlim=limits[0], ylim=limits[1], xlabel="x0", ylabel="x1")
        ax.label_outer()
    for ax in cells.flat[len(shown) :]:
        ax.set_visible(False)
    handles, labels = cells[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def draw_counted_tree(tree: Any, ax: Axes | None) -> Axes:
    """Draw a `CountedTree` with the leaves side by side."""
    across = {leaf: float(k) for k, leaf in enumerate(tree.leaves)}
    for node in sorted(tree.counts, reverse=True):
        across.setdefault(node, (across.get(2 * node, 0.0) + across.get(2 * node + 1, 0.0)) / 2)
    depth = max(tree.counts).bit_length() - 1
    ax = axes_of(ax, 1.4 * len(tree.leaves) + 0.6, 1.2 * depth + 1.2)
    for node, counts in tree.counts.items():
        x, y = across[node], 1.0 - node.bit_length()
        if node > 1:
            ax.plot([across[node // 2], x], [y + 1, y], color=axes.pale(), linewidth=1, zorder=1)
        code = int(np.argmax(counts))
        colour = axes.tint(axes.class_colour(code), max(counts) / (sum(counts) or 1.0))
        text = f"t{node}\n{', '.join(f'{count:g}' for count in counts)}\nR = {tree.risks[node]:.3g}"
        box = {"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": axes.pale()}
        ax.text(x, y, text, ha="center", va="center", fontsize=9, color=axes.INK, bbox=box, zorder=2)
    ax.set(xlim=(-0.6, len(tree.leaves) - 0.4), ylim=(-depth - 0.5, 0.5))
    ax.set_axis_off()
    return ax


def draw_penalised_risks(found: Any, ax: Axes | None) -> Axes:
    """Plot R(T) + α |T| of each nested tree against α, and the lowest of them."""
    ax = axes_of(ax, 6.4, 4.2, "top", "right")
    last = found.alphas[-1] * 1.25 or 1.0
    alpha = np.unique([0.0, *found.alphas, last])
    lines = np.array([step.risk + alpha * step.n_leaves for step in found.steps])
    for k, (step, line) in enumerate(zip(found.steps, lines, strict=True)):
        leaves = f"{step.n_leaves} leaves" if step.n_leaves > 1 else "the root"
        label = leaves if len(found) <= len(CLASS_COLOURS) else None
        ax.plot(alpha, line, color=axes.class_colour(k), linewidth=1.2, label=label)
    ax.plot(alpha, lines.min(axis=0), color=axes.ink(), linewidth=3, alpha=0.6, label="best tree T(α)", zorder=0)
    for step in found.steps[1:]:
        ax.axvline(step.alpha, color=axes.pale(), linewidth=0.8, linestyle=":")
    ax.set(xlabel="penalty per leaf α", ylabel="R(T) + α |T|", xlim=(0, last), ylim=(0, 1.15 * lines.min(axis=0).max()))
    ax.legend(frameon=False, loc="lower right")
    return ax


def draw_shrinkage(found: Any, truth: Floats | None, ax: Axes | None) -> Axes:
    """Plot estimates, shrunken estimates and, if known, the truth, with a line for each."""
    rows = [found.y, found.estimates, *([] if truth is None else [truth])]
    if truth is not None and len(truth) != len(found.y):
        raise ValueError(f"truth has {len(truth)} numbers, and there are {len(found.y)} estimates.")
    ax = axes_of(ax, 7.0, 1.2 + 0.65 * len(rows), "top", "right", "left")
    heights = np.arange(len(rows))[::-1]
    ax.plot(np.array(rows), np.repeat(heights[:, np.newaxis], len(found.y), axis=1), color=axes.pale(), linewidth=0.8)
    for row, height in zip(rows, heights, strict=True):
        ax.plot(row, np.full(len(row), height), "o", color=CLASS_COLOURS[0], markersize=6)
    if np.ndim(found.target) == 0:
        ax.axvline(float(found.target), color=axes.ink(), linewidth=0.8, linestyle=":")
    ax.set_yticks(heights, ["estimates", "shrunken", "truth"][: len(rows)])
    ax.set(xlabel="value", ylim=(-0.4, len(rows) - 0.6))
    ax.tick_params(axis="y", length=0)
    return ax


def draw_replicates(found: Any, interval: tuple[float, float], label: str, ax: Axes | None) -> Axes:
    """Plot the replicates of a `Bootstrap` with the estimate and an interval."""
    ax = axes_of(ax, 6.4, 3.8, "top", "right")
    ax.hist(found.replicates, bins="auto", color=CLASS_COLOURS[4], edgecolor=axes.paper(), linewidth=0.5)
    ax.axvline(found.estimate, color=axes.ink(), linewidth=1.5, label="estimate")
    shade = axes.mixed(axes.paper(), CLASS_COLOURS[0], 0.2)
    ax.axvspan(*interval, facecolor=shade, edgecolor=axes.pale(), linewidth=0.8, zorder=0, label=label)
    ax.set(xlabel="statistic", ylabel="bootstrap samples")
    ax.legend(frameon=False)
    return ax


def draw_density(found: Any, bin_width: float | None, ax: Axes | None) -> Axes:
    """Plot a `KernelDensity`, beside a histogram if a bin width is given."""
    ax = axes_of(ax, 6.4, 3.6, "top", "right")
    values = found.values
    if bin_width is not None:
        first, last = np.floor(values[0] / bin_width), np.floor(values[-1] / bin_width) + 1
        edges = bin_width * np.arange(first, last + 1)
        label = f"bins of {bin_width:g}"
        ax.hist(values, bins=edges.tolist(), density=True, color=CLASS_COLOURS[4], alpha=0.6, label=label)
    at = np.linspace(values[0] - 3 * found.bandwidth, values[-1] + 3 * found.bandwidth, 400)
    ax.plot(at, found(at), color=axes.ink(), linewidth=2, label=f"bandwidth {found.bandwidth:.3g}")
    ax.set(xlabel="value", ylabel="density")
    ax.legend(frameon=False)
    return ax


def plot_source(source: TwoSources, *, ax: Axes | None = None) -> Axes:
    """Plot a source of two classes: the density of each class times its probability, η, and the Bayes error.

    The Bayes rule predicts class 1 where its curve is the higher one. The shaded area below both curves is the Bayes
    error L*. The scale of η, the probability of class 1 given x, is on the right.

    Parameters
    ----------
    source : TwoSources
        A source of rows with one column.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes of the densities.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from scipy.stats import norm
    >>> from spinney.datasets import TwoSources
    >>> from spinney.teaching import plot_source
    >>> ax = plot_source(TwoSources(0.5, norm(1, 1), norm(-1, 1)))
    >>> [text.get_text() for text in ax.get_legend().get_texts()][2]
    'Bayes error L* = 0.159'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    if not isinstance(source, TwoSources):
        raise TypeError(f"source must be a TwoSources of spinney.datasets, not {one_line(source)}.")
    parts = (source.negative, source.positive)
    if not all(hasattr(part, "ppf") for part in parts):
        raise ValueError("plot_source draws one column. Pass a source whose distributions have one.")
    ax = axes_of(ax, 6.4, 3.8, "top")
    ends = np.array([part.ppf([0.001, 0.999]) for part in parts])
    x = np.linspace(ends.min(), ends.max(), 1001)
    heights = [weight * part.pdf(x) for weight, part in zip((1 - source.p, source.p), parts, strict=True)]
    for code, (height, name) in enumerate(zip(heights, ("(1 − p) f₋", "p f₊"), strict=True)):
        ax.plot(x, height, color=CLASS_COLOURS[code], linewidth=2, label=f"{name}, class {code}")
    label = f"Bayes error L* = {source.bayes_error():.3g}"
    ax.fill_between(x, np.minimum(*heights), color=axes.pale(), alpha=0.4, linewidth=0, label=label)
    right = ax.twinx()
    right.spines["top"].set_visible(False)
    (line,) = right.plot(x, source.eta(x[:, np.newaxis]), color=axes.ink(), linestyle="--", linewidth=1.2)
    right.set(ylabel="η(x)", ylim=(0, 1.02))
    ax.set(xlabel="x", ylabel="density", xlim=(x[0], x[-1]))
    ax.set_ylim(bottom=0)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend([*handles, line], [*labels, "η(x), the probability of class 1"], frameon=False, ncols=2,
              loc="lower center", bbox_to_anchor=(0.5, 1.0))  # fmt: skip
    return ax
