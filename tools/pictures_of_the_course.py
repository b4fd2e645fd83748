"""Draw the pictures of the course, for make_pictures.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import spinney
from pictures_common import save, wave
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from spinney.teaching import kernel_density


def trees_of_the_course(folder: Path) -> None:
    """Draw the lectures on splits and pruning."""
    X, y = wave(np.random.default_rng(0), 120)
    leaves = {"max_leaf_nodes": [2, 3, 5, 9]}
    save(spinney.plot_regions(spinney.DecisionTreeRegressor(), X, y, vary=leaves), folder / "course_growth.png")
    points, sign = spinney.datasets.make_xor(200, random_state=0)
    sizes: dict[str, Iterable[Any]] = {"max_leaf_nodes": [2, 4, None]}
    save(spinney.plot_regions(spinney.DecisionTreeClassifier(), points, sign, vary=sizes), folder / "course_xor.png")
    patients, disease = spinney.datasets.load_heart(as_frame="pandas")
    pruned = spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(patients, disease)
    unpruned = spinney.DecisionTreeClassifier(max_leaf_nodes=16).fit(patients, disease)
    save(spinney.plot_cp(pruned).figure, folder / "course_cp.png")
    save(spinney.plot_pruning(unpruned, pruned, show_missing=False), folder / "course_pruned.png", dpi=90)


def heart() -> Any:
    """Draw errors of bagging and of a forest against the number of trees, below that of a pruned tree."""
    X, y = spinney.datasets.load_heart(as_frame="pandas")
    X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=1, stratify=y)
    settings: dict[str, Any] = {"oob_score": True, "random_state": 0}
    models: dict[str, Any] = {
        "bagging": spinney.RandomForestClassifier(200, max_features=None, **settings).fit(X_fit, y_fit),
        "forest": spinney.RandomForestClassifier(200, **settings).fit(X_fit, y_fit),
    }
    tree = spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(X_fit, y_fit)
    return spinney.plot_errors(models, X_new, y_new, references={"pruned tree": tree}).figure


def spheres() -> Any:
    """Draw errors of boosted stumps against the rounds, with a stump and a tree."""
    X, y = spinney.datasets.make_nested_spheres(2000, random_state=0)
    X_new, y_new = spinney.datasets.make_nested_spheres(10_000, random_state=1)
    references: dict[str, Any] = {
        "stump": spinney.DecisionTreeClassifier(max_depth=1).fit(X, y),
        "one tree": spinney.DecisionTreeClassifier().fit(X, y),
    }
    model = spinney.AdaBoostClassifier(n_estimators=400).fit(X, y)
    return spinney.plot_errors(model, X_new, y_new, X=X, y=y, references=references).figure


def stumps() -> Any:
    """Draw the regions of a stump, of bagged and of boosted ones."""
    X, y = spinney.datasets.make_diagonal(300, random_state=0)
    stump = spinney.DecisionTreeClassifier(max_depth=1)
    models: dict[str, Any] = {
        "stump": stump,
        "50 bagged stumps": spinney.BaggingClassifier(stump, 50, voting="hard", random_state=0),
        "50 boosted stumps": spinney.AdaBoostClassifier(stump, 50),
    }
    return spinney.plot_regions(models, X, y)


def polynomials() -> Any:
    """Draw polynomials of rising degree."""
    X, y = wave(np.random.default_rng(0), 30)
    models = {
        f"degree {degree}": make_pipeline(StandardScaler(), PolynomialFeatures(degree), LinearRegression())
        for degree in (1, 3, 5, 9)
    }
    return spinney.plot_regions(models, X, y)


def rounds() -> Any:
    """Draw the test error of boosting against the rounds for three learning rates."""
    X_fit, X_new, y_fit, y_new = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
    models: dict[str, Any] = {
        f"λ = {rate}": spinney.GradientBoostingRegressor(
            n_estimators=500, learning_rate=rate, max_leaf_nodes=4, early_stopping=False
        ).fit(X_fit, y_fit)
        for rate in (1.0, 0.1, 0.02)
    }
    return spinney.plot_errors(models, X_new, y_new).figure


def local_rules() -> Any:
    """Draw the regions of neighbours and of cells."""
    X, y = spinney.datasets.make_diagonal(300, noise=0.15, random_state=0)
    models: dict[str, Any] = {f"k = {k}": spinney.KNeighborsClassifier(k) for k in (1, 25, 299)}
    models |= {f"δ = {edge}": spinney.HistogramClassifier(edge) for edge in (0.02, 0.1, 0.5)}
    return spinney.plot_regions(models, X, y, max_columns=3)


def densities() -> Any:
    """Draw histograms of ages with three bin widths, and a kernel density estimate."""
    rng = np.random.default_rng(0)
    ages = np.concatenate([rng.normal(30, 10, 500), rng.normal(6, 3, 60)]).clip(0.5)
    found = kernel_density(ages)
    figure, panels = mpl.pyplot.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    for ax, width in zip(panels, (1, 5, 15), strict=True):
        found.plot(bin_width=width, ax=ax).set_xlabel("age")
    return figure


def gammas() -> Any:
    """Draw the regions of a support vector machine with four values of gamma."""
    X, y = spinney.datasets.make_xor(150, noise=0.05, random_state=0)
    return spinney.plot_regions(spinney.SVC(C=10.0), X, y, vary={"gamma": [0.1, 1.0, 10.0, 100.0]})


def darts() -> Any:
    """Draw the regions of neighbours, of a linear machine and of their stack."""
    X, y = spinney.datasets.make_darts(600, random_state=0)
    nearest = spinney.KNeighborsClassifier(3)
    machine = spinney.SVC(kernel="linear", probability=True, random_state=0)
    stack = spinney.StackingClassifier([nearest, machine], "forest", passthrough=True, random_state=0)
    return spinney.plot_regions({"3 neighbours": nearest, "linear machine": machine, "stack": stack}, X, y)


def contest() -> Any:
    """Draw all methods on one table."""
    X, y = spinney.datasets.load_heart(as_frame="pandas")
    models: list[Any] = [
        ("pruned tree", spinney.DecisionTreeClassifier(prune="cv", random_state=0)),
        ("bagging", spinney.BaggingClassifier(n_estimators=50, random_state=0)),
        ("forest", spinney.RandomForestClassifier(100, random_state=0)),
        ("extra-trees", spinney.ExtraTreesClassifier(100, random_state=0)),
        ("AdaBoost", spinney.AdaBoostClassifier(n_estimators=50, random_state=0)),
        ("boosting", spinney.GradientBoostingClassifier(n_estimators=50, learning_rate=0.1, max_leaf_nodes=4)),
        ("k-NN", spinney.KNeighborsClassifier("cv")),
        ("SVM", spinney.SVC(C="cv", scale="standard", random_state=0)),
        ("logistic", spinney.LinearClassifier()),
    ]
    found = spinney.compare(models, X, y, scoring="accuracy", cv=5, repeats=1, random_state=0)
    return found.plot().figure


def course_pictures(folder: Path) -> None:
    """Draw the pictures of the course."""
    trees_of_the_course(folder)
    save(heart(), folder / "course_heart.png")
    save(spheres(), folder / "course_spheres.png")
    save(stumps(), folder / "course_stumps.png")
    save(polynomials(), folder / "course_polynomials.png")
    save(rounds(), folder / "course_rounds.png")
    save(local_rules(), folder / "course_local.png")
    save(densities(), folder / "course_density.png")
    save(gammas(), folder / "course_gamma.png")
    save(darts(), folder / "course_darts.png")
    save(contest(), folder / "course_contest.png")
