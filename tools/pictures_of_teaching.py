"""Draw the pictures for lectures, for make_pictures.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import spinney
from pictures_common import save, wave
from scipy.stats import norm
from spinney.datasets import TwoSources, load_batting, load_loans
from spinney.teaching import (
    bootstrap,
    consistency,
    multiway_tree,
    perceptron_steps,
    plot_source,
    search_table,
    tree_from_counts,
    weakest_links,
)

CRITERIA: tuple[Literal["entropy", "gini", "misclassification"], ...] = ("entropy", "gini", "misclassification")


def simplex() -> Any:
    """Draw three impurities of three classes."""
    figure, axes = mpl.pyplot.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for ax, criterion in zip(axes, CRITERIA, strict=True):
        spinney.plot_impurities(simplex=criterion, ax=ax)
    return figure


def trade_off() -> Any:
    """Draw bias and variance of trees against their number of leaves."""
    found = spinney.bias_variance(
        spinney.DecisionTreeRegressor(), vary={"max_leaf_nodes": [2, 3, 4, 6, 8, 12, 16, 32]}, generator=wave,
        truth=lambda X: np.sin(X[:, 0]), n_train=50, n_repeats=50, random_state=0,
    )  # fmt: skip
    return found.plot().figure


def consistent_rules() -> Any:
    """Draw the errors of rules that are consistent, and of one that is not."""
    nearest = spinney.KNeighborsClassifier(1)
    learners: dict[str, Any] = {
        "1 neighbour": nearest,
        "√n neighbours": lambda n: spinney.KNeighborsClassifier(int(n**0.5)),
        "bagged 1 neighbour": lambda n: spinney.BaggingClassifier(nearest, 50, max_samples=int(n**0.5)),
        "cells": lambda n: spinney.HistogramClassifier(n ** (-1 / 3)),
    }
    source = TwoSources(0.5, norm(1, 1), norm(-1, 1))
    return consistency(learners, source, sizes=(30, 100, 300, 1000), n_test=1000).plot().figure


def teaching_pictures(folder: Path) -> None:
    """Draw the chapter on calculators."""
    save(simplex(), folder / "simplex.png")
    tree = tree_from_counts((([80, 0], ([0, 60], [10, 0])), ([10, 0], [0, 40])))
    save(tree.plot().figure, folder / "counted_tree.png")
    save(weakest_links(tree).plot().figure, folder / "penalised_risks.png")
    rows = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, 1.0], [-2.0, -1.0], [1.0, -2.0], [2.0, -0.5]])
    save(perceptron_steps(rows, [1, 1, 1, -1, -1, -1]).plot(), folder / "perceptron_steps.png")
    save(search_table(*load_loans(), criterion="p(1-p)").plot(), folder / "search_table.png")
    correlation = bootstrap(lambda x, y: np.corrcoef(x, y)[0, 1], *load_batting(), random_state=0)
    save(correlation.plot(method="bca").figure, folder / "bootstrap.png")
    save(trade_off(), folder / "trade_off.png")
    save(consistent_rules(), folder / "consistency.png")
    save(plot_source(TwoSources(0.3, norm(1, 1), norm(-1, 1))).figure, folder / "two_sources.png")
    X, y = spinney.datasets.make_diagonal(120, noise=0.1, random_state=0)
    values = {"n_neighbors": [1, 3, 5, 9, 15, 25, 45, 75]}
    curve = spinney.plot_tuning(spinney.KNeighborsClassifier(), X, y, values, simplest="last")
    save(curve.figure, folder / "tuning.png")
    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.1, 1, 10]}
    save(spinney.plot_tuning(spinney.SVC(), X, y, grid, simplest="first").figure, folder / "tuning_map.png")
    loans, classes = load_loans(as_frame="pandas")
    save(spinney.plot_tree(multiway_tree(loans, classes)).figure, folder / "multiway_tree.png")
    save(spinney.plot_losses(), folder / "margin_losses.png")
