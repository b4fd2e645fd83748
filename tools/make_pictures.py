"""Make the pictures of the documentation: ``PYTHONPATH=python python tools/make_pictures.py [FOLDER]``.

Needs pandas and matplotlib. Without a folder they go to docs/pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
import spinney
from pictures_common import save, wave
from pictures_of_boosting_and_margins import (
    adaboost_pictures,
    early_stopping,
    learning_curve,
    losses,
    margin_pictures,
    shapes,
)
from pictures_of_lists_and_times import ranking, survival, survival_forest
from pictures_of_teaching import teaching_pictures
from pictures_of_the_course import course_pictures
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from spinney.inspect.draw.axes import CLASS_COLOURS, CLASS_MARKERS, INK, PALE, class_colour

mpl.use("agg")
TWO = ["bill_length_mm", "flipper_length_mm"]


def iris_tree() -> Any:
    """Fit the tree that textbooks draw."""
    iris = load_iris(as_frame=True)
    X = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
    return spinney.DecisionTreeClassifier(max_depth=3).fit(X, iris.target_names[iris.target])


def many_leaves() -> Any:
    """Fit a tree with 60 leaves to four overlapping regions."""
    rng = np.random.default_rng(1)
    names = ["age", "income", "debt", "savings", "years_employed", "children"]
    X = pd.DataFrame(rng.normal(size=(3000, 6)).round(2), columns=names)
    east = X["income"] * X["debt"] + X["age"] + rng.normal(size=3000) / 2 > 0.3
    north = X["savings"] + X["children"] * X["age"] + rng.normal(size=3000) / 2 > 0
    y = np.where(north, np.where(east, "north-east", "north-west"), np.where(east, "south-east", "south-west"))
    return spinney.DecisionTreeClassifier(max_leaf_nodes=60).fit(X, y)


def cancer_trees() -> tuple[Any, Any]:
    """Fit a tree that counts mistakes and one that counts what they cost."""
    cancer = load_breast_cancer(as_frame=True)
    X, y = cancer.data.filter(like="mean"), cancer.target_names[cancer.target]
    plain = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    cost = {"malignant": {"benign": 10}}
    return plain, spinney.DecisionTreeClassifier(max_depth=2, cost_matrix=cost).fit(X, y)


def pruning_pictures(folder: Path) -> None:
    """Draw the chapter on pruning: the whole tree, the errors, the tree that is kept."""
    X, species = spinney.datasets.load_penguins(as_frame="pandas")
    X = X.assign(species=species).dropna(subset="sex")
    sex = X.pop("sex").astype(str)
    full = spinney.DecisionTreeClassifier().fit(X, sex)
    kept = spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(X, sex)
    for name, tree in (("pruning_full.svg", full), ("pruning_kept.svg", kept)):
        (folder / name).write_text(spinney.tree_svg(tree, show_missing=False), encoding="utf-8")
    save(spinney.plot_cp(kept).figure, folder / "pruning_curve.png")


def batting() -> Any:
    """Draw early averages, shrunken ones and those of the rest of the season, one line per player."""
    early, rest = spinney.datasets.load_batting()
    ax = spinney.james_stein(early, family="binomial", n=45).plot(truth=rest)
    ax.set_xlabel("batting average")
    return ax.figure


def shrinkage() -> Any:
    """Draw the error on held-out rows against the strength of the shrinkage, for trees of several sizes."""
    X, y = load_diabetes(return_X_y=True)
    strengths = np.geomspace(0.1, 1000, 25)
    figure, ax = mpl.pyplot.subplots(figsize=(7, 4), layout="constrained")
    for k, (leaves, name) in enumerate([(None, "one leaf per row"), (32, "32 leaves"), (8, "8 leaves")]):
        errors = []
        for fit, new in ShuffleSplit(40, test_size=0.25, random_state=0).split(X):
            tree = spinney.DecisionTreeRegressor(max_leaf_nodes=leaves).fit(X[fit], y[fit])
            shrunken = [spinney.shrink_tree(tree, strength).predict(X[new]) for strength in strengths]
            errors.append([np.sqrt(np.mean((y[new] - predicted) ** 2)) for predicted in shrunken])
        ax.plot(strengths, np.mean(errors, axis=0), color=CLASS_COLOURS[k], label=name, linewidth=2)
        lowest = int(np.mean(errors, axis=0).argmin())
        marker = CLASS_MARKERS[k]
        ax.plot(strengths[lowest], np.mean(errors, axis=0)[lowest], marker, color=CLASS_COLOURS[k], markersize=8)
    ax.set(xscale="log", xlabel="strength of the shrinkage", ylabel="error on test rows (RMSE)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def thirty_rows() -> Any:
    """Draw the error of bagged trees on thirty rows against their number, by votes and by probabilities."""
    source, rng = spinney.datasets.ThresholdClasses(), np.random.default_rng(0)
    new_X, new_y = source(rng, 2000)
    tree = spinney.DecisionTreeClassifier(max_depth=2)
    single: list[float] = []
    curves: dict[str, list[list[float]]] = {"hard": [], "soft": []}
    for seed in range(50):
        X, y = source(rng, 30)
        single.append(np.mean(tree.fit(X, y).predict(new_X) != new_y))
        model = spinney.BaggingClassifier(tree, 200, random_state=seed).fit(X, y)
        for voting, curve in curves.items():
            stages = model.set_params(voting=voting).staged_predict(new_X)
            curve.append([float(np.mean(predictions != new_y)) for predictions in stages])
    figure, ax = mpl.pyplot.subplots(figsize=(7, 4), layout="constrained")
    ax.axhline(float(np.mean(single)), color=PALE, linestyle="--", label="one tree on all 30 rows")
    number = np.arange(1, 201)
    for k, (voting, name) in enumerate([("hard", "majority vote"), ("soft", "mean probability")]):
        ax.plot(number, np.mean(curves[voting], axis=0), color=CLASS_COLOURS[5 * k], linewidth=2, label=name)
    ax.axhline(0.2, color=INK, linestyle=":", label="least possible error")
    ax.set(xlabel="bootstrap samples", ylabel="test error", xlim=(1, 200))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def oob_curve() -> Any:
    """Draw the error out of bag against the number of trees."""
    X, y = load_diabetes(return_X_y=True)
    figure, ax = mpl.pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for k, share in enumerate([1.0, 0.5]):
        model = spinney.BaggingRegressor(n_estimators=200, max_features=share, oob_score=True, random_state=0)
        name = "all columns" if share == 1 else "half of the columns for each tree"
        curve = model.fit(X, y).oob_errors()
        ax.plot(np.arange(1, 201), np.sqrt(curve), color=CLASS_COLOURS[5 * k], linewidth=2, label=name)
    ax.set(xlabel="trees", ylabel="error out of bag (RMSE)", xlim=(1, 200))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def bias_variance() -> Any:
    """Draw the parts of the error of four learners on the wave."""
    learners = {
        "stump": spinney.DecisionTreeRegressor(max_depth=1),
        "tree of depth 3": spinney.DecisionTreeRegressor(max_depth=3),
        "deep tree": spinney.DecisionTreeRegressor(),
        "20 bagged deep trees": spinney.BaggingRegressor(n_estimators=20),
    }
    found = spinney.bias_variance(
        learners, generator=wave, truth=lambda X: np.sin(X[:, 0]), n_train=50, n_repeats=50, random_state=0
    )
    return found.plot().figure


def comparison_pictures(folder: Path) -> None:
    """Draw models compared on one table, their learning curves, and a stack beside its members."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    found = spinney.compare(["tree", "forest", "linear"], X, y)
    save(found.plot().figure, folder / "comparison.png")
    curves = spinney.compare(["tree", "forest", "linear"], X, y, repeats=1, learning_curves=True, baseline=False)
    save(curves.plot_curves().figure, folder / "comparison_curves.png")
    members = ["forest", "boosting", "linear"]
    models = [*members, ("stack", spinney.StackingRegressor(members)), ("vote", spinney.VotingRegressor(members))]
    stacked = spinney.compare(models, X, y, reference="stack", baseline=False)
    save(stacked.plot().figure, folder / "stacking.png")


