"""Loss of a boosted model, round by round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.charts.axes import axes_of
from spinney.inspect.charts.colours import CLASS_COLOURS, INK, VALUE_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
