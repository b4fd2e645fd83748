"""Margins of rows, by which the voting of an ensemble is more than right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.charts.axes import CLASS_COLOURS, INK, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_margins(
    model: TableEstimator, X: Any, y: Any, *, rounds: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how the margins of rows are distributed after some rounds of AdaBoost.

    Each line says which share of the rows has a margin of at most so much. Where it crosses 0 is the error. Margins go
    on growing when no training row is wrong any more.

    Parameters
    ----------
    model : estimator
        A fitted `AdaBoostClassifier`.
    X : table of shape (n_samples, n_features)
        Rows, such as those of the fit.
    y : array-like of shape (n_samples,)
        Their classes.
    rounds : sequence of int, optional
        After which rounds, counted from 1; None: a tenth of them, a third, and all.
    ax : Axes, optional
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

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
    if not hasattr(model, "staged_margins"):
        raise TypeError(f"Margins need an AdaBoostClassifier, not a {type(model).__name__}.")
    n_rounds = int(model.n_iter_)
    wanted = sorted({max(1, n_rounds // 10), max(1, n_rounds // 3), n_rounds} if rounds is None else set(rounds))
    if not wanted or wanted[0] < 1 or wanted[-1] > n_rounds:
        raise ValueError(f"rounds must be numbers from 1 to {n_rounds}, as many as the model has. Got {rounds!r}.")
    ax = axes_of(ax, 7.0, 4.2, "top", "right")
    styles = [":", "--", "-"]
    for t, margins in enumerate(model.staged_margins(X, y), start=1):
        if t in wanted:
            k = wanted.index(t)
            share = np.arange(1, len(margins) + 1) / len(margins)
            style = styles[max(0, len(styles) - len(wanted) + k)]
            label = f"{t} round" if t == 1 else f"{t} rounds"
            colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
            ax.plot(np.sort(margins), share, style, color=colour, linewidth=2, label=label, drawstyle="steps-post")
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set(xlabel="margin", ylabel="share of the rows with at most this margin", xlim=(-1, 1), ylim=(0, 1))
    ax.legend(frameon=False, loc="upper left")
    return ax