def lost_columns() -> Any:
    """Draw the accuracy of trees after losing each column, with and without surrogates."""
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    columns = ["bill_length_mm", "flipper_length_mm", "island", "bill_depth_mm", "body_mass_g"]
    figure, ax = mpl.pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    kinds: list[tuple[Literal["learned", "surrogate"], str]] = [
        ("learned", "one side for all"),
        ("surrogate", "by surrogates"),
    ]
    for k, (missing, label) in enumerate(kinds):
        right = np.zeros(len(columns))
        for fit, new in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
            tree = spinney.DecisionTreeClassifier(max_depth=3, missing=missing).fit(X.iloc[fit], y.iloc[fit])
            lost = [X.iloc[new].assign(**{name: None if name == "island" else np.nan}) for name in columns]
            right += [tree.score(table, y.iloc[new]) / 10 for table in lost]
        at = np.arange(len(columns)) + 0.19 * (2 * k - 1)
        bars = ax.barh(at, right, height=0.36, color=[PALE, CLASS_COLOURS[0]][k], label=label)
        ax.bar_label(bars, labels=[f"{share:.2f}" for share in right], padding=3, fontsize=9)
    ax.set_yticks(np.arange(len(columns)), columns)
    ax.invert_yaxis()
    ax.set(xlabel="accuracy on test rows that have lost the column", xlim=(0, 1.1))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.legend(frameon=False, loc="outside upper right", ncols=2)
    return figure


