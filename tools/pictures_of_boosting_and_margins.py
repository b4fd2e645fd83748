"""Draw the chapters on boosting, AdaBoost and margins, for make_pictures.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import spinney
from pictures_common import save, wave
from sklearn.datasets import load_diabetes, make_moons
from spinney.inspect.draw.axes import CLASS_COLOURS, PALE


def learning_curve() -> Any:
    """Draw the losses of a boosted model that stops early."""
    X, y = load_diabetes(return_X_y=True)
    model = spinney.GradientBoostingRegressor(
        n_estimators=400, learning_rate=0.05, max_leaf_nodes=8, early_stopping=True, validation_fraction=0.25,
        n_iter_no_change=40, random_state=1,
    )  # fmt: skip
    return spinney.plot_learning_curve(model.fit(X, y)).figure


def losses() -> Any:
    """Draw losses of classes against the margin, and of values against the residual."""
    figure, (left, right) = mpl.pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    margin = np.linspace(-3, 3, 301)
    sides = (
        (left, "margin: score times the sign of the class", {
            "wrong or right": (margin < 0).astype(float),
            "log loss": np.log2(1 + np.exp(-margin)),
            "exponential": np.exp(-margin),
        }),
        (right, "residual", {
            "squared": margin**2 / 2,
            "absolute": np.abs(margin),
            "Huber": np.where(np.abs(margin) < 1, margin**2 / 2, np.abs(margin) - 0.5),
            "quantile 0.8": np.where(margin > 0, 0.8 * margin, -0.2 * margin),
        }),
    )  # fmt: skip
    for ax, label, curves in sides:
        for k, (name, loss) in enumerate(curves.items()):
            ax.plot(margin, loss, color=CLASS_COLOURS[k], linewidth=2, label=name)
        ax.set(xlabel=label, ylabel="loss", ylim=(-0.1, 4), xlim=(-3, 3))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    return figure


def early_stopping() -> Any:
    """Draw a wave and what boosting makes of it after few, the best and many rounds."""
    rng = np.random.default_rng(3)
    X, y = wave(rng, 150)
    X_val, y_val = wave(rng, 150)
    grid = np.linspace(0, 1, 500)[:, np.newaxis] * (X.max() - X.min()) + X.min()
    settings: dict[str, Any] = {"n_estimators": 500, "max_leaf_nodes": 6, "min_samples_leaf": 2}
    model = spinney.GradientBoostingRegressor(**settings).fit(X, y, X_val=X_val, y_val=y_val)
    best = int(model.validation_score_.argmin()) + 1
    stages = list(model.staged_predict(grid))
    figure, axes = mpl.pyplot.subplots(1, 3, figsize=(10, 3), layout="constrained", sharey=True)
    for ax, n_rounds in zip(axes, (3, best, 500), strict=True):
        ax.plot(X[:, 0], y, ".", color=PALE, markersize=5)
        ax.plot(grid[:, 0], stages[n_rounds - 1], color=CLASS_COLOURS[0], linewidth=1.5)
        error = model.validation_score_[n_rounds - 1]
        ax.set_title(f"{n_rounds} rounds: held-out loss {error:.3f}", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def shapes() -> Any:
    """Draw the functions of three columns that a sum of simple functions has found."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(600, 4))
    y = np.sin(2 * X[:, 0]) + 0.8 * X[:, 1] + 1.0 * (X[:, 2] > 0.5) + rng.normal(scale=0.2, size=600)
    model = spinney.FunctionalBoostingRegressor(["linear", "splines", "stumps"], n_estimators=150).fit(X, y)
    return model.plot_shapes(max_columns=3)


def adaboost_pictures(folder: Path) -> None:
    """Draw the chapter on AdaBoost: errors by round, margins."""
    X, y = spinney.datasets.make_nested_spheres(12_000, random_state=0)
    model = spinney.AdaBoostClassifier(n_estimators=400, max_depth=6).fit(X[:2000], y[:2000])
    ax = spinney.plot_errors(model, X[2000:], y[2000:], X=X[:2000], y=y[:2000])
    ax.plot(np.arange(1, 401), model.train_losses_, color=PALE, linestyle="--", label="bound of the training error")
    ax.set_ylim(0, 0.4)
    ax.legend(frameon=False)
    save(ax.figure, folder / "adaboost_errors.png")
    corner = spinney.datasets.make_diagonal(120, random_state=0)
    boosted = spinney.AdaBoostClassifier(n_estimators=50).fit(*corner)
    save(spinney.plot_boosting_steps(boosted, *corner), folder / "adaboost_rounds.png")
    x, y_hand = np.arange(10.0)[:, np.newaxis], [1, 1, 1, -1, -1, -1, 1, 1, 1, -1]
    by_hand = spinney.AdaBoostClassifier(n_estimators=3)
    save(spinney.plot_boosting_steps(by_hand, x, y_hand, max_columns=4), folder / "adaboost_by_hand.png")
    save(spinney.plot_margins(model, X[:2000], y[:2000], rounds=(5, 30, 400)).figure, folder / "adaboost_margins.png")


def two_groups() -> tuple[Any, Any]:
    """Make two groups that overlap a little."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(70, 2)) + np.repeat([[0.0, 0.0], [2.4, 1.8]], 35, axis=0)
    return X, np.repeat(["one", "other"], 35)


def margin_pictures(folder: Path) -> None:
    """Draw a margin, and what kernels make of two moons."""
    X, y = two_groups()
    model = spinney.SVC(kernel="linear", C=1.0, scale=False).fit(X, y)
    save(spinney.plot_support(model, X, y).figure, folder / "margin.png")
    moons, side = make_moons(160, noise=0.2, random_state=0)
    kernels: dict[str, dict[str, Any]] = {
        "linear": {},
        "polynomial, degree 3": {"kernel": "poly", "coef0": 1.0},
        "Gaussian (RBF)": {},
        "sigmoid": {"kernel": "sigmoid", "gamma": 0.3, "coef0": -0.5},
    }
    kernels["linear"]["kernel"], kernels["Gaussian (RBF)"]["kernel"] = "linear", "rbf"
    figure, axes = mpl.pyplot.subplots(1, 4, figsize=(12, 3.1), layout="constrained", sharey=True)
    for ax, (name, options) in zip(axes, kernels.items(), strict=True):
        own = spinney.SVC(scale="standard", **options).fit(moons, side)
        spinney.plot_support(own, moons, side, slacks=False, ax=ax)
        ax.get_legend().remove()
        ax.set(title=f"{name}: {own.score(moons, side):.0%}", xlabel="", ylabel="")
    save(figure, folder / "kernels.png")
