"""``spinney demo``: a cross-validated tree on the bundled penguins, printed as questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def run_demo(*, max_depth: int, n_folds: int, seed: int) -> None:
    """Fit, judge and print one tree on the penguins."""
    import numpy as np
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    from spinney import DecisionTreeClassifier, export_text
    from spinney.datasets import load_penguins

    X, y = load_penguins(as_frame="polars")
    species = y.to_numpy()
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    tree = DecisionTreeClassifier(max_depth=max_depth, random_state=seed)
    majority = DummyClassifier(strategy="most_frequent")
    accuracy = {
        f"decision tree, depth {max_depth}": cross_val_score(tree, X, species, cv=folds),
        "most frequent species": cross_val_score(majority, np.zeros((len(species), 1)), species, cv=folds),
    }
    console = Console(highlight=False)
    console.print(table_summary(X, species.tolist()), soft_wrap=True)
    console.print(f"\nAccuracy on unseen rows, {n_folds}-fold cross-validation:")
    console.print(accuracy_table(accuracy))
    console.print("\nThe tree fitted to all rows, as questions:")
    with_gaps = {name for name in X.columns if X[name].null_count() > 0}
    text = export_text(tree.fit(X, species), show_missing=with_gaps)
    console.print(text, markup=False, soft_wrap=True)


def table_summary(X: Any, species: Sequence[str]) -> str:
    """Describe the table in two lines."""
    n_missing = sum(int(X[name].null_count()) for name in X.columns)
    categories = [name for name in X.columns if is_category(X[name])]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(species).items()))
    return (
        f"Palmer penguins: {X.height} rows, {X.width} features "
        f"({len(categories)} categories: {', '.join(categories)}), {n_missing} missing values\n"
        f"Which species? {counts}"
    )


def is_category(column: Any) -> bool:
    """Say whether a polars column holds categories."""
    import polars as pl

    return isinstance(column.dtype, pl.Enum | pl.Categorical | pl.String)


def accuracy_table(accuracy: dict[str, Any]) -> Table:
    """Lay out mean and standard deviation of the accuracy over the folds."""
    table = Table()
    table.add_column("model")
    table.add_column("mean ± sd", justify="right")
    for name, scores in accuracy.items():
        table.add_row(name, f"{scores.mean():.1%} ± {scores.std(ddof=1):.1%}")
    return table