def decision_functions() -> Any:
    """Draw where a tree, a forest and extra-trees see each species, side by side."""
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    X = X[TWO].dropna()
    models = {
        "one tree": spinney.DecisionTreeClassifier(),
        "random forest": spinney.RandomForestClassifier(random_state=0),
        "extra-trees": spinney.ExtraTreesClassifier(random_state=0),
    }
    return spinney.plot_regions(models, X, y[X.index])


def forest_errors() -> Any:
    """Draw out-of-bag and held-out error against the number of trees."""
    X, y = load_diabetes(return_X_y=True)
    curves: dict[str, list[Any]] = {"out of bag": [], "rows not seen": []}
    for seed, (fit, new) in enumerate(ShuffleSplit(20, test_size=0.25, random_state=0).split(X)):
        settings: dict[str, Any] = {"n_estimators": 150, "max_features": 1 / 3, "oob_score": True}
        forest = spinney.RandomForestRegressor(random_state=seed, **settings)
        forest.fit(X[fit], y[fit])
        curves["out of bag"].append(np.sqrt(forest.oob_curve_))
        by_tree = np.array([tree.predict(X[new]) for tree in forest])
        so_far = np.cumsum(by_tree, axis=0) / np.arange(1, 151)[:, np.newaxis]
        curves["rows not seen"].append(np.sqrt(np.mean((so_far - y[new]) ** 2, axis=1)))
    figure, ax = mpl.pyplot.subplots(figsize=(7, 3.5), layout="constrained")
    for k, (name, errors) in enumerate(curves.items()):
        ax.plot(np.arange(1, 151), np.mean(errors, axis=0), color=CLASS_COLOURS[k], label=name, linewidth=2)
    ax.set(xlabel="trees", ylabel="error (RMSE)", xlim=(0, 150))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def importance_kinds() -> Any:
    """Draw three importances of a column that matters among noise of two, thirty and a thousand values."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"dose": random.integers(0, 2, size=1000)})
    X["coin"] = random.integers(0, 2, size=1000)
    X["clinic"] = random.choice([f"clinic {i}" for i in range(30)], size=1000)
    X["serial_number"] = random.permutation(1000)
    y = np.where(random.random(1000) < 0.7, X["dose"] == 1, X["dose"] == 0)
    forest = spinney.RandomForestClassifier(n_estimators=200, random_state=0).fit(X, y)
    figure, axes = mpl.pyplot.subplots(1, 3, figsize=(11, 2.4), layout="constrained")
    kinds: tuple[Literal["impurity", "unbiased", "permutation"], ...] = ("impurity", "unbiased", "permutation")
    for ax, kind in zip(axes, kinds, strict=True):
        forest.importances(X, y, kind=kind).plot(ax=ax)
        ax.set_title(kind)
    return figure


def importance_rows() -> Any:
    """Draw the importances of single penguins."""
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=300, random_state=0).fit(X, y)
    return forest.importances(X, y, loss="margin", by_row=True).plot_rows(colour=y).figure


def noisy_line() -> tuple[Any, Any, Any]:
    """Fit a forest to a line whose noise grows, as in the chapter on uncertainty; with the rows it was fitted on."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 10, size=(1500, 1))
    y = X[:, 0] + random.normal(size=1500) * (0.3 + X[:, 0] / 4)
    forest = spinney.RandomForestRegressor(min_samples_leaf=20, keep_rows=True, random_state=0)
    return forest.fit(X[:1000], y[:1000]), X, y


