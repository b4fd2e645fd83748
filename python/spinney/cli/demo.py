"""``spinney demo``: a cross-validated tree on the bundled penguins, printed as questions.

Vocabulary: a *question* is the condition on an edge of the tree; *shares* are a node's class shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isinf
from typing import Any

from rich.console import Console
from rich.table import Table


def run_demo(*, max_depth: int, n_folds: int, seed: int) -> None:
    """Fit, judge and print one tree on the penguins."""
    import numpy as np
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    from spinney import DecisionTreeClassifier
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
    console.print(accuracy_table(accuracy, n_folds))
    console.print("The tree fitted to all rows, as questions:", markup=False)
    for line in tree_lines(tree.fit(X, species)):
        console.print(line, markup=False, soft_wrap=True)


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


def accuracy_table(accuracy: dict[str, Any], n_folds: int) -> Table:
    """Lay out mean and standard deviation of the accuracy over the folds."""
    table = Table(title=f"Accuracy on unseen rows, {n_folds}-fold cross-validation", title_justify="left")
    table.add_column("model")
    table.add_column("mean ± sd", justify="right")
    for name, scores in accuracy.items():
        table.add_row(name, f"{scores.mean():.1%} ± {scores.std(ddof=1):.1%}")
    return table


def tree_lines(model: Any) -> Iterator[str]:
    """Yield the fitted tree as indented text: question, rows, class and shares of each node."""
    classes = [str(name) for name in model.classes_]

    def describe(node: int, depth: int, question: str) -> Iterator[str]:
        tree = model.tree_
        values = tree.value[node].ravel()
        shares = [float(v) / float(values.sum()) for v in values]
        best = max(range(len(shares)), key=shares.__getitem__)
        is_leaf = tree.children_left[node] < 0
        verdict = f" → {classes[best]}" if is_leaf else ""
        text = ", ".join(
            f"{name} {share:.0%}" for name, share in zip(classes, shares, strict=True) if share > 0
        )
        yield f"{'    ' * depth}{question}: {int(tree.n_node_samples[node])} rows ({text}){verdict}"
        if not is_leaf:
            left_question, right_question = questions(model, node)
            yield from describe(int(tree.children_left[node]), depth + 1, left_question)
            yield from describe(int(tree.children_right[node]), depth + 1, right_question)

    return describe(0, 0, "all")


def questions(model: Any, node: int) -> tuple[str, str]:
    """Return the conditions of the left and the right child of an inner node."""
    tree = model.tree_
    feature = model.schema_.features[int(tree.feature[node])]
    threshold = float(tree.threshold[node])
    names = [str(category) for category in feature.categories]
    if feature.kind == "category":
        left_codes = set(tree.left_categories(node))
        sides = [
            one_of(feature.name, names, left_codes),
            one_of(feature.name, names, all_but(left_codes, names)),
        ]
    elif feature.kind == "ordered":  # the threshold lies between positions in the declared order
        left_codes = {code for code in range(len(names)) if code <= threshold}
        sides = [
            one_of(feature.name, names, left_codes),
            one_of(feature.name, names, all_but(left_codes, names)),
        ]
    elif feature.kind == "boolean":
        sides = [f"{feature.name} is false", f"{feature.name} is true"]
    elif isinf(threshold):  # all that is known goes one way
        return f"{feature.name} is known", f"{feature.name} is missing"
    else:
        sides = [f"{feature.name} ≤ {threshold:g}", f"{feature.name} > {threshold:g}"]
    sides[0 if tree.missing_go_to_left[node] else 1] += " (or missing)"
    return sides[0], sides[1]


def all_but(codes: set[int], names: Sequence[str]) -> set[int]:
    """Return the codes of the categories that are not among `codes`."""
    return set(range(len(names))) - codes


def one_of(feature: str, names: Sequence[str], codes: set[int]) -> str:
    """Say that a feature is one of the categories with these codes."""
    chosen = [name for code, name in enumerate(names) if code in codes]
    return f"{feature} is {' or '.join(chosen) if chosen else 'something else'}"
