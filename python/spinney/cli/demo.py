"""``spinney demo``: a cross-validated tree on the bundled penguins, printed as questions.

Vocabulary: a *question* is the condition on an edge of the tree; *shares* are a node's class shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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
    console.print(f"\nAccuracy on unseen rows, {n_folds}-fold cross-validation:")
    console.print(accuracy_table(accuracy))
    console.print("\nThe tree fitted to all rows, as questions:")
    with_gaps = {name for name in X.columns if X[name].null_count() > 0}
    for line in tree_lines(tree.fit(X, species), with_gaps):
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


def accuracy_table(accuracy: dict[str, Any]) -> Table:
    """Lay out mean and standard deviation of the accuracy over the folds."""
    table = Table()
    table.add_column("model")
    table.add_column("mean ± sd", justify="right")
    for name, scores in accuracy.items():
        table.add_row(name, f"{scores.mean():.1%} ± {scores.std(ddof=1):.1%}")
    return table


def tree_lines(model: Any, with_gaps: Collection[str]) -> Iterator[str]:
    """Yield the fitted tree as indented text: question, rows, class and shares of each node.

    Where missing values go is said of the features `with_gaps` only.
    """
    tree = model.tree_
    classes = [str(name) for name in model.classes_]

    def describe(node: int, depth: int, question: str) -> Iterator[str]:
        values = tree.value[node].ravel()
        shares = [float(v) / float(values.sum()) for v in values]
        is_leaf = tree.children_left[node] < 0
        verdict = f" → {classes[shares.index(max(shares))]}" if is_leaf else ""
        text = ", ".join(f"{name} {percent(share)}" for name, share in zip(classes, shares, strict=True) if share > 0)
        n_rows = int(tree.n_node_samples[node])
        yield f"{'    ' * depth}{question}: {n_rows} row{'s' if n_rows != 1 else ''} ({text}){verdict}"
        if not is_leaf:
            left_question, right_question = questions(model, node, with_gaps)
            yield from describe(int(tree.children_left[node]), depth + 1, left_question)
            yield from describe(int(tree.children_right[node]), depth + 1, right_question)

    return describe(0, 0, "all")


def percent(share: float) -> str:
    """Round a share to whole percent, but call no part everything or nothing."""
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{share:.0%}"


def questions(model: Any, node: int, with_gaps: Collection[str]) -> tuple[str, str]:
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
    elif isinf(threshold):  # all that is known goes one way
        return f"{feature.name} is known", f"{feature.name} is missing"
    elif feature.kind == "ordered":  # the threshold lies between positions in the declared order
        left_codes = {code for code in range(len(names)) if code <= threshold}
        sides = [
            one_of(feature.name, names, left_codes),
            one_of(feature.name, names, all_but(left_codes, names)),
        ]
    elif feature.kind == "boolean":
        sides = [f"{feature.name} is false", f"{feature.name} is true"]
    else:
        sides = [f"{feature.name} ≤ {threshold:.10g}", f"{feature.name} > {threshold:.10g}"]
    if feature.name in with_gaps:
        sides[0 if tree.missing_go_to_left[node] else 1] += " (or missing)"
    return sides[0], sides[1]


def all_but(codes: set[int], names: Sequence[str]) -> set[int]:
    """Return the codes of the categories that are not among `codes`."""
    return set(range(len(names))) - codes


def one_of(feature: str, names: Sequence[str], codes: set[int]) -> str:
    """Say that a feature is one of the categories with these codes."""
    chosen = [name for code, name in enumerate(names) if code in codes]
    return f"{feature} is {' or '.join(chosen) if chosen else 'something else'}"