def quantile_bands() -> Any:
    """Draw bands of quantiles, and intervals of one width, over the rows they were learned from."""
    forest, X, y = noisy_line()
    at = np.linspace(0, 10, 400)[:, np.newaxis]
    quantiles = forest.predict_quantiles(at, (0.05, 0.25, 0.5, 0.75, 0.95)).T
    ends = forest.predict_interval(at, 0.9, "jackknife+").T
    figure, all_axes = mpl.pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax in all_axes:
        ax.plot(X[:1000, 0], y[:1000], ".", color=PALE, markersize=2, alpha=0.6)
        ax.set(xlabel="x", xlim=(0, 10))
        ax.spines[["top", "right"]].set_visible(False)
    blue, orange = CLASS_COLOURS[0], CLASS_COLOURS[5]
    all_axes[0].fill_between(at[:, 0], quantiles[0], quantiles[4], color=blue, alpha=0.2, label="5 % to 95 %")
    all_axes[0].fill_between(at[:, 0], quantiles[1], quantiles[3], color=blue, alpha=0.35, label="25 % to 75 %")
    all_axes[0].plot(at[:, 0], quantiles[2], color=blue, label="median")
    all_axes[1].fill_between(at[:, 0], *ends, color=orange, alpha=0.25, label="90 % interval, jackknife+")
    all_axes[1].plot(at[:, 0], forest.predict(at), color=orange, label="mean")
    all_axes[0].set(ylabel="y", title="predict_quantiles")
    all_axes[1].set(title="predict_interval")
    for ax in all_axes:
        ax.legend(frameon=False, loc="upper left")
    return figure


def coverage() -> Any:
    """Draw the coverage of two kinds of intervals by bins of the prediction."""
    forest, X, y = noisy_line()
    figure, all_axes = mpl.pyplot.subplots(1, 2, figsize=(11, 3), layout="constrained")
    for ax, method in zip(all_axes, ("jackknife+", "quantile"), strict=True):
        forest.coverage_report(X[1000:], y[1000:], method=method).plot(ax=ax)
        ax.get_legend().remove()
        ax.set(title=f'method="{method}"', xlim=(0.7, 1.01))
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def neighbour_pictures(folder: Path) -> None:
    """Draw the chapter on proximities: the map, outlier scores with two labels exchanged, isolation."""
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    forest = spinney.RandomForestClassifier(n_estimators=500, random_state=0).fit(X, y)
    save(spinney.plot_proximity_map(forest, X, y).figure, folder / "proximity_map.png")
    wrong = np.array(y, dtype=object)
    wrong[[20, 200]] = wrong[[200, 20]]
    mistaken = spinney.RandomForestClassifier(n_estimators=500, random_state=0).fit(X, wrong)
    save(spinney.plot_outlier_scores(mistaken, X, wrong, kind="oob").figure, folder / "outlier_scores.png")
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(300, 2)) / 8
    rows = pd.DataFrame(np.vstack([ring, rng.uniform(-2, 2, (12, 2))]), columns=["across", "up"])
    isolation = spinney.IsolationForest(n_estimators=300, contamination=0.05, random_state=0).fit(rows)
    save(spinney.plot_isolation(isolation, rows).figure, folder / "isolation.png")


