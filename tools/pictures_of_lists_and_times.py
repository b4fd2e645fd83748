"""Draw the chapters on ranking and on times until an event, for make_pictures.py."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import spinney
from spinney.inspect.draw.axes import CLASS_COLOURS, INK


def _shop(seed: int, n: int = 200, size: int = 15) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * size, 4))
    X[:, 3] = np.repeat(5 * rng.normal(size=n), size)
    wish = X[:, 0] - X[:, 1] ** 2 / 2 + X[:, 3] + rng.normal(size=n * size) / 2
    queries = np.repeat(np.arange(n), size)
    place = np.array([np.argsort(np.argsort(-wish[queries == q])) for q in range(n)]).ravel()
    return X, np.select([place < 1, place < 3, place < 6], [3, 2, 1], 0), queries


def ranking() -> Any:
    """Draw NDCG against the number of places, of both losses and of a regressor."""
    X, y, groups = _shop(0)
    new_X, new_y, new_groups = _shop(1)
    shape: dict[str, Any] = {"n_estimators": 60, "max_leaf_nodes": 8}
    models = {
        "lambdamart": spinney.GradientBoostingRanker(**shape).fit(X, y, groups=groups),
        "pairwise": spinney.GradientBoostingRanker("pairwise", **shape).fit(X, y, groups=groups),
        "regression on the grades": spinney.GradientBoostingRegressor(**shape).fit(X, y),
    }
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    places = np.arange(1, 11)
    for k, (name, model) in enumerate(models.items()):
        scores = model.predict(new_X)
        found = [spinney.ranking_score(new_y, scores, new_groups, metric=f"ndcg@{p}") for p in places]
        ax.plot(places, found, marker="o", color=CLASS_COLOURS[k], linewidth=2, label=name)
    ax.set(xlabel="top ranks", ylabel="NDCG of held-out lists")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def _machines(seed: int, n: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = np.exp(1.5 - X[:, 0] + np.abs(X[:, 1]) / 2 + rng.gumbel(size=n) * -0.5)
    end = rng.exponential(12, n)
    return X, np.where(time < end, time, -end)


def survival_forest() -> Any:
    """Draw the curves of the leaves of a tree, and those of three rows by extra-trees, beside the truth."""
    X, times = _machines(0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    named = pd.DataFrame(X, columns=["load", "heat", "age"]).round(2)
    spinney.SurvivalTree(min_samples_leaf=20, max_depth=2).fit(named, times).plot_curves(axes[0])
    _draw_three_rows(axes[1], spinney.ExtraSurvivalTrees(random_state=0).fit(X, times))
    axes[0].set(title="leaves of a tree", xlim=(0, 20))
    axes[1].set_title("three rows, extra-trees")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].legend(frameon=False)
    return figure


def _draw_three_rows(ax: Any, model: Any) -> None:
    """Draw the curves of three rows, and the true ones as dotted lines."""
    rows, at = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]]), np.linspace(0.01, 20, 400)
    curves = model.predict_survival_function(rows, at)
    for k, row in enumerate(rows):
        middle = 1.5 - row[0] + abs(row[1]) / 2
        truth = np.exp(-np.exp((np.log(at) - middle) / 0.5))
        ax.plot(at, truth, color=INK, linewidth=1, linestyle=":", label="truth" if k == 0 else None)
        ax.plot(at, curves[k], color=CLASS_COLOURS[k], linewidth=2)
    ax.set(xlabel="time", xlim=(0, 20), ylim=(0, 1.02))


def survival() -> Any:
    """Draw the curves of three rows by both losses, beside the truth."""
    X, times = _machines(0)
    shape: dict[str, Any] = {"n_estimators": 50, "max_leaf_nodes": 4}
    models = {
        "cox": spinney.GradientBoostingSurvival(**shape).fit(X, times),
        "aft, extreme": spinney.GradientBoostingSurvival("aft", distribution="extreme", **shape).fit(X, times),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        _draw_three_rows(ax, model)
        ax.set_title(name)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("probability of no event so far")
    axes[0].legend(frameon=False)
    return figure
