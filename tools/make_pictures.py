"""Make the pictures of the documentation: ``PYTHONPATH=python python tools/make_pictures.py [FOLDER]``.

Needs pandas and matplotlib. Without a folder they go to docs/pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import spinney
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

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


def save(figure: Any, path: Path, dpi: int = 110) -> None:
    """Write a figure as PNG and close it."""
    figure.savefig(path, dpi=dpi)
    mpl.pyplot.close(figure)


def main(arguments: list[str]) -> None:
    """Write all pictures to a folder."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(arguments[0]) if arguments else root / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    penguins = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    (folder / "penguins.svg").write_text(spinney.tree_svg(penguins), encoding="utf-8")
    save(spinney.plot_tree(iris_tree(), show_missing=False).figure, folder / "iris.png")
    forest_sized = many_leaves()
    (folder / "sixty_leaves.svg").write_text(spinney.tree_svg(forest_sized, show_missing=False), encoding="utf-8")
    save(spinney.plot_tree(forest_sized, max_depth=3, show_missing=False).figure, folder / "collapsed.png")
    diabetes = spinney.DecisionTreeRegressor(max_depth=3).fit(*load_diabetes(return_X_y=True, as_frame=True))
    (folder / "diabetes.svg").write_text(spinney.tree_svg(diabetes, show_missing=False), encoding="utf-8")
    for name, tree in zip(("plain", "careful"), cancer_trees(), strict=True):
        (folder / f"cancer_{name}.svg").write_text(spinney.tree_svg(tree, show_missing=False), encoding="utf-8")
    plane = spinney.DecisionTreeClassifier(max_depth=3).fit(X[TWO], y)
    save(spinney.plot_partition(plane, X[TWO], y).figure, folder / "partition.png")
    save(spinney.plot_impurity_curves().figure, folder / "impurity_curves.png")
    save(spinney.plot_importances(penguins).figure, folder / "importances.png")
    unpruned = spinney.DecisionTreeClassifier().fit(X, y)
    pruned = spinney.DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    save(spinney.plot_pruning(unpruned, pruned, show_missing=False), folder / "pruning.png", dpi=90)


if __name__ == "__main__":
    main(sys.argv[1:])