def explaining_pictures(folder: Path) -> None:
    """Draw what models have learned, asked of them."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    forest = spinney.RandomForestRegressor(random_state=0).fit(X, y)
    rows = spinney.partial_dependence(forest, X, "bmi", individual=True)
    save(rows.plot().figure, folder / "dependence.png")
    save(rows.centred().plot().figure, folder / "dependence_centred.png")
    save(spinney.partial_dependence(forest, X, ("bmi", "s5"), n_points=25).plot().figure, folder / "dependence_map.png")
    save(spinney.interaction_strength(forest, X).plot().figure, folder / "interactions.png")
    save(spinney.permutation_importance(forest, X, y, rows="out_of_bag").plot().figure, folder / "permutation.png")
    Z, species = spinney.datasets.load_penguins()
    model = spinney.RandomForestClassifier(random_state=0).fit(Z, species)
    save(spinney.partial_dependence(model, Z, "island").plot().figure, folder / "dependence_island.png")
    save(spinney.counterfactual(model, Z.iloc[0], "Gentoo", X=Z).plot().figure, folder / "counterfactual.png")
    save(spinney.nearest_rows(model, Z, 0).plot().figure, folder / "nearest_rows.png")


def shapley_pictures(folder: Path) -> None:
    """Draw the chapter on Shapley values: all rows, all classes, one row."""
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    explained: Any = spinney.RandomForestClassifier(random_state=0).fit(X, y).shap_values(X)
    save(explained.plot(output="Gentoo").figure, folder / "shap_points.png")
    save(explained.plot("bars").figure, folder / "shap_bars.png")
    save(explained.plot_row(160, output="Gentoo").figure, folder / "shap_row.png")
    known = X["sex"].notna()
    Z = X[known].drop(columns=["sex", "year"]).assign(species=y[known])
    boosted = spinney.GradientBoostingClassifier(n_estimators=60, max_leaf_nodes=6).fit(Z, X["sex"][known])
    reasons: Any = boosted.shap_values(Z)
    save(reasons.plot().figure, folder / "shap_boosting.png")


def local_pictures(folder: Path) -> None:
    """Draw the chapter on neighbours and cells: error against k, regions, the histogram of least risk."""
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    numbers = X[["bill_length_mm", "body_mass_g"]].dropna()
    species = y[numbers.index]
    chosen = spinney.KNeighborsClassifier("cv", k_values=range(1, 41), scale="standard").fit(numbers, species)
    save(spinney.plot_error_curve(chosen).figure, folder / "neighbours_error.png")
    models = {
        f"{k} neighbour{'s' * (k > 1)}": spinney.KNeighborsClassifier(k, scale="standard")
        for k in (1, chosen.n_neighbors_, 150)
    }
    models |= {"cells of a fifth of the range": spinney.HistogramClassifier(0.2)}
    save(spinney.plot_regions(models, numbers, species), folder / "neighbours_regions.png")
    density = spinney.HistogramDensity().fit(numbers[["bill_length_mm"]])
    figure, (left, right) = mpl.pyplot.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    spinney.plot_error_curve(density, ax=left)
    density.plot(ax=right)
    save(figure, folder / "histogram_density.png")


def names_by_rows() -> Any:
    """Draw what a column of names that mean nothing costs, by the number of rows that share a name."""
    rng = np.random.default_rng(0)
    sizes = [1, 2, 3, 5, 10, 20, 50]
    x = rng.normal(size=(2000, 4))
    y = x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=2000) > 0
    kinds = {
        "pruned tree": spinney.DecisionTreeClassifier(prune="cv", random_state=0),
        "forest": spinney.RandomForestClassifier(random_state=0),
    }
    figure, axes = mpl.pyplot.subplots(1, 2, figsize=(8.5, 3.2), sharey=True)
    for ax, (title, model) in zip(axes, kinds.items(), strict=True):
        found: dict[str, list[float]] = {"without the rules": [], "with both rules": [], "without the column": []}
        for size in sizes:
            X = pd.DataFrame(x, columns=list("abcd")).assign(name=[f"n{i // size:04d}" for i in rng.permutation(2000)])
            for label, row in found.items():
                table = X.drop(columns="name") if label == "without the column" else X
                names = None if label == "without the column" else ["name"]
                least = 1 if label == "without the rules" else 5
                fitted = clone(model).set_params(min_samples_category=least, categorical_features=names)
                fitted.fit(table[:1000], y[:1000])
                row.append(roc_auc_score(y[1000:], fitted.predict_proba(table[1000:])[:, 1]))
        for k, (label, row) in enumerate(found.items()):
            ax.plot(sizes, row, color=class_colour(k), marker=CLASS_MARKERS[k], label=label)
        ax.set(xscale="log", xlabel="rows that share a name", title=title)
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
    axes[0].set_ylabel("area under the curve")
    axes[1].legend(frameon=False)
    figure.tight_layout()
    return figure


def main(arguments: list[str]) -> None:
    """Write all pictures to a folder."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(arguments[0]) if arguments else root / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    penguins = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    quick_start = spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(X, y)
    (folder / "penguins.svg").write_text(spinney.tree_svg(quick_start), encoding="utf-8")
    save(spinney.plot_tree(iris_tree(), show_missing=False).figure, folder / "iris.png")
    (folder / "sixty_leaves.svg").write_text(spinney.tree_svg(many_leaves(), show_missing=False), encoding="utf-8")
    diabetes = spinney.DecisionTreeRegressor(max_depth=3).fit(*load_diabetes(return_X_y=True, as_frame=True))
    (folder / "diabetes.svg").write_text(spinney.tree_svg(diabetes, show_missing=False), encoding="utf-8")
    for name, tree in zip(("cancer_plain.svg", "cancer_careful.svg"), cancer_trees(), strict=True):
        (folder / name).write_text(spinney.tree_svg(tree, show_missing=False), encoding="utf-8")
    plane = spinney.DecisionTreeClassifier(max_depth=3).fit(X[TWO], y)
    save(spinney.plot_partition(plane, X[TWO], y).figure, folder / "partition.png")
    save(spinney.plot_impurities().figure, folder / "impurity_curves.png")
    teaching_pictures(folder)
    course_pictures(folder)
    save(spinney.plot_importances(penguins).figure, folder / "importances.png")
    save(decision_functions(), folder / "forests.png")
    save(forest_errors(), folder / "forest_errors.png")
    save(importance_kinds(), folder / "importance_kinds.png")
    save(importance_rows(), folder / "importance_rows.png")
    save(quantile_bands(), folder / "quantile_bands.png")
    save(coverage(), folder / "coverage.png")
    save(learning_curve(), folder / "learning_curve.png")
    save(losses(), folder / "losses.png")
    save(early_stopping(), folder / "boosting_rounds.png")
    save(ranking(), folder / "ranking.png")
    save(survival(), folder / "survival.png")
    save(survival_forest(), folder / "survival_forest.png")
    save(shapes(), folder / "shapes.png")
    save(batting(), folder / "batting.png")
    save(shrinkage(), folder / "shrinkage.png")
    (folder / "surrogates.svg").write_text(
        spinney.tree_svg(spinney.DecisionTreeClassifier(max_depth=2, missing="surrogate").fit(X, y)), encoding="utf-8"
    )
    save(lost_columns(), folder / "lost_columns.png")
    save(names_by_rows(), folder / "names.png")
    shallow = spinney.DecisionTreeClassifier(max_depth=3, min_samples_leaf=5).fit(X, y)
    save(spinney.fragility(shallow, X, y, random_state=0).plot().figure, folder / "fragility.png")
    unpruned = spinney.DecisionTreeClassifier().fit(X, y)
    pruned = spinney.DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    save(spinney.plot_pruning(unpruned, pruned, show_missing=False), folder / "pruning.png", dpi=90)
    pruning_pictures(folder)
    save(thirty_rows(), folder / "bagging_thirty_rows.png")
    save(oob_curve(), folder / "bagging_oob.png")
    save(bias_variance(), folder / "bias_variance.png")
    comparison_pictures(folder)
    adaboost_pictures(folder)
    margin_pictures(folder)
    neighbour_pictures(folder)
    local_pictures(folder)
    shapley_pictures(folder)
    explaining_pictures(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
